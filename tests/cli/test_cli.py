"""The command line: exit codes, streams, help, and what the environment can do to it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ipamc.cli
from ipamc import __version__
from ipamc.cli import RARE, VERBS, main
from ipamc.cli.init import ATTRIBUTES, DRIVERS, with_attributes
from ipamc.cli.terminal import colour
from ipamc.workspace import disk
from ipamc.workspace.environment import today
from ipamc.workspace.failure import EnvironmentFailure

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}, {name: n2}]
"""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two sound clusters, as the working directory."""
    for name in ("blue", "red"):
        folder = tmp_path / "clusters" / name
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spoil(repository: Path, name: str = "red") -> None:
    path = repository / f"clusters/{name}/cluster.yaml"
    path.write_text(path.read_text().replace("10.0.0.0/24", "10.0.0.1/24"))


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Help, usage, exit codes.


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    short = capsys.readouterr().out
    assert not any(f"  {name} " in short for name in RARE)
    assert main(["help", "--all"]) == 0
    text = capsys.readouterr().out
    for part in (*VERBS, "Examples:", "Exit codes:", "64", "70", "130"):
        assert part in text


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_teaches(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"ipamc {verb}" in text.split("Examples:")[1]
    assert "\\" not in text  # no escape that click did not take
    assert "Exit codes:" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ipamc {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Usage: ipamc"),
        (["compil"], "did you mean 'compile'?"),
        (["compile", "--chek"], "--check"),
        (["compile", "--jobs", "0"], "--jobs"),
        (["compile", "--format", "xml"], "xml"),
        (
            ["compile", "blu"],
            "there is no cluster 'blu': no such folder here or in clusters/; did you mean 'blue'?",
        ),
        (["show", "nowhere/at/all"], "there are: blue, red"),
        (["compile", "clusters/blue/cluster.yaml"], "name the folder of its cluster, clusters/blue"),
        (["compile", ""], "there is no cluster"),
        (["explain", "IPC9999"], "there is no code 'IPC9999'"),
        (["explain", "IPC0170"], "did you mean"),
        (["schema", "Poool"], "no schema of 'Poool'"),
        (["completion", "tcsh"], "tcsh"),
        (["init", "Not_A_Name"], "cannot name a cluster"),
    ],
)
def test_usage_errors_exit_64(
    repository: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(repository)
    assert main(arguments) == 64
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in " ".join(captured.err.split())
    assert tree(repository) == before


HEAVY = {
    *("yaml", "jinja2", "jsonschema", "jsonschema_rs", "netaddr"),
    *("subprocess", "multiprocessing", "ipamc.pipeline", "ipamc.model.cluster"),
}


@pytest.mark.parametrize("words", ["--help", "--version", "compile --help", "", "explain --help"])
def test_quick_answers_import_nothing_heavy(repository: Path, words: str) -> None:
    code = "import atexit, sys, ipamc.cli; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); ipamc.cli.main()"
    completion = (
        {}
        if words
        else {"COMP_WORDS": "ipamc compile b", "COMP_CWORD": "2", "_IPAMC_COMPLETE": "bash_complete"}
    )
    done = run(
        repository, f"ipamc() {{ '{sys.executable}' -c '{code}' \"$@\"; }}; ipamc {words}", **completion
    )
    assert not HEAVY & set(done.stderr.split())
    assert "ipamc.cli" in done.stderr
    assert words or done.stdout == "plain,blue\n"


def failing(monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(ipamc.cli.ipamc, "invoke", fail)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            EnvironmentFailure("there is no folder clusters/ here"),
            "error: there is no folder clusters/ here\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "clusters/lab"),
            "error: clusters/lab: permission denied\n",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "error: no space left on device\n"),
        (OSError(errno.EROFS, "Read-only file system", b"a\x1b"), "error: a\\x1b: read-only file system\n"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "a", None, "b"), "error: b: not a directory\n"),
        (MemoryError(), "error: out of memory\n"),
    ],
)
def test_the_environment_fails_in_one_line(
    problem: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, problem)
    assert main(["show"]) == 1
    assert capsys.readouterr().err == said


def test_a_bug_of_ours_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, KeyError("node-7"))
    assert main(["show"]) == 70
    text = capsys.readouterr().err
    assert text.startswith("Traceback")
    assert "KeyError: 'node-7'" in text
    assert "Please report this with the lines above." in text


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["show"]) == 130


def run(repository: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which `ipamc` is this one."""
    text = f'ipamc() {{ "{sys.executable}" -m ipamc "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(Path(ipamc.__path__[0]).parent), **environment}
    return subprocess.run(
        ["bash", "-c", text], cwd=repository, env=environment, capture_output=True, text=True, check=False
    )


