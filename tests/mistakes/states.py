"""The states in which people make mistakes: folders, each made once and copied for every mistake."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import ipamc as package
import tests.support.in_process as process
from tests.support import dumps

ROOT = Path(__file__).parents[2]
DAY = "1795305600"
"""2026-11-22 in the morning, UTC."""
RUNNING = 300
"""Nodes of the cluster of which there is a dump."""

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium:
    version: "1.18"
    managedBy: helm
  ipam:
    mode: MODE
  ipFamilies: [IPv4]
  excludedCIDRs: [10.96.0.0/12]
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  ipv4: {cidrs: [10.0.0.0/22], blockSize: 25}
  nodeSelector: rack == "a"
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  ipv4: {cidrs: [10.0.4.0/22], blockSize: 25}
  nodeSelector: rack == "b"
"""
NODES = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n" + "".join(
    f"- {{name: {rack}-{number}, uid: uid-{rack}-{number}, labels: {{rack: {rack}, kubernetes.io/hostname: {rack}-{number}}}}}\n"
    for rack in "ab"
    for number in range(1, 5)
)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of every command: this ipamc, a day, an identity for git, and nothing of this machine."""
    return {
        "PYTHONPATH": str(Path(package.__path__[0]).parent),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()},
        "SOURCE_DATE_EPOCH": DAY,
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }


_WHO = {"NAME": "An Engineer", "EMAIL": "engineer@example.com", "DATE": "2026-11-22T09:00:00Z"}


def shell(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of a shell; return its exit code, and what it prints to stdout and stderr."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace")


def ipamc(*arguments: str, cwd: Path, folder: Path) -> tuple[int, str]:
    """Run ipamc in this process; return its exit code, and what it prints."""
    done = process.ipamc(*arguments, cwd=cwd, environment=environment(folder), one_stream=True)
    return done.returncode, done.stdout


def prepare(name: str, folder: Path) -> None:
    """Make `folder`, which is not there yet, a copy of the state of this name."""
    shutil.copytree(_made(name), folder, symlinks=True)


@cache
def _made(name: str) -> Path:
    folder = Path(mkdtemp(prefix="ipamc-mistakes-")) / "repo"
    atexit.register(shutil.rmtree, folder.parent)
    base, make = STATES[name]
    if base:
        prepare(base, folder)
    else:
        folder.mkdir()
    make(folder)
    return folder


def _steps(*commands: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for command in commands:
            verb, *words = command.split()
            code, text = (
                ipamc(*words, cwd=folder, folder=folder) if verb == "ipamc" else shell(command, folder)
            )
            assert code == 0, f"{command}: {text}"

    return make


def _put(files: Mapping[str, str], *commands: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        _steps(*commands)(folder)

    return make


COMMIT = "git add --all && git commit --quiet --message state"


def _lab(mode: str, **ipam: str) -> tuple[str, Callable[[Path], None]]:
    more = "".join(f"\n    {key}: {value}" for key, value in ipam.items())
    files = {
        "clusters/lab/cluster.yaml": CLUSTER.replace("MODE", mode + more),
        "clusters/lab/ippools.yaml": POOLS,
        "clusters/lab/nodes.yaml": NODES,
    }
    return "repo", _put(files, "ipamc init lab", "ipamc compile", COMMIT)


@cache
def running() -> str:
    """Return what kubectl prints of a cluster that runs: three racks, cluster-pool mode, the operator of Cilium 1.18."""
    found: list[dumps.Object] = []
    for number in range(RUNNING):
        name, block = f"node-{number:03}", f"10.{128 + number // 256}.{number % 256}.0/24"
        labels = {"topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}"}
        found.append(dumps.node(name, labels=labels, ip=f"192.168.{number // 250}.{number % 250 + 1}"))
        found.append(dumps.cilium_node(name, block))
        address = block.replace("0/24", "17")
        found.append(dumps.pod(f"web-{number}", name, address))
    config = dumps.config_map(
        ipam="cluster-pool",
        enable_ipv4="true",
        enable_ipv6="false",
        cluster_pool_ipv4_cidr="10.128.0.0/14",
        cluster_pool_ipv4_mask_size="24",
    )
    config["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cilium"}
    container = {
        "name": "cilium-operator",
        "image": "quay.io/cilium/operator-generic:v1.18.5",
        "args": ["--debug"],
    }
    operator = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return dumps.kubectl(*found, config, operator)


def _dump(folder: Path) -> None:
    (folder / "dump.json").write_text(running())


def _small(folder: Path) -> None:
    whole = json.loads(running())
    kept = [
        item
        for item in whole["items"]
        if item["kind"] in {"ConfigMap", "Deployment"}
        or int(item["metadata"]["name"].rpartition("-")[2]) < 12
    ]
    (folder / "dump.json").write_text(json.dumps({**whole, "items": kept}, indent=4) + "\n")


STATES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "nothing": ("", lambda _: None),
    "repo": ("nothing", _steps("git init --quiet --initial-branch main --template=")),
    "new": ("repo", _steps("ipamc init lab", COMMIT)),
    "cluster-pool": _lab("cluster-pool"),
    "kubernetes": _lab("kubernetes"),
    "multi-pool": _lab("multi-pool"),
    "pinned": _lab("multi-pool", pinning="node"),
    "crd": _lab("crd"),
    "examples": (
        "repo",
        lambda folder: (
            shutil.copytree(ROOT / "clusters", folder / "clusters"),
            _steps("ipamc init", COMMIT)(folder),
        )[1],
    ),
    "dump": ("repo", _dump),
    "imported": (
        "dump",
        _steps(
            "ipamc import lab dump.json",
            "git add clusters .gitattributes",
            "git commit --quiet --message state",
        ),
    ),
    "small dump": ("repo", _small),
    "small imported": (
        "small dump",
        _steps(
            "ipamc import lab dump.json",
            "git add clusters .gitattributes",
            "git commit --quiet --message state",
        ),
    ),
}
"""By name: the state that it begins with, and what is done there."""
