"""A node that is created again under its name has the block that it had."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import lost

NODE = "b"


@pytest.mark.deep("kubernetes", "shared")
@pytest.mark.parametrize("mode", MODES)
def test_a_machine_that_is_installed_again_has_its_block(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    blocks = lab.blocks()

    with lab.pinging("a1", "c1") as pings:
        lab.conditions = {"cordon", "drain"}
        lab.play(lab.runbook(f"--change replace-node --node {NODE}"))
        assert lab.blocks() == blocks
        lab.start_pods("b1")
    assert not lost(pings)
    lab.as_locked()
