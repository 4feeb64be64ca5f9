"""Places nodes that do not exist yet: those that autoscalers may still make, up to `maximum`."""

from __future__ import annotations

from msgspec.structs import replace

from ipamc.law.change import last_day
from ipamc.model.address_sets import by_block
from ipamc.model.diagnostics import Diagnostic
from ipamc.model.lock import Consent, State
from ipamc.model.ownership import RangeIndex
from ipamc.model.plan import Plan, Reconciled
from ipamc.place.allocate import shortage
from ipamc.place.allocate.allocate import place_pins
from ipamc.place.allocate.newcomers import Newcomers
from ipamc.place.allocate.occupancy import Occupancy, blocked
from ipamc.place.candidates import assign
from ipamc.place.reconcile.context import Context
from ipamc.place.reconcile.transitions import newcomer


def up_to_maximum(plan: Plan, reconciled: Reconciled, today: str) -> tuple[Plan, list[Diagnostic]]:
    """Return a plan with the blocks that further nodes of groups would get, and the nodes that get none.
    They come after all others, in the order of their numbers. The lock has no line of them.
    """
    cluster, lock = plan.scheme, plan.lock
    there = {node.name for node in cluster.nodes}
    more = {node.name: node for group in cluster.groups for node in group.more if node.name not in there}
    if not more:
        return plan, []
    grown = replace(cluster, nodes=tuple(more[name] for name in sorted(more)))
    wants = {want.node.name: want for want in assign(grown)}
    ranges, one = RangeIndex(cluster.pools), cluster.mode.one_block
    context = Context(
        cluster=cluster, lock=lock, consent=Consent(), today=today, ranges=ranges, one_block=one
    )
    demands = [demand for name in more for demand in newcomer(wants[name], context).demands]
    pinned = place_pins(cluster, replace(reconciled, lock=lock), demands)
    over = last_day(today, cluster.quarantine_days)
    lines = sorted([*pinned.kept, *pinned.new], key=by_block)
    occupancy = Occupancy(lines, blocked(cluster, reconciled.taken), over, today)
    placed = Newcomers(occupancy)
    placed.place(pinned.demands, State.HELD)
    new = [*pinned.new, *placed.lines]
    after = replace(occupancy, lines=sorted([*lines, *placed.lines], key=by_block))
    short = shortage.no_room_for_maximum(cluster, placed.short, after, lock)
    return replace(plan, more=tuple(new)), list(short)
