"""Tables of prefixes from the disk and from stdin. The user names them, so they may be links and pipes."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

from ipamc.read.table.csv_table import LARGEST, read_table
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from ipamc.read.table.csv_table import Table, Wanted

_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How files of Excel and LibreOffice begin, new and old."""


def load_table(path: str, wanted: Wanted) -> Table:
    """Read the columns that are wanted of a CSV file; `-` is stdin. Raises Refused, OSError, and Trouble for a spreadsheet.

    Nothing is read far beyond the largest table: its size is a finding.
    """
    if path == "-":
        return read_table("<stdin>", sys.stdin.buffer.read(LARGEST + 1), wanted)
    with open(path, "rb") as file:  # noqa: PTH123 - as the user types it
        data = file.read(LARGEST + 1)
    if data.startswith(_SHEETS):
        raise Trouble(
            f"{path} is a spreadsheet, and no CSV: save its sheet as {PurePath(path).with_suffix('.csv')}, and name that file"
        )
    return read_table(path, data, wanted)
