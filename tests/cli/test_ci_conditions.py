"""Every `if` of the workflow for GitHub, evaluated as GitHub does: which jobs run for an event, and that a required check is neither skipped nor replaced."""

from __future__ import annotations

import functools
import itertools
import subprocess
from typing import Any

import pytest

from ipamc.cli.ci.jobs import github, jobs
from tests.cli.test_ci import written
from tests.fuzz.requests.github import evaluated, filled
from tests.support.pipelines import bash, workflow

JOBS = workflow(written("--refresh", "--audit"))["jobs"]
EVENTS = {
    "pull_request": {"changes", "compile", "plan", "done"},
    "merge_group": {"changes", "compile", "plan", "done"},
    "push": {"changes", "apply", "applied", "done"},
    "schedule": {"changes", "apply", "refresh", "audit", "done"},
    "schedule of another branch": {"done"},
    "workflow_dispatch": {"changes", "apply", "applied", "done"},
    "workflow_dispatch of another branch": {"merge", "done"},
    "workflow_dispatch of a tag": {"merge", "done"},
}
"""The jobs that run where there is something to do."""
REQUESTS = ("pull_request", "merge_group")
"""The events whose check `done` is required."""
REFS = {
    "": "refs/heads/main",
    "pull_request": "refs/pull/1/merge",
    "merge_group": "refs/heads/gh-readonly-queue/main/pr-1",
    "another branch": "refs/heads/topic",
    "a tag": "refs/tags/main",
}


def outputs(event: str, *, compiles: bool = True, plans: bool = True) -> dict[str, str]:
    """Return what the job `changes` gives: where it has work, a request also has a plan."""
    stage = "compile" if event in REQUESTS else "repair" if event.startswith("schedule") else "apply"
    found = jobs({"lab": ()} if compiles else {}, apply=False, large=1, most=1)
    text = github(found, stage=stage, plan=plans and stage == "compile")
    given = dict(row.split("=", 1) for row in text.splitlines())
    return given | ({"refresh": "success"} if stage == "repair" else {})


@functools.cache
def exits(script: str, *variables: tuple[str, str]) -> int:
    """Run a script of a step; return its exit code."""
    return subprocess.run(bash(script), env=dict(variables), capture_output=True, check=False).returncode


class Run:
    """A run of the workflow. `ends` has what becomes of jobs that run; a job without an entry succeeds."""

    def __init__(
        self,
        event: str,
        ends: dict[str, str],
        given: dict[str, str] | None = None,
        *,
        cancelled: bool = False,
    ) -> None:
        found_work = outputs(event) if given is None else given
        name, _, ref = event.partition(" of ")
        where = REFS.get(name, REFS[ref])
        github = {"event_name": name, "ref": where, "ref_name": where.rpartition("/")[2]}
        self.given: dict[str, Any] = {"github": github, "cancelled": cancelled}
        self.results: dict[str, str] = {}
        waiting = dict(JOBS)
        while waiting:
            for job, its in list(waiting.items()):
                needs = [its["needs"]] if isinstance(its.get("needs"), str) else its.get("needs", [])
                if not self.results.keys() >= set(needs):
                    continue
                del waiting[job]
                if job == "changes" and cancelled:
                    self.results[job] = "cancelled"
                    continue
                found = {
                    need: {
                        "result": self.results[need],
                        "outputs": found_work
                        if need == "changes" and self.results[need] == "success"
                        else {},
                    }
                    for need in needs
                }
                self.results[job] = self.result(job, its, found, ends)

    def result(self, job: str, its: dict[str, Any], needs: dict[str, Any], ends: dict[str, str]) -> str:
        """Decide whether a job runs, and how it ends."""
        given, condition = {**self.given, "needs": needs}, its.get("if", "true")
        asks = any(f"{word}()" in condition for word in ("always", "cancelled", "failure", "success"))
        fine = all(each["result"] == "success" for each in needs.values()) and not self.given["cancelled"]
        if not (asks or fine) or not evaluated(condition, given):
            return "skipped"
        if job != "done":
            return ends.get(job, "success")
        (step,) = its["steps"]
        self.name = filled(its["name"], given)
        variables = {name: str(filled(value, given)) for name, value in step["env"].items()}
        return "failure" if exits(step["run"], *variables.items()) else "success"

    @property
    def ran(self) -> set[str]:
        """The jobs that were not skipped."""
        return {job for job, result in self.results.items() if result != "skipped"}


