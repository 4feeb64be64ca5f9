"""Rules about what Cilium's operator was told it may give out (cluster-pool mode, `operator: adopt`), and is now told.

The operator reads its list when it starts, and gave out blocks of the list that was rendered before to nodes that
may be in no input. It may run with that list for some time yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.model.address_sets import blocks_over, shared, subtract
from ipamc.model.cidr import Block, OverlapIndex, Range, around
from ipamc.model.cilium.operator_list import Assumed, longest_prefix, operator_lists
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Related, count, error, names
from ipamc.model.plan import Origin, Plan
from ipamc.read.rendered import Rendered

DUMP = "kubectl get ciliumnodes -o json > ciliumnodes.json"


def check_adopt(plan: Plan, rendered: Rendered) -> Iterator[Diagnostic]:
    """Yield findings about a list that was rendered and changes."""
    cluster = plan.cluster
    before = rendered.flags
    if not (cluster.operator_adopts and before.lists) or before.bystander:
        return
    if not cluster.cilium_nodes:
        yield from known_in_part(plan, before)
    if not _has_every_pool(cluster, before):
        taken = list(_taken_over(cluster, before))
        yield from taken_from_the_operator(cluster, before, taken)
        yield from still_given_out(plan, before)


def known_in_part(plan: Plan, before: Assumed) -> Iterator[Diagnostic]:
    """IPC0517: the operator's list changes so that the operator books every node as a whole."""
    cluster = plan.cluster
    masks = {family: longest_prefix(cluster, family, plan.lock.lines) for family in cluster.families}
    lists = operator_lists(cluster, plan.lock.lines, masks)
    reason = next(_in_part(before, lists, masks), None)
    if reason:
        yield error(
            "IPC0517",
            cluster.field("spec", "ipam", "operator"),
            f"the operator would book some of its nodes in part, and give the rest of their addresses to others: {reason}",
            also=[Related(before.at, "rendered before")],
            help=f"add CiliumNodes to the input, which show who has what: {DUMP}",
        )


def _in_part(
    before: Assumed, lists: Mapping[int, tuple[Block, ...]], masks: Mapping[int, int]
) -> Iterator[str]:
    kept = set()
    changed: dict[int, str] = {}
    for family, old in before.lists.items():
        new = sorted(block for block in lists.get(family, ()) if block.prefix <= masks[family])
        both = [shared(block, other) for block in new for other in blocks_over(old, block)]
        if both:
            kept.add(family)
            if masks[family] < before.masks[family]:
                yield f"the IPv{family} mask was {before.masks[family]} and is {masks[family]}"
        if cut := [block for block in both if block.prefix > before.masks[family]]:
            yield f"{cut[0]} is smaller than a block of /{before.masks[family]}, which the operator gave out"
        if lost := next((piece for block in old for piece in subtract(block, blocks_over(new, block))), None):
            changed[family] = f"{lost} leaves the list of IPv{family}"
        elif again := next(_filled(old, new), None):
            changed[family] = f"{again} comes back into the list of IPv{family}"
    yield from (change for family, change in changed.items() if kept - {family})


def _filled(old: Sequence[Block], new: Iterable[Block]) -> Iterator[Block]:
    """Yield what new CIDRs have between old ones."""
    for block in new:
        if over := blocks_over(old, block):
            whole = around(block.family, over[0].first, over[-1].last)
            yield from (piece for piece in subtract(whole, over) if block.contains(piece))


def taken_from_the_operator(
    cluster: Cluster, before: Assumed, taken: list[tuple[Block, str, Range]]
) -> Iterator[Diagnostic]:
    """IPC0518: what the operator gave out goes to another pool only with the nodes that have it."""
    known = {node.name for node in cluster.nodes}
    strange: dict[Block, list[str]] = {}
    for seen in cluster.cilium_nodes:
        for shown in seen.blocks if seen.name not in known else ():
            strange.setdefault(shown, []).append(seen.name)
    index = OverlapIndex(strange, lambda shown: shown)
    for block, pool, cidr in taken:
        at = Related(before.at, f"the operator gave out blocks of {block}")
        strangers = sorted({name for shown in index.over(block) for name in strange[shown]})
        if not cluster.cilium_nodes:
            yield error(
                "IPC0518",
                cidr.at,
                f'{block} of pool "{pool}" was the operator\'s, and no CiliumNode in the input shows who has blocks of it',
                also=[at],
                help=f"add CiliumNodes to the input, and those nodes to the inventory: {DUMP}",
            )
        elif strangers:
            yield error(
                "IPC0518",
                cidr.at,
                f'{block} of pool "{pool}" was the operator\'s, and {count(len(strangers), "node")} outside the inventory has blocks of it: {names(strangers)}',
                also=[at],
                help="add these nodes to the inventory: they keep their blocks; or drain and delete them first",
            )


def still_given_out(plan: Plan, before: Assumed) -> Iterator[Diagnostic]:
    """IPC0519: no new block lies in what the operator still gives out."""
    unlisted = {pool.name for pool in plan.cluster.pools if pool.unlisted}
    found = [
        line
        for line in plan.lock.lines
        if line.in_use
        and line.pool not in unlisted
        and plan.origins.get(line.block, Origin.ADOPTED) is not Origin.ADOPTED
        and blocks_over(before.lists.get(line.block.family, ()), line.block)
    ]
    if found:
        line = found[0]
        place = next((node.at for node in plan.cluster.nodes if node.name == line.node), plan.cluster.at)
        yield error(
            "IPC0519",
            place,
            f"{count(len(found), 'new block')} of what the operator gives out until it restarts: "
            f"{names(f'{line.block} of {line.node}' for line in found)}",
            also=[Related(before.at, "the list that it runs with")],
            help="compile and apply the change of pools without these nodes, restart cilium-operator, then add them",
        )


def _taken_over(cluster: Cluster, before: Assumed) -> Iterator[tuple[Block, str, Range]]:
    """Yield what pools that are not `unlisted` have of the old list."""
    for pool in cluster.pools:
        for cidr in pool.ranges if not pool.unlisted else ():
            for other in blocks_over(before.lists.get(cidr.block.family, ()), cidr.block):
                yield shared(cidr.block, other), pool.name, cidr


def _has_every_pool(cluster: Cluster, before: Assumed) -> bool:
    """Tell whether the old list is that of an earlier ipamc: the ranges of all pools, as they still are.

    It says nothing of what the operator gave out.
    """
    every = [cidr.block for pool in cluster.pools for cidr in pool.ranges]
    return sorted(block for blocks in before.lists.values() for block in blocks) == sorted(every)
