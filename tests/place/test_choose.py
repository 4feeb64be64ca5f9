"""Pools and nodes by the thousand: what they have in common is made once, and what has no bound is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cluster import Cluster, Mode, Pool, SizeClass
from ipamc.model.diagnostics import Refused
from ipamc.model.node import Node
from ipamc.model.plan import Want
from ipamc.model.selector.selector import Selector, parse_calico
from ipamc.place import candidates
from ipamc.place.candidates import assign, rank
from tests.support.builders import AT, node, pool
from tests.support.counting import counted


def built(pools: list[Pool], nodes: list[Node]) -> Cluster:
    return Cluster(
        name="built",
        at=AT,
        cilium=(1, 18),
        mode=Mode.CLUSTER_POOL,
        managed_by="none",
        pools=tuple(sorted(pools, key=lambda each: each.name)),
        nodes=tuple(nodes),
    )


def racks(count: int) -> Cluster:
    """A pool for each rack."""
    return built(
        [pool(f"p{i}", f"10.{i >> 8}.{i & 255}.0/24", nodes=f"rack == 'r{i}'") for i in range(count)],
        [node(f"n{i:05d}", {"rack": f"r{i}"}) for i in range(count)],
    )


def alike(count: int) -> Cluster:
    """Pools of one selector, and nodes that differ in the label that it names."""
    return built(
        [pool(f"p{i:05d}", f"10.{i >> 8}.{i & 255}.0/24", nodes="has(rack)") for i in range(count)],
        [node(f"n{i:05d}", {"rack": f"r{i}"}) for i in range(count)],
    )


@pytest.mark.parametrize("count", [50, 200])
def test_a_pool_is_asked_about_the_nodes_that_may_be_its_own(count: int) -> None:
    with counted(Selector, "matches") as asked:
        wants = assign(racks(count))
    assert [want.offers[0].pool.name for want in wants] == [f"p{number}" for number in range(count)]
    assert asked.call_count <= 2 * count


@pytest.mark.parametrize("count", [20, 80])
def test_nodes_with_the_same_candidates_share_them(count: int) -> None:
    """Pools of one selector stand in for each other: a list of its own for each of them would be a list squared."""
    with counted(Selector, "matches") as asked:
        wants = assign(alike(count))
    assert asked.call_count == count
    assert len({id(want.offers) for want in wants}) == 1
    assert len({id(other) for want in wants for each in want.offers for other in each.instead}) == count
    first, *_, last = wants[0].offers
    assert [other.pool.name for other in first.instead] == [f"p{i:05d}" for i in range(1, count)]
    assert [other.pool.name for other in last.instead] == [f"p{i:05d}" for i in range(count - 1)]


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))
SELECTORS = st.sampled_from(
    [
        "",
        "a == 'x'",
        "a != 'x'",
        "has(b)",
        "!has(b)",
        "a in {}",
        "a == 'x' && b in {'x', 'y'}",
        "a == 'x' || b == 'y'",
        "a contains 'x' || !has(c)",
        "!(a == 'x' || has(b))",
        "c starts with 'y' && (a == 'x' || b == 'x')",
    ]
)


@given(
    st.lists(
        st.tuples(SELECTORS, SELECTORS, st.integers(0, 2), st.sets(st.integers(0, 7), max_size=3)), max_size=8
    ),
    st.lists(LABELS, min_size=1, max_size=6),
    st.sets(st.integers(0, 7), max_size=2),
)
def test_offers_are_those_of_the_plainest_reading(
    drawn: list[tuple[str, str, int, set[int]]], labels: list[dict[str, str]], pinning: set[int]
) -> None:
    pools = []
    for number, (selector, larger, priority, overflow) in enumerate(drawn):
        large = SizeClass(selector=parse_calico(larger), sizes={4: 25}, at=AT)
        pools.append(
            pool(
                f"p{number}",
                f"10.{number}.0.0/16",
                nodes=selector,
                priority=priority,
                overflow=tuple(f"p{other}" for other in sorted(overflow)),
                block_sizes=(large,) if len(larger) > 6 else (),
                disabled=number == 5,
                pins={"n0": (pool("x", f"10.{number}.0.0/26").families[4].ranges[0],)}
                if number in pinning
                else {},
            )
        )
    cluster = built(pools, [node(f"n{number}", each) for number, each in enumerate(labels)])
    for want in assign(cluster):
        assert plain(want) == expected(cluster, want.node)


Seen = tuple[str, int, bool, list[tuple[str, int]]]


def plain(want: Want) -> list[Seen]:
    """Return name, size and stand-ins of each offer."""
    return [
        (
            each.pool.name,
            each.sizes[4],
            each.pinned,
            [(other.pool.name, other.sizes[4]) for other in each.instead],
        )
        for each in want.offers
    ]


def expected(cluster: Cluster, of: Node) -> list[Seen]:
    def size(each: Pool) -> int:
        return next(
            (other.sizes[4] for other in each.block_sizes if other.selector.matches(of.labels, of.name)), 26
        )

    enabled = [each for each in sorted(cluster.pools, key=rank) if not each.disabled]
    serving = [each for each in enabled if each.selector.matches(of.labels, of.name)]

    def seen(each: Pool, *, pinned: bool) -> Seen:
        twins = (
            [other for other in serving if other is not each and other.selector == each.selector]
            if each in serving
            else []
        )
        spill = [
            other for name in each.overflow for other in enabled if other.name == name and other is not each
        ]
        others = [*twins, *(other for other in spill if other not in twins)]
        return each.name, size(each), pinned, [(other.name, size(other)) for other in others]

    first = [each for each in sorted(cluster.pools, key=rank) if of.name in each.pins]
    return [
        *(seen(each, pinned=True) for each in first),
        *(seen(each, pinned=False) for each in serving if each not in first),
    ]


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MOST_CANDIDATES", 399)
    unlike = built(
        [pool(f"p{i}", f"10.0.{i}.0/24", nodes=f"rack != 'r{i}'") for i in range(20)],
        [node(f"n{i:05d}", {"rack": f"r{i}"}) for i in range(22)],
    )
    with pytest.raises(Refused) as refused:
        assign(unlike)
    assert [finding.code for finding in refused.value.diagnostics] == ["IPC0312"]
    asked = built(
        [pool(f"p{i}", f"10.0.{i}.0/24", nodes=f"rack contains '{i}x'") for i in range(20)],
        list(unlike.nodes),
    )
    monkeypatch.setattr(candidates, "MOST_LABEL_TESTS", 20 * 22 - 1)
    with pytest.raises(Refused):
        assign(asked)
    assert assign(racks(100))


@pytest.mark.parametrize("count", [30, 120])
def test_tests_of_many_labels_are_found_by_the_labels_of_a_node(count: int) -> None:
    counted = Counting({"a3": "x"})
    for joint in (" || ", " && "):
        sign = "==" if joint == " || " else "!="
        selector = parse_calico(joint.join(f'a{number} {sign} "x"' for number in range(count)))
        counted.looks = 0
        assert selector.matches(counted, "n") is (joint == " || ")
        assert counted.looks <= 2


class Counting(dict[str, str]):
    """Labels that count how often one is looked up."""

    looks = 0

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.looks += 1
        return super().get(key, default)
