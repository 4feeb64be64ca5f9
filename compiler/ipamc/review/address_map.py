"""The map of a cluster's addresses, and the versions of its lock that the map can show.

Versions of a lock have nearly all lines in common. They are compared as text, so that a line which did not
change is decoded once, in however many versions it is.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from ipamc.law.change import PENDING, Change, Days, Verdict, changes
from ipamc.lock.file import dumps
from ipamc.lock.line_changes import renumbered
from ipamc.lock.record import HEADER, decode_records, line_of
from ipamc.lock.utilisation import PoolUse
from ipamc.model.address_sets import blocks_over, outermost
from ipamc.model.cidr import Block
from ipamc.model.cluster import Scheme
from ipamc.model.evidence import Evidence
from ipamc.model.limits import MAP_REASONS, NAMES_SHOWN
from ipamc.model.lock import Line, Lock
from ipamc.model.plan import Want
from ipamc.review.explain_pools import ExplainedPool, PoolRole, explain_pools
from ipamc.review.shown_pools import rooms, uses_on


class PoolMap(Struct, frozen=True, kw_only=True):
    """A pool in one family, and its addresses that are in no line of the lock."""

    use: PoolUse
    reserved: tuple[Block, ...]
    """Reserved in the pool, clipped to its ranges; disjoint, by address."""
    excluded: tuple[Block, ...]  # excluded in the cluster, clipped in the same way
    without_line: tuple[Block, ...]  # shown by CiliumNodes without a Node: in use, and in no line
    first: int  # the number of nodes with the pool as first candidate
    room: int
    """The number of further nodes for which each family of the pool has blocks, as in `ipamc show`."""
    further: int  # the number of nodes with it as a further candidate or overflow


class ClusterMap(Struct, frozen=True, kw_only=True):
    """The pools and nodes of a cluster for a map."""

    cluster: Scheme
    lock: Lock
    pools: tuple[PoolMap, ...]  # by name, IPv4 before IPv6
    groups: Sequence[Sequence[ExplainedPool]]
    """The pools, in order, of each group of nodes with equal candidates; of many, some, without reasons."""
    group_of: Mapping[str, int]  # the group of each node of the inventory


def map_of(cluster: Scheme, lock: Lock, wants: Sequence[Want], today: str) -> ClusterMap:
    """Return the map of a cluster from its lock, without a compile. O(n log n).
    `wants` are those of `assign`. Reasons are given for one node of each group, as `ipamc why` does before
    anything is placed.
    """
    groups: dict[int, Want] = {}
    for want in wants:
        groups.setdefault(id(want.offers), want)
    alike, numbers = list(groups.values()), {key: number for number, key in enumerate(groups)}
    group_of = {want.node.name: numbers[id(want.offers)] for want in wants}
    first: Counter[str] = Counter()
    further: Counter[str] = Counter()
    members = Counter(group_of.values())
    for number, want in enumerate(alike):
        for place, offer in enumerate(want.offers):
            (further if place else first)[offer.pool.name] += members[number]
    reasons = _reasons if len(alike) * len(cluster.pools) <= MAP_REASONS else _offers
    in_use = outermost(shown.block for shown in Evidence(cluster).without_node())
    excluded = outermost(cidr.block for cidr in cluster.excluded)
    uses = uses_on(cluster, lock, today)
    room = rooms(cluster, uses)
    pools = [
        PoolMap(
            use=use,
            reserved=_inside(use, outermost(cidr.block for cidr in use.pool.reserved)),
            excluded=_inside(use, excluded),
            without_line=_inside(use, in_use),
            room=room[use.pool.name],
            first=first[use.pool.name],
            further=further[use.pool.name],
        )
        for use in uses
    ]
    every = [list(reasons(cluster, want, today)) for want in alike]
    return ClusterMap(cluster=cluster, lock=lock, pools=tuple(pools), groups=every, group_of=group_of)


def _inside(use: PoolUse, blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(found for part in use.ranges for found in blocks_over(blocks, part.range.block))


def _offers(cluster: Scheme, want: Want, _: str) -> Iterator[ExplainedPool]:
    """Yield the pools that may serve a node, in order, without a reason."""
    other = PoolRole.STANDS_IN if cluster.mode.one_block else PoolRole.SERVES
    for place, offer in enumerate(want.offers[:NAMES_SHOWN]):
        yield ExplainedPool(pool=offer.pool, verdict=other if place else PoolRole.FIRST, why="")


def _reasons(cluster: Scheme, want: Want, today: str) -> Iterator[ExplainedPool]:
    every = explain_pools(cluster, want, None, today)
    return (explained for explained in every if explained.verdict is not PoolRole.PASSED_OVER)


class Sort(enum.StrEnum):
    """What the page says of a line that a version changes."""

    JOINED = "joined"  # its node has it in addition
    MOVED = "moved"  # its node has it instead of another one, or is to have it
    LEFT = "left"
    STATE = "state"  # anything else


class LockVersion(Struct, frozen=True):
    """A version of the lock, as its difference to the version before: ascending indexes of lines."""

    commit: str  # "" if it is not committed
    second: int  # seconds since 1970, UTC; 0 if it is not committed
    subject: str
    added: Sequence[int]
    removed: Sequence[int]
    sorts: Sequence[Sort]  # the sort of each of `added`


class Versions(Struct):
    """The lines of all versions, and the steps from one to the next; the first step starts from no lines.
    The lines of the current lock come first, in its order: index 0 is its second row.
    """

    lines: list[Line]
    current: int  # the number of lines of the current lock
    steps: list[LockVersion] = field(default_factory=list)
    passed_over: int = 0  # the number of versions that are not an intact lock
    _index: dict[bytes, int] = field(default_factory=dict)
    _now: frozenset[bytes] = frozenset()

    def add(
        self, text: bytes, *, commit: str = "", second: int = 0, subject: str = ""
    ) -> list[Change[Line]] | None:
        """Append a version, and return what differs. O(rows).
        One whose rows cannot be read is skipped and counted, and nothing is returned. A text without a header
        is no lock, even an empty one: it does not mean that all blocks were removed.
        """
        header, _, _ = text.partition(b"\n")
        rows = frozenset(_rows(text))
        added, removed = rows - self._now, self._now - rows
        new = [row for row in sorted(added) if row not in self._index]
        try:
            HEADER.decode(header)
            records = decode_records(b"\n".join(new) + b"\n") if new else []
            lines = [line_of(record) for _, record in zip(new, records, strict=True)]  # one record each
        except ValueError:
            self.passed_over += 1
            return None
        self._index.update(zip(new, range(len(self.lines), len(self.lines) + len(new)), strict=True))
        self.lines += lines
        come, gone = (sorted([self._index[row] for row in some]) for some in (added, removed))
        self._now = rows
        before, after = (
            sorted([self.lines[number] for number in numbers], key=lambda line: line.block)
            for numbers in (gone, come)
        )
        found = changes(before, after, Days("", None, None))
        both = renumbered(found)
        sorts = {change.after: _sort(change, both) for change in found}
        of_lines = [sorts.get(self.lines[number], Sort.STATE) for number in come]
        self.steps.append(LockVersion(commit, second, subject, come, gone, of_lines))
        return found

    def add_current(self, lock: Lock, subject: str = "") -> None:
        """Append the current lock, if it differs from the last version."""
        text = dumps(lock).encode()
        if not self.steps or frozenset(_rows(text)) != self._now:
            self.add(text, subject=subject)


def _sort(change: Change[Line], both: Collection[tuple[str, int]]) -> Sort:
    line = change.after
    if change.got:
        return Sort.MOVED if (change.got, change.family) in both else Sort.JOINED
    if line and line.state == PENDING and change.verdict is not Verdict.KEPT:
        return Sort.MOVED
    return Sort.LEFT if line and line.since and not line.moved and change.lost else Sort.STATE


def versions_of(lock: Lock) -> Versions:
    """Return a table of versions with the lines of the current lock and no version yet."""
    index = {row: number for number, row in enumerate(_rows(dumps(lock).encode()))}
    return Versions(lines=list(lock.lines), current=len(index), _index=index)


def _rows(text: bytes) -> Iterator[bytes]:
    return filter(None, text.split(b"\n")[1:])


def chosen(number: int, most: int) -> list[int]:
    """Return the indexes of at most `most` of `number` versions to show, ascending: the first and the newest.
    Half of them are the newest, the others are spread evenly over the rest.
    """
    if number <= most:
        return list(range(number))
    newest = most // 2
    older = most - newest
    rest = number - newest
    return [*(index * rest // older for index in range(older)), *range(rest, number)]
