"""Addresses of nodes in pools: no new block has one, in any mode; a held one stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import BITS, Block, parse_address, parse_block
from ipamc.review.explain_pools import explain_address
from tests.support import fleet

MODES: dict[str, fleet.Document] = {
    "kubernetes": {"mode": "kubernetes"},
    "cluster-pool": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
    "crd": {"mode": "crd"},
}
ADDRESSES = st.builds("10.0.{}.{}".format, st.integers(0, 7), st.integers(0, 255))


def blocks_of(texts: dict[str, bytes], lock: str | None = None) -> dict[str, Block]:
    """Compile, and return the block of each node."""
    return {line.node: line.block for line in fleet.compiled(texts, lock).plan.lock.lines}


def contains(block: Block, address: str) -> bool:
    family, number = parse_address(address)
    return block.contains(Block(family, number, BITS[family]))


@pytest.mark.parametrize("mode", MODES)
@given(addresses=st.lists(ADDRESSES, max_size=12, unique=True), size=st.sampled_from([26, 27, 28]))
def test_no_newcomer_gets_a_block_with_the_address_of_a_node(
    mode: str, addresses: list[str], size: int
) -> None:
    nodes: list[fleet.Document] = [
        {"name": f"n{place}", "uid": f"u{place}", "internalIPs": [each]}
        for place, each in enumerate(addresses)
    ]
    pools = [fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/21"], "blockSize": size})]
    if mode == "adopt":
        pools += [fleet.pool("b", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": size}, unlisted=True)]
    texts = fleet.as_json([fleet.cluster(**MODES[mode]), *pools, fleet.inventory(nodes)])
    blocks = blocks_of(texts)
    assert len(blocks) == len(nodes)
    assert not [each for each in addresses for block in blocks.values() if contains(block, each)]


def test_a_node_that_joins_with_an_address_of_a_held_block_moves_nobody() -> None:
    pool = fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/21"], "blockSize": 26})
    nodes: list[fleet.Document] = [{"name": "n1"}, {"name": "n2", "internalIPs": ["10.0.0.9"]}]
    texts = fleet.as_json([fleet.cluster(), pool, fleet.inventory(nodes)])
    lock = (
        '{"lock":1,"cluster":"fleet","mode":"cluster-pool","shards":1}\n'
        '{"block":"10.0.0.0/26","pool":"a","node":"n1"}\n'
    )
    assert {name: str(block) for name, block in blocks_of(texts, lock).items()} == {
        "n1": "10.0.0.0/26",
        "n2": "10.0.0.64/26",
    }


@pytest.mark.parametrize("mode", ["cluster-pool", "shared"])
def test_only_the_block_around_an_address_is_said_to_be_kept(mode: str) -> None:
    pool = fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/21"], "blockSize": 26})
    nodes: list[fleet.Document] = [{"name": "n1", "internalIPs": ["10.0.2.9"]}]
    plan = fleet.compiled(fleet.as_json([fleet.cluster(**MODES[mode]), pool, fleet.inventory(nodes)])).plan

    def said(cidr: str) -> list[tuple[str, str, str]]:
        found = explain_address(plan.cluster, plan.lock, parse_block(cidr))
        return [(str(each.block), each.state, each.reason) for each in found]

    assert said("10.0.2.9/32") == [("10.0.2.0/26", "reserved", "InternalIP of node n1")]
    assert said("10.0.5.0/26") == [("10.0.5.0/26", "free", "")]


@pytest.mark.parametrize("mode", ["kubernetes", "cluster-pool"])
def test_a_pool_over_addresses_of_nodes_says_so_with_both_ends(mode: str) -> None:
    four, six = {"cidrs": ["172.16.8.0/22"], "blockSize": 26}, {"cidrs": ["fd00:8::/112"], "blockSize": 120}
    nodes: list[fleet.Document] = [
        {"name": "n1", "uid": "u1", "internalIPs": ["172.16.8.5", "fd00:8::5"]},
        {"name": "n2", "uid": "u2", "internalIPs": ["172.16.8.6", "fd00:8::6"]},
        {"name": "p1", "planned": True},
    ]
    cluster = fleet.cluster(**MODES[mode], ipFamilies=["IPv4", "IPv6"])
    texts = fleet.as_json([cluster, fleet.pool("over", ipv4=four, ipv6=six), fleet.inventory(nodes)])
    done = fleet.compiled(texts)
    found = [each for each in done.diagnostics if each.code == "IPC0209"]
    said = "contains the InternalIP of 2 nodes: n1, n2; no node gets a block with such an address"
    for one, cidr, ip in zip(
        found, ("172.16.8.0/22", "fd00:8::/112"), ("172.16.8.5", "fd00:8::5"), strict=True
    ):
        assert one.message == f'{cidr} of pool "over" {said}'
        assert one.at.path == "clusters/fleet/0001.json"
        assert [(each.at.path, each.label) for each in one.also] == [
            ("clusters/fleet/0002.json", f"n1 has {ip}")
        ]
    blocks = {str(line.block) for line in done.plan.lock.lines if line.node == "p1"}
    assert blocks.isdisjoint({"172.16.8.0/26", "fd00:8::/120"})
    assert len(blocks) == 2
