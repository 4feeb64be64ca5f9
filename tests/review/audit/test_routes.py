"""What an audit finds in the tables of routers: every prefix of a pool comes from the node that has the block."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ipamc.read.routes import read_routes
from tests.review.audit.test_faults import allocated, drop, ipam, leave, pod_cidrs, router
from tests.review.audit.worlds import WORLDS, inventory, living
from tests.support import fleet
from tests.support.living import Living, short

A, B, C, D = (f"10.1.0.{64 * number}/26" for number in range(4))
"""The blocks of nodes a to d."""
IP = {name: f"192.168.0.{number}" for number, name in enumerate("abcd", 1)}
SOUND = {A: "a", B: "b", C: "c", D: "d"}
ONE_BLOCK = ("cluster-pool", "kubernetes", "cluster-pool bgp")
OPERATORS = ("multi-pool pool", "multi-pool none")


def table(name: str, *lines: str) -> Any:
    """Return the table of a router as `ip route` prints it."""
    return read_routes(name, "\n".join(["192.168.0.0/24 dev eth0 proto kernel", *lines, ""]).encode())


def routes(*changes: dict[str, str]) -> list[str]:
    """Return lines of a table: a prefix with the node, or the address, that it leads to; "" leaves it out."""
    every = {prefix: hop for change in (SOUND, *changes) for prefix, hop in change.items()}
    return [f"{prefix} via {IP.get(hop, hop)} dev eth0 proto bgp" for prefix, hop in every.items() if hop]


def audited(live: Living, *lines: str) -> list[str]:
    live.routers = [table("leaf-1", *lines)]
    return short(live.audit())


@pytest.mark.parametrize("world", [world for world in WORLDS if world != "crd"])
def test_a_sound_table(world: str) -> None:
    assert audited(living(world), *routes()) == []


Plant = Callable[[Living], Any]


def nothing(live: Living) -> None:
    """Leave the cluster as it is."""


FAULTS: dict[str, tuple[tuple[str, ...], Plant, list[str], list[str]]] = {
    "two nodes with the block of each other, though objects are right": (
        (*ONE_BLOCK, *OPERATORS, "multi-pool node"),
        nothing,
        routes({C: "d", D: "c"}),
        ["error IPC0953"],
    ),
    "a second next hop that is wrong": (
        ONE_BLOCK,
        nothing,
        [*routes(), f"{A} via {IP['d']} dev eth0"],
        ["error IPC0953"],
    ),
    "an address of a block that leads elsewhere": (
        ONE_BLOCK,
        nothing,
        [*routes(), f"10.1.0.5 via {IP['d']} dev eth0"],
        ["error IPC0953"],
    ),
    "an address of a block from its own node": (
        ONE_BLOCK,
        nothing,
        [*routes(), f"10.1.0.5 via {IP['a']} dev eth0"],
        [],
    ),
    "an aggregate instead of a block": (
        ONE_BLOCK,
        nothing,
        routes({D: "", "10.1.0.0/24": "a"}),
        ["error IPC0953"],
    ),
    "an aggregate beside all blocks": (
        ONE_BLOCK,
        nothing,
        routes({"10.1.0.0/24": "192.168.0.250"}),
        ["note IPC0957"],
    ),
    "a block that the operator gave to another node": (
        OPERATORS,
        lambda live: (
            allocated(live, "a", "default", D),
            allocated(live, "d", "default", A),
            router(live, "a", "10.1.0.193"),
            router(live, "d", "10.1.0.1"),
            drop(
                live, *(f"{kind} default web-{node}" for kind in ("Pod", "CiliumEndpoint") for node in "ad")
            ),
        ),
        routes({A: "d", D: "a"}),
        ["note IPC0912"],
    ),
    "a block that is missing": (ONE_BLOCK, nothing, routes({B: ""}), ["error IPC0955"]),
    "a block that only a default route catches": (
        ONE_BLOCK,
        nothing,
        [*routes({B: ""}), "0.0.0.0/0 via 192.168.0.250 dev eth0"],
        ["warning IPC0955"],
    ),
    "a block that the router's own aggregate drops": (
        ONE_BLOCK,
        nothing,
        [*routes({B: ""}), "blackhole 10.1.0.0/24 proto static"],
        ["error IPC0955"],
    ),
    "a block in a prefix of another router": (
        ONE_BLOCK,
        nothing,
        routes({A: "", B: "", "10.1.0.0/25": "192.168.0.250"}),
        ["note IPC0957"],
    ),
    "every route in halves": (
        ONE_BLOCK,
        nothing,
        routes({A: "", "10.1.0.0/27": "a", "10.1.0.32/27": "a"}),
        [],
    ),
    "a block of a node that is down": (
        ONE_BLOCK,
        lambda live: leave(live, "b"),
        routes({B: ""}),
        ["warning IPC0925"],
    ),
    "next hops of leaves": (
        ONE_BLOCK,
        nothing,
        routes(dict.fromkeys(SOUND, "192.168.9.9")),
        ["note IPC0957"],
    ),
    "a block of the CiliumNode, not of git": (
        ("cluster-pool",),
        lambda live: pod_cidrs(live, "a", "10.1.0.0/27"),
        routes({A: "", "10.1.0.0/27": "a"}),
        ["error IPC0941"],
    ),
    "a block that a former agent announces": (
        ("cluster-pool",),
        lambda live: router(live, "a", "10.1.77.7"),
        routes(),
        ["error IPC0952"],
    ),
}


@pytest.mark.parametrize(
    ("world", "plant", "lines", "expected"),
    [
        pytest.param(world, plant, lines, expected, id=f"{name} - {world}")
        for name, (worlds, plant, lines, expected) in FAULTS.items()
        for world in worlds
    ],
)
def test_a_fault_is_found_and_nothing_else(
    world: str, plant: Plant, lines: list[str], expected: list[str]
) -> None:
    live = living(world)
    plant(live)
    assert audited(live, *lines) == expected


WIDE = "10.1.0.0/22"
FREE, RESERVED, QUARANTINED, MOVED = "10.1.2.0/26", "10.1.3.0/24", "10.1.0.192/26", "10.1.0.0/26"


def wide(*names: str) -> list[fleet.Document]:
    """Return the inputs of a cluster whose pool has room, and a reserved range."""
    more = {"reserved": [{"cidr": RESERVED, "reason": "gateways"}]}
    pool = fleet.pool("default", ipv4={"cidrs": [WIDE], "blockSize": 26}, **more)
    return [fleet.cluster("cluster-pool"), pool, inventory(*names)]


def roomy() -> Living:
    """Return it with node d gone, and node a moved to a fifth block."""
    first = fleet.compiled(fleet.as_json(wide(*"abcd")))
    moved = (
        first.lock.replace(
            f'{{"block":"{MOVED}","pool":"default","node":"a"}}',
            f'{{"block":"{MOVED}","pool":"default","node":"a","quarantined":"2026-11-21","moved":true}}',
        )
        + '{"block":"10.1.1.0/26","pool":"default","node":"a"}\n'
    )
    return Living.of(fleet.compiled(fleet.as_json(wide(*"abc")), moved, leave=["d"]))


NOW = [f"{block} via {IP[node]} dev eth0" for node, block in (("a", "10.1.1.0/26"), ("b", B), ("c", C))]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{FREE} via {IP['b']} dev eth0", f"{FREE} leads to node b, but no node holds it"),
        (
            f"{FREE} via 192.168.9.9 dev eth0",
            f"{FREE} leads to 192.168.9.9, which is not a node's address, but no node holds it",
        ),
        (
            "10.1.3.8 via 192.168.9.9 dev eth0",
            "10.1.3.8/32 leads to 192.168.9.9, which is not a node's address, but it is reserved",
        ),
        (
            f"{D} via 192.168.0.4 dev eth0",
            f"{D} leads to 192.168.0.4, which is not a node's address, but it has been in quarantine since 2026-11-21 (node d)",
        ),
        (
            f"{D} via {IP['b']} dev eth0",
            f"{D} leads to node b, but it has been in quarantine since 2026-11-21 (node d)",
        ),
        (
            f"{MOVED} via {IP['a']} dev eth0",
            f"{MOVED} leads to node a, but it has been in quarantine since 2026-11-21 (node a)",
        ),
    ],
)
def test_a_block_that_nobody_holds_is_still_announced(line: str, says: str) -> None:
    live = roomy()
    assert audited(live, *NOW) == []
    assert audited(live, *NOW, f"blackhole {FREE} proto static") == []
    assert audited(live, *NOW, line) == ["warning IPC0954"]
    (found,) = live.audit()
    assert found.message == says
    assert found.at.line == 5


def test_both_ends_of_a_wrong_next_hop_have_places() -> None:
    live = living("cluster-pool")
    assert audited(live, *routes({C: "d", D: "c"})) == ["error IPC0953"]
    (found,) = live.audit()
    assert found.message == f"{C} leads to node d, but c holds it; 2 routes to wrong nodes; 2 nodes: c, d"
    assert (found.at.path, found.at.line) == ("leaf-1", 4)
    assert [(each.at.path, each.label) for each in found.also] == [
        ("dump.json", "d has the address 192.168.0.4"),
        ("dump.json", f"c, which holds {C}"),
        ("ipam.lock", f"the lock has {C} for it"),
        ("leaf-1", f"{D} leads to c"),
        ("dump.json", "c has the address 192.168.0.3"),
        ("dump.json", f"d, which holds {D}"),
        ("ipam.lock", f"the lock has {D} for it"),
    ]


def test_each_router_is_one_and_is_judged_alone() -> None:
    live = living("cluster-pool")
    live.routers = [
        table("leaf-1", *routes()),
        table("leaf-2", *routes({A: ""}), f"{D} encap mpls"),
        table("leaf-3"),
    ]
    found = live.audit()
    assert [(each.severity.word, each.code, each.at.path, each.message) for each in found] == [
        ("error", "IPC0955", "leaf-2", f"no route to {A} of node a"),
        ("note", "IPC0957", "leaf-2", "line 5 has a prefix, but cannot be read"),
        ("error", "IPC0955", "leaf-3", f"no route to {A} of node a; 4 of 4 blocks: {A}, {B}, {C}, {D}"),
    ]


def test_ipv6_and_ipv4_by_an_ipv6_next_hop() -> None:
    live = living("cluster-pool dual")
    for name, ip in IP.items():
        addresses = live[f"Node {name}"]["status"]["addresses"]
        addresses.append({"type": "InternalIP", "address": f"2001:db8::{ip[-1]}"})
    six = [f"fd00:1::{64 * number:x}/122 via 2001:db8::{number + 1} dev eth0" for number in range(4)]
    assert audited(live, *routes(), *six) == []
    four = [f"{block} via inet6 2001:db8::{IP[node][-1]} dev eth0" for block, node in SOUND.items()]
    assert audited(live, *four, *six) == []
    assert audited(live, *routes(), *six[:3], six[3].replace("::4 ", "::1 ")) == ["error IPC0953"]
    assert audited(live, *routes(), *six[:3]) == ["error IPC0955"]
    assert audited(live, *routes({A: "d"}), *six) == ["error IPC0953"]


def test_an_aggregate_of_which_nothing_arrives() -> None:
    live = Living.of(fleet.compiled(fleet.as_json(
        [fleet.cluster("cluster-pool"), fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/25", "10.2.0.0/24"], "blockSize": 26}), inventory(*"abcd")]
    )))  # fmt: skip
    there = [f"10.1.0.{64 * number}/26 via 192.168.0.{number + 1} dev eth0" for number in range(2)]
    assert audited(live, *there) == ["error IPC0956"]
    (found,) = live.audit()
    assert (
        found.message
        == "no route to any of 2 blocks of 2 nodes (c, d) in 10.2.0.0/25, only to other blocks: a filter may lack the prefix"
    )
    assert audited(live, *there, "10.2.0.0/26 via 192.168.0.3 dev eth0") == ["error IPC0955"]
    assert audited(live) == ["error IPC0955"]


def test_what_is_not_known_is_said() -> None:
    live = living("cluster-pool")
    for name in "abcd":
        live[f"Node {name}"]["status"]["addresses"] = []
    assert audited(live, *routes({A: "d"})) == ["note IPC0957"]
    (found,) = live.audit()
    says = f"{A} leads to 192.168.0.4, but the dump has no InternalIPs; 3 next hops; 4 routes not checked"
    assert found.message == says
    live = living("cluster-pool")
    live.without("CiliumNode")
    assert audited(live, *routes({A: "d", B: ""})) == [
        "error IPC0953",
        "error IPC0955",
        "note IPC0904",
        "warning IPC0943",
    ]
    (lacks,) = (each for each in live.audit() if each.code == "IPC0904")
    assert "IPC0953, IPC0954, IPC0955, IPC0956" in lacks.help
    live.routers = []
    (lacks,) = (each for each in live.audit() if each.code == "IPC0904")
    assert "IPC0953" not in lacks.help


def test_without_tables_nothing_is_said() -> None:
    assert living("cluster-pool").audit() == ()


@pytest.mark.parametrize("pinning", ["pool", "node"])
def test_a_block_of_a_pool_for_pods_alone_is_where_the_dump_shows_it(pinning: str) -> None:
    one = fleet.pool("one", ipv4={"cidrs": ["10.3.0.7/32"], "blockSize": 32}, podsOnly=True)
    pool = fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 26})
    some = [fleet.cluster("multi-pool", ipam={"pinning": pinning}), pool, one, inventory(*"abcd")]
    live = Living.of(fleet.compiled(fleet.as_json(some)))
    ipam(live, "b")["pools"]["allocated"].append({"pool": "one", "cidrs": ["10.3.0.7/32"]})
    follows = "note IPC0912"  # the next refresh brings it into the lock
    assert audited(live, *routes({"10.3.0.7": "b"})) == [follows]
    assert audited(live, *routes({"10.3.0.7": "a"})) == ["error IPC0953", follows]
    assert audited(live, *routes()) == ["error IPC0955", follows]
    ipam(live, "b")["pools"]["allocated"].pop()
    assert audited(live, *routes()) == []
    assert audited(live, *routes({"10.3.0.7": "b"})) == ["warning IPC0954"]


def junos(ways: dict[str, str]) -> str:
    rows = [
        f"{prefix:<18} *[BGP/170] 1d 02:03:04, localpref 100\n{'':>22} AS path: 64512 I\n{'':>19}>  to {hop} via xe-0/0/1.0\n"
        for prefix, hop in ways.items()
    ]
    return f"inet.0: {len(rows)} destinations, {len(rows)} routes ({len(rows)} active, 0 holddown, 0 hidden)\n\n{''.join(rows)}"


def junos_json(ways: dict[str, str]) -> str:
    rt = [
        {
            "rt-destination": [{"data": prefix}],
            "rt-entry": [{"active-tag": [{"data": "*"}], "nh": [{"to": [{"data": hop}]}]}],
        }
        for prefix, hop in ways.items()
    ]
    return json.dumps({"route-information": [{"route-table": [{"table-name": [{"data": "inet.0"}], "rt": rt}]}]})  # fmt: skip


def eos(ways: dict[str, str], vrf: str = "default") -> dict[str, Any]:
    rows = {prefix: {"routeType": "eBGP", "vias": [{"nexthopAddr": hop}]} for prefix, hop in ways.items()}
    return {"vrfs": {vrf: {"routes": rows}}}


def nxos(ways: dict[str, str]) -> str:
    rows = [{"ipprefix": prefix, "TABLE_path": {"ROW_path": {"ipnexthop": hop, "ubest": "true"}}} for prefix, hop in ways.items()]  # fmt: skip
    addresses = {"addrf": "ipv4", "TABLE_prefix": {"ROW_prefix": rows}}
    return json.dumps({"TABLE_vrf": {"ROW_vrf": {"vrf-name-out": "default", "TABLE_addrf": {"ROW_addrf": addresses}}}})  # fmt: skip


def cilium(ways: dict[str, str], head: str = "Node   ", hop: str = "") -> str:
    names = {ip: name for name, ip in IP.items()}
    rows = [
        f"{names[ip] if head else '':<7}64512     {prefix:<16}{hop or ip:<15}1h    [{{Origin: i}}]"
        for prefix, ip in ways.items()
    ]
    rows = [row if head else row[7:] for row in rows]
    return "\n".join([f"{head}VRouter   Prefix          NextHop        Age   Attrs", *rows, ""])


OWN = "0.0.0.0"  # noqa: S104 - the next hop of a node's own routes
FORMATS: dict[str, Callable[[dict[str, str]], str]] = {
    "ip route": lambda ways: "".join(f"{prefix} via {hop} dev eth0\n" for prefix, hop in ways.items()),
    "junos": junos,
    "junos json": junos_json,
    "eos": lambda ways: json.dumps(eos(ways)),
    "nx-os": nxos,
    "cilium bgp routes advertised": cilium,
    "cilium bgp routes available": lambda ways: cilium(ways, hop=OWN),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_mistaken_route_is_found_in_every_format(name: str) -> None:
    """What a router prints does not change what is found."""
    live, ways = living("cluster-pool"), {prefix: IP[node] for prefix, node in SOUND.items()}

    def found(**change: str) -> list[tuple[str, str]]:
        live.routers = [read_routes("leaf-1", FORMATS[name](ways | change).encode())]
        return [(each.code, each.message) for each in live.audit()]

    assert found() == []
    assert found(**{C: IP["d"], D: IP["c"]}) == [
        ("IPC0953", f"{C} leads to node d, but c holds it; 2 routes to wrong nodes; 2 nodes: c, d")
    ]
    assert found(**{"10.1.0.0/24": IP["a"]}) == []
    assert found(**{"10.9.0.0/16": IP["b"]}) == [
        ("IPC0958", "10.9.0.0/16 leads to node b, but no pool contains it")
    ]
    assert found(**{"10.9.0.7/32": IP["b"]}) == []
    del ways[A]
    assert found() == [("IPC0955", f"no route to {A} of node a")]


def test_each_vrf_is_a_router() -> None:
    """One without a route to a pool says nothing about pods; if all are without one, the first is judged."""
    live, ways = living("cluster-pool"), {prefix: IP[node] for prefix, node in SOUND.items()}

    def found(**vrfs: dict[str, str]) -> list[tuple[str, str]]:
        document = {"vrfs": {name: eos(some)["vrfs"]["default"] for name, some in vrfs.items()}}
        live.routers = [read_routes("leaf-1", json.dumps(document).encode())]
        return [(each.code, each.message) for each in live.audit()]

    assert found(default={"10.200.0.0/24": "192.168.9.9"}, pods=ways) == []
    assert found(default=ways, pods=ways) == []
    assert found(default=ways, pods=ways | {C: IP["d"]}) == [
        ("IPC0953", f"{C} in VRF pods leads to node d, but c holds it")
    ]
    without = {prefix: hop for prefix, hop in ways.items() if prefix != A}
    assert found(default=without, pods=ways) == [("IPC0955", f"no route to {A} of node a")]
    assert found(default=ways, pods=without) == [("IPC0955", f"no route to {A} of node a in VRF pods")]
    both = junos(ways) + junos(ways).replace("inet.0:", "pods.inet.0:")
    live.routers = [read_routes("leaf-1", f"{both}10.1.9.0/24 (1 entry)\n".encode())]
    assert [(each.code, each.message) for each in live.audit()] == [
        ("IPC0957", "line 29 has a prefix, but cannot be read")
    ]
    assert found(mgmt={"10.200.0.0/24": "192.168.9.9"})[0][0] == "IPC0955"


def test_what_one_node_prints_needs_its_blocks_alone() -> None:
    live = living("cluster-pool")

    def found(*parts: str) -> list[tuple[str, str]]:
        live.routers = [read_routes("node", "".join(parts).encode())]
        return [(each.code, each.message) for each in live.audit()]

    assert found(cilium({A: IP["a"]}, "")) == []
    assert found(cilium({B: IP["a"]}, "")) == [
        ("IPC0955", f"no route to {A} of node a"),
        ("IPC0953", f"{B} leads to node a, but b holds it"),
    ]
    assert [code for code, _ in found(cilium({A: IP["a"]}, "", hop=OWN))] == ["IPC0957"]


def test_a_route_of_a_node_to_no_pool() -> None:
    """Agents make a range of their own in multi-pool mode, and a route to it (cilium/cilium#28632, #32423).
    The table of a node needs no blocks of others: with a tunnel all lead to its cilium_host.
    """
    live = living("multi-pool pool")
    own = "10.1.0.12"
    router(live, "a", own)
    host = f"dev cilium_host proto kernel src {own}"
    sound = ["default via 192.168.0.250 dev eth0", f"{A} via {own} {host}", f"{B} via {own} {host}", f"{own} dev cilium_host"]  # fmt: skip
    assert audited(live, *sound) == []
    assert audited(live, *sound, f"10.68.0.0/16 via {own} {host}") == ["warning IPC0958"]
    (found,) = live.audit()
    assert (found.message, found.at.line) == ("10.68.0.0/16 leads to node a, but no pool contains it", 6)
    assert (
        audited(
            live, *sound, "10.69.0.0/16 via 192.168.0.250 dev eth0", "blackhole 10.70.0.0/16 proto static"
        )
        == []
    )
    two = [f"10.{number}.0.0/16 via {own} {host}" for number in (69, 68)]
    assert audited(live, *sound, *two) == ["warning IPC0958"]
    assert live.audit()[0].message.endswith("; 2 prefixes: 10.68.0.0/16, 10.69.0.0/16")


def test_a_network_that_is_known_is_no_fault() -> None:
    live = living("multi-pool pool")
    live.add({
        "apiVersion": "cilium.io/v2alpha1", "kind": "CiliumPodIPPool", "metadata": {"name": "theirs"},
        "spec": {"ipv4": {"cidrs": ["10.9.0.0/16"], "maskSize": 24}},
    })  # fmt: skip
    assert "IPC0958" not in " ".join(audited(live, *routes(), f"10.9.1.0/24 via {IP['b']} dev eth0"))
    known = [fleet.cluster("cluster-pool", excludedCIDRs=["10.9.0.0/16"]), fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 26}), inventory(*"abcd")]  # fmt: skip
    live = Living.of(fleet.compiled(fleet.as_json(known)))
    services = f"10.9.1.0/24 via {IP['b']} dev eth0"
    assert audited(live, *routes(), services) == []
    assert audited(live, *routes(), services.replace("9.1", "8.1")) == ["warning IPC0958"]
