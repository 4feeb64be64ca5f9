"""Blocks that changed hands between two locks although nobody agreed: a plan always refuses them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Block
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.review.diff.line_changes import TakenBlock


def taken_blocks(
    before: Sequence[Line],
    ended: Iterable[Line],
    plan: Plan,
    shown: Collection[tuple[str, Block]],
    published: Collection[Block],
) -> Iterator[TakenBlock]:
    """Yield the held blocks that another line has now, although no line records a consent, in order.

    `before` are all lines of the base, `ended` those of them that the head does not have. `shown` are the
    nodes and blocks of the inventory's CiliumNodes, `published` the blocks that the base rendered for nodes.

    Consent is a line of the node itself that keeps the block, as quarantined or released. A node that replaces
    one which left may take its blocks (`--rename`): it held none before. Where Cilium's operator decides, the
    lock follows what CiliumNodes show; what was rendered was not the operator's. O(n log n).
    """
    lost = [line for line in ended if line.state is State.HELD]
    known = {line.node for line in before if line.state is State.HELD} if lost else set()
    seen = {node for node, _ in shown}
    for line in lost:
        there = lines_over(plan.lock.lines, line.block)
        if any(_keeps(other, line) for other in there):
            continue
        # A node that has another block now, and whose block waits under another's name, was moved by nobody.
        over = [other for other in there if other.in_use or line.node in plan.held]
        heirs = {other.node for other in over}
        renamed = line.node not in plan.held and len(heirs) == 1 and not heirs & known
        followed = line.block not in published and _is_followed(line, over, plan, shown, seen)
        if over and not renamed and not followed:
            yield TakenBlock(line=line, by=over[0])


def _keeps(now: Line, line: Line) -> bool:
    """Tell whether a line of the head is the one that keeps a block of the base for its node."""
    return (now.node, now.block) == (line.node, line.block) and now.state is not State.PENDING


def _is_followed(
    line: Line,
    over: Iterable[Line],
    plan: Plan,
    shown: Collection[tuple[str, Block]],
    seen: Collection[str],
) -> bool:
    """Tell whether a block is the operator's, and CiliumNodes show that the node lost it, or who has it."""
    lost = line.node in seen and (line.node, line.block) not in shown
    return line.pool in plan.operator_pools and (
        lost or all((other.node, other.block) in shown for other in over)
    )
