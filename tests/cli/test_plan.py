"""Plans against revisions of real repositories, and what holds for every plan. What a plan tells is shown by the cases under tests/cases/plan."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.cli import main
from ipamc.model.limits import LONGEST_PLAN_COMMENT, ROWS_TRIED
from ipamc.model.lock import State
from ipamc.model.plan import Origin
from ipamc.report import plan_markdown
from ipamc.report.plan_markdown import code, mark
from ipamc.review import GATES
from ipamc.review.diff.documents import PoolStatus
from ipamc.review.diff.plan_report import ClusterReport, PlanReport, PlanStatus
from ipamc.workspace import disk
from tests.support import casefile
from tests.support.two_nodes import CLUSTER

CASES = [name for name in casefile.names() if name.startswith("plan/")]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def commit(message: str = "a change") -> None:
    git("add", "-A")
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "--allow-empty", "-m", message)


ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "SOURCE_DATE_EPOCH": "1795219200", "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with two compiled clusters on its branch main."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        for name in ("blue", "red"):
            start(folder, name)
        git("init", "-q", "-b", "main")
        assert main(["compile"]) == 0
        commit("both clusters")
    return folder


@pytest.fixture
def repository(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of one's own, as copied from one that was made once; it is the working directory."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(repository: Path, name: str) -> None:
    folder = repository / "clusters" / name
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))


def edit(repository: Path, old: str, new: str, name: str = "blue", file: str = "cluster.yaml") -> None:
    path = repository / "clusters" / name / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def plan_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a plan for programs; give its clusters by name."""
    main(["plan", "--output", "json", *arguments])
    return {each["cluster"]: each for each in json.loads(capsys.readouterr().out)["clusters"]}


# Against the disk, and against a revision.


@pytest.mark.usefixtures("repository")
def test_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    for base in ([], ["--base", "HEAD"]):
        assert main(["plan", "--detailed-exitcode", *base]) == 0
        assert capsys.readouterr() == (
            "no changes: blue, red\n\n2 clusters: 0 renumbered · +0 · −0 · 4 unchanged\n",  # noqa: RUF001 - a minus is as wide as a plus
            "",
        )


def test_a_plan_writes_nothing_and_says_what_a_compile_would_do(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    before = tree(repository)
    assert main(["plan", "--detailed-exitcode"]) == 2
    assert "+ n3 10.0.0.64/27 a first fit\n" in capsys.readouterr().out
    assert main(["plan"]) == 0
    assert tree(repository) == before


def test_what_is_committed_on_a_branch_is_told_against_its_base_alone(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["compile"]) == 0
    commit()
    assert main(["plan", "--detailed-exitcode"]) == 0
    assert main(["plan", "--detailed-exitcode", "--base", "HEAD~1"]) == 2
    capsys.readouterr()
    assert plan_of(capsys, "--base", "HEAD~1")["blue"]["added"] == [
        {"node": "n3", "block": "10.0.0.64/27", "pool": "a", "state": "held", "origin": "first fit"}
    ]


def test_the_base_is_what_was_committed_and_is_not_compiled_again(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody committed a node without its line, and broke a flag by hand: the plan is against what the live cluster got."""
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    edit(repository, 'enable-ipv6: "false"', 'enable-ipv6: "true"', file="rendered/cilium/configmap.yaml")
    commit()
    blue = plan_of(capsys, "--base", "HEAD")["blue"]
    assert [each["node"] for each in blue["added"]] == ["n3"]
    assert blue["flags"] == [{"name": "enable-ipv6", "old": "true", "new": "false", "why": ""}]


def test_a_base_whose_documents_are_not_understood_still_has_its_lock(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "blockSize: 27", "blockSize: 27, shinyNewField: 1")
    commit()
    edit(repository, ", shinyNewField: 1", "")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    blue = plan_of(capsys, "--base", "HEAD")["blue"]
    assert (blue["poolsKnown"], blue["pools"], [each["node"] for each in blue["added"]]) == (
        False,
        [],
        ["n3"],
    )
    assert blue["capacity"][0]["before"] is None


def test_blocks_without_a_node_take_room_in_base_and_head(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The base's inventory is read only where it counts: beside CiliumNodes, one of which has no node here."""
    seen = (
        "apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata: {name: %s}\nspec: {ipam: {podCIDRs: [%s]}}\n"
    )
    ghost, known = seen % ("ghost", "10.0.3.0/27"), seen % ("n1", "10.0.0.0/27")
    (repository / "clusters/blue/seen.yaml").write_text(f"{ghost}---\n{known}")
    assert main(["compile", "blue"]) == 0
    commit()
    (repository / "clusters/blue/note.yaml").write_text("# a file more, so that the sides differ\n")
    capsys.readouterr()
    (room,) = plan_of(capsys, "--base", "HEAD")["blue"]["capacity"]
    assert room["before"] == room["after"]
    assert room["before"]["blocks"]["free"] == 29


def test_a_damaged_lock_of_the_base_is_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound = (repository / "clusters/blue/ipam.lock").read_text()
    (repository / "clusters/blue/ipam.lock").write_text(sound.replace('"node":"n2"', '"node": "n2"'))
    commit()
    (repository / "clusters/blue/ipam.lock").write_text(sound)
    assert main(["plan", "--base", "HEAD"]) == 1
    captured = capsys.readouterr()
    assert "no changes: red\n" in captured.out
    assert captured.err.startswith("error: blue: failed: HEAD:clusters/blue/ipam.lock is not sound there (")


def test_many_processes_give_the_same(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(repository, "10.0.0.0/22", "10.9.0.0/22", name="red")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["plan", "--base", "HEAD", "--output", "json", "--jobs", "2"]) == 1
    many = capsys.readouterr()
    assert main(["plan", "--base", "HEAD", "--output", "json", "--jobs", "1"]) == 1
    assert capsys.readouterr() == many


def test_a_base_that_was_never_compiled(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("rm", "-rq", "--cached", "clusters/blue/ipam.lock", "clusters/blue/rendered")
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "-m", "inputs alone")
    edit(repository, "blockSize: 27", "blockSize: 26")
    blue = plan_of(capsys, "--base", "HEAD")["blue"]
    assert (blue["status"], blue["nodes"]["added"]) == ("planned", 2)
    assert blue["pools"][0]["fields"] == [
        {"name": "ipv4.blockSize", "old": ["27"], "new": ["26"], "whole": True}
    ]


# What is refused, and how a pipeline learns of it.


@pytest.mark.parametrize("style", ["html", "svg"])
def test_pictures_come_from_other_processes_too(repository: Path, style: str) -> None:
    """A plan of several clusters is made by several processes, which hand over the maps."""
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    files = [f"plan-{jobs}" for jobs in (1, 2)]
    for jobs, file in enumerate(files, 1):
        assert main(["plan", "--base", "HEAD", "--jobs", str(jobs), "--write", f"{style}={file}"]) == 0
    one, two = ((repository / file).read_text() for file in files)
    assert one == two
    assert "n3" in two


SHARED = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: blue}
spec:
  cilium: {version: "1.15", managedBy: helm}
  ipam: {mode: multi-pool, pinning: none}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: default}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}, {name: n2}]
