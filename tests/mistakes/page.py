r"""Pages of mistakes: tables of what a person did to the input, the code that ipamc reports, and what mends it.

An entry begins with `# TITLE`, what the person did. A line is `KEY: VALUE`; a key may stand several times. A FILE is one of `clusters/lab/`; with a folder, or with `./`, of the repository.

`state:` the folder before, by its name in states.py; without it `cluster-pool`.
`input:` a step of the person.
`runs:` the command that follows; without it `ipamc compile`.
`code:` what it reports, which `--update` writes: `CODE FILE:LINE:COLUMN: HELP`, with all places of one help; `warning` or `note` stands before a code that is no error. Notes stand there alone.
    Where no code is reported, the exit code and what is printed: `exit 64: 'apply' is no verb of ipamc: …`; helps stand in brackets.
`fix:` a step that the answer names: a command stands there word for word, and so do the words that an edit adds (of one that only takes out: the first).
`chosen fix:` a step of which the answer tells the kind, and a person the value.
`instead:` the command that is right, by the answer: the words that it adds to `runs` stand there. `chosen instead:` one that the answer does not name whole.
`then:` what that command, else the same one, answers at last: each of these stands there; without it `exit 0`, and no code of the first answer.

A step is one of these:

`$ COMMAND` of a shell.
`FILE: OLD => NEW` an edit, everywhere in the file; `FILE:LINE: OLD => NEW` in this line alone. NEW may be empty; `\n` is a line break; a backslash stands before a NEW that begins with a blank.
`FILE += TEXT` lines at the end, `FILE := TEXT` the whole file: the rest of the line, or the lines below it that are indented by two blanks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
KEYS = ("state", "input", "runs", "code", "fix", "chosen fix", "instead", "chosen instead", "then")
ONCE = {"state", "runs", "instead", "chosen instead"}
AFTER = tuple(f"{key}: " for key in KEYS[KEYS.index("code") + 1 :])
"""What begins the lines below those of `code:`."""


@dataclass(frozen=True)
class Mistake:
    """An entry of a page."""

    page: str
    title: str
    state: str
    runs: str
    input: tuple[str, ...]
    code: tuple[str, ...]
    fix: tuple[str, ...]
    chosen_fix: tuple[str, ...]
    instead: str
    chosen_instead: str
    then: tuple[str, ...]


def pages() -> list[Path]:
    """Return the files of the pages."""
    return sorted(FOLDER.glob("*.txt"))


def load(page: str, text: str) -> list[Mistake]:
    """Read the text of a page. Raises ValueError for what is no entry, and for a title that is there twice."""
    head, *entries = re.split(r"^# ", text, flags=re.MULTILINE)
    if head.strip():
        raise ValueError(f"{page} begins with {head[:40]!r}")
    found = [_entry(page, entry) for entry in entries]
    if len({mistake.title for mistake in found}) < len(found):
        raise ValueError(f"{page} has a title twice")
    return found


def updated(text: str, title: str, code: Sequence[str]) -> str:
    """Return the text of a page with other `code:` lines in the entry of this title; all else is as it was."""
    start = f"\n{text}".index(f"\n# {title}\n")
    end = (text.find("\n# ", start) + 1) or len(text)
    rows = [row for row in text[start:end].splitlines(keepends=True) if not row.startswith("code: ")]
    below = [number for number, row in enumerate(rows) if row.startswith(AFTER) or not row.strip()]
    at = min(below, default=len(rows))
    rows[at:at] = [f"code: {each}\n" for each in code]
    return text[:start] + "".join(rows) + text[end:]


def _entry(page: str, text: str) -> Mistake:
    title, *rows = text.rstrip("\n").split("\n")
    values: dict[str, list[str]] = {key: [] for key in KEYS}
    key = ""
    for row in rows:
        if row.startswith("  ") and key:
            values[key][-1] += "\n" + row[2:]
        elif row:
            key, _, value = row.partition(": ")
            if key not in KEYS or not value or (key in ONCE and values[key]):
                raise ValueError(f"{page}, {title!r}: {row!r}")
            values[key].append(value)
    return Mistake(
        page=page,
        title=title,
        state="".join(values["state"]) or "cluster-pool",
        runs="".join(values["runs"]) or "ipamc compile",
        input=tuple(values["input"]),
        code=tuple(values["code"]),
        fix=tuple(values["fix"]),
        chosen_fix=tuple(values["chosen fix"]),
        instead="".join(values["instead"]),
        chosen_instead="".join(values["chosen instead"]),
        then=tuple(values["then"]),
    )
