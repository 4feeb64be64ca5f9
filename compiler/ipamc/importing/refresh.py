"""Inventory and evidence of an imported cluster, brought up to date from a newer dump: nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ipamc.importing import calico, rules
from ipamc.importing.draft import Blocks
from ipamc.importing.files import CILIUM_NODES, NODES
from ipamc.importing.inventory import LABELS, Known, entry, evidence_text, inventory_text
from ipamc.model.cluster import HOSTNAME, Cluster, Mode, Node
from ipamc.model.diagnostics import Diagnostic, Log
from ipamc.model.dump import Dump
from ipamc.model.evidence import Evidence
from ipamc.model.selector.selector import find_keys

SLACK = 600
"""Seconds by which a dump may be older than the inventory's commit: kubelets write their status every five
minutes, and clocks differ."""


_HEAD = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*(?:---[ \t]*\n)?")
"""Comments, and the mark before the first document."""
_TOP = re.compile(rb"""^(?:---|\.\.\.|["']?kind["']?[ \t]*:[^\n]*)""", re.MULTILINE)
"""Where another document begins, and what a document is, at the left margin as block style has it."""
_INVENTORY = re.compile(rb"""["']?kind["']?[ \t]*:[ \t]*["']?NodeInventory["']?[ \t\r]*(?:#.*)?""")


class Past(Struct, frozen=True, kw_only=True):
    """What the inventory in git tells of its age."""

    committed: str = ""
    """When it was committed last, RFC 3339 in UTC; "" where that is not known."""
    limit: str = ""
    """`committed` less SLACK."""


def refresh(
    cluster: Cluster,
    folder: str,
    dump: Dump,
    past: Past,
    *,
    sources: Mapping[str, bytes] = MappingProxyType({}),
    labels: tuple[str, ...] = (),
    rebuilt: bool = False,
) -> dict[str, str]:
    """Return the new texts of the inventories and of ciliumnodes.yaml by name. Raises Refused. O(n log n).

    A node stays in the file that it is in, one of `sources`; a new one is in nodes.yaml. Labels that the
    inventory has or a selector asks for stay. `rebuilt`: no node has its uid of before.
    """
    log = Log()
    homes = _homes(cluster, folder, dump, sources)
    log.add(_elsewhere(cluster, folder, dump, homes))
    log.add(_other(cluster, dump, past, rebuilt=rebuilt))
    wanted = _wanted(cluster, labels)
    # Beside kubernetes mode only CiliumNodes are evidence, and Calico's blocks until the last node has moved:
    # podCIDRs of Nodes may be left over.
    blocks = log.keep(calico.shown(dump, cluster))
    if cluster.cilium_nodes and not (dump.cilium_nodes or blocks) and cluster.mode is not Mode.KUBERNETES:
        log.add([rules.no_cilium_nodes(dump.at, CILIUM_NODES, len(cluster.cilium_nodes))])
    told, at = known(cluster, dump, blocks), {node.name: node.at.path for node in cluster.nodes}
    there: dict[str, list[Node]] = {path: [] for path in homes}
    for node in dump.nodes:
        there[at.get(node.name, homes[0])].append(node)
    planned: dict[str, list[Mapping[str, Any]]] = {path: [] for path in homes}
    for node in cluster.nodes:
        if node.planned and node.at.path in planned and node.name not in dump.nodes_by_name:
            planned[node.at.path].append(_planned(node))
    return {
        **{
            path.removeprefix(f"{folder}/"): inventory_text(dump, there[path], wanted, told, planned[path])
            for path in homes
        },
        CILIUM_NODES: evidence_text(dump, cluster.mode, blocks),
    }


def inventories(cluster: Cluster, folder: str) -> list[str]:
    """Return nodes.yaml, and the other files that have nodes which exist, by path."""
    return list(
        dict.fromkeys((f"{folder}/{NODES}", *(node.at.path for node in cluster.nodes if not node.planned)))
    )


class Changes(Struct, frozen=True, kw_only=True):
    """What a refresh changes of the inventory: names of nodes, sorted."""

    joined: tuple[str, ...]
    """They are in the dump, and were not in the inventory, or only planned there."""
    left: tuple[str, ...]
    changed: tuple[str, ...]
    """Their uid, labels, maxPods, podCIDRs or blocks are others."""


def changes(cluster: Cluster, dump: Dump, labels: tuple[str, ...] = ()) -> Changes:
    """Return what the dump changes of an inventory that `refresh` accepts it for. O(n log n)."""
    wanted = _wanted(cluster, labels)
    before = {node.name: node for node in cluster.nodes if not node.planned}
    old, new = Evidence(cluster), Evidence(replace(cluster, nodes=dump.nodes, cilium_nodes=dump.cilium_nodes))
    return Changes(
        joined=tuple(sorted(dump.nodes_by_name.keys() - before.keys())),
        left=tuple(sorted(before.keys() - dump.nodes_by_name.keys())),
        changed=tuple(
            sorted(
                node.name
                for node in dump.nodes
                if (was := before.get(node.name))
                and (
                    entry(was, wanted) != entry(node, wanted)
                    or {shown.block for shown in old.of(was)} != {shown.block for shown in new.of(node)}
                )
            )
        ),
    )


def _wanted(cluster: Cluster, labels: tuple[str, ...]) -> frozenset[str]:
    """Return the keys of the labels that the inventory has: those that it had, or that a selector asks for."""
    # A host name that is not the node's name is always there; the others only where a selector asks for them.
    kept = {key for node in cluster.nodes for key in node.labels} - {HOSTNAME}
    return frozenset({*LABELS, *labels, *kept, *_asked_for(cluster)})


def known(cluster: Cluster, dump: Dump, given: Mapping[str, Blocks]) -> Known:
    """Return what a dump tells of the blocks of nodes; `given`: those that Calico still gives."""
    there = replace(cluster, nodes=dump.nodes, cilium_nodes=dump.cilium_nodes)
    evidence = Evidence(there)
    return Known(
        given={
            node.name: [
                *(shown.block for shown in evidence.of(node)),
                *(block for block, _ in given.get(node.name, ())),
            ]
            for node in dump.nodes
        },
        sizes={
            cidr.block: max(part.block_size, *(each.sizes.get(family, 0) for each in pool.block_sizes), 0)
            for pool in cluster.pools
            for family, part in pool.families.items()
            for cidr in part.ranges
        },
        families=cluster.families,
        silent=not calico.tells_blocks(dump),
    )


def never_seen(cluster: Cluster, folder: str, dump: Dump) -> Iterator[Diagnostic]:
    """Yield which nodes a refresh takes out that no dump ever had: most were meant to be planned."""
    gone: dict[str, list[Node]] = {}
    for node in cluster.nodes:
        if not (node.planned or node.uid or node.name in dump.nodes_by_name):
            gone.setdefault(node.at.path, []).append(node)
    for path, nodes in gone.items():
        yield rules.never_seen(nodes[0].at, path.removeprefix(f"{folder}/"), [node.name for node in nodes])


def _homes(cluster: Cluster, folder: str, dump: Dump, sources: Mapping[str, bytes]) -> list[str]:
    """Return the inventories that a refresh writes, nodes.yaml first, by path: all that have a node which exists.

    Any other file is one only where it is a NodeInventory and nothing else, for what else it has would be lost.
    """
    joined = [node.at.path for node in cluster.nodes if node.planned and node.name in dump.nodes_by_name]
    first, *others = dict.fromkeys((*inventories(cluster, folder), *joined))
    return [first, *(path for path in others if is_inventory(path, sources.get(path, b"")))]


def is_inventory(path: str, data: bytes) -> bool:
    """Tell whether a file is one NodeInventory, written as blocks of YAML, and nothing else. False where that is not sure."""
    tops = _TOP.findall(_HEAD.sub(b"", data, count=1))
    return path.endswith((".yaml", ".yml")) and len(tops) == 1 and bool(_INVENTORY.fullmatch(tops[0]))


def _elsewhere(cluster: Cluster, folder: str, dump: Dump, homes: list[str]) -> Iterator[Diagnostic]:
    """Yield files that have nodes or CiliumNodes beside those that a refresh writes, once each.

    A planned node may be anywhere until the dump shows it.
    """
    joined: dict[str, list[Node]] = {}
    for node in cluster.nodes:
        if node.planned and node.at.path not in homes and node.name in dump.nodes_by_name:
            joined.setdefault(node.at.path, []).append(node)
    for path, nodes in joined.items():
        yield rules.elsewhere(nodes[0].at, path, rules.joined([node.name for node in nodes]), NODES)
    told = set()
    seen = [f"{folder}/{CILIUM_NODES}"]
    groups = (
        (homes, "nodes", NODES, [node.at for node in cluster.nodes if not node.planned]),
        (seen, "CiliumNodes", CILIUM_NODES, [each.at for each in cluster.cilium_nodes]),
    )
    for written, what, back, places in groups:
        for at in places:
            if at.path not in written and (at.path, what) not in told:
                told.add((at.path, what))
                yield rules.elsewhere(at, at.path, what, back)


def _other(cluster: Cluster, dump: Dump, past: Past, *, rebuilt: bool) -> Iterator[Diagnostic]:
    """Yield why a dump is none of this cluster, or an old one."""
    if is_of_another(cluster, dump) and not rebuilt:
        known = sorted(node.name for node in cluster.nodes if not node.planned)
        yield rules.other_cluster(
            dump.at, cluster.name, known, [f"{node.name} {node.uid}".rstrip() for node in dump.nodes]
        )
    elif past.limit and dump.newest and dump.newest < past.limit:
        yield rules.older_dump(dump.at, dump.newest, past.committed, NODES)


def is_of_another(cluster: Cluster, dump: Dump) -> bool:
    """Tell whether no node of the inventory is in a dump, by uid; without any uid in the inventory, by name.

    An inventory without nodes is of any cluster.
    """
    known = {node.name: node.uid for node in cluster.nodes if not node.planned}
    uids = {uid for uid in known.values() if uid}
    same = uids & {node.uid for node in dump.nodes} if uids else known.keys() & dump.nodes_by_name.keys()
    return bool(known) and not same


def _asked_for(cluster: Cluster) -> Iterator[str]:
    """Yield the label keys that selectors of the cluster's pools use."""
    for pool in cluster.pools:
        yield from find_keys(pool.selector.source)
        for size_class in pool.block_sizes:
            yield from find_keys(size_class.selector.source)


def _planned(node: Node) -> Mapping[str, Any]:
    """Return a planned node as a line of the inventory."""
    found: dict[str, Any] = {"name": node.name}
    if node.labels:
        found["labels"] = dict(sorted(node.labels.items()))
    if node.max_pods:
        found["maxPods"] = node.max_pods
    return {**found, "planned": True}
