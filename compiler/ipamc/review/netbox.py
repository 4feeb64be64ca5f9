"""Prefixes for NetBox: what a bulk import creates, and what it changes of what is there.

Read in the source of NetBox 3.4 to 4.6 (ipam/forms/bulk_import.py, netbox/views/generic/bulk_views.py): a row
with an `id` changes the columns that are in the file, a row without one creates a prefix, all of a file or
nothing is imported, and nothing is ever deleted. Where NetBox does not enforce unique prefixes, one that is
imported twice is there twice.

A prefix is ours if its description begins with `ipamc CLUSTER/`. Nothing else that NetBox has is changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct

from ipamc.model.cidr import Block, CidrError, parse_block
from ipamc.model.diagnostics import Diagnostic, Log, Span
from ipamc.model.wording import shown
from ipamc.read.csv_table import Table, bad_prefix, column_missing, plain, table_syntax
from ipamc.review.prefixes import Prefix

STATUSES: Mapping[str, str] = {
    "range": "container",
    "held": "active",
    "pending": "reserved",
    "quarantined": "deprecated",
    "pinned": "reserved",
    "reserved": "reserved",
    "gone": "deprecated",
}
"""NetBox's status of a prefix by its kind. In NetBox, reserved is for future use, deprecated no longer in use."""

LONGEST = 200
"""The most characters of a description in NetBox."""
COLUMNS = {
    "id": ("id",),
    "prefix": ("prefix", "prefix(flat)"),
    "status": ("status",),
    "vrf": ("vrf",),
    "description": ("description",),
    "role": ("role",),
    "tenant": ("tenant",),
    "site": ("site",),
}
"""The columns of an export of NetBox that are compared, by the headers that `plain` makes of NetBox's."""
_COMPARED = ("role", "tenant", "site")
_NEEDED = ("id", "prefix", "status", "vrf", "description")
_NO_VRF = frozenset({"", "global", "\N{EM DASH}"})
"""What exports have as the VRF of a prefix of the global table."""
_GONE = ": gone"
_ODD = re.compile(r"[^A-Za-z0-9 ._:/-]")
"""No name has these, but a lock is written by branches: in CSV they would be separators and quotes."""


class ImportRow(Struct, frozen=True, kw_only=True):
    """A row to import."""

    block: Block
    id: int = 0
    """NetBox's number of the prefix; 0: it is to be created."""
    status: str
    description: str


class There(Struct, frozen=True, kw_only=True):
    """A prefix that NetBox has."""

    id: int
    block: Block
    status: str
    vrf: str
    description: str
    others: Mapping[str, str]
    """Of role, tenant and site those that the export has."""


class Changes(Struct, frozen=True, kw_only=True):
    """What an import changes."""

    rows: tuple[ImportRow, ...]
    """By address."""
    created: int = 0
    updated: int = 0
    gone: int = 0
    """Ours, and not of the cluster any more."""
    unchanged: int = 0
    foreign: tuple[There, ...] = ()
    """What somebody else made, and what has another status than ours would have. It stays as it is."""
    elsewhere: tuple[There, ...] = ()
    """What is ours in another VRF. It stays, too: all rows of a file are in one VRF."""


def first_import(prefixes: Iterable[Prefix], statuses: Mapping[str, str]) -> Changes:
    """Return the rows of an import into a NetBox that has none of the prefixes."""
    rows = tuple(sorted((_row(prefix, statuses) for prefix in prefixes), key=_order))
    return Changes(rows=rows, created=len(rows))


