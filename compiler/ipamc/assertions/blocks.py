"""Tests about where blocks are. A test costs O(its CIDRs log lines + blocks that it does not allow)."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ipamc.assertions import rules
from ipamc.assertions.rules import Shared, Wrong
from ipamc.assertions.subjects import Group, Subjects
from ipamc.model.address_sets import aggregated, index_around, lines_over, nested, shared, subtract
from ipamc.model.assertion import Apart, Assertion, BlocksOf, NodeHas, NothingIn
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Range
from ipamc.model.diagnostics import Diagnostic, Place, Related
from ipamc.model.lock import Line
from ipamc.model.overlap_index import OverlapIndex
from ipamc.model.plan import Want
from ipamc.model.selector.selector import Selector
from ipamc.model.wording import cut, nearest, shown

_block = operator.attrgetter("block")


class Judgement(NamedTuple):
    """What became of a test."""

    subjects: int
    noun: str
    plural: str
    findings: tuple[Diagnostic, ...]
    empty: bool = False
    """It is about nothing; the finding says why."""


def no_nodes(test: Assertion, at: Place, problem: str, near: str = "") -> Judgement:
    """Return the judgement of a test without nodes."""
    way_out = (
        f"did you mean {near!r}?"
        if near
        else "correct it, remove the test, or say that this may be: allowEmpty: true"
    )
    return Judgement(0, "node", "nodes", (rules.no_subject(test, at, problem, way_out),), empty=True)


def no_nodes_of(test: Assertion, at: Place, selector: Selector, subjects: Subjects) -> Judgement:
    """Return the judgement of a test whose selector picks no node; it names a label that no node has."""
    known = subjects.labels
    if missing := sorted(selector.keys - known):
        key = missing[0]
        same_name = [other for other in sorted(known) if other.rpartition("/")[2] == key.rpartition("/")[2]]
        near = nearest(key, known) or (same_name[0] if len(same_name) == 1 else "")
        problem = f"no node fits {cut(selector.canonical)}, and none has the label {shown(key)}"
        return no_nodes(test, at, problem, near)
    return no_nodes(test, at, f"no node fits {cut(selector.canonical)}")


def check_blocks(test: Assertion, asserts: BlocksOf, subjects: Subjects) -> Judgement:
    """Test where the blocks of nodes are, and how large."""
    groups = subjects.of(asserts.selector)
    nodes = sum(len(group.wants) for group in groups)
    at = test.at / "blocks"
    if not nodes:
        return no_nodes_of(test, at / "nodeSelector", asserts.selector, subjects)
    allowed = _Allowed(asserts, at)
    now: list[Wrong] = []
    later: list[Wrong] = []
    seen = False
    for group in groups:
        lines = subjects.lines(group)
        seen = seen or bool(lines.coming)
        now += allowed.wrong(lines.coming, lines.sizes, subjects)
        later += allowed.wrong(lines.leaving, lines.sizes, subjects)
    if not seen:
        return no_nodes(
            test, at / "nodeSelector", f"no node of {cut(asserts.selector.canonical)} has a block"
        )
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
    """What a test of kind `blocks` allows."""

    def __init__(self, asserts: BlocksOf, at: Place) -> None:
        self._asserts = asserts
        self._at = at
        self._within: dict[int, list[Block]] = {}
        for found in aggregated(cidr.block for cidr in asserts.within):
            self._within.setdefault(found.family, []).append(found)

    def wrong(
        self, lines: Sequence[Line], sizes: frozenset[tuple[int, int]], subjects: Subjects
    ) -> Iterator[Wrong]:
        """Yield the lines that are not allowed; each once."""
        asserts = self._asserts
        found: dict[Block, tuple[Line, str, Place]] = {}
        for family, within in self._within.items():
            ranges = [cidr for cidr in asserts.within if cidr.block.family == family]
            why = f"not within {_listed(ranges)}"
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
                        found.setdefault(line.block, (line, f"which is no /{size}", field))
        for line, why, at in found.values():
            want = subjects.want(line.node)
            yield Wrong(line, want, why, at, served=self._served(want, line.block.family))

    def _served(self, want: Want | None, family: int) -> bool:
        """Tell whether the first pool of a node has what is allowed."""
        offer = want.offers[0] if want and want.offers else None
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
    at = bisect.bisect_left(lines, Block(family, 0, 0), key=_block)
    for cidr in within:
        # A larger block that begins where a CIDR does sorts before it.
        low = bisect.bisect_left(lines, cidr, at, key=_block)
        yield from lines[at:low]
        at = bisect.bisect_left(lines, Block(family, cidr.last + 1, 0), low, key=_block)
    yield from lines[at : bisect.bisect_left(lines, Block(family + 1, 0, 0), at, key=_block)]


def _listed(ranges: Sequence[Range]) -> str:
    more = f" and {len(ranges) - 3} more" if len(ranges) > 3 else ""
    return ", ".join(str(cidr.block) for cidr in ranges[:3]) + more


def check_node(test: Assertion, asserts: NodeHas, subjects: Subjects) -> Judgement:
    """Test that a node has some blocks."""
    plan, want = subjects.plan, subjects.want(asserts.node)
    at = test.at / "node"
    if want is None:
        near = nearest(asserts.node, [want.node.name for want in plan.wants])
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


def check_apart(test: Assertion, asserts: Apart, subjects: Subjects) -> Judgement:
    """Test that groups of nodes share no prefix."""
    at = test.at / "apart"
    named: list[tuple[str, Sequence[Group]]]
    if asserts.each:
        by_value = subjects.by_value(asserts.each, subjects.of(None))
        named = [(f"{asserts.each}={value}", groups) for value, groups in by_value.items()]
        if not named:
            return no_nodes(test, at / "each", f"no node has the label {shown(asserts.each)}")
    else:
        named = [(selector.canonical, subjects.of(selector)) for selector in asserts.selectors]
        for number, selector in enumerate(asserts.selectors):
            if not subjects.of(selector):
                return no_nodes_of(test, at / "nodeSelectors" / number, selector, subjects)
    nodes = sum(len(group.wants) for _, groups in named for group in groups)
    findings: tuple[Diagnostic, ...] = ()
    if now := list(_shared(_prefixes(named, asserts.prefixes, subjects, leaving=False))):
        wants = [subjects.want(line.node) for pair in now for line in (pair.one, pair.other)]
        findings = (rules.shares_prefix(subjects.plan, test, now, wants),)
    elif subjects.moving:
        found = _shared(_prefixes(named, asserts.prefixes, subjects, leaving=True))
        movers = [line for pair in found for line in (pair.one, pair.other) if subjects.is_leaving(line)]
        wrong = [Wrong(line, subjects.want(line.node), "", at) for line in movers]
        findings = (rules.until_moved(subjects.plan, test, at, wrong),) if wrong else ()
    return Judgement(nodes, "node", "nodes", findings)


class _Prefix(NamedTuple):
    """A prefix of the length that is kept apart, or a larger block, with the first block of a group there."""

    block: Block
    group: int
    name: str
    line: Line


def _prefixes(
    named: Sequence[tuple[str, Sequence[Group]]],
    lengths: Mapping[int, int],
    subjects: Subjects,
    *,
    leaving: bool,
) -> Iterator[_Prefix]:
    """Yield the prefixes of each group; with `leaving`, also those of blocks that nodes are to leave."""
    for number, (name, groups) in enumerate(named):
        for group in groups:
            lines = subjects.lines(group)
            for some in (lines.coming, lines.leaving) if leaving else (lines.coming,):
                for family, length in lengths.items():
                    yield from _of_group(some, family, length, number, name)


def _of_group(lines: Sequence[Line], family: int, length: int, number: int, name: str) -> Iterator[_Prefix]:
    """Yield each prefix in which lines have a block, once: O(log n) for each."""
    at = bisect.bisect_left(lines, Block(family, 0, 0), key=_block)
    bits = BITS[family]
    while at < len(lines) and lines[at].block.family == family:
        block = lines[at].block
        if block.prefix > length:
            block = Block(family, block.first >> (bits - length) << (bits - length), length)
        yield _Prefix(block, number, name, lines[at])
        at = bisect.bisect_left(lines, Block(family, block.last + 1, 0), at, key=_block)


def _shared(prefixes: Iterable[_Prefix]) -> Iterator[Shared]:
    """Yield each prefix that two groups have, or that lies in a larger block of another group, once."""
    seen: set[Block] = set()
    for prefix, around in nested(prefixes, operator.itemgetter(0)):
        if prefix.block in seen:
            continue
        other = next((outer for outer in around if outer.group != prefix.group), None)
        if other is not None:
            seen.add(prefix.block)
            yield Shared(prefix.block, other.line, prefix.line, (other.name, prefix.name))


def check_nothing(test: Assertion, asserts: NothingIn, subjects: Subjects) -> Judgement:
    """Test that no block and no range of a pool is in some CIDRs."""
    plan = subjects.plan
    found: dict[Block, tuple[Line, Range]] = {}
    for cidr in asserts.ranges:
        for line in lines_over(plan.lock.lines, cidr.block):
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
    """Yield each range of a pool of which something that may be given out is in a CIDR."""
    cluster = subjects.plan.cluster
    index = OverlapIndex(asserts.ranges, _block)
    excluded = [cidr.block for cidr in cluster.excluded]
    for pool in cluster.pools:
        for part in pool.families.values():
            for cidr in part.ranges:
                over = index.first_over(cidr.block)
                if over is None:
                    continue
                kept = [*excluded, *(reserved.block for reserved in pool.reserved)]
                free = next(subtract(shared(cidr.block, over.block), kept), None)
                if free is not None:
                    yield over.at, Related(cidr.at, f'pool "{pool.name}" may give out {free} of it')
