"""A router of the fabric: GoBGP, which nodes have sessions with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.agents.machine import NETWORK, Machine
from tests.e2e.api import Api, Object
from tests.e2e.processes import Program

NUMBER = 250
OURS, THEIRS = 64500, 64512
"""The autonomous systems of the router, and of the nodes."""
SPEC: dict[str, Object] = {
    "advertisements": {"advertisements": [{"advertisementType": "PodCIDR"}]},
    "peer": {
        "timers": {"connectRetryTimeSeconds": 1},
        "families": [{"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": {"to": "router"}}}],
    },
    "cluster": {
        "bgpInstances": [
            {
                "name": "fabric",
                "localASN": THEIRS,
                "peers": [
                    {
                        "name": "router",
                        "peerASN": OURS,
                        "peerAddress": f"{NETWORK}.{NUMBER}",
                        "peerConfigRef": {"name": "router"},
                    }
                ],
            }
        ]
    },
}
BGP_CONTROL_PLANE = {"enable-bgp-control-plane": "true", "bgp-secrets-namespace": "kube-system"}
"""What Helm writes into cilium-config for it."""
EVERY_POOL = {
    "advertisementType": "CiliumPodIPPool",
    "selector": {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]},
}
"""Announce the blocks of all pools: of multi-pool mode."""


POLICIES = "/apis/cilium.io/v2alpha1/ciliumbgppeeringpolicies"


class Router(Machine):
    """A machine with gobgpd, which waits for sessions of the nodes and takes what they announce."""

    def __init__(self, folder: Path, neighbours: Iterable[str]) -> None:
        """Start it. `neighbours`: the addresses of the nodes."""
        super().__init__("router", NUMBER, folder)
        sessions = [
            {
                "config": {"neighbor-address": each, "peer-as": THEIRS},
                "transport": {"config": {"passive-mode": True}},
            }
            for each in neighbours
        ]
        settings = {"global": {"config": {"as": OURS, "router-id": self.address}}, "neighbors": sessions}
        file = folder / "gobgpd.json"
        file.write_text(json.dumps(settings))
        self.daemon = Program(
            folder / "gobgpd.log",
            *self.inside("gobgpd", "--config-file", str(file), "--config-type", "json"),
        )

    def table(self) -> dict[str, list[str]]:
        """Return what it has learnt: each prefix with its next hops, sorted."""
        ribs = json.loads(self.run("gobgp", "global", "rib", "--json"))
        return {
            prefix: sorted(
                attribute["nexthop"]
                for path in paths
                for attribute in path["attrs"]
                if "nexthop" in attribute
            )
            for prefix, paths in ribs.items()
        }

    def sessions(self) -> int:
        """Return how many nodes have a session with it."""
        found = json.loads(self.run("gobgp", "neighbor", "--json"))
        return sum(each["state"].get("session_state") in {6, "ESTABLISHED"} for each in found)

    def end(self) -> None:
        """End it."""
        self.daemon.stop()
        super().end()


def announce(api: Api, version: tuple[int, int], *, multi_pool: bool = False) -> None:
    """Let every node announce its blocks to the router: the objects of Cilium's BGP control plane, a CiliumBGPPeeringPolicy before 1.16."""
    if version < (1, 16):
        announce_by_policy(api, multi_pool=multi_pool)
        return
    adverts = {"advertisements": [EVERY_POOL]} if multi_pool else SPEC["advertisements"]
    for kind, path, name, spec in (
        ("CiliumBGPAdvertisement", "ciliumbgpadvertisements", "blocks", adverts),
        ("CiliumBGPPeerConfig", "ciliumbgppeerconfigs", "router", SPEC["peer"]),
        ("CiliumBGPClusterConfig", "ciliumbgpclusterconfigs", "fabric", SPEC["cluster"]),
    ):
        body = {"metadata": {"name": name, "labels": {"to": "router"}}, "spec": spec}
        api.create(f"/apis/cilium.io/v2/{path}", {"apiVersion": "cilium.io/v2", "kind": kind, **body})


def announce_by_policy(api: Api, *, multi_pool: bool = False) -> None:
    """Do the same by a CiliumBGPPeeringPolicy, which Cilium has up to 1.18."""
    neighbour = {"peerAddress": f"{NETWORK}.{NUMBER}/32", "peerASN": OURS, "connectRetryTimeSeconds": 1}
    router = {"localASN": THEIRS, "exportPodCIDR": not multi_pool, "neighbors": [neighbour]}
    if multi_pool:
        router["podIPPoolSelector"] = EVERY_POOL["selector"]
    spec = {"nodeSelector": {}, "virtualRouters": [router]}
    body = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeeringPolicy",
        "metadata": {"name": "fabric"},
    }
    api.create(POLICIES, {**body, "spec": spec})


def metallb(file: Path) -> dict[str, str]:
    """Write the file that MetalLB in the agent reads, and return the flags for it: Cilium has it up to 1.16."""
    peer = {"peer-address": f"{NETWORK}.{NUMBER}", "peer-asn": OURS, "my-asn": THEIRS}
    file.write_text(json.dumps({"peers": [peer], "address-pools": []}))
    return {"bgp-announce-pod-cidr": "true", "bgp-config-path": str(file)}
