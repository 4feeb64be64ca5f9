"""The merge of two lock texts with their base. It places no block: it says which lines stay.

Changed beats unchanged, changed beats removed, held beats quarantined beats released, of two days the later.
A line that one side removed, because its addresses were given out again there, comes back where nothing
that stays lies over it. Newcomers that clash: the trunk's stays, else what the base knew, else held before
pending, else the smaller node name; the other is dropped, named, and placed by the next compile; the same
for one node with two new blocks. A node that was renumbered to two places is left to a person, between
conflict markers. The result is a sound lock in canonical text, or one that no compile takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.file import dumps, parse
from ipamc.lock.merge.resolve import Dropped, Lines, ThreeWay, renumbered_apart, resolve
from ipamc.lock.record import encode
from ipamc.model.cidr import Block
from ipamc.model.lock import Lock

TOLERABLE = frozenset({"IPC0407", "IPC0408", "IPC0409"})
"""Findings that a base or a trunk may have: these locks inform the merge, and none of them is its result."""


class Merged(Struct, frozen=True, kw_only=True):
    """What came of a merge."""

    text: bytes
    """The merged lock; where there are conflicts, and only there, with conflict markers."""
    dropped: tuple[Dropped, ...] = ()
    """Newcomers that gave way, by family and address; the next compile places them again."""
    conflicts: tuple[str, ...] = ()
    """What a person has to decide: a sentence for each node, or for the whole."""


class _Unmergeable(Exception):  # noqa: N818 - a verdict; its text is a sentence for people
    """The texts say too little to merge their lines."""


def merge(base: bytes | None, ours: bytes, theirs: bytes, *trunks: bytes | None) -> Merged:
    """Merge two locks. `base` may be absent or empty, as git gives it.

    `trunks`, the weightiest first, decide between newcomers; absent or unreadable ones do not count.
    If ours and theirs change places, so do the two parts of a conflict, and nothing else. O(n log n).
    """
    try:
        before = _read(base, "base", TOLERABLE) if base else None
        one, two = _read(ours, "ours"), _read(theirs, "theirs")
        header = _header(before, one, two)
        if theirs in {base, ours}:  # as git does before it asks a driver
            return Merged(text=ours)
        if base == ours:
            return Merged(text=theirs)
        return _merge_lines(header, _three_way(header, before, one, two, trunks))
    except _Unmergeable as problem:
        return Merged(text=unmerged(ours, theirs), conflicts=(str(problem),))


def unmerged(ours: bytes, theirs: bytes) -> bytes:
    """Return both texts between conflict markers, byte by byte, whatever they are: no compile takes that."""
    return b"\n".join((*_conflict(_rows(ours), _rows(theirs)), b""))


def _rows(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _merge_lines(header: Lock, locks: ThreeWay) -> Merged:
    """Resolve; where nodes were renumbered to two places, once with ours and once with theirs for them."""
    apart = renumbered_apart(locks)
    resolved = [resolve(version) for version in (locks.split(apart) if apart else [locks])]
    texts = [dumps(replace(header, lines=tuple(lines.values()))).encode() for lines, _ in resolved]
    for text in texts:
        _read(text, "merged")  # a change of mode can make it unsound
    given_up = [drop for _, dropped in resolved for drop in dropped]
    given_up.sort(key=lambda drop: (drop.line.block, drop.line.node, drop.line.state, drop.holder.block))
    of_a_line = {(drop.line.block, drop.line.node): drop for drop in reversed(given_up)}
    dropped = tuple(reversed(of_a_line.values()))
    if texts[0] == texts[-1]:
        return Merged(text=texts[0], dropped=dropped)
    conflicts = (
        f"node {node} is renumbered to two places: {', '.join(map(str, here))} and {', '.join(map(str, there))}"
        for (node, _, _), (here, there) in sorted(apart.items())
    )
    text = _with_markers(header, *(lines for lines, _ in resolved))
    return Merged(text=text, dropped=dropped, conflicts=tuple(conflicts))


def _read(text: bytes, name: str, tolerable: Container[str] = ()) -> Lock:
    """Read a lock. Raises _Unmergeable where it suffers from more than is tolerable."""
    lock, found = parse(text, name)
    if lock is None or any(finding.code not in tolerable for finding in found):
        raise _Unmergeable(f"{name}: {found[0].message}")
    return lock


def _header(base: Lock | None, ours: Lock, theirs: Lock) -> Lock:
    """Merge the headers into a lock without lines. Raises _Unmergeable."""
    clusters, modes = sorted({ours.cluster, theirs.cluster}), sorted({ours.mode, theirs.mode})
    if len(clusters) > 1:
        raise _Unmergeable(f"these are locks of two clusters, {' and '.join(clusters)}")
    mode, shards = ours.mode, ours.shards
    if len(modes) > 1:
        if base is None or base.mode not in modes:
            raise _Unmergeable(f"these are locks of two modes, {' and '.join(modes)}")
        mode = theirs.mode if base.mode == mode else mode
    if base and base.shards in {shards, theirs.shards}:
        shards = theirs.shards if base.shards == shards else shards
    else:
        shards = max(shards, theirs.shards)
    return Lock(cluster=ours.cluster, mode=mode, shards=shards)


def _three_way(
    header: Lock, base: Lock | None, ours: Lock, theirs: Lock, trunks: Iterable[bytes | None]
) -> ThreeWay:
    """Return the lines of all locks by block, with one pool for each block: changed beats unchanged."""
    known: list[Lock | None] = []
    for text in trunks:
        lock, found = parse(text, "trunk") if text else (None, [])
        fine = lock and lock.cluster == header.cluster and all(finding.code in TOLERABLE for finding in found)
        known.append(lock if fine else None)
    before, one, two, *rest = (
        {line.block: line for line in lock.lines} if lock else {} for lock in (base, ours, theirs, *known)
    )
    names: dict[Block, str] = {}
    for block, line in (two | one).items():
        old, other = before.get(block), two.get(block, line)
        if not line.pool == other.pool == (old or line).pool:
            was = old.pool if old else ""
            names[block] = max({line.pool, other.pool} - {was}, default=was)
    for block, name in names.items():
        for lines in (before, one, two):
            if block in lines and lines[block].pool != name:
                lines[block] = msgspec.structs.replace(lines[block], pool=name)
    return ThreeWay(base=before, ours=one, theirs=two, trunks=tuple(rest), one_block=header.mode.one_block)


def _with_markers(header: Lock, ours: Lines, theirs: Lines) -> bytes:
    """Write the lock with conflict markers where the two differ; either alone is canonical text."""
    rows = [dumps(header).encode().rstrip()]
    for same, group in itertools.groupby(
        sorted(ours.keys() | theirs.keys()), key=lambda block: ours.get(block) == theirs.get(block)
    ):
        blocks = list(group)
        mine, others = (
            [encode(lines[block]) for block in blocks if block in lines] for lines in (ours, theirs)
        )
        rows += mine if same else _conflict(mine, others)
    return b"\n".join((*rows, b""))


def _conflict(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    return [b"<<<<<<< ours", *ours, b"=======", *theirs, b">>>>>>> theirs"]
