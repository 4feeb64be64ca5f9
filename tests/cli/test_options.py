"""One manner: an option has the same name, the same values and the same words in every verb."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ipamc.cli import ipamc, main
from ipamc.cli.command import Lazy
from ipamc.report.findings import NAMES
from tests.support.two_nodes import CLUSTER


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        if isinstance(command, Lazy):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


EVERY = dict(commands(ipamc))


def option(name: str) -> dict[str, click.Option]:
    return {
        words: param
        for words, command in EVERY.items()
        for param in command.params
        if isinstance(param, click.Option) and name in param.opts
    }


def test_output_is_for_data() -> None:
    """Its first kind is the default, and for people it is called `text`; a runbook is Markdown, as its pages are."""
    first: dict[str, list[str]] = {}
    for words, found in option("--output").items():
        assert found.opts == ["-o", "--output"], words
        assert isinstance(found.type, click.Choice)
        assert found.help == "The output on stdout."
        assert found.default == (None if found.required else found.type.choices[0])
        assert "table" not in found.type.choices
        first.setdefault(found.type.choices[0], []).append(words)
    assert first == {
        "text": [
            "check",
            "plan",
            "show",
            "which",
            "why",
            "forecast",
            "test",
            "resize",
            "suggest pool",
            "aggregates",
            "version",
        ],
        "markdown": ["runbook"],
        "github": ["ci matrix"],
    }


def test_format_is_for_findings() -> None:
    """Wherever there are findings, in the same formats; and then there is --report, too."""
    found = option("--format")
    for words, each in found.items():
        assert isinstance(each.type, click.Choice)
        assert tuple(each.type.choices) == NAMES, words
        assert (each.default, each.help) == ("full", "The format of the findings on stderr.")
    assert list(found) == list(option("--report"))
    assert "plan" in found


def test_write_is_for_the_file_of_a_verb_that_writes_one() -> None:
    assert {words: found.metavar for words, found in option("--write").items()} == {
        "plan": "FORMAT=FILE",
        "report": "FILE",
        "export": "FILE",
        **{
            f"ci {name}": "FILE"
            for name in ("gitlab", "github", "argocd", "flux", "rbac", "matrix", "requirements")
        },
        "dump": "FILE",
        "schema": "DIR",
    }


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *arguments], check=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one compiled cluster, which is committed; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    folder = tmp_path / "clusters/lab"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", "lab"))
    git("init", "-q", "-b", "main")
    assert main(["compile"]) == 0
    git("add", "-A")
    git("commit", "-q", "-m", "lab")
    return tmp_path


def test_findings_of_a_plan_are_a_document(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On stderr, whole, beside a plan in any form; what the plan refuses is in it."""
    (repository / "clusters/lab/cluster.yaml").write_text(
        CLUSTER.replace("NAME", "lab").replace("{name: n2}", "{name: n3}")
    )
    capfd.readouterr()
    options = ["--base", "main", "--fail-on", "leave"]
    assert main(["plan", *options, "--output", "markdown", "--format", "json"]) == 1
    out, err = capfd.readouterr()
    assert out.startswith("<!-- ipamc:plan")
    (failure,) = json.loads(err)["failures"]
    assert failure["message"].startswith("refused: lab: 1 node left (--fail-on leave)")
    assert main(["plan", *options]) == 1
    assert failure["message"] in capfd.readouterr().err


FORMER = (
    (f"ci github --sha256 {'a1' * 32} --output -", f"ci github --sha256 {'a1' * 32} --write -"),
    ("ci argocd --repo=x --output=-", "ci argocd --repo=x --write=-"),
    ("ci rbac lab --output -", "ci rbac lab --write -"),
    ("ci matrix --format names --output -", "ci matrix --output names --write -"),
    ("ci matrix --format=github", "ci matrix --output=github"),
)


@pytest.mark.parametrize(("before", "now"), FORMER)
def test_pipelines_of_before_go_on(
    before: str,
    now: str,
    repository: Path,  # noqa: ARG001
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Options of `ipamc ci` keep their former names, unseen."""
    capfd.readouterr()
    assert main(now.split()) == 0
    expected = capfd.readouterr()
    assert main(before.split()) == 0
    assert capfd.readouterr() == expected
    verb = before.split()[:2]
    assert main([*verb, "--help"]) == 0
    assert "--output FILE" not in capfd.readouterr().out
