"""Places to lines and columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.diagnostics import Place, Related, Span, error, note, warning
from ipamc.read.locate import locate
from tests.support.calls import counted

YAML = """\
# a comment
apiVersion: v1
spec:
  cidrs: [10.0.0.0/8, "10.1.0.0/16"]
  'quoted key': plain   # and a comment
  "d\\u00fc": "t\\tab \\"x\\" end"
  single: 'it''s here'
  literal: |
    first

      third line
  folded: >-
    one
    two
  long: a plain text
    that goes on
  empty:
  anchored: &a !!str value
  alias: *a
  list:
  - x
  - {deep: [1, {er: 日本}]}
  none: {}
---
second: 2
second: 3
"""
JSON = json.dumps({"apiVersion": "v1", "a/b": {"x": [1, {"y": 't\tab "q" ü'}], "e": {}}, "z": None}, indent=2)


@pytest.fixture(params=["libyaml", "pure"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)


def span(place: Place, source: str) -> Span:
    (found,) = locate([error("IPC0000", place, "x")], {place.path: source.encode()})
    return found.at


def marked(place: Place, source: str) -> tuple[int, str]:
    """Return the line, and what the caret line underlines."""
    at = span(place, source)
    return at.line, at.source[at.column - 1 : at.end_column - 1]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("document", "keys", "expected"),
    [
        (0, ("apiVersion",), (2, "v1")),
        (0, (), (2, "apiVersion")),
        (0, ("spec",), (4, "cidrs")),
        (0, ("spec", "cidrs"), (4, '[10.0.0.0/8, "10.1.0.0/16"]')),
        (0, ("spec", "cidrs", 0), (4, "10.0.0.0/8")),
        (0, ("spec", "cidrs", 1), (4, '"10.1.0.0/16"')),
        (0, ("spec", "quoted key"), (5, "plain")),
        (0, ("spec", "dü"), (6, '"t\\tab \\"x\\" end"')),
        (0, ("spec", "literal"), (8, "|")),
        (0, ("spec", "empty"), (17, "empty")),
        (0, ("spec", "alias"), (19, "*a")),
        (0, ("spec", "list"), (21, "- x")),
        (0, ("spec", "list", 1, "deep", 1, "er"), (22, "日本")),
        (0, ("spec", "none"), (23, "{}")),
        (1, ("second",), (25, "2")),
        # what is not there falls back to the nearest parent that is
        (0, ("spec", "cidrs", 7), (4, '[10.0.0.0/8, "10.1.0.0/16"]')),
        (0, ("spec", "missing", "deeply"), (4, "cidrs")),
        (0, ("nowhere",), (2, "apiVersion")),
        (0, ("apiVersion", "of", "what"), (2, "v1")),
        (7, ("x",), (1, "")),
    ],
)
def test_yaml_places(
    document: int, keys: tuple[str | int, ...], expected: tuple[int, str], newline: str
) -> None:
    assert marked(Place("x.yaml", document, keys), YAML.replace("\n", newline)) == expected


def test_keys() -> None:
    assert marked(Place("x.yaml", 0, ("spec", "quoted key"), key=True), YAML) == (5, "'quoted key'")
    assert marked(Place("x.yaml", 0, ("spec", "missing"), key=True), YAML) == (4, "cidrs")
    assert marked(Place("x.json", 0, ("a/b", "x"), key=True), JSON) == (4, '"x"')


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("key", "offset", "expected"),
    [
        ("quoted key", 2, (5, "ain")),
        ("dü", 2, (6, 'ab \\"x')),  # the tab is two characters
        ("dü", 6, (6, 'x\\" end"')),
        ("single", 3, (7, "s here")),  # the quote before it is two
        ("literal", 1, (9, "irst")),
        ("literal", 5, (9, "")),
        ("literal", 9, (11, "third line")),
        ("folded", 4, (14, "two")),
        ("long", 13, (16, "that goes on")),
        ("anchored", 2, (18, "lue")),
    ],
)
def test_offsets_into_scalars(key: str, offset: int, expected: tuple[int, str], newline: str) -> None:
    at = span(Place("x.yaml", 0, ("spec", key), offset=offset), YAML.replace("\n", newline))
    assert (at.column < at.end_column) == bool(expected[1])
    assert at.line == expected[0]
    assert (
        at.source[at.column - 1 :].startswith(expected[1]) if expected[1] else at.column == len(at.source) + 1
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("apiVersion",), (2, '"v1"')),
        (("a/b",), (4, '"x"')),
        (("a/b", "x"), (4, "[")),
        (("a/b", "x", 0), (5, "1")),
        (("a/b", "x", 1, "y"), (7, '"t\\tab \\"q\\" \\u00fc"')),
        (("a/b", "e"), (10, "{}")),
        (("z",), (12, "null")),
        (("z", "below"), (12, "null")),
        (("missing",), (2, '"apiVersion"')),
    ],
)
def test_json_places(keys: tuple[str | int, ...], expected: tuple[int, str]) -> None:
    assert marked(Place("x.json", 0, keys), JSON) == expected


def test_json_offsets() -> None:
    at = span(Place("x.json", 0, ("a/b", "x", 1, "y"), offset=9), JSON)
    assert at.source[at.column - 1 :] == '\\u00fc"'


def test_findings_come_sorted_and_with_both_ends() -> None:
    sources = {"b.yaml": b"x: 1\ny: 2\n", "a.json": b'{"x": 1}'}
    first, second = Place("b.yaml", 0, ("y",)), Place("b.yaml", 0, ("x",))
    given = [
        warning("IPC0002", first, "m", also=[Related(Place("a.json", 0, ("x",)), "here")]),
        error("IPC0003", second, "m"),
        note("IPC0001", second, "n"),
        note("IPC0001", second, "m"),
        error("IPC0009", Span("a.yaml"), "whole"),
        error("IPC0009", Place("gone.yaml", 3, ("x",)), "m"),
    ]
    found = locate(given, sources)
    assert [(each.at.path, each.at.line, each.code, each.message) for each in found] == [
        ("a.yaml", 0, "IPC0009", "whole"),
        ("b.yaml", 1, "IPC0003", "m"),
        ("b.yaml", 1, "IPC0001", "m"),
        ("b.yaml", 1, "IPC0001", "n"),
        ("b.yaml", 2, "IPC0002", "m"),
        ("gone.yaml", 0, "IPC0009", "m"),
    ]
    assert found[4].also[0].at == Span("a.json", 1, 7, 8, '{"x": 1}')
    assert locate(reversed(given), sources) == found


@pytest.mark.parametrize("path", ["x.yaml", "x.json"])
@pytest.mark.parametrize(
    "source", [b"", b"\xff\xfe", b'{"a": {"b": ', b"[[[", b"a: [", b"\t", b"{" * 5000, b"[" * 50_000]
)
def test_broken_files_are_located_as_far_as_they_go(path: str, source: bytes) -> None:
    (found,) = locate([error("IPC0000", Place(path, 0, ("a", "b", 3)), "x")], {path: source})
    assert found.at.path == path


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abü", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def leaves(value: Any, keys: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, each in pairs for leaf in leaves(each, (*keys, key))]
    return [(keys, value)]


@given(st.dictionaries(st.text("abü", max_size=3), plain, min_size=1, max_size=3), st.sampled_from([None, 1]))
def test_every_leaf_of_a_json_text_is_found(value: dict[str, Any], indent: int | None) -> None:
    source = json.dumps(value, indent=indent)
    for keys, leaf in leaves(value):
        at = span(Place("x.json", 0, keys), source)
        assert json.loads(at.source[at.column - 1 : at.end_column - 1]) == leaf


@given(st.dictionaries(st.text("abü", max_size=3), plain, min_size=1, max_size=3), st.booleans())
def test_every_leaf_of_a_yaml_text_is_found(value: dict[str, Any], flow: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    source = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, width=10_000)
    for keys, leaf in leaves(value):
        at = span(Place("x.yaml", 0, keys), source)
        assert yaml.safe_load(at.source[at.column - 1 : at.end_column - 1]) == leaf


@pytest.mark.parametrize(
    ("head", "tail", "lead"),
    [("k: ", "", 0), ('k: "', '"', 1), ("k: '", "'", 1), ("k: |\n  ", "", 0)],
)
def test_a_character_far_inside_a_long_text(head: str, tail: str, lead: int) -> None:
    text = "".join(f"a{number} || " for number in range(400)) + "a"
    for offset in (1, 255, 256, 257, 1500, len(text) - 1):
        found = span(Place("x.yaml", 0, ("k",), offset=offset), f"{head}{text}{tail}\n")
        indent = 2 if "|" in head else 3
        assert found.column == 1 + indent + lead + offset


@pytest.mark.parametrize("count", [200, 800])
def test_many_findings_in_one_text_go_through_it_once(count: int) -> None:
    """One step for each character and finding would be a million for a selector of a thousand labels."""
    text = " || ".join(f'a{number} == "x"' for number in range(count))
    found = [
        error("IPC0000", Place("x.json", 0, ("k",), offset=text.index(f"a{number} ")), "x")
        for number in range(count)
    ]
    source = json.dumps({"k": text}).encode()
    work = counted(lambda: locate(found, {"x.json": source}))
    assert work <= 400 * count
