"""Prefixes as the CSV that NetBox's bulk import reads.

Cells of ours begin with a digit, a hexadecimal letter, a colon or `ipamc`, so no spreadsheet takes one for a
formula, and have no separator and no quote: NetBox guesses the separator from the whole text (Python's
`csv.Sniffer`), and quotes mislead it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

from ipamc.model.diagnostics import count, names
from ipamc.report.terminal_text import visible
from ipamc.review.netbox import NetBoxImport, NetBoxPrefix


class _Rows(list[str]):
    """Rows of text, for a writer of CSV."""

    def write(self, row: str) -> None:
        """Add a row."""
        self.append(row)


def table(changes: NetBoxImport, columns: Mapping[str, str], *, ids: bool) -> str:
    """Return the file to import. `columns` have one value for all rows; `ids`: with NetBox's numbers."""
    rows = _Rows()
    writer = csv.writer(rows, lineterminator="\n")
    head = ["id"] if ids else []
    writer.writerow([*head, "prefix", "status", *columns, "description"])
    for row in changes.rows:
        number = [str(row.id or "")] if ids else []
        writer.writerow([*number, str(row.block), row.status, *columns.values(), row.description])
    return "".join(rows)


def summary(changes: NetBoxImport) -> list[str]:
    """Return what an import does, as lines for people."""
    made = count(changes.created, "prefix", "prefixes")
    lines = [
        f"{made} to create, {changes.updated:,} to update, {changes.gone:,} gone, {changes.unchanged:,} unchanged"
    ]
    if changes.foreign:
        lines.append(
            f"not made by this export, with another status, and left as they are: {_some(changes.foreign)}"
        )
    if changes.elsewhere:
        lines.append(f"made by this export in another VRF, and left as they are: {_some(changes.elsewhere)}")
    return lines


def _some(prefixes: Sequence[NetBoxPrefix]) -> str:
    which = names((visible(str(there.block)) for there in prefixes), limit=10)
    return f"{count(len(prefixes), 'prefix', 'prefixes')} ({which})"
