"""Tests that groups of nodes share no prefix. Groups are evaluated once for each prefix length."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamc.assertions import assertion_rules as rules
from ipamc.assertions.assertion_rules import Shared, Wrong
from ipamc.assertions.blocks import Judgement, no_nodes, no_nodes_of
from ipamc.assertions.subjects import NodeGroup, Subjects
from ipamc.model.address_sets import by_block, nested
from ipamc.model.assertion import Apart, Assertion
from ipamc.model.cidr import Block
from ipamc.model.lock import Line
from ipamc.model.wording import shown

_Key = tuple[str, ...]
"""The label or the selectors that tests of the same groups have in common."""


class Aparts:
    """The groups of nodes in a plan, and their common prefixes."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._groups: dict[_Key, Sequence[tuple[str, Sequence[NodeGroup]]]] = {}
        self._nodes: dict[_Key, int] = {}
        self._shared: dict[tuple[_Key, int, int, bool], Sequence[Shared]] = {}

    def check(self, test: Assertion, asserts: Apart) -> Judgement:
        """Test that groups of nodes share no prefix. Raises TooMany."""
        subjects, at = self._subjects, test.at / "apart"
        key = (asserts.each,) if asserts.each else tuple(each.canonical for each in asserts.selectors)
        if key not in self._groups:
            by_value = subjects.by_value(asserts.each).items() if asserts.each else ()
            named = [(f"{asserts.each}={value}", groups) for value, groups in by_value]
            named += [(selector.canonical, subjects.of(selector)) for selector in asserts.selectors]
            self._groups[key] = named
            self._nodes[key] = sum(len(group.wants) for _, groups in self._groups[key] for group in groups)
        if asserts.each and not self._groups[key]:
            return no_nodes(test, at / "each", f"no node has the label {shown(asserts.each)}")
        for number, selector in enumerate(asserts.selectors):
            if not subjects.of(selector):
                return no_nodes_of(test, at / "nodeSelectors" / number, selector, subjects)
        if now := self._found(key, asserts, leaving=False):
            wants = [subjects.want(line.node) for pair in now for line in (pair.one, pair.other)]
            finding = rules.shares_prefix(subjects.plan, test, now, wants)
            return Judgement(self._nodes[key], "node", "nodes", (finding,))
        found = self._found(key, asserts, leaving=True) if subjects.moving else []
        movers = [line for pair in found for line in (pair.one, pair.other) if subjects.is_leaving(line)]
        wrong = [Wrong(line, subjects.want(line.node), "", at) for line in movers]
        findings = (rules.until_moved(subjects.plan, test, at, wrong),) if wrong else ()
        return Judgement(self._nodes[key], "node", "nodes", findings)

    def _found(self, key: _Key, asserts: Apart, *, leaving: bool) -> list[Shared]:
        """Return the prefixes that groups share; with `leaving`, also by blocks that nodes will leave."""
        result: list[Shared] = []
        for family, length in sorted(asserts.prefixes.items()):
            of = key, family, length, leaving
            if of not in self._shared:
                self._shared[of] = list(_shared(self._prefixes(key, family, length, leaving=leaving)))
            result += self._shared[of]
        self._subjects.count(1 + len(result))
        return result

    def _prefixes(self, key: _Key, family: int, length: int, *, leaving: bool) -> Iterator[_GroupPrefix]:
        for number, (name, groups) in enumerate(self._groups[key]):
            self._subjects.count(len(groups))
            for group in groups:
                lines = self._subjects.lines(group)
                for some in (lines.coming, lines.leaving) if leaving else (lines.coming,):
                    found = list(_of_group(some, family, length, number, name))
                    self._subjects.count(len(found))
                    yield from found


class _GroupPrefix(NamedTuple):
    """A prefix of the length that is kept apart, or a larger block, with the first block of a group there."""

    block: Block
    group: int
    name: str
    line: Line


def _of_group(
    lines: Sequence[Line], family: int, length: int, number: int, name: str
) -> Iterator[_GroupPrefix]:
    """Yield each prefix in which the lines have a block, once: O(log n) for each."""
    at = bisect.bisect_left(lines, Block(family, 0, 0), key=by_block)
    while at < len(lines) and lines[at].block.family == family:
        block = lines[at].block.widened(length)
        yield _GroupPrefix(block, number, name, lines[at])
        at = bisect.bisect_left(lines, Block(family, block.last + 1, 0), at, key=by_block)


def _shared(prefixes: Iterable[_GroupPrefix]) -> Iterator[Shared]:
    """Yield each prefix that two groups have, or that lies in a larger block of another group, once."""
    seen: set[Block] = set()
    for prefix, around in nested(prefixes, operator.itemgetter(0)):
        if prefix.block in seen:
            continue
        other = next((outer for outer in around if outer.group != prefix.group), None)
        if other is not None:
            seen.add(prefix.block)
            yield Shared(prefix.block, other.line, prefix.line, (other.name, prefix.name))
