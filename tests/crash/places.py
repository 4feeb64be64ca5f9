"""The folders in which runs are disturbed: a small repository of two clusters with work to do for each verb."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import dumps, in_process

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
{usage}"""
NODES = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{nodes}]
"""
LAB, EDGE = "clusters/lab", "clusters/edge"
RANGES = {LAB: "10.1.0.0/20", EDGE: "10.2.0.0/20"}
DAY = "1795000000"
REMOTE, CLUSTERS = "remote.git", "objects"
"""Beside the repository: where it pushes to, and what kubectl was given."""


@dataclass(frozen=True)
class Verb:
    """A command line that writes, and what it may touch."""

    name: str
    arguments: tuple[str, ...]
    by_git: bool = False
    """git writes files, too: what it leaves is git's, and the next run begins with what is committed."""
    modes: tuple[str, ...] = ()
    """Modes in which it has something to do; all, where it names none."""
    pushes: bool = False
    """It pushes to REMOTE, and asks a forge."""
    applies: bool = False
    """It runs kubectl, which keeps objects below CLUSTERS."""
    merges: str = ""
    """A file that has both sides between conflict markers until the run is done; git gives it anew to the next one."""


VERBS = (
    Verb("compile", ("compile", "lab")),
    Verb("compile of two", ("compile", "--jobs", "1")),
    Verb("reports", ("compile", "lab", "--report", "sarif=out/report.sarif", "--report", "json=report.json")),
    Verb("lock", ("lock", "lab", "--leave", "all", "--reshard")),
    Verb("lock onto", ("lock", "lab", "--onto", "other")),
    Verb("init", ("init", "new")),
    Verb("init of a space", ("init", "--space", "site")),
    Verb("gitlab", ("ci", "gitlab", "--sha256", "a1" * 32)),
    Verb("github", ("ci", "github", "--sha256", "a1" * 32)),
    Verb(
        "merge driver",
        ("merge-driver", "base.lock", "ours.lock", "theirs.lock", "clusters/lab/ipam.lock"),
        merges="ours.lock",
    ),
    Verb("merge", ("ci", "merge", "other"), by_git=True),
    Verb("resize", ("resize", "lab", "dump.json"), modes=("crd",)),
    Verb(
        "refresh",
        (
            "ci",
            "refresh",
            "lab",
            "{above}/dump.json",
            "--remote",
            "{above}/remote.git",
            "--target",
            "imported",
        ),
        by_git=True,
        modes=("cluster-pool", "kubernetes"),
        pushes=True,
    ),
    Verb("apply", ("apply", "lab", "--receipt", "receipts"), applies=True),
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
        usage = "  usage: {high: 85, low: 40, maxBlocks: 3}\n" if mode == "crd" else ""
        text = CLUSTER.format(name=Path(folder).name, cidr=cidr, mode=mode, usage=usage)
        (top / folder / "cluster.yaml").write_text(text)
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
    if mode in next(verb.modes for verb in VERBS if verb.pushes):
        git(top, "switch", "--quiet", "--create", "imported")
        _dump(top.with_suffix(".json"), "abcd")
        done = in_process.ipamc(
            "import", "lab", "--refresh", str(top.with_suffix(".json")), cwd=top, environment=environment(top)
        )
        assert done.returncode == 0, done.stderr
        compiled(top, "imported")
        git(top, "switch", "--quiet", "main")
    git(top, "gc", "--quiet")


def _dump(path: Path, names: str) -> None:
    """Write a dump of these nodes, which run."""
    path.write_text(dumps.kubectl(*(dumps.node(name, ready=False) for name in names)))


def prepared(template: Path, top: Path, verb: Verb) -> None:
    """Copy the repository to `top`, with work to do for a verb."""
    shutil.copytree(template, top, symlinks=True)
    if verb.pushes:
        _dump(top.parent / "dump.json", "abcdx")
        remote = top.parent / REMOTE
        shutil.rmtree(remote, ignore_errors=True)
        git(top, "clone", "--quiet", "--bare", "--template=", str(top), str(remote))
        git(top, "switch", "--quiet", "imported")
    if verb.applies:
        state = top.parent / CLUSTERS
        shutil.rmtree(state, ignore_errors=True)
        state.mkdir()
        return
    if verb.by_git:
        return
    if verb.name == "resize":
        (top / "dump.json").write_text(_busy())
        return
    if "--onto" in verb.arguments:
        nodes(top, LAB, "abcdexy")
        return
    nodes(top, LAB, "cghij")
    nodes(top, EDGE, "fk")


def _busy() -> str:
    """Return a dump in which a node uses all of its first block."""
    used = {"a": 60, "b": 1, "c": 1, "d": 1}
    nodes = [dumps.node(name) for name in used]
    shown = [
        dumps.cilium_node(
            name, f"10.1.0.{64 * at}/26", used=[f"10.1.0.{64 * at + 1 + each}" for each in range(count)]
        )
        for at, (name, count) in enumerate(used.items())
    ]
    return dumps.kubectl(*nodes, *shown)


def outside(top: Path, verb: Verb) -> dict[str, bytes]:
    """Return what a verb leaves beside the repository: the branches of the remote, and the objects that kubectl was given."""
    if verb.pushes:
        rows = git(top.parent / REMOTE, "for-each-ref", "--format=%(refname) %(tree)", "refs").splitlines()
        return {row.split()[0]: row.encode() for row in rows}
    if verb.applies:
        return {
            path.name: path.read_bytes() for path in sorted((top.parent / CLUSTERS).glob("objects/*.json"))
        }
    return {}


def programs(top: Path) -> dict[str, str]:
    """Return the variables that name the stand-in for kubectl."""
    words = [sys.executable, "-IS", str(Path(__file__).with_name("kubectl.py")), str(top / CLUSTERS)]
    return {"KUBECTL": shlex.join(words), "KUSTOMIZE": shlex.join(words), "IPAMC_WAIT": "0"}


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
