"""A cluster that runs: its folder, its nodes with agents, and pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from itertools import permutations
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.e2e.agents.kubelets import Kubelets
from tests.e2e.agents.node import PATIENCE, Node
from tests.e2e.agents.pod import Ping, Pod
from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS
from tests.e2e.objects import verdict
from tests.e2e.operator import Operator
from tests.e2e.played import Player
from tests.e2e.processes import until
from tests.e2e.test_ci_apply import flags
from tests.e2e.test_import import given

ENDPOINTS = "/apis/cilium.io/v2/namespaces/default/ciliumendpoints"
FIRST = 11
"""The last number of the first node's address."""
SETTINGS = {
    "identity-allocation-mode": "crd",
    "routing-mode": "native",
    "auto-direct-node-routes": "true",
    "ipv4-native-routing-cidr": "10.0.0.0/8",
    "enable-endpoint-routes": "true",  # else pods of a second pool are not reached from other nodes
    "enable-ipv4-masquerade": "false",
    "enable-ipv6-masquerade": "false",
    "kube-proxy-replacement": "false",
    "cgroup-root": "/run/cilium/cgroupv2",
    # No Envoy, Hubble or health endpoint: the latter would take an address of the block.
    "enable-l7-proxy": "false",
    "enable-envoy-config": "false",
    "enable-hubble": "false",
    "enable-health-checking": "false",
    "enable-endpoint-health-checking": "false",
    # Maps of a size for a handful of pods.
    "bpf-map-dynamic-size-ratio": "0",
    "bpf-ct-global-tcp-max": "4096",
    "bpf-ct-global-any-max": "4096",
    "bpf-nat-global-max": "4096",
    "bpf-neigh-global-max": "4096",
    "bpf-policy-map-max": "1024",
    "bpf-lb-map-max": "1024",
}
"""What Helm would write into cilium-config besides what ipamc says: native routing on one network, and as little else as an agent needs."""

CONFLICT = "delete-ciliumnode"
"""The conditional step after an apply that is refused because somebody else wrote podCIDRs."""
HEALTH = {"enable-health-checking": "true", "enable-endpoint-health-checking": "true"}
"""Health endpoints: an agent takes another address of its block."""
TUNNEL = {"routing-mode": "tunnel", "tunnel-protocol": "vxlan", "auto-direct-node-routes": "false"}
"""In place of native routing."""


