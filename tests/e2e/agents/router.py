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

    def end(self) -> None:
        """End it."""
        self.daemon.stop()
        super().end()


def announce(api: Api, *, multi_pool: bool = False) -> None:
    """Let every node announce its blocks to the router: the objects of Cilium's BGP control plane."""
    adverts = {"advertisements": [EVERY_POOL]} if multi_pool else SPEC["advertisements"]
    for kind, path, name, spec in (
        ("CiliumBGPAdvertisement", "ciliumbgpadvertisements", "blocks", adverts),
        ("CiliumBGPPeerConfig", "ciliumbgppeerconfigs", "router", SPEC["peer"]),
        ("CiliumBGPClusterConfig", "ciliumbgpclusterconfigs", "fabric", SPEC["cluster"]),
    ):
        body = {"metadata": {"name": name, "labels": {"to": "router"}}, "spec": spec}
        api.create(f"/apis/cilium.io/v2/{path}", {"apiVersion": "cilium.io/v2", "kind": kind, **body})
