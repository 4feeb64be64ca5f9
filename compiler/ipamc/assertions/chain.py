"""Why a node has a block: the line of the lock, the pool that gave it, and by which selector, with their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.lock.file import line_at
from ipamc.model.assertion import Assertion
from ipamc.model.cidr import Block
from ipamc.model.cluster import Pool
from ipamc.model.diagnostics import At, Place, Related
from ipamc.model.lock import Line, State
from ipamc.model.plan import Origin, Plan, Want
from ipamc.model.wording import cut

SHOWN = 20
"""Blocks of a test that a finding shows."""


def because(test: Assertion) -> Iterator[Related]:
    """Yield the reason that a test gives for itself."""
    if test.because:
        yield Related(test.at / "because", f"because {cut(test.because)}")


def line_place(plan: Plan, line: Line, want: Want | None) -> At:
    """Return the place of a block: its line of the lock, else the node that gets it now."""
    return line_at(plan.lock, line, otherwise=want.node.at if want else None)


def has(plan: Plan, line: Line) -> str:
    """Say who has a block."""
    if line.state is State.PENDING:
        return f"node {line.node} is to move to {line.block}"
    origin = plan.origins.get(line.block)
    match origin:
        case None | Origin.RENUMBER | Origin.RENAMED:
            return f"node {line.node} holds {line.block}"
        case Origin.ADOPTED:
            return f"node {line.node} has {line.block} in the cluster"
        case Origin.RETURNED:
            return f"node {line.node} gets {line.block} back"
        case Origin.PIN:
            return f"node {line.node} would get its pin {line.block}"
    return f"node {line.node} would get {line.block}"


def is_new(plan: Plan, line: Line) -> bool:
    """Tell whether nobody has a block yet: an edit decides where its node gets one, and no move is needed."""
    return plan.origins.get(line.block, Origin.ADOPTED) not in {Origin.ADOPTED, Origin.RETURNED}


def lines_shown(plan: Plan, lines: Sequence[tuple[Line, Want | None, str]]) -> list[Related]:
    """Return the places of at most SHOWN lines, each with what is wrong with it."""
    found = [
        Related(line_place(plan, line, want), has(plan, line) + (f", {why}" if why else ""))
        for line, want, why in lines[:SHOWN]
    ]
    if more := len(lines) - len(found):
        found[-1] = Related(found[-1].at, f"{found[-1].label}; and {more:,} more")
    return found


def pins_of(plan: Plan, line: Line) -> dict[Block, Place]:
    """Return the pins of a line's node in the line's pool, with their places."""
    pool = plan.cluster.pools_by_name.get(line.pool)
    return {pin.block: pin.at for pin in pool.pins.get(line.node, ())} if pool else {}


def given_by(plan: Plan, line: Line, want: Want | None) -> Iterator[Related]:
    """Yield the pool of a block, and by what it serves the node."""
    pool = plan.cluster.pools_by_name.get(line.pool)
    if pool is None:
        return
    who = f'pool "{pool.name}"'
    if pool.name in plan.operator_pools:
        who = f"Cilium's operator gave it out of {who}, which"
    if pin := pins_of(plan, line).get(line.block):
        yield Related(pin, f"{who} pins it")
    elif want is None or pool.selector.matches(want.node.labels, want.node.name):
        yield Related(pool.selector_at, f"{who} selects it by {cut(pool.selector.canonical)}")
    elif full := _overflowing(plan, pool, want):
        yield Related(
            full.at / "spec" / "overflow", f'{who} takes the place of "{full.name}" when that is full'
        )
    else:
        yield Related(pool.selector_at, f"{who} no longer selects it by {cut(pool.selector.canonical)}")


def _overflowing(plan: Plan, pool: Pool, want: Want) -> Pool | None:
    """Return a pool of the node that overflows to another one."""
    known = plan.cluster.pools_by_name
    return next((known[offer.pool.name] for offer in want.offers if pool.name in offer.pool.overflow), None)
