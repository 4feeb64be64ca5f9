"""The workflows of this repository, read by actionlint and by gitlab-ci-local. `make ci-lab` installs both and runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAB = os.environ.get("IPAMC_PIPELINES", "")
"""The folder that `.ci/pipelines` prints."""

pytestmark = pytest.mark.skipif(
    not LAB, reason="no gitlab-ci-local and no actionlint: run make ci-lab, which installs them"
)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_actionlint_reads_every_workflow() -> None:
    run(
        f"{LAB}/actionlint",
        "-no-color",
        *map(str, sorted((ROOT / ".github/workflows").glob("*.yml"))),
        cwd=ROOT,
    )


@pytest.mark.parametrize(
    ("variables", "jobs"),
    [
        (("CI_COMMIT_BRANCH=main", "CI_DEFAULT_BRANCH=main"), {"test", "build", "smoke", "pages"}),
        (("CI_PIPELINE_SOURCE=merge_request_event",), {"test", "build", "smoke"}),
        (("CI_PIPELINE_SOURCE=schedule", "IMAGE_WITH_GO=x"), {"nightly", "test-all"}),
        (
            ("CI_COMMIT_TAG=v1.2.3", "CI_COMMIT_REF_PROTECTED=true"),
            {"test", "test-all", "build", "smoke", "pypi"},
        ),
        (("CI_COMMIT_TAG=v1.2.3", "CI_COMMIT_REF_PROTECTED=false"), {"test", "test-all", "build", "smoke"}),
    ],
    ids=["main", "merge request", "nightly", "protected tag", "tag"],
)
def test_gitlab_has_these_jobs(variables: tuple[str, ...], jobs: set[str], tmp_path: Path) -> None:
    shutil.copy(ROOT / ".gitlab-ci.yml", tmp_path)
    run("git", "init", "-q", "-b", "main", cwd=tmp_path)
    run("git", "remote", "add", "origin", "git@gitlab.example.com:net/ipamc.git", cwd=tmp_path)
    run(
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "a",
        cwd=tmp_path,
    )
    words = [word for each in ("CI_COMMIT_BRANCH=", *variables) for word in ("--variable", each)]
    program = (f"{LAB}/node_modules/.bin/node", f"{LAB}/node_modules/gitlab-ci-local/dist/index.js")
    rows = run(*program, "--list-csv", *words, cwd=tmp_path).split("\nname;", 1)[1].splitlines()[1:]
    assert {row.partition(";")[0].partition(":")[0] for row in rows} == jobs
