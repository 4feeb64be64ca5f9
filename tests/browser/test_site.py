"""The site in a real browser: it asks no network for anything, every page fits, and search finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Blank
from tests.e2e.processes import until

Visit = Callable[..., Page]


@pytest.fixture
def visit(blank: Blank, site: Path) -> Visit:
    """Return a function that opens a page of the site from the disk."""

    def visit(name: str = "index.html", width: int = 1400, scheme: str = "light") -> Page:
        page = blank(lambda url: url.startswith((site.as_uri(), "data:", "blob:")), width, scheme)
        page.goto((site / name).as_uri())
        page.wait_for_selector("article h1")
        return page

    return visit


SHOWN = (
    "index.html",
    "tests.html",
    "reference/versions.html",
    "reference/fields/ippool.html",
    "reference/codes/IPC0207.html",
)


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_a_page_fits_and_only_its_tables_and_code_scroll(visit: Visit, width: int, scheme: str) -> None:
    for name in SHOWN:
        page = visit(name, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate(WIDER) == [], name


WIDER = """() => [...document.querySelectorAll('article h1, article h2, article p, article li, article pre, article table')]
  .filter(each => !each.closest('.md-typeset__scrollwrap, pre'))
  .filter(each => each.getBoundingClientRect().right > innerWidth)
  .map(each => each.outerHTML.slice(0, 120))"""
"""What is cut off at the right edge of the window, and in nothing that scrolls."""


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visit: Visit, scheme: str) -> None:
    """Contrast of 4.5 to 1 at least, as WCAG's level AA wants it, of text, links, code and output."""
    for name in ("tests.html", "index.html", "reference/codes/IPC0207.html"):
        assert visit(name, scheme=scheme).evaluate(CONTRAST) == [], name


CONTRAST = """() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = rgb => {
    const [r, g, b] = rgb.slice(0, 3).map(each => each / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = each => {
    for (let at = each; at; at = at.parentElement) {
      const rgb = numbers(getComputedStyle(at).backgroundColor);
      if (rgb.length < 4 || rgb[3] === 1) return rgb;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const each of document.querySelectorAll('article p, article li, article a:not(.headerlink), article code, article code span, article td, nav a')) {
    if (!each.textContent.trim() || !each.getClientRects().length) continue;
    const [one, two] = [light(numbers(getComputedStyle(each).color)), light(ground(each))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    if (ratio < 4.5) found.add(`${each.tagName}.${each.className} ${ratio.toFixed(1)}`);
  }
  return [...found];
}"""


@pytest.mark.deep(part=0)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("IPC0207", "reference/codes/IPC0207.html"),
        ("quarantine", "concepts/quarantine.html"),
        ("autoscaler", "how-to/autoscalers.html"),
        ("blocksPerNode", "reference/fields/ippool.html"),
        ("managedBy", "reference/fields/cluster.html"),
        ("ipamc why", "reference/verbs/why.html"),
    ],
)
def test_search_finds_without_a_server(visit: Visit, words: str, wanted: str) -> None:
    """Among the first five results."""
    page = visit()
    page.keyboard.press("/")
    page.keyboard.type(words)
    results = page.locator("li a:has(mark)")  # in a shadow tree, which locators see through
    of_results = "links => links.slice(0, 5).map(link => link.href.split('?')[0])"
    until(  # the words that were typed last count, too
        lambda: any(each.endswith(wanted) for each in results.evaluate_all(of_results)),
        f"{wanted} is among the first results",
    )
    page.locator(f"li a[href*='{wanted}']:has(mark)").first.click()
    page.wait_for_selector("article h1")
    assert wanted in page.url
