"""Histories of two branches: each goes its way as in `machine`, and they meet by merge, rebase, cherry-pick and revert.

Locks are merged by the merge driver's function; inputs as git merges files: what one side changed, and what both changed as the side has it that is merged into.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from ipamc.law.change import UNLAWFUL, Days, changes
from ipamc.lock.file import parse
from ipamc.lock.merge import Merged, merge
from ipamc.model.lock import Consent
from tests.support.history.checks import judge_merge, rows, vanished
from tests.support.history.live import LiveHistory
from tests.support.history.machine import names, racks
from tests.support.history.model import Node, World


@dataclass(frozen=True)
class Commit:
    """A step that was accepted."""

    world: World
    lock: str
    files: dict[str, str]
    parent: Commit | None
    """Of several, the first."""


@dataclass(frozen=True)
class Meeting:
    """The locks of a merge, and what came of it."""

    base: str
    ours: str
    theirs: str
    trunk: str
    merged: Merged


class Branches(LiveHistory):
    """Two branches of one cluster."""

    met: ClassVar[list[Meeting]] = []
    """Every merge so far."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[str, Commit] = {}
        self.here = "main"
        self.fork: Commit | None = None
        """The last commit that both branches have."""
        self.forked = self.today
        """The day on which they parted, or met last."""
        self.freed = False
        """Whether somebody agreed since then that addresses are given out early: a request for all of it is refused."""

    @property
    def there(self) -> str:
        """Name the other branch."""
        return "work" if self.here == "main" else "main"

    def commit(self, consent: Consent | None = None) -> bool:
        """Do what `LiveHistory` does; an accepted step is a commit on this branch."""
        accepted = super().commit(consent)
        if accepted:
            assert self.lock is not None
            self.heads[self.here] = Commit(self.world, self.lock, self.files, self.heads.get(self.here))
            self.freed |= bool(consent and (consent.release or consent.rename))
        return accepted

    def _a_request_passes(self) -> None:
        """Nothing of a branch that has all of the trunk is refused there. An old one is dated by `lock --onto`, and no quarantine ended on it."""
        main, work = self.heads["main"], self.heads["work"]
        base, head = (side.world.spec.get("quarantineDays", 7) for side in (main, work))
        shortest = min([days for days in (base, head) if days != "never"], default=1000)
        if self.freed or (self.today - self.forked).days > shortest // 2:
            return
        was, now = (parse(side.lock.encode(), "")[0] for side in (main, work))
        assert was
        assert now
        days = Days(self.today.isoformat(), *(None if each == "never" else each for each in (base, head)))
        found = changes(was.lines, now.lines, days, main.world.operators() & work.world.operators())
        self.steps["requests"] += 1
        assert not [each for each in found if each.verdict in UNLAWFUL], found

    def _check_out(self, branch: str) -> None:
        self.here = branch
        self._go_on_from(self.heads[branch])

    def _go_on_from(self, commit: Commit) -> None:
        self.restore(commit.world, commit.lock, commit.files)

    @precondition(lambda self: "main" in self.heads and self.fork is None)
    @rule()
    def a_branch_is_made(self) -> None:
        self.fork = self.heads["work"] = self.heads["main"]
        self.forked, self.freed = self.today, False
        self._check_out("work")

    @precondition(lambda self: self.fork is not None)
    @rule()
    def somebody_works_on_the_other_branch(self) -> None:
        self._check_out(self.there)

    @precondition(lambda self: self.fork is not None)
    @rule(here=names, there=names, rack=racks)
    def both_branches_grow(self, here: str, there: str, rack: str) -> None:
        for name in (here, there):
            self.waiting = 0
            self.next.nodes.setdefault(name, Node(rack))
            self.commit()
            self._check_out(self.there)

    @precondition(lambda self: self.fork is not None)
    @rule(leave=st.booleans(), back=st.booleans())
    def branches_are_merged(self, *, leave: bool, back: bool) -> None:
        """Merge the other branch into this one, and then maybe this one, as it is now, into the other: a fast-forward."""
        other = self.heads[self.there]
        if self.fork is not None and other is not self.fork and self._take([(self.fork, other)], leave=leave):
            self.fork = other
            if self.here == "work":
                self._a_request_passes()
            if back:
                self.fork = self.heads[self.there] = self.heads[self.here]
                self.forked, self.freed = self.today, False

    @precondition(lambda self: self.fork is not None)
    @rule(leave=st.booleans())
    def a_branch_is_rebased(self, *, leave: bool) -> None:
        picked = list(_since(self.fork, self.heads[self.here]))
        if self.fork is None or not picked:
            return
        before, onto = self.heads[self.here], self.heads[self.there]
        self._go_on_from(onto)
        self.heads[self.here] = onto
        if self._take(picked, leave=leave):
            self.fork = onto
            if self.here == "work":
                self._a_request_passes()
        else:
            self._go_on_from(before)
            self.heads[self.here] = before

    @precondition(lambda self: self.fork is not None)
    @rule(leave=st.booleans())
    def a_commit_is_picked(self, *, leave: bool) -> None:
        other = self.heads[self.there]
        if other.parent:
            self._take([(other.parent, other)], leave=leave)

    @precondition(lambda self: bool(self.heads) and self.heads[self.here].parent is not None)
    @rule(older=st.integers(0, 3), leave=st.booleans())
    def a_commit_is_reverted(self, older: int, *, leave: bool) -> None:
        commit = self.heads[self.here]
        for _ in range(older):
            commit = commit.parent if commit.parent and commit.parent.parent else commit
        if commit.parent:
            self._take([(commit, commit.parent)], leave=leave)

    def _take(self, changes: list[tuple[Commit, Commit]], *, leave: bool) -> bool:
        """Apply what was done between two commits, one after the other, and compile. Tell whether that was accepted."""
        before = Commit(self.world, self.lock or "", self.files, None)
        world, text = self.world, before.lock
        for base, theirs in changes:
            merged = self._merge(base.lock, text, theirs.lock)
            if merged.conflicts:
                self.steps["conflicts"] += 1
                return False
            # A revert of what nothing was built upon: the review of the merge request refuses it
            if vanished(text, merged.text.decode()):
                self.steps["vanished"] += 1
                return False
            world, text = merged_world(base.world, world, theirs.world), merged.text.decode()
        self.restore(world, text, before.files)
        self.steps["meetings"] += 1
        if not self.commit(Consent(leave=frozenset({"all"} if leave else ()))):
            self._go_on_from(before)
            return False
        return True

    def _merge(self, base: str, ours: str, theirs: str) -> Merged:
        trunk = self.heads["main"].lock
        today = self.today.isoformat()
        plain = merge(base.encode(), ours.encode(), theirs.encode(), trunk.encode())
        judge_merge(base, ours, theirs, trunk, plain, one_block=self.world.one_block)
        merged = merge(base.encode(), ours.encode(), theirs.encode(), trunk.encode(), today=today)
        assert (merged.conflicts, merged.dropped) == (plain.conflicts, plain.dropped)
        if not merged.conflicts and len({base, ours, theirs}) == 3:
            judge_days(plain.text.decode(), merged.text.decode(), trunk, today)
        swapped = merge(base.encode(), theirs.encode(), ours.encode(), trunk.encode(), today=today)
        assert (swapped.conflicts == ()) == (merged.conflicts == ())
        assert merged.conflicts or swapped.text == merged.text
        self.met.append(Meeting(base, ours, theirs, trunk, merged))
        return merged


