"""A renumber from consent to uncordon, in every mode, with other merges in between, and in wrong orders.

No agent runs here: its part is played. A drain has nothing to do, as there are no pods.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import combinations
from pathlib import Path

import pytest

from tests.e2e import proof
from tests.e2e.api import CILIUM_NODES, NODES, Api, Object
from tests.e2e.objects import allocated, asks, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import applying_again_changes_nothing, at_rest, everything, handled_by_operator, holds
from tests.e2e.rules import shows
from tests.e2e.site import Site, dumped
from tests.support.fleet import cluster, inventory, pool

EIGHT = {"cidrs": ["10.0.0.0/24"], "blockSize": 27}
SPARE = {"ipv4": {"cidrs": ["10.9.0.0/24"], "blockSize": 27}, "unlisted": True}
NONE = {"managedBy": "none"}
OLD, NEW, NEXT = "10.0.0.32/27", "10.0.0.96/27", "10.0.0.128/27"
"""The block of node b, the one that it is renumbered to, and the first one that is free after that."""
MODES = ("kubernetes", "annotations", "bystander", "adopt", "crd", "pinning-node")


@dataclass
class Lab:
    """A cluster of the nodes a, b and c, which `begin` has brought up."""

    mode: str
    site: Site
    operator: Operator

    @property
    def api(self) -> Api:
        """The kube-apiserver."""
        return self.site.api

    def join(self, name: str) -> None:
        """Merge something else: a node joins, is compiled and applied, and its agent starts."""
        self.api.create(NODES, {"metadata": {"name": name}})
        self.enlist(name)
        self.site.apply()
        self.agent_starts(name)

    def enlist(self, name: str, *, evidence: bool = False) -> None:
        """Take a live node into the inventory, with the CiliumNodes where they are evidence, and compile."""

        def add(document: Object) -> None:
            if document["kind"] == "NodeInventory":
                document["nodes"].append({"name": name})

        self.site.edit(add)
        self.site.export()
        if evidence:
            self.dump()
        self.site.compile()

    def dump(self) -> Path:
        """Export the CiliumNodes into the inputs; return the file."""
        live = json.loads(self.api.kubectl("get", "ciliumnodes", "-o", "json").stdout)
        self.site.write("live.yaml", live)
        return self.site.folder / "live.yaml"

    def agent_starts(self, *names: str) -> None:
        """Let agents start: each makes its CiliumNode where there is none, without a block (pkg/nodediscovery)."""
        if self.mode in {"kubernetes", "annotations"}:
            return  # it copies the Node's block
        nodes, live = self.api.items(NODES), self.api.items(CILIUM_NODES)
        for name in names:
            if name in live:
                multi_pool = self.mode.startswith("pinning-")
                proof.agent_starts(self.api, live[name], nodes, multi_pool=multi_pool)
            else:
                owner = {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": name,
                    "uid": nodes[name]["metadata"]["uid"],
                }
                name_of_pool = f"default.{name}" if self.mode == "pinning-node" else "default"
                ipam = {"pools": asks(name_of_pool, 16)} if self.mode.startswith("pinning-") else {}
                self.api.create(
                    CILIUM_NODES,
                    {
                        "apiVersion": "cilium.io/v2",
                        "kind": "CiliumNode",
                        "metadata": {"name": name, "ownerReferences": [owner]},
                        "spec": {"ipam": ipam},
                    },
                )

    def rejoin(self, name: str) -> None:
        """Delete a Node and let it join again: its kubelet makes it anew, with another uid."""
        self.api.delete(f"{NODES}/{name}")
        self.api.create(NODES, {"metadata": {"name": name}})

    def renumber(self) -> None:
        """Give consent for b to move, and merge it."""
        self.site.run("lock", self.site.name, "--renumber", "b")
        self.site.compile()
        assert self.site.lock("pending") == {"b": [("default", NEW)]}

    def settle(self) -> None:
        """Say that b is drained, and merge it."""
        self.site.run("lock", self.site.name, "--settle", "b")
        self.site.compile()
        assert self.site.lock()["b"] == [("default", NEW)]
        assert self.site.lock("quarantined") == {"b": [("default", OLD)]}

    def blocks(self) -> dict[str, list[str]]:
        """Return the blocks that each CiliumNode shows; fail if two nodes have one address."""
        live = self.rest()
        found = {
            name: list(node["spec"]["ipam"].get("podCIDRs", ())) or allocated(node)
            for name, node in live.items()
        }
        every = [(name, ip_network(block)) for name, blocks in found.items() for block in blocks]
        for (one, block), (other, another) in combinations(every, 2):
            assert one == other or not block.overlaps(another), f"{one} has {block}, {other} has {another}"
        return found

    def rest(self) -> dict[str, Object]:
        """Wait until nobody writes; return the CiliumNodes."""
        return at_rest(self.api, self.operator, self.site.config, handled=handled_by_operator(self.site))

    def of_b(self) -> dict[str, str]:
        """Return the resourceVersions of all that is called b."""
        return {
            path: version
            for path, version in everything(self.api).items()
            if path.split("/")[-1] in {"b", "default.b"}
        }


def begin(mode: str, api: Api, operator: Operator, work: Path) -> Lab:
    """Make a cluster of a mode, and let its nodes join."""
    if mode.startswith("pinning-") and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    specs: dict[str, Object] = {
        "kubernetes": {"mode": "kubernetes"},
        "annotations": {"mode": "kubernetes", "patchNodes": "annotations"},
        "bystander": {},
        "adopt": {"ipam": {"operator": "adopt"}},
        "crd": {"mode": "crd"},
        **{
            f"pinning-{pinning}": {"mode": "multi-pool", "ipam": {"pinning": pinning}}
            for pinning in ("node", "pool", "none")
        },
    }
    listed = mode in {"kubernetes", "annotations"}
    documents = [
        cluster(cilium=NONE, **specs[mode]),
        pool("default", ipv4=EIGHT),
        *([pool("spare", **SPARE)] if mode == "adopt" else []),
        {"apiVersion": "v1", "kind": "List", "items": []}
        if listed
        else inventory([{"name": name} for name in "abc"]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    if listed:
        api.create(NODES, *({"metadata": {"name": name}} for name in "abc"))
        site.export()
    else:
        site.join()
    site.compile()
    return Lab(mode, site, operator)


def started(lab: Lab) -> None:
    """Apply all, and let the agents start."""
    lab.site.apply()
    lab.agent_starts(*"abc")
    if lab.mode == "kubernetes":
        lab.site.export()
        lab.site.compile()
    holds(lab.site, lab.operator)


# The steps after `lock --settle` was merged and CI has applied it, as the README lists them.


def restart_agent(lab: Lab) -> None:
    """Kubernetes mode with annotations, cluster-pool, crd: where only ipamc wrote the block."""
    lab.site.apply()
    lab.agent_starts("b")


def delete_then_apply(lab: Lab, node: str = "b") -> None:
    """Where the apply is refused, or leaves something of the old block: somebody else wrote it too."""
    lab.api.delete(f"{CILIUM_NODES}/{node}")
    lab.site.apply()
    lab.agent_starts(node)


def apply_then_delete(lab: Lab) -> None:
    """Pinning node: the pool of the node has the new block; the operator gives it to the agent that asks anew."""
    lab.site.apply()
    lab.api.delete(f"{CILIUM_NODES}/b")
    lab.agent_starts("b")


def join_again(lab: Lab) -> None:
    """Kubernetes mode: podCIDRs are immutable, so the Node is made anew, and the refreshed inventory settles."""
    lab.rejoin("b")
    lab.site.export()
    lab.site.compile()
    lab.site.apply()
    lab.site.export()
    lab.site.compile()


STEPS: dict[str, Callable[[Lab], None]] = {
    "kubernetes": join_again,
    "annotations": restart_agent,
    "bystander": restart_agent,
    "adopt": restart_agent,
    "crd": restart_agent,
    "pinning-node": apply_then_delete,
}


@pytest.mark.deep("kubernetes", "pinning-node")
@pytest.mark.parametrize("mode", MODES)
def test_the_whole_flow(api: Api, operator: Operator, tmp_path: Path, mode: str) -> None:
    """A pending block changes nothing, also while others join; a settled one holds for good."""
    lab = begin(mode, api, operator, tmp_path)
    with operator.running(lab.site.config, *lab.site.arguments):
        started(lab)
        before = everything(api)
        lab.renumber()
        lab.site.apply()
        assert everything(api) == before
        b = lab.of_b()
        lab.join("d")
        assert lab.of_b() == b
        assert lab.site.lock()["d"] == [("default", NEXT)]
        holds(lab.site, operator)
        if mode != "kubernetes":
            lab.settle()
    with operator.running(lab.site.config, *lab.site.arguments):  # Helm starts it again where flags changed
        STEPS[mode](lab)
        assert lab.site.lock()["b"] == [("default", NEW)]
        lab.blocks()
        holds(lab.site, operator)
        applying_again_changes_nothing(lab.site)
    with operator.running(lab.site.config, *lab.site.arguments):
        holds(lab.site, operator)
        lab.agent_starts("b")
        b = lab.of_b()
        lab.join("e")
        assert lab.of_b() == b
        assert lab.site.lock()["e"] == [("default", "10.0.0.160/27")]  # not the old block
        holds(lab.site, operator)
        applying_again_changes_nothing(lab.site)
    lab.dump()
    assert "IPC0513" not in lab.site.compile("--locked")


def test_what_was_rendered_for_a_node_does_not_touch_the_one_that_joined_again(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Kubernetes mode, between the deletion of a Node and the refresh of the inventory."""
    lab = begin("kubernetes", api, operator, tmp_path)
    started(lab)
    lab.renumber()
    lab.rejoin("b")
    done = api.apply(lab.site.build())
    assert "metadata.uid" in done.stderr
    assert "podCIDR" not in api.get(f"{NODES}/b")["spec"]


