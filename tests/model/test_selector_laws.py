"""Laws of selectors, over texts and objects that hypothesis writes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.selector.selector import Selector, parse_calico, parse_label_selector, parse_node_selector

KEYS = ["a", "b", "in", "-a"]
VALUES = ["", "x", "y", "xy", "5", "10", "x y"]
OUTCOMES = [None, *VALUES]
# Every assignment of the labels that a selector may look at: small enough to try them all.
WORLDS = [
    {key: value for key, value in zip(KEYS, values, strict=True) if value is not None}
    for values in itertools.product(OUTCOMES, OUTCOMES, [None, "x"], [None, "x"])
]

key = st.sampled_from(KEYS)
value = st.sampled_from(VALUES)
comparison = st.one_of(
    st.builds("has({})".format, key),
    st.just("all()"),
    st.builds(
        "{} {} '{}'".format, key, st.sampled_from(["==", "!=", "contains", "starts with", "ends with"]), value
    ),
    st.builds(
        lambda key, operator, values: f"{key} {operator} {{{', '.join(map(repr, values))}}}",
        key,
        st.sampled_from(["in", "not in"]),
        st.lists(value, max_size=3),
    ),
)
text = st.recursive(
    comparison,
    lambda inner: st.one_of(
        st.builds("!{}".format, inner.map("({})".format)),
        st.builds("({})".format, st.lists(inner, min_size=2, max_size=3).map(" && ".join)),
        st.builds("({})".format, st.lists(inner, min_size=2, max_size=3).map(" || ".join)),
    ),
    max_leaves=6,
)

legal_key = st.sampled_from(["a", "b"])
legal_value = st.sampled_from(["", "x", "y", "xy", "5", "10"])
requirement = st.one_of(
    st.fixed_dictionaries(
        {
            "key": legal_key,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(legal_value, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"key": legal_key, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
order = st.fixed_dictionaries(
    {
        "key": legal_key,
        "operator": st.sampled_from(["Gt", "Lt"]),
        "values": st.sampled_from(["5", "10", "010"]).map(lambda one: [one]),
    }
)
named = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from(["n", "m"]).map(lambda one: [one]),
    }
)
label_object = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(legal_key, legal_value),
        "matchExpressions": st.lists(requirement, max_size=3),
    },
)
term = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirement | order, max_size=3),
        "matchFields": st.lists(named, max_size=2),
    },
)
node_object = st.lists(term, max_size=3).map(lambda terms: {"nodeSelectorTerms": terms})
selector = st.one_of(
    text.map(parse_calico), label_object.map(parse_label_selector), node_object.map(parse_node_selector)
)
several = st.lists(selector, min_size=5, max_size=5)
"""For laws about few of all selectors: Hypothesis refuses a test that passes over most of its cases."""


def verdicts(selector: Selector, name: str = "n") -> list[bool]:
    return [selector.matches(labels, name) for labels in WORLDS]


@given(text)
def test_canonical_text_means_the_same_and_is_stable(text: str) -> None:
    once = parse_calico(text)
    twice = parse_calico(once.canonical)
    assert verdicts(twice) == verdicts(once)
    assert twice.requirements == once.requirements
    assert twice == once or "!!" in once.canonical  # Calico prints !(!x) as !!x, and reads that as x
    assert parse_calico(twice.canonical) == twice


@given(st.lists(text, min_size=2, max_size=3))
def test_de_morgan(texts: list[str]) -> None:
    for joint, dual in ((" && ", " || "), (" || ", " && ")):
        outside = parse_calico(f"!({joint.join(texts)})")
        inside = parse_calico(dual.join(f"!({text})" for text in texts))
        assert verdicts(outside) == verdicts(inside)
        assert outside.requirements == inside.requirements
        assert outside.label_selector == inside.label_selector


@given(several)
def test_a_label_selector_says_the_same(selectors: list[Selector]) -> None:
    for selector in selectors:
        if (said := selector.label_selector) is not None:
            again = parse_label_selector(said)
            assert verdicts(again) == verdicts(selector)
            assert again.label_selector == said


@given(several)
def test_a_negated_requirement_says_the_opposite(selectors: list[Selector]) -> None:
    for selector in selectors:
        if entry := selector.negated_requirement:
            opposite = parse_label_selector({"matchExpressions": [entry]})
            assert verdicts(opposite) == [not verdict for verdict in verdicts(selector)]


@given(several)
def test_impossible_is_certain(selectors: list[Selector]) -> None:
    for selector, labels in itertools.product(filter(lambda each: each.impossible, selectors), WORLDS):
        if not any(map(label_key_problem, labels)) and not any(map(label_value_problem, labels.values())):
            assert not selector.matches(labels, "n")
            assert not selector.matches(labels, "m")


@given(label_object.map(parse_label_selector))
def test_label_selectors_are_impossible_or_some_labels_match(selector: Selector) -> None:
    assert bool(selector.impossible) is not any(verdicts(selector))


@given(label_object)
def test_every_possible_label_selector_can_be_said(obj: dict[str, Any]) -> None:
    selector = parse_label_selector(obj)
    assert (selector.label_selector is None) is bool(selector.impossible)


@given(selector, st.sampled_from(WORLDS))
def test_only_its_keys_and_names_matter(selector: Selector, labels: dict[str, str]) -> None:
    seen = {key: value for key, value in labels.items() if key in selector.keys}
    assert selector.matches(labels, "n") is selector.matches(seen, "n" if "n" in selector.names else "")


@given(node_object, st.randoms(use_true_random=False))
def test_order_in_objects_means_nothing(obj: dict[str, Any], random: Any) -> None:
    def shuffled(items: list[Any]) -> list[Any]:
        return random.sample(items, len(items))  # type: ignore[no-any-return]  # hypothesis does not type its Random

    other = {
        "nodeSelectorTerms": [
            {name: shuffled(part) for name, part in term.items()}
            for term in shuffled(obj["nodeSelectorTerms"])
        ]
    }
    assert parse_node_selector(other) == parse_node_selector(obj)
    assert parse_node_selector(other).requirements == parse_node_selector(obj).requirements


PIECES = [
    "a",
    "in",
    "not",
    "has(",
    "all(",
    "all()",
    "(",
    ")",
    "{",
    "}",
    ",",
    "!",
    "==",
    "!=",
    "&&",
    "||",
    "'x'",
    '"y"',
    "'",
    " ",
    "\t",
    "\n",
    "=",
    "|",
    "ä",
]


def refusal(parse: Callable[[Any], Selector], given: object) -> SelectorError | None:
    try:
        parse(given)
    except SelectorError as error:
        return error
    return None


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_text_is_read_or_refused_inside_its_bounds(text: str) -> None:
    if error := refusal(parse_calico, text):
        assert 0 <= error.offset <= len(text)
        assert error.message[0].islower() or error.message[0] in "'\""
        assert not error.message.endswith(".")


json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["In", "Exists", "a", "metadata.name"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "matchLabels",
                    "matchExpressions",
                    "matchFields",
                    "nodeSelectorTerms",
                    "key",
                    "operator",
                    "values",
                ]
            ),
            inner,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["matchLabels", "matchExpressions", "nodeSelectorTerms"]), json))
def test_any_object_is_read_or_refused_at_one_of_its_values(obj: dict[str, Any]) -> None:
    for parse in (parse_label_selector, parse_node_selector):
        if error := refusal(parse, obj):
            found: Any = obj
            for key in error.keys:
                found = found[key]
