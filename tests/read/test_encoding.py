"""Bytes to text: the check without a text finds what the decoding finds."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.read.syntax import text as encoding
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.text import BOM, Lines, check, decode
from tests.support import depth

PIECES = (b"a: b\n", b"\r\n", b" ", b"\x0b", BOM, "ö".encode(), "日本".encode(), "🎉".encode())
HOSTILE = (
    b"\x00",
    b"\x7f",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\x80",
    b"\xf0\x9f",
    "\x85\ufffe".encode(),
    "# x\u2028y: 1".encode(),
    b"# x\ry: 1",
)


def refusal(data: bytes, *, whole: bool) -> tuple[Diagnostic, ...]:
    try:
        (decode if whole else check)("x.yaml", data)
    except Unreadable as broken:
        return broken.diagnostics
    return ()


@given(
    pieces=st.lists(st.sampled_from(PIECES + HOSTILE), max_size=12),
    step=st.sampled_from((1, 2, 3, 7, 1 << 16)),
)
@example(pieces=[], step=1)
@example(pieces=[b" ", BOM, b" "], step=2)
@example(pieces=[BOM, BOM], step=3)
@example(pieces=["日本".encode()], step=1)
@example(pieces=[b"a", b"\xc3"], step=1)
@settings(max_examples=depth.examples(400))
def test_the_check_refuses_what_decoding_refuses(pieces: list[bytes], step: int) -> None:
    data = b"".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_STEP", step)
        assert refusal(data, whole=False) == refusal(data, whole=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: 1  # x\u2028b: 2\n", "U+2028 ends a line here, but editors and diffs do not show it"),
        ("a: 1  # x\u2029b: 2\n", "U+2029 ends a line here, but editors and diffs do not show it"),
        ("a: 1  # x\x85b: 2\n", "U+0085 ends a line here, but editors and diffs do not show it"),
        (
            "a: 1  # x\rb: 2\n",
            "a lone carriage return ends a line here, but editors and diffs do not show it",
        ),
        ("a: 1\r\nb: 2\r\n", ""),
    ],
)
def test_a_line_break_that_nobody_sees_is_refused_in_yaml(text: str, found: str) -> None:
    """It would end a comment: the rest of what looks like one is a setting, for kustomize as for ipamc."""
    diagnostics = refusal(text.encode(), whole=True)
    assert [found in each.message for each in diagnostics] == ([True] if found else [])
    assert [(each.at.line, each.at.column) for each in diagnostics if isinstance(each.at, Span)] == (
        [(1, 10)] if found else []
    )
    assert decode("x.json", text.encode()) == text


def test_a_bad_byte_is_named_after_a_byte_order_mark() -> None:
    (found,) = refusal(BOM + b"a: \xff\n", whole=True)
    assert "byte 0xff" in found.message
    assert isinstance(found.at, Span)
    assert (found.at.line, found.at.column) == (1, 4)


def test_the_check_makes_no_text_as_long_as_the_file() -> None:
    data = ("text: plain\n" * 500_000 + "🎉\n").encode()
    tracemalloc.start()
    check("x.yaml", data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(data) / 2  # decoded it takes four times its length


@given(
    text=st.text(st.sampled_from("ab\n\r\x85ö"), max_size=30),
    offsets=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=4),
    step=st.sampled_from((1, 2, 5, 1 << 16)),
)
@settings(max_examples=depth.examples(400))
def test_a_span_is_where_its_lines_say(text: str, offsets: list[tuple[int, int]], step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_STEP", step)
        lines = Lines("x", text)
        for offset, length in offsets:
            start = min(offset, len(text))
            before = text[:start]
            if before.endswith("\r") and text[start : start + 1] == "\n":
                before = before[:-1]  # in the middle of a line break, which belongs to the line before
            *whole, _ = re.split(r"\r\n|\r|\n", before)
            first = start if before == "" else len(before) - len(re.split(r"\r\n|\r|\n", before)[-1])
            first = 0 if not whole else first
            source = re.split(r"\r\n|\r|\n", text[first:])[0]
            column = min(start - first, len(source)) + 1
            end = max(column, min(start + length - first, len(source)) + 1)
            assert lines.span(start, start + length) == Span("x", len(whole) + 1, column, end, source)
