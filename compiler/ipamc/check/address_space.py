"""Clusters of one address space: the addresses of each, and the rule that no two clusters share any.

The addresses of a cluster are the ranges of its pools, disabled ones too, and the blocks in its lock outside
of them: held, pending and quarantined. Its excluded CIDRs do not count, because they may be another cluster's
ranges. `reserved` does not make addresses free: a CIDR that is reserved today may be given out tomorrow.

A compile of the space reads all clusters, and refuses two that overlap, even if their locks have overlapped
for a long time: a compiler cannot decide which of the two must change. To resolve it, remove `addressSpace`
until the nodes have moved. A cluster that cannot be read is treated as one that overlaps. A compile of one
cluster reads the index that the space wrote, and no other cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ipamc.lock.file import line_at
from ipamc.lock.file_rules import row_at
from ipamc.lock.record import Record
from ipamc.model.address_sets import blocks_over, covers, nested, outermost, shared
from ipamc.model.cidr import Block
from ipamc.model.cluster import AddressSpace, Cluster
from ipamc.model.diagnostics import Diagnostic, Place, Related, Span, count, error, warning
from ipamc.model.limits import NAMES_SHOWN
from ipamc.model.lock import Consent, Line, Lock, State
from ipamc.model.masquerade import needs_members
from ipamc.model.ownership import RangeIndex
from ipamc.model.space import Asked, ClusterPrefixes, Prefix, Surveyed, Unread, range_of
from ipamc.read.space_index import Index

Entry = tuple["Prefix", str, bool]  # a prefix, its cluster, and whether that is the checked one
HeldBlock = tuple[Block, Line | Record]  # a block in a lock that is not released, and its line


def held_lines(lock: Lock) -> list[HeldBlock]:
    """Return the blocks of a lock that are held, pending or quarantined."""
    return [(line.block, line) for line in lock.lines if line.state is not State.RELEASED]


def prefixes_of(
    cluster: Cluster, held: Iterable[HeldBlock], lock_path: str, written: bytes | None
) -> ClusterPrefixes:
    """Return all addresses of a cluster; findings quote lines of the lock as `written`. O(lines)."""
    range_index = RangeIndex(cluster.pools)
    outside = [(block, line) for block, line in held if range_index.of(block) is None]
    parts = [(pool.name, part) for pool in cluster.networks for part in pool.families.values()]
    ranges = [
        Prefix(block=found.block, at=found.at, owner=name, number=number if part.ask else 0)
        for name, part in parts
        for number, found in enumerate(part.ranges, 1)
    ]
    asks = [Asked(pool=name, family=part.family, ask=part.ask) for name, part in parts if part.ask]
    return ClusterPrefixes(
        cluster=cluster.name,
        space=cluster.address_space,
        at=cluster.field("spec", "addressSpace"),
        prefixes=(*ranges, *_lines(outside, lock_path, written)),
        asks=tuple(asks),
        labels=cluster.labels,
        cluster_id=cluster.cluster_id,
        mesh_name=cluster.mesh_name,
    )


def _lines(held: Sequence[HeldBlock], path: str, written: bytes | None) -> Iterator[Prefix]:
    """Yield blocks with the places of their lines in the text on the disk; else in the whole file."""
    rows = written.split(b"\n") if written and held else []
    numbers = {
        row.split(b'"', 4)[3].decode(): n for n, row in enumerate(rows, 1) if row.startswith(b'{"block"')
    }
    for block, line in held:
        number = numbers.get(str(block))
        at = row_at(path, number, rows[number - 1], str(block)) if number else Span(path)
        yield Prefix(block=block, at=at, owner=line.node, state=str(line.state))


def overlapping_clusters(mine: ClusterPrefixes, others: Sequence[ClusterPrefixes]) -> Iterator[Diagnostic]:
    """IPC0701: clusters of one address space share no address."""
    met: dict[tuple[Prefix, str], list[Prefix]] = {}
    for prefix, cluster, other in overlaps(mine, [found for found in others if found.space == mine.space]):
        met.setdefault((prefix, cluster), []).append(other)
    for (prefix, cluster), found in met.items():
        other = found[0]
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        message = f"{prefix} overlaps {other}{more} of cluster {cluster} in the same address space"
        also = [
            Related(other.at, f"{other.block} belongs to cluster {cluster} here"),
            Related(mine.at, f"address space {mine.space} is named here"),
        ]
        fix = _way_out((mine.cluster, prefix), (cluster, other))
        yield error("IPC0701", prefix.at, message, also=also, help=fix)


def overlaps(
    mine: ClusterPrefixes, others: Sequence[ClusterPrefixes]
) -> Iterator[tuple[Prefix, str, Prefix]]:
    """Yield (own prefix, cluster, its prefix) of every overlap, once for each smaller block. O(n log n)."""
    every = sorted(
        ((prefix, found.cluster, found is mine) for found in (mine, *others) for prefix in found.prefixes),
        key=lambda entry: entry[1],
    )
    # Of the prefixes around one: this cluster's smallest, and the smallest of another cluster.
    smallest: dict[int, tuple[Entry | None, Entry | None]] = {}
    for entry, around in nested(every, lambda entry: entry[0].block):
        prefix, cluster, own = entry
        mine_around, others_around = smallest[len(around)] if around else (None, None)
        smallest[len(around) + 1] = (entry, others_around) if own else (mine_around, entry)
        # Overlaps between other clusters are reported for those.
        outer = others_around if own else mine_around
        if outer is not None:
            yield (prefix, outer[1], outer[0]) if own else (outer[0], cluster, prefix)


def _way_out(*ends: tuple[str, Prefix]) -> str:
    for cluster, prefix in ends:
        if prefix.state == State.QUARANTINED:
            return f"once no pod uses it: ipamc lock {cluster} --release {prefix.block}"
        if prefix.state:
            renumber = f"ipamc lock {cluster} --renumber {prefix.owner}"
            return f"remove addressSpace from {cluster} until node {prefix.owner} has moved: {renumber}"
    (_, inner), (cluster, outer) = sorted(ends, key=lambda end: -end[1].block.prefix)
    if inner.block == outer.block:
        return "use another range in one of the two clusters"
    split = f"split {outer.block} around {inner.block} in cluster {cluster}"
    return f"{split}, or use another range in one of the two"


def meetings(every: Sequence[ClusterPrefixes]) -> list[list[int]]:
    """Return, for each cluster, those of its address space that overlap it, by index, in order.
    A cluster that overlaps has at least one, and up to NAMES_SHOWN around each of its prefixes: if all
    overlap, the number of findings grows with the clusters, and not with their pairs. O(n log n) of all
    prefixes.
    """
    met: list[set[int]] = [set() for _ in every]
    spaces: dict[str, list[tuple[Prefix, int]]] = {}
    for number, found in enumerate(every):
        spaces.setdefault(found.space, []).extend((prefix, number) for prefix in found.prefixes)
    for entries in spaces.values():
        for (_, number), around in nested(entries, lambda entry: entry[0].block):
            for _, other in around[-NAMES_SHOWN:]:
                if other != number:
                    met[number].add(other)
                    met[other].add(number)
    return [sorted(others) for others in met]


def same_identity(members: Sequence[ClusterPrefixes]) -> Iterator[Diagnostic]:
    """IPC0707: the clusters of an address space have different ids and names in ClusterMesh."""
    seen: dict[tuple[str, object], ClusterPrefixes] = {}
    for member in members:
        for field, value in (("clusterID", member.cluster_id), ("clusterName", member.mesh_name)):
            other = seen.setdefault((field, value), member) if value else member
            if other is not member:
                at, first = (
                    Place(each.at.path, each.at.document, ("spec", "cilium", field))
                    for each in (member, other)
                )
                text = f"clusters {other.cluster} and {member.cluster} have the same {field} {value}"
                there = Related(first, f"cluster {other.cluster} has it here")
                fix = f"give one of them another {field}: ClusterMesh identifies clusters by it"
                yield error("IPC0707", at, text, also=[there], help=fix)


def check_members(space: AddressSpace, members: Surveyed) -> Iterator[Diagnostic]:
    """IPC0702: every cluster that may belong to an address space can be read."""
    for other in members:
        if isinstance(other, Unread) and other.space in {"", space.name}:
            cannot = f"cluster {other.cluster} cannot be read, and may have the same addresses"
            message = f"{cannot}: {other.problem}"
            fix = f"correct all of its findings: ipamc compile {other.cluster} --check"
            also = [Related(other.at, "the problem is here")]
            yield error("IPC0702", space.at, message, also=also, help=fix)


def check_together(members: Sequence[ClusterPrefixes]) -> Iterator[Diagnostic]:
    """Yield every finding about two members of a space, for both sides."""
    for mine, met in zip(members, meetings(members), strict=True):
        if met:
            yield from overlapping_clusters(mine, [members[number] for number in met])
    yield from same_identity(members)


def check_renamed(
    space: AddressSpace, lock: Lock, members: Sequence[ClusterPrefixes], consent: Consent
) -> Iterator[Diagnostic]:
    """IPC0710: a pool gets no new range while its nodes hold blocks in a range that it gives back."""
    renamed, asking = dict(consent.rename), {node.name: node for node in space.nodes}
    have = {line.node for line in lock.lines} | {*renamed.values()}
    former = [line for line in lock.lines if line.in_use and line.node not in asking | renamed]
    for member in members if former else ():
        new = [name for name in asking if name not in have and range_of(name)[0] == member.cluster]
        outside = [prefix for prefix in member.prefixes if prefix.state]
        for line in former if new else ():
            if not (used := [prefix for prefix in outside if line.block.contains(prefix.block)]):
                continue
            name = min(new, key=lambda name: (range_of(name)[1:] != range_of(line.node)[1:], name))
            lie = f" and {count(len(used) - 1, 'more block')} lie" if used[1:] else " lies"
            has = f"{used[0]}{lie} in {line.block}, which {line.node} gives back"
            message = f"{name} requests a new range, but {has}"
            also = [
                Related(used[0].at, f"{used[0].block} is held here"),
                Related(line_at(lock, line), f"{line.node} holds {line.block} here"),
            ]
            rename = f"ipamc lock {space.name} --rename {line.node}={name}"
            keep = f"keep pool {range_of(line.node)[1]} with disabled: true until its nodes have moved"
            fix = f"if the cluster or the pool was renamed: {rename}; if not, {keep}"
            yield error("IPC0710", asking[name].at, message, also=also, help=fix)


def check_index(mine: ClusterPrefixes, path: str, index: Index) -> Iterator[Diagnostic]:
    """Yield every finding about a cluster among the lines that an index has of others. O(lines before it)."""
    others = members_in(path, index, [prefix.block for prefix in mine.prefixes])
    others.pop(mine.cluster, None)
    yield from overlapping_clusters(mine, list(others.values()))
    yield from same_identity([*others.values(), mine])


def members_in(path: str, index: Index, over: Iterable[Block]) -> dict[str, ClusterPrefixes]:
    """Return the members of a space by name, with those of their addresses that share one with some blocks.
    `path` is that of the index, for findings. O(lines before the last of these blocks).
    """
    wanted = outermost(over)
    members: dict[str, ClusterPrefixes] = {}
    found: dict[str, list[Prefix]] = {}
    for number, (block, line) in enumerate(index.lines, 2):
        if block and (not wanted or block[:2] > (wanted[-1].family, wanted[-1].last)):
            break  # lines are by address, those without any first
        prefixes = found.setdefault(line.cluster, [])
        if block is None:
            members[line.cluster] = ClusterPrefixes(
                cluster=line.cluster,
                space=index.space,
                at=Place(path),
                prefixes=(),
                cluster_id=line.cluster_id,
                mesh_name=line.cluster_name,
            )
        elif blocks_over(wanted, block):
            state = State.HELD.value if line.node else ""
            there = Span(path, number)
            prefixes.append(Prefix(block=block, at=there, owner=line.pool or line.node, state=state))
    nothing = ClusterPrefixes(cluster="", space=index.space, at=Place(path), prefixes=())
    return {
        name: replace(members.get(name, nothing), cluster=name, prefixes=tuple(prefixes))
        for name, prefixes in found.items()
    }


def without_index(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0711: the address space of a cluster has an index."""
    if needs_members(cluster):
        return  # IPC0582 refuses it
    space = cluster.address_space
    message = f"address space {space} has no index here, so this cluster is not compared with others"
    fix = f"write the index: ipamc init --space {space}; the next version of ipamc requires it"
    yield warning("IPC0711", cluster.field("spec", "addressSpace"), message, help=fix)


