"""What kube-controller-manager does beside ipamc, with and without `--allocate-node-cidrs`: why IPC0504 asks for it to be off in kubernetes mode, and why it means nothing in the others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, NODES, Api, Object
from tests.e2e.conftest import OPERATORS
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import LOOPBACK, Program, free_port, until
from tests.e2e.proof import at_rest, node_blocks
from tests.e2e.rules import shows
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
RANGE = "10.0.0.0/24"
OURS = pool("pods", ipv4={"cidrs": [RANGE], "blockSize": 26})
LIST = {"apiVersion": "v1", "kind": "List", "items": []}


@pytest.fixture(autouse=True)
def _once(operator: Operator) -> None:
    """It is the same kube-controller-manager beside every operator: one is enough."""
    if operator.binary.parent != OPERATORS[0]:
        pytest.skip("kube-controller-manager was run beside another operator")


@contextmanager
def controller_manager(
    api: Api, folder: Path, *, allocate: bool = True, cidr: str = RANGE, mask: int = 26
) -> Iterator[Program]:
    """Run kube-controller-manager with no other controller than the one that sets podCIDRs of Nodes."""
    port = free_port()
    with Program(
        folder / f"kube-controller-manager-{port}.log",
        str(api.binaries / "kube-controller-manager"),
        f"--kubeconfig={api.kubeconfig}",
        "--controllers=node-ipam-controller",
        f"--allocate-node-cidrs={str(allocate).lower()}",
        f"--cluster-cidr={cidr}",
        f"--node-cidr-mask-size={mask}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates-of-kube-controller-manager'}",
        "--authentication-skip-lookup=true",
    ) as program:
        yield program


@contextmanager
def allocating(api: Api, folder: Path, **options: object) -> Iterator[Program]:
    """Run it until it hands out podCIDRs."""
    with controller_manager(api, folder, **options) as program:  # type: ignore[arg-type]
        program.until(lambda: "Starting range CIDR allocator" in program.said(), "it allocates")
        yield program


def joins(api: Api, *names: str) -> None:
    """Let Nodes be registered, one after the other, as kubelets do it: without podCIDRs, and without a heartbeat yet."""
    for name in names:
        api.create(NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})


def block_of(api: Api, name: str) -> str:
    """Wait until a Node has a podCIDR."""
    until(lambda: api.get(f"{NODES}/{name}")["spec"].get("podCIDR"), f"{name} has a podCIDR")
    return str(api.get(f"{NODES}/{name}")["spec"]["podCIDR"])


def listed(api: Api, operator: Operator, work: Path, *pools: Object) -> Site:
    """Make a kubernetes-mode cluster whose inventory is what kubectl exports, now."""
    documents = [cluster("kubernetes", cilium=NONE), *(pools or [OURS]), LIST]
    site = Site.made(api, work, documents, operator.minor)
    site.export()
    return site


# --allocate-node-cidrs=true, in kubernetes mode.


@shows("IPC0504", "IPC0931")
def test_it_sets_the_pod_cidrs_of_a_node_that_joins_at_once_and_ours_are_refused(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Within a second of the Node's creation on a quiet machine, before any heartbeat: no apply is ever in time."""
    joins(api, "a", "b")
    site = listed(api, operator, tmp_path, pool("pods", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 26}))
    site.compile()
    assert "note[IPC0504]" in site.said
    with allocating(api, tmp_path):
        start = time.monotonic()
        assert {block_of(api, name) for name in "ab"} == {"10.0.0.0/26", "10.0.0.64/26"}
        joins(api, "c")
        assert block_of(api, "c") == "10.0.0.128/26"
        assert time.monotonic() - start < 60
        done, forced = api.apply(site.build()), api.apply(site.build(), "--force-conflicts")
    assert (done.returncode, forced.returncode) == (1, 1)
    assert 'conflict with "kube-controller-manager" using v1: .spec.podCIDR' in done.stderr
    assert forced.stderr.count('node updates may not change podCIDR except from "" to valid') == 2


