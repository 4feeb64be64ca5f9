"""A plan as a picture: the rows of each pool in which something changes, before and after.

A comment or a pipeline's summary shows it as an image. It has no script, link or font, and follows the
reader's light or dark theme. Rows without a change are omitted, and a large plan is cut; the plan's text has
everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from ipamc.lock.utilisation import PoolUse
from ipamc.model.address_sets import blocks_over, lines_over, outermost
from ipamc.model.cidr import BITS, Block, address_text
from ipamc.model.diagnostics import count
from ipamc.model.limits import MAP_ROWS
from ipamc.model.lock import Line
from ipamc.report.plan_text import headline
from ipamc.report.terminal_text import visible
from ipamc.review.diff.plan_report import Picture, PlanReport

_COLUMNS = 32  # blocks in a row
_CELL, _ROW = 12, 14
_LABEL, _GAP = 150, 30
_MAP = _COLUMNS * _CELL
_WIDTH = _LABEL + 2 * _MAP + _GAP + 20

_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1b2430; }
.title { font-weight: bold; font-size: 14px; } .soft { fill: #5b6675; }
.page { fill: #ffffff; } .free { fill: #e6ebf1; } .held { fill: #2f6fb5; } .pending { fill: #e0a100; }
.apart { fill: #8a8f98; opacity: .5; } .quarantined { fill: #b4552d; } .released { fill: #7fb3a6; } \
.same { opacity: .35; }
.new { stroke: #d1007a; stroke-width: 2; } .gone { fill: none; stroke: #d1007a; stroke-width: 2; \
stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9f0; } .soft { fill: #9aa7b6; } .page { fill: #12171e; } .free { fill: #262f3a; } \
.held { fill: #4f93dd; }
.pending { fill: #f0b929; } .quarantined { fill: #d97a50; } .released { fill: #5c9a8b; } \
.new, .gone { stroke: #ff5cb8; }
}
"""

Key = tuple[Block, str]  # a block and its node


class _Drawing(Struct):
    """The elements drawn so far, and the position of the next line."""

    parts: list[str]
    y: int = 10
    rows: int = 0
    left_out: int = 0

    def text(self, words: str, x: int = 10, sort: str = "") -> None:
        """Draw a line of text, and move to the next line."""
        kind = f" class={quoteattr(sort)}" if sort else ""
        self.parts.append(f'<text{kind} x="{x}" y="{self.y + 12}">{escape(visible(words))}</text>')
        self.y += 20


def render(report: PlanReport) -> str:
    """Return the picture of all clusters whose blocks change."""
    drawing = _Drawing(parts=[])
    drawing.text(f"plan against {report.base or 'the disk'}: {headline(report.clusters)}", sort="title")
    for cluster in report.clusters:
        if cluster.picture:
            _cluster(drawing, cluster.name, cluster.picture)
        elif cluster.difference is None:
            drawing.text(f"{cluster.name}: {cluster.status}: {cluster.said}")
    if drawing.left_out:
        drawing.text(f"and {count(drawing.left_out, 'more row')} with changes (see the text of the plan)")
    if drawing.rows:
        drawing.y += 4
        x = 10
        named = {"apart": "reserved", "new": "changed"}
        for sort in ("held", "pending", "quarantined", "released", "apart", "free", "new", "gone"):
            words, fill = named.get(sort, sort), "free new" if sort == "new" else sort
            drawing.parts.append(
                f'<rect class="{fill}" x="{x}" y="{drawing.y}" width="11" height="11"/>'
                f'<text x="{x + 16}" y="{drawing.y + 10}">{words}</text>'
            )
            x += 30 + 8 * len(words)
        drawing.y += 18
    height, body = drawing.y + 10, "\n".join(drawing.parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}">'
    ground = f'<rect class="page" width="{_WIDTH}" height="{height}"/>'
    return f"{head}\n<style>{_STYLE}</style>\n{ground}\n{body}\n</svg>\n"


