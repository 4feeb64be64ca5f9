"""Findings as text: what a person and a program see, and that nothing in the input reaches the terminal as it is."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.diagnostics import Diagnostic, Place, Related, Severity, Span, error, note, warning
from ipamc.model.limits import AFTER_CARET, BEFORE_CARET, FINDINGS_SHOWN, TEXT_SHOWN
from ipamc.report.findings import FORMATS, NAMES, report
from ipamc.report.terminal_text import excerpt, tally, visible

LINE = "    cidrs: [10.0.8.0/24]"
OVERLAP = error(
    "IPC0207",
    Span("clusters/lab/ippools.yaml", 41, 13, 24, LINE),
    'pool "rack-b" overlaps pool "rack-a"',
    also=[
        Related(
            Span("clusters/lab/ippools.yaml", 12, 13, 24, "    cidrs: [10.0.0.0/16]"),
            "10.0.0.0/16 claimed here",
        )
    ],
    help="split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
)


def at(path: str, line: int, column: int = 1, source: str = "x") -> Span:
    return Span(path, line, column, column + 1, source)


def test_full() -> None:
    assert report([OVERLAP], "full") == (
        """\
error[IPC0207]: pool "rack-b" overlaps pool "rack-a"
  --> clusters/lab/ippools.yaml:41:13
41 |     cidrs: [10.0.8.0/24]
   |             ^^^^^^^^^^^
  ::: clusters/lab/ippools.yaml:12:13: 10.0.0.0/16 claimed here
  = help: split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two
