"""Calico's pools as ours: each node has one pool, the one of which Calico would make its next block.

Calico tries all pools that select a node, by name, and takes the first with a free block. In multi-pool and crd
mode a node gets blocks of every pool that selects it, and a CiliumPodIPPool has both families. So pools of one
selector become one pool, with their ranges in Calico's order; and of pools that share nodes the later one
leaves these nodes to the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.importing.calico.pools import CalicoPool
from ipamc.model.address_sets import index_around, outermost, subtract
from ipamc.model.cidr import Block
from ipamc.model.selector.selector import EVERY, Selector, parse_calico


class Group(Struct, frozen=True, kw_only=True):
    """Pools that become one."""

    pools: tuple[CalicoPool, ...]
    """By name, the first of each family is the one that Calico prefers."""
    ranges: Mapping[int, tuple[Block, ...]]
    """By family, in Calico's order."""
    sizes: Mapping[int, int]
    selector: Selector
    halted: str = ""
    """Why no new blocks are made of it; "": they are."""

    @property
    def name(self) -> str:
        """Return the name of its first pool."""
        return self.pools[0].name


class Grouped(Struct, frozen=True, kw_only=True):
    """The groups of all pools."""

    active: tuple[Group, ...]
    """In Calico's order: each node is selected by one at most."""
    halted: tuple[Group, ...]
    """Groups of one pool each, of which no new blocks are made."""
    overlapping: tuple[tuple[CalicoPool, CalicoPool], ...] = ()
    """(pool that gave addresses away, pool that has them)."""
    cut: Mapping[str, tuple[Block, ...]] = field(default_factory=dict)
    """By pool: what others left of its range and is smaller than a block."""


def grouped(pools: Sequence[CalicoPool], taken: Iterable[Block]) -> Grouped:
    """Return pools for workloads as groups whose ranges are disjoint, also from those that are taken.

    `pools` come by name; each is compared with each other one. Where pools overlap, the one of which Calico makes blocks keeps the addresses.
    """
    left, overlapping = _ranges(pools, list(taken))
    whole: dict[str, tuple[Block, ...]] = {}
    cut: dict[str, tuple[Block, ...]] = {}
    for pool in pools:
        whole[pool.name] = tuple(block for block in left[pool.name] if block.prefix <= pool.size)
        if small := tuple(block for block in left[pool.name] if block.prefix > pool.size):
            cut[pool.name] = small
    some = [pool for pool in pools if whole[pool.name]]
    active, others = _by_selector([pool for pool in some if not pool.halted], whole)
    apart = list(_apart(active))
    halted = [_alone(pool, whole) for pool in some if pool.halted]
    halted += others + [group for group in apart if group.halted]
    return Grouped(
        active=tuple(group for group in apart if not group.halted),
        halted=tuple(sorted(halted, key=lambda group: group.name)),
        overlapping=tuple(overlapping),
        cut=cut,
    )


def _ranges(
    pools: Sequence[CalicoPool], taken: list[Block]
) -> tuple[dict[str, list[Block]], list[tuple[CalicoPool, CalicoPool]]]:
    """Return what each pool keeps of its range, and which pools share addresses."""
    left: dict[str, list[Block]] = {}
    overlapping = []
    before: list[CalicoPool] = []
    for pool in sorted(pools, key=lambda pool: (bool(pool.halted), pool.name)):
        around = [other for other in before if other.block.overlaps(pool.block)]
        left[pool.name] = list(subtract(pool.block, [*taken, *(other.block for other in around)]))
        overlapping += [(pool, other) for other in around[:1]]
        before.append(pool)
    return left, overlapping


def _alone(pool: CalicoPool, whole: Mapping[str, tuple[Block, ...]], why: str = "") -> Group:
    return Group(
        pools=(pool,),
        ranges={pool.block.family: whole[pool.name]},
        sizes={pool.block.family: pool.size},
        selector=pool.selector,
        halted=why or pool.halted,
    )


def _by_selector(
    pools: Iterable[CalicoPool], whole: Mapping[str, tuple[Block, ...]]
) -> tuple[list[Group], list[Group]]:
    """Return a group for each selector, and the pools whose blocks have another size than the group's first."""
    alike: dict[str, list[CalicoPool]] = {}
    for pool in pools:
        alike.setdefault(pool.selector.canonical, []).append(pool)
    groups, others = [], []
    for members in alike.values():
        sizes: dict[int, int] = {}
        ranges: dict[int, tuple[Block, ...]] = {}
        chosen = []
        for pool in members:
            family = pool.block.family
            if sizes.setdefault(family, pool.size) == pool.size:
                ranges[family] = (*ranges.get(family, ()), *whole[pool.name])
                chosen.append(pool)
            else:
                first = next(each for each in chosen if each.block.family == family)
                why = f"pool {first.name} selects the same nodes, and has blocks of /{first.size}"
                others.append(_alone(pool, whole, why))
        ordered = {family: ranges[family] for family in sorted(ranges)}
        groups.append(
            Group(
                pools=tuple(chosen),
                ranges=ordered,
                sizes={family: sizes[family] for family in ordered},
                selector=members[0].selector,
            )
        )
    return groups, others


def _apart(groups: Sequence[Group]) -> Iterator[Group]:
    """Yield the groups with selectors that share no node; a group that is left with none is halted."""
    before: list[Group] = []
    for group in groups:
        rivals = [other for other in before if not _disjoint(other.selector, group.selector)]
        before.append(group)
        if not rivals:
            yield group
        elif every := next((other for other in rivals if other.selector == EVERY), None):
            yield replace(group, halted=f"pool {every.name}, which Calico tries first, selects every node")
        else:
            less = " && ".join(f"!({other.selector.canonical})" for other in rivals)
            own = "" if group.selector == EVERY else f"{group.selector.canonical} && "
            selector = parse_calico(own + less)
            why = (
                selector.impossible() and f"pools that Calico tries first select its nodes: {rivals[0].name}"
            )
            yield replace(group, selector=selector, halted=why)


def _disjoint(one: Selector, other: Selector) -> bool:
    """Tell whether two selectors surely share no node: some label would need two values."""
    ours, theirs = one.outcomes(), other.outcomes()
    for key in ours.keys() & theirs.keys():
        both = ours[key].both(theirs[key])
        if both.listed and not both.members and not both.absent:
            return True
    return False


def strays(blocks: Iterable[Block], ranges: Iterable[Block]) -> list[Block]:
    """Return the blocks that no range contains: disjoint, by address. O(n log n)."""
    known = outermost(ranges)
    return [block for block in outermost(blocks) if index_around(known, block) is None]
