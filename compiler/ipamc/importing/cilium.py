"""Drafts of clusters in Cilium's own IPAM modes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from ipamc.importing import import_rules as rules
from ipamc.importing.draft import Blocks, Draft, DraftPool, ranges_around, usual_size
from ipamc.importing.facts import Facts, askers, keeps
from ipamc.model.address_sets import PRIVATE, blocks_over, index_around, outermost, subtract
from ipamc.model.cidr import BITS, Block, parse_block, single
from ipamc.model.cilium.flags import parse_cidrs, parse_size
from ipamc.model.cluster import Mode, OperatorRole
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.dump import Dump
from ipamc.model.evidence import waits
from ipamc.model.limits import LARGEST_GUESSED_BLOCK
from ipamc.model.node import Node
from ipamc.model.wording import shown
from ipamc.read.dump.programs import Offering
from ipamc.read.rules import unreadable

OUTSIDE = "outside"  # the name of the pool for blocks outside the configured ranges
_DEFAULT = "default"
_DEFAULT_POOL_KEY = "ipam-default-ip-pool"
_AUTO_CREATE = "auto-create-cilium-pod-ip-pools"
MASK = {4: 24, 6: 112}
"""Cilium's default prefix lengths of blocks in cluster-pool mode (operator flags, 1.12 to 1.20)."""
_NETWORK = {4: 16, 6: 64}  # around what the dump names: a VPC of AWS is no larger
_LOCAL = parse_block("fd00::/8")
_NODE_MASK = {4: 24, 6: 64}  # kube-controller-manager's (cmd/kube-controller-manager/app/core.go)


def draft_of(dump: Dump, facts: Facts, mode: Mode, operator: OperatorRole) -> Draft:
    """Return the cluster that a dump shows, in one of Cilium's modes. O(n log n)."""
    draft = _BY_MODE[mode](dump, facts, facts.families(dump))
    if not keeps(dump, mode):
        draft = _proposed(dump, facts, draft)
    if mode is not Mode.CLUSTER_POOL:
        return draft
    if operator == "adopt":  # the operator keeps its ranges
        pools = [replace(pool, unlisted=True) for pool in draft.pools if pool.name != OUTSIDE]
        spec = {"unpooled": "hold", "unmatchedNodes": "skip"}
        return replace(draft, pools=tuple(pools), ipam={"operator": "adopt"}, spec=spec)
    if facts.config_at and not (facts.bystander or draft.fresh):
        return replace(draft, decisions=(*draft.decisions, rules.operator_allocates(facts.config_at)))
    return draft


def _kubernetes(dump: Dump, facts: Facts, families: tuple[int, ...]) -> Draft:
    """Blocks are the podCIDRs of Nodes; ranges are flags of kube-controller-manager."""
    blocks = {node.name: of_node(node, dump) for node in dump.nodes}
    flags = facts.controller
    ranges = parse_cidrs(flags.get("cluster-cidr", ""))[0]
    masks = {}
    for family in families:
        texts = [flags.get(f"node-cidr-mask-size{suffix}", "") for suffix in (f"-ipv{family}", "")]
        given = next((size for text in texts if (size := parse_size(text, family))), 0)
        masks[family] = given or usual_size(_all_blocks(blocks), family, _NODE_MASK[family])
    with_blocks = [node for node in dump.nodes if blocks[node.name]]
    annotated = with_blocks and not any(node.pod_cidrs for node in with_blocks)
    patch = {"patchNodes": "annotations"} if annotated else {}
    shell = Draft(mode=Mode.KUBERNETES, families=families, pools=(), blocks=blocks, spec=patch)
    return _one_block(dump, facts, shell, ranges, masks)


def of_node(node: Node, dump: Dump) -> Blocks:
    """Return podCIDRs of a Node; without them the blocks that Cilium shows, which come from annotations."""
    seen = dump.cilium_nodes_by_name.get(node.name)
    return tuple((block, "") for block in (node.pod_cidrs or (seen.blocks if seen else ()) or node.annotated))


