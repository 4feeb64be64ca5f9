"""Generated pipelines on this machine: GitLab's by gitlab-ci-local, parent and child, GitHub's by actionlint. `make ci-lab` installs both and runs this."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_ci import ASKED, Runs, serving
from tests.support.pipelines import ROOT, Repository, bash, installing, inventory, workflow

LAB = os.environ.get("IPAMC_PIPELINES", "")
"""The folder that `.ci/pipelines` prints."""

pytestmark = pytest.mark.skipif(
    not LAB, reason="no gitlab-ci-local and no actionlint: run make ci-lab, which installs them"
)

MERGE_REQUEST = (
    "--variable",
    "CI_MERGE_REQUEST_IID=7",
    "--variable",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
)
PYPI = "https://pypi.org/simple"
NEW_KEY = 'unexpected key "queue" for "concurrency"'
"""GitHub has it since May 2026, actionlint 1.7.12 does not know it yet."""
OWN_LABEL = 'label "(office|net-a)" is unknown'
"""Labels of runners of one's own are in a file of actionlint."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return a repository in which one of two clusters changed on a branch."""
    found = Repository(tmp_path)
    found.branch("feature", "red", "n2")
    found.calls()
    return found


def gitlab(repository: Repository, *options: str, code: int = 0) -> str:
    """Run a pipeline of GitLab."""
    program = f"{LAB}/node_modules/gitlab-ci-local/dist/index.js"
    return repository.run(
        f"{LAB}/node_modules/.bin/node",
        program,
        "--force-shell-executor",
        "--shell-isolation",
        "--no-color",
        *options,
        code=code,
    )


def test_a_merge_request_compiles_the_cluster_that_changed(repository: Repository) -> None:
    said = gitlab(repository, *MERGE_REQUEST)
    assert "[ipamc-check] -> compile: [red]" in said
    assert "[blue]" not in said
    calls = repository.calls()
    assert (
        calls[0]
        == f"ci matrix --output gitlab --stage compile --base origin/main --gate {ASKED} --write ipamc-child.yml"
    )
    assert "compile --clusters-from - --locked --check --report gitlab=ipamc-findings.json" in calls
    assert any(call.startswith("plan --clusters-from ") and "--output markdown" in call for call in calls)
    assert "ci comment plan.md" in calls


def test_a_child_that_fails_is_seen_to_fail(repository: Repository) -> None:
    gitlab(repository, *MERGE_REQUEST)
    child = (repository.folder / "ipamc-child.yml").read_text()
    gitlab(repository, "--file", "ipamc-child.yml")
    repository.write("clusters/red/more.yaml", inventory("n2", "n3"))
    repository.commit("not compiled")
    gitlab(repository, *MERGE_REQUEST)  # the parent's exit code hides its child's
    assert (repository.folder / "ipamc-child.yml").read_text() == child
    said = gitlab(repository, "--file", "ipamc-child.yml", code=1)
    assert "n3" in said
    assert "FAIL  compile: [red]" in said


def test_the_child_compiles_the_merged_result(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "main")
    # Either side is sound, and git merges them; together they have n2 twice
    repository.write("clusters/red/later.yaml", inventory("n2"))
    repository.run("ipamc", "compile")
    repository.commit("the target goes on")
    repository.run("git", "push", "-q", "origin", "main")
    repository.run("git", "checkout", "-q", "feature")
    gitlab(repository, *MERGE_REQUEST)
    said = gitlab(repository, "--file", "ipamc-child.yml", code=1)
    assert "FAIL  compile: [red]" in said
    assert "clusters/red/later.yaml" in said


def test_nothing_changed_is_a_pipeline_that_passes(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "-b", "docs", "main")
    repository.write("README.md", "more")
    repository.commit("docs")
    assert "no cluster changed" in gitlab(repository, *MERGE_REQUEST)
    assert "PASS  nothing to do" in gitlab(repository, "--file", "ipamc-child.yml")


