"""Blocks that are applied before Cilium runs are the ones that pods get addresses of, whatever restarts."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import lost


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("mode", MODES)
def test_pods_have_addresses_of_the_locks_blocks_and_reach_each_other(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "a2", "b1", "c1")
    lab.as_locked()
    blocks, addresses = lab.blocks(), lab.addresses()

    with lab.pinging("a1", "b1") as pings:
        lab.agents(lab.nodes)
        lab.ready()
        lab.start_operator()
        lab.agents(lab.nodes)
        lab.ready()
    assert not lost(pings)
    assert lab.blocks() == blocks
    assert lab.addresses_of_endpoints() == addresses
    lab.start_pods("c2")
    lab.as_locked()
