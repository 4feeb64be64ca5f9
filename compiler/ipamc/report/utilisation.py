"""Utilisation as text: a box table as `calicoctl ipam show` prints it, and the same numbers for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ipamc.lock.utilisation import PoolUse, Use, lines_in
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import count
from ipamc.model.lock import Line, Lock, State
from ipamc.report.box_table import box
from ipamc.report.terminal_text import visible

VERSION = 1
"""Grows when a field of `records` changes its meaning or is removed."""

_HEAD = (
    "GROUPING",
    "CIDR",
    "IPS TOTAL",
    "IPS HELD",
    "IPS QUARANTINED",
    "IPS RESERVED",
    "IPS FREE",
    "BLOCKS HELD",
    "BLOCKS FREE",
)
_BLOCK_HEAD = ("NODE", "STATE")
_NUMBERS = range(2, 9)
"""The columns that are flush right."""


def table(
    name: str,
    uses: Sequence[PoolUse],
    lock: Lock,
    *,
    blocks: bool = False,
    started: Collection[Block] = frozenset(),
) -> str:
    """Return the table of one cluster: each pool and family with its ranges and, with `blocks`, their lines.

    Released addresses count as free here: they can be given out at once. `started`: blocks that nodes started
    with, and may not have any more.
    """
    head = _HEAD + _BLOCK_HEAD if blocks else _HEAD
    groups = [[_padded(row, len(head)) for row in _rows(use, lock, started, blocks=blocks)] for use in uses]
    return _title(name, uses, lock) + box(head, groups, numbers=_NUMBERS)


def _title(name: str, uses: Sequence[PoolUse], lock: Lock) -> str:
    held = [line for line in lock.lines if line.state is State.HELD]
    inside = sum(len(lines_in(lock, part.range.block)) for use in uses for part in use.ranges)
    outside = len(lock.lines) - inside
    others = f"; {count(outside, 'line')} of the lock outside every pool" if outside else ""
    nodes = count(len({line.node for line in held}), "node")
    return f"{visible(name)}: {nodes} with {count(len(held), 'block')}{others}\n"


def _rows(use: PoolUse, lock: Lock, started: Collection[Block], *, blocks: bool) -> Iterator[tuple[str, ...]]:
    yield ("IP Pool", f"{visible(use.pool.name)} /{use.family.block_size}", *_numbers(use.use))
    for part in use.ranges:
        yield ("Range", str(part.range.block), *_numbers(part.use))
        for line in lines_in(lock, part.range.block) if blocks else ():
            yield (
                "Block",
                str(line.block),
                number(line.block.size),
                *[""] * 6,
                visible(line.node),
                state(line, started=line.block in started),
            )


def _numbers(use: Use) -> tuple[str, ...]:
    parts = (use.held, use.quarantined, use.reserved, use.available)
    return (
        number(use.total),
        *(_share(part, use.total) for part in parts),
        number(use.blocks_held),
        _share(use.blocks_free, use.blocks),
    )


def _share(part: int, total: int) -> str:
    return f"{number(part)} ({100 * part / total:.0f}%)" if total else number(part)


def number(value: int) -> str:
    """Return a count as text: up to seven digits in full, above that five significant digits (IPv6)."""
    return str(value) if value < 10_000_000 else f"{value:.5g}"


def state(line: Line, *, started: bool = False) -> str:
    """Return the state of a line as text; of a quarantined one with the day, and whether its node moved.

    `started`: the node started with the block, and may not have it any more.
    """
    day = f" {line.since}" if line.since else ""
    part = f", {line.addresses:,} addresses" if line.addresses else ""
    return f"{line.state}{day}{', moved' if line.moved else ''}{' at start' if started else ''}{part}"


def about_started(name: str, started: Collection[Block]) -> str:
    """Return the line that explains `held at start`."""
    return (
        f"{visible(name)}: {count(len(started), 'block')} held at start: what a node started with. Cilium's operator gives out "
        "the blocks of such pools, and the input has no CiliumNode that tells what the node has now "
        "(kubectl get ciliumnodes -o json)"
    )


def _padded(row: tuple[str, ...], columns: int) -> tuple[str, ...]:
    return row + ("",) * (columns - len(row))


def records(
    name: str,
    uses: Sequence[PoolUse],
    lock: Lock,
    *,
    blocks: bool = False,
    started: Collection[Block] = frozenset(),
) -> dict[str, Any]:
    """Return the numbers of one cluster for JSON. `started`: as for `table`."""
    return {"cluster": name, "pools": [_pool_record(use, lock, started, blocks=blocks) for use in uses]}


def _pool_record(use: PoolUse, lock: Lock, started: Collection[Block], *, blocks: bool) -> dict[str, object]:
    ranges: list[dict[str, object]] = [
        {"cidr": str(part.range.block), **use_record(part.use)} for part in use.ranges
    ]
    if blocks:
        for record, part in zip(ranges, use.ranges, strict=True):
            record["lines"] = _line_records(lock, part.range.block, started)
    family = f"IPv{use.family.family}"
    return {
        "pool": use.pool.name,
        "family": family,
        "blockSize": use.family.block_size,
        **use_record(use.use),
        "ranges": ranges,
    }


def _line_records(lock: Lock, block: Block, started: Collection[Block]) -> list[dict[str, str | bool | int]]:
    return [
        {
            "block": str(line.block),
            "node": line.node,
            **state_record(line, started=line.block in started),
        }
        for line in lines_in(lock, block)
    ]


def state_record(line: Line, *, started: bool = False) -> dict[str, str | bool | int]:
    """Return the state of a line for JSON; of a quarantined one with the day, and whether its node moved.

    `started`: the node started with the block, and may not have it any more.
    """
    record: dict[str, str | bool | int] = {"state": str(line.state)}
    record |= {"since": line.since} if line.since else {}
    record |= {"moved": True} if line.moved else {}
    record |= {"addresses": line.addresses} if line.addresses else {}
    return record | ({"atStart": True} if started else {})


def use_record(use: Use) -> dict[str, object]:
    """Return the numbers of a range, or of all ranges of a pool in one family, for JSON."""
    addresses = {
        name: getattr(use, name) for name in ("total", "held", "quarantined", "released", "reserved", "free")
    }
    return {
        "addresses": addresses,
        "blocks": {"total": use.blocks, "held": use.blocks_held, "free": use.blocks_free},
    }
