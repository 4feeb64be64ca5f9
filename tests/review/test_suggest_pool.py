"""Free space for a pool: where it is looked for, which place comes first, and that nobody has any of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.address_sets import disjoint
from ipamc.model.cidr import BITS, Block, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Place
from ipamc.model.selector.selector import Selector
from ipamc.review.suggest_pool import Member, Suggestions, Wish, suggest

AT = Place("pools.yaml")
EVERYTHING: Selector = object()  # type: ignore[assignment]  # no selector is asked here


def pool_of(name: str, *ranges: str) -> Pool:
    """Return a pool with these ranges, of both families where they are."""
    blocks = [parse_block(text) for text in ranges]
    parts = {
        family: PoolFamily(
            family=family,
            ranges=tuple(Range(block, AT) for block in blocks if block.family == family),
            block_size=27 if family == 4 else 120,
            at=AT,
        )
        for family in sorted({block.family for block in blocks})
    }
    return Pool(name=name, at=AT, families=parts, selector=EVERYTHING, selector_at=AT)


def member(name: str, *pools: Pool, taken: str = "", native: str = "") -> Member:
    """Return a cluster that has these pools, and beside them what `taken` lists."""
    cluster = Cluster(
        name=name,
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=Mode.CLUSTER_POOL,
        pools=pools,
        native_routing=Range(parse_block(native), AT) if native else None,
    )
    found = Member(cluster=cluster, used=())
    return Member(cluster=cluster, used=(*found.ranges, *map(parse_block, taken.split())))


def ask(members: list[Member], size: int, pool: str = "", within: str = "", family: int = 4) -> Suggestions:
    """Ask for the first cluster."""
    cluster = members[0].cluster
    wish = Wish(
        size=size,
        family=family,
        within=tuple(parse_block(text, pods=False) for text in within.split()),
        pool=cluster.pools_by_name[pool] if pool else None,
        most=5,
    )
    return suggest(members, cluster, wish)


TABLE = {
    "a new pool joins a range of the cluster": (
        [member("lab", pool_of("a", "10.0.0.0/19"))],
        (19, "", ""),
        "10.0.32.0/19 10.0.64.0/19 10.0.128.0/19 10.1.0.0/19 10.2.0.0/19",
    ),
    "the half beside a range, also below it": (
        [member("lab", pool_of("a", "10.0.32.0/19"))],
        (19, "", ""),
        "10.0.0.0/19 10.0.64.0/19 10.0.128.0/19 10.1.0.0/19 10.2.0.0/19",
    ),
    "the larger the prefix that it makes, the better": (
        [member("lab", pool_of("a", "10.0.0.0/24", "10.0.2.0/25", "10.0.4.0/24", "10.0.6.0/23"))],
        (24, "", "10.0.0.0/20"),
        "10.0.5.0/24 10.0.1.0/24 10.0.3.0/24 10.0.8.0/24",
    ),
    "what joins the pool is before what joins another pool": (
        [member("lab", pool_of("a", "10.0.0.0/24"), pool_of("b", "10.0.9.0/24"))],
        (24, "b", "10.0.0.0/20"),
        "10.0.8.0/24 10.0.10.0/24 10.0.12.0/24 10.0.1.0/24 10.0.2.0/24",
    ),
    "else it shares a small prefix with the pool": (
        [member("lab", pool_of("a", "10.0.8.0/24"), taken="10.0.9.0/24")],
        (24, "a", "10.0.0.0/20"),
        "10.0.10.0/24 10.0.12.0/24 10.0.7.0/24",
    ),
    "another cluster's ranges, its blocks and what it excludes are taken": (
        [
            member("lab", pool_of("a", "10.0.0.0/24")),
            member("other", pool_of("a", "10.0.1.0/24"), taken="10.0.2.32/27 10.0.3.7/32"),
        ],
        (24, "", "10.0.0.0/21"),
        "10.0.4.0/24",
    ),
    "a hole of the right size is before a part of a large one": (
        [member("lab", pool_of("a", "10.9.0.0/24"), taken="10.0.0.0/25 10.0.0.192/26")],
        (26, "", "10.0.0.0/16"),
        "10.0.0.128/26 10.0.1.0/26 10.0.2.0/26 10.0.4.0/26 10.0.8.0/26",
    ),
    "inside nativeRoutingCIDR first": (
        [member("lab", pool_of("a", "10.0.0.0/24", "10.4.0.0/16"), native="10.0.0.0/23")],
        (24, "", "10.0.0.0/22 10.5.0.0/16"),
        "10.0.1.0/24 10.0.2.0/24 10.5.0.0/24",
    ),
    "where an end of a hole touches the range, that end": (
        [member("lab", pool_of("a", "10.0.128.0/17"))],
        (19, "", "10.0.0.0/16"),
        "10.0.96.0/19",
    ),
    "never what is for no pod": ([member("lab")], (8, "", "126.0.0.0/7 224.0.0.0/3"), "126.0.0.0/8"),
    "full": ([member("lab", pool_of("a", "10.0.0.0/24"))], (25, "", "10.0.0.0/24"), ""),
}


@pytest.mark.parametrize(("members", "asked", "expected"), TABLE.values(), ids=TABLE)
def test_the_order(members: list[Member], asked: tuple[int, str, str], expected: str) -> None:
    size, pool, within = asked
    found = ask(members, size, pool, within).found
    assert " ".join(str(place.block) for place in found) == expected


@pytest.mark.parametrize(
    ("members", "family", "expected"),
    [
        ([member("lab")], 4, "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"),
        ([member("lab", pool_of("a", "172.20.0.0/16"))], 4, "172.16.0.0/12"),
        ([member("lab", pool_of("a", "10.0.0.0/16"), native="10.0.0.0/14")], 4, "10.0.0.0/14 10.0.0.0/8"),
        ([member("lab"), member("other", pool_of("a", "100.64.0.0/16"))], 4, "100.64.0.0/10"),
        ([member("lab", pool_of("a", "198.18.0.0/16"))], 4, ""),
        ([member("lab", pool_of("a", "fd00:1:2:3::/64", "2001:db8::/64"))], 6, "fd00:1:2::/48"),
        ([member("lab", pool_of("a", "2001:db8::/64"))], 6, ""),
        ([member("lab", pool_of("a", "fd00:1::/32"))], 6, "fd00:1::/32"),
    ],
)
def test_where_addresses_of_the_owner_are(members: list[Member], family: int, expected: str) -> None:
    answer = ask(members, 24 if family == 4 else 64, family=family)
    assert " ".join(str(area.block) for area in answer.areas) == expected


def test_ipv6_joins_too() -> None:
    members = [member("lab", pool_of("a", "fd00:1:2:2::/64"), taken="fd00:1:2:3:8000::/65")]
    found = ask(members, 64, family=6).found
    assert [str(place.block) for place in found[:2]] == ["fd00:1:2:1::/64", "fd00:1:2:4::/64"]
    joined = ask([member("lab", pool_of("a", "fd00:1:2:2::/64"))], 64, family=6).found[0]
    assert (str(joined.block), str(joined.near[0].joined)) == ("fd00:1:2:3::/64", "fd00:1:2:2::/63")


SMALL = st.integers(0, 8).flatmap(
    lambda bits: st.integers(0, (1 << bits) - 1).map(
        lambda number: Block(4, (10 << 24) + (number << 8 - bits), 24 + bits)
    )
)


@given(st.lists(SMALL, max_size=8), st.lists(SMALL, max_size=4), st.integers(24, 32))
def test_nobody_has_any_of_it_and_nothing_free_is_missed(
    others: list[Block], own: list[Block], size: int
) -> None:
    ranges = [str(block) for number, block in enumerate(own) if disjoint(own[: number + 1])]
    members = [
        member("lab", *([pool_of("a", *ranges)] if ranges else [])),
        member("other", taken=" ".join(map(str, others))),
    ]
    taken = [block for found in members for block in found.used]
    answer = ask(members, size, within="10.0.0.0/24")
    for place in answer.found:
        assert place.block.prefix == size
        assert place.block.first % place.block.size == 0
        assert not any(place.block.overlaps(block) for block in taken)
        for near in place.near:  # what it is said to make is made
            pieces = [
                *(found for found in map(parse_block, ranges) if near.joined.contains(found)),
                place.block,
            ]
            assert near.joined == place.block or sum(piece.size for piece in pieces) == near.joined.size
            assert near.within.contains(place.block)
            assert near.within.contains(near.with_range)
    step = 1 << (BITS[4] - size)
    places = (Block(4, first, size) for first in range(10 << 24, (10 << 24) + 256, step))
    free = [block for block in places if not any(block.overlaps(other) for other in taken)]
    assert bool(free) == bool(answer.found)
    assert ask(list(reversed(members)), size, within="10.0.0.0/24").largest == answer.largest
