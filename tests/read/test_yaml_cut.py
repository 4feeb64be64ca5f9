"""A dump is read without what nobody reads: the same model, the same findings, the same positions."""

from __future__ import annotations

from typing import Any

import msgspec
import msgspec.inspect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipamc.model.diagnostics import Place, Refused
from ipamc.read import locate
from ipamc.read.kinds import KINDS
from ipamc.read.locate import Texts
from ipamc.read.read import read
from ipamc.read.syntax.yaml_cut import UNREAD, read_cut
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
    """Return the model, the findings with their positions, and the spans of nodes and of values in them."""
    sources = {"clusters/c/cluster.yaml": CLUSTER, "clusters/c/nodes.yaml": data}
    found: Any
    cluster = None
    try:
        cluster, found = read("c", "clusters/c", sources, SCHEMAS)
    except Refused as refused:
        found = refused.diagnostics
    here: list[Any] = [*cluster.nodes, *cluster.cilium_nodes, *cluster.pools] if cluster else []
    places = [each.at for each in here if isinstance(each.at, Place)]
    places += [at / "metadata" / "name" for at in places] + [
        at / "metadata" / "labels" / "rack" for at in places
    ]
    texts = Texts(sources, places)
    return cluster, locate.locate(found, sources), [texts.span(at) for at in places]


