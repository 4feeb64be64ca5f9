"""The line on a terminal that shows what a long run is doing now. It is on stderr alone, and never stays.

It is drawn by a thread that looks at `Progress` some times a second: the work itself waits for nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ipamc.model.progress import Progress
from ipamc.report.terminal_text import visible, width
from ipamc.workspace.signals import keep_from_this_thread

PATIENCE = 1.0
"""Seconds of work before anything is shown."""
TICK = 0.1
"""Seconds from one look to the next."""
ROOM = 3
"""Columns at the end that stay free: a terminal echoes `^C` there, and a line that wraps cannot be removed."""
_ERASE = "\r\x1b[K"
"""To the first column, and clear to the end of the line: also an echo of what was typed."""


class StatusLine:
    """What is on the terminal now. Whoever prints anything else erases it first."""

    def __init__(self, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self.write = write
        self.columns = columns
        """The width of the terminal: it may change."""
        self.patient = False
        """The run has taken PATIENCE already: the next part of its work is shown at once."""
        self._shown = ""
        self._guard = threading.Lock()

    def draw(self, text: str) -> None:
        """Show a line in the place of the one before."""
        line = fitted(text, self.columns() - ROOM)
        with self._guard:
            if line != self._shown:
                self._write(f"{_ERASE}{line}")
                self._shown = line

    def erase(self) -> None:
        """Remove the line, where there is one."""
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
        """Show what a run is doing until `wait`, which waits so many seconds, tells that it has ended."""
        if wait(TICK if self.patient else PATIENCE):
            return
        self.patient = True
        while True:
            self.draw(str(progress))
            if wait(TICK):
                break
        self.erase()


class Follower:
    """A thread that shows what a run is doing."""

    def __init__(self, line: StatusLine, progress: Progress) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(line, progress), daemon=True)
        self._thread.start()

    def _run(self, line: StatusLine, progress: Progress) -> None:
        keep_from_this_thread()
        line.follow(progress, self._ended.wait)

    def end(self) -> None:
        """Return when the line is gone."""
        self._ended.set()
        self._thread.join()


def fitted(text: str, columns: int) -> str:
    """Return text without anything that acts on a terminal, cut to so many columns."""
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
