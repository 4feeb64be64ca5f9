"""A mistake, played: a copy of a state, the steps that a person takes in it, and what ipamc answers."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mistakes import states

EDIT = re.compile(r"(\S+?)(?::(\d+))?: (.*?) =>(.*)", re.DOTALL)
FILE = re.compile(r"(\S+) (\+=|:=)(?: |\n|$)(.*)", re.DOTALL)
FINDING = re.compile(r"^(error|warning|note)\[(IPC\d{4})\]: .*(?:\n.+)*", re.MULTILINE)
PLACE = re.compile(r"^ *--> (.*)$", re.MULTILINE)
HELP = re.compile(r"^ *= help: (.*)$", re.MULTILINE)
POINTER = re.compile(r"ipamc( [a-z-]+)* --help")
"""A help that every error of the command line has, and that mends nothing."""


class Played:
    """A folder in which a person made a mistake, and goes on."""

    def __init__(self, state: str, folder: Path) -> None:
        self.folder = folder
        states.prepare(state, folder)

    def do(self, steps: Sequence[str], *, named_in: str | None = None) -> None:
        """Take steps. With `named_in`, each must stand in this answer."""
        for step in steps:
            if step.startswith("$ "):
                named = re.sub(r"^cd \S+ && ", "", step[2:])
                assert named_in is None or named in named_in, f"the answer does not say: {named}"
                code, text = self.run(step[2:])
                assert code == 0 or named_in is None, f"{step}: {text}"
            elif found := FILE.fullmatch(step):
                assert named_in is None, f"an answer cannot name {step!r}"
                name, how, text = found.groups()
                with self.path(name).open("a" if how == "+=" else "w", encoding="utf-8") as file:
                    file.write(f"{text}\n" if text else "")
            else:
                self.edit(step, named_in)

    def edit(self, step: str, named_in: str | None) -> None:
        """Replace a text in a file, or in a line of it."""
        found = EDIT.fullmatch(step)
        assert found, f"{step!r} is no step"
        name, line, old, new = found.groups()
        old, new = old.replace("\\n", "\n"), new.replace("\\n", "\n")
        new = new.removeprefix(" ").removeprefix("\\")
        path = self.path(name)
        rows = [path.read_bytes().decode()]
        if line:
            rows = rows[0].splitlines(keepends=True)
        at = int(line or 1) - 1
        assert old in rows[at], f"{old!r} is not in {name}:\n{rows[at]}"
        added = words(new) - words(old) or ({key(old)} if not new else set())
        unnamed = added - words(named_in or "")
        assert named_in is None or not unnamed, f"the answer does not name {unnamed} of {step!r}"
        rows[at] = rows[at].replace(old, new)
        path.write_bytes("".join(rows).encode())

    def path(self, name: str) -> Path:
        """Return where a file is, or will be: in the cluster's folder; in the repository if a folder is named, `./` of its own files."""
        return self.folder / name if "/" in name else self.folder / "clusters/lab" / name

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code, and what it prints."""
        cwd, rest = self.folder, command
        if found := re.fullmatch(r"cd (\S+) && (.*)", command):
            cwd, rest = self.folder / found[1], found[2]
        if rest.startswith("ipamc ") and not re.search(r"[|<>&;$*?]", re.sub(r"'[^']*'", "", rest)):
            code, text = states.ipamc(*shlex.split(rest)[1:], cwd=cwd, folder=self.folder)
        else:
            code, text = states.shell(command, self.folder)
        return code, text.replace(str(self.folder), "/repo")


def words(text: str) -> set[str]:
    """Return the words of a text, without the brackets, quotes and commas of YAML."""
    return {word.rstrip(":.;?") for word in re.split(r"[\s{}\[\]()'\"`,=]+", text)} - {""}


def key(text: str) -> str:
    """Return the first word of what an edit takes out."""
    return re.split(r"[:\s]", text.strip(), maxsplit=1)[0]


def said(text: str) -> str:
    """Return an answer without what may quote the mistake: of a finding its help is left."""
    rows = text.split("\n")
    return "\n".join(row for row in rows if not re.match(r" *(\d* \||-->|:::|= docs: |\w+\[IPC)", row))


def reported(code: int, text: str) -> tuple[str, ...]:
    """Return what the table shows of an answer: each code with its places and its help; without codes what is printed."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for finding in FINDING.finditer(text):
        place = "".join(PLACE.findall(finding[0])).replace("clusters/lab/", "")
        advice = "; ".join(HELP.findall(finding[0]))
        found.setdefault((finding[1], finding[2], advice), Counter())[place] += 1
    severities = {severity for severity, _, _ in found}
    shown = severities - {"note"} or severities
    rows = tuple(
        f"{severity} {name} {_places(places)}: {advice}".removeprefix("error ")
        for (severity, name, advice), places in found.items()
        if severity in shown
    )
    return rows if rows and code == ("error" in severities) else (*rows, f"exit {code}: {_plain(text)}")


def _places(places: Counter[str]) -> str:
    return ", ".join(f"{place} ({number} times)" if number > 1 else place for place, number in places.items())


def _plain(text: str) -> str:
    """Return on one line what is printed without a code: the errors, else the first lines and the last one; helps in brackets."""
    rows = [row.strip() for row in said(text).split("\n") if row.strip()]
    helps = [row.removeprefix("= help: ") for row in rows if row.startswith("= help: ")]
    printed = [row for row in rows if not row.startswith("= help: ")]
    errors = [row.removeprefix("error: ") for row in printed if row.startswith("error: ")]
    shown = errors or (printed if len(printed) <= 3 else [*printed[:2], "…", printed[-1]])
    return " ".join(["; ".join(shown), *(f"[{each}]" for each in helps if not POINTER.fullmatch(each))])


def without_help(text: str) -> list[str]:
    """Return the codes of errors that name no way out."""
    return [found[2] for found in FINDING.finditer(text) if found[1] == "error" and not HELP.search(found[0])]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of ipamc that stands in a help or an error line of an answer.

    A command begins after a quote, a colon, a comma or `or`, and ends before a quote, a comma, a semicolon or a bracket.
    """
    for line in text.split("\n"):
        for found in re.finditer(r"(?:^|[`'(:,;] ?|\b(?:or|then|run) )ipamc ([a-z][^`'\",;()]*)", line):
            yield found[1].rstrip(" .:").split()
