"""Prefix lists of routers, read back by the grammar of each: what they let pass, and what not."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import parse_block
from ipamc.model.limits import PREFIX_LIST_NAME
from ipamc.report.prefixes import FORMATS, ClusterAggregates, list_name
from ipamc.review.aggregates import LineGroup, aggregates

Lists = dict[str, list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int]]]
"""Entries by name: a prefix, and the longest route that passes."""


def group(name: str, *blocks: str, families: tuple[int, ...] = (4, 6)) -> LineGroup:
    every = [parse_block(text) for text in blocks]
    found = {
        family: [each for each in aggregates(every) if each.block.family == family] for family in families
    }
    return LineGroup(name=name, blocks=len(every), nodes=1, prefixes=found)


LAB = ClusterAggregates(
    name="lab",
    label="",
    states=("held", "pending"),
    groups=(
        group(
            "rack-a",
            "10.0.0.0/26",
            "10.0.0.64/26",
            "10.0.0.128/25",
            "10.0.2.0/26",
            "fd00::/64",
            "fd00:0:0:1::/64",
        ),
        group("spare"),
    ),
)


def test_frr() -> None:
    assert FORMATS["frr"]([LAB], "within") == (
        """\
! by ipamc aggregates --match within: prefixes and the routes of blocks in them
! cluster lab, pool rack-a: 6 blocks
ip prefix-list ipamc_lab_rack-a_v4 seq 5 permit 10.0.0.0/24 le 26
ip prefix-list ipamc_lab_rack-a_v4 seq 10 permit 10.0.2.0/26
ipv6 prefix-list ipamc_lab_rack-a_v6 seq 5 permit fd00::/63 le 64
! cluster lab, pool spare: 0 blocks
ip prefix-list ipamc_lab_spare_v4 seq 5 deny any
ipv6 prefix-list ipamc_lab_spare_v6 seq 5 deny any
"""
    )


def test_junos() -> None:
    assert FORMATS["junos"]([LAB], "within") == (
        """\
policy-options {
    # by ipamc aggregates --match within: prefixes and the routes of blocks in them
    # cluster lab, pool rack-a: 6 blocks
    replace: route-filter-list ipamc_lab_rack-a_v4 {
        10.0.0.0/24 upto /26;
        10.0.2.0/26 exact;
    }
    replace: route-filter-list ipamc_lab_rack-a_v6 {
        fd00::/63 upto /64;
    }
    # cluster lab, pool spare: 0 blocks
    replace: route-filter-list ipamc_lab_spare_v4 {
        0.0.0.0/32 exact;
    }
    replace: route-filter-list ipamc_lab_spare_v6 {
        ::/128 exact;
    }
}
"""
    )


def test_ios_xr() -> None:
    assert FORMATS["ios-xr"]([LAB], "exact") == (
        """\
! by ipamc aggregates --match exact: only these prefixes
! cluster lab, pool rack-a: 6 blocks
prefix-set ipamc_lab_rack-a_v4
  10.0.0.0/24,
  10.0.2.0/26
end-set
prefix-set ipamc_lab_rack-a_v6
  fd00::/63
end-set
! cluster lab, pool spare: 0 blocks
prefix-set ipamc_lab_spare_v4
  0.0.0.0/32
end-set
prefix-set ipamc_lab_spare_v6
  ::/128
