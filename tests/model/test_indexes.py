"""Look-ups answer as if every item were gone through: CIDRs by block, selectors by labels, blocks by what is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import Block, OverlapIndex
from ipamc.model.diagnostics import Place
from ipamc.model.ownership import Blocks, ShownBlocks
from ipamc.model.plan import ShownBlock
from ipamc.model.selector.selector import Selector, SelectorIndex
from tests.model.test_selector_laws import WORLDS, selector

block = st.builds(
    lambda prefix, at: Block(4, at >> (32 - prefix) << (32 - prefix), prefix),
    st.integers(26, 32),
    st.integers(0, 63),
)


@given(st.lists(block, max_size=12), block)
def test_cidrs_over_a_block(items: list[Block], asked: Block) -> None:
    index = OverlapIndex(enumerate(items), lambda item: item[1])
    over = [(number, item) for number, item in enumerate(items) if item.overlaps(asked)]
    assert index.first_over(asked) == next(iter(over), None)
    assert index.over(asked) == [(number, item) for number, item in over if items.index(item) == number]


@given(st.lists(selector, max_size=9), st.sampled_from(["n", "m"]))
def test_selectors_that_select_a_node(selectors: list[Selector], name: str) -> None:
    index = SelectorIndex([*selectors, *selectors[:2]])
    every = [*selectors, *selectors[:2]]
    for labels in WORLDS[::3]:
        selecting = [number for number, each in enumerate(every) if each.matches(labels, name)]
        assert index.matching(labels, name) == selecting
        assert index.first(labels, name) == next(iter(selecting), None)


@given(st.lists(block, max_size=8), st.lists(st.tuples(block, st.booleans()), max_size=8))
def test_what_is_shown_of_blocks(blocks: list[Block], drawn: list[tuple[Block, bool]]) -> None:
    shown = [ShownBlock(each, "n", Place("in.yaml"), part=part) for each, part in drawn]
    held, seen = Blocks(blocks), ShownBlocks(shown)
    for each in shown:
        assert held.fit(each) == any(each.fits(other) for other in blocks)
    for other in blocks:
        assert seen.fits(other) == any(each.fits(other) for each in shown)
