"""Which lines stay where the two sides of a merge clash: the strong ones one by one, then what is left over where nothing lies over it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ipamc.lock.merge.changes import (
    Group,
    Lines,
    Rivals,
    Sides,
    claims,
    holds,
    leftover,
    of_one_node,
    renumbered_apart,
    rivals,
    same,
)
from ipamc.model.cidr import BITS, Block
from ipamc.model.lock import Line, State


class Dropped(NamedTuple):
    """A line that gave way."""

    line: Line
    holder: Line
    """What lies over it, or another block that its node has instead."""
    trunk: int | None
    """The index of the trunk that has `holder`; None: none has."""


class Hunk(NamedTuple):
    """A block about which the sides disagree in a way that a person has to settle."""

    block: Block
    ours: Line | None
    theirs: Line | None


class Verdict(NamedTuple):
    """What became of every block."""

    lines: dict[Block, Line]
    """What stays, by block; pools as the side had them that the line is from."""
    dropped: tuple[Dropped, ...]
    """By family and address."""
    hunks: tuple[Hunk, ...]
    apart: Rivals
    """Why there are hunks: where each side renumbered a group to."""


class Rank(NamedTuple):
    """The smallest is taken first; each field only breaks ties left by those above it."""

    trunk: int
    """The trunk's stays."""
    otherwise: bool
    """The trunk has it, but as next where this is live, or the other way round."""
    comes_back: bool
    """One side removed it, and the other did not touch it: it comes back where nothing that stays lies over it."""
    new: bool
    """Nobody held it at the base."""
    other: bool
    """The base did not know this block for this node."""
    unknown: bool
    """The base did not know this block."""
    node: str
    waits: bool
    """It is not live yet."""
    rivals: tuple[Block, ...]
    """Where both sides placed the node, the blocks of this side: the one with the lower block goes first."""
    block: Block


class Refused(NamedTuple):
    """A claim that gave way to `holder`."""

    rank: Rank
    line: Line
    holder: Line


