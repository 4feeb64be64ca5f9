"""Locks through real git: merge, rebase, cherry-pick and revert with the driver that `ipamc init` sets up, and `lock --onto` where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ipamc.workspace import lock_onto
from tests.lock.test_merge import lock
from tests.support import in_process
from tests.support.counting import counted
from tests.support.forking import serve

ROOT = Path(__file__).parents[2]
LOCK = "clusters/lab/ipam.lock"


class Repository:
    """A git repository with one cluster, in which `ipamc` is on the PATH.

    Git starts the driver as a process of its own; what a test itself asks of ipamc is called in this process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a repository"
        self.folder.mkdir(exist_ok=True)
        tools = folder / "bin"
        tools.mkdir(exist_ok=True)
        (tools / "ipamc").write_text(f'#!/bin/sh\nexec {serve()}/ipamc "$@"\n')
        (tools / "ipamc").chmod(0o755)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "compiler"),
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "SOURCE_DATE_EPOCH": "1795000000",
        }
        for name in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.org"}

    def run(self, *command: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert not fine or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def git(self, *arguments: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("git", *arguments, fine=fine)

    def ipamc(self, *arguments: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        done = in_process.ipamc(*arguments, cwd=self.folder, environment=self.environment)
        assert not fine or done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done

    def commit(self, *, nodes: tuple[str, ...] = (), file: str = "more") -> None:
        """Compile nodes in, and commit."""
        if nodes:
            items = [{"name": node} for node in nodes]
            text = json.dumps({"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": items})
            (self.folder / f"clusters/lab/{file}.yaml").write_text(text)
        self.ipamc("compile")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", file)

    def branch(self, name: str, start: str, *, nodes: tuple[str, ...]) -> None:
        self.git("checkout", "-q", "-b", name, start)
        self.commit(nodes=nodes, file=name)

    def held(self, revision: str = "") -> dict[str, str]:
        """Return the held block of each node, of a revision or in the work tree."""
        text = self.git("show", f"{revision}:{LOCK}").stdout if revision else (self.folder / LOCK).read_text()
        lines = [json.loads(row) for row in text.splitlines()[1:]]
        assert len({line["block"] for line in lines}) == len(lines)
        return {
            line["node"]: line["block"]
            for line in lines
            if not line.keys() & {"quarantined", "pending", "released"}
        }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches that each add nodes: each took the blocks that the other took, too."""
    folder = tmp_path_factory.mktemp("made")
    repository = Repository(folder)
    repository.git("init", "-q", "-b", "main")
    repository.ipamc("init", "lab")
    repository.commit(nodes=("m",), file="nodes")
    repository.branch("one", "main", nodes=("b1", "b2"))
    repository.branch("two", "main", nodes=("a1", "c1"))
    return folder


@pytest.fixture
def repository(made: Path, tmp_path: Path) -> Repository:
    """Return a repository of one's own, as copied from one that was made once."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Repository(tmp_path)


@pytest.mark.parametrize(
    ("start", "command"),
    [
        ("one", ("merge", "-m", "merged", "two")),
        ("two", ("merge", "-m", "merged", "one")),
        ("one", ("rebase", "two")),
        ("two", ("rebase", "one")),
        ("one", ("cherry-pick", "two")),
        ("two", ("cherry-pick", "one")),
    ],
)
def test_two_branches_meet_without_a_person(
    repository: Repository, start: str, command: tuple[str, ...]
) -> None:
    before = repository.held("main")
    repository.git("checkout", "-q", "-b", "here", start)
    done = repository.git(*command)
    assert f"{LOCK}: dropped 10.244.1.0/24 of node b1, which a1 has" in done.stdout + done.stderr
    kept = repository.held()
    assert (kept["m"], kept["a1"]) == (before["m"], "10.244.1.0/24")
    repository.commit()
    held = repository.held()
    assert held.keys() == {"m", "a1", "b1", "b2", "c1"}
    assert {node: held[node] for node in kept} == kept
    repository.ipamc("compile", "--locked", "--check")


def test_what_the_trunk_has_published_stays(repository: Repository) -> None:
    repository.git("config", "ipamc.trunk", "one")
    repository.git("checkout", "-q", "two")
    done = repository.git("rebase", "one")
    assert "dropped 10.244.1.0/24 of node a1, which b1 has" in done.stdout + done.stderr
    repository.commit()
    published = repository.held("one")
    assert {node: repository.held()[node] for node in published} == published


def test_a_reverted_merge_brings_lines_back_and_loses_none(repository: Repository) -> None:
    repository.git("checkout", "-q", "two")
    repository.git("revert", "--no-edit", "HEAD")
    repository.ipamc("lock", "--check")
    assert repository.held() == repository.held("main")


def as_forges_do(repository: Repository, how: str) -> None:
    """Have git merge locks by its own `union`, or as `text`, from now on."""
    (repository.folder / ".git/info").mkdir(exist_ok=True)
    (repository.folder / ".git/info/attributes").write_text(f"ipam.lock merge={how}\n")


def sound(repository: Repository) -> dict[str, str]:
    """Compile and commit; give who holds what in a repository where that leaves nothing to do."""
    repository.commit()
    repository.ipamc("compile", "--locked", "--check")
    return repository.held()


EVERYONE = {"m", "a1", "b1", "b2", "c1"}


def test_lock_onto_repairs_what_a_forge_merged_as_text(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "forged", "one")
    as_forges_do(repository, "union")
    repository.git("merge", "-q", "-m", "forged", "two")
    refused = repository.ipamc("compile", fine=False)
    assert (refused.returncode, "IPC0407" in refused.stderr) == (1, True)
    assert "b1" in refused.stderr
    assert "a1" in refused.stderr
    printed = repository.ipamc("lock", "--onto", "two", "--check", fine=False)
    assert (
        printed.returncode,
        "dropped 10.244.1.0/24 of node b1, which a1 has on two" in printed.stderr,
    ) == (
        1,
        True,
    )
    assert repository.ipamc("compile", fine=False).returncode == 1
    repository.ipamc("lock", "--onto", "two")
    held = sound(repository)
    assert held.keys() == EVERYONE
    assert held["a1"] == "10.244.1.0/24"


def test_lock_onto_repairs_a_broken_merge_below_head(repository: Repository) -> None:
    as_forges_do(repository, "union")
    repository.git("checkout", "-q", "-b", "forged", "one")
    repository.git("merge", "-q", "-m", "forged", "two")
    repository.git("commit", "-q", "--allow-empty", "-m", "nobody looked")
    repository.ipamc("lock", "--onto", "HEAD")
    assert sound(repository).keys() == EVERYONE
    repository.git("checkout", "-q", "-b", "three", "main")
    repository.commit(nodes=("d1",), file="three")
    as_forges_do(repository, "ipamc")
    repository.git("merge", "-m", "the broken merge is in its history", "forged")
    assert sound(repository).keys() == {*EVERYONE, "d1"}


def criss_cross(repository: Repository, depth: int) -> None:
    """Merge two branches into each other again and again, each time with the lock that a forge broke."""
    as_forges_do(repository, "union")
    repository.git("checkout", "-q", "-b", f"forged-{depth}", "one")
    repository.git("merge", "-q", "-m", "forged", "two")
    sides = ["one", "two"]
    for level in range(depth):
        sides = [
            repository.git(
                "commit-tree", "HEAD^{tree}", "-p", here, "-p", there, "-m", f"{level}"
            ).stdout.strip()
            for here, there in (sides, sides[::-1])
        ]
    repository.git("reset", "-q", "--hard", sides[0])


@pytest.mark.parametrize("depth", [3, 9])
def test_lock_onto_looks_at_a_commit_once(repository: Repository, depth: int) -> None:
    """Two branches that were merged into each other have as many ways back as two to the number of merges."""
    criss_cross(repository, depth)
    with counted(lock_onto, "merge") as merges:
        repository.ipamc("lock", "--onto", "HEAD")
    assert merges.call_count <= 2 * depth
    assert sound(repository).keys() == EVERYONE


def test_lock_onto_looks_at_so_many_commits(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    criss_cross(repository, 9)
    monkeypatch.setattr(lock_onto, "MOST_COMMITS_SEARCHED", 5)
    refused = repository.ipamc("lock", "--onto", "HEAD", fine=False)
    assert refused.returncode == 1
    assert "neither here nor in earlier commits" in refused.stderr


def test_lock_onto_repairs_a_squashed_merge(repository: Repository) -> None:
    as_forges_do(repository, "union")
    repository.git("checkout", "-q", "-b", "forged", "one")
    repository.git("merge", "-q", "--squash", "two")
    repository.git("commit", "-q", "-m", "squashed")
    repository.ipamc("lock", "--onto", "HEAD")
    held, published = sound(repository), repository.held("one")
    assert held.keys() == EVERYONE
    assert {node: held[node] for node in published} == published


@pytest.mark.parametrize("command", [("merge", "two"), ("rebase", "two"), ("cherry-pick", "two")])
def test_lock_onto_goes_on_where_a_merge_without_the_driver_stopped(
    repository: Repository, command: tuple[str, ...]
) -> None:
    as_forges_do(repository, "text")
    repository.git("checkout", "-q", "-b", "here", "one")
    assert repository.git(*command, fine=False).returncode == 1
    assert "<<<<<<<" in (repository.folder / LOCK).read_text()
    printed = repository.ipamc("lock", "--onto", "two").stderr
    assert "which a1 has on two" in printed
    held, published = repository.held(), repository.held("two")
    assert held.keys() == EVERYONE
    assert {node: held[node] for node in published} == published
    repository.ipamc("compile")
    repository.ipamc("compile", "--locked", "--check")


def test_lock_onto_twice_and_where_there_is_nothing_to_merge(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "here", "one")
    before = (repository.folder / LOCK).read_text()
    repository.ipamc("lock", "--onto", "main")
    assert (repository.folder / LOCK).read_text() == before
    repository.git("merge", "--no-commit", "two")
    repository.ipamc("lock", "--onto", "two")
    after = (repository.folder / LOCK).read_text()
    repository.ipamc("lock", "--onto", "two")
    assert (repository.folder / LOCK).read_text() == after
    assert repository.held().keys() == EVERYONE


def test_lock_onto_restores_a_lost_lock(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "here", "one")
    before = (repository.folder / LOCK).read_text()
    (repository.folder / LOCK).unlink()
    repository.ipamc("lock", "--onto", "main")
    assert (repository.folder / LOCK).read_text() == before


def test_lock_onto_wants_the_inputs_merged(repository: Repository) -> None:
    """Else it would take the newcomers of the other branch for leavers."""
    repository.git("checkout", "-q", "-b", "here", "one")
    before = (repository.folder / LOCK).read_text()
    refused = repository.ipamc("lock", "--onto", "two", fine=False)
    assert refused.returncode == 1
    assert (
        refused.stderr
        == "error: clusters/lab: nodes of two are not in the inventory here: a1, c1; merge the inputs first: git merge two\n"
    )
    assert (repository.folder / LOCK).read_text() == before


def test_lock_onto_says_clearly_what_it_cannot_do(repository: Repository, tmp_path: Path) -> None:
    unknown = repository.ipamc("lock", "--onto", "nope", fine=False)
    assert (unknown.returncode, unknown.stderr) == (
        1,
        "error: clusters/lab: git does not know revision 'nope' here: fetch it, or check its name: git branch --all lists the branches\n",
    )
    shallow = tmp_path / "shallow"
    repository.git("checkout", "-q", "one")
    repository.git(
        "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{repository.folder}", str(shallow)
    )
    repository.folder = shallow
    apart = repository.ipamc("lock", "--onto", "origin/two", fine=False)
    assert apart.returncode == 1
    assert "fetch more history" in apart.stderr


def test_one_node_renumbered_to_two_places_is_left_to_a_person(repository: Repository) -> None:
    for name, taken in (("left", "x1"), ("right", "")):
        repository.git("checkout", "-q", "-b", name, "main")
        if taken:
            repository.commit(nodes=(taken,), file=name)
        repository.ipamc("lock", "lab", "--renumber", "m")
        repository.commit()
    done = repository.git("merge", "left", fine=False)
    assert done.returncode == 1
    assert "conflict: node m is renumbered to two places" in done.stdout + done.stderr
    assert "<<<<<<<" in (repository.folder / LOCK).read_text()
    assert repository.ipamc("compile", fine=False).returncode == 1


# What git does with the settings of `ipamc init`.

ODD = "it's a $(touch x) place/lab/ipam.lock"


def fork(repository: Repository, ours: bytes, theirs: bytes) -> subprocess.CompletedProcess[str]:
    """Merge two locks that stand at an odd path."""
    path = repository.folder / ODD
    path.parent.mkdir(parents=True)
    for branch, text in (("base", lock("")), ("theirs", theirs), ("ours", ours)):
        repository.git("checkout", "-q", "-b", branch, "main" if branch == "base" else "base")
        path.write_bytes(text)
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", branch)
    return repository.git("merge", "-m", "merged", "theirs", fine=False)


def test_the_driver_is_told_odd_paths_as_they_are(repository: Repository) -> None:
    done = fork(repository, lock("0/26 b"), lock("0/26 a"))
    assert done.returncode == 0
    assert (
        f"{ODD}: dropped 10.0.0.0/26 of node b, which a has; the next compile places it again\n"
        in done.stdout + done.stderr
    )
    assert (repository.folder / ODD).read_bytes() == lock("0/26 a")
    assert not (repository.folder / "x").exists()


def test_what_is_no_lock_is_left_to_a_person(repository: Repository) -> None:
    done = fork(repository, lock("0/26 b"), b"rubbish\n")
    assert done.returncode == 1
    assert f"{ODD}: conflict: theirs: line 1: not the header line of a lock" in done.stdout + done.stderr
    assert (repository.folder / ODD).read_text().startswith("<<<<<<< ours\n")


def test_the_trunk_is_where_the_clones_origin_points(repository: Repository) -> None:
    clone = repository.folder.parent / "clone"
    repository.git("checkout", "-q", "one")
    repository.git("clone", "-q", str(repository.folder), str(clone))
    repository.folder = clone
    repository.ipamc("init")
    repository.git("checkout", "-q", "two")
    done = repository.git("merge", "-m", "merged", "origin/one")
    assert (
        "dropped 10.244.1.0/24 of node a1, which b1 has on the trunk; the next compile places it again"
        in done.stdout + done.stderr
    )
    published = repository.held("origin/one")
    repository.commit()
    assert {node: repository.held()[node] for node in published} == published


def test_the_driver_is_quick(repository: Repository) -> None:
    code = "import atexit, sys, ipamc.cli; atexit.register(lambda: print(*sys.modules)); sys.exit(ipamc.cli.main(sys.argv[1:]))"
    for name, text in (("O", b""), ("A", lock("0/26 b")), ("B", lock("64/26 a"))):
        (repository.folder / name).write_bytes(text)
    done = repository.run(sys.executable, "-c", code, "merge-driver", "O", "A", "B", "ipam.lock")
    assert (repository.folder / "A").read_bytes() == lock("0/26 b, 64/26 a")
    assert not {"yaml", "jinja2", "jsonschema", "netaddr", "ipamc.pipeline"} & set(done.stdout.split())


# What was on the trunk, and left it.


def a_node_came_and_left(repository: Repository) -> None:
    """On main, whose remote was added by hand; `one` gave its block to a newcomer meanwhile."""
    repository.git("init", "-q", "--bare", "../origin")
    repository.git("remote", "add", "origin", "../origin")
    repository.git("checkout", "-q", "main")
    repository.commit(nodes=("gone",), file="gone")
    (repository.folder / "clusters/lab/gone.yaml").unlink()
    repository.commit(file="left")
    repository.git("push", "-q", "origin", "main")
    assert repository.git("rev-parse", "--verify", "-q", "origin/HEAD", fine=False).returncode
    repository.git("checkout", "-q", "one")


@pytest.mark.parametrize("known", [False, True])
def test_a_block_in_quarantine_stays_there(repository: Repository, *, known: bool) -> None:
    a_node_came_and_left(repository)
    if known:
        assert "ipamc.trunk: origin/main\n" in repository.ipamc("init").stderr
        assert repository.git("config", "ipamc.trunk").stdout == "origin/main\n"
    done = repository.git("rebase", "main")
    assert f"{LOCK}: dropped 10.244.1.0/24 of node b1, which gone left" in done.stdout + done.stderr
    held = sound(repository)
    assert "10.244.1.0/24" not in held.values()
    assert held.keys() == {"m", "b1", "b2"}
    repository.ipamc("plan", "--base", "main")


def test_a_plan_refuses_a_quarantine_that_git_ended(repository: Repository) -> None:
    a_node_came_and_left(repository)
    lock = (repository.folder / LOCK).read_text()
    repository.git("merge", "-q", "-s", "ours", "main", "-m", "ours", fine=False)
    (repository.folder / LOCK).write_text(lock)
    repository.ipamc("compile")
    done = repository.ipamc("plan", "--base", "main", fine=False)
    assert done.returncode == 1
    assert "IPC0441" in done.stderr
    assert "1 quarantine ended early" in done.stderr
    repository.ipamc("plan", "--base", "main", "--allow-released")


def test_a_clone_without_the_driver_is_told_so(repository: Repository) -> None:
    said = "note: this clone has no merge driver, so git merges locks as text: run ipamc init\n"
    assert said not in repository.ipamc("compile").stderr
    repository.git("config", "--unset", "merge.ipamc.driver")
    assert said in repository.ipamc("compile").stderr
    assert said not in repository.ipamc("compile", "--locked", "--check").stderr
    repository.environment["CI"] = "true"
    assert said not in repository.ipamc("compile").stderr


# A branch that was open for three weeks.

TODAY, OLD = "2026-11-18", "2026-10-28"
DAY = 24 * 60 * 60


def an_old_branch(repository: Repository, *, main_goes_on: bool) -> None:
    """Three weeks ago `z` left on main, and then `y` on the branch `old`, which is checked out today."""
    today = repository.environment["SOURCE_DATE_EPOCH"]
    repository.environment["SOURCE_DATE_EPOCH"] = str(int(today) - 21 * DAY)
    repository.git("checkout", "-q", "main")
    repository.commit(nodes=("x", "y", "z"), file="rack")
    repository.commit(nodes=("x", "y"), file="rack")
    repository.branch("old", "main", nodes=("w",))
    repository.commit(nodes=("x",), file="rack")
    repository.environment["SOURCE_DATE_EPOCH"] = today
    if main_goes_on:
        repository.git("checkout", "-q", "main")
        repository.commit(nodes=("n",), file="new")
        repository.git("checkout", "-q", "old")
    assert days(repository) == {"y": OLD, "z": OLD}


def days(repository: Repository) -> dict[str, str]:
    """Return the day of each node in quarantine."""
    lines = [json.loads(row) for row in (repository.folder / LOCK).read_text().splitlines()[1:]]
    return {line["node"]: line["quarantined"] for line in lines if "quarantined" in line}


def test_lock_onto_dates_an_old_branch_where_there_is_nothing_to_merge(repository: Repository) -> None:
    an_old_branch(repository, main_goes_on=False)
    before = (repository.folder / LOCK).read_text()
    repository.ipamc("lock", "--onto", "main", "--check")  # no lock is out of date because a day passed
    repository.ipamc("lock", "lab", "--onto", "HEAD")
    repository.ipamc("lock")
    assert (repository.folder / LOCK).read_text() == before
    for _ in range(2):
        repository.ipamc("lock", "lab", "--onto", "main")
        assert (repository.folder / LOCK).read_text() == before.replace(
            f'"y","quarantined":"{OLD}"', f'"y","quarantined":"{TODAY}"'
        )
    assert days(repository) == {"y": TODAY, "z": OLD}
    sound(repository)
    repository.ipamc("plan", "--base", "main")


@pytest.mark.parametrize("trunk", ["main", ""])
@pytest.mark.parametrize("command", [("merge", "-m", "merged", "main"), ("rebase", "main")])
def test_git_dates_an_old_branch(repository: Repository, command: tuple[str, ...], trunk: str) -> None:
    an_old_branch(repository, main_goes_on=True)
    repository.git("config", "ipamc.trunk", trunk)
    repository.git(*command)
    assert days(repository) == {"y": TODAY, "z": OLD}


@pytest.mark.parametrize("driver", ["ipamc", "text"])
def test_ci_merge_dates_an_old_branch(repository: Repository, driver: str) -> None:
    an_old_branch(repository, main_goes_on=True)
    as_forges_do(repository, driver)
    repository.ipamc("ci", "merge", "main")
    assert days(repository) == {"y": TODAY, "z": OLD}
    repository.ipamc("plan", "--base", "main")


@pytest.mark.parametrize("driver", ["text", "union"])
def test_lock_onto_dates_an_old_branch_that_git_merged_as_text(repository: Repository, driver: str) -> None:
    an_old_branch(repository, main_goes_on=True)
    as_forges_do(repository, driver)
    repository.git("merge", "-m", "merged", "main", fine=False)
    repository.ipamc("lock", "--onto", "main")
    assert days(repository) == {"y": TODAY, "z": OLD}
    assert repository.held().keys() == {"m", "n", "w", "x"}


def test_a_lock_that_the_revision_does_not_have_keeps_its_days(repository: Repository) -> None:
    empty = repository.git("commit-tree", "-m", "empty", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    an_old_branch(repository, main_goes_on=False)
    repository.git(
        "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "x", empty.stdout.strip()
    )
    repository.ipamc("lock", "--onto", empty.stdout.strip())
    assert days(repository) == {"y": OLD, "z": OLD}
