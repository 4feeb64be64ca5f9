"""Dumps of kubectl, in every form in which people have them, and what is no dump."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import parse_block
from ipamc.model.diagnostics import Refused, Span
from ipamc.model.dump import Dump
from ipamc.read.dump.kinds import read_object
from ipamc.read.dump.read import read_dump
from tests.review.live.objects import cilium_node, node, pool
from tests.support import dumps

LIST = dumps.kubectl(
    dumps.node("n1", "10.0.0.0/24", ip="192.168.0.1"),
    dumps.cilium_node("n1", "10.0.0.0/24", router=["10.0.0.7"]),
    dumps.pod("web", "n1", "10.0.0.9"),
    dumps.config_map(ipam="cluster-pool"),
    dumps.config_map("another", "default", key="value"),
)


def pieces(text: str, size: int) -> Iterator[bytes]:
    """Yield a text as bytes, so many at a time."""
    data = text.encode()
    for start in range(0, len(data), size):
        yield data[start : start + size]


def read(*texts: str, size: int = 1 << 20) -> Dump:
    dump, found = read_dump([(f"dump-{index}", pieces(text, size)) for index, text in enumerate(texts)])
    assert not found
    return dump


def without_places(dump: Dump) -> list[object]:
    found: list[object] = [
        msgspec.structs.replace(value, file="", line=0)
        for values in (dump.pods, dump.others, dump.pools, dump.node_configs)
        for value in values
    ]
    found += [msgspec.structs.replace(node, at=Span("")) for node in dump.nodes]
    found += [msgspec.structs.replace(seen, at=Span("")) for seen in dump.cilium_nodes]
    return found


def in_parts(text: str) -> list[str]:
    """Return the objects of a list as files of their own."""
    return [json.dumps(item) for item in json.loads(text)["items"]]


def typed(text: str) -> list[str]:
    """Return a list of each kind as the apiserver sends it: items have no kind."""
    found: dict[tuple[str, str], list[object]] = {}
    for item in json.loads(text)["items"]:
        found.setdefault((item.pop("apiVersion"), item.pop("kind")), []).append(item)
    return [
        json.dumps({"kind": f"{kind}List", "apiVersion": version, "metadata": {}, "items": items})
        for (version, kind), items in found.items()
    ]


def listed(*texts: str) -> dict[str, object]:
    """Return lists as the items of a list."""
    return {"apiVersion": "v1", "kind": "List", "items": [json.loads(text) for text in texts]}


def one_by_one() -> list[str]:
    """Return what `kubectl get KIND -o json` prints of each kind, and of one that the cluster has none of."""
    items = json.loads(LIST)["items"]
    kinds = [*dict.fromkeys(item["kind"] for item in items), "ClusterCIDR"]
    return [dumps.kubectl(*[item for item in items if item["kind"] == kind]) for kind in kinds]


FORMS = {
    "kubectl -o json": [LIST],
    "on one line": [json.dumps(json.loads(LIST))],
    "jq": [json.dumps(json.loads(LIST), indent=2)],
    "kubectl -o yaml": [yaml.safe_dump(json.loads(LIST))],
    "YAML documents": ["---\n".join(yaml.safe_dump(item) for item in json.loads(LIST)["items"])],
    "a file for each object": in_parts(LIST),
    "a typed list for each kind": typed(LIST),
    "with a byte order mark": ["\ufeff" + LIST],
    "one file twice": [LIST, LIST],
    "kubectl >> dump.json": ["".join(one_by_one())],
    "kubectl >> dump.json, an empty list first": ["".join(reversed(one_by_one()))],
    "kubectl >> dump.json, with one object": [LIST + json.dumps(json.loads(LIST)["items"][0], indent=4)],
    "JSON documents without a break": [json.dumps(json.loads(LIST)) * 2],
    "JSON documents as YAML has them": ["\n---\n".join(in_parts(LIST))],
    "jq -c '.items[]'": ["\n".join(in_parts(LIST))],
    "jq --slurp": [json.dumps(listed(*one_by_one()), indent=2)],
    "a list of typed lists as kubectl prints one": [dumps.kubectl(*map(json.loads, typed(LIST)))],
    "lists in lists": [json.dumps(listed(*in_parts(LIST)[:2], json.dumps(listed(*one_by_one()[2:]))))],
    "lists in a list of YAML": [yaml.safe_dump(listed(*typed(LIST)))],
}


@pytest.mark.parametrize("texts", FORMS.values(), ids=FORMS)
def test_every_form_is_one_cluster(texts: list[str]) -> None:
    assert without_places(read(*texts)) == without_places(read(LIST))


@pytest.mark.parametrize("text", [LIST, "\n\n" + "".join(one_by_one())], ids=["one", "several"])
@given(st.integers(1, 400))
def test_pieces_may_have_any_size(text: str, size: int) -> None:
    assert read(text, size=size) == read(text)


def test_what_is_kept() -> None:
    dump = read(LIST)
    (node,), (cilium_node,), (pod,) = dump.nodes, dump.cilium_nodes, dump.pods
    assert node.pod_cidrs == cilium_node.blocks == (parse_block("10.0.0.0/24"),)
    assert (node.ready, node.max_pods, node.kubelet, node.uid) == (True, 110, "v1.33.4", "uid-n1")
    assert (pod.node, pod.namespace, pod.addresses) == ("n1", "default", ((4, 0x0A000009),))
    assert cilium_node.owner_uid == "uid-n1"
    assert [item.name for item in dump.others] == ["cilium-config"]
    assert dump.newest == "2026-11-22T12:00:00Z"
    assert dump.node_by_ip == {(4, 0xC0A80001): "n1"}


def test_an_object_has_its_line() -> None:
    assert [node.at for node in read(LIST).nodes] == [Span("dump-0", 4, 1, 1)]
    assert LIST.splitlines()[read(LIST).pods[0].line - 1] == "        {"
    for several in ("\n\n" + "".join(one_by_one()), "".join(reversed(one_by_one()))):
        objects = [(node.name, node.at) for node in read(several).nodes]
        objects += [(pod.name, pod.at) for pod in read(several).pods]
        for name, at in objects:
            assert isinstance(at, Span)
            part = "\n".join(several.splitlines()[at.line - 1 :])
            assert json.JSONDecoder().raw_decode(part.lstrip())[0]["metadata"]["name"] == name
    text = yaml.safe_dump(json.loads(LIST))
    assert text.splitlines()[read(text).pods[0].line - 1].startswith("- ")


def changed(**fields: object) -> str:
    whole = json.loads(LIST)
    whole["items"][0].update(fields)
    return json.dumps(whole, indent=4)


REFUSED = {
    "empty": ("", "IPC0801", "the file is empty"),
    "a table": ("NAME   STATUS\nn1   Ready\n", "IPC0801", "this is a table of kubectl, not its objects"),
    "a word": ("hello", "IPC0801", "neither JSON nor YAML from kubectl"),
    "cut off in JSON": (
        LIST[: len(LIST) // 2],
        "IPC0801",
        "the file ends inside its list: it was cut off in the item that begins here",
    ),
    "cut off after the items": (LIST[:-5], "IPC0801", "the file ends inside a value: it was cut off"),
    "cut off in YAML": (
        yaml.safe_dump(json.loads(LIST)).split("kind: List")[0],
        "IPC0801",
        "the file ends inside its list: it was cut off",
    ),
    "one page": (
        LIST.replace('"resourceVersion": ""', '"continue": "abc"'),
        "IPC0802",
        "the list is one page of several: metadata.continue is set",
    ),
    "a wrong type": (
        changed(spec={"podCIDRs": 7}),
        "IPC0804",
        "a Node: Expected `array | null`, got `int` - at `$.spec.podCIDRs`",
    ),
    "no kind": (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"a": 1}]}),
        "IPC0804",
        "an object: it has no kind",
    ),
    "no Nodes": (
        dumps.kubectl(dumps.pod("web", "n1", "10.0.0.9")),
        "IPC0806",
        "the dump has no Nodes: only Pod",
    ),
    "nothing": (dumps.kubectl(), "IPC0806", "the dump has no Nodes: no objects"),
    "cut off in the second document": (
        LIST + LIST[: len(LIST) // 2],
        "IPC0801",
        "the file ends inside its list: it was cut off in the item that begins here",
    ),
    "words behind JSON": (LIST + "done\n", "IPC0801", "neither JSON nor YAML from kubectl"),
    "an error behind JSON": (
        LIST + "error: the server does not have a resource type\n",
        "IPC0801",
        "this is an error of kubectl, not its objects",
    ),
    "lists deep in one another": (
        '{"kind": "List", "items": [' * 10 + "]}" * 10,
        "IPC0801",
        "lists are nested more than 8 levels deep",
    ),
    "lists deep in one another in YAML": (
        "#\n" + '{"kind": "List", "items": [' * 10 + "]}" * 10,
        "IPC0801",
        "lists are nested more than 8 levels deep",
    ),
    "one page among lists": (
        json.dumps(listed(LIST.replace('"resourceVersion": ""', '"continue": "abc"'))),
        "IPC0802",
        "the list is one page of several: metadata.continue is set",
    ),
    "deep": ('{"a":' * 100_000, "IPC0801", "nested too deep"),
}


@pytest.mark.parametrize(("text", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_dump(text: str, code: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        read(text)
    assert [(found.code, found.message) for found in refused.value.diagnostics] == [(code, message)]


def test_two_states_of_a_node() -> None:
    with pytest.raises(Refused) as refused:
        read(LIST, dumps.kubectl(dumps.node("n1", "10.0.1.0/24")))
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("IPC0803", "Node n1 is in the dump twice, with different contents")


def test_a_text_that_is_no_cidr() -> None:
    text = dumps.kubectl(dumps.node("n1", "10.0.0.0/24", "10.0.0.300/24"))
    dump, (found,) = read_dump([("dump", [text.encode()])])
    assert dump.nodes[0].pod_cidrs == (parse_block("10.0.0.0/24"),)
    assert (found.code, found.message) == (
        "IPC0805",
        "Node n1 has '10.0.0.300/24', which is neither a CIDR nor an address",
    )


def test_values_have_the_texts_of_blocks_that_are_no_cidr() -> None:
    """So that those who compare blocks know that there are more; a text that Go reads is a block."""
    objects = [
        cilium_node("n1", "10.0.0.5/24", "x", pools={"p": ["10.0.1.0/24", "y"]}, addresses=["10.0.2.1", "z"]),
        cilium_node("n2", "10.0.3.0/24", "10.0.3.0/24"),
        node("n1", "10.0.0.0/24", "10.0.0.300/24"),
        pool("p", "10.0.0.0/33", six=("fd00::/64",)),
    ]
    found = [read_object(each) for each in objects]
    assert [getattr(each, "unreadable", None) for each in found] == [
        (("x", ""), ("y", "p"), ("z/32", "")),
        (),
        ("10.0.0.300/24",),
        ("10.0.0.0/33",),
    ]


PRINTED: dict[str, Callable[[str], str]] = {
    "kubectl": lambda text: text,
    "one line": lambda text: json.dumps(json.loads(text)),
    "YAML": lambda text: yaml.safe_dump(json.loads(text)),
    "documents": lambda text: "\n".join(in_parts(text)),
}


@pytest.mark.parametrize("form", PRINTED)
def test_nodes_of_a_dump_are_counted_while_they_are_read(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the last one that is allowed is not looked at: here it is no object."""
    monkeypatch.setattr("ipamc.read.dump.read.MOST_NODES", 2)
    nodes = [dumps.node(f"n{number}", f"10.0.{number}.0/24", ip="192.168.0.1") for number in range(3)]
    read_dump([("two", [PRINTED[form](dumps.kubectl(*nodes[:2])).encode()])])
    with pytest.raises(Refused) as refused:
        read_dump([("three", [PRINTED[form](dumps.kubectl(*nodes, {"kind": ""})).encode()])])
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("IPC0801", "more than 2 Nodes")


@pytest.mark.parametrize("form", PRINTED)
def test_objects_of_a_dump_are_counted_while_they_are_read(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("read", "items"):
        monkeypatch.setattr(f"ipamc.read.dump.{module}.MOST_OBJECTS_OF_DUMP", 4)
    with pytest.raises(Refused) as refused:
        read_dump([("dump", [PRINTED[form](LIST).encode()])])
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("IPC0801", "more than 4 objects")
