"""Prefixes for NetBox: a cluster's part of an address space, and the changes of it for a bulk import.

Read in the source of NetBox 3.4 to 4.6 (ipam/forms/bulk_import.py, netbox/views/generic/bulk_views.py): a row
with an `id` changes the columns that are in the file, a row without one creates a prefix, a file is imported
completely or not at all, and nothing is ever deleted. If NetBox does not enforce unique prefixes, one that is
imported twice exists twice.

A prefix is ours if its description begins with `ipamc CLUSTER/`. No other prefix is changed. `excludedCIDRs`
(service range, networks of nodes) do not belong to the cluster, and are not exported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.address_sets import blocks_over, index_around, outermost, shared
from ipamc.model.cidr import Block, CidrError, parse_block
from ipamc.model.cluster import AddressSpace, Scheme
from ipamc.model.diagnostics import Diagnostic, Log, Related, Span, error
from ipamc.model.evidence import Evidence
from ipamc.model.follows import address_for
from ipamc.model.limits import NETBOX_DESCRIPTION
from ipamc.model.lock import Lock, State
from ipamc.model.wording import shown as quoted
from ipamc.read.csv_table import Table, bad_prefix, column_missing, plain, table_syntax

Kind = Literal["range", "held", "pending", "quarantined", "pinned", "reserved"]
"""The meaning of a prefix. Released blocks have none: their addresses are free to be given out."""
STATUSES: Mapping[str, str] = {
    "range": "container",
    "held": "active",
    "pending": "reserved",
    "quarantined": "deprecated",
    "pinned": "reserved",
    "reserved": "reserved",
    "gone": "deprecated",
}
"""NetBox's status of a prefix by its kind: reserved is for future use, deprecated no longer in use."""
_COMPARED = ("role", "tenant", "site")
_NEEDED = ("id", "prefix", "status", "vrf", "description")
COLUMNS = {name: (name,) for name in (*_NEEDED, *_COMPARED)} | {"prefix": ("prefix", "prefix(flat)")}
"""The columns of a NetBox export that are compared, by NetBox's headers in the form of `plain`."""
_NO_VRF = frozenset({"", "global", "\N{EM DASH}"})
"""Values of the VRF column for prefixes of the global table."""
_GONE = ": gone"
_ODD = re.compile(r"[^A-Za-z0-9 ._:/-]")
"""Characters that no name has. A branch may write them into a lock; in CSV they would be separators."""


class ExportedPrefix(Struct, frozen=True, kw_only=True):
    """A prefix of one cluster. Address and length are its key: no two prefixes of a cluster share them."""

    block: Block
    kind: Kind
    cluster: str
    pool: str  # "" of a block outside every pool
    words: str  # a description for people; begins with `range of /N blocks` for a whole range


def prefixes_of(cluster: Scheme, lock: Lock) -> tuple[ExportedPrefix, ...]:
    """Return the prefixes of a cluster by family and address, the larger one first. O(n log n).
    If a prefix has several meanings, a node's block comes before a pin, a pin before a reserved prefix, and
    that before the range: a range may be as small as a block.
    """
    prefixes: dict[Block, ExportedPrefix] = {}

    def add(block: Block, kind: Kind, pool: str, words: str) -> None:
        prefix = ExportedPrefix(block=block, kind=kind, cluster=cluster.name, pool=pool, words=words)
        prefixes.setdefault(block, prefix)

    # A range that a space gave to a cluster is exported by the cluster.
    for line in [line for line in lock.lines if not (isinstance(cluster, AddressSpace) and line.in_use)]:
        if line.state is State.HELD:
            add(line.block, "held", line.pool, f"held by {line.node}")
        elif line.state is State.PENDING:
            add(line.block, "pending", line.pool, f"pending for {line.node}")
        elif line.state is State.QUARANTINED:
            add(line.block, "quarantined", line.pool, f"quarantined since {line.since} from {line.node}")
    lines = [line.block for line in lock.lines]
    for seen in Evidence(cluster).without_node():
        if index_around(lines, seen.block) is None:
            add(seen.block, "held", seen.pool, f"shown by CiliumNode {seen.node}")
    for pool in cluster.pools:
        for node, pins in sorted(pool.pins.items()):
            for pin in pins:
                address = address_for(pool, pin.block)
                words = f"follows {address} of {node}" if address else f"pinned for {node}"
                add(pin.block, "pinned", pool.name, words)
    ranges = [
        (pool, part.block_size, cidr.block)
        for pool in cluster.pools
        for part in pool.families.values()
        for cidr in part.ranges
    ]
    reserved = {pool.name: outermost(cidr.block for cidr in pool.reserved) for pool in cluster.pools}
    for pool, _, whole in ranges:
        for block in blocks_over(reserved[pool.name], whole):
            add(shared(block, whole), "reserved", pool.name, "reserved")
    for pool, size, whole in ranges:
        words = f"range of /{size} blocks"
        if inner := prefixes.get(whole):
            prefixes[whole] = replace(inner, words=f"{words} and {inner.words}")
        else:
            add(whole, "range", pool.name, words)
    return tuple(prefix for _, prefix in sorted(prefixes.items()))


