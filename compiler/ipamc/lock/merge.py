"""The merge of two lock texts with their base. It places no block: it decides which lines stay.

Changed beats unchanged, changed beats removed, held beats quarantined beats released, of two days the later.
A line that one side removed, because its addresses were given out again there, comes back unless a line that
stays overlaps it. If new lines clash, the trunk's stays, else the one that the base had, else held before
pending, else the smaller node name. The other is dropped, named, and placed by the next compile; the same for
one node with two new blocks. A node that was renumbered to two places is left to a person, between conflict
markers. A quarantine that the trunk does not have begins today: a plan against the trunk accepts no old day.
The result is an intact lock in canonical text, or one that no compile accepts.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.file import dumps, parse
from ipamc.lock.record import encode
from ipamc.model.address_sets import nested
from ipamc.model.cidr import Block
from ipamc.model.lock import Key, Line, Lock, State

TOLERABLE = frozenset({"IPC0407", "IPC0408", "IPC0409"})
"""Findings that a base or a trunk may have: these locks only inform the merge, and are not its result."""


class Merged(Struct, frozen=True, kw_only=True):
    """The result of a merge."""

    text: bytes
    """The merged lock, with conflict markers if, and only if, there are conflicts."""
    dropped: tuple[Dropped, ...] = ()
    """New lines that were dropped, by family and address; the next compile places them again."""
    conflicts: tuple[str, ...] = ()
    """What a person must decide: a sentence for each node, or for the whole."""


class _Unmergeable(Exception):  # noqa: N818 - a verdict; its text is a sentence for people
    """The texts are too damaged to merge their lines."""


def merge(base: bytes | None, ours: bytes, theirs: bytes, *trunks: bytes | None, today: str = "") -> Merged:
    """Merge two locks; `base` may be absent or empty, as git gives it. O(n log n).
    `trunks`, the most important first, decide which of two new nodes keeps a block; absent or unreadable ones
    are ignored. To swap ours and theirs swaps the two parts of a conflict, and nothing else.
    `today` dates the quarantines that the first of these does not have, or without any not both sides have.
    """
    try:
        before = _read(base, "base", TOLERABLE) if base else None
        one, two = _read(ours, "ours"), _read(theirs, "theirs")
        header = _header(before, one, two)
        if theirs in {base, ours}:  # as git does before it calls a driver
            return Merged(text=ours)
        if base == ours:
            return Merged(text=theirs)
        locks = _three_way(header, before, one, two, trunks)
        # If nodes were renumbered to two places, once with ours, once with theirs.
        apart = renumbered_apart(locks)
        versions = map(resolve, locks.split(apart) if apart else [locks])
        had = [its.values() for its in [*filter(None, locks.trunks)][:1] or [locks.ours, locks.theirs]]
        resolved = [(dated(lines.values(), had, today), dropped) for lines, dropped in versions]
        texts = [dumps(replace(header, lines=tuple(lines.values()))).encode() for lines, _ in resolved]
        for text in texts:
            _read(text, "merged")  # a change of mode can make it invalid
        given_up = [drop for _, dropped in resolved for drop in dropped]
        given_up.sort(key=lambda drop: (drop.line.block, drop.line.node, drop.line.state, drop.holder.block))
        of_a_line = {(drop.line.block, drop.line.node): drop for drop in reversed(given_up)}
        dropped = tuple(reversed(of_a_line.values()))
        if texts[0] == texts[-1]:
            return Merged(text=texts[0], dropped=dropped)
        conflicts = []
        for (node, _, _), both in sorted(apart.items()):
            places = " and ".join(", ".join(map(str, blocks)) for blocks in both)
            conflicts.append(f"node {node} is renumbered to two places: {places}")
        text = _with_markers(header, *(lines for lines, _ in resolved))
        return Merged(text=text, dropped=dropped, conflicts=tuple(conflicts))
    except _Unmergeable as problem:
        return Merged(text=unmerged(ours, theirs), conflicts=(str(problem),))


def unmerged(ours: bytes, theirs: bytes) -> bytes:
    """Return both texts between conflict markers, byte by byte: no compile accepts the result."""
    return b"\n".join((*_conflict(_rows(ours), _rows(theirs)), b""))


def dated(lines: Iterable[Line], known: Sequence[Iterable[Line]], today: str) -> dict[Block, Line]:
    """Return lines by block; a quarantine begins `today`, ISO 8601, unless all `known` locks have it.
    Of two `known` locks none is the trunk's, which may have a day of the future: it stays. "" changes no day.
    """
    had = set.intersection(*({(line.block, line.node) for line in lock if line.since} for lock in known))
    made = {line.block: line for line in lines}
    for block, line in made.items():
        stays = (block, line.node) in had or (len(known) > 1 and line.since > today)
        if today and line.since and not stays:
            made[block] = replace(line, since=today)
    return made


def _rows(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _read(text: bytes, name: str, tolerable: Container[str] = ()) -> Lock:
    """Read a lock. Raises _Unmergeable if it has errors that a merge does not tolerate."""
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
                lines[block] = replace(lines[block], pool=name)
    return ThreeWay(base=before, ours=one, theirs=two, trunks=tuple(rest), one_block=header.mode.one_block)


def _with_markers(header: Lock, ours: Lines, theirs: Lines) -> bytes:
    """Write the lock with conflict markers where the two differ; either alone is canonical text."""
    rows = [dumps(header).encode().rstrip()]
    every = sorted(ours.keys() | theirs.keys())
    for same, group in itertools.groupby(every, key=lambda block: ours.get(block) == theirs.get(block)):
        blocks = list(group)
        mine, others = ([encode(its[block]) for block in blocks if block in its] for its in (ours, theirs))
        rows += mine if same else _conflict(mine, others)
    return b"\n".join((*rows, b""))


def _conflict(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    return [b"<<<<<<< ours", *ours, b"=======", *theirs, b">>>>>>> theirs"]


Lines = Mapping[Block, Line]

CHANGED, UNCHANGED, UNDONE = range(3)
"""What a side did to a line: made or changed it; did not touch it although the other removed or moved it."""


class Dropped(Struct, frozen=True):
    """A new line that was dropped."""

    line: Line
    holder: Line
    """The line that overlaps it, or another block that its node has instead."""
    trunk: int | None
    """The index of the trunk that has `holder`; None if none has."""


class RankedLine(NamedTuple):
    """A line that excludes overlapping ones. The smallest is placed first; no two are equal up to `block`."""

    turn: int
    """CHANGED, UNCHANGED or UNDONE."""
    trunk: int
    """The index of the first trunk that has the line."""
    both: bool
    """The node has the block in ours and theirs, held and pending. Blocks on one side only come first."""
    known: int
    """In the base: 0 this node used the block, 1 it had a line of it, 2 another node had, 3 no node."""
    state: State
    """Held, pending, quarantined: by priority, which is also alphabetical order."""
    node: str
    block: Block
    line: Line
    side: int
    """The side with the line, 0 (ours) or 1 (theirs); of an UNDONE line, the one that moved the node."""


class ThreeWay(Struct, frozen=True, kw_only=True):
    """The locks of a merge. Ours and theirs are each valid; all three agree about the pool of a block."""

    base: Lines
    ours: Lines
    theirs: Lines
    trunks: tuple[Lines, ...]
    """The most important first."""
    one_block: bool

    def key(self, line: Line) -> Key:
        """Return the key of the blocks that are renumbered together with a line."""
        return line.key(one_block=self.one_block)

    def split(self, keys: Container[Key]) -> tuple[ThreeWay, ThreeWay]:
        """Return two merges: in the first only ours has lines with these keys, in the second only theirs."""
        ours, theirs = (
            {at: line for at, line in lines.items() if self.key(line) not in keys}
            for lines in (self.ours, self.theirs)
        )
        return replace(self, theirs=theirs), replace(self, ours=ours)

    def before(self, line: Line) -> Line | None:
        """Return the base's line of the same block and node, or None."""
        known = self.base.get(line.block)
        return known if known and known.node == line.node else None

    def trunk(self, line: Line) -> int:
        """Return the index of the first trunk in which the node has the block; len(trunks) if none has."""
        for index, lines in enumerate(self.trunks):
            there = lines.get(line.block)
            alike = there and (there.in_use or there.state is line.state is State.QUARANTINED)
            if there and alike and there.node == line.node:
                return index
        return len(self.trunks)

    def at(self, block: Block) -> list[tuple[Line, int]]:
        """Return the lines of a block on which ours and theirs differ, each with its side.
        Of two lines of one node, changed beats unchanged, unless both are in use; out of use, the later day.
        """
        one, two = self.ours.get(block), self.theirs.get(block)
        both = [(line, side) for side, line in enumerate((one, two)) if line]
        if one and two and one.node == two.node:
            known, both_in_use = self.base.get(block), one.in_use and two.in_use
            if known in (one, two) and (one.state is two.state or not both_in_use):
                return [(line, side) for line, side in both if line != known]
            if one.state is two.state and both_in_use:  # they differ in how many addresses they have
                return [max(both, key=lambda each: (not each[0].addresses, each[0].addresses))]
            if not (one.in_use or two.in_use):
                last = max(one, two, key=lambda line: (line.since, line.was_pending))
                moved = bool(last.since) and (one.moved or two.moved)
                return [(replace(last, moved=moved), int(two.moved))]
        return both

    def ranked(self, block: Block) -> Iterator[RankedLine]:
        """Yield the lines of a block that exclude others: in use, or newly in quarantine on a trunk."""
        lines = self.at(block)
        twins = len({line.node for line, _ in lines}) < len(lines)
        both = twins and all(line.in_use for line, _ in lines)
        for line, side in lines:
            before, trunk = self.before(line), self.trunk(line)
            stayed = before in (self.ours.get(block), self.theirs.get(block))
            left = line.state is State.QUARANTINED and before is None and trunk < len(self.trunks)
            if line.in_use or (left and not twins):
                used = before is not None and before.in_use
                known = 3 - (block in self.base) - (before is not None) - used
                turn = UNCHANGED if line == before else CHANGED
                yield RankedLine(turn, trunk, both, known, line.state, line.node, block, line, side)
            elif line.moved and before and before.state is State.HELD and stayed:
                yield RankedLine(UNDONE, trunk, both, 0, before.state, before.node, block, before, side)

    def in_doubt(self, blocks: Iterable[Block]) -> Lines:
        """Return new lines in quarantine if no trunk is known: their blocks may have been published."""
        return {
            block: line
            for block in (() if any(self.trunks) else blocks)
            for line, _ in self.at(block)
            if line.state is State.QUARANTINED and self.before(line) is None
            if block not in self.base
            or self.base[block] not in (self.ours.get(block), self.theirs.get(block))
        }

    def place(self, ranked: RankedLine) -> tuple[object, ...]:
        """Return what only one side may fill: a node's place in a state; of several blocks, the new ones."""
        new = ranked.turn == CHANGED and ranked.known and ranked.state is State.HELD
        return (*self.key(ranked.line), ranked.state) if self.one_block or new else ranked.block

    def rest(self, blocks: Iterable[Block], failed: Container[tuple[Key, int]]) -> list[Line]:
        """Return lines for addresses that are still free, by priority. Every line of the base is included.
        Changed beats unchanged, quarantined beats released, of two days the later. If each side that moved a
        node away `failed` to give it any new block, the node did not move.
        """
        found: list[tuple[bool, Line]] = []
        for block in blocks:
            before = self.base.get(block)
            lines = [(line, side) for line, side in self.at(block) if not line.in_use]
            movers = [(self.key(line), side) for line, side in lines if line.moved]
            stayed = not (before and before.moved) and all(mover in failed for mover in movers)
            for line, _ in lines:
                found.append((line != before, replace(line, moved=line.moved and not stayed)))
            if before and not lines:
                released = Line(block=block, pool=before.pool, node=before.node, state=State.RELEASED)
                found.append((False, released if before.in_use else before))
        found.sort(key=lambda entry: (entry[1].node, entry[1].block))
        found.sort(key=lambda entry: (entry[0], entry[1].since), reverse=True)
        return [line for _, line in found]


