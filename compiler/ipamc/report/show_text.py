"""Pools on a terminal: a line for each pool and family with a bar in the remaining width, and a total.

Columns that do not fit are omitted. Nothing is drawn by a library: with `--show-blocks` there is a line for
each of 100,000 blocks, and rich takes 0.5 s for 1,000.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.check.capacity import LOW
from ipamc.lock.utilisation import Use
from ipamc.model.cluster import Pool
from ipamc.model.diagnostics import count
from ipamc.model.limits import POOLS_SHOWN, RESERVED_SHOWN
from ipamc.model.lock import Line
from ipamc.report.lock_lines import state
from ipamc.report.terminal_text import paint, visible, width
from ipamc.report.utilisation import addresses, amount, percent, percent_left
from ipamc.review.shown_pools import ShownCluster, ShownPool


class ShowOptions(Struct, frozen=True, kw_only=True):
    """The options of the output."""

    sort: str = "use"  # use, name, free, size or room
    reverse: bool = False
    ranges: bool | None = None  # None: ranges of pools with several in a family
    every: bool = False  # all pools, without a limit
    blocks: bool = False  # also the lines of the lock
    filtered: bool = False  # pools may be filtered out: totals are of the printed ones


def render(clusters: Sequence[ShownCluster], options: ShowOptions, screen: Screen) -> str:
    """Return the pools of all clusters, in the order given, and a total over more than one cluster.
    A pool without room for a node is red; one with less than LOW percent of its addresses free is yellow, and
    a compile warns of it, too (IPC0215). The bar has held addresses, then quarantined and reserved ones.
    """
    parts = [_cluster(cluster, options, screen) for cluster in clusters]
    # A space's addresses include theirs.
    alike = [cluster for cluster in clusters if cluster.terms.unit == "node"]
    totals = _totals("all clusters", alike) if len(alike) > 1 else ()
    layout = lay_out([*(row for rows, _ in parts for row in rows), *totals], screen)
    text: list[str] = []
    for number, (cluster, (rows, foot)) in enumerate(zip(clusters, parts, strict=True)):
        text += [""] if number else []
        text += _title(cluster, options, screen, back="back" not in layout.widths)
        text += [head_row(layout, screen)] if rows and not number else []
        text += [*draw(rows, layout, screen), *foot]
    if totals:
        text += ["", *draw(totals, layout, screen)]
    uses = [pool.use.use for cluster in clusters for pool in cluster.pools]
    if any(use.quarantined + use.reserved for use in uses):
        text += ["", legend(screen)]
    return "".join(f"{line}\n" for line in text)


def _cluster(cluster: ShownCluster, options: ShowOptions, screen: Screen) -> tuple[list[TableRow], list[str]]:
    """Return the rows of a cluster's pools and of their total, and the lines below them."""
    groups = _sorted(cluster.pools, options)
    cut = screen.cuts and not options.every and len(groups) > POOLS_SHOWN + POOLS_SHOWN // 5
    limit = POOLS_SHOWN if cut else len(groups)
    rows = [row for group in groups[:limit] for row in _pool_rows(cluster, group, options, screen)]
    rows += _totals("total", [cluster])
    foot = []
    if left_out := groups[limit:]:
        fullest = max((pool.use.use for group in left_out for pool in group), key=_share)
        most = f", at most {_used_percent(fullest)} used" if options.sort == "use" else ""
        foot = [f"{dots(screen)} and {count(len(left_out), 'more pool')}{most}: --all shows them"]
    if cluster.outside and options.blocks:
        foot += ["outside all pools", *_listed(cluster.outside, cluster, "  ", screen)]
    return rows, foot


def _title(cluster: ShownCluster, options: ShowOptions, screen: Screen, *, back: bool) -> list[str]:
    """Return the lines above a cluster's pools; with `back` also when the next blocks become free."""
    parts = [f"{count(cluster.nodes, cluster.terms.owner)} with {count(cluster.blocks, cluster.terms.block)}"]
    ends = [pool.ending for pool in cluster.pools if pool.ending]
    if ends and back:
        day = min(ending.day for ending in ends)
        number = sum(ending.blocks for ending in ends if ending.day == day)
        parts.append(
            f"{count(number, cluster.terms.block)} {'comes' if number == 1 else 'come'} free on {day}"
        )
    if cluster.outside:
        parts.append(f"{count(len(cluster.outside), 'line')} of the lock outside all pools")
    if options.filtered:
        names = {pool.use.pool.name for pool in cluster.pools}
        parts.append(f"{len(names):,} of {count(cluster.every, 'pool')} shown")
    name = visible(cluster.name)
    first, *more = _wrapped(f"{name}: {'; '.join(parts)}", "  ", screen)
    return [first.replace(name, paint(name, "strong", colour=screen.colour), 1), *more]


