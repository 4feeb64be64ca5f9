"""Generated pipelines, run on this machine: a repository with clusters and an `ipamc` on the PATH, and the steps of a workflow as bash scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.support import in_process
from tests.support.forking import serve

ROOT = Path(__file__).parents[2]
HASH = "a1" * 32
"""The hash of a wheel that no test installs."""

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: none}
  ipam: {mode: cluster-pool, operator: bystander}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: default}
spec:
  ipv4: {cidrs: [10.0.0.0/22], blockSize: 27}
"""


def inventory(*nodes: str) -> str:
    """Write a node inventory."""
    return "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n" + "".join(
        f"- name: {node}\n" for node in nodes
    )


def tools(folder: Path) -> Path:
    """Make a folder for the PATH: this checkout's `ipamc`, which also writes each call to `calls` beside it, and starts in milliseconds."""
    folder.mkdir(parents=True)
    (folder / "ipamc").write_text(
        f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec {serve()}/ipamc "$@"\n',
        encoding="utf-8",
    )
    (folder / "ipamc").chmod(0o755)
    (folder / "calls").touch()
    return folder


class Repository:
    """A clone with clusters `blue` and `red` on main, pushed to an `origin` beside it; what is done in it is committed on branches."""

    def __init__(self, folder: Path) -> None:
        self.tools = tools(folder / "bin")
        self.folder = folder / "clone"
        self.environment = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "SOURCE_DATE_EPOCH": "1795000000",
            "LC_ALL": "C.UTF-8",
            **{
                f"GIT_{who}_{what}": f"a{at}"
                for who in ("AUTHOR", "COMMITTER")
                for what, at in (("NAME", ""), ("EMAIL", "@example.org"))
            },
        }
        self.folder.mkdir()
        self.run("git", "init", "-q", "--bare", "-b", "main", str(folder / "origin.git"))
        self.run("git", "init", "-q", "-b", "main")
        self.run("git", "remote", "add", "origin", str(folder / "origin.git"))
        self.run("ipamc", "init")
        for name in ("blue", "red"):
            self.write(f"clusters/{name}/cluster.yaml", CLUSTER.replace("NAME", name))
            self.write(f"clusters/{name}/nodes.yaml", inventory("n1"))
        self.run("ipamc", "compile")
        self.run("ipamc", "ci", "gitlab", "--sha256", HASH)
        self.run("ipamc", "ci", "github", "--sha256", HASH)
        self.write(".gitignore", ".gitlab-ci-local/\nipamc-child.yml\nplan.md\n")
        self.commit("one")
        self.run("git", "push", "-q", "origin", "main")
        self.run("git", "fetch", "-q")
        self.run("git", "remote", "set-head", "origin", "main")

    def run(self, *command: str, code: int = 0, **environment: Any) -> str:
        """Run a command; give what it prints, both streams. `ipamc` is called in this process; what a script calls is a process of its own."""
        environment = {**self.environment, **environment}
        if command[0] == "ipamc":
            done = in_process.ipamc(*command[1:], cwd=self.folder, environment=environment, one_stream=True)
        else:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        assert done.returncode == code, (command, done.returncode, done.stdout)
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")

    def commit(self, message: str) -> None:
        """Commit all there is."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", message)

    def branch(self, name: str, cluster: str, *nodes: str, file: str = "more") -> None:
        """Start a branch off main on which nodes join a cluster."""
        self.run("git", "checkout", "-q", "-b", name, "main")
        self.write(f"clusters/{cluster}/{file}.yaml", inventory(*nodes))
        self.run("ipamc", "compile")
        self.commit(name)

    def calls(self) -> list[str]:
        """Return the calls of ipamc since the last time this was asked."""
        lines = (self.tools / "calls").read_text().splitlines()
        found = [line for line in lines if line != "--version"]  # what a job asks before all else
        (self.tools / "calls").write_text("")
        return found


def workflow(text: str) -> dict[str, Any]:
    """Read a workflow; `on` is text, not a truth value."""
    found: dict[str, Any] = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - everything is text
    return found


def installing(repository: Repository) -> dict[str, Any]:
    """Return the last step of the action with which each job of GitHub begins: it installs ipamc."""
    text = (repository.folder / ".github/actions/ipamc/action.yml").read_text()
    step: dict[str, Any] = workflow(text)["runs"]["steps"][-1]
    return step


def steps(text: str, job: str) -> list[str]:
    """Return the scripts of a job. An action installs ipamc: it is there."""
    return [step["run"] for step in workflow(text)["jobs"][job]["steps"] if "run" in step]


def bash(script: str) -> tuple[str, ...]:
    """Return the command that GitHub runs a step with where `shell: bash` is set."""
    return ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script)
