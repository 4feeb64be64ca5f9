"""`Selector`: one value for every language of selectors, and a parser for each language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ipamc.model.selector import calico, contradictions, kubernetes, to_label_selector
from ipamc.model.selector.expression import Always, Expression, Matcher, Named, Test, leaves, matcher, weight
from ipamc.model.selector.find_key import Source, Spot, find_key
from ipamc.model.selector.normal_form import Outcomes

Language = Literal["calico", "LabelSelector", "NodeSelector"]


@dataclass(frozen=True, slots=True)
class Selector:
    """Which nodes are selected. Two selectors are equal if language and canonical text are equal."""

    language: Language
    canonical: str
    """One text for all spellings: Calico's rendering, or one like `labels.Selector.String()`."""
    requirements: int = field(compare=False)
    """How specific it is: 1 for each test, entry or field; `&&` sums, `||` takes the smallest."""
    keys: frozenset[str] = field(compare=False)
    """Label keys that it tests; other labels of a node do not matter."""
    names: frozenset[str] = field(compare=False)
    """Node names that it tests (matchFields)."""
    expression: Expression = field(compare=False, repr=False)
    source: Source = field(compare=False, repr=False)
    """As it was written."""
    _matches: Matcher = field(compare=False, repr=False)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name is selected.

        Compiled once; no parsing, no allocation.
        """
        return self._matches(labels, name)

    def spot(self, key: str) -> Spot:
        """Return where the selector, as it was written, first names a label key."""
        return find_key(self.source, key)

    def label_selector(self) -> dict[str, object] | None:
        """Return an equivalent LabelSelector, sorted by key; {} for every node, None if there is none.

        Equality with one value goes to `matchLabels`, everything else to `matchExpressions`. Alternatives on
        one label become one `In`. There is none for other alternatives, tests of a part of a value, Gt and
        Lt, names, keys and values that Kubernetes does not allow, and a selector of no node.
        """
        return to_label_selector.label_selector(self.expression)

    def negated_requirement(self) -> dict[str, object] | None:
        """Return one entry of `matchExpressions` that selects exactly the other nodes, or None."""
        return to_label_selector.negated_requirement(self.expression)

    def outcomes(self) -> dict[str, Outcomes]:
        """Return what each label must be, by key: the conditions that every selected node satisfies."""
        return to_label_selector.outcomes(self.expression)

    def impossible(self) -> str:
        """Return why no node can match, or "" if a node may.

        A reason is certain; "" is not proof that a node can match.
        """
        return contradictions.impossible(self.expression)


def parse_calico(text: str) -> Selector:
    """Read Calico's language exactly as Calico does for an IPPool; blank text selects every node.

    Raises SelectorError with the offset of the offending token: for what Calico refuses, `global(`, and more
    than 200 levels. The reader of Calico's own pools refuses text longer than `MAX_CALICO_LENGTH`.
    """
    expression = calico.parse(text)
    return _selector("calico", calico.render(expression), expression, text)


def parse_label_selector(obj: Mapping[str, object] | None) -> Selector:
    """Read a Kubernetes LabelSelector; {} is `EVERY`, None selects nothing.

    Raises SelectorError with the keys of the offending value.
    """
    parsed = kubernetes.read_label_selector(obj)
    if isinstance(parsed.expression, Always):
        return EVERY
    return _selector("LabelSelector", parsed.canonical, parsed.expression, obj or {})


def parse_node_selector(obj: Mapping[str, object]) -> Selector:
    """Read a Kubernetes NodeSelector: its terms are alternatives, and an empty term selects nothing.

    Raises SelectorError with the keys of the offending value.
    """
    parsed = kubernetes.read_node_selector(obj)
    return _selector("NodeSelector", parsed.canonical, parsed.expression, obj)


def _selector(language: Language, canonical: str, expression: Expression, source: Source) -> Selector:
    found = list(leaves(expression))
    return Selector(
        language=language,
        canonical=canonical,
        requirements=weight(expression),
        keys=frozenset(leaf.key for leaf in found if isinstance(leaf, Test)),
        names=frozenset(leaf.name for leaf in found if isinstance(leaf, Named)),
        expression=expression,
        source=source,
        _matches=matcher(expression),
    )


EVERY = _selector("calico", "all()", Always(), "")
"""Selects every node."""
