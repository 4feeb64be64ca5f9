"""Text to documents: YAML and JSON, what they refuse, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ipamc.model.diagnostics import Located
from ipamc.model.limits import DEEPEST_DOCUMENT
from ipamc.read.locate import locate
from ipamc.read.syntax.document import Document, Unreadable
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.text import decode
from ipamc.read.syntax.yaml import yaml_documents


def load(source: str | bytes, path: str = "x.yaml") -> tuple[list[Document], list[Located]]:
    """Read a file: its documents, and why it was refused, located."""
    data = source.encode() if isinstance(source, str) else source
    documents: list[Document] = []
    try:
        text = decode(path, data)
        for each in json_documents(path, data) if path.endswith(".json") else yaml_documents(path, text):
            value = each.value
            if isinstance(value, dict) and isinstance(value.get("items"), Iterator):
                value["items"] = list(value["items"])
            documents.append(each)
    except Unreadable as broken:
        return documents, list(locate(broken.diagnostics, {path: data}))
    return documents, []


def values(source: str | bytes, path: str = "x.yaml") -> list[Any]:
    documents, refused = load(source, path)
    assert not refused
    return [each.value for each in documents]


def refusals(source: str | bytes, path: str = "x.yaml") -> list[tuple[str, int, int]]:
    return [(each.code, each.at.line, each.at.column) for each in load(source, path)[1]]


@pytest.fixture(params=["libyaml", "pure"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# only a comment\n", []),
        ("---\n---\na: b\n---\n~\n", [None, {"a": "b"}, None]),
        ("a: [1, 1.5, true, null, x, '1', \"1\"]", [{"a": [1, 1.5, True, None, "x", "1", "1"]}]),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", [{"a": "x\ny\n", "b": "x y"}]),
        (
            "a: &x {b: c}\nd: *x\ne: &y text\nf: *y\n",
            [{"a": {"b": "c"}, "d": {"b": "c"}, "e": "text", "f": "text"}],
        ),
        ("&k a: b\nc: {*k : d}\n", [{"a": "b", "c": {"a": "d"}}]),
        ("a: on\n9: x\n08: 08\n", [{"a": "on", "9": "x", "08": "08"}]),
        (
            "!!map {a: !!str 1, b: !!int 3, c: ! 4, d: !!null ~, e: !!seq [!!bool true]}",
            [{"a": "1", "b": 3, "c": "4", "d": None, "e": [True]}],
        ),
        ('"<<": quoted\n', [{"<<": "quoted"}]),
        (b"\xef\xbb\xbfa: b\r\nc: d\r\n", [{"a": "b", "c": "d"}]),
        ("%YAML 1.2\n---\na: b\n", [{"a": "b"}]),
        ("a: 日本 🎉\n", [{"a": "日本 🎉"}]),
    ],
)
def test_yaml_values(source: str | bytes, expected: list[object]) -> None:
    assert values(source) == expected


def test_odd_scalars_are_noted_with_their_path() -> None:
    (document,) = load("a: {on: 08, 9: [x, 1e3], y: 7}\n")[0]
    assert [(each.keys, each.key, each.text, each.agreed) for each in document.odd] == [
        (("a", "on"), True, "on", False),
        (("a", "on"), False, "08", False),
        (("a", "9"), True, "9", True),
        (("a", "9", 1), False, "1e3", False),
        (("a", "y"), True, "y", False),
    ]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", [("IPC0010", 1, 1)]),
        (" \n\t\n", [("IPC0010", 1, 1)]),
        (b"\xef\xbb\xbf\n", [("IPC0010", 1, 1)]),
        ("a: b: c\n", [("IPC0001", 1, 5)]),
        ("a: b\r\nc: d: e\r\n", [("IPC0001", 2, 5)]),
        ("a:\n\t- b\n", [("IPC0001", 2, 1)]),
        ("a: *nobody\n", [("IPC0001", 1, 4)]),
        ("é: 1\né: 2\né: 3\n", [("IPC0003", 2, 1), ("IPC0003", 3, 1)]),
        ("1: a\n'1': b\n", [("IPC0003", 2, 1)]),
        (BOMB, [("IPC0004", 6, 36)]),
        ("a: &a [*a]\n", [("IPC0004", 1, 8)]),
        ("[" * (DEEPEST_DOCUMENT + 1), [("IPC0004", 1, DEEPEST_DOCUMENT + 1)]),
        ("a: b\n".encode("utf-16"), [("IPC0005", 1, 1)]),
        ("a: ü\nb: ü".encode("latin-1"), [("IPC0005", 1, 4)]),
        ("a: b\nc: \0\n", [("IPC0005", 2, 4)]),
        ("a: \x1b[31m\n", [("IPC0005", 1, 4)]),
        ("? [a]\n: b\n", [("IPC0007", 1, 3)]),
        (
            "a: {<<: {b: c}, d: !python/object:os.system x}\ne: !!int x\n",
            [("IPC0011", 1, 5), ("IPC0011", 1, 20), ("IPC0011", 2, 4)],
        ),
        ("a: !!set {b}\n---\nc: &c [1]\n<<: *c\n", [("IPC0011", 1, 4), ("IPC0011", 4, 1)]),
    ],
)
def test_yaml_refusals(source: str | bytes, expected: list[tuple[str, int, int]]) -> None:
    assert refusals(source) == expected


def test_documents_before_and_after_a_bad_one_are_read() -> None:
    documents, refused = load("a: b\n---\nc: d\nc: e\n---\nf: g\n---\nh: [\n")
    assert [each.value for each in documents] == [{"a": "b"}, {"f": "g"}]
    assert [each.code for each in refused] == ["IPC0003", "IPC0001"]
    assert [related.at.line for related in refused[0].also] == [3]


def test_aliases_may_stand_for_much_but_not_for_everything() -> None:
    source = "a: &a [" + "x, " * 1000 + "]\nb: [" + "*a, " * 990 + "]\n"
    assert len(values(source)[0]["b"]) == 990
    assert refusals(source.replace("]\nb: [", "]\nb: [" + "*a, " * 20))[0][0] == "IPC0004"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '{"a": [1, 1.5, true, null, "1", "\\u003c\\ud83d\\ude00"]}',
            {"a": [1, 1.5, True, None, "1", "<😀"]},
        ),
        (b'\xef\xbb\xbf{"a":\r\n"b"}\r\n', {"a": "b"}),
        ('{"kind": "NodeList", "items": [{"a": 1e2}, 2]}', {"kind": "NodeList", "items": [{"a": 100.0}, 2]}),
        ('{"kind": "Node", "items": [1]}', {"kind": "Node", "items": [1]}),
        ("[1]", [1]),
        ('{"items": {}, "kind": "List"}', {"items": {}, "kind": "List"}),
    ],
)
def test_json_values(source: str | bytes, expected: object) -> None:
    assert values(source, "x.json") == [expected]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", [("IPC0010", 1, 1)]),
        ('{"a":\n  [1, ', [("IPC0002", 2, 6)]),
        ('{"kind": "List", "items": [{"a": 1}, {"b"', [("IPC0002", 1, 42)]),
        ('{"a": 1}\n{"b": 2}', [("IPC0002", 2, 1)]),
        ('{\n  // why\n  "a": 1}', [("IPC0002", 2, 3)]),
        ('{"a": 1,\n}', [("IPC0002", 2, 1)]),
        ('{"a": NaN}', [("IPC0002", 1, 7)]),
        ('{"a": 1e999}', [("IPC0002", 1, 7)]),
        ('{"a": ' + "9" * 6000 + "}", [("IPC0002", 1, 7)]),
        ('{"a": "\\ud800x"}', [("IPC0002", 1, 8)]),
        ('{"a": "\\\\\\udc00"}', [("IPC0002", 1, 10)]),
        ('{"a": "\x01"}', [("IPC0005", 1, 8)]),
        ('{"a": 1, "b": {"c": 1, "c": 2},\n"a": 3}', [("IPC0003", 1, 24), ("IPC0003", 2, 1)]),
        ('{"kind": "List", "items": [{"a": "\\u003c", "a": 2}]}', [("IPC0003", 1, 44)]),
        ('{"kind": "List", "items": [], "items": [1]}', [("IPC0003", 1, 31)]),
        ("[" * 200 + "]" * 200, [("IPC0004", 1, 1)]),
        ("[" * 100_000, [("IPC0004", 1, 1)]),
        ('{"kind": "List", "items": [' + "[" * 200 + "]" * 200 + "]}", [("IPC0004", 1, 28)]),
        ('{"a": 1}'.encode("utf-16"), [("IPC0005", 1, 1)]),
    ],
)
def test_json_refusals(source: str | bytes, expected: list[tuple[str, int, int]]) -> None:
    assert refusals(source, "x.json") == expected
