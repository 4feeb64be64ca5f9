"""Tests are made in bounded time: what would take longer is refused, with the number and the limit."""

from __future__ import annotations

import pytest

from ipamc.assertions import subjects
from ipamc.model.diagnostics import Refused
from tests.support import fleet

CIDRS = {"ipv4": {"cidrs": ["10.0.0.0/8"], "blockSize": 28}}


def refused(*documents: fleet.Document) -> list[tuple[str, str]]:
    """Compile, and return the codes and messages of the refusal."""
    with pytest.raises(Refused) as problem:
        fleet.compiled(fleet.as_json([fleet.cluster(), fleet.pool("a", **CIDRS), *documents]))
    return [(each.code, each.message) for each in problem.value.diagnostics]


def test_a_cluster_has_a_thousand_tests() -> None:
    some = fleet.assertions(*[{"nothingIn": ["192.168.0.0/16"]}] * 501)
    assert refused(some, some) == [("IPC1008", "1,002 tests, but the limit is 1,000")]


@pytest.mark.deep
def test_selectors_take_five_million_tests_of_labels() -> None:
    entries = [
        {"blocks": {"nodeSelector": f'role contains "{number}"', "ipv4": 28}} for number in range(1000)
    ]
    nodes = fleet.inventory(
        {"name": f"n-{number}", "labels": {"role": f"x{number}"}} for number in range(6000)
    )
    ((code, message),) = refused(nodes, fleet.assertions(*entries))
    assert (code, message) == (
        "IPC1008",
        "the selectors of the tests compare more than 5,000,000 labels of 6,000 nodes",
    )


@pytest.mark.deep
def test_tests_of_room_place_two_million_blocks() -> None:
    entries = [{"room": {"nodes": 100_000 - number, "pool": "a"}} for number in range(21)]
    ((code, message),) = refused(fleet.inventory([{"name": "n"}]), fleet.assertions(*entries))
    assert (code, message) == ("IPC1008", "tests of room place more than 2,000,000 blocks")


@pytest.mark.parametrize(
    "entry",
    [
        {"room": {"nodes": 1, "each": "host"}},
        {"blocks": {"nodeSelector": "all()", "ipv4": 28}},
        {"nothingIn": ["10.0.0.0/8"], "warn": True},
        {"apart": {"each": "host", "ipv4": 24}, "warn": True},
    ],
    ids=["room", "blocks", "nothingIn", "apart"],
)
def test_tests_times_nodes_are_limited(entry: fleet.Document, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 50 tests looks at 200 nodes: by a label that is another one for each, or by what is wrong there."""
    monkeypatch.setattr(subjects, "MOST_TEST_STEPS", 5_000)
    nodes = fleet.inventory(
        {"name": f"n-{number}", "labels": {"host": f"h{number}"}} for number in range(200)
    )
    groups = {"apart": {"each": "host", "ipv4": 28}}
    ((code, message),) = [
        each for each in refused(nodes, fleet.assertions(groups, *[entry] * 400)) if each[0] == "IPC1008"
    ]
    assert (code, message) == (
        "IPC1008",
        "401 tests of 200 nodes look at more than 5,000 groups, prefixes, CIDRs and blocks",
    )


def test_a_misspelt_name_has_no_hint_once_many_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MOST_TEST_NAMES", 15)
    nodes = fleet.inventory({"name": f"n-{number}"} for number in range(10))
    entries = [{"node": {"name": "nn-1", "has": ["10.0.0.0/28"]}} for _ in range(2)]
    with pytest.raises(Refused) as problem:
        fleet.compiled(
            fleet.as_json([fleet.cluster(), fleet.pool("a", **CIDRS), nodes, fleet.assertions(*entries)])
        )
    assert ["did you mean" in each.help for each in problem.value.diagnostics] == [True, False]


@pytest.mark.parametrize("asked", [{"pool": "a"}, {"like": {"rack": "r1"}}], ids=["a pool", "nodes"])
def test_a_node_of_several_blocks_counts_as_often(asked: fleet.Document) -> None:
    pool = fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/8"], "blockSize": 30}, blocksPerNode=21)
    documents = [fleet.cluster("crd"), pool, fleet.assertions({"room": {"nodes": 100_000, **asked}})]
    with pytest.raises(Refused) as problem:
        fleet.compiled(fleet.as_json([*documents, fleet.inventory([{"name": "n"}])]))
    assert [each.code for each in problem.value.diagnostics] == ["IPC1008"]


def test_a_ticket_has_256_characters() -> None:
    """A pattern of a megabyte takes no time, because it is refused."""
    found = refused(
        fleet.assertions({"renumber": {"ticket": "*a" * 200, "agreed": [{"node": "n", "ticket": "a" * 300}]}})
    )
    assert {(code, message) for code, message in found if code == "IPC0007"} == {
        ("IPC0007", "ticket has 400 characters, more than 256"),
        ("IPC0007", "ticket has 300 characters, more than 256"),
    }
