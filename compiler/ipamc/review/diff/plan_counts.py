"""The numbers of nodes in a plan: renumbered, new, left, and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ipamc.law.change import Verdict

if TYPE_CHECKING:
    from ipamc.lock.line_changes import LockChange
    from ipamc.model.plan import Plan
    from ipamc.review.diff.lock_lines import LineChanges


class Counts(Struct, frozen=True, kw_only=True):
    """Numbers of nodes."""

    renumbered: int = 0  # their blocks change, now or later
    added: int = 0  # nodes with a new block that are neither renumbered nor renamed
    left: int = 0
    """They held a block at the base and hold none now; not renamed nodes or those whose line vanished."""
    vanished: int = 0
    unchanged: int = 0  # they hold the same blocks as at the base
    renamed: int = 0  # they have the blocks of a node of another name
    followed: int = 0  # they lost blocks where their address, or Cilium's operator, decides
    released: int = 0  # they lost blocks in quarantine before it was over


def count_nodes(lines: LineChanges, change: LockChange, plan: Plan) -> Counts:
    """Count the nodes of a plan by what becomes of them."""
    present, renamed = set(plan.held), {each.line.node for each in lines.of(Verdict.RENAMED)}
    new = {block.line.node for block in lines.added} - change.moving - renamed
    vanished = {each.line.node for each in lines.vanished}
    lost = {each.lost.node for each in change.lines if each.lost and each.verdict is not Verdict.RENAMED}
    followed, released = (
        {each.before.node for each in lines.of(verdict) if each.before}
        for verdict in (Verdict.FOLLOWED, Verdict.ENDED_EARLY)
    )
    return Counts(
        renumbered=len(change.moving),
        renamed=len(renamed),
        followed=len(followed),
        released=len(released - vanished),
        added=len(new),
        left=len(lost - present - vanished),
        vanished=len(vanished),
        unchanged=len(present - change.moving - new - renamed),
    )
