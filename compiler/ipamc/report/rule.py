"""A rule as `ipamc explain CODE` prints it: what is checked, why, an example that is wrong and one that is right, what to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill, indent

from ipamc.catalogue import Entry
from ipamc.catalogue.examples import Example, Side, what_it_is

_IN = "    "
_WIDTH = 104


def text(entry: Entry, example: Example | None) -> str:
    """Write a rule; paragraphs are parted by blank lines."""
    parts = [
        f"{entry.code}: {entry.title}",
        entry.body,
        entry.why and f"Why: {entry.why}",
        *(_shown(example) if example else ()),
        entry.run and f"Run: {entry.run}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(example: Example) -> Iterator[str]:
    if example.beside:
        with_ = ", with" if example.before else "."
        before = f" It was {example.what_was_done} before{with_}" if example.done else ""
        yield fill(f"Example: {example.beside[0].lower()}{example.beside[1:]}{before}", _WIDTH)
        yield from _files(example.before)
    yield f"Wrong: {example.sentence[0].lower()}{example.sentence[1:]}"
    yield from _side(example.wrong, example.said)
    yield "Right:"
    yield from _side(example.right, "")


def _side(side: Side, said: str) -> Iterator[str]:
    yield from _files(side.files, "" if side.encoding == "utf-8" else f" in {side.encoding}")
    yield indent(f"$ {side.command}\n{said}".rstrip("\n"), _IN)


def _files(files: Mapping[str, str], how: str = "") -> Iterator[str]:
    for path, body in files.items():
        if is_ := what_it_is(body):
            yield f"  {path} {is_}"
        else:
            yield f"  {path}{how}\n{indent(body.rstrip(), _IN)}"
