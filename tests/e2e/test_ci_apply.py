"""What `ipamc apply` refuses, withholds, repairs and deletes, on real servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, DEPLOYMENTS, NODE_CONFIGS, NODES, POOLS, Api, Object
from tests.e2e.conftest import SERVERS
from tests.e2e.objects import allocated, asks, cilium_node, ip_pool, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site, second_family
from tests.e2e.test_clusters import fleet
from tests.e2e.test_pipelines import Pipeline

PODS = "/api/v1/namespaces/default/pods"
KUBECTLS = sorted(each for folder in SERVERS if (each := folder / "kubectl").exists())
"""The oldest kubectl that ipamc works with, and the newest one that it was tried with."""
FLEETS: dict[str, dict[str, Any]] = {
    "bystander": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "kubernetes": {"mode": "kubernetes"},
    "annotated": {"mode": "kubernetes", "patchNodes": "annotations"},
    "crd": {"mode": "crd"},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
}


def made(api: Api, operator: Operator, tmp_path: Path, kind: str, owner: str = "none") -> Pipeline:
    """Compile a cluster of six nodes in two shards, whose flags belong to `owner`."""
    documents = fleet(6, **FLEETS[kind])
    documents[0]["spec"]["cilium"]["managedBy"] = owner
    site = Site.made(api, tmp_path / "work", documents, operator.minor)
    site.join()
    site.compile()
    return Pipeline(site, tmp_path)


def apply(
    pipeline: Pipeline,
    *options: str,
    code: int = 0,
    target: str = "fleet",
    wait: str = "0.5",
    kubectl: str = "kubectl",
) -> str:
    """Run `ipamc apply` as a job does; the operator has `wait` seconds to object."""
    file = pipeline.temporary / "kubeconfig"
    file.write_text(pipeline.secret)
    command = f"ipamc apply {target} {' '.join(options)}"
    return pipeline.run(command, code=code, KUBECONFIG=str(file), IPAMC_WAIT=wait, KUBECTL=kubectl)


def flags(api: Api, data: dict[str, str], *arguments: str) -> None:
    """Write cilium-config and the operator's Deployment, as Helm would."""
    metadata = {"name": "cilium-config", "namespace": "kube-system"}
    api.delete(f"{CONFIG_MAPS}/cilium-config", f"{DEPLOYMENTS}/cilium-operator")
    api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    labels = {"name": "cilium-operator"}
    container = {
        "name": "cilium-operator",
        "image": "none",
        "command": ["cilium-operator-generic"],
        "args": ["--config-dir=/tmp/cilium/config-map", *arguments],
    }
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
        "spec": spec,
    }
    api.create(DEPLOYMENTS, deployment)


def pod(api: Api, name: str, node: str, address: str, phase: str = "Running", **more: Any) -> None:
    """Let a pod run on a node, with an address."""
    spec = {"nodeName": node, "containers": [{"name": "a", "image": "none"}], **more.get("spec", {})}
    metadata = {"name": name, **more.get("metadata", {})}
    api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]}
    api.sure("PATCH", f"{PODS}/{name}/status", {"status": status}, content="application/merge-patch+json")


@pytest.fixture(autouse=True)
def no_pods(api: Api) -> None:
    api.delete(f"{PODS}?gracePeriodSeconds=0")


def block(api: Api, node: str) -> list[str]:
    """Return the podCIDRs of a live CiliumNode."""
    return list(api.get(f"{CILIUM_NODES}/{node}")["spec"]["ipam"].get("podCIDRs", ()))


# Before it writes.


