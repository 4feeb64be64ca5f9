"""A cluster as its dump alone shows it, for `ipamc check`: an import that writes nothing and refuses nothing.

Where an import asks, it assumes: the IPAM mode by the fields of objects, and the newest Cilium. The blocks
that nodes have stand in for a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.capacity import nearly_full
from ipamc.check.pools import check_ranges
from ipamc.check.selection import left_out
from ipamc.importing import import_rules as rules
from ipamc.importing.bring_in import Options, calico_gives, drafted, with_excluded
from ipamc.importing.cilium import OUTSIDE
from ipamc.importing.draft import Draft
from ipamc.importing.facts import RESOURCE_POOL, Facts, facts_of, keeps
from ipamc.importing.files import CLUSTER, POOLS, cluster_text, pools_text
from ipamc.model.address_sets import outermost, overlaps
from ipamc.model.cidr import BITS, Block, address_text, single
from ipamc.model.cilium.flags import is_true
from ipamc.model.cilium.support import FIRST, LAST
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import (
    At,
    Diagnostic,
    Log,
    Refused,
    Related,
    Severity,
    Span,
    count,
    error,
    errors_of,
    located,
)
from ipamc.model.dump import Dump
from ipamc.model.evidence import Evidence
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import Line, Lock
from ipamc.model.node import CiliumNode
from ipamc.model.ownership import RangeIndex
from ipamc.model.without_cilium import with_cilium, without_cilium
from ipamc.model.wording import shown
from ipamc.read.dump.programs import ALLOCATE
from ipamc.read.read import read
from ipamc.read.rendered import identity

_NAME = "cluster"
DERIVED = "blocks of nodes"
"""What the ranges of a pool are from, if no object and no flag tells them."""
_SAID = frozenset({"IPC0805", "IPC0814", "IPC0819", "IPC0826", "IPC0827", "IPC0830", "IPC0835", "IPC0840"})
_SAID |= {f"IPC085{number}" for number in range(9)}
"""The findings of an import about the cluster itself. The others are about the files that it writes."""


class Alone(Struct, frozen=True, kw_only=True):
    """A cluster, without git."""

    dump: Dump
    """Where Calico gives the blocks, its CiliumNodes have these."""
    cluster: Cluster
    lock: Lock
    """The blocks that nodes have; of those that overlap, the largest."""
    facts: Facts
    giver: str
    """The program that gives nodes their blocks: `cilium`, `calico`; "" where none does."""
    sources: Mapping[str, tuple[str, Span]]
    """By pool: what its ranges are from, and its place."""
    findings: tuple[Diagnostic, ...]


def alone(dump: Dump, schemas: Mapping[str, str]) -> Alone:
    """Return the cluster of a dump, and what its import finds wrong. O(n log n)."""
    without = without_cilium(dump)
    dump = with_cilium(dump, without)
    facts, calico = facts_of(dump), calico_gives(dump)
    config = facts.config_at or dump.at
    findings = [*left_out(dump.apart, without), *facts.found]
    ours = calico or keeps(dump, Mode.CLUSTER_POOL)
    if not ours:
        giver = rules.GIVERS.get(facts.mode, "ipamc does not support this mode")
        text = f"ipam: {shown(facts.mode)}: {giver}, so nodes have no blocks to check"
        finding = rules.mode_not_ours(config, text, (), None)
        findings.append(replace(finding, severity=Severity.NOTE, help=""))
    mode = Mode(facts.mode) if facts.mode in set(Mode) else _mode(dump)
    dump, draft = drafted(dump, facts, Options(mode=None if calico else mode))
    draft = replace(draft, pools=() if draft.proposed else draft.pools)
    draft, said = with_excluded(dump, draft, facts, judged=("Node", "CiliumNode"))
    assigned = draft.mode is not Mode.KUBERNETES or is_true(facts.controller, ALLOCATE)
    wanted = _SAID - (set() if assigned else {"IPC0814"})  # nothing gives blocks of these ranges
    found = [each for each in (*draft.decisions, *said) if each.code in wanted]
    findings += [each if each.code == "IPC0805" else replace(each, help="") for each in found]
    sources = _sources(dump, facts, draft)
    places = {(POOLS, number): sources[pool.name][1] for number, pool in enumerate(draft.pools)}

    def of_object(at: At) -> Span:
        """Return the place of what a part of an import's file was made of."""
        return at if isinstance(at, Span) else places.get((at.path, at.document), config)

    wrong: list[Diagnostic] = []
    try:
        cluster = _cluster(draft, facts, schemas)
        Log().add(check_ranges(cluster.pools))
    except Refused as refused:
        wrong += errors_of(refused.diagnostics)
        cluster = _cluster(replace(draft, pools=()), facts, schemas)
    if calico:
        at = {node.name: node.at for node in dump.nodes}
        given = {name: tuple([block for block, _ in some]) for name, some in sorted(draft.blocks.items())}
        seen = [CiliumNode(name=name, at=at.get(name, dump.at), blocks=some) for name, some in given.items()]
        dump = replace(dump, cilium_nodes=tuple(seen))
    cluster = replace(
        cluster,
        # An import disables pools that ipamc will not use, and Cilium does.
        pools=tuple([replace(pool, disabled=False) for pool in cluster.pools]),
        nodes=dump.nodes,
        cilium_nodes=dump.cilium_nodes,
        operator="bystander" if facts.bystander else "adopt",
    )
    lock = _lock(cluster)
    # Full by design: what was derived from blocks, and pools of one node, as ipamc names them.
    full = {line.pool for line in lock.lines if line.pool.endswith(f".{line.node}")}
    full |= {pool for pool, (source, _) in sources.items() if source == DERIVED}
    planned = tuple([pool for pool in cluster.pools if pool.name not in full])
    wrong += nearly_full(replace(cluster, pools=planned), lock)
    findings += [replace(located(each, of_object), help="") for each in wrong]
    findings += _networks_apart(dump, facts)
    return Alone(
        dump=dump,
        cluster=cluster,
        lock=lock,
        facts=facts,
        giver="calico" if calico else "cilium" if ours and not facts.chained else "",
        sources=sources,
        findings=tuple(findings),
    )


