"""Behaviour, one case file each: the pages under tests/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import casefile

CASES = sorted(casefile.ROOT.rglob("*.txtar"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(casefile.ROOT)))
def test_case(path: Path, update: bool) -> None:  # noqa: FBT001 - a fixture
    case = casefile.load(path)
    got = casefile.run(case)
    if update:
        path.write_text(casefile.text(got), encoding="utf-8")
        return
    assert casefile.text(got) == casefile.text(case)
