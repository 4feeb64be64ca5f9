"""Aggregates cover exactly what they are of, and no smaller set of prefixes does."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import netaddr  # type: ignore[import-untyped] # it has no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ipamc.law.change import Days
from ipamc.lock.line_changes import line_changes
from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import Block, parse_block
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import Node
from ipamc.review.aggregates import (
    FilterLine,
    LabelError,
    PrefixChange,
    aggregates,
    by_label,
    by_pool,
    chosen,
    compare_prefixes,
    label_key,
)
from ipamc.review.shown_pools import Choice
from tests.support.shown import RACK_A, part, pool

AT = Place("nodes.yaml")
V4, V6 = parse_block("10.0.0.0/24"), parse_block("fd00::/120")


def block(family: int, length: int, number: int) -> Block:
    """Return a block in V4 or V6."""
    top = V4 if family == 4 else V6
    size = 1 << (8 - length)
    return Block(family, top.first + number % (1 << length) * size, top.prefix + length)


blocks = st.lists(
    st.builds(block, st.sampled_from([4, 6]), st.integers(0, 8), st.integers(0, 255)), max_size=40
)


def disjoint(every: Sequence[Block]) -> list[Block]:
    found: list[Block] = []
    for each in every:
        if not any(each.overlaps(other) for other in found):
            found.append(each)
    return found


@given(blocks)
def test_they_are_those_of_the_standard_library(every: list[Block]) -> None:
    v4, v6 = ([each for each in every if each.family == family] for family in (4, 6))
    wanted = list(map(str, ipaddress.collapse_addresses(ipaddress.IPv4Network(str(each)) for each in v4)))
    wanted += map(str, ipaddress.collapse_addresses(ipaddress.IPv6Network(str(each)) for each in v6))
    assert [str(each) for each in aggregated(every)] == wanted


@given(blocks)
def test_they_are_those_of_netaddr(every: list[Block]) -> None:
    assert [str(each) for each in aggregated(every)] == list(
        map(str, netaddr.cidr_merge(list(map(str, every))))
    )


@given(blocks)
def test_they_cover_exactly_and_no_two_of_them_are_one(every: list[Block]) -> None:
    """A set of prefixes is the smallest if no two halves of a prefix are both in it, and none is in another."""
    found = list(aggregated(every))
    assert {(each.family, n) for each in found for n in range(each.first, each.last + 1)} == {
        (each.family, n) for each in every for n in range(each.first, each.last + 1)
    }
    assert len(disjoint(found)) == len(found)
    halves = {
        (each.family, each.first >> (8 - (each.prefix - (24 if each.family == 4 else 120))), each.prefix)
        for each in found
    }
    assert not any((family, number ^ 1, prefix) in halves for family, number, prefix in halves)


@given(blocks)
def test_each_block_counts_in_one_of_them(every: list[Block]) -> None:
    mine = disjoint(every)
    found = aggregates(mine)
    assert [each.block for each in found] == list(aggregated(mine))
    for each in found:
        inside = [one for one in mine if each.block.contains(one)]
        assert each.blocks == len(inside)
        assert each.longest == max(one.prefix for one in inside)


states = st.lists(
    st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(State)), min_size=40, max_size=40
)


def lines_of(every: Sequence[Block], kinds: Sequence[tuple[str, State]]) -> list[Line]:
    made = [
        Line(
            block=each,
            pool=name,
            node="n",
            state=state,
            since="2026-11-21" if state is State.QUARANTINED else "",
        )
        for each, (name, state) in zip(disjoint(every), kinds, strict=False)
    ]
    return sorted(made, key=lambda line: line.block)


def compared(before: Sequence[Line], after: Sequence[Line]) -> tuple[PrefixChange, ...]:
    differing = line_changes(before, after, Days("2026-11-22", 14, 14)).lines
    return compare_prefixes(before, after, differing)


@given(blocks, states, blocks, states)
def test_a_difference_leads_from_one_to_the_other(
    one: list[Block], kinds: list[tuple[str, State]], other: list[Block], other_kinds: list[tuple[str, State]]
) -> None:
    before, after = lines_of(one, kinds), lines_of([*one[: len(one) // 2], *other], other_kinds)

    def prefixes(lines: list[Line], name: str, family: int) -> set[Block]:
        return set(
            aggregated(
                each.block
                for each in lines
                if each.in_use and each.pool == name and each.block.family == family
            )
        )

    changes = {(change.pool, change.family): change for change in compared(before, after)}
    for name in ("a", "b", ""):
        for family in (4, 6):
            old, new = prefixes(before, name, family), prefixes(after, name, family)
            change = changes.get((name, family))
            assert (change is None or change.prefixes == ((), ())) == (old == new)
            if change:
                removed, added = map(set, change.prefixes)
                assert (old - removed) | added == new
                assert removed <= old
                assert not added & old


@given(blocks, states, blocks, states)
def test_no_filter_lacks_a_block_at_any_time(
    one: list[Block], kinds: list[tuple[str, State]], other: list[Block], other_kinds: list[tuple[str, State]]
) -> None:
    """Not in the base, not when lines were added, not after the apply; and then nothing is left over."""
    before, after = lines_of(one, kinds), lines_of([*one[: len(one) // 2], *other], other_kinds)

    def filters(lines: list[Line]) -> set[tuple[str, FilterLine]]:
        empty = compared([], lines)
        return {(change.pool, line) for change in empty for line in change.added}

    def passes(some: set[tuple[str, FilterLine]], line: Line) -> bool:
        return any(
            pool == line.pool and of.block.contains(line.block) and line.block.prefix <= of.longest
            for pool, of in some
        )

    changes = compared(before, after)
    between = filters(before) | {(change.pool, line) for change in changes for line in change.added}
    assert all(passes(between, line) for line in (*before, *after) if line.in_use)
    left = between - {(change.pool, line) for change in changes for line in change.removed}
    assert left == filters(after)


def test_nothing_changes_when_a_block_changes_its_node() -> None:
    held = Line(block=V4, pool="a", node="n1")
    assert compared([held], [Line(block=V4, pool="a", node="n2")]) == ()
    left = Line(block=V4, pool="a", node="n1", state=State.QUARANTINED, since="2026-11-21")
    (change,) = compared([held], [left])
    assert (change.pool, change.family, change.prefixes) == ("a", 4, ((V4,), ()))
    assert compared([left], []) == ()


def line(text: str, name: str, node: str) -> Line:
    return Line(block=parse_block(text), pool=name, node=node)


LINES = (
    line("10.0.0.0/27", "rack-a", "n1"),
    line("10.0.0.32/27", "rack-a", "n2"),
    line("172.16.0.0/27", "", "n3"),
    line("fd00::/64", "rack-a", "n1"),
)


def lock(lines: tuple[Line, ...] = LINES) -> Lock:
    return Lock(cluster="lab", mode=Mode.KUBERNETES, shards=1, lines=lines)


def cluster(**labels: dict[str, str]) -> Cluster:
    nodes = tuple(Node(name=name, labels=of, at=AT) for name, of in labels.items())
    return Cluster(
        name="lab",
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=Mode.KUBERNETES,
        families=(4, 6),
        pools=(RACK_A, pool("spare", part(27, "10.9.0.0/24"))),
        nodes=nodes,
    )


def test_by_pool() -> None:
    """A pool without blocks is told, with the families that it may have: its list must not be missing."""
    groups = by_pool(cluster(), chosen(cluster(), lock(), Choice()))
    found = [
        (group.name, {family: [str(each.block) for each in of] for family, of in group.prefixes.items()})
        for group in groups
    ]
    assert found == [
        ("rack-a", {4: ["10.0.0.0/26"], 6: ["fd00::/64"]}),
        ("spare", {4: []}),
        ("", {4: ["172.16.0.0/27"]}),
    ]
    assert [(group.blocks, group.nodes) for group in groups] == [(3, 2), (0, 0), (1, 1)]


def test_a_renamed_pool_has_the_lines_in_its_ranges() -> None:
    """Until the next compile the lock has the old name: its list would be empty, and let nothing pass."""
    old = tuple(structs.replace(each, pool="old" if each.pool else "") for each in LINES)
    assert by_pool(cluster(), chosen(cluster(), lock(old), Choice())) == by_pool(
        cluster(), chosen(cluster(), lock(), Choice())
    )


def test_choices() -> None:
    def names(**choice: object) -> list[str]:
        found = chosen(cluster(), lock(), Choice(**choice))  # type: ignore[arg-type]  # a short cut of this test
        return [f"{name}: {len(lines)}" for name, lines in found.items()]

    assert names() == ["rack-a: 3", "spare: 0", ": 1"]
    assert names(pools=("rack-*",)) == ["rack-a: 3"]
    assert names(nodes=("n1",)) == ["rack-a: 2", "spare: 0"]
    assert names(states=frozenset({State.QUARANTINED})) == ["rack-a: 0", "spare: 0"]


def test_by_label() -> None:
    """Of a node that is not in the inventory, or without the label, nobody knows the value."""
    site = cluster(n1={"zone": "a"}, n2={"zone": "b"}, n4={"zone": "c"})
    groups = by_label(site, chosen(site, lock(), Choice()), "zone")
    found = [
        (group.name, {family: [str(each.block) for each in of] for family, of in group.prefixes.items()})
        for group in groups
    ]
    assert found == [
        ("a", {4: ["10.0.0.0/27"], 6: ["fd00::/64"]}),
        ("b", {4: ["10.0.0.32/27"], 6: []}),
        ("c", {4: [], 6: []}),
        ("", {4: ["172.16.0.0/27"]}),
    ]


ZONE = "topology.kubernetes.io/zone"


def test_labels_by_their_short_name() -> None:
    assert label_key(cluster(n1={ZONE: "a"}), "zone") == ZONE
    assert label_key(cluster(n1={ZONE: "a", "zone": "b"}), "zone") == "zone"
    with pytest.raises(LabelError, match=r"may be failure\.example/zone or topology"):
        label_key(cluster(n1={ZONE: "a"}, n2={"failure.example/zone": "a"}), "zone")
    with pytest.raises(LabelError, match=r"no node has a label rak: did you mean 'rack'\?"):
        label_key(cluster(n1={"rack": "a"}), "rak")
