"""What is left out of files: documents and items of nodes, where that is certain; all else is read."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ipamc.model.diagnostics import Place, Span
from ipamc.read.locate import Texts
from ipamc.read.narrow import NO_NODES, LeftOut, narrow, only_node

POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
"""
INVENTORY = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
- name: n-1
- name: n-10
  labels: {rack: a}
- {name: n-2}
"""
NODES = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    labels:
      kubernetes.io/hostname: n-1
    name: n-1
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      note: "a line that
        goes on"
    name: n-2
- apiVersion: cilium.io/v2
  kind: CiliumNode
  metadata:
    name: n-1
    ownerReferences:
    - kind: Node
kind: List
metadata:
  resourceVersion: ""
"""


def kept(text: str, left_out: LeftOut, path: str = "a.yaml") -> str | None:
    """Return what is read of a file; None if it is left out."""
    found = narrow({path: text.encode()}, left_out).get(path)
    return None if found is None else found.decode()


def test_a_file_of_nodes_is_left_out() -> None:
    assert kept(INVENTORY, NO_NODES) is None
    assert kept(f"# all of them\n---\n{INVENTORY}---\n{INVENTORY}", NO_NODES) is None
    assert kept(json.dumps({"kind": "NodeInventory", "nodes": [{"name": "n-1"}]}), NO_NODES, "a.json") is None
    assert kept(json.dumps({"kind": "NodeList", "items": [{"metadata": {}}]}), NO_NODES, "a.json") is None


def test_documents_of_nodes_are_left_out_of_a_stream() -> None:
    assert kept(f"{POOL}---\n{INVENTORY}---\n{POOL}", NO_NODES) == f"{POOL}---\n{POOL}"


def test_items_of_nodes_are_left_out_of_a_list() -> None:
    items = NODES.split("\n- ")
    assert kept(NODES, NO_NODES) == "\n- ".join([items[0], items[3]])
    assert kept(NODES, only_node("n-1")) == "\n- ".join([items[0], items[1], items[3]])
    assert kept(NODES, only_node("n-2")) == "\n- ".join(
        [items[0], items[2] + "\nkind: List" + NODES.split("\nkind: List")[1]]
    )


def test_one_entry_of_an_inventory_is_read() -> None:
    head, *entries = INVENTORY.split("- ", 3)
    for name, entry in zip(("n-1", "n-10"), entries, strict=False):
        assert kept(INVENTORY, only_node(name)) == f"{head}- {entry}"
    assert kept(INVENTORY, only_node("n-3")) is None
    indented = INVENTORY.replace("\n- ", "\n  - ").replace("\n  labels", "\n    labels")
    assert kept(indented, only_node("n-1")) == f"{head}  - {entries[0]}"


def test_entries_with_a_pattern_are_read() -> None:
    head, *entries = INVENTORY.split("- ", 3)
    for pattern in (
        '{names: "n-{20..40}", planned: true}',
        '{planned: true, "names" : "n-{20..40}"}',
        'names: "n-{20..40}"\n  planned: true',
        "planned: true\n  names:\n    n-{20..40}",
        "? names\n  : n-{20..40}\n  planned: true",
    ):
        text = f"{INVENTORY}- {pattern}\n"
        for node, entry in (("n-1", entries[0]), ("n-25", None)):
            found = kept(text, only_node(node))
            assert found == (f"{head}- {entry}- {pattern}\n" if entry else f"{head}- {pattern}\n"), pattern
        assert kept(text, NO_NODES) is None
    nodes = [{"name": "a"}, {"names": "n-{1..4}", "planned": True}]
    inventory = json.dumps({"kind": "NodeInventory", "nodes": nodes})
    assert json.loads(kept(inventory, only_node("n-3"), "a.json") or "")["nodes"] == nodes[1:]
    hidden = inventory.replace("names", "n\\u0061mes")
    assert kept(hidden, only_node("n-3"), "a.json") == hidden


