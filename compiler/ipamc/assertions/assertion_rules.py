"""The findings of tests, and why a node has a block: its line, its pool, and the selector.

A test with `warn` makes each finding a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamc.lock.consent import renumber_command
from ipamc.lock.file import line_at
from ipamc.model.assertion import Agreed, Assertion
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, Place, Related, count, error, names, warning
from ipamc.model.limits import NAMES_SHOWN
from ipamc.model.lock import Line, State
from ipamc.model.plan import Origin, Plan, Want
from ipamc.model.wording import cut, shown


def because(test: Assertion) -> Iterator[Related]:
    """Yield the reason that the author of a test gives."""
    if test.because:
        yield Related(test.at / "because", f"because {cut(test.because)}")


def line_place(plan: Plan, line: Line, want: Want | None) -> At:
    """Return the place of a block: its line of the lock, else the node that gets it now."""
    return line_at(plan.lock, line, otherwise=want.node.at if want else None)


def has(plan: Plan, line: Line) -> str:
    """Return a phrase that names the owner of a block."""
    if line.state is State.PENDING:
        return f"node {line.node} will move to {line.block}"
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
        case Origin.FOLLOWS:
            return f"node {line.node} would get {line.block} by its address"
    return f"node {line.node} would get {line.block}"


def is_new(plan: Plan, line: Line) -> bool:
    """Return whether nobody has a block yet, so that an edit decides about it, without a move."""
    return plan.origins.get(line.block, Origin.ADOPTED) not in {Origin.ADOPTED, Origin.RETURNED}


def lines_shown(plan: Plan, lines: Sequence[tuple[Line, Want | None, str]]) -> list[Related]:
    """Return the places of at most NAMES_SHOWN lines, each with its fault."""
    found = [
        Related(line_place(plan, line, want), has(plan, line) + (f", {why}" if why else ""))
        for line, want, why in lines[:NAMES_SHOWN]
    ]
    if more := len(lines) - len(found):
        found[-1] = Related(found[-1].at, f"{found[-1].label}; and {more:,} more")
    return found


def pins_of(plan: Plan, line: Line) -> dict[Block, Place]:
    """Return the pins of a line's node in the line's pool, with their places."""
    pool = plan.scheme.pools_by_name.get(line.pool)
    return {pin.block: pin.at for pin in pool.pins.get(line.node, ())} if pool else {}


def given_by(plan: Plan, line: Line, want: Want | None) -> Iterator[Related]:
    """Yield the pool of a block, and why it serves the node."""
    pool = plan.scheme.pools_by_name.get(line.pool)
    if pool is None:
        return
    who = f'pool "{pool.name}"'
    if pool.name in plan.operator_pools:
        who = f"Cilium's operator gave it from {who}, which"
    if pin := pins_of(plan, line).get(line.block):
        yield Related(pin, f"{who} pins it")
    elif want is None or pool.selector.matches(want.node.labels, want.node.name):
        yield Related(pool.selector_at, f"{who} selects it by {cut(pool.selector.canonical)}")
    elif full := next((offer.pool for offer in want.offers if pool.name in offer.pool.overflow), None):
        label = f'{who} replaces "{full.name}" when that is full'
        yield Related(full.at / "spec" / "overflow", label)
    else:
        yield Related(pool.selector_at, f"{who} no longer selects it by {cut(pool.selector.canonical)}")


OR_THE_TEST = "or change the test (warn: true only warns)"


class Wrong(NamedTuple):
    """A block that a test does not allow."""

    line: Line
    want: Want | None
    """Its node; None if it is not in the inventory."""
    why: str
    at: Place
    """The part of the test that forbids it."""
    served: bool = False
    """The pool that would serve the node today has allowed blocks."""

    @property
    def shown(self) -> tuple[Line, Want | None, str]:
        """Return its parts that a finding prints."""
        return self.line, self.want, self.why


def said(test: Assertion) -> str:
    """Return the beginning of every message about a test."""
    return f'test "{cut(test.name)}"'


def fails(
    code: str, test: Assertion, at: Place, message: str, also: Iterable[Related], fix: str
) -> Diagnostic:
    """Return a finding about a test, with its author's reason."""
    make = warning if test.warn else error
    return make(code, at, f"{said(test)}: {message}", also=[*also, *because(test)], help=fix)


def block_elsewhere(plan: Plan, test: Assertion, wrong: Sequence[Wrong], of: int) -> Diagnostic:
    """IPC1001: nodes have only blocks that a test allows."""
    first = wrong[0]
    blocks = names((f"{found.line.node} ({found.line.block})" for found in wrong), 3)
    share = f"{len({found.line.node for found in wrong}):,} of {count(of, 'node')}"
    have = "has" if len({found.line.node for found in wrong}) == 1 else "have"
    message = f"{share} {have} a block that it does not allow: {blocks}"
    also = [*lines_shown(plan, [found.shown for found in wrong]), *given_by(plan, first.line, first.want)]
    return fails("IPC1001", test, first.at, message, also, _way_out(plan, wrong))