@pytest.mark.deep("helm")
@pytest.mark.parametrize("owner", ["helm", "none"])
def test_a_bystander_without_its_argument_is_refused(
    api: Api, operator: Operator, tmp_path: Path, owner: str
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander", owner)
    said = apply(pipeline)  # Cilium is not installed yet
    assert "Cilium is not installed yet" in said
    api.delete(CILIUM_NODES)
    flags(api, pipeline.site.config, "--ipam=kubernetes")
    apply(pipeline)
    api.delete(CILIUM_NODES)
    flags(api, pipeline.site.config, "--ipam=kubernetes", "--ipam", "cluster-pool")
    assert "the operator runs with --ipam=cluster-pool, so it hands out blocks itself" in apply(
        pipeline, code=1
    )
    flags(api, pipeline.site.config)
    said = apply(pipeline, code=1)
    assert "no --ipam, so it hands out blocks itself: it must run with --ipam=kubernetes" in said
    assert "operator.extraArgs" in said
    assert not api.items(CILIUM_NODES)
    apply(pipeline, "--before-flags")
    assert api.items(CILIUM_NODES)


def test_another_mode_is_refused_and_applied_before_the_flags_by_consent(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "adopt", "helm")
    flags(api, {**pipeline.site.config, "ipam": "kubernetes"})
    said = apply(pipeline, code=1)
    assert "cilium-config has ipam: kubernetes, but cluster-pool is rendered" in said
    assert not api.items(CILIUM_NODES)
    apply(pipeline, "--before-flags")
    assert api.items(CILIUM_NODES)


def test_an_operator_whose_list_has_more_that_is_free_is_refused(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "adopt", "helm")
    config = pipeline.site.config
    held = config["cluster-pool-ipv4-cidr"]
    flags(api, {**config, "cluster-pool-ipv4-cidr": f"{held} 10.77.0.0/24"})
    said = apply(pipeline, code=1)
    assert "the operator may hand out 10.77.0.0/24" in said
    assert not api.items(CILIUM_NODES)
    flags(api, {**config, "cluster-pool-ipv4-cidr": "10.1.0.0/25"})
    assert "warning: fleet: cluster-pool-ipv4-cidr in the cluster lacks 10.1.0.128/25" in apply(pipeline)


def test_flags_that_ipamc_applies_itself_come_first_and_then_the_restart(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "adopt")
    config = pipeline.site.config
    api.sure(
        "PATCH",
        f"{CONFIG_MAPS}/cilium-config?fieldManager=ipamc&force=true",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cilium-config", "namespace": "kube-system"},
            "data": {**config, "cluster-pool-ipv4-cidr": "10.77.0.0/24"},
        },
        content="application/apply-patch+yaml",
    )
    said = apply(pipeline, code=1)
    assert "rollout restart deployment/cilium-operator" in said
    assert api.get(f"{CONFIG_MAPS}/cilium-config")["data"] == config
    assert not api.items(CILIUM_NODES)
    apply(pipeline)
    assert api.items(CILIUM_NODES)


# Blocks that pods, or other nodes, use.


def moved(pipeline: Pipeline, node: str) -> tuple[str, str]:
    """Give a node another block in what is rendered; return both."""
    site = pipeline.site
    ((_, old),) = site.lock()[node]
    site.run("lock", site.name, "--renumber", node)
    ((_, new),) = site.lock("pending")[node]
    for file in site.rendered.glob("*/*/*.yaml"):
        file.write_text(file.read_text().replace(f" {old}\n", f" {new}\n"))
    return old, new


