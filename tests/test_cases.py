"""Behaviour: the cases of tests/cases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Consent
from ipamc.pipeline import compile_cluster
from ipamc.read.parts import is_looked_at
from tests.support import casefile

CASES = casefile.names()


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, update: bool) -> None:  # noqa: FBT001 - a fixture
    case = casefile.load(name)
    got = casefile.run(case)
    if update:
        casefile.save(name, got)
        return
    assert casefile.text(got) == casefile.text(case)


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_a_second_compile_changes_nothing(name: str) -> None:
    """What a compile wrote is not stale for the next one, which needs no consent to nodes, blocks or modes."""
    case = casefile.load(name)
    for each in case.each.values() or (case,):
        inputs = casefile.inputs(each)
        try:
            first = compile_cluster(inputs)
        except Refused:
            continue
        written = {path: text.encode() for path, text in first.files.items() if is_looked_at(path)}
        second = compile_cluster(
            replace(
                inputs,
                lock=first.lock.encode(),
                rendered=True,
                published=written,
                locked=True,
                consent=Consent(leave=inputs.consent.leave),
            )
        )
        assert second.lock == first.lock
        assert second.files == first.files


@pytest.mark.parametrize(
    "cut",
    [
        b"",
        b'\n{"block":"10.1.0.0/26","pool":"rack-a","node":"wor',
        b'\n{"block":"10.1.0.0/26","pool":"rack-a","node":"worker-1"}',
    ],
)
def test_a_lock_that_was_cut_off_is_refused(cut: bytes) -> None:
    """A text without its last newline fits into no case file."""
    inputs = casefile.inputs(casefile.load("lock/leave/leaver"))
    with pytest.raises(Refused) as refused:
        compile_cluster(
            replace(inputs, lock=b'{"lock":1,"cluster":"case","mode":"cluster-pool","shards":1}' + cut)
        )
    assert {each.code for each in refused.value.diagnostics} == {"IPC0403"}
