"""Repositories that get pull requests: two or three clusters of any mode, with a random history. Each follows from its number."""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import in_process

Tree = dict[str, tuple[str, bytes]]
"""What a commit has: mode and content, by path. Of a submodule the content is its commit."""
FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"

DAYS = {"first": 1793200000, "second": 1794000000, "third": 1794800000, "later": 1794900000}
"""When each commit was made, in seconds: 20, 11, 2 and 1 days before the pipeline runs."""
TODAY = 1795000000
MAIN, LATER = "main", "later"
"""Two states of the trunk: a request begins at the first, and meets either."""

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  cilium: {{version: "{version}", managedBy: none}}
  ipam: {{{ipam}}}
  budget: {{leave: 100}}
{space}"""
POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec:
  ipv4: {{cidrs: [{cidr}], blockSize: {size}}}
"""
TESTS = """\
apiVersion: ipamc/v1alpha1
kind: Tests
tests:
- name: nothing in the office
  nothingIn: [10.200.0.0/16]
"""
MODES = {
    "cluster-pool": ("mode: cluster-pool, operator: bystander", "1.18", 27),
    "kubernetes": ("mode: kubernetes", "1.18", 27),
    "crd": ("mode: crd", "1.16", 28),
    "multi-pool": ("mode: multi-pool, pinning: node", "1.18", 27),
}
"""What a Cluster says of its mode, the minor of Cilium, and the size of blocks."""


@dataclass(frozen=True)
class Layout:
    """What a repository has, before anything is compiled."""

    modes: Mapping[str, str]
    """Of each cluster."""
    nodes: Mapping[str, tuple[str, ...]]
    """Of each cluster, at first."""
    left: tuple[tuple[str, str], ...]
    """Cluster and node: gone in the second commit, and in the third."""
    moves: tuple[str, str]
    """Cluster and node: to be renumbered since the third commit, or ""."""
    shared: bool
    """The clusters are in one address space."""

    def block(self, cluster: str, at: int) -> str:
        """Return the n-th block of a cluster."""
        size = MODES[self.modes[cluster]][2]
        first = at << (32 - size)
        return f"10.{self.number(cluster)}.{first >> 8 & 255}.{first & 255}/{size}"

    def number(self, cluster: str) -> int:
        """Return the octet that the ranges of a cluster have as their own."""
        return 1 + list(self.modes).index(cluster)


@functools.cache
def plan(number: int) -> Layout:
    """Choose what a repository has."""
    chance = random.Random(f"repository {number}")  # noqa: S311 - the same every time
    names = chance.sample(("blue", "red", "green.example"), chance.choice((2, 2, 3)))
    modes = {name: chance.choice(("cluster-pool", *MODES)) for name in names}
    nodes = {name: tuple(f"n{at}" for at in range(1, chance.randint(3, 6))) for name in names}
    left = [(name, chance.choice(nodes[name])) for name in chance.sample(names, 2)]
    mover = chance.choice(names)
    stayed = [node for node in nodes[mover] if (mover, node) not in left]
    return Layout(
        modes,
        nodes,
        tuple(each if chance.random() < 0.7 else ("", "") for each in left),
        (mover, stayed[0]) if chance.random() < 0.4 else ("", ""),
        shared=chance.random() < 0.5,
    )


def inventory(cluster: str, names: tuple[str, ...] | list[str]) -> str:
    """Write an inventory, a node on a line."""
    rows = "".join(f"- {{name: {name}, uid: {cluster}-{name}}}\n" for name in names)
    return f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n{rows}"


@dataclass(frozen=True)
class Repository:
    """A bare repository with `main` and `later`, and what either has."""

    bare: Path
    trees: Mapping[str, Tree]
    environment: Mapping[str, str]


@functools.cache
def top() -> Path:
    """Return a folder for all of them, in memory where the system has that; it goes with the process."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of our own there
    found = Path(tempfile.mkdtemp(prefix="ipamc-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return found


def environment(at: int = TODAY) -> dict[str, str]:
    """Return an environment in which a commit is the same every time."""
    author = {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    dates = {f"GIT_{who}_DATE": f"{at} +0000" for who in ("AUTHOR", "COMMITTER")}
    return {
        **author,
        **dates,
        "PATH": os.environ["PATH"],
        "HOME": str(top()),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(top().parent),
        "SOURCE_DATE_EPOCH": str(at),
        "LC_ALL": "C.UTF-8",
    }


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git there; return what it prints."""
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(), input=stdin, check=True, capture_output=True
    ).stdout


