"""The plan of one cluster as rows, which the formats lay out and escape."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ipamc.lock.transitions import REFUSED, Reason, Transition
from ipamc.lock.utilisation import Use
from ipamc.model.diagnostics import Diagnostic, Severity, count, names
from ipamc.model.lock import Line
from ipamc.report.aggregates import prefixes
from ipamc.report.utilisation import number, state
from ipamc.review.diff import Difference
from ipamc.review.diff.lock_lines import Misplaced, Renumber
from ipamc.review.diff.plan_report import ClusterReport, Status
from ipamc.review.diff.pools import Capacity, PoolChange, PoolField, PoolStatus

NONE = "(none)"
ARROW = "→"
NEXT_STEP = (
    "to be renumbered: drain the node, then ipamc lock --settle NODE; ipamc runbook CLUSTER has all steps"
)
_UNLAWFUL = {
    Reason.VANISHED: "vanished from the lock: the base has these lines, and no line covers any of their addresses now",
    Reason.TAKEN: "changed hands without consent: no line of the base is pending for these nodes, and none keeps the block",
    Reason.ENDED_EARLY: "out of quarantine early: its days are not over",
    Reason.DAY_CHANGED: "in quarantine since a day that cannot be",
}


class Sign(enum.StrEnum):
    """What stands before each row of a section."""

    URGENT = "!"
    """It must be read."""
    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"
    SAME = " "


class Section(Struct, frozen=True, kw_only=True):
    """Rows of one kind. Text is as in the input: formats must escape it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sign: Sign = Sign.SAME
    about: str = ""
    """The nodes or pools of the rows, in short."""
    folded: bool = False
    """It is always folded away in a comment, even if it is short."""


def headline(clusters: tuple[ClusterReport, ...]) -> str:
    """Count the nodes: renumbered, added, left, unchanged.

    Before them, if there are any, refused and deleted clusters, nodes whose lines vanished, and changes of mode.
    """
    counts = [cluster.difference.lines.counts for cluster in clusters if cluster.difference]
    failed = sum(cluster.status in {Status.REFUSED, Status.FAILED} for cluster in clusters)
    vanished = sum(nodes.vanished for nodes in counts)
    gone = sum(cluster.status is Status.DELETED for cluster in clusters)
    deleted = sum(cluster.nodes for cluster in clusters)
    modes = [
        f"mode {setting.old} {ARROW} {setting.new}"
        for cluster in clusters
        if cluster.difference
        for setting in cluster.difference.settings
        if setting.name == "mode"
    ]
    parts = (
        f"{count(failed, 'cluster')} refused" if failed else "",
        f"{count(gone, 'cluster')} deleted" if gone else "",
        f"{vanished:,} vanished" if vanished else "",
        modes[0]
        if len(clusters) == 1 and modes
        else f"{count(len(modes), 'change')} of mode"
        if modes
        else "",
        f"{sum(nodes.renumbered for nodes in counts):,} renumbered",
        f"+{sum(nodes.added for nodes in counts):,}",
        f"−{sum(nodes.left for nodes in counts) + deleted:,}",  # noqa: RUF001 - a minus is as wide as a plus
        f"{sum(nodes.unchanged for nodes in counts):,} unchanged",
    )
    return " · ".join(filter(None, parts))


def quiet(cluster: ClusterReport) -> bool:
    """Return whether the name of a cluster is enough: nothing changes, and no block is misplaced."""
    return not cluster.changed and not (cluster.difference and cluster.difference.misplaced)


def notes(clusters: Iterable[ClusterReport]) -> list[tuple[Diagnostic, list[str]]]:
    """Return the notes of all clusters, each once, with the clusters that it is about."""
    found: dict[tuple[str, str], tuple[Diagnostic, list[str]]] = {}
    for cluster in clusters:
        for note in cluster.findings:
            if note.severity is Severity.NOTE:
                found.setdefault((note.code, note.message), (note, []))[1].append(cluster.name)
    return [found[key] for key in sorted(found)]


def sections(difference: Difference) -> Iterator[Section]:
    """Yield the sections that have rows, the worst first."""
    return (section for section in _sections(difference) if section.rows)


