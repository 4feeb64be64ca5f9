"""Errors in the block of a node (rules 1 and 2 of the lock)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ipamc.check.multi_pool import mask_size_changed
from ipamc.lock.consent import renumber_command
from ipamc.model.cidr import Block, Range
from ipamc.model.cluster import AddressSpace, Dialect, Mode, Pool, Scheme
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, several, warning
from ipamc.model.lock import Line, State
from ipamc.model.plan import Offers, Want
from ipamc.model.pool_words import terms


class Fault(Struct, frozen=True):
    """An error in a block: the rule that it breaks. Lines with equal faults are one finding."""

    rule: Callable[[Scheme, Faulty], Iterator[Diagnostic]]
    pool: str = ""
    """The pool that contains the block; for a block outside every pool, the last one."""
    before: str = ""
    """The pool's name in the lock, if it differs."""
    family: int = 0
    sizes: tuple[int, ...] = ()
    """The prefix length of the block, and that which the pool would give."""
    ranges: tuple[Range, ...] = ()
    """The excluded or reserved CIDR that it overlaps."""
    nowhere: bool = False
    """No pool selects the node."""


class Why(enum.Enum):
    """Why a faulty block is a node's."""

    HELD = "the lock has it"
    REPLACED = "pending lines will replace it: until then an illegal block is only a warning"
    SHOWN = "the node shows it, or returns to it"
    DISPUTED = "the node shows it, and does not get it"


class Faulty(Struct, frozen=True, kw_only=True):
    """Lines with the same fault: one finding."""

    fault: Fault
    lines: list[Line]
    """By family and address."""
    at: At
    """Of the first line: its row in the lock; if the lock does not have it yet, the node."""
    why: Why
    whole: bool = False
    """These are all lines of their pool."""

    @property
    def replaced(self) -> bool:
        """Return whether pending lines will replace them."""
        return self.why is Why.REPLACED

    @property
    def held_by(self) -> str:
        """Return the nodes, and their blocks."""
        blocks = [f"{line.node} ({line.block})" for line in self.lines]
        unit = terms(self.lines[0].node).unit
        return several(blocks, unit, number=len(self.nodes))

    @property
    def nodes(self) -> list[str]:
        """Return the names of the nodes, sorted."""
        return sorted({line.node for line in self.lines})

    @property
    def them(self) -> str:
        """Return a pronoun for the nodes."""
        return "it" if len(self.nodes) == 1 else "them"

    def move(self, cluster: Scheme, where: str) -> str:
        """Return how to move the nodes; "" if they are moving already, or the operator allocates."""
        if self.replaced or cluster.shared_pools or any(line.state is State.PENDING for line in self.lines):
            return ""
        renumber = renumber_command(cluster, sorted(self.lines, key=lambda line: line.node))
        return f"nothing moves by itself; to move {self.them} {where}: {renumber}"

    def give_back(self, cluster: Scheme) -> str:
        """Return how to give the blocks back if the nodes need no others for them."""
        line, lock = self.lines[0], f"ipamc lock {cluster.name}"
        more = "; repeat this for the other nodes" if len(self.nodes) > 1 else ""
        leave = f"drain {line.node}, remove it from the inventory, and run {lock}"
        return f"{line.node} keeps it; to give it back, {leave}; then: {lock} --release {line.block}{more}"

    def illegal(self, code: str, message: str, *, also: Iterable[Related] = (), fix: str) -> Diagnostic:
        """Return a finding about blocks that must move."""
        make = warning if self.why in {Why.REPLACED, Why.DISPUTED} else error
        verb = "shown" if self.why is Why.DISPUTED else "held"
        text = f"{self.lines[0].block} {message}; {verb} by {self.held_by}"
        return make(code, self.at, text, also=also, help=fix).about(self.nodes)


