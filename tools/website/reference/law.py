"""The table of the law of a change, from its rows: a part of docs/concepts/verify.md."""

from __future__ import annotations

import re
from pathlib import Path

from ipamc.law.change import ROWS, UNLAWFUL
from tools.website.reference.markdown import table

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "verify.md"
_BEFORE = {"held": "held by n", "quarantined": "in quarantine for n", "pending": "pending for n"}
_PART = re.compile(r"(?s)(?<=<!-- the law -->\n).*(?=<!-- the end of the law -->)")


def with_table(text: str) -> str:
    """Return the page with the table of today's rows."""
    rows = [
        (
            _BEFORE.get(row.was, row.was),
            row.when,
            row.verdict,
            _asked(row.gate, refused=row.verdict in UNLAWFUL),
        )
        for row in ROWS
    ]
    return _PART.sub(
        lambda _: table(("in the base", "in the head", "verdict", "asks for"), rows) + "\n", text
    )


def _asked(gate: str | None, *, refused: bool) -> str:
    return "refused" if refused else f"`ipamc/{gate}`" if gate else ""


def write() -> None:
    """Write the page again."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