def _cluster_pool(dump: Dump, facts: Facts, families: tuple[int, ...]) -> Draft:
    """Blocks are the podCIDRs of CiliumNodes; ranges are keys of cilium-config."""
    seen = [one for one in dump.cilium_nodes if one.name in dump.nodes_by_name]
    blocks: dict[str, Blocks] = {one.name: tuple((block, "") for block in one.blocks) for one in seen}
    ranges = [block for family in families for block in facts.blocks(f"cluster-pool-ipv{family}-cidr")]
    masks = {}
    for family in families:
        usual = usual_size(_all_blocks(blocks), family, MASK[family])
        masks[family] = (
            parse_size(facts.config.get(f"cluster-pool-ipv{family}-mask-size", ""), family) or usual
        )
    shell = Draft(mode=Mode.CLUSTER_POOL, families=families, pools=(), blocks=blocks)
    return _one_block(dump, facts, shell, ranges, masks)


def _one_block(
    dump: Dump, facts: Facts, shell: Draft, ranges: Iterable[Block], masks: Mapping[int, int]
) -> Draft:
    """Return the draft of a mode with one pool: its ranges, and those of blocks outside of them."""
    at, families, blocks = dump.at, shell.families, shell.blocks
    others = [Block(*ip, BITS[ip[0]]) for node in dump.nodes for ip in node.internal_ips]
    others += [item.block for item in facts.excluded]
    decisions: list[Diagnostic] = []
    every = [block for block in _all_blocks(blocks) if block.family in families]
    ranges = [block for block in ranges if block.family in families]
    given = [block for block in ranges if block.prefix <= masks[block.family]]
    if small := [f"{one}, too small for a /{masks[one.family]}" for one in ranges if one not in given]:
        place = facts.config_at if shell.mode is Mode.CLUSTER_POOL else None
        decisions.append(unreadable(place or at, "the list of ranges", small))
    for family in families:
        if not any(block.family == family for block in given):
            if derived := ranges_around([block for block in every if block.family == family], others):
                decisions.append(rules.ranges_derived(at, derived))
            given += derived
    pools = [_pool(_DEFAULT, given, masks)] if given else []
    tops = outermost(given)
    strangers = [block for block in outermost(every) if index_around(tops, block) is None]
    if strangers:
        lost = [(name, block) for name, some in blocks.items() for block, _ in some]
        lost = [(name, block) for name, block in lost if index_around(strangers, block) is not None]
        nodes = list(dict.fromkeys(name for name, _ in lost))
        decisions.append(rules.outside_ranges(at, strangers, nodes, OUTSIDE))
        sizes: dict[int, int] = {}
        for block in strangers:
            sizes[block.family] = max(block.prefix, sizes.get(block.family, 0))
        why = "blocks in use outside the configured ranges; no new blocks"
        pools.append(replace(_pool(OUTSIDE, strangers, sizes), disabled=True, comment=why))
    return replace(shell, pools=tuple(pools), decisions=tuple(decisions))


def _proposed(dump: Dump, facts: Facts, draft: Draft) -> Draft:
    """Return a draft of a cluster that keeps no blocks, with a pool to start from where it has none.
    The ranges in cilium-config are those of the mode that runs.
    """
    if draft.pools and draft.mode is not Mode.CLUSTER_POOL:
        return replace(draft, fresh=True)
    sizes = {family: MASK[family] for family in draft.families}
    least = max(8, (2 * len(dump.nodes) - 1).bit_length())  # two blocks a node
    ranges = [block for family, size in sizes.items() for block in _free(dump, facts, family, size - least)]
    said = [rules.ranges_derived(facts.config_at or dump.at, ranges, facts.mode)] if ranges else []
    pools = [replace(_pool(_DEFAULT, ranges, sizes), comment="proposed by ipamc import")] if ranges else []
    return replace(draft, fresh=True, proposed=bool(pools), pools=tuple(pools), decisions=tuple(said))


