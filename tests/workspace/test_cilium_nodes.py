"""CiliumNodes that are followed after an apply, with answers of kubectl and a clock of our own: requests, and what comes of each answer.

Real servers are in `tests/e2e/test_ci_watch.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ipamc.review.live.objects import CILIUM_NODE, reported_errors
from ipamc.workspace import kubectl
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.kubectl import CiliumNodes, Kube, version_of

WHOLE = 0.6
"""Seconds that the tests follow for, and that an answer takes which lasts as long."""
FORBIDDEN = 'Error from server (Forbidden): ciliumnodes.cilium.io is forbidden: User "ci" cannot watch'


def node(name: str, error: str = "", version: str = "7") -> dict[str, Any]:
    """Return a CiliumNode of which the operator says something."""
    status = {"ipam": {"operator-status": {"error": error} if error else {}}}
    metadata = {"name": name, "resourceVersion": version}
    return {"kind": CILIUM_NODE, "metadata": metadata, "status": status}


def told(*events: tuple[str, dict[str, Any]], seconds: float = WHOLE) -> dict[str, Any]:
    """Return the answer to a watch."""
    lines = [json.dumps({"type": kind, "object": document}) + "\n" for kind, document in events]
    return {"text": "".join(lines), "seconds": seconds}


class Server:
    """Answers of kubectl by request, the last one of each kind again and again; time passes where one takes seconds, and in sleep."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = 0.0
        self.answers: dict[str, list[dict[str, Any]]] = {
            "config view": [{"text": "https://red.example.org:6443"}],
            "limit=1": [{"text": json.dumps({"metadata": {"resourceVersion": "5"}})}],
            "watch=1": [told()],
            "get ciliumnodes.cilium.io": [{"text": json.dumps({"items": [node("a", "read again")]})}],
        }

    def run(self, words: Sequence[str], _stdin: str, _limit: float) -> tuple[int, str, str]:
        """Be `kubectl._run`."""
        self.asked.append(" ".join(words))
        answers = next(self.answers[kind] for kind in self.answers if kind in self.asked[-1])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.sleep(answer.get("seconds", 0))
        complaint = answer.get("complaint", "")
        return bool(complaint), answer.get("text", ""), complaint

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def follow(self, *live: dict[str, Any], seconds: float = WHOLE) -> CiliumNodes:
        """Follow CiliumNodes that were read before."""
        kube = Kube(name="red", context="red", kubectl=("kubectl",))
        found = CiliumNodes(
            kube, {f"{CILIUM_NODE} {each['metadata']['name']}": each for each in live}, version_of(kube)
        )
        self.asked.clear()
        found.follow(seconds)
        return found

    def calls(self) -> list[str]:
        """Return what was asked while they were followed, in a word each."""
        words = {"watch=1": "watch", "limit=1": "version", "config view": "config", "-A": "list"}
        return [next(word for part, word in words.items() if part in line) for line in self.asked]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()
    monkeypatch.setattr(kubectl, "_run", found.run)
    monkeypatch.setattr(kubectl, "time", found)
    return found


def test_one_request_tells_all_that_changed(server: Server) -> None:
    server.answers["watch=1"] = [
        told(
            ("MODIFIED", node("a", "lasts", "8")),
            ("MODIFIED", node("b", "comes and", "9")),
            ("MODIFIED", node("b", "", "10")),
            ("DELETED", node("c", "gone", "11")),
            ("ADDED", node("d", "new", "12")),
        )
    ]
    found = server.follow(node("a"), node("b"), node("c", "gone"), node("e", "was there"))
    assert reported_errors(found.live.values()) == {"a": "lasts", "d": "new", "e": "was there"}
    assert server.calls() == ["watch"]
    assert "resourceVersion=5&timeoutSeconds=1" in server.asked[-1]


def test_a_second_watch_goes_on_where_the_first_one_ended(server: Server) -> None:
    server.answers["watch=1"] = [told(("MODIFIED", node("a", "short", "8"))), told()]
    found = server.follow(node("a"))
    found.follow(WHOLE)
    assert server.calls() == ["watch", "watch"]
    assert "resourceVersion=8&" in server.asked[-1]
    assert reported_errors(found.live.values()) == {"a": "short"}


GONE = {"kind": "Status", "code": 410, "message": "too old resource version: 5 (9)"}
ENDS = {
    "the version is too old": told(("ERROR", GONE), seconds=0),
    "the version is too old for the request": {"complaint": "Error from server (Expired): too old"},
    "the apiserver restarts": {"complaint": "The connection to the server was refused"},
    "it ends early": told(("MODIFIED", node("a", "stale")), seconds=0),
    "it is cut off": {"text": '{"type": "MODIFIED", "object": {"kind', "seconds": 0},
    "nothing is JSON": {"text": "<html>\n"},
    "a type is wrong": told(("MODIFIED", {"kind": CILIUM_NODE, "metadata": {"name": 7}}), seconds=0),
    "another kind comes": told(("MODIFIED", {"kind": "Secret", "metadata": {"name": "a"}}), seconds=0),
}


@pytest.mark.parametrize("how", ENDS)
def test_after_a_watch_that_ends_all_are_read_again(server: Server, how: str) -> None:
    server.answers["watch=1"] = [ENDS[how], told(("MODIFIED", node("b", "later")), seconds=8)]
    found = server.follow(node("a"), seconds=10)
    assert reported_errors(found.live.values()) == {"a": "read again", "b": "later"}
    assert server.calls() == ["watch", "config", "version", "list", "watch"]


def test_what_cannot_be_read_at_the_end_is_said(server: Server) -> None:
    for kind in ("limit=1", "watch=1", "get ciliumnodes.cilium.io"):
        server.answers[kind].append({"complaint": "The connection to the server was refused"})
        del server.answers[kind][0]
    server.answers["limit=1"].insert(0, {"text": json.dumps({"metadata": {"resourceVersion": "5"}})})
    with pytest.raises(EnvironmentFailure, match="cannot be read: The connection to the server was refused"):
        server.follow(node("a"))


def test_without_the_right_to_watch_they_are_read_once_at_the_end(server: Server) -> None:
    server.answers["watch=1"] = [{"complaint": FORBIDDEN}]
    found = server.follow(node("a"))
    assert reported_errors(found.live.values()) == {"a": "read again"}
    assert "cannot watch" in found.refused
    found.follow(WHOLE)
    assert server.calls() == ["watch", "list", "list"]


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("config view", {"text": "https://rancher.example.org/k8s/clusters/c-1"}),
        ("limit=1", {"complaint": "Error from server (NotFound): the server could not find the requested"}),
        ("limit=1", {"text": "{}"}),
    ],
)
def test_without_a_version_they_are_read_once_at_the_end(
    server: Server, kind: str, answer: dict[str, Any]
) -> None:
    server.answers[kind] = [answer]
    found = server.follow(node("a"))
    assert reported_errors(found.live.values()) == {"a": "read again"}
    assert server.calls() == ["list"]
