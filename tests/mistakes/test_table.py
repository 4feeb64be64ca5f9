"""Each mistake of the pages is answered with its codes, where they are, and a way out; and that is one.

`pytest FILE --update` writes the `code:` lines of the pages anew: read the diff.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from ipamc.cli import ipamc as program
from tests.mistakes.page import Mistake, load, pages, updated
from tests.mistakes.play import FINDING, Played, commands, reported, said, without_help, words

MISTAKES = [mistake for path in pages() for mistake in load(path.stem, path.read_text(encoding="utf-8"))]
SHOWN = re.compile(r"(?:warning |note )?(IPC\d{4}) ")


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


def play(mistake: Mistake, folder: Path) -> tuple[str, ...]:
    """Make the mistake, mend it as the answer says, and return what the table has of the answer. Asserts that the answer has a way out, which is one."""
    played = Played(mistake.state, folder)
    played.do(mistake.input)
    code, text = played.run(mistake.runs)
    assert "Traceback" not in text
    assert [bad for each in commands(text) if (bad := misspelt(each))] == []
    assert without_help(text) == []
    rows, named = reported(code, text), said(text)
    played.do(mistake.fix, named_in=named)
    played.do(mistake.chosen_fix)
    unnamed = words(mistake.instead) - words(mistake.runs) - words(named)
    assert not unnamed, f"the answer does not name {unnamed} of {mistake.instead!r}"
    after, later = played.run(mistake.instead or mistake.chosen_instead or mistake.runs)
    for line in mistake.then or ("exit 0",):
        assert line in f"exit {after}\n{later}", f"{line!r} is not what comes then: exit {after}\n{later}"
    if not mistake.then:
        left = {found[1] for row in rows if (found := SHOWN.match(row))}
        assert not left & {name for _, name in FINDING.findall(later)}, later
    return rows


@pytest.mark.deep
@pytest.mark.parametrize(
    "mistake", [pytest.param(each, id=f"{each.page}: {each.title}") for each in MISTAKES]
)
def test_mistake(mistake: Mistake, tmp_path: Path, *, update: bool) -> None:
    assert mistake.fix or mistake.chosen_fix or mistake.instead or mistake.chosen_instead, "nothing mends it"
    got = play(mistake, tmp_path / "repo")
    if update:
        path = next(path for path in pages() if path.stem == mistake.page)
        path.write_text(updated(path.read_text(encoding="utf-8"), mistake.title, got), encoding="utf-8")
        return
    assert "\n".join(got) == "\n".join(mistake.code)


ENTRY = """\
# The mode in capitals
state: new
input: cluster.yaml: mode: cluster-pool => mode: Cluster-Pool
code: IPC0007 cluster.yaml:10:11: did you mean 'cluster-pool'?
fix: cluster.yaml: Cluster-Pool => cluster-pool
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("=> cluster-pool", "=> multi-pool", "the answer does not name {'multi-pool'}"),
        (
            "fix: cluster.yaml: Cluster-Pool => cluster-pool",
            "fix: $ ipamc compile",
            "the answer does not say",
        ),
        (
            "fix: cluster.yaml: Cluster-Pool => cluster-pool",
            "chosen fix: $ true",
            "'exit 0' is not what comes",
        ),
        ("fix: cluster.yaml: Cluster-Pool", "fix: cluster.yaml: cluster_pool", "'cluster_pool' is not in"),
    ],
)
def test_a_fix_that_is_none_fails(right: str, wrong: str, said: str, tmp_path: Path) -> None:
    (mistake,) = load("page", ENTRY.replace(right, wrong))
    with pytest.raises(AssertionError, match=re.escape(said)):
        play(mistake, tmp_path / "repo")


def test_another_code_place_or_help_differs_and_update_writes_them_alone(tmp_path: Path) -> None:
    (mistake,) = load("page", ENTRY)
    got = play(mistake, tmp_path / "repo")
    assert got == mistake.code == ("IPC0007 cluster.yaml:10:11: did you mean 'cluster-pool'?",)
    for wrong in ("code: IPC0006", "code: warning IPC0007", "code: IPC0007 x\ncode: IPC0007"):
        stale = f"# Before\n\n{ENTRY.replace('code: IPC0007', wrong)}\n# After\ncode: x\n"
        _, mistake, _ = load("page", stale)
        assert mistake.code != got
        assert updated(stale, "The mode in capitals", got) == f"# Before\n\n{ENTRY}\n# After\ncode: x\n"