def _free(dump: Dump, facts: Facts, family: int, prefix: int) -> Iterator[Block]:
    """Yield the lowest private range apart from all of a dump; of IPv6 a local one (RFC 4193)."""
    pods = (single(ip) for pod in dump.pods for ip in pod.addresses)
    named = (block for scalar in dump.scalars for block in scalar.blocks if block.prefix)  # 0: any address
    known = (*pods, *named, *(item.block for item in facts.excluded))
    busy = outermost(block.widened(min(block.prefix, _NETWORK[block.family])) for block in known)
    areas = [area for area in (*PRIVATE, _LOCAL) if area.family == family]
    holes = (hole for area in areas for hole in subtract(area, blocks_over(busy, area)))
    yield from islice((Block(family, hole.first, prefix) for hole in holes if hole.prefix <= prefix), 1)


def _pool(name: str, ranges: Iterable[Block], masks: Mapping[int, int]) -> DraftPool:
    by_family: dict[int, tuple[Block, ...]] = {}
    for block in ranges:
        by_family[block.family] = (*by_family.get(block.family, ()), block)
    sizes = {family: masks[family] for family in sorted(by_family)}
    return DraftPool(name=name, ranges=by_family, sizes=sizes)


def _multi_pool(dump: Dump, facts: Facts, families: tuple[int, ...]) -> Draft:
    """Pools are CiliumPodIPPools. The operator chooses blocks, so the lock follows its choice."""
    # In the order in which Cilium reads them: the last one that sets a pool counts.
    choosing = (config for config in dump.node_configs if config.defaults.get(_DEFAULT_POOL_KEY))
    chosen = {config.defaults[_DEFAULT_POOL_KEY]: config for config in choosing}
    general = facts.config.get(_DEFAULT_POOL_KEY, _DEFAULT)
    pools, keys = [], set[str]()
    asked = {text for _, _, asks in askers(dump) for key, text in asks.items() if key.startswith("ipam.")}
    for pool in dump.pools:
        config = chosen.get(pool.name)
        selector = dict(config.selector) if config and config.selector else None
        keys.update(_keys(selector))
        first = pool.name == general or config is not None
        sizes = {family: size for family, size in pool.mask_sizes.items() if family in families}
        further = ("podSelector", "namespaceSelector", "allowFirstIP", "allowLastIP")
        spec = pool.value["spec"]
        pools.append(
            DraftPool(
                name=pool.name,
                ranges={family: some for family, some in pool.cidrs.items() if some and family in sizes},
                sizes=sizes,
                selector=selector,
                disabled=not first and pool.name not in asked,
                labels=pool.labels,
                more={key: spec[key] for key in further if spec.get(key) not in (None, False)},
                pods_only=not first and pool.name in asked,
                comment="" if first else "pods request it by annotation; no node gets a block of it",
            )
        )
    names = {pool.name for pool in pools}
    created = list(_created(facts.config.get(_AUTO_CREATE, "")))
    pinning = "pool" if chosen or general != _DEFAULT else "none"
    given = {pool for seen in dump.cilium_nodes for _, pool in seen.allocated}
    decisions = [rules.pools_unknown(dump.at, sorted(given))] if given and not dump.pools else []
    named = [facts.config.get(_DEFAULT_POOL_KEY, ""), *created, *chosen] if dump.pools else []
    here = [name for name in created if name in names]
    for name in sorted({*named} - names - {""}):
        by, odd = chosen.get(name), [f"pool {shown(name)}, which the dump lacks"]
        whose = f"CiliumNodeConfig {by.name}" if by else "cilium-config"
        decisions.append(unreadable(by.at if by else facts.config_at or dump.at, whose, odd))
    return Draft(
        decisions=tuple(decisions),
        mode=Mode.MULTI_POOL,
        families=families,
        pools=tuple(pools),
        blocks={
            seen.name: seen.allocated or tuple((block, "") for block in seen.blocks)
            for seen in dump.cilium_nodes
            if seen.name in dump.nodes_by_name
        },
        ipam={"pinning": pinning, **({"autoCreate": here} if here else {})},
        label_keys=frozenset(keys),
    )


