"""Signs of a selector: what a node shows if it is selected.

A *sign* is a label with one of its values, a label with any value, or a node's name. Nearly every selector has
sets of signs of which a selected node shows one: `zone == "a" && has(rack)` has {zone=a} and {rack}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.model.selector.expression import Named, Never
from ipamc.model.selector.normal_form import Condition, Joint, Normal, OtherTest

Sign = tuple[str, str | None]
"""(label, value); (label, None) for any value. The label "" stands for the node's name: no label is empty."""


def sets_of_signs(form: Normal) -> Iterator[frozenset[Sign]]:
    """Yield sets of signs, of each of which every selected node shows one; none if nothing is known. O(form)."""
    match form:
        case Never():
            yield frozenset()
        case Condition(key, outcomes) if not outcomes.absent:
            values: Iterable[str | None] = outcomes.members if outcomes.listed else (None,)
            yield frozenset((key, value) for value in values)
        case OtherTest(Named(name), negated=False):
            yield frozenset({("", name)})
        case OtherTest(test, negated=False) if not isinstance(test, Named):
            yield frozenset({(test.key, None)})
        case Joint(every=True, parts=parts):
            for part in parts:
                yield from sets_of_signs(part)
        case Joint(parts=parts):
            yield from _of_any(parts)
        case _:
            return


def _of_any(parts: Iterable[Normal]) -> Iterator[frozenset[Sign]]:
    """Yield the one set of alternatives: the smallest of each of them, where all have one."""
    signs: set[Sign] = set()
    for part in parts:
        smallest = min(sets_of_signs(part), key=len, default=None)
        if smallest is None:
            return
        signs |= smallest
    yield frozenset(signs)
