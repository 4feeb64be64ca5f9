"""The use of pools: its numbers as text, and pools for programs as JSON, CSV and metrics of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ipamc.lock.utilisation import Use
from ipamc.model.lock import Line, State
from ipamc.report.lock_lines import state_record
from ipamc.report.terminal_text import visible
from ipamc.review.shown_pools import ShownCluster, ShownPool


def number(value: int) -> str:
    """Return a count as text: up to seven digits in full, above that five significant digits (IPv6)."""
    return str(value) if value < 10_000_000 else f"{value:.5g}"


def amount(value: int) -> str:
    """Return a number with all digits, or a huge one as a power of two."""
    return f"{value:,}" if value < 10_000_000 else power(value)


def addresses(value: int, family: int) -> str:
    """Return a number of addresses: for IPv4 with all digits, for IPv6 as a power of two."""
    return f"{value:,}" if family == 4 or value < 1 << 16 else power(value)


def power(value: int) -> str:
    """Return a number as a power of two: `2^72`; `~2^72.6` if it is not exact."""
    if value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}" if value else "0"
    return f"~2^{math.log2(value):.1f}".removesuffix(".0")


def percent(part: int, total: int) -> str:
    """Return a share, rounded down: 0% and 100% only if exact. "" if the total is 0."""
    if not total:
        return ""
    return "<1%" if 0 < part * 100 < total else f"{part * 100 // total}%"


def percent_left(left: int, total: int) -> str:
    """Return the complement of `percent`: if `<1%` are used, `>99%` are left. "" if the total is 0."""
    if not total:
        return ""
    if 0 < left * 100 < total:
        return "<1%"
    used = total - left
    return ">99%" if 0 < used * 100 < total else f"{100 - used * 100 // total}%"


VERSION = 1


def record(cluster: ShownCluster) -> dict[str, Any]:
    """Return the shown data of one cluster for JSON, as schemas/show.output.json describes it."""
    pools = [_pool_record(cluster, pool) for pool in cluster.pools]
    outside = cluster.outside if cluster.lines is not None else ()
    found = {"outside": _line_records(cluster, outside)} if outside else {}
    return {"cluster": cluster.name, "pools": pools, **found}


def _pool_record(cluster: ShownCluster, shown: ShownPool) -> dict[str, object]:
    use, ending = shown.use, shown.ending
    ranges = [{"cidr": str(part.range.block), **use_record(part.use)} for part in use.ranges]
    if cluster.lines is not None:
        lines = [_line_records(cluster, cluster.lines[part.range.block]) for part in use.ranges]
        ranges = [{**entry, "lines": some} for entry, some in zip(ranges, lines, strict=True)]
    return {
        "pool": use.pool.name,
        "family": f"IPv{use.family.family}",
        "blockSize": use.family.block_size,
        **({"follows": str(use.family.follows.block)} if use.family.follows else {}),
        **use_record(use.use),
        "room": shown.room,
        "comesFree": {"day": ending.day, "blocks": ending.blocks} if ending else None,
        "ranges": ranges,
        "reserved": [
            {"cidr": str(cidr.block), "reason": cidr.reason}
            for cidr in use.pool.reserved
            if cidr.block.family == use.family.family
        ],
    }


def _line_records(cluster: ShownCluster, lines: Sequence[Line]) -> list[dict[str, str | bool | int]]:
    started = cluster.started
    return [
        {"block": str(line.block), "node": line.node, **state_record(line, started=line.block in started)}
        for line in lines
    ]


KINDS = ("total", "held", "quarantined", "released", "reserved", "free")
"""The counts of addresses in a `Use`."""


def use_record(use: Use) -> dict[str, object]:
    """Return the counts of a range, or of all ranges of a pool in one family, for JSON."""
    blocks = {"total": use.blocks, "held": use.blocks_held, "free": use.blocks_free}
    return {"addresses": {kind: getattr(use, kind) for kind in KINDS}, "blocks": blocks}


_OF_USE = {f"addresses_{kind}": kind for kind in KINDS}
_OF_USE |= {"blocks_total": "blocks", "blocks_held": "blocks_held", "blocks_free": "blocks_free"}
_OF_POOL = ("cluster", "pool", "family", "block_size")
POOLS = (*_OF_POOL, *_OF_USE, "room_nodes", "comes_free_day", "comes_free_blocks")
"""The columns of pools. New ones are added at the end."""
BLOCKS = ("cluster", "pool", "family", "range", "block", "node", "state", "since", "free_on")
"""The columns of blocks."""

_FORMULA = frozenset("=+-@\t\r\n\uff0b\uff0d\uff1d\uff20")  # the last four are full-width forms


def pools_csv(clusters: Iterable[ShownCluster]) -> str:
    """Return CSV (RFC 4180) for spreadsheets: a head, then a row for each pool and family."""
    return _csv(POOLS, (_pool_row(cluster.name, pool) for cluster in clusters for pool in cluster.pools))


def blocks_csv(clusters: Iterable[ShownCluster]) -> str:
    """Return the same for each chosen line of the locks."""
    return _csv(BLOCKS, (row for cluster in clusters for row in _block_rows(cluster)))


def _pool_row(name: str, shown: ShownPool) -> Sequence[object]:
    family, ending = shown.use.family, shown.ending
    numbers = (getattr(shown.use.use, field) for field in _OF_USE.values())
    end = (ending.day, ending.blocks) if ending else ("", 0)
    return name, shown.use.pool.name, f"IPv{family.family}", family.block_size, *numbers, shown.room, *end


def _block_rows(cluster: ShownCluster) -> Iterator[Sequence[object]]:
    for shown in cluster.pools:
        for part in shown.use.ranges:
            for line in (cluster.lines or {}).get(part.range.block, ()):
                yield _block_row(cluster, shown.use.pool.name, str(part.range.block), line)
    yield from (_block_row(cluster, "", "", line) for line in cluster.outside)


def _block_row(cluster: ShownCluster, pool: str, cidr: str, line: Line) -> Sequence[object]:
    name, family, ends = cluster.name, f"IPv{line.block.family}", cluster.free_on(line)
    return name, pool, family, cidr, line.block, line.node, line.state, line.since, ends


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "".join(f"{','.join(map(_cell, row))}\r\n" for row in (head, *rows))


def _cell(value: object) -> str:
    """Return a cell without formulas of spreadsheets and control sequences of terminals.
    A spreadsheet takes a cell that begins with = + - @ or a blank control character for a formula. Such a
    cell gets an apostrophe in front, which makes it text. Where the decimal sign is a comma, a spreadsheet
    separates cells at semicolons, even in quotes: these are spelled out, and so are unprintable characters.
    No name of Kubernetes has any of these, but a lock is written by branches.
    """
    text = str(value)
    shown = visible(text).replace(";", "\\x3b")
    shown = f"'{shown}" if text[:1] in _FORMULA else shown
    return f'"{shown.replace(chr(34), chr(34) * 2)}"' if "," in shown or '"' in shown else shown


_USES = ("held", "quarantined", "released", "reserved", "free")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Sample = tuple[Mapping[str, str], float]  # labels and value


def prometheus(clusters: Sequence[ShownCluster]) -> str:
    """Return all metrics in Prometheus's text format: for node_exporter's textfile collector, or a push.
    All are gauges of the state in git, without a time: the reader of the file knows its age. The samples of a
    metric are adjacent, as the format demands; metrics without a sample are omitted.
    """
    text = ""
    for name, about, samples in _metrics(clusters):
        text += f"# HELP {name} {about}\n# TYPE {name} gauge\n" if samples else ""
        for labels, value in samples:
            pairs = ",".join(f'{key}="{label.translate(_ESCAPES)}"' for key, label in labels.items())
            text += f"{name}{{{pairs}}} {value}\n"
    return text


def _metrics(clusters: Sequence[ShownCluster]) -> Iterator[tuple[str, str, Sequence[Sample]]]:
    pools = [
        (
            {"cluster": cluster.name, "pool": pool.use.pool.name, "family": f"IPv{pool.use.family.family}"},
            pool,
        )
        for cluster in clusters
        for pool in cluster.pools
    ]
    yield (
        "ipamc_pool_addresses",
        "Addresses of a pool by state; the states add up to the size of the pool.",
        [({**of, "state": state}, getattr(pool.use.use, state)) for of, pool in pools for state in _USES],
    )
    uses = [(of, pool.use.use) for of, pool in pools]
    yield (
        "ipamc_pool_used_ratio",
        "Share of a pool's addresses that cannot be given out, from 0 to 1.",
        [(of, 1 - use.available / use.total if use.total else 0) for of, use in uses],
    )
    yield (
        "ipamc_pool_blocks",
        "Blocks of a pool: held ones of any size, and free ones of its block size.",
        [
            ({**of, "state": state}, number)
            for of, use in uses
            for state, number in (("held", use.blocks_held), ("free", use.blocks_free))
        ],
    )
    yield (
        "ipamc_pool_blocks_capacity",
        "Blocks of its block size that fit into the empty pool.",
        [(of, use.blocks) for of, use in uses],
    )
    yield (
        "ipamc_pool_quarantine_ending_blocks",
        "Blocks that become free on the next day on which a quarantine ends.",
        [(of, pool.ending.blocks if pool.ending else 0) for of, pool in pools],
    )
    rooms = {  # not for disabled pools, which accept no nodes by intent and are not full
        (of["cluster"], of["pool"]): pool.room for of, pool in pools if not pool.use.pool.disabled
    }
    yield (
        "ipamc_pool_room_nodes",
        "More nodes that fit into a pool, in all of its families.",
        [({"cluster": cluster, "pool": pool}, room) for (cluster, pool), room in rooms.items()],
    )
    lines = [(cluster, state) for cluster in clusters for state in State]
    yield (
        "ipamc_cluster_lines",
        "Lines of a cluster's lock by state.",
        [({"cluster": each.name, "state": str(state)}, each.states[state]) for each, state in lines],
    )
    yield (
        "ipamc_cluster_nodes",
        "Nodes of a cluster that hold blocks.",
        [({"cluster": cluster.name}, cluster.nodes) for cluster in clusters],
    )
