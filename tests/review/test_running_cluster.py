"""What a plan says of the running cluster: steps, restarts, objects that leave, and nodes outside their first candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from ipamc.lock.file import dumps
from ipamc.model.cluster import Mode
from ipamc.model.lock import State
from ipamc.model.plan import Plan
from ipamc.pipeline import Compilation
from ipamc.read.rendered import Rendered, identity
from ipamc.report.plan_text import headline
from ipamc.review import GATES
from ipamc.review.diff import ClusterBase, Difference, compare
from ipamc.review.diff.lock_lines import misplaced
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, refusals
from ipamc.review.diff.rendered import Leaving, Stays
from ipamc.review.runbook.sentences import steps
from tests.support import builders, fleet
from tests.support.fleet import Document

A = builders.pool("a", "10.1.0.0/24", nodes='rack == "a"')
B = builders.pool("b", "10.2.0.0/24", nodes='rack == "b"')
SPARE = builders.pool("spare", "10.9.0.0/24", unlisted=True)
RACKS = [builders.node("n1", {"rack": "a"}), builders.node("n2", {"rack": "b"})]
HELD = {"n1": "10.1.0.0/26", "n2": "10.2.0.0/26"}


def made(mode: str = "cluster-pool", **fields: Any) -> Plan:
    return builders.plan(
        mode,
        fields.pop("pools", (A, B)),
        fields.pop("held", HELD),
        nodes=fields.pop("nodes", RACKS),
        **fields,
    )


def compared(before: Plan, after: Plan) -> Difference:
    """Compare two plans as if each had been compiled and committed."""
    rendered = {path: text.encode() for path, text in builders.rendered(before).items()}
    base = ClusterBase(lock=before.lock, cluster=before.cluster, rendered=Rendered(rendered))
    head = Compilation(files=builders.rendered(after), lock=dumps(after.lock), plan=after, diagnostics=())
    return compare(base, head, "2026-11-21", fleet.RUNBOOKS)


def way(before: Plan, after: Plan) -> tuple[str, ...]:
    return steps(before.lock, before.cluster, after, fleet.RUNBOOKS)


# Steps.


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        (
            made("kubernetes"),
            made(),
            [
                "CiliumNodes before the flags",
                "check that every",
                "restart the operator",
                "restart the agents",
            ],
        ),
        (
            made(),
            made("kubernetes"),
            [
                "allocate-node-cidrs",
                "podCIDRs of Nodes",
                "check",
                "restart the operator",
                "restart the agents",
                "do not delete the CiliumNodes",
            ],
        ),
        (
            made(),
            made("kubernetes", patch_nodes="annotations", managed_by="helm"),
            [
                "allocate-node-cidrs",
                "annotations of Nodes",
                "check",
                "helm upgrade",
                "restart the agents",
                "do not delete the CiliumNodes",
            ],
        ),
        (
            made(operator="adopt", pools=(A, B, SPARE)),
            made("multi-pool", managed_by="kustomize"),
            ["list every node", "CiliumPodIPPools", "seeds", "check", "component", "drain it"],
        ),
    ],
)
def test_a_change_of_mode_has_an_order(before: Plan, after: Plan, order: list[str]) -> None:
    first, *found = way(before, after)
    assert first.startswith("every node keeps its block if")
    assert len(found) == len(order)
    assert [word for word, step in zip(order, found, strict=True) if word not in step] == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (made(operator="adopt", pools=(A, SPARE)), made(pools=(A,)), "a bystander gives out no blocks"),
        (made(pools=(A,)), made(operator="adopt", pools=(A, SPARE)), "an operator that adopts gives a block"),
        (made("multi-pool"), made("multi-pool", pinning="none"), "delete the CiliumNodeConfigs"),
        (
            made("multi-pool", pinning="none"),
            made("multi-pool"),
            "apply the CiliumNodeConfigs before agents restart",
        ),
        (made(), made(patch_nodes="podCIDRs"), "are immutable"),
        (made(patch_nodes="podCIDRs"), made(), "Nodes keep their podCIDRs"),
        (made("kubernetes"), made("kubernetes", patch_nodes="annotations"), "agents ignore annotations"),
    ],
)
def test_so_have_changes_of_other_settings(before: Plan, after: Plan, said: str) -> None:
    assert any(said in step for step in way(before, after))


def test_no_order_matters_where_nothing_of_this_changes_or_nothing_ran() -> None:
    assert way(made(), made()) == ()
    assert steps(replace(made().lock, shards=0, mode=Mode.CRD), None, made(), fleet.RUNBOOKS) == ()
    assert steps(made().lock, None, made(patch_nodes="podCIDRs"), fleet.RUNBOOKS) == ()


# Restarts.


def restarted(before: Plan, after: Plan) -> list[tuple[str, tuple[str, ...], str]]:
    return [(each.who, each.nodes, each.how) for each in compared(before, after).restarts]


def test_a_range_restarts_the_operator_alone() -> None:
    wider = builders.pool("spare", "10.9.0.0/24", "10.10.0.0/24", unlisted=True)
    by_hand = "kubectl -n kube-system rollout restart deployment/cilium-operator"
    adopts = {"operator": "adopt"}
    before, after = made(pools=(A, SPARE), **adopts), made(pools=(A, wider), **adopts)
    assert restarted(before, after) == [("operator", (), by_hand)]
    (flag,) = compared(before, after).flags
    assert (flag.name, flag.why) == ("cluster-pool-ipv4-cidr", "")


def test_a_bystander_reads_no_range() -> None:
    """Helm restarts it all the same, because the ConfigMap is another one."""
    wider = builders.pool("a", "10.1.0.0/24", "10.5.0.0/24", nodes='rack == "a"')
    assert restarted(made(), made(pools=(wider, B))) == []
    found = compared(made(managed_by="helm"), made(pools=(wider, B), managed_by="helm"))
    assert {flag.why for flag in found.flags} == {"unused, because the operator is a bystander"}
    assert [each.sentence for each in found.restarts] == [
        "the operator restarts automatically: cilium-config has a new cluster-pool-ipv4-cidr (read only with operator: adopt)"
    ]


def test_annotations_restart_all_agents_alone() -> None:
    found = restarted(made("kubernetes"), made("kubernetes", patch_nodes="annotations"))
    assert [(who, nodes) for who, nodes, _ in found] == [("all agents", ())]


def settled(**to: str) -> Plan:
    """Make the plan in which these nodes have another block, and the lock says that they moved."""
    plan = made(held={**HELD, **to})
    old = [
        replace(line, state=State.QUARANTINED, since="2026-11-20", moved=True)
        for line in made().lock.lines
        if line.node in to
    ]
    lines = tuple(sorted((*plan.lock.lines, *old), key=lambda line: line.block))
    return replace(plan, lock=replace(plan.lock, lines=lines))


def test_agents_restart_whose_block_changes_and_does_not_show_yet() -> None:
    moved = settled(n1="10.1.0.64/26")
    assert [(who, nodes) for who, nodes, _ in restarted(made(), moved)] == [("agents", ("n1",))]
    shown = replace(moved, scheme=replace(moved.cluster, cilium_nodes=(builders.seen("n1", "10.1.0.64/26"),)))
    assert restarted(made(), shown) == []


def test_nodes_that_move_have_steps() -> None:
    moved = compared(made(), settled(n1="10.1.0.64/26"))
    assert [step.split()[:2] for step in moved.steps[:3]] == [
        ["drain", "n1,"],
        ["merge,", "and"],
        ["delete", "the"],
    ]
    assert moved.steps[-2] == "uncordon each node: kubectl --context=built uncordon n1"
    two = compared(made(), settled(n1="10.1.0.64/26", n2="10.2.0.64/26"))
    assert two.steps[0].startswith("drain n1, n2,")
    assert two.steps[-2] == "uncordon each node: kubectl --context=built uncordon NODE"
    without_consent = compared(made(), made(held={**HELD, "n1": "10.1.0.64/26"}))
    assert without_consent.lines.refused
    assert without_consent.steps == ()


@pytest.mark.parametrize("pinning", ["pool", "node"])
def test_agents_restart_that_get_another_default_pool(pinning: str) -> None:
    """A node that joins restarts nothing, and neither do those whose CiliumNodeConfig only has another selector."""
    before = made("multi-pool", pinning=pinning)
    joined = made("multi-pool", pinning=pinning, held={**HELD, "n3": "10.1.0.128/26"})
    assert restarted(before, joined) == []
    c = builders.pool("c", "10.3.0.0/24", nodes='rack == "b" && new == "1"', priority=5)
    nodes = [RACKS[0], builders.node("n2", {"rack": "b", "new": "1"})]
    held = {**HELD, "n2": ["10.2.0.0/26", "10.3.0.0/26"]}
    after = made("multi-pool", pinning=pinning, pools=(A, B, c), nodes=nodes, held=held)
    assert [(who, names) for who, names, _ in restarted(before, after)] == [("agents", ("n2",))]


def test_an_edit_and_its_undo_change_nothing() -> None:
    for plan in (made(), made("kubernetes"), made("multi-pool"), made("multi-pool", pinning="node")):
        same = compared(plan, plan)
        assert not same.changed
        assert (same.steps, same.restarts, same.leaving) == ((), (), ())


# Objects that leave.


def left(before: Plan, after: Plan) -> dict[str, tuple[tuple[str, ...], Stays]]:
    return {each.kind: (each.names, each.stays) for each in compared(before, after).leaving}


def test_each_kind_that_leaves_says_what_it_does() -> None:
    one: dict[str, Any] = {"nodes": RACKS[:1], "held": {"n1": HELD["n1"]}}
    assert left(made(), made(**one)) == {"CiliumNode": (("n2",), Stays.CILIUM_NODE)}
    assert left(made("kubernetes"), made("kubernetes", **one)) == {"Node": (("n2",), Stays.NODE)}
    soon = [RACKS[0], builders.node("n2", {"rack": "b"}, planned=True)]
    assert left(made(nodes=soon), made(**one)) == {"CiliumNode": (("n2",), Stays.PLANNED)}
    assert left(made(), made("kubernetes")) == {"CiliumNode": (("n1", "n2"), Stays.AGENT)}
    assert left(made("multi-pool"), made("multi-pool", pools=(A,), **one)) == {
        "CiliumNodeConfig": (("b",), Stays.NODE_CONFIG),
        "CiliumPodIPPool": (("b",), Stays.POD_IP_POOL),
        "CiliumNode": (("n2",), Stays.CILIUM_NODE),
    }
    assert left(made(), made(managed_by="helm")) == {"ConfigMap": (("cilium-config",), Stays.CONFIG_MAP)}


def test_an_object_that_moves_to_another_file_does_not_leave() -> None:
    assert left(made(), made(shards=16)) == {}
    assert left(made(), made("multi-pool")).keys() == set()  # the CiliumNodes are seeds now


def test_only_what_does_no_harm_is_removed() -> None:
    kept = {stays for stays in Stays if not Leaving(kind="", names=("n",), stays=stays).removable}
    assert kept == {Stays.AGENT, Stays.NODE, Stays.CONFIG_MAP, Stays.MASQ_AGENT}


def test_every_object_that_is_applied_is_found_in_the_files() -> None:
    """The objects are found by their lines, so what YAML says of them is asked once."""
    for plan in (made(), made("kubernetes"), made("multi-pool"), made("multi-pool", pinning="node")):
        files = builders.rendered(plan)
        tree = {path: text.encode() for path, text in files.items()}
        found = Rendered(tree).found(tree)
        listed = (path for path in files if path.endswith("/kustomization.yaml") and "component" not in path)
        wanted = {
            identity(each)
            for path in listed
            for name in builders.read(files[path])[0].get("resources", ())
            for each in builders.read(files[f"{path.rpartition('/')[0]}/{name}"])
        }
        seeds = {f"CiliumNode {name}" for name in HELD} if plan.cluster.mode is Mode.MULTI_POOL else set()
        assert found.keys() == wanted | seeds


# Nodes with a block of another pool than their first candidate.


def moves(pools: Any, held: Mapping[str, Any], **fields: Any) -> dict[str, str]:
    return {group.why: group.move for group in misplaced(made(pools=pools, held=held, **fields))}


def test_a_node_outside_its_first_candidate_is_counted() -> None:
    first = builders.pool("first", "10.3.0.0/24", nodes='rack == "a"', priority=5)
    why = "in pool a; the first candidate is first"
    assert moves((A, B, first), HELD) == {why: "ipamc lock built --renumber pool/a"}
    more = [*RACKS, builders.node("n3", {"rack": "a"})]
    pinned = replace(A, pins={"n3": builders.ranges("10.1.0.128/26")})
    held = {**HELD, "n3": "10.1.0.128/26"}
    assert moves((pinned, B, first), held, nodes=more) == {why: "ipamc lock built --renumber n1"}
    assert moves((A, B, first), {**HELD, "n1": ["10.1.0.0/26", "pending 10.3.0.0/26"]}) == {}


def test_in_dual_stack_only_the_family_moves_that_is_elsewhere() -> None:
    both = builders.pool("both", "10.4.0.0/24", "fd00::/112", nodes='rack == "a"')
    first = builders.pool("first", "10.3.0.0/24", nodes='rack == "a"', priority=5)
    held = {**HELD, "n1": ["10.4.0.0/26", "fd00::/122"]}
    found = moves((both, B, first), held, families=(4, 6))
    assert found == {"in pool both; the first candidate is first": "ipamc lock built --renumber 10.4.0.0/26"}


def test_where_every_pool_serves_its_nodes_none_is_first() -> None:
    first = builders.pool("first", "10.3.0.0/24", nodes='rack == "a"', priority=5)
    for mode in ("multi-pool", "crd"):
        assert misplaced(builders.plan(mode, (A, B, first), HELD, nodes=RACKS)) == ()


@pytest.mark.parametrize(
    ("labels", "scope"),
    [
        ({}, ",".join(f"n{index:02}" for index in range(1, 30))),
        ({"row": "r1"}, "\"row == 'r1'\""),
        ({"row": "r1", "zone": "z{0}"}, "\"row == 'r1'\""),
        ({"zone": "z{0}"}, "\"zone in {'z0', 'z1', 'z2'}\""),
    ],
)
def test_a_command_names_all_nodes_by_a_label_or_by_their_names(labels: dict[str, str], scope: str) -> None:
    """The first node of 30 stays: no label that it has, too, is named."""
    own = {key: value.format("{0}") for key, value in labels.items()}
    nodes = [
        builders.node(
            f"n{index:02}",
            {"rack": "a", **({key: text.format(index % 3) for key, text in own.items()} if index else {})},
        )
        for index in range(30)
    ]
    first = builders.pool("first", "10.3.0.0/20", nodes='rack == "a"', priority=5)
    old = replace(
        builders.pool("old", "10.1.0.0/20", nodes='rack == "a"'), pins={"n00": builders.ranges("10.1.0.0/26")}
    )
    held = {each.name: f"10.1.{index // 4}.{index % 4 * 64}/26" for index, each in enumerate(nodes)}
    (move,) = moves((old, first), held, nodes=nodes).values()
    assert move == f"ipamc lock built --renumber {scope}"


def test_it_fails_no_gate() -> None:
    first = builders.pool("first", "10.3.0.0/24", nodes='rack == "a"', priority=5)
    plan = made(pools=(A, B, first))
    report = PlanReport(base="main", clusters=(ClusterReport(name="built", difference=compared(plan, plan)),))
    assert report.clusters[0].difference
    assert report.clusters[0].difference.misplaced
    assert not report.clusters[0].changed
    assert list(refusals(report, GATES)) == []


def test_a_change_of_mode_stands_in_the_headline() -> None:
    one = ClusterReport(name="one", difference=compared(made(), made("kubernetes")))
    assert headline((one,)).startswith("mode cluster-pool → kubernetes · 0 renumbered")
    same = ClusterReport(name="same", difference=compared(made(), made()))
    assert headline((one, same)).startswith("1 change of mode · 0 renumbered")
    assert "mode" not in headline((same,))


# A mistake, and how it is mended.

EDITS: dict[str, Callable[[Document], None]] = {
    "disabled": lambda one: one["spec"].update(disabled=True) if one["kind"] == "IPPool" else None,
    "selector": lambda one: (
        one["spec"].update(nodeSelector='rak == "a"') if one["kind"] == "IPPool" else None
    ),
    "size": lambda one: one["spec"]["ipv4"].update(blockSize=27) if one["kind"] == "IPPool" else None,
    "priority": lambda one: one["spec"].update(priority=7) if one["kind"] == "IPPool" else None,
    "range": lambda one: (
        one["spec"]["ipv4"]["cidrs"].append("10.7.0.0/24") if one["kind"] == "IPPool" else None
    ),
    "annotations": lambda one: (
        one["spec"].update(patchNodes="annotations") if one["kind"] == "Cluster" else None
    ),
    "labels": lambda one: (
        one["nodes"][0].update(labels={"rack": "z"}) if one["kind"] == "NodeInventory" else None
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("mode", ["kubernetes", "cluster-pool"])
def test_after_an_edit_and_its_undo_nothing_changes(mode: str, edit: Callable[[Document], None]) -> None:
    def documents() -> list[Document]:
        return [
            fleet.cluster(mode, output={"nodeObjects": "create"}),
            fleet.pool("a", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 26}, nodeSelector='rack == "a"'),
            fleet.inventory([{"name": f"n{index}", "labels": {"rack": "a"}} for index in range(3)]),
        ]

    edited = documents()
    for document in edited:
        edit(document)
    first = fleet.compiled(fleet.as_json(documents()))
    second = fleet.compiled(fleet.as_json(edited), first.lock)
    third = fleet.compiled(fleet.as_json(documents()), second.lock)
    assert third.lock == first.lock
    for before, after, same in ((first, second, False), (first, third, True)):
        rendered = {path: text.encode() for path, text in before.files.items()}
        base = ClusterBase(lock=before.plan.lock, cluster=before.plan.cluster, rendered=Rendered(rendered))
        found = compare(base, after, "2026-11-21", fleet.RUNBOOKS)
        assert found.lines.counts.renumbered == 0
        if same:
            assert not found.changed
            assert (found.steps, found.restarts, found.leaving, found.misplaced) == ((), (), (), ())
