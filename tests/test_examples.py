"""The examples of rules, below `rules/`: the wrong side gives the code, the right side does not, and passes."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ipamc.catalogue import DELETED, LINK, Example, Side, catalogue, example_of
from ipamc.report.explain import rule_text
from ipamc.workspace.disk import assets
from tests.support.in_process import ipamc

FOLDER = Path(__file__).parents[1] / "rules"
RULES = catalogue(assets("rules"))
EXAMPLES = {code: example for code in RULES if (example := example_of(code, assets("rules")))}

NOT_SHOWN = {
    "IPC0013": "ten thousand findings are no example",
    "IPC0312": "it takes thousands of pools and of nodes",
    "IPC0529": "a ConfigMap of a megabyte is no example",
    "IPC0574": "a policy of a megabyte is no example",
    "IPC0601": "it takes a bug of ipamc",
    "IPC0617": "another run has to come between",
    "IPC0841": "five hundred pools are no example",
}
"""Codes for which there can be no example, and why."""

CODE = re.compile(r"^(?:error|warning|note)\[(IPC\d{4})\]", re.MULTILINE)
ENVIRONMENT = {"SOURCE_DATE_EPOCH": "1795305600", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
GIT = {
    **ENVIRONMENT,
    **{
        f"GIT_{who}_{what}": "me@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    },
    **{f"GIT_{who}_DATE": "2026-11-22T08:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
LINES = 24
"""That a side shows at most: more is no example that people read."""


def write(folder: Path, files: dict[str, str], encoding: str = "utf-8") -> None:
    """Write files below a folder, or remove those that an example says are not there."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text == DELETED:
            path.unlink()
        elif link := LINK(text):
            path.symlink_to(link[1])
        else:
            path.write_text(text, encoding=encoding)


def run(folder: Path, command: str) -> CompletedProcess[str]:
    """Call what a person would type; of `A && B` the one after the other, until one fails."""
    said = ""
    for each in command.split(" && "):
        program, *arguments = shlex.split(each)
        assert program == "ipamc", command
        done = ipamc(*arguments, cwd=folder, environment=ENVIRONMENT, one_stream=True)
        done.stdout = said = said + done.stdout
        if done.returncode:
            break
    return done


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=GIT, check=True)


def play(example: Example, side: Side, folder: Path) -> CompletedProcess[str]:
    """Do what an example says: the base, compiled, committed and applied if it says so, then the files of a side and its command."""
    write(folder, {**example.given, **example.before})
    if "compiled" in example.done:
        done = run(folder, "ipamc compile lab")
        assert done.returncode == 0, done.stdout
    if "committed" in example.done:
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "The cluster lab")
    if "applied" in example.done:
        git(folder, "update-ref", "refs/ipamc/applied/lab", "HEAD")
    write(folder, dict(side.files), side.encoding)
    return run(folder, side.command)


def finding(output: str, code: str) -> str:
    """Return the first finding of this code as it is printed, without the line that leads to `explain`."""
    begins = re.search(rf"^\w+\[{code}\]", output, re.MULTILINE)
    assert begins
    lines = output[begins.start() :].strip().split("\n\n")[0].split("\n")
    return "".join(f"{line}\n" for line in lines if not line.strip().startswith("= docs: "))


@pytest.mark.parametrize("code", EXAMPLES)
def test_wrong_gives_the_code(code: str, tmp_path: Path, update: bool) -> None:  # noqa: FBT001 - a fixture
    example = EXAMPLES[code]
    done = play(example, example.wrong, tmp_path)
    found = set(CODE.findall(done.stdout))
    assert code in found, done.stdout
    assert found <= {code, *example.also}, done.stdout
    said = finding(done.stdout, code)
    if said.startswith("error"):
        assert done.returncode == 1
    if update:
        path = FOLDER / f"{code}.txtar"
        path.write_text(path.read_text("utf-8").partition("-- said --\n")[0] + f"-- said --\n{said}", "utf-8")
    else:
        assert said == example.said


@pytest.mark.deep
@pytest.mark.parametrize("code", EXAMPLES)
def test_right_passes_without_it(code: str, tmp_path: Path) -> None:
    example = EXAMPLES[code]
    done = play(example, example.right, tmp_path)
    found = set(CODE.findall(done.stdout))
    assert code not in found, done.stdout
    assert found <= set(example.also), done.stdout
    assert done.returncode == example.code_of_right, done.stdout


def test_every_code_has_an_example() -> None:
    assert sorted(EXAMPLES.keys() | NOT_SHOWN.keys()) == list(RULES)
    assert not EXAMPLES.keys() & NOT_SHOWN.keys()


@pytest.mark.deep
@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_reads_well(code: str) -> None:
    example = EXAMPLES[code]
    assert re.fullmatch(r"[^\n]{10,160}\.", example.sentence), example.sentence
    assert example.wrong != example.right
    for side in (example.wrong, example.right):
        assert sum(text.count("\n") for text in side.files.values()) <= LINES
        for name, text in side.files.items():
            assert text == "" or text.endswith("\n"), name
    shown = rule_text(RULES[code], example)
    assert not re.search(r"[ \t]$|\n{3,}", shown, re.MULTILINE), shown
    assert example.said in re.sub(r"(?m)^    ", "", shown)
