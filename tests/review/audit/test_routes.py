"""What an audit finds in the tables of routers: every prefix of a pool comes from the node that has the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ipamc.read.routes import read_routes
from tests.review.audit.test_faults import allocated, leave, pod_cidrs, router
from tests.review.audit.worlds import WORLDS, inventory, living
from tests.support import fleet
from tests.support.living import Living, short

A, B, C, D = (f"10.1.0.{64 * number}/26" for number in range(4))
"""The blocks of nodes a to d."""
IP = {name: f"192.168.0.{number}" for number, name in enumerate("abcd", 1)}
SOUND = {A: "a", B: "b", C: "c", D: "d"}
ONE_BLOCK = ("cluster-pool", "kubernetes", "cluster-pool bgp")
OPERATORS = ("multi-pool pool", "multi-pool none")


def table(name: str, *lines: str, **more: str) -> Any:
    """Return the table of a router as `ip route` prints it."""
    return read_routes(name, "\n".join(["192.168.0.0/24 dev eth0 proto kernel", *lines, ""]).encode())


def routes(*changes: dict[str, str]) -> list[str]:
    """Return lines of a table: a prefix with the node, or the address, that it leads to; "" leaves it out."""
    every = {prefix: hop for change in (SOUND, *changes) for prefix, hop in change.items()}
    return [f"{prefix} via {IP.get(hop, hop)} dev eth0 proto bgp" for prefix, hop in every.items() if hop]


def audited(live: Living, *lines: str) -> list[str]:
    live.routers = [table("leaf-1", *lines)]
    return short(live.audit())


@pytest.mark.parametrize("world", [world for world in WORLDS if world != "crd" and "dual" not in world])
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
    "an aggregate in place of a block": (ONE_BLOCK, nothing, routes({D: "", "10.1.0.0/24": "a"}), ["error IPC0953"]),
    "an aggregate beside all blocks": (ONE_BLOCK, nothing, routes({"10.1.0.0/24": "192.168.0.250"}), ["note IPC0957"]),
    "a block that the operator gave to another node": (
        OPERATORS,
        lambda live: (allocated(live, "a", "default", D), allocated(live, "d", "default", A)),
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
    "a block of a node that is down": (ONE_BLOCK, lambda live: leave(live, "b"), routes({B: ""}), ["warning IPC0925"]),
    "next hops of leaves": (ONE_BLOCK, nothing, routes(dict.fromkeys(SOUND, "192.168.9.9")), ["note IPC0957"]),
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
def test_a_fault_is_found_and_nothing_else(world: str, plant: Plant, lines: list[str], expected: list[str]) -> None:
    live = living(world)
    plant(live)
    assert audited(live, *lines) == expected
