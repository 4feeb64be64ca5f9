"""Compares a base with a compilation; the result is a frozen `Difference`. The base is not compiled.

The base is a lock and the files rendered from it, as committed or on the disk: the state of the running
cluster. `plan_report` combines several clusters, and says why a plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from ipamc.assertions.run import of_cluster
from ipamc.law.change import Days
from ipamc.lock.file import parse
from ipamc.model.cluster import AddressSpace, Cluster, LockMode, Mode, Scheme
from ipamc.model.diagnostics import Refused
from ipamc.model.follows import following
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.model.pool_words import terms
from ipamc.pipeline import Compilation, Inputs
from ipamc.place.spaces import with_others
from ipamc.read.parts import FLAGS
from ipamc.read.read import may_have_pools, read_folder, read_shared
from ipamc.read.rendered import Rendered
from ipamc.review.aggregates import PrefixChange, compare_prefixes
from ipamc.review.diff.documents import (
    UNKNOWN,
    Capacity,
    PoolChange,
    Setting,
    capacity,
    changed,
    compare_pools,
    weaker,
)
from ipamc.review.diff.lock_lines import LineChanges, Misplaced, compare_lines, misplaced
from ipamc.review.diff.rendered import (
    Files,
    Flag,
    Leaving,
    Restart,
    compare_flags,
    compare_trees,
    leaving,
    restarts,
)
from ipamc.review.runbook.sentences import moves, steps
from ipamc.review.shown_pools import operator_pools


class ClusterBase(Struct, frozen=True, kw_only=True):
    """The state that a cluster is compared with."""

    lock: Lock
    cluster: Scheme | None
    """Used only for its pools: nodes may be missing. None: this version cannot read the documents."""
    rendered: Rendered = Rendered()
    new: bool = False  # the base has no such cluster


class Difference(Struct, frozen=True, kw_only=True):
    """Everything that a plan reports about one cluster."""

    unit: str = "node"  # of the cluster's `terms`
    lines: LineChanges
    misplaced: tuple[Misplaced, ...]  # misplaced lines of the head, changed or not
    steps: tuple[str, ...]
    """The steps that bring the change to the cluster, in order; empty if any order works."""
    restarts: tuple[Restart, ...]
    """Programs that must restart; empty also for a base without rendered flags: nothing may run yet."""
    leaving: tuple[Leaving, ...]
    settings: tuple[Setting, ...]
    weaker: tuple[Setting, ...]  # what makes the cluster less safe
    flags: tuple[Flag, ...]
    pools: tuple[PoolChange, ...]
    pools_known: bool
    """False: this version cannot read the base's documents, and `pools` is empty for that reason."""
    capacity: tuple[Capacity, ...]  # every pool, by name and family
    prefixes: tuple[PrefixChange, ...]  # by pool and family
    files: Files
    disputed: tuple[tuple[str, str], ...] = ()
    """Nodes about which the lock and the cluster disagree, with the blocks of the lock."""
    announced: bool = False
    """Whether routers filter them: the cluster announces its blocks, or the user asks for filters."""

    @property
    def changed(self) -> bool:
        """Return whether the lock, the pools, a flag or a rendered file differs."""
        of_files = self.files.written or self.files.removed
        either = self.lines.lines or self.settings or self.weaker or self.flags or self.pools
        return bool(either or of_files)


class UnreadableBase(Exception):  # noqa: N818 - a statement about the base, not a failure
    """The base's lock cannot be read; the text says why."""


def read_base(
    inputs: Inputs,
    rendered: Mapping[str, bytes],
    head: Scheme | None = None,
    compiled: Lock | None = None,
) -> ClusterBase:
    """Return the base of these inputs.
    `head` is the compiled cluster, if its documents are the same; `compiled` is the compiled lock, if its
    file is the same: these are not read again. Raises UnreadableBase.
    """
    was = Rendered(rendered, f"{inputs.folder}/rendered")
    if inputs.lock is None:
        none = Lock(cluster=inputs.name, mode=head.mode if head else Mode.CLUSTER_POOL, shards=0)
        return ClusterBase(lock=none, cluster=head or _cluster(inputs), rendered=was)
    # If the lines are known, only the header is parsed.
    text = inputs.lock if compiled is None else inputs.lock[: inputs.lock.find(b"\n") + 1]
    lock, findings = parse(text, inputs.lock_path)
    if lock is None or findings:
        raise UnreadableBase(findings[0].message)
    if compiled is not None:
        lock = replace(lock, lines=compiled.written, written=compiled.written)
    return ClusterBase(lock=lock, cluster=head or _cluster(inputs), rendered=was)


