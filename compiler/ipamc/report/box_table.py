"""Tables for a terminal: boxes as `calicoctl ipam show` draws them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ipamc.report.terminal_text import width

Row = tuple[str, ...]


def box(head: Row, groups: Sequence[Sequence[Row]], *, numbers: Collection[int] = ()) -> str:
    """Draw rows of printable cells below a head, a rule between groups. `numbers` are the columns that are flush right."""
    widths = [
        max(width(row[column]) for row in (head, *(row for group in groups for row in group)))
        for column in range(len(head))
    ]
    rule = f"+{'+'.join('-' * (each + 2) for each in widths)}+\n"
    body = rule.join("".join(_line(row, widths, numbers) for row in group) for group in groups)
    return rule + _line(head, widths, numbers) + rule + (body + rule if groups else "")


def _line(row: Row, widths: Sequence[int], numbers: Collection[int]) -> str:
    cells = []
    for column, (text, wanted) in enumerate(zip(row, widths, strict=True)):
        space = " " * (wanted - width(text))
        cells.append(f" {space}{text} " if column in numbers else f" {text}{space} ")
    return f"|{'|'.join(cells)}|\n"
