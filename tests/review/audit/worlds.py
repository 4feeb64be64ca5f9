"""Sound clusters in every mode, compiled once: what faults are planted in."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.support import fleet
from tests.support.living import Living

NODES = ("a", "b", "c", "d")
SIX = "fd00:1::/112"


def inventory(*names: str, **more: Any) -> fleet.Document:
    """List nodes with the uids that they have in dumps."""
    return fleet.inventory(
        [
            {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}, **more}
            for name in names
        ]
    )


def documents(world: str) -> list[fleet.Document]:
    """Return the inputs of a world by its name: a mode, and what is special there."""
    mode, _, special = world.partition(" ")
    spec: dict[str, Any] = {}
    pool: dict[str, Any] = {"ipv4": {"cidrs": ["10.1.0.0/24"], "blockSize": 26}}
    more: list[fleet.Document] = []
    if special == "dual":
        spec["ipFamilies"] = ["IPv4", "IPv6"]
        pool["ipv6"] = {"cidrs": [SIX], "blockSize": 122}
    if special == "annotations":
        spec["patchNodes"] = "annotations"
    if special == "metallb":
        spec |= {"version": "1.11", "bgp": "metallb", "patchNodes": "podCIDRs"}
    if special == "bgp":
        spec["bgp"] = "control-plane"
    if special == "old bgp":
        spec |= {"version": "1.14", "bgp": "control-plane"}
    if special == "applied flags":
        spec["cilium"] = {"managedBy": "none"}
    if special == "adopt":
        spec["ipam"] = {"operator": "adopt"}
        more = [fleet.pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 26}, unlisted=True)]
    if "admission" in special:
        spec |= {"kubernetes": {"version": "1.36"}, "admission": {"assign": True, "enforce": "deny"}}
        special = special.removesuffix("admission").strip()
    if mode == "multi-pool":
        spec["ipam"] = {"pinning": "pool" if special == "old" else special or "pool"}
        if special == "old":
            spec["version"] = "1.17"
    if mode == "crd":
        pool["ipv4"]["blockSize"] = 28
    return [fleet.cluster(mode, **spec), fleet.pool("default", **pool), *more, inventory(*NODES)]


@cache
def _living(world: str) -> Living:
    return Living.of(fleet.compiled(fleet.as_json(documents(world))))


def living(world: str) -> Living:
    """Return a sound cluster of a world, to change."""
    return _living(world).copy()


WORLDS = (
    "kubernetes",
    "kubernetes annotations",
    "kubernetes dual",
    "kubernetes bgp",
    "kubernetes old bgp",
    "cluster-pool",
    "cluster-pool dual",
    "cluster-pool metallb",
    "cluster-pool bgp",
    "cluster-pool adopt",
    "cluster-pool applied flags",
    "cluster-pool admission",
    "kubernetes admission",
    "multi-pool node admission",
    "multi-pool pool",
    "multi-pool node",
    "multi-pool none",
    "multi-pool old",
    "crd",
)
