"""Whether a held block may stay, and what is odd about it (rules 1 and 2 of the lock)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from ipamc.check.multi_pool import mask_size_changed
from ipamc.lock.file import line_at
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Mode, Pool, Range
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, names, warning
from ipamc.model.lock import Key, Line, Lock, State
from ipamc.model.plan import Want
from ipamc.model.range_index import RangeIndex, first_overlap
from ipamc.place.candidates import offer

Where = Callable[[Line], At]
Pending = Collection[Block]
"""Held blocks that are on their way out."""


def judge_held(
    cluster: Cluster,
    by_name: Mapping[str, Want],
    lock: Lock,
    lines: Collection[Line],
    range_index: RangeIndex,
    on_the_move: Collection[Key] = (),
    *,
    new: bool = False,
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the held and pending lines of nodes in the inventory, grouped by pool; cost O(lines).

    An illegal line of what is `on_the_move` is only a warning until the renumber settles. With `new`, the lines are not in the lock's text yet (returned, adopted): findings stand at their nodes.
    """

    def where(line: Line) -> At:
        return by_name[line.node].node.at if new else line_at(lock, line)

    pending: set[Block] = set()
    nowhere: dict[str, list[Line]] = defaultdict(list)
    inside: dict[Range, list[Line]] = defaultdict(list)
    foreign: dict[int, list[Line]] = defaultdict(list)
    renamed: dict[tuple[str, str], list[Line]] = defaultdict(list)
    unselected: dict[str, list[Line]] = defaultdict(list)
    resized: dict[tuple[str, int, int], list[Line]] = defaultdict(list)
    around: dict[Range, list[Line]] = defaultdict(list)
    pools = {pool.name: pool for pool in cluster.pools}

    for line in lines:
        if not line.in_use or line.node not in by_name:
            continue
        ground = range_index.of(line.block)
        excluded = first_overlap(cluster.excluded, line.block)
        if on_the_move and line.state is State.HELD:
            pool_now = ground.pool.name if ground else line.pool
            if (line.node, line.block.family, "" if cluster.mode.one_block else pool_now) in on_the_move:
                pending.add(line.block)
        if line.block.family not in cluster.families:
            foreign[line.block.family].append(line)
        elif excluded:
            inside[excluded].append(line)
        elif ground is None:
            nowhere[line.pool].append(line)
        else:
            pool = ground.pool
            want = by_name[line.node]
            if line.pool not in {pool.name, ""}:
                renamed[line.pool, pool.name].append(line)
            size = expected_size(pool, want, line.block.family)
            if size is None:
                unselected[pool.name].append(line)
            elif size != line.block.prefix and line.block not in {
                each.block for each in pool.pins.get(line.node, ())
            }:
                resized[pool.name, line.block.prefix, size].append(line)
            if pool.reserved and (reserved := first_overlap(pool.reserved, line.block)):
                around[reserved].append(line)

    yield from outside_pools(cluster, nowhere, where, pending)
    yield from over_excluded(cluster, inside, where, pending)
    yield from other_family(cluster, foreign, where, pending)
    if cluster.mode is Mode.MULTI_POOL:
        yield from renamed_while_held(renamed, where, pools)
    if cluster.shared_pools:
        yield from _other_mask(resized, where, pools)
    yield from no_longer_selected(unselected, where, pools)
    yield from other_size(resized, where, pools)
    yield from over_reserved(around, where)


def expected_size(pool: Pool, want: Want, family: int) -> int | None:
    """Give the prefix length that this pool would give the node today; None if it would not serve it."""
    for each in want.offers:
        if each.pool is pool:
            return each.sizes[family]
        for other in each.instead:
            if other.pool is pool:
                return other.sizes[family]
    node = want.node
    if node.name in pool.pins or pool.unlisted or pool.selector.matches(node.labels, node.name):
        return offer(pool, node.labels, node.name).sizes[family]
    return None


def _by_block(group: tuple[Range, list[Line]]) -> Block:
    """Two pools may reserve the same CIDR: then the group of the lower line stays first."""
    return group[0].block


def _nodes(lines: list[Line]) -> str:
    return f"{count(len({line.node for line in lines}), 'node')}: {names(f'{line.node} ({line.block})' for line in lines)}"


def _weigh(lines: list[Line], pending: Pending) -> Iterator[tuple[Callable[..., Diagnostic], list[Line]]]:
    """Split illegal lines: a held one that a pending line is to replace is on its way out, and only a warning."""
    staying = [line for line in lines if line.block not in pending]
    waiting = [line for line in lines if line.block in pending]
    for make, some in ((error, staying), (warning, waiting)):
        if some:
            yield make, some


def outside_pools(
    cluster: Cluster, groups: Mapping[str, list[Line]], where: Where, pending: Pending
) -> Iterator[Diagnostic]:
    """IPC0410: a held block lies in a range of a pool.

    A range was removed or shrunk while nodes hold blocks of it. ipamc does not renumber them behind your back: put the range back (a pool with
    `disabled: true` gives out nothing new and keeps what is held), consent to a move with `ipamc lock --renumber`, or set `unpooled: hold` on the
    Cluster to keep the blocks as taken without rendering them.
    """
    hold = cluster.unpooled == "hold"
    way_out = "put the range back (disabled: true keeps what is held), or consent to a move: ipamc lock {cluster} --renumber {target}"
    if hold:  # nobody has a block yet that is only to come
        way_out = "put the range back, or cancel the move: ipamc lock {cluster} --release {target}"
    for pool, lines in sorted(groups.items()):
        live = [line for line in lines if line.state is State.HELD]
        if hold and live:
            yield from held_outside_pools(live, where)
        origin = f", last of pool {pool!r}" if pool else ""
        for make, some in _weigh(
            [line for line in lines if line.state is State.PENDING] if hold else lines, pending
        ):
            yield make(
                "IPC0410",
                where(some[0]),
                f"{some[0].block} lies in no range of any pool{origin}; held by {_nodes(some)}",
                help=way_out.format(
                    cluster=cluster.name, target=f"pool/{pool}" if pool and not hold else some[0].node
                ),
            )


