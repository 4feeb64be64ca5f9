"""Clusters whose nodes have podCIDRs from ClusterCIDRs: the same pools, in the same order, and nobody is renumbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ipamc.model.cidr import BITS, Block, parse_block
from ipamc.model.diagnostics import Refused
from ipamc.place.candidates import assign
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, held, imported

APIS = ("networking.x-k8s.io/v1", "networking.k8s.io/v1alpha1")


def cluster_cidr(
    name: str, *, bits: int = 8, api: str = APIS[0], rack: str = "", **spec: Any
) -> dumps.Object:
    if rack:
        term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}
        spec["nodeSelector"] = {"nodeSelectorTerms": [term]}
    return {
        "apiVersion": api,
        "kind": "ClusterCIDR",
        "metadata": {"name": name},
        "spec": {"perNodeHostBits": bits, **spec},
    }


NODES = [
    dumps.node("n1", "10.1.0.0/24", labels={"rack": "a"}),
    dumps.node("n2", "10.2.3.0/25", labels={"rack": "b"}),
    dumps.node("n3", labels={"rack": "b"}, ready=False),
]
CIDRS = [
    cluster_cidr("all", ipv4="10.9.0.0/16"),
    cluster_cidr("rack-a", rack="a", ipv4="10.1.0.0/16"),
    cluster_cidr("rack-b", rack="b", bits=7, ipv4="10.2.0.0/16"),
]

POOLS = """\
# yaml-language-server: $schema=../.schemas/ippool.schema.json
# ClusterCIDR all
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: all}
spec:
  ipv4: {cidrs: [10.9.0.0/16], blockSize: 24}
