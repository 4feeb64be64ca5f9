"""Pools on a terminal: a line for each pool and family with a bar in the remaining width, and a total.

Nothing is drawn by a library: with `--show-blocks` there is a line for each of 100,000 blocks, and rich takes
0.5 s for 1,000.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ipamc.check.capacity import LOW
from ipamc.lock.utilisation import Use
from ipamc.model.cluster import Pool
from ipamc.model.diagnostics import count
from ipamc.model.lock import Line, State
from ipamc.report.lock_lines import state
from ipamc.report.show_columns import Screen, TableRow, dots, draw, head_row, lay_out, legend, used
from ipamc.report.terminal_text import paint, visible, width
from ipamc.report.utilisation import addresses, amount, percent, percent_left
from ipamc.review.shown_pools import ShownCluster, ShownPool, quarantine_ends

MOST = 30  # pools of one cluster on a terminal; more are shown in a pipe, and by `--all`
_REASONS = 5  # the same for reserved CIDRs of a pool


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
    limit = MOST if screen.cuts and not options.every and len(groups) > MOST + MOST // 5 else len(groups)
    rows = [row for group in groups[:limit] for row in _pool_rows(cluster, group, options, screen)]
    rows += _totals("total", [cluster])
    foot = []
    if left_out := groups[limit:]:
        fullest = max((pool.use.use for group in left_out for pool in group), key=_share)
        most = f", at most {percent(used(fullest), fullest.total)} used" if options.sort == "use" else ""
        foot = [f"{dots(screen)} and {count(len(left_out), 'more pool')}{most}: --all shows them"]
    if cluster.outside and options.blocks:
        foot += ["outside every pool", *_listed(cluster.outside, cluster, "  ", screen)]
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
        parts.append(f"{count(len(cluster.outside), 'line')} of the lock outside every pool")
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
        family = shown.use.family.family
        ranges = shown.use.ranges
        room = f"{'unlisted ' if pool.unlisted else ''}{cluster.terms.unit}{'' if shown.room == 1 else 's'}"
        network = shown.use.family.follows
        closed = f"follows {network.block}" if network else "no new node" if use.held else "disabled"
        closed = "for pods alone" if pool.pods_only else closed
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
    limit = _REASONS if screen.cuts and not options.every else len(with_reason)
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
    said = state(line, started=line.block in cluster.started)
    if line.state is not State.QUARANTINED or cluster.quarantine_days is None:
        return said
    day = quarantine_ends(line, cluster.quarantine_days)
    return f"{said}, free {'since' if day <= cluster.today else 'on'} {day}" if day else said
