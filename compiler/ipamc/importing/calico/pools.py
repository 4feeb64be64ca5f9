"""Calico's IPPools and IPReservations in a dump, as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.importing.calico import calico_rules as rules
from ipamc.importing.calico.calico_rules import CalicoPool
from ipamc.importing.facts import cidr_of
from ipamc.model.address_sets import index_around, outermost, subtract
from ipamc.model.cidr import BITS, Block, CidrError
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.normal_form import apart
from ipamc.model.selector.selector import EVERY, Selector, parse_calico
from ipamc.read.kinds.nodes import RawCondition
from ipamc.read.kinds.pools import CALICO_SIZES
from ipamc.read.values import ForeignMetadata


class _Spec(msgspec.Struct, rename="camel"):
    cidr: str
    block_size: int | None = None
    node_selector: str | None = None
    namespace_selector: str | None = None
    disabled: bool | None = None
    ipip_mode: str | None = None
    vxlan_mode: str | None = None
    allowed_uses: list[str] | None = None
    assignment_mode: str | None = None


class _Status(msgspec.Struct):
    conditions: list[RawCondition] | None = None


class _Pool(msgspec.Struct):
    metadata: ForeignMetadata
    spec: _Spec
    status: _Status | None = None


class _Reserved(msgspec.Struct):
    cidrs: list[str] | None = msgspec.field(name="reservedCIDRs", default=None)


class _Reservation(msgspec.Struct):
    spec: _Reserved | None = None


def read_pools(dump: Dump) -> tuple[list[CalicoPool], list[Diagnostic]]:
    """Return the IPPools by name, which is Calico's order, and findings about unreadable ones."""
    found: list[Diagnostic] = []
    pools: dict[str, CalicoPool] = {}
    for item in dump.of_kind("IPPool"):
        try:
            pools.setdefault(item.name, _pool(item, msgspec.convert(dict(item.value), _Pool), found))
        except (msgspec.ValidationError, CidrError, SelectorError) as problem:
            found.append(rules.unreadable(item.at, f"IPPool {item.name}", str(problem)))
    return list(pools.values()), found


def _pool(item: SeenObject, raw: _Pool, found: list[Diagnostic]) -> CalicoPool:
    """Return an IPPool. Raises CidrError, SelectorError, ValidationError."""
    spec = raw.spec
    workload = not spec.allowed_uses or "Workload" in spec.allowed_uses
    block = cidr_of(item, spec.cidr, found, pods=workload)
    size = spec.block_size or CALICO_SIZES[block.family]
    if not 0 < size <= BITS[block.family]:
        raise msgspec.ValidationError(f"blockSize {size} is not a prefix length of IPv{block.family}")
    if spec.namespace_selector and workload and parse_calico(spec.namespace_selector) != EVERY:
        found.append(rules.namespace_selector(item.at, item.name, spec.namespace_selector))
    return CalicoPool(
        name=item.name,
        block=block,
        size=max(size, block.prefix),
        selector=parse_calico(spec.node_selector or ""),
        workload=workload,
        overlay=" and ".join(
            f"{key}: {mode}"
            for key, mode in (("ipipMode", spec.ipip_mode), ("vxlanMode", spec.vxlan_mode))
            if mode not in {None, "", "Never"}
        ),
        halted=_halted(raw),
        labels={key: value or "" for key, value in (raw.metadata.labels or {}).items()},
        at=item.at,
    )


def _halted(raw: _Pool) -> str:
    """Return why Calico creates no new blocks for the pods of a node. Which nodes a pool selects does not
    matter for a pod that asks for it (libcalico-go 3.26 to 3.34, lib/ipam/ipam.go, determinePools).
    """
    spec = raw.spec
    if spec.disabled:
        return "it is disabled"
    if raw.metadata.deletion_timestamp:
        return "it is being deleted"
    if spec.assignment_mode == "Manual":
        return "its assignmentMode is Manual"
    for condition in (raw.status or _Status()).conditions or ():
        if condition.type == "Allocatable" and condition.status == "False":
            return f"Calico says Allocatable=False ({condition.reason or 'no reason'})"
    if spec.namespace_selector and parse_calico(spec.namespace_selector) != EVERY:
        return "it has a namespaceSelector"
    return rules.ON_REQUEST if parse_calico(spec.node_selector or "").impossible else ""


def read_reservations(dump: Dump) -> tuple[list[tuple[Block, SeenObject]], list[Diagnostic]]:
    """Return the CIDRs of IPReservations by address, with their objects, and findings about them."""
    reserved: list[tuple[Block, SeenObject]] = []
    found: list[Diagnostic] = []
    for item in dump.of_kind("IPReservation"):
        try:
            raw = msgspec.convert(dict(item.value), _Reservation)
            cidrs = (raw.spec or _Reserved()).cidrs or ()
            reserved += [(cidr_of(item, text, found, pods=False), item) for text in cidrs]
        except (msgspec.ValidationError, CidrError) as problem:
            found.append(rules.unreadable(item.at, f"IPReservation {item.name}", str(problem)))
    return sorted(reserved, key=lambda pair: (pair[0], pair[1].name)), found


