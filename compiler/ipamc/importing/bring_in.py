"""A whole import: from a dump to the files of a cluster, of which a compile makes the lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.check.selection import left_out
from ipamc.importing import calico
from ipamc.importing import import_rules as rules
from ipamc.importing.calico import calico_rules
from ipamc.importing.cilium import about_nodes, draft_of
from ipamc.importing.clustercidr import draft as draft_of_cluster_cidrs
from ipamc.importing.clustercidr import is_cluster_cidr
from ipamc.importing.draft import Draft, PoolRange
from ipamc.importing.facts import Facts, account, facts_of, with_kept
from ipamc.importing.files import (
    BGP,
    CILIUM_NODES,
    CLUSTER,
    LABELS,
    NODES,
    POOLS,
    KnownBlocks,
    bgp_text,
    cluster_text,
    evidence_text,
    inventory_text,
    pools_text,
    tested_keys,
)
from ipamc.model import bgp
from ipamc.model.cidr import Block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import ManagedBy, Mode, OperatorRole, Version
from ipamc.model.diagnostics import Diagnostic, Log, Refused
from ipamc.model.dump import Dump
from ipamc.model.without_cilium import with_cilium, without_cilium
from ipamc.model.wording import shown


class Options(Struct, frozen=True, kw_only=True):
    """Values that a dump may not have, and choices of the user."""

    mode: Mode | None = None  # None: the cluster's present mode
    operator: OperatorRole = "bystander"
    cilium: Version | None = None  # None: from the dump
    managed_by: ManagedBy | None = None
    distinct: tuple[Block, ...] = ()
    """Ranges that Calico does not use, from which the nodes of its cluster get new blocks."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """The prefix lengths of these blocks by family, where somebody chose them."""
    labels: tuple[str, ...] = ()
    """Keys of labels to keep besides `inventory.LABELS`; a `*` at the end matches any rest of a key."""


class Imported(Struct, frozen=True, kw_only=True):
    """The files of a cluster."""

    files: Mapping[str, str]  # text by name below the cluster's folder
    draft: Draft
    findings: tuple[Diagnostic, ...]  # warnings and notes: what was derived, and what a person must decide


def bring_in(name: str, dump: Dump, options: Options) -> Imported:
    """Return the files of the dump's cluster, called `name`. Raises Refused. O(n log n)."""
    without = without_cilium(dump)
    dump = with_cilium(dump, without)
    log, facts = Log(), facts_of(dump)
    log.add((*facts.found, *left_out(dump.apart, without)))
    cilium = options.cilium or facts.cilium
    version = rules.version_unknown(dump.at, images=facts.nameless, nodes_alone=dump.kinds <= {"Node"})
    if unknown := list(_unknown(dump, facts, options)):
        raise Refused((*log.diagnostics, *unknown, *([] if cilium or facts.config_at else [version])))
    dump, draft = drafted(dump, facts, options)
    provider = facts.managed if draft.mode is Mode.KUBERNETES else None
    provider = provider if provider and provider.sets_pod_cidrs else None
    silent = not (draft.fresh or provider or (calico_gives(dump) and calico.tells_blocks(dump)))
    log.add([*draft.decisions, *about_nodes(dump, draft, facts.managed, silent=silent)])
    if provider:
        log.add([rules.provider_gives(dump.at, provider)])
        why = f"{provider.name} gives the blocks of this pool; ipamc gives none"
        pools = tuple([replace(pool, disabled=True, comment=pool.comment or why) for pool in draft.pools])
        draft = replace(draft, pools=pools, spec={**draft.spec, "unmatchedNodes": "skip"})
    draft = log.keep(with_excluded(dump, draft, facts))
    if cilium is None:
        raise Refused((*log.diagnostics, version))
    metallb = facts.bgp == "metallb" and draft.mode is Mode.CLUSTER_POOL
    if metallb and not can(cilium, Capability.METALLB_CILIUM_NODE):
        draft = replace(draft, spec={**draft.spec, "patchNodes": "podCIDRs"})
    if not options.managed_by and not facts.managed_by:
        log.add([rules.owner_unknown(facts.config_at or dump.at)])
    managed_by = options.managed_by or facts.managed_by or "helm"
    objects = [each for each in dump.others if each.kind in bgp.KINDS]
    left = [each for each in objects if each.kind == bgp.POLICY]
    if left and not can(cilium, Capability.BGP_PEERING_POLICY):
        log.add(rules.bgp_objects_left(left, "this Cilium does not read them"))
        objects = [each for each in objects if each not in left]
    tested = chain.from_iterable(map(tested_keys, objects))
    wanted = frozenset({*LABELS, *options.labels, *draft.label_keys, *tested})
    texts = {
        CLUSTER: cluster_text(name, draft, facts, cilium, managed_by),
        POOLS: pools_text(draft.pools) if draft.pools else "",
        NODES: inventory_text(dump, dump.nodes, wanted, known_blocks(draft, dump, silent=silent)),
        CILIUM_NODES: evidence_text(dump, draft.mode, draft.blocks),
        BGP: bgp_text(objects),
    }
    files = {path: text for path, text in texts.items() if text}
    return Imported(files=files, draft=draft, findings=tuple(log.diagnostics))