"""
    )


@pytest.mark.parametrize("where", [Span("clusters/lab"), Place("clusters/lab", 3, ("spec",))])
def test_full_without_a_line(where: Span | Place) -> None:
    assert report([note("IPC0401", where, "no lock")], "full") == (
        "note[IPC0401]: no lock\n --> clusters/lab\n"
    )


def test_full_with_help_of_several_lines() -> None:
    text = report([warning("IPC0500", at("a.yaml", 7), "set a flag", help="add:\n  flag: x\x1b")], "full")
    assert text.endswith(" = help: add:\n           flag: x\\x1b\n")


def test_concise() -> None:
    assert (
        report([OVERLAP], "concise")
        == 'clusters/lab/ippools.yaml:41:13: error[IPC0207] pool "rack-b" overlaps pool "rack-a"\n'
    )


def test_json() -> None:
    document = json.loads(report([OVERLAP, note("IPC0401", Place("lab"), "no lock")], "json"))
    assert document == {
        "version": 1,
        "findings": [
            {
                "severity": "error",
                "code": "IPC0207",
                "message": 'pool "rack-b" overlaps pool "rack-a"',
                "file": "clusters/lab/ippools.yaml",
                "line": 41,
                "column": 13,
                "end_column": 24,
                "help": "split 10.0.0.0/16 around 10.0.8.0/24, or drop one of the two",
                "related": [
                    {
                        "label": "10.0.0.0/16 claimed here",
                        "file": "clusters/lab/ippools.yaml",
                        "line": 12,
                        "column": 13,
                        "end_column": 24,
                    }
                ],
            },
            {
                "severity": "note",
                "code": "IPC0401",
                "message": "no lock",
                "file": "lab",
                "line": 0,
                "column": 0,
                "end_column": 0,
                "help": "",
                "related": [],
            },
        ],
        "errors": 1,
        "warnings": 0,
        "notes": 1,
        "failures": [],
    }


def test_findings_are_sorted_by_place() -> None:
    places = [("b.yaml", 1, 1), ("a.yaml", 10, 1), ("a.yaml", 9, 5), ("a.yaml", 9, 4), ("a.yaml", 0, 0)]
    text = report(
        [warning("IPC0200", Span(path, line, column), "m") for path, line, column in places], "concise"
    )
    assert re.findall(r"^\S+(?=: )", text, re.MULTILINE) == [
        "a.yaml",
        "a.yaml:9:4",
        "a.yaml:9:5",
        "a.yaml:10:1",
        "b.yaml:1:1",
    ]


@pytest.mark.parametrize("style", ["full", "concise"])
def test_people_see_the_first_of_each_code_and_how_many_more(style: str) -> None:
    many = [
        error("IPC0303", at("a.yaml", line), f"no room for node-{line}")
        for line in range(1, FINDINGS_SHOWN + 1313)
    ]
    text = report([*many, OVERLAP], style)
    assert text.count("error[IPC0303]") == FINDINGS_SHOWN
    assert "no room for node-20\n" in text
    assert text.endswith("... and 1,312 more IPC0303\n")
    assert "error[IPC0207]" in text


def test_programs_see_all() -> None:
    many = [error("IPC0303", at("a.yaml", line), "no room") for line in range(1, 100)]
    assert len(json.loads(report(many, "json"))["findings"]) == 99


def test_the_tally() -> None:
    found = [
        OVERLAP,
        OVERLAP,
        warning("IPC0215", at("a", 1), "m"),
        *[note("IPC0500", at("a", 1), "m")] * 1200,
    ]
    assert tally(found) == "2 errors, 1 warning, 1,200 notes"


@pytest.mark.parametrize("style", ["full", "concise"])
def test_colour_is_only_escapes_around_the_same_text(style: str) -> None:
    coloured = report([OVERLAP], style, colour=True)
    assert "\x1b[1;31merror[IPC0207]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == report([OVERLAP], style)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢 🙂", "plain é 漢 🙂"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\tb\r\nc", "a\\tb\\r\\nc"),
        ("\x9b2J\x7f\xa0", "\\x9b2J\\x7f\\xa0"),
        ("\u202egnirts\u2066", "\\u202egnirts\\u2066"),
        ("zero\u200bwidth\ufeff\u2028", "zero\\u200bwidth\\ufeff\\u2028"),
        ("\udcff\U000e0041", "\\udcff\\U000e0041"),
    ],
)
def test_what_does_not_print_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_name_of_any_length_is_cut() -> None:
    assert visible("n" * 1_000_000) == "n" * TEXT_SHOWN + "…"


hostile = st.text(st.characters(codec=None), max_size=40)


@given(hostile, hostile, hostile, hostile, st.integers(0, 50), st.integers(0, 50))
def test_no_text_acts_on_the_terminal(
    path: str, message: str, source: str, label: str, column: int, more: int
) -> None:
    span = Span(path, 3, column, column + more, source)
    found = error("IPC0200", span, message, also=[Related(span, label)], help=label)
    for each in FORMATS:
        assert all(char.isprintable() or char == "\n" for char in report([found], each))


@pytest.mark.parametrize(
    ("source", "column", "end", "indent", "carets"),
    [
        ("key: value", 6, 11, 5, 5),
        ("\tkey: v", 2, 5, 4, 3),  # a tab is four cells
        ("漢字: v", 5, 6, 6, 1),  # wide characters are two cells
        ("e\u0301: v", 5, 6, 3, 1),  # an accent that combines has none
        ("a\x1b: v", 5, 6, 7, 1),  # what is spelled out is as long as its spelling
        ("🙂🙂", 1, 3, 0, 4),
        ("short", 9, 9, 8, 1),  # past the end of the line: where something is missing
        ("point", 3, 3, 2, 1),
        ("", 1, 1, 0, 1),
    ],
)
def test_the_caret_stands_under_its_text(
    source: str, column: int, end: int, indent: int, carets: int
) -> None:
    cut = excerpt(Span("a.yaml", 1, column, end, source))
    assert (cut.indent, cut.carets) == (indent, carets)


def test_a_long_line_is_cut_around_the_caret() -> None:
    source = "a" * 100_000 + "HERE" + "b" * 100_000
    cut = excerpt(Span("a.json", 1, 100_001, 100_005, source))
    assert cut.text == "…" + "a" * BEFORE_CARET + "HERE" + "b" * BEFORE_CARET + "…"
    assert cut.text[cut.indent : cut.indent + cut.carets] == "HERE"


def test_a_long_span_is_cut_too() -> None:
    cut = excerpt(Span("a.json", 1, 1, 100_001, "x" * 100_000))
    assert len(cut.text) == AFTER_CARET + BEFORE_CARET + 1
    assert cut.carets <= AFTER_CARET + BEFORE_CARET


def test_the_formats() -> None:
    assert NAMES == ("full", "concise", "json", "github", "gitlab", "sarif", "junit")


def test_severities_weigh() -> None:
    same = at("a.yaml", 1)
    found: list[Diagnostic] = [
        note("IPC0001", same, "n"),
        warning("IPC0002", same, "w"),
        error("IPC0003", same, "e"),
    ]
    assert sorted(Severity) == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    assert re.findall(r"error|warning|note", report(found, "concise")) == ["error", "warning", "note"]