def _sections(difference: Difference) -> Iterator[Section]:
    lines = difference.lines
    for reason in REFUSED:
        yield _former(_UNLAWFUL[reason], lines.of(reason), Sign.URGENT)
    yield Section(
        title="steps, in this order (ipamc runbook CLUSTER has them with checks)",
        head=("step", "what to do"),
        rows=tuple((f"{number}.", step) for number, step in enumerate(difference.steps, 1)),
        sign=Sign.URGENT,
    )
    yield _renumbers("renumbered", lines.completed, Sign.URGENT)
    yield _renumbers(NEXT_STEP, lines.pending, Sign.URGENT)
    yield Section(
        title="misplaced",
        head=("why, and which",),
        rows=tuple((_misplaced(group),) for group in difference.misplaced),
        sign=Sign.URGENT,
    )
    yield from _cluster(difference)
    yield from _configuration(difference)
    yield _former("quarantined", lines.of(Reason.LEFT))
    yield _former("released", tuple(each for each in lines.released if each.reason is not Reason.ENDED_EARLY))
    again = tuple(each for each in lines.of(Reason.RE_USED) if each.is_about_quarantine)
    yield _former("out of quarantine, and given out again", again)
    yield _former("given back, quarantined", lines.of(Reason.GIVEN_BACK))
    resized = lines.of(Reason.RESIZED)
    yield Section(
        title="single addresses",
        head=("node", "block", "base", "", "now"),
        rows=tuple(
            (found.line.node, str(found.line.block), _addresses(found.before), ARROW, _addresses(found.after))
            for found in resized
        ),
        sign=Sign.CHANGED,
        about=names(found.line.node for found in resized),
    )
    yield _former("taken back by Cilium's operator", lines.of(Reason.TAKEN_BACK))
    yield Section(
        title="added",
        head=("node", "block", "pool", "origin"),
        rows=tuple(
            (
                block.line.node,
                str(block.line.block),
                block.line.pool or NONE,
                block.why,
            )
            for block in lines.added
        ),
        sign=Sign.ADDED,
        about=names(block.line.node for block in lines.added),
    )
    about = names(renumber.node for renumber in lines.still_pending)
    yield _renumbers("to be renumbered, pending as before", lines.still_pending, Sign.SAME, about)


def _misplaced(group: Misplaced) -> str:
    them = "it" if len({line.node for line in group.lines}) == 1 else "them"
    way_out = f"; to move {them}: {group.move}" if group.move else ""
    return f"{group.why}: {names(f'{line.node} ({line.block})' for line in group.lines)}{way_out}"


def _cluster(difference: Difference) -> Iterator[Section]:
    """Yield what happens in the running cluster: restarts, and objects that nobody applies any more."""
    files = difference.files
    nothing = (files.written or files.removed) and not difference.flags and not difference.lines.completed
    yield Section(
        title="restarts",
        head=("what restarts, and why",),
        rows=tuple((restart.sentence,) for restart in difference.restarts)
        or (
            (("nothing restarts: no flag changes, and no block or default pool of a running node",),)
            if nothing
            else ()
        ),
        sign=Sign.CHANGED,
    )
    yield Section(
        title="leave the tree and stay in the cluster",
        head=("which, and what they do",),
        rows=tuple((group.sentence,) for group in difference.leaving),
        sign=Sign.CHANGED,
    )


