"""Tests about room: future nodes are placed as a compile would place them, and discarded.

A future node's labels decide its pools, so nodes with the same pools and block sizes are placed once for all
tests. Each kind of node is placed by itself: room for 40 of each is not room for 40 of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ipamc.assertions import assertion_rules as rules
from ipamc.assertions.blocks import Judgement, no_nodes, no_nodes_of
from ipamc.assertions.subjects import NodeGroup, Subjects, TooMany
from ipamc.law.change import last_day
from ipamc.model.assertion import Assertion, Room
from ipamc.model.cidr import Block
from ipamc.model.cluster import Pool
from ipamc.model.diagnostics import Related, count
from ipamc.model.evidence import Evidence
from ipamc.model.limits import MOST_TEST_BLOCKS
from ipamc.model.lock import State
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.plan import Demand, Offer, Want
from ipamc.model.pool_words import more_room, range_for, why_only_pins
from ipamc.model.wording import cut, ip, shown
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.newcomers import Newcomers
from ipamc.place.allocate.occupancy import Occupancy, blocked
from ipamc.place.candidates import Chooser, rank


class _Kind(NamedTuple):
    """Nodes that are placed alike."""

    offers: tuple[Offer, ...]
    who: str
    """For messages."""
    at: Related
    """Their labels, or a node whose labels they have."""


class _Found(NamedTuple):
    room: int
    why: str
    pools: tuple[Pool, ...]
    """Those that are full."""


class Rooms:
    """The room in a plan."""

    def __init__(self, subjects: Subjects, today: str) -> None:
        self._subjects = subjects
        self._plan = subjects.plan
        self._today = today
        self._work = 0
        self._known: dict[tuple[int, int], _Found] = {}
        self._like: dict[str, tuple[Offer, ...]] = {}

    @cached_property
    def _chooser(self) -> Chooser:
        return Chooser(sorted(self._plan.cluster.pools, key=rank))

    @cached_property
    def _blocked(self) -> list[Block]:
        cluster = self._plan.cluster
        return blocked(cluster, Evidence(cluster).taken(self._plan.lock.lines))

    def _occupancy(self) -> Occupancy:
        over = last_day(self._today, self._plan.cluster.quarantine_days)
        return Occupancy(self._plan.lock.lines, self._blocked, over, self._today)

    def check(self, test: Assertion, asserts: Room) -> Judgement:
        """Test that this number of further nodes would get their blocks. Raises TooMany."""
        if asserts.pool:
            return self._check_pool(test, asserts)
        at = test.at / "room"
        if asserts.like is not None:
            labels = Related(at / "like", "the labels are here")
            kinds = [_Kind(self._offers(asserts.like), " with these labels", labels)]
        else:
            kinds = list(self._kinds(asserts))
            if not kinds:
                if asserts.selector is not None and not self._subjects.of(asserts.selector):
                    return no_nodes_of(test, at / "nodeSelector", asserts.selector, self._subjects)
                of = f" that matches {cut(asserts.selector.canonical)}" if asserts.selector else ""
                near = self._subjects.nearest(asserts.each, self._subjects.labels)
                return no_nodes(test, at / "each", f"no node{of} has the label {shown(asserts.each)}", near)
        findings = []
        for kind in kinds:
            key = id(kind.offers), asserts.nodes
            if key not in self._known:
                self._known[key] = self._place(kind.offers, asserts.nodes)
            found = self._known[key]
            if found.room < asserts.nodes:
                also = [*_places(found.pools), kind.at]
                way_out = self._way_out(found.pools, asserts.nodes - found.room)
                has = _room_for(found.room, asserts.nodes) + kind.who
                findings.append(rules.no_room_for(test, has, found.why, also, way_out))
        return Judgement(len(kinds), "kind of node", "kinds of nodes", tuple(findings))

    def _kinds(self, asserts: Room) -> Iterator[_Kind]:
        """Yield the kinds of nodes of a test, each once, in order of value and name."""
        by_value: Mapping[str, Sequence[NodeGroup]]
        if asserts.each:
            by_value = self._subjects.by_value(asserts.each, asserts.selector)
        else:
            by_value = {"": self._subjects.of(asserts.selector)}
        for value, some in by_value.items():
            known: set[int] = set()
            kinds = [want for group in some for want in self._subjects.kinds(group)]
            self._subjects.count(len(some) + len(kinds))
            for want in sorted(kinds, key=lambda want: want.node.name):
                offers = self._like.get(want.node.name)
                if offers is None:  # the pools of a further node with its labels, but for its host name
                    labels = want.node.labels
                    labels = {**labels, HOSTNAME: ""} if HOSTNAME in labels else labels
                    offers = self._like[want.node.name] = self._offers(labels)
                if id(offers) not in known:
                    known.add(id(offers))
                    of = f" ({asserts.each}={value})" if asserts.each else ""
                    at = Related(want.node.at, f"node {want.node.name} is an example")
                    yield _Kind(offers, f" like {want.node.name}{of}", at)

    def _offers(self, labels: Mapping[str, str]) -> tuple[Offer, ...]:
        """Return the pools of a future node. No selector and no pin names it."""
        return self._chooser.choose(Node("", dict(labels), self._plan.cluster.at))

    def _spend(self, blocks: int, pools: Sequence[Pool]) -> None:
        """Count the work before it is done. Raises TooMany."""
        ranges = [cidr.block for pool in pools for part in pool.families.values() for cidr in part.ranges]
        lines = self._subjects.lines_in(ranges)
        self._work += blocks + lines // 10
        if self._work > MOST_TEST_BLOCKS:
            raise TooMany(f"tests of room place more than {MOST_TEST_BLOCKS:,} blocks")

    def _place(self, offers: tuple[Offer, ...], wanted: int) -> _Found:
        cluster = self._plan.cluster
        if not offers:
            return _Found(0, "no pool selects a node with these labels", ())
        several = 1 if cluster.mode.one_block else sum(offer.pool.blocks_per_node for offer in offers)
        self._spend(wanted * several, [offer.pool for offer in offers[:1]])
        newcomers = Newcomers(self._occupancy())
        want = Want(Node("", {}, cluster.at), offers)
        if cluster.mode.one_block:
            newcomers.place([Demand(want, cluster.families)] * wanted, State.HELD)
            room = wanted - len(newcomers.short) - len(newcomers.unserved)
        else:
            room = wanted
            for offer in offers:
                families = [family for family in cluster.families if family in offer.sizes]
                count = dict.fromkeys(families, offer.pool.blocks_per_node)
                before = len(newcomers.short)
                newcomers.place([Demand(want, tuple(families), offer, count)] * wanted, State.HELD)
                room = min(room, wanted - (len(newcomers.short) - before))
        if newcomers.short:
            short = newcomers.short[0]
            passed = "".join(f"; {passed.pool} {passed.why}" for passed in short.passed[:5])
            pools = cluster.pools_by_name
            stands_in = [pools[passed.pool] for passed in short.passed[:5] if not passed.barred]
            why = f"{'then ' if room else ''}pool {short.offer.pool.name} is full{passed}"
            return _Found(room, why, (short.offer.pool, *stands_in))
        if newcomers.unserved:
            why = f"no pool gives them {ip(newcomers.unserved[0].families)}"
            return _Found(room, why, tuple(offer.pool for offer in offers[:1]))
        return _Found(room, "", ())

    def _check_pool(self, test: Assertion, asserts: Room) -> Judgement:
        cluster, at = self._plan.cluster, test.at / "room"
        pool = cluster.pools_by_name.get(asserts.pool)
        if pool is None:
            near = self._subjects.nearest(asserts.pool, cluster.pools_by_name)
            fix = f"did you mean {near!r}?" if near else "correct it, or remove the test"
            finding = rules.no_subject(test, at / "pool", f"there is no pool {shown(asserts.pool)}", fix)
            return Judgement(0, "pool", "pools", (finding,), empty=True)
        wanted = asserts.nodes * pool.blocks_per_node
        self._spend(wanted, [pool])
        families = [family for family in pool.families if family in cluster.families]
        blocks = [0 if pool.disabled else self._blocks(pool, family, wanted) for family in families]
        room = min(blocks, default=0) // pool.blocks_per_node
        if room >= asserts.nodes:
            return Judgement(1, "pool", "pools", ())
        why = f"{'then ' if room else ''}pool {pool.name} is full"
        way_out = self._way_out((pool,), asserts.nodes - room)
        if pool.disabled:
            why, way_out = (
                f"pool {pool.name} {why_only_pins(pool)}",
                "enable the pool: disabled: false",
            )
            if pool.pods_only:
                way_out = "remove the test: only pods get addresses of the pool"
            if pool.follows:
                way_out = "remove the test: the pool has a block for each address of its network"
        has = _room_for(room, asserts.nodes)
        finding = rules.no_room_for(test, has, why, _places((pool,)), way_out)
        return Judgement(1, "pool", "pools", (finding,))

    def _blocks(self, pool: Pool, family: int, wanted: int) -> int:
        """Count the blocks of its blockSize that a pool could give out, up to `wanted`."""
        part = pool.families[family]
        space = Space(family, [cidr.block for cidr in part.ranges], self._occupancy())
        for number in range(wanted):
            place = space.find(part.block_size)
            if place is None:
                return number
            space.take(place)
        return wanted

    def _way_out(self, pools: Sequence[Pool], lack: int) -> str:
        """Return how to get room for `lack` more nodes."""
        if not pools:
            return "add a pool that selects such nodes"
        pool, cluster = pools[0], self._plan.cluster
        blocks = lack if cluster.mode.one_block else lack * pool.blocks_per_node
        ways = [
            more_room(cluster, pool, family, range_for(part.block_size, blocks))
            for family, part in sorted(pool.families.items())
        ]
        return "; and ".join(ways)


def _room_for(room: int, wanted: int) -> str:
    """Return for how many of some future nodes there is room."""
    nodes = count(wanted, "more node")
    return f"room for only {room:,} of {nodes}" if room else f"no room for {nodes}"


def _places(pools: Sequence[Pool]) -> list[Related]:
    return [
        Related(cidr.at, f'the last range of pool "{pool.name}"')
        for pool in pools
        for part in pool.families.values()
        for cidr in part.ranges[-1:]
    ]
