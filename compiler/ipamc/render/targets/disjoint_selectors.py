"""LabelSelectors that tell pools' nodes apart: exactly one of them selects a node, and it is that of the node's first candidate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ipamc.model.cluster import Node, Pool
from ipamc.model.plan import Offer, Want
from ipamc.place.candidates import rank

HOSTNAME = "kubernetes.io/hostname"


class LabelSelector(NamedTuple):
    """A Kubernetes LabelSelector, in a fixed order."""

    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """(key, operator, values)."""
    labels: tuple[tuple[str, str], ...] = ()


class Group(NamedTuple):
    """Nodes with the same offers."""

    offers: tuple[Offer, ...]
    nodes: list[Node]


def hostname(node: Node) -> str:
    """Give the value of a node's label `kubernetes.io/hostname`; a node that does not show it yet will have its name there."""
    return node.labels.get(HOSTNAME, node.name)


def selectors(wants: Iterable[Want]) -> Iterator[tuple[str, LabelSelector]]:
    """Yield (pool, selector) for every pool that is some node's first candidate, by name.

    A pool's own selector serves if it is a LabelSelector, can be told apart from those of all higher-ranked pools (by what they demand of a label, or
    with their opposite added), and then selects exactly the nodes whose first candidate the pool is. Else the nodes are named one by one.
    O(pools² + groups x pools + nodes), where groups are nodes with the same offers.
    """
    groups = _groups(wants)
    members: dict[str, list[Node]] = defaultdict(list)
    pools: dict[str, Pool] = {}
    for group in groups:
        if group.offers:
            pool = group.offers[0].pool
            pools[pool.name] = pool
            members[pool.name] += group.nodes
    ranked = sorted(pools.values(), key=rank)
    said = {pool.name: _said(pool) for pool in ranked}
    found = {pool.name: _by_labels(pool, ranked[:index], said, groups) for index, pool in enumerate(ranked)}
    for name in sorted(found):
        yield name, found[name] or _by_hostname(members[name])


def _groups(wants: Iterable[Want]) -> Sequence[Group]:
    """Put nodes that share their offers together. Offers are shared by identity between nodes that look alike, so this is one step a node."""
    groups: dict[int, Group] = {}
    for want in wants:
        group = groups.get(id(want.offers))
        if group is None:
            group = groups[id(want.offers)] = Group(want.offers, [])
        group.nodes.append(want.node)
    return tuple(groups.values())


def _by_hostname(nodes: Iterable[Node]) -> LabelSelector:
    return LabelSelector(expressions=((HOSTNAME, "In", tuple(sorted({hostname(node) for node in nodes}))),))


def _by_labels(
    pool: Pool, higher: Sequence[Pool], said: Mapping[str, Said | None], groups: Iterable[Group]
) -> LabelSelector | None:
    """Give a selector by labels of the nodes whose first candidate a pool is, or None if there is none that can be proved."""
    own = said[pool.name]
    if own is None or pool.disabled:
        return None
    expressions = set(own.selector.expressions)
    minus: set[str] = set()
    for other in higher:
        theirs = said[other.name]
        if other.disabled or (theirs is not None and _disjoint(own.demands, theirs.demands)):
            continue  # a disabled pool is first by pins alone, and names its nodes
        opposite = other.selector.negated_requirement()
        if opposite is None:
            return None
        expressions.add(_expression(opposite))
        minus.add(other.name)
    if not all(_exact(pool, higher, minus, group) for group in groups):
        return None
    return own.selector._replace(expressions=tuple(sorted(expressions)))


def _exact(pool: Pool, higher: Sequence[Pool], minus: set[str], group: Group) -> bool:
    """Tell whether a pool's selector, less those in `minus`, selects all nodes of a group or none, as their first candidate says.

    Offers say which selectors match, except where a pin put one first.
    """
    wished = bool(group.offers) and group.offers[0].pool is pool
    if not any(each.pinned for each in group.offers):
        names = {each.pool.name for each in group.offers}
        return (pool.name in names and not names & minus) == wished
    less = [each for each in higher if each.name in minus]
    return all(
        (
            pool.selector.matches(node.labels, node.name)
            and not any(each.selector.matches(node.labels, node.name) for each in less)
        )
        == wished
        for node in group.nodes
    )


class Demand(NamedTuple):
    """What a selector demands of one label."""

    present: bool = False
    absent: bool = False
    allowed: frozenset[str] | None = None
    refused: frozenset[str] = frozenset()

    def excludes(self, other: Demand) -> bool:
        """Tell whether neither a value nor the label's absence satisfies both."""
        if not (self.present or other.present):
            return False
        if self.absent or other.absent:
            return True
        allowed = (
            self.allowed
            if other.allowed is None
            else other.allowed
            if self.allowed is None
            else self.allowed & other.allowed
        )
        return allowed is not None and not allowed - self.refused - other.refused


class Said(NamedTuple):
    """A pool's selector as Kubernetes says it, and what it demands of each label."""

    selector: LabelSelector
    demands: Mapping[str, Demand]


def _said(pool: Pool) -> Said | None:
    """Give a pool's selector as a LabelSelector; None if there is none that means the same."""
    shape: Any = pool.selector.label_selector()
    if shape is None:
        return None
    labels = tuple(sorted(shape.get("matchLabels", {}).items()))
    expressions = tuple(sorted(map(_expression, shape.get("matchExpressions", ()))))
    demands: dict[str, Demand] = {}
    for key, operator, values in (*((key, "In", (value,)) for key, value in labels), *expressions):
        demands[key] = _with(demands.get(key, Demand()), operator, frozenset(values))
    return Said(LabelSelector(expressions, labels), demands)


def _expression(requirement: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return requirement["key"], requirement["operator"], tuple(sorted(requirement.get("values") or ()))


def _with(demand: Demand, operator: str, values: frozenset[str]) -> Demand:
    if operator == "In":
        return demand._replace(
            present=True, allowed=values if demand.allowed is None else demand.allowed & values
        )
    if operator == "NotIn":
        return demand._replace(refused=demand.refused | values)
    return demand._replace(present=True) if operator == "Exists" else demand._replace(absent=True)


def _disjoint(one: Mapping[str, Demand], other: Mapping[str, Demand]) -> bool:
    return any(key in other and one[key].excludes(other[key]) for key in one)
