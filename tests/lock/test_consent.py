"""Consent as it is typed: what NODE, CIDR and pool/NAME mean."""

from __future__ import annotations

import pytest

from ipamc.lock.consent import parse_consent
from ipamc.model.cidr import parse_block
from ipamc.model.lock import Line, Scope

LINE = Line(block=parse_block("10.1.0.64/26"), pool="rack-a", node="worker-1")


@pytest.mark.parametrize(
    ("text", "scope", "matches"),
    [
        ("worker-1", Scope(text="worker-1", node="worker-1"), True),
        ("worker-2", Scope(text="worker-2", node="worker-2"), False),
        ("10.1.0.0/24", Scope(text="10.1.0.0/24", cidr=parse_block("10.1.0.0/24")), True),
        ("10.1.0.64/28", Scope(text="10.1.0.64/28", cidr=parse_block("10.1.0.64/28")), True),
        ("10.1.0.0/26", Scope(text="10.1.0.0/26", cidr=parse_block("10.1.0.0/26")), False),
        ("10.1.0.1/24", Scope(text="10.1.0.1/24", node="10.1.0.1/24"), False),
        ("pool/rack-a", Scope(text="pool/rack-a", pool="rack-a"), True),
        ("pool/rack-b", Scope(text="pool/rack-b", pool="rack-b"), False),
    ],
)
def test_a_renumber_is_about_a_node_a_cidr_or_a_pool(text: str, scope: Scope, *, matches: bool) -> None:
    assert parse_consent(renumber=[text]).renumber == (scope,)
    assert scope.matches(LINE) is matches


def test_a_release_is_not_about_a_pool() -> None:
    (scope,) = parse_consent(release=["pool/rack-a"]).release
    assert not scope.matches(LINE)


def test_each_scope_counts_once_in_order() -> None:
    consent = parse_consent(renumber=["worker-2", "worker-1", "worker-2"], release=["b", "a"])
    assert [scope.text for scope in consent.renumber] == ["worker-1", "worker-2"]
    assert [scope.text for scope in consent.release] == ["a", "b"]
