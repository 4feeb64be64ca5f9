"""`--report FORMAT=FILE`: always written, always whole, with paths as the forge knows them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click
import pytest

import ipamc.cli
from ipamc.cli import main
from ipamc.report.findings import NAMES
from tests.cli.test_cli import CLUSTER, spoil

ALL = [f"--report={name}=out/{name}" for name in NAMES]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder inside a git repository with two sound clusters, as the working directory."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    folder = tmp_path / "infra" / "网络"
    for name in ("blue", "red"):
        (folder / "clusters" / name).mkdir(parents=True)
        (folder / "clusters" / name / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(folder)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((folder / "out").iterdir())}


def paths(folder: Path) -> list[str]:
    return [each["location"]["path"] for each in json.loads((folder / "out/gitlab").read_text())]


def sarif(folder: Path) -> Any:
    return json.loads((folder / "out/sarif").read_text())["runs"][0]


@pytest.mark.parametrize("verb", ["compile", "lock", "show"])
def test_every_report_is_written_where_nothing_was_found(repository: Path, verb: str) -> None:
    assert main([verb, *ALL]) == 0
    got = texts(repository)
    assert sorted(got) == sorted(NAMES)
    assert (got["full"], got["concise"], got["github"], json.loads(got["gitlab"])) == ("", "", "", [])
    assert json.loads(got["json"])["findings"] == []
    assert json.loads(got["sarif"])["runs"][0]["results"] == []
    assert ET.fromstring(got["junit"]).attrib["failures"] == "0"  # noqa: S314 - our own


@pytest.mark.parametrize("verb", ["compile", "lock", "show"])
def test_every_report_is_written_where_the_compile_was_refused(
    repository: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(repository)
    assert main([verb, *ALL]) == 1
    assert "error[IPC0201]" in capsys.readouterr().err
    assert all("IPC0201" in text for text in texts(repository).values())


def test_paths_are_below_the_root_of_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(repository)
    wanted = "infra/网络/clusters/red/cluster.yaml"
    assert main(["compile", *ALL]) == 1
    assert paths(repository) == [wanted]
    assert texts(repository)["github"].startswith(f"::error file={wanted},line=12,")
    assert "infra/%E7%BD%91%E7%BB%9C/clusters/red/cluster.yaml" in texts(repository)["sarif"]
    assert " --> clusters/red/cluster.yaml:12" in texts(repository)["full"]
    for folder, cluster in (
        ("clusters/red", "."),
        ("clusters", "../clusters/red"),
        ("/", str(repository / "clusters/red")),
    ):
        monkeypatch.chdir(repository / folder)
        assert main(["compile", cluster, f"--report=gitlab={repository}/out/gitlab"]) == 1
        assert paths(repository) == [wanted]


def test_without_a_repository_paths_are_below_the_working_directory(repository: Path) -> None:
    top = next(folder for folder in repository.parents if (folder / ".git").exists())
    (top / ".git").rename(top / "was.git")
    spoil(repository)
    assert main(["compile", *ALL]) == 1
    assert paths(repository) == ["clusters/red/cluster.yaml"]


def test_what_was_is_shown_where_it_is_today(repository: Path) -> None:
    spoil(repository)
    for words in (["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], check=True)
    assert main(["show", "--at", "HEAD", *ALL]) == 1
    assert paths(repository) == ["infra/网络/clusters/red/cluster.yaml"]
    assert " --> HEAD:infra/网络/clusters/red/cluster.yaml:12" in texts(repository)["full"]


def test_a_failure_of_the_environment_is_in_the_report(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", "blue"]) == 0
    (repository / "clusters/blue/rendered").symlink_to(repository)
    assert main(["compile", *ALL]) == 1
    assert capsys.readouterr().err.count("error: clusters/blue/rendered is a link") == 1
    assert paths(repository) == ["infra/网络/clusters/blue"]
    assert sarif(repository)["invocations"][0]["executionSuccessful"] is False


def test_many_processes_write_the_same_reports(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Findings and failures that come from another process included."""
    assert main(["lock", "blue"]) == 0
    capsys.readouterr()
    (repository / "clusters/blue/rendered").symlink_to(repository)
    spoil(repository)
    assert main(["compile", "--jobs", "2", *ALL]) == 1
    many = capsys.readouterr(), texts(repository)
    assert main(["compile", "--jobs", "1", *ALL]) == 1
    assert (capsys.readouterr(), texts(repository)) == many
    assert "error: clusters/blue/rendered is a link" in many[0].err
    assert paths(repository) == ["infra/网络/clusters/blue", "infra/网络/clusters/red/cluster.yaml"]


