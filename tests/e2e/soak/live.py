"""What a live cluster shows of blocks, and the part of its agents: no agent runs here, it needs a kernel of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, collapse_addresses, ip_network

from tests.e2e.api import CILIUM_NODES, NODE_CONFIGS, NODES, Api, Object
from tests.e2e.soak.modes import Mode

IDLE = 16
"""Addresses that an idle agent asks for, with a pre-allocation of 8 and 2 or 3 addresses of its own."""


@dataclass
class Machine:
    """A machine that runs: what its pods use is known to nobody but itself."""

    uid: str
    listed: bool = True
    """It is in the inventory when that is exported: no autoscaler made it."""
    used: frozenset[str] = frozenset()
    """The blocks that its pods have addresses of: they change when its agent starts, and in multi-pool mode by what it asks for and drops."""
    drained: bool = False


@dataclass
class Live:
    """The agents of a live cluster, and what everybody can see of it."""

    api: Api
    mode: Mode
    machines: dict[str, Machine] = field(default_factory=dict)

    # What it shows.

    def shown(self) -> dict[str, frozenset[str]]:
        """Return the blocks that the objects of each node show."""
        if self.mode.ipam == "kubernetes":
            return {
                name: frozenset(node["spec"].get("podCIDRs", ()))
                for name, node in self.api.items(NODES).items()
            }
        return {name: blocks_of(node) for name, node in self.api.items(CILIUM_NODES).items()}

    # What agents do.

    def is_registered(self, name: str, rack: str, *, listed: bool = True) -> None:
        """Let a machine join: its kubelet creates a Node. Its agent starts later."""
        labels = {"kubernetes.io/hostname": name, "rack": rack} | ({} if listed else {"autoscaled": "true"})
        node = self.api.create(NODES, {"metadata": {"name": name, "labels": labels}})[0]
        self.machines[name] = Machine(str(node["metadata"]["uid"]), listed)

    def agent_starts(self, name: str) -> None:
        """Let an agent start: it takes its CiliumNode over, or creates an empty one (pkg/nodediscovery), and waits until it has a block."""
        node = self.api.get(f"{NODES}/{name}")
        if name not in self.api.items(CILIUM_NODES):
            self.api.create(
                CILIUM_NODES,
                {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": {}},
            )
        self.machines[name].drained = False

        def edit(whole: Object) -> None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            whole["metadata"] |= {
                "labels": node["metadata"].get("labels", {}),
                "annotations": {},
                "ownerReferences": [owner],
            }
            whole["spec"]["addresses"] = [{"type": "InternalIP", "ip": "172.18.0.9"}]
            ipam = whole["spec"].setdefault("ipam", {})
            if self.mode.ipam == "kubernetes":
                ipam["podCIDRs"] = node["spec"].get("podCIDRs", [])
            if self.mode.multi_pool:
                asks_for(ipam, self.default_pool(node), IDLE)

        self.api.change(f"{CILIUM_NODES}/{name}", edit)

    def default_pool(self, node: Object) -> str:
        """Return the pool that an agent asks: of the CiliumNodeConfigs that select its node, the last one by name decides."""
        configs = [each for path in NODE_CONFIGS for each in self.api.items(path).values()]
        found = "default"
        for config in sorted(configs, key=lambda each: each["metadata"]["name"]):
            if selects(config["spec"]["nodeSelector"], node["metadata"].get("labels", {})):
                found = config["spec"]["defaults"].get("ipam-default-ip-pool", found)
        return found

    def asks_for_more(self, name: str) -> None:
        """Let an agent need one address more than its blocks have."""
        self.api.change(f"{CILIUM_NODES}/{name}", lambda whole: _one_more(whole["spec"]["ipam"]))

    def drops(self, name: str) -> str:
        """Let an agent give back the last of several blocks, which none of its pods uses any more; return the block."""
        given: list[str] = []

        def edit(whole: Object) -> None:
            pools = whole["spec"]["ipam"]["pools"]
            several = next(each for each in pools["allocated"] if len(each["cidrs"]) > 1)
            given[:] = [several["cidrs"].pop()]
            left = sum(usable(cidr) for cidr in several["cidrs"])
            asks_for(whole["spec"]["ipam"], several["pool"], min(IDLE, left))

        self.api.change(f"{CILIUM_NODES}/{name}", edit)
        self.machines[name].used -= {given[0]}
        return given[0]

    def is_deleted(self, name: str) -> None:
        """Let a Node be deleted with its machine; its CiliumNode goes with it, by the ownerReference."""
        self.api.delete(f"{NODES}/{name}", f"{CILIUM_NODES}/{name}")
        del self.machines[name]

    def agents_look(self, shown: Mapping[str, frozenset[str]]) -> None:
        """Let agents that wait for a block take the one that is there; in multi-pool and crd mode they take what is added, too."""
        for name, machine in self.machines.items():
            blocks = shown.get(name, frozenset())
            if machine.drained:
                continue
            if blocks and not machine.used:
                self._is_ready(name)
            if self.mode.one_block and not machine.used:
                machine.used = blocks
                if blocks and self.mode.ipam == "kubernetes":
                    self.api.change(
                        f"{CILIUM_NODES}/{name}",
                        lambda whole, blocks=blocks: whole["spec"]["ipam"].update(podCIDRs=sorted(blocks)),  # type: ignore[misc]
                    )
            elif not self.mode.one_block:
                machine.used |= blocks

    def _is_ready(self, name: str) -> None:
        """Let the kubelet say that its node is ready: its agent gives pods addresses."""
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        up = {
            "type": "NetworkUnavailable",
            "status": "False",
            "reason": "CiliumIsUp",
            "message": "Cilium is running on this node",
        }
        whole = self.api.get(f"{NODES}/{name}")
        whole.setdefault("status", {})["conditions"] = [up, ready]
        self.api.sure("PUT", f"{NODES}/{name}/status", whole)


def blocks_of(node: Object) -> frozenset[str]:
    """Return the blocks that a CiliumNode shows; single addresses as the fewest CIDRs that hold them."""
    ipam = node["spec"].get("ipam", {})
    single = (str(each) for each in collapse_addresses(map(IPv4Network, ipam.get("pool", ()))))
    several = (cidr for each in _pools(node) for cidr in each["cidrs"])
    return frozenset((*several, *(ipam.get("podCIDRs") or single)))


def _pools(node: Object) -> list[Object]:
    return list(node["spec"].get("ipam", {}).get("pools", {}).get("allocated", ()))


def usable(cidr: str) -> int:
    """Return how many addresses of a block pods can have."""
    return ip_network(cidr).num_addresses - 2


def asks_for(ipam: Object, pool: str, addresses: int) -> None:
    """Write what an agent needs of a pool."""
    pools = ipam.setdefault("pools", {})
    others = [each for each in pools.get("requested", ()) if each["pool"] != pool]
    mine = {"pool": pool, "needed": {"ipv4-addrs": addresses}}
    pools["requested"] = sorted([*others, mine], key=lambda each: str(each["pool"]))


def _one_more(ipam: Object) -> None:
    first = ipam["pools"]["requested"][0]["pool"]
    blocks = [
        cidr for each in ipam["pools"].get("allocated", ()) if each["pool"] == first for cidr in each["cidrs"]
    ]
    asks_for(ipam, first, sum(usable(cidr) for cidr in blocks) + 1)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector selects labels."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        _holds(each, labels) for each in selector.get("matchExpressions", ())
    )


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", ())
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[expression["operator"]]


def overlapping(blocks: Iterable[str], others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return the pairs of one and the other that share an address."""
    others = [*others]
    for block in blocks:
        for other in others:
            if ip_network(block).overlaps(ip_network(other)):
                yield block, other
