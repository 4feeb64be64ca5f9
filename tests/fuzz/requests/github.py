"""The workflow of GitHub: its jobs, their conditions and expressions."""

from __future__ import annotations

import functools
import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.requests.pipelines import Event, Jobs, Outcome
from tests.fuzz.requests.repositories import MAIN, top


def run(event: Event, text: str) -> Outcome:
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
    given["steps"], given["env"] = {}, {}
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
        if "if" in step and not evaluated(step["if"], given):
            continue
        script = step["run"]
        files = {each: temp / each for each in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        for path in files.values():
            path.write_bytes(b"")
        variables = {
            **{each: str(filled(value, given)) for each, value in {**env, **step.get("env", {})}.items()},
            **{each: str(path) for each, path in files.items()},
            "RUNNER_TEMP": str(temp),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "we/clusters",
            "GITHUB_EVENT_NAME": jobs.event.kind,
            "CONSENT": ",".join(jobs.event.labels),
            **given["env"],
        }
        passed = jobs.bash(name, script, folder, variables)
        given["env"] |= _outputs(files["GITHUB_ENV"].read_text())
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
        "call_cancelled": lambda: given.get("cancelled", False),
        "call_failure": lambda: "failure" in given.get("jobs", {}).values(),
        "call_success": lambda: "failure" not in given.get("jobs", {}).values(),
        "call_contains": lambda whole, part: part in whole,
        "call_join": lambda values, between=",": between.join(map(str, values)),
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
