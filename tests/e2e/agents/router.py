"""A router of the fabric, which nodes have BGP sessions with: GoBGP, BIRD or FRR."""

from __future__ import annotations

import json
import re
import shlex
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
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


class Router(Machine, ABC):
    """A machine with a daemon that waits for sessions of the nodes and takes what they announce."""

    PRINTS: tuple[str, ...]
    """The commands that print its table."""

    def __init__(self, folder: Path, neighbours: Iterable[str]) -> None:
        """Start it. `neighbours`: the addresses of the nodes."""
        own_run = "mount -n -t tmpfs tmpfs /run; mkdir /run/bird /run/frr"  # where sockets are
        super().__init__("router", NUMBER, folder, own_run)
        self.folder = folder
        command = self.configured(folder, list(neighbours))
        self.daemon = Program(folder / "router.log", *self.inside(*command))

    @abstractmethod
    def configured(self, folder: Path, neighbours: Sequence[str]) -> list[str]:
        """Write the daemon's configuration, and return its command."""

    @abstractmethod
    def table(self) -> dict[str, list[str]]:
        """Return what it has learnt: each prefix with its next hops, sorted."""

    def printed(self, commands: Sequence[str] = ()) -> list[Path]:
        """Return files with its table, as these commands print it: without any, in each way that ipamc reads."""
        files = []
        for number, command in enumerate(commands or self.PRINTS):
            files.append(self.folder / f"table-{number}")
            files[-1].write_text(self.run(*shlex.split(command)))
        return files

    @abstractmethod
    def sessions(self) -> int:
        """Return how many nodes have a session with it."""

    def end(self) -> None:
        """End it."""
        self.daemon.stop()
        super().end()


class GoBgp(Router):
    """A router with gobgpd. It has a table, and does not route by it."""

    PRINTS = ("gobgp global rib", "gobgp global rib -j")

    def configured(self, folder: Path, neighbours: Sequence[str]) -> list[str]:
        graceful = {"config": {"enabled": True}}  # where a node offers it
        ipv4 = {"config": {"afi-safi-name": "ipv4-unicast"}, "mp-graceful-restart": graceful}
        sessions = [
            {
                "config": {"neighbor-address": each, "peer-as": THEIRS},
                "transport": {"config": {"passive-mode": True}},
                "graceful-restart": {"config": {"enabled": True, "restart-time": 120}},
                "afi-safis": [ipv4],
            }
            for each in neighbours
        ]
        settings = {"global": {"config": {"as": OURS, "router-id": self.address}}, "neighbors": sessions}
        file = folder / "gobgpd.json"
        file.write_text(json.dumps(settings))
        return ["gobgpd", "--config-file", str(file), "--config-type", "json"]

    def table(self) -> dict[str, list[str]]:
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
        found = json.loads(self.run("gobgp", "neighbor", "--json"))
        return sum(each["state"].get("session_state") in {6, "ESTABLISHED"} for each in found)


class Bird(Router):
    """A router with BIRD 2, which gives what it learns to the kernel: the router reaches pods."""

    PRINTS = ("birdc show route", "birdc show route all", "ip route", "ip -j route")

    def configured(self, folder: Path, neighbours: Sequence[str]) -> list[str]:
        sessions = [
            f"protocol bgp {{ local {self.address} as {OURS}; neighbor {each} as {THEIRS}; passive; "
            "ipv4 { import all; export none; }; }"
            for each in neighbours
        ]
        file = folder / "bird.conf"
        file.write_text(
            f"log stderr all; router id {self.address}; protocol device {{}}\n"
            "protocol kernel { ipv4 { import none; export all; }; }\n" + "\n".join(sessions)
        )
        return ["bird", "-f", "-c", str(file)]

    def table(self) -> dict[str, list[str]]:
        found, prefix = defaultdict(list), ""
        for line in self.run("birdc", "show", "route").splitlines():
            if start := re.match(r"([0-9.]+/\d+) ", line):
                prefix = start[1]
            elif hop := re.match(r"\tvia (\S+) ", line):
                found[prefix].append(hop[1])
        return {prefix: sorted(hops) for prefix, hops in found.items()}

    def sessions(self) -> int:
        return self.run("birdc", "show", "protocols").count("Established")


