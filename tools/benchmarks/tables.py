"""Tables of figures in Markdown, and the description of the machine."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from measure import Cost

LIBRARIES = ("click", "jinja2", "jsonschema-rs", "msgspec", "pyyaml")
FIGURES = ("seconds", "processor", "MB")


def figures(cost: Cost) -> list[str]:
    """Return the cells of a cost: FIGURES."""
    return [f"{cost.wall:.2f}", f"{cost.seconds:.2f}", f"{cost.memory / 1e6:.0f}"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown whose columns line up. A column of numbers is aligned to the right."""
    cells = [list(head), *map(list, rows)]
    right = [
        all(re.match(r"-?\d", row[index]) for row in cells[1:] if row[index]) for index in range(len(head))
    ]
    widths = [max(3, *(len(row[index]) for row in cells)) for index in range(len(head))]

    def line(row: Sequence[str]) -> str:
        parts = (
            cell.rjust(width) if last else cell.ljust(width)
            for cell, width, last in zip(row, widths, right, strict=True)
        )
        return f"| {' | '.join(parts)} |"

    rule = [f"{'-' * (width - 1)}{':' if last else '-'}" for width, last in zip(widths, right, strict=True)]
    return "\n".join([line(cells[0]), f"| {' | '.join(rule)} |", *map(line, cells[1:])])


def machine() -> list[tuple[str, str]]:
    """Return what the figures depend on, without the names of a machine."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return [
        ("processor", f"{_processor()}, {processors} for these runs"),
        ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("other work", f"load average {os.getloadavg()[0]:.1f} at the start"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("libraries", libraries),
    ]


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or "unknown"
