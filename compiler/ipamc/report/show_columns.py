"""The columns of a table for a terminal: those that fit, with a bar in the remaining width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ipamc.lock.utilisation import Use
from ipamc.report.terminal_text import paint, width
from ipamc.report.utilisation import percent

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
    share = max((len(_share(row.use)) for row in rows if row.use), default=0)
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


def _share(use: Use) -> str:
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
                drawn = f"{bar(row.use, layout.bar, screen)} {_share(row.use):>{wide - layout.bar - 1}}"
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
