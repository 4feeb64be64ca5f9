"""`Selector`: one value for every language of selectors, a parser for each language, and an index of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from ipamc.model.limits import LONGEST_SELECTOR, MOST_CACHED_SELECTORS, SELECTORS_IN_TURN
from ipamc.model.selector import calico, calico_tokens, kubernetes, normal_form
from ipamc.model.selector.expression import (
    Always,
    Expression,
    Matcher,
    Named,
    SelectorError,
    Test,
    effort,
    leaves,
    matcher,
    weight,
)
from ipamc.model.selector.normal_form import Normal, Outcomes, Sign, normal, sets_of_signs

Language = Literal["calico", "LabelSelector", "NodeSelector"]


Source = str | Mapping[str, Any]
"""A selector as written: a text, or an object whose shape was checked."""


class Spot(NamedTuple):
    """The place of a label key in a selector."""

    keys: tuple[str | int, ...] = ()
    """From a selector object to the key; () in a text."""
    at_key: bool = False
    """The label is the last of `keys` itself, not its value."""
    offset: int = 0
    """In characters, in a text."""


class Selector(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """Selects nodes. Two selectors are equal if language and canonical text are equal.
    Derived values are computed once: pools with the same text share one Selector.
    """

    language: Language
    canonical: str
    """One text for all spellings: Calico's rendering, or one like `labels.Selector.String()`."""
    requirements: int
    """How specific it is: 1 for each test, entry or field; `&&` sums, `||` takes the smallest."""
    keys: frozenset[str]
    """Label keys that it tests; it ignores other labels of a node."""
    names: frozenset[str]
    """Node names that it tests (matchFields)."""
    effort: int
    """The approximate number of tests to evaluate it for one node."""
    expression: Expression
    source: Source
    """As written."""
    _matches: Matcher

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.canonical == other.canonical and self.language == other.language

    def __hash__(self) -> int:
        return hash((self.language, self.canonical))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it without the function, which the other process compiles again."""
        return _selector, (self.language, self.canonical, self.expression, self.source)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name is selected. No parsing, no allocation."""
        return self._matches(labels, name)

    def spot(self, key: str) -> Spot:
        """Return where the selector, as written, first names a label key; the whole if it does not."""
        return self._spots.get(key, Spot())

    @cached_property
    def label_selector(self) -> dict[str, object] | None:
        """Return an equivalent LabelSelector, sorted by key; {} for every node, None if there is none.
        Equality with one value goes to `matchLabels`, everything else to `matchExpressions`. Alternatives on
        one label become one `In`. There is none for other alternatives, tests of a part of a value, Gt and
        Lt, names, keys and values that Kubernetes does not allow, and a selector of no node.
        """
        return normal_form.label_selector(self.form)

    @cached_property
    def negated_requirement(self) -> dict[str, object] | None:
        """Return one entry of `matchExpressions` that selects exactly the other nodes, or None."""
        return normal_form.negated_requirement(self.expression)

    @cached_property
    def outcomes(self) -> Mapping[str, Outcomes]:
        """Return the conditions on each label that every selected node satisfies, by key."""
        return normal_form.outcomes(self.form)

    @cached_property
    def impossible(self) -> str:
        """Return why no node can match, or "". A reason is certain; "" proves nothing."""
        return normal_form.impossible(self.form)

    @cached_property
    def form(self) -> Normal:
        """Return its normal form."""
        return normal(self.expression)

    @cached_property
    def signs(self) -> Sequence[frozenset[Sign]]:
        """Return sets of signs of which every selected node shows one; empty if there is none."""
        return tuple(sets_of_signs(self.form))

    @cached_property
    def _spots(self) -> Mapping[str, Spot]:
        return find_keys(self.source)


def parse_calico(text: str) -> Selector:
    """Parse Calico's language exactly as Calico does for an IPPool; blank text selects every node.
    Raises SelectorError with the offset of the offending token: for text that Calico refuses, `global(`, more
    than 200 levels, and more than `LONGEST_SELECTOR` characters. The reader of Calico's own pools refuses
    text longer than `LONGEST_CALICO_SELECTOR`.
    """
    return _given(_parsed_calico(text)) if text else EVERY


def parse_label_selector(obj: Mapping[str, object] | None) -> Selector:
    """Parse a LabelSelector; {} is `EVERY`, None selects nothing. Raises SelectorError with keys."""
    return _given(_of_object(obj, kubernetes.read_label_selector, "LabelSelector"))


def parse_node_selector(obj: Mapping[str, object]) -> Selector:
    """Parse a NodeSelector: terms are alternatives; an empty one selects nothing. SelectorError has keys."""
    return _given(_of_object(obj, kubernetes.read_node_selector, "NodeSelector"))


class _Object(str):
    """A selector object as Python prints it: two are equal if they are printed alike."""

    __slots__ = ("obj",)
    obj: Any

    @classmethod
    def of(cls, text: str, obj: Any) -> _Object:
        written = cls(text)
        written.obj = obj
        return written


def _given(parsed: Selector | SelectorError) -> Selector:
    if isinstance(parsed, SelectorError):
        raise parsed.with_traceback(None)
    return parsed