def _mode(dump: Dump) -> Mode:
    """Return the mode of which objects have the fields, where cilium-config does not tell."""
    seen, cidrs = dump.cilium_nodes, {node.name: node.pod_cidrs for node in dump.nodes}
    if any(each.allocated for each in seen):
        return Mode.MULTI_POOL
    if any(each.addresses for each in seen) and not any(each.blocks for each in seen):
        return Mode.CRD
    apart = any(each.blocks and cidrs.get(each.name) != each.blocks for each in seen)
    return Mode.CLUSTER_POOL if apart else Mode.KUBERNETES


def _sources(dump: Dump, facts: Facts, draft: Draft) -> dict[str, tuple[str, Span]]:
    """Return what the ranges of each pool are from, and its place."""
    source, at = DERIVED, dump.at
    if draft.mode is Mode.KUBERNETES and facts.controller.get("cluster-cidr"):
        source, at = "kube-controller-manager", facts.config_at or dump.at
    elif draft.mode is Mode.CLUSTER_POOL and any(
        facts.blocks(f"cluster-pool-ipv{each}-cidr") for each in BITS
    ):
        source, at = "cilium-config", facts.config_at or dump.at
    found = {**{pool.name: (source, at) for pool in draft.pools}, OUTSIDE: (DERIVED, dump.at)}
    for kind in (dump.of_kind("IPPool", "ClusterCIDR"), dump.pools):
        found |= {each.name: (identity(each.value), each.at) for each in kind}
    return found


def _cluster(draft: Draft, facts: Facts, schemas: Mapping[str, str]) -> Cluster:
    """Return the cluster that an import of a draft would write. Raises Refused."""
    cilium = facts.cilium if facts.cilium and FIRST <= facts.cilium <= LAST else LAST
    texts = {CLUSTER: cluster_text(_NAME, draft, facts, cilium, "none"), POOLS: pools_text(draft.pools)}
    return read(_NAME, _NAME, {name: text.encode() for name, text in texts.items()}, schemas)[0]


def _lock(cluster: Cluster) -> Lock:
    """Return a lock with the blocks that nodes have, which share no address."""
    ranges, lines = RangeIndex(cluster.pools), dict[Block, Line]()
    for each in Evidence(cluster).every():
        pool, block = ranges.pool_of(each.block), each.block
        if each.part and pool:  # crd mode
            block = block.widened(pool.families[block.family].block_size)
        lines[block] = Line(block=block, node=each.node, pool=pool.name if pool else "")
    disjoint = tuple([lines[block] for block in outermost(lines)])
    return Lock(cluster=cluster.name, mode=cluster.mode, shards=1, lines=disjoint)


def _networks_apart(dump: Dump, facts: Facts) -> Iterator[Diagnostic]:
    """IPC0915: no node has an address in a network of services or load balancers."""
    # Devices may be of networks of their own, in which machines have other addresses.
    others = [item for item in facts.excluded if item.why != "nodes" and item.kind != RESOURCE_POOL]
    every: list[tuple[Block, str, At]]
    every = [(item.block, f"{item.why} ({item.block})", item.at or dump.at) for item in others]
    ips = [(ip, node) for node in dump.nodes for ip in node.internal_ips]
    every += [(single(ip), f"node {node.name} ({address_text(*ip)})", node.at) for ip, node in ips]
    pairs = [pair for pair in overlaps(every, itemgetter(0)) if pair[0][0] != pair[1][0]]
    if pairs:
        outer, inner = pairs[0]
        more = f"; {count(len(pairs), 'overlap')} in all" if pairs[1:] else ""
        also = [Related(at, text) for pair in pairs[:MOST_PLACES] for _, text, at in pair]
        text = f"the network of {outer[1]} contains {inner[1]}: packets reach only one of the two{more}"
        way_out = f"give {outer[1].partition(' (')[0]} another network"
        yield error("IPC0915", inner[2], text, also=also, help=way_out)
