"""Every `if` of the workflow for GitHub, evaluated as GitHub does: which jobs run for an event, and that a required check is neither skipped nor replaced."""

from __future__ import annotations

import functools
import itertools
import subprocess
from typing import Any

import pytest

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
REFS = {"": "refs/heads/main", "another branch": "refs/heads/topic", "a tag": "refs/tags/main"}
WORK = {"has_work": "true", "has_plan": "true", "has_clusters": "true"}


@functools.cache
def exits(script: str, *variables: tuple[str, str]) -> int:
    """Run a script of a step; return its exit code."""
    return subprocess.run(bash(script), env=dict(variables), capture_output=True, check=False).returncode


class Run:
    """A run of the workflow. `ends` has what becomes of jobs that run; a job without an entry succeeds."""

    def __init__(
        self, event: str, ends: dict[str, str], outputs: dict[str, str], *, cancelled: bool = False
    ) -> None:
        name, _, ref = event.partition(" of ")
        github = {"event_name": name, "ref": REFS[ref], "ref_name": REFS[ref].rpartition("/")[2]}
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
                        "outputs": outputs if need == "changes" and self.results[need] == "success" else {},
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
    run = Run(event, {}, WORK)
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
        run = Run(event, dict(zip(needed, ends, strict=True)), WORK)
        well = set(ends) <= {"success"}
        assert run.results["done"] == ("success" if well else "failure"), (event, ends)


@pytest.mark.parametrize("event", EVENTS)
def test_a_run_that_is_cancelled_has_a_check_that_failed(event: str) -> None:
    run = Run(event, {}, WORK, cancelled=True)
    assert run.results["done"] == "failure"


@pytest.mark.parametrize("event", REQUESTS)
@pytest.mark.parametrize(("work", "plan"), [("true", "true"), ("false", "true"), ("false", "false")])
def test_a_job_without_work_is_skipped_and_the_check_succeeds(event: str, work: str, plan: str) -> None:
    """A request changes no cluster, or deletes one: that is a plan and nothing to compile."""
    run = Run(event, {}, {"has_work": work, "has_plan": plan})
    assert run.results["done"] == "success"
    assert (run.results["compile"], run.results["plan"]) == tuple(
        "success" if has == "true" else "skipped" for has in (work, plan)
    )


def test_a_run_by_hand_has_no_check_of_the_required_name() -> None:
    """GitHub takes the newest check of a name: a run by hand on the branch would replace one that failed."""
    assert JOBS["done"]["name"].startswith("${{")
    for event in EVENTS:
        assert (Run(event, {}, WORK).name == "done") == (event in REQUESTS)


def test_every_job_has_a_limit_of_time_and_the_check_needs_all_that_a_request_runs() -> None:
    for options in ((), ("--refresh", "--audit", "--unattended"), ("--server", "--oidc")):
        jobs = workflow(written(*options))["jobs"]
        assert all(0 < int(job["timeout-minutes"]) <= 180 for job in jobs.values())
    assert {job for event in REQUESTS for job in EVENTS[event]} - {"done"} <= set(JOBS["done"]["needs"])


CONDITIONS = {step["if"]: job for job, its in JOBS.items() for step in its["steps"] if "if" in step}


def test_every_step_that_may_be_skipped_is_known() -> None:
    """A plan without a result is no success: the last step ends with its code, which is empty then."""
    assert sorted((job, condition) for condition, job in CONDITIONS.items()) == [
        ("apply", "${{ !cancelled() }}"),
        ("changes", "github.event_name == 'schedule'"),
        ("plan", "always()"),
        ("plan", "github.event_name == 'merge_group'"),
        (
            "plan",
            "github.event_name == 'pull_request' && github.event.pull_request.head.repo.full_name == github.repository",
        ),
        ("plan", "steps.plan.outputs.code != ''"),
    ]
    last = JOBS["plan"]["steps"][-1]
    assert [exits(last["run"], ("CODE", code)) == 0 for code in ("0", "1", "")] == [True, False, False]
