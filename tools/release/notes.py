"""Print the text of a release: its part of CHANGELOG.md.

    python -m tools.release.notes 0.1.0

The part has the heading `## 0.1.0 - 2026-11-22`. It is refused if it is not there or empty, or if anything stands under
Unreleased.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_HEADING = re.compile(r"^## (?P<name>\S+)(?: - (?P<day>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def notes(text: str, version: str) -> str:
    """Return the part of a version. Raises SystemExit where the changelog is not ready for it."""
    parts = {}
    found = list(_HEADING.finditer(text))
    for heading, following in zip(found, [*found[1:], None], strict=True):
        end = following.start() if following else len(text)
        parts[heading["name"]] = (heading["day"], text[heading.end() : end].strip())
    if unreleased := parts.get("Unreleased", ("", ""))[1]:
        raise SystemExit(
            f"error: CHANGELOG.md has changes under Unreleased, {unreleased.splitlines()[0]!r}: move them below '## {version} - DAY'"
        )
    day, part = parts.get(version, (None, ""))
    if not (day and part):
        raise SystemExit(f"error: CHANGELOG.md has no '## {version} - DAY' with a text")
    return part + "\n"


if __name__ == "__main__":
    print(notes((ROOT / "CHANGELOG.md").read_text(), sys.argv[1].removeprefix("v")), end="")