"""


def test_a_revert_of_a_published_range_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes `rendered/` back as well, so a compile of the result is content; but the operator may have given blocks of the range to nodes since."""
    git("rm", "-rq", "clusters/blue/ipam.lock", "clusters/blue/rendered")
    (repository / "clusters/blue/cluster.yaml").write_text(SHARED)
    assert main(["compile", "blue"]) == 0
    commit()
    edit(repository, "[10.0.0.0/24]", "[10.0.0.0/24, 10.0.9.0/24]")
    assert main(["compile", "blue"]) == 0
    commit()
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "revert", "--no-edit", "HEAD")
    assert main(["compile", "--locked", "--check"]) == 0
    capsys.readouterr()
    assert main(["plan", "blue", "--base", "HEAD~1"]) == 1
    captured = capsys.readouterr()
    assert "~ default changed ipv4.cidrs: −10.0.9.0/24" in captured.out  # noqa: RUF001 - a minus
    assert 'error[IPC0538]: 10.0.9.0/24 was published in pool "default"' in captured.err
    assert "refused: blue: 1 error: published CIDRs would vanish\n" in captured.err
    assert (
        "run git checkout HEAD~1 -- clusters/blue/rendered && ipamc compile blue, which shows what to write\n"
        in captured.err
    )
    git("checkout", "HEAD~1", "--", "clusters/blue/rendered")
    assert main(["compile", "blue"]) == 1, "with what was published, the compile sees it"
    assert "IPC0538" in capsys.readouterr().err