def _wrapped(text: str, indent: str, screen: Screen) -> list[str]:
    if not screen.cuts:
        return [text]
    return textwrap.wrap(text, max(screen.width, 20), subsequent_indent=indent, break_on_hyphens=False)


def _sorted(pools: Sequence[ShownPool], options: ShowOptions) -> list[list[ShownPool]]:
    """Return the pools, each with its families, in the requested order."""
    groups: dict[str, list[ShownPool]] = {}
    for pool in pools:
        groups.setdefault(pool.use.pool.name, []).append(pool)

    def key(group: list[ShownPool]) -> tuple[object, ...]:
        first, uses = group[0], [pool.use.use for pool in group]
        if options.sort == "use":
            disabled, share = first.use.pool.disabled, max(map(_share, uses))
            return (disabled, first.room > 0, -share, first.room, first.use.pool.name)
        # By the first family: all pools of a cluster have the same families.
        numbers = {"name": 0, "room": first.room, "free": uses[0].available, "size": uses[0].total}
        return (first.use.family.family, -numbers[options.sort], first.use.pool.name)

    return sorted(groups.values(), key=key, reverse=options.reverse)


def _share(use: Use) -> float:
    return used(use) / use.total if use.total else 0


def _pool_rows(
    cluster: ShownCluster, group: Sequence[ShownPool], options: ShowOptions, screen: Screen
) -> Iterator[TableRow]:
    for shown in group:
        pool, use = shown.use.pool, shown.use.use
        family, ranges = shown.use.family.family, shown.use.ranges
        room = f"{'unlisted ' if pool.unlisted else ''}{cluster.terms.unit}{'' if shown.room == 1 else 's'}"
        network = shown.use.family.follows
        closed = f"follows {network.block}" if network else "no new node" if use.held else "disabled"
        closed = "only for pods" if pool.pods_only else closed
        wanted = len(ranges) > 1 if options.ranges is None else options.ranges
        listed = {part: (cluster.lines or {}).get(part.range.block, ()) for part in ranges}
        lines = () if wanted else [line for part in ranges for line in listed[part]]
        yield TableRow(
            cells={
                "name": visible(pool.name),
                "block": f"/{shown.use.family.block_size}",
                **_numbers(use, family),
                "room": f"{amount(shown.room)} {room}" if not pool.disabled else closed,
                "back": f"{amount(shown.ending.blocks)} on {shown.ending.day}" if shown.ending else "",
            },
            use=use,
            style=_style(pool, use, shown.room),
            full=not shown.room and not pool.disabled,
            family=family,
            lines=(*_reasons(shown, options, screen), *_listed(lines, cluster, "  ", screen)),
        )
        for part in ranges if wanted else ():
            cells = {"name": f"  {part.range.block}", **_numbers(part.use, family)}
            below = tuple(_listed(listed[part], cluster, "    ", screen))
            yield TableRow(cells=cells, use=part.use, lines=below)


def _reasons(shown: ShownPool, options: ShowOptions, screen: Screen) -> Iterator[str]:
    """Yield a line for each CIDR with a reason to reserve it; on a terminal only a few, unless `--all`."""
    reserved = [cidr for cidr in shown.use.pool.reserved if cidr.block.family == shown.use.family.family]
    with_reason = [cidr for cidr in reserved if cidr.reason]
    limit = RESERVED_SHOWN if screen.cuts and not options.every else len(with_reason)
    for cidr in with_reason[:limit]:
        yield from _wrapped(f"  {cidr.block} reserved: {visible(cidr.reason)}", "    ", screen)
    if left_out := with_reason[limit:]:
        yield f"  {dots(screen)} and {count(len(left_out), 'more reserved CIDR')}: --all shows them"


def _numbers(use: Use, family: int) -> dict[str, str]:
    free = percent_left(use.available, use.total) if family == 6 else addresses(use.available, 4)
    return {
        "size": addresses(use.total, family),
        "free": free,
        "quarantined": addresses(use.quarantined, family) if use.quarantined else "",
        "reserved": addresses(use.reserved, family) if use.reserved else "",
    }


def _style(pool: Pool, use: Use, room: int) -> str:
    if pool.disabled:
        return "dim"
    if use.blocks_free < pool.blocks_per_node and not room:
        return "error"
    return "warning" if use.available * 100 < use.total * LOW else ""


