"""Whatever was compiled and applied runs without a problem: every cluster and case of the project, and random ones; and with random faults nothing crashes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.diagnostics import Refused
from tests.review.audit.test_faults import FAULTS
from tests.review.audit.worlds import WORLDS, living
from tests.support import examples, fleet
from tests.support.living import Living, short
from tests.test_laws import clusters

MOVING = {"kubernetes/settled-but-not-joined-again.txtar": ["warning IPC0912"]}
"""A Node that has to be deleted before it can have the block of the lock."""


@pytest.mark.parametrize("name", examples.NAMES)
def test_every_example_runs_without_a_finding(name: str) -> None:
    assert short(Living.of(examples.clusters()[name]).audit()) == []


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
