"""The runners of a pipeline, by cluster, and what a user adds to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamc.cli.ci.jobs import jobs
from ipamc.cli.ci.runners import of_runners, runner_of
from tests.cli import test_ci
from tests.cli.test_ci import FILES, child
from tests.support.pipelines import Repository, bash, workflow

made, repository = test_ci.made, test_ci.repository


def written(repository: Repository, forge: str, *options: str) -> dict[str, Any]:
    """Write a pipeline; return it."""
    repository.run("ipamc", "ci", forge, *options)
    return workflow((repository.folder / FILES[forge]).read_text())


def test_every_job_of_github_has_the_runner_that_was_chosen(repository: Repository) -> None:
    options = ("--refresh", "--audit", "--runner", "self-hosted,office")
    found = written(repository, "github", *options)["jobs"]
    assert {str(job["runs-on"]) for job in found.values()} == {"['self-hosted', 'office']"}
    found = written(repository, "github", *options, "--apply-runner", "private")["jobs"]
    private = {name for name, job in found.items() if job["runs-on"] == ["private"]}
    assert private == {"apply", "applied", "refresh", "audit"}


def test_a_cluster_has_a_runner_of_its_own(repository: Repository) -> None:
    options = ("--runner", "office", "--apply-runner", "re*=net,red")
    found = written(repository, "github", *options, "--audit")["jobs"]
    assert {name for name, job in found.items() if job["runs-on"] == "${{ matrix.runner }}"} == {
        "apply",
        "audit",
    }
    for job, stage in (("matrix", "apply"), ("clusters", "refresh")):
        (step,) = (step for step in found["changes"]["steps"] if step.get("id") == job)
        output = repository.folder.parent / "output"
        output.write_text("")
        variables: dict[str, Any] = {"BASE": "", "STAGE": stage, "GITHUB_OUTPUT": str(output)}
        repository.run(*bash(step["run"]), **variables)
        rows = json.loads(dict(line.split("=", 1) for line in output.read_text().splitlines())["matrix"])
        assert {row["name"]: row["runner"] for row in rows["include"]} == {
            "blue": ["office"],
            "red": ["net", "red"],
        }


def test_the_child_of_gitlab_has_the_tags_that_its_parent_was_written_with(repository: Repository) -> None:
    """A parent's `default` does not reach a child."""
    found = written(repository, "gitlab", "--tag", "office", "--apply-tag", "re*=net,red", "--audit")
    assert found[".ipamc"]["tags"] == ["office"]
    (script,) = found["ipamc-changes"]["script"]
    seen: dict[str, Any] = {}
    for stage in ("compile", "apply", "repair"):
        repository.run(*bash(script), IPAMC_STAGE=stage, IPAMC_BASE="")
        jobs = workflow((repository.folder / "ipamc-child.yml").read_text())
        assert jobs[".ipamc"]["tags"] == ["office"]
        seen |= {
            name: job["tags"]
            for name, job in jobs.items()
            if isinstance(job, dict) and "tags" in job and name != ".ipamc"
        }
        own = {name for name, job in jobs.items() if isinstance(job, dict) and "image" in job}
        assert own == {".ipamc"}
    assert seen == {
        **{f"{job} 001 blue": ["office"] for job in ("apply", "repair", "audit")},
        **{f"{job} 002 red": ["net", "red"] for job in ("apply", "repair", "audit")},
    }


def test_no_file_of_a_cluster_chooses_a_runner(repository: Repository) -> None:
    """What a request may change without a review of the pipeline."""
    before = child(repository, "apply", "--runner", "office")
    repository.write("clusters/red/tags.yaml", "# tags: [private]\n")
    assert child(repository, "apply", "--runner", "office") == before


def test_clusters_share_a_job_where_they_share_a_runner() -> None:
    names = [f"{kind}-{number:03}" for kind in ("lab", "prod") for number in range(150)]
    runners = of_runners(["prod-*=private", "office"])
    found = jobs({name: [] for name in names}, apply=True, large=4, most=200, runners=runners)
    assert len(found) <= 200
    assert sorted(target for job in found for target in job.targets) == names
    assert all({runner_of(runners, target) for target in job.targets} == {job.runner} for job in found)


@pytest.mark.parametrize(
    "text", ["", "a,,b", "a b", "x;y", '"', "$(id)", "-x", "prod*prod=", "Prod_=a", "a\nb", "${{ x }}"]
)
@pytest.mark.parametrize(("forge", "option"), [("github", "--apply-runner"), ("gitlab", "--apply-tag")])
def test_a_label_that_could_be_something_else_is_refused(
    repository: Repository, forge: str, option: str, text: str
) -> None:
    said = repository.run("ipamc", "ci", forge, option, text, code=64)
    assert "does not have the form self-hosted,linux or prod-*=self-hosted,prod" in " ".join(said.split())


def test_what_a_user_adds_is_included_and_survives(repository: Repository) -> None:
    assert "include" not in written(repository, "gitlab")
    files = {
        ".gitlab/ipamc-own.yml": ".ipamc: {variables: {HTTPS_PROXY: http://proxy.example.org}}\n",
        ".gitlab/ipamc-own-child.yml": ".ipamc: {cache: {paths: [x]}}\n",
        ".github/actions/ipamc-setup/action.yml": "runs: {using: composite, steps: []}\n",
    }
    for path, text in files.items():
        repository.write(path, text)
    assert written(repository, "gitlab")["include"] == [{"local": ".gitlab/ipamc-own.yml"}]
    assert child(repository, "compile")["include"] == [{"local": ".gitlab/ipamc-own-child.yml"}]
    for job in written(repository, "github", "--refresh")["jobs"].values():
        used = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        assert not used[0] or used[:2] == ["actions/checkout", "./.github/actions/ipamc"]
    action = workflow((repository.folder / ".github/actions/ipamc/action.yml").read_text())
    assert action["runs"]["steps"][0] == {"uses": "./.github/actions/ipamc-setup"}
    for path, text in files.items():
        assert (repository.folder / path).read_text() == text
