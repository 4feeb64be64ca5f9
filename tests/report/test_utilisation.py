"""The words for states and numbers that several answers have, and the numbers of `ipamc show` for programs."""

from __future__ import annotations

import json

import jsonschema
import pytest

from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line, State
from ipamc.report.lock_lines import state
from ipamc.report.utilisation import number, record
from ipamc.review.shown_pools import Choice
from ipamc.workspace import disk
from tests.support.shown import lab

SCHEMA = json.loads(disk.assets("schemas")["show.output.json"])


def test_records() -> None:
    v4, v6 = record(lab())["pools"]
    assert v4 == {
        "pool": "rack-a",
        "family": "IPv4",
        "blockSize": 27,
        "addresses": {"total": 384, "held": 64, "quarantined": 32, "released": 0, "reserved": 0, "free": 288},
        "blocks": {"total": 12, "held": 2, "free": 9},
        "room": 9,
        "comesFree": {"day": "2026-11-28", "blocks": 1},
        "ranges": [
            {
                "cidr": "10.0.0.0/24",
                "addresses": {
                    "total": 256,
                    "held": 32,
                    "quarantined": 32,
                    "released": 0,
                    "reserved": 0,
                    "free": 192,
                },
                "blocks": {"total": 8, "held": 1, "free": 6},
            },
            {
                "cidr": "10.0.2.0/25",
                "addresses": {
                    "total": 128,
                    "held": 32,
                    "quarantined": 0,
                    "released": 0,
                    "reserved": 0,
                    "free": 96,
                },
                "blocks": {"total": 4, "held": 1, "free": 3},
            },
        ],
        "reserved": [],
    }
    assert v6["addresses"]["total"] == 1 << 80
    assert (v6["room"], v6["comesFree"]) == (9, None)


def test_records_of_lines() -> None:
    v4, _ = record(lab(lines=True))["pools"]
    assert [each["lines"] for each in v4["ranges"]] == [
        [
            {"block": "10.0.0.0/27", "node": "n1", "state": "held"},
            {"block": "10.0.0.32/27", "node": "n2", "state": "quarantined", "since": "2026-11-21"},
        ],
        [{"block": "10.0.2.0/27", "node": "n1", "state": "pending"}],
    ]


def test_lines_of_a_cluster_without_pools_are_listed() -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    assert record(lab(stray, pools=(), of=(), lines=True))["outside"][0]["node"] == "n9"


def test_lines_outside_every_pool_are_listed() -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    assert "outside" not in record(lab(stray))
    assert record(lab(stray, lines=True))["outside"] == [
        {"block": "172.16.0.0/27", "node": "n9", "state": "held"}
    ]


@pytest.mark.parametrize("choice", [Choice(), Choice(nodes=("n2",)), Choice(pools=("x",))])
def test_records_keep_their_schema(choice: Choice) -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    for lines in (False, True):
        body = {"version": 1, "clusters": [record(lab(stray, choice=choice, lines=lines))]}
        jsonschema.Draft202012Validator(SCHEMA).validate(body)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (Line(block=parse_block("10.0.0.0/27"), node="n"), "held"),
        (Line(block=parse_block("10.0.0.0/27"), node="n", state=State.PENDING), "pending"),
        (Line(block=parse_block("10.0.0.0/27"), node="n", state=State.RELEASED), "released"),
        (
            Line(
                block=parse_block("10.0.0.0/27"),
                node="n",
                state=State.QUARANTINED,
                since="2026-11-21",
                moved=True,
            ),
            "quarantined 2026-11-21, moved",
        ),
    ],
)
def test_states(line: Line, word: str) -> None:
    assert state(line) == word


def test_numbers() -> None:
    assert [number(each) for each in (0, 65536, 9_999_999, 10_000_000, 1 << 64)] == [
        "0",
        "65536",
        "9999999",
        "1e+07",
        "1.8447e+19",
    ]
