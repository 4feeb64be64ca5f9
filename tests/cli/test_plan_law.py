"""Pull requests that give a running node's addresses to another node: each is refused, or asks for a label."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ipamc.cli import main

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: kustomize}
  ipam: {mode: cluster-pool}
"""
POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: p}
spec: {ipv4: {cidrs: [10.1.0.0/24], blockSize: 26}}
"""
NODES = """\
apiVersion: v1
kind: List
items:
"""
SEEN = """\
- apiVersion: cilium.io/v2
  kind: CiliumNode
  metadata: {name: %s}
  spec: {ipam: {pools: {allocated: [{pool: p, cidrs: [%s]}]}}}
"""
GATES = "renumber,rename,release,follow,delete-cluster,weaker"
"""What a generated pipeline asks labels for."""
FOLDER = Path("clusters/lab")
LOCK = FOLDER / "ipam.lock"


def node(name: str, number: int) -> str:
    address = f"status: {{addresses: [{{type: InternalIP, address: 172.30.0.{number}}}]}}"
    return f"- {{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, {address}}}\n"


def replaced(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def swapped(path: Path, one: str, two: str) -> None:
    replaced(path, (one, "\0"), (two, one), ("\0", two))


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def commit(day: str = "2026-11-21") -> None:
    assert main(["compile", "lab"]) == 0
    git("add", "-A")
    git("commit", "-qm", day)


@pytest.fixture(autouse=True)
def _base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of four blocks, and the nodes n0 to n3 that hold them, on the branch main."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")  # 2026-11-21
    git("init", "-qb", "main")
    FOLDER.mkdir(parents=True)
    (FOLDER / "cluster.yaml").write_text(CLUSTER)
    (FOLDER / "pools.yaml").write_text(POOL)
    (FOLDER / "nodes.yaml").write_text(NODES + "".join(node(f"n{number}", number) for number in range(4)))
    commit()


def passes(*allow: str) -> bool:
    """Play the steps of a pipeline on the head."""
    if main(["compile", "lab"]):
        return False
    assert main(["compile", "lab", "--locked", "--check"]) == 0
    code = main(["plan", "--base", "HEAD", "--fail-on", GATES, "--allow", ",".join(allow)])
    assert code in {0, 1}
    return code == 0


def headline(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    main(["plan", "--base", "HEAD", "--output", "markdown"])
    lines = capsys.readouterr().out.splitlines()
    return next(line.replace("\u2212", "-") for line in lines if line.startswith("### "))


def test_a_node_with_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    for path in (LOCK, FOLDER / "nodes.yaml"):
        replaced(path, ("n0", "evil"))
    assert not passes()
    assert not passes("bug", "ipamc/release", "ipamc/renames", "ipamc/rename/x")
    assert passes("bug", "ipamc/rename")
    assert headline(capsys) == "### ⛔ 0 renumbered · 1 renamed · +0 · -0 · 3 unchanged"


def test_a_node_with_another_name_where_the_change_ends_all_quarantines() -> None:
    replaced(FOLDER / "cluster.yaml", ("spec:\n", "spec:\n  quarantineDays: 0\n"))
    replaced(FOLDER / "nodes.yaml", ("n0", "evil"))
    assert not passes("ipamc/leave")
    assert not passes("ipamc/rename")
    assert passes("ipamc/rename", "ipamc/weaker")


def test_a_node_with_another_name_where_there_is_no_quarantine(capsys: pytest.CaptureFixture[str]) -> None:
    """It left, and its block is given at once: that is what 0 days mean. But it changes hands."""
    replaced(FOLDER / "cluster.yaml", ("spec:\n", "spec:\n  quarantineDays: 0\n"))
    commit()
    replaced(FOLDER / "nodes.yaml", ("n0", "evil"))
    assert passes()
    assert headline(capsys) == "### ⛔ 0 renumbered · +1 · -1 · 3 unchanged"


def test_two_nodes_swap_their_addresses_in_a_pool_that_follows_from_now_on() -> None:
    replaced(FOLDER / "pools.yaml", ("blockSize: 26", "blockSize: 26, follows: 172.30.0.0/30"))
    swapped(FOLDER / "nodes.yaml", "{name: n0}", "{name: n1}")
    swapped(LOCK, '"n0"', '"n1"')
    assert main(["compile", "lab"]) == 0
    assert not passes("ipamc/follow", "ipamc/renumber", "ipamc/rename", "ipamc/release")


def test_a_newcomer_with_the_address_of_a_block_in_quarantine() -> None:
    replaced(FOLDER / "nodes.yaml", (node("n0", 0), ""))
    commit()
    replaced(FOLDER / "pools.yaml", ("blockSize: 26", "blockSize: 26, follows: 172.30.0.0/30"))
    replaced(FOLDER / "nodes.yaml", ("items:\n", f"items:\n{node('new', 0)}"))
    assert main(["compile", "lab"]) == 0
    assert not passes("ipamc/follow", "ipamc/rename")
    assert passes("ipamc/release")


def test_two_nodes_swap_their_addresses_in_a_pool_that_follows(capsys: pytest.CaptureFixture[str]) -> None:
    replaced(FOLDER / "pools.yaml", ("blockSize: 26", "blockSize: 26, follows: 172.30.0.0/30"))
    commit()
    swapped(FOLDER / "nodes.yaml", "{name: n0}", "{name: n1}")
    swapped(LOCK, '"n0"', '"n1"')
    assert not passes()
    assert passes("ipamc/follow")
    assert headline(capsys) == "### ⛔ 2 renumbered · 2 followed · +0 · -0 · 2 unchanged"


@pytest.mark.parametrize("day", ["2026-11-15", "2026-11-17"])
def test_a_block_of_a_running_node_that_went_into_quarantine_long_ago(day: str) -> None:
    replaced(FOLDER / "pools.yaml", ("10.1.0.0/24", "10.1.0.0/23"))
    commit()
    replaced(LOCK, ('"n0"', f'"n0","quarantined":"{day}","moved":true'))
    assert not passes(*(f"ipamc/{gate}" for gate in GATES.split(",")))
    replaced(LOCK, (day, "2026-11-18"))
    assert not passes()
    assert passes("ipamc/renumber")


def test_two_nodes_show_the_blocks_of_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    replaced(FOLDER / "cluster.yaml", ("mode: cluster-pool", "mode: multi-pool, pinning: pool"))
    git("rm", "-rq", "clusters/lab/ipam.lock", "clusters/lab/rendered")
    commit()
    seen = SEEN % ("n0", "10.1.0.64/26") + SEEN % ("n1", "10.1.0.0/26")
    with (FOLDER / "nodes.yaml").open("a") as file:
        file.write(seen)
    assert main(["lock", "lab", "--follow"]) == 0
    assert not passes()
    assert passes("ipamc/follow")
    assert headline(capsys) == "### ⛔ 2 renumbered · 2 followed · +0 · -0 · 2 unchanged"


def test_a_branch_with_a_leaver_that_was_open_for_three_weeks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The finding names the command that dates the quarantine with today."""
    git("checkout", "-qb", "work")
    replaced(FOLDER / "nodes.yaml", (node("n0", 0), ""))
    commit()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1797033600")  # 2026-12-12
    capsys.readouterr()
    assert main(["plan", "--base", "main", "--fail-on", GATES]) == 1
    err = capsys.readouterr().err
    assert "on an old branch, to set it to today: ipamc lock lab --onto main; " in err
    assert main(["lock", "lab", "--onto", "main"]) == 0
    assert '"n0","quarantined":"2026-12-12"' in LOCK.read_text()
    assert main(["plan", "--base", "main", "--fail-on", GATES]) == 0
