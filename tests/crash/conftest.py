"""The last line of `make crash`: its figures."""

from __future__ import annotations

from typing import Any

from tests.crash.pieces import ALL, FIGURES, PART, PARTS


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what was counted."""
    if ALL:
        counted = ", ".join(f"{number:,} {name}" for name, number in FIGURES.items())
        terminalreporter.write_line(f"CRASH_PART={PART}/{PARTS}: {counted}")
