"""Imports a cluster that runs Calico: keeps its pools, and every block that is affine to a node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ipamc.importing.calico import calico_rules as rules
from ipamc.importing.calico.calico_rules import CalicoPool, Claim
from ipamc.importing.calico.holdings import Holdings, holdings
from ipamc.importing.calico.pools import Grouped, MergedPool, grouped, read_pools, read_reservations, strays
from ipamc.importing.cilium import MASK
from ipamc.importing.draft import Blocks, Draft, DraftPool, DraftRange
from ipamc.importing.facts import askers
from ipamc.model.address_sets import aggregated, blocks_over, index_around, outermost, shared
from ipamc.model.cidr import BITS, Block, read_blocks
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, count, errors_of, names, warning
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.limits import MOST_CALICO_POOLS
from ipamc.model.selector.selector import EVERY, SelectorIndex
from ipamc.model.wording import cut
from ipamc.read.dump.programs import texts_of

LABELS = "projectcalico.org/labels"
"""An annotation of Nodes: labels that only Calico uses, as JSON (lib/backend/k8s/resources/resources.go)."""


def tells_blocks(dump: Dump) -> bool:
    """Return whether a dump has Calico's blocks, so that a node without one has none."""
    return bool(dump.calico_blocks or dump.affinities)


def is_calico(dump: Dump) -> bool:
    """Return whether Calico's IPAM gives the nodes of a dump their blocks.
    With `host-local` in its CNI configuration Calico uses addresses of podCIDRs, and its pools mean nothing.
    """
    return tells_blocks(dump) or (bool(dump.of_kind("IPPool")) and not uses_pod_cidrs(dump))


def uses_pod_cidrs(dump: Dump) -> bool:
    """Return whether Calico gives pods addresses from the podCIDRs of their Nodes."""
    data = (texts_of(config.value.get("data")) for config in dump.of_kind("ConfigMap"))
    return any('"host-local"' in texts.get("cni_network_config", "") for texts in data)


def two_sources(dump: Dump) -> Iterator[Diagnostic]:
    """Yield nodes with only blocks of Calico, while other nodes have blocks of Cilium."""
    moved = {seen.name: seen for seen in dump.cilium_nodes if seen.blocks or seen.allocated}
    first = next((block for block in dump.calico_blocks if block.host and block.host not in moved), None)
    if moved and first:
        hosts = {block.host for block in dump.calico_blocks} & dump.nodes_by_name.keys() - moved.keys()
        if hosts:
            yield rules.two_sources(first.at, next(iter(moved.values())).at, sorted(hosts))