def _totals(name: str, clusters: Sequence[ShownCluster]) -> list[TableRow]:
    """Return a row for each family with more than one pool."""
    rows = []
    for family in (4, 6):
        pools = [pool for cluster in clusters for pool in cluster.pools if pool.use.family.family == family]
        if len(pools) < 2:  # a single pool's row is its total
            continue
        uses = [pool.use.use for pool in pools]
        use = Use(**{name: sum(getattr(each, name) for each in uses) for name in Use.__struct_fields__})
        open_pools = [pool for pool in pools if not pool.use.pool.disabled and not pool.use.pool.unlisted]
        room = sum(pool.room for pool in open_pools)
        said = open_pools and all(cluster.adds_up for cluster in clusters if cluster.pools)
        both = any(pool.use.family.family != family for cluster in clusters for pool in cluster.pools)
        rooms = f"{amount(room)} {clusters[0].terms.unit}{'' if room == 1 else 's'}" if said else ""
        cells = {"name": f"{name}, IPv{family}" if both else name, **_numbers(use, family), "room": rooms}
        rows.append(TableRow(cells=cells, use=use))
    return rows


def _listed(lines: Sequence[Line], cluster: ShownCluster, indent: str, screen: Screen) -> Iterator[str]:
    """Yield block, node, state and quarantine's end of lines; in two rows on a narrow terminal."""
    blocks = [str(line.block) for line in lines]
    names = [visible(line.node) for line in lines]
    states = [_state(line, cluster) for line in lines]
    wide, wider, last = (max(map(width, column), default=0) for column in (blocks, names, states))
    two = screen.cuts and len(indent) + wide + wider + last + 4 > screen.width
    for block, name, said in zip(blocks, names, states, strict=True):
        if two:
            yield f"{indent}{block:{wide}}  {said}"
            yield f"{indent}  {name}"
        else:
            yield f"{indent}{block:{wide}}  {name}{' ' * (wider - width(name))}  {said}"


def _state(line: Line, cluster: ShownCluster) -> str:
    said, day = state(line, started=line.block in cluster.started), cluster.free_on(line)
    return f"{said}, free {'since' if day <= cluster.today else 'on'} {day}" if day else said


_BAR = range(6, 25)  # the least and the greatest width of a bar, in cells
_NAME = 14  # the fewest cells of a name that is cut

_HEAD = {
    "name": "POOL",
    "block": "BLOCK",
    "size": "SIZE",
    "use": "USED",
    "free": "FREE",
    "quarantined": "QUARANTINED",
    "reserved": "RESERVED",
    "room": "ROOM FOR",
    "back": "COMES FREE",
}
"""The columns, in order."""
_LEFT = frozenset({"name", "block", "use", "back"})  # left-aligned columns
_NARROW = 60  # below this width one cell separates columns, else two
_GO = {"reserved": 12, "quarantined": 12, "size": 6, "back": 6, "free": 6, "block": 6}
"""Columns that a narrow terminal omits, the first one first, and the cells of a bar beside them."""


class Screen(Struct, frozen=True, kw_only=True):
    """The properties of the output."""

    width: int = 80
    colour: bool = False
    blocks: bool = False  # it has block characters
    cuts: bool = False
    """It is a terminal: long names and lists of pools are cut. Never in a pipe."""


class TableRow(Struct, frozen=True, kw_only=True):
    """A row of a table, and the lines below it."""

    cells: dict[str, str]
    use: Use | None = None  # the numbers of the bar; None: no bar
    style: str = ""  # of the bar
    full: bool = False  # no room for a node
    family: int = 0  # of a row of a pool; 0 of others
    lines: tuple[str, ...] = ()  # lines below the row: blocks of the lock


class Layout(Struct, frozen=True, kw_only=True):
    """The columns of all tables of a run."""

    widths: dict[str, int]  # in order; the bar and its share are one column
    bar: int  # cells of the bar alone
    gap: str  # between two columns
    head: int  # cells kept from the beginning of a cut name; the others are from its end


def used(use: Use) -> int:
    """Return the number of addresses that cannot be given out."""
    return use.total - use.available


