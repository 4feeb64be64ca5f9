"""Tables of one set of announcements, and what is no table: `tests/read/routes/` is what FRR 8.4.4, BIRD 2.0.12, GoBGP 3.10 and iproute2 6.1 printed.
Those of Junos, EOS, NX-OS and Cilium are written after their documentation and sources.
"""

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
BLUE = {"10.7.0.0/24": {"192.168.70.1"}}
"""A route of another VRF, or routing instance."""
OF_B = {block: hops for block, hops in BGP.items() if hops <= {"192.168.50.2", "2001:db8:50::2"}} | OTHER
"""What one node announces."""
OWN = {block: {"0.0.0.0"} for block in BGP | BOTH}  # noqa: S104 - no address: nodes announce it themselves
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
        ("junos.txt", BGP | BOTH | STATIC | SIX | BLUE),
        ("junos.json", BGP | BOTH | STATIC | SIX | BLUE),
        ("eos-route.json", BGP | BOTH | STATIC | BLUE),
        ("eos-route6.json", SIX),
        ("eos-bgp.json", BGP | BOTH),
        ("nxos-route.json", BGP | BOTH | STATIC | BLUE),
        ("nxos-bgp.json", BGP | BOTH),
        ("cilium-advertised.txt", BGP | BOTH),
        ("cilium-available.txt", OWN),
        ("cilium.json", OWN),
        ("cilium-node.txt", OF_B),
        ("cilium-shell.txt", {each: OF_B[each] for each in ("10.0.0.32/27", "10.0.0.128/27")}),
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


@pytest.mark.parametrize("name", ["junos.txt", "junos.json", "eos-route.json", "nxos-route.json"])
def test_a_route_has_its_vrf(name: str) -> None:
    table = read_routes(name, (SAMPLES / name).read_bytes())
    blue = {str(route.block) for route in table.routes if route.vrf == "blue"}
    assert blue == set(BLUE)
    assert {route.vrf for route in table.routes} <= {"", "default", "blue"}


@pytest.mark.parametrize("name", ["cilium-advertised.txt", "cilium-available.txt", "cilium.json"])
def test_a_route_of_cilium_has_its_node(name: str) -> None:
    """Peers are many, and each route is one; a row without a node is of the node above."""
    table = read_routes(name, (SAMPLES / name).read_bytes())
    found = {(str(route.block), route.node) for route in table.routes}
    names = {"192.168.50.1": "node-a", "192.168.50.2": "node-b", "2001:db8:50::2": "node-b", "192.168.50.3": "node-c", "192.168.50.4": "node-d"}  # fmt: skip
    assert found == {(block, names[hop]) for block, hops in (BGP | BOTH).items() for hop in hops}
    assert len(table.routes) == len(found)
    assert not table.of_node
    assert read_routes("table", (SAMPLES / "cilium-node.txt").read_bytes()).of_node


def test_the_place_of_a_route_in_json_is_in_its_vrf() -> None:
    text = (SAMPLES / "eos-route.json").read_text().replace("10.7.0.0/24", "10.0.0.0/27")
    table = read_routes("table", text.encode())
    first, other = (route for route in table.routes if str(route.block) == "10.0.0.0/27")
    assert table.at(first).line < text.count("\n", 0, text.index('"blue"')) < table.at(other).line


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


JUNOS = "inet.0: 3 destinations, 3 routes (3 active, 0 holddown, 0 hidden)\n"
JUNOS_JSON = '{"route-information": [{"route-table": [{"table-name": [{"data": "inet.0"}]%s}]}]}'


