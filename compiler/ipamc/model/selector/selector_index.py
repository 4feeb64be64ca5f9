"""Many selectors, for look-up by a node's labels: which of them select it, without asking each.

A selector is asked only about nodes that show a sign of the rarest of its sets (see `signs`): others it does
not select. One that has no such set, as `rack != "r1"`, often has one for the nodes that it does not select:
it is asked only about those, and selects all others. What is left is asked about every node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ipamc.model.selector.normal_form import Sign
from ipamc.model.selector.selector import Selector

_FEW = 4
"""Selectors that are simply asked."""
_FREE = 10
"""So many selectors that select a node without being asked take the time of one test."""


class SelectorIndex:
    """Selectors by number, from 0."""

    def __init__(self, selectors: Sequence[Selector]) -> None:
        numbers: dict[int, list[int]] = {}
        for number, selector in enumerate(selectors):
            numbers.setdefault(id(selector), []).append(number)
        self._numbers = list(numbers.values())
        self._selectors = [selectors[some[0]] for some in self._numbers]
        self._always = range(len(self._selectors)) if len(self._selectors) <= _FEW else []
        self._unless: dict[int, None] = {}
        """Selectors that select every node which shows no sign of theirs."""
        self._by_sign: dict[Sign, list[int]] = {}
        self.asked = 0
        """How many tests were made, about."""
        if len(self._selectors) > _FEW:
            self._arrange()

    def _arrange(self) -> None:
        """Put each selector below the signs of one of its sets. O(signs)."""
        sets = [selector.signs or selector.signs_of_others for selector in self._selectors]
        often = Counter(sign for some in sets for sign in frozenset().union(*some))
        always: list[int] = []
        for number, some in enumerate(sets):
            if not some:
                always.append(number)
                continue
            if not self._selectors[number].signs:
                self._unless[number] = None
            for sign in min(some, key=lambda signs: sum(map(often.__getitem__, signs))):
                self._by_sign.setdefault(sign, []).append(number)
        self._always = always

    def matching(self, labels: Mapping[str, str], name: str) -> list[int]:
        """Return the numbers of the selectors that select a node, in order.

        O(labels + result + tests of the selectors that are asked).
        """
        selectors = self._selectors
        found: set[int] = set()
        if self._by_sign:
            get = self._by_sign.get
            found.update(get(("", name), ()))
            for key, value in labels.items():
                found.update(get((key, value), ()), get((key, None), ()))
        asked = [*self._always, *found]
        self.asked += sum([selectors[number].effort for number in asked]) + len(self._unless) // _FREE
        chosen = [number for number in asked if selectors[number].matches(labels, name)]
        chosen += [number for number in self._unless if number not in found]
        return sorted([number for one in chosen for number in self._numbers[one]])

    def first(self, labels: Mapping[str, str], name: str) -> int | None:
        """Return the number of the first selector that selects a node, or None."""
        return next(iter(self.matching(labels, name)), None)
