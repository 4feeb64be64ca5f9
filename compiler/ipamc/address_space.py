"""Clusters of one address space: what each of them claims, and that nobody else claims it.

A cluster claims the ranges of its pools, disabled ones too, and the blocks that its lock holds outside of them: held, pending and quarantined. Its excluded CIDRs
are no claim: they may well be another cluster's ranges, and `reserved` gives nothing back: what is reserved today is given out tomorrow.

Clusters stand alone in everything else, so this is asked once for each cluster, of its own claims against those of the others: every cluster that is
refused has a finding in its own files. Of two that overlap both are refused, also where their locks say so since long: which of the two has to give
way is not for a compiler to say, and nobody is told by a check that lets old trouble pass. The way out is to take `addressSpace` away until the nodes
have moved. A neighbour that cannot be read is taken for one that overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ipamc.lock.file import Record, load, skim
from ipamc.lock.rules import row_at
from ipamc.model.cidr import Block, CidrError, parse_block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import At, Diagnostic, Log, Place, Refused, Related, Severity, Span, error
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.range_index import RangeIndex
from ipamc.read.locate import locate
from ipamc.read.read import read

_FIELD = b"addressSpace"
Held = tuple[Block, Line | Record]
"""A block that a lock holds, and its line."""

_NEEDED = (_FIELD, b"IPPool", b"ClusterCIDR")
"""One of these is in every file that says something about claims; inventories, which take most of the time, seldom have one."""


class Claim(NamedTuple):
    """Addresses that are a cluster's own, and where it says so."""

    block: Block
    at: At
    owner: str
    """The pool of a range, else the node that holds the block."""
    state: str = ""
    """held, pending or quarantined; "" for a range."""

    def __str__(self) -> str:
        return f"{self.block} of node {self.owner}" if self.state else f'{self.block} of pool "{self.owner}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """All that a cluster claims."""

    cluster: str
    space: str
    at: Place
    """Where its address space is named."""
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A cluster that names an address space, or may name one, and cannot be read."""

    cluster: str
    space: str
    """"" where it could not even be told which one."""
    at: At
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The other clusters that may be of an address space, by folder."""

    claims: tuple[Claims, ...] = ()
    unread: tuple[Unread, ...] = ()


def mentions(sources: Mapping[str, bytes]) -> bool:
    """Tell whether documents may name an address space. A key that is spelled with escapes is seen by the cluster's own compile alone."""
    return any(_FIELD in data for data in sources.values())


def survey(
    name: str,
    folder: str,
    sources: Mapping[str, bytes],
    schemas: Mapping[str, str],
    lock: bytes | None,
    lock_path: str,
    *,
    rendered: bool,
) -> Claims | Unread | None:
    """Read what a cluster claims, and not its nodes; None where it is of no address space.

    Cluster and pools have to be as sound as a compile wants them by themselves, the lock sound enough to tell every block that it holds. Some 15 ms for
    5,000 nodes, two thirds of that for the lines of the lock.
    """
    wanted = {path: data for path, data in sources.items() if any(word in data for word in _NEEDED)}
    space = ""
    try:
        cluster, _ = read(name, folder, wanted, schemas)
        space = cluster.address_space
        if not space:
            return None
        held = _skimmed(lock, name) if lock else None
        if held is None:
            # Whether the lock may go over to another mode is for the cluster's own compile to ask; it claims the same blocks.
            found = Log().keep(load(lock, lock_path, cluster, Consent(mode=True), rendered=rendered))
            held = lines_of(found)
    except Refused as refused:
        worst = next(each for each in locate(refused.diagnostics, wanted) if each.severity is Severity.ERROR)
        return Unread(cluster=name, space=space, at=worst.at, problem=worst.message)
    return claims(cluster, held, lock_path, lock)


def _skimmed(lock: bytes, cluster: str) -> list[Held] | None:
    records = skim(lock, cluster)
    try:
        return (
            None
            if records is None
            else [(parse_block(each.block), each) for each in records if not each.released]
        )
    except CidrError:
        return None


def lines_of(lock: Lock) -> list[Held]:
    """Give what a lock holds."""
    return [(line.block, line) for line in lock.lines if line.state is not State.RELEASED]


def claims(cluster: Cluster, held: Iterable[Held], lock_path: str, written: bytes | None) -> Claims:
    """Give all that a cluster claims. `written` is the lock's text on the disk, where lines are shown. O(lines)."""
    range_index = RangeIndex(cluster.pools)
    outside = [each for each in held if range_index.of(each[0]) is None]
    ranges = [
        Claim(each.block, each.at, pool.name)
        for pool in cluster.pools
        for part in pool.families.values()
        for each in part.ranges
    ]
    lines = list(_lines(outside, lock_path, written))
    return Claims(
        cluster=cluster.name,
        space=cluster.address_space,
        at=cluster.field("spec", "addressSpace"),
        claims=(*ranges, *lines),
    )