def _keys(selector: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the label keys of an unchecked LabelSelector."""
    yield from map(str, (selector or {}).get("matchLabels") or ())
    for expression in (selector or {}).get("matchExpressions") or ():
        if isinstance(expression, dict):
            yield str(expression.get("key"))


def _created(text: str) -> Iterator[str]:
    """Yield the names of pools in the flag that creates them: `name=spec,name=spec`."""
    for part in text.split("="):
        name = part.rpartition(",")[2].strip() if "," in part else part.strip()
        if name and ":" not in name:
            yield name


def _crd(dump: Dump, facts: Facts, families: tuple[int, ...]) -> Draft:
    """Blocks are unions of the CiliumNodes' single addresses, or are guessed from the addresses."""
    seen = [one for one in dump.cilium_nodes if one.name in dump.nodes_by_name]
    blocks: dict[str, Blocks] = {}
    for family in families:
        shown = {
            one.name: [block for block in one.blocks if block.family == family]
            or [block for block in one.addresses if block.family == family]
            for one in seen
        }
        prefix = _common_prefix(shown, family)
        for name, some in shown.items():
            whole = dict.fromkeys(block.widened(prefix) for block in some)
            blocks[name] = (*blocks.get(name, ()), *((block, "") for block in whole))
    masks = {family: usual_size(_all_blocks(blocks), family, BITS[family]) for family in families}
    shell = Draft(mode=Mode.CRD, families=families, pools=(), blocks=blocks)
    draft = _one_block(dump, facts, shell, (), masks)
    # The number of single addresses of nodes without a block.
    single = [one.addresses for one in seen if one.addresses and not one.blocks]
    parts = Counter(sum(block.size for block in addresses) for addresses in single)
    size = min(1 << (BITS[family] - prefix) for family, prefix in masks.items())
    if not parts or max(parts) >= size - 2:  # without the first and the last address
        return draft
    usage = {"usage": {"addresses": max(parts, key=lambda number: (parts[number], -number))}}
    return replace(draft, pools=tuple([replace(pool, more=usage) for pool in draft.pools]))


def _common_prefix(shown: Mapping[str, Iterable[Block]], family: int) -> int:
    """Return the prefix of the largest blocks that no two nodes share and that are at least half full."""
    bits = BITS[family]
    total = sum(block.size for some in shown.values() for block in some)
    for prefix in range(bits - 32 + LARGEST_GUESSED_BLOCK, bits):
        owners: dict[Block, str] = {}
        pairs = ((name, block) for name, some in shown.items() for block in some)
        apart = all(owners.setdefault(block.widened(prefix), name) == name for name, block in pairs)
        if apart and len(owners) << (bits - prefix) <= 2 * (total + 2 * len(owners)):
            return prefix
    return bits


def _all_blocks(blocks: Mapping[str, Blocks]) -> list[Block]:
    return [block for some in blocks.values() for block, _ in some]


def about_nodes(dump: Dump, draft: Draft, managed: Offering | None, *, silent: bool) -> Iterator[Diagnostic]:
    """Yield warnings about nodes: podCIDRs that are not their blocks, nodes that wait for a block.
    `silent` is that of `KnownBlocks`: with it the compile reports running nodes.
    """
    left, waiting = [], []
    for node in dump.nodes:
        blocks = {block for block, _ in draft.blocks.get(node.name, ())}
        if node.pod_cidrs and set(node.pod_cidrs) != blocks:
            left.append(node.name)
        lacks = [family for family in draft.families if not any(block.family == family for block in blocks)]
        reported = silent and node.running and not waits(node, dump.cilium_nodes_by_name.get(node.name))
        if lacks and (blocks or not reported):
            only = f" ({' and '.join(f'IPv{family}' for family in lacks)})" if blocks and silent else ""
            waiting.append(f"{node.name}{only}")
    if left and draft.mode is not Mode.KUBERNETES:
        yield rules.leftovers(dump.at, left, managed)
    if waiting and not draft.fresh:
        yield rules.without_block(dump.at, waiting, managed if draft.mode is Mode.KUBERNETES else None)


_BY_MODE: Mapping[Mode, Callable[[Dump, Facts, tuple[int, ...]], Draft]] = {
    Mode.KUBERNETES: _kubernetes,
    Mode.CLUSTER_POOL: _cluster_pool,
    Mode.MULTI_POOL: _multi_pool,
    Mode.CRD: _crd,
}
