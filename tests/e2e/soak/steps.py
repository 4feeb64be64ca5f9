"""The steps of a history: each is a line of text, a verb and what it is done to."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from ipaddress import IPv4Network, ip_network
from typing import Protocol

from tests.e2e.api import CILIUM_NODES, NODES, Object
from tests.e2e.soak.world import BrokenPromiseError, World, wait

Step = Callable[..., object]


def do(world: World, line: str) -> None:
    """Do one step, and check what has to hold."""
    verb, *words = line.split()
    STEPS[verb](world, *words)
    world.check()


# Edits of the inputs. Each is compiled, and undone if that is refused.


class Editor(Protocol):
    """Who changes each input document where it stands."""

    def edit(self, change: Callable[[Object], object]) -> object:
        """Edit the inputs."""


def _pool(site: Editor, name: str, change: Callable[[Object], object]) -> None:
    def in_its_pool(each: Object) -> None:
        if each["kind"] == "IPPool" and each["metadata"]["name"] == name:
            change(each)

    site.edit(in_its_pool)


def _spec(site: Editor, name: str, change: Callable[[Object], object]) -> None:
    _pool(site, name, lambda each: change(each["spec"]))


def _ranges(site: Editor, name: str, change: Callable[[list[str]], object]) -> None:
    _spec(site, name, lambda spec: change(spec["ipv4"]["cidrs"]))


def append(site: Editor, pool: str, cidr: str) -> None:
    """Write one more range behind the others."""
    _ranges(site, pool, lambda cidrs: cidrs.append(cidr))


def front(site: Editor, pool: str, cidr: str) -> None:
    """Write one more range in front of the others."""
    _ranges(site, pool, lambda cidrs: cidrs.insert(0, cidr))


def widen(site: Editor, pool: str) -> None:
    """Double the first range."""
    _ranges(site, pool, lambda cidrs: cidrs.__setitem__(0, str(ip_network(cidrs[0]).supernet())))


def shrink(site: Editor, pool: str) -> None:
    """Halve the first range."""
    _ranges(site, pool, lambda cidrs: cidrs.__setitem__(0, str(next(IPv4Network(cidrs[0]).subnets()))))


def split(site: Editor, pool: str) -> None:
    """Write the first range as its two halves."""
    _ranges(
        site, pool, lambda cidrs: cidrs.__setitem__(slice(0, 1), map(str, IPv4Network(cidrs[0]).subnets()))
    )


def reorder(site: Editor, pool: str) -> None:
    """Write the ranges in the opposite order."""
    _ranges(site, pool, lambda cidrs: cidrs.reverse())


def remove(site: Editor, pool: str) -> None:
    """Take the last range away."""
    _ranges(site, pool, lambda cidrs: cidrs.pop() if len(cidrs) > 1 else None)


def reserve(site: Editor, pool: str, cidr: str) -> None:
    """Reserve a part of the pool."""
    _spec(site, pool, lambda spec: spec.setdefault("reserved", []).append(cidr))


def unreserve(site: Editor, pool: str) -> None:
    """Reserve nothing any more."""
    _spec(site, pool, lambda spec: spec.pop("reserved", None))


def disable(site: Editor, pool: str) -> None:
    """Let the pool serve nobody new."""
    _spec(site, pool, lambda spec: spec.update(disabled=True))


def enable(site: Editor, pool: str) -> None:
    """Let the pool serve newcomers again."""
    _spec(site, pool, lambda spec: spec.pop("disabled", None))


def prioritise(site: Editor, pool: str, priority: str) -> None:
    """Let the pool come earlier or later."""
    _spec(site, pool, lambda spec: spec.update(priority=int(priority)))


def rename(site: Editor, pool: str, name: str) -> None:
    """Call the pool something else."""
    _pool(site, pool, lambda each: each["metadata"].update(name=name))


# The inventory.


def label(world: World, node: str, rack: str) -> None:
    """Move a node to another rack, by its label, and export the nodes."""
    world.api.change(f"{NODES}/{node}", lambda whole: whole["metadata"]["labels"].update(rack=rack))
    nodes(world)


def nodes(world: World) -> None:
    """Export the Nodes, but no CiliumNodes, and compile."""
    before = world.texts()
    world.export(cilium_nodes=False)
    world.compiled_or_undone(before)


def refresh(world: World) -> None:
    """Export Nodes and CiliumNodes, and compile: what the lock holds is then what the nodes that were listed have."""
    before = world.texts()
    world.export()
    if world.compiled_or_undone(before):
        _lock_is_true(world)


def mend(world: World) -> None:
    """Come to an end: export all, take what disputed nodes show, else do what IPC0513 says, and apply. The way out must lead out."""
    for attempt in ("as it is", "healed"):
        before = world.texts()
        world.export()
        done = world.compiled_or_undone(before)
        if done and _DISPUTED(world.site.said):
            world.tried("lock", world.site.name, "--adopt", "all")
            done = world.compiled_or_undone(world.texts()) and not _DISPUTED(world.site.said)
            world.refusal = world.site.said.replace("warning[IPC0513]", "error[IPC0513]")
        if done:
            _lock_is_true(world)
            world.apply()
            return
        codes = set(re.findall(r"^error\[(IPC\d{4})\]", why := world.refusal, re.MULTILINE))
        if codes <= FULL:
            return
        if attempt == "healed" or "IPC0513" not in codes:
            raise BrokenPromiseError(f"no way leads out of this:\n{why}")
        held, shown = world.held(), world.live.shown()
        for name in sorted(name for name, machine in world.live.machines.items() if machine.listed):
            if name in held and shown.get(name) and held[name] != shown[name]:
                heal(world, name)
                world.check()


FULL = {"IPC0302", "IPC0303"}
"""A pool is disabled, or full: the edit before has to be undone."""


_DISPUTED = re.compile(r"^warning\[IPC0(?:423|503|506|513)\].*", re.MULTILINE).findall


def _lock_is_true(world: World) -> None:
    held, shown = world.held(), world.live.shown()
    for name, machine in world.live.machines.items():
        if any(re.search(rf"\b{re.escape(name)}\b", line) for line in _DISPUTED(world.site.said)):
            continue
        if machine.listed and not machine.drained and shown.get(name) and held.get(name) != shown[name]:
            raise BrokenPromiseError(
                f"{name} has {sorted(shown[name])}, the lock holds {sorted(held.get(name, ()))}, "
                f"and a compile with its CiliumNode has nothing to say:\n{world.site.said}"
            )


# Applies, and the operator.


def apply(world: World) -> None:
    """Apply what was rendered."""
    world.apply()


def restart(world: World) -> None:
    """Let the operator restart."""
    world.restart_operator(signal.SIGTERM)


def kill(world: World) -> None:
    """Kill the operator; another one takes over."""
    world.restart_operator(signal.SIGKILL)


# Nodes.


def join(world: World, node: str, rack: str) -> None:
    """Let a node join that will be in the next export."""
    world.live.is_registered(node, rack)
    world.live.agent_starts(node)


def scale(world: World, node: str, rack: str) -> None:
    """Let an autoscaler's node join: nobody lists it."""
    world.live.is_registered(node, rack, listed=False)
    world.live.agent_starts(node)


