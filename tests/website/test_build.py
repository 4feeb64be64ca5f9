"""The site: built from pages as a forge reads them, without a warning, and with nothing of the network in it."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from tools.website.build import as_zensical_reads, inside, leads_out


@pytest.mark.deep
def test_the_site_asks_no_network_for_anything(site: Path) -> None:
    asked = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    found = {match[0] for path in site.rglob("*.html") for match in asked.finditer(path.read_text())}
    assert found == set()
    styles = "\n".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import", styles)


@pytest.mark.deep
def test_directives_of_pages_are_not_shown(site: Path) -> None:
    for path in site.rglob("*.html"):
        shown = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"&lt;!-- (?:page|run|needs|instead): ", shown), path


@pytest.mark.deep
def test_only_what_pages_show_or_link_is_in_it(site: Path) -> None:
    theme = ("assets/", "search.js", "404.html", "sitemap.xml")
    others = {
        path.relative_to(site).as_posix()
        for path in site.rglob("*.*")
        if path.suffix != ".html" and path.is_file()
    }
    assert "alerts/ipamc.rules.yaml" in others
    assert [
        name
        for name in others
        if not name.startswith(theme) and not re.match(r"(alerts|recordings)/[\w.-]+$", name)
    ] == []


@pytest.mark.parametrize(
    ("link", "page", "out"),
    [
        ("../clusters/zones", "show.md", True),
        ("../show.md", "runbooks/mode.md", False),
        ("../../clusters/zones", "runbooks/mode.md", True),
        ("../README.md#x", "show.md", True),
        ("#x", "show.md", False),
        ("../../docs/show.md", "runbooks/mode.md", True),
    ],
)
def test_what_leads_out_of_the_pages(link: str, page: str, out: bool) -> None:  # noqa: FBT001 - a table
    assert leads_out(link, PurePosixPath(page)) == out


def test_links_that_lead_out_are_their_texts() -> None:
    text = "See [`zones`](../clusters/zones), [show](show.md) and ![x](../x.svg).\n\n```\n[a](../b)\n```\n"
    assert inside(text, PurePosixPath("tests.md")) == text.replace("[`zones`](../clusters/zones)", "`zones`")


COMMONMARK = """\
Text
- one
  more
  - deeper

    ```
    code
    ```
- two

1. first

   ```yaml
   a: 1
   ```

2. second
"""
PYTHON_MARKDOWN = """\
Text

- one
    more
    - deeper

        ```
        code
        ```
- two

1. first

    ```yaml
    a: 1
    ```

2. second
"""


def test_lists_are_indented_as_python_markdown_wants_it() -> None:
    assert as_zensical_reads(COMMONMARK) == PYTHON_MARKDOWN


def test_a_table_stands_apart() -> None:
    assert as_zensical_reads("Text:\n\n| a |\n|---|\n| 1 |\n") == "Text:\n\n| a |\n|---|\n| 1 |\n"
    assert as_zensical_reads("Text:\n| a |\n|---|\n| 1 |\n") == "Text:\n\n| a |\n|---|\n| 1 |\n"
