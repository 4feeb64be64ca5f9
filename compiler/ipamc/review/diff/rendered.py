"""Two rendered trees: files and Cilium's flags that differ, objects that leave, programs that must restart.

Operator and agents read `cilium-config` only at their start; the init container of an agent reads the
CiliumNodeConfigs. In kubernetes and cluster-pool mode an agent reads its block at its start; in multi-pool
and crd mode it takes more addresses as they come. All programs follow CiliumPodIPPools.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.admission import POLICIES
from ipamc.model.cilium.operator_list import restart
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import names
from ipamc.model.limits import NAMES_SHOWN
from ipamc.model.lock import Line
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.plan import Want
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import Selector, SelectorIndex, parse_label_selector
from ipamc.read.parts import FLAGS
from ipamc.read.rendered import Rendered, RenderedObject


class Flag(Struct, frozen=True, kw_only=True):
    """A key of ConfigMap cilium-config, the operator's argument, or text of ip-masq-agent. None: not set."""

    name: str
    old: str | None
    new: str | None
    why: str  # the reason for this value, or that no program reads it; "" if the pools explain it


class Files(Struct, frozen=True, kw_only=True):
    """Paths below `rendered/`, sorted: files that are new or differ, and files that are removed."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


class Trees(Struct, frozen=True, kw_only=True):
    """Two rendered trees."""

    before: Rendered
    after: Rendered
    files: Files


def compare_trees(before: Rendered, after: Mapping[str, str]) -> Trees:
    """Return the former and present rendered files, by path."""
    now = {path: text.encode() for path, text in after.items()}
    files = Files(
        written=tuple(path for path, text in sorted(now.items()) if before.texts.get(path) != text),
        removed=tuple(sorted(before.texts.keys() - now.keys())),
    )
    return Trees(before=before, after=Rendered(now), files=files)


def compare_flags(trees: Trees, cluster: Cluster) -> tuple[Flag, ...]:
    """Return the flags that differ, by name. `cluster` is that of the head."""
    old, new = _flags(trees.before), _flags(trees.after)
    found = []
    for name in sorted({**old, **new}):
        was, now, why = old.get(name), new.get(name), ""
        if now is not None and _OF_POOLS(name):
            why = "the longest prefix of blocks, pins and block sizes" if name.endswith("-mask-size") else ""
            why = "unused, because the operator is a bystander" if cluster.bystander else why
        if name == _LIST:
            why = "agents reload it within two minutes"
        found += [Flag(name=name, old=was, new=now, why=why)] if was != now else []
    return tuple(found)


def _flags(tree: Rendered) -> Mapping[str, str]:
    """Return the flags that a tree sets. A damaged file sets none."""
    flags, listed = tree.flags, tree.masq_agent
    found = {**flags.data, **({_LIST: listed} if listed else {})}
    return {**found, "cilium-operator --ipam": "kubernetes"} if flags.bystander else found


_KEPT = "cilium.io/do-not-gc"
_LIST = "ip-masq-agent"
"""The data of ConfigMap ip-masq-agent. It is no flag: no program has to restart for it."""


class Stays(enum.Enum):
    """The effect of an object that left the tree and stays in the cluster: an apply does not delete it."""

    NODE_CONFIG = (
        "it still sets the default pool of the nodes that it selects; "
        "of several configs for a node the last name wins"
    )
    POD_IP_POOL = "the operator still gives its blocks to nodes that request this pool"
    PLANNED = (
        "a cancelled planned node: the operator still counts its block as used, "
        "and does not delete it because of cilium.io/do-not-gc"
    )
    JOINS = "it has the block that the planned node gets when it joins"
    AGENT = "it is still used by its node's agent: never delete it while the node runs"
    CILIUM_NODE = "it is deleted with its Node; while the Node exists, its agent keeps the block"
    NODE = "it keeps its podCIDRs (which are immutable) or annotations; this is harmless"
    CONFIG_MAP = "cilium-config keeps the keys, and Cilium still reads them; its new owner sets them"
    MASQ_AGENT = "agents read it only while enable-ip-masq-agent is true"
    ADMISSION = "it still enforces the blocks of its last apply"
    OTHER = "it stays in the cluster"


_NOT_REMOVED = (Stays.AGENT, Stays.NODE, Stays.CONFIG_MAP, Stays.MASQ_AGENT)
_OF_KIND = {
    **dict.fromkeys(POLICIES, Stays.ADMISSION),
    "CiliumNodeConfig": Stays.NODE_CONFIG,
    "CiliumPodIPPool": Stays.POD_IP_POOL,
    "Node": Stays.NODE,
    "ConfigMap": Stays.CONFIG_MAP,
}


class Leaving(Struct, frozen=True, kw_only=True):
    """Objects of one kind that leave the tree, and have the same effect if they stay in the cluster."""

    kind: str
    names: tuple[str, ...]  # sorted; not empty
    stays: Stays

    @property
    def removable(self) -> bool:
        """Return whether `ipamc apply --prune` deletes them; it must not or cannot delete the others."""
        return self.stays not in _NOT_REMOVED

    @property
    def sentence(self) -> str:
        """A sentence with the objects' names, the effect if they stay, and the command that removes them."""
        does = self.stays.value
        if len(self.names) > 1:
            which = f"{len(self.names):,} of kind {self.kind} ({names(self.names, NAMES_SHOWN)})"
            them = "them"
            does = f"each {does.removeprefix('it ')}" if does.startswith("it ") else does
        else:
            which, them = f"{self.kind} {self.names[0]}", "it"
        prune = f"to remove {them}: ipamc apply CLUSTER --prune"
        return f"{which}: {does}; {prune if self.removable else f'ipamc does not remove {them}'}"


