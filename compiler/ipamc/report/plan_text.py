"""The plan of one cluster as rows, which formats arrange and escape; for a terminal, all of them."""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.law.change import Verdict
from ipamc.lock.line_changes import VANISHED, LineChange
from ipamc.lock.utilisation import Use
from ipamc.model.diagnostics import Diagnostic, Severity, count, names
from ipamc.model.limits import OPEN_ROWS, WIDEST_PLAN_LINE
from ipamc.model.lock import Line
from ipamc.model.pool_words import terms
from ipamc.read.parts import INDEX
from ipamc.report.lock_lines import state
from ipamc.report.prefixes import changed_prefixes, filter_lines
from ipamc.report.terminal_text import paint, visible, width
from ipamc.report.utilisation import number
from ipamc.review.diff import Difference
from ipamc.review.diff.documents import Capacity, PoolField, PoolStatus
from ipamc.review.diff.lock_lines import Misplaced, Renumber
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, PlanStatus

NONE = "(none)"
ARROW = "→"
_FAULTS = {
    VANISHED: "vanished from the lock: the base has these lines, but no line covers their addresses now",
    Verdict.TAKEN: "changed hands without consent: in the base, no line is pending for these nodes "
    "or keeps the block",
    Verdict.ENDED_EARLY: "out of quarantine early: quarantineDays are not over",
    Verdict.DATED: "in quarantine since an impossible day",
}


class Sign(enum.StrEnum):
    """The mark before each row of a section."""

    URGENT = "!"  # urgent
    ADDED = "+"
    REMOVED = "-"
    CHANGED = "~"
    SAME = " "


