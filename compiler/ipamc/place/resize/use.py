"""Which addresses a dump says are in use, by anybody."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from ipamc.model.cidr import Address, Block
from ipamc.model.dump import Dump


class Use:
    """Addresses in use. An address that any object of the dump says is used counts, whichever node it names.

    CiliumNodes tell it (`status.ipam.used` in crd mode, and the agent's own addresses in every mode),
    CiliumEndpoints, and Pods that are not on the host's network and have not ended.
    """

    def __init__(self, addresses: Iterable[Address]) -> None:
        numbers: dict[int, set[int]] = defaultdict(set)
        for family, number in addresses:
            numbers[family].add(number)
        self._numbers = {family: sorted(found) for family, found in numbers.items()}

    def count(self, block: Block) -> int:
        """Count the addresses of a block that are in use. O(log n)."""
        numbers = self._numbers.get(block.family, [])
        return bisect.bisect_right(numbers, block.last) - bisect.bisect_left(numbers, block.first)


def use_of(dump: Dump) -> Use:
    """Return the addresses in use. O(n log n)."""
    return Use(chain.from_iterable(dump.in_use.values()))


def sources(dump: Dump) -> tuple[str, ...]:
    """Return what in a dump tells of use, as users call it; () if nothing does."""
    found = {
        "CiliumNodes (status.ipam.used)": any(node.used for node in dump.cilium_nodes),
        "CiliumEndpoints": bool(dump.endpoints),
        "Pods": bool(dump.pods),
    }
    return tuple(name for name, there in found.items() if there)
