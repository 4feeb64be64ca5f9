"""How fast something grows, as a range: the slowest, the middle and the fastest stretch of its history.

A stretch is a number of weeks in a row, at least a quarter of the history; its rate is its growth by its weeks.
Of all stretches the lowest and the highest rate are the range, and their median is the middle. No curve is
fitted, and nothing is drawn by chance: each number can be found again in the history by hand.

Why stretches of a quarter: growth by independent weeks with the deviation s has an average over n weeks that is
off by s/√n, and a stretch of n/4 weeks is off by twice that. So the range of stretches is about as wide as what
statistics gives for 19 of 20 cases; in made histories of constant growth it has the true rate in more than nine of
ten (`tests/review/test_growth.py`). Growth that comes by seasons makes stretches that differ, and a wide range.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

LEAST_WEEKS = 12
"""With fewer weeks nothing is said: a quarter of them would be no stretch."""
LEAST_CHANGES = 5
"""With fewer weeks in which something changed nothing is said."""
MOST_JUMPS = 2
"""So many weeks may be left out as jumps."""


class Jump(Struct, frozen=True):
    """A week that changed more than all other weeks together: an import or a move, and no trend."""

    week: int
    """Its number in the history, from 0 on."""
    change: int
    share: Fraction
    """Of the changes of all weeks that were not left out before, up or down."""


class Growth(Struct, frozen=True, kw_only=True):
    """What a history says about the rate of growth. Rates are by week."""

    weeks: int
    """How many count: jumps do not."""
    changed: int
    """How many of them changed something."""
    jumps: tuple[Jump, ...] = ()
    """The weeks that are left out, the largest first."""
    uneven: bool = False
    """After MOST_JUMPS one week still makes more than all others: no rate is given."""
    stretch: int = 0
    """The fewest weeks of a stretch."""
    stretches: int = 0
    """How many there are."""
    rates: tuple[Fraction, Fraction, Fraction] | None = None
    """The slowest, the middle and the fastest; None where nothing is said."""


def growth(changes: Sequence[int]) -> Growth:
    """Return how fast something grows by its changes week for week. O(n² log n) of at most a year of weeks."""
    left = list(enumerate(changes))
    jumps: list[Jump] = []
    while (jump := _jump(left)) and len(jumps) < MOST_JUMPS:
        jumps.append(jump)
        left = [pair for pair in left if pair[0] != jump.week]
    weeks, changed = len(left), sum(change != 0 for _, change in left)
    said = Growth(weeks=weeks, changed=changed, jumps=tuple(jumps), uneven=jump is not None)
    if jump or weeks < LEAST_WEEKS or 0 < changed < LEAST_CHANGES:
        return said
    stretch = -(-weeks // 4)
    sums = [0]
    for _, change in left:
        sums.append(sums[-1] + change)
    rates = sorted(
        Fraction(sums[end] - sums[start], end - start)
        for start in range(weeks + 1)
        for end in range(start + stretch, weeks + 1)
    )
    middle = (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2
    return Growth(
        weeks=weeks,
        changed=changed,
        jumps=tuple(jumps),
        stretch=stretch,
        stretches=len(rates),
        rates=(rates[0], middle, rates[-1]),
    )


def _jump(changes: Sequence[tuple[int, int]]) -> Jump | None:
    """Return the week that changed more than all others together, if there are enough changes to tell."""
    total = sum(abs(change) for _, change in changes)
    if sum(change != 0 for _, change in changes) < 2:
        largest = max(changes, key=lambda pair: abs(pair[1]), default=(0, 0))
        return Jump(*largest, Fraction(1)) if abs(largest[1]) > 1 else None
    week, change = max(changes, key=lambda pair: (abs(pair[1]), -pair[0]))
    return Jump(week, change, Fraction(abs(change), total)) if 2 * abs(change) > total else None
