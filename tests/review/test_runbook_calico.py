"""From Calico to Cilium as a state machine: whatever pods and collectors do between two steps, no address has two holders.

Calico's rules are those of `templates/runbooks/calico.j2`: affine blocks, claims, borrowing, release of empty blocks, and
reservations. Its adversary starts, stops and restarts pods, and collects blocks, between any two steps. The steps are
read from the runbook: reservations and seeds out of its commands. Steps that are left out are seen to be needed.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipamc.model.cidr import Block, parse_block
from ipamc.review.runbook.planners import calico
from ipamc.review.runbook.site import Site
from ipamc.review.runbook.steps import Runbook, Split, Step
from ipamc.workspace.disk import assets
from tests.support import depth
from tests.support.builders import plan, pool

TEMPLATES = assets("templates/runbooks")
NODES = ("n1", "n2", "n3")
RANGE = "10.0.0.0/27"
SIZE = 30
"""Blocks of four addresses: they are full soon, so nodes claim and borrow."""
BLOCKS = tuple(Block(4, parse_block(RANGE).first + 4 * number, SIZE) for number in range(8))


@dataclass
class World:
    """Three nodes, Calico's books, and who uses which address."""

    random: Random
    strict: bool = False
    auto: bool = True
    affinity: dict[Block, str] = field(default_factory=dict)
    booked: dict[int, int] = field(default_factory=dict)
    """Calico's books: pod by address."""
    reserved: set[Block] = field(default_factory=set)
    pods: dict[int, tuple[str, int, bool]] = field(default_factory=dict)
    """Pods that run: node, address, whether of a DaemonSet. Agents are pods here: they have an address too."""
    cordoned: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    """Nodes whose kubelet does not run."""
    moved: set[str] = field(default_factory=set)
    """Nodes with the label: no Calico, and an agent of Cilium where the kubelet runs."""
    given: dict[str, list[Block]] = field(default_factory=dict)
    """The blocks that Cilium has for a node."""
    numbers: int = 0

    def check(self) -> None:
        """No address has two holders, on one node or on two."""
        holders: dict[int, list[str]] = defaultdict(list)
        for node, address, _ in self.pods.values():
            holders[address].append(node)
        twice = {address: nodes for address, nodes in holders.items() if len(nodes) > 1}
        assert not twice, twice

    # Calico

    def start(self, node: str, *, daemon: bool = False) -> None:
        """Start a pod on a node, with the CNI that it has there."""
        if node in self.stopped or (node in self.cordoned and not daemon):
            return
        address = self._from_cilium(node) if node in self.moved else self._from_calico(node)
        if address is not None:
            self.numbers += 1
            self.pods[self.numbers] = (node, address, daemon)
            if node not in self.moved:
                self.booked[address] = self.numbers

    def _from_calico(self, node: str) -> int | None:
        for block in self._shuffled(block for block, owner in self.affinity.items() if owner == node):
            if (address := self._free(block)) is not None:
                return address
        if self.auto:
            unclaimed = self._shuffled(
                each for each in BLOCKS if each not in self.affinity and each not in self.reserved
            )
            empty = self._shuffled(
                block for block in self.affinity if block not in self.reserved and not self._used(block)
            )
            if claimed := next(iter((*unclaimed, *empty)), None):
                self.affinity[claimed] = node
                return self._free(claimed)
        elif not self.strict:
            return None  # Calico refuses this configuration
        if not self.strict:  # it borrows, of blocks that exist
            for block in self._shuffled(self.affinity):
                if (address := self._free(block)) is not None:
                    return address
        return None

    def _used(self, block: Block) -> list[int]:
        return [address for address in self.booked if block.first <= address <= block.last]

    def _free(self, block: Block) -> int | None:
        if block in self.reserved:
            return None
        free = [address for address in range(block.first, block.last + 1) if address not in self.booked]
        return self.random.choice(free) if free else None

    def _shuffled(self, blocks: Iterable[Block]) -> list[Block]:
        found = sorted(blocks)
        self.random.shuffle(found)
        return found

    def collect(self) -> None:
        """Release the affinity of an empty block, and the addresses of pods that are gone."""
        self.booked = {address: pod for address, pod in self.booked.items() if pod in self.pods}
        empty = [block for block in sorted(self.affinity) if not self._used(block)]
        if empty:
            del self.affinity[self.random.choice(empty)]

    # Cilium

    def _from_cilium(self, node: str) -> int | None:
        """Give a free address of the node's blocks; an agent knows of its own pods alone."""
        own = {
            address
            for number, (where, address, _) in self.pods.items()
            if where == node and number in self._of_cilium
        }
        free = [
            address
            for block in self.given.get(node, ())
            for address in range(block.first, block.last + 1)
            if address not in own
        ]
        address = self.random.choice(free) if free else None
        if address is not None:
            self._of_cilium.add(self.numbers + 1)
        return address

    _of_cilium: set[int] = field(default_factory=set)

    def agent(self, node: str) -> None:
        """Let the agent start where its DaemonSet runs: it takes an address for itself."""
        if node in self.moved and node not in self.stopped:
            self.start(node, daemon=True)

    # Everybody

    def stop(self, number: int) -> None:
        """Stop a pod; its address goes back, unless nobody tells Calico."""
        self.pods.pop(number)
        if self.random.random() < 0.7:
            self.booked = {address: pod for address, pod in self.booked.items() if pod != number}

    def stir(self) -> None:
        """Let things happen, as they do between two steps."""
        for _ in range(self.random.randrange(8)):
            node = self.random.choice(NODES)
            happens: list[Callable[[], None]] = [
                partial(self.start, node),
                partial(self.start, node, daemon=True),
                self.collect,
            ]
            if self.pods and self.random.random() < 0.4:
                self.stop(self.random.choice(sorted(self.pods)))
            self.random.choice(happens)()
            self.check()

    def held(self) -> dict[str, list[str]]:
        """Return what a refresh brings into the lock: the blocks of each node in Calico's books."""
        found: dict[str, list[str]] = {node: [] for node in NODES}
        for block, node in sorted(self.affinity.items()):
            found[node].append(str(block))
        return found