def judge_days(plain: str, dated: str, trunk: str, today: str) -> None:
    """Assert that a quarantine begins today, and is as in `plain` otherwise, unless the trunk has it."""
    there = {(row.block, row.node) for row in rows(trunk) if row.state == "quarantined"}
    for old, new in zip(rows(plain), rows(dated), strict=True):
        stays = old.state != "quarantined" or (old.block, old.node) in there
        assert new == (old if stays else old._replace(since=today)), f"{old} became {new}"


def _since(fork: Commit | None, head: Commit) -> Iterator[tuple[Commit, Commit]]:
    """Yield the commits of a branch since it left the other, the oldest first, each with its parent; none if it met the other since."""
    found = []
    while head is not fork:
        if head.parent is None:
            return
        found.append((head.parent, head))
        head = head.parent
    yield from reversed(found)


def merged_world(base: World, ours: World, theirs: World) -> World:
    """Merge what people wrote: a pool, a node or a setting at a time, changed beats unchanged, ours beats theirs."""
    made = copy.deepcopy(ours)
    made.spec = _merged(base.spec, ours.spec, theirs.spec)
    made.pools = _merged(base.pools, ours.pools, theirs.pools)
    made.nodes = _merged(base.nodes, ours.nodes, theirs.nodes)
    made.cilium_nodes = _merged(base.cilium_nodes, ours.cilium_nodes, theirs.cilium_nodes)
    made.addresses = _merged(base.addresses, ours.addresses, theirs.addresses)
    made.families = list(theirs.families if ours.families == base.families else ours.families)
    made.excluded = list(theirs.excluded if ours.excluded == base.excluded else ours.excluded)
    return made


def _merged(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {key: theirs if ours.get(key) == base.get(key) else ours for key in (*ours, *theirs)}
    return {key: copy.deepcopy(side[key]) for key, side in chosen.items() if key in side}
