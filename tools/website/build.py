"""Build the site: docs/ as Markdown that Zensical reads as a forge does, then Zensical, strict.

`python -m tools.website.build` writes build/site/, which needs no network and no server: open build/site/index.html.

A forge reads CommonMark, and Zensical Python-Markdown, which differs in three things that pages use. So what Zensical
gets is a copy of docs/ in which lists are indented by four columns and stand, as tables do, behind an empty line. A
link that leads out of docs/, to a folder of `clusters/` or a test, is its text there: the site has no such page. Each
code of `rules/` has a page in the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.website.reference import codes

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = "zensical.toml"
SIMPLE_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<to>[^)\s:]+)\)")
"""A link in a line, to a place without a scheme."""
LINK = re.compile(r"\]\(([^)\s:#]+)")
"""The address of a link or an image of this repository."""
INDENT = 4
"""Columns by which Python-Markdown wants the parts of a list indented."""


class BuildError(Exception):
    """Zensical warned of a page, or failed; with what it said."""


def build(into: Path) -> str:
    """Write the site to `into`/site and return what Zensical says. Raises BuildError where it warns or fails."""
    shutil.rmtree(into / "site", ignore_errors=True)
    prepare(into)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=into,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).partition("Traceback")[0]
        raise BuildError(f"{said.strip()}\nthe site was not built: zensical ended with {done.returncode}")
    return done.stdout


def prepare(into: Path) -> None:
    """Write what Zensical reads to `into`: its configuration, the theme and the pages."""
    for folder in ("docs", "website"):
        shutil.rmtree(into / folder, ignore_errors=True)
    into.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / CONFIG, into / CONFIG)
    shutil.copytree(ROOT / "tools/website/theme", into / "tools/website/theme")
    for page, text in pages().items():
        to = into / "docs" / page
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(as_zensical_reads(inside(text, PurePosixPath(page))), encoding="utf-8")
        for link in LINK.findall(text):
            _copy((DOCS / page).parent.joinpath(link).resolve(), into / "docs")


def pages() -> dict[str, str]:
    """Return the pages of the site by path, in order: those of docs/, and one for each code."""
    there = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")
    }
    made = {f"reference/{name}": text for name, text in codes.pages_of_site().items()}
    return {page: codes.to_pages(text) for page, text in sorted({**there, **made}.items())}


def _copy(file: Path, to: Path) -> None:
    """Copy what a page shows or links, if it is a file of docs/ and no page."""
    if file.is_relative_to(DOCS) and file.is_file() and file.suffix != ".md":
        copy = to / file.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


def inside(text: str, page: PurePosixPath) -> str:
    """Replace the links of a page that lead out of docs/ by their texts."""
    lines = text.split("\n")
    for number, line in _prose(lines):
        lines[number] = SIMPLE_LINK.sub(
            lambda link: link["text"] if leads_out(link["to"], page) else link[0], line
        )
    return "\n".join(lines)


def leads_out(link: str, page: PurePosixPath) -> bool:
    """Tell whether a relative link of a page, whose path is below docs/, leads out of docs/."""
    depth = len(page.parent.parts)
    for part in PurePosixPath(link.partition("#")[0]).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of fences, with their numbers."""
    fence = ""
    for number, line in enumerate(lines):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        elif not fence:
            yield number, line


def as_zensical_reads(text: str) -> str:
    """Write CommonMark so that Python-Markdown reads the same: see the module's docstring."""
    lines = text.split("\n")
    tokens = MarkdownIt().enable("table").parse(text)
    deeper = [0] * (len(lines) + 1)
    for token in tokens:
        if token.type == "list_item_open" and token.map:
            first, end = token.map
            for number in range(first + 1, end):
                deeper[number] += INDENT - _width(lines[first], token)
    apart = {
        token.map[0]
        for token in tokens
        if token.type in {"table_open", *_LISTS} and token.map and not token.level
    }
    written: list[str] = []
    for number, line in enumerate(lines):
        if number in apart and written and written[-1].strip():
            written.append("")
        written.append(" " * deeper[number] + line if line.strip() else line)
    return "\n".join(written)


_LISTS = ("bullet_list_open", "ordered_list_open")


def _width(line: str, item: Token) -> int:
    """Return how many columns the mark of a list's item takes with the space behind it."""
    found = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", line[_start(line, item) :])
    return len(found[0].lstrip()) if found else INDENT


def _start(line: str, item: Token) -> int:
    """Return the column of the mark of an item: an item may begin in the line of the item around it."""
    return max(0, line.find(f"{item.info}{item.markup}" if item.info else item.markup))


if __name__ == "__main__":
    try:
        build(ROOT / "build")
    except BuildError as problem:
        sys.exit(f"error: {problem}")
    sys.stdout.write("build/site/index.html\n")
