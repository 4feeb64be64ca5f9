"""How fast something grows: what made histories say, and how often the range has what is true."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.limits import LEAST_CHANGES, LEAST_WEEKS
from ipamc.review.runway import growth

YEAR = 52
SEASON = [round(3 + 5 * math.sin(2 * math.pi * week / YEAR)) for week in range(YEAR)]
"""Much growth in spring, shrinking in autumn; 3 a week over the year."""

MADE = {
    "the same every week": ([2] * 40, "2 2 2"),
    "two a week, in batches of ten": ([10 if week % 5 == 0 else 0 for week in range(40)], "10/7 2 30/11"),
    "growing, then not": ([4] * 20 + [0] * 20, "0 2 4"),
    "seasons": (SEASON, "-20/13 1721/560 98/13"),
    "seasons of which only the spring is seen": (SEASON[:13], "4 55/9 31/4"),
    "shrinking": ([-1, -2, 0, -1] * 5, "-6/5 -1 -4/5"),
    "up and down": ([6, -6] * 10, "-6/5 0 6/5"),
    "no change": ([0] * 30, "0 0 0"),
    "a jump among steady growth": ([2] * 20 + [300] + [2] * 20, "2 2 2 without week 20: +300"),
    "two jumps": ([1] * 20 + [500, 0, 100] + [1] * 20, "10/11 24/25 1 without week 20: +500, week 22: +100"),
    "a rack that was taken away": ([1] * 30 + [-80] + [1] * 10, "1 1 1 without week 30: -80"),
    "one import, and nothing else": ([0] * 10 + [300] + [0] * 20, "0 0 0 without week 10: +300"),
    "three jumps": ([1, 1, 1000, 200, 40, 8] + [0] * 20, "uneven without week 2: +1000, week 3: +200"),
    "three changes only": ([0] * 10 + [1, 1, 1] + [0] * 20, "nothing: 3 changes in 33 weeks"),
    "eleven weeks": ([2] * 11, "nothing: 11 changes in 11 weeks"),
    "none": ([], "nothing: 0 changes in 0 weeks"),
}


@pytest.mark.parametrize(("changes", "said"), MADE.values(), ids=MADE)
def test_made_histories(changes: list[int], said: str) -> None:
    found = growth(changes)
    jumps = ", ".join(f"week {jump.week}: {jump.change:+}" for jump in found.jumps)
    if found.rates:
        words = " ".join(map(str, found.rates))
    else:
        words = "uneven" if found.uneven else f"nothing: {found.changed} changes in {found.weeks} weeks"
    assert words + (f" without {jumps}" if jumps else "") == said


def poisson(chance: random.Random, mean: float) -> int:
    number, product = 0, chance.random()
    while product > math.exp(-mean):
        number, product = number + 1, product * chance.random()
    return number


@pytest.mark.deep
@pytest.mark.parametrize("weeks", [12, 20, 52])
@pytest.mark.parametrize(("mean", "batch"), [(0.7, 1), (2.0, 1), (10.0, 1), (1.0, 5)])
def test_the_true_rate_is_in_the_range_in_nine_of_ten_histories(weeks: int, mean: float, batch: int) -> None:
    """Nodes come by chance, so many a week on average, alone or in batches; the same chances in every run."""
    chance = random.Random(f"{weeks} {mean} {batch}")  # noqa: S311 - made data
    said = hit = ahead = 0
    for _ in range(200):
        found = growth([batch * poisson(chance, mean) for _ in range(weeks)])
        if found.rates:
            said += 1
            hit += found.rates[0] <= Fraction(mean * batch) <= found.rates[-1]
            later = Fraction(sum(batch * poisson(chance, mean) for _ in range(weeks)), weeks)
            ahead += found.rates[0] <= later <= found.rates[-1]
    assert said > 150
    assert hit / said > 0.9
    assert ahead / said > 0.75  # what then really comes, in as many weeks again


@given(st.lists(st.integers(-50, 50), max_size=60), st.integers(1, 9))
def test_laws(changes: list[int], factor: int) -> None:
    found = growth(changes)
    assert found == growth(changes)
    larger = growth([factor * change for change in changes])
    if found.rates:
        slowest, middle, fastest = found.rates
        assert min(changes) <= slowest <= middle <= fastest <= max(changes)
        assert found.weeks >= LEAST_WEEKS
        assert found.changed == 0 or found.changed >= LEAST_CHANGES
        if sum(map(bool, changes)) > 1:
            assert larger.rates == tuple(factor * rate for rate in found.rates)
