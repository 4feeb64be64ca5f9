"""Random pull requests against the oracle of changes.py: a few with every run of the tests, as many as FUZZ_CHANGES or FUZZ_SECONDS say."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta

import pytest

from tests.fuzz.changes import DAY, KINDS, TODAY, Request, Side, broken, examine, made, request
from tests.fuzz.run import Kind, fuzz, numbered
from tests.support import depth

SECONDS, SEED = float(os.environ.get("FUZZ_SECONDS", "0")), int(os.environ.get("FUZZ_SEED", "1"))
NUMBER, AGAIN = int(os.environ.get("FUZZ_CHANGES", "0")), os.environ.get("FUZZ_AGAIN", "")
CHANGES = Kind("changes", made, examine)


@pytest.mark.skipif(bool(AGAIN), reason="another was asked for")
def test_no_request_moves_an_address_without_a_label() -> None:
    tally = fuzz(CHANGES, SEED, number=NUMBER or depth.examples(600), seconds=SECONDS)
    print(f"changes, FUZZ_SEED={SEED}: {tally.inputs:,} inputs: {dict(tally.became.most_common())}")  # noqa: T201 - what a long run is watched for
    assert not tally.failures, "\n".join(map(str, tally.failures.values()))


@pytest.mark.skipif(not AGAIN.startswith("changes/"), reason="FUZZ_AGAIN names no request")
def test_one_request_again() -> None:
    subject = numbered(CHANGES, AGAIN.removeprefix("changes/"))
    print(subject.text(AGAIN))  # noqa: T201 - what was asked for
    assert examine(subject)


def _renamed(head: Request) -> None:
    head.nodes["evil"] = head.nodes.pop("n0")
    head.rows[0]["node"] = "evil"


def _at_once(head: Request) -> None:
    head.nodes["evil"] = head.nodes.pop("n0")
    head.spec["quarantineDays"] = 0


def _by_address(head: Request) -> None:
    head.pools["default"]["ipv4"]["follows"] = "172.30.0.0/30"
    for name, address in (("n0", 1), ("n1", 0)):
        head.nodes[name]["internalIPs"] = [f"172.30.0.{address}"]
    head.rows[0]["node"], head.rows[1]["node"] = "n1", "n0"


def _newcomer(head: Request) -> None:
    head.pools["default"]["ipv4"]["follows"] = "172.30.0.0/30"
    head.join("evil", "172.30.0.3")


def _of_another_day(head: Request) -> None:
    head.pools["default"]["ipv4"]["cidrs"].append("10.1.2.0/24")
    head.rows[0] |= {"quarantined": (DAY - timedelta(days=6)).isoformat(), "moved": True}


def _each_others(head: Request) -> None:
    head.show("n0", head.rows[1:2])
    head.show("n1", head.rows[:1])


ATTACKS: tuple[tuple[str, Callable[[Request], None], str], ...] = (
    ("bystander", _renamed, "taken"),
    ("bystander", _at_once, "taken"),
    ("bystander", _by_address, "taken"),
    ("bystander", _newcomer, "ended early"),
    ("bystander", _of_another_day, "taken"),
    ("pool", _each_others, "taken"),
)


@pytest.mark.parametrize(
    ("kind", "attack", "breaks"), ATTACKS, ids=[each[1].__name__[1:] for each in ATTACKS]
)
def test_the_oracle_sees_the_attacks_that_began_it_and_the_checks_refuse_them(
    kind: str, attack: Callable[[Request], None], breaks: str
) -> None:
    base = Request({}, {"default": {"ipv4": {"cidrs": ["10.1.0.0/24"], "blockSize": 26}}}, {})
    base.spec = {"cilium": {"version": "1.18", "managedBy": "none"}, "ipam": dict(KINDS[kind])}
    for at in range(4):
        base.join(f"n{at}", f"172.30.0.{at}")
    assert base.compile(TODAY)
    if attack is _newcomer:
        del base.nodes["n3"]  # its block waits since today
        assert base.compile(TODAY)
    head = deepcopy(base)
    attack(head)
    subject = request(base, head, committed=(DAY - timedelta(days=30)).isoformat())
    assert head.compile(TODAY)
    sides = [Side(each.files(), each.lock.decode()) for each in (base, head)]
    assert breaks in broken(*sides)
    assert examine(subject) == "refused by plan"