def test_after_the_merge_the_cluster_that_changed_is_applied(repository: Repository) -> None:
    before = repository.run("git", "rev-parse", "main").strip()
    repository.run("git", "checkout", "-q", "main")
    repository.run("git", "merge", "-q", "--no-ff", "--no-edit", "feature")
    (repository.tools / "kubectl").write_text(
        '#!/bin/sh\necho "error: context \\"red\\" does not exist" >&2\nexit 1\n'
    )
    (repository.tools / "kubectl").chmod(0o755)
    handler = type("OneRuns", (Runs,), {"answer": [{"sha": before}], "requests": []})
    with serving(handler) as url:
        variables = {"GITLAB_CI": "true", "CI_API_V4_URL": url, "IPAMC_TOKEN": "t0ken"}
        variables |= {"CI_PROJECT_ID": "5", "CI_PIPELINE_SOURCE": "push"}
        gitlab(repository, *(text for item in variables.items() for text in ("--variable", "=".join(item))))
    calls = repository.calls()
    assert (
        calls[0]
        == f"ci matrix --output gitlab --stage apply --base last-success --gate {ASKED} --write ipamc-child.yml"
    )
    assert calls[1] == "apply --check --trunk origin/main --receipt ipamc-receipts red"
    (applied,) = calls[2:]  # also where a job failed: other clusters may be applied
    assert applied.startswith("ci applied ipamc-receipts --remote https://")
    assert "red: " in gitlab(repository, "--file", "ipamc-child.yml", code=1)


def test_a_schedule_repairs_every_cluster(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "main")
    (repository.tools / "kubectl").write_text("#!/bin/sh\nexit 1\n")
    (repository.tools / "kubectl").chmod(0o755)
    gitlab(repository, "--variable", "CI_PIPELINE_SOURCE=schedule")
    calls = repository.calls()
    assert (
        calls[0] == f"ci matrix --output gitlab --stage repair --base  --gate {ASKED} --write ipamc-child.yml"
    )
    assert {call for call in calls if call.startswith("apply ")} == {
        "apply --check --repair --trunk origin/main blue",
        "apply --check --repair --trunk origin/main red",
    }


def test_a_schedule_refreshes_every_cluster_where_it_is_asked_to(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "main")
    repository.run("ipamc", "ci", "gitlab", "--refresh")
    repository.commit("refresh")
    (repository.tools / "kubectl").write_text(
        '#!/bin/sh\ncase "$*" in *crds*) exit 1; esac\necho \'{"items": []}\'\n'
    )
    (repository.tools / "kubectl").chmod(0o755)
    gitlab(repository, "--variable", "CI_PIPELINE_SOURCE=schedule")
    calls = repository.calls()
    assert (
        calls[0]
        == f"ci matrix --output gitlab --stage repair --base  --gate {ASKED} --refresh --write ipamc-child.yml"
    )
    for name in ("blue", "red"):
        (dump,) = (call for call in calls if call.startswith(f"dump {name} --for refresh --write "))
        (refresh,) = (call for call in calls if call.startswith(f"ci refresh {name} "))
        file = dump.rpartition(" ")[2]
        assert refresh.startswith(f"ci refresh {name} {file} --remote https://")
        assert refresh.endswith(" --target main")


def test_a_schedule_audits_every_cluster_after_its_repair(repository: Repository) -> None:
    repository.run("git", "checkout", "-q", "main")
    repository.run("ipamc", "ci", "gitlab", "--audit", "--oidc")
    repository.commit("audit")
    (repository.tools / "kubectl").write_text("#!/bin/sh\nexit 1\n")
    (repository.tools / "kubectl").chmod(0o755)
    gitlab(repository, "--variable", "CI_PIPELINE_SOURCE=schedule")
    calls = repository.calls()
    assert calls[0] == (
        f"ci matrix --output gitlab --stage repair --base  --gate {ASKED} --audit --oidc --write ipamc-child.yml"
    )
    for name in ("blue", "red"):
        (dump,) = (call for call in calls if call.startswith(f"dump {name} --write "))
        (audit,) = (call for call in calls if call.startswith(f"ci audit {name} "))
        assert audit.startswith(f"ci audit {name} {dump.rpartition(' ')[2]} --remote https://")
        assert calls.index(audit) > max(calls.index(call) for call in calls if call.startswith("apply "))


