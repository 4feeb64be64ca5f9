"""Tests about where blocks are, in O(CIDRs log lines + forbidden blocks); shared prefixes; renumbers."""

from __future__ import annotations

import bisect
import fnmatch
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamc.assertions import assertion_rules as rules
from ipamc.assertions.assertion_rules import Shared, Wrong
from ipamc.assertions.subjects import NodeGroup, Subjects
from ipamc.law.change import last_day
from ipamc.model.address_sets import aggregated, by_block, index_around, lines_over, nested, shared, subtract
from ipamc.model.assertion import Apart, Assertion, BlocksOf, NodeHas, NothingIn, Renumber
from ipamc.model.cidr import Block, OverlapIndex, Range
from ipamc.model.diagnostics import Diagnostic, Place, Related
from ipamc.model.lock import Line, State
from ipamc.model.plan import Offer, Plan
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import cut, shown

_REPORTED = 4
"""The weight of a forbidden block in steps: a finding loops over all of them several times."""


class Judgement(NamedTuple):
    """The result of a test."""

    subjects: int
    noun: str
    plural: str
    findings: tuple[Diagnostic, ...]
    empty: bool = False
    """The test matches nothing; the finding has the reason."""


def no_nodes(test: Assertion, at: Place, problem: str, near: str = "") -> Judgement:
    """Return the judgement of a test without nodes."""
    correct = "correct it, remove the test, or allow this: allowEmpty: true"
    way_out = f"did you mean {near!r}?" if near else correct
    return Judgement(0, "node", "nodes", (rules.no_subject(test, at, problem, way_out),), empty=True)


def no_nodes_of(test: Assertion, at: Place, selector: Selector, subjects: Subjects) -> Judgement:
    """Return the judgement of a test whose selector matches no node; it names a label that no node has."""
    known = subjects.labels
    if missing := sorted(selector.keys - known):
        key = missing[0]
        same_name = [other for other in sorted(known) if other.rpartition("/")[2] == key.rpartition("/")[2]]
        near = subjects.nearest(key, known) or (same_name[0] if len(same_name) == 1 else "")
        problem = f"no node matches {cut(selector.canonical)}: none has the label {shown(key)}"
        return no_nodes(test, at, problem, near)
    return no_nodes(test, at, f"no node matches {cut(selector.canonical)}")


def check_blocks(test: Assertion, asserts: BlocksOf, subjects: Subjects) -> Judgement:
    """Test where the blocks of nodes are, and how large."""
    groups = subjects.of(asserts.selector)
    nodes = sum(len(group.wants) for group in groups)
    at = test.at / "blocks"
    if not nodes:
        return no_nodes_of(test, at / "nodeSelector", asserts.selector, subjects)
    allowed = _Allowed(asserts, at)
    subjects.count(len(groups) * (1 + len(asserts.within) + len(asserts.outside)))
    now: list[Wrong] = []
    later: list[Wrong] = []
    seen = False
    for group in groups:
        lines = subjects.lines(group)
        seen = seen or bool(lines.coming)
        now += allowed.wrong(lines.coming, lines.sizes, subjects)
        later += allowed.wrong(lines.leaving, lines.sizes, subjects)
    if not seen:
        problem = f"no node that matches {cut(asserts.selector.canonical)} has a block"
        return no_nodes(test, at / "nodeSelector", problem)
    by_pool: dict[str, list[Wrong]] = {}
    for wrong in sorted(now, key=lambda found: found.line.block):
        by_pool.setdefault(wrong.line.pool, []).append(wrong)
    findings = [
        rules.block_elsewhere(subjects.plan, test, some, nodes) for _, some in sorted(by_pool.items())
    ]
    if later and not now:
        findings.append(rules.until_moved(subjects.plan, test, at, later))
    return Judgement(nodes, "node", "nodes", tuple(findings))


