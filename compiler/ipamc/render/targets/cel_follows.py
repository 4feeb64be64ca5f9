"""The arithmetic of `model/follows.py` in CEL: the InternalIPs of a node in, its blocks out.

CEL has no numbers of 128 bits, so an address of IPv6 is taken by its last group, and a block is put together
from hexadecimal groups; `string(cidr(...))` then writes it as everybody does (RFC 5952).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipamc.model.cidr import BITS
from ipamc.model.cluster import Cluster, Pool, PoolFamily
from ipamc.model.follows import area_of
from ipamc.model.lock import Line, State

_GROUP = 16
_GROUPS = BITS[6] // _GROUP
_DIGITS = "'0123456789abcdef'"


def variables(cluster: Cluster, lines: Iterable[Line], addresses: str) -> Iterator[tuple[str, str]]:
    """Yield variables of a policy; the last one, `followed`, is the list of a node's blocks, IPv4 first.
    It is empty unless the node has one address in such networks for each family. `addresses`: the expression
    for the InternalIPs; "" if the object has none. Blocks that another node holds are given to nobody.
    """
    pools = [pool for pool in cluster.pools if pool.follows]
    if not pools or not addresses:
        return
    there = [line for line in lines if line.state is not State.RELEASED]
    yield "addresses", addresses
    names = []
    for family in sorted(cluster.families):
        texts = [_blocks(pool, part, there) for pool in pools if (part := pool.families.get(family))]
        names.append(f"variables.followed{family}")
        yield f"followed{family}", " + ".join(texts) or "[]"
    each = " && ".join(f"size({name}) == 1" for name in names)
    yield "followed", f"{each} ? {' + '.join(names)} : []"


def _blocks(pool: Pool, part: PoolFamily, lines: Iterable[Line]) -> str:
    """Return the expression for the blocks of the addresses in one network."""
    network, area = part.follows, area_of(part)
    if network is None or area is None:
        return "[]"
    inside = f"isIP(it) && cidr('{network.block}').containsIP(it)"
    number, block = (_number_4, _block_4) if part.family == 4 else (_number_6, _block_6)
    taken = sorted(set(_taken(pool, part, lines)))
    free = f".filter(it, !(it in {taken}))" if taken else ""
    return f"variables.addresses.filter(it, {inside}){number(network.block.first)}{free}{block(part)}"


def _taken(pool: Pool, part: PoolFamily, lines: Iterable[Line]) -> Iterator[int]:
    """Yield the places in the network whose blocks other nodes have in the lock."""
    network, area = part.follows, area_of(part)
    if network is None or area is None:
        return
    step = 1 << (BITS[part.family] - part.block_size)
    for line in lines:
        own = any(pin.block == line.block for pin in pool.pins.get(line.node, ()))
        if not own and line.block.overlaps(area):
            first, last = max(line.block.first, area.first), min(line.block.last, area.last)
            yield from range((first - area.first) // step, (last - area.first) // step + 1)


def _number_4(first: int) -> str:
    """Return the step from addresses to their places in a network that begins at `first`."""
    whole = "((it[0] * 256 + it[1]) * 256 + it[2]) * 256 + it[3]"
    return f".map(it, it.split('.').map(part, int(part))).map(it, {whole} - {first})"


def _block_4(part: PoolFamily) -> str:
    """Return the step from places to blocks."""
    base, step = part.ranges[0].block.first, 1 << (BITS[4] - part.block_size)
    octets = " + '.' + ".join(
        f"string(it / {1 << bits} % 256)" if bits else "string(it % 256)" for bits in (24, 16, 8, 0)
    )
    return f".map(it, {base} + it * {step}).map(it, {octets} + '/{part.block_size}')"


def _number_6(first: int) -> str:
    last = ".map(it, string(ip(it)).split(':')).map(it, it[size(it) - 1])"
    four = ".map(it, ('0000' + it).substring(size(it)))"
    digits = " + ".join(f"{_DIGITS}.indexOf(it.charAt({at})) * {16 ** (3 - at)}" for at in range(4))
    return f"{last}{four}.map(it, {digits} - {first % (1 << _GROUP)})"


def _block_6(part: PoolFamily) -> str:
    """Return the step from places to blocks: a place, shifted, lies in two neighbouring groups at most."""
    base = part.ranges[0].block.first
    groups = [base >> (_GROUP * (_GROUPS - 1 - at)) & 0xFFFF for at in range(_GROUPS)]
    group, shift = divmod(BITS[6] - part.block_size, _GROUP)
    low = _GROUPS - 1 - group  # counted from the left, as groups are written
    changed = {low: f"it * {1 << shift} % 65536"}
    if low:
        changed[low - 1] = f"it * {1 << shift} / 65536"
    numbers = ", ".join(f"{groups[at]} + {changed[at]}" for at in sorted(changed))
    hexadecimal = " + ".join(f"{_DIGITS}.charAt(it / {16**place} % 16)" for place in (3, 2, 1, 0))
    places = sorted(changed)
    text = " + ':' + ".join(
        f"it[{places.index(at)}]" if at in changed else f"'{groups[at]:x}'" for at in range(_GROUPS)
    )
    pairs = f".map(it, [{numbers}]).map(pair, pair.map(it, {hexadecimal}))"
    return f"{pairs}.map(it, string(cidr({text} + '/{part.block_size}')))"
