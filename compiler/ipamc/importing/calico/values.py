"""Calico's pools, and the blocks that nodes hold."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Span
from ipamc.model.selector.selector import Selector


class CalicoPool(Struct, frozen=True, kw_only=True):
    """An IPPool."""

    name: str
    block: Block
    size: int  # prefix length of its blocks
    selector: Selector
    workload: bool  # pods get its addresses; False: only tunnels or load balancers do
    overlay: str = ""  # `ipipMode` or `vxlanMode` if it is not Never
    halted: str = ""  # why Calico creates no new blocks in it for the pods of a node; "": it does
    labels: Mapping[str, str] = field(default_factory=dict)
    at: Span


class Claim(Struct, frozen=True):
    """A block, and the node that has it."""

    block: Block
    node: str
    at: Span


class Borrowed(Struct, frozen=True):
    """An address that is used by another node than the owner of its block."""

    family: int
    address: int
    user: str  # as `SeenBlock.users`
    claim: Claim
