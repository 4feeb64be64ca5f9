"""Random histories of a cluster: what the lock promises holds after every step, in every mode.

`make soak` runs them for longer: IPAMC_HISTORIES is the number of histories a mode, each of up to 50 steps, and another seed each time.
IPAMC_SOAK_MODE plays one mode, and IPAMC_SOAK_SEED says from which seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support import depth, fleet
from tests.support.history.branches import Branches
from tests.support.history.live import LiveHistory
from tests.support.history.machine import History
from tests.support.history.model import MODES

STEPS = 50
"""Of one history, at the most."""
HISTORIES = int(os.environ.get("IPAMC_HISTORIES") or (40 if depth.ALL else 2))
"""A mode: some 6,000 steps in all five where all are played."""
SOAK = "IPAMC_HISTORIES" in os.environ
SEED, MODE = int(os.environ.get("IPAMC_SOAK_SEED") or 0), os.environ.get("IPAMC_SOAK_MODE", "")
PLAYED = (MODE,) if MODE else MODES


FIGURES: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    """Print the figures of a soak, which can be added up."""
    yield
    if SOAK:
        of = ", ".join(f"{number:,} steps of {name}" for name, number in FIGURES.items())
        print(f"\nMODE={MODE or 'all'} SEED={SEED or 'any'} HISTORIES={HISTORIES}: {of}")  # noqa: T201 - what a soak is for


@pytest.mark.parametrize("mode", PLAYED)
def test_what_the_lock_promises_holds_after_every_step(mode: str) -> None:
    steps = histories_of(LiveHistory, mode, HISTORIES)
    assert steps["steps"] >= HISTORIES * STEPS // 3  # hypothesis ends some histories early


@pytest.mark.parametrize("mode", PLAYED)
def test_it_holds_where_branches_are_merged_rebased_picked_and_reverted(mode: str) -> None:
    steps = histories_of(Branches, mode, max(HISTORIES // 8, 6))
    assert steps["meetings"] > 0


def histories_of(machine: type[History], mode: str, number: int) -> Counter[str]:
    """Run so many histories; give what happened in them."""
    steps: Counter[str] = Counter()
    played = type(f"{machine.__name__} of {mode}", (machine,), {"mode": mode, "steps": steps, "met": []})
    run_state_machine_as_test(
        seed(SEED)(played) if SEED else played,
        settings=settings(
            max_examples=number,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=not SOAK,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    FIGURES[machine.__name__] += steps["steps"]
    print(f"\n{machine.__name__}, {mode}: {steps['steps']:,} steps: {dict(steps.most_common())}")  # noqa: T201 - what a soak is watched for
    return steps


def test_a_tenth_of_5000_nodes_that_leaves_and_returns_changes_no_byte() -> None:
    chance = random.Random(5000)  # noqa: S311 - a test's choice, the same every time
    nodes = [{"name": f"node-{number:04}", "labels": {"rack": f"r{number % 7}"}} for number in range(5000)]
    pools = [
        fleet.pool(
            f"rack-{rack}",
            ipv4={"cidrs": [f"10.{rack}.0.0/16"], "blockSize": 26},
            nodeSelector=f'rack == "r{rack}"',
        )
        for rack in range(7)
    ]
    documents = [fleet.cluster(), *pools]
    everybody = fleet.as_json([*documents, fleet.inventory(nodes)])
    first = fleet.compiled(everybody)
    stayed = fleet.as_json([*documents, fleet.inventory(chance.sample(nodes, 4500))])
    without = fleet.compiled(stayed, first.lock, leave=["all"])
    assert without.lock.count('"quarantined"') == 500
    assert fleet.compiled(everybody, without.lock, today="2027-11-21").lock == first.lock
