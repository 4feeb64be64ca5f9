"""Each fault that is planted in a sound cluster is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ipamc.model.admission import POLICIES
from tests.review.audit.worlds import NODES, WORLDS, inventory, living
from tests.support import dumps, fleet
from tests.support.living import Living, agent, controller, endpoint, operator, short

OPERATORS_ONLY = ("multi-pool pool", "multi-pool none")
"""Worlds in which Cilium's operator chooses the blocks."""
FREE = "10.1.9.0/26"
"""A block that no pool has."""


@pytest.mark.parametrize("world", WORLDS)
def test_a_sound_cluster_has_no_problems(world: str) -> None:
    assert living(world).audit() == ()


Plant = Callable[[Living], Any]


def ipam(live: Living, node: str) -> dict[str, Any]:
    """Return `spec.ipam` of a CiliumNode."""
    found: dict[str, Any] = live[f"CiliumNode {node}"]["spec"]["ipam"]
    return found


def managed(live: Living, label: str) -> Any:
    for name, item in live.objects.items():
        if name.startswith("Node "):
            item["metadata"]["labels"][label] = "a"


def clear(live: Living, node: str) -> Any:
    ipam(live, node).clear()


def pod_cidrs(live: Living, node: str, *cidrs: str) -> Any:
    ipam(live, node)["podCIDRs"] = list(cidrs)


def node_cidrs(live: Living, node: str, *cidrs: str) -> Any:
    live[f"Node {node}"]["spec"] = {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)} if cidrs else {}


def annotate(live: Living, node: str, cidr: str) -> Any:
    annotations = live[f"Node {node}"]["metadata"]["annotations"]
    key = next(key for key in annotations if key.endswith("-pod-cidr"))
    annotations[key] = cidr


def allocated(live: Living, node: str, pool: str, *cidrs: str) -> Any:
    ipam(live, node)["pools"]["allocated"] = [{"pool": pool, "cidrs": list(cidrs)}]


def asks(live: Living, node: str, pool: str, number: int, error: str = "") -> Any:
    ipam(live, node)["pools"]["requested"] = [{"pool": pool, "needed": {"ipv4-addrs": number}}]
    if error:
        says(live, node, error)


def says(live: Living, node: str, error: str) -> Any:
    live[f"CiliumNode {node}"]["status"] = {"ipam": {"operator-status": {"error": error}}}


def swap(live: Living, kind: str, one: str, other: str) -> Any:
    first, second = live[f"{kind} {one}"], live[f"{kind} {other}"]
    first["spec"], second["spec"] = second["spec"], first["spec"]


def drop(live: Living, *names: str) -> Any:
    live.remove(*names)


def leave(live: Living, node: str) -> Any:
    """Delete a node with all that is on it."""
    drop(
        live,
        f"Node {node}",
        f"CiliumNode {node}",
        f"Pod default web-{node}",
        f"Pod kube-system cilium-{node}",
        f"CiliumEndpoint default web-{node}",
    )


def config(live: Living, **data: str) -> Any:
    live["ConfigMap kube-system cilium-config"]["data"].update(
        {key.replace("_", "-"): value for key, value in data.items()}
    )


def agents_of(live: Living, version: str) -> Any:
    """Let every agent be of a release."""
    for node in NODES:
        live.add(agent(node, version))


def crd_of_node_configs() -> dict[str, Any]:
    """The CRD of a cluster that 1.15 was installed in, as 1.16 to 1.19 keep it."""
    versions = [{"name": name, "served": True, "storage": name == "v2"} for name in ("v2", "v2alpha1")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ciliumnodeconfigs.cilium.io"},
        "spec": {"versions": versions},
        "status": {"storedVersions": ["v2alpha1", "v2"]},
    }


def router(live: Living, node: str, address: str) -> Any:
    live[f"CiliumNode {node}"]["spec"]["addresses"] = [{"type": "CiliumInternalIP", "ip": address}]


def made_again(live: Living, node: str) -> Any:
    """Delete a CiliumNode and apply it again: it has what ipamc renders, until its agent restarts."""
    seen = live[f"CiliumNode {node}"]
    seen["metadata"].pop("ownerReferences")
    seen["spec"].pop("addresses")


def node_config(live: Living) -> dict[str, Any]:
    """Return the first CiliumNodeConfig."""
    return next(item for item in live.objects.values() if item["kind"] == "CiliumNodeConfig")


