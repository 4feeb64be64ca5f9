"""Disjoint LabelSelectors of pools: exactly one selects a node, that of the node's first candidate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipamc.model.cluster import HOSTNAME, Node, Pool
from ipamc.model.plan import Offer, Want
from ipamc.model.selector.normal_form import NOTHING, Outcomes
from ipamc.place.candidates import rank


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A Kubernetes LabelSelector, in a fixed order."""

    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """(key, operator, values)."""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SameOffers:
    """Nodes with the same offers."""

    offers: tuple[Offer, ...]
    nodes: list[Node]


def selectors(wants: Iterable[Want]) -> Iterator[tuple[str, LabelSelector]]:
    """Yield (pool, selector) for every pool that is the first candidate of a node, by name.

    A pool's own selector is used if it is a LabelSelector, is disjoint from those of all higher-ranked pools
    (because of one label, or with their opposite added), and then selects exactly the nodes whose first
    candidate the pool is. Otherwise the selector lists hostnames. O(pools² + groups x pools + nodes), where
    groups are nodes with the same offers.
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
    own = {pool.name: _own(pool) for pool in ranked}
    found = {pool.name: _by_labels(pool, ranked[:index], own, groups) for index, pool in enumerate(ranked)}
    for name in sorted(found):
        yield name, found[name] or _by_hostname(members[name])


def _groups(wants: Iterable[Want]) -> Sequence[SameOffers]:
    """Return nodes grouped by their offers, which nodes that look alike to the selectors share by identity.

    One step for each node.
    """
    groups: dict[int, SameOffers] = {}
    for want in wants:
        group = groups.get(id(want.offers))
        if group is None:
            group = groups[id(want.offers)] = SameOffers(want.offers, [])
        group.nodes.append(want.node)
    return tuple(groups.values())


def _by_hostname(nodes: Iterable[Node]) -> LabelSelector:
    return LabelSelector(expressions=((HOSTNAME, "In", tuple(sorted({node.hostname for node in nodes}))),))


def _by_labels(
    pool: Pool, higher: Sequence[Pool], own: Mapping[str, OwnSelector | None], groups: Iterable[SameOffers]
) -> LabelSelector | None:
    """Return a selector by labels of the nodes with this first candidate, or None if none can be proved."""
    mine = own[pool.name]
    if mine is None or pool.disabled:
        return None
    expressions = set(mine.selector.expressions)
    minus: set[str] = set()
    for other in higher:
        theirs = own[other.name]
        if other.disabled or (theirs is not None and _disjoint(mine, theirs)):
            continue  # a disabled pool is the first candidate by pins alone, and lists hostnames
        opposite = other.selector.negated_requirement()
        if opposite is None:
            return None
        expressions.add(_expression(opposite))
        minus.add(other.name)
    if not all(_exact(pool, higher, minus, group) for group in groups):
        return None
    return replace(mine.selector, expressions=tuple(sorted(expressions)))


def _exact(pool: Pool, higher: Sequence[Pool], minus: set[str], group: SameOffers) -> bool:
    """Return whether a pool's selector, less those in `minus`, selects exactly its nodes of a group.

    Offers show which selectors match, except after a pin.
    """
    wanted = bool(group.offers) and group.offers[0].pool is pool
    if not any(offer.pinned for offer in group.offers):
        names = {offer.pool.name for offer in group.offers}
        return (pool.name in names and not names & minus) == wanted
    less = [other for other in higher if other.name in minus]
    return all(
        (
            pool.selector.matches(node.labels, node.name)
            and not any(other.selector.matches(node.labels, node.name) for other in less)
        )
        == wanted
        for node in group.nodes
    )


@dataclass(frozen=True, slots=True)
class OwnSelector:
    """A pool's own selector as a LabelSelector, and what each label must be for it."""

    selector: LabelSelector
    outcomes: Mapping[str, Outcomes]


def _own(pool: Pool) -> OwnSelector | None:
    """Return a pool's own selector; None if there is no equivalent LabelSelector."""
    shape: Any = pool.selector.label_selector()
    if shape is None:
        return None
    labels = tuple(sorted(shape.get("matchLabels", {}).items()))
    expressions = tuple(sorted(map(_expression, shape.get("matchExpressions", ()))))
    return OwnSelector(LabelSelector(expressions, labels), pool.selector.outcomes())


def _expression(requirement: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return requirement["key"], requirement["operator"], tuple(sorted(requirement.get("values") or ()))


def _disjoint(one: OwnSelector, other: OwnSelector) -> bool:
    """Return whether the two selectors have no outcome of some label in common."""
    return any(
        key in other.outcomes and outcomes.both(other.outcomes[key]) == NOTHING
        for key, outcomes in one.outcomes.items()
    )
