"""Leaving ipamc in cluster-pool mode, as docs/how-to/leave-ipamc.md says: the operator that takes over keeps every block, if its mask is the longest."""

from __future__ import annotations

import pytest

from tests.e2e.api import CILIUM_NODES, Api
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.test_adopt import IPV4, UNKNOWN, ask, blocks, looked_at, twice, verdicts

BYSTANDER = {"ipam": "cluster-pool", "enable-ipv4": "true", "enable-ipv6": "false"}
HELD = {
    "large": ["10.0.1.0/24"],
    "one": ["10.0.2.64/28"],
    "other": ["10.0.2.80/28"],
    "outside": ["10.7.0.0/26"],
}
RANGE = {**IPV4, "cluster-pool-ipv4-cidr": "10.0.0.0/22"}


@pytest.fixture
def run(api: Api, operator: Operator) -> Operator:
    """Let a cluster run beside a bystander, which hands out nothing."""
    with operator.running(BYSTANDER, "--ipam=kubernetes"):
        api.create(CILIUM_NODES, *(cilium_node(name, *cidrs) for name, cidrs in HELD.items()))
    assert blocks(api) == HELD
    return operator


def test_with_the_longest_mask_every_node_keeps_its_block(api: Api, run: Operator) -> None:
    with run.running({**RANGE, "cluster-pool-ipv4-mask-size": "28"}):
        looked_at(api, *HELD)
        assert ask(api, "newcomer") == {"newcomer": ["10.0.0.0/28"]}
        assert {**blocks(api), "newcomer": []} == {**HELD, "newcomer": []}
        assert twice(api) == []
        assert {name: said for name, said in verdicts(api).items() if said} == {
            "outside": f"{UNKNOWN} 10.7.0.0/26"
        }


def test_with_a_shorter_one_the_second_block_of_a_piece_is_refused(api: Api, run: Operator) -> None:
    """10.0.2.64/26 has the blocks of two nodes: an operator from 1.19 on takes it away from one of them."""
    with run.running({**RANGE, "cluster-pool-ipv4-mask-size": "26"}) as program:
        looked_at(api, "large", "outside")
        if run.version >= (1, 19):
            program.until(lambda: [] in blocks(api).values(), "a node has no block")
            assert sorted(blocks(api)[name] == [] for name in ("one", "other")) == [False, True]
            return
        until(
            lambda: any("already allocated" in said for said in verdicts(api).values()),
            "one of two is refused",
        )
        assert blocks(api) == HELD
