"""The changes that a cluster is in the middle of, as its lock and inputs say when compared with a base."""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.lock import Lock
from ipamc.model.plan import Origin, Plan
from ipamc.review.diff import ClusterBase, Difference
from ipamc.review.runbook.commands import Commands
from ipamc.review.runbook.dual_stack import dual_stack
from ipamc.review.runbook.mode_change import mode_change
from ipamc.review.runbook.order import order
from ipamc.review.runbook.renumber import pending_of, renumber
from ipamc.review.runbook.replace_node import replace_node
from ipamc.review.runbook.upgrade import upgrade
from ipamc.review.runbook.values import Runbook
from ipamc.review.runbook.waves import Cut


def under_way(
    base: ClusterBase, plan: Plan, difference: Difference, run: Commands, cut: Cut
) -> tuple[Runbook, ...]:
    """Return the runbooks of the changes from a base to a plan that an apply alone cannot do.

    In the order in which they are to be done; () if an apply does everything.
    """
    return tuple(_found(base, plan, difference, run, cut))


def _found(
    base: ClusterBase, plan: Plan, difference: Difference, run: Commands, cut: Cut
) -> Iterator[Runbook]:
    before, lock = base.cluster, base.lock
    if before and before.cilium < plan.cluster.cilium:
        yield upgrade(Commands(before, run.folder, run.shared), plan.cluster.cilium)
    if order(lock, before, plan, run):
        yield mode_change(lock, before, plan, run, cut, begun=True)
    elif added := _new_family(lock, plan):
        yield dual_stack(plan, run, cut, added, begun=True)
    settled = [renumber.node for renumber in difference.lines.completed if renumber.moves]
    if settled or pending_of(plan):
        yield renumber(plan, run, cut, settled=settled)
    for block in difference.lines.added:
        if block.origin is Origin.RENAMED:
            yield replace_node(plan, run, block.of, block.line.node)


def _new_family(lock: Lock, plan: Plan) -> int:
    """Return a family that the base's nodes have no block of; 0 for none.

    What the base's inputs say does not count: those on the disk may be edited, and not compiled yet.
    """
    had = {line.block.family for line in lock.lines}
    new = [family for family in plan.cluster.families if family not in had]
    return new[0] if new and had else 0
