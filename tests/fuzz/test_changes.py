"""Random pull requests against the oracle of changes.py: a few with every run of the tests, as many as FUZZ_CHANGES or FUZZ_SECONDS say."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.changes import examine, made
from tests.fuzz.run import Kind, fuzz
from tests.support import depth

SECONDS, SEED = float(os.environ.get("FUZZ_SECONDS", "0")), int(os.environ.get("FUZZ_SEED", "1"))
NUMBER, AGAIN = int(os.environ.get("FUZZ_CHANGES", "0")), os.environ.get("FUZZ_AGAIN", "")
CHANGES = Kind("changes", made, examine)


@pytest.mark.skipif(bool(AGAIN), reason="another was asked for")
def test_no_request_moves_an_address_without_a_label() -> None:
    tally = fuzz(CHANGES, SEED, number=NUMBER or depth.examples(600), seconds=SECONDS)
    print(f"changes, FUZZ_SEED={SEED}: {tally.inputs:,} inputs: {dict(tally.became.most_common())}")  # noqa: T201 - what a long run is watched for
    assert not tally.failures, "\n".join(map(str, tally.failures.values()))
