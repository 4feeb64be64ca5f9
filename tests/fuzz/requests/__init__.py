"""Pull requests to repositories of several clusters, through the jobs of the generated pipelines, and what must hold of those that pass.

A subject is a file of JSON lines: which repository, forge and checkout it is, and an edit on each further line; `next` begins another request.
`pull_requests/` has those that were found, and are played with every run of the tests.
"""

from __future__ import annotations

import datetime
import json
import random
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.requests import oracle
from tests.fuzz.requests.edits import apply, chosen
from tests.fuzz.requests.pipelines import CHECKOUTS, LABELS, Event, Outcome, github, gitlab
from tests.fuzz.requests.repositories import DAYS, LATER, MAIN, commit_tree, git, plan, top, tree
from tests.fuzz.requests.repositories import made as repository
from tests.fuzz.subjects import Subject
from tests.support.casefile import Case

REQUEST = "request"
"""The file of a subject."""
REPOSITORIES = 40
EVENTS = {
    "pull_request": "github",
    "merge_group": "github",
    "detached": "gitlab",
    "merged_result": "gitlab",
    "merge_train": "gitlab",
}
PIPELINES = {"github": ".github/workflows/ipamc.yml", "gitlab": ".gitlab-ci.yml"}
NEXT = {"do": "next"}
"""The edits behind it are another request, after the one before was merged, or was not."""
FIRST_DAY = datetime.datetime.fromtimestamp(DAYS["first"], datetime.UTC).date().isoformat()


def made(chance: random.Random) -> Subject:
    """Return a request."""
    number = chance.randrange(REPOSITORIES)
    header = {
        "repository": number,
        "event": chance.choice(
            ("pull_request", "pull_request", "merge_group", "detached", "merged_result", "merge_train")
        ),
        "trunk": chance.choice((MAIN, MAIN, LATER)),
        "checkout": chance.choice((*CHECKOUTS[:1] * 7, *CHECKOUTS[1:])),
        "labels": [label for label in LABELS if chance.random() < 0.05],
    }
    edits = chosen(chance, plan(number))
    while chance.random() < 0.2:
        edits += [NEXT, *chosen(chance, plan(number))]
    return of([header, *edits])


def of(rows: list[Mapping[str, Any]]) -> Subject:
    """Return the request that these rows are."""
    return Subject("request", _nothing(), {REQUEST: "".join(f"{json.dumps(row)}\n" for row in rows).encode()})


@cache
def _nothing() -> Case:
    return Case("", {})


def examine(subject: Subject) -> str:
    """Play the requests of a subject, one after the other; say what became of the last one."""
    rows = [json.loads(row) for row in subject.files[REQUEST].splitlines() if row]
    header: Mapping[str, Any] = next((row for row in rows if "do" not in row), {})
    number, trunk = header.get("repository", 0), header.get("trunk", MAIN)
    bare = top() / "bare"
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(repository(number).bare, bare)
    became = "nothing"
    for edits in _requests([row for row in rows if "do" in row]):
        became = _one(header, bare, edits, trunk)
        trunk = MAIN
    return became


def _requests(rows: list[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    found: list[list[Mapping[str, Any]]] = [[]]
    for row in rows:
        if row == NEXT:
            found.append([])
        else:
            found[-1].append(row)
    return found


def _one(header: Mapping[str, Any], bare: Path, edits: list[Mapping[str, Any]], trunk: str) -> str:
    """Play a request that begins at `main` and meets `trunk`; merge it where it passes."""
    head, outcome = played(header, bare, edits, trunk)
    if outcome is None:
        return "conflict"
    base, after = tree(bare, MAIN), tree(bare, head)
    if base == after and header.get("checkout", CHECKOUTS[0]) == CHECKOUTS[0]:
        assert outcome.passed, f"it changes nothing: {outcome.said}"
    assert "Traceback" not in outcome.said, outcome.said
    if not outcome.passed:
        return "refused"
    found = list(oracle.broken(base, after, tuple(header.get("labels", ())), FIRST_DAY))
    found += oracle.changed_bytes(after, outcome.folder)
    assert not found, "all steps passed, and\n" + "\n".join(found) + f"\n{outcome.said}"
    git(bare, "update-ref", f"refs/heads/{MAIN}", head)
    return "passed"


def played(
    header: Mapping[str, Any], bare: Path, edits: list[Mapping[str, Any]], trunk: str
) -> tuple[str, Outcome | None]:
    """Return the commit that the forge merges, and how the jobs ended: None where it cannot be merged."""
    kind = header.get("event", "pull_request")
    before = tree(bare, MAIN)
    after = dict(before)
    for edit in edits:
        apply(after, edit)
    commit_tree(bare, before, after, "request")
    base, branch = (git(bare, "rev-parse", each).decode().strip() for each in (trunk, "request"))
    git(bare, "update-ref", f"refs/heads/{MAIN}", base)
    try:
        merged = git(bare, "merge-tree", "--write-tree", base, branch).decode().split("\n")[0]
    except subprocess.CalledProcessError:
        return "", None
    head = git(bare, "commit-tree", "-m", "merge", "-p", base, "-p", branch, merged).decode().strip()
    git(bare, "update-ref", "refs/pull/1/merge", head)
    without = f"clusters/{min(plan(header.get('repository', 0)).modes)}"
    labels, checkout = tuple(header.get("labels", ())), header.get("checkout", CHECKOUTS[0])
    event = Event(kind, bare, branch, head, base, labels, checkout, without)
    pipeline = before[PIPELINES[EVENTS[kind]]][1].decode()
    return head, (github if EVENTS[kind] == "github" else gitlab)(event, pipeline)


def text(path: Path) -> Subject:
    """Read a request that is kept as a file; lines that begin with `#` say what it is about."""
    rows = [row for row in path.read_text(encoding="utf-8").splitlines() if row and not row.startswith("#")]
    return Subject(path.stem, _nothing(), {REQUEST: "".join(f"{row}\n" for row in rows).encode()})
