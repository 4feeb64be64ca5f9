"""What depends on the terminal: colour and progress; and the line for an environment error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from ipamc.cli.status_line import Follower, StatusLine
from ipamc.model.progress import Progress, current, phase, watched
from ipamc.report.terminal_text import harmless, harmless_json, visible
from ipamc.workspace.trouble import one_line

LINES = 200
"""Lines of one message; then a number."""
COLUMNS = 80
"""Of a terminal that does not tell."""


def colour(stream: TextIO) -> bool:
    """Return whether to colour a stream.

    NO_COLOR forbids it, FORCE_COLOR demands it; else a terminal is coloured unless it is dumb.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_terminal() -> bool:
    """Return whether people look at stdout, and not a program."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO | None = None) -> int:
    """Return how wide a line of a stream may be, stdout by default: COLUMNS, else what the terminal tells, else COLUMNS of this module."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdecimal() and int(said[:6]):
        return int(said[:6])
    return _columns(stream or sys.stdout)


def has_blocks() -> bool:
    """Return whether stdout is a terminal that shows block characters: one in UTF-8."""
    return is_terminal() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def say(text: str) -> None:
    """Write a line for people, to stderr.

    What comes after a line break is indented: a message of a server with line breaks looks like no other line
    of ours. Nothing in it acts on a terminal or on a CI system.
    """
    first, *more = harmless(text).split("\n")
    lines = [first, *(line if line.startswith("  ") else f"    {line}" for line in more[:LINES])]
    if len(more) > LINES:
        lines.append(f"    … and {len(more) - LINES:,} more lines")
    _LINE.erase()
    click.echo("\n".join(lines), err=True, color=True)  # True: the text has its colours already


def show(text: str, *, err: bool = False) -> None:
    """Write a finished text for people, to stdout by default. Nothing in it acts on a terminal or a CI system."""
    _LINE.erase()
    click.echo(harmless(text), nl=False, err=err, color=True)


def show_json(text: str) -> None:
    """Write a JSON document to stdout. No CI system finds a command in it."""
    _LINE.erase()
    click.echo(harmless_json(text.rstrip("\n")))


def show_csv(text: str) -> None:
    """Write a CSV document, whose lines end with CR and LF, to stdout. No CI system finds a command in it."""
    _LINE.erase()
    click.echo(harmless(text.replace("\r\n", "\n")).replace("\n", "\r\n"), nl=False)


def trouble(problem: BaseException) -> str:
    """Return the line for an I/O, environment or usage error; "" for others, which are bugs of ipamc."""
    if isinstance(problem, click.ClickException):
        return visible(str(problem))
    return one_line(problem)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on a terminal what the block does, if it takes long: first `text`, then the phases of the work.

    Nothing is shown where stderr is no terminal, or a dumb one, and in CI, whose terminals are files.
    """
    here = current() or Progress()
    shown = _is_watched()
    here.counts = shown
    with watched(here):
        phase(text)
        follower = Follower(_LINE, here) if shown else None
        try:
            yield
        finally:
            here.clusters = None
            if follower:
                follower.end()
        phase("")


def _is_watched() -> bool:
    return (
        sys.stderr.isatty()
        and os.environ.get("TERM") != "dumb"
        and os.environ.get("CI", "").lower() in {"", "0", "false"}
    )


def _columns(stream: TextIO | None = None) -> int:
    try:
        return os.get_terminal_size((stream or sys.stderr).fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


def _write(text: str) -> None:
    click.echo(text, err=True, nl=False, color=True)


_LINE = StatusLine(_write, _columns)
