"""Texts of strangers in what is printed and posted: no terminal, no CI system and no forge obeys them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ipamc.cli import main
from ipamc.report.plan_markdown import code, plain
from ipamc.report.terminal_text import harmless, harmless_json, paint

WORDS = {"add-mask", "set-output", "error", "warning", "group", "stop-commands", "set-env", "save-state"}
PIECES = [
    *"#[]:\n\r\t @!~%<>|`*_-.\x1b\x85\u2028\u202e\ufeff\ud800",
    "::",
    "##[",
    "##vso[",
    "error",
    "add-mask",
    "x",
    "\x1b[0K",
    "\x1b[1;31m",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def is_command(line: str) -> bool:
    """Read a line as GitHub's runner does (ActionCommand.cs): `::word ...::` after blanks, `##[word` anywhere."""
    text = line.strip()
    if text.startswith("::") and (end := text.find("::", 2)) >= 0 and text[2:end].split(" ")[0] in WORDS:
        return True
    marked = re.search(r"##\[([^\]]*)\]", line)
    return bool(marked and marked[1].split(" ")[0] in WORDS) or "##vso[" in line


@given(TEXTS)
def test_no_line_that_is_printed_is_a_command(text: str) -> None:
    for line in harmless(text).split("\n"):
        assert not is_command(line)
        assert re.sub("\x1b\\[(?:0|1;31)m", "", line).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("  ::add-mask::x", r"  \x3a:add-mask::x"),
        ("##[set-env name=A]b", r"#\x23[set-env name=A]b"),
        ("a\r\x1b[0Ksection_start:1:a\r\x1b[0K", r"a\r\x1b[0Ksection_start:1:a\r\x1b[0K"),
        ("::1/128 is in ::/0", "::1/128 is in ::/0"),
        ("fd00::1 and fd00::2", "fd00::1 and fd00::2"),
        ("two\nlines", "two\nlines"),
        (paint("x", "error", colour=True), "\x1b[1;31mx\x1b[0m"),
        ("## a title", "## a title"),
    ],
)
def test_what_would_be_a_command_is_spelled_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(TEXTS)
def test_json_means_the_same(text: str) -> None:
    printed = harmless_json(json.dumps({text: text}))
    assert json.loads(printed) == {text: text}
    assert not is_command(printed)


MENTION = re.compile(r"[@#!~%&$^][\w\"']|://|www\.", re.IGNORECASE)
"""What a forge makes a link of, and tells others."""


@given(TEXTS.filter(str.strip))
def test_a_comment_mentions_nobody_and_loads_nothing(text: str) -> None:
    made = MarkdownIt("commonmark", {"html": True}).enable("table")
    for before in (text, f"@everyone see #1, !2, ~label, www.example.org and https://example.org/{text}"):
        html = made.render(f"- {plain(before)} and {code(before)}")
        assert not re.search("<(?!/?(?:p|ul|li|code)>)", html)
        outside = re.sub("<code>.*?</code>", "", html)
        unescaped = (
            outside.replace("&amp;", "&").replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">")
        )
        assert not MENTION.search(unescaped)
        assert "://" not in html


def test_names_of_folders_and_arguments_are_printed_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "::error::a\n::add-mask::b\n##[error]c\x1b[2J"
    (tmp_path / "clusters" / name).mkdir(parents=True)
    for arguments in (
        ["compile"],
        ["show"],
        ["plan"],
        ["compile", name],
        ["compile", "--format", "concise"],
        ["ci", "matrix", "--output", "names"],
        ["compile", "--jobs", name],
        [name],
        ["which", name],
    ):
        assert main(arguments) != 0
        said = capsys.readouterr()
        for line in (said.out + said.err).splitlines():
            assert not is_command(line), arguments
            assert line.isprintable(), arguments
