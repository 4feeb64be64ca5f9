"""Which programs must restart after a change, and why.

Operator and agents read `cilium-config` only at their start, the init container of an agent the
CiliumNodeConfigs; CiliumNodes are read by an agent at its start, CiliumPodIPPools are followed by all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ipamc.model.cluster import HOSTNAME, Cluster, Node
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.review.diff.objects import objects
from ipamc.review.diff.rendered import Flag, Trees

_OPERATOR_ONLY = re.compile(r"cluster-pool-|auto-create-cilium-pod-ip-pools$|cilium-operator ").match
_AGENTS_ONLY = frozenset({"annotate-k8s-node"})
_CONFIGS = "nodeconfigs.yaml"
_AGENT = "kubectl -n {namespace} delete pod -l k8s-app=cilium --field-selector spec.nodeName=NODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A program that must restart."""

    who: str
    """The operator, all agents, or the agents of some nodes."""
    nodes: tuple[str, ...] = ()
    """Sorted; empty for the operator and for all agents."""
    why: str
    how: str
    """A command, or who does it."""


def restarts(
    trees: Trees,
    cluster: Cluster,
    flags: Iterable[Flag],
    moved: tuple[str, ...],
    known: frozenset[str],
    *,
    ordered: bool,
) -> tuple[Restart, ...]:
    """Return the restarts that a change takes, the operator first. () if none.

    `moved` are the nodes that are to move to another block now. `known` are the nodes with a line in the
    base: an agent that starts for the first time restarts nothing. `ordered`: the plan has steps, which say
    when and how all agents restart.
    """
    names = [flag.name for flag in flags]
    found = [*_of_flags(cluster, names, ordered=ordered)]
    everybody = any(not _OPERATOR_ONLY(name) for name in names)
    if not everybody and (nodes := _other_defaults(trees, cluster, known)):
        how = f"{_AGENT.format(namespace=cluster.namespace)}; no drain: pods keep their addresses"
        found.append(
            Restart(
                who="agents", nodes=nodes, why="their CiliumNodeConfig sets another default pool", how=how
            )
        )
    if moved:
        found.append(
            Restart(who="agents", nodes=moved, why="their block changes", how="drained, as the steps say")
        )
    return tuple(found)


def _of_flags(cluster: Cluster, names: list[str], *, ordered: bool) -> Iterator[Restart]:
    by_hand = f"kubectl -n {cluster.namespace} rollout restart"
    if read := [name for name in names if name not in _AGENTS_ONLY]:
        yield Restart(
            who="operator",
            why=f"it reads {_list(read)} at its start",
            how=f"{by_hand} deployment/cilium-operator" if cluster.managed_by == "none" else "by itself",
        )
    if read := [name for name in names if not _OPERATOR_ONLY(name)]:
        yield Restart(
            who="all agents",
            why=f"they read {_list(read)} at their start",
            how="as the steps say" if ordered else f"{by_hand} daemonset/cilium",
        )


def _list(names: list[str]) -> str:
    return ", ".join(name.replace("cilium-operator --ipam", "the argument --ipam") for name in names)


def _other_defaults(trees: Trees, cluster: Cluster, known: frozenset[str]) -> tuple[str, ...]:
    """Return the nodes for which the CiliumNodeConfigs that select them give other settings than before.

    O(nodes x configs) for configs by pool, O(nodes) for those of `pinning: node`.
    """
    changed = [path for path in (*trees.files.written, *trees.files.removed) if path.endswith(_CONFIGS)]
    if not changed:
        return ()
    was, now = objects(trees.before, changed), objects(trees.after, changed)
    same = {one for one in was.keys() & now.keys() if was[one].text == now[one].text}
    old, new = (_configs(each.text for one, each in tree.items() if one not in same) for tree in (was, now))
    nodes = [node for node in cluster.nodes if node.name in known]
    return tuple(sorted(node.name for node in nodes if _settings(old, node) != _settings(new, node)))


class _Expression(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: list[str] = []


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: list[_Expression] = []

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether this LabelSelector of `render.targets.disjoint_selectors` selects these labels."""
        return self.match_labels.items() <= labels.items() and all(
            _holds(expression, labels.get(expression.key)) for expression in self.match_expressions
        )


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: _Selector = _Selector()
    defaults: dict[str, Any] = {}


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _Config(msgspec.Struct, frozen=True):
    """A CiliumNodeConfig, as far as it is read here."""

    metadata: _Metadata
    spec: _Spec


@dataclass(frozen=True, slots=True)
class _Configs:
    """CiliumNodeConfigs: those that select one host name, and the others by name."""

    by_hostname: Mapping[str, _Spec]
    others: tuple[_Spec, ...]


def _configs(texts: Iterable[str]) -> _Configs:
    """Read CiliumNodeConfigs, each a text. One that cannot be read is left out: it is written again."""
    found: list[_Config] = []
    for text in texts:
        try:
            found += [msgspec.convert(document.value, _Config) for document in yaml_documents(_CONFIGS, text)]
        except (Unreadable, msgspec.ValidationError):
            continue
    by_hostname: dict[str, _Spec] = {}
    others: list[_Spec] = []
    for config in sorted(found, key=lambda config: config.metadata.name):
        selector = config.spec.node_selector
        if list(selector.match_labels) == [HOSTNAME] and not selector.match_expressions:
            by_hostname[selector.match_labels[HOSTNAME]] = config.spec
        else:
            others.append(config.spec)
    return _Configs(by_hostname, tuple(others))


def _settings(configs: _Configs, node: Node) -> dict[str, Any]:
    """Return what configs set for a node: of one key the last name wins."""
    labels = {**node.labels, HOSTNAME: node.hostname}
    found: dict[str, Any] = {}
    for spec in configs.others:
        if spec.node_selector.selects(labels):
            found |= spec.defaults
    own = configs.by_hostname.get(node.hostname)
    return {**found, **own.defaults} if own else found


def _holds(expression: _Expression, value: str | None) -> bool:
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "NotIn":
        return value not in expression.values
    return (value is not None) == (expression.operator == "Exists")
