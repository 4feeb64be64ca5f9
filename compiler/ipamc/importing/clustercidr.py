"""Draft of a cluster whose podCIDRs come from ClusterCIDRs (KEP-2593, node-ipam-controller)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.importing import import_rules as rules
from ipamc.importing.cilium import OUTSIDE, of_node
from ipamc.importing.draft import Blocks, Draft, DraftPool, usual_size
from ipamc.importing.facts import Facts, cidr_of
from ipamc.model.address_sets import aggregated, index_around, outermost, subtract
from ipamc.model.cidr import BITS, Block, CidrError
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.limits import MOST_CLUSTER_CIDRS
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import EVERY, Selector, SelectorIndex, parse_node_selector
from ipamc.model.wording import listing
from ipamc.read.values import ForeignMetadata


class _ClusterCidr(Struct, frozen=True, kw_only=True):
    name: str
    ranges: Mapping[int, Block]
    sizes: Mapping[int, int]
    selector: Selector
    node_selector: Mapping[str, Any] | None  # as in the object
    terminating: bool
    at: Span

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Return the sort key among the candidates of a node, as in `place.candidates.rank`."""
        totals = [1 << max(self.sizes[family] - block.prefix, 0) for family, block in self.ranges.items()]
        per_node = min(1 << (BITS[family] - size) for family, size in self.sizes.items())
        return -self.selector.requirements, min(totals), per_node, self.name

    @property
    def plain(self) -> tuple[int, str]:
        """Return the sort key among pools without a priority."""
        return -self.selector.requirements, self.name


class _Spec(msgspec.Struct, rename="camel"):
    per_node_host_bits: int
    ipv4: str | None = None
    ipv6: str | None = None
    node_selector: dict[str, Any] | None = None


class _Raw(msgspec.Struct):
    metadata: ForeignMetadata
    spec: _Spec


def is_cluster_cidr(dump: Dump) -> bool:
    """Return whether a dump has ClusterCIDRs."""
    return bool(dump.of_kind("ClusterCIDR"))


def draft(dump: Dump, facts: Facts) -> Draft:
    """Return the cluster to write: its ClusterCIDRs as pools, and the podCIDRs of its Nodes.
    Pools get a `priority` if the order of ClusterCIDRs differs from that of pools: the smaller pool and the
    smaller block come first (KEP-2593). ClusterCIDRs with the same ranges become one pool with `blockSizes`.
    Of others that overlap the first in that order keeps the addresses.
    """
    read, found = _read(dump)
    families = facts.families(dump)
    # One that is being deleted gives no node a block: it keeps what the others leave.
    ranked = sorted(read, key=lambda one: (one.terminating, one.order))
    groups = _groups(ranked, dump)
    in_order = len(groups) == len(ranked) and ranked == sorted(
        read, key=lambda one: (one.terminating, one.plain)
    )
    pools = []
    taken: list[Block] = []
    for place, group in enumerate(groups):
        *classes, one = group
        ranges = {
            family: tuple(piece for piece in subtract(block, taken) if piece.prefix <= one.sizes[family])
            for family, block in one.ranges.items()
            if family in families
        }
        kept = {family: some for family, some in ranges.items() if some}
        rivals = [
            other.name
            for *_, other in groups[:place]
            if any(block.overlaps(its) for block in one.ranges.values() for its in other.ranges.values())
        ]
        if rivals:
            blocks = list(one.ranges.values())
            gone = [] if one.terminating else sorted(ranges.keys() - kept)
            found.append(rules.cluster_cidrs_overlap(one.at, one.name, blocks, rivals, gone))
        taken += one.ranges.values()
        if kept:
            pools.append(
                DraftPool(
                    name=one.name,
                    ranges=kept,
                    sizes={family: one.sizes[family] for family in kept},
                    selector=_either(group),
                    priority=len(groups) - place if len(groups) > 1 and not in_order else 0,
                    disabled=one.terminating,
                    more={"blockSizes": [_size_class(each, kept) for each in classes]},
                    comment=f"ClusterCIDR {listing([each.name for each in group])}",
                )
            )
    given = {node.name: of_node(node, dump) for node in dump.nodes}
    outside = _outside(dump, given, pools, found)
    return Draft(
        mode=Mode.KUBERNETES,
        families=families,
        pools=(*sorted(pools, key=lambda pool: pool.name), *outside),
        blocks=given,
        label_keys=frozenset().union(*(one.selector.keys for one in read)),
        decisions=tuple(found),
    )


def _groups(ranked: Sequence[_ClusterCidr], dump: Dump) -> list[list[_ClusterCidr]]:
    """Return ClusterCIDRs that are one pool, in the order of candidates: a node gets the size of the first
    that selects it. They have the same ranges, and each node of the dump has the same candidate as before.
    """
    by_ranges: dict[tuple[object, ...], list[_ClusterCidr]] = {}
    for one in ranked:
        alone = one.name if one.terminating else ""
        by_ranges.setdefault((alone, *sorted(one.ranges.items())), []).append(one)
    groups = list(by_ranges.values())
    before = _candidates(ranked, dump) if len(groups) < len(ranked) else []
    rank = {one.name: place for place, one in enumerate(ranked)}
    while len(groups) < len(ranked):
        # A pool has one place in the order: that of its first ClusterCIDR, or of its last.
        for member in (0, -1):
            groups.sort(key=lambda group: rank[group[member].name])
            after = _candidates([one for group in groups for one in group], dump)
            if after == before:
                return groups
        apart = {name for pair in zip(before, after, strict=True) if pair[0] != pair[1] for name in pair}
        several = [group for group in groups if len(group) > 1]
        wrong = [group for group in several if apart & {one.name for one in group}] or several
        groups = [group for group in groups if group not in wrong]
        groups += [[one] for group in wrong for one in group]
    return sorted(groups, key=lambda group: rank[group[0].name])