@shows("IPC0503")
def test_what_it_gave_to_planned_nodes_is_disputed_and_adopted(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    planned = inventory([{"name": name, "planned": True} for name in "ab"])
    site = Site.made(api, tmp_path, [cluster("kubernetes", cilium=NONE), OURS, planned, LIST], operator.minor)
    site.compile()
    lock = site.lock()
    assert lock == {"a": [("pods", "10.0.0.0/26")], "b": [("pods", "10.0.0.64/26")]}
    with allocating(api, tmp_path):
        joins(api, "b", "a")
        assert (block_of(api, "b"), block_of(api, "a")) == ("10.0.0.0/26", "10.0.0.64/26")
        site.export()
        site.compile()
        assert (
            "warning[IPC0503]: node a has podCIDRs 10.0.0.64/26, but the lock holds 10.0.0.0/26" in site.said
        )
        site.run("lock", site.name, "--adopt", "all")  # one after the other: no step exchanges blocks
        assert site.lock() == {"a": [("pods", "10.0.0.64/26")], "b": [("pods", "10.0.0.128/26")]}
        site.run("lock", site.name, "--adopt", "all")
        assert site.lock() == {"a": [("pods", "10.0.0.64/26")], "b": [("pods", "10.0.0.0/26")]}
        site.compile()
        assert "IPC0503" not in site.said
        site.apply()
        api.delete(f"{NODES}/a", f"{NODES}/b")  # as the help says; but while it allocates, that is in vain
        joins(api, "a")
        assert block_of(api, "a") == "10.0.0.128/26"


def test_a_node_whose_pod_cidrs_it_set_is_adopted_with_them(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Which pool the node's labels ask for does not count then: only where the block lies."""
    with allocating(api, tmp_path):
        joins(api, "a")
        assert block_of(api, "a") == "10.0.0.0/26"
    rack = pool("rack", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 26}, priority=1)
    site = listed(api, operator, tmp_path, OURS, rack)
    site.compile()
    assert site.lock() == {"a": [("pods", "10.0.0.0/26")]}
    site.apply()
    assert node_blocks(site) == {"a": ("10.0.0.0/26", "10.0.0.0/26")}


def test_what_we_set_before_it_stays_and_it_gives_newcomers_other_blocks_while_the_nodes_are_there(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    joins(api, "a", "b")
    site = listed(api, operator, tmp_path)
    site.compile()
    site.apply()
    ours = node_blocks(site)
    with allocating(api, tmp_path):
        joins(api, "c", "d")
        assert {block_of(api, "c"), block_of(api, "d")} == {"10.0.0.128/26", "10.0.0.192/26"}
        assert {name: node_blocks(site)[name] for name in "ab"} == ours
        site.apply()
        api.delete(f"{NODES}/a")  # it comes back in some minutes; its block is in the lock
        joins(api, "e")
        assert block_of(api, "e") == "10.0.0.0/26"
        joins(api, "a")
        time.sleep(1)
        assert "podCIDR" not in api.get(f"{NODES}/a")["spec"]
    site.export()
    site.compile()
    assert "warning[IPC0423]: node e shows 10.0.0.0/26, which overlaps 10.0.0.0/26, held by a" in site.said


def test_it_does_not_know_the_blocks_of_the_lock(api: Api, operator: Operator, tmp_path: Path) -> None:
    """A planned node's block goes to whoever joins; where Nodes are created by us, both then have it, and no server says a word."""
    creating = cluster("kubernetes", cilium=NONE, output={"nodeObjects": "create"})
    site = Site.made(api, tmp_path, [creating, OURS, inventory([{"name": "a"}])], operator.minor)
    site.compile()
    with allocating(api, tmp_path):
        joins(api, "stranger")
        assert block_of(api, "stranger") == "10.0.0.0/26"
        site.apply()
        time.sleep(1)
        assert block_of(api, "a") == block_of(api, "stranger") == "10.0.0.0/26"


def test_it_frees_a_whole_block_of_its_own_size_with_the_first_node_inside_that_goes(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """It counts in blocks of `--node-cidr-mask-size`: of two smaller blocks in one, the second is given out while its node runs."""
    joins(api, "a", "b")
    site = listed(api, operator, tmp_path, pool("pods", ipv4={"cidrs": ["10.0.0.0/25"], "blockSize": 27}))
    site.compile()
    site.apply()
    with allocating(api, tmp_path, cidr="10.0.0.0/25"):
        api.delete(f"{NODES}/a")
        joins(api, "c", "d")
        assert {block_of(api, "c"), block_of(api, "d")} == {"10.0.0.64/26", "10.0.0.0/26"}
    assert node_blocks(site)["b"] == ("10.0.0.32/27", "10.0.0.32/27")


def test_it_does_not_start_beside_a_node_whose_block_is_outside_its_range(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    joins(api, "a")
    site = listed(api, operator, tmp_path)
    site.compile()
    site.apply()
    with controller_manager(api, tmp_path, cidr="10.9.0.0/24") as program:
        until(lambda: not program.running, "kube-controller-manager gives up")
        assert "failed to mark cidr[10.0.0.0/26] at idx [0] as occupied" in program.said()


# --allocate-node-cidrs=false.


def test_told_not_to_it_sets_nothing(api: Api, operator: Operator, tmp_path: Path) -> None:
    joins(api, "a")
    site = listed(api, operator, tmp_path)
    site.compile()
    with controller_manager(api, tmp_path, allocate=False) as program:
        program.until(lambda: "node-ipam-controller" in program.said(), "it has looked at its controllers")
        joins(api, "b")
        time.sleep(2)  # it takes far less where it is told to
        assert all("podCIDR" not in node["spec"] for node in api.items(NODES).values())
        site.apply()
        assert node_blocks(site) == {"a": ("10.0.0.0/26", "10.0.0.0/26"), "b": (None,)}
        site.export()
        site.compile()
        site.apply()
        assert node_blocks(site)["b"] == ("10.0.0.64/26", "10.0.0.64/26")
        assert program.running


# The other modes.


@shows("IPC0506", "IPC0817", "IPC0951")
@pytest.mark.parametrize("ipam", [{}, {"operator": "adopt"}], ids=["bystander", "adopt"])
def test_in_cluster_pool_mode_its_pod_cidrs_mean_nothing(
    api: Api, operator: Operator, tmp_path: Path, ipam: dict[str, str]
) -> None:
    spare = [pool("spare", ipv4={"cidrs": ["10.8.0.0/24"], "blockSize": 26}, unlisted=True)] if ipam else []
    documents = [cluster("cluster-pool", ipam=ipam, cilium=NONE), OURS, *spare, LIST]
    site = Site.made(api, tmp_path, documents, operator.minor)
    with allocating(api, tmp_path):
        joins(api, "c", "b", "a")
        theirs = {name: block_of(api, name) for name in "abc"}
    site.export()
    assert set(theirs.values()) == {"10.0.0.0/26", "10.0.0.64/26", "10.0.0.128/26"}
    assert "0 renumbered" in site.compile()
    ours = {"a": ["10.0.0.0/26"], "b": ["10.0.0.64/26"], "c": ["10.0.0.128/26"]}  # by name, not by theirs
    assert {name: [block for _, block in some] for name, some in site.lock().items()} == ours
    with operator.running(site.config, *site.arguments):
        site.apply()
        if ipam:
            api.create(CILIUM_NODES, cilium_node("s"))
        live = at_rest(api, operator, site.config, handled=bool(ipam))
        assert {name: live[name]["spec"]["ipam"]["podCIDRs"] for name in "abc"} == ours
        if ipam:
            assert live["s"]["spec"]["ipam"]["podCIDRs"][0].startswith("10.8.0.")
    dump = json.loads(api.kubectl("get", "ciliumnodes", "-o", "json").stdout)
    site.write("live.yaml", dump)
    site.compile()
    assert {name: [block for _, block in some] for name, some in site.lock().items()} == ours
