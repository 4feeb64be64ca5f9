"""What depends on the terminal: colour and progress.

The line that shows what a long run is doing now is on stderr alone, and never stays. It is drawn by a thread
that looks at `Progress` some times a second: the work itself waits for nothing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

import click

from ipamc.model.limits import MESSAGE_LINES, STATUS_DELAY
from ipamc.model.progress import Progress, current, phase, watched
from ipamc.report.terminal_text import harmless, harmless_json, visible, width
from ipamc.workspace.signals import keep_from_this_thread

COLUMNS = 80  # of a terminal that does not tell
TICK = 0.1  # seconds between two updates
ROOM = 3  # free columns at the end: a terminal echoes `^C` there, and a wrapped line cannot be removed
_ERASE = "\r\x1b[K"  # to the first column, and clear to the end of the line: also an echo of what was typed


def colour(stream: TextIO) -> bool:
    """Return whether to colour a stream: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return is_terminal(stream)


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a stream, stdout by default, is a terminal that people read."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO | None = None) -> int:
    """Return the width of a stream, stdout by default: $COLUMNS, else the terminal's, else COLUMNS."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdecimal() and int(said[:6]):
        return int(said[:6])
    return _columns(stream or sys.stdout)


def has_blocks() -> bool:
    """Return whether stdout is a terminal that shows block characters: one in UTF-8."""
    return is_terminal() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def say(text: str) -> None:
    """Write a line for people to stderr. Terminals and CI systems find no control sequence or command in it.
    Text behind a line break is indented: a message of a server must not look like a line of ipamc.
    """
    first, *more = harmless(text).split("\n")
    lines = [first, *(line if line.startswith("  ") else f"    {line}" for line in more[:MESSAGE_LINES])]
    if len(more) > MESSAGE_LINES:
        lines.append(f"    … and {len(more) - MESSAGE_LINES:,} more lines")
    _LINE.erase()
    click.echo("\n".join(lines), err=True, color=True)  # True: the text has its colours already


def show(text: str, *, err: bool = False) -> None:
    """Write a finished text for people to stdout, without control sequences or commands of a CI system."""
    _LINE.erase()
    click.echo(harmless(text), nl=False, err=err, color=True)


def show_json(text: str) -> None:
    """Write a JSON document to stdout. No CI system finds a command in it."""
    _LINE.erase()
    click.echo(harmless_json(text.rstrip("\n")))


def show_record(record: Mapping[str, object]) -> None:
    """Write a value as a JSON document to stdout, as `show_json`."""
    show_json(json.dumps(record, indent=2))


def show_csv(text: str) -> None:
    """Write a CSV document, whose lines end with CR and LF, to stdout. No CI system finds a command in it."""
    _LINE.erase()
    click.echo(harmless(text.replace("\r\n", "\n")).replace("\n", "\r\n"), nl=False)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on a terminal the work of a long block: first `text`, then its phases.
    Nothing is shown if stderr is no terminal or a dumb one, or in CI, whose terminals are files.
    """
    here = current() or Progress()
    here.counts = is_terminal(sys.stderr) and os.environ.get("CI", "").lower() in {"", "0", "false"}
    ended = threading.Event()

    def follow() -> None:
        keep_from_this_thread()
        _LINE.follow(here, ended.wait)

    with watched(here):
        phase(text)
        follower = threading.Thread(target=follow, daemon=True) if here.counts else None
        if follower:
            follower.start()
        try:
            yield
        finally:
            here.clusters = None
            ended.set()
            if follower:
                follower.join()
        phase("")


def _columns(stream: TextIO | None = None) -> int:
    try:
        return os.get_terminal_size((stream or sys.stderr).fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


class StatusLine:
    """The line of progress on the terminal. It is erased before anything else is printed."""

    def __init__(self, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self.write = write
        self.columns = columns  # the width of the terminal: it may change
        self.patient = False  # the run has taken STATUS_DELAY already: what comes next is shown at once
        self._shown = ""
        self._guard = threading.Lock()

    def draw(self, text: str) -> None:
        """Show a line in place of the previous one."""
        line = fitted(text, self.columns() - ROOM)
        with self._guard:
            if line != self._shown:
                self._write(f"{_ERASE}{line}")
                self._shown = line

    def erase(self) -> None:
        """Remove the line if there is one."""
        with self._guard:
            if self._shown:
                self._write(_ERASE)
                self._shown = ""

    def _write(self, text: str) -> None:
        try:
            self.write(text)
        except (OSError, ValueError):  # the terminal is gone: the work goes on
            self._shown = ""

    def follow(self, progress: Progress, wait: Callable[[float], bool]) -> None:
        """Show the progress of a run until `wait`, which waits some seconds, returns True."""
        if wait(TICK if self.patient else STATUS_DELAY):
            return
        self.patient = True
        while True:
            self.draw(str(progress))
            if wait(TICK):
                break
        self.erase()


def fitted(text: str, columns: int) -> str:
    """Return text without control characters, cut to this number of columns."""
    shown = visible(text)
    if width(shown) <= columns:
        return shown
    cells, fits = 0, 0
    for char in shown:
        cells += width(char)
        if cells > columns - 1:
            break
        fits += 1
    return f"{shown[:fits]}…" if columns > 0 else ""


_LINE = StatusLine(lambda text: click.echo(text, err=True, nl=False, color=True), _columns)
