"""Whatever was compiled and applied runs without a problem: every cluster and case of the project, and random ones; and with random faults nothing crashes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.admission import POLICIES
from ipamc.model.diagnostics import Located, Refused
from ipamc.review.audit import BLOCKS, NEEDS
from ipamc.review.live.objects import CILIUM_NODE
from tests.review.audit.test_faults import FAULTS, pod_cidrs
from tests.review.audit.test_no_alarm import HARMLESS
from tests.review.audit.worlds import WORLDS, living
from tests.support import dumps, examples, fleet
from tests.support.living import Living, endpoint, short
from tests.test_laws import clusters

MOVING = {
    f"kubernetes/{name}": ["warning IPC0912"]
    for name in (
        "settled-but-not-joined-again",
        "settle-after-a-family-was-given-up",
        "settle-one-family-after-the-other",
    )
}
"""A Node that has to be deleted before it can have the block of the lock."""


@pytest.mark.parametrize("name", examples.NAMES)
def test_every_example_runs_without_a_finding(name: str) -> None:
    assert short(Living.of(examples.clusters()[name]).audit()) == []


@pytest.mark.deep
def test_every_case_runs_without_a_problem() -> None:
    found = {
        name: [each for each in short(Living.of(compilation).audit()) if not each.startswith("note")]
        for name, compilation in examples.cases().items()
        if any(not node.planned for node in compilation.plan.cluster.nodes)
    }
    assert len(found) > 150
    assert {name: problems for name, problems in found.items() if problems} == MOVING


@given(documents=clusters())
def test_a_random_cluster_runs_without_a_finding(documents: list[fleet.Document]) -> None:
    try:
        compilation = fleet.compiled(fleet.as_json(documents))
    except Refused:
        return
    if compilation.plan.cluster.nodes:
        assert [each for each in short(Living.of(compilation).audit()) if each != "note IPC0904"] == []


@given(
    world=st.sampled_from(WORLDS),
    names=st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=5, unique=True),
    order=st.randoms(use_true_random=False),
)
def test_any_faults_at_once_are_told_and_the_order_of_the_dump_does_not_count(
    world: str, names: list[str], order: Random
) -> None:
    live = living(world)
    chosen = [FAULTS[name] for name in names if world in FAULTS[name][0]]
    expected: set[str] = set()
    for _, plant, codes in chosen:
        try:
            plant(live)
        except (KeyError, IndexError, StopIteration):
            continue  # another fault took away what this one is about
        expected |= {code for code in codes if not code.startswith("note")}
    found = live.audit()
    assert bool(found) or not expected
    mixed: list[tuple[str, Any]] = list(live.objects.items())
    order.shuffle(mixed)
    again = Living(live.git, live.applied, dict(mixed)).audit()
    assert short(again) == short(found)
    assert {each.message for each in again} == {each.message for each in found}


# What a dump does not have.

PLANTED = {name: (worlds, plant) for name, (worlds, plant, _) in FAULTS.items()} | HARMLESS
KINDS = (
    "CiliumEndpoint",
    "CiliumNode",
    "CiliumNodeConfig",
    "CiliumPodIPPool",
    "ConfigMap",
    "Deployment",
    "Pod",
    *POLICIES,
)
UNKNOWN = {"IPC0904", "IPC0943"}
"""What says that the dump lacks a kind."""


def severities(found: Iterable[Located]) -> dict[str, int]:
    """Return the highest severity of each code."""
    ranks: dict[str, int] = {}
    for each in found:
        rank = ("note", "warning", "error").index(each.severity.word)
        ranks[each.code] = max(rank, ranks.get(each.code, 0))
    return ranks


@given(data=st.data(), world=st.sampled_from(WORLDS), kind=st.sampled_from(KINDS), known=st.booleans())
def test_a_dump_that_lacks_a_kind_loses_what_needs_it_and_says_no_more_than_that(
    data: st.DataObject, *, world: str, kind: str, known: bool
) -> None:
    possible = sorted(name for name, (worlds, _) in PLANTED.items() if world in worlds)
    live = living(world)
    for name in data.draw(st.lists(st.sampled_from(possible), max_size=3, unique=True)):
        with suppress(KeyError, IndexError, StopIteration):  # another fault took away what this one is about
            PLANTED[name][1](live)
    live.applied = live.applied if known else None
    whole = severities(live.audit())
    live.without(kind)
    part = severities(live.audit())
    assert {code for code in part.keys() - UNKNOWN if part[code] > whole.get(code, -1)} == set()
    shows_blocks = {BLOCKS} if kind == CILIUM_NODE else set()
    lost = {code for code in whole if part.get(code, -1) < whole[code]}
    assert {code for code in lost if not NEEDS.get(code, frozenset()) & {kind, *shows_blocks}} == set()


def test_a_dump_without_pools_keeps_the_error_about_a_pod() -> None:
    live = living("multi-pool node")
    live.add(dumps.pod("web-a", "a", "10.1.0.200"))
    live.without("CiliumPodIPPool")
    assert short(live.audit()) == ["error IPC0960", "note IPC0904", "warning IPC0943"]


def test_a_finding_hides_no_other_fault_of_its_node() -> None:
    """The block of a was changed: that explains the pod with an address of the lock's block, and not the other one."""
    live = living("cluster-pool")
    pod_cidrs(live, "a", "10.1.9.0/26")
    assert short(live.audit()) == ["error IPC0941"]
    live.add(dumps.pod("stray", "a", "10.1.0.200"), endpoint("stray", "10.1.0.200"))
    found = live.audit()
    assert short(found) == ["error IPC0941", "error IPC0960"]
    (pods,) = [each.message for each in found if each.code == "IPC0960"]
    assert "default/stray" in pods
    assert "web-a" not in pods


def test_what_several_findings_prove_explains_what_is_about_all_of_it() -> None:
    """Block for block of a is another node's, too: that its CiliumNode is not as in git says nothing more."""
    live = living("cluster-pool")
    pod_cidrs(live, "a", "10.1.0.64/26", "10.1.0.128/26")
    assert short(live.audit()) == ["error IPC0910"]
    pod_cidrs(live, "a", "10.1.0.64/26", "10.1.0.128/26", "10.1.9.0/26")
    assert short(live.audit()) == ["error IPC0910", "error IPC0941"]
