"""Tables of prefixes from the disk and from stdin. The user names them, so they may be links and pipes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ipamc.read.table.csv_table import LARGEST, read_table

if TYPE_CHECKING:
    from ipamc.read.table.csv_table import Table, Wanted


def load_table(path: str, wanted: Wanted) -> Table:
    """Read the columns that are wanted of a CSV file; `-` is stdin. Raises Refused and OSError.

    Nothing is read far beyond the largest table: its size is a finding.
    """
    if path == "-":
        return read_table("<stdin>", sys.stdin.buffer.read(LARGEST + 1), wanted)
    with open(path, "rb") as file:  # noqa: PTH123 - as the user types it
        return read_table(path, file.read(LARGEST + 1), wanted)
