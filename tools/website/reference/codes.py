"""An index of the codes by subject, and in the site a page for each code.

People search for a code as a finding prints it: a page of its own, with the code in its title, is what search finds first.
They are not committed, because they say what `rules/` says. A link to a code leads to its heading in the index, and in
the site to its page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import PurePosixPath

from ipamc.catalogue import Entry, Example, catalogue, example_of, what_it_is
from ipamc.workspace.disk import assets
from tools.website.reference.markdown import anchor, code, fence, page, paragraphs, prose, sentence, table

FOLDER = "codes/"
INDEX = f"{FOLDER}README.md"
HERE = "./"
SUBJECTS = {
    "00": "syntax of files",
    "01": "names and kinds",
    "02": "addresses and pools",
    "03": "selection of pools",
    "04": "the lock",
    "05": "Cilium and Kubernetes",
    "06": "use of blocks",
    "07": "address spaces",
    "08": "dumps and tables that are imported",
    "09": "audit of a running cluster",
    "10": "tests of the address plan",
}
"""By the first two digits of a code."""


def pages() -> dict[str, str]:
    """Return the index by its path. Each code is a heading: a place that links lead to on every forge."""
    return {INDEX: _index(lambda entries: map(_heading, entries))}


def pages_of_site() -> dict[str, str]:
    """Return by path what the site has in its place: a shorter index, and a page for each code."""
    files = assets("rules")
    made = {
        f"{FOLDER}{code}.md": page(*_code(entry, example_of(code, files)))
        for code, entry in catalogue(files).items()
    }
    return {**made, INDEX: _index(lambda entries: [table(["code", "rule"], map(_row, entries))])}


def to_pages(text: str) -> str:
    """Let the links of a page that lead to a code's heading lead to its page."""
    return re.sub(r"(?<=[(/])README\.md#ipc(\d{4})(?=\))", r"IPC\1.md", text)


def _index(listed: Callable[[Iterable[Entry]], Iterable[str]]) -> str:
    subjects = (f"{digits}: {name}" for digits, name in SUBJECTS.items())
    parts: list[str] = []
    for subject, entries in groupby(catalogue(assets("rules")).values(), lambda each: _subject(each.code)):
        parts += [f"## {subject}", *listed(entries)]
    return page(
        "# Codes",
        "Every rule that ipamc checks, by its code. A finding ends with its code; `ipamc explain CODE` says what its link leads to: why, an example, what to do.",
        "The first two digits are the subject:",
        "\n".join(f"- [{each}](#{anchor(each)})" for each in subjects),
        *parts,
    )


def _heading(entry: Entry) -> str:
    return f"### [{entry.code}](../../../rules/{entry.code}.txtar)\n\n{prose(sentence(entry.title))}"


def _row(entry: Entry) -> list[str]:
    return [f"[{entry.code}]({entry.code}.md)", prose(entry.title)]


def _code(entry: Entry, example: Example | None) -> Iterator[str]:
    yield f"# {entry.code}: {prose(entry.title).removesuffix('.')}"
    yield paragraphs(entry.body or f"A finding of ipamc: {entry.title}", HERE)
    if entry.why:
        yield "## Why"
        yield paragraphs(sentence(entry.why), HERE)
    if example:
        yield from _shown(example)
    if entry.run:
        yield "## What to do"
        yield paragraphs(sentence(entry.run), HERE)
    yield f"[All codes](README.md#{anchor(_subject(entry.code))}). In a terminal: `ipamc explain {entry.code}`."


def _shown(example: Example) -> Iterator[str]:
    yield "## Wrong"
    if example.beside:
        with_ = ", with:" if example.before else "."
        before = f" It was {example.what_was_done} before{with_}" if example.done else ""
        yield prose(f"{example.beside}{before}")
        yield from _files(example.before, "utf-8")
    yield prose(example.sentence)
    yield from _files(example.wrong.files, example.wrong.encoding)
    yield fence(f"$ {example.wrong.command}\n{example.said}", "text")
    yield "## Right"
    yield from _files(example.right.files, example.right.encoding)
    yield fence(f"$ {example.right.command}", "text")


def _files(files: Mapping[str, str], encoding: str) -> Iterator[str]:
    for path, body in files.items():
        if is_ := what_it_is(body):
            yield f"{code(path)} {is_}."
        else:
            yield code(path) + ("" if encoding == "utf-8" else f" in {encoding}") + ":"
            yield fence(body, _LANGUAGES.get(PurePosixPath(path).suffix, "text"))


_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".lock": "json"}


def _subject(code: str) -> str:
    """Return the heading of the codes that begin as this one does."""
    return f"{code[3:5]}: {SUBJECTS[code[3:5]]}"
