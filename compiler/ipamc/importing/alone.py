"""A cluster as its dump alone shows it, for `ipamc check`: an import that writes nothing and refuses nothing.

Where an import asks, it assumes: the IPAM mode by the fields of objects, and the newest Cilium. The blocks
that nodes have stand in for a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.capacity import nearly_full
from ipamc.check.pools import check_ranges
from ipamc.importing import import_rules as rules
from ipamc.importing.bring_in import Options, calico_gives, drafted, with_excluded
from ipamc.importing.cilium import OUTSIDE
from ipamc.importing.draft import Draft
from ipamc.importing.facts import Facts, facts_of
from ipamc.importing.files import CLUSTER, POOLS, cluster_text, pools_text
from ipamc.model.address_sets import overlaps
from ipamc.model.cidr import BITS, Block, address_text
from ipamc.model.cilium.support import FIRST, LAST
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import At, Diagnostic, Place, Refused, Related, Severity, count, error
from ipamc.model.dump import Dump
from ipamc.model.evidence import Evidence
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import Line, Lock
from ipamc.model.node import CiliumNode
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import ShownBlock
from ipamc.model.wording import shown
from ipamc.read.read import read

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
    """The blocks that nodes have; of those that overlap, the first."""
    facts: Facts
    giver: str
    """The program that gives nodes their blocks: `cilium`, `calico`; "" where none does."""
    sources: Mapping[str, tuple[str, At]]
    """By pool: what its ranges are from, and its place."""
    findings: tuple[Diagnostic, ...]


def alone(dump: Dump, schemas: Mapping[str, str]) -> Alone:
    """Return the cluster of a dump, and what its import finds wrong. O(n log n)."""
    facts, calico = facts_of(dump), calico_gives(dump)
    ours = calico or facts.mode in {"", *Mode, "cluster-pool-v2beta"}
    findings = [*facts.found, *([] if ours else [_not_ours(dump, facts)])]
    mode = Mode(facts.mode) if facts.mode in set(Mode) else _mode(dump)
    dump, draft = drafted(dump, facts, Options(mode=None if calico else mode, operator="bystander"))
    draft, said = with_excluded(dump, replace(draft, pools=() if draft.proposed else draft.pools), facts)
    found = [each for each in (*draft.decisions, *said) if each.code in _SAID]
    findings += [each if each.code == "IPC0805" else replace(each, help="") for each in found]
    cilium = facts.cilium if facts.cilium and FIRST <= facts.cilium <= LAST else LAST
    sources = {pool.name: _source(dump, facts, pool.name, draft) for pool in draft.pools}
    texts = {CLUSTER: cluster_text(_NAME, draft, facts, cilium, "none"), POOLS: pools_text(draft.pools)}
    moved = _Moved(dump, facts, [at for _, at in sources.values()])
    try:
        cluster, _ = read(_NAME, _NAME, {name: text.encode() for name, text in texts.items()}, schemas)
        wrong = [each for each in check_ranges(cluster.pools) if each.severity is Severity.ERROR]
    except Refused as refused:
        texts = {CLUSTER: cluster_text(_NAME, replace(draft, pools=()), facts, cilium, "none")}
        cluster, _ = read(_NAME, _NAME, {name: text.encode() for name, text in texts.items()}, schemas)
        wrong = [*refused.diagnostics]
    findings += map(moved, wrong)
    if calico:
        seen = [
            CiliumNode(name=name, at=_at(dump, name), blocks=tuple([block for block, _ in blocks]))
            for name, blocks in sorted(draft.blocks.items())
            if blocks
        ]
        dump = replace(dump, cilium_nodes=tuple(seen))
    cluster = replace(
        cluster,
        # An import disables pools that ipamc will not use, and Cilium does.
        pools=() if wrong else tuple([replace(pool, disabled=False) for pool in cluster.pools]),
        nodes=dump.nodes,
        cilium_nodes=dump.cilium_nodes,
        bgp=facts.bgp,
        operator="bystander" if facts.bystander else "adopt",
    )
    lock = _lock(cluster)
    planned = tuple([pool for pool in cluster.pools if sources[pool.name][0] != DERIVED])
    findings += map(moved, nearly_full(replace(cluster, pools=planned), lock))
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
    seen = dump.cilium_nodes
    if any(each.allocated for each in seen):
        return Mode.MULTI_POOL
    if any(each.addresses for each in seen) and not any(each.blocks for each in seen):
        return Mode.CRD
    apart = [each for each in seen if each.blocks and _cidrs(dump, each.name) != each.blocks]
    return Mode.CLUSTER_POOL if apart else Mode.KUBERNETES


def _cidrs(dump: Dump, name: str) -> tuple[Block, ...]:
    node = dump.nodes_by_name.get(name)
    return node.pod_cidrs if node else ()


def _at(dump: Dump, name: str) -> At:
    return (dump.nodes_by_name.get(name) or dump).at


def _not_ours(dump: Dump, facts: Facts) -> Diagnostic:
    giver = rules.GIVERS.get(facts.mode, "ipamc does not know this mode")
    text = f"ipam: {shown(facts.mode)}: {giver}, and nodes have no blocks to check"
    finding = rules.mode_not_ours(facts.config_at or dump.at, text, (), None)
    return replace(finding, severity=Severity.NOTE, help="")


def _source(dump: Dump, facts: Facts, pool: str, draft: Draft) -> tuple[str, At]:
    """Return what the ranges of a pool are from, and its place."""
    kinds = ("IPPool", "ClusterCIDR")
    item = next((each for each in dump.pools if each.name == pool), None)
    other = next((each for each in dump.of_kind(*kinds) if each.name == pool), None)
    if item or other:
        return f"{other.kind if other else 'CiliumPodIPPool'} {pool}", (item or other or dump).at
    if pool == OUTSIDE:
        return DERIVED, dump.at
    flags = facts.controller.get("cluster-cidr") if draft.mode is Mode.KUBERNETES else ""
    keys = any(facts.blocks(f"cluster-pool-ipv{family}-cidr") for family in BITS)
    if flags or (keys and draft.mode is Mode.CLUSTER_POOL):
        return "kube-controller-manager" if flags else "cilium-config", facts.config_at or dump.at
    return DERIVED, dump.at


class _Moved:
    """Moves findings about the files of an import to the objects that these were made of, without advice."""

    def __init__(self, dump: Dump, facts: Facts, pools: Sequence[At]) -> None:
        self._config, self._pools = facts.config_at or dump.at, pools

    def __call__(self, finding: Diagnostic) -> Diagnostic:
        also = (Related(self._at(each.at), each.label) for each in finding.also)
        return replace(finding, at=self._at(finding.at), also=tuple(also), help="")

    def _at(self, at: At) -> At:
        if not isinstance(at, Place):
            return at
        known = at.path == POOLS and at.document < len(self._pools)
        return self._pools[at.document] if known else self._config


def _lock(cluster: Cluster) -> Lock:
    """Return a lock with the blocks that nodes have, which share no address."""
    ranges = RangeIndex(cluster.pools)
    every = sorted({_whole(ranges, each): each for each in Evidence(cluster).every()}.items())
    inner = {inner for _, (inner, _) in overlaps(every, lambda pair: pair[0])}
    lines = []
    for block, each in every:
        if block not in inner:
            pool = ranges.pool_of(block)
            lines.append(Line(block=block, node=each.node, pool=pool.name if pool else ""))
    return Lock(cluster=cluster.name, mode=cluster.mode, shards=1, lines=tuple(lines))


def _whole(ranges: RangeIndex, each: ShownBlock) -> Block:
    """Return the block that a node has, of which it may show a part (crd mode)."""
    pool, family = ranges.pool_of(each.block), each.block.family
    return each.block.widened(pool.families[family].block_size) if each.part and pool else each.block


def _networks_apart(dump: Dump, facts: Facts) -> Iterator[Diagnostic]:
    """IPC0915: the networks of services and load balancers have no address of a node, nor of each other."""
    every: list[tuple[Block, str, At]] = [
        (item.block, f"{item.why} ({item.block})", item.at or dump.at)
        for item in facts.excluded
        if item.why != "nodes"
    ]
    every += [
        (Block(*ip, BITS[ip[0]]), f"node {node.name} ({address_text(*ip)})", node.at)
        for node in dump.nodes
        for ip in node.internal_ips
    ]
    pairs = [pair for pair in overlaps(every, lambda one: one[0]) if pair[0][0] != pair[1][0]]
    if pairs:
        outer, inner = pairs[0]
        more = f"; {count(len(pairs), 'overlap')} in all" if pairs[1:] else ""
        also = [Related(at, text) for pair in pairs[:MOST_PLACES] for _, text, at in pair]
        text = f"{inner[1]} is inside the network of {outer[1]}: packets go to one of them{more}"
        way_out = f"give {outer[1].partition(' (')[0]} another network"
        yield error("IPC0915", inner[2], text, also=also, help=way_out)
