"""The merge of two lock texts with their base: lines are records by block, and nothing is placed.

A line that says the same on both sides stays. Changed beats unchanged, changed beats removed, live beats left beats released. A line that one side
removed, because it was used again there, comes back where nothing that stays lies over it. Newcomers that clash: the trunk's stays, else what the base
knew, else the smaller node name; the other is dropped, named, and placed by the next compile. A node that was renumbered to two places is left to a
person, between conflict markers. The result is a sound lock in canonical text, or one that no compile takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from ipamc.cidr import Block
from ipamc.judge import Dropped, Hunk, Verdict, judge
from ipamc.lock import dumps, encode, parse
from ipamc.model import Line, Lock
from ipamc.sides import Sides, pool_of, same

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


def merge(base: bytes | None, ours: bytes, theirs: bytes, *trunks: bytes | None) -> Merged:
    """Merge two locks. `base` may be absent or empty; of `trunks`, the weightiest first, those that are absent or unreadable do not count.

    The result is the same, save for the labels of conflict markers, if ours and theirs change places. O(n log n).
    """
    try:
        before = _known(base)
        one, two = _sound(ours, "ours"), _sound(theirs, "theirs")
        header = _header(before, one, two)
    except ValueError as problem:
        return Merged(text=_side_by_side(ours, theirs), conflicts=(str(problem),))
    if ours == theirs or (before and _same_as(before, two)):  # as git does before it asks a driver
        return Merged(text=ours)
    if before and _same_as(before, one):
        return Merged(text=theirs)
    sides = Sides(
        base=_by_block(before),
        ours=_by_block(one),
        theirs=_by_block(two),
        trunks=tuple(_by_block(_trunk(each, header)) for each in trunks),
        one_block=header.mode.one_block,
    )
    agreed = {block for block, line in sides.ours.items() if same(line, sides.theirs.get(block))}
    verdict = judge(sides, (sides.base.keys() | sides.ours.keys() | sides.theirs.keys()) - agreed)
    lines = {**{block: sides.ours[block] for block in agreed}, **verdict.lines}
    return _written(header, [_with_pool(sides, line) for line in lines.values()], verdict, ours, theirs)