def draft(dump: Dump, mode: Mode = Mode.MULTI_POOL) -> Draft:
    """Return the files to write, as a Draft, for a dump of a cluster that runs Calico.
    In multi-pool mode each node gets pools of its own (`pinning: node`): it keeps all its blocks, and
    Cilium's operator can give none of them to another node. In crd mode there is no operator at all. In
    kubernetes and cluster-pool mode a node has one block of each family, so a node with more is an error.
    Deterministic for any order of the dump.
    """
    pools, found = read_pools(dump)
    if len(pools) > MOST_CALICO_POOLS:
        found, pools = [rules.too_many_pools(pools[MOST_CALICO_POOLS].at, len(pools), MOST_CALICO_POOLS)], []
    outside = [pool for pool in pools if not pool.workload]
    held = holdings(dump, outermost(pool.block for pool in outside), _on_request(pools))
    blocks = [claim.block for claim in held.claims]
    families = _families(dump, pools, blocks)
    ours = [pool for pool in pools if pool.workload and pool.block.family in families]
    # A block of no pool, or larger than its pool, is cut out of all pools, and gets a pool of its own.
    lost = strays(blocks, [pool.block for pool in ours])
    groups = grouped(ours, [*lost, *(pool.block for pool in outside)])
    every = (*groups.active, *groups.halted)
    drafts = _pools(every, mode)
    lost = strays(blocks, _ranges(drafts))
    drafts += _without_pool(lost, {pool.name for pool in drafts})
    reservations, unread = read_reservations(dump)
    reserved = outermost([*(block for block, _ in reservations), *held.reserved])
    for number, pool in enumerate(drafts):
        parts = (shared(block, each) for block in _ranges([pool]) for each in blocks_over(reserved, block))
        drafts[number] = replace(pool, reserved=dict.fromkeys(aggregated(parts), ""))
    found += [*unread, *held.findings]
    tops = outermost([*blocks, *(claim.block for claim in held.asked)])
    overlaid = [pool for pool in pools if pool.workload and pool.overlay]
    if served := [pool for pool in overlaid if not pool.halted or blocks_over(tops, pool.block)]:
        found.append(rules.overlay(served))
    found += _about_pools(pools, groups, families)
    found += [rules.on_request(one, _of(one, held), mode) for one in ours if one.halted == rules.ON_REQUEST]
    alone = {block: pool.name for pool in drafts if pool.pods_only for block in _ranges([pool])}
    found += [*_not_of_cilium(dump, pools, families, alone, mode), *rules.announced(dump)]
    found += _about_blocks(held, lost, reservations)
    found += _about_nodes(dump, groups.active, held, mode)
    specs = (item.value.get("spec") for item in dump.of_kind("IPAMConfig", "IPAMConfiguration"))
    found += rules.not_frozen(dump, next((spec for spec in specs if isinstance(spec, dict)), {}))
    # If no pool selects a node, Calico has no addresses for its pods either.
    index = SelectorIndex([group.selector for group in groups.active])
    unselected = any(index.first(node.labels, node.name) is None for node in dump.nodes)
    ranges = ((block, pool.name) for pool in drafts for block in _ranges([pool]))
    return Draft(
        mode=mode,
        families=families,
        pools=tuple(sorted(drafts, key=lambda pool: pool.name)),
        blocks=_blocks(held.claims, ranges, mode),
        excluded=tuple(DraftRange(block=pool.block, why=f"Calico IPPool {pool.name}") for pool in outside),
        ipam={"pinning": "node"} if mode is Mode.MULTI_POOL else {},
        spec={"unmatchedNodes": "skip"} if unselected else {},
        label_keys=frozenset().union(*(group.selector.keys for group in every)),
        decisions=tuple(found),
    )


def _about_pools(
    pools: Iterable[CalicoPool], groups: Grouped, families: Sequence[int]
) -> Iterator[Diagnostic]:
    """Yield pools that change with the import."""
    for pool in pools:
        if not pool.workload:
            yield rules.not_for_pods(pool.at, pool.name, pool.block)
        elif pool.block.family not in families:
            yield rules.unused_family(pool.at, pool.name, pool.block)
        elif pieces := groups.cut.get(pool.name):
            yield rules.too_small(pool.at, pool.name, pool.size, pieces)
    yield from (rules.pools_overlap(loser, winner) for loser, winner in groups.overlapping)
    for group in groups.halted:
        first = group.pools[0]
        if not first.halted:  # Calico allocates new blocks from it, ipamc does not
            yield rules.pool_is_second(first.at, first.name, group.halted)
    for group in groups.active:
        for family in set(families) - group.ranges.keys():
            yield rules.lacks_family(group.pools[0].at, group.name, family)


def _about_blocks(
    held: Holdings, lost: Iterable[Block], reserved: Iterable[tuple[Block, SeenObject]]
) -> Iterator[Diagnostic]:
    """Yield nodes' blocks in no pool, and reservations inside nodes' blocks."""
    claims = {claim.block: claim for claim in held.claims}
    starts = sorted(claims)
    if outside := [claims[block] for block in lost]:
        yield rules.outside_pools(outside)
    for cidr, item in reserved:
        if inside := [claims[block] for block in blocks_over(starts, cidr)]:
            yield rules.reserved_in_block(item.at, item.name, cidr, inside)


