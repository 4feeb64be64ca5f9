"""What depends on where ipamc runs: colour, progress, the clock; and the line for an environment error."""

from __future__ import annotations

import datetime
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TextIO

import click

from ipamc.report.terminal_text import visible
from ipamc.workspace.disk import Trouble

PATIENCE = 0.3
"""Seconds before progress is shown."""
WIDTH = 79
"""Characters of progress: a line that wraps could not be removed."""


def colour(stream: TextIO) -> bool:
    """Return whether to colour a stream.

    NO_COLOR forbids it, FORCE_COLOR demands it; else a terminal is coloured unless it is dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def say(text: str) -> None:
    """Write a line for people, to stderr."""
    click.echo(text, err=True, color=True)  # True: the text has its colours already


def today() -> str:
    """Return the day in UTC, ISO 8601: that of SOURCE_DATE_EPOCH if it is set, else today.

    Only this function reads the clock.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    if not re.fullmatch(r"\d{1,12}", epoch, re.ASCII):
        raise Trouble(f"SOURCE_DATE_EPOCH is {visible(epoch)!r}; it must be a number of seconds since 1970")
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        raise Trouble(f"SOURCE_DATE_EPOCH is {epoch}, after the year 9999") from None


def trouble(problem: BaseException) -> str:
    """Return the line for an I/O or environment error; "" for other exceptions, which are bugs of ipamc."""
    if isinstance(problem, Trouble | click.ClickException):
        return visible(str(problem))
    if isinstance(problem, OSError):
        path = problem.filename2 or problem.filename
        reason = (problem.strerror or "").lower() or str(problem) or type(problem).__name__
        return visible(f"{os.fsdecode(path)}: {reason}" if path and not isinstance(path, int) else reason)
    return "out of memory" if isinstance(problem, MemoryError) else ""


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a line on a terminal while the block runs, after PATIENCE; remove it at the end."""
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
    if done.wait(PATIENCE):
        return
    for seconds in count():
        line = f"{visible(text)} … {seconds} s"[:WIDTH]
        click.echo(f"\r{line}", err=True, nl=False)
        if done.wait(1):
            break
    click.echo(f"\r{' ' * len(line)}\r", err=True, nl=False)
