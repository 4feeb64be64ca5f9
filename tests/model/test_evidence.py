"""Evidence of the blocks that nodes use."""

from __future__ import annotations

import pytest

from ipamc.model.diagnostics import Span
from ipamc.model.evidence import waits
from ipamc.model.node import CiliumNode, Node

AT = Span("dump.json")


@pytest.mark.parametrize("unreadable", [(), (("nonsense", ""),)])
def test_a_node_waits_unless_it_may_have_a_block(unreadable: tuple[tuple[str, str], ...]) -> None:
    seen = CiliumNode("n", AT, error="the pool is full", unreadable=unreadable)
    assert waits(Node("n", {}, AT, ready=True), seen) is not bool(unreadable)