def leave(world: World, node: str) -> None:
    """Delete a Node with its machine."""
    world.live.is_deleted(node)


def recreate(world: World, node: str) -> None:
    """Delete a Node with its machine, and let one of the same name join before anybody applies."""
    machine = world.live.machines[node]
    rack = world.api.get(f"{NODES}/{node}")["metadata"]["labels"]["rack"]
    world.live.is_deleted(node)
    world.live.is_registered(node, rack, listed=machine.listed)
    world.live.agent_starts(node)


def replace(world: World, node: str) -> None:
    """Delete a Node with its machine, apply, and let one of the same name join."""
    machine = world.live.machines[node]
    rack = world.api.get(f"{NODES}/{node}")["metadata"]["labels"]["rack"]
    world.live.is_deleted(node)
    world.apply()
    world.live.is_registered(node, rack, listed=machine.listed)
    world.live.agent_starts(node)


def lose(world: World, node: str) -> None:
    """Delete the CiliumNode of a node that runs, and apply at once."""
    world.api.delete(f"{CILIUM_NODES}/{node}")
    world.apply()


def heal(world: World, node: str) -> None:
    """Do as IPC0513 says where a CiliumNode has another block than the lock: drain the node, delete its CiliumNode, apply, restart its agent."""
    drain(world, node)
    world.api.delete(f"{CILIUM_NODES}/{node}")
    world.apply()
    agent(world, node)


def agent(world: World, node: str) -> None:
    """Let an agent restart: it comes up with the block that its objects show."""
    machine = world.live.machines[node]
    shown = world.live.shown().get(node, frozenset())
    if world.mode.one_block and machine.used and not machine.drained and shown != machine.used:
        raise BrokenPromiseError(
            f"the agent of {node} comes up with {sorted(shown)}; its pods use {sorted(machine.used)}"
        )
    if machine.drained:
        machine.used = frozenset()
    world.live.agent_starts(node)


def ask(world: World, node: str) -> None:
    """Let an agent need one address more than it has."""
    before = world.live.shown().get(node)
    world.live.asks_for_more(node)
    wait(lambda: world.live.shown().get(node) != before)


def drop(world: World, node: str) -> None:
    """Let an agent give back the last of its blocks."""
    world.live.drops(node)


# Renumbering.


def renumber(world: World, node: str) -> None:
    """Agree that a node moves: it gets a pending block."""
    if world.tried("lock", world.site.name, "--renumber", node):
        world.must("compile", world.site.name)


def drain(world: World, node: str) -> None:
    """Let the pods of a node go."""
    machine = world.live.machines[node]
    machine.drained, machine.used = True, frozenset()


def settle(world: World, node: str) -> None:
    """Let the pending block of a drained node be the held one."""
    if world.tried("lock", world.site.name, "--settle", node):
        world.must("compile", world.site.name)


def release(world: World, node: str) -> None:
    """Free what is quarantined or pending of a node."""
    if world.tried("lock", world.site.name, "--release", node):
        world.must("compile", world.site.name)


EDITS = (
    append, front, widen, shrink, split, reorder, remove, reserve, unreserve, disable, enable, prioritise, rename
)  # fmt: skip
_EVENTS = (
    label, nodes, refresh, apply, restart, kill, join, scale, leave, recreate, replace, lose, heal, agent, ask, drop,
    renumber, drain, settle, release, mend,
)  # fmt: skip
STEPS: dict[str, Step] = {step.__name__: step for step in (*EDITS, *_EVENTS)}