@dataclass
class Lab(Player):
    """A cluster whose agents are real: a runbook's steps about agents, nodes and pods reach them."""

    KIND_OF_NODE: ClassVar[type[Node]] = Node
    KIND_OF_POD: ClassVar[type[Pod]] = Pod

    nodes: dict[str, Node] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Of cilium-config, besides SETTINGS."""
    pods: dict[str, Pod] = field(default_factory=dict)
    patience: float = PATIENCE
    refused: bool = False
    """Rules refuse the cluster, and were taken away to compile it."""
    newer: tuple[Operator, Path] | None = None
    """What an upgrade puts in the place of operator and agents: the folder of the latter's programs."""
    _kubelets: Kubelets | None = None

    def __enter__(self) -> Self:
        self._kubelets = Kubelets(self.api, self.nodes, self.pods)
        self._kubelets.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End pods, agents and the operator."""
        with ExitStack() as stack:
            # The last: with their thread the agents end that it started, and the end of a pod takes an agent.
            if self._kubelets:
                stack.push(self._kubelets)
            stack.callback(self.stop_operator)
            stack.callback(self._stop_agents, list(self.nodes.values()))
            for pod in self.pods.values():  # without an agent DEL takes 20 s
                stack.callback(pod.end if pod.node.agent else pod.abandon)

    # Nodes

    def agents(self, nodes: Iterable[str]) -> None:
        """Start agents, those that run anew. They are not waited for: one without a block gets none before somebody applies it."""
        some = [self.nodes[name] for name in nodes]
        self._stop_agents(some)
        for node in some:
            node.start_agent()

    def _stop_agents(self, nodes: Sequence[Node]) -> None:
        """Stop agents, all at once, as their kubelets do."""
        with ThreadPoolExecutor(8) as workers:
            list(workers.map(Node.stop_agent, nodes))

    def ready(self) -> None:
        """Wait until all agents that were started are ready."""
        for node in self.nodes.values():
            if node.agent:
                node.wait()

    def agents_of_nodes(self, command: str) -> None:
        """Play the garbage collector alone: the agents see for themselves."""
        self.collect_garbage(command)

    def cannot(self, check: str) -> bool:
        """A check about agents asks their Pods, which are there; nobody counts for a DaemonSet or a Deployment, and no container can be entered."""
        if "drift_checker" in check:
            _, loop, names = check.partition("for node in ")
            for name in names.partition(";")[0].split() if loop else self.nodes:
                until(
                    self.nodes[name].has_its_flags, f"the agent of {name} runs with cilium-config", PATIENCE
                )
            return True
        return "rollout status" in check

    def follow(self, command: str) -> None:
        """Leave Pods that are deleted to the kubelets, those of agents, too."""
        if " delete pod" not in command:
            super().follow(command)

    def _node(self, step: Mapping[str, Any]) -> None:
        if step["key"] == "stop-kubelet":
            for name in step["nodes"]:
                self.nodes[name].switch_off()
        if step["key"] == "join":
            for name in step["nodes"]:
                self.nodes[name].install_again()
        super()._node(step)

    def kubelets(self, nodes: list[str]) -> None:
        """Let kubelets register their Nodes, where these are not there."""
        for name in nodes:
            if name not in self.names:
                self.nodes[name].register()

    # The cluster

    def install(self) -> None:
        """Do what comes first in a cluster's life: apply all that is rendered, then install Cilium; its operator starts, then its agents."""
        self.apply()
        self.roll_out()
        self.agents(self.names)
        self.ready()

    def apply(self) -> None:
        """Apply all that is rendered, as a pipeline does; what a rule refuses as somebody without one."""
        if self.refused:
            self.site.apply()
        else:
            self.sh(f"ipamc apply {self.site.name}")
        self.seed()

    def roll_out(self, config: Mapping[str, str] | None = None) -> None:
        """Write cilium-config as Helm would, and start the operator. `config`: in place of what is rendered."""
        flags(self.api, {**SETTINGS, **self.settings, **(config or self.site.config)}, *self.arguments)
        self.daemon_set("cilium")
        self.start_operator()

    def step(self, step: Mapping[str, Any]) -> None:
        """Do a step; where the operator's list of CIDRs changed, roll it out."""
        lists = [f"cluster-pool-ipv{family}-cidr" for family in (4, 6)]
        if step["key"] == "roll-out" and any(
            self.site.config.get(key) != self.config.get(key) for key in lists
        ):
            self.roll_out()
        if step["key"] == "agent-ready":  # nobody counts for the DaemonSet
            running = [node for node in self.nodes.values() if node.agent]
            until(lambda: all(node.reported for node in running), "all agents are ready", PATIENCE)
        super().step(step)
        if step["key"] == CONFLICT:
            self.conditions.discard(CONFLICT)

    def play(self, runbook: Mapping[str, Any], *, phases: slice = slice(None)) -> None:
        """Do every step of the phases. A conflict of an apply must have had its step."""
        super().play(runbook, phases=phases)
        assert CONFLICT not in self.conditions

    def command(self, command: str, step: Mapping[str, Any]) -> None:
        """Run a command; Helm's upgrade to another release is played. What an apply is refused decides about a later step."""
        if step["key"] == "upgrade":
            self.played.append(command)
            self.upgrade()
        elif step["key"] == "apply":
            assert CONFLICT not in self.conditions, "nothing was done about a conflict"
            said = self.sh(f"{command} 2>&1 || echo REFUSED")
            if "REFUSED" in said and ".spec.ipam.podCIDRs" in said:
                self.conditions.add(CONFLICT)
            elif "REFUSED" in said:  # of a pool that the operator made
                assert "if the change only appends some, run once" in said, said
                force = f"kubectl --context={self.site.name} apply --server-side --field-manager=ipamc --force-conflicts"
                self.sh(f"{force} -f {self.site.rendered}/cilium/ippools.yaml && {command}")
            self.ran.append(command)
            self.follow(command)
        else:
            super().command(command, step)

    def upgrade(self) -> None:
        """Do what `helm upgrade` does with the flags as they are: the newer operator starts, then the newer agents, one after the other.

        After each all pods reach each other, whatever both releases make of each other.
        """
        assert self.newer
        self.stop_operator()
        self.operator, release = self.newer
        self.roll_out()
        for name in self.names:
            self.nodes[name].upgrade(release)
            self.nodes[name].wait()
            self.as_locked()

    @property
    def arguments(self) -> list[str]:
        """What the operator's command line needs besides; nothing before the cluster has a folder."""
        return self.site.arguments if self.site.rendered.exists() else []

    @property
    def config(self) -> Mapping[str, str]:
        """The keys of cilium-config that are in the cluster."""
        found: Mapping[str, str] = self.api.get(f"{CONFIG_MAPS}/cilium-config")["data"]
        return found

    def blocks(self) -> dict[str, list[str]]:
        """Return the blocks that each node has: what its agent reads, and others see."""
        return given(self.api)

    def audit(self, *, problems: bool = False, routes: Iterable[Path] = ()) -> str:
        """Dump the cluster, and audit the dump and routers' tables; say whether problems are expected."""
        name = self.site.name
        self.sh(f"ipamc dump {name} --write ../{name}.live.json")
        tables = "".join(f" --routes {path}" for path in routes)
        return self.sh(f"{'! ' if problems else ''}ipamc audit {name} ../{name}.live.json{tables} 2>&1")

    # Pods

    def start_pods(self, *names: str, **annotations: str) -> None:
        """Start pods: `a1` runs on node `a`."""
        made = [self.KIND_OF_POD(name, self.nodes[name.rstrip("0123456789")], annotations) for name in names]
        with ThreadPoolExecutor(4) as workers:
            list(workers.map(self.KIND_OF_POD.connect, made))
        self.pods |= {pod.name: pod for pod in made}

    def end_pod(self, name: str) -> None:
        """Let somebody delete a pod."""
        self.pods.pop(name).end()

    def addresses(self) -> dict[str, str]:
        """Return the address of each pod."""
        return {name: pod.address for name, pod in sorted(self.pods.items())}

    def addresses_of_endpoints(self) -> dict[str, str]:
        """Return the address of each pod as its agent tells the others."""
        return {
            name: each["status"]["networking"]["addressing"][0]["ipv4"]
            for name, each in sorted(self.api.items(ENDPOINTS).items())
        }

    def error(self, node: str) -> str:
        """Return what the operator finds wrong with a node's CiliumNode, or nothing."""
        return verdict(self.api.get(f"{CILIUM_NODES}/{node}"))

    def used(self, node: str) -> list[str]:
        """Return the addresses of which the agent of a node says that they are in use (crd mode)."""
        status = self.api.get(f"{CILIUM_NODES}/{node}").get("status", {})
        return sorted(status.get("ipam", {}).get("used", {}))

    def unreachable(self) -> set[tuple[str, str]]:
        """Return the pairs of pods of which the first does not reach the second."""
        pairs = list(permutations(self.pods.values(), 2))
        with ThreadPoolExecutor(8) as workers:
            answers = list(workers.map(lambda pair: pair[0].reaches(*pair[1].addresses), pairs))
        return {
            (one.name, other.name)
            for (one, other), answered in zip(pairs, answers, strict=True)
            if not answered
        }

    @contextmanager
    def pinging(self, *names: str) -> Iterator[list[Ping]]:
        """Let each of these pods ping each other one all the time, until the block ends."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.pods[one].pinging(self.pods[other]))
                for one, other in permutations(names, 2)
            ]

    @contextmanager
    def undisturbed(self, *names: str) -> Iterator[None]:
        """Let pods ping each other until the block ends; none loses a packet, and blocks and addresses are as before."""
        blocks, addresses = self.blocks(), self.addresses()
        with self.pinging(*names) as pings:
            yield
        assert not lost(pings)
        assert self.blocks() == blocks
        assert self.addresses_of_endpoints() == addresses

    # What is promised

    def in_their_blocks(self) -> None:
        """Every pod's address is of a block that the lock gives to its node, and no two pods have one address."""
        lock = self.site.lock()
        found = [(pod, address) for pod in self.pods.values() for address in pod.addresses]
        assert len({address for _, address in found}) == len(found), found
        for pod, address in found:
            blocks = [block for _, block in lock[pod.node.name]]
            assert any(ip_address(address) in ip_network(block) for block in blocks), (pod.name, address)

    def as_locked(self) -> None:
        """Pods have addresses of their nodes' blocks, and all reach each other."""
        self.in_their_blocks()
        assert not self.unreachable()


def lost(pings: Iterable[Ping]) -> Mapping[str, int]:
    """Return the pings that lost packets, with how many; those that sent none, too."""
    return {ping.what: ping.lost for ping in pings if ping.lost or not ping.counts()[0]}