def empty_base(name: str, mode: LockMode) -> ClusterBase:
    """Return the base of a new cluster."""
    return ClusterBase(lock=Lock(cluster=name, mode=mode, shards=0), cluster=None, new=True)


def _cluster(inputs: Inputs) -> Scheme | None:
    """Read the base's documents for their pools; return None if this version refuses them.
    If there are CiliumNodes, every file is read: a CiliumNode without a Node occupies room in a pool.
    """
    whole = any(b"CiliumNode" in text for text in inputs.sources.values())
    sources = {
        path: text
        for path, text in inputs.sources.items()
        if whole or may_have_pools(text) or b"Tests" in text
    }
    try:
        what = (inputs.name, inputs.folder, sources, inputs.schemas)
        found = read_folder(*what, spaces=inputs.spaces, tests=True)[0]
        shared = read_shared(inputs.shared, inputs.schemas)[0] if inputs.shared else ()
        found = replace(found, tests=tuple(of_cluster(found, shared)[0]))
        return with_others(found, inputs.indexed) if isinstance(found, AddressSpace) else found
    except Refused:
        return None


def compare(
    before: ClusterBase,
    after: Compilation,
    today: str,
    runbooks: Mapping[str, str],
    *,
    filters: bool = False,
) -> Difference:
    """Return what changes from the base to the result of a compile on this day (ISO 8601, UTC).
    `runbooks`: the texts of `templates/runbooks/` by file name. `filters`: list changes of routers' filters
    even if `bgp` is none. O(n log n) in lines.
    """
    plan = after.plan
    scheme = plan.scheme
    cluster = scheme if isinstance(scheme, Cluster) else None
    room = capacity(before.cluster, before.lock, scheme, plan.lock, today)
    full = {(pool.pool, pool.family) for pool in room if pool.after and not pool.after.blocks_free}
    misplaced_lines = misplaced(plan, full)
    was = before.cluster if isinstance(before.cluster, Cluster) else None
    in_order = steps(before.lock, was, plan, runbooks) if cluster else ()
    why = {line.block: group.why for group in misplaced_lines for line in group.lines}
    quarantine = scheme.quarantine_days
    days = Days(today, before.cluster.quarantine_days if before.cluster else quarantine, quarantine)
    lines = compare_lines(before.lock.lines, plan, why, days, _decided_elsewhere(before, plan))
    moved = tuple(sorted({renumber.node for renumber in lines.completed if renumber.moves}))
    trees = compare_trees(before.rendered, after.files)
    flags, known = compare_flags(trees, cluster) if cluster else (), FLAGS in before.rendered.texts
    return Difference(
        unit=terms(scheme).unit,
        lines=lines,
        misplaced=misplaced_lines,
        steps=(*in_order, *(moves(plan, moved, runbooks) if cluster else ())),
        restarts=restarts(trees, cluster, flags, moved, before.lock.lines, ordered=bool(in_order))
        if cluster and known
        else (),
        leaving=leaving(trees, plan.wants),
        settings=tuple(changed(before.lock, before.cluster, plan)),
        weaker=tuple(weaker(before.cluster, scheme)) if before.cluster else () if before.new else UNKNOWN,
        flags=flags,
        pools=compare_pools(before.cluster, scheme) if before.cluster else (),
        pools_known=before.cluster is not None or before.new,
        capacity=room,
        prefixes=compare_prefixes(before.lock.lines, plan.lock.lines, lines.lines),
        files=trees.files,
        disputed=tuple(
            (node, ", ".join(str(line.block) for line in plan.held.get(node, ())))
            for node in sorted(plan.disputed)
        ),
        announced=filters or (cluster is not None and cluster.bgp != "none"),
    )


def _decided_elsewhere(before: ClusterBase, plan: Plan) -> frozenset[str]:
    """Return the pools of base and head that the addresses of nodes, or Cilium's operator, decide about."""
    if before.cluster is None:
        return frozenset()
    # Of the base's nodes some may not have been read: what was published as shared counts as well.
    operator = operator_pools(before.cluster, before.rendered.pools)
    return plan.decided_elsewhere & (operator | following(before.cluster))