def test_items_of_json_keep_its_commas() -> None:
    items = [{"kind": "Node", "metadata": {"name": f"n-{number}"}} for number in range(4)]
    pool = {"kind": "IPPool", "metadata": {"name": "n-2"}}
    for style in ({}, {"indent": 2}, {"separators": (",", ":")}):
        text = json.dumps({"kind": "List", "items": [*items, pool, items[0]]}, **style)
        assert json.loads(kept(text, NO_NODES, "a.json") or "") == {"kind": "List", "items": [pool]}
        some = json.loads(kept(text, only_node("n-0"), "a.json") or "")
        assert some == {"kind": "List", "items": [items[0], pool, items[0]]}
        inventory = json.dumps({"kind": "NodeInventory", "nodes": [{"name": "a"}, {"name": "b"}]}, **style)
        assert json.loads(kept(inventory, only_node("b"), "a.json") or "")["nodes"] == [{"name": "b"}]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{INVENTORY}---\n{POOL.replace('IPPool', 'IPPol')}", id="a kind with a typo"),
        pytest.param(f"{INVENTORY}---\nmetadata: {{}}\n", id="a document without a kind"),
        pytest.param(INVENTORY.replace("NodeInventory", '"\\x4eodeInventory"'), id="a kind with escapes"),
        pytest.param(f'{INVENTORY}---\n"k\\\nind": IPPool\n', id="a key that goes on in the next line"),
        pytest.param(f"{INVENTORY}---\n? kind\n: IPPool\n", id="a key with a question mark"),
        pytest.param(f"{INVENTORY}...\nkind: IPPool\n", id="a document without a marker"),
        pytest.param(INVENTORY.replace("\n", "\r\n"), id="other line breaks"),
        pytest.param(f"{INVENTORY}note: a\N{LINE SEPARATOR}kind: x\n", id="line breaks of YAML 1.1"),
        pytest.param("", id="an empty file"),
        pytest.param("# nothing\n", id="comments"),
        pytest.param("nodes: [", id="no kind"),
    ],
)
def test_what_may_be_a_pool_is_read(text: str) -> None:
    inventory = kept(text, NO_NODES)
    assert inventory is not None
    assert text.replace(INVENTORY, "").removeprefix("---\n") in inventory


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'kind: NodeInventory\nnodes:\n- name: "a\n- name: n-1\n"\n', id="an entry in double quotes"
        ),
        pytest.param("kind: NodeInventory\nnodes:\n- name: 'it''s\n- name: n-1\n'\n", id="in single quotes"),
        pytest.param("kind: NodeInventory\nnodes:\n- {name: a,\n- name: n-1\n}\n", id="in a flow mapping"),
        pytest.param("kind: NodeInventory\nnodes:\n- [a,\n- name: n-1\n]\n", id="in a flow sequence"),
        pytest.param(
            'kind: NodeInventory\nnote: "\nnodes:\n- name: n-1\n"\nnodes: []\n', id="a list in quotes"
        ),
        pytest.param(
            "kind: NodeInventory\nnodes:\n- name: a\n  labels: &x {a: b}\n- name: n-1\n  labels: *x\n",
            id="an alias",
        ),
        pytest.param("kind: NodeInventory\nnodes:\n- name: a\n-\n  name: n-1\n", id="a dash alone"),
        pytest.param("kind: NodeInventory\nnodes:\n- name: a\n\t- name: n-1\n", id="a tab"),
        pytest.param("kind: NodeInventory\nnodes:\n  - name: a\n - name: n-1\n", id="a dash before the list"),
        pytest.param("{kind: NodeInventory, nodes: [{name: n-1}]}\n", id="flow style"),
        pytest.param("kind: NodeInventory\nnodes:\n- name: a\nnodes:\n- name: n-1\n", id="two lists"),
        pytest.param('kind: NodeInventory\nnodes:\n- name: a\n- name: "n\\x2d1"\n', id="an escape"),
    ],
)
def test_a_list_that_cannot_be_cut_for_certain_is_read_as_a_whole(text: str) -> None:
    assert kept(text, only_node("n-1")) == text


def test_json_that_hides_a_name_is_read_as_a_whole() -> None:
    text = '{"kind": "NodeInventory", "nodes": [{"name": "a"}, {"name": "n\\u002d1"}]}'
    assert kept(text, only_node("n-1"), "a.json") == text
    escaped = '{"kind": "NodeInventory", "nodes": [{"name": "a"}, {"name": "n-1", "note": "\\u003c"}]}'
    assert kept(escaped, only_node("n-1"), "a.json") == escaped.replace('{"name": "a"}, ', "")
    twice = '{"kind": "NodeInventory", "nodes": [], "nodes": [{"name": "n-1"}]}'
    assert kept(twice, only_node("n-1"), "a.json") == twice
    pool = '{"\\u006bind": "\\u0049PPool"}'
    assert kept(pool, NO_NODES, "a.json") == pool


def test_places_of_what_is_read_are_those_of_the_file() -> None:
    for text in (
        NODES,
        NODES.replace("a line", "größe"),
        json.dumps(
            {
                "note": "ü",
                "kind": "List",
                "items": [{"kind": "Node"}, {"kind": "Node", "metadata": {"name": "n-2"}}],
            },
            ensure_ascii=False,
        ),
    ):
        path = "a.yaml" if text.startswith("api") else "a.json"
        whole = {path: text.encode()}
        some = narrow(whole, only_node("n-2"))
        assert len(some[path]) < len(whole[path])
        name, first = (Place(path, 0, ("items", index, "metadata", "name")) for index in (1, 0))
        assert _span(some, first) == _span(whole, name) != Span(path)


def test_lines_that_end_in_returns_are_counted() -> None:
    text = json.dumps({"kind": "NodeInventory", "nodes": [{"name": "a"}, {"name": "b"}]}, indent=1)
    whole = {"a.json": text.replace("\n", "\r\n").encode()}
    some = narrow(whole, only_node("b"))
    assert _span(some, Place("a.json", 0, ("nodes", 0))) == _span(whole, Place("a.json", 0, ("nodes", 1)))


def _span(sources: Mapping[str, bytes], at: Place) -> Span:
    return Texts(sources, [at]).span(at)