def whole(data: bytes) -> tuple[object, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipamc.read.read.read_cut", lambda *_: None)
        patch.setattr(locate, "read_cut", lambda *_: None)
        return outcome(data)


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
def test_the_parser_sees_a_fraction_of_a_dump(*, deeper: bool) -> None:
    data = yaml_dumps.text({"apiVersion": "v1", "items": NODES, "kind": "List"}, deeper=deeper).encode()
    found = read_cut("x.yaml", data)
    assert found
    text, (document,) = found
    lines = zip(data.decode().split("\n"), text.split("\n"), strict=True)
    assert sum(after.startswith(before) for before, after in lines) < data.count(b"\n") * 0.75
    assert [set(item["status"]) for item in document.value["items"]] == [
        set(node["status"]) for node in NODES
    ]
    assert outcome(data) == whole(data)


@pytest.mark.parametrize(
    ("is_cut", "text"),
    [
        (True, managed(ENTRY) + managed(ENTRY.replace("1", "2"), "m")),
        (True, managed(ENTRY) + managed(ENTRY.replace("b", "c"), "m")),
        (True, managed("      a: b\n") + managed("      - a: b\n      - c\n", "m")),  # deeper than their key
        (True, managed(ENTRY + ENTRY) + managed("    - x\n    - y\n", "m")),
        (False, managed("    - text: 'a\n\n        b'\n      more: |\n        - x\n\n")),
        (False, managed("    - {a: b}\n")),
        (False, managed("    - {a: {},\n      b: []}\n")),
        (True, managed("    - a: {}\n      b: []\n    - {}\n    - []\n")),
        (False, managed("    - a: {}\n") + managed('    - [v:"1": {}\n      ]\n', "m") + managed('    - [k:{"uid":"1"}: {}\n      ]\n', "m")),
        (False, managed(ENTRY.replace("b", "a"))),  # a key twice
        (False, managed(ENTRY) + managed(ENTRY.replace("b", "a"), "m")),  # the same after an entry that is good
        (False, managed('    - v:"1": {}\n      v:"2": {}\n') + managed('    - v:"1": {}\n      v:"1": {}\n', "m")),
        (True, managed('    - v:"1": {}\n      v:"2": {}\n') + managed('    - v:"3": {}\n      v:"4": {}\n', "m")),
        (False, managed('    - v:"1": {}\n      "v:\\"2\\"": {}\n') + managed('    - v:"2": {}\n      "v:\\"2\\"": {}\n', "m")),
        (False, managed('    - \'a: ""\n      b\'\n') + managed("    - 'a: 'c'\n      b'\n", "m")),  # no value ends that line
        (False, managed("    - a: b\n        c\n") + managed("    - a: b d\n    - e\n       f: g\n", "m")),
        (False, managed("    - &a x\n") + bare("    uid: *a\n", "m")),
        (False, bare("    uid: &a x\n") + managed("    - &a y\n", "m") + bare("    uid: *a\n", "o")),
        (True, bare("    uid: &a x\n") + managed(ENTRY, "m") + bare("    uid: *a\n", "o")),
        (False, managed("    - !x y\n")),
        (True, managed("    - !!str y: z\n")),
        (False, managed("    - <<: {}\n")),
        (False, managed("    - [a]: b\n")),
        (False, managed("    - a:\tb: c\n")),
        (False, managed("    - a: b\r\n")),
        (False, managed("    - a: b\n      c: d\rname: e\n")),
        (False, managed("    - é: x\n")),
        (False, managed("    - a\x85name: x\n")),
        (False, managed("    - %TAG ! x\n")),
        (False, managed("    - a: b\n     c: d\n")),
        (False, managed("      - a: b\n    - c: d\n")),
        (False, managed("      text\n    - more\n")),
        (False, managed("    -a: b\n")),
        (False, managed("      text\n")),
        (False, managed("    # a comment\n")),
        (True, managed("    - y: 08\n      on: n\n      1: 2:3\n")),
        (True, managed(IMAGES)),
        (True, managed(IMAGES.replace("  - a", "    - a"))),
        (True, managed(IMAGES.replace("      sizeBytes: 2\n", ""))),
        (True, managed(IMAGES.replace("    - names", "    - sizeBytes: 3\n    - names"))),
        (False, managed(IMAGES.replace("  - a", "    - a", 1).replace("y:1", "y:1\n      - b"))),
        (False, managed(IMAGES.replace("2\n", "2\n      sizeBytes: 3\n"))),
        (False, managed(IMAGES.replace("@sha256:0", "@sha256:0\n        b"))),
        (True, managed(IMAGES.replace("@sha256:0", "@sha256:"))),
        (False, managed("      # a comment\n")),
        (False, managed(ENTRY + "    # a comment\n")),  # in doubt
        (False, managed(ENTRY + "    : x\n")),
        (False, managed(ENTRY + "    [x]: y\n")),
        (False, managed("    - " + "[" * 97 + "]" * 97 + "\n")),
        (True, managed(ENTRY) + managed(ENTRY)[:-12]),
        (False, bare("    managedFields:\n" + ENTRY + "    managedFields:\n    - é\n")),
        (False, bare(("    managedFields:\n" + ENTRY) * 2)),  # refused by the reader of the cut text
        (False, bare("    labels:\n      managedFields:\n        a: b\n")),
        (False, bare('    labels:\n      x: "y\n    managedFields:\n    - a: b\n    name: z"\n')),
        (False, bare("    labels:\n      x: |\n        managedFields:\n        - a: b\n        name: z\n")),
        (False, bare("    labels:\n      x: y\n        managedFields:\n          - a\n      z: y\n")),
        (False, bare("    labels: {x: y,\n    managedFields:\n      - a\n    name: z}\n")),
        (False, bare("    labels: {x: y,\n    managedFields:\n      - a\n    }\n")),
        (False, bare("    labels: {x: y,\n    managedFields:\n      {a: b}\n    , z: y}\n")),
        (False, bare("    ? managedFields:\n        - a\n    : x\n").replace("? m", "?\n      m", 1)),
        (False, managed(ENTRY).replace("v1", "ipamc/v1alpha1").replace("Node", "IPPool")),
        (True, managed(ENTRY).replace("Node", "Deployment")),
        (False, managed(ENTRY).replace("  kind: Node\n", "")),
    ],
)  # fmt: skip
def test_a_value_is_cut_out_where_it_is_certain(*, is_cut: bool, text: str) -> None:
    for data in (items(text), b"\xef\xbb\xbf" + items(text), items(text) + b"---\n" + items(bare("", "z"))):
        assert outcome(data) == whole(data)
        assert bool(read_cut("x.yaml", data)) == is_cut


def test_the_fields_are_those_that_no_kind_reads() -> None:
    for kind in KINDS:
        if issubclass(kind.shape, Foreign):
            schema = msgspec.json.decode(SCHEMAS[kind.schema])
            for part, fields in UNREAD.items():
                for properties in (as_schema(msgspec.inspect.type_info(kind.shape)), schema):
                    assert not set(fields) & inner(properties, part, properties.get("$defs", {}))


def inner(schema: Any, part: str, defined: Any) -> set[str]:
    """Return the names of the properties of a part."""
    found = set[str]()
    below = schema.get("properties", {}).get(part, {})
    below = defined[below["$ref"].rpartition("/")[2]] if "$ref" in below else below
    for each in (below, *below.get("anyOf", ())):
        found |= set(each.get("properties", {}))
    return found


def as_schema(shape: Any) -> dict[str, Any]:
    """Return what the typed decoder reads as a JSON Schema has it."""
    return {
        "properties": {each.encode_name: as_schema(each.type) for each in getattr(shape, "fields", ())},
        "anyOf": [as_schema(each) for each in getattr(shape, "types", ())],
    }


def test_the_names_are_found() -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "Node")
    schema = msgspec.json.decode(SCHEMAS[kind.schema])
    for properties in (as_schema(msgspec.inspect.type_info(kind.shape)), schema):
        assert {"allocatable", "conditions"} <= inner(properties, "status", properties.get("$defs", {}))