def leaving(trees: Trees, wants: Sequence[Want]) -> tuple[Leaving, ...]:
    """Return the objects that are in the base's tree and not in the head's, by effect and kind.
    Only files that differ are read, and the ConfigMap, which another file may list. An object that moved to
    another file does not leave. `wants` are the nodes of the inventory. O(size of the files that differ).
    """
    left = trees.before.lost(trees.after, dict.fromkeys((*trees.files.written, *trees.files.removed, FLAGS)))
    if not left:
        return ()
    planned, order = {want.node.name: want.node.planned for want in wants}, list(Stays)
    groups: dict[tuple[int, str], list[str]] = defaultdict(list)
    for gone in left.values():
        groups[order.index(_stays(gone, planned)), gone.kind].append(gone.name)
    return tuple(
        Leaving(kind=kind, names=tuple(sorted(members)), stays=order[number])
        for (number, kind), members in sorted(groups.items())
    )


def _stays(gone: RenderedObject, planned: Mapping[str, bool]) -> Stays:
    if gone.kind != "CiliumNode":
        if gone.kind == "ConfigMap" and gone.name == _LIST:
            return Stays.MASQ_AGENT
        return _OF_KIND.get(gone.kind, Stays.OTHER)
    if gone.name in planned:
        return Stays.JOINS if planned[gone.name] else Stays.AGENT
    return Stays.PLANNED if _KEPT in gone.text else Stays.CILIUM_NODE


_OF_POOLS = re.compile(r"cluster-pool-").match
_OPERATOR_ONLY = re.compile(r"cluster-pool-|auto-create-cilium-pod-ip-pools$|cilium-operator ").match
_AGENTS_ONLY = re.compile(r"annotate-k8s-node$|.*masq|ipv[46]-native-routing-cidr$").match
_CONFIGS = "nodeconfigs.yaml"


class Restart(Struct, frozen=True, kw_only=True):
    """A program that must restart."""

    who: str  # the operator, all agents, or the agents of some nodes
    nodes: tuple[str, ...] = ()  # sorted; empty for the operator and for all agents
    why: str
    how: str  # a command; or, if they restart without one, a verb phrase after `it` or `they`

    @property
    def sentence(self) -> str:
        """A sentence with the program that restarts, the reason, and the command."""
        all_of = "the operator" if self.who == "operator" else self.who
        who = f"the agents of {names(self.nodes, NAMES_SHOWN)}" if self.nodes else all_of
        if self.how.startswith("kubectl "):
            return f"{who} must be restarted, because {self.why}: {self.how}"
        return f"{who} {self.how}: {self.why}"