def _about_nodes(
    dump: Dump, active: Sequence[MergedPool], held: Holdings, mode: Mode
) -> Iterator[Diagnostic]:
    """Yield nodes that the mode or the pools do not serve as Calico did."""
    keys = frozenset().union(*(group.selector.keys for group in active))
    known = []
    for node in dump.nodes if keys else ():
        try:
            known.append((node, msgspec.json.decode(node.annotations[LABELS], type=dict[str, str])))
        except (KeyError, msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            continue
    for key in sorted(keys):
        if nodes := [node for node, labels in known if key in labels and key not in node.labels]:
            yield rules.label_of_calico(nodes[0].at, key, [node.name for node in nodes])
    if not mode.one_block:
        return
    numbers = Counter((claim.node, claim.block.family) for claim in held.claims)
    if several := sorted({node for (node, _), number in numbers.items() if number > 1}):
        yield rules.several_blocks(dump.nodes_by_name[several[0]].at, mode, several)
    blocks: dict[str, set[Block]] = defaultdict(set)
    for claim in held.claims:
        blocks[claim.node].add(claim.block)
    other = [node for node in dump.nodes if node.pod_cidrs and set(node.pod_cidrs) != blocks[node.name]]
    if mode is Mode.KUBERNETES and other:
        yield rules.other_pod_cidrs(other[0].at, [node.name for node in other])


def distinct_draft(dump: Dump, ranges: Sequence[Block], asked: Mapping[int, int], mode: Mode) -> Draft:
    """Return a cluster with blocks from ranges that Calico does not use, as in Cilium's own guide.
    `asked` has prefix lengths of blocks by family.
    """
    pools, found = read_pools(dump)
    held = holdings(dump, ())
    claimed = (claim.block for claim in held.claims)
    theirs = outermost([*(pool.block for pool in pools), *claimed, *held.reserved])
    if mode is Mode.KUBERNETES:
        problem = "kubernetes mode excludes --distinct: Node podCIDRs cannot change while both networks run"
        found.append(rules.not_distinct(dump.at, problem, "use --mode cluster-pool or multi-pool"))
    for block in ranges:
        if over := blocks_over(theirs, block):
            problem = f"--distinct {block} overlaps ranges of Calico: {names(map(str, over))}"
            way_out = "choose a range that neither Calico nor the network uses"
            found.append(rules.not_distinct(dump.at, problem, way_out))
    families = tuple(dict.fromkeys(block.family for block in ranges))
    found += [*_not_of_cilium(dump, (), families, {}, mode), *rules.announced(dump)]
    by_family = {family: tuple(one for one in ranges if one.family == family) for family in sorted(families)}
    sizes = {family: asked.get(family) or _size(some, len(dump.nodes)) for family, some in by_family.items()}
    return Draft(
        mode=mode,
        families=families,
        pools=(DraftPool(name="default", ranges=by_family, sizes=sizes),),
        blocks={},
        fresh=True,
        excluded=tuple(DraftRange(block=block, why="Calico") for block in theirs),
        decisions=tuple(found),
    )


def _size(ranges: Sequence[Block], nodes: int) -> int:
    """Return the prefix length of blocks: Cilium's default, or a longer one for two blocks per node."""
    family = ranges[0].family
    for size in range(MASK[family], BITS[family] - 4):
        if sum(1 << size - block.prefix for block in ranges if block.prefix <= size) >= 2 * nodes:
            return size
    return BITS[family] - 4


def _families(dump: Dump, pools: Iterable[CalicoPool], blocks: Iterable[Block]) -> tuple[int, ...]:
    """Return the families of the nodes' blocks, the primary one first; without blocks those of pools.
    Calico has no primary family: the first InternalIP of most nodes decides.
    """
    found = {block.family for block in blocks} or {
        pool.block.family for pool in pools if pool.workload and not pool.halted
    }
    first = Counter(node.internal_ips[0][0] for node in dump.nodes if node.internal_ips)
    return tuple(sorted(found or {4}, key=lambda family: (-first[family], family)))


def _on_request(pools: Iterable[CalicoPool]) -> list[Block]:
    return outermost(pool.block for pool in pools if pool.halted == rules.ON_REQUEST)


def _of(pool: CalicoPool, held: Holdings) -> list[Claim]:
    return [claim for claim in held.asked if pool.block.contains(claim.block)]


def of_nodes(dump: Dump, sizes: Mapping[Block, int]) -> dict[Block, int]:
    """Return ranges without those of pools that pods ask for, which tell nothing of a node's blocks."""
    asked = _on_request(read_pools(dump)[0])
    return {block: size for block, size in sizes.items() if index_around(asked, block) is None}


def _pools(groups: Iterable[MergedPool], mode: Mode) -> list[DraftPool]:
    """Convert groups to pools. With `pinning: node` a name must not contain a dot."""
    names: set[str] = set()
    drafts = []
    for group in groups:
        name = _free(group.name.replace(".", "-"), names)
        names.add(name)
        listed = ", ".join(pool.name for pool in group.pools)
        alone = group.halted == rules.ON_REQUEST and mode is Mode.MULTI_POOL
        comment = f"Calico IPPool{'s' if group.pools[1:] else ''} {listed}"
        drafts.append(
            DraftPool(
                name=name,
                ranges=group.ranges,
                sizes=group.sizes,
                selector=None if alone or group.selector == EVERY else group.selector.canonical,
                disabled=bool(group.halted) and not alone,
                pods_only=alone,
                labels={key: value for pool in reversed(group.pools) for key, value in pool.labels.items()},
                comment=f"{comment}: {group.halted}" if group.halted else comment,
            )
        )
    return drafts


def _free(name: str, names: Iterable[str]) -> str:
    while name in names:
        name += "-x"
    return name


def _ranges(pools: Iterable[DraftPool]) -> Iterator[Block]:
    return (block for pool in pools for some in pool.ranges.values() for block in some)


def _without_pool(lost: Iterable[Block], names: set[str]) -> Iterator[DraftPool]:
    """Yield a disabled pool for each size of blocks outside of all pools, so that their nodes keep them."""
    by_size: dict[tuple[int, int], list[Block]] = {}
    for block in lost:
        by_size.setdefault((block.family, block.prefix), []).append(block)
    for (family, size), blocks in sorted(by_size.items()):
        yield DraftPool(
            name=_free(f"no-pool-{size}" if family == 4 else f"no-pool-v6-{size}", names),
            ranges={family: tuple(aggregated(blocks))},
            sizes={family: size},
            disabled=True,
            comment="blocks of nodes outside all Calico IPPools",
        )


def shown(dump: Dump, cluster: Cluster) -> tuple[Mapping[str, Blocks], list[Diagnostic]]:
    """Return each node's Calico blocks as its CiliumNode will show them, and the errors that forbid it.
    For a refresh before the last node has moved: nodes that join with Calico also keep their blocks.
    """
    if not tells_blocks(dump):
        return {}, []
    pools, found = read_pools(dump)
    # In a cluster on a distinct range they are excluded: nodes do not keep them.
    outside = [pool.block for pool in pools if not pool.workload] + [cidr.block for cidr in cluster.excluded]
    held = holdings(dump, outermost(outside), _on_request(pools))
    # Nodes that have moved have a CiliumNode, and no pods of Calico.
    for pool in (one for one in pools if one.halted == rules.ON_REQUEST):
        own = cluster.pools_by_name.get(pool.name.replace(".", "-"))
        staying = [claim for claim in _of(pool, held) if claim.node not in dump.cilium_nodes_by_name]
        if own and (free := [claim for claim in staying if not own.reserved_over(claim.block)]):
            named = replace(pool, name=own.name)
            found += [rules.on_request(named, free, cluster.mode, lacking=True)] if own.pods_only else []
    ranges = [(cidr.block, pool.name) for pool in cluster.pools for cidr in pool.ranges]
    blocks = _blocks(held.claims, ranges, cluster.mode, own=cluster.own_pools)
    return blocks, errors_of((*found, *held.findings))


def _blocks(
    claims: Iterable[Claim], pools: Iterable[tuple[Block, str]], mode: Mode, *, own: bool = True
) -> Mapping[str, Blocks]:
    """Return the blocks of each node, in multi-pool mode each with the CiliumPodIPPool that will have it.
    `pools` are ranges with the names of their pools; with `own` each node has pools of its own.
    """
    ranges = sorted(pools)
    starts = [block for block, _ in ranges]
    blocks: dict[str, list[tuple[Block, str]]] = defaultdict(list)
    for claim in claims:
        index = index_around(starts, claim.block) if mode is Mode.MULTI_POOL else None
        pool = "" if index is None else ranges[index][1]
        blocks[claim.node].append((claim.block, f"{pool}.{claim.node}" if own and pool else pool))
    return {node: tuple(blocks[node]) for node in sorted(blocks)}


def _not_of_cilium(
    dump: Dump, pools: Sequence[CalicoPool], families: Sequence[int], alone: Mapping[Block, str], mode: str
) -> Iterator[Diagnostic]:
    """IPC0867: pods that request a pool or an address from Calico also request it from Cilium."""
    active = [pool.block for pool in pools if pool.workload and not pool.halted]
    several = [one.family for one in active]
    ranges = {one: "" for one in active if several.count(one.family) == 1} | dict(alone)
    known = {key: ranges[it.block] for it in pools if it.block in ranges for key in (it.name, str(it.block))}
    every = ((who, at, " and ".join(_lacking(asks, families, known))) for who, at, asks in askers(dump))
    if found := [each for each in every if each[2]]:
        ask = count(len(found), "pod or namespace requests", "pods or namespaces request")
        needs = names((f"{who} needs {what}" for who, _, what in found), 20)  # each is work to do
        text = f"{ask} a pool or an address from Calico, but not from Cilium: {needs}"
        way_out = "add these annotations beside Calico's to the pod templates before the pods move"
        if mode != "multi-pool":
            way_out = "pods can request a pool only in multi-pool mode: import with --mode multi-pool"
        yield warning("IPC0867", found[0][1], text, help=way_out)


def _lacking(asks: Mapping[str, str], families: Sequence[int], known: Mapping[str, str]) -> Iterator[str]:
    """Yield what a pod needs in Cilium; nothing of a family for which it asks Cilium already.
    `known` are pools for pods alone, by Calico's name and CIDR; "": every pod gets this one anyway. Of a list
    (cni-plugin/pkg/k8s/k8s.go) the first one counts: Cilium takes one (pkg/annotation/k8s.go, since 1.15).
    """
    keys = {each: f"ipam.cilium.io/ipv{each}-pool" for each in families}
    unset = [each for each in families if not asks.keys() & {"ipam.cilium.io/ip-pool", keys[each]}]
    texts = {each: asks.get(f"cni.projectcalico.org/ipv{each}pools", "") for each in unset}
    found = {each: _first(text, known) for each, text in texts.items() if text}
    if len(found) == len(families) and len(set(found.values())) == 1:
        keys = dict.fromkeys(families, "ipam.cilium.io/ip-pool")
    yield from dict.fromkeys(f"{keys[each]}: {name}" for each, name in found.items() if name)
    others = [text for key, text in asks.items() if unset and key.endswith(("IPs", "Addrs"))]
    others += [texts[each] for each, name in found.items() if name is None]
    yield from (f"a pool with podsOnly for {cut(text)}" for text in others)


def _first(text: str, known: Mapping[str, str]) -> str | None:
    """Return the first known pool of a list of names and CIDRs, as ResolvePools of the CNI plugin does."""
    try:
        entries = msgspec.json.decode(text, type=list[str])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    keys = (key for entry in entries for key in (entry, *map(str, read_blocks([entry])[0])))
    return next((known[key] for key in keys if key in known), None)
