"""What a question leaves out of a cluster's files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ipamc.read.kinds import KINDS

LISTS = "List"
"""The kind of a list of any kind; and the end of the name of a list of one kind."""

_part_of_name = re.compile(rb"[A-Za-z0-9._-]").match


class LeftOut(Struct, frozen=True):
    """Documents and items of some kinds, and entries of a NodeInventory, but for those about one node."""

    kinds: frozenset[str]
    """Names of KINDS that are `of_nodes`; no other kind has one of these names."""
    but: str = ""
    """What contains the name of this node is read; "" for none."""

    def all_of(self, kinds: Iterable[str]) -> bool:
        """Tell whether a list of items of these kinds has no other items. False for no kinds."""
        found = {kind.removesuffix(LISTS) for kind in kinds} - {""}
        return bool(found) and found <= self.kinds

    def any_of(self, kinds: Iterable[str]) -> bool:
        """Tell whether something of these kinds is left out."""
        return any(kind.removesuffix(LISTS) in self.kinds for kind in kinds)

    def mentions(self, data: bytes, start: int, end: int) -> list[int]:
        """Return where the name of the node stands alone: `node-1` is not in `node-10`."""
        name, found = self.but.encode(), []
        at = data.find(name, start, end) if name else -1
        while at >= 0:
            after = at + len(name)
            if not _part_of_name(data[at - 1 : at]) and not _part_of_name(data[after : after + 1]):
                found.append(at)
            at = data.find(name, at + 1, end)
        return found


_OF_NODES = frozenset({kind.name for kind in KINDS if kind.of_nodes})
NO_NODES = LeftOut(_OF_NODES - {"CiliumNode"})
"""CiliumNodes are read: those without a node take addresses of pools."""


def only_node(name: str) -> LeftOut:
    """Leave out all that tells of other nodes."""
    return LeftOut(_OF_NODES, name)