@lru_cache(MOST_CACHED_SELECTORS)
def _parsed_calico(text: str) -> Selector | SelectorError:
    try:
        _check_length(text)
        expression = calico.parse(text)
    except SelectorError as problem:
        return problem
    return _selector("calico", calico.render(expression), expression, text)


def _of_object(
    obj: Any, read: Callable[[Any], kubernetes.Parsed], language: Language
) -> Selector | SelectorError:
    try:
        written = _Object.of(repr(obj), obj)
    except ValueError:  # an integer of thousands of digits, which is not printed
        return _parsed_object.__wrapped__(_Object.of("", obj), read, language)
    return _parsed_object(written, read, language)


@lru_cache(MOST_CACHED_SELECTORS)
def _parsed_object(
    written: _Object, read: Callable[[Any], kubernetes.Parsed], language: Language
) -> Selector | SelectorError:
    try:
        _check_length(written)
        parsed = read(written.obj)
    except SelectorError as problem:
        return problem
    if language == "LabelSelector" and isinstance(parsed.expression, Always):
        return EVERY
    return _selector(language, parsed.canonical, parsed.expression, written.obj or {})


def _check_length(text: str) -> None:
    if len(text) > LONGEST_SELECTOR:
        raise SelectorError(
            f"a selector of {len(text):,} characters is longer than the limit of {LONGEST_SELECTOR:,}",
            help="give the nodes a label that a shorter selector can test",
        )


def _selector(language: Language, canonical: str, expression: Expression, source: Source) -> Selector:
    found = list(leaves(expression))
    return Selector(
        language=language,
        canonical=canonical,
        requirements=weight(expression),
        effort=effort(expression),
        keys=frozenset(leaf.key for leaf in found if isinstance(leaf, Test)),
        names=frozenset(leaf.name for leaf in found if isinstance(leaf, Named)),
        expression=expression,
        source=source,
        _matches=matcher(expression),
    )


EVERY = _selector("calico", "all()", Always(), "")
"""Selects every node."""


class SelectorIndex:
    """Finds the selectors, by index from 0, that select a node, without evaluating each.
    A selector that wants some values of a label, or a name, is evaluated only for nodes that have one: the
    rarest, if it wants several. Others are evaluated for every node. It pays for a pool for each node; 20,000
    nodes in 100 racks take 0.07 s with and without it.
    """

    def __init__(self, selectors: Sequence[Selector]) -> None:
        """Index each selector. O(signs)."""
        numbers: dict[int, list[int]] = {}
        for number, selector in enumerate(selectors):
            numbers.setdefault(id(selector), []).append(number)
        self._numbers = list(numbers.values())
        self._selectors = [selectors[some[0]] for some in self._numbers]
        self._always: list[int] = []
        self._by_sign: dict[Sign, list[int]] = {}
        self.asked = 0
        """How many tests were made, about."""
        few = len(self._selectors) <= SELECTORS_IN_TURN
        sets = [() if few else selector.signs for selector in self._selectors]
        often = Counter(sign for some in sets for sign in frozenset().union(*some))
        for number, some in enumerate(sets):
            if not some:
                self._always.append(number)
                continue
            for sign in min(some, key=lambda signs: sum(map(often.__getitem__, signs))):
                self._by_sign.setdefault(sign, []).append(number)

    def matching(self, labels: Mapping[str, str], name: str) -> list[int]:
        """Return the indexes of a node's selectors, in order. O(labels + result + evaluated tests)."""
        asked = set(self._always)
        if self._by_sign:
            get = self._by_sign.get
            asked.update(get(("", name), ()), *[get(label, ()) for label in labels.items()])
        self.asked += sum([self._selectors[number].effort for number in asked])
        chosen = [number for number in asked if self._selectors[number].matches(labels, name)]
        return sorted([number for one in chosen for number in self._numbers[one]])

    def first(self, labels: Mapping[str, str], name: str) -> int | None:
        """Return the index of the first selector that selects a node, or None."""
        return next(iter(self.matching(labels, name)), None)


def find_keys(source: Source) -> dict[str, Spot]:
    """Return the first place that names each label. O(source)."""
    found: dict[str, Spot] = {}
    for key, spot in _in_text(source) if isinstance(source, str) else _in_object(source):
        found.setdefault(key, spot)
    return found


def _in_text(text: str) -> Iterator[tuple[str, Spot]]:
    """Yield every token: a label is one of them."""
    cursor = calico_tokens.Cursor(text)
    while not cursor.ended:
        at, token = cursor.at, cursor.peek()
        yield token, Spot(offset=at)
        cursor.accept(token)


def _in_object(selector: Mapping[str, Any], *keys: str | int) -> Iterator[tuple[str, Spot]]:
    for label in selector.get("matchLabels") or ():
        yield label, Spot((*keys, "matchLabels", label), at_key=True)
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        yield entry["key"], Spot((*keys, "matchExpressions", index, "key"))
    for index, term in enumerate(selector.get("nodeSelectorTerms") or ()):
        yield from _in_object(term, *keys, "nodeSelectorTerms", index)
