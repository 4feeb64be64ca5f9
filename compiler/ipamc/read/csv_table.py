"""Reads the wanted columns of a CSV as rows, with the line and the column of each cell."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.cidr import CidrError
from ipamc.model.diagnostics import At, Diagnostic, Refused, Related, Span, count, error
from ipamc.model.limits import LARGEST_TABLE, MOST_COLUMNS_OF_TABLE, MOST_ROWS_OF_TABLE
from ipamc.model.wording import listing, shown
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.text import decode

_SEPARATORS = ",;\t|"
_EXCEL_HINT = re.compile(r"\ufeff?sep=(.)\r?\n?")
"""The first line of a CSV may tell Excel the separator."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_NOT_COUNTED = re.compile(r"[\s_-]+")

Wanted = Mapping[str, Sequence[str]]
"""For each column, the headers that it may have, the preferred one first, in the form of `plain`."""


class Row(Struct, frozen=True, gc=False):
    """A row: its first line in the file, from 1, and the cells by column; an absent column is ""."""

    line: int
    cells: Mapping[str, str]


class Table(Struct, frozen=True, kw_only=True, dict=True):
    """The rows of a table, in the order of the file, without empty and unreadable ones."""

    path: str
    text: str
    separator: str
    columns: Mapping[str, int]
    """The index of each column in the file."""
    head: int
    """The line of the headers."""
    rows: tuple[Row, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    """Errors in the form of the file."""

    def at(self, row: Row, column: str = "") -> Span:
        """Return the place of a row's cell; for an absent column, the beginning of the row."""
        return self.cell(row.line, self.columns.get(column, 0))

    @cached_property
    def _lines(self) -> list[str]:
        return [line[0].rstrip("\r\n") for line in _LINE.finditer(self.text)]

    def cell(self, line: int, index: int) -> Span:
        """Return the span of a cell: up to its end, or to the end of the line if the cell has several."""
        source = self._lines[line - 1]
        start, end = 0, len(source)
        quoted, seen = False, 0
        for place, character in enumerate(source):
            if character == '"':
                quoted = not quoted
            elif character == self.separator and not quoted:
                if seen == index:
                    end = place
                    break
                seen += 1
                start = place + 1
        if seen < index:  # behind a line break in a cell
            start, end = 0, len(source)
        return Span(self.path, line, start + 1, end + 1, source)


def plain(header: str) -> str:
    """Return a header in a normal form, for comparison."""
    return _NOT_COUNTED.sub("", header).casefold()


def read_table(path: str, data: bytes, wanted: Wanted, *, others: bool = False) -> Table:
    """Read the wanted columns that exist, and record errors of rows. O(n). Raises Refused if it is no text.
    With `others`, also read every other column, by its header; a file of one column, whose first line is not
    a header of the first wanted column, then has no headers.
    """
    if len(data) > LARGEST_TABLE:
        problem = f"the file has {len(data):,} bytes, more than {LARGEST_TABLE:,}"
        raise Refused((table_syntax(Span(path), problem, _FEWER),))
    try:
        text = decode(path, data)
    except Unreadable as problem:
        raise Refused(problem.diagnostics) from None
    hint = _EXCEL_HINT.match(text)
    first = 2 if hint else 1
    separator = hint[1] if hint else max(_SEPARATORS, key=text.split("\n", 1)[0].count)
    found: list[Diagnostic] = []
    records = _records(path, text, separator, first, found)
    head, headers = next(records, (first, []))
    names = [plain(header) for header in headers]
    columns = {
        column: next(names.index(spelling) for spelling in spellings if spelling in names)
        for column, spellings in wanted.items()
        if any(spelling in names for spelling in spellings)
    }
    if others and len(headers) == 1 and not columns:
        columns, records = {next(iter(wanted)): 0}, chain([(head, headers)], records)
    elif others:
        if len(headers) > MOST_COLUMNS_OF_TABLE:
            most = f"the header row has more than {MOST_COLUMNS_OF_TABLE:,} cells"
            raise Refused((table_syntax(Span(path, head), most, "export the columns that nodes need"),))
        taken = set(columns.values())
        for index, header in enumerate(headers):
            if header.strip() and index not in taken:
                columns.setdefault(header.strip(), index)
    table = Table(path=path, text=text, separator=separator, columns=columns, head=head)
    found.extend(
        column_twice(table.cell(head, other), table.cell(head, index), shown(column))
        for column, index in columns.items()
        for other in range(index + 1, len(names))
        if names[other] == names[index]
    )
    return replace(table, rows=tuple(_rows(table, len(headers), records, found)), findings=tuple(found))


_FEWER = "export the rows of only one site"


def _records(
    path: str, text: str, separator: str, first: int, found: list[Diagnostic]
) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, cells) of every record that is not empty; end at a syntax error."""
    lines = (line[0] for line in _LINE.finditer(text))
    reader = csv.reader(islice(lines, first - 1, None), delimiter=separator, strict=True)
    line, number = first, 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                number += 1
                if number > MOST_ROWS_OF_TABLE + 1:
                    problem = f"the file has more than {MOST_ROWS_OF_TABLE:,} rows"
                    found.append(table_syntax(Span(path, line), problem, _FEWER))
                    return
                yield line, cells
            line = reader.line_num + first
    except csv.Error as problem:
        table = Table(path=path, text=text, separator=separator, columns={}, head=first)
        way_out = "look for an unclosed double quote; inside a quoted cell, write each quote twice"
        found.append(table_syntax(table.at(Row(line, {})), f"the row is not CSV: {problem}", way_out))


def _rows(
    table: Table, width: int, records: Iterator[tuple[int, list[str]]], found: list[Diagnostic]
) -> Iterator[Row]:
    once: dict[str, str] = {}
    """One text for the same text: a million rows have few statuses and pools."""
    for line, cells in records:
        if len(cells) == width:
            texts = ((name, cells[index].strip()) for name, index in table.columns.items())
            yield Row(line, {name: once.setdefault(text, text) for name, text in texts if text})
        elif len(found) < 10_001:
            problem = f"the row has {count(len(cells), 'cell')}, but the header row has {width}"
            separate = f"separate cells by {shown(table.separator)}"
            way_out = f"{separate}; put a cell that contains it in double quotes"
            found.append(table_syntax(table.at(Row(line, {})), problem, way_out))


def table_syntax(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0870: a table is CSV with a header row, and each row has the same number of cells."""
    return error("IPC0870", at, problem, help=way_out)


def column_missing(at: At, names: Iterable[str], way_out: str) -> Diagnostic:
    """IPC0871: a table has all required columns."""
    return error("IPC0871", at, f"the header row has no column {listing(names)}", help=way_out)


def column_twice(at: At, first: At, name: str) -> Diagnostic:
    """IPC0872: a table does not contain a column twice."""
    also, way_out = [Related(first, "first here")], "remove or rename one of the two"
    return error("IPC0872", at, f"the header row has the column {name} twice", also=also, help=way_out)


def bad_prefix(at: At, text: str, problem: CidrError) -> Diagnostic:
    """IPC0873: a prefix in a table is a CIDR without host bits, and pods can use its addresses."""
    way_out = f"write {problem.better}" if problem.better else ""
    if text[:1] in {"=", "#", "+", "@"}:
        way_out = "the cell has a formula or its remains: paste the value, and export again"
    return error("IPC0873", at, problem.reason, help=way_out or "write it as 10.1.0.0/16 or fd00:1::/64")
