"""The merge of two lock texts with their base: lines are records by block, and nothing is placed.

A line that says the same on both sides stays. Changed beats unchanged, changed beats removed, live beats left beats released. A line that one side
removed, because it was used again there, comes back where nothing that stays lies over it. Newcomers that clash: the trunk's stays, else what the base
knew, else the smaller node name; the other is dropped, named, and placed by the next compile. A node that was renumbered to two places is left to a
person, between conflict markers. The result is a sound lock in canonical text, or one that no compile takes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import msgspec

from ipamc.lock.file import dumps, encode, parse
from ipamc.lock.merge.changes import Lines, Sides, pool_of
from ipamc.lock.merge.resolve import Dropped, Hunk, Verdict, judge
from ipamc.model.cidr import Block
from ipamc.model.lock import Line, Lock

TOLERABLE = frozenset({"IPC0407", "IPC0408", "IPC0409"})
"""What a base or a trunk may suffer from: they are asked what they know, and are not what is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What came of a merge."""

    text: bytes
    """The merged lock; with conflict markers where there are conflicts."""
    dropped: tuple[Dropped, ...] = ()
    """Newcomers that gave way, by family and address; the next compile places them again."""
    conflicts: tuple[str, ...] = ()
    """What a person has to settle, a sentence each."""


class _Unmergeable(Exception):  # noqa: N818 - a verdict; its text is a sentence for people
    """The texts say too little to merge their lines."""


def merge(base: bytes | None, ours: bytes, theirs: bytes, *trunks: bytes | None) -> Merged:
    """Merge two locks. `base` may be absent or empty; of `trunks`, the weightiest first, those that are absent or unreadable do not count.

    The result is the same, save for the labels of conflict markers, if ours and theirs change places. O(n log n).
    """
    try:
        before = _known(base)
        one, two = _sound(ours, "ours"), _sound(theirs, "theirs")
        header = _header(before, one, two)
    except _Unmergeable as problem:
        return Merged(text=_side_by_side(ours, theirs), conflicts=(str(problem),))
    if theirs in {base, ours}:  # as git does before it asks a driver
        return Merged(text=ours)
    if base == ours:
        return Merged(text=theirs)
    sides = Sides(
        base=_by_block(before),
        ours=_by_block(one),
        theirs=_by_block(two),
        trunks=tuple(_by_block(_trunk(each, header)) for each in trunks),
        one_block=header.mode.one_block,
    )
    verdict = judge(sides)
    return _written(
        header, [_with_pool(sides, line) for line in verdict.lines.values()], verdict, ours, theirs
    )


def _sound(text: bytes, name: str) -> Lock:
    """Read one of the two sides. Raises _Unmergeable."""
    lock, found = parse(text, name)
    if lock is None or found:
        raise _Unmergeable(f"{name}: {found[0].message}")
    return lock


def _known(base: bytes | None) -> Lock | None:
    """Read what the base knows; git gives an empty file where there is none. Raises _Unmergeable where it cannot be read at all."""
    if not base:
        return None
    lock, found = parse(base, "base")
    if lock is None or any(each.code not in TOLERABLE for each in found):
        raise _Unmergeable(f"base: {found[0].message}")
    return lock


def _trunk(text: bytes | None, header: Lock) -> Lock | None:
    lock, found = parse(text, "trunk") if text else (None, [])
    readable = (
        lock is not None and lock.cluster == header.cluster and all(each.code in TOLERABLE for each in found)
    )
    return lock if readable else None


def _by_block(lock: Lock | None) -> Lines:
    return {line.block: line for line in lock.lines} if lock else {}


def _header(base: Lock | None, ours: Lock, theirs: Lock) -> Lock:
    """Merge the headers into a lock without lines: changed beats unchanged, and the larger shard count wins. Raises _Unmergeable."""
    if ours.cluster != theirs.cluster:
        raise _Unmergeable(
            f"these are locks of two clusters, {min(ours.cluster, theirs.cluster)} and {max(ours.cluster, theirs.cluster)}"
        )
    mode, shards = ours.mode, ours.shards
    if mode != theirs.mode:
        if base is None or base.mode not in {mode, theirs.mode}:
            raise _Unmergeable(
                f"these are locks of two modes, {min(mode, theirs.mode)} and {max(mode, theirs.mode)}"
            )
        mode = theirs.mode if base.mode == mode else mode
    if base and base.shards in {shards, theirs.shards}:
        shards = theirs.shards if base.shards == shards else shards
    else:
        shards = max(shards, theirs.shards)
    return Lock(cluster=ours.cluster, mode=mode, shards=shards)


def _with_pool(sides: Sides, line: Line) -> Line:
    ours, theirs = sides.ours.get(line.block), sides.theirs.get(line.block)
    if ours is None or theirs is None:
        return line
    pool = pool_of(sides.base.get(line.block), ours, theirs)
    return line if line.pool == pool else msgspec.structs.replace(line, pool=pool)


def _written(header: Lock, lines: list[Line], verdict: Verdict, ours: bytes, theirs: bytes) -> Merged:
    """Put the result into text; where it is not sound after all (a change of mode can do that), leave both sides to a person."""
    text = dumps(replace(header, lines=tuple(lines))).encode()
    found = parse(text, "merged")[1]
    if found:
        return Merged(text=_side_by_side(ours, theirs), conflicts=(f"merged: {found[0].message}",))
    if not verdict.apart:
        return Merged(text=text, dropped=verdict.dropped)
    conflicts = tuple(
        f"node {node} is renumbered to two places: {_listed(places[0] - places[1])} and {_listed(places[1] - places[0])}"
        for (node, _, _), places in sorted(verdict.apart.items())
    )
    return Merged(
        text=_with_hunks(header, lines, verdict.hunks), dropped=verdict.dropped, conflicts=conflicts
    )


def _listed(blocks: frozenset[Block]) -> str:
    return ", ".join(map(str, sorted(blocks)))


def _with_hunks(header: Lock, lines: list[Line], hunks: tuple[Hunk, ...]) -> bytes:
    """Write the lock with conflict markers, so that the lines of either side alone are canonical text."""
    rows = [dumps(header).encode().rstrip()]
    every = sorted([*hunks, *(Hunk(line.block, line, line) for line in lines)], key=lambda each: each.block)
    for agreed, group in itertools.groupby(every, key=lambda each: each.ours is each.theirs):
        some = list(group)
        ours = [encode(each.ours) for each in some if each.ours]
        rows += ours if agreed else _conflict(ours, [encode(each.theirs) for each in some if each.theirs])
    return b"\n".join((*rows, b""))


def _side_by_side(ours: bytes, theirs: bytes) -> bytes:
    """Write both texts, with conflict markers around all that stands between the rows that they begin and end with."""
    if ours == theirs:
        return ours
    one, two = ours.splitlines(), theirs.splitlines()
    head = _common(one, two)
    tail = _common(one[head:][::-1], two[head:][::-1])
    end = one[len(one) - tail :]
    return b"\n".join(
        (*one[:head], *_conflict(one[head : len(one) - tail], two[head : len(two) - tail]), *end, b"")
    )


def _common(one: list[bytes], two: list[bytes]) -> int:
    """Count the rows with which both begin."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
    )


def _conflict(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    return [b"<<<<<<< ours", *ours, b"=======", *theirs, b">>>>>>> theirs"]
