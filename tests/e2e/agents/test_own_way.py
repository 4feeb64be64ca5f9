"""Cilium's own way from cluster-pool to multi-pool mode, of 1.20 (cilium/cilium#46104), with pods that run."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import lost
from tests.e2e.agents.router import BGP_CONTROL_PLANE, EVERY_POOL, GoBgp, announce
from tests.e2e.agents.test_changes import merge_mode
from tests.e2e.agents.test_router import next_hops
from tests.e2e.api import Object
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.test_mode_change import MIGRATES, MULTI_POOL


@pytest.mark.parametrize("mode", ["bystander", "adopt"])
def test_pods_keep_their_addresses_and_routers_lose_the_blocks_until_agents_restart(
    begin: Begin, operator: Operator, mode: str
) -> None:
    if operator.version < (1, 20):
        pytest.skip("Cilium has it from 1.20 on")
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE)
    announce(lab.api, operator.version)

    def both(advertisement: Object) -> None:
        advertisement["spec"]["advertisements"].append(EVERY_POOL)

    lab.api.change("/apis/cilium.io/v2/ciliumbgpadvertisements/blocks", both)
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        lab.start_pods("a1", "b1", "c1")
        lab.refreshed()
        table = next_hops(lab)
        until(lambda: router.table() == table, "the router has the blocks of the lock", 300)
        blocks, addresses = lab.blocks(), lab.addresses()

        for file in lab.site.folder.glob("*-ippool.yaml"):
            if '"unlisted"' in file.read_text():  # of adopt alone
                file.unlink()
        merge_mode(lab, MULTI_POOL)
        with lab.pinging("a1", "b1", "c1") as pings:
            lab.sh("ipamc apply fleet --before-flags")
            lab.roll_out({**lab.site.config, **MIGRATES})
            until(lambda: router.table() == {}, "the router has lost them: podCIDRs are gone", 120)
            for name in lab.names:
                lab.agents(name)
                lab.ready()
            until(lambda: router.table() == table, "the router has them again, as blocks of the pool", 300)
            lab.roll_out()
            lab.sh("ipamc apply fleet")
            lab.agents(lab.names)
            lab.ready()
            lab.start_pods("a2", "b2", "c2")
        assert not lost(pings)
        assert lab.blocks() == blocks
        assert {name: lab.addresses()[name] for name in addresses} == addresses
        lab.as_locked()