def classify(cluster: Scheme, want: Want, line: Line, pool: Pool | None) -> tuple[Fault, ...]:
    """Return the faults of a line's block for this node; () for most lines.
    `pool` is the one around the block, `line.pool` its name in the lock. An illegal block has one fault.
    """
    block, family = line.block, line.block.family
    if fault := illegal(cluster, block, pool, line):
        return (fault,)
    assert pool is not None  # noqa: S101 - else it is illegal
    size = expected_size(pool, want, family)
    if size == block.prefix and line.pool == pool.name and not pool.reserved:
        return ()
    faults = []
    if cluster.mode is Mode.MULTI_POOL and line.pool not in {pool.name, ""}:
        faults.append(Fault(renamed_while_held, pool.name, line.pool))
    if size is None:
        faults.append(Fault(no_longer_selected, pool.name, nowhere=not want.offers))
    elif size != block.prefix and block not in {pin.block for pin in pool.pins.get(line.node, ())}:
        faults.append(Fault(other_size, pool.name, family=family, sizes=(block.prefix, size)))
    if reserved := pool.reserved_over(block):
        around_node = Fault(over_reserved, pool.name)
        faults.append(around_node if reserved.node else Fault(over_reserved, ranges=(reserved,)))
    return tuple(faults)


def illegal(cluster: Scheme, block: Block, pool: Pool | None, line: Line | None = None) -> Fault | None:
    """Return why no node may have a block, or None. `pool` as in `classify`; `line` has the block."""
    if block.family not in cluster.families:
        return Fault(other_family, family=block.family)
    if excluded := cluster.excluded_over(block):
        return Fault(over_excluded, ranges=(excluded,))
    if pool is not None:
        return None
    stays = cluster.unpooled == "hold" and (line is None or line.state is State.HELD)
    return Fault(held_outside_pools if stays else outside_pools, line.pool if line else "")


def expected_size(pool: Pool, want: Want, family: int) -> int | None:
    """Return the prefix length that this pool would give the node today; None if it would not serve it."""
    offers = want.offers
    if want.first is pool:
        return offers[0].sizes.get(family)
    node = want.node
    serves = (
        node.name in pool.pins
        or pool.unlisted
        or pool.pods_only
        or pool.selector.matches(node.labels, node.name)
    )
    if not serves and not pool.disabled:  # it may be the overflow of one that serves the node
        serves = pool.name in (offers if isinstance(offers, Offers) else Offers(offers)).overflow
    return pool.sizes(node.labels, node.name)[family] if serves else None


def _pool(cluster: Scheme, group: Faulty) -> Pool:
    return cluster.pools_by_name[group.fault.pool]


