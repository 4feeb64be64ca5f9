"""Each mistake of the pages is answered with what, where, why and what to run, and what the answer says to run works.

`pytest FILE --update` writes the answers of the pages anew: read the diff.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest

from ipamc.cli import ipamc as program
from tests.mistakes import states
from tests.mistakes.page import Mistake, load, pages, write

MISTAKES = [mistake for path in pages() for mistake in load(path)]
FIRST, LAST = 12, 6
"""Lines of an answer that a page shows, of a longer one."""
CODE = re.compile(r"^(?:error|warning)\[(IPC\d{4})\]", re.MULTILINE)


class Played:
    """A folder in which a person made a mistake, and goes on."""

    def __init__(self, mistake: Mistake, folder: Path) -> None:
        self.folder = folder
        states.prepare(mistake.given, folder)

    def do(self, steps: Sequence[str], *, named_in: str | None = None) -> None:
        """Take steps. With `named_in`, each must stand in this answer."""
        for step in steps:
            if step.startswith("$ "):
                assert named_in is None or re.sub(r"^cd \S+ && ", "", step[2:]) in named_in, (
                    f"the answer does not say: {step[2:]}"
                )
                code, text = self.run(step[2:])
                assert code == 0 or named_in is None, f"{step}: {text}"
            else:
                self.edit(step, named_in)

    def edit(self, step: str, named_in: str | None) -> None:
        """Replace a text in a file, everywhere."""
        name, _, change = step.partition(": ")
        old, arrow, new = (part.replace("\\n", "\n") for part in change.partition(" =>"))
        assert arrow, f"{step!r} is neither `$ COMMAND` nor `FILE: OLD => NEW`"
        new = new.removeprefix(" ").removeprefix("\\")
        path = self.folder / name
        text = path.read_bytes().decode()
        assert old in text, f"{old!r} is not in {name}:\n{text}"
        unnamed = words(new) - words(old) or (words(old) - words(new) if not new else set())
        unnamed -= words(named_in or "")
        assert named_in is None or not unnamed, f"the answer does not name {unnamed} of {step!r}"
        path.write_bytes(text.replace(old, new).encode())

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
    return {word.rstrip(":.;?") for word in re.split(r"[\s{}\[\]()'\"`,]+", text)} - {""}


def condensed(code: int, text: str) -> tuple[str, ...]:
    """Return what a page shows of an answer: no excerpts, no empty lines, no pointers to `ipamc explain`."""
    rows = [row.rstrip() for row in text.split("\n")]
    rows = [row for row in rows if row and not re.match(r" *\d* \|| *= docs: ", row)]
    if len(rows) > FIRST + LAST + 1:
        rows = [*rows[:FIRST], "…", *rows[-LAST:]]
    return (f"exit {code}", *rows)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of ipamc that stands in a help or an error line of an answer.

    A command begins after a quote, a colon, a comma or `or`, and ends before a quote, a comma, a semicolon or a bracket.
    """
    for line in text.split("\n"):
        for found in re.finditer(r"(?:^|[`'(:,;] ?|\b(?:or|then|run) )ipamc ([a-z][^`'\",;()]*)", line):
            yield found[1].rstrip(" .:").split()


def errors(text: str) -> Iterator[tuple[str, str]]:
    """Yield the first line of each error with a code in an answer, and all of its lines."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("error[IPC"):
            yield paragraph.partition("\n")[0], paragraph


def misspelt(words: Sequence[str]) -> str:
    """Return what is no verb and no option in the words of a command; "" where all are, and for prose: `ipamc writes files`."""
    context = click.Context(program)
    command: click.Command | None = program
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            command = command.get_command(context, word)
            if command is None:
                return "" if word.endswith("s") else word
        elif word.startswith("--"):
            assert command
            known = {name for option in command.params for name in option.opts} | {"--help"}
            if word.partition("=")[0] not in known:
                return word
    return ""


def answered(mistake: Mistake, folder: Path) -> Mistake:
    """Make the mistake, mend it as the answer says, and return the entry with this answer."""
    played = Played(mistake, folder)
    played.do(mistake.mistake)
    code, text = played.run(mistake.runs)
    got = replace(mistake, answer=condensed(code, text))
    assert "Traceback" not in text
    assert [bad for words in commands(text) if (bad := misspelt(words))] == []
    assert [head for head, paragraph in errors(text) if "= help: " not in paragraph] == []
    played.do(mistake.mended, named_in=text)
    played.do(mistake.decided)
    if mistake.instead and not mistake.decided:
        unnamed = words(mistake.instead) - words(mistake.runs) - words(text)
        assert not unnamed, f"the answer does not name {unnamed} of {mistake.instead!r}"
    if mistake.mended or mistake.decided or mistake.instead:
        after, later = played.run(mistake.instead or mistake.runs)
        for line in mistake.then or ("exit 0",):
            assert line in f"exit {after}\n{later}", f"{line!r} is not what comes then: exit {after}\n{later}"
        if not mistake.then:
            assert not set(CODE.findall(text)) & set(CODE.findall(later)), later
    return got


@pytest.mark.deep
@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(
            mistake,
            id=f"{mistake.page}: {mistake.title}",
            marks=[pytest.mark.xfail(reason=mistake.waits)] if mistake.waits else [],
        )
        for mistake in MISTAKES
    ],
)
def test_answer(mistake: Mistake, tmp_path: Path, *, update: bool) -> None:
    got = answered(mistake, tmp_path / "repo")
    if update and not mistake.waits:
        path = next(path for path in pages() if path.stem == mistake.page)
        write(path, [got if each.title == mistake.title else each for each in load(path)])
        return
    assert "\n".join(got.answer) == "\n".join(mistake.answer)
    assert mistake.mended or mistake.decided or mistake.instead, (
        "the entry does not say how the mistake is mended"
    )


def test_there_are_two_hundred() -> None:
    assert len(MISTAKES) >= 200
    assert len({(mistake.page, mistake.title) for mistake in MISTAKES}) == len(MISTAKES)