def _way_out(plan: Plan, wrong: Sequence[Wrong]) -> str:
    """Return the fix for blocks of one pool."""
    line = wrong[0].line
    if line.pool in plan.operator_pools:
        only = f"limit pool {line.pool} to allowed CIDRs"
        until = "then drain and re-create the nodes; until then exclude them in the test's nodeSelector"
        return f"ipamc cannot move these: {only}, {until}, {OR_THE_TEST}"
    if cancel := cancel_of(plan, [found.line for found in wrong]):
        return f"{cancel}, {OR_THE_TEST}"
    held = [found.line for found in wrong if not is_new(plan, found.line)]
    if not held:
        before = f"give these nodes an allowed pool before pool {line.pool}"
        return f"{before}, by its nodeSelector or priority, {OR_THE_TEST}"
    command = renumber_command(plan.scheme, held)
    first = "let a pool that the test allows serve them, then move "
    if any(found.line.block in pins_of(plan, found.line) for found in wrong):
        first = "remove the pin, then move "
    elif all(found.served for found in wrong):
        first = "move "
    return f"{first}all of them in one run: {command}; {OR_THE_TEST}"


def cancel_of(plan: Plan, lines: Iterable[Line]) -> str:
    """Return how to cancel a renumber in the lock; "" if there is none."""
    for line in lines:
        if line.state is State.PENDING and line.block not in plan.origins:
            return f"cancel the move: ipamc lock {plan.scheme.name} --release {line.node}"
    return ""


def node_lacks_block(
    plan: Plan, test: Assertion, lacks: Sequence[tuple[Block, Place]], has: Sequence[Line], want: Want
) -> Diagnostic:
    """IPC1002: a node has the blocks that a test names."""
    blocks, first = ", ".join(str(block) for block, _ in lacks[:5]), lacks[0]
    instead = [line for line in has if line.block.family == first[0].family] or has
    what = f"it has {names(str(line.block) for line in has)}" if has else "it has none"
    renumber = f"ipamc lock {plan.scheme.name} --renumber {want.node.name}"
    pin = f"pin it in the pool, pins: {{{want.node.name}: [{first[0]}]}}, then: {renumber}"
    way_out = cancel_of(plan, instead) or pin
    message = f"node {want.node.name} does not have {blocks}; {what}"
    also = lines_shown(plan, [(line, want, "") for line in instead])
    also += [found for line in instead[:1] for found in given_by(plan, line, want)]
    return fails("IPC1002", test, first[1], message, also, f"{way_out}; {OR_THE_TEST}")


def no_room_for(test: Assertion, has: str, why: str, also: Sequence[Related], way_out: str) -> Diagnostic:
    """IPC1003: there is room for as many nodes as a test requires."""
    at, fix = test.at / "room" / "nodes", f"{way_out}; {OR_THE_TEST}"
    return fails("IPC1003", test, at, f"{has}; {why}", also, fix)


class Shared(NamedTuple):
    """A prefix with blocks of two groups."""

    prefix: Block
    one: Line
    other: Line
    groups: tuple[str, str]


def shares_prefix(
    plan: Plan, test: Assertion, shared: Sequence[Shared], wants: Sequence[Want | None]
) -> Diagnostic:
    """IPC1004: groups of nodes that a test keeps apart share no prefix."""
    first = shared[0]
    prefixes = names((str(found.prefix) for found in shared), 3)
    blocks = [
        (line, want, f"in {found.prefix}: {cut(group)}")
        for found, pair in zip(shared, zip(wants[::2], wants[1::2], strict=True), strict=True)
        for line, want, group in zip((found.one, found.other), pair, found.groups, strict=True)
    ]
    if first.one.node == first.other.node:
        way_out = f"node {first.one.node} is in both groups: make the selectors exclude each other"
    else:
        way_out = "give each group its own pools"
        if not is_new(plan, first.other):
            renumber = f"ipamc lock {plan.scheme.name} --renumber {first.other.node}"
            way_out += f", then move the nodes that are elsewhere: {renumber}"
    message = f"groups share {count(len(shared), 'prefix', 'prefixes')}: {prefixes}"
    also = [*lines_shown(plan, blocks), *given_by(plan, first.other, wants[1])]
    return fails("IPC1004", test, test.at / "apart", message, also, f"{way_out}; {OR_THE_TEST}")


