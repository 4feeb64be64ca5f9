"""What pages tell people to type exists: verbs and options of ipamc in prose, and in shell blocks that `tests/test_pages.py` does not play."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.test_runbook_pages import calls, unknown
from tests.support.page_story import ROOT

GENERATED = {ROOT / "docs/runbooks", ROOT / "docs/reference"}
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & {*page.parents}]
_BLOCK = re.compile(r"^ *```(?P<kind>[a-z]*)[^\n]*\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"`(ipamc [a-z-]+(?: [^`]*)?)`")
SKETCHES = re.compile(r"<[a-z]|…|\.\.\.|NAME\|")
"""Texts that show a shape and are not to be typed."""


def typed(text: str) -> list[str]:
    """Return the lines of a page that are typed, other than those that are played."""
    blocks = [found["body"] for found in _BLOCK.finditer(text) if found["kind"] == "sh"]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    prose = " ".join(_BLOCK.sub("", text).split())
    return [
        line for line in [*lines, *_TYPED.findall(prose)] if "ipamc" in line and not SKETCHES.search(line)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_verbs_and_options_that_exist(page: Path) -> None:
    found = [call for line in typed(page.read_text(encoding="utf-8")) for call in calls(line)]
    assert [call for call in found if call and unknown(call)] == []


def test_it_sees_what_it_is_for() -> None:
    page = "Type `ipamc plan\n--formt x`.\n\n```sh\nkubectl get nodes |\\\n  ipamc import --refrsh\n```\n\n```console\n$ ipamc nothing\n```\n"
    assert [unknown(call) for line in typed(page) for call in calls(line)] == ["--refrsh", "--formt"]
