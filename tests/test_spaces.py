"""Address spaces from the command line: who asks, gets, grows and gives back; and what a hostile member tries."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ipamc.workspace import spaces
from tests.support.in_process import ipamc

ENVIRONMENT = {"SOURCE_DATE_EPOCH": "1795305600", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {name: fabric}
spec:
  ipv4: {cidrs: [10.0.0.0/12], prefixLength: 19}
"""
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
  addressSpace: fabric
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec:
  ipv4: {RANGES, blockSize: 25}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}, {name: n2}]
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return ipamc in a repository with a space of three clusters: two ask, and one has a range of its own."""

    def call(*arguments: str) -> tuple[int, str]:
        done = ipamc(*arguments, cwd=tmp_path, environment=ENVIRONMENT, one_stream=True)
        return done.returncode, done.stdout

    write(tmp_path, "fabric/space.yaml", SPACE)
    for name, ranges in (
        ("a", "from: fabric"),
        ("b", "from: fabric, prefixLength: 20"),
        ("c", "cidrs: [10.0.0.0/19]"),
    ):
        write(tmp_path, f"{name}/c.yaml", CLUSTER.replace("NAME", name).replace("RANGES", ranges))
    assert call("compile", "--jobs", "1")[0] == 0
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return call


def write(folder: Path, name: str, text: str) -> None:
    path = folder / "clusters" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / "clusters" / name).read_text()
    assert old in text
    write(folder, name, text.replace(old, new))


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a change")


def index(folder: Path) -> list[tuple[str, str]]:
    rows = (folder / "clusters/fabric/rendered/index.jsonl").read_text().splitlines()[1:]
    return [(line["cluster"], line["cidr"]) for line in map(json.loads, rows)]


START = [("c", "10.0.0.0/19"), ("a", "10.0.32.0/19"), ("b", "10.0.64.0/20")]


def test_a_space_gives_ranges_around_what_others_have(run: Run, tmp_path: Path) -> None:
    assert index(tmp_path) == START
    assert run("compile", "--check", "--jobs", "1")[0] == 0
    assert '"cluster-pool-ipv4-cidr": "10.0.32.0/19"' not in run("plan", "a")[1]
    assert "10.0.32.0/19" in (tmp_path / "clusters/a/rendered/cilium/configmap.yaml").read_text()


def test_a_pool_grows_beside_its_range_and_gives_back(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "b/c.yaml", "prefixLength: 20", "prefixLength: 20, ranges: 2")
    code, said = run("compile", "b")
    assert (code, "IPC0704" in said) == (1, True)
    assert run("compile", "fabric", "b")[0] == 0
    assert index(tmp_path)[-2:] == [("b", "10.0.64.0/20"), ("b", "10.0.80.0/20")]
    edit(tmp_path, "b/c.yaml", ", ranges: 2", "")
    assert run("compile", "--jobs", "1")[0] == 0
    assert index(tmp_path) == START
    lock = (tmp_path / "clusters/fabric/ipam.lock").read_text()
    assert '{"block":"10.0.80.0/20","pool":"fabric","node":"b/pods/2","quarantined":"2026-11-22"}' in lock


def test_a_range_of_its_own_is_taken_in_as_it_is(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "c/c.yaml", "cidrs: [10.0.0.0/19]", "from: fabric")
    assert run("compile", "--jobs", "1")[0] == 0
    assert index(tmp_path) == START
    assert (
        '{"block":"10.0.0.0/19","pool":"fabric","node":"c/pods"}'
        in (tmp_path / "clusters/fabric/ipam.lock").read_text()
    )


def test_a_cluster_that_goes_leaves_its_range_in_quarantine(run: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "clusters/a")
    assert run("compile", "fabric")[0] == 0
    write(tmp_path, "d/c.yaml", CLUSTER.replace("NAME", "d").replace("RANGES", "from: fabric"))
    assert run("compile", "--jobs", "1")[0] == 0
    assert ("d", "10.0.96.0/19") in index(tmp_path)


def test_one_compile_changes_only_its_own_lines(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "c/c.yaml", "cidrs: [10.0.0.0/19]", "cidrs: [10.0.0.0/19, 10.1.0.0/19]")
    code, said = run("compile", "c", "--check")
    assert (code, "clusters/fabric/rendered/index.jsonl" in said) == (1, True)
    assert run("compile", "c")[0] == 0
    assert index(tmp_path) == [*START, ("c", "10.1.0.0/19")]
    assert run("compile", "--check", "--jobs", "1")[0] == 0


def test_two_that_collide_only_together_are_refused_by_the_check_of_both(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "c/c.yaml", "cidrs: [10.0.0.0/19]", "cidrs: [10.0.0.0/19, 10.1.0.0/19]")
    assert run("compile", "c")[0] == 0
    one = (tmp_path / "clusters/c/c.yaml").read_text()
    theirs = (tmp_path / "clusters/fabric/rendered/index.jsonl").read_text()
    git(tmp_path, "checkout", "--quiet", ".")
    write(tmp_path, "d/c.yaml", CLUSTER.replace("NAME", "d").replace("RANGES", "cidrs: [10.1.16.0/20]"))
    assert run("compile", "d")[0] == 0
    write(tmp_path, "c/c.yaml", one)  # git merges both without a conflict, and takes one side's index
    for text in (theirs, (tmp_path / "clusters/fabric/rendered/index.jsonl").read_text()):
        write(tmp_path, "fabric/rendered/index.jsonl", text)
        code, said = run("compile", "--check", "--jobs", "1")
        assert code == 1
        assert "IPC0701" in said


def test_a_hostile_member_is_refused(run: Run, tmp_path: Path) -> None:
    """It takes a neighbour's range and hides the neighbour; moves its own line of the lock; leaves and takes."""
    edit(tmp_path, "a/c.yaml", "from: fabric", "cidrs: [10.0.0.0/20]")
    edit(tmp_path, "fabric/rendered/index.jsonl", '{"cidr":"10.0.0.0/19","cluster":"c","pool":"pods"}\n', "")
    code, said = run("compile", "fabric", "--check")
    assert (code, "IPC0701" in said) == (1, True)
    git(tmp_path, "checkout", "--quiet", ".")

    edit(tmp_path, "fabric/rendered/index.jsonl", '{"cidr":"10.0.0.0/19","cluster":"c","pool":"pods"}\n', "")
    code, said = run("compile", "fabric", "--check")
    assert (code, "out of date: rendered/index.jsonl" in said) == (1, True)
    assert run("compile", "c", "--check")[0] == 1
    git(tmp_path, "checkout", "--quiet", ".")

    edit(tmp_path, "fabric/ipam.lock", '"10.0.32.0/19","pool":"fabric"', '"10.0.96.0/19","pool":"fabric"')
    rows = (tmp_path / "clusters/fabric/ipam.lock").read_text().splitlines(keepends=True)
    write(tmp_path, "fabric/ipam.lock", "".join([rows[0], *sorted(rows[1:], key=lambda row: "96" in row)]))
    code, said = run("plan", "fabric", "--base", "HEAD")
    assert (code, "IPC0441" in said) == (1, True)
    git(tmp_path, "checkout", "--quiet", ".")

    edit(tmp_path, "a/c.yaml", "from: fabric", "cidrs: [10.0.0.0/20]")
    edit(tmp_path, "a/c.yaml", "  addressSpace: fabric\n", "")
    shutil.rmtree(tmp_path / "clusters/a/rendered")
    (tmp_path / "clusters/a/ipam.lock").unlink()
    assert run("compile", "a")[0] == 0
    code, said = run("plan", "a", "--base", "HEAD")
    assert (code, "IPC0703" in said) == (1, True)
    assert run("compile", "fabric", "--check")[0] == 1


