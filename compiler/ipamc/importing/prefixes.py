"""Pools from the prefixes that a NetBox or a spreadsheet plans for one cluster.

A row that names a pool is a range of it. A row inside a range is reserved: somebody else has the addresses,
or will have them. A row of `ipamc export netbox` says what it is: ranges and reserved CIDRs of this cluster
are read back, its blocks are in the lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field

from ipamc.importing.draft import DraftPool
from ipamc.model.address_sets import aggregated, blocks_over, covers, nested, outermost
from ipamc.model.cidr import BITS, Block, CidrError, parse_block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import (
    At,
    Diagnostic,
    Log,
    Place,
    Related,
    Span,
    count,
    error,
    names,
    note,
    warning,
)
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.label_syntax import label_value_problem, subdomain_problem
from ipamc.model.selector.selector import parse_calico
from ipamc.model.wording import shown
from ipamc.read.csv_table import Row, Table, bad_prefix, column_missing, plain

COLUMNS = {
    "prefix": ("prefix", "cidr", "network", "subnet", "prefix(flat)"),
    "pool": ("pool",),
    "name": ("name",),
    "role": ("role",),
    "description": ("description",),
    "blockSize": ("blocksize",),
    "status": ("status",),
    "nodeSelector": ("nodeselector",),
    "zone": ("zone",),
    "site": ("site", "scope"),
}
"""The columns to read, by the headers in the form of `plain`."""
_NAMES = ("pool", "name", "role", "description")  # the columns that may name the pool
ZONE = "topology.kubernetes.io/zone"
_OURS = re.compile(r"ipamc (?P<cluster>[^/ ]+)/(?P<pool>[^: ]*): (?P<words>.*)", re.DOTALL)
_RANGE = re.compile(r"range of /(\d{1,3}) blocks\b")
_EMPTY = frozenset({"", "\N{EM DASH}"})  # NetBox's export of an empty field
_IN_A_RANGE = frozenset({"active", "reserved", "deprecated"})
_NOT_A_NAME = re.compile(r"[^a-z0-9.-]+")


class PlannedPrefix(Struct, frozen=True, kw_only=True):
    """A row of the plan."""

    row: Row
    block: Block
    pool: str = ""  # "" if it names none
    status: str = ""
    size: int = 0  # the blockSize in its description; 0: none
    taken: bool = False  # it is reserved, or of another cluster: not a range


class PlannedPool(Struct, frozen=True, kw_only=True):
    """A pool of the plan, with the first row of each range."""

    draft: DraftPool
    at: Mapping[Block, Span]


class PlannedPools(Struct, frozen=True, kw_only=True):
    """The pools of a plan, by name, and the notes about them."""

    pools: tuple[PlannedPool, ...]
    findings: tuple[Diagnostic, ...]


class _PoolRows(Struct):
    """The rows of a pool."""

    ranges: list[PlannedPrefix] = field(default_factory=list)
    reserved: list[Block] = field(default_factory=list)


def read_plan(table: Table, cluster: str, sizes: Mapping[int, int]) -> PlannedPools:
    """Return the pools that a table plans; `sizes` are for ranges without one. Raises Refused. O(n log n)."""
    log = Log()
    head = Span(table.path, table.head)
    if "prefix" not in table.columns:
        way_out = "rename the column of CIDRs to prefix, in English"
        log.add([*table.findings, column_missing(head, COLUMNS["prefix"][:3], way_out)])
    rows: list[PlannedPrefix] = []
    made: dict[str, _PoolRows] = {}
    rest: list[PlannedPrefix] = []
    pools: list[PlannedPool] = []
    # In this order: each step fills the list that the next one reads.
    parsed, arranged = _parsed(table, cluster, rows), _arranged(table, rows, made, rest)
    log.add(chain(table.findings, parsed, arranged, _drafted(table, made, sizes, pools)))
    if not pools:
        text = "no row names a pool" if table.rows else "the table has no rows"
        log.add([bad_pool(head, text, "name the pool of each range in a column pool")])
    if rest:
        log.add([not_taken(table.at(rest[0].row, "prefix"), len(rest))])
    return PlannedPools(pools=tuple(pools), findings=tuple(log.diagnostics))


def _parsed(table: Table, cluster: str, rows: list[PlannedPrefix]) -> Iterator[Diagnostic]:
    """Parse each row into `rows`; yield errors in single rows."""
    source = _source_of_names(table)
    checked: dict[str, str] = {}
    for row in table.rows:
        text = row.cells.get("prefix", "")
        try:
            block = parse_block(text)
        except CidrError as problem:
            # Networks that pods cannot use are no error, unless they are planned as a pool.
            if problem.rule != "not for pods" or row.cells.get(source, "") not in _EMPTY:
                yield bad_prefix(table.at(row, "prefix"), text, problem)
            continue
        ours = _OURS.fullmatch(row.cells.get("description", ""))
        if ours:
            rows.extend(_of_ours(row, block, ours, cluster))
            continue
        pool = "" if (name := row.cells.get(source, "")) in _EMPTY else name
        if pool and pool not in checked:
            checked[pool] = subdomain_problem(pool)
        if pool and (problem_of_name := checked[pool]):
            better = _NOT_A_NAME.sub("-", pool.casefold()).strip("-.")[:60]
            hint = "" if subdomain_problem(better) else f"write {better}, or "
            text = f"{shown(pool)} cannot be a pool name: it {problem_of_name}"
            way_out = f"{hint}add a column pool, empty for rows that are not ranges"
            yield bad_pool(table.at(row, source), text, way_out)
            continue
        rows.append(PlannedPrefix(row=row, block=block, pool=pool, status=plain(row.cells.get("status", ""))))


def _source_of_names(table: Table) -> str:
    """Return the column that names the pools; prefixes that ipamc exported do not count."""
    for column in _NAMES:
        texts = (row.cells.get(column, "") for row in table.rows) if column in table.columns else ()
        if any(text not in _EMPTY and not _OURS.fullmatch(text) for text in texts):
            return column
    return ""


def _of_ours(row: Row, block: Block, ours: re.Match[str], cluster: str) -> Iterator[PlannedPrefix]:
    """Yield the meaning of a prefix that ipamc exported; none for a block of a node of this cluster."""
    if ours["cluster"] != cluster:
        yield PlannedPrefix(row=row, block=block, taken=True)
    elif found := _RANGE.match(ours["words"]):
        yield PlannedPrefix(row=row, block=block, pool=ours["pool"], size=int(found[1]))
    elif ours["words"] == "reserved":
        yield PlannedPrefix(row=row, block=block, pool=ours["pool"], taken=True)


def _arranged(
    table: Table, rows: Sequence[PlannedPrefix], made: dict[str, _PoolRows], rest: list[PlannedPrefix]
) -> Iterator[Diagnostic]:
    """Find the ranges of each pool, and the reserved CIDRs in them; yield ranges that overlap."""
    ranges: set[int] = set()
    for item, around in nested(rows, lambda row: row.block):
        outer = next((each for each in reversed(around) if id(each) in ranges), None)
        is_range = bool(item.pool) and not item.taken
        if outer is None:
            if is_range and item.status != "deprecated":
                ranges.add(id(item))
                made.setdefault(item.pool, _PoolRows())
            else:
                rest.append(item)
        elif not is_range or (
            item.pool == outer.pool and item.status in _IN_A_RANGE and item.block != outer.block
        ):
            made[outer.pool].reserved.append(item.block)
        else:
            yield rows_overlap(table, item, outer)
    for item in rows:  # in the order of the file, which is that of allocation
        if id(item) in ranges:
            made[item.pool].ranges.append(item)


def _drafted(
    table: Table, made: Mapping[str, _PoolRows], sizes: Mapping[int, int], pools: list[PlannedPool]
) -> Iterator[Diagnostic]:
    for name, found in sorted(made.items()):
        chosen: dict[int, int] = {}
        selector = ""
        first: PlannedPrefix | None = None
        ranges: dict[int, list[Block]] = {}
        for item in found.ranges:
            family = item.block.family
            ranges.setdefault(family, []).append(item.block)
            size, problem = _size(item, sizes)
            if not problem and chosen.setdefault(family, size) != size:
                problem = f"pool {shown(name)} has the block sizes {chosen[family]} and {size} in IPv{family}"
            if problem:
                yield bad_block_size(table.at(item.row, "blockSize"), problem)
            mine, column, problem = _selector(item.row)
            if not problem and first is not None and mine != selector:
                problem = f"pool {shown(name)} selects other nodes in line {first.row.line}"
            if problem:
                way_out = "write the same place for every range of the pool"
                way_out += ", or an expression such as has(rack) into a column nodeSelector"
                yield bad_place(table.at(item.row, column), problem, way_out)
            elif first is None:
                first, selector = item, mine
        draft = DraftPool(
            name=name,
            ranges={family: tuple(blocks) for family, blocks in ranges.items()},
            sizes=chosen,
            selector=selector or None,
            reserved=dict.fromkeys(aggregated(found.reserved), ""),
        )
        at = {item.block: table.at(item.row, "prefix") for item in found.ranges}
        pools.append(PlannedPool(draft=draft, at=at))


def _size(item: PlannedPrefix, sizes: Mapping[int, int]) -> tuple[int, str]:
    """Return the blockSize of a range, or an error."""
    text = item.row.cells.get("blockSize", "").removeprefix("/")
    size = item.size or sizes.get(item.block.family, 0)
    if text and text not in _EMPTY:
        size = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
    if not size:
        return 0, f"{item.block} has no block size"
    longest = BITS[item.block.family]
    if not item.block.prefix <= size <= longest:
        what = shown(text) if size < 0 else f"/{size}"
        has = f"/{item.block.prefix} to /{longest}"
        return 0, f"{what} is not a block size for {item.block}, which allows {has}"
    return size, ""


def _selector(row: Row) -> tuple[str, str, str]:
    """Return the nodeSelector of a row, its column, and an error."""
    for column in ("nodeSelector", "zone", "site"):
        text = row.cells.get(column, "")
        if text in _EMPTY:
            continue
        if column == "nodeSelector":
            try:
                parse_calico(text)
            except SelectorError as problem:
                return "", column, f"{shown(text)} is not a nodeSelector: {problem.message}"
            return text, column, ""
        if problem_of_value := label_value_problem(text):
            return "", column, f"{shown(text)} cannot be a label value: it {problem_of_value}"
        return f'{ZONE} == "{text}"', column, ""
    return "", "nodeSelector", ""


def new_pools(plan: PlannedPools, cluster: Cluster) -> tuple[PlannedPool, ...]:
    """Return the pools of a plan that a cluster does not have, by name."""
    return tuple(pool for pool in plan.pools if pool.draft.name not in cluster.pools_by_name)


def differences(plan: PlannedPools, cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield a finding for each existing pool that differs from the plan. The order of ranges is ignored."""
    for planned in plan.pools:
        if pool := cluster.pools_by_name.get(planned.draft.name):
            for family, ranges in sorted(planned.draft.ranges.items()):
                part = pool.families.get(family)
                there = [cidr.block for cidr in part.ranges] if part else []
                at = part.at if part else pool.at
                if missing := _beyond(there, ranges):
                    text = f"lacks the planned {names(map(str, missing))}"
                    yield not_as_planned(planned, missing[0], at, text, "add it to cidrs of the pool")
                if beyond := _beyond(ranges, there):
                    way_out = "if only the plan is out of date, do nothing"
                    way_out += "; to give up the range: ipamc runbook CLUSTER --change decommission"
                    text = f"has {names(map(str, beyond))}, which is not planned"
                    yield not_as_planned(planned, ranges[0], at, text, way_out)
                size = planned.draft.sizes[family]
                if part and part.block_size != size:
                    text = f"has blockSize {part.block_size}, but {size} is planned"
                    yield not_as_planned(planned, ranges[0], at, text, "change one of the two")
            if left := _beyond([cidr.block for cidr in pool.reserved], planned.draft.reserved):
                text = f"may give nodes {names(map(str, left))}, which the plan keeps free"
                way_out = "see who holds it: ipamc which CIDR; then add it to reserved of the pool"
                yield not_as_planned(planned, next(iter(planned.at)), pool.at, text, way_out)