def known_blocks(draft: Draft, dump: Dump, *, silent: bool) -> KnownBlocks:
    """Return the draft's knowledge of nodes' blocks; `silent`: see `KnownBlocks`."""
    given = {node: [block for block, _ in blocks] for node, blocks in draft.blocks.items()}
    sizes = {
        cidr: one.sizes[family] for one in draft.pools for family, some in one.ranges.items() for cidr in some
    }
    sizes = calico.of_nodes(dump, sizes)
    return KnownBlocks(given=given, sizes=sizes, families=draft.families, silent=silent)


def _unknown(dump: Dump, facts: Facts, options: Options) -> Iterator[Diagnostic]:
    """Yield why the mode is unknown, or cannot be imported."""
    if calico.is_calico(dump):
        yield from calico.two_sources(dump)
    if calico_gives(dump):
        return
    if options.distinct:
        problem = "--distinct needs a dump of a cluster in which only Calico gives blocks"
        way_out = "import without --distinct; later: ipamc runbook CLUSTER --change new-range"
        yield calico_rules.not_distinct(dump.at, problem, way_out)
    modes = [mode.value for mode in Mode]
    at = facts.config_at or dump.at
    if not facts.mode:
        tells = is_cluster_cidr(dump) or calico.uses_pod_cidrs(dump)
        if options.mode is None and (facts.config_at or dump.cilium_nodes or not tells):
            others = "CiliumNodes, but no" if dump.cilium_nodes else "neither CiliumNodes nor"
            what = "no ipam in" if facts.config_at else others
            yield rules.mode_unknown(at, what, cilium_nodes=bool(dump.cilium_nodes), managed=facts.managed)
    elif options.mode is None and facts.mode not in modes:
        giver = rules.GIVERS.get(facts.mode, "ipamc does not support this mode")
        problem = f"ipam: {shown(facts.mode)}: {giver}"
        yield rules.mode_not_ours(at, problem, modes, facts.managed)
    elif options.mode is None and facts.chained:
        problem = f"cni-chaining-mode: {shown(facts.chained)}"
        problem += ": another plugin, not Cilium, gives pods their addresses"
        yield rules.mode_not_ours(at, problem, modes, facts.managed)
    elif options.mode is not None and facts.mode in modes and facts.mode != options.mode:
        yield rules.other_mode(at, facts.mode, options.mode)


def calico_gives(dump: Dump) -> bool:
    """Return whether Calico gives the nodes their blocks: Cilium may be installed, but has given none."""
    return calico.is_calico(dump) and not any(seen.blocks or seen.allocated for seen in dump.cilium_nodes)


def drafted(dump: Dump, facts: Facts, options: Options) -> tuple[Dump, Draft]:
    """Return the dump with the blocks that are kept, and the draft, made from the source of the blocks."""
    mode = options.mode
    dump = with_kept(dump, mode or Mode.MULTI_POOL)
    if calico_gives(dump):
        if options.distinct:
            return dump, calico.distinct_draft(
                dump, options.distinct, options.sizes, mode or Mode.CLUSTER_POOL
            )
        return dump, calico.draft(dump, mode or Mode.MULTI_POOL)
    runs = facts.config_at is not None or dump.cilium_nodes
    mode = mode or (Mode(facts.mode) if runs else Mode.KUBERNETES)  # of ClusterCIDRs
    if mode is Mode.KUBERNETES and is_cluster_cidr(dump):
        return dump, draft_of_cluster_cidrs(dump, facts)
    return dump, draft_of(dump, facts, mode, options.operator)


def with_excluded(
    dump: Dump, draft: Draft, facts: Facts, judged: Iterable[str] = ()
) -> tuple[Draft, Sequence[Diagnostic]]:
    """Add the CIDRs that are not for pods to the draft: excluded if outside all pools, else reserved.
    Other rules judge the addresses of `judged` kinds.
    """
    ranges = [
        PoolRange(block=block, pool=pool.name, size=pool.sizes[family])
        for pool in draft.pools
        for family, some in pool.ranges.items()
        for block in some
    ]
    held = (block for some in draft.blocks.values() for block, _ in some)
    kept = [item.block for item in draft.excluded] + [
        block for pool in draft.pools for block in pool.reserved
    ]
    kinds = {"CiliumPodIPPool"} if draft.mode is Mode.MULTI_POOL else {"ClusterCIDR"}
    kinds = {"IPPool", "IPReservation", "ClusterCIDR"} if calico_gives(dump) else kinds
    found = account(dump, ranges, held, facts.excluded, kept, {*judged, *kinds})
    excluded = (*draft.excluded, *(item for item in facts.excluded if item.block not in found.inside))
    pools = [
        replace(pool, reserved={**found.reserved.get(pool.name, {}), **pool.reserved})
        for pool in draft.pools
        if pool.ranges
    ]
    return replace(draft, pools=tuple(pools), excluded=excluded), found.findings