def _candidates(order: Sequence[_ClusterCidr], dump: Dump) -> list[str]:
    """Return the first ClusterCIDR of each group of nodes that selectors may tell apart; "" for none."""
    active = [one for one in order if not one.terminating]
    index = SelectorIndex([one.selector for one in active])
    keys = frozenset().union(*(one.selector.keys for one in active))
    names = frozenset().union(*(one.selector.names for one in active))
    alike = {
        (
            node.name in names and node.name,
            frozenset(item for item in node.labels.items() if item[0] in keys),
        ): node
        for node in dump.nodes
    }
    numbers = (index.first(node.labels, node.name) for node in alike.values())
    return ["" if number is None else active[number].name for number in numbers]


def _either(group: Sequence[_ClusterCidr]) -> Mapping[str, Any] | None:
    """Return the selector of the nodes that one of a group selects; None: every node."""
    selectors = [one.node_selector for one in group]
    if None in selectors:
        return None
    if len(group) == 1:
        return selectors[0]
    return {"nodeSelectorTerms": [term for one in selectors if one for term in one["nodeSelectorTerms"]]}


def _size_class(one: _ClusterCidr, families: Iterable[int]) -> dict[str, Any]:
    """Return an entry of `blockSizes`."""
    sizes = {f"ipv{family}": one.sizes[family] for family in families}
    return {"nodeSelector": one.node_selector or "all()", **sizes}


def _read(dump: Dump) -> tuple[list[_ClusterCidr], list[Diagnostic]]:
    items = dump.of_kind("ClusterCIDR")
    if len(items) > MOST_CLUSTER_CIDRS:
        what, limit = f"{len(items):,} ClusterCIDRs", f"{MOST_CLUSTER_CIDRS:,} is the limit"
        return [], [rules.cluster_cidr_unreadable(items[MOST_CLUSTER_CIDRS].at, what, limit)]
    read: dict[str, _ClusterCidr] = {}
    found: list[Diagnostic] = []
    for item in items:
        try:
            one = _cluster_cidr(item, found)
        except (msgspec.ValidationError, CidrError, SelectorError) as problem:
            found.append(rules.cluster_cidr_unreadable(item.at, f"ClusterCIDR {item.name}", str(problem)))
        else:
            read.setdefault(one.name, one)
    return list(read.values()), found


def _cluster_cidr(item: SeenObject, notes: list[Diagnostic]) -> _ClusterCidr:
    """Return a ClusterCIDR (`notes`: see `cidr_of`). Raises CidrError, SelectorError, ValidationError."""
    raw = msgspec.convert(dict(item.value), _Raw)
    spec = raw.spec
    ranges = {family: cidr_of(item, text, notes) for family, text in ((4, spec.ipv4), (6, spec.ipv6)) if text}
    sizes = {family: BITS[family] - spec.per_node_host_bits for family in ranges}
    if not ranges:
        raise msgspec.ValidationError("it has neither ipv4 nor ipv6")
    for family, block in ranges.items():
        if block.family != family or not block.prefix <= sizes[family] <= BITS[family]:
            problem = f"{block} has no room for an IPv{family} block of {spec.per_node_host_bits} host bits"
            raise msgspec.ValidationError(problem)
    return _ClusterCidr(
        name=item.name,
        ranges=ranges,
        sizes=sizes,
        selector=parse_node_selector(spec.node_selector) if spec.node_selector else EVERY,
        node_selector=_without_nulls(spec.node_selector) if spec.node_selector else None,
        terminating=bool(raw.metadata.deletion_timestamp),
        at=item.at,
    )


def _without_nulls(selector: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a parsed NodeSelector without nulls, which the apiserver prunes."""
    return {
        "nodeSelectorTerms": [
            {
                kind: [
                    {key: entry[key] for key in ("key", "operator", "values") if entry.get(key) is not None}
                    for entry in term[kind]
                ]
                for kind in ("matchExpressions", "matchFields")
                if (term or {}).get(kind)
            }
            for term in selector.get("nodeSelectorTerms") or ()
        ]
    }


def _outside(
    dump: Dump, blocks: Mapping[str, Blocks], pools: Sequence[DraftPool], found: list[Diagnostic]
) -> Iterable[DraftPool]:
    """Return a disabled pool for podCIDRs in no ClusterCIDR, which the controller ignores."""
    known = outermost(block for pool in pools for some in pool.ranges.values() for block in some)
    given = [(block, name) for name, some in blocks.items() for block, _ in some]
    lost = [(block, name) for block, name in given if index_around(known, block) is None]
    if not lost:
        return ()
    outside = [block for block, _ in lost]
    found.append(rules.outside_ranges(dump.at, sorted(outside), sorted({name for _, name in lost}), OUTSIDE))
    ranges = {
        family: tuple(aggregated(block for block in outside if block.family == family))
        for family in sorted({block.family for block in outside})
    }
    sizes = {family: usual_size(outside, family, BITS[family]) for family in ranges}
    return (DraftPool(name=OUTSIDE, ranges=ranges, sizes=sizes, disabled=True),)
