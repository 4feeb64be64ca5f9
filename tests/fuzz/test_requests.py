"""Pull requests that were found, played through the jobs of the pipelines; and the oracle, which sees what it is there to see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import requests
from tests.fuzz.requests import github, oracle, repositories
from tests.fuzz.requests.edits import COMPILE, apply

FOUND = sorted(Path(__file__).with_name("pull_requests").glob("*.jsonl"))


@pytest.mark.deep
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_request_that_was_found(path: Path) -> None:
    """The first line says what must become of it."""
    subject = requests.text(path)
    header = json.loads(subject.files[requests.REQUEST].splitlines()[0])
    assert requests.examine(subject) == header["becomes"]


LOCK, NODES = "clusters/blue/ipam.lock", "clusters/blue/nodes.yaml"
CLUSTER = "clusters/blue/cluster.yaml"
OBJECTS = "clusters/blue/rendered/ciliumnodes/000/ciliumnodes.yaml"
REPOSITORY = 7
"""Three clusters in cluster-pool mode. Of blue n1 is in quarantine and n2 holds a block; red's n1 is to be renumbered."""
LINES: dict[str, tuple[list[Mapping[str, Any]], str]] = {
    "changed hands": (
        [{"do": "replace", "path": LOCK, "old": '"n2"', "new": '"n9"'}],
        "blue: 10.2.0.32/27 of n2, held: is n9's now",
    ),
    "vanished": (
        [{"do": "rows", "path": LOCK, "how": "delete", "at": 2}],
        "blue: 10.2.0.32/27 of n2, held: the line vanished",
    ),
    "ended early": (
        [
            {"do": "replace", "path": CLUSTER, "old": "spec:\n", "new": "spec:\n  quarantineDays: never\n"},
            {"do": "line", "path": LOCK, "at": 0, "fields": {"node": "n2", "quarantined": None}},
        ],
        "blue: 10.2.0.0/27 of n1, quarantined since 2026-11-06: is n2's now",
    ),
    "of another day": (
        [{"do": "line", "path": LOCK, "at": 1, "fields": {"quarantined": "2020-01-01"}}],
        "blue: 10.2.0.32/27 of n2, held: in quarantine since 2020-01-01",
    ),
    "two nodes": (
        [{"do": "line", "path": LOCK, "at": 1, "fields": {"block": "10.2.0.0/26"}}],
        "blue: 10.2.0.0/26 of n2 and 10.2.0.0/27 of n1 overlap",
    ),
    "rendered for another": (
        [{"do": "replace", "path": OBJECTS, "old": "name: n2", "new": "name: n3"}],
        "blue: rendered/ciliumnodes/000/ciliumnodes.yaml gives 10.2.0.32/27 to n3, and the lock does not",
    ),
    "rendered nowhere": ([{"do": "remove", "path": OBJECTS}], "blue: 10.2.0.32/27 of n2 is rendered nowhere"),
    "foreign": (
        [
            {
                "do": "write",
                "path": "clusters/blue/rendered/x.yaml",
                "text": "kind: Secret\nmetadata: {name: x}\n",
            }
        ],
        "blue: rendered/x.yaml has a Secret",
    ),
    "gone": ([{"do": "remove", "path": "clusters/blue"}], "blue: the cluster is gone, or its lock"),
    "cut off": (
        [{"do": "replace", "path": LOCK, "old": '{"block"', "new": '{"bloc'}],
        "blue: the lock cannot be read",
    ),
    "a field twice": (
        [{"do": "replace", "path": LOCK, "old": '"node":"n2"', "new": '"node":"n2","node":"n2"'}],
        "blue: the lock cannot be read",
    ),
    "link": ([{"do": "link", "path": NODES, "to": "x"}], f"{NODES}: a link below clusters/"),
    "submodule": (
        [{"do": "submodule", "path": "clusters/blue/x"}],
        "clusters/blue/x: a submodule below clusters/",
    ),
}


@pytest.mark.parametrize(("edits", "said"), LINES.values(), ids=LINES)
def test_the_oracle_sees_what_no_request_may_do(edits: list[Mapping[str, Any]], said: str) -> None:
    base = repositories.made(REPOSITORY).trees[repositories.MAIN]
    head = dict(base)
    for edit in edits:
        apply(head, edit)
    assert said in set(oracle.broken(base, head, (), requests.FIRST_DAY))


def test_the_oracle_has_nothing_against_the_histories_themselves() -> None:
    made = repositories.made(REPOSITORY)
    base, head = made.trees[repositories.MAIN], made.trees[repositories.LATER]
    assert base != head
    assert not list(oracle.broken(base, head, (), requests.FIRST_DAY))


@pytest.mark.deep
@pytest.mark.parametrize("event", requests.EVENTS)
def test_an_honest_request_passes_and_one_that_is_not_compiled_does_not(event: str) -> None:
    """The jobs do run, on both forges: a fuzz of jobs that refuse everything would find nothing."""
    header = {"repository": REPOSITORY, "event": event}
    joins = {"do": "append", "path": NODES, "text": "- {name: n9, uid: blue-n9}\n"}
    assert requests.examine(requests.of([header, joins, COMPILE])) == "passed"
    stale = requests.of([header, joins])
    assert requests.examine(stale) == "refused"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("github.event_name == 'push' && 'a' || ''", ""),
        ("github.event_name != 'push' && 'it''s' || ''", "it's"),
        ("!cancelled() && needs.x.result == 'success'", True),
        ("contains(labels.*.name, 'b')", True),
        ("join(needs.*.result, ' ')", "success failure"),
        ("join(labels.*.name)", "a,b"),
        ("github.x || join(github.event.x.labels.*.name)", ""),
        ("github.nothing.at.all", ""),
        ("fromJSON(needs.x.outputs.list)", [1]),
    ],
)
def test_expressions_of_github(text: str, value: object) -> None:
    given = {
        "github": {"event_name": "pull_request"},
        "labels": [{"name": "a"}, {"name": "b"}],
        "needs": {"x": {"result": "success", "outputs": {"list": "[1]"}}, "y": {"result": "failure"}},
    }
    assert github.evaluated(text, given) == value
