"""The nodes that tests are about, and their lines, in one walk over all nodes for all tests."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from ipamc.model.address_sets import by_block
from ipamc.model.assertion import Apart, Assertion, BlocksOf, Room
from ipamc.model.cidr import Block
from ipamc.model.limits import MOST_TEST_LABELS, MOST_TEST_NAMES, MOST_TEST_STEPS
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan, Want
from ipamc.model.selector.selector import Selector, SelectorIndex
from ipamc.model.wording import nearest_name


class TooMany(Exception):  # noqa: N818 - a limit, not a failure of ipamc
    """The tests cannot be run in bounded time; the first argument says what there is too much of."""


class NodeGroup(Struct, kw_only=True, eq=False):
    """Nodes that the same selectors select, with the same values of the labels of `each`."""

    values: Mapping[str, str]
    wants: list[Want]
    """By node name."""


class Lines(Struct, frozen=True, kw_only=True):
    """The blocks of a group, by address."""

    coming: Sequence[Line]
    """The lines of its nodes once every renumber is complete: held and pending ones."""
    leaving: Sequence[Line]
    """Held lines that pending ones will replace."""
    sizes: frozenset[tuple[int, int]]
    """(family, prefix length) of all of them."""


class Subjects:
    """Groups of nodes, for look-up by selector and label."""

    def __init__(self, plan: Plan) -> None:
        """Group the nodes of a plan. O(nodes), if a test has a selector. Raises TooMany."""
        self.plan = plan
        self._one_block = plan.scheme.mode.one_block
        self._pending: dict[str, list[Line]] = {}
        for line in plan.lock.lines:
            if line.state is State.PENDING:
                self._pending.setdefault(line.node, []).append(line)
        selectors = {id(selector): selector for test in plan.scheme.tests for selector in _selectors(test)}
        self._by_selector: dict[int, list[NodeGroup]] = {number: [] for number in selectors}
        self._lines: dict[int, Lines] = {}
        self._kinds: dict[int, Sequence[Want]] = {}
        self._wants: dict[str, Want] = {}
        self._steps = self._names = 0
        kinds = [test.asserts for test in plan.scheme.tests]
        labels = frozenset(some.each for some in kinds if isinstance(some, Room | Apart) and some.each)
        self._groups = self._grouped(list(selectors.values()), labels) if selectors or labels else []

    def _grouped(self, selectors: Sequence[Selector], labels: frozenset[str]) -> list[NodeGroup]:
        index = SelectorIndex(selectors)
        keys = labels.union(*(selector.keys for selector in selectors))
        named = frozenset().union(*(selector.names for selector in selectors))
        projected: dict[object, NodeGroup] = {}
        groups: dict[object, NodeGroup] = {}
        pairs = 0
        for want in self.plan.wants:
            node = want.node
            projection = (
                tuple([item for item in node.labels.items() if item[0] in keys]),
                node.name if node.name in named else "",
            )
            group = projected.get(projection)
            if group is None:
                numbers = tuple(index.matching(node.labels, node.name))
                values = {label: value for label, value in node.labels.items() if label in labels}
                key = numbers, tuple(sorted(values.items()))
                group = groups.get(key)
                if group is None:
                    group = groups[key] = NodeGroup(values=values, wants=[])
                    for number in numbers:
                        self._by_selector[id(selectors[number])].append(group)
                    pairs += len(numbers)
                projected[projection] = group
            group.wants.append(want)
            if index.asked > MOST_TEST_LABELS or pairs > MOST_TEST_LABELS:
                raise TooMany(
                    f"the selectors of the tests compare more than {MOST_TEST_LABELS:,} labels "
                    f"of {len(self.plan.wants):,} nodes"
                )
        return list(groups.values())

    def of(self, selector: Selector | None) -> Sequence[NodeGroup]:
        """Return the groups that a selector selects; None selects all groups."""
        return self._groups if selector is None else self._by_selector[id(selector)]

    def count(self, steps: int) -> None:
        """Count the steps of a test. Raises TooMany above MOST_TEST_STEPS."""
        self._steps += steps
        if self._steps > MOST_TEST_STEPS:
            raise TooMany(
                f"{len(self.plan.scheme.tests):,} tests of {len(self.plan.wants):,} nodes look at more than "
                f"{MOST_TEST_STEPS:,} groups, prefixes, CIDRs and blocks"
            )

    def nearest(self, word: str, known: Collection[str]) -> str:
        """Return the most similar known word, or ""; "" after MOST_TEST_NAMES comparisons."""
        self._names += len(known)
        return nearest_name(word, known) if self._names <= MOST_TEST_NAMES else ""

    def by_value(self, label: str, selector: Selector | None = None) -> Mapping[str, Sequence[NodeGroup]]:
        """Return the groups of a selector by their value of a label that some test has in `each`, in order.
        Groups without the label are omitted. Without a selector all groups, in O(1).
        """
        if selector is None:
            return self._by_label.get(label, {})
        groups = self.of(selector)
        self.count(len(groups))
        return _by_value((group.values[label], group) for group in groups if label in group.values)

    @cached_property
    def _by_label(self) -> dict[str, dict[str, list[NodeGroup]]]:
        found: dict[str, list[tuple[str, NodeGroup]]] = {}
        for group in self._groups:
            for label, value in group.values.items():
                found.setdefault(label, []).append((value, group))
        return {label: _by_value(items) for label, items in found.items()}

    def kinds(self, group: NodeGroup) -> Sequence[Want]:
        """Return a node of each kind, the first by name; nodes of a kind are equal for pools' selectors.
        A pinned node is a kind of its own. O(nodes) the first time.
        """
        found = self._kinds.get(id(group))
        if found is None:
            # Nodes that are equal for selectors share a tuple of offers.
            firsts = {id(want.offers): want for want in reversed(group.wants)}
            found = self._kinds[id(group)] = list(firsts.values())
        return found

    def lines(self, group: NodeGroup) -> Lines:
        """Return the blocks of a group. O(n log n) the first time."""
        found = self._lines.get(id(group))
        if found is None:
            found = self._lines[id(group)] = self.lines_of([want.node.name for want in group.wants])
        return found

    def lines_of(self, nodes: Iterable[str]) -> Lines:
        """Return the blocks of nodes."""
        held, pending, leaving = self.plan.held, self._pending, []
        coming: list[Line] = []
        for name in nodes:
            mine = held.get(name, ())
            if pending and (to_come := pending.get(name)):
                keys = {line.key(one_block=self._one_block) for line in to_come}
                gone = [line for line in mine if line.key(one_block=self._one_block) in keys]
                coming += [line for line in mine if line not in gone] + to_come
                leaving += gone
            else:
                coming += mine
        coming.sort(key=by_block)
        leaving.sort(key=by_block)
        return Lines(
            coming=coming,
            leaving=leaving,
            sizes=frozenset([(line.block.family, line.block.prefix) for line in (*coming, *leaving)]),
        )

    @cached_property
    def labels(self) -> frozenset[str]:
        """Return the keys of all labels of nodes."""
        return frozenset().union(*(want.node.labels for want in self.plan.wants))

    @property
    def moving(self) -> bool:
        """Return whether a node has a pending block."""
        return bool(self._pending)

    def is_leaving(self, line: Line) -> bool:
        """Return whether a pending block will replace a held one."""
        key = line.key(one_block=self._one_block)
        return line.state is State.HELD and any(
            other.key(one_block=self._one_block) == key for other in self._pending.get(line.node, ())
        )

    def lines_in(self, ranges: Iterable[Block]) -> int:
        """Count the lines of the lock in some ranges. O(log lines) for each."""
        lines = self.plan.lock.lines
        return sum(
            bisect.bisect_left(lines, Block(block.family, block.last + 1, 0), key=by_block)
            - bisect.bisect_left(lines, Block(block.family, block.first, 0), key=by_block)
            for block in ranges
        )

    def want(self, node: str) -> Want | None:
        """Return a node of the inventory by its name, or None."""
        if not self._wants:
            self._wants = {want.node.name: want for want in self.plan.wants}
        return self._wants.get(node)


def _by_value(items: Iterable[tuple[str, NodeGroup]]) -> dict[str, list[NodeGroup]]:
    found: dict[str, list[NodeGroup]] = {}
    for value, group in items:
        found.setdefault(value, []).append(group)
    return dict(sorted(found.items()))


def _selectors(test: Assertion) -> Sequence[Selector]:
    match test.asserts:
        case BlocksOf(selector=selector):
            return (selector,)
        case Room(selector=selector) if selector is not None:
            return (selector,)
        case Apart(selectors=selectors):
            return selectors
    return ()
