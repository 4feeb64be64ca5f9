"""Utilisation to text: a box table as `calicoctl ipam show` prints it, and the same numbers for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ipamc.lock.utilisation import PoolUse, Use, lines_in
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import count
from ipamc.model.lock import Line, Lock, State
from ipamc.report.box_table import box
from ipamc.report.terminal_text import visible

VERSION = 1
"""Grows when a field of `records` changes its meaning or goes."""

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


def table(name: str, uses: Sequence[PoolUse], lock: Lock, *, blocks: bool = False) -> str:
    """Give the table of one cluster: a group of rows a pool and family, then its ranges, then, with `blocks`, their lines.

    Released addresses are free ones here: nobody waits for them.
    """
    head = _HEAD + _BLOCK_HEAD if blocks else _HEAD
    groups = [[_padded(row, len(head)) for row in _rows(use, lock, blocks=blocks)] for use in uses]
    return _title(name, uses, lock) + box(head, groups, numbers=_NUMBERS)


def _title(name: str, uses: Sequence[PoolUse], lock: Lock) -> str:
    live = [line for line in lock.lines if line.state is State.HELD]
    outside = len(lock.lines) - sum(
        len(lines_in(lock, each.range.block)) for use in uses for each in use.ranges
    )
    strays = f"; {count(outside, 'line')} of the lock outside every pool" if outside else ""
    return f"{visible(name)}: {count(len({line.node for line in live}), 'node')} with {count(len(live), 'block')}{strays}\n"


def _rows(use: PoolUse, lock: Lock, *, blocks: bool) -> Iterator[tuple[str, ...]]:
    yield ("IP Pool", f"{visible(use.pool.name)} /{use.family.block_size}", *_numbers(use.use))
    for each in use.ranges:
        yield ("Range", str(each.range.block), *_numbers(each.use))
        for line in lines_in(lock, each.range.block) if blocks else ():
            yield (
                "Block",
                str(line.block),
                number(line.block.size),
                *[""] * 6,
                visible(line.node),
                state(line),
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
    """Print a count: all digits up to seven, then five significant ones (IPv6 ranges are huge)."""
    return str(value) if value < 10_000_000 else f"{value:.5g}"


def state(line: Line) -> str:
    """Give the state of a line in a word; of a quarantined one with its day, and whether its node moved."""
    day = f" {line.since}" if line.since else ""
    return f"{line.state}{day}{', moved' if line.moved else ''}"


def _padded(row: tuple[str, ...], columns: int) -> tuple[str, ...]:
    return row + ("",) * (columns - len(row))


def records(name: str, uses: Sequence[PoolUse], lock: Lock, *, blocks: bool = False) -> dict[str, Any]:
    """Give the numbers of one cluster for JSON."""
    return {"cluster": name, "pools": [_pool_record(use, lock, blocks=blocks) for use in uses]}


def _pool_record(use: PoolUse, lock: Lock, *, blocks: bool) -> dict[str, object]:
    ranges: list[dict[str, object]] = [
        {"cidr": str(each.range.block), **use_record(each.use)} for each in use.ranges
    ]
    if blocks:
        for record, each in zip(ranges, use.ranges, strict=True):
            record["lines"] = _line_records(lock, each.range.block)
    family = f"IPv{use.family.family}"
    return {
        "pool": use.pool.name,
        "family": family,
        "blockSize": use.family.block_size,
        **use_record(use.use),
        "ranges": ranges,
    }


def _line_records(lock: Lock, block: Block) -> list[dict[str, str | bool]]:
    return [_line_record(line) for line in lines_in(lock, block)]


def _line_record(line: Line) -> dict[str, str | bool]:
    return {"block": str(line.block), "node": line.node, **state_record(line)}


def state_record(line: Line) -> dict[str, str | bool]:
    """Give the state of a line for JSON; with the day from which on it is in quarantine, and whether its node moved."""
    day: dict[str, str | bool] = {"since": line.since} if line.since else {}
    return {"state": str(line.state), **day, **({"moved": True} if line.moved else {})}


def use_record(use: Use) -> dict[str, object]:
    """Give the numbers of a range, or of all ranges of a pool in one family."""
    addresses = {
        name: getattr(use, name) for name in ("total", "held", "quarantined", "released", "reserved", "free")
    }
    return {
        "addresses": addresses,
        "blocks": {"total": use.blocks, "held": use.blocks_held, "free": use.blocks_free},
    }
