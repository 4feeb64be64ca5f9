"""Failures of the environment: one line for the user, and no traceback."""

from __future__ import annotations

import os

from ipamc.report.terminal_text import visible


class EnvironmentFailure(Exception):  # noqa: N818 - a fact about the environment, not a bug
    """The environment does not let ipamc work; the text is one sentence for the user."""


class Misnamed(EnvironmentFailure):
    """A cluster or date that does not exist: the command line turns it into a usage error."""

    def __init__(self, text: str, word: str = "") -> None:
        super().__init__(text)
        self.word = word
        """What was typed."""


def one_line(problem: BaseException) -> str:
    """Return the line for a failure of the environment; "" for other exceptions, which are bugs of ipamc."""
    if isinstance(problem, EnvironmentFailure):
        return visible(str(problem))
    if isinstance(problem, OSError):
        path = problem.filename2 or problem.filename
        reason = (problem.strerror or "").lower() or str(problem) or type(problem).__name__
        return visible(f"{os.fsdecode(path)}: {reason}" if path and not isinstance(path, int) else reason)
    return "out of memory" if isinstance(problem, MemoryError) else ""
