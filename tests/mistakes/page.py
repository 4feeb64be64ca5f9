r"""Pages of mistakes: how they are read and written.

An entry begins with `# TITLE`. A key is at the beginning of a line, and its value is behind it or below it, indented by two blanks:

`given:` the state before, by its name in states.py.
`mistake:` steps that a person takes: `$ COMMAND` of a shell, or `FILE: OLD => NEW`, an edit. NEW may be empty; `\n` is a line break, and a backslash stands before a NEW that begins with a blank.
`runs:` the command that follows.
`answer:` what is printed, without excerpts and codes' help: a line `exit N`, then what, where, why, and what to run. `--update` writes it.
`mended:` steps that the answer names: a command stands there word for word, the words that an edit adds (of one that only takes out: these) stand there.
`decided:` steps of which the answer tells the kind, and a person the value.
`instead:` the command that is right: the words that it adds to `runs` stand in the answer.
`then:` what the same command answers after them; by default `exit 0`, without a code of the first answer. Several lines: each is in the answer.
`waits:` for what is not there yet; the entry must fail until then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

KEYS = ("given", "mistake", "runs", "answer", "mended", "decided", "instead", "then", "waits")
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Mistake:
    """An entry of a page."""

    page: str
    title: str
    given: str
    runs: str
    mistake: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    instead: str = ""
    then: tuple[str, ...] = ()
    waits: str = ""


def pages() -> list[Path]:
    """Return the files of the pages."""
    return sorted(FOLDER.glob("*.txt"))


def load(path: Path) -> list[Mistake]:
    """Read a page. Raises ValueError for what is no entry."""
    head, *entries = re.split(r"^# ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if head.strip():
        raise ValueError(f"{path.name} begins with {head[:40]!r}")
    return [_entry(path.stem, text) for text in entries]


def write(path: Path, entries: list[Mistake]) -> None:
    """Write a page as `load` reads it."""
    path.write_text("\n".join(_text(entry) for entry in entries), encoding="utf-8")


def _entry(page: str, text: str) -> Mistake:
    title, *rows = text.rstrip().split("\n")
    values: dict[str, list[str]] = {}
    key = ""
    for row in rows:
        if row.startswith("  ") and key:
            values[key].append(row[2:])
        elif row.strip():
            key, _, value = row.partition(":")
            if key not in KEYS or key in values:
                raise ValueError(f"{page}, {title!r}: {row!r}")
            values[key] = [value.strip()] if value.strip() else []
    single = {name: " ".join(values.pop(name, [])) for name in ("given", "runs", "instead", "waits")}
    several = {name: tuple(rows) for name, rows in values.items()}
    return replace(Mistake(page=page, title=title, **single), **several)  # type: ignore[arg-type]  # by name


def _text(entry: Mistake) -> str:
    rows = [f"# {entry.title}"]
    for key in KEYS:
        value = getattr(entry, key)
        if not value:
            continue
        if isinstance(value, str):
            rows.append(f"{key}: {value}")
        elif len(value) == 1 and key != "answer":
            rows.append(f"{key}: {value[0]}")
        else:
            rows += [f"{key}:", *(f"  {row}".rstrip() for row in value)]
    return "\n".join(rows) + "\n"
