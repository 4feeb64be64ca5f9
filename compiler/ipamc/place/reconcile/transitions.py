"""Steps from one state of a node's lines to the next. Each step looks at one node only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ipamc.check.evidence import settled_elsewhere
from ipamc.check.held_blocks import ILLEGAL
from ipamc.model.cidr import Block
from ipamc.model.cluster import Pool
from ipamc.model.lock import Key, Line, State
from ipamc.model.node import Node
from ipamc.model.ownership import Blocks, Ownership, RangeIndex, ShownBlocks
from ipamc.model.plan import Demand, NodeState, Origin, ShownBlock, StaleReason, Want
from ipamc.place.reconcile.context import Context


def newcomer(want: Want, context: Context) -> NodeState:
    """Return the state of a node without lines and without evidence: it needs what its pools owe it."""
    demands: tuple[Demand, ...]
    if context.one_block:  # the result of `needs`, without reading lines
        demands = (Demand(want, context.cluster.families_of(want.node.name)),) if want.offers else ()
    else:
        demands = needs(want, (), (), context, follows=False)
    node, stale = want.node, _NEW if demands else ()
    empty = not context.cluster.may_run(node) or _is_recreated(node, context)
    return NodeState(name=node.name, want=want, demands=demands, stale=stale, empty=empty)


_NEW = (StaleReason.NEWCOMER,)


def state_of(
    name: str, want: Want | None, shown: tuple[ShownBlock, ...], written: Iterable[Line], context: Context
) -> NodeState:
    """Return the state of a node as in the lock, each line in the pool whose range contains its block.
    So a pool can be renamed or split. If the pool is gone, its name is kept as a record, except for a held
    block outside every pool (`unpooled: hold`).
    """
    written = tuple(written)
    lines = tuple([_in_its_pool(line, context) for line in written])
    stale = () if lines == written else (StaleReason.RENAMED,)
    joins = want is not None and not (shown or context.cluster.may_run(want.node))
    empty = joins or (want is not None and _is_recreated(want.node, context))
    return NodeState(
        name=name, want=want, shown=shown, written=written, lines=lines, stale=stale, empty=empty
    )


def _is_recreated(node: Node, context: Context) -> bool:
    """Return whether a Node joined again since it was rendered: it has another uid, and no podCIDRs yet."""
    if not node.live or node.pod_cidrs or not node.uid:
        return False
    rendered = context.rendered_uids.get(node.name, "")
    return bool(rendered) and rendered != node.uid


def _in_its_pool(line: Line, context: Context) -> Line:
    pool = context.ranges.pool_of(line.block)
    gone = "" if line.state is State.HELD and context.cluster.unpooled == "hold" else line.pool
    name = pool.name if pool else gone
    return line if name == line.pool else replace(line, pool=name)


def leave(node: NodeState, context: Context) -> NodeState:
    """Quarantine the lines of a node that is not in the inventory; a pending one stays marked as pending."""
    if not node.in_use:
        return node
    gone = {line.block: quarantined(line, context.today) for line in node.in_use}
    return changed(node, gone, StaleReason.LEAVER)


def quarantined(line: Line, today: str, *, moved: bool = False) -> Line:
    """Return a line in quarantine from today on; `moved`: the node never gets the block back."""
    was_pending, addresses = line.state is State.PENDING, 0 if moved else line.addresses
    state = State.QUARANTINED
    return replace(line, state=state, since=today, moved=moved, was_pending=was_pending, addresses=addresses)


def without_quarantine(node: NodeState, ranges: RangeIndex) -> NodeState:
    """Release a node's quarantined lines in pools that follow the addresses of nodes.
    There a block belongs to the node with its address, and moves with the address to another node.
    """
    gone = [line for line in node.lines if line.state is State.QUARANTINED]
    gone = [line for line in gone if (pool := ranges.pool_of(line.block)) and pool.follows]
    if not gone:
        return node
    lines = {line.block: as_state(State.RELEASED, line) for line in gone}
    old = {line.block for line in node.written if line.state is State.QUARANTINED}
    now = changed(node, lines, StaleReason.UNQUARANTINED)
    return now if old & lines.keys() else replace(now, stale=node.stale)


def moved_with_address(node: NodeState, want: Want, context: Context) -> NodeState:
    """Hold the block of a node's address instead of another one if the node shows it.
    It joined again with another address, and has this block by the admission policy: no drain is needed.
    """
    pools = [offer.pool for offer in want.offers if offer.pool.follows and node.shown]
    pins = {pin.block: pool for pool in pools for pin in pool.pins.get(node.name, ())}
    have = {line.block for line in node.in_use}
    new = [shown for shown in node.shown if shown.block in pins and shown.block not in have]
    keys = {context.key(Line(block=each.block, pool=pins[each.block].name, node=node.name)) for each in new}
    gone = [line for line in node.in_use if context.key(line) in keys]
    if not gone:
        return node
    lines = {line.block: quarantined(line, context.today, moved=True) for line in gone}
    return _holding(changed(node, lines, StaleReason.ARRIVED), new, StaleReason.ARRIVED, context)


def as_state(state: State, line: Line) -> Line:
    """Return a line in another state, without other records."""
    addresses = 0 if state is State.RELEASED else line.addresses
    return Line(block=line.block, pool=line.pool, node=line.node, state=state, addresses=addresses)


def changed(node: NodeState, lines: Mapping[Block, Line], reason: StaleReason) -> NodeState:
    """Return a node with some of its lines replaced, by block."""
    now = tuple([lines.get(line.block, line) for line in node.lines])
    return replace(node, lines=now, stale=(*node.stale, reason))


def come_back(node: NodeState, want: Want, context: Context) -> NodeState:
    """Return to a node, for each family without a held line, its quarantined lines that are legal.
    In a one-block mode that is the line that the node shows, else the one that was quarantined last, else the
    lowest; none if the operator, or the node's address, gave it another block meanwhile. Pools that are
    disabled or no longer select the node still count. A line that was pending when its node left is pending
    again.
    """
    left = [line for line in node.lines if line.state is State.QUARANTINED and not line.moved]
    have = {line.block.family for line in node.held} if left else set()
    if left and context.one_block:
        ownership = context.ownership
        given = [
            shown for shown in node.shown if ownership.operator_gave(shown) or ownership.by_address(shown)
        ]
        blocks = Blocks(line.block for line in left)
        have |= {shown.block.family for shown in given if not blocks.fit(shown)}
    missing = [line for line in left if line.block.family not in have]
    faults = ((line, context.faults(want, line)) for line in missing)
    there = [line for line, its in faults if all(fault.rule not in ILLEGAL for fault in its)]
    held = [line for line in there if not line.was_pending]
    if context.one_block:
        shown = {shown.block for shown in node.shown}
        held.sort(key=lambda line: line.block, reverse=True)
        held.sort(key=lambda line: (line.block in shown, line.since))
        held = list({line.block.family: line for line in held}.values())  # the last line of each family
    if not held:
        return node
    left_with = {(context.key(line), line.since) for line in held}
    pending = [line for line in there if line.was_pending and (context.key(line), line.since) in left_with]
    back = {line.block: as_state(State.HELD, line) for line in held}
    back |= {line.block: as_state(State.PENDING, line) for line in pending}
    return changed(replace(node, origins=dict.fromkeys(back, Origin.RETURNED)), back, StaleReason.RETURNING)


def has_arrived(node: NodeState, *, one_block: bool) -> bool:
    """Return whether a node shows all its pending blocks, or is planned or re-created and so has no pods."""
    pending = node.pending
    if not pending or node.empty:
        return bool(pending)
    shown = ShownBlocks(node.shown)
    # Pods may use another block of the family, too: Cilium gives addresses only from the first.
    families = {line.block.family for line in pending}
    alone = not one_block or sum(each.block.family in families for each in node.shown) <= len(pending)
    return alone and all(shown.fits(line.block) for line in pending)


def complete(
    node: NodeState, today: str, *, one_block: bool, pending: Sequence[Line] | None = None
) -> NodeState:
    """Make some or all pending lines of a node held, and quarantine for good the lines that they replace."""
    pending = node.pending if pending is None else pending
    replaced = {line.key(one_block=one_block) for line in pending}
    gone = [line for line in node.held if line.key(one_block=one_block) in replaced]
    lines = {line.block: quarantined(line, today, moved=True) for line in gone}
    lines |= {line.block: as_state(State.HELD, line) for line in pending}
    return changed(node, lines, StaleReason.ARRIVED)


def settle(node: NodeState, context: Context) -> NodeState:
    """Make a node's pending lines held by consent; those of shared pools wait for the operator.
    Without other lines all are settled, and `follow` refuses that.
    """
    shown = ShownBlocks(node.shown)
    theirs = context.operator_pools if context.follows(node.shown) else frozenset()
    mine = [line for line in node.pending if line.pool not in theirs or shown.fits(line.block)]
    return complete(node, context.today, one_block=context.one_block, pending=mine or None)


def adopt(node: NodeState, context: Context) -> NodeState:
    """Hold the shown blocks in families in which the node has no line in use."""
    have = {line.block.family for line in node.in_use} if node.shown else set()
    shown = [block for block in node.shown if block.block.family not in have]
    ours = [block for block in shown if not context.ownership.is_foreign(block)]
    if ours or have:  # a node may also have blocks of foreign pools, even of another family
        shown = ours
    return _holding(node, shown, StaleReason.NEWCOMER, context) if shown else node


def before_dispute(node: NodeState, without: Collection[str], context: Context) -> NodeState:
    """Return a disputed node with its lines as in the lock, if it was not asked for something else.
    Nodes `without` the blocks that they show have not adopted them, whatever was asked. One whose block
    another node adopts gets another one.
    """
    consent, name = context.consent, node.name
    asked = node.renumbers or name in consent.settle or name in consent.resize or consent.adopts(name)
    if asked and name not in without:
        return node
    before = state_of(name, node.want, node.shown, node.written, context)
    return ask(before, node.want, context) if node.want and name in context.vacated else before


def take(node: NodeState, context: Context) -> NodeState:
    """Hold by consent the blocks that a node shows and has no line for; those that it has instead go into
    quarantine, as after a move.
    """
    if not (node.shown and node.in_use and context.consent.adopts(node.name)):
        return node
    strays = context.ownership.strays(node.shown)
    new = [shown for shown, owner in strays if owner not in {Ownership.FOREIGN, Ownership.OPERATORS}]
    there, keys = ShownBlocks(node.shown), set[Key]()
    for each in new:
        pool = context.ranges.pool_of(each.block)
        keys.add(context.key(Line(block=each.block, pool=pool.name if pool else each.pool, node=node.name)))
    gone = [line for line in node.in_use if context.key(line) in keys and not there.fits(line.block)]
    lines = {line.block: quarantined(line, context.today, moved=True) for line in gone}
    return (
        _holding(changed(node, lines, StaleReason.ARRIVED), new, StaleReason.ARRIVED, context)
        if new
        else node
    )


def follow(node: NodeState, context: Context) -> NodeState:
    """Hold the blocks that a node shows where Cilium's operator decides, and release those no longer shown.
    In multi-pool mode that is all blocks of shared pools, as soon as the node shows one; in cluster-pool mode
    the block of a family that was in an `unlisted` pool. The operator re-uses blocks that it took back, so
    nothing is quarantined.
    """
    if not node.shown or not context.operator_pools:
        return node
    gone = list(context.taken_back(node.held, node.shown))
    settled = {line.block for line in node.written if line.state is State.PENDING}
    if refused := [line for line in gone if line.block in settled]:
        return replace(node, found=(*node.found, settled_elsewhere(context.lock, node, refused[0])))
    have = {line.block for line in node.held}
    families = {line.block.family for line in gone}
    new = [shown for shown in node.shown if shown.block not in have]
    if context.one_block:
        new = [shown for shown in new if shown.block.family in families]
    else:
        new = [shown for shown in new if context.ownership.operator_gave(shown)]
    if gone:
        node = _released(node, gone)
    return _holding(node, new, StaleReason.FOLLOWED, context) if new else node


def _released(node: NodeState, lines: Iterable[Line]) -> NodeState:
    """Release some of a node's lines because it follows the operator."""
    return changed(node, {line.block: as_state(State.RELEASED, line) for line in lines}, StaleReason.FOLLOWED)


