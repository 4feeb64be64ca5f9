"""Selectors: Calico's and Kubernetes' own verdicts, and what is derived from a selector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.label_syntax import (
    dns_label_problem,
    label_key_problem,
    label_value_problem,
    subdomain_problem,
)
from ipamc.model.selector.normal_form import Outcomes
from ipamc.model.selector.selector import (
    EVERY,
    Selector,
    parse_calico,
    parse_label_selector,
    parse_node_selector,
)

Vector = dict[str, Any]

VECTORS = Path(__file__).parents[1] / "vectors"
CALICO = json.loads((VECTORS / "calico-selector.json").read_text(encoding="utf-8"))
KUBERNETES = json.loads((VECTORS / "kubernetes-selector.json").read_text(encoding="utf-8"))


def ids(vector: Vector) -> str:
    return str(vector["id"])


def check(vector: Vector, parse: Callable[[Any], Selector]) -> None:
    if vector.get("error"):
        with pytest.raises(SelectorError):
            parse(vector["selector"])
        return
    selector = parse(vector["selector"])
    assert selector.matches(vector["labels"], vector.get("nodeName", "")) is vector["match"]
    assert selector.canonical == vector.get("canonical", selector.canonical)


@pytest.mark.parametrize("vector", CALICO["vectors"], ids=ids)
def test_calico(vector: Vector) -> None:
    # A policy may say global(); an IPPool's validation refuses the very text.
    check(vector | {"error": True} if "global(" in vector["selector"] else vector, parse_calico)


@pytest.mark.parametrize("vector", KUBERNETES["labelSelector"], ids=ids)
def test_label_selector(vector: Vector) -> None:
    check(vector, parse_label_selector)


@pytest.mark.parametrize("vector", KUBERNETES["nodeSelector"], ids=ids)
def test_node_selector(vector: Vector) -> None:
    check(vector, parse_node_selector)


@pytest.mark.parametrize(
    "vector", [vector for vector in KUBERNETES["labelString"] if not vector.get("error")], ids=ids
)
def test_kubectl_text_is_never_taken_for_something_else(vector: Vector) -> None:
    # What `kubectl -l` takes is no language of ours: all of it is an error, but for the empty text, which means the same.
    check(vector if not vector["selector"] else vector | {"error": True}, parse_calico)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("labelKey", label_key_problem), ("labelValue", label_value_problem), ("nodeName", subdomain_problem)],
)
def test_identifiers(kind: str, problem: Callable[[str], str]) -> None:
    for vector in KUBERNETES["identifiers"][kind]:
        assert (not problem(vector["text"])) is vector["valid"], vector["text"]


@pytest.mark.parametrize(
    "key", ["", "/", "a/", "/a", "a.-b/c", "a..b/c", "a\n", "a" * 64, "a" * 254 + "/b", "a/" + "b" * 64]
)
def test_more_keys_that_are_none(key: str) -> None:
    assert label_key_problem(key)


def test_what_every_node_is() -> None:
    for selector in (
        parse_calico(""),
        parse_calico(" \t"),
        parse_calico("((all()))"),
        parse_label_selector({}),
        parse_label_selector({"matchLabels": None}),
    ):
        assert selector == EVERY
        assert selector.matches({}, "a")
    assert (EVERY.requirements, EVERY.keys, EVERY.names, EVERY.impossible) == (
        0,
        frozenset(),
        frozenset(),
        "",
    )


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("all()", 0),
        ("!all()", 0),
        ("has(a)", 1),
        ("!has(a)", 1),
        ("a in {}", 1),
        ("a == 'x' && b == 'y' && all()", 2),
        ("a == 'x' || b == 'y' && c == 'z'", 1),
        ("a == 'x' && b == 'y' || b == 'y' && c == 'z' && has(d)", 2),
        ("a == 'x' || all()", 0),
        ("!(a == 'x' && b == 'y')", 1),
        ("!(a == 'x' || b == 'y')", 2),
        ("!!(a == 'x' || b == 'y')", 1),
        ("!(!(a == 'x' || b == 'y') || has(c))", 2),
    ],
)
def test_requirements_of_text(text: str, requirements: int) -> None:
    assert parse_calico(text).requirements == requirements


def test_requirements_of_objects() -> None:
    one, two = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["x", "y"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    assert (
        parse_label_selector({"matchLabels": {"a": "x", "b": "y"}, "matchExpressions": [one]}).requirements
        == 3
    )
    terms = [{"matchExpressions": [one, two], "matchFields": [name]}, {"matchExpressions": [two, two]}, {}]
    selector = parse_node_selector({"nodeSelectorTerms": terms})
    assert (selector.requirements, sorted(selector.keys), sorted(selector.names)) == (2, ["a", "b"], ["n"])
    assert parse_node_selector({"nodeSelectorTerms": [{}]}).requirements == 0


def test_canonical_text_of_objects() -> None:
    entries = [
        {"key": "b", "operator": "NotIn", "values": ["y", "x", "y"]},
        {"key": "a", "operator": "DoesNotExist"},
        {"key": "g", "operator": "Gt", "values": ["5"]},
    ]
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["n"]}
    terms = [
        {"matchExpressions": [{"key": "z", "operator": "Exists"}]},
        {"matchExpressions": entries, "matchFields": [name]},
    ]
    assert (
        parse_node_selector({"nodeSelectorTerms": terms}).canonical
        == "!a,b notin (x,y),g>5,metadata.name!=n || z"
    )
    assert parse_label_selector({"matchLabels": {"b": "", "a": "x"}}).canonical == "a in (x),b in ()"
    assert parse_node_selector({"nodeSelectorTerms": []}).canonical == "!all()"


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("all()", {}),
        ("a == 'x' && b in {'y'}", {"matchLabels": {"a": "x", "b": "y"}}),
        (
            "b in {'z', 'y'} && a == 'x'",
            {
                "matchLabels": {"a": "x"},
                "matchExpressions": [{"key": "b", "operator": "In", "values": ["y", "z"]}],
            },
        ),
        ("!has(a)", {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
        (
            "!(a == 'x' || has(b))",
            {
                "matchExpressions": [
                    {"key": "a", "operator": "NotIn", "values": ["x"]},
                    {"key": "b", "operator": "DoesNotExist"},
                ]
            },
        ),
        (
            "has(a) && a != 'x'",
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "NotIn", "values": ["x"]},
                ]
            },
        ),
        (
            "a == 'x' || a in {'y', 'x'}",
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]},
        ),
        ("a not in {}", {}),
        ("has(a) || all()", {}),
        ("a == 'x' || b == 'x'", None),
        ("!has(a) || a == 'x'", None),
        ("a starts with 'x'", None),
        ("a == 'x y'", None),
        ("-a == 'x'", None),
        ("a in {}", None),
        ("!all()", None),
    ],
)
def test_as_label_selector(text: str, selector: dict[str, object] | None) -> None:
    assert parse_calico(text).label_selector == selector


def test_no_label_selector_says_names_or_order() -> None:
    for requirement in (
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
    ):
        selector = parse_node_selector({"nodeSelectorTerms": [requirement]})
        assert selector.label_selector is None
        assert selector.negated_requirement is None


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("a == 'x'", {"key": "a", "operator": "NotIn", "values": ["x"]}),
        ("a == 'x' || a == 'y'", {"key": "a", "operator": "NotIn", "values": ["x", "y"]}),
        ("a not in {'y', 'x'}", {"key": "a", "operator": "In", "values": ["x", "y"]}),
        ("a != 'y' && a != 'x'", {"key": "a", "operator": "In", "values": ["x", "y"]}),
        ("has(a)", {"key": "a", "operator": "DoesNotExist"}),
        ("!has(a)", {"key": "a", "operator": "Exists"}),
        ("a == 'x' && b == 'y'", None),
        ("has(a) && a != 'x'", None),
        ("a contains 'x'", None),
        ("all()", None),
    ],
)
def test_negated_requirement(text: str, entry: dict[str, object] | None) -> None:
    assert parse_calico(text).negated_requirement == entry


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a in {}", "no value of a satisfies it"),
        ("!all()", "it is the opposite of all()"),
        ("has(b) && a in {} || a in {}", "no value of a satisfies it"),
        ("a == 'x' && a == 'y'", "no value of a satisfies it"),
        ("a == 'x' && !has(a)", "no value of a satisfies it"),
        ("has(b) && (a == 'x' && a != 'x')", "no value of a satisfies it"),
        (
            "has(-a)",
            "no node can have the label '-a', which needs a name of only letters, digits, -, _ and ., with a letter or digit at both ends",
        ),
        (
            "a == 'x/y'",
            "no label can have the value 'x/y', which must contain only letters, digits, -, _ and ., with a letter or digit at both ends",
        ),
        ("-a != 'x'", ""),
        ("a in {'x y', 'z'}", ""),
        ("!a contains 'x y'", ""),
        ("a in {} || has(b)", ""),
    ],
)
def test_impossible(text: str, reason: str) -> None:
    assert parse_calico(text).impossible == reason


def test_impossible_objects() -> None:
    nothing = parse_node_selector({"nodeSelectorTerms": []})
    assert nothing.impossible
    assert (nothing.label_selector, nothing.negated_requirement, nothing.requirements) == (None, None, 0)
    assert parse_label_selector(None).impossible


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("kube-system", ""),
        ("a" * 63, ""),
        ("a" * 64, "is longer than 63 characters"),
        ("kube.system", "has a dot"),
        ("", "is empty"),
    ],
)
def test_a_namespace_is_one_dns_label(name: str, problem: str) -> None:
    assert dns_label_problem(name) == problem


def test_outcomes_are_the_conditions_on_single_labels() -> None:
    one = Outcomes(frozenset({"x"}), listed=True, absent=False)
    assert parse_calico("a == 'x'").outcomes == {"a": one}
    assert parse_calico("a in {'x', 'y'} && a != 'y' && b contains 'z'").outcomes == {"a": one}
    assert parse_calico("a == 'x' || b == 'x'").outcomes == EVERY.outcomes == {}
