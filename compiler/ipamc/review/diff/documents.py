"""What the documents of base and head say differently: pools, their room, settings, and what is less safe."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from ipamc.check.capacity import LOW
from ipamc.lock.utilisation import Use
from ipamc.model.address_sets import blocks_over, covers, outermost
from ipamc.model.cidr import Range
from ipamc.model.cluster import Cluster, Pool, Scheme, Version
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.model.pool_words import Terms, terms
from ipamc.review.shown_pools import uses_on

_IS_LIST = re.compile(r"ipv[46]\.cidrs|overflow|blockSizes|reserved|pins\.").match
"""The fields with several values."""


class PoolStatus(enum.StrEnum):
    """The kind of change of a pool."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class PoolField(Struct, frozen=True, kw_only=True):
    """A field of a pool that differs. For a list, only items that the other side lacks."""

    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    whole: bool
    """`old` and `new` are complete values: the field is no list, or only the order of the list differs."""


class PoolChange(Struct, frozen=True, kw_only=True):
    """A pool that was added, removed or changed."""

    name: str
    change: PoolStatus
    fields: tuple[PoolField, ...]


class Capacity(Struct, frozen=True, kw_only=True):
    """The room of a pool in one family."""

    pool: str
    family: int
    size: int  # prefix length of a block in the head; in the base if the pool was removed
    before: Use | None  # None: the base has no such pool, or this version cannot read its documents
    after: Use | None  # None: the pool was removed
    serves: bool  # new nodes can get its blocks: it is neither disabled nor for unlisted nodes

    @property
    def changed(self) -> bool:
        """Return whether the number of blocks, or of free blocks, differs."""
        numbers = {(use.blocks, use.blocks_free) if use else None for use in (self.before, self.after)}
        return len(numbers) > 1

    @property
    def short(self) -> bool:
        """Return whether fewer blocks are free than before, few enough for the warning IPC0215."""
        after, before = self.after, self.before
        low = after is not None and after.available * 100 < after.total * LOW
        return self.serves and low and (before is None or after is None or after.available < before.available)