def kubeadm(subnet: str, more: str = "") -> dict[str, Any]:
    return dumps.config_map(
        "kubeadm-config", ClusterConfiguration=f"networking:\n  podSubnet: {subnet}\n{more}"
    )


CILIUM_NODES = ("cluster-pool", "cluster-pool bgp", "cluster-pool applied flags", "cluster-pool adopt")
KUBERNETES = ("kubernetes", "kubernetes bgp", "kubernetes old bgp")

ADMISSION = tuple(world for world in WORLDS if "admission" in world)


def policies(live: Living) -> list[str]:
    return [name for name, item in live.objects.items() if item["kind"] in POLICIES]


def spec_of(live: Living, kind: str) -> dict[str, Any]:
    """Return the spec of the first object of a kind."""
    found: dict[str, Any] = next(item["spec"] for item in live.objects.values() if item["kind"] == kind)
    return found


def of_cluster(cluster: str, name: str) -> dict[str, Any]:
    """Return a policy of ipamc for a cluster; of somebody else for ""."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": {"ipamc/cluster": cluster} if cluster else {}},
        "spec": {"variables": [{"name": "a", "expression": "1"}]},
    }


def other_row(live: Living, old: str, new: str) -> Any:
    """Change a block in the policy that gives blocks."""
    for each in spec_of(live, "MutatingAdmissionPolicy")["variables"]:
        each["expression"] = each["expression"].replace(old, new)


EMPTY = 'failed to allocate ipv4 address for node "a" from pool "default": pool empty'

FAULTS: dict[str, tuple[tuple[str, ...], Plant, list[str]]] = {
    # Who has what.
    "two CiliumNodes with one block": (
        (*CILIUM_NODES, "cluster-pool metallb", "crd"),
        lambda live: pod_cidrs(live, "b", *ipam(live, "a")["podCIDRs"]),
        ["error IPC0910"],
    ),
    "two blocks that overlap": (
        CILIUM_NODES,
        lambda live: pod_cidrs(live, "b", "10.1.0.0/25"),
        ["error IPC0910"],
    ),
    "two nodes with one block of a shared pool": (
        OPERATORS_ONLY,
        lambda live: allocated(live, "b", "default", "10.1.0.0/26"),
        ["error IPC0910"],
    ),
    "a node with the block of another one's own pool": (
        ("multi-pool node",),
        lambda live: allocated(live, "b", "default.b", "10.1.0.0/26"),
        ["error IPC0910"],
    ),
    "an address of another node": (
        ("crd",),
        lambda live: ipam(live, "b")["pool"].update({"10.1.0.3": {}}),
        ["error IPC0910"],
    ),
    "a dead node's CiliumNode with a block that was given again": (
        CILIUM_NODES,
        lambda live: live.add(dumps.cilium_node("dead", "10.1.0.64/26")),
        ["error IPC0910"],
    ),
    "two Nodes with one block": (
        KUBERNETES,
        lambda live: (node_cidrs(live, "b", "10.1.0.0/26"), pod_cidrs(live, "b", "10.1.0.0/26")),
        ["error IPC0910"],
    ),
    "two nodes with each other's blocks": (
        (*CILIUM_NODES, "crd"),
        lambda live: swap(live, "CiliumNode", "a", "b"),
        ["error IPC0911"],
    ),
    # Three ways.
    "a CiliumNode edited by hand": (
        (*CILIUM_NODES, "crd"),
        lambda live: pod_cidrs(live, "a", FREE),
        ["error IPC0941"],
    ),
    "a second block added by hand": (
        CILIUM_NODES,
        lambda live: pod_cidrs(live, "a", "10.1.0.0/26", FREE),
        ["error IPC0941"],
    ),
    "a text that is no CIDR added by hand": (
        CILIUM_NODES,
        lambda live: pod_cidrs(live, "a", "10.1.0.0/26", "nonsense"),
        ["error IPC0941"],
    ),
    "an address taken away by hand": (
        ("crd",),
        lambda live: ipam(live, "a")["pool"].pop("10.1.0.9"),
        ["error IPC0941"],
    ),
    "a Node edited by hand": (
        KUBERNETES,
        lambda live: (node_cidrs(live, "a", FREE), pod_cidrs(live, "a", FREE)),
        ["error IPC0941"],
    ),
    "an annotation edited by hand": (
        ("kubernetes annotations",),
        lambda live: annotate(live, "a", FREE),
        ["error IPC0941"],
    ),
    "a pool edited by hand": (
        OPERATORS_ONLY,
        lambda live: live["CiliumPodIPPool default"]["spec"]["ipv4"]["cidrs"].append("10.7.0.0/24"),
        ["error IPC0941"],
    ),
    "a pool of one node edited by hand": (
        ("multi-pool node",),
        lambda live: live["CiliumPodIPPool default.a"]["spec"]["ipv4"].update(cidrs=[FREE]),
        ["error IPC0941"],
    ),
    "a node config edited by hand": (
        ("multi-pool pool", "multi-pool node"),
        lambda live: next(item for item in live.objects.values() if item["kind"] == "CiliumNodeConfig")[
            "spec"
        ]["defaults"].update({"ipam-default-ip-pool": "other"}),
        ["error IPC0941"],
    ),
    "a CiliumNode deleted": (
        (*CILIUM_NODES, "crd"),
        lambda live: drop(live, "CiliumNode a"),
        ["error IPC0943"],
    ),
    "a pool of one node deleted": (
        ("multi-pool node",),
        lambda live: drop(live, "CiliumPodIPPool default.a"),
        ["error IPC0943"],
    ),
    "a node config deleted": (
        ("multi-pool node",),
        lambda live: drop(live, "CiliumNodeConfig kube-system a"),
        ["error IPC0943"],
    ),
    "all pools deleted, or not asked for": (
        OPERATORS_ONLY,
        lambda live: drop(live, "CiliumPodIPPool default"),
        ["note IPC0904", "warning IPC0943"],
    ),
    "all CiliumNodes deleted, or not asked for": (
        ("cluster-pool", "crd"),
        lambda live: live.without("CiliumNode"),
        ["note IPC0904", "warning IPC0943"],
    ),
    "somebody's pool over ours": (
        ("multi-pool pool", "multi-pool node", "cluster-pool"),
        lambda live: live.add(dumps.pool("theirs", mask=26, cidrs=["10.1.0.0/16"])),
        ["error IPC0945"],
    ),
    "somebody's pool elsewhere": (
        ("multi-pool pool", "cluster-pool"),
        lambda live: live.add(dumps.pool("theirs", mask=26, cidrs=["172.30.0.0/16"])),
        ["note IPC0945"],
    ),
    "somebody's node config with a default pool": (
        ("multi-pool pool", "multi-pool node"),
        lambda live: live.add(
            {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumNodeConfig",
                "metadata": {"name": "zz", "namespace": "kube-system"},
                "spec": {"nodeSelector": {}, "defaults": {"ipam-default-ip-pool": "theirs"}},
            }
        ),
        ["warning IPC0945"],
    ),
    # Nodes.
    "a node waits for its block": (
        (*CILIUM_NODES, "crd"),
        lambda live: clear(live, "a"),
        ["error IPC0922"],
    ),
    "a Node without podCIDRs": (
        KUBERNETES,
        lambda live: (node_cidrs(live, "a"), clear(live, "a")),
        ["error IPC0922"],
    ),
    "a node waits for IPv6": (
        ("cluster-pool dual",),
        lambda live: ipam(live, "a")["podCIDRs"].pop(),
        ["error IPC0922"],
    ),
    "an agent asks and gets nothing": (
        ("multi-pool pool", "multi-pool none"),
        lambda live: (allocated(live, "a", "default"), asks(live, "a", "default", 8)),
        ["error IPC0922"],
    ),
    "a ghost": (
        WORLDS,
        lambda live: live.add({**dumps.node("ghots", ready=False, kubelet=""), "status": {"conditions": []}}),
        ["warning IPC0920"],
    ),
    "a node that git does not know, with a block of no pool": (
        tuple(world for world in WORLDS if "adopt" not in world and "dual" not in world),
        lambda live: live.add(dumps.node("new", "10.7.0.0/26"), dumps.cilium_node("new", "10.7.0.0/26")),
        ["error IPC0924"],
    ),
    "a node that left": (WORLDS, lambda live: leave(live, "d"), ["warning IPC0925"]),
    "a node that left its CiliumNode behind": (
        WORLDS,
        lambda live: drop(live, "Node d"),
        ["warning IPC0925"],
    ),
    "a CiliumNode of nobody": (
        WORLDS,
        lambda live: live.add(dumps.cilium_node("dead", FREE)),
        ["warning IPC0926"],
    ),
    "a node that was created again": (
        WORLDS,
        lambda live: live["Node a"]["metadata"].update(uid="another"),
        ["warning IPC0921"],
    ),
    "a node that was created again and waits": (
        CILIUM_NODES,
        lambda live: (live["Node a"]["metadata"].update(uid="another"), clear(live, "a")),
        ["error IPC0921"],
    ),
    # Admission policies.
    "all policies deleted, and a policy of somebody else": (
        ADMISSION,
        lambda live: (drop(live, *policies(live)), live.add(of_cluster("", "theirs"))),
        ["error IPC0943"],
    ),
    "all policies deleted, or not asked for": (
        ADMISSION,
        lambda live: drop(live, *policies(live)),
        ["note IPC0904", "warning IPC0943"],
    ),
    "a binding deleted": (
        ADMISSION,
        lambda live: drop(live, next(name for name in policies(live) if "PolicyBinding" in name)),
        ["error IPC0943"],
    ),
    "a binding that only warns": (
        ADMISSION,
        lambda live: spec_of(live, "ValidatingAdmissionPolicyBinding").update(validationActions=["Warn"]),
        ["error IPC0941"],
    ),
    "a binding of another policy": (
        ADMISSION,
        lambda live: spec_of(live, "MutatingAdmissionPolicyBinding").update(policyName="other"),
        ["error IPC0941"],
    ),
    "a binding that is about some objects alone": (
        ADMISSION,
        lambda live: spec_of(live, "ValidatingAdmissionPolicyBinding").update(
            matchResources={"objectSelector": {"matchLabels": {"a": "b"}}}
        ),
        ["error IPC0941"],
    ),
    "a policy that passes over some objects": (
        ADMISSION,
        lambda live: spec_of(live, "MutatingAdmissionPolicy")["matchConstraints"].update(
            objectSelector={"matchLabels": {"a": "b"}}
        ),
        ["error IPC0941"],
    ),
    "another block in a policy": (
        ADMISSION,
        lambda live: other_row(live, "10.1.0.0/26", FREE),
        ["error IPC0941"],
    ),
    "a policy of another cluster": (
        WORLDS,
        lambda live: live.add(of_cluster("other", "ipamc-other-enforce-nodes-0")),
        ["error IPC0945"],
    ),
    "a policy that is left over": (
        WORLDS,
        lambda live: live.add(of_cluster("fleet", "ipamc-fleet-enforce-elsewhere-0")),
        ["warning IPC0944"],
    ),
    # Routes.
    "the Nodes of masters say otherwise than their CiliumNodes": (
        ("cluster-pool metallb",),
        lambda live: swap(live, "Node", "b", "c"),
        ["error IPC0950"],
    ),
    "a CiliumNode that is not as its Node": (
        KUBERNETES,
        lambda live: pod_cidrs(live, "a", FREE),
        ["error IPC0950"],
    ),
    "podCIDRs that nothing reads": (
        ("cluster-pool", "cluster-pool bgp", "multi-pool pool", "crd"),
        lambda live: [node_cidrs(live, name, f"10.244.{number}.0/24") for number, name in enumerate(NODES)],
        ["note IPC0951"],
    ),
    "an agent that did not restart": (
        WORLDS,
        lambda live: router(live, "a", "10.1.77.7"),
        ["error IPC0952"],
    ),
    "a CiliumNode that was made again while its agent runs": (
        WORLDS,
        lambda live: made_again(live, "a"),
        ["error IPC0952"],
    ),
    "an agent whose CiliumNode was deleted, where nothing is rendered of it": (
        KUBERNETES,
        lambda live: drop(live, "CiliumNode a"),
        ["error IPC0952"],
    ),
    "an agent that did not write its addresses, by Cilium's condition alone": (
        ("kubernetes", "cluster-pool", "multi-pool node"),
        lambda live: (
            made_again(live, "a"),
            drop(live, "Pod kube-system cilium-a"),
            live["Node a"]["status"]["conditions"].append(
                {"type": "NetworkUnavailable", "reason": "CiliumIsUp"}
            ),
        ),
        ["error IPC0952"],
    ),
    # Pods.
    "a pod of another block": (
        WORLDS,
        lambda live: live.add(dumps.pod("web-a", "a", "10.1.0.200")),
        ["error IPC0960"],
    ),
    "an address twice": (
        ("cluster-pool", "kubernetes", "crd", "multi-pool node"),
        lambda live: live.add(dumps.pod("other", "a", "10.1.0.2"), endpoint("other", "10.1.0.2")),
        ["error IPC0961"],
    ),
    "a pod from before Cilium": (
        WORLDS,
        lambda live: drop(live, "CiliumEndpoint default web-a"),
        ["warning IPC0962"],
    ),
    "an endpoint of a former pod": (
        WORLDS,
        lambda live: live.add(endpoint("web-a", "10.1.0.5")),
        ["warning IPC0963"],
    ),
    # Flags.
    "another mode": (
        ("cluster-pool", "multi-pool pool", "cluster-pool applied flags"),
        lambda live: config(live, ipam="kubernetes"),
        ["error IPC0930"],
    ),
    "a family more": (
        ("cluster-pool", "kubernetes"),
        lambda live: config(live, enable_ipv6="true"),
        ["error IPC0930"],
    ),
    "a family less": (
        ("cluster-pool dual",),
        lambda live: config(live, enable_ipv6="false"),
        ["warning IPC0930"],
    ),
    "an operator that hands out blocks by itself": (
        ("cluster-pool", "cluster-pool bgp"),
        lambda live: live.add(operator()),
        ["error IPC0930"],
    ),
    "an operator's argument of another mode": (
        ("multi-pool pool",),
        lambda live: live.add(operator("--ipam=cluster-pool")),
        ["error IPC0930"],
    ),
    "an operator that may hand out our blocks": (
        ("cluster-pool adopt",),
        lambda live: config(live, cluster_pool_ipv4_cidr="10.9.0.0/24 10.8.0.0/24"),
        ["error IPC0930"],
    ),
    "a list that a bystander does not give out of": (
        ("cluster-pool",),
        lambda live: config(live, cluster_pool_ipv4_cidr="10.3.0.0/16"),
        ["note IPC0933"],
    ),
    "a ConfigMap of ours edited by hand": (
        ("cluster-pool applied flags",),
        lambda live: config(live, cluster_pool_ipv4_cidr="10.3.0.0/16", cluster_pool_ipv4_mask_size="27"),
        ["warning IPC0933"],
    ),
    "iptables masquerading without interfaces, which no agent of 1.19 survives": (
        ("multi-pool pool", "multi-pool node", "crd"),
        lambda live: (config(live, enable_ipv4_masquerade="true"), agents_of(live, "v1.19.7")),
        ["error IPC0934"],
    ),
    "iptables masquerading without interfaces, before 1.19": (
        ("multi-pool pool", "multi-pool none", "crd"),
        lambda live: config(live, enable_ipv4_masquerade="true", enable_bpf_masquerade="false"),
        ["warning IPC0934"],
    ),
    "one route to the pods of all blocks, before 1.18": (
        ("multi-pool old",),
        lambda live: config(live, routing_mode="native", enable_endpoint_routes="false"),
        ["warning IPC0935"],
    ),
    "a CRD as 1.15 left it": (
        ("cluster-pool",),
        lambda live: live.add(crd_of_node_configs()),
        ["note IPC0938"],
    ),
    "a CRD as 1.15 left it, and a release that fails on it": (
        ("cluster-pool",),
        lambda live: (live.add(crd_of_node_configs()), agents_of(live, "v1.20.1")),
        ["error IPC0938"],
    ),
    "masquerading that somebody's node config decides": (
        ("multi-pool pool",),
        lambda live: (
            config(live, enable_ipv4_masquerade="true"),
            live.add(
                {
                    "apiVersion": "cilium.io/v2",
                    "kind": "CiliumNodeConfig",
                    "metadata": {"name": "zz", "namespace": "kube-system"},
                    "spec": {"nodeSelector": {}, "defaults": {"enable-bpf-masquerade": "true"}},
                }
            ),
        ),
        ["note IPC0945"],
    ),
    "an agent without a CiliumNode": (
        ("multi-pool pool",),
        lambda live: drop(live, "CiliumNode a"),
        ["error IPC0922"],
    ),
    "annotations that agents do not read": (
        ("kubernetes annotations",),
        lambda live: config(live, annotate_k8s_node="false"),
        ["error IPC0930"],
    ),
    "kube-controller-manager allocates": (
        ("kubernetes", "kubernetes annotations", "cluster-pool metallb"),
        lambda live: live.add(controller("--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16")),
        ["warning IPC0931"],
    ),
    "kube-controller-manager allocates for nobody": (
        ("cluster-pool", "multi-pool none", "crd"),
        lambda live: live.add(controller("--allocate-node-cidrs=true")),
        ["note IPC0931"],
    ),
    "a provider allocates": (
        ("kubernetes", "kubernetes annotations"),
        lambda live: managed(live, "cloud.google.com/gke-nodepool"),
        ["warning IPC0931"],
    ),
    "a provider allocates for nobody": (
        ("cluster-pool", "multi-pool none", "crd"),
        lambda live: managed(live, "cloud.google.com/gke-nodepool"),
        [],
    ),
    "a provider allocates nothing": (
        ("kubernetes",),
        lambda live: managed(live, "eks.amazonaws.com/nodegroup"),
        [],
    ),
    "kubeadm's podSubnet": (
        ("kubernetes",),
        lambda live: live.add(kubeadm("10.244.0.0/16")),
        ["warning IPC0931"],
    ),
    "an older agent": (
        ("cluster-pool", "multi-pool pool"),
        lambda live: live.add(agent("a", "v1.17.8")),
        ["error IPC0932"],
    ),
    # The operator.
    "an error of the operator": (
        ("cluster-pool", "multi-pool pool"),
        lambda live: says(live, "a", "something went wrong"),
        ["warning IPC0970"],
    ),
    "an error whose cause is gone": (
        ("cluster-pool adopt",),
        lambda live: says(live, "a", "requested CIDR (10.1.0.192/26) is already allocated"),
        ["note IPC0970"],
    ),
    "a pool without room": (
        ("multi-pool pool",),
        lambda live: asks(
            live,
            "a",
            "default",
            200,
            EMPTY,
        ),
        ["error IPC0970"],
    ),
    "a pool that was without room": (
        ("multi-pool pool",),
        lambda live: asks(
            live,
            "a",
            "default",
            8,
            EMPTY,
        ),
        ["note IPC0970"],
    ),
    "a block of a pool that is not there": (
        OPERATORS_ONLY,
        lambda live: ipam(live, "a")["pools"]["allocated"].append(
            {"pool": "gone", "cidrs": ["10.66.0.0/26"]}
        ),
        ["error IPC0913"],
    ),
    "another block of the operator than in git": (
        OPERATORS_ONLY,
        lambda live: (allocated(live, "a", "default", "10.1.0.0/27"), router(live, "a", "10.1.0.1")),
        ["note IPC0912"],
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("world", "plant", "expected"),
    [
        pytest.param(world, plant, expected, id=f"{name} - {world}")
        for name, (worlds, plant, expected) in FAULTS.items()
        for world in worlds
    ],
)
def test_a_fault_is_found_and_nothing_else(world: str, plant: Plant, expected: list[str]) -> None:
    live = living(world)
    plant(live)
    assert short(live.audit()) == expected


@pytest.mark.parametrize("requested", [True, False])
def test_an_agent_without_a_block_is_restarted_if_it_asks_for_nothing(*, requested: bool) -> None:
    """It does so where its CiliumNode was deleted while it ran."""
    live = living("multi-pool pool")
    ipam(live, "a")["pools"] = {}
    if requested:
        asks(live, "a", "default", 8)
    (found,) = live.audit()
    restart = "kubectl -n kube-system delete pod -l k8s-app=cilium --field-selector spec.nodeName=a"
    assert (found.code, found.help == restart) == ("IPC0922", not requested)


@pytest.mark.parametrize(
    ("mode", "version", "way_out"),
    [
        ("cluster-pool", "1.15", "ipamc apply fleet --repair"),
        ("cluster-pool", "1.18", "ipamc apply fleet --repair"),
        ("crd", "1.15", "ipamc apply fleet --repair"),
        ("kubernetes", "1.18", "ipamc import fleet --refresh dump.json, then ipamc compile fleet, and apply"),
    ],
)
def test_a_planned_node_that_has_joined_is_led_to_its_block(mode: str, version: str, way_out: str) -> None:
    """In kubernetes mode nothing can be applied before the inventory has the uid of its Node."""
    documents = [
        fleet.cluster(mode, version=version),
        fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 28}),
        inventory(*NODES),
        fleet.inventory([{"name": "e", "planned": True}]),
    ]
    live = Living.of(fleet.compiled(fleet.as_json(documents)))
    assert "IPC0922" not in str(short(live.audit()))
    waits = dumps.cilium_node("e", owner="uid-e")
    live.add(dumps.node("e", uid="uid-e", ip="192.168.0.9"), waits, agent("e", f"v{version}.3"))
    (found,) = (each for each in live.audit() if each.code == "IPC0922")
    assert found.help == way_out
    if mode == "cluster-pool":
        (line,) = (line for line in live.git.plan.lock.lines if line.node == "e")
        live.add(dumps.cilium_node("e", str(line.block), owner="uid-e"))
        router(live, "e", f"{line.block}".partition("/")[0])
        assert live.audit() == ()
