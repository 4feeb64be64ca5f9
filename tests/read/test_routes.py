"""Tables that real routers printed of one set of announcements, and what is no table: `tests/read/routes/` is of FRR 8.4.4, BIRD 2.0.12, GoBGP 3.10 and iproute2 6.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamc.model.cidr import address_text
from ipamc.model.diagnostics import Refused
from ipamc.model.dump import Table
from ipamc.model.limits import LARGEST_ROUTES
from ipamc.read.routes import read_routes

SAMPLES = Path(__file__).parent / "routes"
BGP = {
    "10.0.0.0/27": {"192.168.50.1"},
    "10.0.0.32/27": {"192.168.50.2"},
    "10.0.0.64/27": {"192.168.50.4"},
    "10.0.0.96/27": {"192.168.50.3"},
    "10.0.0.128/27": {"192.168.50.2"},
    "10.0.0.160/27": {"2001:db8:50::2"},
    "10.0.0.224/32": {"192.168.50.2"},
}
"""What nodes announced; 10.0.0.160/27 has an IPv6 next hop (RFC 8950)."""
SIX = {
    "fd00:1::/64": {"2001:db8:50::1"},
    "fd00:1:0:1::/64": {"2001:db8:50::2"},
    "fd00:1:0:3::/64": {"2001:db8:50::3"},
}
BOTH = {"10.0.0.192/27": {"192.168.50.1", "192.168.50.2"}}
"""Two nodes announced it, and the router uses both ways, or one of them."""
ONE, OTHER = ({"10.0.0.192/27": {f"192.168.50.{number}"}} for number in (1, 2))
STATIC = {
    "10.0.0.0/24": {"dropped"},
    "10.9.0.0/24": {"dropped"},
    "10.0.1.0/24": {"192.168.50.3", "192.168.50.4"},
}
RECURSIVE = {"10.0.2.0/24": {"192.168.60.1"}, "192.168.60.0/24": {"192.168.50.4"}}
RESOLVED = RECURSIVE | {"10.0.2.0/24": {"192.168.50.4"}}
"""The kernel has the way to the recursive next hop in its place."""


def used(table: Table) -> dict[str, set[str]]:
    """Return by prefix the next hops that the router uses; without networks that are connected."""
    found: dict[str, set[str]] = {}
    for route in table.routes:
        if route.used and (route.hop or route.drops):
            hop = address_text(*route.hop) if route.hop else "dropped"
            found.setdefault(str(route.block), set()).add(hop)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("frr-route.json", BGP | BOTH | STATIC | RECURSIVE),
        ("frr-route.txt", BGP | BOTH | STATIC | RECURSIVE),
        ("frr-route6.json", SIX),
        ("frr-route6.txt", SIX),
        ("frr-bgp.json", BGP | BOTH),
        ("frr-bgp.txt", BGP | BOTH),
        ("bird.txt", BGP | ONE | STATIC | SIX),
        ("bird-all.txt", BGP | ONE | STATIC | SIX),
        ("gobgp.json", BGP | OTHER),
        ("gobgp.txt", BGP | OTHER),
        ("gobgp6.json", SIX),
        ("ip.json", BGP | BOTH | STATIC | RESOLVED),
        ("ip.txt", BGP | BOTH | STATIC | RESOLVED),
        ("ip6.json", SIX),
        ("ip6.txt", SIX),
        ("ip-all.txt", BGP | BOTH | STATIC | RESOLVED | SIX),
    ],
)
def test_a_router_prints_its_table(name: str, expected: dict[str, set[str]]) -> None:
    data = (SAMPLES / name).read_bytes()
    table = read_routes(name, data)
    assert used(table) == expected
    assert table.unread == ()
    lines = data.decode().split("\n")
    for route in table.routes:
        at = table.at(route)
        hop = address_text(*route.hop) if route.hop else ""
        if name.endswith(".txt"):
            assert hop in "\n".join(lines[at.line - 1 : at.line + 3])
        else:
            assert lines[at.line - 1][at.column :].startswith(str(route.block).removesuffix("/32"))


MAPPED = {"fd00::/122": {"172.30.0.11"}, "fd00::40/122": {"172.30.0.12"}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("route6.txt", {}), ("route6.json", {}), ("bgp6.txt", MAPPED), ("bgp6.json", MAPPED)],
)
def test_agents_announced_ipv6_over_sessions_of_ipv4(name: str, expected: dict[str, set[str]]) -> None:
    """The next hop is an IPv4 address, mapped: the kernel of the router rejects the route that BGP has."""
    table = read_routes(name, (SAMPLES / f"frr-mapped-{name}").read_bytes())
    assert used(table) == expected
    hops = {str(route.block): {address_text(*route.hop)} for route in table.routes if route.hop}
    assert hops == MAPPED


def test_a_path_that_was_not_chosen_is_there() -> None:
    for name in ("gobgp.txt", "gobgp.json", "bird.txt"):
        table = read_routes(name, (SAMPLES / name).read_bytes())
        assert not all(route.used for route in table.routes)


@pytest.mark.parametrize("text", ["{}", "[]", "Network not in table\n"])
def test_an_empty_table(text: str) -> None:
    assert read_routes("table", text.encode()).routes == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello\n", "this is no routing table that ipamc reads"),
        ('{"items": [], "kind": "List"}', "Expected `array`, got `str`"),
        ('{"10.0.0.0/24": [{"name": "a"}]}', "10.0.0.0/24 has neither nexthops nor attrs"),
        ('{"10.0.0.1/24": [{"nexthops": [{"ip": "10.0.0.9"}]}]}', "'10.0.0.1/24' has host bits set"),
        ('{"10.0.0.0/24": [{"nexthops": [{"ip": "x"}]}]}', "'x' is not an IP address"),
        ('[{"dst": 1}]', "Expected `str`, got `int`"),
        ("[" * 100_000, "no routing table in JSON"),
        ('{"10.0.0.0/24": [', "Input data was truncated"),
        ("1007-10.0.0.0/24 unicast\n", "this is no routing table that ipamc reads"),
        (" " * (LARGEST_ROUTES + 1), f"the table has more than {LARGEST_ROUTES:,} bytes"),
    ],
)
def test_what_is_no_table(text: str, says: str) -> None:
    with pytest.raises(Refused) as caught:
        read_routes("table", text.encode())
    (finding,) = caught.value.diagnostics
    assert finding.code == "IPC0881"
    assert says in finding.message


def test_a_line_that_cannot_be_read_is_told() -> None:
    text = "10.0.0.0/27 via 192.168.50.1 dev eth0\n10.0.0.32/27 encap mpls 100 via\n10.0.0.65/27 via 192.168.50.1 dev eth0\n"
    table = read_routes("table", text.encode())
    assert (len(table.routes), table.unread) == (1, (2, 3))


@pytest.mark.parametrize(
    "piece",
    [
        "*",
        " ",
        "10.0.0.0/27 ",
        "B>* 10.0.0.0/27 [20/0] via ",
        "nexthop ",
        "a:" * 20,
        "\t",
        "S>* 1.1.1.1/1\n",
        "via ",
    ],
)
def test_a_line_of_any_length_takes_linear_time(piece: str) -> None:
    text = "10.0.0.0/27 via 192.168.50.1 dev eth0\n" + piece * (400_000 // len(piece))
    assert len(read_routes("table", text.encode()).routes) >= 0
