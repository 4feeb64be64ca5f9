"""Rules about selectors in this inventory: pools without nodes, labels of no node, nodes without Cilium."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cluster import Cluster, Pool, Scheme
from ipamc.model.diagnostics import Diagnostic, Place, count, names, note, warning
from ipamc.model.dump import Dump
from ipamc.model.evidence import Evidence
from ipamc.model.limits import MOST_COMPARED_WORDS
from ipamc.model.lock import Lock
from ipamc.model.node import Node
from ipamc.model.plan import Want
from ipamc.model.pool_words import no_new_blocks
from ipamc.model.selector.selector import Selector
from ipamc.model.without_cilium import NO_AGENT, with_cilium, without_cilium
from ipamc.model.wording import listing, nearest, nearest_name, shown


class PlacedSelector(Struct, frozen=True):
    """A selector of a pool, and its place."""

    pool: Pool
    selector: Selector
    at: Place
    number: int = 0
    """In the order of pools, by name."""


def check_selection(cluster: Scheme, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """Yield errors in selectors of pools that may give new blocks. O(nodes + pools).
    An empty inventory proves nothing about selectors. A pool that only replaces a full one (`overflow`)
    selects no node on purpose: only its misspelt labels are reported.
    """
    if not wants:
        return
    pools = [pool for pool in cluster.pools if not pool.disabled and not pool.unlisted]
    every_offers = {id(want.offers): want.offers for want in wants}.values()
    serving = {offer.pool.name for offers in every_offers for offer in offers}
    idle = {pool.name for pool in pools} - serving
    stand_ins = {name for pool in pools for name in pool.overflow} & idle
    by_selector: dict[int, list[PlacedSelector]] = {}
    for number, each in enumerate(each for pool in pools for each in _selectors(pool)):
        by_selector.setdefault(id(each.selector), []).append(replace(each, number=number))
    by_key: dict[str, list[list[PlacedSelector]]] = {}
    for same in by_selector.values():
        for key in same[0].selector.keys:
            by_key.setdefault(key, []).append(same)
    missing = set(by_key)
    for node in cluster.nodes:
        if not missing:
            break  # usually the first few nodes have all keys
        missing.difference_update(node.labels)
    known = {key for node in cluster.nodes for key in node.labels} if missing else set()
    found: dict[object, Testers | None] = {}
    for key in sorted(missing):
        near = ""
        if len(missing) * len(known) <= MOST_COMPARED_WORDS:
            # The key that was probably meant: the most similar, or the only one with another prefix.
            same_name = [other for other in known if other.rpartition("/")[2] == key.rpartition("/")[2]]
            label = key.removeprefix("metadata.labels.")
            near = label if label != key and label in known else nearest(key, known)
            near = near or (same_name[0] if len(same_name) == 1 else "")
        # Labels of one selector have the same testers: its pools, of which there may be thousands.
        alike = bool(near), *map(id, by_key[key])
        if alike not in found:
            every = (each for same in by_key[key] for each in same)
            some = [each for each in every if near or each.pool.name not in stand_ins]
            users = {each.pool.name for each in some}
            first = min(some, key=lambda each: each.number, default=None)
            number = sum(name in idle for name in users)
            found[alike] = Testers(first, len(users), names(users), number) if first else None
        if testers := found[alike]:
            yield label_of_no_node(cluster, key, near, testers)
    idle_by_itself = (pool for pool in pools if pool.name in idle - stand_ins)
    without = [
        one for one in idle_by_itself if one.selector.keys.isdisjoint(missing) and not one.selector.impossible
    ]
    yield from selects_no_node(without, cluster.nodes)


class Testers(NamedTuple):
    """The pools that test a label."""

    first: PlacedSelector
    """The first of them, by name."""
    pools: int
    names: str
    """A few of their names, sorted."""
    idle: int
    """The number of these that select no node."""


def label_of_no_node(cluster: Scheme, key: str, near: str, testers: Testers) -> Diagnostic:
    """IPC0310: each label that a selector tests exists on a node."""
    first = testers.first
    spot = first.selector.spot(key)
    keys = (*first.at.keys, *spot.keys)
    at = Place(first.at.path, first.at.document, keys, key=spot.at_key, offset=spot.offset)
    if testers.pools == 1:
        tests, effect = f'the nodeSelector of pool "{testers.names}" tests', "; the pool selects no node"
    else:
        tests = f"{testers.pools:,} pools test: {testers.names}"
        effect = f"; {testers.idle:,} of these {'selects' if testers.idle == 1 else 'select'} no node"
    message = f"no node has the label {shown(key)}, which {tests}{effect if testers.idle else ''}"
    fix = f"did you mean {near!r}?" if near else "correct the label in the selector, or label the nodes"
    if any(node.uid for node in cluster.nodes):  # an import keeps the labels that selectors tested then
        bring = f"ipamc import {cluster.name} --refresh dump.json"
        fix += f"{' If not,' if near else ';'} a refresh imports it if the cluster has it: {bring}"
    return warning("IPC0310", at, message, help=fix)


def selects_no_node(pools: Sequence[Pool], nodes: Sequence[Node]) -> Iterator[Diagnostic]:
    """IPC0311: a pool that gives new blocks selects at least one node."""
    selectors = {id(pool.selector): pool.selector for pool in pools}
    # By selector and key: a node must have one of these values.
    wanted = {
        number: {key: it.members for key, it in selector.outcomes.items() if it.listed and not it.absent}
        for number, selector in selectors.items()
    }
    present: dict[str, set[str]] = {key: set() for values in wanted.values() for key in values}
    for node in nodes if present else ():
        for key, value in node.labels.items():
            if key in present:
                present[key].add(value)
    absent = {
        number: {key: values for key, values in some.items() if values.isdisjoint(present[key])}
        for number, some in wanted.items()
    }
    tested = [(key, values) for some in absent.values() for key, values in some.items()]
    few = sum(len(values) * len(present[key]) for key, values in tested) <= MOST_COMPARED_WORDS
    there = {key: f"nodes have {key}={names(found)}; " for key, found in present.items()}
    said: dict[int, tuple[str, str]] = {}
    for number, some in absent.items():
        asked = listing(f"{key}={value}" for key, values in sorted(some.items()) for value in sorted(values))
        why = f"no node has {asked}" if some else f"none matches {shown(selectors[number].canonical)}"
        # The value that was probably meant, or the existing ones.
        near = (
            f"did you mean {key}={found}? If not, "
            for key, values in (sorted(some.items()) if few else ())
            for value in sorted(values)
            if (found := nearest_name(value, present[key]))
        )
        said[number] = why, next(near, "") or "".join(there[key] for key in sorted(some))
    for pool in pools:
        why, meant = said[id(pool.selector)]
        fix = f"{meant}until its nodes join, {no_new_blocks(pool)}"
        yield warning("IPC0311", pool.selector_at, f'pool "{pool.name}" selects no node: {why}', help=fix)


def _selectors(pool: Pool) -> Iterator[PlacedSelector]:
    yield PlacedSelector(pool, pool.selector, pool.selector_at)
    for size_class in pool.block_sizes:
        yield PlacedSelector(pool, size_class.selector, size_class.at / "nodeSelector")


def with_cilium_alone(cluster: Cluster, lock: Lock) -> tuple[Cluster, list[Diagnostic]]:
    """Return a cluster without the Nodes that run no Cilium, and what is said about them.
    Entries of an inventory stay, because an import has judged them, and so does a Node that has a block.
    """
    if not any(node.live for node in cluster.nodes):
        return cluster, []
    dump = Dump(files=(), nodes=cluster.nodes, cilium_nodes=cluster.cilium_nodes)
    reasons = without_cilium(dump, cluster.runs_on)
    kept = {node.name for node in cluster.nodes if not node.live}
    kept |= {line.node for line in lock.lines if line.in_use} | {
        each.node for each in Evidence(cluster).every()
    }
    dump = with_cilium(dump, reasons, kept)
    return replace(cluster, nodes=dump.nodes), list(left_out(dump.apart, reasons))


def left_out(apart: Sequence[Node], reasons: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0836: every node of the cluster runs Cilium."""
    by_reason: dict[str, list[str]] = {}
    for node in apart:
        by_reason.setdefault(reasons[node.name], []).append(node.name)
    if by_reason:
        whys = (f"{why}: {count(len(some), 'node')} ({names(some)})" for why, some in by_reason.items())
        each = "node without Cilium is", "nodes without Cilium are"
        text = f"{count(len(apart), *each)} left out; {'; '.join(whys)}"
        say = "if one of them runs Cilium, set cilium.nodeSelector in cluster.yaml"
        if any(why.startswith(NO_AGENT) for why in by_reason):
            say = "set cilium.nodeSelector in cluster.yaml, because a dump of ipamc ci refresh has no pods"
        way_out = f"{say}: ipamc explain Cluster.spec.cilium.nodeSelector"
        yield note("IPC0836", apart[0].at, text, help=way_out).about(node.name for node in apart)
