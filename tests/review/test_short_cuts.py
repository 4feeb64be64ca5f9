"""What a plan does not look at makes no difference: each short cut against the long way."""

from __future__ import annotations

import sys
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.lock.file import dumps
from ipamc.model.lock import Line
from ipamc.pipeline import Inputs
from ipamc.read.rendered import Rendered
from ipamc.review.diff import read_base
from ipamc.review.diff.lock_lines import compare_lines, misplaced
from tests.review.test_diff import TODAY, locks, plan_with
from tests.support import builders
from tests.support.examples import everything

MODULE = sys.modules[misplaced.__module__]


def copied(line: Line) -> Line:
    return replace(line)


@given(locks(), locks())
def test_a_line_may_be_the_same_object_in_both_locks(
    before: tuple[Line, ...], after: tuple[Line, ...]
) -> None:
    there = {line.block: line for line in after}
    shared = tuple(there[line.block] if there.get(line.block) == line else line for line in before)
    plan = plan_with(after)
    assert compare_lines(shared, plan, {}, TODAY) == compare_lines(
        tuple(map(copied, before)), plan, {}, TODAY
    )


@given(locks(), st.sampled_from(["", "10.0.0.4/30"]), st.sampled_from([(4,), (6,)]))
def test_a_block_at_home_is_not_misplaced(
    lines: tuple[Line, ...], excluded: str, families: tuple[int, ...]
) -> None:
    plan = plan_with(lines)
    cidrs = builders.ranges(excluded) if excluded else ()
    plan = replace(plan, scheme=replace(plan.cluster, excluded=cidrs, families=families))
    with mock.patch.object(MODULE, "_is_at_home", return_value=False):
        long_way = misplaced(plan)
    assert misplaced(plan) == long_way


@pytest.mark.deep
def test_no_block_of_a_cluster_or_case_is_passed_over() -> None:
    plans = [each.plan for each in everything().values()]
    with mock.patch.object(MODULE, "_is_at_home", return_value=False):
        long_way = [misplaced(plan) for plan in plans]
    assert [misplaced(plan) for plan in plans] == long_way
    assert any(long_way)


def test_the_lock_that_was_compiled_is_the_base_if_its_file_is_the_same() -> None:
    for each in everything().values():
        text = dumps(each.plan.lock).encode()
        inputs = Inputs(name=each.plan.scheme.name, folder="f", sources={}, lock_path="base", lock=text)
        alone = read_base(inputs, {}, each.plan.scheme).lock
        written = replace(each.plan.lock, written=each.plan.lock.lines)
        shared = read_base(inputs, {}, each.plan.scheme, written).lock
        assert (shared.lines, shared.written, shared.shards, shared.mode, shared.path, shared.cluster) == (
            *(alone.lines, alone.written, alone.shards, alone.mode, alone.path, alone.cluster),
        )


NAMES = st.sampled_from(["a", "b", "c", '"1"'])
DOCUMENTS = st.lists(
    st.builds(
        "apiVersion: v1\nkind: {}\nmetadata:\n  name: {}\nspec: {}".format,
        st.sampled_from(["Node", "CiliumNode"]),
        NAMES,
        st.sampled_from("xy"),
    )
    | st.just("no object"),
    max_size=4,
)
PATHS = ("nodes/000/nodes.yaml", "ciliumnodes/000/ciliumnodes.yaml", "kustomization.yaml")
TREES = st.dictionaries(
    st.sampled_from(PATHS), DOCUMENTS.map(lambda some: ("\n---\n".join(some) + "\n").encode())
)


@given(TREES, TREES)
def test_an_object_is_lost_that_is_in_no_file_any_more(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    was, now = Rendered(before).found(PATHS), Rendered(after).found(PATHS)
    lost = Rendered(before).lost(Rendered(after), PATHS)
    assert lost.keys() == was.keys() - now.keys()
    for identity, found in lost.items():
        assert found.identity == identity
        assert found.text in {
            each.strip("\n") for text in before.values() for each in text.decode().split("\n---\n")
        }
