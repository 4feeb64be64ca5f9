"""Rules about what selectors select in this inventory: pools without nodes, labels that no node has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Place, names, warning
from ipamc.model.plan import Want
from ipamc.model.pool_words import no_new_blocks
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import listing, nearest, shown

MOST_COMPARISONS = 20_000
"""How many words are compared to find the ones that were meant: more would take longer than a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Written:
    """A selector, and where it is written."""

    pool: Pool
    selector: Selector
    at: Place


def check_selection(cluster: Cluster, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """Yield what is wrong with the selectors of pools that may give new blocks. O(nodes + pools).

    An empty inventory says nothing about selectors. A pool that selects no node and stands in `overflow` of
    another one serves where that one is full, so only a label that was probably misspelt is reported of it.
    """
    if not wants:
        return
    pools = [pool for pool in cluster.pools if not pool.disabled and not pool.unlisted]
    serving = {
        offer.pool.name
        for offers in {id(want.offers): want.offers for want in wants}.values()
        for offer in offers
    }
    idle = {pool.name for pool in pools} - serving
    stand_ins = {name for pool in pools for name in pool.overflow} & idle
    by_key: dict[str, list[Written]] = {}
    for pool in pools:
        for written in _selectors(pool):
            for key in written.selector.keys:
                by_key.setdefault(key, []).append(written)
    missing = _on_no_node(by_key, cluster.nodes)
    known = {key for node in cluster.nodes for key in node.labels} if missing else set()
    for key in sorted(missing):
        near = _near_key(key, known) if len(missing) * len(known) <= MOST_COMPARISONS else ""
        several = [written for written in by_key[key] if near or written.pool.name not in stand_ins]
        if several:
            yield label_of_no_node(key, near, several, idle)
    without = [
        pool
        for pool in pools
        if pool.name in idle - stand_ins
        and not pool.selector.keys & missing
        and not pool.selector.impossible()
    ]
    yield from selects_no_node(without, cluster.nodes)


def label_of_no_node(key: str, near: str, several: Sequence[Written], idle: Collection[str]) -> Diagnostic:
    """IPC0310: a label that a selector tests is on a node.

    No node of the inventory has a label with this key, planned ones included. It is misspelt, or the nodes
    were listed without their labels. A selector that asks for it selects nobody; one that excludes it,
    `!has(rak)`, selects everybody.
    """
    first = several[0]
    spot = first.selector.spot(key)
    at = Place(
        first.at.path, first.at.document, (*first.at.keys, *spot.keys), key=spot.at_key, offset=spot.offset
    )
    pools = sorted({written.pool.name for written in several})
    one = len(pools) == 1
    without = sum(name in idle for name in pools)
    tests = (
        f'the nodeSelector of pool "{pools[0]}" tests'
        if one
        else f"{len(pools):,} pools select by: {names(pools)}"
    )
    effect = "; the pool selects no node" if one else f"; {without:,} of these select no node"
    return warning(
        "IPC0310",
        at,
        f"no node has the label {shown(key)}, which {tests}{effect if without else ''}",
        help=f"did you mean {near!r}?" if near else "correct the label in the selector, or label the nodes",
    )


def selects_no_node(pools: Sequence[Pool], nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    """IPC0311: a pool that may give new blocks selects a node.

    Nodes have the labels that it asks for, but none has the values. A misspelt value looks like this, and so
    does a pool for nodes to come: list those as `planned`, or disable the pool until then.
    """
    wanted = {pool.name: _wanted(pool.selector) for pool in pools}
    present: dict[str, set[str]] = {key: set() for values in wanted.values() for key in values}
    for key, found in present.items():
        found.update(node.labels[key] for node in nodes if key in node.labels)
    few = sum(len(present[key]) for values in wanted.values() for key in values) <= MOST_COMPARISONS
    for pool in pools:
        absent = {key: values for key, values in wanted[pool.name].items() if not values & present[key]}
        asked = listing(
            f"{key}={value}" for key, values in sorted(absent.items()) for value in sorted(values)
        )
        yield warning(
            "IPC0311",
            pool.selector_at,
            f'pool "{pool.name}" selects no node: '
            + (f"no node has {asked}" if absent else f"none fits {shown(pool.selector.canonical)}"),
            help=f"{_meant(absent, present, few=few)}until its nodes come, {no_new_blocks(pool)}",
        )


def _selectors(pool: Pool) -> Iterator[Written]:
    yield Written(pool, pool.selector, pool.selector_at)
    for size_class in pool.block_sizes:
        yield Written(pool, size_class.selector, size_class.at / "nodeSelector")


def _on_no_node(keys: Collection[str], nodes: Sequence[Node]) -> set[str]:
    """Return the keys that no node has; the first few nodes have all of them as a rule."""
    missing = set(keys)
    for node in nodes:
        if not missing:
            break
        missing.difference_update(node.labels)
    return missing


def _near_key(key: str, known: Collection[str]) -> str:
    """Return the key that was probably meant: the nearest, or the only one that differs by its prefix."""
    same_name = [other for other in known if other.rpartition("/")[2] == key.rpartition("/")[2]]
    return nearest(key, known) or (same_name[0] if len(same_name) == 1 else "")


def _wanted(selector: Selector) -> dict[str, frozenset[str]]:
    """Return the values of which a node must have one, by key."""
    return {
        key: outcomes.members
        for key, outcomes in selector.outcomes().items()
        if outcomes.listed and not outcomes.absent
    }


def _meant(absent: Mapping[str, frozenset[str]], present: Mapping[str, set[str]], *, few: bool) -> str:
    """Return which value was probably meant, or which ones there are, as the first part of a help."""
    for key, values in sorted(absent.items()) if few else ():
        for value in sorted(values):
            if found := nearest(value, present[key]):
                return f"did you mean {key}={found}? If not, "
    return "".join(f"nodes have {key}={names(present[key])}; " for key in sorted(absent))
