"""`--assume`, and `assume` in the Cluster: a Cilium that is newer than what ipamc knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamc.cli import main

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "VERSION", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [10.0.0.0/24], blockSize: 27}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}]
"""
VERBS = (
    ["compile"],
    ["compile", "--check"],
    ["lock"],
    ["plan"],
    ["show"],
    ["why", "n1"],
    ["which", "10.0.0.99"],
)


def write(folder: Path, version: str) -> None:
    (folder / "clusters/lab/cluster.yaml").write_text(CLUSTER.replace("VERSION", version))


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a cluster whose Cilium is not known, as the working directory."""
    (tmp_path / "clusters/lab").mkdir(parents=True)
    write(tmp_path, "1.21.0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_an_unknown_version_is_refused(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(verb) == 1
    assert "Cilium 1.21 is unknown" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_it_may_be_taken_for_a_known_one(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--assume", "1.20"]) == 0
    first = capsys.readouterr().err
    assert main([*verb, "--assume", "1.20"]) == (1 if verb[0] == "which" else 0)  # nobody has that address
    said = capsys.readouterr().err
    for text in (first, said) if verb[0] in {"compile", "lock", "plan"} else (first,):
        assert "warning[IPC0507]: Cilium 1.21 is unknown and treated as 1.20" in text


def test_in_the_cluster_it_holds_for_every_verb(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So pipelines need no option, and a reviewer sees it."""
    write(cluster, '1.21", assume: "1.20')
    for verb in (*VERBS, ["compile", "--locked", "--check"]):
        main(verb)
        assert "error" not in capsys.readouterr().err
    rendered = {path: path.read_text() for path in cluster.rglob("rendered/**/*.yaml")}
    write(cluster, "1.20")
    assert main(["compile", "--check"]) == 0, "the same bytes as for the minor that it is taken for"
    assert rendered


def test_it_says_nothing_to_a_version_that_is_known(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(cluster, "1.18")
    assert main(["compile", "--assume", "1.20"]) == 0
    assert "IPC0507" not in capsys.readouterr().err
    assert main(["compile", "--check"]) == 0


@pytest.mark.parametrize("version", ["1.21", "1.10", "x", ""])
def test_only_what_is_known_can_be_assumed(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--assume", version]) == 64
    assert "use 1.11 to 1.20" in capsys.readouterr().err
