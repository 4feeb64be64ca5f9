"""Laws of what is rendered for a shared pool: what was published stays in place, what is new comes behind, and nothing that a node has is lost."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from ipamc.model.address_sets import covers, outermost
from ipamc.model.cidr import Block, parse_block
from ipamc.model.pool_ranges import Given, operator_follows, pool_ranges
from tests.support.builders import plan, pool

MINORS = ("1.15", "1.18", "1.19")


def parts(low: int, high: int) -> st.SearchStrategy[list[str]]:
    """Make disjoint CIDRs of 10.1.0.0/22, in any order."""
    blocks = st.builds(
        lambda prefix, place: Block(4, (10 << 24) + (1 << 16) + (place << 32 - prefix) % 1024, prefix),
        st.integers(24, 27),
        st.integers(0, 31),
    )
    return st.lists(blocks, min_size=low, max_size=high).map(
        lambda found: [str(block) for block in sorted(outermost(found), key=lambda block: -block.first % 7)]
    )


@examples(
    ranges=parts(1, 5),
    published=parts(0, 5),
    reserved=parts(0, 2),
    held=st.sets(st.integers(0, 15), max_size=4),
    version=st.sampled_from(MINORS),
)
def test_what_was_published_stays_and_what_is_new_comes_behind(
    ranges: list[str], published: list[str], reserved: list[str], held: set[int], version: str
) -> None:
    inside = [
        part for part in reserved if any(parse_block(cidr).contains(parse_block(part)) for cidr in ranges)
    ]
    lines = {
        f"n{number}": f"10.1.{number // 4}.{number % 4 * 64}/26"
        for number in sorted(held)
        if any(
            parse_block(cidr).contains(parse_block(f"10.1.{number // 4}.{number % 4 * 64}/26"))
            for cidr in ranges
        )
    }
    built = pool("default", *ranges, size=26, reserved=inside)
    made = plan("multi-pool", [built], lines, version=version, pinning="none")
    given = Given(made.cluster, made.lock)
    before = tuple(map(parse_block, published))
    found = pool_ranges(made.cluster, built, built.families[4], given, before)
    stays = [cidr for cidr in before if cidr in found.cidrs]
    assert list(found.cidrs[: len(stays)]) == stays
    assert set(found.leaving) == set(before) - set(stays)
    assert len(outermost(found.cidrs)) == len(found.cidrs)
    for block in lines.values():
        assert covers(found.cidrs, parse_block(block))
    if not found.obstacles:
        assert all(not given.over(cidr) or version == "1.19" for cidr in found.leaving)
    again = pool_ranges(made.cluster, built, built.families[4], given, found.cidrs)
    assert (again.cidrs, again.leaving) == (found.cidrs, ())


def test_a_range_that_is_widened_gets_the_missing_piece() -> None:
    built = pool("default", "10.1.0.0/19", size=26)
    made = plan("multi-pool", [built], {}, pinning="none")
    found = pool_ranges(
        made.cluster, built, built.families[4], Given(made.cluster, made.lock), (parse_block("10.1.0.0/20"),)
    )
    assert list(map(str, found.cidrs)) == ["10.1.0.0/20", "10.1.16.0/20"]


@pytest.mark.parametrize(
    ("minor", "leaving", "follows"),
    [
        (15, [3], True),
        (15, [0], False),
        (15, [2, 3], False),
        (17, [1], False),
        (18, [0], True),
        (18, [0, 2], True),
        (18, [0, 1], False),
        (18, [2, 3], False),
        (19, [0, 1, 2, 3], True),
        (20, [0, 1, 2, 3], True),
        (14, [3], True),
    ],
)
def test_what_a_running_operator_takes_out_of_a_pool(
    minor: int, leaving: list[int], *, follows: bool
) -> None:
    published = [parse_block(f"10.{number}.0.0/24") for number in range(4)]
    assert operator_follows((1, minor), published, [published[place] for place in leaving]) is follows