def test_a_node_that_is_settled_before_it_joins_again(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Kubernetes mode: while the inventory shows the old podCIDRs, the Node is left out of the shard."""
    lab = begin("kubernetes", api, operator, tmp_path)
    started(lab)
    lab.renumber()
    lab.settle()
    assert "IPC0503" in lab.site.said
    before = everything(api)
    lab.site.apply()
    assert everything(api) == before
    join_again(lab)
    holds(lab.site, operator)
    applying_again_changes_nothing(lab.site)


# Wrong orders.


def test_a_node_that_the_operator_served(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Adopt: of a block that the operator gave out it is the owner, so the apply is refused until the CiliumNode is deleted."""
    lab = begin("adopt", api, operator, tmp_path)
    with operator.running(lab.site.config):
        started(lab)
        stranger(lab, "v")
        given = lab.blocks()["v"]
        assert in_spare(given)
        lab.enlist("v", evidence=True)
        assert lab.site.lock()["v"] == [("spare", given[0])]
        lab.site.run("lock", lab.site.name, "--renumber", "v")
        lab.site.compile()
        lab.site.apply()
        assert lab.blocks()["v"] == given
        lab.site.run("lock", lab.site.name, "--settle", "v")
        assert "warning[IPC0513]" in lab.site.compile()  # the evidence is out of date
        (lab.site.folder / "live.yaml").unlink()
        assert lab.site.lock()["v"] == [("default", NEW)]
        assert "conflict" in api.apply(lab.site.build()).stderr
        assert lab.blocks()["v"] == given
    with operator.running(lab.site.config):
        assert lab.blocks()["v"] == given
        delete_then_apply(lab, "v")
        assert lab.blocks()["v"] == [NEW]
        holds(lab.site, operator)
        applying_again_changes_nothing(lab.site)


def test_adopt_when_the_agent_comes_before_the_apply(api: Api, operator: Operator, tmp_path: Path) -> None:
    """An agent makes its CiliumNode anew, empty, and the operator serves it from the unlisted pool; it is deleted once more."""
    lab = begin("adopt", api, operator, tmp_path)
    with operator.running(lab.site.config):
        started(lab)
        lab.renumber()
        lab.settle()
        api.delete(f"{CILIUM_NODES}/b")
        lab.agent_starts("b")
        given = lab.blocks()["b"]
        assert in_spare(given)
        assert "conflict" in api.apply(lab.site.build()).stderr
        assert lab.blocks()["b"] == given
        delete_then_apply(lab)
        assert lab.blocks()["b"] == [NEW]
        applying_again_changes_nothing(lab.site)


@pytest.mark.parametrize("mode", ["bystander", "crd"])
def test_a_cilium_node_that_somebody_else_wrote(
    api: Api, operator: Operator, tmp_path: Path, mode: str
) -> None:
    """What was adopted has two owners. podCIDRs are refused then; single addresses of the old block stay beside the new ones."""
    lab = begin(mode, api, operator, tmp_path)
    with operator.running(lab.site.config, *lab.site.arguments):
        lab.agent_starts(*"abc")
        live = {
            node["metadata"]["name"]: node for node in lab.site.rendering("ciliumnodes/*/ciliumnodes.yaml")
        }
        for name in "abc":
            ipam = live[name]["spec"]["ipam"]
            only = {"pool": ipam["pool"]} if mode == "crd" else ipam
            api.change(f"{CILIUM_NODES}/{name}", lambda whole, only=only: whole["spec"].update(ipam=only))  # type: ignore[misc]
        lab.site.apply()
        holds(lab.site, operator)
        lab.renumber()
        lab.settle()
        done = api.apply(lab.site.build())
        if mode == "bystander":
            assert "conflict" in done.stderr
            assert lab.blocks()["b"] == [OLD]
        else:
            assert done.returncode == 0
            assert len(lab.rest()["b"]["spec"]["ipam"]["pool"]) == 60  # 30 of each block
        delete_then_apply(lab)
        holds(lab.site, operator)
        applying_again_changes_nothing(lab.site)


def test_a_pool_of_a_node_is_exchanged_under_a_running_agent(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Settled without a drain: at the agent's next write, or its own next start, the operator gives the node its new block.

    From 1.19 it keeps the old one beside it until it starts again. The old block is quarantined all the while.
    """
    lab = begin("pinning-node", api, operator, tmp_path)
    with operator.running(lab.site.config):
        started(lab)
        lab.renumber()
        lab.settle()
        lab.site.apply()
        assert lab.blocks()["b"] == [OLD]
        api.change(
            f"{CILIUM_NODES}/b", lambda whole: whole["spec"]["ipam"]["pools"].update(asks("default.b", 24))
        )
        until(lambda: NEW in lab.blocks()["b"], "the new block is there")
        assert lab.blocks()["b"] == ([NEW] if operator.version < (1, 19) else [OLD, NEW])
        if operator.version >= (1, 19):
            assert f"cidr {OLD} is not part of the requested pool" in verdict(lab.rest()["b"])
        lab.join("d")
        assert lab.blocks()["d"] == [NEXT]
    with operator.running(lab.site.config):
        assert lab.blocks()["b"] == [NEW]
        apply_then_delete(lab)
        holds(lab.site, operator)


def test_a_pool_of_a_node_is_exchanged_after_its_agent_asked_anew(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """Deleted before CI applied: the node has its old block again, and is deleted once more."""
    lab = begin("pinning-node", api, operator, tmp_path)
    with operator.running(lab.site.config):
        started(lab)
        lab.renumber()
        lab.settle()
        api.delete(f"{CILIUM_NODES}/b")
        lab.agent_starts("b")
        assert lab.blocks()["b"] == [OLD]
        apply_then_delete(lab)
        assert lab.blocks()["b"] == [NEW]
        holds(lab.site, operator)


@pytest.mark.deep("adopt", "annotations")
@pytest.mark.parametrize("mode", MODES)
def test_an_older_commit_after_a_newer_one(api: Api, operator: Operator, tmp_path: Path, mode: str) -> None:
    """The node may go back to its old block, which nobody else has; an apply of the newer commit mends it."""
    lab = begin(mode, api, operator, tmp_path)
    with operator.running(lab.site.config, *lab.site.arguments):
        started(lab)
        lab.renumber()
        older = lab.site.build()
        if mode != "kubernetes":
            lab.settle()
        STEPS[mode](lab)
        done = api.apply(older)
        if mode == "kubernetes":
            assert "metadata.uid" in done.stderr
        if mode in {"bystander", "adopt", "crd"}:
            assert lab.blocks()["b"] == [OLD]
        lab.join("d")  # applies the newer one
        assert lab.site.lock()["d"] == [("default", NEXT)]
        lab.blocks()
        if mode != "kubernetes":
            STEPS[mode](lab)
        holds(lab.site, operator)
        applying_again_changes_nothing(lab.site)


# Pools that nodes share.


@shows("IPC0435")
@pytest.mark.parametrize("pinning", ["pool", "none"])
def test_in_shared_pools_the_operator_decides(
    api: Api, operator: Operator, tmp_path: Path, pinning: str
) -> None:
    """A seed that comes before the agent is taken; without one the operator gives the block that it likes."""
    lab = begin(f"pinning-{pinning}", api, operator, tmp_path)
    with operator.running(lab.site.config):
        lab.site.apply()
        proof.apply_seeds(lab.site)
        lab.agent_starts(*"abc")
        holds(lab.site, operator)
        lab.renumber()
        live = lab.dump()
        assert "IPC0435" in lab.site.run("lock", lab.site.name, "--settle", "b", code=1)
        live.unlink()
        lab.settle()
        before = everything(api)
        lab.site.apply()
        assert everything(api) == before
        api.delete(f"{CILIUM_NODES}/b")
        api.applied(
            dumped([each for each in lab.site.rendering("seeds/*.yaml") if each["metadata"]["name"] == "b"])
        )
        lab.agent_starts("b")
        assert lab.blocks()["b"] == [NEW]
        holds(lab.site, operator)
    with operator.running(lab.site.config):
        holds(lab.site, operator)
        api.delete(f"{CILIUM_NODES}/b")
        lab.agent_starts("b")
        assert lab.blocks()["b"] == [OLD]  # a new operator begins at the lowest free one
        assert "conflict" in api.apply(dumped(lab.site.rendering("seeds/*.yaml"))).stderr
        assert lab.blocks()["b"] == [OLD]


def stranger(lab: Lab, name: str) -> None:
    """Let a node join that is in nobody's inventory."""
    lab.api.create(NODES, {"metadata": {"name": name}})
    lab.agent_starts(name)


def in_spare(blocks: list[str]) -> bool:
    """Tell whether a node was served from the unlisted pool."""
    return [ip_network(block).subnet_of(ip_network("10.9.0.0/24")) for block in blocks] == [True]  # type: ignore[arg-type]
