"""Rules that need the plan: what the live cluster shows against it, limits of the mode, room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ipamc.check.modes import adopt_without_unlisted
from ipamc.check.multi_pool import default_pool_lacks_family, mask_size_changed
from ipamc.check.pools import ipv6_too_wide
from ipamc.cidr import Block, usable
from ipamc.diagnostics import Diagnostic, Related, count, error, names, note, warning
from ipamc.lock import first_shards
from ipamc.masks import longest_prefix
from ipamc.model import Line, Mode, Node, Plan, Pool
from ipamc.territory import Territory
from ipamc.utilisation import utilisation
from ipamc.versions import Capability, can, pre_allocation

CRD_ENTRIES = 4096
"""Addresses in one CiliumNode: an object of more is slow to patch and nears etcd's 1.5 MiB."""

LOW = 10
"""Percent free below which a pool is worth a warning."""


def review(plan: Plan) -> Iterator[Diagnostic]:
    """Yield every finding about the plan."""
    yield from pod_cidrs_differ(plan)
    yield from cilium_node_differs(plan)
    yield from several_pod_cidrs(plan)
    yield from pin_not_held(plan)
    yield from nearly_full(plan)
    yield from fewer_than_max_pods(plan)
    yield from too_many_shards_needed(plan)
    mode = plan.cluster.mode
    if mode is Mode.CRD:
        yield from too_many_entries(plan)
    if mode is Mode.CLUSTER_POOL:
        mask = longest_prefix(plan.cluster, 6, plan.lock.lines)
        if mask > longest_prefix(plan.cluster, 6):
            yield from ipv6_too_wide(plan.cluster, {6: mask})
        yield from adopt_without_unlisted(plan.cluster, plan.lock.lines)
        yield from room_for_unlisted(plan)
    if mode is Mode.MULTI_POOL and plan.cluster.pinning != "none":
        firsts = {want.offers[0].pool.name: want.offers[0].pool for want in plan.wants if want.offers}
        yield from default_pool_lacks_family(plan.cluster, firsts.values())
    if mode is Mode.MULTI_POOL and plan.cluster.pinning == "node":
        yield from pre_allocation_too_large(plan)
        yield from _pinned_mask_changed(plan)


