"""Texts for numbers and for states of lines, and the utilisation of pools for programs."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ipamc.lock.utilisation import Use
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import count
from ipamc.model.lock import Line
from ipamc.report.terminal_text import visible

if TYPE_CHECKING:  # importing it takes longer than an answer of `ipamc which`
    from ipamc.review.shown_pools import ShownCluster, ShownPool

VERSION = 1


def number(value: int) -> str:
    """Return a count as text: up to seven digits in full, above that five significant digits (IPv6)."""
    return str(value) if value < 10_000_000 else f"{value:.5g}"


def state(line: Line, *, started: bool = False) -> str:
    """Return the state of a line as text; for quarantine with the day, and whether its node moved.
    `started`: the node started with the block, and may no longer have it.
    """
    day = f" {line.since}" if line.since else ""
    part = f", {line.addresses:,} addresses" if line.addresses else ""
    return f"{line.state}{day}{', moved' if line.moved else ''}{' at start' if started else ''}{part}"


def about_started(name: str, started: Collection[Block]) -> str:
    """Return the line that explains `held at start`."""
    held = f"{visible(name)}: {count(len(started), 'block')} held at start: what a node started with"
    shown = "no CiliumNode of the input shows that the nodes have them now (kubectl get ciliumnodes -o json)"
    return f"{held}. Cilium's operator gives out the blocks of such pools, and {shown}"


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


def state_record(line: Line, *, started: bool = False) -> dict[str, str | bool | int]:
    """Return the state of a line for JSON; the arguments are those of `state`."""
    record: dict[str, str | bool | int] = {"state": str(line.state)}
    record |= {"since": line.since} if line.since else {}
    record |= {"moved": True} if line.moved else {}
    record |= {"addresses": line.addresses} if line.addresses else {}
    return record | ({"atStart": True} if started else {})


KINDS = ("total", "held", "quarantined", "released", "reserved", "free")
"""The counts of addresses in a `Use`."""


def use_record(use: Use) -> dict[str, object]:
    """Return the counts of a range, or of all ranges of a pool in one family, for JSON."""
    blocks = {"total": use.blocks, "held": use.blocks_held, "free": use.blocks_free}
    return {"addresses": {kind: getattr(use, kind) for kind in KINDS}, "blocks": blocks}


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
