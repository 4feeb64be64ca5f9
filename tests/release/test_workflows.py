"""The workflows of this repository: what they run is pinned, and what they may do is little."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
STEPS = re.compile(r"^\s*(?:- )?uses: (.*)$", re.MULTILINE)
WRITES = {
    ("docs.yml", "deploy"): {"pages": "write", "id-token": "write"},
    ("release.yml", "pypi"): {"id-token": "write"},
    ("release.yml", "github"): {"contents": "write"},
}
"""The jobs that may write something, and what."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit_with_the_tag_beside(path: Path) -> None:
    used = STEPS.findall(path.read_text())
    assert used
    assert [
        each for each in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
    ] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_may_do_little_and_ends(path: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120
        assert job.get("permissions") == WRITES.get((path.name, name), {"contents": "read"}) or not any(
            "checkout" in step.get("uses", "") for step in job["steps"]
        )
        for step in job["steps"]:
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", "").replace("${{ matrix.", "")
    if path.name not in {"docs.yml", "release.yml"}:
        assert "secrets." not in path.read_text()


def minors(kind: str) -> set[str]:
    """Return the minors of which the servers of a kind can be built."""
    return {path.name.removeprefix(kind) for path in (ROOT / "tests/e2e/servers").glob(f"{kind}*")}


def test_nightly_runs_every_operator_and_agent_that_can_be_built() -> None:
    github = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())["jobs"]
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
    assert set(github["e2e"]["strategy"]["matrix"]["minor"]) == minors("cilium-")
    assert set(github["e2e-agents"]["strategy"]["matrix"]["minor"]) == minors("agent-")
    assert set(gitlab["nightly"]["parallel"]["matrix"][0]["MINOR"]) == minors("cilium-")


def test_each_python_of_the_project_is_tried_on_both_forges() -> None:
    stated = set(re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()))
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
    assert set(gitlab["smoke"]["parallel"]["matrix"][0]["PYTHON"]) == stated
    for name in ("test.yml", "release.yml"):
        workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
        assert set(workflow["jobs"]["smoke"]["strategy"]["matrix"]["python"]) == stated