def _cluster(drawing: _Drawing, name: str, found: Picture) -> None:
    before, after = found.before.lines, found.map.lock.lines
    was, now = ({(line.block, line.node, line.state) for line in lines} for lines in (before, after))
    changed = {(block, node) for block, node, _ in was ^ now}
    if not changed:
        return
    drawing.y += 6
    drawing.text(name, sort="title")
    ranges = sorted(part.range.block for pool in found.map.pools for part in pool.use.ranges)
    inside: dict[Block, list[Key]] = defaultdict(list)
    outside = 0
    for key in changed:
        over = blocks_over(ranges, key[0])
        outside += not over
        for block in over:
            inside[block].append(key)
    for pool in found.map.pools:
        here = [part.range.block for part in pool.use.ranges if part.range.block in inside]
        apart = [outermost(kept) for kept in (pool.reserved, pool.excluded, pool.without_line) if here]
        for block in here:
            _range(drawing, pool.use, block, apart, (before, after), inside[block])
    if outside:
        drawing.text(f"{count(outside, 'change')} outside the pools", sort="soft")


def _range(
    drawing: _Drawing,
    pool: PoolUse,
    block: Block,
    apart: Sequence[Sequence[Block]],
    lines: tuple[Sequence[Line], Sequence[Line]],
    changed: Sequence[Key],
) -> None:
    prefix = max(pool.family.block_size - (_COLUMNS - 1).bit_length(), block.prefix)
    size = 1 << (BITS[block.family] - prefix)
    cells = 1 << max(pool.family.block_size - prefix, 0)
    rows: dict[int, set[Key]] = defaultdict(set)
    for key in changed:
        first = max(key[0].first, block.first)
        begin, end = (first - block.first) // size, (min(key[0].last, block.last) - block.first) // size
        for number in range(begin, min(end, begin + MAP_ROWS) + 1):
            rows[number].add(key)
    if not drawing.rows:
        drawing.parts.append(
            f'<text class="soft" x="{_LABEL}" y="{drawing.y + 12}">before</text>'
            f'<text class="soft" x="{_LABEL + _MAP + _GAP}" y="{drawing.y + 12}">after</text>'
        )
        drawing.y += 20
    drawing.text(f"{pool.pool.name} {block}", sort="soft")
    for number in sorted(rows):
        if drawing.rows >= MAP_ROWS:
            drawing.left_out += 1
            continue
        row = Block(block.family, block.first + number * size, prefix)
        label = f"{address_text(row.family, row.first)}/{prefix}"
        drawing.parts.append(f'<text x="10" y="{drawing.y + 10}">{label}</text>')
        for place, side in enumerate(lines):
            x = _LABEL + place * (_MAP + _GAP)
            drawing.parts += [
                _box("apart", row, cells, kept, x, drawing.y, f"{kept}: not for new blocks")
                for blocks in apart
                for kept in blocks_over(blocks, row)
            ]
            free = range(x, x + cells * _CELL, _CELL)
            shape = f'y="{drawing.y}" width="{_CELL - 1}" height="{_ROW - 2}"/>'
            drawing.parts.append("".join(f'<rect class="free" x="{left}" {shape}' for left in free))
            for line in lines_over(side, row):
                sort = f"{line.state} {'new' if (line.block, line.node) in rows[number] else 'same'}"
                said = f"{line.block} of {line.node}: {line.state}"
                drawing.parts.append(_box(sort, row, cells, line.block, x, drawing.y, said))
        here = {(line.block, line.node) for line in lines_over(lines[1], row)}
        drawing.parts += [
            _box("gone", row, cells, block, x, drawing.y, f"{block} of {node}: no longer in the lock")
            for block, node in sorted(rows[number] - here)
        ]
        drawing.y += _ROW
        drawing.rows += 1
    drawing.y += 6


def _box(sort: str, row: Block, cells: int, block: Block, x: int, y: int, said: str) -> str:
    """Return a block as a box in a row, with a title (tooltip) that describes it."""
    wide = cells * _CELL
    start = max(block.first - row.first, 0) * wide / row.size
    end = (min(block.last, row.last) + 1 - row.first) * wide / row.size
    return (
        f"<g><title>{escape(visible(said))}</title><rect class={quoteattr(sort)} "
        f'x="{x + start:g}" y="{y}" width="{max(end - start - 1, 1):g}" height="{_ROW - 2}"/></g>'
    )