def test_an_index_that_was_merged_as_text_is_refused(run: Run, tmp_path: Path) -> None:
    text = (tmp_path / "clusters/fabric/rendered/index.jsonl").read_text()
    write(tmp_path, "fabric/rendered/index.jsonl", f"{text}<<<<<<< HEAD\n")
    code, said = run("compile", "a")
    assert (code, "IPC0705" in said) == (1, True)
    assert run("compile", "fabric")[0] == 0
    assert index(tmp_path) == START


def test_ids_of_a_mesh_are_unique(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "a/c.yaml", "managedBy: helm", "managedBy: helm, clusterID: 1")
    assert run("compile", "a")[0] == 0
    edit(tmp_path, "b/c.yaml", "managedBy: helm", "managedBy: helm, clusterID: 1")
    code, said = run("compile", "b")
    assert (code, "clusterID 1 of cluster b is that of cluster a, too" in said) == (1, True)
    assert "IPC0707" in run("compile", "fabric")[1]


def test_a_free_address_and_a_held_one_are_found(run: Run) -> None:
    assert "free" in run("which", "10.7.0.1")[1]
    code, said = run("which", "10.0.32.1")
    assert (code, "a/pods" in said, "n1" in said) == (0, True, True)


EXCLUDED = "addressSpace: fabric\n  excludedCIDRs: [192.0.2.0/24]"
SEEN = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: ghost}
spec: {ipam: {podCIDRs: [192.0.2.128/25]}}
"""


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("c/c.yaml", CLUSTER, ""),
        ("c/c.yaml", CLUSTER.replace("addressSpace: fabric", EXCLUDED), "excluded"),
        ("c/c.yaml", CLUSTER.replace("addressSpace: fabric", "ipFamilies: [IPv4]"), ""),
        ("c/c.yaml", CLUSTER.replace("RANGES", "cidrs: [10.0.0.0/19, 192.0.2.0/24]"), "free"),
        ("c/c.yaml", CLUSTER.replace("RANGES", r'cidrs: [10.0.0.0/19, "\x3192.0.2.0/24"]'), "free"),
        ("c/c.yaml", "kind: [ # 192.0.2.0/24", "IPC0001"),
        ("c/c.yaml", CLUSTER.replace("RANGES", "cidrs: [192.0.2.0/24]"), "free"),
        ("c/c.yaml", f"# {'large ' * 20_000}\n" + CLUSTER.replace("RANGES", "cidrs: [192.0.2.0/24]"), "free"),
        ("a/seen.yaml", SEEN, "in use by a CiliumNode"),
        ("a/nodes.json", '{"kind": "NodeInventory", "apiVersion": "ipamc/v1alpha1", "nodes": []}', ""),
        ("fabric/space.yaml", SPACE.replace("10.0.0.0/12", "10.0.0.0/12, 192.0.0.0/19"), "free"),
        ("fabric/rendered/index.jsonl", "", "IPC0705"),
        ("d/c.yaml", CLUSTER.replace("RANGES", "cidrs: [192.0.2.0/24]").replace("NAME", "d"), "free"),
    ],
)
def test_an_address_that_is_in_no_index_is_looked_for_in_the_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, row: str
) -> None:
    """Files that say nothing about it are not read: the answer is that of reading all."""
    write(tmp_path, name, text.replace("NAME", "c").replace("RANGES", "cidrs: [10.0.0.0/19]"))
    quick = run("which", "192.0.2.200")
    monkeypatch.setattr(spaces, "silent_members", lambda *_: frozenset())
    assert quick == run("which", "192.0.2.200")
    assert row in quick[1]
    assert bool(row) == ("no pool of" not in quick[1])


def test_members_that_say_nothing_about_an_address_are_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ipamc.review.as_needed.load_without_nodes")
    assert run("which", "192.0.2.200") == (1, "no node has 192.0.2.200, and no pool of 4 clusters has it\n")


NO_NODES = "fabric is an address space; it has no nodes: name a cluster"


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "fabric", "dump.json"),
        ("ci", "apply", "a", "fabric"),
        ("ci", "flux", "fabric"),
        ("ci", "rbac", "fabric"),
        ("import", "fabric", "dump.json"),
        ("import", "fabric", "--refresh", "dump.json"),
        ("import", "fabric", "--machines", "machines.csv"),
        ("init", "fabric"),
        ("resize", "fabric", "dump.json"),
        ("runbook", "fabric"),
        ("show", "fabric", "--what-if", "+3"),
        ("suggest", "pool", "fabric", "--size", "20"),
    ],
    ids=" ".join,
)
def test_what_needs_nodes_refuses_a_space(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = sorted((tmp_path / "clusters").rglob("*"))
    code, said = run(*words)
    assert (code, said.splitlines()[0]) == (64, f"error: {NO_NODES}")
    assert sorted((tmp_path / "clusters").rglob("*")) == before


def test_of_two_branches_that_ask_at_once_one_is_placed_again(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "branch", "--move", "main")
    git(tmp_path, "branch", "other")
    for branch, name in (("main", "zz"), ("other", "bb")):
        git(tmp_path, "checkout", branch)
        write(tmp_path, f"{name}/c.yaml", CLUSTER.replace("NAME", name).replace("RANGES", "from: fabric"))
        assert run("compile", "fabric", name, "--jobs", "1")[0] == 0
        commit(tmp_path)
    code, said = run("ci", "merge", "main")
    assert (code, "IPC0701" in said, "not in the inventory" in said) == (1, True, False)
    shutil.rmtree(tmp_path / "clusters/bb/rendered")
    (tmp_path / "clusters/bb/ipam.lock").unlink()
    commit(tmp_path)
    code, said = run("ci", "merge", "main")
    assert code == 0, said
    assert index(tmp_path)[-2:] == [("zz", "10.0.96.0/19"), ("bb", "10.0.128.0/19")]
    assert run("compile", "--check", "--jobs", "1")[0] == 0


def test_an_index_counts_in_the_folder_of_its_space_alone(run: Run, tmp_path: Path) -> None:
    text = (tmp_path / "clusters/fabric/rendered/index.jsonl").read_text()
    write(tmp_path, "zzz/rendered/index.jsonl", text.replace("10.0.32.0/19", "10.9.0.0/19"))
    assert run("compile", "a", "--check")[0] == 0
    write(tmp_path, "fabric/rendered/index.jsonl", text.replace("fabric", "zzz"))
    assert "cannot be read: it says that it is of 'zzz'" in run("compile", "a")[1]


@pytest.mark.usefixtures("run")
def test_a_space_compiles_in_its_own_folder(tmp_path: Path) -> None:
    done = ipamc("compile", ".", "--check", cwd=tmp_path / "clusters/fabric", environment=ENVIRONMENT)
    assert (done.returncode, "up to date" in done.stderr) == (0, True)


def test_a_cluster_that_names_the_kind_in_a_comment_is_no_space(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "new/c.yaml", "# AddressSpace fabric\n" + CLUSTER.replace("NAME", "new"))
    assert NO_NODES not in run("runbook", "new")[1]


def test_a_space_counts_ranges_and_no_total_counts_them_twice(run: Run) -> None:
    said = run("show")[1]
    assert "fabric: 2 ranges with 2 blocks" in said
    assert [line.split()[2] for line in said.splitlines() if line.startswith("all clusters")] == ["20,480"]
    assert "126 ranges" in run("show", "fabric", "--runway")[1]
    run("lock", "fabric", "--renumber", "a/pods")
    assert "then ipamc lock SPACE --settle CLUSTER/POOL" in run("plan", "fabric", "--base", "HEAD")[1]


def test_findings_about_a_space_name_its_kind_and_come_once(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "fabric/space.yaml", "prefixLength", "prefixLenght")
    assert "IPC0105" not in run("compile", "fabric")[1]
    git(tmp_path, "checkout", ".")
    (tmp_path / "clusters/fabric").rename(tmp_path / "clusters/other")
    assert "AddressSpace 'fabric' is in the folder 'other'" in run("compile", "other")[1]
    git(tmp_path, "checkout", ".")
    shutil.rmtree(tmp_path / "clusters/other")
    (tmp_path / "clusters/fabric/rendered/index.jsonl").write_text("<<<<<<<\n")
    assert run("compile", "a", "b", "--jobs", "1", "--format", "concise")[1].count("IPC0705") == 1


def test_a_writer_of_the_index_waits_for_a_compile_of_the_space(run: Run, tmp_path: Path) -> None:
    edit(tmp_path, "c/c.yaml", "cidrs: [10.0.0.0/19]", "cidrs: [10.0.0.0/19, 10.1.0.0/19]")
    handle = os.open(tmp_path / "clusters/fabric", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    timer = threading.Timer(0.5, os.close, [handle])
    timer.start()
    start = time.monotonic()
    assert run("compile", "c")[0] == 0
    timer.join()
    assert time.monotonic() - start > 0.4
    assert index(tmp_path) == [*START, ("c", "10.1.0.0/19")]
