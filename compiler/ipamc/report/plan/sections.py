"""What a plan tells of one cluster, as rows: the same for a terminal and for a comment, which only lay them out and escape them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ipamc.lock.utilisation import Use
from ipamc.model.diagnostics import Diagnostic, Severity, count, names
from ipamc.model.lock import Line
from ipamc.report.utilisation import number, state
from ipamc.review.diff import Difference
from ipamc.review.diff.document import Planned, Status
from ipamc.review.diff.lock_lines import Gone, Renumber
from ipamc.review.diff.pools import Capacity, Field, PoolChange

NONE = "(none)"
ARROW = "→"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows of one kind. Text is as it stands in the input; whoever prints it escapes it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sign: str = " "
    """+ for what comes, - for what goes, ! for what must be read."""
    about: str = ""
    """Who is meant, in short."""
    folded: bool = False
    """It is of little interest, however short."""

    @property
    def loud(self) -> bool:
        """Tell whether it is never folded away."""
        return self.sign == "!"


def headline(clusters: tuple[Planned, ...]) -> str:
    """Sum up, in nodes, what was renumbered, came, left and stayed; before that what should never be."""
    counts = [each.difference.lines.counts for each in clusters if each.difference]
    failed = sum(each.status in {Status.REFUSED, Status.FAILED} for each in clusters)
    vanished = sum(each.vanished for each in counts)
    deleted = sum(each.nodes for each in clusters)
    parts = (
        f"{count(failed, 'cluster')} refused" if failed else "",
        f"{vanished:,} vanished" if vanished else "",
        f"{sum(each.renumbered for each in counts):,} renumbered",
        f"+{sum(each.added for each in counts):,}",
        f"−{sum(each.left for each in counts) + deleted:,}",  # noqa: RUF001 - a minus is as wide as a plus
        f"{sum(each.unchanged for each in counts):,} unchanged",
    )
    return " · ".join(filter(None, parts))


def quiet(planned: Planned) -> bool:
    """Tell whether a cluster needs no more than its name: nothing changes, and no block stands where it should not."""
    return not planned.changed and not (planned.difference and planned.difference.misplaced)


def notes(clusters: Iterable[Planned]) -> list[tuple[Diagnostic, list[str]]]:
    """Give the notes of all clusters, each once, with the clusters that it is about: what a person has to do by hand, or to keep in mind."""
    found: dict[tuple[str, str], tuple[Diagnostic, list[str]]] = {}
    for each in clusters:
        for note in each.findings:
            if note.severity is Severity.NOTE:
                found.setdefault((note.code, note.message), (note, []))[1].append(each.name)
    return [found[key] for key in sorted(found)]


def sections(difference: Difference) -> Iterator[Section]:
    """Give what is to be told, the worst first; nothing that is empty."""
    return (section for section in _sections(difference) if section.rows)


def _sections(difference: Difference) -> Iterator[Section]:
    lines = difference.lines
    yield Section(
        title="vanished from the lock: the base has these lines, and nothing lies over their addresses now",
        head=("node", "block", "pool", "it was"),
        rows=tuple((line.node, str(line.block), line.pool, state(line)) for line in lines.vanished),
        sign="!",
    )
    head = ("node", "block", "", "to", "why")
    yield Section(title="renumbered", head=head, rows=tuple(map(_renumber, lines.settled)), sign="!")
    yield Section(
        title="to be renumbered, pending until the node is drained",
        head=head,
        rows=tuple(map(_renumber, lines.pending)),
        sign="!",
    )
    yield Section(
        title="misplaced",
        head=("why", "nodes", "which"),
        rows=tuple(
            (
                each.why,
                count(len({line.node for line in each.lines}), "node"),
                names(f"{line.node} ({line.block})" for line in each.lines),
            )
            for each in difference.misplaced
        ),
        sign="!",
    )
    yield from _configuration(difference)
    yield _gone("left, in quarantine", lines.left)
    yield _gone("released", lines.released)
    yield Section(
        title="added",
        head=("node", "block", "pool", "origin"),
        rows=tuple(
            (
                each.line.node,
                str(each.line.block),
                each.line.pool or NONE,
                f"{each.origin}{f', was of {each.of}' if each.of else ''}",
            )
            for each in lines.added
        ),
        sign="+",
        about=names(each.line.node for each in lines.added),
    )
    yield Section(
        title="to be renumbered, pending as before",
        head=head,
        rows=tuple(map(_renumber, lines.standing)),
        about=names(each.node for each in lines.standing),
    )


def _configuration(difference: Difference) -> Iterator[Section]:
    yield Section(
        title="lock",
        head=("setting", "base", "", "now"),
        rows=tuple((each.name, each.old, ARROW, each.new) for each in difference.settings),
        sign="~",
    )
    yield Section(
        title="flags",
        head=("flag", "base", "", "now"),
        rows=tuple((each.name, _quoted(each.old), ARROW, _quoted(each.new)) for each in difference.flags),
        sign="~",
    )
    pools = [row for each in difference.pools for row in _pool(each)]
    moved = [
        (
            each.after or NONE,
            "has the lines of",
            f"{each.before or NONE}: {count(len(each.lines), 'block')}, nobody moves",
        )
        for each in difference.lines.repooled
    ]
    unknown = (
        [] if difference.pools_known else [(NONE, "unknown", "this version cannot read the base's documents")]
    )
    yield Section(title="pools", head=("pool", "change", "what"), rows=(*pools, *moved, *unknown), sign="~")
    yield Section(
        title="capacity, in free blocks",
        head=("pool", "block size", "before", "", "now", "of", "addresses"),
        rows=tuple(_room(each) for each in difference.capacity if each.changed),
        sign="~",
        about=_rest(sum(not each.changed for each in difference.capacity)),
    )
    files = difference.files
    yield Section(
        title="rendered",
        head=("files", "how many", "which"),
        rows=tuple(
            (word, count(len(paths), "file"), names(paths))
            for word, paths in (("written", files.written), ("removed", files.removed))
            if paths
        ),
        sign="~",
        folded=True,
    )


def _rest(unchanged: int) -> str:
    return f"{count(unchanged, 'pool')} unchanged" if unchanged else ""


def _quoted(value: str | None) -> str:
    return NONE if value is None else f'"{value}"'


def _renumber(each: Renumber) -> tuple[str, ...]:
    return each.node, _blocks(each.old), ARROW, _blocks(each.new), each.why


def _blocks(lines: tuple[Line, ...]) -> str:
    return ", ".join(str(line.block) for line in lines) or NONE


def _gone(title: str, gone: tuple[Gone, ...]) -> Section:
    rows = tuple(
        (
            each.line.node,
            str(each.line.block),
            each.line.pool or NONE,
            state(each.before) if each.before else NONE,
            ARROW,
            _now(each),
        )
        for each in gone
    )
    return Section(
        title=title,
        head=("node", "block", "pool", "base", "", "now"),
        rows=rows,
        sign="-",
        about=names(each.line.node for each in gone),
    )


def _now(gone: Gone) -> str:
    return f"its addresses are {gone.to}'s" if gone.to else state(gone.line)


def _pool(pool: PoolChange) -> Iterator[tuple[str, str, str]]:
    if pool.change == "changed":
        yield from ((pool.name, pool.change, f"{part.name}: {_field(part)}") for part in pool.fields)
    else:
        yield (
            pool.name,
            pool.change,
            "; ".join(f"{part.name}: {', '.join(part.new or part.old)}" for part in pool.fields),
        )


def _field(part: Field) -> str:
    if part.whole:
        return f"{', '.join(part.old) or NONE} {ARROW} {', '.join(part.new) or NONE}"
    return " ".join((*(f"−{each}" for each in part.old), *(f"+{each}" for each in part.new)))  # noqa: RUF001 - a minus is as wide as a plus


def _room(each: Capacity) -> tuple[str, ...]:
    now = each.after
    free = (
        f"{now.available * 100 / now.total:.0f} % free{', which is little' if each.short else ''}"
        if now and now.total
        else ""
    )
    total = f"of {number(now.blocks)}" if now else ""
    return each.pool, f"/{each.size}", _free(each.before), ARROW, _free(now), total, free


def _free(use: Use | None) -> str:
    return number(use.blocks_free) if use else NONE