def without_move(node: NodeState, context: Context) -> NodeState:
    """Release pending lines of a node that the operator left without a block to move from."""
    if not node.pending or not (StaleReason.FOLLOWED in node.stale or node.name in context.overtaken):
        return node
    held = {context.key(line) for line in node.held}
    gone = [line for line in node.pending if context.key(line) not in held]
    return _released(node, gone) if gone else node


def _holding(
    node: NodeState, shown: Iterable[ShownBlock], reason: StaleReason, context: Context
) -> NodeState:
    """Return a node that holds its shown blocks: adopted lines, over its own quarantined or released ones."""
    new: dict[Block, Line] = {}
    for each in shown:
        block, pool = each.block, context.ranges.pool_of(each.block)
        if each.part and pool and node.want:  # for single addresses: the block of the pool's size around them
            entry = node.want.node
            block = block.widened(pool.sizes(entry.labels, entry.name)[block.family])
            pool = context.ranges.pool_of(block)
        # A block that is held outside every pool has no pool name.
        known = each.pool if pool or context.cluster.unpooled == "refuse" else ""
        name = known or (pool.name if pool else "")
        addresses = context.shown_part(node.name, block, pool)
        new[block] = Line(block=block, pool=name, node=node.name, addresses=addresses)
    kept = [line for line in node.lines if line.block not in new]
    return replace(
        node,
        lines=tuple(sorted([*kept, *new.values()], key=lambda line: line.block)),
        origins={**node.origins, **dict.fromkeys(new, Origin.ADOPTED)},
        stale=(*node.stale, reason),
    )


