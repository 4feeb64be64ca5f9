"""A dump is read without what nobody reads: the same model, the same findings, the same positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipamc.model.diagnostics import Place, Refused
from ipamc.read import locate
from ipamc.read.kinds import FIELDS, KINDS, unread
from ipamc.read.locate import Texts
from ipamc.read.read import documents_of, read
from ipamc.read.syntax import yaml_cut
from ipamc.read.syntax.document import Document, Keys, Unreadable
from ipamc.read.syntax.yaml_cut import cut
from ipamc.read.values import Foreign
from ipamc.workspace.disk import assets
from tests.support import depth, yaml_dumps
from tests.support.yaml_dumps import damaged, dumps, hostile

SCHEMAS = assets("schemas")
CLUSTER = b"""\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""


def outcome(data: bytes) -> tuple[object, ...]:
    """Return the documents as far as they are read, the model, and the findings with their positions."""
    documents: list[Document] = []
    said: object = ()
    try:
        documents.extend(documents_of("x.yaml", data, FIELDS, unread))
    except Unreadable as broken:
        said = broken.diagnostics
    sources = {"clusters/c/cluster.yaml": CLUSTER, "clusters/c/nodes.yaml": data}
    found: Any
    cluster = None
    try:
        cluster, found = read("c", "clusters/c", sources, SCHEMAS)
    except Refused as refused:
        found = refused.diagnostics
    as_read = [(each.at, pruned(each.value)) for each in documents]
    return as_read, said, cluster, locate.locate(found, sources), places(documents, data)