class _Allowed:
    def __init__(self, asserts: BlocksOf, at: Place) -> None:
        self._asserts = asserts
        self._at = at
        self._within: dict[int, list[Block]] = {}
        self._known: dict[tuple[int, int], bool] = {}
        for found in aggregated(cidr.block for cidr in asserts.within):
            self._within.setdefault(found.family, []).append(found)

    def wrong(
        self, lines: Sequence[Line], sizes: frozenset[tuple[int, int]], subjects: Subjects
    ) -> Iterator[Wrong]:
        """Yield the lines that are forbidden, each once."""
        asserts = self._asserts
        found: dict[Block, tuple[Line, str, Place]] = {}
        for family, within in self._within.items():
            ranges = [cidr for cidr in asserts.within if cidr.block.family == family]
            more = f" and {len(ranges) - 3} more" if len(ranges) > 3 else ""
            why = f"not within {', '.join(str(cidr.block) for cidr in ranges[:3])}{more}"
            for line in _not_within(lines, family, within):
                found[line.block] = line, why, self._at / "within"
        for cidr in asserts.outside:
            for line in lines_over(lines, cidr.block):
                found.setdefault(line.block, (line, f"in {cidr.block}", cidr.at))
        for family, size in asserts.sizes.items():
            if any(family == other and size != prefix for other, prefix in sizes):
                for line in lines:
                    if line.block.family == family and line.block.prefix != size:
                        field = self._at / f"ipv{family}"
                        found.setdefault(line.block, (line, f"not a /{size}", field))
        for line, why, at in found.values():
            want = subjects.want(line.node)
            subjects.count(_REPORTED)
            offers = want.offers if want else ()
            key = id(offers), line.block.family  # nodes that are equal for selectors share a tuple of offers
            if key not in self._known:
                self._known[key] = self._served(offers, line.block.family)
            yield Wrong(line, want, why, at, served=self._known[key])

    def _served(self, offers: Sequence[Offer], family: int) -> bool:
        """Return whether the first pool of a node has allowed blocks."""
        offer = offers[0] if offers else None
        part = offer.pool.families.get(family) if offer else None
        if offer is None or part is None:
            return False
        size, within = self._asserts.sizes.get(family), self._within.get(family)
        ranges = [cidr.block for cidr in part.ranges]
        return (size is None or offer.sizes[family] == size) and all(
            (within is None or index_around(within, block) is not None)
            and not any(cidr.block.overlaps(block) for cidr in self._asserts.outside)
            for block in ranges
        )


def _not_within(lines: Sequence[Line], family: int, within: Sequence[Block]) -> Iterator[Line]:
    """Yield the lines of a family that lie in none of some disjoint CIDRs, by address."""
    at = bisect.bisect_left(lines, Block(family, 0, 0), key=by_block)
    for cidr in within:
        # A larger block that begins where a CIDR does sorts before it.
        low = bisect.bisect_left(lines, cidr, at, key=by_block)
        yield from lines[at:low]
        at = bisect.bisect_left(lines, Block(family, cidr.last + 1, 0), low, key=by_block)
    yield from lines[at : bisect.bisect_left(lines, Block(family + 1, 0, 0), at, key=by_block)]


def check_node(test: Assertion, asserts: NodeHas, subjects: Subjects) -> Judgement:
    """Test that a node has some blocks."""
    plan, want = subjects.plan, subjects.want(asserts.node)
    at = test.at / "node"
    if want is None:
        near = subjects.nearest(asserts.node, [want.node.name for want in plan.wants])
        return no_nodes(test, at / "name", f"there is no node {shown(asserts.node)}", near)
    lines = subjects.lines_of([asserts.node])
    coming = {line.block for line in lines.coming}
    lacks = [(cidr.block, cidr.at) for cidr in asserts.has if cidr.block not in coming]
    findings: tuple[Diagnostic, ...] = ()
    if lacks:
        findings = (rules.node_lacks_block(plan, test, lacks, lines.coming, want),)
    elif lines.leaving:
        held = {line.block for line in plan.held.get(asserts.node, ())}
        if any(cidr.block not in held for cidr in asserts.has):
            later = [Wrong(line, want, "", at) for line in lines.leaving]
            findings = (rules.until_moved(plan, test, at, later),)
    return Judgement(1, "node", "nodes", findings)