def resolve(locks: ThreeWay) -> tuple[Lines, list[Dropped]]:
    """Return the lines that stay, and the new lines that were dropped. O(n log n)."""
    every = locks.base.keys() | locks.ours.keys() | locks.theirs.keys()
    near: defaultdict[Block, list[Block]] = defaultdict(list)  # the blocks that share addresses with a block
    for block, around in nested(every, lambda block: block):
        for outer in around:
            near[outer].append(block)
        near[block] += around
    laid = {block: line for block, line in locks.ours.items() if line == locks.theirs.get(block)}
    blocks = every - laid.keys()
    in_doubt = locks.in_doubt(blocks)
    first: dict[tuple[object, ...], RankedLine] = {}
    refused: list[Dropped] = []
    gained: dict[tuple[Key, int], bool] = {}  # whether a node keeps any of the blocks that a side gave it

    def over(block: Block, lines: Lines = laid) -> Line | None:
        return next((lines[other] for other in (block, *near[block]) if other in lines), None)

    for ranked in sorted(ranked for block in blocks for ranked in locks.ranked(block)):
        line, key = ranked.line, (locks.key(ranked.line), ranked.side)
        filled = first.get(locks.place(ranked), ranked)
        holder = over(line.block) or (filled.line if filled.side != ranked.side else None)
        left = over(line.block, in_doubt) if ranked.known > 1 and not holder else None
        if left and left.node != line.node:
            holder = left
        if ranked.turn == CHANGED and line.state is State.HELD:
            gained[key] = gained.get(key, False) or not holder
        if not holder and (ranked.turn != UNDONE or not gained.get(key, True)):
            laid[line.block] = line
            first.setdefault(locks.place(ranked), ranked)
        elif holder and ranked.turn == CHANGED:
            trunk = locks.trunk(holder)
            refused.append(Dropped(line, holder, trunk if trunk < len(locks.trunks) else None))
    for line in locks.rest(blocks, {key for key, any_block in gained.items() if not any_block}):
        if not over(line.block):
            laid[line.block] = line
    gone = (drop for drop in refused if getattr(laid.get(drop.line.block), "node", "") != drop.line.node)
    return laid, list(gone)


def renumbered_apart(locks: ThreeWay) -> dict[Key, tuple[list[Block], list[Block]]]:
    """Return the blocks to which ours and theirs renumbered a node differently, by key."""
    ours, theirs = _renumbered(locks, locks.ours, locks.theirs), _renumbered(locks, locks.theirs, locks.ours)
    both = {
        key: (sorted(ours[key] - theirs[key]), sorted(theirs[key] - ours[key]))
        for key in ours.keys() & theirs.keys()
    }
    return {key: apart for key, apart in both.items() if all(apart)}


def _renumbered(locks: ThreeWay, lines: Lines, others: Lines) -> Mapping[Key, set[Block]]:
    """Return the blocks to which one side renumbered nodes: newly pending, or held as the node moved."""
    said = (line for block, line in lines.items() if line.moved or line != others.get(block))
    mine = [(line, locks.before(line)) for line in said]
    moved = {locks.key(line) for line, before in mine if line.moved and before and before.state is State.HELD}
    found: defaultdict[Key, set[Block]] = defaultdict(set)
    for line, before in mine:
        became = line.state if before is None or before.state is not line.state else None
        if became is State.PENDING or (became is State.HELD and locks.key(line) in moved):
            found[locks.key(line)].add(line.block)
    return found