@pytest.mark.parametrize("text", ["{}", "[]", "Network not in table\n", JUNOS, JUNOS_JSON % "", '{"vrfs": {"default": {"routes": {}}}}', '{"node-a": []}'])  # fmt: skip
def test_an_empty_table(text: str) -> None:
    assert read_routes("table", text.encode()).routes == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello\n", "this is not a routing table that ipamc reads"),
        ('{"items": [], "kind": "List"}', "Expected `array`, got `str`"),
        ('{"10.0.0.0/24": [{"name": "a"}]}', "10.0.0.0/24 has neither nexthops nor attrs"),
        ('{"10.0.0.1/24": [{"nexthops": [{"ip": "10.0.0.9"}]}]}', "'10.0.0.1/24' has host bits set"),
        ('{"10.0.0.0/24": [{"nexthops": [{"ip": "x"}]}]}', "'x' is not an IP address"),
        ('[{"dst": 1}]', "Expected `str`, got `int`"),
        ("[" * 100_000, "this JSON is not a routing table that ipamc reads"),
        ('{"10.0.0.0/24": [', "Input data was truncated"),
        ("1007-10.0.0.0/24 unicast\n", "this is not a routing table that ipamc reads"),
        (
            JUNOS + "10.0.0.0/24 (1 entry, 1 announced)\n        *BGP    Preference: 170/-101\n",
            "line 2 has a prefix in an unknown format",
        ),
        (
            JUNOS + "* ? 10.0.0.0/24        B 170        100            >10.1.0.5\n",
            "line 2 has a prefix in an unknown format",
        ),
        (
            "VRouter   Prefix   NextHop   Age   Attrs\n64512     10.0.0.0/24\n",
            "line 2 has a prefix in an unknown format",
        ),
        (JUNOS_JSON % ', "rt": ["x"]', "'rt' is not an object"),
        (
            JUNOS_JSON % ', "rt": [{"rt-destination": [{"data": "mpls"}], "rt-entry": [{}]}]',
            "'mpls' is not an IP address",
        ),
        (
            JUNOS_JSON % ', "rt": [{"rt-destination": ["x"]}]',
            "'rt-destination' is not an object",
        ),
        (JUNOS_JSON[:60], "Input data was truncated"),
        ('{"vrfs": {"default": {"peers": {}}}}', "VRF default has neither routes nor bgpRouteEntries"),
        (
            '{"vrfs": {"default": {"routes": {"10.0.0.0/24": 7}}}}',
            "'10.0.0.0/24' is not an object",
        ),
        (
            '{"vrfs": {"default": {"routes": {"10.0.0.0/24": {"vias": [{"nexthopAddr": "x"}]}}}}}',
            "'x' is not an IP address",
        ),
        (
            '{"TABLE_vrf": {"ROW_vrf": {"TABLE_neighbor": {}}}}',
            "TABLE_neighbor does not belong to a routing table",
        ),
        (
            '{"TABLE_vrf": {"ROW_vrf": {"TABLE_prefix": {"ROW_prefix": {"TABLE_path": 1, "ipprefix": "10.0.0.0/24"}}}}}',
            "'TABLE_path' is not an object",
        ),
        (
            '{"TABLE_vrf": {"ROW_vrf": {"TABLE_prefix": {"ROW_prefix": {"ROW_path": {"ipnexthop": "10.0.0.1"}}}}}}',
            "'' is not an IP address",
        ),
        ('{"TABLE_vrf": ' + '{"ROW_vrf": ' * 100_000, "this JSON is not a routing table that ipamc reads"),
        (
            '{"TABLE_vrf": ' + '{"ROW_vrf": ' * 900 + "1" + "}" * 901,
            "this JSON is not a routing table that ipamc reads",
        ),
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
        "1.1.1.1/1  *[BGP/170] ",
        "*[B",
        "  >  to 1.1.1.1 via ",
        "Node VRouter ",
        "inet.0.inet6.0",
    ],
)
@pytest.mark.parametrize(
    "start",
    [
        "10.0.0.0/27 via 192.168.50.1 dev eth0\n",
        f"{JUNOS}10.0.0.0/27  *[BGP/170] 1d\n  > to 192.168.50.1 via ge-0/0/0\n",
        "Node     VRouter   Prefix        NextHop   Age   Attrs\nnode-a   64512     10.0.0.0/27   0.0.0.0   1s    []\n",
    ],
)
def test_a_text_of_1_mb_takes_linear_time(start: str, piece: str) -> None:
    text = start + piece * (1_000_000 // len(piece))
    assert read_routes("table", text.encode()).routes
