"""The jobs of a pull request, run as the generated pipeline has them: its file is read anew, and each step is a script for bash.

Stand-ins: the checkout of a forge's runner, which jobs share where they ask for the same, the line that installs ipamc, and `ipamc ci
comment` and `ipamc ci consent`, which want a forge.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ipamc.review import GATES
from tests.fuzz.requests.repositories import environment, git, top
from tests.support import forking

LABELS = tuple(f"ipamc/{gate}" for gate in GATES)
CHECKOUTS = ("as written", "shallow", "sparse", "worktree")


@dataclass(frozen=True)
class Event:
    """What happens on a forge."""

    kind: str
    """`pull_request` or `merge_group` of GitHub; `detached`, `merged_result` or `merge_train` of GitLab."""
    bare: Path
    head: str
    """The commit of the branch."""
    merged: str
    """The same merged into the trunk."""
    base: str
    """The trunk's commit."""
    labels: tuple[str, ...] = ()
    checkout: str = CHECKOUTS[0]
    without: str = ""
    """The folder that a sparse checkout leaves out."""


@dataclass
class Outcome:
    """How it ended."""

    passed: bool
    said: str
    """By the job that failed."""
    folder: Path
    """The last checkout."""


@dataclass
class Jobs:
    """The results of jobs, and what their steps left."""

    event: Event
    results: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    folder: Path = field(default_factory=top)
    """The last checkout."""
    folders: dict[int, Path] = field(default_factory=dict)
    """By the depth that was asked for."""

    def fresh(self, revision: str, *, depth: int) -> Path:
        """Check a commit out, as a runner does: fetch, then checkout. Depth 0: the whole history and all branches."""
        event = self.event
        folder = top() / "jobs" / str(len(self.folders))
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--template=")
        git(folder, "remote", "add", "origin", f"file://{event.bare}")
        depth = 1 if event.checkout == "shallow" else depth
        branches = () if depth else ("+refs/heads/*:refs/remotes/origin/*",)
        git(
            folder,
            "fetch",
            "--quiet",
            "--no-tags",
            *(("--depth=1",) if depth else ()),
            "origin",
            *branches,
            revision,
        )
        if event.checkout == "worktree":
            beside = folder.with_name(f"{folder.name}-tree")
            git(folder, "worktree", "add", "--quiet", "--detach", str(beside), revision)
            self.folder = beside
            return beside
        if event.checkout == "sparse":
            git(folder, "sparse-checkout", "set", "--no-cone", "/*", f"!/{event.without}/")
        git(folder, "checkout", "--quiet", "--force", "--detach", revision)
        self.folder = folder
        return folder

    def bash(self, job: str, script: str, folder: Path, variables: Mapping[str, str]) -> bool:
        """Run a step; tell whether it passed."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=folder,
            env={**_environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        self.said.append(f"{job}: {(done.stdout[-1500:] + done.stderr[-2500:]).decode(errors='replace')}")
        return done.returncode == 0


def _environment() -> dict[str, str]:
    """Return the runner's own environment: the programs of this checkout first."""
    programs = top() / "programs"
    if not programs.exists():
        programs.mkdir()
        real = forking.serve() / "ipamc"
        forge = 'case "$1 $2" in "ci comment") exit 0 ;; "ci consent") echo "$CONSENT"; exit 0 ;; esac\n'
        _program(programs / "ipamc", f'{forge}exec {real} "$@"\n')
    found = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
    kept = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(top().parent)}
    return {**found, **kept, "PATH": f"{programs}:{found['PATH']}"}


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
