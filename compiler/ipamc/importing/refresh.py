"""Updates the inventory and the evidence of an imported cluster from a newer dump."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ipamc.check.selection import left_out
from ipamc.importing import calico
from ipamc.importing import import_rules as rules
from ipamc.importing.draft import Blocks, PoolRange
from ipamc.importing.facts import account, facts_of, keeps, with_kept
from ipamc.importing.files import (
    CILIUM_NODES,
    LABELS,
    NODES,
    KnownBlocks,
    evidence_text,
    inventory_text,
    node_fields,
    planned_fields,
)
from ipamc.lock.file import parse
from ipamc.model import bgp
from ipamc.model.cidr import address_text
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import At, Diagnostic, Log
from ipamc.model.dump import Dump
from ipamc.model.evidence import Evidence, every_block
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.selector.selector import find_keys
from ipamc.model.without_cilium import with_cilium, without_cilium
from ipamc.read.node_names import less

_HEAD = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*(?:---[ \t]*\n)?")
"""Comments, and the mark before the first document."""
_TOP = re.compile(rb"""^(?:---|\.\.\.|["']?kind["']?[ \t]*:[^\n]*)""", re.MULTILINE)
"""Matches the beginning of another document, and a document's kind, at the left margin as in block style."""
_INVENTORY = re.compile(rb"""["']?kind["']?[ \t]*:[ \t]*["']?NodeInventory["']?[ \t\r]*(?:#.*)?""")


class Past(Struct, frozen=True, kw_only=True):
    """The age of the inventory in git."""

    committed: str = ""  # its last commit, RFC 3339 in UTC; "" if unknown
    limit: str = ""  # `committed` minus SLACK


def refresh(
    cluster: Cluster,
    folder: str,
    dump: Dump,
    past: Past,
    *,
    sources: Mapping[str, bytes] = MappingProxyType({}),
    labels: Sequence[str] = (),
    rebuilt: bool = False,
) -> dict[str, str]:
    """Return the new texts of the inventories and of ciliumnodes.yaml by name. Raises Refused. O(n log n).
    A node stays in its file, one of `sources`; a new one goes to nodes.yaml. Labels that the inventory has or
    a selector tests stay. `rebuilt`: every node has a new uid.
    """
    log, dump = Log(), _kept(cluster, dump)
    # The inventories with a node that exists, nodes.yaml first, are written. Another file counts only if
    # it is one NodeInventory and nothing else, which would be lost.
    joined = [node.at.path for node in cluster.nodes if node.planned and node.name in dump.nodes_by_name]
    first, *others = dict.fromkeys((*inventories(cluster, folder), *joined))
    homes = [first, *(path for path in others if is_inventory(path, sources.get(path, b"")))]
    log.add(_elsewhere(cluster, folder, dump, homes))
    if dump.is_of_another(cluster) and not rebuilt:
        nodes = sorted(node.name for node in cluster.nodes if not node.planned)
        seen = [f"{node.name} {node.uid}".rstrip() for node in dump.nodes]
        log.add([rules.other_cluster(dump.at, cluster.name, nodes, seen)])
    elif past.limit and dump.newest and dump.newest < past.limit:
        log.add([rules.older_dump(dump.at, dump.newest, past.committed, NODES)])
    keys = _wanted(cluster, labels)
    # Except in kubernetes mode, only CiliumNodes are evidence, and Calico's blocks until all have moved:
    # podCIDRs of Nodes may be left over.
    blocks = log.keep(calico.shown(dump, cluster))
    if cluster.cilium_nodes and not (dump.cilium_nodes or blocks) and cluster.mode is not Mode.KUBERNETES:
        log.add([rules.no_cilium_nodes(dump.at, CILIUM_NODES, len(cluster.cilium_nodes))])
    at = {node.name: node.at.path for node in cluster.nodes}
    there: dict[str, list[Node]] = {path: [] for path in homes}
    for node in dump.nodes:
        there[at.get(node.name, homes[0])].append(node)
    planned: dict[str, list[Mapping[str, Any]]] = {path: [] for path in homes}
    groups = {group.at: group for group in cluster.groups}
    for node in {node.at: node for node in cluster.nodes if node.planned}.values():
        if node.at.path in planned and node.at not in groups:
            planned[node.at.path] += _still_planned(node, dump.nodes_by_name)
    for group in cluster.groups:
        if group.at.path in planned:
            entry = planned_fields(group.names, group.labels, group.max_pods)
            planned[group.at.path] += ({**entry, "maximum": group.maximum},)
    known = _known_blocks(cluster, dump, blocks)
    texts = {path: inventory_text(dump, there[path], keys, known, planned[path]) for path in homes}
    return {
        **{path.removeprefix(f"{folder}/"): text for path, text in texts.items()},
        CILIUM_NODES: evidence_text(dump, cluster.mode, blocks),
    }


def of_cilium(
    cluster: Cluster, dump: Dump, lock: bytes | None, path: str
) -> tuple[Dump, Sequence[Diagnostic]]:
    """Return a dump whose nodes are those that run Cilium, and what is said about the others.
    A node of the inventory that holds a block in the lock stays: no block is lost silently. Raises Refused if
    there is such a question, and the lock cannot be read.
    """
    log, reasons = Log(), without_cilium(dump, cluster.runs_on)
    held = log.keep(parse(lock, path)) if lock and reasons else None
    blocks = {line.node: line.block for line in reversed(held.lines if held else ()) if line.in_use}
    stay = [node for node in cluster.nodes if node.name in reasons and node.name in blocks]
    dump = with_cilium(dump, reasons, kept={node.name for node in stay})
    log.add(
        (*rules.stays_without_cilium(cluster.name, stay, reasons, blocks), *left_out(dump.apart, reasons))
    )
    return dump, log.diagnostics


def _still_planned(node: Node, joined: Container[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of an entry's planned nodes that have not joined: a pattern may be divided."""
    several = less(node.pattern, joined) if node.pattern else []
    for name in several or [node.name] * (not node.pattern and node.name not in joined):
        ips = [address_text(*ip) for ip in node.internal_ips]
        yield {**planned_fields(name, node.labels, node.max_pods), **({"internalIPs": ips} if ips else {})}


def inventories(cluster: Cluster, folder: str) -> list[str]:
    """Return nodes.yaml, and the other files with existing nodes, by path."""
    there = (node.at.path for node in cluster.nodes if not node.planned)
    return list(dict.fromkeys((f"{folder}/{NODES}", *there)))


class Changes(Struct, frozen=True, kw_only=True):
    """The changes of the inventory by a refresh: names of nodes, sorted."""

    joined: tuple[str, ...]  # in the dump, but not in the inventory, or only planned there
    left: tuple[str, ...]
    changed: tuple[str, ...]  # their uid, labels, maxPods, podCIDRs or blocks differ


def changes(cluster: Cluster, dump: Dump, labels: Sequence[str] = ()) -> Changes:
    """Return the changes by a dump that `refresh` accepts for the inventory. O(n log n)."""
    wanted, dump = _wanted(cluster, labels), _kept(cluster, dump)
    before = {node.name: node for node in cluster.nodes if not node.planned}
    old, new = Evidence(cluster), _known_blocks(cluster, dump, calico.shown(dump, cluster)[0]).given

    def differ(was: Node, now: Node) -> bool:
        if node_fields(was, wanted) != node_fields(now, wanted):
            return True
        return {shown.block for shown in old.of(was)} != set(new[now.name])

    both = [(before[node.name], node) for node in dump.nodes if node.name in before]
    return Changes(
        joined=tuple(sorted(dump.nodes_by_name.keys() - before.keys())),
        left=tuple(sorted(before.keys() - dump.nodes_by_name.keys())),
        changed=tuple(sorted(now.name for was, now in both if differ(was, now))),
    )


def _wanted(cluster: Cluster, labels: Sequence[str]) -> frozenset[str]:
    """Return the label keys of the new inventory: those of the old one, and those that selectors test."""
    # A host name is kept if it differs from the node's name; other host names only if a selector tests them.
    kept = {key for node in cluster.nodes for key in node.labels} - {HOSTNAME}
    selectors = [each.selector for pool in cluster.pools for each in pool.block_sizes]
    selectors += [each.selector for each in (*cluster.pools, *bgp.with_peers(cluster))]
    tested = {key for selector in selectors for key in find_keys(selector.source)}
    return frozenset({*LABELS, *labels, *kept, *tested})


def _known_blocks(cluster: Cluster, dump: Dump, given: Mapping[str, Blocks]) -> KnownBlocks:
    """Return a dump's knowledge of nodes' blocks; `given`: those that Calico still gives."""
    evidence = Evidence(replace(cluster, nodes=dump.nodes, cilium_nodes=dump.cilium_nodes))
    blocks = {node.name: [shown.block for shown in evidence.of(node)] for node in dump.nodes}
    for name in blocks:
        blocks[name] += [block for block, _ in given.get(name, ())]
    sizes = {
        cidr.block: max(part.block_size, *(each.sizes.get(family, 0) for each in pool.block_sizes), 0)
        for pool in cluster.pools
        for family, part in pool.families.items()
        for cidr in part.ranges
    }
    sizes = calico.of_nodes(dump, sizes)
    silent = keeps(dump, cluster.mode) and not calico.tells_blocks(dump)
    return KnownBlocks(given=blocks, sizes=sizes, families=cluster.families, silent=silent)


def _kept(cluster: Cluster, dump: Dump) -> Dump:
    """Return a dump in which CiliumNodes show the blocks that the cluster keeps, or that its input shows."""
    known = ((seen.name, block) for seen in cluster.cilium_nodes for block in every_block(seen))
    return with_kept(dump, cluster.mode, known)


def about_nodes(cluster: Cluster, folder: str, dump: Dump) -> Iterator[Diagnostic]:
    """Yield nodes that leave although no dump ever had them, and nodes that lack a block of one family."""
    every = [family for family in cluster.families if all(family in pool.families for pool in cluster.pools)]
    dump = _kept(cluster, dump)
    given = _known_blocks(cluster, dump, {}).given.items() if cluster.mode.one_block else ()
    shown = [(node, {block.family for block in blocks}) for node, blocks in given if blocks]
    if lacks := [f"{node} (IPv{family})" for node, its in shown for family in every if family not in its]:
        yield rules.without_block(dump.at, lacks, None)
    ours = (cluster.advertisements, cluster.peer_configs, cluster.peer_clusters, cluster.node_overrides)
    known = {(each.kind, each.name) for some in ours for each in some}
    new = [each for each in dump.others if each.kind in bgp.KINDS and (each.kind, each.name) not in known]
    yield from rules.bgp_objects_left(new, "ipamc does not check them")
    gone: dict[str, list[Node]] = {}
    for node in cluster.nodes:
        if not (node.planned or node.uid or node.name in dump.nodes_by_name):
            gone.setdefault(node.at.path, []).append(node)
    for path, nodes in gone.items():
        yield rules.never_seen(nodes[0].at, path.removeprefix(f"{folder}/"), [node.name for node in nodes])


def inside_ranges(cluster: Cluster, dump: Dump) -> Sequence[Diagnostic]:
    """Return what a dump shows in ranges of pools besides pods and nodes, and what no pool reserves yet."""
    ranges = [
        PoolRange(block=cidr.block, pool=pool.name, size=part.block_size, at=cidr.at)
        for pool in cluster.pools
        for part in pool.families.values()
        for cidr in part.ranges
    ]
    nodes = dump.nodes if cluster.mode is Mode.KUBERNETES else ()
    reserved = (cidr for pool in cluster.pools for cidr in pool.reserved)
    kept = (cidr.block for cidr in (*cluster.excluded, *reserved))
    held = (block for node in nodes for block in node.pod_cidrs)
    return account(dump, ranges, held, facts_of(dump).excluded, kept).findings


def is_inventory(path: str, data: bytes) -> bool:
    """Return whether a file surely is one NodeInventory in block style and nothing else."""
    tops = _TOP.findall(_HEAD.sub(b"", data, count=1))
    return path.endswith((".yaml", ".yml")) and len(tops) == 1 and bool(_INVENTORY.fullmatch(tops[0]))


def _elsewhere(cluster: Cluster, folder: str, dump: Dump, homes: list[str]) -> Iterator[Diagnostic]:
    """Yield files with nodes or CiliumNodes other than those that a refresh writes, once each.
    A planned node may be in any file until the dump shows it.
    """
    joined: dict[str, list[Node]] = {}
    for node in cluster.nodes:
        if node.planned and node.at.path not in homes and node.name in dump.nodes_by_name:
            joined.setdefault(node.at.path, []).append(node)
    for path, nodes in joined.items():
        yield rules.elsewhere(nodes[0].at, path, rules.joined([node.name for node in nodes]), NODES)
    firsts: dict[tuple[str, str], At] = {}
    for node in cluster.nodes:
        if not node.planned and node.at.path not in homes:
            firsts.setdefault((node.at.path, "nodes"), node.at)
    for each in cluster.cilium_nodes:
        if each.at.path != f"{folder}/{CILIUM_NODES}":
            firsts.setdefault((each.at.path, "CiliumNodes"), each.at)
    for (path, what), at in firsts.items():
        yield rules.elsewhere(at, path, what, NODES if what == "nodes" else CILIUM_NODES)