@pytest.mark.parametrize("event", EVENTS)
def test_the_jobs_of_each_event_and_no_secret_for_what_is_not_merged(event: str) -> None:
    run = Run(event, {})
    assert run.ran == EVENTS[event]
    assert run.results["done"] == "success"
    secrets = {name for name in run.ran if "secrets." in str(JOBS[name])}
    assert secrets == run.ran & {"apply", "refresh", "audit", "merge"}
    assert not secrets or event not in REQUESTS
    assert all("environment" in JOBS[name] for name in secrets - {"merge"})


@pytest.mark.parametrize("event", EVENTS)
def test_the_required_check_succeeds_where_all_jobs_did_and_at_no_other_time(event: str) -> None:
    needed = [name for name in ("changes", "compile", "plan", "apply", "merge") if name in EVENTS[event]]
    for ends in itertools.product(["success", "failure", "cancelled", "skipped"], repeat=len(needed)):
        if ends[:1] == ("skipped",):  # a first job that needs no other is skipped by its own condition alone
            continue
        run = Run(event, dict(zip(needed, ends, strict=True)))
        well = set(ends) <= {"success"}
        assert run.results["done"] == ("success" if well else "failure"), (event, ends)


@pytest.mark.parametrize("event", EVENTS)
def test_a_run_that_is_cancelled_has_a_check_that_failed(event: str) -> None:
    run = Run(event, {}, cancelled=True)
    assert run.results["done"] == "failure"


@pytest.mark.parametrize("event", REQUESTS)
@pytest.mark.parametrize(("work", "plan"), [(True, True), (False, True), (False, False)])
def test_a_job_without_work_is_skipped_and_the_check_succeeds(event: str, *, work: bool, plan: bool) -> None:
    """A request changes no cluster, or deletes one: that is a plan and nothing to compile."""
    run = Run(event, {}, outputs(event, compiles=work, plans=plan))
    assert run.results["done"] == "success"
    assert (run.results["compile"], run.results["plan"]) == tuple(
        "success" if has else "skipped" for has in (work, plan)
    )


def test_a_run_by_hand_has_no_check_of_the_required_name() -> None:
    """GitHub takes the newest check of a name: a run by hand on the branch would replace one that failed."""
    assert JOBS["done"]["name"].startswith("${{")
    for event in EVENTS:
        assert (Run(event, {}).name == "done") == (event in REQUESTS)


def test_every_job_has_a_limit_of_time_and_the_check_needs_all_that_a_request_runs() -> None:
    for options in ((), ("--refresh", "--audit", "--unattended"), ("--server", "--oidc")):
        limits = [int(job["timeout-minutes"]) for job in workflow(written(*options))["jobs"].values()]
        assert limits
        assert all(0 < minutes <= 180 for minutes in limits)
    assert {job for event in REQUESTS for job in EVENTS[event]} - {"done"} <= set(JOBS["done"]["needs"])


def test_every_step_that_may_be_skipped_is_known() -> None:
    """A plan that fails fails its job: its files and its comment are there all the same."""
    conditions = {(job, step["if"]) for job, its in JOBS.items() for step in its["steps"] if "if" in step}
    assert conditions == {
        ("apply", "${{ !cancelled() }}"),
        ("changes", "github.event_name == 'schedule'"),
        ("plan", "${{ !cancelled() }}"),
        ("plan", "github.event_name == 'merge_group'"),
        ("plan", "!cancelled() && github.event.pull_request.head.repo.full_name == github.repository"),
    }


@pytest.mark.parametrize("event", REQUESTS)
def test_a_request_reaches_no_cluster_whatever_its_first_job_says(event: str) -> None:
    run = Run(event, {}, dict.fromkeys(["compile", "plan", "apply", "refresh"], "success"))
    assert run.ran == EVENTS[event]
    assert run.results["done"] == "failure"


@pytest.mark.parametrize("event", REQUESTS)
def test_a_first_job_that_says_nothing_is_no_success(event: str) -> None:
    assert Run(event, {}, {}).results["done"] == "failure"