def restarts(
    trees: Trees,
    cluster: Cluster,
    flags: Iterable[Flag],
    moved: tuple[str, ...],
    before: Sequence[Line],
    *,
    ordered: bool,
) -> tuple[Restart, ...]:
    """Return the restarts that a change needs, the operator first; () if none.
    `moved` are the nodes that are to move to another block now. `before` are the lines of the base: the agent
    of a node without a line starts for the first time, and needs no restart. `ordered`: the plan has steps,
    which say when and how all agents restart.
    """
    changed = [flag.name for flag in flags if flag.name != _LIST]
    result: list[Restart] = []
    by_hand, own = f"kubectl -n {cluster.namespace} rollout restart", cluster.managed_by == "none"
    for_operator = [name for name in changed if not _AGENTS_ONLY(name)]
    read = [name for name in for_operator if not (cluster.bystander and _OF_POOLS(name))]
    if read or (for_operator and not own):
        other = f"cilium-config has a new {_list(for_operator)} (read only with operator: adopt)"
        why = f"it reads {_list(read)} at its start" if read else other
        how = f"{by_hand} deployment/cilium-operator" if own else "restarts automatically"
        result.append(Restart(who="operator", why=why, how=how))
    if for_agents := [name for name in changed if not _OPERATOR_ONLY(name)]:
        why = f"they read {_list(for_agents)} at their start"
        how = "restart as the steps say" if ordered else f"{by_hand} daemonset/cilium"
        result.append(Restart(who="all agents", why=why, how=how))
    elif nodes := _other_defaults(trees, cluster, before):
        why = "their CiliumNodeConfig sets another default pool (no drain: pods keep their addresses)"
        how = restart(cluster.namespace, "NODE")
        result.append(Restart(who="agents", nodes=nodes, why=why, how=how))
    if moved:
        how = "restart while their nodes are drained, as the steps say"
        result.append(Restart(who="agents", nodes=moved, why="their block changes", how=how))
    return tuple(result)


def _list(flags: list[str]) -> str:
    return ", ".join(name.replace("cilium-operator --ipam", "the argument --ipam") for name in flags)


def _other_defaults(trees: Trees, cluster: Cluster, before: Sequence[Line]) -> tuple[str, ...]:
    """Return the nodes whose settings by CiliumNodeConfigs change. O(nodes + configs + pairs of both)."""
    changed = [path for path in (*trees.files.written, *trees.files.removed) if path.endswith(_CONFIGS)]
    if not changed:
        return ()
    was, now = trees.before.found(changed), trees.after.found(changed)
    same = {*was.values()} & {*now.values()}
    old, new = (_Configs(each for each in tree.values() if each not in same) for tree in (was, now))
    known = {line.node for line in before}
    nodes = [node for node in cluster.nodes if node.name in known]
    return tuple(sorted(node.name for node in nodes if old.settings(node) != new.settings(node)))


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: dict[str, Any] = {}
    defaults: dict[str, Any] = {}


class _Config(msgspec.Struct, frozen=True):
    spec: _Spec


class _Configs:
    """The settings of CiliumNodeConfigs. Unreadable ones are skipped: a compile writes them again."""

    def __init__(self, configs: Iterable[RenderedObject]) -> None:
        selectors: list[Selector] = []
        self._defaults: list[dict[str, Any]] = []
        for each in sorted(configs, key=lambda config: config.name):
            with suppress(msgspec.ValidationError, SelectorError):
                spec = msgspec.convert(each.value, _Config).spec
                selectors.append(parse_label_selector(spec.node_selector))
                self._defaults.append(spec.defaults)
        self._index = SelectorIndex(selectors)

    def settings(self, node: Node) -> dict[str, Any]:
        """Return the settings of a node: for each key, the config with the last name wins."""
        found: dict[str, Any] = {}
        for number in self._index.matching({**node.labels, HOSTNAME: node.hostname}, node.name):
            found |= self._defaults[number]
        return found
