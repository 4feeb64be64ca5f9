"""What came first: git, an apply, somebody's edit. And the case of the article."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest

from ipamc.lock.consent import parse_consent
from ipamc.model.diagnostics import Located
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from tests.review.audit.test_faults import FREE, config, drop, ipam, leave, of_cluster, pod_cidrs
from tests.review.audit.worlds import NODES, documents, inventory, living
from tests.support import dumps, fleet
from tests.support.living import Living, endpoint, operator, run, short

Documents = list[fleet.Document]


def compiled(some: Documents, lock: str | None = None, **options: Any) -> Compilation:
    return fleet.compiled(fleet.as_json(some), lock, **options)


def with_nodes(some: Documents, *names: str) -> Documents:
    return [*some[:-1], inventory(*names)]


def ahead(before: Compilation, after: Compilation) -> Living:
    """Return a cluster that runs as it was applied, and git is ahead."""
    live = Living.of(before)
    return Living(after, before.files, live.objects)


def joined(live: Living, name: str) -> None:
    """Let a node join whose CiliumNode is not applied yet."""
    live.add(dumps.node(name))


@pytest.mark.parametrize("world", ["cluster-pool", "crd"])
def test_a_node_that_git_has_and_nobody_applied_is_pending(world: str) -> None:
    first = documents(world)
    before = compiled(with_nodes(first, "a", "b"))
    live = ahead(before, compiled(with_nodes(first, "a", "b", "c"), before.lock))
    joined(live, "c")
    (found,) = live.audit()
    assert (found.severity.word, found.code) == ("note", "IPC0940")
    assert "CiliumNode c" in found.message


def pool_with(*cidrs: str) -> Documents:
    some = copy.deepcopy(documents("multi-pool none"))
    some[1]["spec"]["ipv4"]["cidrs"] = list(cidrs)
    return some


def test_a_pool_that_grew_in_git_is_pending_until_somebody_edits_it() -> None:
    before = compiled(pool_with("10.1.0.0/24"))
    live = ahead(before, compiled(pool_with("10.1.0.0/24", "10.2.0.0/24"), before.lock))
    assert short(live.audit()) == ["note IPC0940"]
    spec = live["CiliumPodIPPool default"]["spec"]["ipv4"]
    spec["cidrs"] = ["10.1.0.0/24", "10.3.0.0/24"]
    assert short(live.audit()) == ["error IPC0941"]
    spec["cidrs"] = ["10.1.0.0/24", "10.2.0.0/24"]  # applied, and the ref was not moved yet
    assert short(live.audit()) == []


def test_an_object_that_left_git_is_stale_and_not_foreign() -> None:
    extra = fleet.pool("extra", ipv4={"cidrs": ["10.5.0.0/24"], "blockSize": 26})
    both = documents("multi-pool none")
    before = compiled([*both[:-1], extra, both[-1]])
    without = compiled(both)
    live = ahead(before, without)
    for node in NODES:
        ipam(live, node)["pools"]["allocated"] = [
            entry for entry in ipam(live, node)["pools"]["allocated"] if entry["pool"] == "default"
        ]
    (found,) = live.audit()
    assert (found.severity.word, found.code) == ("warning", "IPC0944")
    assert "CiliumPodIPPool extra" in found.message
    live.applied = without.files
    assert short(live.audit()) == ["note IPC0945"]


def test_without_what_was_applied_git_alone_counts() -> None:
    live = living("cluster-pool")
    live.applied = None
    assert short(live.audit()) == ["note IPC0903"]
    pod_cidrs(live, "a", FREE)
    assert short(live.audit()) == ["note IPC0903", "warning IPC0942"]
    live = living("cluster-pool")
    live.applied = None
    drop(live, "CiliumNode a")
    assert short(live.audit()) == ["error IPC0943", "note IPC0903"]


THEIRS = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNodeConfig",
    "metadata": {"name": "theirs", "namespace": "kube-system"},
    "spec": {"defaults": {"debug": "true"}},
}
CONFIGS = [f"CiliumNodeConfig kube-system {name}" for name in NODES]


@pytest.mark.parametrize(
    ("gone", "more", "found"),
    [
        (CONFIGS, [THEIRS], ["note IPC0903", "note IPC0940", "note IPC0945"]),
        (CONFIGS, [], ["note IPC0903", "note IPC0904"]),  # or nobody asked for them
        (CONFIGS[:1], [], ["error IPC0943", "note IPC0903"]),
        (["CiliumPodIPPool default.a"], [], ["error IPC0943", "note IPC0903"]),
    ],
    ids=["no config", "none and no other", "one config", "a pool with a block of a node"],
)
def test_what_was_never_applied_is_not_missing(
    gone: list[str], more: list[dumps.Object], found: list[str]
) -> None:
    """Without the last apply something must prove that the object was there."""
    live = living("multi-pool node")
    live.applied = None
    drop(live, *gone)
    live.add(*more)
    assert short(live.audit()) == found


def test_a_new_pool_is_pending_until_a_node_has_a_block_of_it() -> None:
    before = documents("multi-pool none")
    extra = fleet.pool("extra", disabled=True, ipv4={"cidrs": ["10.5.0.0/24"], "blockSize": 26})
    live = ahead(compiled(before), compiled([*before[:-1], extra, before[-1]]))
    live.applied = None
    assert short(live.audit()) == ["note IPC0903", "note IPC0940"]


@pytest.mark.parametrize("left", [[], ["MutatingAdmissionPolicyBinding"]])
def test_policies_are_pending_until_one_of_them_is_there(left: list[str]) -> None:
    live = living("multi-pool node admission")
    live.applied = None
    drop(live, *(name for name in live.objects if "AdmissionPolicy" in name and name.split()[0] not in left))
    live.add(of_cluster("", "theirs"))
    assert ("error IPC0943" if left else "note IPC0940") in short(live.audit())


def test_a_seed_of_a_shared_pool_that_an_agent_gave_back_is_a_note() -> None:
    """The operator may give it to another node: the lock does not say any more that its node has it."""
    extra = fleet.pool("extra", ipv4={"cidrs": ["10.5.0.0/24"], "blockSize": 26})
    own = documents("multi-pool node")
    some = [*own[:-1], extra, own[-1]]
    git = compiled(some)
    live = Living.of(git)
    assert short(live.audit()) == []
    pools = ipam(live, "a")["pools"]
    (given_back,) = [entry for entry in pools["allocated"] if entry["pool"] == "extra"]
    pools["allocated"].remove(given_back)
    (found,) = live.audit()
    assert (found.severity.word, found.code) == ("note", "IPC0912")
    assert "the lock has 10.1.0.0/26, 10.5.0.0/26 for it" in found.message
    next(e for e in ipam(live, "b")["pools"]["allocated"] if e["pool"] == "extra")["cidrs"] += given_back[
        "cidrs"
    ]
    live.add(dumps.pod("second", "b", "10.5.0.3"), endpoint("second", "10.5.0.3"))
    assert short(live.audit()) == ["note IPC0912"]
    live.add(dumps.pod("stray", "a", "10.5.0.4"), endpoint("stray", "10.5.0.4"))
    assert short(live.audit()) == ["error IPC0960", "note IPC0912"]


def test_flags_that_git_changed_are_pending() -> None:
    adopt = documents("cluster-pool adopt")
    wider = copy.deepcopy(adopt)
    wider[2]["spec"]["ipv4"]["cidrs"].append("10.10.0.0/24")
    before = compiled(adopt)
    live = ahead(before, compiled(wider, before.lock))
    assert short(live.audit()) == ["note IPC0930"]
    config(live, cluster_pool_ipv4_cidr="10.9.0.0/24 10.11.0.0/24")
    assert short(live.audit()) == ["error IPC0930", "warning IPC0930"]


@pytest.mark.parametrize("world", ["cluster-pool", "kubernetes", "crd", "multi-pool node"])
def test_a_node_that_left_the_inventory_and_runs(world: str) -> None:
    """Its block is in quarantine, and another node gets it some day."""
    first = documents(world)
    before = compiled(first)
    live = ahead(before, compiled(with_nodes(first, "a", "b", "c"), before.lock))
    left = [found for found in live.audit() if found.code == "IPC0923"]
    assert len(left) == 1
    assert "node d still uses" in left[0].message
    assert {"error IPC0923"} <= set(short(live.audit())) <= {"error IPC0923", "warning IPC0944"}


@pytest.mark.parametrize("world", ["cluster-pool", "crd"])
def test_a_deleted_node_whose_block_is_in_quarantine_is_routed_yet(world: str) -> None:
    first = documents(world)
    before = compiled(first)
    live = ahead(before, compiled(with_nodes(first, "a", "b", "c"), before.lock))
    leave(live, "d")
    live.add(dumps.cilium_node("d", *pods_block(before, "d")))
    (found,) = live.audit()
    assert (found.severity.word, found.code) == ("warning", "IPC0926")
    assert "quarantined" in found.also[0].label


def pods_block(compilation: Compilation, node: str) -> list[str]:
    return [str(line.block) for line in compilation.plan.held[node]]


# Renumbering, step by step.


def test_a_renumbered_node_on_its_way() -> None:
    """Consent, drained, settled, applied, restarted: no step is a problem, but an agent that was not restarted."""
    some = copy.deepcopy(documents("cluster-pool"))
    some[1]["spec"]["ipv4"]["cidrs"].append("10.2.0.0/24")

    def step(lock: str | None, **consent: Any) -> Compilation:
        return compile_cluster(
            Inputs(
                name="fleet",
                folder="clusters/fleet",
                sources=fleet.as_json(some),
                lock_path="ipam.lock",
                lock=None if lock is None else lock.encode(),
                schemas=fleet.SCHEMAS,
                templates=fleet.TEMPLATES,
                consent=parse_consent(**consent),
                today="2026-11-21",
            )
        )

    first = step(None)
    asked = step(first.lock, renumber=["a"])
    assert short(ahead(first, asked).audit()) == []
    settled = step(asked.lock, settle=["a"])
    live = ahead(first, settled)
    assert short(live.audit()) == ["note IPC0940"]
    live.applied = settled.files
    new = pods_block(settled, "a")
    assert new != pods_block(first, "a")
    pod_cidrs(live, "a", *new)  # applied; the agent was not restarted
    assert short(live.audit()) == ["error IPC0952"]
    restarted = Living.of(settled)
    assert short(restarted.audit()) == []


def test_an_operator_that_gave_every_block_may_stop_later() -> None:
    """As after an import: its own blocks are the lock's. With the first block of ipamc's it is an error."""
    some = documents("cluster-pool")
    blocks = {name: f"10.1.0.{64 * number}/26" for number, name in enumerate(NODES)}
    seen = [dumps.cilium_node(name, block) for name, block in blocks.items()]
    live = Living.of(compiled([*some, *seen]))
    live.add(operator())
    assert short(live.audit()) == ["note IPC0930"]
    live = Living.of(compiled([*some, *seen[:3]]))
    live.add(operator())
    assert short(live.audit()) == ["error IPC0930"]


# The article.

MASTERS = ("master01", "master02", "master03", "node01")
ON_NODES = ("10.5.112.0/24", "10.5.114.0/24", "10.5.113.0/24", "10.5.115.0/24")
ON_CILIUM_NODES = ("10.5.113.0/24", "10.5.115.0/24", "10.5.114.0/24", "10.5.112.0/24")


def article(mode: str = "cluster-pool", *, version: str = "1.11", **spec: Any) -> Living:
    """Return the cluster of the article: the controller manager and the operator gave blocks by themselves."""
    some = [
        fleet.cluster(mode, version=version, **spec),
        fleet.pool(
            "all",
            ipv4={"cidrs": ["10.5.112.0/21"], "blockSize": 24},
            pins={name: [block] for name, block in zip(MASTERS, ON_CILIUM_NODES, strict=True)},
        ),
        inventory(*MASTERS),
    ]
    live = Living.of(compiled(some))
    for name, block in zip(MASTERS, ON_NODES, strict=True):
        live[f"Node {name}"]["spec"] = {"podCIDR": block, "podCIDRs": [block]}
    for name, block in zip(MASTERS, ON_CILIUM_NODES, strict=True):
        pod_cidrs(live, name, block)
    return live


def test_a_speaker_that_only_cilium_config_names_counts() -> None:
    live = article()
    config(live, bgp_announce_pod_cidr="true")
    assert short(live.audit()) == ["error IPC0950"]
    live = article(version="1.12")
    config(live, bgp_announce_pod_cidr="true")
    assert short(live.audit()) == ["note IPC0951"]


def said(findings: Iterable[Located]) -> str:
    return "\n".join("\n".join([each.message, *(other.label for other in each.also)]) for each in findings)


@pytest.mark.parametrize(
    ("spec", "expected", "words"),
    [
        pytest.param(
            {"bgp": "metallb", "patchNodes": "podCIDRs"},
            ["error IPC0950"],
            [
                "MetalLB announces the Node's",
                "Node master01: 10.5.112.0/24, which node node01 uses",
            ],
            id="MetalLB of 1.11 reads Nodes",
        ),
        pytest.param(
            {"version": "1.12", "bgp": "metallb", "patchNodes": "podCIDRs"},
            ["error IPC0950"],
            [
                "MetalLB announces the CiliumNode's",
                "a speaker that reads Nodes announces the Node's",
            ],
            id="MetalLB of 1.12 reads CiliumNodes",
        ),
        pytest.param(
            {"version": "1.18", "bgp": "control-plane"},
            ["note IPC0951"],
            ["Cilium ignores podCIDRs in cluster-pool mode"],
            id="the control plane reads CiliumNodes",
        ),
        pytest.param(
            {"version": "1.18"}, ["note IPC0951"], ["announces wrong routes"], id="no BGP of Cilium"
        ),
        pytest.param(
            {"mode": "kubernetes", "version": "1.14", "bgp": "control-plane"},
            ["error IPC0911", "error IPC0950"],
            ["the BGP control plane announces the Node's"],
            id="kubernetes mode, 1.14",
        ),
        pytest.param(
            {"mode": "kubernetes", "version": "1.15", "bgp": "control-plane"},
            ["error IPC0911", "error IPC0950"],
            ["the BGP control plane announces the CiliumNode's"],
            id="kubernetes mode, 1.15",
        ),
        pytest.param(
            {"mode": "kubernetes", "version": "1.18"},
            ["error IPC0911", "error IPC0950"],
            ["other nodes route by the CiliumNode"],
            id="kubernetes mode without BGP",
        ),
    ],
)
def test_the_article(spec: dict[str, Any], expected: list[str], words: list[str]) -> None:
    found = article(**spec).audit()
    assert short(found) == expected
    assert [word for word in words if word not in said(found)] == []
    assert "master01" in said(found)


# Which dump.


def test_a_dump_of_another_cluster_is_refused() -> None:
    live = living("cluster-pool")
    live.objects = {item["metadata"]["name"]: item for item in map(dumps.node, ("x", "y"))}
    assert short(live.audit()) == ["error IPC0901"]
    live = living("cluster-pool")
    for name in NODES:
        live[f"Node {name}"]["metadata"]["uid"] = f"other-{name}"
    assert short(live.audit()) == ["error IPC0901"]


@pytest.mark.parametrize(
    ("changed", "applied_at", "expected"),
    [
        ("", "", []),
        ("2026-11-22T12:05:00Z", "", []),
        ("2026-11-22T12:15:00Z", "", ["error IPC0902"]),
        ("2026-11-22T12:15:00Z", "2026-11-22T11:00:00Z", ["note IPC0902"]),
        ("2026-11-22T12:15:00Z", "2026-11-22T12:15:00Z", ["error IPC0902"]),
        ("2026-11-22T11:00:00Z", "2026-11-22T11:00:00Z", []),
    ],
)
def test_a_dump_that_is_older(changed: str, applied_at: str, expected: list[str]) -> None:
    assert short(living("cluster-pool").audit(changed=changed, applied_at=applied_at)) == expected


def test_five_thousand_of_one_fault_are_one_finding() -> None:
    live = living("cluster-pool")
    for number in range(200):
        live.add(dumps.cilium_node(f"dead-{number:03}", f"10.70.{number}.0/24"))
    (found,) = live.audit()
    assert found.message.startswith("200 CiliumNodes without a Node")
    assert found.message.endswith("and 195 more")


def test_it_runs_as_the_player_says() -> None:
    assert len(list(run(living("cluster-pool").git))) > len(NODES) * 4
