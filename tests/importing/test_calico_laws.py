"""The laws of an import from Calico: nodes keep exactly their blocks, and newcomers get what Calico would give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ipamc.model.cidr import Block, parse_block
from ipamc.model.cluster import Mode
from ipamc.model.plan import Origin
from ipamc.model.selector.selector import parse_calico
from tests.support import calico, dumps
from tests.support.imports import compiled, imported

SELECTORS = (
    "all()",
    "",
    "rack == 'a'",
    "rack == 'b'",
    "has(rack)",
    "!has(rack)",
    "rack != 'a'",
    "rack in {'a', 'c'} || disk contains 's'",
    "rack == 'a' && has(disk)",
)
SPECS: list[dict[str, Any]] = [{}, {}, {}, {"disabled": True}, {"assignmentMode": "Manual"}]
ADDRESSES = st.lists(st.integers(0, 31), unique=True, max_size=3)


@dataclass
class State:
    """Objects of a cluster with Calico, and what is true of them."""

    objects: list[dumps.Object] = field(default_factory=list)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    pools: list[tuple[str, str, str]] = field(default_factory=list)
    """(name, CIDR, selector) of those of which Calico makes blocks."""
    held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    used: dict[tuple[int, int], str] = field(default_factory=dict)
    """The node by each address in use."""
    kept: set[str] = field(default_factory=set)
    """Blocks that no newcomer may get: with addresses in use, or being released."""


@st.composite
def states(draw: st.DrawFn) -> State:
    """Draw pools with selectors, nodes with some blocks or none, borrowed addresses, reservations, leftovers."""
    state = State()
    api = draw(st.sampled_from([calico.CRD, calico.V3]))
    dual = draw(st.booleans())
    for index in range(draw(st.integers(1, 5))):
        name = f"n{index}"
        rack = draw(st.sampled_from(["a", "b", "c", ""]))
        state.labels[name] = {"rack": rack} if rack else {}
        if draw(st.booleans()):
            state.labels[name]["disk"] = draw(st.sampled_from(["ssd", "hdd"]))
        node = dumps.node(name, labels=state.labels[name], ip=f"192.168.0.{index + 1}")
        state.objects.append(node)
    places = []
    for index in range(draw(st.integers(1, 4))):
        selector = draw(st.sampled_from(SELECTORS))
        spec = draw(st.sampled_from(SPECS))
        size = draw(st.integers(26, 27))
        for family in (4, 6) if dual else (4,):
            cidr = f"10.{index}.0.0/20" if family == 4 else f"fd00:{index}::/64"
            name, length = f"p{index}-v{family}", size if family == 4 else 122
            state.objects.append(
                calico.pool(name, cidr, api=api, nodeSelector=selector, blockSize=length, **spec)
            )
            places.append((parse_block(cidr), length))
            if not spec:
                state.pools.append((name, cidr, selector))
    places.append((parse_block("10.200.0.0/20"), 26))  # a pool that was deleted
    state.objects += calico.affine("10.0.15.192/26", "n0", api=api)
    state.held["n0"].add("10.0.15.192/26")
    taken = draw(st.lists(st.tuples(st.sampled_from(places), st.integers(0, 40)), unique_by=str, max_size=8))
    for (around, length), number in taken:
        size = 1 << ((32 if around.family == 4 else 128) - length)
        _block(draw, state, str(Block(around.family, around.first + number * size, length)), api)
    reserved = [
        str(Block(4, parse_block("10.0.0.0/20").first + number, 30))
        for number in draw(st.lists(st.integers(0, 63).map(lambda one: one * 4), max_size=2, unique=True))
    ]
    state.objects.append(calico.reservation("kept", reserved, api=api))
    return state


def _block(draw: st.DrawFn, state: State, cidr: str, api: str) -> None:
    """Draw whose a block is, and what its objects say."""
    nodes = sorted(state.labels)
    host = draw(st.sampled_from([*nodes, *nodes, "gone", ""]))
    uses = [(number, draw(st.sampled_from(nodes)), f"default/pod-{number}") for number in draw(ADDRESSES)]
    story = draw(st.sampled_from(["block", "both", "claim", "leaving", "deleted"]))
    parsed = parse_block(cidr)
    if story == "claim" and host:
        word = draw(st.sampled_from(["pending", "confirmed", "pendingDeletion"]))
        state.objects.append(calico.affinity(cidr, host, word, api=api))
        story, uses = ("leaving" if word == "pendingDeletion" else story), []
    else:
        state.objects.append(calico.block(cidr, host, uses, api=api, deleted=story == "deleted"))
        if host and story in {"both", "leaving"}:
            word = "confirmed" if story == "both" else "pendingDeletion"
            state.objects.append(calico.affinity(cidr, host, word, api=api))
    gone = story in {"leaving", "deleted"} and not uses
    if host and story == "leaving":
        state.kept.add(cidr)
    if host in state.labels and not gone:
        state.held[host].add(cidr)
    for number, node, _ in uses:
        state.used[parsed.family, parsed.first + number] = node
        state.kept.add(cidr)


def preferred(state: State, node: str, family: int) -> str | None:
    """Return the pool of which Calico would make the node's first block: the first by name that selects it."""
    for _, cidr, selector in sorted(state.pools):
        if parse_block(cidr).family == family and parse_calico(selector).matches(state.labels[node], node):
            return cidr
    return None


@pytest.mark.parametrize("mode", [Mode.MULTI_POOL, Mode.CRD])
@given(state=states())
def test_nodes_keep_exactly_their_blocks(mode: Mode, state: State) -> None:
    came = imported(state.objects, mode=mode)
    for text in came.files.values():
        note(text)
    result = compiled(came.files)
    lines = result.plan.lock.lines
    adopted = defaultdict(set)
    for line in lines:
        if result.plan.origins.get(line.block) is Origin.ADOPTED:
            adopted[line.node].add(str(line.block))
    assert adopted == {node: blocks for node, blocks in state.held.items() if blocks}
    new = [line for line in lines if result.plan.origins.get(line.block) is not Origin.ADOPTED]
    assert len({(line.node, line.block.family) for line in new}) == len(new)
    for line in new:
        first = preferred(state, line.node, line.block.family)
        assert first
        assert parse_block(first).contains(line.block)
        assert not any(line.block.overlaps(parse_block(cidr)) for cidr in state.kept)
    borrowed = " ".join(finding.message for finding in came.findings if finding.code == "IPC0856")
    for (family, address), user in state.used.items():
        for line in lines:
            here = line.block.family == family and line.block.first <= address <= line.block.last
            if here and line.node != user:
                assert f"node {user} uses" in borrowed
    again = compiled(came.files, result)
    assert (again.lock, again.files) == (result.lock, result.files)
    assert imported(state.objects[::-1], mode=mode).files == came.files


@given(states())
def test_both_api_groups_say_the_same(state: State) -> None:
    first = imported(state.objects)
    for item in state.objects:
        if "projectcalico.org" in item["apiVersion"]:
            item["apiVersion"] = calico.V3 if item["apiVersion"] == calico.CRD else calico.CRD
    assert imported(state.objects).files == first.files
