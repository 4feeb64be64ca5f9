"""Versions of a lock as steps: they lead to each version again, however often lines come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamc.lock.file import dumps
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, Lock, State
from ipamc.review.address_map import Versions, chosen, versions_of

BLOCKS = [Block(4, (10 << 24) + (number << 6), 26) for number in range(12)]


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    """Draw a lock of some of a few blocks, which some of a few nodes have in some state."""
    lines = []
    for block in draw(st.lists(st.sampled_from(BLOCKS), unique=True).map(sorted)):
        state = draw(st.sampled_from(State))
        since = "2026-11-21" if state is State.QUARANTINED else ""
        node = draw(st.sampled_from(["n1", "n2", "n3"]))
        lines.append(Line(block=block, pool="p", node=node, state=state, since=since))
    return Lock(cluster="lab", mode=Mode.CLUSTER_POOL, shards=1, lines=tuple(lines))


def played(versions: Versions) -> list[set[Line]]:
    """Return the lines of each version, by its steps alone."""
    found, alive = [], set[int]()
    for step in versions.steps:
        assert alive.issuperset(step.removed)
        assert alive.isdisjoint(step.added)
        alive = (alive - set(step.removed)) | set(step.added)
        found.append({versions.lines[number] for number in alive})
    return found


@given(st.lists(locks(), min_size=1, max_size=6))
def test_the_steps_lead_to_every_version(history: list[Lock]) -> None:
    *before, current = history
    versions = versions_of(current)
    for lock in before:
        versions.add(dumps(lock).encode())
    versions.add_current(current)
    expected = [set(lock.lines) for lock in before]
    if not before or set(before[-1].lines) != set(current.lines):
        expected.append(set(current.lines))
    assert played(versions) == expected
    assert tuple(versions.lines[: versions.current]) == current.lines
    assert len(set(versions.lines)) == len(versions.lines)


def test_a_version_that_is_no_lock_is_passed_over() -> None:
    current = Lock(cluster="lab", mode=Mode.CLUSTER_POOL, shards=1)
    versions = versions_of(current)
    broken = (b"<<<<<<< ours\n{}\n>>>>>>> theirs\n", b'{"lock":1}\n{"block":"x"}\n', b"{}\n\xff\n")
    empty = (b"", b"\0" * 1000, b"no lock", b"no\nlock")
    for text in (*broken, *empty):
        versions.add(text)
    versions.add_current(current)
    assert versions.passed_over == 7
    assert len(versions.steps) == 1


def test_which_versions_are_shown() -> None:
    assert chosen(5, 8) == [0, 1, 2, 3, 4]
    assert chosen(100, 8) == [0, 24, 48, 72, 96, 97, 98, 99]
    assert chosen(0, 8) == []
    assert chosen(3, 2) == [0, 2]
