"""How selectors are refused: the offending token, and a way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipamc.model.selector import selector
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import parse_calico, parse_label_selector, parse_node_selector


def refused(text: str) -> SelectorError:
    with pytest.raises(SelectorError) as caught:
        parse_calico(text)
    assert caught.value.keys == ()
    return caught.value


@pytest.mark.parametrize(
    ("marked", "message", "help_"),
    [
        ("rack ▲= 'r1'", "'=': expected an operator after 'rack'", 'write rack == "r1"'),
        ("rack ==▲= 'r1'", "'=': expected a quoted value", "write two characters: == or !="),
        ("rack == ▲r1", "'r1': expected a quoted value", 'write "r1"'),
        ("rack == ▲“r1”", "'“': expected a quoted value", "write plain quotes, \" or '"),
        ("rack == ▲'r1", '"\'r1" is never closed', "end the value with '"),
        (
            "rack ▲< 'r1'",
            "'<': expected an operator after 'rack'",
            "use a NodeSelector with Gt or Lt: this language does not compare numbers",
        ),
        (
            "rack ▲matches 'r1'",
            "'matches': expected an operator after 'rack'",
            "write ==, !=, in, not in, contains, starts with or ends with",
        ),
        ("rack ▲IN {'r1'}", "'IN': expected an operator after 'rack'", "write in in lower case"),
        (
            "zone ▲not contains 'x'",
            "'not': expected an operator after 'zone'",
            'write ! in front of the label: !zone contains "…"',
        ),
        (
            "not ▲has(rack)",
            "'has': expected an operator after 'not'",
            "write ! in front of a condition: !has(rack)",
        ),
        ("has ▲(rack)", "'(': expected an operator after 'has'", "write has( without a space"),
        (
            "!rack▲",
            "the selector ends here: expected an operator after 'rack'",
            "write has(rack) for any value, or compare it",
        ),
        (
            "r▲äck == 'x'",
            "'ä': expected an operator after 'r'",
            "use letters a to z and A to Z, digits, -, _, . and / in label keys",
        ),
        ("rack in ▲('r1')", "'(': expected { and a set of quoted values", 'write rack in {"r1"}'),
        ("rack in {▲,}", "',': expected a quoted value or }", 'write "…"'),
        (
            "rack in {'r1' ▲'r2'}",
            "\"'r2'\": expected , or } after a value",
            "write , between values and } after the last",
        ),
        ("rack in ▲{'r1', ", "this set is never closed", "write } after the last value"),
        ("has(▲)", "')': expected a label key", "write has(rack)"),
        ("has(a ▲b)", "'b': expected ) after has(a", "write has(a)"),
        ("all(▲rack)", "'rack': expected ) after all(", "write all()"),
        ("has(a) && ▲global()", "global() is for policies, not for pools", "write all() for every node"),
        ("has(a) ▲and has(b)", "'and': expected && or ||", "write &&"),
        ("(has(a) ▲| has(b))", "'|': expected &&, || or )", "write ||"),
        ("has(a)▲, has(b)", "',': expected && or ||", "write &&"),
        (
            "has(a) &&▲",
            "the selector ends here: expected a condition",
            'write a condition, such as has(rack) or rack == "r1"',
        ),
        (
            "▲'rack' == 'r1'",
            "\"'rack'\": expected a condition",
            'write label keys without quotes: rack == "r1"',
        ),
        (
            "has(a) && (▲)",
            "')': expected a condition",
            'write a condition, such as has(rack) or rack == "r1"',
        ),
        ("has(a) && ▲(has(b) || (has(c))", "this parenthesis is never closed", "write ) where it ends"),
        ("(has(a))▲)", "')' has no matching parenthesis before it", "remove it, or write ( where it begins"),
        (
            "rack == 'r1'▲\n",
            "a line break is not a space in Calico's language: expected && or ||",
            "write the selector on one line; in YAML as a plain scalar, or with >- instead of | or >",
        ),
    ],
)
def test_errors_of_text(marked: str, message: str, help_: str) -> None:
    error = refused(marked.replace("▲", ""))
    assert (error.message, error.help, error.offset) == (message, help_, marked.index("▲"))


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    assert refused("!(" * 50_000 + "all()" + ")" * 50_000).message == "the selector has more than 200 levels"
    assert (
        refused("has(a)&&(has(b)||(" * 500 + "all()" + "))" * 500).message
        == "the selector has more than 200 levels"
    )
    assert refused("(" * 50_000).offset == 50_000
    # What means nothing is no level.
    assert parse_calico("(" * 50_000 + "!" * 50_001 + "all()" + ")" * 50_000).canonical == "!all()"
    deep = parse_calico("!(" * 199 + "has(a)" + ")" * 199)
    assert deep.matches({}, "")
    assert deep.canonical == "!" * 199 + "has(a)"
    assert deep.negated_requirement == {"key": "a", "operator": "Exists"}


def test_label_keys_are_as_long_as_in_calico() -> None:
    assert parse_calico("has(" + "k" * 512 + ")").requirements == 1
    error = refused("has(a) && " + "k" * 513 + " == 'x'")
    assert error.message.endswith("is longer than the 512 characters of a label key")
    assert error.offset == 10


def test_hostile_text_takes_no_long() -> None:
    chain = parse_calico(" && ".join(f"a != '{number}'" for number in range(20_000)))
    entry = chain.negated_requirement
    assert entry is not None
    assert entry["operator"] == "In"
    many = ", ".join(f"'{number}'" for number in range(2_000))
    assert not parse_calico(
        f"a in {{{many}}}" + " && a contains ''" * 2_000 + " && a contains 'x'"
    ).impossible


def test_hostile_text_is_cut_in_messages() -> None:
    assert len(refused("a == " + "x" * 100_000).message) < 120
    assert len(refused("a == '" + "x" * 100_000).message) < 120


def label_error(obj: object) -> tuple[tuple[str | int, ...], str, str]:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(obj)  # type: ignore[arg-type]  # whatever stands in a file
    assert caught.value.offset == 0
    return caught.value.keys, caught.value.message, caught.value.help


def node_error(*terms: object) -> tuple[tuple[str | int, ...], str, str]:
    with pytest.raises(SelectorError) as caught:
        parse_node_selector({"nodeSelectorTerms": list(terms)})
    return caught.value.keys, caught.value.message, caught.value.help


def entry(**fields: object) -> dict[str, object]:
    return {
        "matchExpressions": [
            {"key": "a", "operator": "Exists"},
            {"key": "b", "operator": "In", "values": ["x"]} | fields,
        ]
    }


@pytest.mark.parametrize(
    ("obj", "keys", "message", "help_"),
    [
        (
            {"rack": "r1"},
            ("rack",),
            "'rack' is not a field of a LabelSelector",
            "write matchLabels: {rack: …}",
        ),
        (
            {"matchLabel": {"rack": "r1"}},
            ("matchLabel",),
            "'matchLabel' is not a field of a LabelSelector",
            "it has matchLabels, matchExpressions",
        ),
        ({"matchLabels": ["rack"]}, ("matchLabels",), "matchLabels is not a mapping", ""),
        (
            {"matchLabels": {1: "x"}},
            ("matchLabels",),
            "matchLabels has a key that is not text",
            "write its keys in quotes",
        ),
        ({"matchLabels": {"rack": True}}, ("matchLabels", "rack"), "true is not text", 'write "true"'),
        (
            {"matchLabels": {"rack": 10**5000}},
            ("matchLabels", "rack"),
            "the value must be text, not a number",
            "write it in quotes",
        ),
        ({"matchLabels": {"rack": None}}, ("matchLabels",), "a value is missing", "write the value"),
        (
            {"matchLabels": {"a/b/c": "x"}},
            ("matchLabels", "a/b/c"),
            "'a/b/c' is not a label key: it has more than one slash",
            "",
        ),
        (
            {"matchLabels": {"rack": "v" * 64}},
            ("matchLabels", "rack"),
            f"{'v' * 59 + '…'!r} is not a label value: it is longer than 63 characters",
            "",
        ),
        ({"matchExpressions": {"key": "a"}}, ("matchExpressions",), "matchExpressions is not a list", ""),
        (
            {"matchExpressions": [None]},
            ("matchExpressions", 0),
            "a requirement is null",
            "remove it, or write what it selects",
        ),
        (entry(key=None), ("matchExpressions", 1), "a key is missing", "write the key"),
        (
            entry(operator="Equals"),
            ("matchExpressions", 1, "operator"),
            "'Equals' is not an operator here",
            "write In",
        ),
        (
            entry(operator="notin"),
            ("matchExpressions", 1, "operator"),
            "'notin' is not an operator here",
            "write NotIn",
        ),
        (
            entry(operator="Gt"),
            ("matchExpressions", 1, "operator"),
            "'Gt' is not an operator here",
            "write one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            entry(values=[]),
            ("matchExpressions", 1, "values"),
            "0 values: In takes one or more values",
            "write values: [a]",
        ),
        (
            entry(operator="Exists"),
            ("matchExpressions", 1, "values"),
            "1 values: Exists takes no values",
            "remove values",
        ),
        (entry(values="x"), ("matchExpressions", 1, "values"), "values is not a list", ""),
        (
            entry(values=["x", ["y"]]),
            ("matchExpressions", 1, "values", 1),
            "the value must be text, not a list",
            "",
        ),
        (
            entry(value="x"),
            ("matchExpressions", 1, "value"),
            "'value' is not a field of a requirement",
            "it has key, operator, values",
        ),
    ],
)
def test_errors_of_label_selectors(
    obj: object, keys: tuple[str | int, ...], message: str, help_: str
) -> None:
    assert label_error(obj) == (keys, message, help_)


def test_errors_of_node_selectors() -> None:
    def fields(**change: object) -> dict[str, object]:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]} | change]}

    here = ("nodeSelectorTerms", 0)
    assert node_error(None) == (here, "a term is null", "remove it, or write what it selects")
    assert node_error({"matchLabels": {}}) == (
        (*here, "matchLabels"),
        "'matchLabels' is not a field of a term",
        "it has matchExpressions, matchFields",
    )
    gt = (*here, "matchExpressions", 1, "values")
    assert node_error(entry(operator="Gt", values=["5.0"])) == (
        (*gt, 0),
        "'5.0' is not an integer",
        "Gt compares 64-bit integers",
    )
    assert node_error(entry(operator="Gt", values=["9223372036854775808"]))[0] == (*gt, 0)
    assert node_error(entry(operator="Lt", values=["1", "2"])) == (
        gt,
        "2 values: Lt takes exactly one value",
        "write values: [5]",
    )
    field = (*here, "matchFields", 0)
    assert node_error(fields(values=["n", "m"])) == (
        (*field, "values"),
        "2 values: matchFields takes exactly one",
        "write one term for each name",
    )
    assert node_error(fields(operator="Exists", values=[])) == (
        (*field, "operator"),
        "'Exists' is not an operator here",
        "write one of In, NotIn",
    )
    assert node_error(fields(key="spec.podCIDR")) == (
        (*field, "key"),
        "'spec.podCIDR' is not a field to select nodes by",
        "write metadata.name",
    )
    without: list[dict[str, object]] = [{}, {"nodeSelectorTerms": None}]
    for obj in without:
        with pytest.raises(SelectorError, match="a NodeSelector without nodeSelectorTerms"):
            parse_node_selector(obj)


def test_where_a_key_is_wrong_the_key_is_shown() -> None:
    wrong: list[dict[str, object]] = [{"matchLabel": {}}, {"matchLabels": {"a b": "x"}}]
    for obj in wrong:
        with pytest.raises(SelectorError) as caught:
            parse_label_selector(obj)
        assert caught.value.at_key


def test_a_selector_that_no_object_could_have_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "LONGEST_SELECTOR", 60)
    values = ", ".join(f'"r{number}"' for number in range(50))
    objects: list[tuple[Callable[[], object], str]] = [
        (lambda: parse_calico(f"rack in {{{values}}}"), "a selector of 348 characters"),
        (
            lambda: parse_label_selector({"matchLabels": {"rack" * 12: "r1" * 12}}),
            "a selector of 97 characters",
        ),
    ]
    for read, message in objects:
        with pytest.raises(SelectorError, match=f"{message} is longer than the limit of 60"):
            read()


def test_pools_that_share_a_text_share_its_selector_or_its_error() -> None:
    assert parse_calico("a == 'shared'") is parse_calico("a == 'shared'")
    one, other = ({"matchLabels": {"a": "shared"}} for _ in range(2))
    assert parse_label_selector(one) is parse_label_selector(other)
    for text in ("a == ", "a == "):
        with pytest.raises(SelectorError, match="the selector ends here") as caught:
            parse_calico(text)
        assert caught.value.offset == 5
