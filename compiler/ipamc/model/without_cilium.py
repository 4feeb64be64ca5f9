"""Nodes on which Cilium does not run: Windows, virtual-kubelet, Fargate, those of another pod network.

Where the Cluster has `spec.cilium.nodeSelector`, it alone decides. Else evidence beats guesses: where agents
left its condition, annotations or a CiliumNode, Cilium runs, whatever labels say, and in doubt it runs, too.
A CiliumNode without an owner may be of ipamc: on Windows, where no agent can run, it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from itertools import chain
from typing import Any

from msgspec.structs import replace

from ipamc.model.cilium.operator_list import AGENT
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.limits import DUMP_SLACK
from ipamc.model.node import Node
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import Selector, parse_label_selector, parse_node_selector

_OS = ("kubernetes.io/os", "beta.kubernetes.io/os")  # of each kubelet (pkg/kubelet/kubelet_node_status.go)
_LABELS = {
    "type": "virtual-kubelet",  # virtual-kubelet 1.11, node/nodeutil/controller.go
    "liqo.io/type": "virtual-node",  # Liqo, pkg/consts
    "eks.amazonaws.com/compute-type": "fargate",  # EKS; a taint, too
}
_TAINTS = ("virtual-kubelet.io/provider=", "eks.amazonaws.com/compute-type=fargate")
"""virtual-kubelet: DefaultTaintKey, with any value (cmd/virtual-kubelet/internal/commands/root/opts.go)."""

NO_AGENT = "it has no Cilium agent pod"
"""A reason of which a dump without pods, such as one for a refresh in CI, knows nothing."""

_MOVED = "io.cilium.migration/"  # the label of nodes that moved, in Cilium's guide and in our runbook


def without_cilium(dump: Dump, runs_on: Selector | None = None) -> dict[str, str]:
    """Return the nodes on which Cilium does not run, each with the reason. O(nodes and pods).
    `runs_on` is the Cluster's selector of nodes that run it; None: it has none.
    """
    if runs_on is not None:
        others = (node.name for node in dump.nodes if not runs_on.matches(node.labels, node.name))
        return dict.fromkeys(others, "spec.cilium.nodeSelector does not select it")
    guesses, found = (_label, *_agents(dump)), {}
    for node in dump.nodes:
        seen = dump.cilium_nodes_by_name.get(node.name)
        if not (node.agent_ran or (seen and (seen.owner_uid or seen.internal_ips))):
            tests = (_system,) if seen else (_system, *guesses)
            if reason := next(filter(None, (test(node) for test in tests)), ""):
                found[node.name] = reason
    return found


def with_cilium(dump: Dump, reasons: Container[str], kept: Container[str] = ()) -> Dump:
    """Return a dump in which the nodes with a reason are `apart`, except those that are `kept`."""
    parts: tuple[list[Node], list[Node]] = [], []
    for node in dump.nodes:
        parts[node.name in reasons and node.name not in kept].append(node)
    return replace(dump, nodes=tuple(parts[False]), apart=tuple(parts[True]))


def _system(node: Node) -> str:
    named = {node.system.lower(), *(node.labels.get(key) for key in _OS)}
    return "its OS is windows" if "windows" in named else ""


def _label(node: Node) -> str:
    labels = (f"label {key}={value}" for key, value in _LABELS.items() if node.labels.get(key) == value)
    taints = (f"taint {taint.rstrip('=')}" for taint in node.taints if taint.startswith(_TAINTS))
    return next(chain(labels, taints), "")


def _agents(dump: Dump) -> Iterator[Callable[[Node], str]]:
    """Yield what the DaemonSet of agents and their pods tell, if any.
    Nothing while nodes move from Calico, because one without an agent may be the next: Cilium gave no block
    yet, or the DaemonSet selects by the label of those that have moved. It counts if it selects any node.
    A pod is missing where the Node is Ready without it, and was there DUMP_SLACK before the dump's end.
    """
    workload = dump.other("DaemonSet", AGENT)
    selectors = selectors_of(workload)[0] if workload else []
    moving = any(key.startswith(_MOVED) for each in selectors for key in each.keys)
    calico = dump.calico_blocks or dump.affinities or dump.of_kind("IPPool")
    if moving or (calico and not any(seen.blocks or seen.allocated for seen in dump.cilium_nodes)):
        return
    pods = {pod.node for pod in dump.pods if pod.app == AGENT}

    def unselected(node: Node) -> str:
        # Each kubelet sets the labels of the OS: a dump without them was cut.
        labels = {**dict.fromkeys(_OS, node.system or "linux"), **node.labels}
        fails = [each.canonical for each in selectors if not each.matches(labels, node.name)]
        name = f"{workload.namespace}/{AGENT}" if workload and fails and node.name not in pods else ""
        return f"the selector of DaemonSet {name} ({fails[0]}) does not select it" if name else ""

    if not all(map(unselected, dump.nodes)):
        yield unselected
    number, before = len(pods & dump.nodes_by_name.keys()), dump.before(DUMP_SLACK)
    do = f"{number:,} other {'node has' if number == 1 else 'nodes have'} one"
    old = {node.name for node in dump.nodes if node.ready and "" < node.created < before}
    if lacks := old - pods if number else ():
        yield lambda node: f"{NO_AGENT}, but {do}" if node.name in lacks else ""


def selectors_of(workload: SeenObject) -> tuple[list[Selector], list[str]]:
    """Return the selectors of nodes in a workload's pod template, and what is wrong with them.
    All must match: `nodeSelector`, and the required terms (component-helpers, scheduling/corev1/nodeaffinity,
    GetRequiredNodeAffinity).
    """
    spec = _at(workload.value, "spec", "template", "spec")
    labels = {"matchLabels": _at(spec, "nodeSelector") or {}}
    terms = _at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    found, odd = list[Selector](), list[str]()
    for parse, value in ((parse_label_selector, labels), (parse_node_selector, terms)):
        try:
            found += [] if value is None else [parse(value)]
        except SelectorError as problem:
            odd.append(f"a node selector: {problem}")
    return found, odd


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