def outside_pools(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0410: a held block lies in a range of a pool."""
    pool, lock = group.fault.pool, f"ipamc lock {cluster.name}"
    move = f"{lock} --renumber pool/{pool}" if group.whole else renumber_command(cluster, group.lines)
    named = cluster.pools_by_name.get(pool)
    native = not isinstance(cluster, AddressSpace) and (
        named is None or named.dialect is not Dialect.CLUSTER_CIDR
    )
    keeps = " (with disabled: true nodes only keep their blocks)" if native else ""
    way_out = f"restore the range{keeps}, or move the nodes: {move}"
    if all(line.state is State.PENDING for line in group.lines):  # no node uses it yet
        release = ",".join(line.node for line in group.lines)
        way_out = f"restore the range, or cancel the renumber: {lock} --release {release}"
    if group.why in {Why.SHOWN, Why.DISPUTED}:
        block, node = group.lines[0].block, group.lines[0].node
        add = f"add {block} to the cidrs of a pool (or set unpooled: hold)"
        way_out = f"if its pods use it: {add}, then: {lock} --adopt {node}; if not: let {node} join again"
    message = f"is outside all pools{f' (last in pool {pool})' if pool else ''}"
    yield group.illegal("IPC0410", message, fix=_settle(cluster, group) or way_out)


def _settle(cluster: Scheme, group: Faulty) -> str:
    """Return the command after the move of a node; "" if no move is pending."""
    node = group.lines[0].node
    return f"drain {node}, then: ipamc lock {cluster.name} --settle {node}" if group.replaced else ""


def held_outside_pools(_: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0417: with `unpooled: hold`, held blocks outside all pools are not rendered."""
    message = f"{group.lines[0].block} is outside all pools and not rendered; held by {group.held_by}"
    yield warning("IPC0417", group.at, message).about(group.nodes)


def over_excluded(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0411: a held block shares no address with an excluded CIDR."""
    (found,) = group.fault.ranges
    cidr = found.block
    renumber = f"ipamc lock {cluster.name} --renumber {cidr}"
    fix = _settle(cluster, group) or f"remove {cidr} from excludedCIDRs, or move the nodes: {renumber}"
    also = [Related(found.at, f"{cidr} is excluded here")]
    yield group.illegal("IPC0411", f"overlaps excluded {cidr}", also=also, fix=fix)


def other_family(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0412: a held block belongs to an IP family in `ipFamilies`."""
    family = f"IPv{group.fault.family}"
    also = [Related(cluster.field("spec", "ipFamilies"), "the families are set here")]
    message = f"is {family}, which is not in ipFamilies"
    yield group.illegal("IPC0412", message, also=also, fix=f"add {family} to ipFamilies again")


def renamed_while_held(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0414: in multi-pool mode a pool keeps its name while nodes hold blocks of it."""
    before, pool = group.fault.before, _pool(cluster, group)
    at = pool.at / "metadata" / "name"
    message = f"pool {before!r} is now named {pool.name!r}, but its blocks are held by {group.held_by}"
    yield error("IPC0414", at, message, also=[Related(group.at, "held here")], help=f"name it {before} again")


def no_longer_selected(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0304: the pool of a held block still selects the node."""
    also = [Related(_pool(cluster, group).selector_at, "the selector is here")]
    message = f"pool {group.fault.pool} no longer selects {group.held_by}"
    way_out = group.move(cluster, f"to a pool that selects {group.them}")
    # Where each pool that selects a node gives it blocks of its own, this one has nowhere to go.
    if way_out and group.fault.nowhere:
        selector = terms(cluster).selector
        way_out = f"no other pool selects {group.them}: widen a {selector}, or add a pool"
    elif way_out and not cluster.mode.one_block:
        way_out = group.give_back(cluster)
    yield warning("IPC0304", group.at, message, also=also, help=way_out).about(group.nodes)


def other_size(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0415: a held block has the size that its pool gives today."""
    pool, (have, size) = _pool(cluster, group), group.fault.sizes
    family = pool.families[group.fault.family]
    message = f"pool {pool.name} now hands out /{size}, but a /{have} is held by {group.held_by}"
    at: At = family.at / "blockSize"
    if isinstance(cluster, AddressSpace):
        message = f"the pool now requests a /{size}, but a /{have} is held by {group.held_by}"
        at = next(node.at for node in cluster.nodes if node.name == group.lines[0].node)
    also = [Related(at, "the size is set here")]
    fix = group.move(cluster, f"to blocks of /{size}")
    yield warning("IPC0415", group.at, message, also=also, help=fix).about(group.nodes)
    sizes = {family.block_size, *(other.sizes.get(family.family) for other in pool.block_sizes)}
    if cluster.shared_pools and have not in sizes:
        held = Related(group.at, f"held by {group.held_by}")
        yield mask_size_changed(pool, family.family, have, family.block_size, held)


def over_reserved(cluster: Scheme, group: Faulty) -> Iterator[Diagnostic]:
    """IPC0416: a held block shares no address with a reserved CIDR."""
    block = group.lines[0].block
    found = next(iter(group.fault.ranges), None) or _pool(cluster, group).reserved_over(block)
    assert found is not None  # noqa: S101 - else it is no fault
    if found.node:
        others = count(len(group.lines) - 1, "other block contains one", "other blocks contain one each")
        more = f"; {others}" if group.lines[1:] else ""
        message = f"{block} contains the InternalIP of node {found.node}{more}; held by {group.held_by}"
        fix, here = group.move(cluster, "to blocks without addresses of nodes"), f"{found.node} is here"
    else:
        message = f"{block} overlaps reserved {found.block}; held by {group.held_by}"
        fix, here = f"remove {found.block} from reserved", "reserved here"
        if not group.replaced:
            fix = f"move the node: ipamc lock {cluster.name} --renumber {block}; or {fix}"
    also = [Related(found.at, here)]
    yield warning("IPC0416", group.at, message, also=also, help=fix).about(group.nodes)


UNTIL_MOVED = frozenset({other_family, over_excluded, outside_pools})
"""Rules that refuse a block, but only warn while a pending line will replace it."""
ILLEGAL = UNTIL_MOVED | {held_outside_pools}
"""A block that breaks one of these rules is not given out, and does not return to its node."""
