"""The pipeline of GitLab: its jobs with their rules, and the child pipeline that it writes."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.requests.pipelines import Event, Jobs, Outcome
from tests.fuzz.requests.repositories import MAIN, top


def run(event: Event, text: str) -> Outcome:
    """Run the jobs of a merge request, and of the child pipeline that they write."""
    jobs = Jobs(event)
    shutil.rmtree(top() / "jobs", ignore_errors=True)
    variables = {
        "CI_MERGE_REQUEST_IID": "1",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": MAIN,
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "request",
        "CI_MERGE_REQUEST_EVENT_TYPE": event.kind,
        "CI_MERGE_REQUEST_LABELS": ",".join(event.labels),
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2",
        "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": event.base if event.kind != "detached" else "",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": event.base,
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_PROJECT_ID": "1",
        "CI_DEFAULT_BRANCH": MAIN,
        "CI_COMMIT_SHA": event.head if event.kind == "detached" else event.merged,
        "GITLAB_CI": "true",
    }
    folder = _gitlab(jobs, text, variables)
    child = folder / "ipamc-child.yml"
    if "failure" not in jobs.results.values() and child.exists():
        variables["CI_PIPELINE_SOURCE"] = "parent_pipeline"
        folder = _gitlab(jobs, child.read_text(), variables)
    passed = bool(jobs.results) and "failure" not in jobs.results.values()
    return Outcome(passed, "\n".join([str(jobs.results), *jobs.said]), folder)


@functools.cache
def _pipeline(text: str) -> Any:
    return yaml.safe_load(text)


NEVER: dict[str, Any] = {"when": "never"}


def _gitlab(jobs: Jobs, text: str, given: Mapping[str, str]) -> Path:
    pipeline = _pipeline(text)
    folder = top()
    for name, written in pipeline.items():
        if name.startswith(".") or name == "variables" or not isinstance(written, dict):
            continue
        job = _extended(pipeline, written)
        variables = {**given, **{each: str(value) for each, value in pipeline.get("variables", {}).items()}}
        variables |= {each: str(value) for each, value in job.get("variables", {}).items()}
        rule = next(
            (rule for rule in job.get("rules", [{}]) if _holds(rule.get("if", ""), variables)),
            NEVER,
        )
        if rule.get("when") in {"never", "manual"} or "trigger" in job:
            continue
        variables |= {each: str(value) for each, value in rule.get("variables", {}).items()}
        for row in _rows(job.get("parallel", {}).get("matrix", [{}])):
            lines = [*_lines(job.get("before_script", [])), *_lines(job["script"])]
            if "image" in job:
                depth = 0 if variables.get("GIT_DEPTH") == "0" else 1
                folder = jobs.folders[len(jobs.folders)] = jobs.fresh(variables["CI_COMMIT_SHA"], depth=depth)
            expanded = {each: _expanded(value, variables) for each, value in {**variables, **row}.items()}
            passed = jobs.bash(name, "\n".join(lines), folder, expanded)
            if not passed and not job.get("allow_failure"):
                jobs.results[name] = "failure"
            jobs.results.setdefault(name, "success")
    return folder


def _lines(script: list[str | list[str]]) -> Iterator[str]:
    """Yield the lines of a script: a reference brings a list of its own."""
    for line in script:
        yield from [line] if isinstance(line, str) else line


def _rows(matrix: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.items()} for row in matrix]


def _extended(pipeline: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    if "extends" not in job:
        return dict(job)
    above = _extended(pipeline, pipeline[job["extends"]])
    both = {
        name
        for name in above.keys() & job.keys()
        if isinstance(above[name], dict) and isinstance(job[name], dict)
    }
    return {**above, **job, **{name: {**above[name], **job[name]} for name in both}}


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: variables.get(found[1], ""), text)


def _holds(condition: str, variables: Mapping[str, str]) -> bool:
    """Tell whether the condition of a rule holds."""

    def term(text: str) -> bool:
        for sign in ("==", "!="):
            left, found, right = (side.strip() for side in text.partition(sign))
            if found:
                return (value(left) == value(right)) is (sign == "==")
        return bool(value(text.strip()))

    def value(text: str) -> str:
        return variables.get(text[1:], "") if text.startswith("$") else text.strip("\"'")

    with suppress(ValueError):
        return (
            all(any(term(part) for part in each.split("||")) for each in condition.split("&&"))
            or not condition
        )
    return False
