"""The arithmetic of `model/follows.py` in CEL: from the InternalIPs of a node to its blocks.

CEL has no 128-bit numbers. For an IPv6 address only the last group is computed, and for a block the two
groups that differ from block to block; `string(cidr(...))` then writes the canonical form (RFC 5952).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ipamc.model.address_sets import aggregated, lines_over
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Cluster
from ipamc.model.follows import area_of
from ipamc.model.lock import Line, State

_GROUP, _GROUPS = 16, 8
_DIGITS = "'0123456789abcdef'"
_ADDRESS_6 = "string(ip({address}))"
_LAST_GROUP = f"'0000' + {_ADDRESS_6}.substring({_ADDRESS_6}.lastIndexOf(':') + 1)"
_HEX = f"map(it, it.substring(size(it) - 4))[0].split('').map(it, {_DIGITS}.indexOf(it))"
_DIGITS_OF = {4: (256, "{address}.split('.').map(it, int(it))"), 6: (16, f"[{_LAST_GROUP}].{_HEX}")}
"""The base of the four digits that distinguish the addresses of a network, and the digits."""
_TEXT = {
    4: "[16777216, 65536, 256, 1].map(it, string({value} / it % 256)).join('.')",
    6: "[{value} / 65536, {value} % 65536]"
    f".map(it, [4096, 256, 16, 1].map(of, {_DIGITS}.charAt(it / of % 16)).join('')).join(':')",
}
"""The part of a block's text that differs from block to block."""


class Follows(NamedTuple):
    """The networks whose addresses have blocks, and the positions of the blocks."""

    network: Block
    area: Block
    block_size: int


def variables(cluster: Cluster, lines: Sequence[Line], addresses: str) -> Iterator[tuple[str, str]]:
    """Yield variables of a policy; the last one, `followed`, is the list of a node's blocks, IPv4 first.
    It is empty unless the node has one address in such networks for each family. `addresses`: the expression
    for the InternalIPs; "" if the object has none. No node gets a block that `lines`, by address, have.
    """
    parts = [part for pool in cluster.pools for part in pool.families.values()]
    follows = [
        Follows(part.follows.block, area, part.block_size)
        for part in parts
        if part.follows and (area := area_of(part))
    ]
    families = sorted(cluster.families)
    if addresses and {each.network.family for each in follows} >= {*families}:
        yield "addresses", addresses
        for family in families:
            yield from _of_family(family, [each for each in follows if each.network.family == family], lines)
        each = [f"variables.followed{family}" for family in families]
        one = " && ".join(f"size({followed}) == 1" for followed in each)
        yield "followed", f"{one} ? {' + '.join(each)} : []"


def _of_family(family: int, follows: Sequence[Follows], lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Yield the variables up to `followed4` or `followed6`. Most are read only if there is an address."""
    base, digits = _DIGITS_OF[family]
    networks, address, network, digit, value, block, taken = (
        f"variables.{name}{family}"
        for name in ("networks", "address", "network", "digits", "value", "block", "taken")
    )
    over = (line for each in follows for line in lines_over(lines, each.area))
    there = [str(block) for block in aggregated(one.block for one in over if one.state is not State.RELEASED)]
    free = f"!{taken}.exists(it, cidr(it).containsCIDR({block}) || cidr({block}).containsCIDR(it))"
    number = f"(({digit}[0] * {base} + {digit}[1]) * {base} + {digit}[2]) * {base} + {digit}[3]"
    yield f"networks{family}", str([_row(each) for each in follows])
    yield (
        f"address{family}",
        (f"variables.addresses.filter(it, isIP(it) && {networks}.exists(of, cidr(of[0]).containsIP(it)))"),
    )
    yield f"network{family}", f"{networks}.filter(it, cidr(it[0]).containsIP({address}[0]))[0]"
    yield f"digits{family}", digits.format(address=f"{address}[0]")
    yield f"value{family}", f"int({network}[2]) + ({number} - int({network}[1])) * int({network}[3])"
    text = _TEXT[family].format(value=value)
    yield f"block{family}", f"string(cidr({network}[4] + {text} + {network}[5]))"
    if there:
        yield f"taken{family}", str(there)
    only = f"size({address}) == 1{f' && {free}' if there else ''}"
    yield f"followed{family}", f"{only} ? [{block}] : []"


def _row(follows: Follows) -> list[str]:
    """Return a policy's data about a network: itself, the number of its first address, the number of the
    first block and the step to the next one, and the text before and after that number in a block.
    """
    (family, first, _), area, size = follows
    network, end, host = str(follows.network), f"/{size}", BITS[family] - size
    if family == 4:
        return [network, str(first), str(area.first), str(1 << host), "", end]
    after = min(host // _GROUP, _GROUPS - 2)
    groups = [area.first >> (_GROUP * at) & 0xFFFF for at in reversed(range(_GROUPS))]
    base = area.first >> (_GROUP * after) & 0xFFFFFFFF
    before = "".join(f"{group:x}:" for group in groups[: _GROUPS - 2 - after])
    step = 1 << (host - _GROUP * after)
    return [network, str(first & 0xFFFF), str(base), str(step), before, ":0" * after + end]
