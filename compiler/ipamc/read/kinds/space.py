"""`ipamc/v1alpha1 AddressSpace`: ranges for pools of clusters, which are its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from ipamc.model.address_sets import subtract
from ipamc.model.cidr import Block, Range
from ipamc.model.cluster import AddressSpace, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.selector.selector import EVERY
from ipamc.read import rules
from ipamc.read.kinds.pools import Percent, RawSelector, read_selector
from ipamc.read.values import AnyOf, Metadata, Natural, Own, Prefix4, Prefix6, Reading, Reserved, Text

_SHARDS = 1 << 30
"""More nodes than one shard can have: the lock of a space has one shard."""


class _Ranges(Own):
    cidrs: Annotated[list[str], Meta(min_length=1)]


class _Ranges4(_Ranges):
    prefix_length: Prefix4


class _Ranges6(_Ranges):
    prefix_length: Prefix6


class _Level(AnyOf, kw_only=True):
    any_of = ("ipv4", "ipv6")
    name: Text
    cluster_selector: str | RawSelector
    ipv4: _Ranges | UnsetType = UNSET
    ipv6: _Ranges | UnsetType = UNSET


class _Budget(Own):
    leave: Percent = 5


class _Spec(Own):
    ipv4: _Ranges4 | UnsetType = UNSET
    ipv6: _Ranges6 | UnsetType = UNSET
    levels: list[_Level] = field(default_factory=list)
    reserved: list[str | Reserved] = field(default_factory=list)
    quarantine_days: Natural | Literal["never"] = 7
    budget: _Budget = field(default_factory=_Budget)


class RawSpace(Own):
    """The document."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: _Spec


def read_space(raw: RawSpace, at: Place, reading: Reading) -> Iterator[AddressSpace | Pool]:
    """Yield the space, a pool for each of its levels, and one for the rest.
    A level has its CIDRs without those of levels inside it, so that pools are disjoint.
    """
    spec, here = raw.spec, at / "spec"
    sizes = {
        family: part.prefix_length
        for family, part in ((4, spec.ipv4), (6, spec.ipv6))
        if not isinstance(part, UnsetType)
    }
    whole = _ranges(spec, here, reading)
    levels = {n: _ranges(level, here / "levels" / n, reading) for n, level in enumerate(spec.levels)}
    inner = [each for ranges in levels.values() for each in ranges]
    for each in inner:
        if not any(outer.block.contains(each.block) for outer in whole):
            reading.found.append(rules.level_outside(each.at, str(each.block), raw.metadata.name))
    reserved = reading.reserved(spec.reserved, here / "reserved")
    root = Pool(name=raw.metadata.name, at=at, families={}, selector=EVERY, selector_at=here)
    # A level may have a CIDR of the space as a whole: then others get nothing of that.
    rest = [each for each in whole if each.block not in {level.block for level in inner}]
    pools = [_with_ranges(root, rest, inner, sizes, reserved)]
    for number, level in enumerate(spec.levels):
        place = here / "levels" / number
        reading.name(level.name, "level", place, "name")
        where = place / "clusterSelector"
        selector = read_selector(level.cluster_selector, where, reading)
        pool = replace(root, name=level.name, at=place, selector=selector, selector_at=where)
        pools.append(_with_ranges(pool, levels[number], inner, sizes, reserved))
    yield AddressSpace(
        name=raw.metadata.name,
        at=at,
        families=tuple(sizes),
        quarantine_days=None if isinstance(spec.quarantine_days, str) else spec.quarantine_days,
        budget_leave=spec.budget.leave,
        shard_size=_SHARDS,
    )
    yield from (pool for pool in pools if pool.families)


def _ranges(part: _Spec | _Level, at: Place, reading: Reading) -> list[Range]:
    return [
        each
        for family, raw in ((4, part.ipv4), (6, part.ipv6))
        if not isinstance(raw, UnsetType)
        for each in reading.ranges(raw.cidrs, at / f"ipv{family}" / "cidrs", family=family)
    ]


def _with_ranges(
    pool: Pool, own: list[Range], inner: list[Range], sizes: dict[int, int], reserved: tuple[Range, ...]
) -> Pool:
    ranges = [
        Range(block, each.at) for each in own for block in subtract(each.block, _inside(each.block, inner))
    ]
    families = {
        family: PoolFamily(family=family, ranges=tuple(these), block_size=size, at=pool.at)
        for family, size in sizes.items()
        if (these := [each for each in ranges if each.block.family == family])
    }
    kept = [each for each in reserved if any(each.block.overlaps(there.block) for there in ranges)]
    return replace(pool, families=families, reserved=tuple(kept))


def _inside(block: Block, others: list[Range]) -> list[Block]:
    return [each.block for each in others if block.contains(each.block) and each.block != block]
