"""A command line that cannot be read: what is wrong, what is right, and a command that works. All are exit code 64."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ipamc.cli import VERBS, ipamc, main
from ipamc.cli.usage import of_other_tools
from tests.cli.test_options import EVERY
from tests.support.two_nodes import CLUSTER

WORDS, OPTIONS = of_other_tools("verbs"), of_other_tools("options")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a compiled cluster; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", "lab"))
    assert main(["compile"]) == 0
    return tmp_path


def refused(capfd: pytest.CaptureFixture[str], line: str) -> str:
    capfd.readouterr()
    assert main(line.split(" ") if line else []) == 64, line
    out, err = capfd.readouterr()
    assert out == ""
    return err


SAID = {
    "suggest": "ipamc suggest needs one of: pool",
    "ci": "ipamc ci needs one of: gitlab, github,",
    "ci gitlap": "'gitlap' is not a command of ipamc ci: did you mean 'gitlab'?",
    "compil": "'compil' is not a verb of ipamc: did you mean 'compile'?",
    "compile --chek": "--chek is not an option of ipamc compile: did you mean --check?",
    "compile --zzz": "--zzz is not an option of ipamc compile\n",
    "compile -x": "-x is not an option of ipamc compile\n",
    "compile --jobs": "--jobs needs a value: ipamc compile --jobs N",
    "compile --jobs 0": "0 is not a value of --jobs: use 1 or more",
    "compile --jobs many": "'many' is not a value of --jobs: use",
    "compile --check=yes": "--check takes no value: ipamc compile --check",
    "compile --format xml": "'xml' is not a value of --format: use full, concise, json, github, gitlab, sarif or junit",
    "compile --format githup": "'githup' is not a value of --format: did you mean github?",
    "compile --report x": "--report: 'x' is not FORMAT=FILE",
    "plan --format markdown": "'markdown' is not a value of --format: for data, use --output markdown",
    "plan --format text": "'text' is not a value of --format: for data, use --output text",
    "plan --format html": "'html' is not a value of --format: for data, use --output html",
    "plan --format svg": "'svg' is not a value of --format: for data, use --output svg",
    "plan --output sarif": "'sarif' is not a value of --output: for findings, use --format sarif",
    "plan --base=": "the revision is empty: name one, or omit --base",
    "plan --fail-on x": "--fail-on: 'x' is not one of renumber,",
    "show --output table": "'table' is not a value of --output: did you mean text?",
    "report": "ipamc report needs --write FILE\n  = help: --write FILE: The page to write",
    "resize lab": "ipamc resize needs FILE: ipamc resize CLUSTER FILE...",
    "resize": "ipamc resize needs CLUSTER: ipamc resize CLUSTER FILE...",
    "completion": "ipamc completion needs SHELL (bash, zsh or fish): ipamc completion SHELL",
    "completion tcsh": "'tcsh' is not a value of SHELL: use bash, zsh or fish",
    "schema a b": "unexpected argument 'b': ipamc schema [KIND]",
    "apply lab --wait 99999": "99999 is not a value of --wait: use 0 to 86400",
    "why 10.0.0.0/24": "'10.0.0.0/24' is an address, not a node: for its node, run ipamc which 10.0.0.0/24",
    "show n1": "there is no cluster 'n1': no such folder here or in clusters/; there are: lab\n"
    "  = help: it is a node of lab: ipamc show lab --node n1, ipamc why n1, ipamc which n1",
    "show a": "it is a pool of lab: ipamc show lab --pool a",
    "show 10.0.0.7": "it is an address: ipamc which 10.0.0.7",
    "lab": "'lab' is a cluster, not a verb\n  = help: ipamc compile lab\n",
    "clusters/lab/": "'clusters/lab/' is a cluster, not a verb\n  = help: ipamc compile lab\n",
    "clusters/lab/cluster.yaml": "is a cluster, not a verb\n  = help: ipamc compile lab\n",
    "IPC0207": "'IPC0207' is a code, not a verb\n  = help: ipamc explain IPC0207\n",
    "0207": "a code, not a verb\n  = help: ipamc explain 0207\n",
    "10.0.0.7": "'10.0.0.7' is an address, not a verb\n  = help: ipamc which 10.0.0.7\n",
    "fd00::/64": "is an address, not a verb\n  = help: ipamc which fd00::/64\n",
    "-v": "-v is not an option of ipamc: --version, or -V, shows the version",
    "--dry-run compile": "--dry-run is not an option of ipamc: write options of a verb after the verb",
    "compile --dry-run": "--dry-run is not an option of ipamc compile\n  = help: --check: Write nothing;",
    "compile -n": "-n is not an option of ipamc compile\n  = help: --check: Write nothing;",
    "init -n lab": "-n is not an option of ipamc init: 'ipamc plan' and 'ipamc compile --check' write nothing",
    "show --json": "--json is not an option of ipamc show\n  = help: --output text|json|",
    "compile --json": "--json is not an option of ipamc compile\n  = help: --format full|concise|json|",
    "report -o x.html": "-o is not an option of ipamc report\n  = help: --write FILE: The page to write",
    "show --cluster lab": "--cluster is not an option of ipamc show: a cluster is an argument",
    "show --context lab": "--context is not an option of ipamc show: this verb reads only files",
}


@pytest.mark.parametrize("line", SAID)
def test_what_is_said(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    err = refused(capfd, line)
    assert err.startswith("error: ")
    assert SAID[line] in err
    first, *more = err.splitlines()
    assert not re.search(r"Usage:|Error:|Try '|Missing|Invalid|No such|[^.]\.$", first)
    assert more
    assert all(each.startswith("  = help: ") for each in more)


def test_ipamc_alone_shows_its_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(capfd, "").startswith("Usage: ipamc [OPTIONS] COMMAND")


def test_the_help_that_is_named_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    """`ipamc help VERB` is `ipamc VERB --help`, which is what the last line says to run."""
    for line in SAID:
        for command in re.findall(r"= help: (ipamc(?: [a-z-]+)* --help)", refused(capfd, line)):
            assert main(command.split()[1:]) == 0
            shown = capfd.readouterr().out
            assert main(["help", *command.split()[1:-1]]) == 0
            assert capfd.readouterr().out == shown


@pytest.mark.deep
@pytest.mark.parametrize("word", sorted(WORDS))
def test_words_of_other_tools(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    """They lead to commands of ours that exist, with options that they have."""
    assert word not in VERBS
    err = refused(capfd, word)
    assert err.startswith(f"error: '{word}' is not a verb of ipamc")
    assert err.count("\n") > 1
    for words in (line.split() for line in WORDS[word].run if line.startswith("ipamc ")):
        command = next((EVERY[" ".join(words[1:n])] for n in (3, 2) if " ".join(words[1:n]) in EVERY), None)
        assert command or words == ["ipamc", "help"], words
        options = {name for param in command.params for name in param.opts} if command else set()
        assert {each for each in words if each.startswith("--")} <= options, words


@pytest.mark.deep
@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_options_of_other_tools(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In every verb that does not have them; and where one of ours is named, the verb has it."""
    for words, command in EVERY.items():
        if option in {name for param in command.params for name in param.opts} or words == "merge-driver":
            continue
        if option == "--output" and words.startswith(("ci ", "dump")):
            continue
        err = refused(capfd, f"{words} {option}")
        assert err.startswith(f"error: {option} is not an option of ipamc {words}"), words
        for named in re.findall(r"^  = help: (--[a-z]+)", err, re.MULTILINE):
            assert named in {name for param in command.params for name in param.opts}


