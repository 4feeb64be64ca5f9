"""What an import makes of a dump, before it is text: one value for every source (Cilium's modes, Calico, ...)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic

Blocks = tuple[tuple[Block, str], ...]
"""(block, name of its pool), in the order in which the cluster has them."""


class DraftPool(Struct, frozen=True, kw_only=True):
    """An IPPool to be written."""

    name: str
    ranges: Mapping[int, tuple[Block, ...]]
    """By family, in the order of allocation."""
    sizes: Mapping[int, int]
    """`blockSize`: a prefix length by family."""
    selector: Any = None
    """Calico's text, or a LabelSelector or NodeSelector; None: every node."""
    priority: int = 0
    reserved: tuple[Block, ...] = ()
    block_sizes: tuple[tuple[Any, Mapping[int, int]], ...] = ()
    """(selector, prefix lengths by family) of classes of nodes."""
    blocks_per_node: int = 1
    unlisted: bool = False
    disabled: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the spec, as they are written."""
    comment: str = ""
    """One line above the pool: where it comes from."""


class DraftRange(Struct, frozen=True, kw_only=True):
    """An entry of `excludedCIDRs`."""

    block: Block
    why: str
    """A few words, for the comment beside it."""


class Draft(Struct, frozen=True, kw_only=True):
    """The cluster to be written."""

    mode: Mode
    families: tuple[int, ...]
    """The first is the primary family."""
    pools: tuple[DraftPool, ...]
    blocks: Mapping[str, Blocks]
    """By node: every block that it holds. A node without blocks gets one by the next compile."""
    fresh: bool = False
    """No pod has an address of these pools yet, so every node may get a new block, also one that runs."""
    excluded: tuple[DraftRange, ...] = ()
    """Beside the service range and the node networks, which every import looks for."""
    ipam: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of `spec.ipam`: `operator`, `pinning`, `autoCreate`."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of `spec`: `unpooled`, `unmatchedNodes`, `patchNodes`."""
    label_keys: frozenset[str] = frozenset()
    """Keys of node labels that selectors of these pools use: the inventory must have them."""
    decisions: tuple[Diagnostic, ...] = ()
    """What a person must decide; an error means that nothing is written."""