def check_nothing(test: Assertion, asserts: NothingIn, subjects: Subjects) -> Judgement:
    """Test that no block and no range of a pool is in some CIDRs."""
    plan = subjects.plan
    found: dict[Block, tuple[Line, Range]] = {}
    for cidr in asserts.ranges:
        lines = lines_over(plan.lock.lines, cidr.block)
        subjects.count(1 + len(lines))
        for line in lines:
            if line.in_use:
                found.setdefault(line.block, (line, cidr))
    now: list[Wrong] = []
    later: list[Wrong] = []
    for line, cidr in found.values():
        some = later if subjects.is_leaving(line) else now
        some.append(Wrong(line, subjects.want(line.node), f"in {cidr.block}", cidr.at))
    ranges = list(_ranges_in(asserts, subjects))
    at = now[0].at if now else ranges[0][0] if ranges else test.at / "nothingIn"
    findings: tuple[Diagnostic, ...] = ()
    if now or ranges:
        findings = (rules.something_there(plan, test, at, now, [related for _, related in ranges]),)
    elif later:
        findings = (rules.until_moved(plan, test, at, later),)
    return Judgement(len(asserts.ranges), "CIDR", "CIDRs", findings)


def _ranges_in(asserts: NothingIn, subjects: Subjects) -> Iterator[tuple[Place, Related]]:
    """Yield each range of a pool with addresses in a CIDR that may be given out."""
    cluster = subjects.plan.scheme
    index = OverlapIndex(asserts.ranges, by_block)
    excluded = [cidr.block for cidr in cluster.excluded]
    for pool in cluster.pools:
        for part in pool.families.values():
            for cidr in part.ranges:
                over = index.first_over(cidr.block)
                if over is None:
                    continue
                kept = [*excluded, *(reserved.block for reserved in pool.reserved)]
                subjects.count(1 + len(kept))
                free = next(subtract(shared(cidr.block, over.block), kept), None)
                if free is not None:
                    yield over.at, Related(cidr.at, f'pool "{pool.name}" may hand out {free}')


def check_renumbers(test: Assertion, asserts: Renumber, subjects: Subjects, today: str) -> Judgement:
    """Test that every renumber is in `agreed`. O(lines + entries)."""
    plan = subjects.plan
    subjects.count(len(plan.lock.lines))
    under_way = [line for line in plan.lock.lines if _is_renumber(line, plan, today)]
    agreed = {entry.node for entry in asserts.agreed}
    missing = [line for line in under_way if line.node not in agreed]
    findings = [
        rules.ticket_misspelt(test, entry, asserts.ticket)
        for entry in asserts.agreed
        if not fnmatch.fnmatchcase(entry.ticket, asserts.ticket)
    ]
    if missing:
        wrong = []
        for line in sorted(missing, key=lambda line: (line.node, line.block)):
            moved = f"node {line.node} left {line.block} on {line.since}"
            why = rules.has(plan, line) if line.state is State.PENDING else moved
            wrong.append(Wrong(line, subjects.want(line.node), why, test.at / "renumber"))
        findings.append(rules.renumber_not_agreed(plan, test, test.at / "renumber" / "agreed", wrong))
    nodes = {line.node for line in under_way}
    if idle := [entry for entry in asserts.agreed if entry.node not in nodes]:
        findings.append(rules.agreed_for_nothing(test, idle))
    return Judgement(len(nodes), "renumber", "renumbers", tuple(findings))


def _is_renumber(line: Line, plan: Plan, today: str) -> bool:
    """Return whether a line belongs to a renumber in progress, or one whose old block is in quarantine.
    Moved lines of nodes with several blocks do not count: `ipamc resize` leaves them behind as well.
    """
    if line.state is State.PENDING:
        return True
    if not line.moved or not plan.scheme.mode.one_block:
        return False
    over = last_day(today, plan.scheme.quarantine_days)
    return not (over and line.since <= over)


_Key = tuple[str, ...]
"""The label or the selectors that tests of the same groups have in common."""