class Section(Struct, frozen=True):
    """Rows of one kind. Text is unchanged from the input: formats must escape it."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    sign: Sign = Sign.CHANGED
    about: str = ""  # a short list of the nodes or pools of the rows
    folded: bool = False  # it is always folded away in a comment, even if it is short
    number: int = 0  # of what the title counts in a comment; 0: the rows

    @property
    def counted_title(self) -> str:
        """The title of a section that may be folded: with a number, except of changes."""
        return self.title if self.sign is Sign.CHANGED else f"{self.number or len(self.rows):,} {self.title}"

    @property
    def open(self) -> bool:
        """Whether a comment and a page show the rows at once."""
        short = self.sign is Sign.CHANGED and not self.folded and len(self.rows) <= OPEN_ROWS
        return self.sign is Sign.URGENT or short


def headline(clusters: tuple[ClusterReport, ...]) -> str:
    """Count the nodes: renumbered, added, left, unchanged, and what else became of some.
    Refused and deleted clusters, vanished nodes and changes of mode come before, if there are any.
    """
    counts = [cluster.difference.lines.counts for cluster in clusters if cluster.difference]
    failed = sum(cluster.status in {PlanStatus.REFUSED, PlanStatus.FAILED} for cluster in clusters)
    vanished = sum(nodes.vanished for nodes in counts)
    gone = sum(cluster.status is PlanStatus.DELETED for cluster in clusters)
    deleted = sum(cluster.nodes for cluster in clusters)
    settings = [each for cluster in clusters if cluster.difference for each in cluster.difference.settings]
    modes = [f"mode {setting.old} {ARROW} {setting.new}" for setting in settings if setting.name == "mode"]
    changes = (
        "".join(modes) if len(clusters) == 1 else f"{count(len(modes), 'change')} of mode" if modes else ""
    )
    words = ("renamed", "followed", "released")
    more = {word: sum(getattr(nodes, word) for nodes in counts) for word in words}
    parts = (
        f"{count(failed, 'cluster')} refused" if failed else "",
        f"{count(gone, 'cluster')} deleted" if gone else "",
        f"{vanished:,} vanished" if vanished else "",
        changes,
        f"{sum(nodes.renumbered for nodes in counts):,} renumbered",
        *(f"{number:,} {word}" for word, number in more.items() if number),
        f"+{sum(nodes.added for nodes in counts):,}",
        f"−{sum(nodes.left for nodes in counts) + deleted:,}",  # noqa: RUF001 - a minus is as wide as a plus
        f"{sum(nodes.unchanged for nodes in counts):,} unchanged",
    )
    return " · ".join(filter(None, parts))


def quiet(cluster: ClusterReport) -> bool:
    """Return whether a cluster needs only its name: nothing changes, nothing is misplaced or disputed."""
    difference = cluster.difference
    return not cluster.changed and not (difference and (difference.misplaced or difference.disputed))


def worst_first(clusters: Iterable[ClusterReport]) -> list[ClusterReport]:
    """Return refused clusters, then those that a person must review, those that change, and the others."""
    return sorted(clusters, key=lambda each: (not each.failed, not stops(each), quiet(each), each.name))


def stops(cluster: ClusterReport) -> bool:
    """Return whether a person must review: refused, deleted cluster, addresses in other hands, or steps."""
    difference = cluster.difference
    moves = difference is not None and bool(difference.lines.changes_hands or difference.steps)
    return cluster.failed or cluster.status is PlanStatus.DELETED or moves


def notes(clusters: Iterable[ClusterReport]) -> list[tuple[Diagnostic, list[str]]]:
    """Return the notes of all clusters, each once, with the clusters that it concerns."""
    found: dict[tuple[str, str], tuple[Diagnostic, list[str]]] = {}
    for cluster in clusters:
        for note in cluster.findings:
            if note.severity is Severity.NOTE and not note.acknowledged:
                found.setdefault((note.code, note.message), (note, []))[1].append(cluster.name)
    return [found[key] for key in sorted(found)]


def sections(difference: Difference, name: str) -> Iterator[Section]:
    """Yield the sections of a cluster that have rows, the worst first."""
    for section in _sections(difference, name):
        if section.rows:
            head = tuple(difference.unit if title == "node" else title for title in section.head)
            yield replace(section, head=head)


def _sections(difference: Difference, name: str) -> Iterator[Section]:
    lines = difference.lines
    for fault, title in _FAULTS.items():
        yield _former(title, [each for each in lines.unlawful if each.fault == fault], Sign.URGENT)
    title = "disputed: the lock and the cluster disagree, so the line stays (ipamc explain disputed)"
    disputed = [(node, block or "none") for node, block in difference.disputed]
    yield Section(title, ("node", "block of the lock"), disputed, Sign.URGENT)
    weaker = [(setting.name, setting.old, ARROW, setting.new) for setting in difference.weaker]
    yield Section("less safe than before", ("setting", "base", "", "now"), weaker, Sign.URGENT)
    title = f"steps, in this order (with checks: ipamc runbook {name})"
    steps = [(f"{number}.", step) for number, step in enumerate(difference.steps, 1)]
    yield Section(title, ("step", "what to do"), steps, Sign.URGENT)
    yield _renumbers("renumbered", lines.completed, Sign.URGENT)
    settle = next((f"then ipamc lock {name} --settle {first.node}" for first in lines.pending), "")
    title = f"to be renumbered: drain the node, {settle}; for all steps: ipamc runbook {name}"
    if difference.unit != "node":
        title = f"to be renumbered: reserve the old range in its pool, move its nodes, {settle}"
    yield _renumbers(title, lines.pending, Sign.URGENT)
    misplaced = [(_misplaced(group),) for group in difference.misplaced]
    number = len({line.node for group in difference.misplaced for line in group.lines})
    yield Section("misplaced", ("why, and which",), misplaced, Sign.URGENT, number=number)
    files = difference.files
    of_cluster = {*files.written, *files.removed} - {INDEX}
    nothing = of_cluster and not difference.flags and not difference.lines.completed
    restarts = [(restart.sentence,) for restart in difference.restarts]
    if nothing and not restarts:
        restarts = [("nothing restarts: no flag, block or default pool of a running node changes",)]
    yield Section("restarts", ("what restarts, and why",), restarts)
    leaving = [(group.sentence,) for group in difference.leaving]
    yield Section("removed from rendered/, still in the cluster", ("which, and what they do",), leaving)
    yield from _configuration(difference)
    yield _former("quarantined", lines.left)
    yield _former("released", lines.released)
    again = [each for each in lines.of(Verdict.GIVEN) if each.before and each.before.since]
    yield _former("out of quarantine and given out again", again)
    yield _former("given back, in quarantine", lines.of(Verdict.GIVEN_BACK))
    single = [
        (found.line.node, str(found.line.block), _addresses(found.before), ARROW, _addresses(found.after))
        for found in lines.resized
    ]
    about = names(found.line.node for found in lines.resized)
    yield Section("single addresses", ("node", "block", "base", "", "now"), single, about=about)
    yield _former("decided by an address, or by Cilium's operator", lines.of(Verdict.FOLLOWED))
    added = [(each.line.node, str(each.line.block), each.line.pool or NONE, each.why) for each in lines.added]
    about = names(each.line.node for each in lines.added)
    yield Section("added", ("node", "block", "pool", "origin"), added, Sign.ADDED, about)
    about = names(renumber.node for renumber in lines.still_pending)
    yield _renumbers("to be renumbered, pending as before", lines.still_pending, Sign.SAME, about)


def _misplaced(group: Misplaced) -> str:
    them = "it" if len({line.node for line in group.lines}) == 1 else "them"
    way_out = f"; to move {them}: {group.move}" if group.move else ""
    return f"{group.why}: {names(f'{line.node} ({line.block})' for line in group.lines)}{way_out}"


def _configuration(difference: Difference) -> Iterator[Section]:
    settings = [(setting.name, setting.old, ARROW, setting.new) for setting in difference.settings]
    yield Section("lock", ("setting", "base", "", "now"), settings)
    flags = [
        (flag.name, _quoted(flag.old), ARROW, _quoted(flag.new), flag.why and f"({flag.why})")
        for flag in difference.flags
    ]
    yield Section("flags", ("flag", "base", "", "now", "why"), flags)
    yield Section("pools", ("pool", "change", "what"), list(_pools(difference)))
    changed = [_room(capacity) for capacity in difference.capacity if capacity.changed]
    same = len(difference.capacity) - len(changed)
    head = ("pool", "block size", "before", "", "now", "of", "addresses")
    about = f"{count(same, 'pool')} unchanged" if same else ""
    yield Section("capacity, in free blocks", head, changed, about=about)
    title = "aggregates of held and pending blocks (ipamc aggregates)"
    prefixes = [(of.pool or NONE, changed_prefixes(of)) for of in difference.prefixes]
    yield Section(title, ("pool", "prefixes"), [row for row in prefixes if row[1]], folded=True)
    title = "router filters, in this order (ipamc aggregates --output frr|junos|ios-xr)"
    filters = difference.prefixes if difference.announced else ()
    before, after = "before the apply, add", "after the apply and its restarts, remove"
    added = [(of.pool or NONE, before, filter_lines(of.added)) for of in filters]
    removed = [(of.pool or NONE, after, filter_lines(of.removed)) for of in filters]
    yield Section(title, ("pool", "when", "lines"), [row for row in (*added, *removed) if row[2]])
    paths_of = (("written", difference.files.written), ("removed", difference.files.removed))
    files = [(f"{count(len(paths), 'file')} {word}:", names(paths)) for word, paths in paths_of if paths]
    yield Section("rendered", ("files", "which"), files, folded=True)


def _pools(difference: Difference) -> Iterator[tuple[str, str, str]]:
    for pool in difference.pools:
        if pool.change is PoolStatus.CHANGED:
            yield from ((pool.name, pool.change, f"{field.name}: {_field(field)}") for field in pool.fields)
        else:
            fields = (f"{field.name}: {', '.join(field.new or field.old)}" for field in pool.fields)
            yield pool.name, pool.change, "; ".join(fields)
    for (before, after), moved in difference.lines.pool_transfers.items():
        blocks = count(len(moved), "block")
        yield after or NONE, "takes the lines of", f"{before or NONE}: {blocks}, no {difference.unit} moves"
    if not difference.pools_known:
        yield NONE, "unknown", "this version of ipamc cannot read the base"


def _quoted(value: str | None) -> str:
    return NONE if value is None else f'"{value}"'


def _renumbers(title: str, renumbers: tuple[Renumber, ...], sign: Sign, about: str = "") -> Section:
    rows = [(each.node, _blocks(each.old), ARROW, _blocks(each.new), each.why) for each in renumbers]
    return Section(title, ("node", "block", "", "to", "why"), rows, sign, about)


def _blocks(lines: tuple[Line, ...]) -> str:
    return ", ".join(str(line.block) for line in lines) or NONE


def _addresses(line: Line | None) -> str:
    return f"{line.addresses:,}" if line and line.addresses else "all"


def _former(title: str, changes: Sequence[LineChange], sign: Sign = Sign.REMOVED) -> Section:
    rows, about = [], []
    for found in changes:
        was, now = found.before or found.line, "no line covers its addresses"
        if found.now and (found.to or found.now.block != was.block):
            what = "its addresses" if found.now.block.contains(was.block) else found.now.block
            now = f"{terms(found.now.node).unit} {found.now.node} has {what}"
        elif found.now:
            now = state(found.now)
        before = state(found.before) if found.before else NONE
        rows.append((was.node, str(was.block), was.pool or NONE, before, ARROW, now))
        about.append(was.node)
    return Section(title, ("node", "block", "pool", "base", "", "now"), rows, sign, names(about))


def _field(field: PoolField) -> str:
    if field.whole:
        return f"{', '.join(field.old) or NONE} {ARROW} {', '.join(field.new) or NONE}"
    old = [f"−{item}" for item in field.old]  # noqa: RUF001 - a minus is as wide as a plus
    return " ".join([*old, *(f"+{item}" for item in field.new)])


def _room(capacity: Capacity) -> tuple[str, ...]:
    now = capacity.after
    share = f"{now.available * 100 / now.total:.0f} % free" if now and now.total else ""
    free = f"{share}: low" if share and capacity.short else share
    total = f"of {number(now.blocks)}" if now else ""
    return capacity.pool, f"/{capacity.size}", _free(capacity.before), ARROW, _free(now), total, free


def _free(use: Use | None) -> str:
    return number(use.blocks_free) if use else NONE


_INDENT = "    "
_UNITS = re.compile(
    r"\(?(?:ipamc|kubectl|helm|git|sudo|calicoctl|kustomize) (?:'[^']*'|[^';,]|[;,](?=\S))*[;,]?|\S+"
).findall


def render(report: PlanReport, *, colour: bool = False) -> str:
    """Return the whole plan: a paragraph for each changed cluster, a line for each other, and a sum."""
    parts = [_cluster(cluster, colour=colour) for cluster in report.clusters if not quiet(cluster)]
    if same := [visible(cluster.name) for cluster in report.clusters if quiet(cluster)]:
        parts.append(f"no changes: {', '.join(same)}\n")
    if found := notes(report.clusters):
        rows = [paint("notes", "strong", colour=colour)]
        rows += [f"  {note.code}: {visible(note.message)} ({names(map(visible, of))})" for note, of in found]
        parts.append("".join(f"{row}\n" for row in rows))
    if len(report.clusters) > 1:
        parts.append(f"{len(report.clusters):,} clusters: {headline(report.clusters)}\n")
    return "\n".join(parts)


def _cluster(cluster: ClusterReport, *, colour: bool) -> str:
    title = f"{visible(cluster.name)}: "
    if cluster.difference is None:
        return f"{paint(title + cluster.status, 'error', colour=colour)}: {visible(cluster.said)}\n"
    said = f"; {cluster.status}: {visible(cluster.said)}" if cluster.said else ""
    rows = [f"{paint(title, 'strong', colour=colour)}{headline((cluster,))}{said}"]
    for section in sections(cluster.difference, cluster.name):
        about = f" ({section.about})" if section.sign is Sign.CHANGED and section.about else ""
        style = "error" if section.sign is Sign.URGENT else "strong"
        rows.append(f"  {paint(f'{section.title}{about}', style, colour=colour)}")
        rows += [f"    {row}" for row in aligned(section.rows, section.sign, WIDEST_PLAN_LINE - 4)]
    return "".join(f"{row}\n" for row in rows)


def aligned(rows: Sequence[Sequence[str]], sign: str, limit: int = sys.maxsize) -> Iterator[str]:
    """Yield a line for each row: its sign, then its cells in columns, without control sequences.
    A row that is wider than the limit, in cells, is wrapped instead, and ignored for the columns' widths.
    """
    cells = [tuple(map(visible, row)) for row in rows]
    narrow = [row for row in cells if 2 + len(row) + sum(map(width, row)) <= limit]
    widths = [max(map(width, column)) for column in zip(*narrow, strict=True)] or [0] * len(cells[0])
    for row in cells:
        padded = " ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True))
        line = f"{sign} {padded}".rstrip()
        yield from [line] if width(line) <= limit else _folded(f"{sign} {' '.join(filter(None, row))}", limit)


def _folded(text: str, limit: int) -> Iterator[str]:
    """Yield the lines of a text wrapped between words; a command stays in one piece for pasting."""
    line = ""
    for unit in _UNITS(text):
        if line and width(line) + 1 + width(unit) > limit:
            yield line
            line = f"{_INDENT}{unit}"
        else:
            line = f"{line} {unit}" if line else unit
    yield line
