"""What must hold of a request that passed, told from two commits alone: no line of this is ipamc's, and it reads JSON and YAML by itself.

A commit is read from its objects. What a law says is weaker than what ipamc refuses: whoever breaks one has an address with two nodes, a node
with another block, or a cluster that is told something else than its lock.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.requests.repositories import FILE, LINK, PROGRAM, SUBMODULE, TODAY, Tree

Network = IPv4Network | IPv6Network
KINDS = {
    "Kustomization",
    "Component",
    "ConfigMap",
    "Deployment",
    "Node",
    "CiliumNode",
    "CiliumPodIPPool",
    "CiliumNodeConfig",
}
"""What is rendered in the modes of these repositories."""
STATES = ("quarantined", "released", "pending")
TODAY_TEXT = datetime.datetime.fromtimestamp(TODAY, datetime.UTC).date().isoformat()


@dataclass(frozen=True)
class Line:
    """A line of a lock."""

    network: Network
    node: str
    state: str
    """`held` or one of STATES."""
    since: str
    moved: bool


@dataclass(frozen=True)
class Cluster:
    """A folder below `clusters/`, as one commit has it."""

    name: str
    files: Tree
    """By path below the folder."""

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Read the lock."""
        rows = self.files["ipam.lock"][1].decode("utf-8").splitlines()[1:]
        return tuple(_line(json.loads(row, object_pairs_hook=_once)) for row in rows if row.strip())

    @cached_property
    def inputs(self) -> list[dict[str, Any]]:
        """Read every document beside `rendered/`."""
        return [
            document
            for path, (mode, text) in self.files.items()
            if mode in {FILE, PROGRAM}
            and not path.startswith("rendered/")
            and re.search(r"\.(ya?ml|json)$", path, re.IGNORECASE)
            for document in documents(text)
        ]

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Return what the Cluster says."""
        found = [each.get("spec") for each in self.inputs if each.get("kind") == "Cluster"]
        return found[0] if found and isinstance(found[0], dict) else {}

    @cached_property
    def nodes(self) -> dict[str, bool]:
        """Tell of each node of the inventories whether it is only planned."""
        listed = [
            each
            for document in self.inputs
            if document.get("kind") == "NodeInventory"
            for each in document["nodes"] or ()
        ]
        return {str(each["name"]): bool(each.get("planned")) for each in listed if "name" in each}

    @cached_property
    def rendered(self) -> list[tuple[str, dict[str, Any]]]:
        """Read every object that an apply may read, with its file."""
        return [
            (path, document)
            for path, (_, text) in self.files.items()
            if path.startswith("rendered/") and not path.endswith(("helm-values.yaml", "index.jsonl"))
            for document in documents(text)
        ]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field twice")
    return dict(pairs)


def _line(found: dict[str, Any]) -> Line:
    state = next((state for state in STATES if found.get(state)), "held")
    since = str(found.get("quarantined", ""))
    return Line(ip_network(found["block"]), found["node"], state, since, bool(found.get("moved")))


def documents(text: bytes) -> list[dict[str, Any]]:
    """Read YAML; what is none has no documents."""
    with suppress(yaml.YAMLError, UnicodeError, ValueError):
        return [
            each
            for each in yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            if isinstance(each, dict)
        ]
    return []


def clusters(tree: Tree) -> dict[str, Cluster]:
    """Return the clusters of a commit: folders right below `clusters/` that have a lock."""
    found: dict[str, Tree] = defaultdict(dict)
    for path, entry in tree.items():
        top, _, rest = path.partition("/")
        name, _, rest = rest.partition("/")
        if top == "clusters" and rest:
            found[name][rest] = entry
    return {name: Cluster(name, files) for name, files in sorted(found.items()) if "ipam.lock" in files}


def broken(base: Tree, head: Tree, labels: tuple[str, ...], first_day: str) -> Iterator[str]:
    """Say which laws a request breaks that passed. `first_day`: of the first commit."""
    before, after = clusters(base), clusters(head)
    yield from _no_links(base, head)
    for name in before.keys() - after.keys():
        if "ipamc/delete-cluster" not in labels:
            yield f"{name}: the cluster is gone, or its lock"
    readable = {name: cluster for name, cluster in after.items() if _reads(cluster)}
    yield from (f"{name}: the lock cannot be read" for name in after.keys() - readable.keys())
    for name, cluster in readable.items():
        if name in before:
            yield from _kept(before[name], cluster, first_day, early="ipamc/release" in labels)
        yield from _one_node_an_address(cluster)
        yield from _rendered_is_the_lock(cluster)
    yield from _one_cluster_an_address(readable)


def _reads(cluster: Cluster) -> bool:
    """Tell whether every line of the lock is one."""
    try:
        return len(cluster.lines) >= 0
    except (KeyError, ValueError, TypeError, AttributeError):
        return False


def _no_links(base: Tree, head: Tree) -> Iterator[str]:
    for path, (mode, _) in head.items():
        if mode in {LINK, SUBMODULE} and path.startswith("clusters/") and base.get(path) != head[path]:
            yield f"{path}: a {'link' if mode == LINK else 'submodule'} below clusters/"


def _kept(before: Cluster, after: Cluster, first_day: str, *, early: bool) -> Iterator[str]:
    """No held block moved, no quarantine ended early, no line vanished but one whose quarantine is over."""
    now = {line.network: line for line in after.lines}
    held_before = {line.node for line in before.lines if line.state == "held"}
    holding = {line.node for line in after.lines if line.state == "held"}
    days = after.spec.get("quarantineDays", 7)
    for line in before.lines:
        if line.state not in {"held", "quarantined"}:
            continue
        same = now.get(line.network)
        over = [other for other in after.lines if other.network.overlaps(line.network)]
        others = [other for other in over if other.node != line.node and other.state != "released"]
        named = f"{before.name}: {line.network} of {line.node}, {line.state}"
        if not over and not (line.state == "quarantined" and _is_over(line.since, days)):
            yield f"{named}: the line vanished"
        if line.state == "held":
            renamed = line.node not in after.nodes and same and same.node not in held_before
            if others and not renamed:
                yield f"{named}: is {others[0].node}'s now"
            if (
                same
                and same.node == line.node
                and same.state == "quarantined"
                and not first_day <= same.since <= TODAY_TEXT
            ):
                yield f"{named}: in quarantine since {same.since}"
            if line.node in after.nodes and line.node not in holding:
                yield f"{named}: its node is there, and holds nothing"
        elif others and not early and not _is_over(line.since, days):
            yield f"{named} since {line.since}: is {others[0].node}'s now"
        elif same and same.state == "quarantined" and same.since < line.since:
            yield f"{named} since {line.since}: since {same.since} now"


def _is_over(since: str, days: object) -> bool:
    if not isinstance(days, int):
        return False
    end = datetime.date.fromisoformat(since) + datetime.timedelta(days=days)
    return end.isoformat() <= TODAY_TEXT


def _one_node_an_address(cluster: Cluster) -> Iterator[str]:
    lines = sorted(
        cluster.lines,
        key=lambda line: (line.network.version, line.network.network_address, line.network.prefixlen),
    )
    for line, other in itertools.pairwise(lines):
        if line.network.overlaps(other.network):
            yield f"{cluster.name}: {line.network} of {line.node} and {other.network} of {other.node} overlap"


def _one_cluster_an_address(after: Mapping[str, Cluster]) -> Iterator[str]:
    spaces: dict[str, list[tuple[str, Line]]] = defaultdict(list)
    for cluster in after.values():
        space = str(cluster.spec.get("addressSpace"))
        if space in after:  # it has an index
            spaces[space] += [(cluster.name, line) for line in cluster.lines if line.state != "released"]
    for space, found in spaces.items():
        for at, (name, line) in enumerate(found):
            for other, beside in found[:at]:
                if name != other and line.network.overlaps(beside.network):
                    yield f"{space}: {line.network} is of {name} and of {other}"


def _rendered_is_the_lock(cluster: Cluster) -> Iterator[str]:
    """Every block of an object is held by its node, and every held block is in an object of its node."""
    held = {(line.node, line.network) for line in cluster.lines if line.state == "held"}
    found: set[tuple[str, Network]] = set()
    objects: set[tuple[str, str, str]] = set()
    for path, each in cluster.rendered:
        kind, name = str(each.get("kind")), str(each.get("metadata", {}).get("name", path))
        if kind not in KINDS:
            yield f"{cluster.name}: {path} has a {kind}"
        elif (kind, name, path) in objects:
            yield f"{cluster.name}: {kind} {name} is in {path} twice"
        objects.add((kind, name, path))
        if kind in {"Node", "CiliumNode"}:
            blocks = {(name, ip_network(block)) for block in _blocks(each)}
            found |= blocks
            for node, block in sorted(blocks - held, key=str):
                yield f"{cluster.name}: {path} gives {block} to {node}, and the lock does not"
    planned = {node for node, is_planned in cluster.nodes.items() if is_planned}
    pooled = cluster.spec.get("unpooled") != "hold"
    for node, block in sorted(held - found, key=str):
        if node not in planned and pooled:
            yield f"{cluster.name}: {block} of {node} is rendered nowhere"


def _blocks(node: Mapping[str, Any]) -> Iterator[str]:
    spec = node.get("spec") or {}
    yield from spec.get("podCIDRs") or ()
    yield from [spec["podCIDR"]] if "podCIDR" in spec else ()
    ipam = spec.get("ipam") or {}
    yield from ipam.get("podCIDRs") or ()
    for pool in (ipam.get("pools") or {}).get("allocated") or ():
        yield from pool.get("cidrs") or ()


def changed_bytes(head: Tree, checkout: Path) -> Iterator[str]:
    """Say which files of clusters a checkout has with other bytes than the commit: an apply, or Argo CD, reads these."""
    for path, (mode, text) in head.items():
        if mode in {FILE, PROGRAM} and path.startswith("clusters/"):
            with suppress(FileNotFoundError, NotADirectoryError):
                if Path(os.fsdecode(checkout), path).read_bytes() != text:
                    yield f"{path}: a checkout has other bytes than the commit"
