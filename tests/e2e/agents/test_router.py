"""What a router learns over BGP: each node's block of the lock, with that node as the next hop."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab
from tests.e2e.agents.router import BGP_CONTROL_PLANE, Router, announce
from tests.e2e.processes import until


def next_hops(lab: Lab) -> dict[str, list[str]]:
    """Return the router's table as the lock wants it."""
    return {block: [lab.nodes[name].address] for name, lines in lab.site.lock().items() for _, block in lines}


@pytest.mark.parametrize("mode", ["kubernetes", "bystander", "adopt", "pinned"])
def test_a_router_learns_the_locks_blocks_and_nothing_else(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE)
    announce(lab.api, multi_pool=mode == "pinned")
    with Router(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 120)

        lab.nodes["b"].stop_agent()
        expected = next_hops(lab)
        del expected["10.0.0.32/27"]
        until(lambda: router.table() == expected, "the block of a node without an agent is withdrawn", 120)
        lab.agents(["b"])
        until(lambda: router.table() == next_hops(lab), "it is announced again", 120)