def held_outside_pools(lines: list[Line], where: Where) -> Iterator[Diagnostic]:
    """IPC0417: blocks outside every pool are held, and not rendered.

    `unpooled: hold` is set: these blocks count as taken, but no manifest is written for them. Give them a pool again to bring them back.
    """
    yield warning(
        "IPC0417",
        where(lines[0]),
        f"{lines[0].block} is held outside every pool and not rendered: {_nodes(lines)}",
    )


def over_excluded(
    cluster: Cluster, groups: Mapping[Range, list[Line]], where: Where, pending: Pending
) -> Iterator[Diagnostic]:
    """IPC0411: a held block shares no address with an excluded CIDR.

    `excludedCIDRs` is the outside world: service ranges, node networks, other clusters. A node that holds such a block answers for addresses that are
    somebody else's. Take the CIDR out of `excludedCIDRs`, or move the node.
    """
    for excluded, lines in sorted(groups.items(), key=_by_block):
        for make, some in _weigh(lines, pending):
            yield make(
                "IPC0411",
                where(some[0]),
                f"{some[0].block} overlaps excluded {excluded.block}; held by {_nodes(some)}",
                also=[Related(excluded.at, f"{excluded.block} is excluded here")],
                help=f"take {excluded.block} out of excludedCIDRs, or consent to a move: ipamc lock {cluster.name} --renumber {excluded.block}",
            )


def other_family(
    cluster: Cluster, groups: Mapping[int, list[Line]], where: Where, pending: Pending
) -> Iterator[Diagnostic]:
    """IPC0412: a held block is of a family of the cluster.

    A family was taken out of `ipFamilies` while nodes hold blocks of it. Running agents still use them; put the family back.
    """
    for family, lines in sorted(groups.items()):
        for make, some in _weigh(lines, pending):
            yield make(
                "IPC0412",
                where(some[0]),
                f"{some[0].block} is IPv{family}, which is not in ipFamilies; held by {_nodes(some)}",
                also=[Related(cluster.field("spec", "ipFamilies"), "the families are set here")],
                help=f"put IPv{family} back into ipFamilies",
            )


def renamed_while_held(
    groups: Mapping[tuple[str, str], list[Line]], where: Where, pools: Mapping[str, Pool]
) -> Iterator[Diagnostic]:
    """IPC0414: in multi-pool mode a pool keeps its name while nodes hold blocks of it.

    The name is that of the CiliumPodIPPool and stands in every node's `pools.allocated`. Under a new name the operator would not know the blocks:
    up to 1.18 it removes them from running nodes.
    """
    for (old, new), lines in sorted(groups.items()):
        yield error(
            "IPC0414",
            pools[new].at / "metadata" / "name",
            f"pool {old!r} is now {new!r} while its blocks are held by {_nodes(lines)}",
            also=[Related(where(lines[0]), "held here")],
            help=f"name it {old} again",
        )


def no_longer_selected(
    groups: Mapping[str, list[Line]], where: Where, pools: Mapping[str, Pool]
) -> Iterator[Diagnostic]:
    """IPC0304: a node holds a block of a pool that no longer selects it.

    Its labels or the pool's nodeSelector changed. The block stays: a held block is never moved by an edit elsewhere.
    """
    for pool, lines in sorted(groups.items()):
        yield warning(
            "IPC0304",
            where(lines[0]),
            f"pool {pool} no longer selects {_nodes(lines)}",
            also=[Related(pools[pool].selector_at, "the selector is here")],
        )


def other_size(
    groups: Mapping[tuple[str, int, int], list[Line]], where: Where, pools: Mapping[str, Pool]
) -> Iterator[Diagnostic]:
    """IPC0415: a held block has another size than the pool would give today.

    `blockSize` or a size class changed. Held blocks stay as they are; only newcomers get the new size.
    """
    for (pool, have, wish), lines in sorted(groups.items()):
        part = pools[pool].families[lines[0].block.family]
        yield warning(
            "IPC0415",
            where(lines[0]),
            f"/{have} is held where pool {pool} would give a /{wish} now: {_nodes(lines)}",
            also=[Related(part.at / "blockSize", "the size is set here")],
        )


def _other_mask(
    groups: Mapping[tuple[str, int, int], list[Line]], where: Where, pools: Mapping[str, Pool]
) -> Iterator[Diagnostic]:
    """Yield the pools whose lines are of a size that they would not give to any node: their maskSize was another one."""
    for (name, have, _), lines in sorted(groups.items()):
        pool, family = pools[name], lines[0].block.family
        given = {pool.families[family].block_size, *(each.sizes.get(family) for each in pool.block_sizes)}
        if have not in given:
            yield mask_size_changed(
                pool,
                family,
                have,
                pool.families[family].block_size,
                Related(where(lines[0]), f"held by {_nodes(lines)}"),
            )


def over_reserved(groups: Mapping[Range, list[Line]], where: Where) -> Iterator[Diagnostic]:
    """IPC0416: a held block shares addresses with a reserved CIDR.

    The reservation came after the block was given out. The node keeps its block, so pods may get the reserved addresses until the node is moved.
    """
    for reserved, lines in sorted(groups.items(), key=_by_block):
        yield warning(
            "IPC0416",
            where(lines[0]),
            f"{lines[0].block} overlaps reserved {reserved.block}; held by {_nodes(lines)}",
            also=[Related(reserved.at, "reserved here")],
        )