def test_a_plan_that_failed_does_not_pass_for_a_clean_one(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "clusters/blue/ipam.lock").symlink_to(repository / "clusters/red/ipam.lock")
    assert main(["plan", "--jobs", "1", *ALL]) == 1
    assert capsys.readouterr().err.count("error: blue: ") == 1
    assert paths(repository) == ["infra/网络/clusters/blue"]
    assert sarif(repository)["invocations"][0]["executionSuccessful"] is False


def test_so_is_one_before_any_cluster(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.parent)
    assert main(["compile", f"--report=sarif={repository.name}/out/sarif"]) == 1
    assert "there is no folder clusters/ here" in capsys.readouterr().err
    assert (
        "there is no folder clusters/ here"
        in sarif(repository)["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    )


def test_a_bug_leaves_no_report_that_says_all_is_well(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise KeyError("node-7")

    monkeypatch.setattr("ipamc.cli.compile.find", fail)
    assert main(["compile", *ALL]) == 70
    assert all("a bug in ipamc: KeyError" in text for text in texts(repository).values())
    assert sarif(repository)["invocations"][0]["executionSuccessful"] is False


def test_a_report_that_cannot_be_written_fails_the_run(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "out").write_text("a file where a folder is wanted")
    assert main(["compile", *ALL]) == 1
    assert "error: out" in capsys.readouterr().err
    assert (repository / "clusters/red/ipam.lock").exists()


@pytest.mark.parametrize("style", ["json", "gitlab", "sarif", "junit"])
def test_a_document_is_all_there_is_on_stderr(
    repository: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for code in (0, 1):
        assert main(["compile", "--format", style, f"--report={style}=out/{style}"]) == code
        assert capsys.readouterr().err == texts(repository)[style]
        spoil(repository)


def test_github_commands_stand_beside_what_people_read(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(repository)
    assert main(["compile", "--format", "github"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in lines if line.startswith("::")] == ["::error"]
    assert lines[-1] == "red: refused, nothing written"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--report", "xml=a"], "'xml=a' is not FORMAT=FILE; the formats are full, concise, json"),
        (["--report", "json"], "'json' is not FORMAT=FILE"),
        (["--report", "json="], "'json=' is not FORMAT=FILE"),
        (["--report", "json=a", "--report", "sarif=a"], "two reports name the same file"),
        (["--report", "json=a", "--report", "sarif=./a"], "two reports name the same file"),
        (["--report", "json=-"], "- is not a file here: write ./- for a file with this name"),
        (["--report", "json=clusters"], "'clusters' is not a regular file"),
        (["--report", "json=/dev/stdout"], "'/dev/stdout' is not a regular file"),
        (["--report", "json=link"], "'link' is not a regular file"),
    ],
)
def test_usage(repository: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "link").symlink_to(repository / "clusters/red/cluster.yaml")
    assert main(["compile", *arguments]) == 64
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (repository / "clusters/red/ipam.lock").exists()


def test_every_verb_with_a_format_takes_reports() -> None:
    context = click.Context(ipamc.cli.ipamc)
    for verb in ipamc.cli.VERBS:
        command = ipamc.cli.ipamc.get_command(context, verb)
        assert command is not None
        names = {each.name for each in command.params}
        assert ("style" in names) == ("report" in names), verb
