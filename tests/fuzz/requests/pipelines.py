"""The jobs of a pull request, run as the generated pipeline has them: its file is read anew, and each step is a script for bash.

Stand-ins: the checkout of a forge's runner, which jobs share where they ask for the same, the step that installs ipamc, and `ipamc ci
comment`, which wants a forge.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.requests.repositories import MAIN, environment, git, top
from tests.support import forking

LABELS = ("ipamc/delete-cluster", "ipamc/release")
CHECKOUTS = ("as written", "shallow", "sparse", "worktree")


@dataclass(frozen=True)
class Event:
    """What happens on a forge."""

    kind: str
    """`pull_request` or `merge_group` of GitHub; `detached`, `merged_result` or `merge_train` of GitLab."""
    bare: Path
    head: str
    """The commit of the branch."""
    merged: str
    """The same merged into the trunk."""
    base: str
    """The trunk's commit."""
    labels: tuple[str, ...] = ()
    checkout: str = CHECKOUTS[0]
    without: str = ""
    """The folder that a sparse checkout leaves out."""


@dataclass
class Outcome:
    """How it ended."""

    passed: bool
    said: str
    """By the job that failed."""
    folder: Path
    """The last checkout."""


@dataclass
class Jobs:
    """The results of jobs, and what their steps left."""

    event: Event
    results: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    folder: Path = field(default_factory=top)
    """The last checkout."""
    folders: dict[int, Path] = field(default_factory=dict)
    """By the depth that was asked for."""

    def fresh(self, revision: str, *, depth: int) -> Path:
        """Check a commit out, as a runner does: fetch, then checkout. Depth 0: the whole history and all branches."""
        event = self.event
        folder = top() / "jobs" / str(len(self.folders))
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--template=")
        git(folder, "remote", "add", "origin", f"file://{event.bare}")
        depth = 1 if event.checkout == "shallow" else depth
        branches = () if depth else ("+refs/heads/*:refs/remotes/origin/*",)
        git(
            folder,
            "fetch",
            "--quiet",
            "--no-tags",
            *(("--depth=1",) if depth else ()),
            "origin",
            *branches,
            revision,
        )
        if event.checkout == "worktree":
            beside = folder.with_name(f"{folder.name}-tree")
            git(folder, "worktree", "add", "--quiet", "--detach", str(beside), revision)
            self.folder = beside
            return beside
        if event.checkout == "sparse":
            git(folder, "sparse-checkout", "set", "--no-cone", "/*", f"!/{event.without}/")
        git(folder, "checkout", "--quiet", "--force", "--detach", revision)
        self.folder = folder
        return folder

    def bash(self, job: str, script: str, folder: Path, variables: Mapping[str, str]) -> bool:
        """Run a step; tell whether it passed."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=folder,
            env={**_environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        self.said.append(f"{job}: {(done.stdout[-1500:] + done.stderr[-2500:]).decode(errors='replace')}")
        return done.returncode == 0


def _environment() -> dict[str, str]:
    """Return the runner's own environment: the programs of this checkout first."""
    programs = top() / "programs"
    if not programs.exists():
        programs.mkdir()
        real = forking.serve() / "ipamc"
        _program(programs / "ipamc", f'[ "$1 $2" = "ci comment" ] || exec {real} "$@"\n')
    found = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
    kept = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(top().parent)}
    return {**found, **kept, "PATH": f"{programs}:{found['PATH']}"}


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


# GitHub.


def github(event: Event, text: str) -> Outcome:
    """Run the jobs of a workflow for an event."""
    jobs = Jobs(event)
    shutil.rmtree(top() / "jobs", ignore_errors=True)
    workflow = _workflow(text)
    assert event.kind in workflow["on"], f"no job for {event.kind}"
    for name, job in workflow["jobs"].items():
        given = _github(event, jobs)
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        condition = job.get("if", "")
        given["needs"] = {
            need: {"result": jobs.results[need], "outputs": jobs.outputs.get(need, {})} for need in needs
        }
        fine = all(jobs.results[need] == "success" for need in needs)
        asks = re.search(r"\b(always|cancelled|failure|success)\(", condition)
        if not (fine or asks) or (condition and not evaluated(condition, given)):
            jobs.results[name] = "skipped"
            continue
        rows: list[Any] = [{}]
        if matrix := job.get("strategy", {}).get("matrix"):
            rows = filled(matrix, given)["include"]
        passed = True
        for row in rows:
            _github_job(jobs, name, job, workflow.get("env", {}), {**given, "matrix": row})
            passed = passed and jobs.results[name] == "success"
        jobs.results[name] = "success" if passed else "failure"
    assert "compile" in jobs.results
    return Outcome(jobs.results["done"] == "success", "\n".join([str(jobs.results), *jobs.said]), jobs.folder)


@functools.cache
def _workflow(text: str) -> Any:
    return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - everything is text