def lay_out(rows: Sequence[TableRow], screen: Screen) -> Layout:
    """Return the columns that fit, and their widths, without columns that are empty in every row."""
    share = max((len(_used_percent(row.use)) for row in rows if row.use), default=0)
    widths = {name: max((width(row.cells.get(name, "")) for row in rows), default=0) for name in _HEAD}
    widths = {name: max(wide, len(_HEAD[name])) for name, wide in widths.items() if wide}
    gap = "  " if screen.width >= _NARROW else " "
    if "block" in widths:
        widths["name"] = _name_width(rows, len(gap) + widths["block"])

    def left() -> int:
        return screen.width - sum(wide + len(gap) for wide in widths.values()) - 1 - share

    both = len({row.family for row in rows if row.family}) > 1
    for name, cells in _GO.items():
        if left() >= cells or (name == "block" and both):
            break
        widths.pop(name, None)
        if name == "block":
            widths["name"] = _name_width(rows, 0)
    if left() < _BAR[0] and screen.cuts:
        widths["name"] = max(widths["name"] + left() - _BAR[0], min(_NAME, widths["name"]))
    bar = min(max(left(), _BAR[0]), _BAR[-1])
    widths["use"] = bar + 1 + share
    names = [row.cells["name"] for row in rows if "block" in row.cells]
    keep = widths.get("name", 0) - len(dots(screen))
    head = max((keep, keep // 2, 0), key=lambda head: len({cut(name, keep, head, "") for name in names}))
    ordered = {name: widths[name] for name in _HEAD if name in widths}
    return Layout(widths=ordered, bar=bar, gap=gap, head=head)


def _used_percent(use: Use) -> str:
    return percent(used(use), use.total)


def _name_width(rows: Sequence[TableRow], more: int) -> int:
    """Return the width of the names in cells; rows without a block size may use `more` cells."""
    return max(
        len(_HEAD["name"]),
        *(width(row.cells["name"]) - (0 if "block" in row.cells else more) for row in rows),
    )


def head_row(layout: Layout, screen: Screen) -> str:
    """Return the header line."""
    cells = (_filled(_HEAD[name], wide, name) for name, wide in layout.widths.items())
    return paint(layout.gap.join(cells).rstrip(), "dim", colour=screen.colour)


def _filled(text: str, wide: int, name: str) -> str:
    space = " " * (wide - width(text))
    return text + space if name in _LEFT else space + text


def draw(rows: Iterable[TableRow], layout: Layout, screen: Screen) -> Iterator[str]:
    """Yield the lines of rows, each with the lines below it."""
    for row in rows:
        cells = []
        spans = "block" in layout.widths and "block" not in row.cells
        for name, wide in layout.widths.items():
            text = row.cells.get(name, "")
            if name == "block" and spans:
                continue
            if name == "name":
                room = wide + (len(layout.gap) + layout.widths["block"] if spans else 0)
                if screen.cuts and width(text) > room:
                    mark = dots(screen)
                    text = cut(text, room - len(mark), layout.head, mark)
                cells.append(_filled(text, room, name))
            elif name == "use" and row.use:
                drawn = (
                    f"{bar(row.use, layout.bar, screen)} {_used_percent(row.use):>{wide - layout.bar - 1}}"
                )
                cells.append(paint(drawn, row.style, colour=screen.colour) if row.style else drawn)
            else:
                urgent = name == "room" and row.full and screen.colour
                cells.append(paint(_filled(text, wide, name), "error", colour=urgent))
        yield layout.gap.join(cells).rstrip()
        yield from row.lines


def cut(text: str, keep: int, head: int, mark: str) -> str:
    """Return `keep` characters of a name: some from its beginning, a mark, and the others from its end."""
    if len(text) <= keep:
        return text
    return f"{text[:head]}{mark}{text[len(text) - keep + head :]}"


def dots(screen: Screen) -> str:
    """Return the mark for omitted text."""
    return "…" if screen.blocks else "..."


def bar(use: Use, cells: int, screen: Screen) -> str:
    """Return a bar: held, then quarantined and reserved, then free. Parts above 0 have a cell at least."""
    held, kept, free = _glyphs(screen)
    if not use.total:
        return free * cells
    whole = _cells(used(use), use.total, cells)
    first = min(_cells(use.held, used(use), whole), whole) if use.held else 0
    return held * first + kept * (whole - first) + free * (cells - whole)


def _cells(part: int, total: int, cells: int) -> int:
    """Return the cells of a part of a bar; it gets none or all only if it is nothing or everything."""
    if part in {0, total}:
        return cells if part else 0
    return min(max((2 * part * cells + total) // (2 * total), 1), max(cells - 1, 1))


def _glyphs(screen: Screen) -> tuple[str, str, str]:
    return ("█", "▒", "░") if screen.blocks else ("#", "=", ".")


def legend(screen: Screen) -> str:
    """Return the line that explains a bar of three parts."""
    held, kept, free = _glyphs(screen)
    return paint(f"{held} held  {kept} quarantined, reserved  {free} free", "dim", colour=screen.colour)
