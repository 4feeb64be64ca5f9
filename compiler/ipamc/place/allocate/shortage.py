"""Findings about nodes that got no block: full pools, rejected pools, and what to do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.utilisation import utilisation
from ipamc.model.address_sets import addresses_taken, blocks_over, lines_over, shared
from ipamc.model.cidr import BITS
from ipamc.model.cluster import AddressSpace, Dialect, Pool, PoolFamily, Scheme
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, several, warning
from ipamc.model.limits import LEAST_BITS, LEAST_HOST_BITS, SMALLER_SIZES, SMALLER_SIZES_AT_FIRST
from ipamc.model.lock import Line, Lock
from ipamc.model.node import Node
from ipamc.model.plan import Offer
from ipamc.model.pool_words import block_size, more_room, range_for, terms
from ipamc.model.wording import ip
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy, Reuse
from ipamc.place.quarantine import first_day

_LAST_DAY = "9999-12-31"
"""A day on which every quarantine is over."""


class Passed(NamedTuple):
    """A rejected pool. Part of a sort key."""

    pool: str
    why: str
    """A predicate: "is disabled"."""
    barred: bool = False
    """It could serve the node, but must not replace the full pool."""


class Short(msgspec.Struct, frozen=True):
    """A node whose pool is full and has no replacement. There may be 100,000 of them."""

    node: Node
    offer: Offer
    full: tuple[int, ...]
    """Families without room."""
    room: tuple[int, ...]
    """Families in which the pool had room, but gave no block because of the full ones."""
    passed: tuple[Passed, ...]


class Unserved(msgspec.Struct, frozen=True):
    """A node whose candidates have no range of a family. There may be 100,000 of them."""

    node: Node
    families: tuple[int, ...]
    passed: tuple[Passed, ...]


def no_room(
    cluster: Scheme, shorts: Iterable[Short], after: Occupancy, before: Lock | None = None
) -> Iterator[Diagnostic]:
    """IPC0303: the pool that serves a node has room for it."""
    these = (short for short in shorts if not short.room)
    for shortage, nodes, pool in _full_pools(cluster, these, after, before):
        message = f"pool {shortage.pool} has no room for {_nodes(cluster, nodes)}; {pool.words(shortage)}"
        also = [Related(nodes[0].at, f"{terms(cluster).unit} {nodes[0].name} needs a block")]
        yield error("IPC0303", pool.at, message, also=also, help=pool.ways_out)


def half_room(
    cluster: Scheme, shorts: Iterable[Short], after: Occupancy, before: Lock | None = None
) -> Iterator[Diagnostic]:
    """IPC0305: a dual-stack pool serves all the families that a node still needs, or none."""
    these = (short for short in shorts if short.room)
    for shortage, nodes, pool in _full_pools(cluster, these, after, before):
        rooms = f"room in {ip(shortage.room)} but not in {ip(dict(shortage.full))}"
        message = f"pool {shortage.pool} has {rooms} for {_nodes(cluster, nodes)}; {pool.words(shortage)}"
        also = [Related(nodes[0].at, f"{terms(cluster).unit} {nodes[0].name} needs both")]
        yield error("IPC0305", pool.at, message, also=also, help=pool.ways_out)


def no_room_to_grow(cluster: Scheme, shorts: Iterable[Short], after: Occupancy) -> Iterator[Diagnostic]:
    """IPC0616: a pool has room for the nodes that `ipamc resize` would give more blocks."""
    for shortage, nodes, pool in _full_pools(cluster, shorts, after):
        message = (
            f"pool {shortage.pool} has no room to grow for {_nodes(cluster, nodes)}; {pool.words(shortage)}"
        )
        also = [Related(nodes[0].at, f"node {nodes[0].name} uses most of its blocks")]
        yield warning("IPC0616", pool.at, message, also=also, help=pool.ways_out)


def no_room_for_maximum(
    cluster: Scheme, shorts: Sequence[Short], after: Occupancy, before: Lock
) -> Iterator[Diagnostic]:
    """IPC0315: pools have room for all nodes that `maximum` allows."""
    order = {short.node.name: number for number, short in reversed([*enumerate(shorts)])}
    for shortage, nodes, pool in _full_pools(cluster, shorts, after, before):
        first = min(nodes, key=lambda node: order[node.name])
        lack = f"pool {shortage.pool} has no room for {count(len(nodes), 'node')} that maximum allows"
        message = f"{lack} (first {first.name}); {pool.words(shortage)}"
        also = [Related(pool.at, f"pool {shortage.pool} is full then")]
        fix = f"{pool.ways_out}; or lower maximum"
        yield warning("IPC0315", first.at / "maximum", message, also=also, help=fix)


def no_family(cluster: Scheme, unserved: Iterable[Unserved]) -> Iterator[Diagnostic]:
    """IPC0307: candidate pools give each node every IP family of the cluster."""
    groups = _by_value(((found.families, found.passed), found.node) for found in unserved)
    for (families, passed), nodes in sorted(groups.items(), key=lambda item: item[0]):
        nodes.sort(key=lambda node: node.name)
        pools = f"; {_passed_text(passed)}" if passed else "; no pool is a candidate"
        message = f"no candidate pool gives {ip(families)} to {_nodes(cluster, nodes)}{pools}"
        lacks = ip(families)
        fix = f"let a pool with ranges of {lacks} select the node, or take {lacks} out of ipFamilies"
        if isinstance(cluster, AddressSpace):
            fix = f"add {' and '.join(f'ipv{family}' for family in families)} to the address space"
        if any(cluster.pools_by_name[pool.pool].follows for pool in passed):
            fix = f"add its {lacks} InternalIP to the inventory (internalIPs); or {fix}"
        yield error("IPC0307", nodes[0].at, message, help=fix)


Reasons = tuple[Any, ...]
"""Facts that nodes have in common; the rejected pools are the last one."""


class Shortage(NamedTuple):
    """The facts that the nodes without a block in one finding have in common. Sorts by pool."""

    pool: str
    full: tuple[tuple[int, int], ...]
    """Families without room, and the requested prefix length."""
    room: tuple[int, ...]
    passed: tuple[Passed, ...]


def grouped(shorts: Iterable[Short]) -> list[tuple[Shortage, list[Node]]]:
    """Group nodes without a block by common facts and by pool: each group is one finding."""
    pairs: list[tuple[Reasons, Node]] = []
    for short in shorts:
        full = tuple((family, short.offer.sizes[family]) for family in short.full)
        pairs.append(((short.offer.pool.name, full, short.room, short.passed), short.node))
    groups = sorted(_by_value(pairs).items(), key=lambda item: item[0])
    return [(Shortage(*reasons), sorted(nodes, key=lambda node: node.name)) for reasons, nodes in groups]


def _by_value(pairs: Iterable[tuple[Reasons, Node]]) -> dict[Reasons, list[Node]]:
    """Group nodes by equal reasons; rejected pools that nodes share are compared once."""
    passed: dict[int, tuple[Passed, ...]] = {}
    shared: dict[tuple[Any, ...], list[Node]] = defaultdict(list)
    for reasons, node in pairs:
        passed[id(reasons[-1])] = reasons[-1]
        shared[*reasons[:-1], id(reasons[-1])].append(node)
    groups: dict[Reasons, list[Node]] = defaultdict(list)
    for (*others, number), nodes in shared.items():
        groups[*others, passed[number]] += nodes
    return groups


Sizes = tuple[tuple[int, int], ...]
"""Families without room, and the requested prefix length."""


class _FullPool(Struct, frozen=True, kw_only=True):
    """The contents of a pool in the families that are full, as text, and what can be done."""

    at: At
    contents: str
    ways_out: str

    def words(self, shortage: Shortage) -> str:
        """Return its contents, and the rejected pools."""
        return self.contents + (f"; skipped: {_passed_text(shortage.passed)}" if shortage.passed else "")


def _full_pools(
    cluster: Scheme, shorts: Iterable[Short], after: Occupancy, before: Lock | None = None
) -> Iterator[tuple[Shortage, list[Node], _FullPool]]:
    """Yield each shortage with its nodes and its pool. `before` has the lines without newcomers, if known."""
    groups, lack = grouped(shorts), Counter[tuple[str, Sizes]]()
    for shortage, nodes in groups:
        lack[shortage.pool, shortage.full] += len(nodes)
    known = {key: _full_pool(cluster, *key, number, after, before) for key, number in lack.items()}
    yield from ((shortage, nodes, known[shortage.pool, shortage.full]) for shortage, nodes in groups)


def _full_pool(
    cluster: Scheme, name: str, full: Sizes, lack: int, after: Occupancy, before: Lock | None
) -> _FullPool:
    """Return the contents of a pool in its full families, where `lack` nodes lack a block."""
    pool = cluster.pools_by_name[name]
    blocks = lack if cluster.mode.one_block else lack * pool.blocks_per_node
    contents, ways = list[str](), list[str]()
    release = ""
    for family, prefix in full:
        part = pool.families[family]
        total = held = quarantined = blocked = 0
        for block in (cidr.block for cidr in part.ranges):
            total += block.size
            lines = lines_over(after.lines, block)
            held += sum(shared(line.block, block).size for line in lines if line.in_use)
            waiting = (line for line in lines if not line.in_use and not after.reusable(line))
            quarantined += sum(shared(line.block, block).size for line in waiting)
            for inside in (shared(kept, block) for kept in blocks_over(after.blocked, block)):
                in_lines = addresses_taken(inside, (line.block for line in lines_over(lines, inside)))
                blocked += inside.size - in_lines
        use = _Use(total=total, held=held, quarantined=quarantined, blocked=blocked)
        reuse = _next_reuse(part, prefix, after) if use.quarantined else None
        contents.append(_contents(cluster, part, prefix, use, reuse))
        if before:
            number = blocks << (BITS[family] - prefix)
            contents.append(f"{count(blocks, 'more is', 'more are')} needed ({number:,} addresses)")
        ways.append(more_room(cluster, pool, family, range_for(prefix, blocks)))
        if reuse:
            block = min(reuse.lines[0].block, reuse.block, key=lambda block: block.prefix)
            release = f"if nothing uses {block}: ipamc lock {cluster.name} --release {block}"
        if before and (found := smaller_blocks(cluster, pool, (family, prefix), before, after.lines, blocks)):
            ways.append(words(pool, family, found))
    may_overflow = (
        cluster.mode.one_block and not isinstance(cluster, AddressSpace) and pool.dialect is Dialect.NATIVE
    )
    if may_overflow and len(cluster.pools) > 1:
        ways.append("add a pool with room to overflow")
    first = pool.families[full[0][0]]
    at = first.ranges[0].at if first.ranges else first.at
    ways_out = "; or ".join(filter(None, (*ways, release)))
    return _FullPool(at=at, contents="; ".join(contents), ways_out=ways_out)


def _next_reuse(part: PoolFamily, prefix: int, after: Occupancy) -> Reuse | None:
    """Return the place that becomes re-usable first, when its quarantine is over, or None."""
    over = Occupancy(after.lines, after.blocked, last_day=_LAST_DAY)
    place = Space(part.family, [cidr.block for cidr in part.ranges], over).find(prefix)
    return place.reuse if place and place.reuse and place.reuse.day else None


def _contents(cluster: Scheme, part: PoolFamily, prefix: int, use: _Use, reuse: Reuse | None) -> str:
    """Return a phrase for the number of blocks of a size in a pool and family, and their use."""
    size = 1 << (BITS[part.family] - prefix)
    until = ""
    if reuse:
        days = cluster.quarantine_days
        day = "" if days is None else first_day(reuse.day, days)
        until = f" (the next is free on {day})" if day else " for ever"
    shares = (
        (use.held, "held"),
        (use.quarantined, f"in quarantine{until}"),
        (use.blocked, "reserved, excluded or pinned"),
        (use.free, "free in pieces too small"),
    )
    parts = ", ".join(f"{_blocks(number, size)} {what}" for number, what in shares if number)
    total = f"{_blocks(use.total, size)} {'block' if use.total == size else 'blocks'}"
    return f"IPv{part.family} /{prefix}: {total}, {parts}"


class _Use(Struct, frozen=True, kw_only=True):
    """The use of a pool's addresses in one family."""

    total: int
    held: int
    """Held or pending."""
    quarantined: int
    """Quarantined, and not re-usable today."""
    blocked: int
    """Reserved, excluded or pinned, and in no line."""

    @property
    def free(self) -> int:
        """The rest."""
        return self.total - self.held - self.quarantined - self.blocked