def test_a_block_that_pods_use_stays_and_the_others_are_applied(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    node, other = sorted(pipeline.site.lock())[:2]
    old, new = moved(pipeline, node)
    api.delete(f"{CILIUM_NODES}/{other}")
    address = old.rpartition(".")[0] + "." + str(int(old.rpartition(".")[2].partition("/")[0]) + 5)
    pod(api, "runs", node, address)
    pod(api, "ended", node, address, phase="Succeeded")
    pod(api, "on-host", node, address, spec={"hostNetwork": True})
    said = apply(pipeline, code=1)
    assert (
        f"error: fleet: CiliumNode {node}: not applied: {old} would become {new}, but 1 pod on node" in said
    )
    assert f"kubectl drain {node}" in said
    assert block(api, node) == [old]
    assert block(api, other)
    api.delete(f"{PODS}/runs?gracePeriodSeconds=0")
    apply(pipeline)
    assert block(api, node) == [new]


@pytest.mark.parametrize("program", KUBECTLS, ids=lambda program: program.parent.name)
def test_every_kubectl_applies_withholds_and_names_what_is_refused(
    api: Api, operator: Operator, tmp_path: Path, program: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    used, foreign, lost, *_ = sorted(pipeline.site.lock())
    kubectl = str(program)
    assert "objects applied" in apply(pipeline, kubectl=kubectl)
    old, _ = moved(pipeline, used)
    pod(api, "runs", used, old.replace(".0/27", ".9"))
    api.change(
        f"{CILIUM_NODES}/{foreign}", lambda node: node["spec"]["ipam"].update(podCIDRs=["10.9.0.0/27"])
    )
    for options in ((), ("--repair",)):
        api.delete(f"{CILIUM_NODES}/{lost}")
        said = apply(pipeline, *options, code=1, kubectl=kubectl)
        assert f"CiliumNode {used}: not applied: {old} would become" in said
        assert f"error: fleet: CiliumNode {foreign}: error: Apply failed with 1 conflict" in said
        assert f"error: fleet: 1 object refused: CiliumNode {foreign}" in said
        assert block(api, used) == [old]
        assert block(api, foreign) == ["10.9.0.0/27"]
        assert block(api, lost) == [pipeline.site.lock()[lost][0][1]]
    api.delete(f"{PODS}/runs?gracePeriodSeconds=0", f"{CILIUM_NODES}/{foreign}")
    apply(pipeline, kubectl=kubectl)
    assert "nothing to repair" in apply(pipeline, "--repair", kubectl=kubectl)


@pytest.mark.deep("bystander")
@pytest.mark.parametrize("kind", ["bystander", "kubernetes"])
def test_a_node_that_was_deleted_before_it_was_drained_keeps_its_pods(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    pipeline = made(api, operator, tmp_path, kind)
    apply(pipeline)
    site, node = pipeline.site, min(pipeline.site.lock())
    old = moved(pipeline, node)[0]
    site.run("lock", site.name, "--settle", node)
    api.delete(f"{CILIUM_NODES}/{node}", f"{NODES}/{node}")
    api.create(NODES, {"metadata": {"name": node}})
    site.export()
    site.compile()
    pod(api, "runs", node, old.replace(".0/27", ".9"))
    said = apply(pipeline, code=1)
    assert f"{node}: not applied: {old} would become {site.lock()[node][0][1]}" in said
    api.delete(f"{PODS}/runs?gracePeriodSeconds=0")
    apply(pipeline)


def test_pods_that_a_drain_leaves_hold_a_node_only_until_it_is_cordoned(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    node = min(pipeline.site.lock())
    old, new = moved(pipeline, node)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "a", "controller": True}
    pod(api, "logs-1", node, old.replace(".0/27", ".9"), metadata={"ownerReferences": [owner]})
    apply(pipeline, code=1)
    assert block(api, node) == [old]
    api.sure(
        "PATCH",
        f"{NODES}/{node}",
        {"spec": {"unschedulable": True}},
        content="application/merge-patch+json",
    )
    apply(pipeline)
    assert block(api, node) == [new]


def test_a_block_that_another_ciliumnode_has_is_never_written(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    name, ((_, mine),) = min(pipeline.site.lock().items())
    api.create(CILIUM_NODES, cilium_node("stranger", mine))
    said = apply(pipeline, code=1)
    assert (
        f"CiliumNode {name}: not applied: another node has these addresses in the cluster: {mine} in" in said
    )
    assert api.items(CILIUM_NODES).keys() == {"stranger", *pipeline.site.lock()} - {name}
    api.delete(f"{CILIUM_NODES}/stranger")
    apply(pipeline)
    assert block(api, name) == [mine]


def test_own_pools_of_nodes_with_pods_stay(api: Api, operator: Operator, tmp_path: Path) -> None:
    if operator.version < (1, 15):
        pytest.skip("pinning is from 1.15 on")
    pipeline = made(api, operator, tmp_path, "pinned")
    apply(pipeline)
    node = min(pipeline.site.lock())
    old, new = moved(pipeline, node)
    pod(api, "runs", node, old.replace(".0/27", ".9"))
    said = apply(pipeline, code=1)
    assert f"CiliumPodIPPool default.{node}: not applied: {old} would become {new}" in said
    assert api.items(POOLS)[f"default.{node}"]["spec"]["ipv4"]["cidrs"] == [old]


def test_a_shared_pool_keeps_cidrs_that_nodes_have(api: Api, operator: Operator, tmp_path: Path) -> None:
    if operator.version < (1, 15):
        pytest.skip("pinning is from 1.15 on")
    pipeline = made(api, operator, tmp_path, "shared")
    apply(pipeline)
    pools = {"allocated": [{"pool": "default", "cidrs": ["10.0.4.0/27"]}]}
    api.create(CILIUM_NODES, cilium_node("a", pools=pools))
    file = pipeline.site.rendered / "cilium/ippools.yaml"
    text = file.read_text()
    file.write_text(text.replace("10.0.0.0/17", "10.0.0.0/22"))
    said = apply(pipeline, code=1)
    assert "CiliumPodIPPool default: not applied:" in said
    assert "1 node has blocks: a" in said
    assert api.items(POOLS)["default"]["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/17"]


def test_a_shared_pool_does_not_swallow_cidrs_that_nodes_have(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """A lock that does not know what was published has one wider CIDR: up to 1.18 newcomers get blocks that are in use."""
    if operator.version < (1, 15):
        pytest.skip("pinning is from 1.15 on")
    pipeline = made(api, operator, tmp_path, "shared")
    site = pipeline.site
    api.create(POOLS, ip_pool("default", "10.0.0.0/20"))
    with operator.running(site.config, *site.arguments):
        api.create(CILIUM_NODES, cilium_node("a", pools=asks("default", 16)))
        until(lambda: allocated(api.get(f"{CILIUM_NODES}/a")), "a has a block")
        given = allocated(api.get(f"{CILIUM_NODES}/a"))
        said = apply(pipeline, code=1)
        assert "CiliumPodIPPool default: not applied: 10.0.0.0/20 would become part of a wider CIDR" in said
        assert api.items(POOLS)["default"]["spec"]["ipv4"]["cidrs"] == ["10.0.0.0/20"]
        file = site.rendered / "cilium/ippools.yaml"
        file.write_text(file.read_text().replace("10.0.0.0/17", "10.0.0.0/20"))
        site.compile()
        said = apply(pipeline, code=1)
        assert "--force-conflicts` flag" not in said
        assert "--force-conflicts -f clusters/fleet/rendered/cilium/ippools.yaml" in said
        api.applied(file.read_text(), "--force-conflicts")
        apply(pipeline)
        cidrs = api.items(POOLS)["default"]["spec"]["ipv4"]["cidrs"]
        assert cidrs == ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/19", "10.0.64.0/18"]
        api.create(CILIUM_NODES, cilium_node("b", pools=asks("default", 16)))
        until(lambda: allocated(api.get(f"{CILIUM_NODES}/b")), "b has a block")
        assert allocated(api.get(f"{CILIUM_NODES}/b")) != given


# Repair.


def test_a_repair_applies_what_is_missing_or_differs_and_stops_for_none(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    assert "nothing to repair" in apply(pipeline, "--repair")
    lost, edited, gone, owned, *_ = sorted(pipeline.site.lock())
    before = {name: item["metadata"]["resourceVersion"] for name, item in api.items(CILIUM_NODES).items()}
    api.delete(f"{CILIUM_NODES}/{lost}", f"{CILIUM_NODES}/{gone}", f"{NODES}/{gone}")
    api.change(f"{CILIUM_NODES}/{edited}", lambda node: node["spec"]["ipam"].update(podCIDRs=[]))
    api.change(f"{CILIUM_NODES}/{owned}", lambda node: node["spec"]["ipam"].update(podCIDRs=["10.9.0.0/27"]))
    said = apply(pipeline, "--repair", code=1)
    assert f"CiliumNode {lost}: was missing, repaired" in said
    assert f"CiliumNode {gone}: the cluster has no such Node" in said
    assert f"error: fleet: CiliumNode {owned}: " in said
    assert "ipamc does not use force" in said
    now = api.items(CILIUM_NODES)
    assert block(api, lost) == [pipeline.site.lock()[lost][0][1]]
    assert gone not in now
    untouched = before.keys() - {lost, edited, gone, owned}
    assert {name: now[name]["metadata"]["resourceVersion"] for name in untouched} == {
        name: before[name] for name in untouched
    }


def test_a_recreated_node_is_reported_and_stops_no_other(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "kubernetes")
    again, other, *_ = sorted(pipeline.site.lock())
    apply(pipeline)
    api.delete(f"{NODES}/{again}", f"{NODES}/{other}")
    api.create(NODES, {"metadata": {"name": again}})
    said = apply(pipeline, "--repair", code=1)
    assert f"Node {again}: the node was re-created with another uid: refresh the inventory" in said
    assert f"Node {other}: the cluster has no such Node" in said
    assert not api.get(f"{NODES}/{again}")["spec"].get("podCIDRs")


def test_the_scheduled_job_gives_a_recreated_node_its_block_back(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    pipeline.github()
    node = min(pipeline.site.lock())
    api.delete(f"{NODES}/{node}", f"{CILIUM_NODES}/{node}")
    api.create(NODES, {"metadata": {"name": node}})
    api.create(CILIUM_NODES, cilium_node(node))  # its agent's, which waits for a block
    with operator.running(pipeline.site.config, *pipeline.site.arguments):
        said = pipeline.github(REPAIR="true")
    assert f"CiliumNode {node}: differed, repaired" in said
    assert block(api, node) == [pipeline.site.lock()[node][0][1]]
    assert "nothing to repair" in pipeline.github(REPAIR="true")


def test_an_operator_that_adopts_gives_a_recreated_node_another_block_at_once(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "adopt")
    node, ((_, held),) = min(pipeline.site.lock().items())
    with operator.running(pipeline.site.config, *pipeline.site.arguments):
        apply(pipeline)
        api.delete(f"{CILIUM_NODES}/{node}")
        api.create(CILIUM_NODES, cilium_node(node))
        until(lambda: block(api, node), "the operator gives the node a block")
        assert block(api, node) != [held]
        said = apply(pipeline, "--repair", code=1)
        assert f"error: fleet: CiliumNode {node}: error: Apply failed with 1 conflict" in said
        assert "ipamc does not use force" in said
        assert "--force-conflicts" not in said
        assert f"kubectl delete ciliumnode {node} && ipamc apply fleet --repair" in said
        api.delete(f"{CILIUM_NODES}/{node}")
        assert f"CiliumNode {node}: was missing, repaired" in apply(pipeline, "--repair")
        assert block(api, node) == [held]


@pytest.mark.deep("crd")
@pytest.mark.parametrize("kind", ["bystander", "crd"])
def test_a_block_is_added_to_those_that_somebody_else_wrote(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    """A block that somebody wrote is not taken away."""
    pipeline = made(api, operator, tmp_path, kind)
    lock = pipeline.site.lock()
    api.create(CILIUM_NODES, *(cilium_node(name, held) for name, ((_, held),) in lock.items()))
    assert "another field manager" not in apply(pipeline)
    second_family(pipeline.site)
    pipeline.site.compile()
    last = max(lock)
    api.change(f"{CILIUM_NODES}/{last}", lambda seen: seen["spec"]["ipam"].update(podCIDRs=["10.77.0.0/27"]))
    said = apply(pipeline, code=1)
    assert "fleet: 4 CiliumNodes got more blocks, although another field manager wrote the first ones" in said
    assert f"CiliumNode {last}: error: Apply failed with 1 conflict" in said
    both = {name: [block for _, block in lines] for name, lines in pipeline.site.lock().items()}
    assert {name: block(api, name) for name in lock} == {**both, last: ["10.77.0.0/27"]}
    assert all(len(blocks) == 2 for blocks in both.values())


def test_a_block_that_the_operator_does_not_let_go_fails_the_job(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    node = min(pipeline.site.lock())
    with operator.running(pipeline.site.config):  # without the argument: it has all blocks in its books
        apply(pipeline)
        _, new = moved(pipeline, node)
        said = apply(pipeline, code=1, wait="3")
        assert "drain the node, delete its CiliumNode, run this again" in said
        api.delete(f"{CILIUM_NODES}/{node}")
        apply(pipeline, wait="3")
        assert block(api, node) == [new]


@pytest.mark.deep("annotated", "shared")
@pytest.mark.parametrize("kind", FLEETS)
def test_after_an_apply_nothing_is_to_repair(api: Api, operator: Operator, tmp_path: Path, kind: str) -> None:
    if operator.version < (1, 15) and kind in {"pinned", "shared"}:
        pytest.skip("pinning is from 1.15 on")
    pipeline = made(api, operator, tmp_path, kind)
    with operator.running(pipeline.site.config, *pipeline.site.arguments):
        apply(pipeline)
        assert "nothing to repair" in apply(pipeline, "--repair")


# Planned nodes.


def starts(api: Api, node: str) -> None:
    """Let a node join, and let its agent start: it replaces the metadata of its CiliumNode, or makes it."""
    (joined,) = api.create(NODES, {"metadata": {"name": node}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": joined["metadata"]["uid"]}
    if node not in api.items(CILIUM_NODES):
        api.create(CILIUM_NODES, cilium_node(node))
    api.change(
        f"{CILIUM_NODES}/{node}",
        lambda seen: seen["metadata"].update(ownerReferences=[owner], annotations={}, labels={"a": "b"}),
    )


@pytest.mark.deep("crd")
@pytest.mark.parametrize("kind", ["bystander", "crd"])
def test_a_planned_node_has_its_block_after_it_joined(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    """Older operators delete a CiliumNode without a Node, so nothing is rendered for it; and from 1.18 on, what an agent removes stays removed."""
    documents = fleet(6, **FLEETS[kind])
    for document in documents:
        for node in document.get("nodes", ()):
            node["planned"] = True
    site = Site.made(api, tmp_path / "work", documents, operator.minor)
    kept = operator.version >= (1, 18)
    assert ("note[IPC0568]" in site.compile()) is not kept
    pipeline, (joins, *others) = Pipeline(site, tmp_path), sorted(site.lock())
    with operator.running(site.config, *site.arguments):
        assert (f"6 planned nodes without an agent: {joins}, " in apply(pipeline)) is not kept
        assert len(api.items(CILIUM_NODES)) == (6 if kept else 0)
        starts(api, joins)
        said = apply(pipeline, "--repair")
        assert ("nothing to repair" in said) is kept
        assert block(api, joins) == [cidr for _, cidr in site.lock()[joins]]
        before = api.get(f"{CILIUM_NODES}/{joins}")["metadata"]["resourceVersion"]
        assert "left the tree" not in apply(pipeline)
        assert api.get(f"{CILIUM_NODES}/{joins}")["metadata"]["resourceVersion"] == before
        starts(api, others[0])
        apply(pipeline)
        assert block(api, others[0]) == [cidr for _, cidr in site.lock()[others[0]]]


# Rights.


def test_without_rights_nothing_is_guessed(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    roles, bindings = (
        f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings")
    )
    api.delete(f"{bindings}/ci", f"{roles}/ci")
    file = pipeline.temporary / "kubeconfig"
    environment: dict[str, Any] = {"KUBECONFIG": str(file), "IPAMC_WAIT": "0.5", "KUBECTL": "kubectl --as=ci"}
    said = pipeline.run("ipamc apply fleet", code=1, **environment)
    assert "configmaps cilium-config in kube-system cannot be read" in said
    rules = [
        {"apiGroups": ["cilium.io", "apiextensions.k8s.io", "apps"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
    ]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ci"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ci"}
    api.create(roles, {"metadata": {"name": "ci"}, "rules": rules})
    api.create(bindings, {"metadata": {"name": "ci"}, "roleRef": reference, "subjects": [subject]})
    pipeline.run("ipamc apply fleet", **environment)
    old, _ = moved(pipeline, min(pipeline.site.lock()))
    said = pipeline.run("ipamc apply fleet", code=1, **environment)
    assert "pods that may use the old addresses cannot be read" in said
    assert block(api, min(pipeline.site.lock())) == [old]


# What the operator says.


def test_errors_from_before_are_no_failure(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    apply(pipeline)
    node = min(pipeline.site.lock())
    status = {"status": {"ipam": {"operator-status": {"error": "somebody's\nold error"}}}}
    api.sure("PATCH", f"{CILIUM_NODES}/{node}/status", status, content="application/merge-patch+json")
    said = apply(pipeline)
    assert f"CiliumNode {node}: an earlier error" in said


def test_an_operator_that_does_not_know_our_blocks_is_no_failure(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "adopt", "helm")
    config = pipeline.site.config
    flags(api, config)
    with operator.running(config):
        assert "error" not in apply(pipeline, wait="3")
        node = min(pipeline.site.lock())
        assert "allocator not configured" in verdict(api.get(f"{CILIUM_NODES}/{node}"))


# Objects that left the tree.


def test_what_left_the_tree_is_named_and_deleted_by_consent_in_order(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 15):
        pytest.skip("pinning is from 1.15 on")
    pipeline = made(api, operator, tmp_path, "pinned")
    version = "v2" if operator.version >= (1, 16) else "v2alpha1"
    configs = next(path for path in NODE_CONFIGS if f"/{version}/" in path)

    def ours(path: str, document: Object) -> None:
        api.sure(
            "PATCH",
            f"{path}/{document['metadata']['name']}?fieldManager=ipamc",
            document,
            content="application/apply-patch+yaml",
        )

    ours(
        configs,
        {
            "apiVersion": f"cilium.io/{version}",
            "kind": "CiliumNodeConfig",
            "metadata": {"name": "old", "namespace": "kube-system"},
            "spec": {"defaults": {"ipam-default-ip-pool": "old"}, "nodeSelector": {}},
        },
    )
    ours(
        CILIUM_NODES,
        cilium_node("dead", pools={"allocated": [{"pool": "dead-pool", "cidrs": ["10.8.0.0/27"]}]}),
    )
    alive = min(pipeline.site.lock())
    ours(POOLS, ip_pool("dead-pool", "10.8.0.0/24"))
    ours(POOLS, ip_pool("used", "10.9.0.0/24"))
    api.create(
        CILIUM_NODES,
        cilium_node("by-hand", pools={"allocated": [{"pool": "used", "cidrs": ["10.9.0.0/27"]}]}),
    )
    api.create(POOLS, ip_pool("by-hand", "10.7.0.0/24"))
    said = apply(pipeline, "--prune", code=1)
    assert "nothing is deleted, because they may belong to another cluster" in said
    said = apply(pipeline)
    assert "1 CiliumNodeConfig left the tree: old;" in said
    assert "1 CiliumNode left the tree: dead;" in said
    assert "kept: CiliumNode by-hand has blocks of it" in said
    assert "--prune deletes 2 objects" in said
    said = apply(pipeline, "--prune")
    assert said.index("1 CiliumNodeConfig deleted") < said.index("1 CiliumNode deleted")
    assert said.index("1 CiliumNode deleted") < said.index("1 CiliumPodIPPool deleted: dead-pool")
    assert {"by-hand"} <= api.items(CILIUM_NODES).keys()
    assert "dead" not in api.items(CILIUM_NODES)
    assert {"used", "by-hand", f"default.{alive}"} <= api.items(POOLS).keys()
    assert "left the tree: old" not in apply(pipeline)
    assert "left the tree" not in apply(pipeline, target="fleet/pools/000")
