"""No dead links: in the repository as a forge shows it, and in the site; and every page is in the site's navigation."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import filter as matching
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.website.build import pages
from tools.website.reference.markdown import anchor

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in TOP if (ROOT / name).exists()), *sorted(DOCS.rglob("*.md"))]
SITE = pages()
"""What is built: the pages of docs/, and one for each code."""


def inline(page: Path) -> Iterator[Token]:
    """Yield what stands in the lines of a page: texts, links, images, HTML."""
    for token in tokens(page):
        yield from token.children or ()


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Yield the addresses of a page's links and images."""
    for token in inline(page):
        if token.type in {"link_open", "image"}:
            yield unquote(str(token.attrGet("href") or token.attrGet("src")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that both a forge and the site give the headings of a page: they number equal ones differently."""
    listed = tokens(page)
    headings = [listed[at + 1].content for at, token in enumerate(listed) if token.type == "heading_open"]
    return frozenset(name for name, number in Counter(map(anchor, headings)).items() if number == 1)


def wrong(page: Path, link: str) -> str:
    """Say what is wrong with a link of a page; "" for nothing."""
    if re.match(r"(https|mailto):", link):
        return ""
    if re.match(r"\w+:", link) or link.startswith("/"):
        return "is neither https nor a relative path"
    path, _, heading = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return "leads nowhere"
    if DOCS in page.parents and target.is_relative_to(DOCS) and target.is_dir():
        return "is a folder, which the site has no page for: name its README.md"
    if heading and (target.suffix != ".md" or heading not in anchors(target)):
        return "has no such heading, or two"
    return ""


@pytest.mark.parametrize(
    ("page", "link", "said"),
    [
        ("docs/show.md", "forecast.md", ""),
        ("docs/show.md", "forecast.md#nowhere", "has no such heading, or two"),
        ("docs/show.md", "#filters", ""),
        ("docs/show.md", "no.md", "leads nowhere"),
        ("docs/show.md", "../../x.md", "leads nowhere"),
        ("docs/show.md", "/docs/forecast.md", "is neither https nor a relative path"),
        ("docs/show.md", "http://example.com", "is neither https nor a relative path"),
        ("docs/show.md", "runbooks", "is a folder, which the site has no page for: name its README.md"),
        ("README.md", "docs/runbooks", ""),
        ("docs/show.md", "../clusters/zones", ""),
    ],
)
def test_a_link(page: str, link: str, said: str) -> None:
    assert wrong(ROOT / page, link) == said


def test_every_link_leads_somewhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {link} {said}"
        for page in PAGES
        for link in links(page)
        if (said := wrong(page, link))
    ]
    assert dead == []


def test_pages_have_no_html_but_comments() -> None:
    """A forge shows some tags and drops others; Markdown says the same everywhere."""
    tags = [
        f"{page.relative_to(ROOT)}: {token.content.strip()}"
        for page in PAGES
        if DOCS in page.parents
        for token in [*tokens(page), *inline(page)]
        if token.type in {"html_block", "html_inline"} and not token.content.lstrip().startswith("<!--")
    ]
    assert tags == []


def test_a_page_begins_with_its_title_and_says_in_a_sentence_what_it_is() -> None:
    """Runbooks are as a command prints them."""
    bad = []
    for page in sorted(set(PAGES) - set((DOCS / "runbooks").iterdir())):
        kinds = [(token.type, token.tag) for token in tokens(page) if token.type != "html_block"]
        if DOCS in page.parents and [*kinds[:1], *kinds[3:4]] != [
            ("heading_open", "h1"),
            ("paragraph_open", "p"),
        ]:
            bad.append(str(page.relative_to(ROOT)))
    assert bad == []


def listed(entries: list[object]) -> Iterator[str]:
    """Yield the pages and patterns of a navigation."""
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from listed(value) if isinstance(value, list) else [str(value)]


def test_every_page_is_in_the_navigation() -> None:
    nav = list(listed(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    found = {entry: matching(SITE, entry) for entry in nav}
    assert [entry for entry, there in found.items() if not there] == [], "no such page"
    assert sorted(SITE.keys() - set().union(*found.values())) == [], "in no section of zensical.toml"


Section = list["str | Section"]


def sections(entries: list[Any]) -> Section:
    """Return the pages of a navigation, those of a section as a list of their own."""
    values = [
        value for entry in entries for value in (entry.values() if isinstance(entry, dict) else [entry])
    ]
    return [
        each
        for value in values
        for each in ([sections(value)] if isinstance(value, list) else matching(SITE, value))
    ]


def shown_beside(page: str, section: Section) -> Iterator[str]:
    """Yield the pages to which the navigation of a page leads: the first page of a section that it is not in stands for all of them."""
    for each in section:
        if isinstance(each, str):
            yield each
        elif page in str(each):
            yield from shown_beside(page, each)
        else:
            yield next(shown_beside("", each))


def test_every_page_is_within_two_clicks_of_home() -> None:
    navigation = sections(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])

    def reached(page: str) -> set[str]:
        targets = ((DOCS / page).parent / link.partition("#")[0] for link in links(DOCS / page))
        ways = {path.resolve() for path in targets if path.suffix == ".md"}
        return {path.relative_to(DOCS).as_posix() for path in ways if path.is_relative_to(DOCS)} | set(
            shown_beside(page, navigation)
        )

    first = reached("index.md")
    assert sorted(SITE.keys() - first.union(*map(reached, first))) == []


ARTICLE = re.compile(r"<article.*?</article>", re.DOTALL)
HREF = re.compile(r'(?:href|src)="([^"]*)"')
ID = re.compile(r'\bid="([^"]*)"')


@pytest.mark.deep
def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    """As a browser resolves it, without a server: to a file of the site, and to an element in it."""
    texts = {
        path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"
    }
    names = {path: set(ID.findall(text)) for path, text in texts.items()}
    assert len(texts) == len(SITE)
    dead = []
    for path, text in texts.items():
        article = ARTICLE.search(text)
        assert article, path
        for href in map(unescape, HREF.findall(article[0])):
            if re.match(r"(https|mailto):", href):
                continue
            to, _, name = href.partition("#")
            target = (path.parent / unquote(to)).resolve() if to else path
            if not target.is_file() or (name and unquote(name) not in names.get(target, ())):
                dead.append(f"{path.relative_to(site)}: {href}")
    assert dead == []


def reached(page: Path) -> set[Path]:
    """Return the pages of the site to which a page has a link: in its text, or in its navigation."""
    hrefs = (unescape(href).partition("#")[0] for href in HREF.findall(page.read_text(encoding="utf-8")))
    return {(page.parent / unquote(href)).resolve() for href in hrefs if href.endswith(".html")}


@pytest.mark.deep
def test_every_page_of_the_site_is_within_two_clicks_of_home(site: Path) -> None:
    first = reached(site / "index.html")
    second = first.union(*map(reached, first))
    every = {path for path in site.rglob("*.html") if path.name != "404.html"}
    assert sorted(path.relative_to(site).as_posix() for path in every - second) == []
