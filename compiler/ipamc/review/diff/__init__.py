"""What changes between two sides of a cluster: a lock with what was rendered from it, and what a compile gives now.

Pure: two sides in, a frozen `Difference` out, and no word about how it is shown. The base is what was committed or lies on the disk, never compiled
again: that is what the live cluster has. `document` gathers several clusters, `gate` says what of them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ipamc.lock.file import parse
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Lock
from ipamc.pipeline import Compilation, Inputs
from ipamc.place.allocate.reuse import last_day
from ipamc.read.read import read
from ipamc.review.diff.lock_lines import LineChanges, compare_lines
from ipamc.review.diff.misplaced import Misplaced, misplaced
from ipamc.review.diff.pools import Capacity, PoolChange, capacity, compare_pools
from ipamc.review.diff.rendered import Files, Flag, compare_files, compare_flags

_POOL_KINDS = (b"IPPool", b"Cluster")
"""One of them is in the text of every pool's kind, and of the Cluster's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The base."""

    lock: Lock
    cluster: Cluster | None
    """None: its documents cannot be read any more, so that nothing is known of its pools. Only good for these: nodes may be missing."""
    rendered: Mapping[str, bytes] = field(default_factory=dict)
    """Every file by its path below `rendered/`."""
    new: bool = False
    """There was nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A field of the lock's header."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Everything that a plan tells of one cluster."""

    lines: LineChanges
    misplaced: tuple[Misplaced, ...]
    """As it is at the head, changed or not."""
    settings: tuple[Setting, ...]
    flags: tuple[Flag, ...]
    pools: tuple[PoolChange, ...]
    pools_known: bool
    """False: the base's documents cannot be read any more, and `pools` is empty for that reason."""
    capacity: tuple[Capacity, ...]
    """Every pool, by name and family."""
    files: Files

    @property
    def changed(self) -> bool:
        """Tell whether anything would be written, or is written differently."""
        lines = self.lines
        moved = (
            lines.added
            or lines.left
            or lines.released
            or lines.pending
            or lines.settled
            or lines.vanished
            or lines.repooled
        )
        return bool(
            moved or self.settings or self.flags or self.pools or self.files.written or self.files.removed
        )


class Unsound(Exception):  # noqa: N818 - a verdict on a file of the past
    """The base's lock cannot be read; the text says why."""


def base(inputs: Inputs, rendered: Mapping[str, bytes], head: Cluster | None = None) -> Side:
    """Make the base's side of what stood there. `head`: the cluster, where its documents are the same on both sides. Raises Unsound."""
    if inputs.lock is None:
        mode = head.mode if head else Mode.CLUSTER_POOL
        return Side(
            lock=Lock(cluster=inputs.name, mode=mode, shards=0),
            cluster=head or _cluster(inputs),
            rendered=rendered,
        )
    lock, found = parse(inputs.lock, inputs.lock_path)
    if lock is None or found:
        raise Unsound(found[0].message)
    return Side(lock=lock, cluster=head or _cluster(inputs), rendered=rendered)


def nothing(name: str, mode: Mode) -> Side:
    """Make the base of a cluster that was not there."""
    return Side(lock=Lock(cluster=name, mode=mode, shards=0), cluster=None, new=True)


def _cluster(inputs: Inputs) -> Cluster | None:
    """Read what the base's documents said of pools; None where this version would not take them.

    Files that can hold neither a pool nor the Cluster are passed over, since an inventory is nine tenths of the reading; but not beside CiliumNodes, some of
    which may have no node, and take room.
    """
    whole = any(b"CiliumNode" in text for text in inputs.sources.values())
    sources = {
        path: text
        for path, text in inputs.sources.items()
        if whole or any(word in text for word in _POOL_KINDS)
    }
    try:
        return read(inputs.name, inputs.folder, sources, inputs.schemas)[0]
    except Refused:
        return None


def compare(before: Side, after: Compilation, today: str) -> Difference:
    """Tell what changes from the base to what a compile gives on a day (ISO 8601, UTC). O(n log n) in lines."""
    plan = after.plan
    astray = misplaced(plan)
    why = {line.block: each.why for each in astray for line in each.lines}
    return Difference(
        lines=compare_lines(before.lock.lines, plan, why, last_day(today, plan.cluster.quarantine_days)),
        misplaced=astray,
        settings=() if not before.lock.shards else tuple(_settings(before.lock, plan.lock)),
        flags=compare_flags(before.rendered, after.files),
        pools=compare_pools(before.cluster, plan.cluster) if before.cluster else (),
        pools_known=before.cluster is not None or before.new,
        capacity=capacity(before.cluster, before.lock, plan.cluster, plan.lock),
        files=compare_files(before.rendered, after.files),
    )


def _settings(before: Lock, after: Lock) -> list[Setting]:
    pairs = (("mode", before.mode.value, after.mode.value), ("shards", str(before.shards), str(after.shards)))
    return [Setting(name=name, old=old, new=new) for name, old, new in pairs if old != new]