def taken_while_leaving(
    was: ClusterPrefixes,
    now: ClusterPrefixes,
    members: Iterable[ClusterPrefixes],  # the others of the space that it leaves
    then: Iterable[ClusterPrefixes],  # those of the base
) -> Iterator[Diagnostic]:
    """IPC0703: leaving an address space and taking a member's addresses need two changes."""
    had = outermost(prefix.block for prefix in was.prefixes)
    theirs = {found.cluster: [prefix.block for prefix in found.prefixes] for found in then}
    for member in members:
        for prefix, cluster, found in overlaps(now, [member]):
            both = shared(prefix.block, found.block)
            if covers(had, both) and covers(theirs.get(cluster, ()), both):
                continue
            instead = f" for {now.space}" if now.space else ""
            other = f"{found} of cluster {cluster} in address space {was.space}"
            message = f"{prefix} overlaps {other}, which {now.cluster} leaves{instead} in the same change"
            also = [
                Related(found.at, f"{found.block} belongs to cluster {cluster} here"),
                Related(was.at, f"address space {was.space} was named here"),
            ]
            suggest = f"ipamc suggest pool {now.cluster} --size {prefix.block.prefix}"
            leave = "leave the space first, and take the range in another change"
            fix = f"use another range ({suggest}); or {leave}"
            yield error("IPC0703", prefix.at, message, also=also, help=fix)