def whole(data: bytes) -> tuple[object, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipamc.read.read.cut", lambda *_: None)
        patch.setattr(locate, "cut", lambda *_: None)
        return outcome(data)


def pruned(value: Any) -> Any:
    """Return a document without what nobody reads."""
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        value = {**value, "items": [pruned(item) for item in value["items"]]}
    if not isinstance(value, dict):
        return value
    return {
        part: {
            name: field
            if name not in FIELDS or not unread(value, (part, name))
            else (only(field, FIELDS[name]) if FIELDS[name] else None)
            for name, field in fields.items()
        }
        if isinstance(fields, dict)
        else fields
        for part, fields in value.items()
    }


def only(value: Any, reads: frozenset[str]) -> Any:
    """Return a value with nothing below it but what is read, and what is not a scalar."""
    if isinstance(value, dict):
        members = {key: only(member, reads) for key, member in value.items()}
        return {
            key: members[key] if key in reads or isinstance(value[key], dict | list) else None
            for key in members
        }
    return [only(item, reads) for item in value] if isinstance(value, list) else value


def places(documents: list[Document], data: bytes) -> list[object]:
    """Return the span of every value and key that is read, of a character in each text, and the source of scalars."""
    ats: list[Place] = []
    scalars: set[Place] = set()
    for each in documents:
        for keys, value in parts(pruned(each.value)):
            at = Place("x.yaml", each.at.document, keys)
            ats += [at, Place(at.path, at.document, keys, key=True)]
            if isinstance(value, str):
                ats.append(Place(at.path, at.document, keys, offset=len(value) - 1))
            if not isinstance(value, dict | list):
                scalars.add(at)
    texts = Texts({"x.yaml": data}, ats)
    return [(at, texts.span(at), texts.source(at) if at in scalars else "") for at in ats]


def parts(value: Any, before: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    yield before, value
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        if member is not None:
            yield from parts(member, (*before, key))


@given(st.data())
@settings(max_examples=depth.examples(150))
def test_a_dump_is_read_as_if_nothing_was_cut_out(data: st.DataObject) -> None:
    text = data.draw(dumps()).encode()
    assert outcome(text) == whole(text)


@given(st.data())
@settings(max_examples=depth.examples(300))
def test_so_is_a_dump_with_lines_of_an_enemy(data: st.DataObject) -> None:
    text = data.draw(hostile(data.draw(dumps()))).encode()
    assert outcome(text) == whole(text)


@given(st.data())
@settings(max_examples=depth.examples(300))
def test_so_is_a_damaged_dump(data: st.DataObject) -> None:
    text = data.draw(damaged(data.draw(dumps()).encode()))
    assert outcome(text) == whole(text)


NODES = [yaml_dumps.node(number) for number in range(3)]
NODE = yaml_dumps.text([NODES[0]])
ENTRY = '    - fields:\n        a: {}\n        b: {}\n      time: "1"\n'

IMAGES = "    - names:\n      - a/x@sha256:0\n      - a/y:1\n      sizeBytes: 2\n    - names:\n      - a\n      sizeBytes: 4\n"


def items(*texts: str) -> bytes:
    return ("apiVersion: v1\nitems:\n" + "".join(texts) + "kind: List\n").encode()


def bare(fields: str, name: str = "n") -> str:
    """Return a node as an item of a list, with lines of `metadata`."""
    return f"- apiVersion: v1\n  kind: Node\n  metadata:\n{fields}    name: {name}\n"


def managed(value: str, name: str = "n") -> str:
    return bare(f"    managedFields:\n{value}", name)


@pytest.mark.parametrize("deeper", [False, True])
def test_the_parser_sees_a_fraction_of_a_dump(*, deeper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = yaml_dumps.text({"apiVersion": "v1", "items": NODES, "kind": "List"}, deeper=deeper).encode()
    found = cut(data, FIELDS)
    assert found
    assert found.number == 7 * len(NODES)
    assert [len(line) for line in found.text.split("\n") if "nobody-reads-this" not in line and line] == [
        len(line)
        for line in found.text.split("\n")
        if line and "nobody-reads-this" not in line and line.encode() in data.split(b"\n")
    ]
    assert found.text.count("\n") == data.count(b"\n")
    assert (
        sum(map(bool, found.text.split("\n"))) < data.count(b"\n") * 0.55
    )  # two entries and images, not five and fifty
    monkeypatch.setattr(
        "ipamc.read.read.decode", None
    )  # the whole text is not made, neither here nor for findings
    monkeypatch.setattr(locate, "scan_yaml", None)
    assert list(documents_of("x.yaml", data, FIELDS, unread))
    assert (
        Texts({"x.yaml": data}, [at := Place("x.yaml", 0, ("items", 2, "kind"))])
        .span(at)
        .source.endswith("kind: Node")
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2, managed(ENTRY) + managed(ENTRY.replace("1", "2"), "m")),
        (2, managed(ENTRY) + managed(ENTRY.replace("b", "c"), "m")),
        (2, managed("      a: b\n") + managed("      - a: b\n      - c\n", "m")),  # deeper than their key
        (2, managed(ENTRY + ENTRY) + managed("    - x\n    - y\n", "m")),
        (1, managed("    - text: 'a\n\n        b'\n      more: |\n        - x\n\n")),
        (0, managed("    - {a: b}\n")),
        (0, managed("    - {a: {},\n      b: []}\n")),
        (1, managed("    - a: {}\n      b: []\n    - {}\n    - []\n")),
        (1, managed("    - a: {}\n") + managed('    - [v:"1": {}\n      ]\n', "m") + managed('    - [k:{"uid":"1"}: {}\n      ]\n', "m")),
        (0, managed(ENTRY.replace("b", "a"))),  # a key twice
        (1, managed(ENTRY) + managed(ENTRY.replace("b", "a"), "m")),  # the same after an entry that is good
        (1, managed('    - v:"1": {}\n      v:"2": {}\n') + managed('    - v:"1": {}\n      v:"1": {}\n', "m")),
        (2, managed('    - v:"1": {}\n      v:"2": {}\n') + managed('    - v:"3": {}\n      v:"4": {}\n', "m")),
        (0, managed('    - v:"1": {}\n      "v:\\"2\\"": {}\n') + managed('    - v:"2": {}\n      "v:\\"2\\"": {}\n', "m")),
        (0, managed('    - \'a: ""\n      b\'\n') + managed("    - 'a: 'c'\n      b'\n", "m")),  # no value ends that line
        (0, managed("    - a: b\n        c\n") + managed("    - a: b d\n    - e\n       f: g\n", "m")),
        (0, managed("    - &a x\n") + bare("    uid: *a\n", "m")),
        (0, bare("    uid: &a x\n") + managed("    - &a y\n", "m") + bare("    uid: *a\n", "o")),
        (1, bare("    uid: &a x\n") + managed(ENTRY, "m") + bare("    uid: *a\n", "o")),
        (0, managed("    - !x y\n")),
        (1, managed("    - !!str y: z\n")),
        (0, managed("    - <<: {}\n")),
        (0, managed("    - [a]: b\n")),
        (0, managed("    - a:\tb: c\n")),
        (0, managed("    - a: b\r\n")),
        (0, managed("    - a: b\n      c: d\rname: e\n")),
        (0, managed("    - é: x\n")),
        (0, managed("    - a\x85name: x\n")),
        (0, managed("    - %TAG ! x\n")),
        (0, managed("    - a: b\n     c: d\n")),
        (1, managed("      - a: b\n    - c: d\n")),
        (0, managed("      text\n    - more\n")),
        (0, managed("    -a: b\n")),
        (0, managed("      text\n")),
        (0, managed("    # a comment\n")),
        (1, managed("    - y: 08\n      on: n\n      1: 2:3\n")),
        (1, managed(IMAGES)),
        (1, managed(IMAGES.replace("  - a", "    - a"))),
        (1, managed(IMAGES.replace("      sizeBytes: 2\n", ""))),
        (1, managed(IMAGES.replace("    - names", "    - sizeBytes: 3\n    - names"))),
        (0, managed(IMAGES.replace("  - a", "    - a", 1).replace("y:1", "y:1\n      - b"))),
        (0, managed(IMAGES.replace("2\n", "2\n      sizeBytes: 3\n"))),
        (1, managed(IMAGES.replace("@sha256:0", "@sha256:0\n        b"))),
        (1, managed(IMAGES.replace("@sha256:0", "@sha256:"))),
        (0, managed("      # a comment\n")),
        (0, managed(ENTRY + "    # a comment\n")),  # in doubt
        (0, managed(ENTRY + "    : x\n")),
        (0, managed(ENTRY + "    [x]: y\n")),
        (0, managed("    - " + "- " * 97 + "a: b\n")),
        (0, managed("    - " + "[" * 97 + "]" * 97 + "\n")),
        (2, managed(ENTRY) + managed(ENTRY)[:-12]),
        (1, bare("    managedFields:\n" + ENTRY + "    managedFields:\n    - é\n")),
        (2, bare(("    managedFields:\n" + ENTRY) * 2)),  # refused by the reader of the cut text
        (1, bare("    labels:\n      managedFields:\n        a: b\n")),
        (1, bare('    labels:\n      x: "y\n    managedFields:\n    - a: b\n    name: z"\n')),
        (1, bare("    labels:\n      x: |\n        managedFields:\n        - a: b\n        name: z\n")),
        (1, bare("    labels:\n      x: y\n        managedFields:\n          - a\n      z: y\n")),
        (1, bare("    labels: {x: y,\n    managedFields:\n      - a\n    name: z}\n")),
        (0, bare("    labels: {x: y,\n    managedFields:\n      - a\n    }\n")),
        (0, bare("    labels: {x: y,\n    managedFields:\n      {a: b}\n    , z: y}\n")),
        (0, bare("    ? managedFields:\n        - a\n    : x\n").replace("? m", "?\n      m", 1)),
        (0, managed(ENTRY) + bare("    labels: {a: nobody-reads-this}\n", "m")),
        (0, managed(ENTRY) + bare('    labels: {a: "nobody-reads-this", "\\x6eobody-reads-this": x}\n', "m")),
        (1, managed(ENTRY) + bare('    labels: {a: "\\x6eobody-reads-this"}\n', "m")),
        (1, managed(ENTRY).replace("v1", "ipamc/v1alpha1").replace("Node", "IPPool")),
        (1, managed(ENTRY).replace("Node", "Deployment")),
        (1, managed(ENTRY).replace("  kind: Node\n", "")),
    ],
)  # fmt: skip
def test_a_value_is_cut_out_where_it_is_certain(number: int, text: str) -> None:
    for data in (items(text), b"\xef\xbb\xbf" + items(text), items(text) + b"---\n" + items(bare("", "z"))):
        found = cut(data, FIELDS)
        assert (found.number if found else 0) == number
        assert outcome(data) == whole(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("pods: 1", "pods: 2"),
        ("'pods': 1", "'pods': 2"),
        ("'pods': '1'", "'pods': '2'"),
        ('"p\\x6fds": "1"', '"p\\x6fds": "2"'),
        ("pods : 1", "pods : 2"),
        ("? pods\n      : 1", "? pods\n      : 2"),
        ("pods: 1\n      x.com/pods: 3", "pods: 1\n      x.com/pods: 4"),
        ("cpu: 1", "cpu: 2"),
        ('cpu: "1"', 'cpu: "2"'),
        ('cpu: "1"\n      pods: "3"', "cpu: '2'\n      pods: \"4\""),
        ("cpu: 1\n        2", "cpu: y\n        2"),
        ("pods: y", "pods: n"),
    ],
)
@pytest.mark.parametrize("field", ["allocatable", "capacity"])
def test_what_is_read_of_a_value_is_that_of_each_node(field: str, first: str, second: str) -> None:
    nodes = [
        bare("", name) + f"  status:\n    {field}:\n      {text}\n"
        for name, text in (("a", first), ("b", second))
    ]
    assert outcome(items(*nodes)) == whole(items(*nodes))


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_fields_are_those_that_kinds_do_not_read(name: str) -> None:
    known = 0
    for kind in KINDS:
        schema = msgspec.json.decode(SCHEMAS[kind.schema])
        for part in ("metadata", "status"):
            if not unread({"apiVersion": kind.api_versions[0], "kind": kind.name}, (part, name)):
                continue
            known += 1
            assert issubclass(kind.shape, Foreign)
            assert names(as_schema(msgspec.inspect.type_info(kind.shape)), part, name) <= FIELDS[name]
            assert names(schema, part, name, defined=schema.get("$defs", {})) <= FIELDS[name]
    assert known


