"""For how many nodes pools have room, when blocks come free, and what filters choose."""

from __future__ import annotations

import pytest

from ipamc.model.cidr import parse_block
from ipamc.model.cluster import Mode, Pool
from ipamc.model.lock import Line, State
from ipamc.review.shown_pools import Choice, Ending, ShownCluster, without_match
from tests.support.shown import RACK_A, lab, part, pool


def line(block: str, node: str = "n", state: State = State.HELD, since: str = "", **more: bool) -> Line:
    return Line(block=parse_block(block), pool="a", node=node, state=state, since=since, **more)


def gone(block: str, since: str, **more: bool) -> Line:
    return line(block, "gone", State.QUARANTINED, since, **more)


def room(*lines: Line, of: Pool | None = None, **more: object) -> int:
    shown = lab(pools=(of or pool("a", part(26, "10.0.0.0/24")),), of=lines, **more)  # type: ignore[arg-type]  # a short cut of this test
    (number,) = {each.room for each in shown.pools}
    return number


def test_a_node_needs_a_block_of_each_family() -> None:
    both = pool("a", part(26, "10.0.0.0/24"), part(64, "fd00::/63"))
    assert room(of=both) == 2
    assert room(of=both, families=(4,)) == 4
    assert room(of=both, families=(6,)) == 2


def test_a_node_gets_as_many_blocks_as_the_pool_gives() -> None:
    assert room(of=pool("a", part(26, "10.0.0.0/24"), blocks_per_node=3), mode=Mode.MULTI_POOL) == 1


def test_what_newcomers_cannot_have() -> None:
    assert room() == 4
    assert room(line("10.0.0.0/26")) == 3
    assert room(line("10.0.0.0/26", state=State.RELEASED)) == 4
    assert room(line("10.0.0.0/26", state=State.PENDING)) == 3
    assert room(of=pool("a", part(26, "10.0.0.0/24"), reserved=part(26, "10.0.0.7/32").ranges)) == 3
    assert room(of=pool("a", part(26, "10.0.0.0/24"), pins={"p": part(26, "10.0.0.64/26").ranges})) == 3
    assert room(of=pool("a", part(26, "10.0.0.0/24"), disabled=True)) == 0
    assert room(of=pool("a", part(26, "10.0.0.0/24"), unlisted=True)) == 4
    assert room(of=pool("a", part(26, "10.0.0.0/24")), families=(6,)) == 0


@pytest.mark.parametrize(
    ("since", "days", "nodes", "ending"),
    [
        ("2026-11-15", 7, 4, None),  # over today
        ("2026-11-16", 7, 3, Ending(day="2026-11-23", blocks=1)),
        ("2026-11-22", 7, 3, Ending(day="2026-11-29", blocks=1)),
        ("2026-11-22", 0, 4, None),
        ("2026-11-16", None, 3, None),  # never
        ("9999-12-30", 7, 3, None),  # the calendar ends
    ],
)
def test_quarantine(since: str, days: int | None, nodes: int, ending: Ending | None) -> None:
    lines = (gone("10.0.0.0/26", since),)
    assert room(*lines, quarantine_days=days) == nodes
    shown = lab(pools=(pool("a", part(26, "10.0.0.0/24")),), of=lines, quarantine_days=days)
    assert [each.ending for each in shown.pools] == [ending]


def test_a_block_is_not_given_out_on_the_day_on_which_its_node_moved() -> None:
    moved = gone("10.0.0.0/26", "2026-11-22", moved=True)
    assert room(moved, quarantine_days=0) == 3
    shown = lab(pools=(pool("a", part(26, "10.0.0.0/24")),), of=(moved,), quarantine_days=0)
    assert [each.ending for each in shown.pools] == [Ending(day="2026-11-23", blocks=1)]


def test_the_next_day_and_only_its_blocks() -> None:
    lines = (
        gone("10.0.0.0/26", "2026-11-20"),
        gone("10.0.0.64/26", "2026-11-18"),
        gone("10.0.0.128/26", "2026-11-18"),
    )
    shown = lab(pools=(pool("a", part(26, "10.0.0.0/24")),), of=lines)
    assert [each.ending for each in shown.pools] == [Ending(day="2026-11-25", blocks=2)]


def names(shown: ShownCluster) -> list[str]:
    return [each.use.pool.name for each in shown.pools]


def test_choices_combine() -> None:
    pools = (RACK_A, pool("rack-b", part(26, "10.1.0.0/24")))
    stray = line("172.16.0.0/26", "n1")
    b = line("10.1.0.0/26", "n3")

    def chosen(**choice: object) -> ShownCluster:
        return lab(b, stray, pools=pools, choice=Choice(**choice))  # type: ignore[arg-type]  # a short cut of this test

    assert names(chosen()) == ["rack-a", "rack-a", "rack-b"]
    assert names(chosen(pools=("rack-b",))) == ["rack-b"]
    assert names(chosen(pools=("rack-*",))) == ["rack-a", "rack-a", "rack-b"]
    assert names(chosen(nodes=("n1",))) == ["rack-a", "rack-a"]
    assert chosen(nodes=("n1",)).outside == (stray,)
    assert names(chosen(states=frozenset({State.QUARANTINED}))) == ["rack-a"]
    assert names(chosen(nodes=("n3",), pools=("rack-a",))) == []
    assert names(chosen(nodes=("n1", "n3"), states=frozenset({State.HELD}))) == ["rack-a", "rack-a", "rack-b"]
    lines = [each.node for found in (chosen(nodes=("n[23]",)).lines or {}).values() for each in found]
    assert sorted(lines) == ["n2", "n3"]


def test_a_name_that_nothing_has() -> None:
    assert without_match(("a", "b*", "c"), {"a", "bb"}) == ["c"]


def test_rooms_add_up_where_a_node_has_blocks_of_one_pool() -> None:
    two = (line("10.0.0.0/26", "n1"), Line(block=parse_block("10.1.0.0/26"), pool="b", node="n1"))
    assert not lab(of=two, mode=Mode.MULTI_POOL).adds_up
    assert lab(of=two[:1], mode=Mode.MULTI_POOL).adds_up
    assert lab(of=two, mode=Mode.KUBERNETES).adds_up


def test_a_quarantine_that_is_over_is_free_in_every_number() -> None:
    """Room, addresses and blocks agree: none says full where another one has room."""
    lines = (
        gone("10.0.0.0/26", "2026-01-01"),
        *(line(f"10.0.0.{first}/26", f"n{first}") for first in (64, 128, 192)),
    )
    (shown,) = lab(pools=(pool("a", part(26, "10.0.0.0/24")),), of=lines).pools
    use = shown.use.use
    assert (shown.room, use.blocks_free, use.available, use.quarantined) == (1, 1, 64, 0)
