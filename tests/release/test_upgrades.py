"""A newer ipamc moves nothing: every example that a release kept compiles with its lock, and the lock stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ipamc.pipeline import compile_cluster
from ipamc.workspace.source import Disk

ROOT = Path(__file__).parents[2]
KEPT = sorted(path.parent for path in (ROOT / "tests/upgrades").glob("*/*/ipam.lock"))
DAY = "2100-01-01"
"""Long after: what waits in quarantine is free by then, and still nothing moves."""


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
@pytest.mark.parametrize("day", ["2026-11-21", DAY])
def test_the_lock_stays_byte_for_byte(folder: Path, day: str) -> None:
    inputs = Disk().inputs(str(folder))
    compilation = compile_cluster(replace(inputs, today=day, locked=True))
    assert compilation.lock.encode() == inputs.lock


def test_every_example_is_kept_of_every_release() -> None:
    names = {path.parent.name for path in (ROOT / "clusters").glob("*/ipam.lock")}
    newest = max(KEPT, key=lambda folder: [*map(int, folder.parent.name.split("."))]).parent
    assert {folder.name for folder in KEPT if folder.parent == newest} >= names