def _configuration(difference: Difference) -> Iterator[Section]:
    yield Section(
        title="lock",
        head=("setting", "base", "", "now"),
        rows=tuple((setting.name, setting.old, ARROW, setting.new) for setting in difference.settings),
        sign=Sign.CHANGED,
    )
    yield Section(
        title="flags",
        head=("flag", "base", "", "now", "why"),
        rows=tuple(
            (flag.name, _quoted(flag.old), ARROW, _quoted(flag.new), f"({flag.why})" if flag.why else "")
            for flag in difference.flags
        ),
        sign=Sign.CHANGED,
    )
    yield Section(
        title="pools",
        head=("pool", "change", "what"),
        rows=tuple(_pools(difference)),
        sign=Sign.CHANGED,
    )
    unchanged = sum(not capacity.changed for capacity in difference.capacity)
    yield Section(
        title="capacity, in free blocks",
        head=("pool", "block size", "before", "", "now", "of", "addresses"),
        rows=tuple(_room(capacity) for capacity in difference.capacity if capacity.changed),
        sign=Sign.CHANGED,
        about=f"{count(unchanged, 'pool')} unchanged" if unchanged else "",
    )
    yield Section(
        title="aggregates, of held and pending blocks (ipamc show --aggregates)",
        head=("pool", "prefixes"),
        rows=tuple((change.pool or NONE, prefixes(change)) for change in difference.aggregates),
        sign=Sign.CHANGED,
        folded=True,
    )
    files = difference.files
    yield Section(
        title="rendered",
        head=("files", "which"),
        rows=tuple(
            (f"{count(len(paths), 'file')} {word}:", names(paths))
            for word, paths in (("written", files.written), ("removed", files.removed))
            if paths
        ),
        sign=Sign.CHANGED,
        folded=True,
    )


def _pools(difference: Difference) -> Iterator[tuple[str, str, str]]:
    for pool in difference.pools:
        yield from _pool(pool)
    for moved in difference.lines.pool_transfers:
        blocks = count(len(moved.lines), "block")
        yield moved.after or NONE, "has the lines of", f"{moved.before or NONE}: {blocks}, no node moves"
    if not difference.pools_known:
        yield NONE, "unknown", "this version cannot read the base's documents"


def _quoted(value: str | None) -> str:
    return NONE if value is None else f'"{value}"'


def _renumbers(title: str, renumbers: tuple[Renumber, ...], sign: Sign, about: str = "") -> Section:
    rows = tuple(
        (renumber.node, _blocks(renumber.old), ARROW, _blocks(renumber.new), renumber.why)
        for renumber in renumbers
    )
    return Section(title=title, head=("node", "block", "", "to", "why"), rows=rows, sign=sign, about=about)


def _blocks(lines: tuple[Line, ...]) -> str:
    return ", ".join(str(line.block) for line in lines) or NONE


def _addresses(line: Line | None) -> str:
    return f"{line.addresses:,}" if line and line.addresses else "all"


def _former(title: str, changes: tuple[Transition, ...], sign: Sign = Sign.REMOVED) -> Section:
    rows = tuple(
        (
            (found.before or found.line).node,
            str(found.line.block),
            found.line.pool or NONE,
            state(found.before) if found.before else NONE,
            ARROW,
            _now(found),
        )
        for found in changes
    )
    return Section(
        title=title,
        head=("node", "block", "pool", "base", "", "now"),
        rows=rows,
        sign=sign,
        about=names(found.line.node for found in changes),
    )


def _now(found: Transition) -> str:
    if found.after or not found.other:
        return state(found.after) if found.after else "no line has its addresses"
    whole = found.other.block.contains(found.line.block)
    return f"node {found.to} has {'its addresses' if whole else found.other.block}"


def _pool(pool: PoolChange) -> Iterator[tuple[str, str, str]]:
    if pool.change is PoolStatus.CHANGED:
        yield from ((pool.name, pool.change, f"{field.name}: {_field(field)}") for field in pool.fields)
    else:
        fields = (f"{field.name}: {', '.join(field.new or field.old)}" for field in pool.fields)
        yield pool.name, pool.change, "; ".join(fields)


def _field(field: PoolField) -> str:
    if field.whole:
        return f"{', '.join(field.old) or NONE} {ARROW} {', '.join(field.new) or NONE}"
    return " ".join((*(f"−{item}" for item in field.old), *(f"+{item}" for item in field.new)))  # noqa: RUF001 - a minus is as wide as a plus


def _room(capacity: Capacity) -> tuple[str, ...]:
    now = capacity.after
    free = (
        f"{now.available * 100 / now.total:.0f} % free{': low' if capacity.short else ''}"
        if now and now.total
        else ""
    )
    total = f"of {number(now.blocks)}" if now else ""
    return capacity.pool, f"/{capacity.size}", _free(capacity.before), ARROW, _free(now), total, free


def _free(use: Use | None) -> str:
    return number(use.blocks_free) if use else NONE
