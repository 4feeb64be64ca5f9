"""A node about which the lock and the cluster disagree is disputed: it stops no other node, and `lock --adopt` ends it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ipamc.law.change import UNLAWFUL, Days, Verdict, changes
from ipamc.lock.file import parse
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Line
from ipamc.pipeline import Compilation
from tests.support import fleet

DAY = "2026-11-21"
LATER = "2026-11-22"
MODES = ("kubernetes", "cluster-pool", "multi-pool", "crd")
NAMES = [f"n{number}" for number in range(1, 6)]
Blocks = dict[str, list[str]]


class World:
    """Nodes n1 to n5 with a lock, of which the first of `planned` are to come, and what the cluster shows."""

    def __init__(self, mode: str, planned: Sequence[str] = (), nodes: Sequence[str] = NAMES) -> None:
        self.mode, self.planned = mode, planned
        spec: dict[str, Any] = {"ipam": {"pinning": "node"}} if mode == "multi-pool" else {}
        pool = fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/20"], "blockSize": 26})
        self.base = [fleet.cluster(mode, **spec), pool]
        self.lock = self.compiled(nodes).lock
        self.held = held(self.lock)

    def compiled(
        self,
        nodes: Sequence[str] = NAMES,
        shown: Blocks | None = None,
        *,
        lock: str | None = None,
        today: str = DAY,
        locked: bool = False,
        **consent: Any,
    ) -> Compilation:
        """Compile with CiliumNodes, or in kubernetes mode podCIDRs, that show blocks."""
        shown = shown or {}
        entries = [
            {"name": name, "uid": f"u{name}", **({"planned": True} if name in self.planned else {})}
            | ({"podCIDRs": shown[name]} if self.mode == "kubernetes" and name in shown else {})
            for name in nodes
        ]
        seen = [] if self.mode == "kubernetes" else [self.seen(*pair) for pair in shown.items()]
        sources = fleet.as_json([*self.base, fleet.inventory(entries), *seen])
        return fleet.compiled(sources, lock, today=today, locked=locked, **consent)

    def seen(self, name: str, blocks: Sequence[str]) -> fleet.Document:
        ipam: fleet.Document = {"podCIDRs": blocks}
        if self.mode == "multi-pool":
            ipam = {"pools": {"allocated": [{"pool": f"default.{name}", "cidrs": blocks}]}}
        return {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": name},
            "spec": {"ipam": ipam},
        }

    def as_held(self, *nodes: str) -> Blocks:
        return {name: self.held[name] for name in nodes}


def lines(lock: str) -> tuple[Line, ...]:
    found, wrong = parse(lock.encode(), "ipam.lock")
    assert found is not None
    assert not wrong
    return found.lines


def held(lock: str) -> Blocks:
    found: Blocks = {}
    for text in lock.splitlines()[1:]:
        line = json.loads(text)
        if line.keys() <= {"block", "pool", "node"}:
            found.setdefault(line["node"], []).append(line["block"])
    return found


def helps(refused: Refused, code: str) -> str:
    return "; ".join(each.help for each in refused.diagnostics if each.code == code)


def verdicts(before: str, after: str, today: str = DAY) -> set[Verdict]:
    found = changes(lines(before), lines(after), Days(today, 7, 7))
    assert not {each.verdict for each in found} & UNLAWFUL
    return {each.verdict for each in found if each.before or each.after}


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_drifted_stops_no_other_node(mode: str) -> None:
    world = World(mode)
    shown = {**world.as_held("n2", "n3"), "n1": ["10.1.9.0/26"]}
    nodes = [*NAMES, "n6"]
    found = world.compiled(nodes, shown, lock=world.lock)
    assert found.plan.disputed == {"n1"}
    assert held(found.lock) == {**world.held, "n6": held(found.lock)["n6"]}
    again = world.compiled(nodes, shown, lock=found.lock, locked=True)
    assert (again.lock, again.files) == (found.lock, found.files)
    adopted = world.compiled(nodes, shown, lock=found.lock, adopt=["n1"])
    assert not adopted.plan.disputed
    assert held(adopted.lock) == {**held(found.lock), "n1": ["10.1.9.0/26"]}
    assert verdicts(found.lock, adopted.lock) == {Verdict.GIVEN, Verdict.MOVED}
    assert not world.compiled(nodes, shown, lock=adopted.lock).plan.disputed


@pytest.mark.parametrize("mode", MODES)
def test_what_a_disputed_node_shows_is_taken(mode: str) -> None:
    world = World(mode)
    (free,) = held(world.compiled([*NAMES, "n6"], lock=world.lock).lock)["n6"]
    found = world.compiled([*NAMES, "n6"], {"n1": [free]}, lock=world.lock)
    assert found.plan.disputed == {"n1"}
    assert held(found.lock)["n6"] != [free]


@pytest.mark.parametrize("mode", MODES)
def test_the_block_of_a_planned_node_goes_to_the_node_that_has_it(mode: str) -> None:
    world = World(mode, planned=["n5"])
    shown = {"n1": world.held["n5"]}
    found = world.compiled(shown=shown, lock=world.lock)
    assert found.plan.disputed == {"n1", "n5"}
    assert found.lock == world.lock
    adopted = world.compiled(shown=shown, lock=found.lock, adopt=["n1"])
    assert held(adopted.lock)["n1"] == world.held["n5"]
    assert held(adopted.lock)["n5"] not in world.held.values()
    assert Verdict.ADOPTED in verdicts(found.lock, adopted.lock)


@pytest.mark.parametrize("mode", MODES)
def test_a_newcomer_with_the_block_of_a_planned_node_adopts_it_in_two_changes(mode: str) -> None:
    """The law lets no block go from a node to a new one at once: first the planned node moves."""
    world = World(mode, planned=["n5"])
    nodes, shown = [*NAMES, "new"], {"new": world.held["n5"]}
    found = world.compiled(nodes, shown, lock=world.lock)
    assert found.plan.disputed == {"new", "n5"}
    assert held(found.lock) == world.held
    first = world.compiled(nodes, shown, lock=found.lock, adopt=["new"])
    assert first.plan.disputed == {"new"}
    assert verdicts(found.lock, first.lock) == {Verdict.GIVEN, Verdict.MOVED}
    second = world.compiled(nodes, shown, lock=first.lock, adopt=["new"], today=LATER)
    assert not second.plan.disputed
    assert held(second.lock)["new"] == world.held["n5"]
    assert Verdict.ENDED_EARLY in verdicts(first.lock, second.lock, LATER)


@pytest.mark.parametrize("mode", MODES)
def test_a_block_in_quarantine_goes_to_the_node_that_has_it(mode: str) -> None:
    world = World(mode)
    without = world.compiled(NAMES[:4], lock=world.lock)
    shown = {"new": world.held["n5"]}
    found = world.compiled([*NAMES[:4], "new"], shown, lock=without.lock)
    assert found.plan.disputed == {"new"}
    adopted = world.compiled([*NAMES[:4], "new"], shown, lock=found.lock, adopt=["new"])
    assert held(adopted.lock)["new"] == world.held["n5"]
    assert verdicts(found.lock, adopted.lock) == {Verdict.ENDED_EARLY}


@pytest.mark.parametrize("mode", MODES)
def test_two_running_nodes_with_one_block_are_refused(mode: str) -> None:
    world = World(mode)
    for shown in (
        {"n1": world.held["n2"], "n2": world.held["n2"]},
        {"n1": ["10.1.9.0/26"], "n2": ["10.1.9.0/26"]},
    ):
        for adopt in ((), ("all",)):
            with pytest.raises(Refused) as refused:
                world.compiled(shown=shown, lock=world.lock, adopt=adopt)
            assert {each.code for each in refused.value.diagnostics} & {"IPC0423", "IPC0426"}


@pytest.mark.parametrize("mode", MODES)
def test_a_dump_of_another_cluster_is_refused(mode: str) -> None:
    """More disputed nodes than 3 and `budget.leave` percent."""
    world = World(mode)
    shown = {name: [f"10.1.{9 + number}.0/26"] for number, name in enumerate(NAMES[:4])}
    with pytest.raises(Refused) as refused:
        world.compiled(shown=shown, lock=world.lock)
    (found,) = [each for each in refused.value.diagnostics if each.code in {"IPC0503", "IPC0513"}]
    assert "ipamc lock fleet --adopt all" in found.help
    adopted = world.compiled(shown=shown, lock=world.lock, adopt=["all"])
    assert held(adopted.lock) == {**world.held, **shown}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_nodes_with_each_others_blocks_adopt_them_one_a_change(mode: str, number: int) -> None:
    """The law of a change exchanges no blocks: who adopts one leaves its own in quarantine, and the other gets a new one."""
    world = World(mode)
    names = NAMES[:number]
    shown = {name: world.held[other] for name, other in zip(names, [*names[1:], "n1"], strict=True)}
    if number < 4:
        assert world.compiled(shown=shown, lock=world.lock).plan.disputed == set(names)
    with pytest.raises(Refused) as refused:
        world.compiled(shown=shown, lock=world.lock, adopt=["n1"])
    assert f"first run: ipamc lock fleet --adopt {names[-2]} --adopt {names[-1]}" in helps(
        refused.value, "IPC0423"
    )
    lock = world.lock
    for _ in names:
        after = world.compiled(shown=shown, lock=lock, adopt=["all"]).lock
        verdicts(lock, after)
        assert held(after).keys() == world.held.keys()
        lock = after
    assert held(lock) == {**world.held, **shown}


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_is_adopted_from_its_end(mode: str) -> None:
    """n1 has the block of n2, which has another one: both adopt in one step."""
    world = World(mode)
    shown = {"n1": world.held["n2"], "n2": ["10.1.9.0/26"]}
    with pytest.raises(Refused) as refused:
        world.compiled(shown=shown, lock=world.lock, adopt=["n1"])
    assert "first run: ipamc lock fleet --adopt n1 --adopt n2" in helps(refused.value, "IPC0423")
    assert held(world.compiled(shown=shown, lock=world.lock, adopt=["n1", "n2"]).lock) == {
        **world.held,
        **shown,
    }


@pytest.mark.parametrize("mode", ["kubernetes", "cluster-pool"])
def test_a_node_with_two_blocks_adopts_none_where_the_mode_gives_one(mode: str) -> None:
    world = World(mode)
    shown = {"n1": [*world.held["n1"], "10.1.9.0/26"]}
    with pytest.raises(Refused) as refused:
        world.compiled(shown=shown, lock=world.lock, adopt=["n1"])
    assert "IPC0425" in {each.code for each in refused.value.diagnostics}
