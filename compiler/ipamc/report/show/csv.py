"""Pools, or blocks, as CSV (RFC 4180) for spreadsheets: a head, then rows, with stable columns.

A spreadsheet takes a cell that begins with = + - @ or a blank control character for a formula. Such a cell
gets an apostrophe in front, which makes it text. Where the decimal sign is a comma, a spreadsheet separates
cells at semicolons, even in quotes: these are spelled out, and so are unprintable characters. No name of
Kubernetes has any of these, but a lock is written by branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipamc.model.lock import Line, State
from ipamc.report.terminal_text import visible
from ipamc.report.utilisation import KINDS
from ipamc.review.shown_pools import ShownCluster, ShownPool, quarantine_ends

_OF_USE = {f"addresses_{kind}": kind for kind in KINDS}
_OF_USE |= {"blocks_total": "blocks", "blocks_held": "blocks_held", "blocks_free": "blocks_free"}
_OF_POOL = ("cluster", "pool", "family", "block_size")
POOLS = (*_OF_POOL, *_OF_USE, "room_nodes", "comes_free_day", "comes_free_blocks")
"""The columns of pools. New ones are added at the end."""
BLOCKS = ("cluster", "pool", "family", "range", "block", "node", "state", "since", "free_on")
"""The columns of blocks."""

_FORMULA = frozenset("=+-@\t\r\n\uff0b\uff0d\uff1d\uff20")  # the last four are full-width forms


def pools(clusters: Iterable[ShownCluster]) -> str:
    """Return a row for each pool and family."""
    return _table(POOLS, (_pool(cluster.name, pool) for cluster in clusters for pool in cluster.pools))


def blocks(clusters: Iterable[ShownCluster]) -> str:
    """Return a row for each chosen line of the locks."""
    return _table(BLOCKS, (row for cluster in clusters for row in _blocks(cluster)))


def _pool(name: str, shown: ShownPool) -> Sequence[object]:
    family, ending = shown.use.family, shown.ending
    numbers = (getattr(shown.use.use, field) for field in _OF_USE.values())
    end = (ending.day, ending.blocks) if ending else ("", 0)
    return name, shown.use.pool.name, f"IPv{family.family}", family.block_size, *numbers, shown.room, *end


def _blocks(cluster: ShownCluster) -> Iterator[Sequence[object]]:
    for shown in cluster.pools:
        for part in shown.use.ranges:
            for line in (cluster.lines or {}).get(part.range.block, ()):
                yield _block(cluster, shown.use.pool.name, str(part.range.block), line)
    yield from (_block(cluster, "", "", line) for line in cluster.outside)


def _block(cluster: ShownCluster, pool: str, cidr: str, line: Line) -> Sequence[object]:
    days = cluster.quarantine_days
    ends = quarantine_ends(line, days) if line.state is State.QUARANTINED and days is not None else ""
    family = f"IPv{line.block.family}"
    return cluster.name, pool, family, cidr, line.block, line.node, line.state, line.since, ends


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "".join(f"{','.join(map(_cell, row))}\r\n" for row in (head, *rows))


def _cell(value: object) -> str:
    """Return a cell without formulas of spreadsheets and control sequences of terminals."""
    text = str(value)
    shown = visible(text).replace(";", "\\x3b")
    shown = f"'{shown}" if text[:1] in _FORMULA else shown
    return f'"{shown.replace(chr(34), chr(34) * 2)}"' if "," in shown or '"' in shown else shown
