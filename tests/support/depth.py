"""How much of a law a run of the tests plays: `make test` a part, `make test-all` (IPAMC_TESTS=all) all of it.

A test marked with `pytest.mark.deep` has many cases of one law, or costs seconds for what other tests show in part. `make test`
runs every tenth case of such a function, and none of a function without cases; `deep(part=0)` runs no case, `deep(part=50)` every
fiftieth, `deep("pinned", "crd")` those that have one of these words in their id. All cases run where one function is asked for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import pytest

ALL = os.environ.get("IPAMC_TESTS") == "all"
PART = 10
"""One case of so many is in the part."""


def examples(number: int, at_least: int = 5) -> int:
    """Return how many random examples a run plays where all of them are this many."""
    return number if ALL else max(number // PART, at_least)


def part_of(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide collected tests into those of this run, in their order, and the others."""
    names = [item.nodeid.partition("[") for item in items]
    if ALL or len({function for function, _, _ in names}) == 1:
        return list(items), []
    played: list[pytest.Item] = []
    left: list[pytest.Item] = []
    cases: Counter[str] = Counter()
    for item, (function, _, case) in zip(items, names, strict=True):
        is_part = all(
            case and _is_chosen(case.removesuffix("]"), cases[function], *marker.args, **marker.kwargs)
            for marker in item.iter_markers("deep")
        )
        cases[function] += 1
        (played if is_part else left).append(item)
    return played, left


def _is_chosen(case: str, number: int, *words: str, part: int = PART) -> bool:
    """Return whether a part of a law has this case of it: the number counts from 0."""
    if words:
        return any(f"-{word}-" in f"-{case}-" for word in words)
    return bool(part) and number % part == 0
