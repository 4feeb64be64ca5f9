"""Random histories of one cluster: people edit, agree and wait, and every step is compiled and judged. What the live cluster shows: see `live`.

A step that is refused is not merged: the next one starts from where it did.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ipamc.law.change import UNLAWFUL, Days, Gate, changes
from ipamc.law.verify import verify
from ipamc.lock.consent import parse_consent
from ipamc.lock.file import dumps, load, parse
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.model.lock import Consent
from ipamc.model.plan import Plan
from tests.support.history import edits
from tests.support.history.checks import Row, Step, judge, judge_refusal, rows
from tests.support.history.edits import inside, pick
from tests.support.history.evidence import judge_evidence
from tests.support.history.model import (
    NODE_NAMES,
    POOL_NAMES,
    RACKS,
    Node,
    Pool,
    World,
    cell,
    compiled,
    published_pools,
    rendered_uids,
    tree,
)

some = st.integers(0, 63)
"""Which one, of however many there are; or where, in the window."""
few = st.sampled_from([1, 1, 2, 4])
rarely = st.sampled_from([False, False, False, False, True])
family = st.sampled_from([4, 6])
names = st.sampled_from(NODE_NAMES)
racks = st.sampled_from(RACKS)
sizes = st.sampled_from([27, 28, 28, 29])
widths = st.sampled_from([24, 25, 25, 26, 27])
pools = st.sampled_from(POOL_NAMES)
quarantines = st.sampled_from([7, 3, 2, 0, "never"])


def has(*states: str) -> Callable[[History], bool]:
    """Let a rule apply where the lock has lines of a state."""
    return lambda history: any(row.state in states for row in history.rows)


class History(RuleBasedStateMachine):
    """One cluster over time."""

    mode: ClassVar[str]
    steps: ClassVar[Counter[str]] = Counter()
    """How many steps were done, were refused, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.lock: str | None = None
        self.rows: list[Row] = []
        self.files: dict[str, str] = {}
        self.today = date(2026, 11, 21)
        self.waiting = 0
        self.reasons: list[Diagnostic] = []
        """Why the last step was refused."""
        self.disputed: list[str] = []
        """Nodes that were disputed at the last accepted step."""
        self.world = World(self.mode.replace("adopt", "cluster-pool"), [4])
        self.next = copy.deepcopy(self.world)

    # The step.

    def commit(self, consent: Consent | None = None) -> bool:
        """Compile what was edited and judge the outcome; without consent, maybe only together with the edits to come. Tell whether it was accepted."""
        self.reasons = []
        if consent is None and self.waiting:
            self.waiting -= 1
            self.steps["edits held back"] += 1
            return False
        self.waiting = 0
        if consent is None and self.lock is not None and self.next == self.world:
            return False  # nothing to do, as was seen when this was compiled last
        self.steps["steps"] += 1
        consent = consent or Consent()
        today = self.today.isoformat()
        self.next.published = published_pools(self.files)
        try:
            result = compiled(self.next, self.lock, self.files, today=today, consent=consent)
        except Refused as refused:
            judge_refusal(refused.diagnostics)
            self.steps["refused"] += 1
            self.reasons = [each for each in refused.diagnostics if each.severity.name == "ERROR"]
            self.steps.update({each.code for each in self.reasons})
            self.next = copy.deepcopy(self.world)
            return False
        step = Step.of(
            self.next,
            consent,
            self.today,
            self.lock,
            result.lock,
            rendered=rendered_uids(self.files),
            disputed=result.plan.disputed,
        )
        judge(step)
        judge_evidence(step)
        self.steps.update(step.events())
        self.steps.update(
            f"by {name}"
            for name in (
                "rename",
                "release",
                "renumber",
                "settle",
                "leave",
                "no_pods",
                "reshard",
                "adopt",
            )
            if getattr(consent, name)
        )
        self._is_canonical(result.lock, result.plan.cluster)
        self._a_plan_takes_it(result.plan, consent)
        base = tree(self.world, self.lock, self.files) if self.lock else {}
        found, _ = verify("clusters", base, tree(self.next, result.lock, result.files), today, [])
        assert consent.release or [str(each) for each in found] == []
        later = (self.today + timedelta(days=1000)).isoformat()
        again = compiled(self.next, result.lock, dict(result.files), today=later, locked=True)
        assert again.lock == result.lock
        assert again.files == result.files
        self.world, self.lock, self.rows, self.files = self.next, result.lock, step.after, dict(result.files)
        self.disputed = sorted(step.disputed)
        self.today += timedelta(days=1)
        self.next = copy.deepcopy(self.world)
        return True

    def restore(self, world: World, lock: str, files: dict[str, str]) -> None:
        """Go on from another state."""
        self.world, self.lock, self.rows, self.files = world, lock, rows(lock), files
        self.disputed = []
        self.next, self.waiting = copy.deepcopy(world), 0

    @staticmethod
    def _is_canonical(text: str, cluster: Any) -> None:
        lock, found = load(text.encode(), "ipam.lock", cluster, Consent(), rendered=True)
        assert found == []
        assert dumps(lock) == text

    def _a_plan_takes_it(self, plan: Plan, consent: Consent) -> None:
        """Nothing that a compile or a consent does is refused, and each gate is asked for what it is about."""
        before = parse(self.lock.encode(), "")[0] if self.lock else None
        if not before:
            return
        quarantine = self.world.spec.get("quarantineDays", 7)
        base, head = (
            None if days == "never" else days for days in (quarantine, plan.cluster.quarantine_days)
        )
        elsewhere = self.world.operators() & plan.operator_pools
        found = changes(before.lines, plan.lock.lines, Days(self.today.isoformat(), base, head), elsewhere)
        if not consent.release:  # it may free what its node has left in the same step: the plan wants two
            assert not [each for each in found if each.verdict in UNLAWFUL], found
        asked = {each.gate for each in found if each.gate} - {Gate.LEAVE}
        agreed = {Gate.FOLLOW} if elsewhere else set()
        agreed |= {Gate.RENUMBER, Gate.RELEASE} if consent.renumber else set()  # its pin may be what it left
        agreed |= {Gate.RENAME, Gate.RELEASE} if consent.rename else set()
        agreed |= {Gate.RELEASE} if consent.release else set()
        agreed |= {Gate.RENUMBER, Gate.RELEASE} if consent.adopt else set()
        assert asked <= agreed, (asked, found)

    def node(self, which: int) -> str | None:
        """Name a node of the inventory."""
        return pick(list(self.next.nodes), which)

    def pool(self, which: int) -> Pool | None:
        """Give a pool."""
        return pick(list(self.next.pools.values()), which)

    # The beginning.

    @initialize(
        families=st.sampled_from([[4], [6], [4, 6], [6, 4]]),
        options=st.tuples(rarely, rarely, rarely, st.integers(0, 2)),
        quarantine=quarantines,
        width=st.sampled_from([24, 25, 26, 26]),
        size=sizes,
        nodes=st.integers(0, 6),
    )
    def begin(
        self,
        families: list[int],
        options: tuple[bool, bool, bool, int],
        quarantine: int | str,
        width: int,
        size: int,
        nodes: int,
    ) -> None:
        hold, skip, patched, pinning = options
        spec: dict[str, Any] = {
            "quarantineDays": quarantine,
            "output": {"shardSize": 3, "nodeObjects": "create"},
        }
        spec |= {"unpooled": "hold"} if hold else {}
        spec |= {"unmatchedNodes": "skip"} if skip else {}
        if self.mode == "kubernetes" and patched:
            spec["patchNodes"] = "annotations"
        if self.mode == "multi-pool":
            spec["ipam"] = {"pinning": ("pool", "node", "none")[pinning]}
        self.next = World(self.world.mode, families, spec)
        self.next.pools["default"] = Pool({each: [cell(each, 0, width)] for each in families}, size)
        self.next.pools["p"] = Pool({each: [cell(each, 20, 26)] for each in families}, size, RACKS[0])
        if self.mode == "adopt":
            spec["ipam"] = {"operator": "adopt"}
            self.next.pools["t"] = Pool({each: [cell(each, 60, 26)] for each in families}, 29, unlisted=True)
            for number, name in enumerate(NODE_NAMES[-pinning:] if pinning else ()):
                self.next.nodes[name] = Node("x", live=True)
                self.next.show(name, [cell(each, 60 + number, 29) for each in families])
        if self.next.pinning == "node":
            self.next.pools["p"].rack = ""  # a pool is the first candidate of all its nodes, or of none
        for number in range(min(nodes, 1 << size - width)):
            self.next.nodes[NODE_NAMES[number]] = Node(RACKS[number % 3], live=number % 2 == 0)
        self.commit()

    # Nodes.

    @rule(first=some, count=few, rack=racks, large=rarely, planned=rarely, live=st.booleans())
    def nodes_join(
        self, first: int, count: int, rack: str, *, large: bool, planned: bool, live: bool
    ) -> None:
        for number in range(count):
            name = NODE_NAMES[(first + number * 3) % len(NODE_NAMES)]
            self.next.nodes.setdefault(
                name, Node(rack, large=large, planned=planned, live=live and not planned)
            )
        self.commit()

    @precondition(has("quarantined"))
    @rule(which=some, count=few, live=st.booleans())
    def nodes_return(self, which: int, count: int, *, live: bool) -> None:
        for number in range(count):
            if row := pick([row for row in self.rows if row.state == "quarantined"], which + number):
                self.next.nodes.setdefault(row.node, Node(RACKS[which % 3], live=live))
        self.commit()

    @precondition(lambda self: self.next.nodes)
    @rule(which=some, count=few, agreed=st.sampled_from(["nobody", "each", "all", "all", "a stranger"]))
    def nodes_leave(self, which: int, count: int, agreed: str) -> None:
        gone = set()
        for _ in range(count):
            if name := self.node(which):
                del self.next.nodes[name]
                gone.add(name)
        leave = {"nobody": set(), "each": gone, "all": {"all"}, "a stranger": {"stranger"}}[agreed]
        self.commit(Consent(leave=frozenset(leave)) if leave else None)

    @precondition(lambda self: self.next.nodes)
    @rule(which=some, kind=st.sampled_from(["rack", "size", "plan", "plan"]), rack=racks)
    def a_node_is_edited(self, which: int, kind: str, rack: str) -> None:
        if name := self.node(which):
            node = self.next.nodes[name]
            if kind == "rack":
                node.rack = rack
            elif kind == "size":
                node.large = not node.large
            elif node.to_come:
                node.live = True
            elif not node.pod_cidrs:
                node.planned, node.live = not node.planned, not node.live
        self.commit()

    @rule(which=some, new=names, gone=st.booleans())
    def a_node_is_replaced(self, which: int, new: str, *, gone: bool) -> None:
        """Let one take over from another, that leaves now or is gone; the new one may come later."""
        left = [row.node for row in self.rows if row.state == "quarantined"] if gone else []
        old = pick(left, which) or self.node(which)
        if old and old in self.next.nodes and new not in self.next.nodes:
            node = self.next.nodes.pop(old)
            self.next.nodes[new] = Node(node.rack, large=node.large, live=node.live)
        if old:
            self.commit(Consent(rename=((old, new),)))

    # Pools and the cluster.

    @rule(
        name=pools,
        where=some,
        width=widths,
        size=sizes,
        rack=racks,
        families=st.sampled_from([[4, 6], [4, 6], [4], [6]]),
    )
    def a_pool_comes_or_goes(
        self, name: str, where: int, width: int, size: int, rack: str, families: list[int]
    ) -> None:
        families = [each for each in families if each in self.next.families] or self.next.families
        if name in self.next.pools:
            edits.remove(self.next, name)
        else:
            self.next.pools[name] = Pool({each: [cell(each, where, width)] for each in families}, size, rack)
        self.commit()

    @rule(
        which=some,
        kind=st.sampled_from(["grows", "shrinks", "splits"]),
        family=family,
        where=some,
        width=widths,
        name=pools,
    )
    def ranges_change(self, which: int, kind: str, family: int, where: int, width: int, name: str) -> None:
        if pool := self.pool(which):
            if kind == "grows":
                edits.grow(pool, family, where, width)
            elif kind == "shrinks":
                edits.shrink(pool, family, where)
            else:
                edits.split(self.next, pool, family, name)
        self.commit()

    @rule(
        which=some,
        kind=st.sampled_from(["name", "off", "sizes", "rack", "priority", "several", "overflow", "overflow"]),
        name=pools,
        size=sizes,
        number=st.integers(0, 2),
    )
    def a_pool_is_edited(self, which: int, kind: str, name: str, size: int, number: int) -> None:
        if pool := self.pool(which):
            match kind:
                case "name":
                    edits.rename(self.next, list(self.next.pools)[which % len(self.next.pools)], name)
                case "off":
                    pool.disabled = not pool.disabled
                case "sizes":
                    pool.size, pool.large = size, (0, 26, 29)[number]
                case "rack":
                    pool.rack = ("", "x", "y")[number]
                case "priority":
                    pool.priority = number
                case "several":
                    pool.per_node = 1 + number % 2
                case "overflow":
                    pool.overflow = [] if pool.overflow else [name]
        self.commit()

    @rule(
        which=some,
        kind=st.sampled_from(["reserved", "excluded", "pin", "its own"]),
        node=names,
        family=family,
        where=some,
        agreed=rarely,
    )
    def addresses_are_kept_or_not(
        self, which: int, kind: str, node: str, family: int, where: int, *, agreed: bool
    ) -> None:
        """Reserve, exclude or pin some, also what a node has or had; with consent that what waits there is released."""
        pool = self.pool(which)
        if pool is None:
            return
        row = pick(self.rows, where)
        block = inside(pool, family, where, (27, 28, 28, 30)[where % 4])
        if kind in {"reserved", "excluded"}:
            edits.keep(self.next, pool, block, excluded=kind == "excluded")
        elif kind == "pin" or row is None:
            edits.pin(pool, node, block)
        else:
            edits.pin(self.next.pools.get(row.pool, pool), row.node, row.block)
        self.commit(parse_consent(release=[str(block)]) if agreed else None)

    @rule(
        kind=st.sampled_from(["families", "quarantine", "rules", "shards"]),
        families=st.sampled_from([[4], [6], [4, 6], [6, 4]]),
        quarantine=quarantines,
        hold=rarely,
        skip=rarely,
    )
    def the_cluster_is_edited(
        self, kind: str, families: list[int], quarantine: int | str, *, hold: bool, skip: bool
    ) -> None:
        if kind == "families":
            self.next.families = families
        elif kind == "quarantine":
            self.next.spec["quarantineDays"] = quarantine
        elif kind == "rules":
            self.next.spec |= {
                "unpooled": "hold" if hold else "refuse",
                "unmatchedNodes": "skip" if skip else "error",
            }
        self.commit(Consent(reshard=True) if kind == "shards" else None)

    # Consent.

    @precondition(has("held"))
    @rule(
        which=some,
        kind=st.sampled_from(["node", "node", "node", "block", "block", "wider", "pool", "typo"]),
        more=rarely,
    )
    def somebody_is_renumbered(self, which: int, kind: str, *, more: bool) -> None:
        live = [row for row in self.rows if row.state == "held"]
        targets = [
            _target(row, kind)
            for row in filter(None, [pick(live, which), pick(live, which + 1) if more else None])
        ]
        if targets:
            consent = parse_consent(renumber=targets)
            if self.commit(consent):  # asking again changes nothing for who waits
                before = self._on_the_move()
                self.commit(consent)
                assert before.items() <= self._on_the_move().items()

    @precondition(has("pending"))
    @rule(which=some, typo=rarely)
    def somebody_has_moved(self, which: int, *, typo: bool) -> None:
        if row := pick(self.rows if typo else [row for row in self.rows if row.state == "pending"], which):
            self.commit(Consent(settle=frozenset([row.node])))

    @precondition(has("quarantined", "pending"))
    @rule(which=some, kind=st.sampled_from(["node", "node", "block", "block", "wider", "typo"]), typo=rarely)
    def lines_are_released(self, which: int, kind: str, *, typo: bool) -> None:
        if row := pick(
            self.rows if typo else [row for row in self.rows if row.state in {"quarantined", "pending"}],
            which,
        ):
            self.commit(parse_consent(release=[_target(row, kind)]))

    # Time.

    @rule(days=st.sampled_from([2, 5, 6, 30]))
    def days_pass(self, days: int) -> None:
        self.today += timedelta(days=days)
        self.commit()

    @rule(edits=st.integers(1, 3))
    def several_things_are_edited_at_once(self, edits: int) -> None:
        self.waiting = edits

    def _on_the_move(self) -> dict[tuple[str, int, str], list[Row]]:
        """Return what is renumbered: the blocks that it has, and those that it waits for. What it left long ago others may be given meanwhile."""
        found: dict[tuple[str, int, str], list[Row]] = {}
        for row in self.rows:
            if row.state in {"held", "pending"}:
                found.setdefault(
                    (row.node, row.block.family, "" if self.world.one_block else row.pool), []
                ).append(row)
        return {group: mine for group, mine in found.items() if any(row.state == "pending" for row in mine)}

    def _nothing_new(self) -> None:
        """Forget edits that were held back: what the cluster shows is of what it was told."""
        self.next, self.waiting = copy.deepcopy(self.world), 0


def _target(row: Row, kind: str) -> str:
    wider = Block(row.block.family, row.block.first & -(row.block.size * 4), row.block.prefix - 2)
    return {
        "node": row.node,
        "block": str(row.block),
        "wider": str(wider),
        "pool": f"pool/{row.pool}",
        "typo": "nobody",
    }[kind]
