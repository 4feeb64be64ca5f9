"""The folders in which runs are disturbed: a small repository of two clusters with work to do for each verb."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import in_process

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  cilium: {{version: "1.18", managedBy: helm}}
  ipam: {{mode: {mode}}}
  addressSpace: site
  budget: {{leave: 100}}
  output: {{shardSize: 1, nodeObjects: create}}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [{cidr}], blockSize: 26}}
"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{nodes}]
"""
LAB, EDGE = "clusters/lab", "clusters/edge"
RANGES = {LAB: "10.1.0.0/20", EDGE: "10.2.0.0/20"}
DAY = "1795000000"


@dataclass(frozen=True)
class Verb:
    """A command line that writes, and what it may touch."""

    name: str
    arguments: tuple[str, ...]
    by_git: bool = False
    """git writes files, too: what it leaves is git's, and the next run begins with what is committed."""
    merges: str = ""
    """A file that has both sides between conflict markers until the run is done; git gives it anew to the next one."""


VERBS = (
    Verb("compile", ("compile", "lab")),
    Verb("compile of two", ("compile", "--jobs", "1")),
    Verb("reports", ("compile", "lab", "--report", "sarif=out/report.sarif", "--report", "json=report.json")),
    Verb("lock", ("lock", "lab", "--leave", "all", "--reshard")),
    Verb("lock onto", ("lock", "lab", "--onto", "other")),
    Verb("init", ("init", "new")),
    Verb("gitlab", ("ci", "gitlab")),
    Verb("github", ("ci", "github")),
    Verb(
        "merge driver",
        ("merge-driver", "base.lock", "ours.lock", "theirs.lock", "clusters/lab/ipam.lock"),
        merges="ours.lock",
    ),
    Verb("merge", ("ci", "merge", "other"), by_git=True),
)


def environment(top: Path) -> dict[str, str]:
    """Return an environment in which every run says the same."""
    author = {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    dates = {f"GIT_{who}_DATE": f"{DAY} +0000" for who in ("AUTHOR", "COMMITTER")}
    return {
        **author,
        **dates,
        "PATH": os.environ["PATH"],
        "HOME": str(top),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(top.parent),
        "SOURCE_DATE_EPOCH": DAY,
    }


def git(top: Path, *arguments: str) -> str:
    """Run git there; return what it prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=top, env=environment(top), check=True, capture_output=True, text=True
    )
    return done.stdout


def nodes(top: Path, folder: str, names: str) -> None:
    """Write an inventory."""
    (top / folder / "nodes.yaml").write_text(
        NODES.format(nodes=", ".join(f"{{name: {name}}}" for name in names))
    )


def compiled(top: Path, message: str) -> None:
    """Compile, and commit."""
    done = in_process.ipamc("compile", cwd=top, environment=environment(top))
    assert done.returncode == 0, done.stderr
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", message)


def made(top: Path, mode: str) -> None:
    """Make the repository, its clusters in this mode: two branches whose locks differ, and inputs on `main` that are not compiled yet."""
    for folder, cidr in RANGES.items():
        (top / folder).mkdir(parents=True)
        (top / folder / "cluster.yaml").write_text(
            CLUSTER.format(name=Path(folder).name, cidr=cidr, mode=mode)
        )
        nodes(top, folder, "abcd")
    git(top, "init", "--quiet", "--template=", "--initial-branch", "main")
    compiled(top, "first")
    git(top, "switch", "--quiet", "--create", "other")
    nodes(top, LAB, "abcdex")
    compiled(top, "other")
    git(top, "switch", "--quiet", "main")
    nodes(top, EDGE, "abcdf")
    compiled(top, "main")
    for name, revision in (("base", "main~1"), ("ours", "main"), ("theirs", "other")):
        (top / f"{name}.lock").write_text(git(top, "show", f"{revision}:{LAB}/ipam.lock"))
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "locks")
    git(top, "gc", "--quiet")


def prepared(template: Path, top: Path, verb: Verb) -> None:
    """Copy the repository to `top`, with work to do for a verb."""
    shutil.copytree(template, top, symlinks=True)
    if verb.by_git:
        return
    if "--onto" in verb.arguments:
        nodes(top, LAB, "abcdexy")
        return
    nodes(top, LAB, "cghij")
    nodes(top, EDGE, "fk")


def tree(top: Path) -> dict[str, bytes]:
    """Return every file but git's own, by path."""
    found = (Path(folder, name) for folder, _, names in os.walk(top) for name in names)
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in found
        if ".git" not in path.relative_to(top).parts
    }


def folders(top: Path) -> set[str]:
    """Return every folder but git's own."""
    found = {Path(folder, name).relative_to(top) for folder, _, names in os.walk(top) for name in names}
    return {path.as_posix() for path in found if ".git" not in path.parts}


def is_unfinished(path: str) -> bool:
    """Tell whether a file is one that a run had not finished: nobody reads it, and the next run removes it."""
    return path.rpartition("/")[2].startswith(".ipamc-")


def lines(lock: bytes) -> Mapping[bytes, bytes]:
    """Return the lines of a lock by their block."""
    return {line.split(b'"')[3]: line for line in lock.splitlines()[1:]}