class Aparts:
    """The groups of nodes in a plan, and their common prefixes."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._groups: dict[_Key, Sequence[tuple[str, Sequence[NodeGroup]]]] = {}
        self._nodes: dict[_Key, int] = {}
        self._shared: dict[tuple[_Key, int, int, bool], Sequence[Shared]] = {}

    def check(self, test: Assertion, asserts: Apart) -> Judgement:
        """Test that groups of nodes share no prefix. Raises TooMany."""
        subjects, at = self._subjects, test.at / "apart"
        key = (asserts.each,) if asserts.each else tuple(each.canonical for each in asserts.selectors)
        if key not in self._groups:
            by_value = subjects.by_value(asserts.each).items() if asserts.each else ()
            named = [(f"{asserts.each}={value}", groups) for value, groups in by_value]
            named += [(selector.canonical, subjects.of(selector)) for selector in asserts.selectors]
            self._groups[key] = named
            self._nodes[key] = sum(len(group.wants) for _, groups in self._groups[key] for group in groups)
        if asserts.each and not self._groups[key]:
            return no_nodes(test, at / "each", f"no node has the label {shown(asserts.each)}")
        for number, selector in enumerate(asserts.selectors):
            if not subjects.of(selector):
                return no_nodes_of(test, at / "nodeSelectors" / number, selector, subjects)
        if now := self._found(key, asserts, leaving=False):
            wants = [subjects.want(line.node) for pair in now for line in (pair.one, pair.other)]
            finding = rules.shares_prefix(subjects.plan, test, now, wants)
            return Judgement(self._nodes[key], "node", "nodes", (finding,))
        found = self._found(key, asserts, leaving=True) if subjects.moving else []
        movers = [line for pair in found for line in (pair.one, pair.other) if subjects.is_leaving(line)]
        wrong = [Wrong(line, subjects.want(line.node), "", at) for line in movers]
        findings = (rules.until_moved(subjects.plan, test, at, wrong),) if wrong else ()
        return Judgement(self._nodes[key], "node", "nodes", findings)

    def _found(self, key: _Key, asserts: Apart, *, leaving: bool) -> list[Shared]:
        """Return the prefixes that groups share; with `leaving`, also by blocks that nodes will leave."""
        result: list[Shared] = []
        for family, length in sorted(asserts.prefixes.items()):
            of = key, family, length, leaving
            if of not in self._shared:
                self._shared[of] = list(_shared(self._prefixes(key, family, length, leaving=leaving)))
            result += self._shared[of]
        self._subjects.count(1 + len(result))
        return result

    def _prefixes(self, key: _Key, family: int, length: int, *, leaving: bool) -> Iterator[_GroupPrefix]:
        for number, (name, groups) in enumerate(self._groups[key]):
            self._subjects.count(len(groups))
            for group in groups:
                lines = self._subjects.lines(group)
                for some in (lines.coming, lines.leaving) if leaving else (lines.coming,):
                    found = list(_of_group(some, family, length, number, name))
                    self._subjects.count(len(found))
                    yield from found


class _GroupPrefix(NamedTuple):
    """A prefix of the length that is kept apart, or a larger block, with the first block of a group there."""

    block: Block
    group: int
    name: str
    line: Line


def _of_group(
    lines: Sequence[Line], family: int, length: int, number: int, name: str
) -> Iterator[_GroupPrefix]:
    """Yield each prefix in which the lines have a block, once: O(log n) for each."""
    at = bisect.bisect_left(lines, Block(family, 0, 0), key=by_block)
    while at < len(lines) and lines[at].block.family == family:
        block = lines[at].block.widened(length)
        yield _GroupPrefix(block, number, name, lines[at])
        at = bisect.bisect_left(lines, Block(family, block.last + 1, 0), at, key=by_block)


def _shared(prefixes: Iterable[_GroupPrefix]) -> Iterator[Shared]:
    """Yield each prefix that two groups have, or that lies in a larger block of another group, once."""
    seen: set[Block] = set()
    for prefix, around in nested(prefixes, operator.itemgetter(0)):
        if prefix.block in seen:
            continue
        other = next((outer for outer in around if outer.group != prefix.group), None)
        if other is not None:
            seen.add(prefix.block)
            yield Shared(prefix.block, other.line, prefix.line, (other.name, prefix.name))