def _beyond(known: Iterable[Block], blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks with addresses outside of `known`. O(n log n)."""
    disjoint = outermost(known)
    return [block for block in blocks if not covers(blocks_over(disjoint, block), block)]


def rows_overlap(table: Table, item: PlannedPrefix, outer: PlannedPrefix) -> Diagnostic:
    """IPC0874: planned ranges do not overlap."""
    where = "has the same addresses as" if item.block == outer.block else "is inside"
    text = f"{item.block} of pool {shown(item.pool)} {where} {outer.block} of pool {shown(outer.pool)}"
    also = [Related(table.at(outer.row, "prefix"), f"{outer.block} here")]
    way_out = "remove one of the two rows; to keep its addresses free"
    way_out += ", clear its pool name and set its status to reserved"
    return error("IPC0874", table.at(item.row, "prefix"), text, also=also, help=way_out)


def bad_pool(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0875: a planned range has a pool name in the form of a lower-case DNS name."""
    return error("IPC0875", at, problem, help=way_out)


def bad_block_size(at: At, problem: str) -> Diagnostic:
    """IPC0876: a pool has one block size per IP family, and each of its ranges has room for a block."""
    way_out = "write the same number, such as 26, in the column blockSize of every range of the pool"
    return error("IPC0876", at, problem, help=f"{way_out}, or add --block-size 26")


def bad_place(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0877: all ranges of a pool are for the same nodes."""
    return error("IPC0877", at, problem, help=way_out)


def not_as_planned(planned: PlannedPool, block: Block, at: Place, text: str, way_out: str) -> Diagnostic:
    """IPC0878: an existing pool matches the table."""
    also = [Related(planned.at[block], "planned here")]
    return warning("IPC0878", at, f"pool {shown(planned.draft.name)} {text}", also=also, help=way_out)


def not_taken(at: At, number: int) -> Diagnostic:
    """IPC0880: every prefix in a table belongs to a planned range."""
    text = f"{count(number, 'row')} left out: outside planned ranges, without a pool, or deprecated"
    return note("IPC0880", at, f"{text}; the first is here")