def _lines(held: Sequence[Held], path: str, written: bytes | None) -> Iterator[Claim]:
    """Give lines with their places in the text on the disk, by their blocks; the file as a whole for one that is to be added."""
    rows = written.split(b"\n") if written and held else []
    numbers = {
        row.split(b'"', 4)[3].decode(): number
        for number, row in enumerate(rows, 1)
        if row.startswith(b'{"block"')
    }
    for block, line in held:
        number = numbers.get(str(block))
        at = row_at(path, number, rows[number - 1]) if number else Span(path)
        yield Claim(block, at, line.node, str(line.state))


def overlapping_clusters(mine: Claims, others: Sequence[Claims]) -> Iterator[Diagnostic]:
    """IPC0701: clusters of one address space share no address.

    Clusters that name one `addressSpace` reach each other's pods, in a mesh or over a BGP fabric: an address that two of them claim belongs to two pods.
    Ranges of pools count, and blocks that a lock holds outside of them: held, pending and quarantined. Excluded CIDRs do not. Both clusters are refused until one
    has given way. Clusters that overlap already take `addressSpace` away, move nodes with `ipamc lock --renumber`, and name it again once the old
    blocks are released.
    """
    shared: dict[tuple[Claim, str], list[Claim]] = {}
    for claim, cluster, other in _overlaps(mine, [each for each in others if each.space == mine.space]):
        shared.setdefault((claim, cluster), []).append(other)
    for (claim, cluster), found in shared.items():
        other = found[0]
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        yield error(
            "IPC0701",
            claim.at,
            f"{claim} overlaps {other}{more} of cluster {cluster}, which is of the same address space",
            also=[
                Related(other.at, f"{other.block} claimed by cluster {cluster} here"),
                Related(mine.at, f"address space {mine.space} named here"),
            ],
            help=_way_out((mine.cluster, claim), (cluster, other)),
        )


def _overlaps(mine: Claims, others: Sequence[Claims]) -> Iterator[tuple[Claim, str, Claim]]:
    """Give (own claim, cluster, its claim) of every overlap, once for each smaller block. A sorted sweep: O(n log n) of all claims."""
    every = sorted(
        ((claim, each.cluster, each is mine) for each in (mine, *others) for claim in each.claims),
        key=lambda one: (one[0].block, one[1]),
    )
    around: list[tuple[Claim, str, bool]] = []
    for claim, cluster, own in every:
        while around and not around[-1][0].block.contains(claim.block):
            around.pop()
        outer = next(
            (each for each in reversed(around) if each[2] is not own), None
        )  # the others' overlaps are the others' findings
        if outer is not None:
            yield (claim, outer[1], outer[0]) if own else (outer[0], cluster, claim)
        around.append((claim, cluster, own))


def _way_out(*ends: tuple[str, Claim]) -> str:
    for cluster, claim in ends:
        if claim.state == State.QUARANTINED:
            return f"once nobody has it: ipamc lock {cluster} --release {claim.block}"
        if claim.state:
            return f"take addressSpace away from {cluster} until node {claim.owner} has moved: ipamc lock {cluster} --renumber {claim.owner}"
    (_, inner), (cluster, outer) = sorted(ends, key=lambda end: -end[1].block.prefix)
    if inner.block == outer.block:
        return "use another range in one of the two clusters"
    return f"split {outer.block} around {inner.block} in cluster {cluster}, or use another range in one of the two"


def unread_neighbours(mine: Claims, others: Sequence[Unread]) -> Iterator[Diagnostic]:
    """IPC0702: every cluster that may be of the same address space can be read.

    What a cluster claims is in its Cluster, its pools and its lock. Where these are not sound nobody knows whether it overlaps, so that no cluster of the
    address space is written. A cluster of which not even the Cluster can be read counts for every address space. Its nodes do not matter here.
    """
    for each in others:
        if each.space in {"", mine.space}:
            yield error(
                "IPC0702",
                mine.at,
                f"cluster {each.cluster} may claim the same addresses, and cannot be read: {each.problem}",
                also=[Related(each.at, "refused here")],
                help=f"mend it; all that is wrong: ipamc compile {each.cluster} --check",
            )


def check_neighbours(mine: Claims, neighbours: Neighbours) -> Iterator[Diagnostic]:
    """Yield every finding about a cluster among the others of its address space."""
    if mine.space:
        yield from overlapping_clusters(mine, neighbours.claims)
        yield from unread_neighbours(mine, neighbours.unread)
