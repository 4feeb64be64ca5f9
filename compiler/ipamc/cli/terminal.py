"""What depends on the terminal: colour and progress; and the line for an environment error."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TextIO

import click

from ipamc.report.terminal_text import harmless, harmless_json, visible
from ipamc.workspace.trouble import one_line

PATIENCE = 0.3
"""Seconds before progress is shown."""
LINES = 200
"""Lines of one message; then a number."""
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
    """Write a line for people, to stderr.

    What comes after a line break is indented: a message of a server with line breaks looks like no other line
    of ours. Nothing in it acts on a terminal or on a CI system.
    """
    first, *more = harmless(text).split("\n")
    lines = [first, *(line if line.startswith("  ") else f"    {line}" for line in more[:LINES])]
    if len(more) > LINES:
        lines.append(f"    … and {len(more) - LINES:,} more lines")
    click.echo("\n".join(lines), err=True, color=True)  # True: the text has its colours already


def show(text: str, *, err: bool = False) -> None:
    """Write a finished text for people, to stdout by default. Nothing in it acts on a terminal or a CI system."""
    click.echo(harmless(text), nl=False, err=err, color=True)


def show_json(text: str) -> None:
    """Write a JSON document to stdout. No CI system finds a command in it."""
    click.echo(harmless_json(text.rstrip("\n")))


def trouble(problem: BaseException) -> str:
    """Return the line for an I/O, environment or usage error; "" for others, which are bugs of ipamc."""
    if isinstance(problem, click.ClickException):
        return visible(str(problem))
    return one_line(problem)


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