def pod_cidrs_differ(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0503: a Node's `spec.podCIDRs` is what the lock says.

    The field cannot be changed once it is set: the apiserver answers 422 to the manifest, or Cilium uses what is there. In kubernetes mode a node must be
    drained, deleted and joined again to get another block. Elsewhere this holds where `patchNodes: podCIDRs` writes the field.
    """
    cluster = plan.cluster
    if cluster.mode is not Mode.KUBERNETES and cluster.patch_nodes != "podCIDRs":
        return
    pending = {line.node for line in plan.lock.lines if line.next}
    for node in cluster.nodes:
        if not node.pod_cidrs:
            continue
        lines = plan.held.get(node.name, ())
        wished = tuple(line.block for family in cluster.families for line in lines if line.block.family == family)
        if wished != node.pod_cidrs:
            shown = ", ".join(map(str, node.pod_cidrs))
            make = warning if node.name in pending else error
            yield make(
                "IPC0503",
                node.at,
                f"node {node.name} has podCIDRs {shown}, and the lock says {', '.join(map(str, wished)) or 'none'}; the field is immutable",
                help="put the families of ipFamilies in the order of the Nodes"
                if sorted(wished) == sorted(node.pod_cidrs)
                else f"drain {node.name}, kubectl delete node {node.name}, and let it join again",
            )


def cilium_node_differs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0513: a CiliumNode shows the blocks that the lock says.

    In cluster-pool and crd mode the CiliumNode's `podCIDRs` are the blocks in use. Applying others to a running node moves nothing in the agent until
    it restarts, and from 1.19 on the operator reverts them.
    """
    cluster = plan.cluster
    if cluster.mode not in {Mode.CLUSTER_POOL, Mode.CRD}:
        return
    known = {node.name: node for node in cluster.nodes}
    pending = {line.node for line in plan.lock.lines if line.next}
    for seen in cluster.cilium_nodes:
        shown = sorted(block for block, _ in seen.blocks)
        held = sorted(line.block for line in plan.held.get(seen.name, ()))
        if seen.name in known and shown and shown != held:
            make = warning if seen.name in pending else error
            yield make(
                "IPC0513",
                seen.at,
                f"CiliumNode {seen.name} shows {', '.join(map(str, shown))}, and the lock says {', '.join(map(str, held)) or 'nothing'}",
                also=[Related(known[seen.name].at, "the node is here")],
                help=f"drain {seen.name}, kubectl delete ciliumnode {seen.name}, apply, and restart its agent; or take the CiliumNode out if it is out of date",
            )


def several_pod_cidrs(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0505: a node whose Node object is rendered has one block a family.

    `spec.podCIDRs` takes one CIDR of each family (the apiserver: "may specify no more than one CIDR for each IP family"), and so do Cilium's annotations.
    """
    if plan.cluster.patch_nodes == "none" or plan.cluster.mode.one_block:
        return
    several = [name for name, lines in plan.held.items() if len({line.block.family for line in lines}) < len(lines)]
    if several:
        yield error(
            "IPC0505",
            plan.cluster.field("spec", "patchNodes"),
            f"patchNodes: {plan.cluster.patch_nodes} with several blocks of one family on {count(len(several), 'node')}: {names(several)}",
            help="set patchNodes: none",
        )


def pin_not_held(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0309: a pinned node holds another block.

    A pin says where a node goes when it is placed; it moves no node that holds a block already.
    """
    inventory = {node.name for node in plan.cluster.nodes}
    for pool in plan.cluster.pools:
        for name, pins in sorted(pool.pins.items()):
            blocks = {line.block for line in plan.held.get(name, ())} | {
                line.block for line in plan.lock.lines if line.next and line.node == name
            }
            for pin in pins:
                others = sorted(block for block in blocks if block.family == pin.block.family)
                if name in inventory and others and pin.block not in blocks:
                    yield warning("IPC0309", pin.at, f"node {name} is pinned to {pin.block} and holds {', '.join(map(str, others))}")


def nearly_full(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0215: a pool has less than 10 % of its addresses free.

    Nodes that join when it is full are refused, or go to its overflow. Add a CIDR at the end of its `cidrs`, which moves nobody.
    """
    for each in utilisation(plan.cluster, plan.lock):
        use = each.use
        if not each.pool.disabled and not each.pool.unlisted and use.available * 100 < use.total * LOW:
            yield warning(
                "IPC0215",
                each.family.at / "cidrs",
                f'pool "{each.pool.name}" has {use.available * 100 / use.total:.2g} % of its IPv{each.family.family} addresses free '
                f"({count(use.blocks_free, 'block')} of /{each.family.block_size})",
                help="add a CIDR to the end of cidrs",
            )


def _usable(plan: Plan, block: Block) -> int:
    return usable(block, all_of_tiny=plan.cluster.mode is Mode.CRD or can(plan.cluster.cilium, Capability.TINY_BLOCKS))


def fewer_than_max_pods(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0551: a node's blocks have an address for each of its `maxPods`.

    The kubelet accepts up to `maxPods` pods; those that find no address stay in ContainerCreating. Pods on the host network need none, so this is a
    warning; two or three addresses of the block are Cilium's own.
    """
    short: dict[tuple[str, int], list[tuple[Node, int]]] = defaultdict(list)
    for node in plan.cluster.nodes:
        lines = plan.held.get(node.name, ())
        if not node.max_pods or not lines:
            continue
        for family in plan.cluster.families:
            mine = [line for line in lines if line.block.family == family]
            room = sum(_usable(plan, line.block) for line in mine)
            if mine and room < node.max_pods:
                short[mine[0].pool, family].append((node, room))
    for (pool, family), nodes in sorted(short.items()):
        node, room = min(nodes, key=lambda each: (each[1] - each[0].max_pods, each[0].name))
        yield warning(
            "IPC0551",
            node.at,
            f'{count(len(nodes), "node")} of pool "{pool}" with fewer IPv{family} addresses than pods: '
            f"{node.name} has {room} for maxPods {node.max_pods}; {names(each.name for each, _ in nodes)}",
            help="use a larger block for these nodes (blockSizes), or lower maxPods",
        )


def too_many_shards_needed(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0555: shards have outgrown `output.shardSize`.

    `kustomize build` costs quadratic time in the number of objects. The shard count is kept in the lock's header and never changes by itself, because
    every object's file would move.
    """
    wished = first_shards(len(plan.cluster.nodes), plan.cluster.shard_size)
    if wished >= plan.lock.shards * 4:
        yield warning(
            "IPC0555",
            plan.cluster.field("spec", "output", "shardSize"),
            f"{count(len(plan.cluster.nodes), 'node')} in {count(plan.lock.shards, 'shard')}; shardSize {plan.cluster.shard_size} would make {wished}",
            help=f"ipamc lock {plan.cluster.name} --reshard, once: every object's file moves",
        )


def too_many_entries(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0531: a CiliumNode of crd mode has at most 4,096 addresses.

    `spec.ipam.pool` has an entry for every single address, and the agent rewrites the object's status with each pod.
    """
    over: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sorted(plan.held.items()):
        entries = sum(_usable(plan, line.block) for line in lines)
        if entries > CRD_ENTRIES:
            over[lines[0].pool].append((name, entries))
    pools = {pool.name: pool for pool in plan.cluster.pools}
    for pool, nodes in sorted(over.items()):
        at = next(iter(pools[pool].families.values())).at / "blockSize" if pool in pools else plan.cluster.at
        name, entries = nodes[0]
        yield error(
            "IPC0531",
            at,
            f"{entries:,} addresses in one CiliumNode, and {CRD_ENTRIES:,} is the limit: {names(each for each, _ in nodes)}",
            help="use a smaller block (a longer blockSize), or cluster-pool mode",
        )


def room_for_unlisted(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0516: how much room the operator has for nodes that nobody listed.

    With `operator: adopt` the operator gives nodes outside the inventory blocks of the `unlisted` pool. When that is full it goes on in the next ranges,
    where ipamc gives out blocks too: add a CIDR before that.
    """
    if plan.cluster.operator != "adopt":
        return
    for each in utilisation(plan.cluster, plan.lock):
        if each.pool.unlisted:
            yield note(
                "IPC0516",
                each.family.at / "cidrs",
                f'unlisted pool "{each.pool.name}" has room for {count(each.use.blocks_free, "node")} more (IPv{each.family.family})',
            )


def pre_allocation_too_large(plan: Plan) -> Iterator[Diagnostic]:
    """IPC0527: with `pinning: node` a node's blocks satisfy at least a pre-allocation of 1.

    The agent asks for more addresses than it uses: with a pre-allocation of 1 and its own router, health and ingress addresses, 4 of the default pool
    in each family. A node whose blocks have fewer waits for ever for addresses that the operator cannot give.
    """
    tiny: dict[str, list[tuple[str, Pool]]] = defaultdict(list)
    territory = Territory(plan.cluster.pools)
    for want in plan.wants:
        lines: tuple[Line, ...] = plan.held.get(want.node.name, ())
        grounds = {ground.pool.name: ground.pool for line in lines if (ground := territory.of(line.block))}
        default = want.offers[0].pool.name if want.offers else ""
        for name, pool in sorted(grounds.items()):
            blocks = [line.block for line in lines if line.pool == name]
            if pre_allocation(plan.cluster.cilium, blocks, default=name == default) is None:
                tiny[name].append((want.node.name, pool))
    for nodes in tiny.values():
        pool = nodes[0][1]
        yield error(
            "IPC0527",
            next(iter(pool.families.values())).at / "blockSize",
            f'the blocks of pool "{pool.name}" are too small for a pre-allocation of 1 on {count(len(nodes), "node")}: {names(name for name, _ in nodes)}',
            help="use a larger block (a shorter blockSize)",
        )


def _pinned_mask_changed(plan: Plan) -> Iterator[Diagnostic]:
    """Yield the nodes whose own CiliumPodIPPool would get a longer maskSize by a block that is new."""
    pools = {pool.name: pool for pool in plan.cluster.pools}
    places = {node.name: node.at for node in plan.cluster.nodes}
    told: set[tuple[str, int]] = set()
    for node, lines in sorted(plan.held.items()):
        if not any(line.block in plan.origins for line in lines):
            continue
        for key in sorted({(line.pool, line.block.family) for line in lines} - told):
            mine = [line for line in lines if (line.pool, line.block.family) == key and line.pool in pools]
            before = max((line.block.prefix for line in mine if line.block not in plan.origins), default=0)
            now = max((line.block.prefix for line in mine), default=0)
            if before and before != now:
                told.add(key)
                held = next(line for line in mine if line.block not in plan.origins)
                yield mask_size_changed(pools[key[0]], key[1], before, now, Related(places.get(node, plan.cluster.at), f"node {node} holds {held.block}"))
