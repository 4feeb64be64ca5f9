"""Mutated inputs break no law: a few with every run of the tests, the same ones each time; as many as time allows by `make fuzz`.

FUZZ_SECONDS is the time of the long form, FUZZ_SEED its seed. A failure is printed as a case file, made small: paste it into tests/cases.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.laws import examine
from tests.fuzz.mutate import mutated
from tests.fuzz.run import CASES, KINDS, Kind, fuzz
from tests.fuzz.subjects import Subject

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
FEW = {"cases": 400, "bases": 200, "merges": 600, "commands": 60, "folders": 60}
"""Inputs of each kind in the short form: some 10 seconds in all."""
SHARES = {"cases": 0.5, "bases": 0.1, "merges": 0.1, "commands": 0.15, "folders": 0.15}
"""Of the time of the long form."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_mutated_inputs_break_no_law(kind: Kind) -> None:
    if SECONDS:
        tally = fuzz(kind, SEED, seconds=SECONDS * SHARES[kind.name], slow=True)
    else:
        tally = fuzz(kind, SEED, number=FEW[kind.name])
    print(f"{kind.name}, FUZZ_SEED={SEED}: {tally.inputs:,} inputs: {dict(tally.became.most_common())}")  # noqa: T201 - what a long run is watched for
    assert not tally.failures, "\n".join(map(str, tally.failures.values()))


@given(st.randoms(use_true_random=False))
@settings(max_examples=20 if not SECONDS else 1000)
def test_mutations_that_hypothesis_chooses_break_no_law(chance: random.Random) -> None:
    """The same mutations, where hypothesis makes the choices, and simpler ones of an input that fails."""
    examine(mutated(chance).inputs())


def test_the_same_seed_gives_the_same_inputs() -> None:
    """In any order: no input depends on those before it."""
    seeds = [f"7/{number}" for number in range(300)]
    once = {(kind.name, seed): kind.made(random.Random(seed)) for kind in KINDS for seed in seeds}  # noqa: S311 - as above
    for kind in KINDS:
        for seed in reversed(seeds):
            assert kind.made(random.Random(seed)) == once[kind.name, seed]  # noqa: S311 - as above


def test_a_failure_is_shown_as_a_small_case_file() -> None:
    """An input that breaks a law is made small and readable; here the law is that no case has a pool."""

    def no_pool(subject: Subject) -> str:
        assert b"IPPool" not in b"".join(subject.files.values())
        return "fine"

    tally = fuzz(Kind("cases", CASES.made, no_pool), 1, number=3)
    (failure,) = tally.failures.values()
    assert "AssertionError" in str(failure)
    assert sum(text.count(b"\n") for text in failure.subject.files.values()) <= 1