@functools.cache
def made(number: int) -> Repository:
    """Make it, once."""
    what, above = plan(number), top() / f"repository-{number}"
    work = above / "work"
    work.mkdir(parents=True)

    def ipamc(when: str, *arguments: str) -> None:
        done = in_process.ipamc(*arguments, cwd=work, environment=environment(DAYS[when]))
        assert done.returncode == 0, (number, arguments, done.stderr)

    def commit(when: str) -> None:
        git(work, "add", "--all")
        dates = {f"GIT_{who}_DATE": f"{DAYS[when]} +0000" for who in ("AUTHOR", "COMMITTER")}
        subprocess.run(
            ["git", "commit", "--quiet", "--allow-empty", "--message", when],
            cwd=work,
            env={**environment(), **dates},
            check=True,
        )

    git(work, "init", "--quiet", "--template=", "--initial-branch", MAIN)
    ipamc("first", "init")
    for name, mode in what.modes.items():
        folder = work / "clusters" / name
        folder.mkdir(parents=True)
        ipam, version, size = MODES[mode]
        space = "  addressSpace: site\n" if what.shared else ""
        (folder / "cluster.yaml").write_text(
            CLUSTER.format(name=name, version=version, ipam=ipam, space=space)
        )
        (folder / "ippools.yaml").write_text(POOL.format(cidr=f"10.{what.number(name)}.0.0/22", size=size))
        (folder / "nodes.yaml").write_text(inventory(name, what.nodes[name]))
        (folder / "tests.yaml").write_text(TESTS)
    ipamc("first", "compile", "--jobs", "1")
    if what.shared:
        ipamc("first", "init", "--space", "site")
    ipamc("first", "ci", "github", "--sha256", "a1" * 32)
    ipamc("first", "ci", "gitlab", "--sha256", "a1" * 32)
    commit("first")
    here = {name: list(nodes) for name, nodes in what.nodes.items()}
    for when, (name, node) in zip(("second", "third"), what.left, strict=True):
        if name:
            here[name].remove(node)
            (work / "clusters" / name / "nodes.yaml").write_text(inventory(name, here[name]))
            ipamc(when, "compile", "--jobs", "1")
        if when == "third" and what.moves[0]:
            ipamc(when, "lock", what.moves[0], "--renumber", what.moves[1])
            ipamc(when, "compile", "--jobs", "1")
        commit(when)
    git(work, "switch", "--quiet", "--create", LATER)
    name = min(here)
    (work / "clusters" / name / "nodes.yaml").write_text(inventory(name, [*here[name], "trunk-1"]))
    ipamc("later", "compile", "--jobs", "1")
    commit("later")
    bare = above / "bare"
    git(above, "clone", "--quiet", "--bare", "--template=", str(work), str(bare))
    git(bare, "symbolic-ref", "HEAD", f"refs/heads/{MAIN}")
    return Repository(bare, {each: tree(bare, each) for each in (MAIN, LATER)}, environment())


def tree(folder: Path, revision: str) -> Tree:
    """Read a commit from its objects alone: no attribute and no setting of git changes a byte."""
    entries = [
        entry.partition(b"\t") for entry in git(folder, "ls-tree", "-rz", revision).split(b"\0") if entry
    ]
    rows = [(*head.decode().split(" "), os.fsdecode(path)) for head, _, path in entries]
    asked = "".join(f"{name}\n" for _, kind, name, _ in rows if kind == "blob")
    answer, at = git(folder, "cat-file", "--batch", stdin=asked.encode()), 0
    found: Tree = {}
    for mode, kind, name, path in rows:
        if kind != "blob":
            found[path] = (mode, name.encode())
            continue
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[-1])
        found[path] = (mode, answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return found


def commit_tree(folder: Path, old: Tree, new: Tree, branch: str) -> None:
    """Commit what a request makes of `main` as a branch: no attribute changes what is stored."""
    said = [
        f"commit refs/heads/{branch}\ncommitter a <a@example.org> {TODAY} +0000\ndata 1\n.\nfrom refs/heads/{MAIN}\n".encode()
    ]
    said += [b"D %s\n" % _quoted(path) for path in old.keys() - new.keys()]
    for path, (mode, text) in new.items():
        if old.get(path) == (mode, text):
            continue
        if mode == SUBMODULE:
            said.append(b"M %s %s %s\n" % (mode.encode(), text, _quoted(path)))
        else:
            said.append(b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), _quoted(path), len(text), text))
    git(folder, "fast-import", "--quiet", "--force", stdin=b"".join(said))


def _quoted(path: str) -> bytes:
    text = os.fsencode(path)
    return b'"%s"' % text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