end-set
"""
    )


def read_frr(text: str) -> Lists:
    lists: Lists = {}
    sequence: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("!"):
            continue
        found = re.fullmatch(
            r"(ip|ipv6) prefix-list (\S+) seq (\d+) (permit|deny) (any|\S+/\d+)(?: le (\d+))?", line
        )
        assert found, line
        command, name, number, action, prefix, le = found.groups()
        assert int(number) == sequence.get(name, 0) + 5
        sequence[name] = int(number)
        entries = lists.setdefault(name, [])
        if action == "permit":
            entries.append(entry(prefix, le))
            assert (entries[-1][0].version == 4) == (command == "ip")
    return lists


def read_junos(text: str) -> Lists:
    body = re.fullmatch(r"policy-options \{\n(.*)\}\n", re.sub(r" *#.*\n", "", text), re.DOTALL)
    assert body
    lists: Lists = {}
    pattern = r"    replace: route-filter-list (\S+) \{\n((?:        \S+ (?:exact|upto /\d+);\n)+)    \}\n"
    assert re.fullmatch(f"(?:{pattern})*", body[1])
    for name, entries in re.findall(pattern, body[1]):
        found = re.findall(r"(\S+) (?:exact|upto /(\d+));", entries)
        lists[name] = [entry(*each) for each in found]
    return lists


def read_ios_xr(text: str) -> Lists:
    lists: Lists = {}
    pattern = r"prefix-set (\S+)\n((?:  [^\n]+,\n)*  [^\n,]+\n)end-set\n"
    bare = re.sub(r"!.*\n", "", text)
    assert re.fullmatch(f"(?:{pattern})*", bare)
    for name, entries in re.findall(pattern, bare):
        found = re.findall(r"  (\S+/\d+)(?: le (\d+))?,?\n", entries)
        lists[name] = [entry(*each) for each in found]
    return lists


def entry(prefix: str, longest: str | None) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int]:
    network = ipaddress.ip_network(prefix)
    if longest:  # a router refuses an upper bound that is not above the length
        assert network.prefixlen < int(longest) <= network.max_prefixlen
    return network, int(longest or network.prefixlen)


READERS = {"frr": read_frr, "junos": read_junos, "ios-xr": read_ios_xr}


def passes(lists: Lists, name: str, route: str) -> bool:
    network = ipaddress.ip_network(route)
    return any(
        network.version == prefix.version
        and network.subnet_of(prefix)  # type: ignore[arg-type]  # of the same version
        and network.prefixlen <= longest
        for prefix, longest in lists[name]
    )


@pytest.mark.parametrize("router", FORMATS)
def test_what_passes(router: str) -> None:
    within = READERS[router](FORMATS[router]([LAB], "within"))
    exact = READERS[router](FORMATS[router]([LAB], "exact"))
    assert within.keys() == exact.keys()
    for route, by_within, by_exact in (
        ("10.0.0.0/24", True, True),
        ("10.0.0.64/26", True, False),
        ("10.0.0.0/27", False, False),
        ("10.0.0.0/23", False, False),
        ("10.0.2.0/26", True, True),
        ("10.0.2.64/26", False, False),
    ):
        assert passes(within, "ipamc_lab_rack-a_v4", route) == by_within, route
        assert passes(exact, "ipamc_lab_rack-a_v4", route) == by_exact, route
    assert passes(within, "ipamc_lab_rack-a_v6", "fd00:0:0:1::/64")
    for route in ("0.0.0.0/0", "10.0.0.0/26", "10.0.0.0/8"):
        assert not passes(within, "ipamc_lab_spare_v4", route)


addresses = st.builds(
    lambda length, number: (
        f"10.0.{number % (1 << (length - 16)) * (1 << (32 - length)) // 256}.{number * (1 << (32 - length)) % 256}/{length}"
    ),
    st.integers(24, 30),
    st.integers(0, 255),
)


@given(st.lists(addresses, max_size=12), st.sampled_from(list(FORMATS)))
def test_every_block_passes_and_none_beside_the_aggregates(texts: list[str], router: str) -> None:
    every = [parse_block(text) for text in texts]
    mine = [one for n, one in enumerate(every) if not any(one.overlaps(other) for other in every[:n])]
    of = ClusterAggregates(
        name="lab", label="", states=(), groups=(group("a", *map(str, mine), families=(4,)),)
    )
    lists = READERS[router](FORMATS[router]([of], "within"))
    assert all(passes(lists, "ipamc_lab_a_v4", str(one)) for one in mine)
    held = [ipaddress.IPv4Network(str(one)) for one in mine]
    for n in range(0, 65536, 16):
        route = ipaddress.IPv4Network((int(ipaddress.IPv4Address("10.0.0.0")) + n, 28))
        if not any(route.overlaps(other) for other in held):
            assert not passes(lists, "ipamc_lab_a_v4", str(route))


NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,70}[A-Za-z0-9])?", fullmatch=True)
CLUSTERS = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,70}[a-z0-9])?", fullmatch=True)


@given(CLUSTERS, NAMES | st.just(""), CLUSTERS, NAMES | st.just(""))
def test_names_are_safe_and_no_two_groups_share_one(
    one: str, group_of: str, other: str, other_of: str
) -> None:
    name, second = list_name(one, group_of, 4), list_name(other, other_of, 4)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name)
    assert len(name) <= PREFIX_LIST_NAME
    assert (name == second) == ((one, group_of) == (other, other_of))
    assert list_name(one, group_of, 6) != name


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (("lab", "rack-a"), "ipamc_lab_rack-a_v4"),
        (("lab", ""), "ipamc_lab__none_v4"),
        (("lab-a", "b"), "ipamc_lab-a_b_v4"),
        (("lab", "rack.a"), "ipamc__b0f017fc0341_lab_rack-a_v4"),
    ],
)
def test_names(pair: tuple[str, str], name: str) -> None:
    assert list_name(*pair, 4) == name
