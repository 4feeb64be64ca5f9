"""The two sides of a merge against their base: what each did to a block, and to a node. The same whichever side is called ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from ipamc.model.cidr import Block
from ipamc.model.lock import Line, State

Lines = Mapping[Block, Line]
Group = tuple[str, int, str]
"""(node, family, pool); the pool is "" in a one-block mode. What is renumbered together, and has one held line in a one-block mode."""
Rivals = Mapping[Group, tuple[frozenset[Block], frozenset[Block]]]
"""Ours and theirs."""


def holds(line: Line | None) -> bool:
    """Tell whether a line is held or pending."""
    return line is not None and line.in_use


def of_one_node(a: Line | None, b: Line | None) -> bool:
    """Tell whether both lines are there, and name one node."""
    return a is not None and b is not None and a.node == b.node


def same(a: Line | None, b: Line | None) -> bool:
    """Tell whether two lines of a block say the same. The pool's name does not count: it follows the ranges, and changes on many lines at once."""
    if a is None or b is None:
        return a is b
    return a == b or a == msgspec.structs.replace(b, pool=a.pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is merged. Each of the two sides is sound by itself."""

    base: Lines
    ours: Lines
    theirs: Lines
    trunks: tuple[Lines, ...] = ()
    """Whose lines stay where newcomers clash, the weightiest first."""
    one_block: bool

    def group(self, line: Line) -> Group:
        """Give what a line belongs to."""
        return line.node, line.block.family, "" if self.one_block else line.pool

    def trunk(self, line: Line) -> int:
        """Give the index of the first trunk where the same node holds this block, or has left it like this line; their number if none has."""
        for index, lines in enumerate(self.trunks):
            there = lines.get(line.block)
            if there and there.node == line.node and (holds(there) or (line.since and there.since)):
                return index
        return len(self.trunks)

    def is_claim(self, line: Line | None) -> bool:
        """Tell whether a line keeps others away: live and pending ones, and what was left on the trunk after the base, whose quarantine holds."""
        if line is None or holds(line):
            return line is not None
        return (
            bool(line.since)
            and not of_one_node(self.base.get(line.block), line)
            and self.trunk(line) < len(self.trunks)
        )


def claims(sides: Sides, base: Line | None, ours: Line | None, theirs: Line | None) -> list[tuple[Line, ...]]:
    """Give what may keep others away from a block: each with what comes in its place if it gives way.

    Changed beats unchanged, and live beats next beats left. Where one side gave the block to another node, that stands: a rename. Only what is no
    claim itself displaces nobody. Two where each side gave it to a node of its own.
    """
    ours_claims, theirs_claims = sides.is_claim(ours), sides.is_claim(theirs)
    if ours and theirs and ours_claims and theirs_claims:
        if same(base, ours):
            return [(theirs, ours)]
        if same(base, theirs):
            return [(ours, theirs)]
        if ours.node != theirs.node:
            return [(ours,), (theirs,)]
        if ours.since and theirs.since and (later := leftover(base, ours, theirs)):
            return [(later,)]
        return [tuple(sorted((ours, theirs), key=_liveness))]
    claim, other = (ours, theirs) if ours_claims else (theirs, ours)
    if (
        claim is None
        or not (ours_claims or theirs_claims)
        or (of_one_node(claim, other) and same(base, claim))
    ):
        return []
    return [(claim,)]


def _liveness(line: Line) -> tuple[bool, bool]:
    return bool(line.since), line.state is State.PENDING


def leftover(base: Line | None, ours: Line | None, theirs: Line | None) -> Line | None:
    """Give the line of a block that nobody holds; also one that both sides removed, if what they put over it gave way."""
    one, two = (None if holds(line) else line for line in (ours, theirs))
    if one is None or two is None:
        return one or two or (None if holds(base) else base)
    if same(base, one):
        return two
    if same(base, two):
        return one
    # Both changed: left beats released, of two days the later. The flags go with the line that wins, save that a node that moved has moved.
    best = max(
        sorted((one, two), key=lambda line: line.node),
        key=lambda line: (line.since, line.moved, line.was_pending),
    )
    moved = best.moved or (bool(best.since) and one.node == two.node and (one.moved or two.moved))
    return msgspec.structs.replace(best, moved=moved)


def pool_of(base: Line | None, ours: Line, theirs: Line) -> str:
    """Give the name of the pool of a block that both sides have: changed beats unchanged; where both changed, the next compile knows better."""
    if base and base.pool == ours.pool:
        return theirs.pool
    if base and base.pool == theirs.pool:
        return ours.pool
    return max(ours.pool, theirs.pool)


def rivals(sides: Sides, blocks: Iterable[Block]) -> Rivals:
    """Give the groups that both sides placed newly, with different blocks: one side's are to be taken whole. A side that moved them only moved them."""
    moved = _moved(sides)
    placed = _by_group(sides, blocks, _is_newly_live)
    return {
        group: (ours, theirs)
        for group, (ours, theirs) in placed.items()
        if ours and theirs and not (ours <= theirs or theirs <= ours or any(moved[group]))
    }


def renumbered_apart(sides: Sides, blocks: Iterable[Block]) -> Rivals:
    """Give the groups that both sides renumbered, to different places: what a person has to settle."""
    blocks = tuple(blocks)
    moved = _moved(sides)
    placed = _by_group(sides, blocks, _is_newly_live)
    waiting = _by_group(sides, blocks, lambda line, _: line.state is State.PENDING)
    asked = _by_group(
        sides,
        blocks,
        lambda line, before: line.state is State.PENDING and not (before and before.state is State.PENDING),
    )
    apart: dict[Group, tuple[frozenset[Block], frozenset[Block]]] = {}
    for group in waiting.keys() | moved.keys():
        ours, theirs = (
            waiting[group][side] | (placed[group][side] if moved[group][side] else frozenset())
            for side in (0, 1)
        )
        both_acted = all(asked[group][side] or moved[group][side] for side in (0, 1))
        if both_acted and ours and theirs and ours != theirs:
            apart[group] = ours, theirs
    return apart


def _moved(sides: Sides) -> defaultdict[Group, tuple[frozenset[Block], frozenset[Block]]]:
    """Give, by group, the blocks that each side moved away from; also where both agree about that."""
    left = (block for lines in (sides.ours, sides.theirs) for block, line in lines.items() if line.moved)
    return _by_group(
        sides,
        tuple(left),
        lambda line, before: line.moved and before is not None and before.state is State.HELD,
    )


def _is_newly_live(line: Line, before: Line | None) -> bool:
    return line.state is State.HELD and not (before and before.state is State.HELD)


def _by_group(
    sides: Sides, blocks: Iterable[Block], wanted: Callable[[Line, Line | None], bool]
) -> defaultdict[Group, tuple[frozenset[Block], frozenset[Block]]]:
    """Give the blocks of each side's lines that are wanted, judged by the line and by what the base had there for the same node."""
    found: defaultdict[Group, tuple[frozenset[Block], frozenset[Block]]] = defaultdict(
        lambda: (frozenset(), frozenset())
    )
    for side, lines in enumerate((sides.ours, sides.theirs)):
        for block in blocks:
            line, before = lines.get(block), sides.base.get(block)
            if line and wanted(line, before if of_one_node(line, before) else None):
                both = list(found[sides.group(line)])
                both[side] |= {block}
                found[sides.group(line)] = both[0], both[1]
    return found
