"""Blocks that are applied before Cilium runs are the ones that pods get addresses of, whatever restarts."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab
from tests.e2e.api import CILIUM_NODES, NODES


@pytest.mark.deep("adopt", "annotated")
@pytest.mark.parametrize("mode", MODES)
def test_pods_have_addresses_of_the_locks_blocks_and_reach_each_other(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "a2", "b1", "c1")
    lab.as_locked()
    with lab.undisturbed("a1", "b1"):
        lab.agents(lab.nodes)
        lab.ready()
        lab.start_operator()
        lab.agents(lab.nodes)
        lab.ready()
    lab.start_pods("c2")
    lab.as_locked()
    nodes = {name: [node["metadata"]["uid"]] for name, node in lab.api.items(NODES).items()}
    assert owners(lab) == nodes


def owners(lab: Lab) -> dict[str, list[str]]:
    """Return the uids of what owns each CiliumNode: its agent says so, also where it was applied before."""
    return {
        name: [each["uid"] for each in node["metadata"]["ownerReferences"]]
        for name, node in lab.api.items(CILIUM_NODES).items()
    }