def _blocks(addresses: int, size: int) -> str:
    """Return a number of addresses as blocks of a size, to a tenth."""
    whole, tenth = divmod(addresses * 10 // size, 10)
    if addresses and not whole and not tenth:
        return "less than 0.1"
    return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"


def _nodes(cluster: Scheme, nodes: list[Node]) -> str:
    return several([node.name for node in nodes], terms(cluster).unit)


def _passed_text(passed: tuple[Passed, ...]) -> str:
    pools = [f"pool {pool.pool} {pool.why}" for pool in passed[:8]]
    return ", ".join(pools) + (f" and {len(passed) - 8:,} more" if len(passed) > 8 else "")


class Smaller(NamedTuple):
    """A block size of which enough blocks are free."""

    prefix: int
    room: int
    """The number of free blocks."""
    wanted: int


def free_blocks(cluster: Scheme, lock: Lock, pool: Pool, family: int, prefix: int) -> int:
    """Count the blocks of a prefix length that newcomers could get in a pool. O(lines of the pool)."""
    part = replace(pool.families[family], block_size=prefix)
    alone = replace(cluster, pools=(replace(pool, families={family: part}),))
    return utilisation(alone, lock)[0].use.blocks_free


def smaller_blocks(
    cluster: Scheme, pool: Pool, full: tuple[int, int], before: Lock, after: Sequence[Line], lack: int
) -> Smaller | None:
    """Return the largest smaller block that makes room for all newcomers, or None; others keep theirs.
    `full` is the family and prefix length of the `lack` blocks; `after` has new lines, `before` has not.
    """
    family, prefix = full
    if (
        prefix != pool.families[family].block_size
        or cluster.shared_pools
        or isinstance(cluster, AddressSpace)
    ):
        return None  # a size of `blockSizes`; or an operator whose maskSize is fixed
    old = {line.block for line in before.lines}
    new = [line.block for line in after if line.pool == pool.name and line.block.family == family]
    wanted = lack + sum(block not in old for block in new)
    least = LEAST_HOST_BITS if pool.dialect is Dialect.CLUSTER_CIDR else LEAST_BITS
    most = prefix + (SMALLER_SIZES if old else SMALLER_SIZES_AT_FIRST)
    for size in range(prefix + 1, min(most, BITS[family] - least) + 1):
        if (room := free_blocks(cluster, before, pool, family, size)) >= wanted:
            return Smaller(size, room, wanted)
    return None


def words(pool: Pool, family: int, found: Smaller, of: str = "") -> str:
    """Return the advice that newcomers could get smaller blocks."""
    size = f"{1 << (BITS[family] - found.prefix)} addresses"
    room = f"{found.room:,} free, {found.wanted:,} needed"
    return f"set {block_size(pool, family, found.prefix)} for new nodes{of} ({size}; {room})"
