"""Hypothetical nodes, as a user types them: `+40 rack=b`, `+3 like NODE`, `-rack=b`, `-node NAME`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cluster import Cluster
from ipamc.model.limits import LARGEST_CLUSTER
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.selector.label_syntax import label_key_problem, label_value_problem
from ipamc.model.wording import nearest_name, suggestion
from ipamc.model.wording import shown as quoted

FORMS = "+N [KEY=VALUE,…], +N like NODE, -KEY=VALUE,… or -node NAME"


class ChangeError(ValueError):
    """A change that cannot be parsed, or matches no node. The text is a sentence."""


class NodeChange(Struct, frozen=True, kw_only=True):
    """Nodes to add, or nodes to remove."""

    text: str  # as the user typed it
    count: int = 0  # how many to add; 0: nodes are removed
    like: str = ""  # a node whose labels are copied
    labels: Mapping[str, str] = {}  # labels of added nodes; nodes to remove must have all of them
    node: str = ""  # the one node to remove


class ChangedCluster(Struct, frozen=True, kw_only=True):
    """A cluster after hypothetical changes of its nodes."""

    cluster: Cluster
    added: Mapping[str, tuple[str, ...]]  # the invented names of each change, in order
    removed: Mapping[str, tuple[str, ...]]
    """The removed nodes of each change, by name. A node is removed once."""


def parse_change(text: str) -> NodeChange:
    """Parse a change: commas or blanks divide labels; `-KEY VALUE` is `-KEY=VALUE`. Raises ChangeError."""
    sign, rest = text[:1], text[1:].split()
    if sign == "+" and rest and rest[0].isascii() and rest[0].isdigit():
        count = int(rest[0]) if len(rest[0]) < 10 else LARGEST_CLUSTER + 1
        if not 0 < count <= LARGEST_CLUSTER:
            raise ChangeError(f"{quoted(text)}: add 1 to {LARGEST_CLUSTER:,} nodes")
        words = rest[1:]
        like = ""
        if words[:1] == ["like"]:
            if len(words) < 2:
                raise ChangeError(f"{quoted(text)}: like needs a node name")
            like, words = words[1], words[2:]
        return NodeChange(text=text, count=count, like=like, labels=_labels(text, words))
    if sign == "-" and rest:
        if rest[0] == "node" and len(rest) == 2 and "=" not in rest[1]:
            return NodeChange(text=text, node=rest[1])
        words = [f"{rest[0]}={rest[1]}"] if len(rest) == 2 and "=" not in text else rest
        if labels := _labels(text, words):
            return NodeChange(text=text, labels=labels)
    raise ChangeError(f"{quoted(text)} is not a change of nodes: use {FORMS}")


def _labels(text: str, words: Sequence[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for pair in filter(None, ",".join(words).split(",")):
        key, equals, value = pair.partition("=")
        value = value.removeprefix("=")
        if not equals:
            leaves = f"use -node {pair} for a node that leaves, or " if text.startswith("-") else ""
            wanted = f"{leaves}use KEY=VALUE, as in {FORMS}"
            raise ChangeError(f"{quoted(text)}: {quoted(pair)} is not a label: {wanted}")
        if problem := label_key_problem(key):
            raise ChangeError(f"{quoted(text)}: the label key {quoted(key)} {problem}")
        if problem := label_value_problem(value):
            raise ChangeError(f"{quoted(text)}: the value {quoted(value)} of label {key} {problem}")
        if labels.setdefault(key, value) != value:
            raise ChangeError(f"{quoted(text)}: label {key} has two values")
    return labels


def apply_changes(cluster: Cluster, changes: Sequence[NodeChange]) -> ChangedCluster:
    """Apply all changes to a cluster at once: remove nodes with their CiliumNodes, then add nodes.
    Added nodes are called what-if-1, what-if-2, …, with leading zeros, so that their order by name is the
    order of their numbers. Raises ChangeError if a change matches no node.
    """
    every = {node.name: node for node in cluster.nodes}
    staying = dict(every)
    removed = {
        change.text: tuple([name for name in _leaving(cluster, every, change) if staying.pop(name, None)])
        for change in changes
        if not change.count
    }
    total = sum(change.count for change in changes)
    if total > LARGEST_CLUSTER:
        raise ChangeError(f"{total:,} nodes would be added; the limit is {LARGEST_CLUSTER:,}")
    added, new = _coming(cluster, every, [change for change in changes if change.count], len(str(total)))
    nodes = sorted([*staying.values(), *new], key=lambda node: node.name) if new else staying.values()
    gone = every.keys() - staying.keys()
    seen = tuple([seen for seen in cluster.cilium_nodes if seen.name not in gone])
    changed = replace(cluster, nodes=tuple(nodes), cilium_nodes=seen)
    return ChangedCluster(cluster=changed, added=added, removed=removed)


def _leaving(cluster: Cluster, every: Mapping[str, Node], change: NodeChange) -> Sequence[str]:
    if change.node:
        if change.node not in every:
            raise ChangeError(_unknown(cluster, change.node, every))
        return [change.node]
    wanted = change.labels.items()
    found = [node.name for node in every.values() if wanted <= node.labels.items()]
    if not found:
        labels = ",".join(f"{key}={value}" for key, value in wanted)
        raise ChangeError(f"{quoted(change.text)}: no node of {cluster.name} has {labels}")
    return found


def _coming(
    cluster: Cluster, every: Mapping[str, Node], changes: Sequence[NodeChange], digits: int
) -> tuple[dict[str, tuple[str, ...]], list[Node]]:
    prefix = "what-if-"
    while any(name.startswith(prefix) for name in every):
        prefix += "x-"
    added: dict[str, tuple[str, ...]] = {}
    new: list[Node] = []
    for change in changes:
        like = every.get(change.like)
        if change.like and like is None:
            raise ChangeError(_unknown(cluster, change.like, every))
        labels = {**(like.labels if like else {}), **change.labels}
        numbers = range(len(new) + 1, len(new) + change.count + 1)
        named = tuple(f"{prefix}{number:0{digits}}" for number in numbers)
        at, pods = (like.at, like.max_pods) if like else (cluster.at, 0)
        # A node that joins has a uid, and rendered Nodes need it.
        new += [Node(name, labels | {HOSTNAME: name}, at, uid=name, max_pods=pods) for name in named]
        added[change.text] = (*added.get(change.text, ()), *named)
    return added, new


def _unknown(cluster: Cluster, name: str, every: Mapping[str, Node]) -> str:
    hint = suggestion(name, every, nearest_name) if len(every) <= LARGEST_CLUSTER else ""
    return f"{cluster.name} has no node {quoted(name)} in its inventory{hint and f'; {hint}'}"
