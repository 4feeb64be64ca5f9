"""The members of an address space on the disk: what each cluster beside it occupies and requests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ipamc.check.address_space import HeldBlock, held_lines, prefixes_of
from ipamc.lock.file import load, mode_of, skim
from ipamc.model.cidr import CidrError, parse_block
from ipamc.model.cluster import AddressSpace, SpaceMode
from ipamc.model.diagnostics import Log, Refused, Severity, Span
from ipamc.model.gc_pause import paused_collector
from ipamc.model.lock import Consent
from ipamc.model.space import ClusterPrefixes, Surveyed, Unread, range_of
from ipamc.pipeline import Inputs
from ipamc.read.locate import locate
from ipamc.read.read import may_have_pools, read_folder
from ipamc.read.space_index import Index, IndexLine, dump_index, load_index
from ipamc.workspace import disk, safe_read
from ipamc.workspace.clusters import name_of, parent_of
from ipamc.workspace.failure import EnvironmentFailure, one_line
from ipamc.workspace.inputs import read_sources
from ipamc.workspace.spaces import index_path, may_be_member

if TYPE_CHECKING:
    from ipamc.workspace.source import Disk


def survey_members(folder: str, lock: bytes | None) -> Surveyed:
    """Read the addresses that the clusters beside a space occupy and request, with the ranges of its lock."""
    name = name_of(folder)  # also of "."
    known = known_ranges(lock, safe_read.read(index_path(folder)), name)
    ranges = {cluster: {index_path(name): text} for cluster, text in known.items()}
    return members_of(name, _survey(beside(parent_of(folder)), ranges))


def survey_all(parent: str) -> Mapping[str, Surveyed]:
    """Read the clusters below a folder once, for all spaces there; return them by address space.
    The ranges are those of the locks on the disk.
    """
    ranges: dict[str, dict[str, bytes]] = {}
    for space in disk.below(parent):
        with suppress(EnvironmentFailure, OSError):  # its own compile reports it
            lock, path = disk.read_lock(space), index_path(space)
            mine = lock if mode_of(lock) == SpaceMode.SPACE else None
            for cluster, text in known_ranges(mine, safe_read.read(path), name_of(space)).items():
                ranges.setdefault(cluster, {})[index_path(name_of(space))] = text
    return _survey(beside(parent), ranges)


def _survey(folders: Iterable[str], ranges: Mapping[str, Mapping[str, bytes]]) -> Mapping[str, Surveyed]:
    """Read clusters, by address space. `ranges` are indexes with the ranges of its pools, by cluster."""
    from ipamc.workspace.source import fleet

    found: dict[str, list[ClusterPrefixes | Unread]] = {}
    known = fleet(tuple(folders))
    with paused_collector():
        for folder in known.folders:
            if each := _survey_of(folder, ranges.get(name_of(folder), {}), known):
                found.setdefault(each.space, []).append(each)
    return found


def members_of(space: str, found: Mapping[str, Surveyed]) -> Surveyed:
    """Return the clusters that are, or may be, members of a space, in order of name."""
    every = (each for name in ("", space) for each in found.get(name, ()) if each.cluster != space)
    return tuple(sorted(every, key=lambda each: each.cluster))


def beside(parent: str) -> Iterator[str]:
    """Yield the clusters' folders below one: below `clusters/` all, elsewhere those with a lock."""
    if safe_read.link_on_the_way(parent):
        return  # the compile of each refuses it
    all_of_them = Path(parent).resolve().name == disk.CLUSTERS
    for other in disk.below(parent):
        if all_of_them or os.path.lexists(disk.lock_path(other)):
            yield PurePath(other).as_posix()


def _survey_of(folder: str, spaces: Mapping[str, bytes], known: Disk) -> ClusterPrefixes | Unread | None:
    """Read the addresses of a cluster; None if it is in no address space. Never raises.
    `spaces` are indexes with the ranges of its pools.
    """
    name = name_of(folder)
    try:
        sources, refused = read_sources(folder)
        if refused:
            return Unread(cluster=name, space="", at=refused[0].at, problem=refused[0].message)
        if not may_be_member(sources):
            return None
        return survey(replace(known, spaces={parent_of(folder): ()}).inputs(folder, rendered=False), spaces)
    except Exception as problem:  # noqa: BLE001 - even a bug must not hide the results of the others
        text = one_line(problem) or f"ipamc failed: {type(problem).__name__}"
        return Unread(cluster=name, space="", at=Span(folder), problem=text)


def survey(inputs: Inputs, spaces: Mapping[str, bytes]) -> ClusterPrefixes | Unread | None:
    """Read the addresses of a cluster, without nodes; None without an address space.
    `spaces` are indexes with the ranges that its pools were given. The Cluster and each pool must be valid by
    themselves, and every block of the lock must be readable. Takes some 15 ms for 5,000 nodes, two thirds of
    it for the lines of the lock.
    """
    wanted = {path: data for path, data in inputs.sources.items() if may_have_pools(data)}
    space = ""
    try:
        cluster, _ = read_folder(inputs.name, inputs.folder, wanted, inputs.schemas, spaces=spaces)
        space = cluster.address_space
        if not space or isinstance(cluster, AddressSpace):
            return None
        held = _skimmed(inputs.lock, inputs.name) if inputs.lock else None
        if held is None:
            # The cluster's own compile refuses a change of mode; the blocks are the same in both modes.
            lock = load(inputs.lock, inputs.lock_path, cluster, Consent(mode=True), rendered=inputs.rendered)
            held = held_lines(Log().keep(lock))
    except Refused as refused:
        found = locate(refused.diagnostics, wanted)
        worst = next(finding for finding in found if finding.severity is Severity.ERROR)
        return Unread(cluster=inputs.name, space=space, at=worst.at, problem=worst.message)
    mine = prefixes_of(cluster, held, inputs.lock_path, inputs.lock)
    return replace(mine, texts=wanted)


def _skimmed(lock: bytes, cluster: str) -> list[HeldBlock] | None:
    if (records := skim(lock, cluster)) is None:
        return None
    try:
        return [(parse_block(record.block), record) for record in records if not record.released]
    except CidrError:
        return None


def known_ranges(lock: bytes | None, index: bytes | None, space: str) -> Mapping[str, bytes]:
    """Return, for each cluster, an index of the ranges of its pools: by the lock of a space; for a pool
    without a line there, its CIDRs in an earlier index.
    """
    found: dict[str, list[IndexLine]] = {}
    have: set[tuple[str, str]] = set()
    for row in (skim(lock, space) or ()) if lock else ():
        if not (row.quarantined or row.released):
            cluster, pool, number = range_of(row.node)
            have.add((cluster, pool))
            line = IndexLine(cidr=row.block, cluster=cluster, pool=pool, range=number, pending=row.pending)
            found.setdefault(cluster, []).append(line)
    before = load_index(index, space) if index else None
    numbers = Counter[tuple[str, str, int]]()
    for block, line in before.lines if isinstance(before, Index) else ():
        if block and line.pool and not line.range and (line.cluster, line.pool) not in have:
            numbers[key := (line.cluster, line.pool, block.family)] += 1
            found.setdefault(line.cluster, []).append(replace(line, range=numbers[key]))
    return {cluster: dump_index(space, lines).encode() for cluster, lines in found.items()}