def later_import(
    prefixes: Iterable[Prefix],
    there: Iterable[There],
    clusters: Collection[str],
    statuses: Mapping[str, str],
    columns: Mapping[str, str],
) -> Changes:
    """Return the rows of an import into a NetBox that has some of the prefixes. O(n log n).

    `clusters` are those that are exported: what is ours of another one stays. `columns` are those that every row
    has beside ours; `vrf` or `vrf.rd` of them tells where the prefixes are.
    """
    known: dict[Block, list[There]] = {}
    gone: list[There] = []
    elsewhere: list[There] = []
    marks = tuple(f"ipamc {cluster}/" for cluster in clusters)
    for each in sorted(there, key=lambda each: each.id):
        if _is_in(each.vrf, columns):
            known.setdefault(each.block, []).append(each)
        elif each.description.startswith(marks):
            elsewhere.append(each)
    rows: list[ImportRow] = []
    foreign: list[There] = []
    created = updated = unchanged = 0
    for prefix in prefixes:
        row = _row(prefix, statuses)
        same = known.pop(row.block, [])
        ours = [each for each in same if each.description.startswith(marks)]
        gone += ours[1:]
        if ours and _differs(ours[0], row, columns):
            rows.append(_row(prefix, statuses, ours[0].id))
            updated += 1
        elif not same:
            rows.append(row)
            created += 1
        elif not ours and plain(same[0].status) != plain(row.status):
            foreign.append(same[0])
        else:
            unchanged += 1
    gone += [each for same in known.values() for each in same if each.description.startswith(marks)]
    left = [away for each in gone if (away := _gone(each, statuses["gone"]))]
    return Changes(
        rows=tuple(sorted((*rows, *left), key=_order)),
        created=created,
        updated=updated,
        gone=len(left),
        unchanged=unchanged + len(gone) - len(left),
        foreign=tuple(foreign),
        elsewhere=tuple(elsewhere),
    )


def _row(prefix: Prefix, statuses: Mapping[str, str], number: int = 0) -> ImportRow:
    text = _ODD.sub("?", f"ipamc {prefix.cluster}/{prefix.pool}: {prefix.words}")
    return ImportRow(
        block=prefix.block,
        id=number,
        status=statuses[prefix.kind],
        description=text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...",
    )


def _order(row: ImportRow) -> tuple[Block, int]:
    return row.block, row.id


def _is_in(vrf: str, columns: Mapping[str, str]) -> bool:
    """Tell whether an export's VRF is that of the columns: its name, and in brackets its route distinguisher."""
    name, distinguisher = columns.get("vrf"), columns.get("vrf.rd")
    if name:
        return vrf == name or vrf.startswith(f"{name} (")
    if distinguisher:
        return vrf.endswith(f" ({distinguisher})")
    return vrf.casefold() in _NO_VRF


def _differs(there: There, row: ImportRow, columns: Mapping[str, str]) -> bool:
    return (
        plain(there.status) != plain(row.status)
        or there.description != row.description
        or any(columns.get(name, text) != text for name, text in there.others.items())
    )


def _gone(there: There, status: str) -> ImportRow | None:
    """Return the row that says of a prefix that it is gone; None where NetBox says so already."""
    text = there.description.partition(": ")[0][: LONGEST - len(_GONE)] + _GONE
    if plain(there.status) == plain(status) and there.description == text:
        return None
    return ImportRow(block=there.block, id=there.id, status=status, description=text)


def read_export(table: Table) -> list[There]:
    """Return the prefixes of an export of NetBox. Raises Refused."""
    log = Log()
    missing = [name for name in _NEEDED if name not in table.columns]
    head = Span(table.path, table.head)
    if missing:
        log.add([*table.findings, *(column_missing(head, [name], _HOW) for name in missing)])
    found: list[There] = []
    log.add(chain(table.findings, _read(table, found)))
    return found


_HOW = "in NetBox, in the list of prefixes, choose Export, All Data (CSV), with English as the language"


def _read(table: Table, found: list[There]) -> Iterator[Diagnostic]:
    others = [name for name in _COMPARED if name in table.columns]
    for row in table.rows:
        number, text = row.cells.get("id", ""), row.cells.get("prefix", "")
        if not (number.isascii() and number.isdecimal() and 0 < len(number) < 20 and int(number)):
            yield table_syntax(table.at(row, "id"), f"{shown(number)} is no ID of NetBox", _HOW)
            continue
        try:
            block = parse_block(text, pods=False)
        except CidrError as problem:
            yield bad_prefix(table.at(row, "prefix"), text, problem)
            continue
        found.append(
            There(
                id=int(number),
                block=block,
                status=row.cells.get("status", ""),
                vrf=row.cells.get("vrf", ""),
                description=row.cells.get("description", ""),
                others={name: row.cells.get(name, "") for name in others},
            )
        )
