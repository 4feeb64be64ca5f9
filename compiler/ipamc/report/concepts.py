"""The words of ipamc and of Cilium, as `ipamc explain WORD` tells them: the sections of the files in `words/`.

A section is `# NAME`, `Also: other names`, the text, commands to run (indented), and `Codes: rules about it`.
All but the name and the text may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_CONCEPT = re.compile(
    r"^# (?P<name>.+)\n\n"
    r"(?:Also: (?P<also>.+)\n\n)?"
    r"(?P<text>[^\n]+(?:\n[^\n]+)*)\n"
    r"(?:\n(?P<run>(?: {4}.+\n)+))?"
    r"(?:\nCodes: (?P<codes>.+)\n)?",
    re.MULTILINE,
)
_MARKS = re.compile(r"[-_:`]+")


class Concept(NamedTuple):
    """A word, and what it means here."""

    name: str
    also: tuple[str, ...]
    """Other words for it."""
    text: str
    run: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def is_named(self, word: str) -> bool:
        """Tell whether a word, as anybody types it, is a name of it."""
        return _plain(word) in {_plain(name) for name in (self.name, *self.also)}

    def __str__(self) -> str:
        """Return what is printed."""
        rows = [self.name, "", self.text]
        if self.run:
            rows += ["", *(f"  {line}" for line in self.run)]
        if self.codes:
            rows += ["", f"Codes: {', '.join(self.codes)}"]
        return "\n".join(rows) + "\n"


def concepts(files: Mapping[str, str]) -> tuple[Concept, ...]:
    """Return the words in the order of `files`, which are those of `words/`, by name."""
    return tuple(
        Concept(
            name=found["name"],
            also=tuple(found["also"].split(", ")) if found["also"] else (),
            text=found["text"],
            run=tuple(map(str.strip, (found["run"] or "").splitlines())),
            codes=tuple(found["codes"].split(", ")) if found["codes"] else (),
        )
        for text in files.values()
        for found in _CONCEPT.finditer(text)
    )


def _plain(word: str) -> str:
    """Return a word without what differs between a field, a flag and prose: case, -, _, : and backticks."""
    return " ".join(_MARKS.sub(" ", word).lower().split())
