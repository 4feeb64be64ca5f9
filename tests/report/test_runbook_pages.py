"""The pages below docs/runbooks/ are what `ipamc runbook` prints for the example clusters, each step once; `--update` writes them.

Their commands are parsed: each verb and option of ipamc exists.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from ipamc.cli import VERBS, ipamc
from ipamc.cli.runbook import CHANGES
from tests.support import in_process
from tests.support.runbook_page import SAME, Page

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "runbooks"
DAY = {"SOURCE_DATE_EPOCH": "1795219200", "PATH": "", "HOME": "/nonexistent"}
FAILED = 1

PAGES = {
    "renumber": {
        "Move nodes to other blocks": "zones --change renumber --node bj-001 --node sh-002 --by zone",
        "In kubernetes mode": "host-scope --change renumber --node kind-worker",
        "In multi-pool mode, own pools": "pinned --change renumber --node c1-worker",
        "In multi-pool mode, shared pools": "multi-pool --change renumber --node c1-worker",
    },
    "new-range": {
        "Move a pool to a new range": "zones --change new-range --pool beijing --to 100.163.0.0/20",
    },
    "mode": {
        "Change `ipam.mode`; nodes keep their blocks": "cluster-pool --change mode --to multi-pool",
    },
    "dual-stack": {"Add a second IP family": "cluster-pool --change dual-stack"},
    "replace-node": {
        "Replace a machine, with the same name": "zones --change replace-node --node bj-001",
        "With another name": "zones --change replace-node --node bj-001 --to bj-009",
    },
    "decommission": {
        "Remove nodes, a rack or a pool": "zones --change decommission --pool shanghai --wave-size 2",
    },
    "upgrade": {"Upgrade Cilium, one minor at a time": "zones --change upgrade --to 1.20"},
    "calico": {
        "Leave Calico; nodes keep their blocks": "pinned --change calico --wave-size 1",
        "With a distinct range": "zones --change calico --to distinct --by zone",
    },
    "restore-git": {"Rebuild a lost etcd from git": "pinned --change restore-git"},
    "restore-etcd": {"Restore etcd from a backup": "zones --change restore-etcd"},
}
"""The runbooks of each page by what they do: the page shows the first one, and how the others differ."""

MINORS = {"upgrade": "1.19"}
"""The minor of Cilium that the example of a page has instead of its own."""


FIRST = "renumber"
"""The page that shows the steps of git and the audit for all pages."""

BESIDE_FIRST = {"new-range"}
"""Pages that show only what differs from the first page."""


def page(name: str, folder: Path) -> Page:
    """Return a page."""
    shown = Page()
    if name != FIRST:
        before = page(FIRST, folder)
        shown.known |= before.known if name in BESIDE_FIRST else before.outside
    for heading, arguments in PAGES[name].items():
        cluster = arguments.split()[0]
        shutil.copytree(ROOT / "clusters" / cluster, folder / "clusters" / cluster, dirs_exist_ok=True)
        with_minor = ""
        if minor := MINORS.get(name):
            file = folder / "clusters" / cluster / "cluster.yaml"
            text = re.sub(r'(cilium: .version: ")[^"]*', rf"\g<1>{minor}", file.read_text(encoding="utf-8"))
            file.write_text(text, encoding="utf-8")
            with_minor = f", with Cilium {minor}"
        done = in_process.ipamc("runbook", *shlex.split(arguments), cwd=folder, environment=DAY)
        assert done.returncode == 0, done.stderr
        if not shown.text:
            shown.text = (
                f"<!-- made by {Path(__file__).relative_to(ROOT)} -->\n\n"
                f"`ipamc runbook {arguments}` prints this for [`clusters/{cluster}`](../../clusters/{cluster}){with_minor}.\n"
                f"`{SAME}` stands for what an earlier step{f', or [{FIRST}]({FIRST}.md),' * (name != FIRST)} shows. "
                "[Print all steps for your cluster](README.md).\n\n"
            )
            shown.add(arguments, done.stdout)
        else:
            shown.add(arguments, done.stdout, heading)
    return shown


def index() -> str:
    """Return the table of the index."""
    rows = [
        f"| [{what if not number else f'… {what[0].lower()}{what[1:]}'}]({name}.md{f'#{_anchor(what)}' * bool(number)}) "
        f"| `ipamc runbook {arguments}` |"
        for name, runbooks in PAGES.items()
        for number, (what, arguments) in enumerate(runbooks.items())
    ]
    return "\n".join(("| to | run |", "|---|---|", *rows))


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-").replace(",", "")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_is_printed(name: str, tmp_path: Path, *, update: bool) -> None:
    file, wanted = FOLDER / f"{name}.md", page(name, tmp_path).text
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
    assert set(PAGES) == set(CHANGES)
    assert all(each.split()[2] == name for name, runbooks in PAGES.items() for each in runbooks.values())


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


PRINTED = """\
# Move {node}

- About it.

## A. Move

### Wave 1 of 2: 1 node

{node}

1. **Drain {node}.** Why.

   ```sh
   drain {node}
   ```

   If not: wait.

### Wave 2 of 2: 1 node

{other}

2. **Drain {other}.** Why.

   ```sh
   drain {other}
   ```

   If not: wait.

## B. End

{end}
"""


def test_a_page_shows_a_step_once_and_of_other_runbooks_what_differs() -> None:
    shown = Page()
    shown.add("lab", PRINTED.format(node="n1", other="n2", end="3. **Audit.**\n\n   If not: wait."))
    assert shown.text.count("drain") == 1
    assert shown.text.endswith(
        f"### Wave 2 of 2: 1 node\n\nn2\n\n{SAME}\n\n## B. End\n\n3. **Audit.** {SAME}\n"
    )
    before = shown.text
    end = "3. **Audit.** Why else.\n\n   ```sh\n   audit\n   ```\n\n   If not: wait."
    shown.add("site", PRINTED.format(node="w1", other="w2", end=end), "At a site")
    assert shown.text.removeprefix(before) == (
        "\n## At a site\n\n`ipamc runbook site`:\n\n"
        f"Steps 1 to 2 are the same.\n\n### B. End\n\n{end.replace('If not: wait.', SAME)}\n"
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
