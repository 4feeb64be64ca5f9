"""A newer ipamc moves nothing: every example that a release kept compiles with its lock, and the lock stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ipamc.pipeline import compile_cluster
from ipamc.workspace.source import Disk
from tools.release.keep import keep, unpack

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "tests/upgrades").glob("*.txtar"))
DAY = "2100-01-01"
"""Long after: what waits in quarantine is free by then, and still nothing moves."""


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: path.stem)
@pytest.mark.parametrize("day", ["2026-11-21", DAY])
def test_the_locks_stay_byte_for_byte(archive: Path, day: str, tmp_path: Path) -> None:
    folders = unpack(archive, tmp_path)
    assert folders
    moved = []
    for folder in folders:
        inputs = Disk().inputs(str(folder))
        compilation = compile_cluster(replace(inputs, today=day, locked=True))
        if compilation.lock.encode() != inputs.lock:
            moved.append(folder.name)
    assert moved == []


def test_every_example_is_kept_of_every_release(tmp_path: Path) -> None:
    names = {path.parent.name for path in (ROOT / "clusters").glob("*/ipam.lock")}
    newest = max(KEPT, key=lambda path: [*map(int, path.stem.split("."))])
    assert {folder.name for folder in unpack(newest, tmp_path)} >= names


def test_what_is_kept_is_what_is_there(tmp_path: Path) -> None:
    names = keep("9.9.9", tmp_path)
    folders = unpack(tmp_path / "9.9.9.txtar", tmp_path / "kept")
    assert [folder.name for folder in folders] == names
    for path in (path for path in (tmp_path / "kept").rglob("*") if path.is_file()):
        assert path.read_bytes() == (ROOT / "clusters" / path.relative_to(tmp_path / "kept")).read_bytes()