def compare_pools(before: Scheme, after: Scheme) -> tuple[PoolChange, ...]:
    """Return the pools that differ, by name."""
    words, both = terms(after), (before, after)
    old, new = ({pool.name: _fields_of(pool, words) for pool in cluster.pools} for cluster in both)
    kept = {name: PoolStatus.CHANGED if name in old else PoolStatus.ADDED for name in new}
    return tuple(
        PoolChange(
            name=name,
            change=kept.get(name, PoolStatus.REMOVED),
            fields=tuple(_differing(old.get(name, {}), new.get(name, {}))),
        )
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _fields_of(pool: Pool, words: Terms) -> dict[str, tuple[str, ...]]:
    """Return the fields of a pool that decide addresses, as text; unset fields are omitted."""
    found: dict[str, tuple[str, ...]] = {}
    for family, part in sorted(pool.families.items()):
        found[f"ipv{family}.cidrs"] = tuple(str(pool_range.block) for pool_range in part.ranges)
        found[f"ipv{family}.{words.size}"] = (str(part.block_size),)
        found[f"ipv{family}.follows"] = (str(part.follows.block),) if part.follows else ()
    found[words.selector] = (pool.selector.canonical,)
    found["priority"] = (str(pool.priority),) if pool.priority else ()
    found["overflow"] = pool.overflow
    found["blocksPerNode"] = (str(pool.blocks_per_node),) if pool.blocks_per_node != 1 else ()
    found["blockSizes"] = tuple(
        f"{sized.selector.canonical}: "
        + ", ".join(f"IPv{family} /{size}" for family, size in sorted(sized.sizes.items()))
        for sized in pool.block_sizes
    )
    written = (cidr for cidr in pool.reserved if not cidr.node)
    found["reserved"] = tuple(f"{cidr.block}{cidr.reason and f' ({cidr.reason})'}" for cidr in written)
    if not pool.follows and words.unit == "node":  # else pins, and `disabled`, follow from the pool's kind
        found |= {
            f"pins.{node}": tuple(str(pin.block) for pin in pins) for node, pins in sorted(pool.pins.items())
        }
    flags = {"unlisted": pool.unlisted, "podsOnly": pool.pods_only}
    flags["disabled"] = pool.disabled and not (pool.follows or pool.pods_only)
    found |= {name: ("true",) for name, is_set in flags.items() if is_set}
    if usage := pool.usage:
        bounds = f"{usage.low} to {usage.high} %, {usage.least} to {usage.most} blocks"
        found["usage"] = (f"{bounds}, {usage.addresses} addresses" if usage.addresses else bounds,)
    found |= {name: (selector.canonical or "{}",) for name, selector in pool.by_pods.items()}
    found |= {name: ("true",) for name, allows in pool.allows.items() if allows}
    return {name: value for name, value in found.items() if value}


def _differing(old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> Iterator[PoolField]:
    for name in {**old, **new}:
        was, now = old.get(name, ()), new.get(name, ())
        if was == now:
            continue
        less, more = (
            tuple(item for item in one if item not in other)
            for one, other in ((was, frozenset(now)), (now, frozenset(was)))
        )
        if not _IS_LIST(name) or not (less or more):
            yield PoolField(name=name, old=was, new=now, whole=True)
        else:
            yield PoolField(name=name, old=less, new=more, whole=False)


def capacity(
    before: Scheme | None, lock_before: Lock, after: Scheme, lock_after: Lock, today: str
) -> tuple[Capacity, ...]:
    """Return the room of every pool of base or head on a day, by name, IPv4 before IPv6. O(n log n)."""
    uses = (uses_on(before, lock_before, today) if before else (), uses_on(after, lock_after, today))
    old, new = ({(use.pool.name, use.family.family): use for use in some} for some in uses)
    return tuple(
        Capacity(
            pool=either.pool.name,
            family=either.family.family,
            size=either.family.block_size,
            before=old[key].use if key in old else None,
            after=new[key].use if key in new else None,
            serves=not (either.pool.disabled or either.pool.unlisted),
        )
        for key, either in sorted({**old, **new}.items(), key=lambda item: item[0])
    )


NONE = "(none)"  # the value for a cluster that names no address space
_ENFORCE = ("none", "warn", "deny")
_OF_PEOPLE = {"at", "reason", "agreed"}
"""Fields of a test that do not say what it asserts; `agreed` grows with every renumber."""


class Setting(Struct, frozen=True, kw_only=True):
    """A field of the lock's header, or a field of the Cluster that decides which addresses are kept back."""

    name: str
    old: str
    new: str


UNKNOWN = (Setting(name="the base", old="this version cannot read its documents", new="not known"),)


def changed(old: Lock, was: Scheme | None, plan: Plan) -> Iterator[Setting]:
    """Yield changes of the lock's header, and of Cluster fields that keep addresses back in the base."""
    pairs: list[tuple[str, str, str]] = []
    new = plan.lock
    if old.shards:
        pairs = [("mode", old.mode.value, new.mode.value), ("shards", str(old.shards), str(new.shards))]
    now = plan.scheme
    if isinstance(was, Cluster) and isinstance(now, Cluster):
        pairs.append(("addressSpace", was.address_space or NONE, now.address_space or NONE))
        pairs.append(("admission", _admission(was), _admission(now)))
        minors = [each.written or each.cilium for each in (was, now)]
        pairs.append(("cilium.version", _text(minors[0]), _text(max(minors))))  # a lower one is `weaker`
        pairs.append(("bgpAdvertisements", _advertised(was), _advertised(now)))
    if was:
        pairs.append(("quarantineDays", _days(was), _days(now)))
    return (Setting(name=name, old=old, new=new) for name, old, new in pairs if old != new)


def _admission(cluster: Cluster) -> str:
    asked = cluster.admission
    given = ["assign"] if asked.assign else []
    return ", ".join([*given, *([f"enforce: {asked.enforce}"] if asked.enforce != "none" else [])]) or NONE


def _advertised(cluster: Cluster) -> str:
    return ", ".join(each.name for each in cluster.advertisements if each.rendered) or NONE


def _days(cluster: Scheme) -> str:
    return "never" if cluster.quarantine_days is None else str(cluster.quarantine_days)


def weaker(before: Scheme, after: Scheme) -> Iterator[Setting]:
    """Yield what is less safe now: tests, addresses that are kept back, policies, limits."""
    yield from _tests(before, after)
    quarantine = [inf if each.quarantine_days is None else each.quarantine_days for each in (before, after)]
    if quarantine[1] < quarantine[0]:
        old, new = ("never" if days == inf else str(days) for days in quarantine)
        yield Setting(name="quarantineDays", old=old, new=new)
    if after.budget_leave > before.budget_leave:
        yield Setting(name="budget.leave", old=f"{before.budget_leave} %", new=f"{after.budget_leave} %")
    if isinstance(before, Cluster) and isinstance(after, Cluster):
        yield from _of_cluster(before, after)
    yield from _kept_back(before, after)


def _of_cluster(before: Cluster, after: Cluster) -> Iterator[Setting]:
    for name, was, now in (
        ("context", before.kube_context, after.kube_context),
        ("unpooled", before.unpooled, after.unpooled),
        ("unmatchedNodes", before.unmatched_nodes, after.unmatched_nodes),
        ("output.nodeObjects", before.node_objects, after.node_objects),
    ):
        if was != now:
            yield Setting(name=name, old=was, new=now)
    for name, old_minor, minor in (
        ("cilium.version", before.written or before.cilium, after.written or after.cilium),
        ("kubernetes.version", before.kubernetes, after.kubernetes),
    ):
        if old_minor and (minor is None or minor < old_minor):
            yield Setting(name=name, old=_text(old_minor), new=_text(minor))
    for name, said, says in (
        ("bgp", before.bgp.replace("none", ""), after.bgp.replace("none", "")),
        ("patchNodes", _patched(before), _patched(after) or (before.mode != after.mode and "by mode")),
        ("cilium.routingMode", before.routing_mode, after.routing_mode),
        ("cilium.nativeRoutingCIDR", _block(before), _block(after)),
        ("cilium.clusterID", str(before.cluster_id or ""), str(after.cluster_id or "")),
        ("cilium.clusterName", before.mesh_name, after.mesh_name),
    ):
        if said and not says:
            yield Setting(name=name, old=said, new=NONE)
    if before.address_space and after.address_space != before.address_space:
        yield Setting(name="addressSpace", old=before.address_space, new=after.address_space or NONE)
    if (routes := before.cloud_routes) and not 0 < after.cloud_routes <= routes:
        yield Setting(name="cloudRoutes", old=str(routes), new=str(after.cloud_routes or NONE))
    asked, asks = before.admission, after.admission
    if asked.assign and not asks.assign:
        yield Setting(name="admission.assign", old="true", new="false")
    if _ENFORCE.index(asks.enforce) < _ENFORCE.index(asked.enforce):
        yield Setting(name="admission.enforce", old=asked.enforce, new=asks.enforce)
    for entry in after.acknowledges:
        if not any(each.covers(entry) for each in before.acknowledges):
            yield Setting(name=f"acknowledge {entry}", old=NONE, new=entry.reason)


def _kept_back(before: Scheme, after: Scheme) -> Iterator[Setting]:
    """Yield CIDRs that pools may give out now: excluded or reserved in the base, and in a pool still."""
    given = outermost(cidr.block for pool in after.pools for cidr in pool.ranges)
    reserved = (cidr.block for pool in after.pools for cidr in (*pool.reserved, *_pinned(pool)))
    still = outermost((*(cidr.block for cidr in after.excluded), *reserved))
    kept = [("excludedCIDRs", cidr.block, isinstance(before, Cluster)) for cidr in before.excluded]
    there = {node.name for node in after.nodes}
    for pool in before.pools:
        kept += [(f"reserved of {pool.name}", each.block, False) for each in pool.reserved if not each.node]
        stays = [pin for node, pins in pool.pins.items() if node in there for pin in pins]
        kept += [(f"pins of {pool.name}", pin.block, False) for pin in stays]
        by_hand = pool.disabled and not (pool.follows or pool.pods_only)
        kept += [(f"disabled {pool.name}", cidr.block, False) for cidr in pool.ranges if by_hand]
    disabled = outermost(cidr.block for pool in after.pools for cidr in pool.ranges if pool.disabled)
    for name, block, always in kept:  # what is excluded is in no pool, and shall be in no next one
        over = [*blocks_over(still, block), *blocks_over(disabled, block)]
        if (always or blocks_over(given, block)) and not covers(over, block):
            yield Setting(name=name, old=str(block), new=NONE)


def _patched(cluster: Cluster) -> str:
    return "" if cluster.patch_nodes == "none" else cluster.patch_nodes


def _pinned(pool: Pool) -> Iterator[Range]:
    return (pin for pins in pool.pins.values() for pin in pins)


def _text(minor: Version | None) -> str:
    return ".".join(map(str, minor)) if minor else NONE


def _block(cluster: Cluster) -> str:
    return str(cluster.native_routing.block) if cluster.native_routing else ""


def _tests(before: Scheme, after: Scheme) -> Iterator[Setting]:
    now = {_meaning(test.asserts): test for test in after.tests}
    names = {test.name for test in after.tests}
    for test in before.tests:
        name, same = f"test {test.name}", now.get(_meaning(test.asserts))
        if same is None:
            yield Setting(name=name, old="asserted", new="changed" if test.name in names else "removed")
        elif same.warn and not test.warn:
            yield Setting(name=name, old="an error", new="a warning")
        elif same.allow_empty and not test.allow_empty:
            yield Setting(name=name, old="it matches a node", new="it may match none")


def _meaning(value: Any) -> Any:
    """Return what a test asserts as a value that is equal wherever it stands, and whatever it is called."""
    if isinstance(value, Struct):
        some = (field.name for field in fields(value) if field.name not in _OF_PEOPLE)
        return type(value).__name__, *(_meaning(getattr(value, name)) for name in some)
    if isinstance(value, Mapping):
        return frozenset((key, _meaning(each)) for key, each in value.items())
    return tuple(map(_meaning, value)) if isinstance(value, tuple | list) else value
