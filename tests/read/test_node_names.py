"""Patterns of names: what bash expands them to, what they are without some names, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Located, Refused
from ipamc.model.limits import LARGEST_CLUSTER
from ipamc.read.locate import locate
from ipamc.read.node_names import PatternError, less, longest, names, parse, size
from ipamc.read.read import read
from ipamc.workspace.disk import assets

HEAD = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: c}
spec: {cilium: {version: "1.18", managedBy: helm}, ipam: {mode: cluster-pool}}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes:
"""
LINE = HEAD.count("\n")

NUMBERS = st.integers(0, 40).map(str) | st.integers(0, 9).map(lambda number: f"{number:03}")
RANGES = (
    st.tuples(NUMBERS, NUMBERS)
    .filter(lambda pair: int(pair[0]) <= int(pair[1]))
    .map(lambda pair: f"{{{pair[0]}..{pair[1]}}}")
)
LISTS = st.lists(st.sampled_from(["a", "b", "c1", ""]), min_size=2, max_size=3, unique=True).map(
    lambda words: f"{{{','.join(words)}}}"
)
LETTERS = st.sampled_from(["{a..c}", "{x..z}", "{b..b}"])
# Texts between braces that let no two choices make one name.
PATTERNS = st.lists(RANGES | LISTS | LETTERS, min_size=1, max_size=3).map(
    lambda parts: "-".join(["n", *parts, "z"])
)


def read_nodes(*entries: str) -> Cluster:
    text = HEAD + "".join(f"- {entry}\n" for entry in entries)
    return read("c", "c", {"c/all.yaml": text.encode()}, assets("schemas"))[0]


def refused(*entries: str) -> list[Located]:
    text = HEAD + "".join(f"- {entry}\n" for entry in entries)
    with pytest.raises(Refused) as caught:
        read_nodes(*entries)
    return list(locate(caught.value.diagnostics, {"c/all.yaml": text.encode()}))


def expanded(patterns: list[str]) -> list[str]:
    return [name for each in patterns for name in (names(parse(each)) if "{" in each else [each])]


@given(PATTERNS)
def test_the_number_and_the_longest_are_known_before(pattern: str) -> None:
    parts = parse(pattern)
    found = names(parts)
    assert (size(parts), longest(parts)) == (len(found), max(map(len, found)))


@given(PATTERNS, st.data())
def test_what_is_left_is_the_rest(pattern: str, data: st.DataObject) -> None:
    every = names(parse(pattern))
    gone = data.draw(st.sets(st.sampled_from(every)))
    left = expanded(less(pattern, gone))
    assert sorted(left) == sorted(set(every) - gone)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_it_is_what_bash_makes() -> None:
    patterns = [
        "w-{001..012}",
        "w{8..11}",
        "r{1..2}-n{08..11}",
        "{a,b}{0..1}x",
        "n{a..c}",
        "n{,-b}",
        "n{1..010}",
        "n{3..3}",
    ]
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {' '.join(patterns)}"], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == expanded(patterns)


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("worker-1", 0),
        ("w[01:50]", 1),
        ("w{1..2", 1),
        ("w}1", 1),
        ("w{{1..2}}", 2),
        ("w{1..9..2}", 2),
        ("w{5..1}", 2),
        ("w{c..a}", 2),
        ("w{A..C}", 2),
        ("w{-1..2}", 2),
        ("w{0000000001..2}", 2),
        ("w{a}", 2),
        ("w{}", 2),
        ("w{1..2}-{", 8),
    ],
)
def test_what_is_no_pattern_is_refused_where_it_is_wrong(pattern: str, offset: int) -> None:
    with pytest.raises(PatternError) as caught:
        parse(pattern)
    assert caught.value.offset == offset
    (finding,) = refused(f'{{names: "{pattern}", planned: true}}')
    assert (finding.code, finding.at.line, finding.at.column) == (
        "IPC0109",
        LINE + 1,
        12 + offset - (offset == 0),
    )


def test_nodes_of_a_pattern_share_labels_and_place() -> None:
    nodes = read_nodes(
        '{names: "w-{01..40}", labels: {rack: a}, maxPods: 60, planned: true}', "{name: a}"
    ).nodes
    assert [node.name for node in nodes[1:]] == [f"w-{number:02}" for number in range(1, 41)]
    assert {(id(node.labels), id(node.at), node.max_pods, node.planned, node.live) for node in nodes[1:]} == {
        (id(nodes[1].labels), id(nodes[1].at), 60, True, False)
    }


def test_a_node_document_takes_the_place_of_a_name() -> None:
    node = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w-2", "uid": "u"}})
    text = f'{HEAD}- {{names: "w-{{1..3}}", planned: true}}\n---\n{node}\n'
    cluster = read("c", "c", {"c/all.yaml": text.encode()}, assets("schemas"))[0]
    assert [(node.name, node.planned) for node in cluster.nodes] == [
        ("w-1", True),
        ("w-2", False),
        ("w-3", True),
    ]


@pytest.mark.parametrize(
    ("entries", "codes"),
    [
        (['{names: "w-{1..3}", planned: true}', "{name: w-2}"], ["IPC0103"]),
        (['{names: "w-{1..3}", planned: true}', '{names: "w-{3..4}", planned: true}'], ["IPC0103"]),
        (['{names: "w{1..2}{1,11}{1,}", planned: true}'], ["IPC0103"]),
        (['{names: "w-{1..3}"}'], ["IPC0110"]),
        (['{name: a, names: "w-{1..3}", uid: x, planned: true}'], ["IPC0110"]),
        (['{names: "W-{1..3}", planned: true}'], ["IPC0101"]),
        (['{names: "w-{1..3}", labels: {a b: c}, planned: true}'], ["IPC0102"]),
        ([f'{{names: "{"w" * 250}{{1..1000}}", planned: true}}'], ["IPC0109"]),
        (['{names: "w{1..100001}", planned: true}'], ["IPC0004"]),
        (['{names: "v{1..50001}", planned: true}', '{names: "w{1..50000}", planned: true}'], ["IPC0004"]),
        ([f'{{names: "{"{0..999999999}" * 1000}", planned: true}}'], ["IPC0109"]),
        ([f'{{names: "{"{1..9}" * 30}", planned: true}}'], ["IPC0004"]),
    ],
)
def test_what_is_wrong_is_said_once(entries: list[str], codes: list[str]) -> None:
    assert [finding.code for finding in refused(*entries)] == codes


def test_both_ends_of_a_name_that_is_given_twice_are_named() -> None:
    (finding,) = refused('{names: "w-{1..3}", planned: true}', "{name: w-2, planned: true}")
    assert (finding.at.line, finding.at.source[finding.at.column - 1 :][:3]) == (LINE + 2, "w-2")
    assert [related.at.line for related in finding.also] == [LINE + 1]


def test_the_most_names_are_read() -> None:
    assert len(read_nodes(f'{{names: "w{{1..{LARGEST_CLUSTER}}}", planned: true}}').nodes) == LARGEST_CLUSTER