class Frr(Router):
    """A router with bgpd and zebra of FRR, which gives what it learns to the kernel: the router reaches pods."""

    PRINTS = (
        "vtysh -c 'show ip route'",
        "vtysh -c 'show ip route json'",
        "vtysh -c 'show bgp ipv4 unicast'",
        "vtysh -c 'show bgp ipv4 unicast json'",
        "ip -j route",
    )
    BGP_6 = ("vtysh -c 'show bgp ipv6 unicast'", "vtysh -c 'show bgp ipv6 unicast json'")
    ROUTES_6 = ("vtysh -c 'show ipv6 route'", "vtysh -c 'show ipv6 route json'", "ip -6 -j route")
    """What prints its tables of IPv6."""

    def configured(self, folder: Path, neighbours: Sequence[str]) -> list[str]:
        sessions = [
            f" neighbor {each} {what}\n"
            for each in neighbours
            for what in (f"remote-as {THEIRS}", "passive", "timers connect 1")
        ]
        six = "".join(f"  neighbor {each} activate\n" for each in neighbours)
        file = folder / "frr.conf"
        file.write_text(
            f"router bgp {OURS}\n bgp router-id {self.address}\n no bgp ebgp-requires-policy\n{''.join(sessions)}"
            f" address-family ipv6 unicast\n{six} exit-address-family\n"
        )
        script = (  # the daemons leave root; so it is their parent that ends with this process, and the kernel ends them
            f"cp {file} /run/frr/bgpd.conf; chown -R frr /run/frr; cd /usr/lib/frr; "
            "./zebra -f /dev/null -A 127.0.0.1 & ./bgpd -f /run/frr/bgpd.conf -A 127.0.0.1 --log stdout & wait"
        )
        return ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script]

    def table(self, family: int = 4) -> dict[str, list[str]]:
        routes = json.loads(self.run("vtysh", "-c", f"show bgp ipv{family} unicast json"))["routes"]
        return {
            prefix: sorted(hop["ip"] for path in paths for hop in path["nexthops"])
            for prefix, paths in routes.items()
        }

    def sessions(self) -> int:
        found = json.loads(self.run("vtysh", "-c", "show bgp ipv4 unicast summary json"))
        return sum(each["state"] == "Established" for each in found["peers"].values())


def version_of_kinds(version: tuple[int, int]) -> str:
    """Return the apiVersion of the objects of Cilium's BGP control plane, which a minor from 1.16 on reads."""
    return "cilium.io/v2" if can(version, Capability.BGP_V2) else "cilium.io/v2alpha1"


def announce(api: Api, version: tuple[int, int], *, multi_pool: bool = False) -> None:
    """Let every node announce its blocks to the router: the objects of Cilium's BGP control plane, a CiliumBGPPeeringPolicy before 1.16."""
    if not can(version, Capability.BGP_ADVERTISEMENT):
        announce_by_policy(api, multi_pool=multi_pool)
        return
    group = version_of_kinds(version)
    adverts = {"advertisements": [EVERY_POOL]} if multi_pool else SPEC["advertisements"]
    for kind, path, name, spec in (
        ("CiliumBGPAdvertisement", "ciliumbgpadvertisements", "blocks", adverts),
        ("CiliumBGPPeerConfig", "ciliumbgppeerconfigs", "router", SPEC["peer"]),
        ("CiliumBGPClusterConfig", "ciliumbgpclusterconfigs", "fabric", SPEC["cluster"]),
    ):
        body = {"metadata": {"name": name, "labels": {"to": "router"}}, "spec": spec}
        api.create(f"/apis/{group}/{path}", {"apiVersion": group, "kind": kind, **body})


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
