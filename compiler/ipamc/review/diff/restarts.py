"""Which programs must restart after a change, and why.

Operator and agents read `cilium-config` only at their start, the init container of an agent the
CiliumNodeConfigs; CiliumNodes are read by an agent at its start, CiliumPodIPPools are followed by all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class _Configs:
    """CiliumNodeConfigs: those that select one host name, and the others by name."""

    by_hostname: Mapping[str, dict[str, Any]]
    others: tuple[dict[str, Any], ...]


def _configs(texts: Iterable[str]) -> _Configs:
    """Read CiliumNodeConfigs, each a text. One that cannot be read is left out: it is written again."""
    found: list[tuple[str, dict[str, Any]]] = []
    for text in texts:
        try:
            values: list[Any] = [document.value for document in yaml_documents(_CONFIGS, text)]
            found += [(value["metadata"]["name"], value["spec"]) for value in values]
        except (Unreadable, KeyError, TypeError):
            continue
    by_hostname: dict[str, dict[str, Any]] = {}
    others: list[dict[str, Any]] = []
    for _, spec in sorted(found, key=lambda named: named[0]):
        selector = spec.get("nodeSelector") or {}
        labels = selector.get("matchLabels", {})
        if list(labels) == [HOSTNAME] and "matchExpressions" not in selector:
            by_hostname[str(labels[HOSTNAME])] = spec
        else:
            others.append(spec)
    return _Configs(by_hostname, tuple(others))


def _settings(configs: _Configs, node: Node) -> dict[str, Any]:
    """Return what configs set for a node: of one key the last name wins."""
    labels = {**node.labels, HOSTNAME: node.hostname}
    found: dict[str, Any] = {}
    for spec in configs.others:
        if _selects(spec.get("nodeSelector") or {}, labels):
            found |= spec.get("defaults", {})
    own = configs.by_hostname.get(node.hostname)
    return {**found, **own.get("defaults", {})} if own else found


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector of `render.targets.disjoint_selectors` selects these labels."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        _holds(expression, labels.get(expression["key"]))
        for expression in selector.get("matchExpressions", ())
    )


def _holds(expression: Mapping[str, Any], value: str | None) -> bool:
    operator: str = expression["operator"]
    values: list[str] = expression.get("values", [])
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    return (value is not None) == (operator == "Exists")
