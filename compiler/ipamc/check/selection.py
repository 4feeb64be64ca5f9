"""Rules about what selectors select in this inventory: pools without nodes, labels that no node has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cluster import Cluster, Node, Pool
from ipamc.model.diagnostics import Diagnostic, Place, names, warning
from ipamc.model.plan import Want
from ipamc.model.pool_words import no_new_blocks
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import listing, nearest, shown

MOST_COMPARISONS = 20_000
"""How many words are compared to find the ones that were meant: more would take longer than a tenth of a second."""


class Written(Struct, frozen=True):
    """A selector, and where it is written."""

    pool: Pool
    selector: Selector
    at: Place
    number: int = 0
    """In the order of pools, by name."""


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
    by_selector: dict[int, list[Written]] = {}
    for number, written in enumerate(written for pool in pools for written in _selectors(pool)):
        by_selector.setdefault(id(written.selector), []).append(replace(written, number=number))
    by_key: dict[str, list[list[Written]]] = {}
    for same in by_selector.values():
        for key in same[0].selector.keys:
            by_key.setdefault(key, []).append(same)
    missing = _on_no_node(by_key, cluster.nodes)
    known = {key for node in cluster.nodes for key in node.labels} if missing else set()
    found: dict[object, Testers | None] = {}
    for key in sorted(missing):
        near = _near_key(key, known) if len(missing) * len(known) <= MOST_COMPARISONS else ""
        # Labels of one selector have the same testers: those of its pools, of which there may be thousands.
        alike = bool(near), *map(id, by_key[key])
        if alike not in found:
            every = (written for same in by_key[key] for written in same)
            found[alike] = _testers(
                [written for written in every if near or written.pool.name not in stand_ins], idle
            )
        if testers := found[alike]:
            yield label_of_no_node(key, near, testers)
    misspelt = {
        number for number, same in by_selector.items() if not same[0].selector.keys.isdisjoint(missing)
    }
    idle_by_itself = idle - stand_ins
    without = [
        pool
        for pool in pools
        if pool.name in idle_by_itself
        and id(pool.selector) not in misspelt
        and not pool.selector.impossible()
    ]
    yield from selects_no_node(without, cluster.nodes)


class Testers(NamedTuple):
    """The pools that test a label."""

    first: Written
    """The first of them, by name."""
    pools: int
    names: str
    """A few of their names, sorted."""
    idle: int
    """How many of them select no node."""


def _testers(several: Sequence[Written], idle: Collection[str]) -> Testers | None:
    """Return the pools of some selectors; None for none."""
    if not several:
        return None
    pools = {written.pool.name for written in several}
    first = min(several, key=lambda written: written.number)
    return Testers(first, len(pools), names(pools), sum(name in idle for name in pools))


def label_of_no_node(key: str, near: str, testers: Testers) -> Diagnostic:
    """IPC0310: a label that a selector tests is on a node."""
    first = testers.first
    spot = first.selector.spot(key)
    at = Place(
        first.at.path, first.at.document, (*first.at.keys, *spot.keys), key=spot.at_key, offset=spot.offset
    )
    one = testers.pools == 1
    tests = (
        f'the nodeSelector of pool "{testers.names}" tests'
        if one
        else f"{testers.pools:,} pools select by: {testers.names}"
    )
    effect = "; the pool selects no node" if one else f"; {testers.idle:,} of these select no node"
    return warning(
        "IPC0310",
        at,
        f"no node has the label {shown(key)}, which {tests}{effect if testers.idle else ''}",
        help=f"did you mean {near!r}?" if near else "correct the label in the selector, or label the nodes",
    )


def selects_no_node(pools: Sequence[Pool], nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    """IPC0311: a pool that may give new blocks selects a node."""
    selectors = {id(pool.selector): pool.selector for pool in pools}
    wanted = {number: _wanted(selector) for number, selector in selectors.items()}
    present: dict[str, set[str]] = {key: set() for values in wanted.values() for key in values}
    for node in nodes if present else ():
        for key, value in node.labels.items():
            if key in present:
                present[key].add(value)
    absent = {
        number: {key: values for key, values in some.items() if values.isdisjoint(present[key])}
        for number, some in wanted.items()
    }
    comparisons = sum(
        len(values) * len(present[key]) for some in absent.values() for key, values in some.items()
    )
    there = {key: f"nodes have {key}={names(found)}; " for key, found in present.items()}
    said = {
        number: (
            _asked(selectors[number], some),
            _meant(some, present, there, few=comparisons <= MOST_COMPARISONS),
        )
        for number, some in absent.items()
    }
    for pool in pools:
        what, meant = said[id(pool.selector)]
        yield warning(
            "IPC0311",
            pool.selector_at,
            f'pool "{pool.name}" selects no node: {what}',
            help=f"{meant}until its nodes come, {no_new_blocks(pool)}",
        )


def _asked(selector: Selector, absent: Mapping[str, frozenset[str]]) -> str:
    """Return why a selector selects no node."""
    if not absent:
        return f"none fits {shown(selector.canonical)}"
    asked = listing(f"{key}={value}" for key, values in sorted(absent.items()) for value in sorted(values))
    return f"no node has {asked}"


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
    if (label := key.removeprefix("metadata.labels.")) != key and label in known:
        return label
    return nearest(key, known) or (same_name[0] if len(same_name) == 1 else "")


def _wanted(selector: Selector) -> dict[str, frozenset[str]]:
    """Return the values of which a node must have one, by key."""
    return {
        key: outcomes.members
        for key, outcomes in selector.outcomes().items()
        if outcomes.listed and not outcomes.absent
    }


def _meant(
    absent: Mapping[str, frozenset[str]],
    present: Mapping[str, set[str]],
    there: Mapping[str, str],
    *,
    few: bool,
) -> str:
    """Return which value was probably meant, or which ones there are, as the first part of a help."""
    for key, values in sorted(absent.items()) if few else ():
        for value in sorted(values):
            if found := nearest(value, present[key]):
                return f"did you mean {key}={found}? If not, "
    return "".join(there[key] for key in sorted(absent))