class MergedPool(Struct, frozen=True, kw_only=True):
    """Pools that are merged into one."""

    pools: tuple[CalicoPool, ...]  # by name, the first of each family is the one that Calico prefers
    ranges: Mapping[int, tuple[Block, ...]]  # by family, in Calico's order
    sizes: Mapping[int, int]
    selector: Selector
    halted: str = ""  # why it gives no new blocks; "": it does

    @property
    def name(self) -> str:
        """Return the name of its first pool."""
        return self.pools[0].name


class Grouped(Struct, frozen=True, kw_only=True):
    """The groups of all pools."""

    active: tuple[MergedPool, ...]  # in Calico's order: at most one selects a node
    halted: tuple[MergedPool, ...]  # groups of one pool each that give no new blocks
    overlapping: tuple[tuple[CalicoPool, CalicoPool], ...] = ()
    """(pool that loses the common addresses, pool that keeps them)."""
    cut: Mapping[str, tuple[Block, ...]] = field(default_factory=dict)
    """By pool: the parts of its range that are left and smaller than a block."""


def grouped(pools: Sequence[CalicoPool], taken: Iterable[Block]) -> Grouped:
    """Return pools for workloads as groups whose ranges are disjoint, also from those that are taken.
    `pools` come by name; each is compared with all others. If pools overlap, the one from which Calico
    allocates blocks keeps the addresses.
    """
    overlapping: list[tuple[CalicoPool, CalicoPool]] = []
    whole: dict[str, tuple[Block, ...]] = {}
    cut: dict[str, tuple[Block, ...]] = {}
    disjoint = list(taken)
    before: list[CalicoPool] = []
    for pool in sorted(pools, key=lambda pool: (bool(pool.halted), pool.name)):
        around = [other for other in before if other.block.overlaps(pool.block)]
        left = tuple(subtract(pool.block, [*disjoint, *(other.block for other in around)]))
        overlapping += [(pool, other) for other in around[:1]]
        before.append(pool)
        whole[pool.name] = tuple(block for block in left if block.prefix <= pool.size)
        if small := tuple(block for block in left if block.prefix > pool.size):
            cut[pool.name] = small
    some = [pool for pool in pools if whole[pool.name]]
    # A group for each selector; apart are pools with another block size than the group's first.
    alike: dict[str, list[CalicoPool]] = {}
    for pool in (pool for pool in some if not pool.halted):
        alike.setdefault(pool.selector.canonical, []).append(pool)
    active, unlike = [], []
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
                why = f"pool {first.name} selects the same nodes, but has /{first.size} blocks"
                unlike.append(_group_of_one(pool, whole, why))
        ordered = {family: ranges[family] for family in sorted(ranges)}
        ordered_sizes = {family: sizes[family] for family in ordered}
        selector = members[0].selector
        active.append(MergedPool(pools=tuple(chosen), ranges=ordered, sizes=ordered_sizes, selector=selector))
    split = list(_disjoint(active))
    halted = [_group_of_one(pool, whole) for pool in some if pool.halted]
    halted += unlike + [group for group in split if group.halted]
    return Grouped(
        active=tuple(group for group in split if not group.halted),
        halted=tuple(sorted(halted, key=lambda group: group.name)),
        overlapping=tuple(overlapping),
        cut=cut,
    )


def _group_of_one(pool: CalicoPool, whole: Mapping[str, tuple[Block, ...]], why: str = "") -> MergedPool:
    return MergedPool(
        pools=(pool,),
        ranges={pool.block.family: whole[pool.name]},
        sizes={pool.block.family: pool.size},
        selector=pool.selector,
        halted=why or pool.halted,
    )


def _disjoint(groups: Sequence[MergedPool]) -> Iterator[MergedPool]:
    """Make the groups' selectors disjoint, and yield the groups; a group that selects no node is halted."""
    before: list[MergedPool] = []
    for group in groups:
        own = group.selector.outcomes
        rivals = [other for other in before if not apart(other.selector.outcomes, own)]
        before.append(group)
        if not rivals:
            yield group
        elif every := next((other for other in rivals if other.selector == EVERY), None):
            yield replace(group, halted=f"pool {every.name}, which Calico tries first, selects every node")
        else:
            mine = "" if group.selector == EVERY else f"{group.selector.canonical} && "
            selector = parse_calico(mine + " && ".join(f"!({other.selector.canonical})" for other in rivals))
            taken = f"pools that Calico tries first select its nodes: {rivals[0].name}"
            yield replace(group, selector=selector, halted=selector.impossible and taken)


def strays(blocks: Iterable[Block], ranges: Iterable[Block]) -> list[Block]:
    """Return the blocks that no range contains: disjoint, by address. O(n log n)."""
    known = outermost(ranges)
    return [block for block in outermost(blocks) if index_around(known, block) is None]