def names(schema: Any, *path: str, defined: Any = None) -> set[str]:
    """Return the names of all properties below a path of a schema."""
    found: set[str] = set()
    if "$ref" in schema:
        return names(defined[schema["$ref"].rpartition("/")[2]], *path, defined=defined)
    for below in (*schema.get("anyOf", ()), schema.get("items")):
        if isinstance(below, dict):
            found |= names(below, *path, defined=defined)
    for key, below in schema.get("properties", {}).items():
        if not path:
            found |= {key, *names(below, defined=defined)}
        elif path[0] == key:
            found |= names(below, *path[1:], defined=defined)
    return found


def as_schema(shape: Any) -> dict[str, Any]:
    """Return what the typed decoder reads as a JSON Schema has it."""
    return {
        "properties": {each.encode_name: as_schema(each.type) for each in getattr(shape, "fields", ())},
        "anyOf": [as_schema(each) for each in getattr(shape, "types", ())],
        "items": as_schema(shape.item_type) if hasattr(shape, "item_type") else None,
    }


def test_the_names_are_found() -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "Node")
    schema = msgspec.json.decode(SCHEMAS[kind.schema])
    read = {"type", "status", "reason"}
    assert names(as_schema(msgspec.inspect.type_info(kind.shape)), "status", "conditions") == read
    assert names(schema, "status", "conditions", defined=schema.get("$defs", {})) == read


def test_a_value_of_any_length_ends_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for longest in range(1, 100):
        monkeypatch.setattr(yaml_cut, "_LONGEST", longest)
        data = items(managed(ENTRY), managed(ENTRY, "m"))
        found = cut(data, FIELDS)
        assert (found.number if found else 0) == (2 if longest >= len(ENTRY) else 0)
        assert outcome(data) == whole(data)


def test_what_stays_is_not_read_again_for_each_field_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()

    def scalars(text: str) -> None:
        read.append(len(text))

    monkeypatch.setattr(yaml_cut, "_scalars", scalars)
    nested = "".join(f"{' ' * indent}managedFields:\n" for indent in range(2, 500))
    assert cut(items(nested + " " * 500 + "a: b\n" * 1_000), FIELDS) is None
    assert len(read) <= 8
    read.clear()
    monkeypatch.setattr(yaml_cut, "_USELESS", 1_000)
    assert cut(items(*(managed(f"    - a{number}: b\n") for number in range(1_000))), FIELDS) is None
    assert len(read) < 200
