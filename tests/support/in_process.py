"""The command line, called in the process of the tests. It prints and returns what a process of its own would, without the time to start one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from ipamc.cli import main


def ipamc(
    *arguments: str, cwd: Path, environment: Mapping[str, str], one_stream: bool = False
) -> subprocess.CompletedProcess[str]:
    """Call ipamc in a folder with an environment. With `one_stream`, stdout has what goes to stderr, too."""
    out = _stream()
    err = out if one_stream else _stream("backslashreplace")
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main(arguments)
    return subprocess.CompletedProcess(["ipamc", *arguments], code, _text(out), _text(err))


def _stream(errors: str = "strict") -> io.TextIOWrapper:
    """Return a stream that treats what is not UTF-8 as Python's own stdout and stderr do."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, newline="", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