def test_a_revert_of_a_mode_that_nodes_cannot_leave_is_said(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no error: where the mode was not applied yet, a revert is the way out. But no steps promise that nodes keep their blocks."""
    edit(repository, "mode: cluster-pool", "mode: multi-pool")
    assert main(["lock", "blue", "--mode"]) == 0
    assert main(["compile", "blue"]) == 0
    commit()
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "revert", "--no-edit", "HEAD")
    capsys.readouterr()
    assert main(["plan", "blue", "--base", "HEAD~1"]) == 0
    captured = capsys.readouterr()
    assert "mode multi-pool → cluster-pool" in captured.out
    assert "steps, in this order" not in captured.out
    assert (
        "warning[IPC0543]: mode multi-pool to cluster-pool: 2 nodes cannot keep their blocks" in captured.err
    )


def test_a_revert_is_refused_after_the_whole_plan(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["compile"]) == 0
    commit()
    git("-c", "user.name=n", "-c", "user.email=e@example.org", "revert", "--no-edit", "HEAD")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("blue: 1 vanished · 0 renumbered · ")
    assert captured.out.endswith("2 clusters: 1 vanished · 0 renumbered · +0 · −0 · 4 unchanged\n")  # noqa: RUF001 - a minus
    assert "refused: blue: 1 line vanished from the lock: n3 (10.0.0.64/27)\n" in captured.err
    assert (
        "to restore it: git checkout HEAD~1 -- clusters/blue/ipam.lock, then: ipamc compile blue"
        in captured.err
    )
    git("checkout", "HEAD~1", "--", "clusters/blue/ipam.lock")
    assert main(["compile", "blue"]) == 0
    assert main(["plan", "--base", "HEAD~1"]) == 0, "the way out is one"
    assert "- n3 10.0.0.64/27 a held → quarantined 2026-11-21\n" in capsys.readouterr().out


def test_a_branch_that_is_behind_is_told_so(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "-b", "topic")
    git("checkout", "-q", "main")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["compile"]) == 0
    commit()
    git("checkout", "-q", "topic")
    capsys.readouterr()
    assert main(["plan", "--base", "main"]) == 1
    assert "note: main has commits that are not merged here" in capsys.readouterr().err
    assert main(["plan", "--base", git("merge-base", "HEAD", "main")]) == 0


@pytest.mark.parametrize(
    ("gate", "arguments", "said"),
    [
        ("renumber", ["--renumber", "n1"], "blue: 1 node renumbered (--fail-on renumber): n1"),
        ("leave", ["--leave", "n2"], "blue: 1 node left (--fail-on leave): n2"),
        ("release", ["--release", "n0"], "blue: 1 block released early (--fail-on release): 10.0.0.64/27"),
        ("rename", ["--rename", "n2=n9"], "blue: 1 node renamed (--fail-on rename): n2 (now n9)"),
    ],
)
def test_consent_in_the_lock_is_shown_and_still_fails(
    repository: Path, gate: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = repository / "clusters/blue/ipam.lock"
    lock.write_text(
        lock.read_text() + '{"block":"10.0.0.64/27","pool":"a","node":"n0","quarantined":"2026-11-20"}\n'
    )
    commit()
    if gate in {"leave", "rename"}:
        edit(repository, ", {name: n2}", ", {name: n9}" if gate == "rename" else "")
    assert main(["lock", "blue", *arguments]) == 0
    assert main(["plan", "--base", "HEAD", "--fail-on", ",".join({*GATES} - {gate})]) == 0
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD", "--fail-on", gate]) == 1
    captured = capsys.readouterr()
    agree = f"to agree, set the label ipamc/{gate}, or use --allow ipamc/{gate}"
    assert captured.err.endswith(f"refused: {said}; {agree}\n")
    assert captured.out.startswith("blue: ")
    assert main(["plan", "--base", "HEAD", "--fail-on", gate, "--allow", f"bug,ipamc/{gate}"]) == 0


def test_a_renumber_fails_only_where_it_begins(repository: Path) -> None:
    """One approval is for both changes: that of `--renumber`, and that of `--settle`."""
    assert main(["lock", "blue", "--renumber", "n1"]) == 0
    assert main(["plan", "--base", "HEAD", "--fail-on", "renumber"]) == 1
    commit()
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["plan", "--base", "HEAD", "--fail-on", "renumber"]) == 0
    assert main(["lock", "blue", "--settle", "n1"]) == 0
    assert main(["plan", "--base", "HEAD", "--fail-on", "renumber"]) == 0
    assert main(["lock", "blue", "--renumber", "n2"]) == 0
    assert main(["lock", "blue", "--settle", "n2"]) == 0
    assert main(["plan", "--base", "HEAD", "--fail-on", "renumber"]) == 1


def test_a_pool_that_runs_short_fails_where_it_gets_worse(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "{name: n2}", ", ".join(f"{{name: n{number}}}" for number in range(2, 31)))
    assert main(["plan", "--base", "HEAD", "--fail-on", "capacity"]) == 1
    assert (
        "refused: blue: 1 pool with little room left (--fail-on capacity): a (IPv4)\n"
        in capsys.readouterr().err
    )
    assert main(["compile"]) == 0
    commit()
    assert main(["plan", "--base", "HEAD", "--fail-on", "capacity"]) == 0


@pytest.mark.usefixtures("repository")
def test_words_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--fail-on", "renumber,typo"]) == 64
    assert (
        "'typo' is not one of renumber, rename, release, follow, leave, delete-cluster, weaker, disputed, capacity"
        in capsys.readouterr().err
    )
    assert main(["plan", "--fail-on", ",".join(GATES)]) == 0


def test_the_plan_of_other_clusters_is_printed_beside_a_refused_one(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "10.0.0.0/22", "10.9.0.0/22", name="red")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    assert main(["plan", "--detailed-exitcode", "--base", "HEAD"]) == 1
    captured = capsys.readouterr()
    assert "+ n3 10.0.0.64/27 a first fit\n" in captured.out
    assert "red: refused: 1 error, nothing to compare\n" in captured.out
    assert "error[IPC0410]" in captured.err
    assert captured.err.endswith("error: red: refused: 1 error, nothing to compare\n")


# Clusters that come, go, and change their names.


def test_a_new_cluster(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(repository, "green")
    assert main(["plan", "--base", "HEAD", "--detailed-exitcode"]) == 2
    out = capsys.readouterr().out
    assert "green: 0 renumbered · +2 · −0 · 0 unchanged; new: HEAD has no such cluster\n" in out  # noqa: RUF001 - a minus
    assert plan_of(capsys, "--base", "HEAD", "green")["green"]["status"] == "new"


@pytest.mark.usefixtures("repository")
def test_a_deleted_folder_of_a_stranger_is_quoted_in_commands(capsys: pytest.CaptureFixture[str]) -> None:
    git("mv", "clusters/red", "clusters/x;id")
    commit()
    git("rm", "-rq", "clusters/x;id")
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "git checkout HEAD -- 'clusters/x;id'\n" in capsys.readouterr().err


@pytest.mark.usefixtures("repository")
def test_a_deleted_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    git("rm", "-rq", "clusters/red")
    assert main(["plan", "--base", "HEAD"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(
        "red: deleted: HEAD has it, with 2 nodes and 2 blocks; applied objects stay in the cluster."
    )
    assert captured.err.endswith(
        "error: red: deleted: HEAD has it, with 2 nodes and 2 blocks; applied objects stay in the cluster."
        " To restore it: git checkout HEAD -- clusters/red\n"
        "refused: red: the cluster was deleted with its lock;"
        " to agree, set the label ipamc/delete-cluster, or use --allow ipamc/delete-cluster\n"
    )
    assert main(["plan", "--base", "HEAD", "red"]) == 1
    allowed = ["plan", "--base", "HEAD", "--allow-deleted"]
    assert main([*allowed, "--detailed-exitcode", "red"]) == 2
    assert main([*allowed, "red"]) == 0
    assert main([*allowed, "--fail-on", "leave", "red"]) == 1
    assert main(["plan", "--base", "HEAD", "blu"]) == 64
    assert main(["plan", "red"]) == 64


def test_the_last_cluster_may_be_deleted(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("rm", "-rq", "clusters")
    assert not (repository / "clusters").exists()
    assert list(plan_of(capsys, "--base", "HEAD")) == ["blue", "red"]
    commit()
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "there is no folder clusters/ here" in capsys.readouterr().err


def test_a_renamed_cluster_is_compared_with_what_it_was(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git("mv", "clusters/red", "clusters/rouge")
    edit(repository, "name: red", "name: rouge", name="rouge")
    edit(repository, '"cluster":"red"', '"cluster":"rouge"', name="rouge", file="ipam.lock")
    found = plan_of(capsys, "--base", "HEAD", "red", "rouge")
    assert list(found) == ["rouge"]
    found = plan_of(capsys, "--base", "HEAD")
    assert list(found) == ["blue", "rouge"]
    assert found["rouge"]["status"] == "renamed"
    assert found["rouge"]["said"] == "compared with red, its name in HEAD"
    assert found["rouge"]["nodes"]["unchanged"] == 2


@pytest.mark.parametrize("instead", ["a line less", "another folder", "a space"])
def test_a_cluster_that_is_not_there_any_more_is_deleted(
    repository: Path, capsys: pytest.CaptureFixture[str], instead: str
) -> None:
    """Whatever stands in other folders, or in its own: its lock is its memory."""
    lock = repository / "clusters/red/ipam.lock"
    if instead == "a space":
        text = lock.read_text().replace('"mode":"cluster-pool"', '"mode":"address-space"')
        lock.write_text(re.sub(r'("node":"n.")', r'\1,"quarantined":"2026-11-21"', text))
        shutil.rmtree(repository / "clusters/red/rendered")
        for path in (repository / "clusters/red").glob("*.yaml"):
            path.unlink()
        space = {"apiVersion": "ipamc/v1alpha1", "kind": "AddressSpace", "metadata": {"name": "red"}}
        space |= {"spec": {"ipv4": {"cidrs": ["10.0.0.0/8"], "prefixLength": 20}}}
        (repository / "clusters/red/space.yaml").write_text(json.dumps(space))
    else:
        git("mv", "clusters/red", "clusters/rouge")
        edit(repository, "name: red", "name: rouge", name="rouge")
        edit(repository, '"cluster":"red"', '"cluster":"rouge"', name="rouge", file="ipam.lock")
        lock = repository / "clusters/rouge/ipam.lock"
        rows = lock.read_text().splitlines(keepends=True)
        left = rows[-1].replace("}", ',"quarantined":"2026-11-21"}')
        lock.write_text("".join(rows[:-1] + ([] if instead == "a line less" else [left])))
        edit(repository, ", {name: n2}", "", name="rouge")
    commit("gone")
    assert main(["compile"]) == 0
    capsys.readouterr()
    found = plan_of(capsys, "--base", "HEAD~1")
    assert found["red"]["status"] == "deleted"
    assert "2 nodes and 2 blocks" in found["red"]["said"]
    assert main(["verify", "--base", "HEAD~1"]) == 1
    assert main(["plan", "--base", "HEAD~1", "--allow", "ipamc/delete-cluster"]) == 0
    assert main(["verify", "--base", "HEAD~1", "--allow", "ipamc/delete-cluster"]) == 0


def test_a_shard_count_that_nothing_needs_is_refused(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice as many are a matter of taste, and a count that shrinks says what stays in the cluster."""
    for shards, refused in ((2, 0), (4, 1), (1 << 10, 1)):
        edit(repository, '"shards":1', f'"shards":{shards}', file="ipam.lock")
        capsys.readouterr()
        assert main(["plan", "--base", "HEAD", "blue"]) == refused
        captured = capsys.readouterr()
        assert f"shards 1 → {shards}" in captured.out
        assert ("refused: blue: the lock has more shards than its nodes need\n" in captured.err) == refused
        git("checkout", "-q", "clusters/blue/ipam.lock")
    edit(repository, '"shards":1', '"shards":64', file="ipam.lock")
    edit(
        repository,
        "  ipam: {mode: cluster-pool}",
        '  ipam: {mode: cluster-pool}\n  admission: {assign: true}\n  kubernetes: {version: "1.36"}',
    )
    assert main(["compile", "blue"]) == 0
    commit("many")
    edit(repository, '"shards":64', '"shards":2', file="ipam.lock")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD", "blue"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "shards 64 → 2" in said
    assert "MutatingAdmissionPolicy" in said
    assert "to remove it: ipamc apply CLUSTER --prune" in said


# Blocks that change hands.


def swap(repository: Path, *, blue: str = "clusters/blue/ipam.lock") -> None:
    lock = repository / blue
    lock.write_text(
        lock.read_text().replace('"n1"', '"other"').replace('"n2"', '"n1"').replace('"other"', '"n2"')
    )


def test_a_swap_by_hand_is_refused(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock is sound by itself: only the base tells that nobody agreed."""
    swap(repository)
    assert main(["compile"]) == 0
    commit("swapped")
    assert main(["compile", "--locked", "--check"]) == 0
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD~1"]) == 1
    captured = capsys.readouterr()
    assert "changed hands without consent" in captured.out
    assert captured.err.startswith(
        "error[IPC0441]: 10.0.0.0/27 of n1: n2 now has 10.0.0.0/27 (held), but no line records a consent\n"
        " --> clusters/blue/ipam.lock:2:10\n"
    )
    assert "\n ::: HEAD~1:clusters/blue/ipam.lock:2:10: held in the base\n" in captured.err
    assert (
        "help: to agree: ipamc lock blue --renumber n1, then --settle once it is drained;"
        " to restore it: git checkout HEAD~1 -- clusters/blue/ipam.lock, then: ipamc compile blue\n"
    ) in captured.err
    assert captured.err.endswith(
        "refused: blue: 2 held blocks changed without a recorded consent:"
        " 10.0.0.0/27 of n1 (n2 has 10.0.0.0/27), 10.0.0.32/27 of n2 (n1 has 10.0.0.32/27)\n"
    )
    taken = plan_of(capsys, "--base", "HEAD~1")["blue"]["taken"]
    assert [(each["line"]["node"], each["by"]["node"]) for each in taken] == [("n1", "n2"), ("n2", "n1")]


def test_a_block_of_another_size_needs_consent_too(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, '"10.0.0.32/27"', '"10.0.0.32/28"', file="ipam.lock")
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "10.0.0.32/27 of n2 (n2 has 10.0.0.32/28 held)" in capsys.readouterr().err


def test_a_block_that_a_stranger_of_the_inventory_takes(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """n1 leaves, and n2, which has a block already, gets its block at once, without quarantine."""
    edit(repository, "[{name: n1}, {name: n2}]", "[{name: n2}]")
    edit(repository, '"node":"n1"', '"node":"n2"', file="ipam.lock")
    edit(repository, '{"block":"10.0.0.32/27","pool":"a","node":"n2"}\n', "", file="ipam.lock")
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "10.0.0.0/27 of n1 (n2 has 10.0.0.0/27)" in capsys.readouterr().err


def test_consent_is_a_line(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Renumber and settle leave a quarantined line; a rename gives blocks to a node that had none."""
    assert main(["lock", "blue", "--renumber", "n1"]) == 0
    assert main(["lock", "blue", "--settle", "n1"]) == 0
    edit(repository, "{name: n2}", "{name: n3}", name="red")
    assert main(["lock", "red", "--rename", "n2=n3"]) == 0
    assert main(["compile"]) == 0
    found = plan_of(capsys, "--base", "HEAD")
    assert [found[name]["taken"] for name in ("blue", "red")] == [[], []]
    assert main(["plan", "--base", "HEAD"]) == 0


@pytest.mark.parametrize(
    ("day", "why"),
    [
        ("2026-11-17", "too long ago for a block that is held in the base"),
        ("2027-01-01", "a day in the future"),
    ],
)
def test_a_quarantine_since_a_day_that_cannot_be(
    repository: Path, capsys: pytest.CaptureFixture[str], day: str, why: str
) -> None:
    """n1 is moved by hand, and its block would be free at once, or much later."""
    edit(repository, '"node":"n1"', f'"node":"n1","quarantined":"{day}","moved":true', file="ipam.lock")
    lock = repository / "clusters/blue/ipam.lock"
    lock.write_text(lock.read_text() + '{"block":"10.0.0.64/27","pool":"a","node":"n1"}\n')
    assert main(["plan", "--base", "HEAD"]) == 1
    err = capsys.readouterr().err
    assert f"10.0.0.0/27 of n1: quarantined since {day}, moved, {why}\n" in err
    assert "HEAD:clusters/blue/ipam.lock:2:10: held in the base\n" in err
    assert main(["plan", "--base", "HEAD", "--allow-released"]) == 1


LEFT = '{"block":"10.0.0.64/27","pool":"a","node":"gone","quarantined":"2026-11-20"}\n'
MOVED = '{"block":"10.0.0.96/27","pool":"a","node":"n1","quarantined":"2026-11-20","moved":true}\n'


@pytest.mark.deep
@pytest.mark.parametrize(
    ("old", "new", "base", "now"),
    [
        (
            'gone","quarantined":"2026-11-20',
            'gone","quarantined":"2026-11-15',
            "quarantined since 2026-11-20",
            "quarantined since 2026-11-15",
        ),
        (
            'gone","quarantined":"2026-11-20',
            'gone","quarantined":"2026-12-20',
            "quarantined since 2026-11-20",
            "quarantined since 2026-12-20",
        ),
        ('20"}', '20","moved":true}', "quarantined since 2026-11-20", "quarantined since 2026-11-20, moved"),
        ("gone", "n9", "quarantined since 2026-11-20", "n9 has 10.0.0.64/27 quarantined since 2026-11-20"),
        ('64/27"', '64/28"', "quarantined since 2026-11-20", "gone has 10.0.0.64/28 quarantined since"),
        (
            ',"quarantined":"2026-11-20"}',
            ',"pending":true}',
            "quarantined since 2026-11-20",
            "gone has 10.0.0.64/27 quarantined since 2026-11-21, pending",
        ),
        (',"moved":true', "", "quarantined since 2026-11-20, moved", "quarantined since 2026-11-20"),
        (
            '20","moved":true',
            '21"',
            "quarantined since 2026-11-20, moved",
            "n1 has 10.0.0.96/27 quarantined since 2026-11-21",
        ),
    ],
)
def test_a_quarantine_that_no_verb_writes(
    repository: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, base: str, now: str
) -> None:
    """Both ends, with their day, are in each format of the plan and of its findings."""
    lock = repository / "clusters/blue/ipam.lock"
    lock.write_text(lock.read_text() + LEFT + MOVED)
    assert main(["compile"]) == 0
    commit("two quarantines")
    edit(repository, old, new, file="ipam.lock")
    capsys.readouterr()
    for style in ("full", "concise", "github", "gitlab", "sarif", "junit", "json"):
        assert main(["plan", "--base", "HEAD", "blue", "--format", style]) == 1
        err = capsys.readouterr().err
        assert "IPC0441" in err
        assert base in err, style
        assert now in err, style
    for output in ("text", "markdown", "html"):
        assert main(["plan", "--base", "HEAD", "blue", "--output", output]) == 1
        out = capsys.readouterr().out
        assert "quarantined 2026-11-20" in out, output
    (found,) = [each for each in plan_of(capsys, "--base", "HEAD")["blue"]["quarantine"] if each["before"]]
    assert found["before"]["since"] == "2026-11-20"


def test_a_held_block_that_is_released_by_hand(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its old block would be free at once, whether n2 is still there and moves, or is gone; no label allows it."""
    edit(repository, '"node":"n2"', '"node":"n2","released":true', file="ipam.lock")
    for turn in range(2):
        assert main(["plan", "--base", "HEAD", "--allow", "ipamc/release,ipamc/renumber,ipamc/leave"]) == 1
        captured = capsys.readouterr()
        assert "! n2 10.0.0.32/27 a held → released\n" in captured.out
        assert "10.0.0.32/27 of n2 (n2 has 10.0.0.32/27 released)\n" in captured.err
        assert (
            "= help: first remove the node, then release its block in another change; to restore"
            in captured.err
        )
        if not turn:
            edit(repository, ", {name: n2}", "")


def test_a_quarantine_that_the_same_change_shortens(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pool is full without the block of who left; in two changes it is given out."""
    edit(repository, "10.0.0.0/22", "10.0.0.0/26")
    edit(repository, ", {name: n2}", "")
    assert main(["compile", "blue"]) == 0
    commit("n2 left")
    edit(repository, "  ipam: {", "  quarantineDays: 0\n  ipam: {")
    text = (repository / "clusters/blue/cluster.yaml").read_text()
    edit(repository, "{name: n1}", "{name: n1}, {name: n3}")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD"]) == 1
    captured = capsys.readouterr()
    assert "quarantineDays 7 → 0" in captured.out
    assert "10.0.0.32/27 of n2 (quarantined since 2026-11-21): n3 now has 10.0.0.32/27 (held)" in captured.err
    assert main(["plan", "--base", "HEAD", "--allow-released"]) == 0
    (repository / "clusters/blue/cluster.yaml").write_text(text)
    assert main(["compile", "blue"]) == 0
    commit("shorter")
    edit(repository, "{name: n1}", "{name: n1}, {name: n3}")
    assert main(["plan", "--base", "HEAD"]) == 0
    assert "out of quarantine and given out again" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["--release", "--rename"])
def test_a_consent_that_leaves_no_line(
    repository: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """n2 left, and waits; in one change its block is freed and given to n3: only a person knows whether that was agreed."""
    edit(repository, ", {name: n2}", "")
    edit(repository, "10.0.0.0/22", "10.0.0.0/26")
    assert main(["compile", "blue"]) == 0
    commit("n2 left")
    edit(repository, "{name: n1}", "{name: n1}, {name: n3}")
    consent = {"--release": "n2", "--rename": "n2=n3"}[verb]
    assert main(["lock", "blue", verb, consent]) == 0
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD"]) == 1
    assert (
        "10.0.0.32/27 of n2 (quarantined since 2026-11-21): n3 now has 10.0.0.32/27 (held), but no line records a consent\n"
        in capsys.readouterr().err
    )
    for allow in ("--allow=ipamc/release", "--allow=bug,ipamc/release", "--allow-released"):
        assert main(["plan", "--base", "HEAD", allow, "--fail-on", "release"]) == 0
    assert (
        main(
            [
                "plan",
                "--base",
                "HEAD",
                "--allow",
                "ipamc/rename,release,ipamc/releases",
                "--fail-on",
                "release",
            ]
        )
        == 1
    )


def test_a_pending_line_agrees_to_no_other_move(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both nodes are to be renumbered; their held blocks are swapped instead."""
    for node in ("n1", "n2"):
        assert main(["lock", "blue", "--renumber", node]) == 0
    commit("two renumbers")
    lock = repository / "clusters/blue/ipam.lock"
    rows = lock.read_text().splitlines(keepends=True)
    for number, row in enumerate(rows):
        if '"pending"' not in row:
            rows[number] = row.replace('"n1"', '"x"').replace('"n2"', '"n1"').replace('"x"', '"n2"')
    lock.write_text("".join(rows))
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "2 held blocks changed without a recorded consent" in capsys.readouterr().err


def test_a_block_that_a_newcomer_gets_without_quarantine(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """n1 is settled by hand: its old block is not kept, but given to n3."""
    assert main(["lock", "blue", "--renumber", "n1"]) == 0
    commit("a renumber")
    edit(repository, '"node":"n1"}', '"node":"n3"}', file="ipam.lock")
    edit(repository, ',"pending":true', "", file="ipam.lock")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "10.0.0.0/27 of n1 (n3 has 10.0.0.0/27)" in capsys.readouterr().err


def test_a_held_block_that_is_pending_instead(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """n1 holds another block at once, and waits for the one that its pods have."""
    lock = repository / "clusters/blue/ipam.lock"
    rows = lock.read_text().splitlines(keepends=True)
    rows[1] = rows[1].replace('"}', '","pending":true}')
    rows.append('{"block":"10.0.0.64/27","pool":"a","node":"n1"}\n')
    lock.write_text("".join(rows))
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "10.0.0.0/27 of n1 (n1 has 10.0.0.0/27 pending)" in capsys.readouterr().err


def test_a_cluster_that_leaves_its_address_space(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "  ipam: {", "  addressSpace: fabric\n  ipam: {")
    assert main(["compile"]) == 0
    commit("a space")
    edit(repository, "  addressSpace: fabric\n", "")
    (setting,) = plan_of(capsys, "--base", "HEAD")["blue"]["lock"]
    assert setting == {"name": "addressSpace", "old": "fabric", "new": "(none)"}


ADOPT = """\
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: q}
spec: {unlisted: true, ipv4: {cidrs: [10.9.0.0/22], blockSize: 27}}
"""


def test_the_name_of_a_pool_of_the_operator_hides_no_swap(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pool a is renamed, and the operator's pool gets its name: what was rendered was not the operator's."""
    edit(repository, "mode: cluster-pool", "mode: cluster-pool, operator: adopt")
    cluster = repository / "clusters/blue/cluster.yaml"
    cluster.write_text(cluster.read_text() + ADOPT)
    assert main(["compile"]) == 0
    commit("adopt")
    edit(repository, "metadata: {name: a}", "metadata: {name: z}")
    edit(repository, "metadata: {name: q}", "metadata: {name: a}")
    swap(repository)
    assert main(["compile"]) == 0
    capsys.readouterr()
    found = plan_of(capsys, "--base", "HEAD")["blue"]
    assert found["nodes"]["renumbered"] == 2
    assert found["takenBack"] == []
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "2 held blocks changed without a recorded consent" in capsys.readouterr().err


# Where git cannot help.


def test_no_repository(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").rename(repository / "elsewhere")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repository.parent))
    assert main(["plan"]) == 0
    capsys.readouterr()
    assert main(["plan", "--base", "main"]) == 1
    assert capsys.readouterr() == (
        "",
        "error: this is not a git repository, and --base needs one: omit --base to compare with the disk\n",
    )


LISTED = "fetch it, or check its name: git branch --all lists the branches"


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("origin/main", "did you mean 'main'?"),
        (
            "upstream/next",
            "this clone has no remote 'upstream'; git branch --all lists the branches that it has",
        ),
        ("--upload-pack=x", LISTED),
        ("HEAD:clusters", LISTED),
    ],
)
@pytest.mark.usefixtures("repository")
def test_an_unknown_revision(name: str, way_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", f"--base={name}"]) == 1
    assert capsys.readouterr() == (
        "",
        f"error: git does not know revision {name!r} here: {way_out}\n",
    )


def test_a_shallow_clone_without_the_base(
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = git("rev-parse", "HEAD")
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    commit()
    clone = tmp_path_factory.mktemp("clone")
    git("clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)
    capsys.readouterr()
    assert main(["plan", "--base", first]) == 1
    assert (
        f"error: this clone is shallow and has no {first!r}: git fetch --unshallow" in capsys.readouterr().err
    )
    git("fetch", "-q", "--unshallow")
    assert main(["plan", "--base", first]) == 0


def test_from_a_folder_below(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(repository, "{name: n2}", "{name: n2}, {name: n3}")
    monkeypatch.chdir(repository / "clusters" / "blue")
    (found,) = plan_of(capsys, "--base", "HEAD", ".").values()
    assert [each["node"] for each in found["added"]] == ["n3"]
    assert found["rendered"]["written"] == ["ciliumnodes/000/ciliumnodes.yaml"]


# Every plan for programs keeps its schema.


def strict(schema: Any) -> Any:
    """Return a schema in which no object may have a field that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    return (
        {**inner, "additionalProperties": False}
        if schema.get("type") == "object" and "properties" in schema
        else inner
    )


SCHEMA = json.loads(disk.assets("schemas")["plan.output.json"])


@pytest.mark.parametrize("name", CASES)
def test_plans_keep_their_schema(name: str) -> None:
    case = casefile.load(name)
    wanted = casefile.Case(case.header, {**case.files, "want/plan.json": ""})
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(
        json.loads(casefile.compiled(wanted).produced["plan.json"])
    )


def test_the_schema_is_one_and_describes_all_that_the_cases_show() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    texts = [text for name in CASES for text in casefile.load(name).files.values()]
    origins = {origin for text in texts for origin in re.findall(r'"origin": "(.*)"', text)}
    assert origins <= set(SCHEMA["$defs"]["added"]["properties"]["origin"]["enum"])


def test_the_schema_lists_the_words_of_the_types() -> None:
    shapes = {name: shape["properties"] for name, shape in SCHEMA["$defs"].items()}
    assert set(shapes["added"]["origin"]["enum"]) == set(Origin) - {Origin.RENUMBER}
    assert set(shapes["line"]["state"]["enum"]) == set(State)
    assert set(shapes["compared"]["pools"]["items"]["properties"]["change"]["enum"]) == set(PoolStatus)
    assert {*shapes["compared"]["status"]["enum"], *shapes["other"]["status"]["enum"]} == set(PlanStatus)


# Comments.


class Text(HTMLParser):
    """The text of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
        self.found.append(("tag", tag))

    def handle_data(self, data: str) -> None:
        self.found.append(("text", data))


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=40))
def test_a_name_is_text(name: str) -> None:
    """Whatever a name is, it reads as itself, in one element, with no character that Markdown acts on."""
    shown = code(name)
    parser = Text()
    parser.feed(shown)
    parser.close()
    assert parser.found == [("tag", "code"), ("text", name)]
    inner = re.sub(r"&#\d+;", "", shown.removeprefix("<code>").removesuffix("</code>"))
    assert not set(inner) & set("`*_[]<>|\\!#@~&\"'\n")


@pytest.mark.parametrize("clusters", [1, 30, 3000])
def test_a_comment_fits_and_says_what_it_leaves_out(clusters: int) -> None:
    said = "x" * 500
    document = PlanReport(
        base="main",
        clusters=tuple(
            ClusterReport(name=f"cluster-{number:04}", status=PlanStatus.REFUSED, said=said)
            for number in range(clusters)
        ),
    )
    text = plan_markdown.render(document)
    assert len(text) <= LONGEST_PLAN_COMMENT + 200
    shown = text.count(said)
    assert (f"Cut to fit into a comment: {clusters - shown:,} clusters" in text) == (shown < clusters)
    assert f"{clusters:,} cluster" in text.splitlines()[2]


def test_a_long_list_is_cut_and_said_so(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(repository, "10.0.0.0/22", "10.0.0.0/16")
    edit(
        repository,
        "{name: n2}",
        ", ".join(f"{{name: node-with-a-rather-long-name-{number}}}" for number in range(1500)),
    )
    assert main(["plan", "--output", "markdown", "blue"]) == 0
    text = capsys.readouterr().out
    assert len(text) <= LONGEST_PLAN_COMMENT
    shown = text.count("+ node-with-a-rather")
    assert shown in ROWS_TRIED
    assert f"… and {1500 - shown:,} more" in text
    assert text.endswith(
        f"**Cut to fit into a comment: {1500 - shown:,} rows left out.** The whole plan: <code>ipamc plan blue</code>\n"
    )
    assert "### ✅ 0 renumbered · +1,500 · −1 · 1 unchanged\n" in text  # noqa: RUF001 - a minus


def test_comments_about_different_clusters_have_different_marks() -> None:
    assert mark(PlanReport(base="", clusters=())) == "<!-- ipamc:plan -->"
    scopes = [("a--b", "c"), ("a", "b"), ("a b",), ("a",)]
    marks = {mark(PlanReport(base="", clusters=(), scope=scope)) for scope in scopes}
    assert len(marks) == len(scopes)
    assert all(re.fullmatch("<!-- ipamc:plan [0-9a-f]{32} -->", found) for found in marks)


def test_the_names_of_clusters_do_not_fill_the_comment() -> None:
    """300 names of 250 characters fill one, and the counts come before them all; the worst cluster comes first."""
    names = tuple(f"{'c' * 245}-{number:03}" for number in range(300))
    clusters = [
        ClusterReport(name=name, status=PlanStatus.NEW, said="it is new", findings=()) for name in names[:-1]
    ]
    clusters.append(ClusterReport(name=names[-1], status=PlanStatus.REFUSED, said="2 errors"))
    text = plan_markdown.render(PlanReport(base="main", clusters=tuple(clusters), scope=names))
    first, _, heading, _, worst, *_ = text.splitlines()
    assert len(first) == len("<!-- ipamc:plan  -->") + 32
    assert heading.startswith("### ⛔ 1 cluster refused · 0 renumbered · +0")
    assert names[-1] in worst
    assert len(text) <= LONGEST_PLAN_COMMENT + 200
    assert "<code>ipamc plan --clusters-from FILE --base main</code>" in text


def test_what_makes_a_cluster_less_safe_needs_its_label(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test for all clusters counts, too; it is in no folder of a cluster."""
    tests = {"apiVersion": "ipamc/v1alpha1", "kind": "Tests", "tests": [{"nothingIn": ["10.9.0.0/16"]}]}
    (repository / "clusters/tests.yaml").write_text(json.dumps(tests))
    commit("a test")
    gate = ["--fail-on", "weaker", "--base", "HEAD"]
    assert main(["plan", *gate]) == 0
    (repository / "clusters/tests.yaml").unlink()
    edit(repository, "ipam: {mode: cluster-pool}", "ipam: {mode: cluster-pool}\n  budget: {leave: 100}")
    capsys.readouterr()
    assert main(["plan", *gate]) == 1
    captured = capsys.readouterr()
    assert "less safe than before\n    ! test nothing in 10.9.0.0/16 asserted → removed\n" in captured.out
    assert "    ! budget.leave" in captured.out
    assert "refused: blue: less safe than before (--fail-on weaker): budget.leave, test " in captured.err
    assert main(["plan", *gate, "--allow", "ipamc/weaker"]) == 0
    capsys.readouterr()
    assert plan_of(capsys, "--base", "HEAD")["blue"]["weaker"][1]["name"] == "budget.leave"


@pytest.mark.parametrize(
    ("path", "text", "about"),
    [
        (".sourceignore", "clusters/blue/\n", {"blue", "red"}),
        ("clusters/.sourceignore", "blue/\n", {"blue", "red"}),
        ("clusters/blue/.sourceignore", "rendered/\n", {"blue"}),
        ("clusters/red/rendered/.argocd-source-red.yaml", "kustomize: {nameSuffix: x}\n", {"red"}),
        (".gitattributes", "clusters/*/ipam.lock -diff\n", {"blue", "red"}),
        (".gitattributes", "ipam.lock linguist-generated\n", {"blue", "red"}),
        ("clusters/red/.gitattributes", "*.yaml linguist-generated=true\n", {"red"}),
        (".gitattributes", "**/rendered/** linguist-generated\n", set()),
        ("clusters/red/.gitattributes", "*.yaml diff\n", set()),
        ("docs/.argocd-source.txt", "x\n", set()),
    ],
)
def test_a_file_that_hides_others_needs_the_label(
    repository: Path, capsys: pytest.CaptureFixture[str], path: str, text: str, about: set[str]
) -> None:
    (repository / path).parent.mkdir(exist_ok=True)
    (repository / path).write_text(text)
    commit("hides")
    gate = ["--fail-on", "weaker", "--base", "HEAD~1"]
    assert main(["plan", *gate]) == bool(about)
    assert main(["plan", *gate, "--allow", "ipamc/weaker"]) == 0
    capsys.readouterr()
    found = plan_of(capsys, "--base", "HEAD~1")
    assert {name for name, each in found.items() if each["weaker"]} == about
    assert main(["ci", "matrix", "--output", "names", "--base", "HEAD~1"]) == 0
    assert set(capsys.readouterr().out.split()) >= about
    (repository / path).unlink()
    commit("shows")
    assert main(["plan", *gate]) == 0


def test_single_addresses_of_a_block_are_never_fewer(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(repository, "{mode: cluster-pool}", "{mode: crd}")
    shutil.rmtree(repository / "clusters/blue/rendered")
    (repository / "clusters/blue/ipam.lock").unlink()
    commit("crd")
    assert main(["compile", "blue"]) == 0
    edit(repository, '"node":"n1"', '"node":"n1","addresses":8', file="ipam.lock")
    commit("some")
    for number, refused in (("4", True), ("16", False)):
        edit(repository, '"addresses":8', f'"addresses":{number}', file="ipam.lock")
        capsys.readouterr()
        assert main(["plan", "--base", "HEAD", "blue"]) == refused
        captured = capsys.readouterr()
        assert f"n1 10.0.0.0/27 8 → {number}" in captured.out
        assert ("refused: blue: 1 block with fewer single addresses\n" in captured.err) == refused
        git("checkout", "-q", "clusters/blue")


def test_each_block_that_is_released_by_hand_is_in_the_headline(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = repository / "clusters/blue/ipam.lock"
    held = lock.read_text()
    lock.write_text(re.sub(r'("node":"n.")', r'\1,"quarantined":"2026-11-20"', held))
    edit(repository, "nodes: [{name: n1}, {name: n2}]", "nodes: [{name: n3}]")
    assert main(["compile", "blue"]) == 0
    commit("they left")
    lock.write_text(lock.read_text().replace('"quarantined":"2026-11-20"', '"released":true'))
    capsys.readouterr()
    assert main(["plan", "--base", "HEAD", "--fail-on", "release", "blue"]) == 1
    captured = capsys.readouterr()
    assert "2 released" in captured.out.split("\n", 1)[0]
    assert "- n1 10.0.0.0/27  a quarantined 2026-11-20 → released\n" in captured.out
    assert "2 blocks released early (--fail-on release): 10.0.0.0/27, 10.0.0.32/27;" in captured.err
    assert main(["verify", "--base", "HEAD", "blue"]) == 1
    assert capsys.readouterr().err.count("quarantine ended early") == 2


def test_a_raised_version_stands_in_the_plan(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = repository / "clusters/blue/cluster.yaml"
    was = re.search(r'version: "1\.(\d+)"', file.read_text())
    assert was
    for minor, title in (
        (int(was[1]) + 1, "  lock\n    ~ "),
        (int(was[1]) - 1, "  less safe than before\n    ! "),
    ):
        file.write_text(file.read_text().replace(was[0], f'version: "1.{minor}"'))
        assert main(["compile", "blue"]) == 0
        capsys.readouterr()
        main(["plan", "blue", "--base", "HEAD"])
        assert f"{title}cilium.version 1.{was[1]} → 1.{minor}\n" in capsys.readouterr().out
        file.write_text(file.read_text().replace(f'version: "1.{minor}"', was[0]))
