"""What `show`, `which`, `export` and `why` read: all inputs, and nothing that was rendered."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ipamc.cli import main

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: blue}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
"""
INVENTORY = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- name: n1\n- name: n2\n"
BROKEN = {
    "of the wrong type": INVENTORY.replace("n2", "2"),
    "with an unknown field": INVENTORY.replace("n2", "n2\n  colour: red"),
    "with a name that is none": INVENTORY.replace("n2", "N_2"),
    "with a CIDR that is none": INVENTORY.replace("n2", "n2\n  podCIDRs: [10.0.0.1/27]"),
    "there twice": f"{INVENTORY}- name: n2\n",
    "cut off": f'{INVENTORY}- name: n3\n- name: "n',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a compiled cluster, in the working directory."""
    found = tmp_path / "clusters/blue"
    found.mkdir(parents=True)
    (found / "cluster.yaml").write_text(CLUSTER)
    (found / "nodes.yaml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)
    assert main(["compile"]) == 0
    return found


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_every_verb_tells_of_a_broken_node(
    broken: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are read whole; `which` needs only the lock for an address that a node has."""
    (folder / "nodes.yaml").write_text(broken)
    assert main(["compile"]) == 1
    wanted = capsys.readouterr().err.partition("\n")[0]
    questions = (
        ["show", "--show-blocks"],
        ["aggregates"],
        ["forecast"],
        ["export", "netbox"],
        ["which", "10.0.0.77"],
        ["why", "n1"],
    )
    for question in questions:
        assert main(question) == 1
        assert wanted in capsys.readouterr().err
    assert main(["which", "10.0.0.1"]) == 0


def test_findings_about_pools_come_with_those_about_nodes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "nodes.yaml").write_text(BROKEN["with an unknown field"])
    (folder / "pool.yaml").write_text(
        "apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: pods}\nspec: {color: red}\n"
    )
    capsys.readouterr()
    assert main(["compile", "--check"]) == 1
    wanted = capsys.readouterr().err.split("\n\n")[:-1]
    assert main(["show"]) == 1
    assert capsys.readouterr().err.split("\n\n")[:-1] == wanted
    assert len(wanted) > 1


def test_what_was_rendered_is_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})

    (folder / "rendered/nodes").mkdir(exist_ok=True)
    (folder / "rendered/nodes/link").symlink_to("/nowhere")
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one")
    capsys.readouterr()
    assert main(["compile", "--check"]) == 1
    for at in ([], ["--at", "HEAD"]):
        assert main(["show", *at]) == 0
        assert main(["why", "n1", *at]) == 0
        assert main(["which", "10.0.0.77", *at]) == 1
        text = capsys.readouterr()
        assert "10.0.0.0/24 of pods" in text.out or "free" in text.out
