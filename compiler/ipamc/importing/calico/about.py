"""What is said about a cluster that runs Calico: of its pools, its blocks and its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ipamc.importing.calico import pool_rules, rules
from ipamc.importing.calico.holdings import Holdings
from ipamc.importing.calico.pools import CalicoPool, Group, Grouped
from ipamc.model.address_sets import blocks_over
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode, Node
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.selector.selector import SelectorIndex

LABELS = "projectcalico.org/labels"
"""The annotation of a Node with labels that only Calico knows, as JSON (lib/backend/k8s/resources/resources.go)."""


def about_pools(
    pools: Iterable[CalicoPool], groups: Grouped, families: Sequence[int]
) -> Iterator[Diagnostic]:
    """Yield pools that do not become what they were."""
    for pool in pools:
        if not pool.workload:
            yield pool_rules.not_for_pods(pool.at, pool.name, pool.block)
        elif pool.block.family not in families:
            yield pool_rules.unused_family(pool.at, pool.name, pool.block)
        elif pieces := groups.cut.get(pool.name):
            yield pool_rules.too_small(pool.at, pool.name, pool.size, pieces)
    for one, other in groups.overlapping:
        yield pool_rules.pools_overlap((one.at, one.name, one.block), (other.at, other.name, other.block))
    for group in groups.halted:
        first = group.pools[0]
        if not first.halted:  # Calico makes new blocks of it, and we do not
            yield pool_rules.pool_is_second(first.at, first.name, group.halted)
    for group in groups.active:
        for family in set(families) - group.ranges.keys():
            yield pool_rules.lacks_family(group.pools[0].at, group.name, family)


def about_blocks(
    held: Holdings, lost: Iterable[Block], reserved: Iterable[tuple[Block, SeenObject]]
) -> Iterator[Diagnostic]:
    """Yield blocks of no pool, and reservations in blocks that nodes have."""
    claims = {claim.block: claim for claim in held.claims}
    starts = sorted(claims)
    if outside := [claims[block] for block in lost]:
        yield rules.outside_pools(outside)
    for cidr, item in reserved:
        if inside := [claims[block] for block in blocks_over(starts, cidr)]:
            first = inside[0]
            yield rules.reserved_in_block(
                item.at, item.name, cidr, (first.at, first.block, first.node), len(inside)
            )


def about_nodes(dump: Dump, active: Sequence[Group], held: Holdings, mode: Mode) -> Iterator[Diagnostic]:
    """Yield nodes that the mode or the pools do not serve as Calico did."""
    keys = frozenset().union(*(group.selector.keys for group in active))
    known = [(node, _labels_of_calico(node)) for node in dump.nodes if keys and LABELS in node.annotations]
    for key in sorted(keys):
        if nodes := [node for node, labels in known if key in labels and key not in node.labels]:
            yield pool_rules.label_of_calico(nodes[0].at, key, [node.name for node in nodes])
    if not mode.one_block:
        return
    blocks: Mapping[str, set[Block]] = {}
    numbers = Counter((claim.node, claim.block.family) for claim in held.claims)
    if several := sorted({node for (node, _), number in numbers.items() if number > 1}):
        yield rules.several_blocks(dump.nodes_by_name[several[0]].at, mode, several)
    if mode is Mode.KUBERNETES:
        blocks = {node.name: set() for node in dump.nodes}
        for claim in held.claims:
            blocks[claim.node].add(claim.block)
        if other := [
            node for node in dump.nodes if node.pod_cidrs and set(node.pod_cidrs) != blocks[node.name]
        ]:
            yield rules.other_pod_cidrs(other[0].at, [node.name for node in other])


def unselected(dump: Dump, active: Sequence[Group]) -> bool:
    """Tell whether a node is selected by no pool: Calico has no addresses for its pods either."""
    index = SelectorIndex([group.selector for group in active])
    return any(index.first(node.labels, node.name) is None for node in dump.nodes)


def _labels_of_calico(node: Node) -> Mapping[str, str]:
    try:
        return msgspec.json.decode(node.annotations[LABELS], type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