def _github(event: Event, jobs: Jobs) -> dict[str, Any]:
    facts: dict[str, Any] = {"number": "1", "labels": [{"name": name} for name in event.labels]}
    facts["head"] = {"repo": {"full_name": "somebody/fork"}}
    return {
        "github": {
            "event_name": event.kind,
            "ref": "refs/pull/1/merge",
            "ref_name": "1/merge",
            "repository": "we/clusters",
            "event": {
                "pull_request": facts if event.kind == "pull_request" else None,
                "merge_group": {"base_sha": event.base, "head_sha": event.merged},
                "repository": {"default_branch": MAIN},
            },
        },
        "steps": {},
        "runner": {"temp": str(top() / "jobs" / "temp")},
        "jobs": jobs.results,
    }


def _github_job(jobs: Jobs, name: str, job: Any, env: Mapping[str, str], given: dict[str, Any]) -> None:
    """Run the steps of a job, to the first that fails."""
    given["steps"] = {}
    temp = Path(given["runner"]["temp"])
    temp.mkdir(parents=True, exist_ok=True)
    folder = temp
    jobs.results[name] = "success"
    for step in job["steps"]:
        if "uses" in step:
            if step["uses"].startswith("actions/checkout@"):
                depth = int(step["with"].get("fetch-depth", "1"))
                if depth not in jobs.folders:
                    jobs.folders[depth] = jobs.fresh(jobs.event.merged, depth=depth)
                folder = jobs.folders[depth]
            continue
        if step["run"].startswith("pip install ") or ("if" in step and not evaluated(step["if"], given)):
            continue
        files = {each: temp / each for each in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_bytes(b"")
        variables = {
            **{each: str(filled(value, given)) for each, value in {**env, **step.get("env", {})}.items()},
            **{each: str(path) for each, path in files.items()},
            "RUNNER_TEMP": str(temp),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "we/clusters",
            "GITHUB_EVENT_NAME": jobs.event.kind,
        }
        passed = jobs.bash(name, step["run"], folder, variables)
        if "id" in step:
            given["steps"][step["id"]] = {"outputs": _outputs(files["GITHUB_OUTPUT"].read_text())}
        if not passed:
            jobs.results[name] = "failure"
            break
    jobs.outputs[name] = {each: str(filled(value, given)) for each, value in job.get("outputs", {}).items()}


def _outputs(text: str) -> dict[str, str]:
    found, rows = {}, iter(text.splitlines())
    for row in rows:
        name, mark, end = row.partition("<<")
        if mark and "=" not in name:
            found[name] = "\n".join(itertools.takewhile(end.__ne__, rows))
        else:
            name, _, value = row.partition("=")
            found[name] = value
    return found


def filled(text: str, given: Mapping[str, Any]) -> Any:
    """Fill in the expressions of a text; a text that is one expression is its value."""
    if found := re.fullmatch(r"\$\{\{((?:(?!\}\}).)*)\}\}", text.strip(), re.DOTALL):
        return evaluated(found[1], given)
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(evaluated(found[1], given)), text)


_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[A-Za-z_][\w.*-]*|&&|\|\||==|!=|!|\(|\)|,|\d+)")
_WORDS = {
    "&&": " and ",
    "||": " or ",
    "!": " not ",
    "==": "==",
    "!=": "!=",
    "(": "(",
    ")": ")",
    ",": ",",
    "true": "True",
    "false": "False",
}


def evaluated(text: str, given: Mapping[str, Any]) -> Any:
    """Give the value of an expression of GitHub. `&&` and `||` give an operand, as Python's do; what is not there is an empty text."""
    text = text.strip().removeprefix("${{").removesuffix("}}").strip()
    said, at = "", 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token, f"not an expression: {text[at:]}"
        at, word = token.end(), token[1]
        if word in _WORDS:
            said += _WORDS[word]
        elif word[0] == "'":
            said += repr(word[1:-1].replace("''", "'"))
        elif text[at : at + 1] == "(":
            said += f"call_{word}"
        else:
            said += f"value({word!r})"
    functions: dict[str, Callable[..., Any]] = {
        "value": lambda name: _value(name.split("."), given),
        "call_always": lambda: True,
        "call_cancelled": lambda: False,
        "call_failure": lambda: "failure" in given.get("jobs", {}).values(),
        "call_success": lambda: "failure" not in given.get("jobs", {}).values(),
        "call_contains": lambda whole, part: part in whole,
        "call_join": lambda values, between: between.join(map(str, values)),
        "call_fromJSON": json.loads,
        "call_toJSON": json.dumps,
        "call_format": lambda pattern, *values: re.sub(
            r"\{(\d)\}", lambda at: str(values[int(at[1])]), pattern
        ),
    }
    return eval(said, {"__builtins__": {}}, functions)  # noqa: S307 - a pipeline of ours, cut into tokens


def _value(names: list[str], found: Any) -> Any:
    for at, name in enumerate(names):
        if name == "*":
            values = found.values() if isinstance(found, dict) else found or []
            return [_value(names[at + 1 :], each) for each in values]
        found = found.get(name) if isinstance(found, Mapping) else None
    return "" if found is None else found


# GitLab.


def gitlab(event: Event, text: str) -> Outcome:
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
