"""Prefixes as the CSV that NetBox's bulk import reads.

Cells begin with a digit, a hexadecimal letter, a colon or `ipamc`, so no spreadsheet takes one for a formula.
They have no separator and no quote: NetBox guesses the separator from the whole text (Python's
`csv.Sniffer`), and quotes mislead it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping

from ipamc.model.diagnostics import count, names
from ipamc.report.terminal_text import visible
from ipamc.review.netbox import NetBoxImport


class _Rows(list[str]):
    """A file-like list of rows for csv.writer."""

    write = list.append


def table(changes: NetBoxImport, columns: Mapping[str, str], *, ids: bool) -> str:
    """Return the file to import. `columns` have one value for all rows; `ids`: add NetBox's numbers."""
    rows = _Rows()
    writer = csv.writer(rows, lineterminator="\n")
    first = 0 if ids else 1
    writer.writerow(("id", "prefix", "status", *columns, "description")[first:])
    for row in changes.rows:
        cells = (row.id or "", row.block, row.status, *columns.values(), row.description)
        writer.writerow(map(str, cells[first:]))
    return "".join(rows)


def summary(changes: NetBoxImport) -> list[str]:
    """Return lines for people about the effect of an import."""
    made = f"{count(changes.created, 'prefix', 'prefixes')} to create, {changes.updated:,} to update"
    lines = [f"{made}, {changes.gone:,} gone, {changes.unchanged:,} unchanged"]
    kept = (
        ("not made by this export, with another status", changes.foreign),
        ("made by this export in another VRF", changes.elsewhere),
    )
    for why, prefixes in kept:
        if prefixes:
            which = names((visible(str(there.block)) for there in prefixes), limit=10)
            number = count(len(prefixes), "prefix", "prefixes")
            lines.append(f"{why}, and left as they are: {number} ({which})")
    return lines
