"""What `why` looks at for a node that keeps its blocks, and the blocks that nodes started with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.model.cidr import parse_block
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Line
from ipamc.pipeline import Inputs, load_cluster
from ipamc.review.explain_node import ExplainedNode, explain_alone, explain_among_all
from ipamc.review.shown_pools import started_with
from tests.support import dumps, fleet
from tests.test_laws import clusters

Made = tuple[dict[str, bytes], str | None]
"""Files by path, and a lock."""
TODAY = "2026-11-22"
FOLDER = "clusters/fleet"


def cilium_node(name: str, mode: str, lines: Iterable[Line]) -> dict[str, Any]:
    """Make a CiliumNode that shows the blocks of some lines."""
    allocated = [{"pool": line.pool, "cidrs": [str(line.block)]} for line in lines]
    multi = {"pools": {"allocated": allocated}}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": name},
        "spec": {
            "ipam": multi if mode == "multi-pool" else {"podCIDRs": [str(line.block) for line in lines]}
        },
    }


@st.composite
def files(draw: st.DrawFn) -> Made:
    """Make a cluster with a lock that is up to date, or of other nodes; some nodes show blocks, or are there twice."""
    documents = draw(clusters())
    *others, inventory = documents
    nodes = inventory["nodes"]
    now = [node for node in nodes if draw(st.integers(0, 7))]
    try:
        compiled = fleet.compiled(fleet.as_json(documents))
        if draw(st.booleans()):
            then = [node for node in nodes if draw(st.integers(0, 7))]
            first = fleet.compiled(fleet.as_json([*others, fleet.inventory(then)]))
            compiled = fleet.compiled(fleet.as_json(documents), first.lock)
            now = nodes if draw(st.booleans()) else now
    except Refused:
        assume(False)
    mode = documents[0]["spec"]["ipam"]["mode"]
    names = sorted(compiled.plan.held)
    seen = [
        cilium_node(name, mode, compiled.plan.held[draw(st.sampled_from([name, name, name, *names]))])
        for name in names
        if draw(st.booleans())
    ]
    if now and draw(st.integers(0, 9)) == 0:
        now = [*now, draw(st.sampled_from(now))]
    lock = compiled.lock if draw(st.integers(0, 9)) else None
    return fleet.as_json([*others, *seen, fleet.inventory(now)]), lock


def inputs(made: Made) -> Inputs:
    """Return the inputs of a cluster that was made up."""
    sources, lock = made
    return Inputs(
        name="fleet",
        folder=FOLDER,
        sources=sources,
        lock_path=f"{FOLDER}/ipam.lock",
        lock=lock.encode() if lock is not None else None,
        schemas=fleet.SCHEMAS,
        today=TODAY,
    )


@pytest.mark.deep
@given(files())
def test_a_node_alone_is_explained_as_among_all(made: Made) -> None:
    given = inputs(made)
    try:
        cluster, lock = load_cluster(given)
    except Refused:
        return
    for node in cluster.nodes:
        alone = explain_alone(cluster, lock, node.name, TODAY)
        every = explain_among_all(cluster, lock, node.name, TODAY)
        assert every
        if alone and not any("next compile is refused" in note for note in every.notes):
            newcomers = {node.name for node in cluster.nodes} - {line.node for line in lock.lines}
            if newcomers:  # which may fill a pool
                alone, every = _without_room(alone), _without_room(every)
            assert alone == every


def _without_room(found: ExplainedNode) -> ExplainedNode:
    return replace(
        found, pools=tuple(replace(pool, why=pool.why.split("; is full")[0]) for pool in found.pools)
    )


def test_a_seed_that_an_agent_gave_back_is_what_its_node_started_with() -> None:
    """With `pinning: node` the CiliumNode shows the block of its own pool, and none of a shared one."""
    documents = [
        fleet.cluster("multi-pool", ipam={"pinning": "node"}),
        fleet.pool("own", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 26}),
        fleet.pool("shared", ipv4={"cidrs": ["10.5.0.0/24"], "blockSize": 26}),
        fleet.inventory([{"name": "a"}, {"name": "b"}]),
        dumps.cilium_node("a", allocated={"own.a": ["10.1.0.0/26"]}),
        dumps.cilium_node("b", allocated={"own.b": ["10.1.0.64/26"], "shared": ["10.5.0.64/26"]}),
    ]
    given = Inputs(
        name="fleet",
        folder=FOLDER,
        sources=fleet.as_json(documents),
        lock_path=f"{FOLDER}/ipam.lock",
        lock=fleet.compiled(fleet.as_json(documents[:-2])).lock.encode(),
        schemas=fleet.SCHEMAS,
        templates=fleet.TEMPLATES,
    )
    assert started_with(*load_cluster(given)) == {parse_block("10.5.0.0/26")}