def renumber_not_agreed(plan: Plan, test: Assertion, at: Place, wrong: Sequence[Wrong]) -> Diagnostic:
    """IPC1006: every renumber has a ticket."""
    nodes = list(dict.fromkeys(found.line.node for found in wrong))
    entries = ", ".join(f"{{node: {node}, ticket: …}}" for node in nodes[:NAMES_SHOWN])
    cancel = cancel_of(plan, [found.line for found in wrong])
    message = f"{count(len(nodes), 'node')} renumbered without a ticket: {names(nodes)}"
    also = [Related(line_place(plan, found.line, found.want), found.why) for found in wrong[:NAMES_SHOWN]]
    fix = f"add to agreed first: {entries}{' …' if len(nodes) > NAMES_SHOWN else ''}"
    return fails("IPC1006", test, at, message, also, f"{fix}, or {cancel}" if cancel else fix)


def agreed_for_nothing(test: Assertion, idle: Sequence[Agreed]) -> Diagnostic:
    """IPC1010: every node in `agreed` is being renumbered."""
    entries = f"agreed has {count(len(idle), 'entry', 'entries')} for nodes that are not renumbered"
    message = f"{said(test)}: {entries}: {names(entry.node for entry in idle)}"
    return warning("IPC1010", idle[0].at, message, help="remove the entry, or renumber the node")


def ticket_misspelt(test: Assertion, entry: Agreed, pattern: str) -> Diagnostic:
    """IPC1012: every ticket in `agreed` matches the pattern `ticket`."""
    message = f"{shown(entry.ticket)} for node {entry.node} does not match {shown(pattern)}"
    also = [Related(test.at / "renumber" / "ticket", "the pattern is here")]
    return fails("IPC1012", test, entry.at / "ticket", message, also, "correct the ticket")


def something_there(
    plan: Plan, test: Assertion, at: Place, wrong: Sequence[Wrong], ranges: Sequence[Related]
) -> Diagnostic:
    """IPC1005: nothing is in a CIDR that a test keeps free."""
    what = [count(len(wrong), "block")] if wrong else []
    what += [count(len(ranges), "range of a pool", "ranges of pools")] if ranges else []
    way_out = "remove the range from the pool, or add the part to reserved of the pool"
    if held := next((found.line.node for found in wrong if not is_new(plan, found.line)), ""):
        renumber = f"ipamc lock {plan.scheme.name} --renumber {held}"
        way_out += f"; move the nodes in the same run: {renumber}"
    also = [*lines_shown(plan, [found.shown for found in wrong]), *ranges[:NAMES_SHOWN]]
    there = f"{' and '.join(what)} in a CIDR that must stay free"
    return fails("IPC1005", test, at, there, also, f"{way_out}; {OR_THE_TEST}")


def no_subject(test: Assertion, at: Place, problem: str, fix: str) -> Diagnostic:
    """IPC1007: the selectors and names of a test match something in the cluster."""
    return fails("IPC1007", test, at, problem, (), fix)


def no_cluster(test: Assertion) -> Diagnostic:
    """Return the finding about a shared test whose address space no cluster has."""
    at = Place(test.at.path, test.at.document, (*test.at.keys[:-2], "addressSpace"))
    problem = f"no cluster belongs to address space {shown(test.space)}"
    return no_subject(test, at, problem, "correct addressSpace, or remove it")


def too_much(at: At, problem: str) -> Diagnostic:
    """IPC1008: the tests of a cluster run in bounded time."""
    fix = (
        'in selectors and each, use labels that many nodes share (rack == "r1"); '
        "merge tests of the same nodes; lower nodes of room, or name a pool"
    )
    return error("IPC1008", at, problem, help=fix)


def until_moved(plan: Plan, test: Assertion, at: Place, wrong: Sequence[Wrong]) -> Diagnostic:
    """IPC1009: tests pass before pending nodes have moved."""
    nodes = list(dict.fromkeys(found.line.node for found in wrong))
    have = count(len(nodes), "node has", "nodes have")
    message = f"{said(test)} passes once {have} moved: {names(nodes)}"
    fix = f"drain the node, then: ipamc lock {plan.scheme.name} --settle {nodes[0]}"
    return warning("IPC1009", at, message, also=lines_shown(plan, [found.shown for found in wrong]), help=fix)


def other_space(test: Assertion, space: str) -> Diagnostic:
    """IPC1013: tests in a cluster's folder belong to its own address space."""
    at = Place(test.at.path, test.at.document, (*test.at.keys[:-2], "addressSpace"))
    mine = f"the Cluster belongs to {shown(space)}" if space else "the Cluster names none"
    fix = "remove addressSpace here, or move the document to tests.yaml beside the clusters"
    message = f"the tests belong to address space {shown(test.space)}, but {mine}"
    return error("IPC1013", at, message, help=fix)
