"""An index of the codes by subject, and a page for each code.

People search for a code as a finding prints it: a page of its own, with the code in its title, is what search finds first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import PurePosixPath

from ipamc.catalogue import Entry, catalogue
from ipamc.catalogue.examples import Example, examples, what_it_is
from ipamc.workspace.disk import assets
from tools.website.reference.markdown import anchor, code, fence, page, paragraphs, prose, sentence, table

FOLDER = "codes/"
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
    """Return the pages by path."""
    entries, shown = catalogue(assets("rules")), examples(assets("examples"))
    made = {f"{FOLDER}{code}.md": page(*_code(entry, shown.get(code))) for code, entry in entries.items()}
    parts: list[str] = []
    for subject, codes in groupby(entries.values(), lambda entry: _subject(entry.code)):
        rows = [[f"[{each.code}]({each.code}.md)", prose(each.title)] for each in codes]
        parts += [f"## {subject}", table(["code", "rule"], rows)]
    subjects = (f"{digits}: {name}" for digits, name in SUBJECTS.items())
    index = page(
        "# Codes",
        "Every rule that ipamc checks, by its code. A finding ends with its code; `ipamc explain CODE` prints what its page here says.",
        "The first two digits are the subject:",
        "\n".join(f"- [{each}](#{anchor(each)})" for each in subjects),
        *parts,
    )
    return {**made, f"{FOLDER}README.md": index}


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
