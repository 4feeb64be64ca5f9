"""The streams of this process, where another process has closed them."""

from __future__ import annotations

import os
import sys

from ipamc.workspace import disk
from ipamc.workspace.safe_read import LARGEST
from ipamc.workspace.trouble import Trouble


def open_closed() -> None:
    """Open stdout and stderr on the null device where the parent process has closed them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lives


def discard_stdout() -> None:
    """Send the rest of stdout to the null device, because its reader is gone.

    The interpreter would complain when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_stdin() -> str:
    """Return all of stdin. Raises Trouble where it is too long, or no text in UTF-8."""
    data = sys.stdin.buffer.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Trouble(f"stdin has more than {LARGEST >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise Trouble(
            f"stdin is no text in UTF-8: byte {problem.start} is {data[problem.start]:#04x}"
        ) from None


def read_text(path: str) -> str:
    """Return a text file that the user names; `-` is stdin. Raises Trouble where there is none."""
    if path == "-":
        return read_stdin()
    data = disk.read_bytes(path)
    if data is None:
        raise Trouble(f"there is no file {path}")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise Trouble(f"{path} is no text in UTF-8: byte {problem.start}") from None
