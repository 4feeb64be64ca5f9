"""What depends on where ipamc runs: colour, progress, the clock, and what to say when the surroundings fail."""

from __future__ import annotations

import datetime
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from ipamc.report.terminal_text import visible
from ipamc.workspace.disk import Trouble

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


def today() -> str:
    """Give the day in UTC, ISO 8601: SOURCE_DATE_EPOCH if it is set, else the clock's. The only place where ipamc asks for the time."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    if not re.fullmatch(r"\d{1,12}", epoch, re.ASCII):
        raise Trouble(f"SOURCE_DATE_EPOCH is {visible(epoch)!r}, which is no number of seconds since 1970")
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        raise Trouble(f"SOURCE_DATE_EPOCH is {epoch}, after the year 9999") from None


def trouble(problem: BaseException) -> str:
    """Give the one line for a failure of the surroundings; "" for anything else, which is then a bug of ours."""
    if isinstance(problem, Trouble | click.ClickException):
        return visible(str(problem))
    if isinstance(problem, OSError):
        path = problem.filename2 or problem.filename
        reason = (problem.strerror or "").lower() or str(problem) or type(problem).__name__
        return visible(f"{os.fsdecode(path)}: {reason}" if path and not isinstance(path, int) else reason)
    return "out of memory" if isinstance(problem, MemoryError) else ""


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