def same_in_several(clusters: Sequence[tuple[str, Sequence[ExportedPrefix]]]) -> Iterator[Diagnostic]:
    """IPC0879: clusters that are exported together share no address."""
    # Clusters are (folder, prefixes). A finding names the first address that a cluster shares with another
    # before it. O(n log n).
    before: list[tuple[str, Sequence[ExportedPrefix], list[Block]]] = []
    for folder, prefixes in clusters:
        mine = outermost(prefix.block for prefix in prefixes)
        for there, theirs, blocks in before:
            met = next((block for block in mine if blocks_over(blocks, block)), None)
            if met is not None:
                name, other = prefixes[0].cluster, theirs[0].cluster
                text = f"{met} belongs to cluster {name} and to cluster {other}"
                also = [Related(Span(there), f"{other} has the same addresses")]
                command = f"ipamc export netbox {name} --set vrf=NAME"
                way_out = f"export the clusters separately, each with its VRF: {command}"
                yield error("IPC0879", Span(folder), text, also=also, help=way_out)
                break
        before.append((folder, prefixes, mine))


class ImportRow(Struct, frozen=True, kw_only=True):
    """A row to import."""

    block: Block
    id: int = 0  # NetBox's number of the prefix; 0: it is to be created
    status: str
    description: str


class NetBoxPrefix(Struct, frozen=True, kw_only=True):
    """A prefix in NetBox."""

    id: int
    block: Block
    status: str
    vrf: str
    description: str
    others: Mapping[str, str]  # role, tenant and site, as far as the export has them


class NetBoxImport(Struct, frozen=True, kw_only=True):
    """The changes of an import."""

    rows: tuple[ImportRow, ...]  # by address
    created: int = 0
    updated: int = 0
    gone: int = 0  # prefixes of ours that the cluster no longer has
    unchanged: int = 0
    foreign: tuple[NetBoxPrefix, ...] = ()
    """Prefixes that somebody else created, with another status than ours would have. They do not change."""
    elsewhere: tuple[NetBoxPrefix, ...] = ()
    """Prefixes of ours in another VRF. They stay, too: all rows of a file are in one VRF."""


