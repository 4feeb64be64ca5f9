"""Locks through real git: merge, rebase, cherry-pick and revert with the driver that `ipamc init` sets up, and `lock --onto` where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LOCK = "clusters/lab/ipam.lock"


class Repository:
    """A git repository with one cluster, in which `ipamc` is on the PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a repository"
        self.folder.mkdir()
        tools = folder / "bin"
        tools.mkdir()
        (tools / "ipamc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ipamc "$@"\n')
        (tools / "ipamc").chmod(0o755)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "SOURCE_DATE_EPOCH": "1795000000",
        }
        for name in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.org"}
        self.git("init", "-q", "-b", "main")
        self.ipamc("init", "lab")
        self.commit(nodes=("m",), file="nodes")

    def run(self, *command: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        assert not fine or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def git(self, *arguments: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("git", *arguments, fine=fine)

    def ipamc(self, *arguments: str, fine: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("ipamc", *arguments, fine=fine)

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
        """Give the live block of each node, of a revision or in the work tree."""
        text = self.git("show", f"{revision}:{LOCK}").stdout if revision else (self.folder / LOCK).read_text()
        lines = [json.loads(row) for row in text.splitlines()[1:]]
        assert len({line["block"] for line in lines}) == len(lines)
        return {line["node"]: line["block"] for line in lines if not line.keys() & {"left", "next", "released"}}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Two branches that each add nodes: each took the blocks that the other took, too."""
    made = Repository(tmp_path)
    made.branch("one", "main", nodes=("b1", "b2"))
    made.branch("two", "main", nodes=("a1", "c1"))
    return made


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
def test_two_branches_meet_without_a_person(repository: Repository, start: str, command: tuple[str, ...]) -> None:
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


def test_lock_onto_repairs_what_a_forge_merged_as_text(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "forged", "one")
    attributes = repository.folder / ".git/info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("ipam.lock merge=union\n")
    repository.git("merge", "-q", "-m", "forged", "two")
    refused = repository.ipamc("compile", fine=False)
    assert (refused.returncode, "IPC0407" in refused.stderr) == (1, True)
    assert "b1" in refused.stderr
    assert "a1" in refused.stderr
    repository.ipamc("lock", "--onto", "two")
    repository.commit()
    assert repository.held().keys() == {"m", "a1", "b1", "b2", "c1"}
    repository.ipamc("compile", "--locked", "--check")


def test_lock_onto_says_clearly_what_it_cannot_do(repository: Repository, tmp_path: Path) -> None:
    unknown = repository.ipamc("lock", "--onto", "nope", fine=False)
    assert (unknown.returncode, unknown.stderr) == (1, "error: git knows no revision 'nope' here: fetch it, or check its name\n")
    shallow = tmp_path / "shallow"
    repository.git("checkout", "-q", "one")
    repository.git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{repository.folder}", str(shallow))
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
