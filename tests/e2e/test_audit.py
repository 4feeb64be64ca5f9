"""`ipamc audit` of living clusters, dumped as the README says: a sound one has 0 problems, and what is done to it by kubectl is found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ipamc.read.rules import DUMP
from tests.e2e.api import CILIUM_NODES, DEPLOYMENTS, NODES, POOLS, Api, Object
from tests.e2e.objects import cilium_node, ip_pool
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import agents_start, apply_seeds, at_rest, handled_by_operator
from tests.e2e.rules import shows
from tests.e2e.site import Site
from tests.e2e.test_clusters import fleet
from tests.e2e.test_config import DEPLOYMENT

PODS = "/api/v1/namespaces/default/pods"
NUMBER = 6
MODES: dict[str, dict[str, Any]] = {
    "kubernetes": {"mode": "kubernetes"},
    "cluster-pool": {"mode": "cluster-pool", "ipFamilies": ["IPv4", "IPv6"]},
    "cluster-pool, adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "multi-pool, pinning node": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "multi-pool, pinning pool": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
    "multi-pool, pinning none": {"mode": "multi-pool", "ipam": {"pinning": "none"}},
    "crd": {"mode": "crd"},
}


class Fault(NamedTuple):
    """Something that is done to a cluster, what the audit says of it, and how it is undone."""

    code: str
    do: Callable[[], Any]
    undo: Callable[[], Any]


def kubelets_start(api: Api) -> None:
    """Let every node's kubelet tell of itself."""
    for number, name in enumerate(sorted(api.items(NODES))):

        def tell(whole: Object, number: int = number) -> None:
            whole["status"] |= {
                "nodeInfo": {**whole["status"].get("nodeInfo", {}), "kubeletVersion": "v1.35.4"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "addresses": [{"type": "InternalIP", "address": f"172.18.0.{number + 10}"}],
            }

        api.change(f"{NODES}/{name}/status", tell)


def copy_pod_cidrs(api: Api) -> None:
    """Let agents of kubernetes mode create their CiliumNodes."""
    nodes = api.items(NODES)
    api.create(CILIUM_NODES, *(cilium_node(name, *each["spec"]["podCIDRs"]) for name, each in nodes.items()))


def blocks(api: Api, name: str) -> list[str]:
    """Return the blocks of a CiliumNode."""
    ipam = api.get(f"{CILIUM_NODES}/{name}")["spec"].get("ipam", {})
    allocated = [cidr for each in ipam.get("pools", {}).get("allocated", ()) for cidr in each["cidrs"]]
    return allocated or list(ipam.get("podCIDRs", ()))


def a_pod_runs(api: Api, name: str, node: str, address: str) -> None:
    """Let a pod run on a node with an address."""
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "app:1"}]}
    api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    api.change(
        f"{PODS}/{name}/status",
        lambda whole: whole["status"].update(
            phase="Running", podIP=address, podIPs=[{"ip": address}], startTime="2026-01-01T00:00:00Z"
        ),
    )


def address_in(block: str, number: int = 5) -> str:
    return str(ip_network(block)[number])


def remember(site: Site) -> None:
    """Commit the cluster, and move the ref of what was applied, as the pipeline does."""
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "-m", "applied"),
        ("update-ref", f"refs/ipamc/applied/{site.name}", "HEAD"),
    ):
        subprocess.run(["git", *arguments], cwd=site.work, check=True, capture_output=True)


def audit(site: Site, *, code: int) -> str:
    """Dump the cluster as the documentation says, without kinds that it does not have, and audit the dump."""
    command = DUMP
    if site.version in {"1.11", "1.12", "1.13"}:
        command = command.replace(",ciliumpodippools,ciliumnodeconfigs", "")
    done = site.api.kubectl(*command.split()[1:])
    assert done.returncode == 0, done.stderr
    (site.work / "dump.json").write_text(done.stdout)
    return site.run("audit", site.name, "dump.json", "--format", "concise", code=code)