def runbook_of(world: World) -> Runbook:
    """Return the runbook of the lock that a refresh gives."""
    made = plan("multi-pool", [pool("default", RANGE, size=SIZE)], world.held(), pinning="node")
    return calico(made, Site(made, TEMPLATES), Split(size=1))


def documents(step: Step) -> list[dict]:  # type: ignore[type-arg]
    """Return the objects that the commands of a step apply."""
    return [json.loads(found[1]) for command in step.commands if (found := re.search(r"'(\{.*\})'", command))]


def do(world: World, step: Step) -> None:  # noqa: C901, PLR0912 - a case for each step
    """Do what a step says."""
    if step.key == "freeze":
        (spec,) = (document["spec"] for document in documents(step))
        world.strict, world.auto = spec["strictAffinity"], spec["autoAllocateBlocks"]
    elif step.key == "restart-borrowers":
        for _ in range(100):
            wrong = [
                number
                for number, (node, address, _) in world.pods.items()
                if not _within(world.affinity, node, address)
            ]
            for number in wrong:
                node, _, daemon = world.pods[number]
                world.stop(number)
                world.start(node, daemon=daemon)
    elif step.key == "cordon":
        world.cordoned |= set(step.nodes)
    elif step.key == "uncordon":
        world.cordoned -= set(step.nodes)
    elif step.key == "reserve":
        for document in documents(step):
            world.reserved |= {parse_block(cidr) for cidr in document["spec"]["reservedCIDRs"]}
    elif step.key == "drain":
        for number, (node, _, daemon) in sorted(world.pods.items()):
            if node in step.nodes and not daemon:
                world.stop(number)
    elif step.key == "stop-pods":
        world.stopped |= set(step.nodes)
        for number, (node, _, _) in sorted(world.pods.items()):
            if node in step.nodes:
                world.stop(number)
    elif step.key == "seed":
        for document in documents(step):
            pools = document["spec"]["ipam"]["pools"]["allocated"]
            world.given[document["metadata"]["name"]] = [
                parse_block(cidr) for each in pools for cidr in each["cidrs"]
            ]
    elif step.key == "label":
        world.moved |= set(step.nodes)
        for node in step.nodes:
            world.agent(node)
    elif step.key == "reboot":
        world.stopped -= set(step.nodes)
        for number, (node, _, _) in sorted(world.pods.items()):
            if node in step.nodes:
                world.stop(number)
        for node in step.nodes:
            world.agent(node)


def _within(affinity: dict[Block, str], node: str, address: int) -> bool:
    return any(owner == node and block.first <= address <= block.last for block, owner in affinity.items())


def play(random: Random, *, without: frozenset[str] = frozenset()) -> World:
    """Play the whole runbook, without some steps; fail as soon as an address has two holders."""
    world = World(random)
    for _ in range(random.randrange(4, 20)):  # a cluster that has run for a while
        world.stir()
    frozen, *_ = runbook_of(world).phases
    played = [(step, world) for wave in frozen.waves for step in wave.steps]
    for step, _ in played:
        if step.key not in without:
            do(world, step)
        world.check()
        world.stir()
    for phase in runbook_of(world).phases[1:]:  # printed again, as the last step of the freeze says
        for wave in phase.waves:
            for step in wave.steps:
                if step.key not in without:
                    do(world, step)
                world.check()
                world.stir()
    return world


@settings(max_examples=depth.examples(150), deadline=None)
@given(st.integers(0, 1 << 32))
def test_at_no_step_an_address_has_two_holders(seed: int) -> None:
    world = play(Random(seed))  # noqa: S311 - a game
    assert world.moved == {node for node, blocks in world.given.items() if blocks} | (
        world.moved - world.given.keys()
    )
    assert not world.cordoned


@pytest.mark.parametrize(
    "without",
    [
        {"freeze"},
        {"freeze", "reserve"},
        {"restart-borrowers"},
        {"stop-pods", "reboot"},
        {"stop-pods"},
    ],
    ids=lambda keys: "-and-".join(sorted(keys)),
)
def test_without_a_step_an_address_has_two_holders(without: set[str]) -> None:
    """The game is hard enough: it finds what each of these steps is for."""
    with pytest.raises(AssertionError):
        _many(frozenset(without))


def _many(without: frozenset[str]) -> None:
    for seed in range(400):
        play(Random(seed), without=without)  # noqa: S311 - a game


def test_steps_stand_in_the_order_that_is_safe() -> None:
    """Reserved before it is empty, empty before the agent comes."""
    world = World(Random(1))  # noqa: S311 - a game
    for _ in range(20):
        world.stir()
    waves = runbook_of(world).phases[2].waves
    for wave in waves:
        keys = [step.key for step in wave.steps]
        order = ["cordon", "reserve", "drain", "stop-pods", "seed", "label", "reboot", "audit", "uncordon"]
        assert [key for key in keys if key in order] == order