def test_no_option_of_ours_is_among_those_of_others() -> None:
    """A text that says that there is no such option would be wrong, but for verbs that lack it."""
    everywhere = set.intersection(
        *({name for p in command.params for name in p.opts} for command in EVERY.values())
    )
    assert not everywhere & OPTIONS.keys()


def test_hostile_words_do_not_act(capfd: pytest.CaptureFixture[str]) -> None:
    for line in (
        "\x1b[31mred",
        "show \x1b]0;x\x07",
        "compile --\x1b[2J",
        "compile ::error::x",
        "compile --format \x9b1m",
    ):
        err = refused(capfd, line)
        assert not set(err) & {"\x1b", "\x07", "\x9b"}


def test_a_terminal_of_80_columns(repository: Path) -> None:
    """Lines are broken between words; commands to copy stay whole."""
    outer, inner = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80", "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ipamc", "ci"],
        stderr=inner,
        cwd=repository,
        env=environment,
        check=False,
    )
    os.close(inner)
    said = os.read(outer, 10_000).decode().replace("\r\n", "\n")
    os.close(outer)
    assert done.returncode == 64
    assert (
        said.splitlines()[0]
        == "error: ipamc ci needs one of: gitlab, github, argocd, flux, requirements, rbac,"
    )
    assert all(len(line) <= 80 for line in said.splitlines())


def test_every_group_and_verb_raises_no_error_of_click(capfd: pytest.CaptureFixture[str]) -> None:
    """With an option that does not exist, and a word too many."""
    for words in (*EVERY, "ci", "suggest"):
        assert refused(capfd, f"{words} --no-such-option").startswith(
            "error: --no-such-option is not an option of"
        )
    assert isinstance(ipamc, click.Group)


def test_a_folder_of_a_stranger_is_quoted_in_commands(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = repository / "clusters/x;id"
    (repository / "clusters/lab").rename(folder)
    assert "it is a node of x;id: ipamc show 'x;id' --node n1, " in refused(capfd, "compile n1")
    shutil.rmtree(folder / "rendered")
    assert main(["audit", "clusters/x;id", "-"]) == 1
    assert "run ipamc compile 'clusters/x;id'" in capfd.readouterr().err
