"""Which step comes next: drawn by chance, from what is there."""

from __future__ import annotations

import random
from collections.abc import Iterable
from ipaddress import ip_network

from tests.e2e.api import CILIUM_NODES, Object
from tests.e2e.soak.steps import EDITS
from tests.e2e.soak.world import World


def draw(world: World, chance: random.Random) -> str:
    """Draw the next step."""
    while True:
        verb = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if (words := _words(world, chance, verb)) is not None:
            return " ".join((verb, *words))


WEIGHTS = {
    "append": 4, "front": 2, "widen": 4, "shrink": 2, "split": 2, "reorder": 2, "remove": 1, "reserve": 5, "unreserve": 1,
    "disable": 2, "enable": 2, "prioritise": 1, "rename": 1, "label": 2, "nodes": 4, "refresh": 6, "apply": 14, "restart": 6,
    "kill": 3, "join": 10, "scale": 6, "leave": 4, "recreate": 3, "replace": 2, "lose": 1, "agent": 3, "ask": 6, "drop": 4,
    "heal": 3, "renumber": 3, "drain": 3, "settle": 3, "release": 1,
}  # fmt: skip


def words_of_edit(documents: Iterable[Object], chance: random.Random, verb: str) -> tuple[str, ...] | None:
    """Draw what an edit of a pool is about; None where there is nothing."""
    specs = {str(each["metadata"]["name"]): each["spec"] for each in documents if each["kind"] == "IPPool"}
    pools = {name: [str(cidr) for cidr in spec["ipv4"]["cidrs"]] for name, spec in specs.items()}
    pool = chance.choice(sorted(pools))
    match verb:
        case "append" | "front":
            return pool, _free(pools, pool)
        case "widen":
            wide = ip_network(pools[pool][0]).supernet()
            return (pool,) if wide.prefixlen > 20 and not _others(pools, pool, str(wide)) else None
        case "reserve":
            inside = [*ip_network(chance.choice(pools[pool])).subnets(new_prefix=chance.choice((26, 27, 28)))]
            return pool, str(chance.choice(inside))
        case "shrink" | "split" | "disable":
            return (pool,)
        case "reorder" | "remove":
            return (pool,) if len(pools[pool]) > 1 else None
        case "unreserve" | "enable":
            key = "reserved" if verb == "unreserve" else "disabled"
            having = sorted(name for name, spec in specs.items() if spec.get(key))
            return (chance.choice(having),) if having else None
        case "prioritise":
            return pool, str(chance.choice((-10, 0, 10)))
        case "rename":
            return pool, f"{pool.rstrip('x')}{'' if pool.endswith('x') else 'x'}"
    raise ValueError(verb)


def _words(world: World, chance: random.Random, verb: str) -> tuple[str, ...] | None:
    """Draw what a step is done to; None where there is nothing."""
    if verb in {edit.__name__ for edit in EDITS}:
        return words_of_edit(world.site.documents(), chance, verb)
    machines, mode = world.live.machines, world.mode
    listed = sorted(name for name, machine in machines.items() if machine.listed)
    match verb:
        case "label":
            return (chance.choice(listed), chance.choice("ab")) if listed else None
        case "nodes" | "refresh" | "apply" | "restart" | "kill":
            return ()
        case "join":
            return (_fresh(machines, "n"), chance.choice("aab")) if len(machines) < 10 else None
        case "scale":
            return (
                (_fresh(machines, "s"), chance.choice("ab")) if mode.adopts and len(machines) < 10 else None
            )
        case "leave" | "recreate":
            return (chance.choice(sorted(machines)),) if len(machines) > 2 else None
        case "replace":
            return (chance.choice(listed),) if listed else None
        case "lose" | "heal":
            held, shown = world.held(), world.live.shown()
            agrees = verb == "lose"
            names = [
                name
                for name in listed
                if name in held and shown.get(name) and (held[name] == shown[name]) == agrees
            ]
            return (chance.choice(names),) if names and mode.ipam in {"cluster-pool", "crd"} else None
        case "agent":
            return (chance.choice(sorted(machines)),) if machines else None
        case "ask" | "drop":
            return _multi_pool(world, chance, verb) if mode.multi_pool else None
        case "renumber" | "release":
            return (chance.choice(listed),) if listed and not mode.multi_pool else None
        case "drain" | "settle":
            pending = sorted(set(world.site.lock("pending")) & set(listed))
            ready = [name for name in pending if machines[name].drained == (verb == "settle")]
            return (chance.choice(ready),) if ready else None
    raise ValueError(verb)


def _multi_pool(world: World, chance: random.Random, verb: str) -> tuple[str] | None:
    several = {
        name: max(
            (len(each["cidrs"]) for each in node["spec"]["ipam"].get("pools", {}).get("allocated", ())),
            default=0,
        )
        for name, node in world.api.items(CILIUM_NODES).items()
        if name in world.live.machines
    }
    names = sorted(name for name, most in several.items() if (most > 1 if verb == "drop" else most < 3))
    return (chance.choice(names),) if names else None


def _fresh(taken: object, letter: str) -> str:
    return next(name for number in range(1, 100) if (name := f"{letter}{number}") not in taken)  # type: ignore[operator]


def _free(pools: dict[str, list[str]], pool: str) -> str:
    """Return the next range that no pool has, behind where the first one may be widened to."""
    base = {"d": 1, "s": 9 if pool.startswith("spare") else 2}[pool[0]]
    return next(
        cidr
        for number in range(16, 256)
        if (cidr := f"10.{base}.{number}.0/26") not in {each for some in pools.values() for each in some}
    )


def _others(pools: dict[str, list[str]], pool: str, wide: str) -> bool:
    ranges = [
        cidr for name, some in pools.items() for index, cidr in enumerate(some) if (name, index) != (pool, 0)
    ]
    return any(ip_network(wide).overlaps(ip_network(each)) for each in ranges)
