"""Blocks that are applied before Cilium runs are the ones that pods get addresses of, whatever restarts."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin


@pytest.mark.deep(part=3)
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
