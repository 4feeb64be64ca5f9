"""What depends on where ipamc runs: colour, progress, the clock, and what to say when the surroundings fail."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from ipamc.report.terminal_text import visible
from ipamc.workspace.trouble import one_line

PATIENCE = 0.3
"""Seconds before progress is shown."""


def colour(stream: TextIO) -> bool:
    """Tell whether to colour what goes to a stream: NO_COLOR forbids, FORCE_COLOR demands, else a terminal that is not dumb."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def say(text: str) -> None:
    """Write a line for people, to stderr."""
    click.echo(text, err=True, color=True)  # True: whoever made the text knew whether to colour it


def trouble(problem: BaseException) -> str:
    """Return the line for a failure of the environment or a usage error; "" for any other exception, which is a bug of ipamc."""
    if isinstance(problem, click.ClickException):
        return visible(str(problem))
    return one_line(problem)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on a terminal that something is going on, once it has taken longer than PATIENCE."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    worker = threading.Thread(target=_show, args=(text, done), daemon=True)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()


def _show(text: str, done: threading.Event) -> None:
    if not done.wait(PATIENCE):
        from rich.console import Console

        with Console(stderr=True).status(text):
            done.wait()