def test_two_private_runners_and_what_the_user_adds(repository: Repository) -> None:
    """The tags are in the child; the user's jobs and settings are included in both pipelines."""
    repository.run("git", "checkout", "-q", "main")
    repository.write(".gitlab/ipamc-own.yml", "mine:\n  script: [echo this is mine]\n")
    repository.write(".gitlab/ipamc-own-child.yml", ".ipamc: {variables: {ADDED: to the child}}\n")
    repository.run("ipamc", "ci", "gitlab", "--tag", "office", "--apply-tag", "red=net-a")
    repository.commit("runners")
    repository.run("git", "push", "-q", "origin", "main")
    (repository.tools / "kubectl").write_text('#!/bin/sh\necho "kubectl with $ADDED" >&2\nexit 1\n')
    (repository.tools / "kubectl").chmod(0o755)
    said = gitlab(repository)
    assert "this is mine" in said
    assert "kubectl with to the child" in said
    listed = gitlab(repository, "--file", "ipamc-child.yml", "--preview")
    jobs = yaml.safe_load(listed[listed.index("---") :])
    assert {name: jobs[name]["tags"] for name in jobs if name.startswith("apply")} == {
        "apply 001 blue": ["office"],
        "apply 002 red": ["net-a"],
    }


class Index(BaseHTTPRequestHandler):
    """An index that has one wheel of ipamc; what else is asked for, pypi.org answers."""

    wheel: Path

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer."""
        ours = "/ipamc/" in self.path
        name = self.wheel.name
        page = f'<!DOCTYPE html><a href="{name}">{name}</a>'.encode()
        data = b"" if not ours else self.wheel.read_bytes() if self.path.endswith(name) else page
        self.send_response(200 if ours else 302)
        self.send_header("Content-Type", "text/html" if data == page else "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        if not ours:
            self.send_header("Location", f"{PYPI}{self.path.removeprefix('/simple')}")
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Clone this repository, and build its wheel; return both."""
    folder = tmp_path_factory.mktemp("built")
    clone = folder / "ipamc"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(clone)], check=True)
    (wheel,) = folder.glob("*.whl")
    return clone, wheel


@pytest.mark.parametrize("way", ["wheel", "git", "index"])
def test_a_job_installs_a_whole_ipamc(
    repository: Repository, built: tuple[Path, Path], tmp_path: Path, way: str
) -> None:
    clone, wheel = built
    writer = tmp_path / "writer"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(writer))
    repository.run(*pip, str(wheel))
    (repository.folder / "ci").mkdir()
    shutil.copy(wheel, repository.folder / "ci")
    commit = repository.run("git", "-C", str(clone), "rev-parse", "HEAD").strip()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with serving(type("OneIndex", (Index,), {"wheel": wheel})) as url:
        options = {
            "wheel": ("--wheel", f"ci/{wheel.name}"),
            "git": ("--git", f"file://{clone}@{commit}"),
            "index": ("--index", f"{url}/simple", "--sha256", digest),
        }
        ipamc = (sys.executable, "-P", "-m", "ipamc", "ci", "github")
        repository.run(*ipamc, *options[way], PYTHONPATH=str(writer))
        found = workflow((repository.folder / ".github/workflows/ipamc.yml").read_text())
        step = installing(repository)
        job = tmp_path / "ipamc"
        variables: dict[str, Any] = {**found["env"], **step.get("env", {}), "RUNNER_TEMP": str(tmp_path)}
        variables |= {name: str(tmp_path / name) for name in ("GITHUB_ENV", "GITHUB_PATH")}
        repository.run(*bash(step["run"]), **variables)
    version = wheel.name.split("-")[1]
    assert repository.run(f"{job}/bin/ipamc", "--version") == f"ipamc {version}\n"
    assert "up to date" in repository.run(f"{job}/bin/ipamc", "compile", "--locked", "--check", "red")


OPTIONS: tuple[list[str], ...] = (
    [],
    ["--refresh"],
    ["--audit", "--oidc", "--unattended", "--refresh"],
    ["--server", "--audit", "--git", f"https://git.example.org/ipamc.git@{'c0' * 20}"],
    ["--image", f"registry.example.org/ipamc@sha256:{'a1' * 32}", "--audit", "--refresh"],
    ["--runner", "self-hosted,office", "--apply-runner", "re*=self-hosted,net-a", "--audit", "--refresh"],
)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_the_workflow_passes_actionlint(repository: Repository, options: list[str]) -> None:
    repository.run("ipamc", "ci", "github", *options)
    file = ".github/workflows/ipamc.yml"
    assert (
        repository.run(f"{LAB}/actionlint", "-no-color", "-ignore", NEW_KEY, "-ignore", OWN_LABEL, file) == ""
    )
