"""Many selectors, for look-up by a node's labels: which of them select it, without asking each.

A *sign* is a label with one of its values, a label with any value, or a node's name. Nearly every selector has
sets of signs of which a selected node shows one: `zone == "a" && has(rack)` has {zone=a} and {rack}. It is
asked only about nodes that show a sign of the rarest of its sets. A selector without such a set, as `!has(x)`,
is asked about every node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.model.selector.expression import Named, Never
from ipamc.model.selector.normal_form import Condition, Joint, Normal, OtherTest
from ipamc.model.selector.selector import Selector

Sign = tuple[str, str | None]
"""(label, value); (label, None) for any value. The label "" stands for the node's name: no label is empty."""

_FEW = 4
"""Selectors that are simply asked."""


class SelectorIndex:
    """Selectors by number, from 0."""

    def __init__(self, selectors: Sequence[Selector]) -> None:
        self._selectors = selectors
        self._always: list[int] = list(range(len(selectors)))
        self._by_sign: dict[Sign, list[int]] = {}
        self.asked = 0
        """How many tests were made, about."""
        if len(selectors) > _FEW:
            self._arrange([list(_sets_of_signs(selector.form)) for selector in selectors])

    def _arrange(self, sets: Sequence[list[frozenset[Sign]]]) -> None:
        """Put each selector below the signs of one of its sets. O(signs)."""
        often = Counter(sign for some in sets for sign in frozenset().union(*some))
        self._always = [number for number, some in enumerate(sets) if not some]
        for number, some in enumerate(sets):
            for sign in min(some, key=lambda signs: sum(map(often.__getitem__, signs)), default=()):
                self._by_sign.setdefault(sign, []).append(number)

    def matching(self, labels: Mapping[str, str], name: str) -> list[int]:
        """Return the numbers of the selectors that select a node, in order.

        O(labels + tests of the selectors that are asked).
        """
        asked = self._always
        if self._by_sign:
            get = self._by_sign.get
            found = {*self._always, *get(("", name), ())}
            for key, value in labels.items():
                found.update(get((key, value), ()), get((key, None), ()))
            asked = sorted(found)
        selectors = self._selectors
        self.asked += sum(selectors[number].effort for number in asked)
        return [number for number in asked if selectors[number].matches(labels, name)]

    def first(self, labels: Mapping[str, str], name: str) -> int | None:
        """Return the number of the first selector that selects a node, or None."""
        return next(iter(self.matching(labels, name)), None)


def _sets_of_signs(form: Normal) -> Iterator[frozenset[Sign]]:
    """Yield sets of signs, of each of which every selected node shows one. O(form)."""
    match form:
        case Never():
            yield frozenset()
        case Condition(key, outcomes) if not outcomes.absent:
            yield (
                frozenset((key, value) for value in outcomes.members)
                if outcomes.listed
                else frozenset({(key, None)})
            )
        case OtherTest(Named(name), negated=False):
            yield frozenset({("", name)})
        case OtherTest(test, negated=False) if not isinstance(test, Named):
            yield frozenset({(test.key, None)})
        case Joint(every=True, parts=parts):
            for part in parts:
                yield from _sets_of_signs(part)
        case Joint(parts=parts):
            yield from _of_any(parts)
        case _:
            return


def _of_any(parts: Iterable[Normal]) -> Iterator[frozenset[Sign]]:
    """Yield the one set of alternatives: a set of each of them, where all have one."""
    signs: set[Sign] = set()
    for part in parts:
        smallest = min(_sets_of_signs(part), key=len, default=None)
        if smallest is None:
            return
        signs |= smallest
    yield frozenset(signs)