class Ground:
    """Lines by what they lie over. Blocks nest or are disjoint, so a question costs as much as there are prefix lengths."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._prefixes = sorted({(block.family, block.prefix) for block in blocks})
        self._lines: dict[Block, Line] = {}
        self._inside: dict[Block, Line] = {}

    def _above(self, block: Block) -> Iterator[Block]:
        for family, prefix in self._prefixes:
            if family == block.family and prefix < block.prefix:
                shift = BITS[family] - prefix
                yield Block(family, block.first >> shift << shift, prefix)

    def over(self, block: Block) -> Line | None:
        """Give a line that shares an address with the block."""
        found = next(
            (self._lines[each] for each in (block, *self._above(block)) if each in self._lines), None
        )
        return found or self._inside.get(block)

    def add(self, line: Line) -> None:
        """Put a line down."""
        self._lines[line.block] = line
        for each in self._above(line.block):
            self._inside.setdefault(each, line)


def judge(sides: Sides) -> Verdict:
    """Say what becomes of each block. O(n log n)."""
    agreed = {block: line for block, line in sides.ours.items() if same(line, sides.theirs.get(block))}
    court = _Court(sides, agreed)
    court.hear_claims()
    court.leave_to_people()
    court.fill_in()
    court.take_back_moves()
    return Verdict(
        court.lines,
        court.dropped(),
        tuple(sorted(court.hunks.values(), key=lambda hunk: hunk.block)),
        court.apart,
    )


class _Court:
    """What was decided so far; each method is one step of `judge`."""

    def __init__(self, sides: Sides, agreed: dict[Block, Line]) -> None:
        every = sides.base.keys() | sides.ours.keys() | sides.theirs.keys()
        self.sides = sides
        self.blocks = sorted(every - agreed.keys())
        self.apart = renumbered_apart(sides, self.blocks)
        self.rivals = {
            group: both for group, both in rivals(sides, self.blocks).items() if group not in self.apart
        }
        self.lines = agreed
        self.hunks: dict[Block, Hunk] = {}
        self.ground = Ground(every)
        for line in agreed.values():
            self.ground.add(line)
        self.living: dict[Group, Line] = {}
        self.waiting: dict[Group, Line] = {}
        self.chosen: dict[Group, frozenset[Block]] = {}
        self.refused: list[Refused] = []
        self.gone: set[tuple[str, Block]] = set()

    def _at(self, block: Block) -> tuple[Line | None, Line | None, Line | None]:
        """Give the lines of a block that are for us to decide: those of the base, ours and theirs."""
        ours, theirs = (
            None if line is None or self.sides.group(line) in self.apart else line
            for line in self._sides_at(block)
        )
        return self.sides.base.get(block), ours, theirs

    def _sides_at(self, block: Block) -> tuple[Line | None, Line | None]:
        return self.sides.ours.get(block), self.sides.theirs.get(block)

    def hear_claims(self) -> None:
        """Take claims in order of rank; what clashes with one that was taken gives way, and what stands behind it is heard instead."""
        number = itertools.count()  # never decides: no two ranks are the same
        heap = [
            (self._rank(each[0]), next(number), each)
            for block in self.blocks
            for each in claims(self.sides, *self._at(block))
        ]
        heapq.heapify(heap)
        while heap:
            rank, _, (line, *rest) = heapq.heappop(heap)
            if rank != self._rank(line):  # a block that it was placed with gave way in the meantime
                heapq.heappush(heap, (self._rank(line), next(number), (line, *rest)))
                continue
            holder = self._holder(line)
            if holder is None:
                self._take(line)
                continue
            self.refused.append(Refused(rank, line, holder))
            self.gone.add((line.node, line.block))
            if rest:
                heapq.heappush(heap, (self._rank(rest[0]), next(number), tuple(rest)))

    def _rank(self, line: Line) -> Rank:
        base = self.sides.base.get(line.block)
        ours, theirs = self._sides_at(line.block)
        known = of_one_node(base, line)
        mine = [side for side in self.rivals.get(self.sides.group(line), ()) if line.block in side]
        trunk = self.sides.trunk(line)
        return Rank(
            trunk=trunk,
            otherwise=trunk < len(self.sides.trunks)
            and self.sides.trunks[trunk][line.block].state is not line.state,
            comes_back=same(base, line) and not (same(base, ours) and same(base, theirs)),
            new=not (known and holds(base)),
            other=not known,
            unknown=base is None,
            node=line.node,
            waits=line.state is not State.HELD,
            rivals=min(
                (tuple(sorted(each for each in side if (line.node, each) not in self.gone)) for side in mine),
                default=(),
            ),
            block=line.block,
        )

    def _holder(self, line: Line) -> Line | None:
        """Give the line that keeps this one away, if one does."""
        holder = self.ground.over(line.block)
        if holder or line.since:
            return holder
        group = self.sides.group(line)
        if self.sides.one_block:
            return (self.waiting if line.state is State.PENDING else self.living).get(group)
        placed = self.rivals.get(group, ())
        other_side = (
            group in self.chosen
            and any(line.block in side for side in placed)
            and line.block not in self.chosen[group]
        )
        return self.living[group] if other_side else None

    def _take(self, line: Line) -> None:
        self.lines[line.block] = line
        self.ground.add(line)
        if line.since:
            return
        group = self.sides.group(line)
        (self.waiting if line.state is State.PENDING else self.living).setdefault(group, line)
        mine = [side for side in self.rivals.get(group, ()) if line.block in side]
        if line.state is State.HELD and len(mine) == 1:
            self.chosen.setdefault(group, mine[0])

    def leave_to_people(self) -> None:
        """Keep both versions of what was renumbered to two places, save what a stronger line lies over."""
        for block in self.blocks:
            apart = [line for line in self._sides_at(block) if line and self.sides.group(line) in self.apart]
            holder = self.ground.over(block)
            if apart and not holder:
                self._leave(block)
            elif holder:
                self.refused += [Refused(self._rank(line), line, holder) for line in apart if holds(line)]

    def _leave(self, block: Block) -> None:
        """Keep what each side has there, save a claim of another node: that was heard."""
        apart = self.apart
        kept = (
            line if line and (self.sides.group(line) in apart or not self.sides.is_claim(line)) else None
            for line in self._sides_at(block)
        )
        hunk = Hunk(block, *kept)
        if hunk.ours or hunk.theirs:
            self.hunks[block] = hunk

    def fill_in(self) -> None:
        """Let what nobody holds come in where nothing lies over it: of two, left before released, and the later day first."""
        undecided = Ground(self.blocks)
        for hunk in self.hunks.values():
            for line in (hunk.ours, hunk.theirs):
                if line:
                    undecided.add(line)
        vacant = (block for block in self.blocks if block not in self.lines and block not in self.hunks)
        found = [line for block in vacant if (line := leftover(*self._at(block)) or self._given_up(block))]
        found.sort(key=lambda line: (line.node, line.block))
        found.sort(key=lambda line: line.since, reverse=True)
        found.sort(key=lambda line: self._rank(line).comes_back)
        for line in found:
            if self.ground.over(line.block):
                continue
            if undecided.over(line.block):
                self._leave(line.block)
            else:
                self.lines[line.block] = line
                self.ground.add(line)

    def _given_up(self, block: Block) -> Line | None:
        """Keep a record of a block that was held at the base, and whose holder has another one now: no line vanishes."""
        base = self.sides.base.get(block)
        if base is None or (base.node, block) not in self.gone:
            return None
        return Line(block=block, pool=base.pool, node=base.node, state=State.RELEASED)

    def take_back_moves(self) -> None:
        """Leave a node where it was if the block that a side moved it to gave way: it is never without."""
        undone = [self._undone(lines) for lines in (self.sides.ours, self.sides.theirs)]
        for block, line in list(self.lines.items()) if any(undone) else ():
            group, base = self.sides.group(line), self.sides.base.get(block)
            if not (line.moved and base and base.state is State.HELD and base.node == line.node):
                continue
            at = self._sides_at(block)
            if all(group in groups for each, groups in zip(at, undone, strict=True) if each and each.moved):
                before = next(
                    (each for each in at if each and each.node == line.node and not each.moved), base
                )
                free = before.state is State.HELD and not (self.sides.one_block and group in self.living)
                self.lines[block] = before if free else msgspec.structs.replace(line, moved=False)

    def _undone(self, lines: Lines) -> set[Group]:
        """Give the groups of which a side's new held line gave way, and none stays."""
        gone = [
            each.line
            for each in self.refused
            if not each.rank.comes_back and of_one_node(lines.get(each.line.block), each.line)
        ]
        groups = {
            self.sides.group(line)
            for line in gone
            if line.state is State.HELD and lines[line.block].state is State.HELD
        }
        nodes = {node for node, _, _ in groups}
        staying = (
            line
            for line in lines.values()
            if line.state is State.HELD
            and line.node in nodes
            and of_one_node(self.lines.get(line.block), line)
        )
        return groups - {
            self.sides.group(line) for line in staying if self.lines[line.block].state is State.HELD
        }

    def dropped(self) -> tuple[Dropped, ...]:
        """Give the claims that gave way. What comes back where nothing lies over it was re-used, and is not told of."""
        found: dict[tuple[Block, str], Dropped] = {}
        for rank, line, holder in self.refused:
            there = self.lines.get(line.block)
            reused = rank.comes_back and self.ground.over(line.block)
            if not reused and not of_one_node(there, line):
                trunk = self.sides.trunk(holder)
                found[line.block, line.node] = Dropped(
                    line, holder, trunk if trunk < len(self.sides.trunks) else None
                )
        return tuple(found[key] for key in sorted(found))