def test_a_closed_pipe_is_quiet(repository: Path) -> None:
    done = run(repository, "{ sleep 0.5; ipamc explain; } | true; ipamc explain | head -1")
    assert done.stderr == ""
    assert done.stdout.startswith("IPC")


def test_a_full_disk_behind_stdout_is_said(repository: Path) -> None:
    done = run(repository, "ipamc --version > /dev/full")
    assert (done.returncode, done.stderr) == (1, "error: no space left on device\n")


def test_closed_streams_are_no_bug(repository: Path) -> None:
    assert run(repository, "ipamc show >&- && ipamc compile --check blue 2>&-").returncode == 1


# Colour, and the clock.


@pytest.mark.parametrize(
    ("environment", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour(
    environment: dict[str, str],
    terminal: bool,  # noqa: FBT001 - a parameter of the table
    wanted: bool,  # noqa: FBT001 - as above
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert colour(sys.stderr) is wanted


@pytest.mark.parametrize(
    ("epoch", "day"), [("0", "1970-01-01"), ("1795219199", "2026-11-20"), ("1795219200", "2026-11-21")]
)
def test_the_day_is_the_epochs(epoch: str, day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert today() == day


@pytest.mark.parametrize("epoch", ["", "-1", "1.5", "tomorrow", "٣", "999999999999"])
def test_a_bad_epoch_is_said(epoch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(EnvironmentFailure, match="SOURCE_DATE_EPOCH"):
        today()


# Verbs that compile nothing.


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for code in ("IPC0107", "ipc0107", "107"):
        assert main(["explain", code]) == 0
        assert capsys.readouterr().out.startswith("IPC0107: an input is a regular file")
    assert main(["explain", "IPC0207"]) == 0
    parts = ("\nWhy: ", "\nExample: ", "\nWrong: ", "error[IPC0207]", "\nRight:\n", "\nRun: ")
    said = capsys.readouterr().out
    assert sorted(parts, key=said.index) == list(parts)
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == sorted(lines)
    assert "IPC0107  an input is a regular file inside its cluster's folder, of at most 256 MiB." in lines


def test_explain_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "versions"]) == 0
    cells = next(line.split(" | ") for line in capsys.readouterr().out.splitlines() if "do-not-gc" in line)
    assert cells[-5:] == [
        "**no**",
        "**yes**",
        "**yes**",
        "**yes**",
        "`ciliumnodes/`, `seeds/`, IPC0553, IPC0568 |",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_IPAMC_COMPLETE" in capsys.readouterr().out


def test_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        disk,
        "assets",
        lambda _: {"cluster.schema.json": '{"description": "one"}\n', "ippool.schema.json": "{}\n"},
    )
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == "cluster: one\nippool\n"
    assert main(["schema", "IPPool"]) == 0
    assert capsys.readouterr().out == "{}\n"
    assert main(["schema", "--write", str(tmp_path / "new")]) == 0
    assert tree(tmp_path / "new") == {
        "cluster.schema.json": '{"description": "one"}\n',
        "ippool.schema.json": "{}\n",
    }


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def test_init_prepares_a_repository_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    assert main(["init"]) == 0
    assert {key: git("config", "--local", key).strip() for key in DRIVERS} == DRIVERS
    first = tree(tmp_path)
    assert git(
        "check-attr", "merge", "clusters/a/ipam.lock", "clusters/a/rendered/nodes/000/nodes.yaml"
    ).splitlines() == [
        "clusters/a/ipam.lock: merge: ipamc",
        "clusters/a/rendered/nodes/000/nodes.yaml: merge: ipamc-rendered",
    ]
    capsys.readouterr()
    assert main(["init"]) == 0
    assert capsys.readouterr().err == ".gitattributes: unchanged\ngit config: unchanged\n"
    assert tree(tmp_path) == first


def test_init_starts_a_cluster_and_writes_over_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "lab"]) == 0
    assert "not in a git repository" in capsys.readouterr().err
    path = tmp_path / "clusters/lab/nodes.yaml"
    assert {"cluster.yaml", "ippools.yaml", "nodes.yaml"} == set(tree(path.parent))
    path.write_text("mine")
    assert main(["init", "lab"]) == 0
    assert path.read_text() == "mine"
    assert main(["init", "./other"]) == 0
    assert "metadata: {name: other}" in (tmp_path / "other/cluster.yaml").read_text()


@pytest.mark.parametrize("text", [",", "{", " "])
def test_init_costs_no_more_than_the_bytes_that_are_there(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters/new").mkdir(parents=True)
    Path("clusters/new/ippools.yaml").write_text(text * 60_000)
    start = time.process_time()
    assert main(["init", "new"]) == 0
    assert time.process_time() - start < 20


def test_init_keeps_what_is_in_gitattributes() -> None:
    rows = [" ".join((pattern, *wanted)) for pattern, wanted in ATTRIBUTES.items()]
    assert with_attributes("").splitlines() == rows
    assert with_attributes("*.png binary\n").splitlines() == ["*.png binary", *rows]
    mine = "ipam.lock merge=ipamc text -diff eol=lf\n# a comment\n**/rendered/** -diff"
    kept = with_attributes(mine)
    assert kept.splitlines()[:2] == ["ipam.lock merge=ipamc text -diff eol=lf", "# a comment"]
    assert kept.splitlines()[2] == "**/rendered/** -diff text eol=lf linguist-generated merge=ipamc-rendered"
    assert with_attributes(kept) == kept


def test_where_git_is_missing_init_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert main(["init"]) == 0
    assert (tmp_path / ".gitattributes").exists()


# Verbs that compile.


def test_compile_writes_every_cluster_and_then_nothing(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("blue:", "red:"))]
    done = "2 nodes, 2 blocks added (2 first fit), 0 returned, 0 left, 0 renumbered; lock written, "
    assert [line.partition(done)[:2] for line in lines] == [("blue: ", done), ("red: ", done)]
    first = tree(repository)
    assert main(["compile"]) == 0
    assert (
        "blue: 2 nodes, 0 blocks added, 0 returned, 0 left, 0 renumbered; unchanged\n"
        in capsys.readouterr().err
    )
    assert tree(repository) == first


@pytest.mark.parametrize("jobs", [["--jobs", "2"], []], ids=["as given", "one a processor"])
def test_many_processes_give_the_same(
    repository: Path, jobs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    spoil(repository)
    assert main(["compile", *jobs, "--check"]) == 1
    many = capsys.readouterr()
    assert main(["compile", "--jobs", "1", "--check"]) == 1
    assert capsys.readouterr() == many
    assert main(["compile", *jobs]) == 1
    assert (repository / "clusters/blue/ipam.lock").exists()


def test_sound_clusters_are_written_beside_a_refused_one(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(repository)
    assert main(["compile"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--> clusters/red/cluster.yaml:12:" in captured.err
    assert "1 error" in captured.err
    assert captured.err.endswith("red: refused, nothing written\n")
    assert (repository / "clusters/blue/ipam.lock").exists()
    assert sorted(tree(repository / "clusters/red")) == ["cluster.yaml"]


def test_check_writes_nothing_and_fails_where_something_would_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(repository)
    assert main(["compile", "--check", "blue"]) == 1
    assert "blue: out of date: ipam.lock, rendered/" in capsys.readouterr().err
    assert tree(repository) == before
    assert main(["compile", "blue"]) == 0
    assert main(["compile", "--check", "blue"]) == 0
    assert capsys.readouterr().err.endswith("blue: up to date\n")


def test_locked_reads_the_lock_only(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--locked", "blue"]) == 1
    assert not (repository / "clusters/blue/ipam.lock").exists()
    assert main(["lock", "blue"]) == 0
    assert sorted(tree(repository / "clusters/blue")) == ["cluster.yaml", "ipam.lock"]
    lock = (repository / "clusters/blue/ipam.lock").read_text()
    assert main(["compile", "--locked", "blue"]) == 0
    assert (repository / "clusters/blue/rendered/kustomization.yaml").exists()
    assert (repository / "clusters/blue/ipam.lock").read_text() == lock
    assert "n1" in lock
    capsys.readouterr()


def test_lock_check_names_what_is_stale(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(repository)
    assert main(["lock", "--check", "blue"]) == 1
    assert "the lock is stale: 2 nodes are new: n1, n2" in capsys.readouterr().err
    assert tree(repository) == before
    assert main(["lock", "blue"]) == 0
    assert main(["lock", "--check", "blue"]) == 0


def test_leaving_takes_consent(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    assert main(["compile", "blue"]) == 0
    path = repository / "clusters/blue/cluster.yaml"
    path.write_text(path.read_text().replace("[{name: n1}, {name: n2}]", "[]"))
    assert main(["lock", "blue"]) == 1
    assert "ipamc lock blue --leave all" in capsys.readouterr().err
    assert main(["lock", "blue", "--leave", "all"]) == 0
    assert ", 2 left, 0 renumbered" in capsys.readouterr().err
    assert (repository / "clusters/blue/ipam.lock").read_text().count('"quarantined":"2026-11-21"') == 2


def test_json_is_all_there_is_on_stderr(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(repository)
    assert main(["compile", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().err)
    assert document["errors"] == 1
    assert [each["file"] for each in document["findings"] if each["severity"] == "error"] == [
        "clusters/red/cluster.yaml"
    ]


def test_concise(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(repository)
    assert main(["compile", "red", "--format", "concise"]) == 1
    assert capsys.readouterr().err.startswith("clusters/red/cluster.yaml:12:")


def test_a_cluster_is_a_name_or_a_folder(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        main(["compile", "blue", "clusters/blue/", "./clusters/blue", str(repository / "clusters/blue")]) == 0
    )
    assert capsys.readouterr().err.count("blue: ") == 1
    monkeypatch.chdir(repository / "clusters/blue")
    assert main(["compile", "."]) == 0
    assert capsys.readouterr().err.endswith("; unchanged\n")
    assert main(["compile", "../red"]) == 0
    (repository / "elsewhere").mkdir()
    monkeypatch.chdir(repository / "elsewhere")
    assert main(["compile"]) == 1
    assert "there is no folder clusters/ here" in capsys.readouterr().err


def test_a_link_that_leaves_is_a_finding(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "clusters/blue/more.yaml").symlink_to(repository / "clusters/red/cluster.yaml")
    assert main(["compile", "blue"]) == 1
    assert capsys.readouterr().err.startswith(
        "error[IPC0107]: 'more.yaml' is a link that leaves the cluster's folder\n --> clusters/blue/more.yaml\n"
    )


def test_a_cluster_whose_folder_fails_is_one_line(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lock", "blue"]) == 0
    (repository / "clusters/blue/rendered").symlink_to(repository)
    assert main(["compile"]) == 1
    text = capsys.readouterr().err
    assert "error: clusters/blue/rendered is a link" in text
    assert "red: 2 nodes" in text


def test_show(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "blue"]) == 0
    before = tree(repository)
    capsys.readouterr()
    assert main(["show"]) == 0
    captured = capsys.readouterr()
    assert "blue: 2 nodes with 2 blocks\n" in captured.out
    assert "red: 0 nodes with 0 blocks\n" in captured.out
    assert captured.err == ""
    assert main(["show", "blue", "--show-blocks"]) == 0
    assert "  n2  held\n" in capsys.readouterr().out
    assert main(["show", "blue", "--output", "json"]) == 0
    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    assert cluster["pools"][0]["blocks"] == {"total": 8, "held": 2, "free": 6}
    assert tree(repository) == before


def test_show_refuses_what_a_compile_would(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(repository)
    assert main(["show"]) == 1
    captured = capsys.readouterr()
    assert "blue: 0 nodes" in captured.out
    assert "clusters/red/cluster.yaml:12:" in captured.err


def test_what_init_writes_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "lab"]) == 0
    assert main(["compile", "lab"]) == 0
    assert "lab: 0 nodes, 0 blocks added" in capsys.readouterr().err
    nodes = tmp_path / "clusters/lab/nodes.yaml"
    nodes.write_text(nodes.read_text().replace("nodes: []\n# -", "nodes:\n-"))
    assert main(["compile", "lab"]) == 0
    assert "lab: 1 node, 1 block added (1 first fit)" in capsys.readouterr().err
