"""The pages below docs/runbooks/ are what `ipamc runbook` prints for the example clusters; `--update` writes them.

Their commands are parsed: each verb and option of ipamc exists.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ipamc.cli import VERBS, ipamc
from ipamc.cli.runbook import CHANGES
from tests.support import in_process

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "runbooks"
DAY = {"SOURCE_DATE_EPOCH": "1795219200", "PATH": "", "HOME": "/nonexistent"}
FAILED = 1

PAGES = {
    "renumber": (
        "zones --change renumber --node bj-001 --node sh-002 --by zone",
        "Nodes get other blocks, in waves: cluster-pool mode",
    ),
    "renumber-kubernetes": (
        "host-scope --change renumber --node kind-worker",
        "The same in kubernetes mode: Nodes are deleted and join again",
    ),
    "renumber-pinned": (
        "pinned --change renumber --node c1-worker",
        "The same in multi-pool mode, with pools of each node's own",
    ),
    "renumber-shared": (
        "multi-pool --change renumber --node c1-worker",
        "The same in multi-pool mode, with shared pools: the operator decides",
    ),
    "mode": (
        "cluster-pool --change mode --to multi-pool",
        "Another `ipam.mode`, in which every node keeps its block",
    ),
    "dual-stack": ("cluster-pool --change dual-stack", "A second IP family"),
    "new-range": (
        "zones --change new-range --pool beijing --to 100.163.0.0/20",
        "The nodes of a pool move to a new range",
    ),
    "decommission": (
        "zones --change decommission --pool shanghai --wave-size 2",
        "A rack, a pool or some nodes leave for good",
    ),
    "replace-node": (
        "zones --change replace-node --node bj-001",
        "A machine is replaced, under the same name",
    ),
    "replace-node-by-another": (
        "zones --change replace-node --node bj-001 --to bj-009",
        "A machine is replaced by one of another name",
    ),
    "calico": (
        "pinned --change calico --wave-size 1",
        "From Calico to Cilium, each node with the blocks that it has",
    ),
    "calico-distinct": (
        "zones --change calico --to distinct --by zone",
        "From Calico to Cilium on a distinct range",
    ),
    "upgrade": ("bgp --change upgrade --to 1.18", "Cilium, one minor after the other"),
    "restore-git": ("pinned --change restore-git", "etcd is lost, and git is there"),
    "restore-etcd": (
        "zones --change restore-etcd",
        "etcd comes back from a backup that is older than the lock",
    ),
}
"""What each page shows, and its line in the index."""


def page(name: str) -> str:
    """Return the text of a page."""
    arguments, _ = PAGES[name]
    done = in_process.ipamc("runbook", *shlex.split(arguments), cwd=ROOT, environment=DAY)
    assert done.returncode == 0, done.stderr
    about = (
        f"<!-- ipamc runbook {arguments} -->\n\n"
        f"This is what `ipamc runbook {arguments}` prints for the example in [`clusters/{arguments.split()[0]}`](../../clusters/{arguments.split()[0]}).\n"
        "Print it for your cluster: it then has your nodes, your blocks, your mode and your minor.\n\n"
    )
    return about + done.stdout.rstrip() + "\n"


def index() -> str:
    """Return the table of the index."""
    rows = [
        f"| [{name}]({name}.md) | {what} | `ipamc runbook {arguments}` |"
        for name, (arguments, what) in PAGES.items()
    ]
    return "\n".join(("| page | change | printed by |", "|---|---|---|", *rows))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_is_printed(name: str, *, update: bool) -> None:
    file, wanted = FOLDER / f"{name}.md", page(name)
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(wanted, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == wanted, "run it with --update, and read the diff"


def test_the_index_lists_every_page(*, update: bool) -> None:
    file = FOLDER / "README.md"
    text = file.read_text(encoding="utf-8")
    start, end = "<!-- pages -->\n", "\n<!-- end -->"
    before, _, rest = text.partition(start)
    wanted = f"{before}{start}{index()}{end}{rest.partition(end)[2]}"
    if update:
        file.write_text(wanted, encoding="utf-8")
    assert text == wanted or update
    assert {path.stem for path in FOLDER.glob("*.md")} == {*PAGES, "README"}
    assert {arguments.split()[2] for arguments, _ in PAGES.values()} == set(CHANGES)


def commands(text: str) -> list[str]:
    """Return the commands of all shell blocks."""
    found = re.findall(r"^ *```(sh|console)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    lines = [
        (kind, line.strip()) for kind, block in found for line in block.replace("\\\n", " ").splitlines()
    ]
    return [line.removeprefix("$ ") for kind, line in lines if kind == "sh" or line.startswith("$ ")]


def calls(line: str) -> list[list[str]]:
    """Return the calls of ipamc in a line of a shell."""
    found: list[list[str]] = []
    call: list[str] | None = None
    for word in [*_words(line), ";"]:
        if word == "ipamc" and call is None:
            call = []
        elif word in {"|", "&&", "||", ";", ">"}:
            found += [call] if call else []
            call = None
        elif call is not None:
            call.append(word)
    return found


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(lexer)


def unknown(call: list[str]) -> str:
    """Return what ipamc does not have of a call; "" if it has all."""
    command: click.Command = ipamc
    context = click.Context(command)
    words = list(call)
    while words and isinstance(command, click.Group):
        name = words.pop(0)
        if (found := command.get_command(context, name)) is None:
            return name
        command = found
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return next(
        (
            word
            for word in words
            if word.startswith("--") and word.partition("=")[0] not in {*options, "--help"}
        ),
        "",
    )


SOON = {"audit"} - set(VERBS)
"""Verbs that the pages name, and that this version does not have yet."""


@pytest.mark.parametrize(
    "file",
    [*FOLDER.glob("*.md"), ROOT / "README.md", *(ROOT / "docs/how-to").glob("*.md")],
    ids=lambda file: file.stem,
)
def test_commands_are_verbs_and_options_that_exist(file: Path) -> None:
    found = [call for line in commands(file.read_text(encoding="utf-8")) for call in calls(line)]
    assert [call for call in found if call[0] not in SOON and unknown(call)] == []


def test_a_page_has_no_option_that_is_not_there() -> None:
    """The check sees what it is for."""
    assert unknown(["lock", "lab", "--renumbr", "n1"]) == "--renumbr"
    assert unknown(["lok", "lab"]) == "lok"
    assert calls("kubectl get nodes > x && ipamc apply lab --prune || true") == [["apply", "lab", "--prune"]]