def replaced_keys(node: NodeState, *, one_block: bool) -> set[Key]:
    """Return the keys of blocks that pending lines, or lines to be placed, will replace."""
    keys = {line.key(one_block=one_block) for line in node.pending}
    for demand in node.renumbers:
        pool = demand.offer.pool.name if demand.offer else ""
        keys.update((node.name, family, pool) for family in demand.families)
    return keys


def ask(node: NodeState, want: Want, context: Context) -> NodeState:
    """Add demands for the held lines that a node still needs."""
    held = node.held
    replaced = () if context.one_block else replaced_keys(node, one_block=False)
    demands = needs(want, held, replaced, context, follows=context.decides(want, node.shown, held))
    if not demands:
        return node
    known = any(line.block not in node.origins for line in held)
    reason = StaleReason.INCOMPLETE if known else StaleReason.NEWCOMER
    return replace(node, demands=demands, stale=(*node.stale, reason))


def needs(
    want: Want, held: Iterable[Line], replaced: Collection[Key], context: Context, *, follows: bool
) -> tuple[Demand, ...]:
    """Return a node's needs beyond its held lines, except `replaced` keys, which get pending lines.
    To a node that `follows`, the operator gives blocks of shared pools as the agent requests them.
    """
    cluster = context.cluster
    families = cluster.families_of(want.node.name)
    if context.one_block:
        has = {line.block.family for line in held}
        missing = tuple([family for family in families if family not in has]) if has else families
        # `unmatched_refused` reports a node without a block and without an offer.
        return (Demand(want, missing),) if missing and (want.offers or has) else ()
    pools = ((context.ranges.pool_of(line.block), line.block.family) for line in held)
    have = Counter((pool.name, family) for pool, family in pools if pool)
    result: list[Demand] = []
    for offer in want.offers:
        pool, name = offer.pool, want.node.name
        if follows and pool.name in context.operator_pools:
            continue
        owed = {
            family: needed(pool, name, family, have[pool.name, family]) - have[pool.name, family]
            for family in families
            if family in pool.families and (name, family, pool.name) not in replaced
        }
        if count := {family: number for family, number in owed.items() if number > 0}:
            result.append(Demand(want, tuple(count), offer, count))
    return tuple(result)


def needed(pool: Pool, node: str, family: int, held: int) -> int:
    """Count the blocks that a pool owes a node: `blocksPerNode`, or its pins if they are more.
    A node that holds blocks of a pool with `usage` is owed `minBlocks`. A disabled pool owes only pins.
    """
    pins = sum(pin.block.family == family for pin in pool.pins.get(node, ()))
    if pool.disabled or pool.unlisted:
        return pins
    return max(pool.usage.least if pool.usage and held else pool.blocks_per_node, pins)