def later_import(
    prefixes: Iterable[ExportedPrefix],
    there: Iterable[NetBoxPrefix],
    clusters: Collection[str],
    statuses: Mapping[str, str],
    columns: Mapping[str, str],
) -> NetBoxImport:
    """Return the rows of an import into a NetBox that has none or some of the prefixes. O(n log n).
    `clusters` are the exported ones: prefixes of other clusters stay. `columns` are constant values of all
    rows; their `vrf` or `vrf.rd` says in which VRF the prefixes are.
    """
    known: dict[Block, list[NetBoxPrefix]] = {}
    gone: list[NetBoxPrefix] = []
    elsewhere: list[NetBoxPrefix] = []
    marks = tuple(f"ipamc {cluster}/" for cluster in clusters)
    for each in sorted(there, key=lambda each: each.id):
        if _is_in(each.vrf, columns):
            known.setdefault(each.block, []).append(each)
        elif each.description.startswith(marks):
            elsewhere.append(each)
    rows: list[ImportRow] = []
    foreign: list[NetBoxPrefix] = []
    created = updated = unchanged = 0
    for prefix in prefixes:
        row = _row(prefix, statuses)
        same = known.pop(row.block, [])
        ours = [each for each in same if each.description.startswith(marks)]
        gone += ours[1:]
        if ours and _differs(ours[0], row, columns):
            rows.append(replace(row, id=ours[0].id))
            updated += 1
        elif not same:
            rows.append(row)
            created += 1
        elif not ours and plain(same[0].status) != plain(row.status):
            foreign.append(same[0])
        else:
            unchanged += 1
    gone += [each for same in known.values() for each in same if each.description.startswith(marks)]
    left = [away for each in gone if (away := _gone_row(each, statuses["gone"]))]
    return NetBoxImport(
        rows=tuple(sorted((*rows, *left), key=lambda row: (row.block, row.id))),
        created=created,
        updated=updated,
        gone=len(left),
        unchanged=unchanged + len(gone) - len(left),
        foreign=tuple(foreign),
        elsewhere=tuple(elsewhere),
    )


def _row(prefix: ExportedPrefix, statuses: Mapping[str, str]) -> ImportRow:
    text = _ODD.sub("?", f"ipamc {prefix.cluster}/{prefix.pool}: {prefix.words}")
    text = text if len(text) <= NETBOX_DESCRIPTION else f"{text[: NETBOX_DESCRIPTION - 3]}..."
    return ImportRow(block=prefix.block, status=statuses[prefix.kind], description=text)


def _is_in(vrf: str, columns: Mapping[str, str]) -> bool:
    """Return whether an export's VRF is that of the columns: a name, in brackets a route distinguisher."""
    name, distinguisher = columns.get("vrf"), columns.get("vrf.rd")
    if name:
        return vrf == name or vrf.startswith(f"{name} (")
    if distinguisher:
        return vrf.endswith(f" ({distinguisher})")
    return vrf.casefold() in _NO_VRF


def _differs(there: NetBoxPrefix, row: ImportRow, columns: Mapping[str, str]) -> bool:
    same = plain(there.status) == plain(row.status) and there.description == row.description
    return not same or any(columns.get(name, text) != text for name, text in there.others.items())


def _gone_row(there: NetBoxPrefix, status: str) -> ImportRow | None:
    """Return the row that marks a prefix as gone; None if NetBox has that mark already."""
    text = there.description.partition(": ")[0][: NETBOX_DESCRIPTION - len(_GONE)] + _GONE
    if plain(there.status) == plain(status) and there.description == text:
        return None
    return ImportRow(block=there.block, id=there.id, status=status, description=text)


_HOW = "in NetBox, in the list of prefixes, choose Export, All Data (CSV), with English as the language"


def read_export(table: Table) -> list[NetBoxPrefix]:
    """Return the prefixes of an export of NetBox. Raises Refused."""
    log = Log()
    head = Span(table.path, table.head)
    if missing := [name for name in _NEEDED if name not in table.columns]:
        log.add([*table.findings, *(column_missing(head, [name], _HOW) for name in missing)])
    result: list[NetBoxPrefix] = []
    log.add(chain(table.findings, _read(table, result)))
    return result


def _read(table: Table, result: list[NetBoxPrefix]) -> Iterator[Diagnostic]:
    compared = [name for name in _COMPARED if name in table.columns]
    for row in table.rows:
        number, text = row.cells.get("id", ""), row.cells.get("prefix", "")
        if not (number.isascii() and number.isdecimal() and 0 < len(number) < 20 and int(number)):
            yield table_syntax(table.at(row, "id"), f"{quoted(number)} is not a NetBox ID", _HOW)
            continue
        try:
            block = parse_block(text, pods=False)
        except CidrError as problem:
            yield bad_prefix(table.at(row, "prefix"), text, problem)
            continue
        cells = {name: row.cells.get(name, "") for name in ("status", "vrf", "description")}
        others = {name: row.cells.get(name, "") for name in compared}
        result.append(NetBoxPrefix(id=int(number), block=block, others=others, **cells))