def start(site: Site, operator: Operator) -> None:
    """Apply everything, and let operator, agents and pods start; an operator runs already."""
    api = site.api
    site.apply()
    apply_seeds(site)
    container = {**DEPLOYMENT["spec"]["template"]["spec"]["containers"][0]}
    container["args"] = [*container["args"], *site.arguments]
    template = {**DEPLOYMENT["spec"]["template"], "spec": {"containers": [container]}}
    api.create(DEPLOYMENTS, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": template}})
    if site.cluster["ipam"]["mode"] == "kubernetes":
        copy_pod_cidrs(api)
    agents_start(site)
    at_rest(api, operator, site.config, handled=handled_by_operator(site))
    api.delete(f"{CILIUM_NODES}/witness")
    for name in api.items(CILIUM_NODES):
        if four := [cidr for cidr in blocks(api, name) if "." in cidr]:
            a_pod_runs(api, f"web-{name}", name, address_in(four[0]))


def faults(site: Site) -> Iterator[Fault]:
    """Yield what is done to a cluster of a mode."""
    api, mode = site.api, site.cluster["ipam"]["mode"]
    one, other = "node-000", "node-002"
    first, mine = blocks(api, one), blocks(api, other)
    address = address_in(first[0]) if "." in first[0] else ""

    def kubectl(*arguments: str, stdin: Object | None = None) -> Callable[[], Any]:
        def run() -> None:
            done = api.kubectl(*arguments, text=json.dumps(stdin) if stdin else "")
            assert done.returncode == 0, done.stderr

        return run

    def patch(kind: str, name: str, **change: Any) -> Callable[[], Any]:
        return kubectl("patch", kind, name, "-n", "kube-system", "--type=merge", "-p", json.dumps(change))

    def ipam(name: str, **fields: Any) -> Callable[[], Any]:
        return patch("ciliumnode", name, spec={"ipam": fields})

    create = ("create", "--validate=false", "-f", "-")
    dead = cilium_node("dead", "10.99.0.0/27")
    yield Fault("IPC0926", kubectl(*create, stdin=dead), kubectl("delete", "ciliumnode", "dead"))
    ghost = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}}
    yield Fault("IPC0920", kubectl(*create, stdin=ghost), kubectl("delete", "node", "ghost"))
    yield Fault("IPC0960", lambda: a_pod_runs(api, "lost", one, "10.66.0.6"), lambda: pods_go(api, "lost"))
    if address:
        yield Fault("IPC0961", lambda: a_pod_runs(api, "twin", one, address), lambda: pods_go(api, "twin"))
    router = [{"type": "CiliumInternalIP", "ip": "10.66.0.1"}]
    yield Fault(
        "IPC0952",
        patch("ciliumnode", one, spec={"addresses": router}),
        patch("ciliumnode", one, spec={"addresses": []}),
    )
    config = site.config["ipam"]
    yield Fault(
        "IPC0930",
        patch("configmap", "cilium-config", data={"ipam": "delegated-plugin"}),
        patch("configmap", "cilium-config", data={"ipam": config}),
    )
    if mode == "kubernetes":
        yield Fault("IPC0950", ipam(one, podCIDRs=["10.99.0.0/27"]), ipam(one, podCIDRs=first))
        return
    if mode == "multi-pool":
        pools = sorted(api.items(POOLS))
        cidrs = api.get(f"{POOLS}/{pools[0]}")["spec"]["ipv4"]["cidrs"]
        more = {"ipv4": {"cidrs": [*cidrs, "10.77.0.0/24"]}}
        yield Fault(
            "IPC0941",
            patch("ciliumpodippool", pools[0], spec=more),
            patch("ciliumpodippool", pools[0], spec={"ipv4": {"cidrs": cidrs}}),
        )
        yield Fault("IPC0943", kubectl("delete", "ciliumpodippool", pools[0]), site.apply)
        theirs = ip_pool("theirs", "10.0.0.0/16")
        yield Fault("IPC0945", kubectl(*create, stdin=theirs), kubectl("delete", "ciliumpodippool", "theirs"))
        if configs := [
            each["metadata"]["name"]
            for each in site.rendering("*/nodeconfigs.yaml", "pools/*/nodeconfigs.yaml")
        ]:
            delete = kubectl("delete", "ciliumnodeconfig", "-n", "kube-system", configs[0])
            yield Fault("IPC0943", delete, site.apply)
        return
    yield Fault("IPC0910", ipam(other, podCIDRs=first), ipam(other, podCIDRs=mine))
    yield Fault("IPC0941", ipam(other, podCIDRs=["10.99.0.0/27", *mine[1:]]), ipam(other, podCIDRs=mine))
    if mode == "cluster-pool":
        yield Fault("IPC0922", ipam(other, podCIDRs=None), ipam(other, podCIDRs=mine))
    yield Fault("IPC0943", kubectl("delete", "ciliumnode", other), site.apply)


def pods_go(api: Api, *names: str) -> None:
    """Delete pods at once, all of them without names: no kubelet runs that would end them."""
    for name in names or api.items(PODS):
        api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
    until(lambda: not set(names or api.items(PODS)) & api.items(PODS).keys(), "the pods are gone")


@pytest.mark.deep("kubernetes", "multi-pool, pinning node")
@shows("IPC0910", "IPC0920", "IPC0922", "IPC0926", "IPC0930", "IPC0941", "IPC0943", "IPC0945")
@pytest.mark.parametrize("kind", MODES)
def test_a_cluster_that_was_applied_has_no_problems_and_what_is_done_to_it_is_found(
    api: Api, operator: Operator, tmp_path: Path, kind: str
) -> None:
    spec = MODES[kind]
    if spec["mode"] == "multi-pool" and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    pods_go(api)
    site = Site.made(api, tmp_path, fleet(NUMBER, **spec), operator.minor)
    site.join()
    kubelets_start(api)
    site.compile()
    remember(site)
    with operator.running(site.config, *site.arguments):
        start(site, operator)
        assert "found 0 problems" in audit(site, code=0)
    for fault in faults(site):
        fault.do()
        audit(site, code=1)
        found = [line for line in site.said.splitlines() if "error[" in line or "warning[" in line]
        assert [fault.code in line for line in found] == [True], site.said
        assert "found 1 problem\n" in site.said
        fault.undo()
    assert "found 0 problems" in audit(site, code=0)
    pods_go(api)


def test_what_the_operator_gave_by_itself_has_no_problems(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Nodes join that git does not know, and the operator that adopts gives them blocks of its own."""
    pods_go(api)
    site = Site.made(api, tmp_path, fleet(NUMBER, **MODES["cluster-pool, adopt"]), operator.minor)
    site.join()
    site.compile()
    remember(site)
    with operator.running(site.config, *site.arguments):
        start(site, operator)
        for number in range(3):
            name = f"visitor-{number}"
            api.create(NODES, {"metadata": {"name": name}})
            api.create(CILIUM_NODES, {**cilium_node(name), "spec": {}})
        until(
            lambda: all(blocks(api, f"visitor-{number}") for number in range(3)), "the operator gives blocks"
        )
        kubelets_start(api)
        agents_start(site)
        at_rest(api, operator, site.config, handled=True)
        api.delete(f"{CILIUM_NODES}/witness")
        assert "found 0 problems" in audit(site, code=0)
    pods_go(api)
