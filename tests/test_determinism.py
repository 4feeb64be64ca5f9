"""Same input, same bytes: with any hash seed, in any folder, on any day; and the committed clusters are what the compiler gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

ROOT = Path(__file__).parent.parent
CLUSTERS = ROOT / "clusters"


def ipamc(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "compiler")}
    command = [sys.executable, "-m", "ipamc", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def copied(to: Path, *, outputs: bool) -> Path:
    ignore = None if outputs else shutil.ignore_patterns("rendered", "ipam.lock")
    shutil.copytree(CLUSTERS, to / "clusters", ignore=ignore)
    return to


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(21))
def test_any_hash_seed_gives_the_committed_bytes(seed: int, tmp_path: Path) -> None:
    copied(tmp_path, outputs=False)
    done = ipamc("compile", "--jobs", "1", cwd=tmp_path, PYTHONHASHSEED=str(seed))
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "clusters") == tree(CLUSTERS)


def test_a_day_that_passes_makes_nothing_stale(tmp_path: Path) -> None:
    copied(tmp_path, outputs=True)
    nodes = tmp_path / "clusters/cluster-pool/nodes.yaml"
    nodes.write_text(nodes.read_text().replace("- {name: c1-worker, maxPods: 60}\n", ""))
    day = 1_795_000_000
    assert ipamc("compile", "cluster-pool", cwd=tmp_path, SOURCE_DATE_EPOCH=str(day)).returncode == 0
    assert '"quarantined":"2026-11-1' in (tmp_path / "clusters/cluster-pool/ipam.lock").read_text()
    later = ipamc("compile", "--check", "--locked", cwd=tmp_path, SOURCE_DATE_EPOCH=str(day + 400 * 86_400))
    assert later.returncode == 0, later.stderr


def test_neither_folder_nor_locale_nor_time_zone_reach_the_output(tmp_path: Path) -> None:
    copied(tmp_path, outputs=False)
    done = ipamc(
        "compile",
        str(tmp_path / "clusters/zones"),
        cwd=Path("/"),
        LC_ALL="C",
        TZ="Pacific/Auckland",
        PYTHONUTF8="0",
    )
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "clusters/zones") == tree(CLUSTERS / "zones")


def read_alike(text: str) -> bool:
    """Tell whether readers of YAML 1.1 and of YAML 1.2 take a text, and for the same."""
    try:
        return list(yaml.safe_load_all(text)) == list(YAML(typ="safe", pure=True).load_all(text))
    except (yaml.YAMLError, YAMLError):
        return False


def test_rendered_documents_mean_the_same_to_yaml_1_1_and_1_2_readers() -> None:
    texts = {
        str(path.relative_to(CLUSTERS)): path.read_text()
        for path in sorted(CLUSTERS.glob("*/rendered/**/*.yaml"))
    }
    assert texts
    differ = [path for path, text in texts.items() if not read_alike(text)]
    assert not differ, "\n".join(differ)
