"""Laws of the whole compiler, over clusters that hypothesis makes up."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ipamc.model.cidr import Block, parse_block
from ipamc.model.diagnostics import Refused
from ipamc.pipeline import Compilation
from tests.support import fleet

RACKS = ("a", "b", "c")
MODES = ("kubernetes", "cluster-pool", "multi-pool", "crd")


@st.composite
def clusters(draw: st.DrawFn, *, mode: str | None = None) -> list[fleet.Document]:
    """Make a cluster of up to three racks, each with a pool of its own, and a fallback for all; enough room for up to 12 nodes."""
    chosen = mode or draw(st.sampled_from(MODES))
    families = draw(st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]]))
    spec: dict[str, Any] = {"ipFamilies": families}
    if chosen == "kubernetes":
        spec["output"] = {"nodeObjects": "create"}
    if chosen == "multi-pool":
        spec["ipam"] = {"pinning": draw(st.sampled_from(["none", "pool", "node"]))}
    documents = [fleet.cluster(chosen, **spec)]
    several = chosen in {"crd", "multi-pool"} and spec.get("ipam", {}).get("pinning") != "pool"
    for index, rack in enumerate((*RACKS, "")):
        size = draw(st.integers(25, 27))
        body: dict[str, Any] = {"priority": draw(st.integers(0, 2))}
        if not rack and spec.get("ipam", {}).get("pinning") == "node":
            body["priority"] = -1  # a pool is the first candidate of all its nodes or of none (IPC0537)
        if "IPv4" in families:
            cut = draw(st.integers(19, 20))
            body["ipv4"] = {"cidrs": [f"10.{index}.0.0/{cut}", f"10.{index}.64.0/{cut}"], "blockSize": size}
        if "IPv6" in families:
            body["ipv6"] = {"cidrs": [f"fd00:{index}::/108"], "blockSize": size + 95}
        if rack:
            body["nodeSelector"] = (
                f'rack == "{rack}"' if draw(st.booleans()) else {"matchLabels": {"rack": rack}}
            )
        if several:
            body["blocksPerNode"] = draw(st.integers(1, 2))
        if draw(st.booleans()) and "ipv4" in body:
            body["reserved"] = [f"10.{index}.0.{draw(st.sampled_from([0, 64, 128]))}/26"]
        if chosen != "multi-pool" and draw(st.booleans()):
            body["blockSizes"] = (
                [{"nodeSelector": "has(large)", "ipv4": 24, "ipv6": 119}] if len(families) == 2 else []
            )
        documents.append(fleet.pool(f"rack-{rack}" if rack else "default", **body))
    names = draw(st.lists(st.text("abc0", min_size=1, max_size=3), unique=True, max_size=12))
    labels = st.fixed_dictionaries({"rack": st.sampled_from(RACKS)}, optional={"large": st.just("")})
    documents.append(fleet.inventory({"name": name, "labels": draw(labels)} for name in names))
    return documents


def blocks(result: Compilation) -> dict[str, list[Block]]:
    held: dict[str, list[Block]] = {}
    for line in result.plan.lock.lines:
        held.setdefault(line.node, []).append(line.block)
    return held


def outputs(result: Compilation) -> tuple[str, dict[str, str]]:
    return result.lock, dict(result.files)


def nodes_of(documents: list[fleet.Document]) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = documents[-1]["nodes"]
    return nodes


@given(clusters(), st.randoms(use_true_random=False))
def test_any_order_of_documents_files_and_nodes_gives_the_same_bytes(
    documents: list[fleet.Document], shuffler: random.Random
) -> None:
    first = fleet.compiled(fleet.as_json(documents))
    shuffled = [
        *documents[:-1],
        fleet.inventory(shuffler.sample(nodes_of(documents), len(nodes_of(documents)))),
    ]
    half = len(nodes_of(shuffled)) // 2
    split = [
        *shuffled[:-1],
        fleet.inventory(nodes_of(shuffled)[:half]),
        fleet.inventory(nodes_of(shuffled)[half:]),
    ]
    shuffler.shuffle(split)
    assert outputs(fleet.compiled(fleet.as_json(split))) == outputs(first)


@given(clusters())
def test_no_two_blocks_overlap_and_each_lies_in_a_range_of_a_pool_that_chose_the_node(
    documents: list[fleet.Document],
) -> None:
    result = fleet.compiled(fleet.as_json(documents))
    lines = result.plan.lock.lines
    for one, other in itertools.pairwise(sorted(line.block for line in lines)):
        assert not one.overlaps(other), (one, other)
    racks = {node["name"]: node["labels"]["rack"] for node in nodes_of(documents)}
    specs = {document["metadata"]["name"]: document["spec"] for document in documents[1:-1]}
    for line in lines:
        assert line.pool in {f"rack-{racks[line.node]}", "default"}
        ranges = [parse_block(text) for text in specs[line.pool][f"ipv{line.block.family}"]["cidrs"]]
        assert any(each.contains(line.block) for each in ranges)
        assert not any(
            line.block.overlaps(parse_block(text)) for text in specs[line.pool].get("reserved", [])
        )


@given(clusters())
def test_compiling_twice_changes_nothing_and_is_not_stale(documents: list[fleet.Document]) -> None:
    sources = fleet.as_json(documents)
    first = fleet.compiled(sources)
    assert outputs(fleet.compiled(sources, first.lock, today="2030-01-01", locked=True)) == outputs(first)


@given(clusters(), st.data())
def test_adding_or_removing_nodes_leaves_all_others_where_they_are(
    documents: list[fleet.Document], data: st.DataObject
) -> None:
    nodes = nodes_of(documents)
    assume(len(nodes) > 1)
    some = data.draw(st.lists(st.sampled_from(nodes), unique_by=lambda node: node["name"], min_size=1))
    few = fleet.as_json([*documents[:-1], fleet.inventory(some)])
    many = fleet.as_json(documents)
    before = fleet.compiled(few)
    grown = fleet.compiled(many, before.lock)
    assert {name: each for name, each in blocks(grown).items() if name in blocks(before)} == blocks(before)
    shrunk = fleet.compiled(few, grown.lock, leave=["all"])
    assert blocks(shrunk) == blocks(grown)  # a leaver's lines stay
    back = fleet.compiled(many, shrunk.lock)
    assert back.lock == grown.lock  # and a returning node gets what it had


@given(clusters(), st.data())
def test_a_leaver_is_told_apart_from_a_truncated_inventory(
    documents: list[fleet.Document], data: st.DataObject
) -> None:
    nodes = nodes_of(documents)
    assume(nodes)
    kept = data.draw(st.integers(0, max((len(nodes) - 1) // 2, len(nodes) - 5)))
    before = fleet.compiled(fleet.as_json(documents))
    cut = fleet.as_json([*documents[:-1], fleet.inventory(nodes[:kept])])
    with pytest.raises(Refused) as refused:
        fleet.compiled(cut, before.lock)
    assert {each.code for each in refused.value.diagnostics} & {"IPC0418", "IPC0420"}
