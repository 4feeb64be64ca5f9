"""The laws of a history: what must hold after a step, derived from the lock's text before and after, and from what the compiler was given.

They are written from the rules of the lock, and use nothing of the stages that they judge.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from ipamc.lock.file import dumps, parse
from ipamc.lock.merge import Merged
from ipamc.model.cidr import Block, CidrError, parse_block
from ipamc.model.diagnostics import Diagnostic, Severity, Span
from ipamc.model.lock import Consent
from tests.support.history.model import World

LineKey = tuple[str, int, str]


class Row(NamedTuple):
    """One line of a lock."""

    block: Block
    pool: str
    node: str
    state: str
    """held, pending, quarantined or released."""
    since: str = ""
    moved: bool = False
    was_pending: bool = False


def rows(lock: str | None) -> list[Row]:
    """Read the lines of a lock, in its order."""
    return [_row(json.loads(line)) for line in (lock or "").splitlines()[1:]]


def _row(record: dict[str, object]) -> Row:
    state = next((word for word in ("released", "quarantined", "pending") if word in record), "held")
    block, pool, node, since = (str(record.get(key, "")) for key in ("block", "pool", "node", "quarantined"))
    return Row(
        parse_block(block),
        pool,
        node,
        state,
        since,
        "moved" in record,
        state == "quarantined" and "pending" in record,
    )


@dataclass
class Step:
    """A compile that was accepted."""

    world: World
    consent: Consent
    today: date
    before: list[Row]
    """Lines with the names and states that the consent gave them, before anything else happened."""
    after: list[Row]
    freed: set[Block]
    """Lines that the consent released."""
    rendered: Mapping[str, str] = field(default_factory=dict)
    """The uid that each Node was rendered with before, by name."""
    disputed: frozenset[str] = frozenset()
    """Names of the nodes about which lock and cluster disagree."""

    @classmethod
    def of(
        cls,
        world: World,
        consent: Consent,
        today: date,
        before: str | None,
        after: str,
        rendered: Mapping[str, str],
        disputed: frozenset[str],
    ) -> Step:
        """Compare two locks."""
        agreed = rows(before)
        for old, new in consent.rename:
            agreed = [
                row._replace(node=new) if row.node == old and row.state != "released" else row
                for row in agreed
            ]
        freed = {
            row.block
            for row in agreed
            if row.state in {"pending", "quarantined"}
            and any(_meant(row, scope.text) for scope in consent.release)
        }
        agreed = [
            Row(row.block, row.pool, row.node, "released") if row.block in freed else row for row in agreed
        ]
        return cls(world, consent, today, agreed, rows(after), freed, rendered, disputed)

    def events(self) -> Iterator[str]:
        """Tell what became of the lines that changed: `held > quarantined`, `released > gone`, `none > held`."""
        now, was = {row.block: row for row in self.after}, {row.block: row for row in self.before}
        for row in self.before:
            after = now.get(row.block)
            went = after.state if after and after.node == row.node else "gone"
            if went != row.state:
                yield f"{row.state} > {went}"
        for row in self.after:
            if row.block not in was or was[row.block].node != row.node:
                yield f"none > {row.state}"

    def group(self, row: Row) -> LineKey:
        """Return what is renumbered together with a row."""
        return (
            row.node,
            row.block.family,
            "" if self.world.one_block else self.world.owner(row.block) or row.pool,
        )

    def waited(self, left: str) -> bool:
        """Tell whether the addresses of a line that left on a day may be given out again."""
        days = self.world.spec.get("quarantineDays", 7)
        return isinstance(days, int) and date.fromisoformat(left) + timedelta(days=days) <= self.today

    def owned(self, node: str, block: Block) -> bool:
        """Tell whether a node shows a block, or is pinned to it: then its own old lines are no obstacle."""
        return self.shows(node, block) or any(
            block in pool.pins.get(node, ()) for pool in self.world.pools.values()
        )

    def shows(self, node: str, block: Block) -> bool:
        """Tell whether a node shows a block, or single addresses of it."""
        single = self.world.addresses.get(node, ())
        return block in self.world.shown(node) or any(map(block.contains, single))

    def overtaken(self, row: Row) -> bool:
        """Tell whether the operator gave addresses of a line to another node, and the line's own node does not show its block."""
        ours = self.world.operators()
        return row.state != "released" and any(
            block.overlaps(row.block) and node != row.node and self.world.owner(block) in ours
            for node, block in ([] if row.block in self.world.shown(row.node) else self.world.evidence())
        )

    def taken_back(self, row: Row) -> bool:
        """Tell whether the operator no longer gives its node the block of a line: the node shows others in its place."""
        world = self.world
        if row.node not in world.nodes or (world.owner(row.block) or row.pool) not in world.operators():
            return False
        others = (
            [block for block in world.shown(row.node) if block.family == row.block.family]
            if world.one_block
            else world.given(row.node)
        )
        return bool(others) and row.block not in others

    def adopted(self, row: Row) -> bool:
        """Tell whether by consent its node holds what it shows instead of a line, or another node shows its addresses and holds them."""
        return any(
            (node == row.node and block.family == row.block.family and not self.shows(node, row.block))
            or (node != row.node and block.overlaps(row.block))
            for node, block in (self.world.evidence() if self.consent.adopt else ())
            if self.consent.adopts(node)
        )

    def coming(self, node: str) -> set[Block]:
        """Return the blocks that a node is to move to; also if it was gone in the meantime."""
        return {
            row.block
            for row in self.before
            if row.node == node and (row.state == "pending" or row.was_pending)
        }

    def orphaned(self, row: Row) -> bool:
        """Tell whether a node has nothing to move from to a pending block: the operator decided otherwise."""
        held = [each for each in self.before if each.state == "held" and self.group(each) == self.group(row)]
        return row.state == "pending" and all(self.overtaken(each) or self.taken_back(each) for each in held)

    def arrived(self, node: str, coming: Iterable[Block]) -> bool:
        """Tell whether a node is where it is to move to."""
        known = self.world.nodes[node]
        annotated = self.world.spec.get("patchNodes") == "annotations"
        created_again = (
            self.world.mode == "kubernetes"
            and not annotated
            and known.live
            and not known.pod_cidrs
            and node in self._created_again()
        )
        return (
            node in self.consent.settle
            or (known.to_come and not self.world.shown(node) and not self.world.addresses.get(node))
            or created_again
            or all(self.shows(node, block) for block in coming)
        )

    def _created_again(self) -> set[str]:
        """Name the nodes that have another uid than the one that was rendered; none if so many have that it is another cluster's inventory."""
        nodes = self.world.nodes
        found = {
            name
            for name, uid in self.rendered.items()
            if name in nodes and nodes[name].live and nodes[name].uid(name) != uid
        }
        return found if len(found) <= max(3, len(self.rendered) // 2) else set()

    def renumbered(self, row: Row) -> bool:
        """Tell whether somebody agreed to give the node of a held line another block in its place."""
        pool = self.world.owner(row.block) or row.pool  # of a range that is gone, the name that the line has
        return any(
            scope.text in {row.node, f"pool/{pool}"} or _meant(row, scope.text)
            for scope in self.consent.renumber
        )


def _meant(row: Row, target: str) -> bool:
    try:
        return parse_block(target, pods=False).overlaps(row.block)
    except CidrError:
        return row.node == target


def judge(step: Step) -> None:
    """Assert every law of an accepted step."""
    no_address_has_two_owners(step)
    lines_change_as_they_may(step)
    new_lines_lie_where_they_may(step)
    everybody_has_what_the_pools_owe(step)
    held_lines_are_legal(step)
    who_returns_gets_what_was_left(step)
    what_arrived_is_settled(step)
    next_lines_stand_beside_live_ones(step)
    pools_follow_their_ranges(step)
    few_leave_without_consent(step)


def no_address_has_two_owners(step: Step) -> None:
    for one, other in pairwise(sorted(row.block for row in step.after)):
        assert not one.overlaps(other), f"{one} overlaps {other}"


def lines_change_as_they_may(step: Step) -> None:
    """A line goes on in a state that follows from its last one; or it went, and its addresses were free to be given out again."""
    now = {row.block: row for row in step.after}
    for row in step.before:
        after = now.get(row.block)
        if after is None or after.node != row.node or not _follows(row, after, step):
            over = [each for each in step.after if each.block.overlaps(row.block)]
            assert over, f"{row} vanished"
            assert _given_up(row, over, step), f"{row} became {over}"


def _follows(row: Row, after: Row, step: Step) -> bool:
    """Tell whether a state follows from another."""
    here = row.node in step.world.nodes
    today = step.today.isoformat()
    if after.state == "released" and (
        step.overtaken(row)
        or step.orphaned(row)
        or step.adopted(row)
        or (row.state != "pending" and step.taken_back(row))
    ):
        return True
    if step.overtaken(row):
        return False
    came, went = (row.state, row.moved, row.was_pending), (after.state, after.moved, after.was_pending)
    if step.adopted(row) and after.moved and here:
        return after.since == today or row.moved
    match came, went:
        case ("held" | "pending" | "released" as state, _, _), (same, _, _) if state == same:
            return row.state == "released" or here
        case ("quarantined", _, _), ("quarantined", _, _) if came == went:
            return row.since == after.since
        case ("held", _, _), ("quarantined", False, False):
            return not here and after.since == today
        case ("held", _, _) | ("quarantined", False, False), ("quarantined", True, False):
            return here and after.since == today and _replaced(row, step)
        case ("pending", _, _) | ("quarantined", False, True), ("held", _, _):
            given = row.block in step.world.given(row.node)
            return here and (given or step.arrived(row.node, step.coming(row.node)))
        case ("pending", _, _), ("quarantined", False, True):
            return not here and after.since == today
        case ("quarantined", False, False), ("held", _, _):
            return here
        case ("quarantined", False, True), ("pending", _, _):
            return here
    return False


def _replaced(row: Row, step: Step) -> bool:
    """Tell whether a held line was given up for another, and rightly."""
    mine = [each for each in step.after if each.state == "held" and step.group(each) == step.group(row)]
    coming = step.coming(row.node)
    new = [each for each in mine if each.block in coming or step.renumbered(row)]
    return bool(new) and step.arrived(row.node, coming or [each.block for each in new])


def _given_up(row: Row, over: list[Row], step: Step) -> bool:
    """Tell whether the addresses of a line could be given out again."""
    left = row.since
    if step.overtaken(row) or step.orphaned(row) or (row.state != "pending" and step.taken_back(row)):
        return True
    if step.adopted(row):
        return True
    if row.state in {"held", "pending"}:
        if row.node in step.world.nodes and not (row.state == "held" and _replaced(row, step)):
            return False
        left = step.today.isoformat()
    return (
        row.state == "released"
        or step.waited(left)
        or all(each.node == row.node and step.owned(each.node, each.block) for each in over)
    )


def _new(step: Step) -> Iterator[Row]:
    """Yield lines that are not those of before in another state."""
    was = {row.block: row for row in step.before}
    for row in step.after:
        before = was.get(row.block)
        if before is None or before.node != row.node or not _follows(before, row, step):
            yield row


def new_lines_lie_where_they_may(step: Step) -> None:
    """Outside what is reserved, excluded, pinned for others, or a stranger's; in a pool that serves the node; of the size that it gives."""
    world = step.world
    kept = [*world.excluded, *(each for pool in world.pools.values() for each in pool.reserved)]
    kept += [block for name in world.cilium_nodes if name not in world.nodes for block in world.shown(name)]
    busy = {(row.node, row.block.family) for row in step.before if row.state in {"held", "pending"}}
    for row in _new(step):
        assert row.state in {"held", "pending"} or row.moved, row
        assert row.node in world.nodes, row
        if step.shows(row.node, row.block) and (
            (row.node, row.block.family) not in busy
            or row.block in world.given(row.node)
            or step.consent.adopts(row.node)
            or any(map(step.taken_back, _mine(step, row)))
        ):
            continue  # adopted: it is there, whatever we think of it
        assert row.block.family in world.families, row
        assert not any(each.overlaps(row.block) for each in kept), row
        pins = {
            block: node for pool in world.pools.values() for node, some in pool.pins.items() for block in some
        }
        assert all(node == row.node for block, node in pins.items() if block.overlaps(row.block)), row
        pool = world.pools[world.owner(row.block)]
        if row.block not in pool.pins.get(row.node, ()):
            assert row.pool in world.servers(row.node, row.block.family), row
            assert pool.open, row
            assert row.block.prefix == pool.prefix(world.nodes[row.node], row.block.family), row
        held = [
            each
            for each in (*step.before, *_came(step))
            if each.state == "held" and each.block != row.block and not step.overtaken(each)
        ]
        was = [each for each in held if step.group(each) == step.group(row)]
        if row.state == "pending" or (was and world.one_block):
            assert any(map(step.renumbered, was)), row


def _mine(step: Step, row: Row) -> list[Row]:
    """Return the lines that the node of a row had before, of its family."""
    return [each for each in step.before if (each.node, each.block.family) == (row.node, row.block.family)]


def _came(step: Step) -> Iterator[Row]:
    """Yield lines that return or are adopted, as they were before anything was renumbered: a consent for their node or pool means them too."""
    was = {row.block: row for row in step.before}
    for row in step.after:
        before = was.get(row.block)
        if before is None or before.node != row.node or before.state == "released":
            came = step.shows(row.node, row.block)
        else:
            came = before.state == "quarantined" and not (before.moved or before.was_pending)
        if came and (row.state == "held" or row.moved):
            yield row._replace(state="held", since="", moved=False)


def everybody_has_what_the_pools_owe(step: Step) -> None:
    """One block of each family; or as many of each pool as it owes, and none too many."""
    world = step.world
    live = Counter((row.node, row.block.family) for row in step.after if row.state == "held")
    if world.one_block:
        assert not live or max(live.values()) == 1, live
        for node in world.nodes.keys() - step.disputed:
            missing = [family for family in world.families if not live[node, family]]
            partly = len(missing) < len(world.families)
            assert not missing or (
                world.spec.get("unmatchedNodes") == "skip"
                and not partly
                and not any(world.pools[name].open for name in world.candidates(node))
            ), node
        return
    held = Counter(step.group(row) for row in step.after if row.state == "held")
    moving = {step.group(row) for row in step.after if row.state == "pending"}
    placed = {
        step.group(row) for row in _new(step) if row.state == "held" and not step.shows(row.node, row.block)
    }
    ours = world.operators()
    for node in world.nodes.keys() - step.disputed:
        for name in world.candidates(node):
            if name in ours and world.given(node):
                continue  # it has what the operator gave it: see lines_follow_the_operator
            pool = world.pools[name]
            for family in world.families:
                group = node, family, name
                if pool.ranges.get(family) and group not in moving:
                    assert held[group] >= pool.needed(node, family), group
                    assert group not in placed or held[group] == pool.needed(node, family), group


def held_lines_are_legal(step: Step) -> None:
    """Hold them inside a range, outside what is excluded, of a family of the cluster; unless the node is to move away from them."""
    moving = {step.group(row) for row in step.after if row.state == "pending"}
    for row in step.after:
        if row.state in {"held", "pending"} and not step.world.legal(row.block):
            on_hold = step.world.spec.get("unpooled") == "hold" and not step.world.owner(row.block)
            assert row.state == "held", row
            assert on_hold or step.group(row) in moving, row


def who_returns_gets_what_was_left(step: Step) -> None:
    now = {row.block: row for row in step.after}
    busy = {(row.node, row.block.family) for row in step.before if row.state == "held"}
    for node in step.world.nodes.keys() - step.disputed:
        for family in step.world.families:
            mine = [row for row in step.before if (row.node, row.block.family) == (node, family)]
            coming = [
                row
                for row in mine
                if row.state == "quarantined"
                and not row.moved
                and not row.was_pending
                and step.world.legal(row.block)
                and not step.overtaken(row)
                and not step.taken_back(row)
            ]
            # A node that the operator served while it was away keeps what it runs with.
            served = any(block.family == family for block in step.world.given(node))
            if coming and not (step.world.one_block and served) and (node, family) not in busy:
                back = [
                    row
                    for row in coming
                    if (
                        now[row.block].node == node
                        and (now[row.block].state == "held" or now[row.block].moved)
                    )
                    # It came back, was replaced at once, and no day of quarantine keeps it from others.
                    or (step.waited(step.today.isoformat()) and _replaced(row, step))
                ]
                followed = [row for row in mine if row.state == "quarantined" and step.taken_back(row)]
                if step.world.one_block and followed:
                    continue  # it was to get this one back, and has another one of the operator
                assert len(back) == (1 if step.world.one_block else len(coming)), coming


def what_arrived_is_settled(step: Step) -> None:
    now = {row.block: row for row in step.after}
    for node in step.world.nodes.keys() - step.disputed:
        coming = {
            row.block
            for row in step.before
            if row.node == node and row.state == "pending" and not step.overtaken(row)
            # In a pool of the operator's, what the CiliumNode shows decides, and not a consent.
            if step.world.one_block or row.pool not in step.world.operators()
        }
        if coming and step.arrived(node, coming):
            assert all((now[block].state, now[block].node) == ("held", node) for block in coming), coming


def next_lines_stand_beside_live_ones(step: Step) -> None:
    live = {step.group(row) for row in step.after if row.state == "held"}
    for row in step.after:
        kept = row.node in step.disputed  # as it was, also if its range is another pool's now
        assert kept or row.state != "pending" or step.group(row) in live, row


def pools_follow_their_ranges(step: Step) -> None:
    """A line has the name of the pool whose range contains it; where there is none, the last one, or none if it is held all the same."""
    was = {row.block: row.pool for row in step.before}
    for row in step.after:
        owner = step.world.owner(row.block)
        assert row.pool == owner or (not owner and row.pool in {was.get(row.block), ""}), row


def few_leave_without_consent(step: Step) -> None:
    if "all" in step.consent.leave:
        return
    live = {row.node for row in step.before if row.state == "held" and not step.overtaken(row)}
    gone = live - step.world.nodes.keys() - step.consent.leave
    assert len(gone) <= min(max(3, len(live) * 5 // 100), len(live) // 2), gone
    assert not gone or step.world.nodes


def judge_merge(base: str, ours: str, theirs: str, trunk: str, merged: Merged, *, one_block: bool) -> None:
    """Assert what holds for a merge of two locks before anything is compiled."""
    lock, found = parse(merged.text, "merged")
    assert bool(found) == bool(merged.conflicts), "a conflict, and yet a lock; or none, and no lock"
    if lock is None or found:
        return
    text = merged.text.decode()
    assert dumps(lock) == text
    if theirs in {base, ours} or ours == base:  # where git asks no driver
        assert text == (theirs if ours == base else ours)
        return
    now = {row.block: row for row in rows(text)}
    was, one, two, main = ({row.block: row for row in rows(each)} for each in (base, ours, theirs, trunk))
    dropped = {(each.line.block, each.line.node) for each in merged.dropped}
    for row in (*was.values(), *one.values(), *two.values()):
        new = row.block not in was and (row.block, row.node) in dropped
        assert new or any(each.overlaps(row.block) for each in now), f"{row} vanished"
    gave_way = {each.line.node for each in merged.dropped}
    live = Counter((row.node, row.block.family) for row in now.values() if row.state == "held")
    assert not one_block or max(live.values(), default=1) == 1, live
    for block in one.keys() & two.keys():
        mine, other, before = one[block], two[block], was.get(block)
        changed = other if before == mine else mine
        if mine == other:
            assert now.get(block) == mine, f"both have {mine}"
        elif before in {mine, other} and changed.state == "held" and changed.node not in gave_way:
            assert _is_live(now.get(block), changed.node) or live[changed.node, block.family], (
                f"{before} became {changed}, and is {now.get(block)}"
            )
    for side, across in ((one, two), (two, one)):
        for block, row in side.items():  # what the trunk gave out since the base stays
            if row == main.get(block) and row.state == "held" and not _is_live(was.get(block), row.node):
                followed = across.get(block) not in {None, was.get(block)} and across[block].node == row.node
                assert followed or _is_live(now.get(block), row.node), (
                    f"{row} of the trunk is {now.get(block)}"
                )
    held = [
        {(row.node, row.block.family) for row in some.values() if row.state == "held"} for some in (one, two)
    ]
    for node, family in held[0] & held[1]:
        assert live[node, family] or node in gave_way, f"{node} is without a block"


def _is_live(row: Row | None, node: str) -> bool:
    return row is not None and (row.state, row.node) == ("held", node)


def vanished(before: str, after: str) -> bool:
    """Tell whether a lock is without lines of another, not having others over their addresses: what `plan --base` refuses."""
    now = [row.block for row in rows(after)]
    return any(not any(each.overlaps(row.block) for each in now) for row in rows(before))


def judge_refusal(found: Iterable[Diagnostic]) -> None:
    """Every error says what is wrong, where, and what to do."""
    errors = [each for each in found if each.severity is Severity.ERROR]
    assert errors
    for each in errors:
        assert isinstance(each.at, Span), each
        assert each.at.path, each
        assert each.message, each
        assert each.help, each
