"""`Selector`: one kind of value for every language, and the three ways to make one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ipamc.model.selector import calico, contradictions, kubernetes, to_label_selector
from ipamc.model.selector.expression import Always, Expression, Matcher, Named, Test, leaves, matcher, weight


@dataclass(frozen=True, slots=True)
class Selector:
    """Which nodes. Equal to another where language and canonical text are equal."""

    language: str
    """calico, LabelSelector or NodeSelector."""
    canonical: str
    """One text for one meaning as written: Calico's own rendering, or a text like `labels.Selector.String()` (see `kubernetes`)."""
    requirements: int = field(compare=False)
    """How specific it is: 1 a test, entry or field; `&&` sums, `||` takes the smallest, `!` goes inward. More of them are tried first."""
    keys: frozenset[str] = field(compare=False)
    """Label keys it looks at: labels beside these cannot change the verdict."""
    names: frozenset[str] = field(compare=False)
    """Node names it looks at (matchFields)."""
    expression: Expression = field(compare=False, repr=False)
    _matches: Matcher = field(compare=False, repr=False)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Tell whether a node with these labels and this name is selected. Compiled once; no parsing, no allocation."""
        return self._matches(labels, name)

    def label_selector(self) -> dict[str, object] | None:
        """Give an equivalent Kubernetes LabelSelector, sorted by key; {} for every node, None where no LabelSelector means the same.

        Equality with one value goes to `matchLabels`, everything else to `matchExpressions`. Alternatives on one label are one `In`.
        None: other alternatives, tests of a part of a value, Gt and Lt, names, keys and values that Kubernetes does not allow, no node.
        """
        return to_label_selector.label_selector(self.expression)

    def negated_requirement(self) -> dict[str, object] | None:
        """Give the one entry of `matchExpressions` that selects exactly the other nodes, or None where one entry cannot."""
        return to_label_selector.negated_requirement(self.expression)

    def impossible(self) -> str:
        """Say why no node can be selected, or "" where some node may be: a reason is certain, its absence is not."""
        return contradictions.impossible(self.expression)


def parse_calico(text: str) -> Selector:
    """Read Calico's language, exactly as Calico reads it in an IPPool; empty and blank text is every node.

    Raises SelectorError with the offset of the offending token: what Calico refuses, `global(`, and more than 200 levels. Longer text than
    `MAX_CALICO_LENGTH` is for the reader of Calico's own pools to refuse.
    """
    expression = calico.parse(text)
    return _selector("calico", calico.render(expression), expression)


def parse_label_selector(obj: Mapping[str, object] | None) -> Selector:
    """Read a Kubernetes LabelSelector; {} is `EVERY`, None selects nothing. Raises SelectorError with the keys of the offending value."""
    canonical, expression = kubernetes.read_label_selector(obj)
    return EVERY if isinstance(expression, Always) else _selector("LabelSelector", canonical, expression)


def parse_node_selector(obj: Mapping[str, object]) -> Selector:
    """Read a Kubernetes NodeSelector: terms are alternatives, empty ones are nothing. Raises SelectorError with the keys of the offending value."""
    canonical, expression = kubernetes.read_node_selector(obj)
    return _selector("NodeSelector", canonical, expression)


def _selector(language: str, canonical: str, expression: Expression) -> Selector:
    found = list(leaves(expression))
    return Selector(
        language=language,
        canonical=canonical,
        requirements=weight(expression),
        keys=frozenset(leaf.key for leaf in found if isinstance(leaf, Test)),
        names=frozenset(leaf.name for leaf in found if isinstance(leaf, Named)),
        expression=expression,
        _matches=matcher(expression),
    )


EVERY = _selector("calico", "all()", Always())
"""Selects every node."""
