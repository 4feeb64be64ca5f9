"""Mutated inputs break no law: a few with every run of the tests, the same ones each time; as many as time allows by `make fuzz`.

FUZZ_SECONDS is the time of the long form, FUZZ_SEED its seed, FUZZ_KIND the one kind that gets all the time. A failure is printed as a case
file, made small: paste it into tests/cases, a request into tests/fuzz/pull_requests. FUZZ_AGAIN plays one input again, as it was.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.laws import examine
from tests.fuzz.mutate import mutated
from tests.fuzz.run import CASES, KINDS, Kind, fuzz, numbered
from tests.fuzz.subjects import Subject
from tests.support import depth

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
KIND, AGAIN = os.environ.get("FUZZ_KIND", ""), os.environ.get("FUZZ_AGAIN", "")
FEW = {"cases": 400, "bases": 200, "merges": 600, "commands": 60, "folders": 60, "requests": 10}
"""Inputs of each kind in `make test-all`: some 15 seconds in all."""
SHARES = {"cases": 0.4, "bases": 0.1, "merges": 0.1, "commands": 0.1, "folders": 0.1, "requests": 0.2}
"""Of the time of the long form."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_mutated_inputs_break_no_law(kind: Kind) -> None:
    if AGAIN or KIND not in {"", kind.name}:
        pytest.skip("another was asked for")
    if SECONDS:
        tally = fuzz(kind, SEED, seconds=SECONDS * (1 if KIND else SHARES[kind.name]), slow=True)
    else:
        tally = fuzz(kind, SEED, number=depth.examples(FEW[kind.name]))
    print(f"{kind.name}, FUZZ_SEED={SEED}: {tally.inputs:,} inputs: {dict(tally.became.most_common())}")  # noqa: T201 - what a long run is watched for
    assert not tally.failures, "\n".join(map(str, tally.failures.values()))


@pytest.mark.skipif(not AGAIN, reason="FUZZ_AGAIN names no input")
def test_one_input_again() -> None:
    name, _, seed = AGAIN.partition("/")
    (kind,) = (kind for kind in KINDS if kind.name == name)
    subject = numbered(kind, seed)
    print(subject.text(f"{AGAIN}: {kind.examine(subject)}"))  # noqa: T201 - what was asked for


@given(st.randoms(use_true_random=False))
@settings(max_examples=1000 if SECONDS else depth.examples(20))
def test_mutations_that_hypothesis_chooses_break_no_law(chance: random.Random) -> None:
    """The same mutations, where hypothesis makes the choices, and simpler ones of an input that fails."""
    examine(mutated(chance).inputs())


def test_the_same_seed_gives_the_same_inputs() -> None:
    """In any order: no input depends on those before it."""
    seeds = [f"7/{number}" for number in range(depth.examples(300))]
    once = {(kind.name, seed): numbered(kind, seed) for kind in KINDS for seed in seeds}
    for kind in KINDS:
        for seed in reversed(seeds):
            assert numbered(kind, seed) == once[kind.name, seed]


def test_a_failure_is_shown_as_a_small_case_file() -> None:
    """An input that breaks a law is made small and readable; here the law is that no case has a pool."""

    def no_pool(subject: Subject) -> str:
        assert b"IPPool" not in b"".join(subject.files.values())
        return "fine"

    tally = fuzz(Kind("cases", CASES.made, no_pool), 1, number=3)
    (failure,) = tally.failures.values()
    assert "AssertionError" in str(failure)
    assert sum(text.count(b"\n") for text in failure.subject.files.values()) <= 1
