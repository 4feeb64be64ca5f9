"""`plan --output html`: the sections of the Markdown, folded as there; names are not markup."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest

from ipamc.report.plan_markdown import NO_WIDTH
from tests.support import casefile

PLANS = [
    name
    for name in casefile.names()
    if not {"want/plan.markdown", "want/plan.text"}.isdisjoint(casefile.load(name).files)
]
VOID = {"meta", "br", "input", "link"}


class Page(HTMLParser):
    """The sections of a plan on a page, in their order: whether it is open, and its summary."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[bool, str]] = []
        self.at: list[str] = []
        self.feed(text)
        self.close()
        assert not self.at

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "img", "a name is markup"
        self.at += [tag] if tag not in VOID and "svg" not in self.at else []
        if tag == "details":
            self.found.append(("open" in dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if "svg" not in self.at or tag == "svg":
            assert self.at.pop() == tag

    def handle_data(self, data: str) -> None:
        if "summary" in self.at:
            opened, text = self.found[-1]
            self.found[-1] = opened, text + data


def in_comment(text: str) -> list[tuple[bool, str]]:
    """Return the sections of a comment: whether it is open, and its title with what it is about."""
    found = re.findall(r"^(?:\*\*(.+?)\*\*(: .*)?|<details><summary>(.+)</summary>.*)$", text, re.MULTILINE)
    return [
        (bool(title), html.unescape(title + about + summary).replace(NO_WIDTH, ""))
        for title, about, summary in found
        if not re.match(r"\d+ (error|warning|note)s?$", title + summary)
    ]


@pytest.mark.parametrize("name", PLANS)
def test_a_page_has_the_sections_of_the_comment(name: str) -> None:
    case = casefile.load(name)
    for each in case.each.values() or (case,):
        produced = casefile.compiled(each).produced
        plan = produced["plan.html"].partition('<section id="plan"')[2].partition("</section>")[0]
        sections = [
            (opened, " ".join(summary.split()))
            for opened, summary in Page(f"<section{plan}</section>").found
            if not re.match(r"(warnings|notes) \d+$", summary)
        ]
        assert sections == in_comment(produced["plan.markdown"])