---
# ClusterCIDR rack-a
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  ipv4: {cidrs: [10.1.0.0/16], blockSize: 24}
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [a]}]}]}
---
# ClusterCIDR rack-b
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  ipv4: {cidrs: [10.2.0.0/16], blockSize: 25}
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [b]}]}]}
"""


def said(objects: Sequence[dumps.Object]) -> list[tuple[str, str]]:
    try:
        found = imported(objects).findings
    except Refused as refused:
        found = refused.diagnostics
    return [(finding.code, finding.message) for finding in found]


@pytest.mark.parametrize("api", APIS)
def test_both_api_groups(api: str) -> None:
    came = imported([*NODES, *({**item, "apiVersion": api} for item in CIDRS)])
    assert came.files["ippools.yaml"] == POOLS
    assert held(compiled(came.files)) == {"n1": ["10.1.0.0/24"], "n2": ["10.2.3.0/25"], "n3": ["10.2.0.0/25"]}
    assert [finding.code for finding in came.findings] == ["IPC0818"]


def test_beside_cilium_in_kubernetes_mode() -> None:
    shown = [dumps.cilium_node("n1", "10.1.0.0/24"), dumps.cilium_node("n2", "10.2.3.0/25")]
    came = imported([*NODES, *shown, *CIDRS, dumps.config_map(ipam="kubernetes", enable_ipv4="true")])
    assert came.files["ippools.yaml"] == POOLS


def test_podcidrs_in_no_cluster_cidr() -> None:
    objects = [*NODES, dumps.node("n4", "172.16.0.0/24", labels={"rack": "a"}), *CIDRS]
    assert said(objects)[0] == ("IPC0814", "1 node has blocks outside the configured ranges: 172.16.0.0/24")
    assert held(compiled(imported(objects).files))["n4"] == ["172.16.0.0/24"]


def test_the_first_of_two_that_overlap_keeps_what_they_share() -> None:
    objects = [*NODES, *CIDRS, cluster_cidr("wide", bits=12, ipv4="10.0.0.0/8")]
    text = said(objects)[0][1]
    assert text.startswith("10.0.0.0/8 of ClusterCIDR wide overlaps ")
    assert text.endswith(", which comes before it")
    assert held(compiled(imported(objects).files)) == {
        "n1": ["10.1.0.0/24"],
        "n2": ["10.2.3.0/25"],
        "n3": ["10.2.0.0/25"],
    }


def test_nothing_is_left_of_the_one_that_lies_inside() -> None:
    """The finding says so, and asks nobody what the ClusterCIDR itself is."""
    inside = cluster_cidr("inside", bits=8, ipv4="10.0.0.0/17")
    objects = [
        dumps.node("n1", labels={"rack": "a"}),
        cluster_cidr("a", bits=6, rack="a", ipv4="10.0.0.0/16"),
        inside,
    ]
    found = dict(said(objects))
    assert found["IPC0827"].endswith(
        "overlaps a, which comes before it and leaves no IPv4 for new nodes of inside"
    )
    assert "IPC0835" not in found


def test_one_that_is_deleted_leaves_the_range_to_the_one_that_replaces_it() -> None:
    """ClusterCIDRs are immutable: another block size is a new one with the same range, and the old one goes."""
    old = cluster_cidr("old", bits=8, ipv4="10.0.0.0/16")
    old["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    objects = [dumps.node("n1", "10.0.0.0/24"), old, cluster_cidr("new", bits=7, ipv4="10.0.0.0/16")]
    (pool,) = imported(objects).draft.pools
    assert (pool.name, pool.disabled, pool.sizes) == ("new", False, {4: 25})
    assert held(compiled(imported(objects).files)) == {"n1": ["10.0.0.0/24"]}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"perNodeHostBits": "8", "ipv4": "10.0.0.0/8"},
        {"perNodeHostBits": 8},
        {"perNodeHostBits": 40, "ipv4": "10.0.0.0/8"},
        {"perNodeHostBits": -1, "ipv4": "10.0.0.0/8"},
        {"perNodeHostBits": 8, "ipv4": "fd00::/64"},
        {"perNodeHostBits": 8, "ipv4": "10.0.0.0/8", "nodeSelector": {"nodeSelectorTerms": [{"odd": 1}]}},
    ],
)
def test_one_that_nobody_checked(spec: dict[str, Any]) -> None:
    odd = {**cluster_cidr("odd"), "spec": spec}
    assert [code for code, _ in said([*NODES, *CIDRS, odd])][:1] == ["IPC0826"]


def test_a_selector_with_nulls() -> None:
    spec = {"perNodeHostBits": 8, "ipv4": "10.1.0.0/16"}
    terms = [
        {"matchExpressions": None, "matchFields": []},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": None}]},
    ]
    odd = {**cluster_cidr("odd"), "spec": {**spec, "nodeSelector": {"nodeSelectorTerms": terms}}}
    text = imported([*NODES, odd]).files["ippools.yaml"]
    assert "nodeSelector: {nodeSelectorTerms: [{}, {matchExpressions: [{key: a, operator: Exists}]}]}" in text


def select(*racks: str) -> str:
    terms = (f"{{matchExpressions: [{{key: rack, operator: In, values: [{rack}]}}]}}" for rack in racks)
    return f"nodeSelector: {{nodeSelectorTerms: [{', '.join(terms)}]}}"


SHARED = [
    cluster_cidr("default", bits=8, ipv4="10.9.0.0/16"),
    cluster_cidr("large", bits=10, rack="a", ipv4="10.9.0.0/16"),
    cluster_cidr("small", bits=6, rack="b", ipv4="10.9.0.0/16"),
]
"""As in the examples of node-ipam-controller: one range, and sizes by label."""


def test_those_of_one_range_are_one_pool_with_sizes() -> None:
    nodes = [
        dumps.node("n1", "10.9.4.0/22", labels={"rack": "a"}),
        dumps.node("n2", "10.9.0.64/26", labels={"rack": "b"}),
        dumps.node("n3", "10.9.1.0/24"),
        *(dumps.node(f"new-{rack}", labels={"rack": rack}, ready=False) for rack in "abc"),
    ]
    came = imported([*nodes, *SHARED])
    assert came.files["ippools.yaml"].partition("---")[0].splitlines()[1:] == [
        "# ClusterCIDR large, small or default",
        "apiVersion: ipamc/v1alpha1",
        "kind: IPPool",
        "metadata: {name: default}",
        "spec:",
        "  ipv4: {cidrs: [10.9.0.0/16], blockSize: 24}",
        f"  blockSizes: [{{{select('a')}, ipv4: 22}}, {{{select('b')}, ipv4: 26}}]",
    ]
    assert [finding.code for finding in came.findings] == ["IPC0818"]
    assert held(compiled(came.files)) == {
        "n1": ["10.9.4.0/22"],
        "n2": ["10.9.0.64/26"],
        "n3": ["10.9.1.0/24"],
        "new-a": ["10.9.8.0/22"],
        "new-b": ["10.9.0.0/26"],
        "new-c": ["10.9.2.0/24"],
    }


def test_without_one_for_all_other_nodes_have_no_pool() -> None:
    nodes = [dumps.node("n9", "10.9.0.0/26", labels={"rack": "b"})]
    text = imported([*nodes, *SHARED[1:]]).files["ippools.yaml"]
    assert "metadata: {name: small}" in text
    assert f"\n  {select('a', 'b')}\n" in text


@pytest.mark.parametrize(("racks", "merged"), [("b", True), ("bc", True), ("abc", False)])
def test_one_of_other_addresses_that_comes_between(racks: str, merged: bool) -> None:  # noqa: FBT001 - a row
    """It comes after `large` and before `small`. A node that it serves keeps it as the first candidate, else they are not one pool."""
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": list(racks)}]}
    between = cluster_cidr("between", bits=8, ipv4="10.1.0.0/16", nodeSelector={"nodeSelectorTerms": [term]})
    third = cluster_cidr("third", bits=6, rack="a", ipv4="10.9.0.0/16")
    nodes = [dumps.node(f"n{rack}", labels={"rack": rack}, ready=False) for rack in "abc"]
    objects = [*nodes, *SHARED, between, third]
    assert ("IPC0827" in [code for code, _ in said(objects)]) is not merged
    files = {f"{FOLDER}/{name}": text.encode() for name, text in imported(objects).files.items()}
    assert candidates(files)["nb"][0] == "between"


@st.composite
def clusters(draw: st.DrawFn) -> list[dumps.Object]:
    """Draw ClusterCIDRs of several sizes, some with a selector, and nodes with podCIDRs of them or of none."""
    found = []
    ranges: list[tuple[Block, int]] = []
    for index in range(draw(st.integers(1, 5))):
        bits, prefix = draw(st.integers(6, 8)), draw(st.integers(16, 20))
        rack = draw(st.sampled_from(["", "a", "b"]))
        name = draw(st.sampled_from(["z", "m", "a"])) + str(index)
        ranges.append((parse_block(f"10.{index}.0.0/{prefix}"), bits))
        found.append(cluster_cidr(name, bits=bits, rack=rack, ipv4=f"10.{index}.0.0/{prefix}"))
    places = draw(st.lists(st.tuples(st.sampled_from(ranges), st.integers(0, 15)), unique=True, max_size=6))
    for number, ((around, bits), place) in enumerate(places):
        block = Block(4, around.first + (place << bits), BITS[4] - bits)
        rack = draw(st.sampled_from(["a", "b", "c"]))
        found.append(dumps.node(f"n{number}", str(block), labels={"rack": rack}))
    return [*found, dumps.node("last", "172.16.0.0/24", labels={"rack": "a"})]


def candidates(files: dict[str, bytes]) -> dict[str, list[str]]:
    cluster, _ = read(NAME, FOLDER, files, SCHEMAS)
    return {want.node.name: [offer.pool.name for offer in want.offers] for want in assign(cluster)}


@given(
    st.lists(
        st.tuples(
            st.sampled_from([6, 7, 8]), st.sampled_from(["", "a", "b", "ab", "bc"]), st.sampled_from([16, 17])
        ),
        min_size=1,
        max_size=5,
    )
)
def test_sizes_of_one_range_are_those_of_the_first_candidate(made: list[tuple[int, str, int]]) -> None:
    """Every node gets the size, out of the range, that node-ipam-controller would give it."""
    objects = [dumps.node(f"n{rack}", labels={"rack": rack}, ready=False) for rack in "abc"]
    for number, (bits, racks, prefix) in enumerate(made):
        term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": list(racks)}]}
        more: dict[str, Any] = {"nodeSelector": {"nodeSelectorTerms": [term]}} if racks else {}
        objects.append(cluster_cidr(f"c{number}", bits=bits, ipv4=f"10.{prefix}.0.0/{prefix}", **more))
    came = imported(objects)
    if "IPC0827" in [finding.code for finding in came.findings]:
        return  # they are not one pool: the finding says so
    theirs = {f"{FOLDER}/{name}": text.encode() for name, text in came.files.items()}
    raw = {path: text for path, text in theirs.items() if not path.endswith("ippools.yaml")}
    cidrs = [item for item in objects if item["kind"] == "ClusterCIDR"]
    assert sizes(theirs) == sizes({**raw, f"{FOLDER}/cidrs.json": dumps.kubectl(*cidrs).encode()})


def sizes(files: dict[str, bytes]) -> dict[str, list[tuple[str, int]]]:
    """Return the range and the size of the first candidate of each node."""
    cluster, _ = read(NAME, FOLDER, files, SCHEMAS)
    return {
        want.node.name: [
            (str(each.block), offer.sizes[4]) for offer in want.offers[:1] for each in offer.pool.ranges
        ]
        for want in assign(cluster)
    }


@given(clusters())
def test_nobody_is_renumbered_and_the_order_stays(objects: list[dumps.Object]) -> None:
    came = imported(objects)
    for text in came.files.values():
        note(text)
    result = compiled(came.files)
    assert held(result) == {
        item["metadata"]["name"]: item["spec"]["podCIDRs"] for item in objects if item["kind"] == "Node"
    }
    again = compiled(came.files, result)
    assert (again.lock, again.files) == (result.lock, result.files)
    assert imported(objects[::-1]).files == came.files
    ours = {f"{FOLDER}/{name}": text.encode() for name, text in came.files.items()}
    theirs = {
        f"{FOLDER}/{name}": text.encode() for name, text in came.files.items() if name != "ippools.yaml"
    }
    cidrs = [item for item in objects if item["kind"] == "ClusterCIDR"]
    theirs[f"{FOLDER}/cidrs.json"] = dumps.kubectl(*cidrs).encode()
    assert candidates(ours) == candidates(theirs)
