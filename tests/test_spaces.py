"""Address spaces from the command line: who asks, gets, grows and gives back; and what a hostile member tries."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ipamc.workspace import spaces
from tests.support.in_process import ipamc
from tests.support.spaces import cluster, inventory, member, pool

ENVIRONMENT = {"SOURCE_DATE_EPOCH": "1795305600", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {name: fabric}
spec:
  ipv4: {cidrs: [10.0.0.0/12], prefixLength: 19}
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
        write(tmp_path, f"{name}/c.yaml", member(name, ranges))
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


def test_a_service_network_is_given_as_a_range_of_a_pool_is(run: Run, tmp_path: Path) -> None:
    """Pods get nothing of it, no other cluster does, and it is in quarantine once its cluster asks no more."""
    services = "  services: {ipv4: {from: fabric, prefixLength: 20}}\n"
    write(tmp_path, "d/c.yaml", cluster("d") + services + "---\n" + pool("from: fabric", size=25))
    assert run("compile", "--jobs", "1")[0] == 0
    assert index(tmp_path) == [*START, ("d", "10.0.80.0/20"), ("d", "10.0.96.0/19")]
    assert '"node":"d/services"}' in (tmp_path / "clusters/fabric/ipam.lock").read_text()
    assert "10.0.80.0/20  excluded\n  cluster  d\n" in run("which", "10.0.80.1")[1]
    write(tmp_path, "d/own.yaml", pool("cidrs: [10.0.80.0/24]", size=25, name="own"))
    assert (
        'error[IPC0208]: 10.0.80.0/24 of pool "own" overlaps excluded 10.0.80.0/20' in run("compile", "d")[1]
    )
    write(tmp_path, "d/own.yaml", pool("cidrs: [10.1.0.0/24]", size=25, name="services"))
    assert "a pool has the name services, too" in run("compile", "d")[1]
    (tmp_path / "clusters/d/own.yaml").unlink()
    edit(tmp_path, "d/c.yaml", services, "")
    assert run("compile", "--jobs", "1")[0] == 0
    assert '"node":"d/services","quarantined"' in (tmp_path / "clusters/fabric/ipam.lock").read_text()


def test_a_pool_of_one_family_asks_a_space_of_both(run: Run, tmp_path: Path) -> None:
    edit(
        tmp_path,
        "fabric/space.yaml",
        "prefixLength: 19}",
        "prefixLength: 19}\n  ipv6: {cidrs: ['fd00::/32'], prefixLength: 64}",
    )
    write(tmp_path, "d/c.yaml", member("d", "from: fabric"))
    assert run("compile", "--jobs", "1")[0] == 0
    assert ("d", "10.0.96.0/19") in index(tmp_path)


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
    write(tmp_path, "d/c.yaml", member("d", "from: fabric"))
    assert run("compile", "--jobs", "1")[0] == 0
    assert ("d", "10.0.96.0/19") in index(tmp_path)


@pytest.mark.parametrize(
    ("edits", "new"),
    [
        ({"metadata: {name: pods}": "metadata: {name: workers}"}, "b/workers"),
        ({"metadata: {name: b}": "metadata: {name: west}"}, "west/pods"),
    ],
)
def test_another_name_keeps_the_range_by_consent(
    run: Run, tmp_path: Path, edits: dict[str, str], new: str
) -> None:
    for old, other in edits.items():
        edit(tmp_path, "b/c.yaml", old, other)
    folder = new.partition("/")[0]
    if folder != "b":
        (tmp_path / "clusters/b").rename(tmp_path / "clusters" / folder)
        code, said = run("compile", "--jobs", "1")
        assert (code, 'replace "cluster":"b" by "cluster":"west" in line 1' in said) == (1, True)
        edit(tmp_path, f"{folder}/ipam.lock", '"cluster":"b"', f'"cluster":"{folder}"')
    code, said = run("compile", "--jobs", "1")
    assert (code, said.count("error[IPC0710]")) == (1, 1)
    assert (
        f"{new} requests a new range, but 10.0.64.0/25 of node n1 and 1 more block lie in 10.0.64.0/20"
        in said
    )
    rename = ["lock", "fabric", "--rename", f"b/pods={new}"]
    assert f"ipamc {' '.join(rename)}" in said
    assert run(*rename)[0] == 0
    assert run("compile", "--jobs", "1")[0] == 0
    assert index(tmp_path) == [*START[:2], (folder, "10.0.64.0/20")]
    assert run("compile", "--check", "--jobs", "1")[0] == 0


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
    write(tmp_path, "d/c.yaml", member("d", "cidrs: [10.1.16.0/20]"))
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
    git(tmp_path, "rm", "--quiet", "clusters/a/ipam.lock")
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
    assert (code, "clusters a and b have the same clusterID 1" in said) == (1, True)
    assert "IPC0707" in run("compile", "fabric")[1]


def test_a_free_address_and_a_held_one_are_found(run: Run) -> None:
    assert "free" in run("which", "10.7.0.1")[1]
    code, said = run("which", "10.0.32.1")
    assert (code, "a/pods" in said, "n1" in said) == (0, True, True)


OWN = "cidrs: [10.0.0.0/19]"
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
        ("c/c.yaml", member("c", OWN), ""),
        ("c/c.yaml", member("c", OWN).replace("addressSpace: fabric", EXCLUDED), "excluded"),
        ("c/c.yaml", member("c", OWN).replace("addressSpace: fabric", "ipFamilies: [IPv4]"), ""),
        ("c/c.yaml", member("c", "cidrs: [10.0.0.0/19, 192.0.2.0/24]"), "free"),
        ("c/c.yaml", member("c", r'cidrs: [10.0.0.0/19, "\x3192.0.2.0/24"]'), "free"),
        ("c/c.yaml", "kind: [ # 192.0.2.0/24", "IPC0001"),
        ("c/c.yaml", member("c", "cidrs: [192.0.2.0/24]"), "free"),
        ("c/c.yaml", f"# {'large ' * 20_000}\n" + member("c", "cidrs: [192.0.2.0/24]"), "free"),
        ("a/seen.yaml", SEEN, "in use by a CiliumNode"),
        ("a/nodes.json", '{"kind": "NodeInventory", "apiVersion": "ipamc/v1alpha1", "nodes": []}', ""),
        ("fabric/space.yaml", SPACE.replace("10.0.0.0/12", "10.0.0.0/12, 192.0.0.0/19"), "free"),
        ("fabric/rendered/index.jsonl", "", "IPC0705"),
        ("d/c.yaml", member("d", "cidrs: [192.0.2.0/24]"), "free"),
    ],
)
def test_an_address_that_is_in_no_index_is_looked_for_in_the_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, row: str
) -> None:
    """Files that say nothing about it are not read: the answer is that of reading all."""
    write(tmp_path, name, text)
    quick = run("which", "192.0.2.200")
    monkeypatch.setattr(spaces, "members_without", lambda *_: frozenset())
    assert quick == run("which", "192.0.2.200")
    assert row in quick[1]
    assert bool(row) == ("no pool of" not in quick[1])


def test_members_that_say_nothing_about_an_address_are_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ipamc.pipeline.load_cluster")
    assert run("which", "192.0.2.200") == (1, "no node has 192.0.2.200, and no pool of 4 clusters has it\n")


NO_NODES = "fabric is an address space without nodes: name a cluster"


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "fabric", "dump.json"),
        ("apply", "a", "fabric"),
        ("ci", "flux", "fabric"),
        ("ci", "rbac", "fabric"),
        ("import", "fabric", "dump.json"),
        ("import", "fabric", "--refresh", "dump.json"),
        ("import", "fabric", "--machines", "machines.csv"),
        ("init", "fabric"),
        ("resize", "fabric", "dump.json"),
        ("runbook", "fabric"),
        ("forecast", "fabric", "--what-if", "+3"),
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
        write(tmp_path, f"{name}/c.yaml", member(name, "from: fabric"))
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
    assert "cannot be read: it names address space 'zzz'" in run("compile", "a")[1]


@pytest.mark.usefixtures("run")
def test_a_space_compiles_in_its_own_folder(tmp_path: Path) -> None:
    done = ipamc("compile", ".", "--check", cwd=tmp_path / "clusters/fabric", environment=ENVIRONMENT)
    assert (done.returncode, "up to date" in done.stderr) == (0, True)


def test_a_cluster_that_names_the_kind_in_a_comment_is_no_space(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "new/c.yaml", "# AddressSpace fabric\n" + member("new", "from: fabric"))
    assert NO_NODES not in run("runbook", "new")[1]


def test_a_space_counts_ranges_and_no_total_counts_them_twice(run: Run) -> None:
    said = run("show")[1]
    assert "fabric: 2 clusters with 2 ranges" in said
    assert [line.split()[2] for line in said.splitlines() if line.startswith("all clusters")] == ["20,480"]
    assert "125 ranges" in run("forecast", "fabric")[1]
    run("lock", "fabric", "--renumber", "a/pods")
    assert "then ipamc lock fabric --settle a/pods" in run("plan", "fabric", "--base", "HEAD")[1]


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
    steps: list[str] = []

    def release() -> None:
        steps.append("released")
        os.close(handle)

    timer = threading.Timer(0.5, release)
    timer.start()
    assert run("compile", "c")[0] == 0
    steps.append("compiled")
    timer.join()
    assert steps == ["released", "compiled"]
    assert index(tmp_path) == [*START, ("c", "10.1.0.0/19")]


def test_a_space_is_told_of_in_ranges(run: Run, tmp_path: Path) -> None:
    for command, said in (
        ("lock fabric --leave a/pods", "a/pods cannot leave: it is still requested by a cluster"),
        ("lock fabric --renumber z", "z matches no block held by a range requested by a cluster"),
        ("lock fabric --release a/pods", "take a/pods out of its cluster, and release each by its name"),
        (
            "lock fabric --rename a/pods=z",
            "a/pods cannot be renamed to z: it is still requested by a cluster",
        ),
        ("why a/podz", "did you mean 'a/pods'?"),
        ("why a/pods --at HEAD", "reads only the files on the disk: omit --at"),
        ("which a/pods", "  range    a/pods\n"),
        ("which 10.0.40.0", "10.0.40.0/32  free\n  cluster  a\n"),
        ("show fabric", "fabric: 2 clusters with 2 ranges"),
        ("forecast fabric", "| RANGES A WEEK |"),
    ):
        assert said in run(*command.split())[1], command
    write(tmp_path, "new/c.yaml", cluster("new").replace("  addressSpace: fabric\n", ""))
    write(tmp_path, "new/ippools.yaml", pool("from: fabricc", size=25))
    assert "did you mean fabric? If not, compile the space: ipamc compile fabricc" in run("compile", "new")[1]
    write(tmp_path, "new/ippools.yaml", pool("from: fabric, prefixLength: 12", size=25))
    said = run("compile", "fabric")[1]
    assert "pool fabric has no room for 1 range: new/pods; " in said
    assert "clusters/new/ippools.yaml:5:16: range new/pods needs a block" in said
    for name in ("a", "b", "new"):
        shutil.rmtree(tmp_path / "clusters" / name)
    said = run("compile", "fabric")[1]
    assert "no cluster requests a range, but the lock has blocks of 2 ranges: a/pods, b/pods" in said
    assert "restore the folders of their clusters, and `from` in their pools" in said


def test_a_range_that_moved_is_settled_and_no_machine_is_drained_for_it(run: Run, tmp_path: Path) -> None:
    """The name of a range is no name of a node: no step of kubectl is for it."""
    assert run("lock", "fabric", "--renumber", "a/pods")[0] == 0
    assert run("compile", "fabric")[0] == 0
    commit(tmp_path)
    assert run("lock", "fabric", "--settle", "a/pods")[0] == 0
    code, said = run("plan", "fabric", "--base", "HEAD")
    assert code == 0
    assert "1 renumbered" in said
    assert "kubectl" not in said


def test_why_tells_which_level_gave_a_range(run: Run, tmp_path: Path) -> None:
    levels = '  levels: [{name: eu, clusterSelector: region == "eu", ipv4: {cidrs: [10.8.0.0/13]}}]\n'
    write(tmp_path, "fabric/space.yaml", SPACE + levels)
    write(
        tmp_path,
        "d/c.yaml",
        member("d", "from: fabric").replace("{name: d}", "{name: d, labels: {region: eu}}"),
    )
    assert run("compile", "fabric")[0] == 0
    said = (
        "d/pods of fabric: held\n"
        "  range        region=eu\n"
        "               clusters/d/c.yaml:13\n"
        "  first        eu: the only candidate\n"
        '               clusters/fabric/space.yaml:6: clusterSelector region == "eu"\n'
        "  skipped      fabric: comes later by requirements: 0, but eu has 1\n"
        "               clusters/fabric/space.yaml:5: clusterSelector all()\n"
        "  block        10.8.0.0/19 of eu, held; a pool keeps the range it has\n"
        "               clusters/fabric/ipam.lock:4\n"
    )
    assert run("why", "d/pods") == (0, said)


def test_a_level_may_have_a_whole_cidr_of_the_space(run: Run, tmp_path: Path) -> None:
    levels = '  levels: [{name: eu, clusterSelector: region == "eu", ipv4: {cidrs: [10.16.0.0/12]}}]\n'
    write(tmp_path, "fabric/space.yaml", SPACE.replace("/12]", "/12, 10.16.0.0/12]") + levels)
    assert run("compile", "fabric")[0] == 0
    write(tmp_path, "fabric/space.yaml", SPACE + levels.replace("10.16", "10.0"))
    assert run("compile", "fabric")[0] == 0
    write(tmp_path, "d/c.yaml", member("d", "from: fabric"))
    said = run("compile", "fabric")[1]
    assert "1 range without a candidate pool: d/pods (no labels)" in said
    assert "widen a level's clusterSelector, or add a range for all clusters" in said


def test_a_document_that_was_lost_is_restored(run: Run, tmp_path: Path) -> None:
    (tmp_path / "clusters/fabric/space.yaml").unlink()
    for command in ("compile", "plan", "show"):
        code, said = run(command, "fabric")
        assert (code, "IPC0105" in said, "ipamc init" in said) == (1, True, False)
        assert (
            "git checkout HEAD -- clusters/fabric; or, once no pool requests from it, remove the folder"
            in said
        )
    assert run("compile", "a")[0] == 0


def test_what_asks_is_known_wherever_its_documents_are(run: Run, tmp_path: Path) -> None:
    """In files of their own, without `addressSpace`, or without the kind that was deleted by mistake."""
    write(
        tmp_path,
        "new/cluster.yaml",
        "# asks the AddressSpace\n" + cluster("new").replace("  addressSpace: fabric\n", ""),
    )
    write(tmp_path, "new/nodes.yaml", inventory("n1"))
    write(tmp_path, "new/ippools.yaml", pool("from: fabric", size=25))
    assert run("compile", "fabric", "new")[0] == 0
    assert index(tmp_path)[-1] == ("new", "10.0.96.0/19")
    assert run("compile", "new", "--check")[0] == 0
    edit(tmp_path, "new/ippools.yaml", "kind: IPPool\n", "")
    code, said = run("compile", "fabric")
    assert (
        code,
        "cluster new cannot be read, and may have the same addresses: the document has no kind" in said,
    ) == (1, True)
    edit(tmp_path, "fabric/space.yaml", "kind: AddressSpace\n", "")
    assert "write kind: AddressSpace" in run("compile", "fabric")[1]


def test_what_clusters_have_of_their_own_is_not_free(run: Run, tmp_path: Path) -> None:
    """The /12 has 128 /19: those of a and c, and half of one of b, are taken. A commit tells the same."""
    for words in ((), ("--at", "HEAD")):
        assert "125 ranges" in run("show", "fabric", *words)[1]
    assert "excluded: c/pods" in run("which", "10.0.20.0")[1]
    edit(tmp_path, "b/c.yaml", "prefixLength: 20", "prefixLength: 20, ranges: 2")
    for _ in ("before the compile", "after it"):
        said = run("plan", "fabric", "--base", "HEAD")[1]
        assert ("+ b/pods/2 10.0.80.0/20 fabric" in said, "  pools\n" in said, "capacity" in said) == (
            True,
            False,
            False,
        )
        assert run("compile", "--jobs", "1")[0] == 0


def test_suggest_proposes_what_asks_the_space(run: Run, tmp_path: Path) -> None:
    reserved = "  reserved: [{cidr: 10.0.96.0/19, reason: machines}]\n"
    write(tmp_path, "fabric/space.yaml", SPACE + reserved)
    shutil.rmtree(tmp_path / "clusters/b")
    assert run("compile", "fabric")[0] == 0
    code, said = run("suggest", "pool", "a", "--size", "19", "--count", "9")
    assert (code, "in 10.0.0.0/12 (fabric of address space fabric)" in said) == (0, True)
    assert "  ipv4: {from: fabric, prefixLength: 19, blockSize: 25}\n" in said
    assert "reserved in address space fabric: 10.0.96.0/19 (machines)" in said
    assert "10.0.96.0/19  64 blocks" not in said
    assert "10.0.64.0/19  64 blocks" not in said, "a half of it is in quarantine"
    assert (
        "{from: fabric, ranges: 2, blockSize: 25}"
        in run("suggest", "pool", "a", "--pool", "pods", "--size", "19")[1]
    )
    assert (
        "{cidrs: [10.1.0.0/19], blockSize"
        in run("suggest", "pool", "a", "--size", "19", "--from", "10.1.0.0/16")[1]
    )


def test_a_cluster_leaves_while_another_one_grows(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "branch", "--move", "main")
    git(tmp_path, "checkout", "-b", "grow")
    edit(tmp_path, "b/c.yaml", "prefixLength: 20", "prefixLength: 20, ranges: 2")
    assert run("compile", "--jobs", "1")[0] == 0
    commit(tmp_path)
    git(tmp_path, "checkout", "main")
    shutil.rmtree(tmp_path / "clusters/a")
    assert run("compile", "fabric")[0] == 0
    commit(tmp_path)
    git(tmp_path, "checkout", "grow")
    code, said = run("ci", "merge", "main")
    assert code == 0, said
    assert index(tmp_path) == [("c", "10.0.0.0/19"), ("b", "10.0.64.0/20"), ("b", "10.0.80.0/20")]
    assert (
        '"node":"a/pods","quarantined":"2026-11-22"' in (tmp_path / "clusters/fabric/ipam.lock").read_text()
    )
    assert run("compile", "--check", "--jobs", "1")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "cluster"),
    [
        ('"10.0.32.0/19","cluster":"a"', '"10.0.32.0/19","cluster":"b"', "a"),
        ('"range":1}\n{"cidr":"10.0.64', '"range":1,"pending":true}\n{"cidr":"10.0.64', ""),
        ('"pool":"pods","range":1}\n{"cidr":"10.0.64', '"pool":"pods","range":2}\n{"cidr":"10.0.64', "a"),
        ('{"cidr":"10.0.0.0/19","cluster":"c","pool":"pods"}', '{"cidr":"10.0.0.0/20","cluster":"c","pool":"pods"}', "c"),
    ],
)  # fmt: skip
def test_an_edit_of_the_index_is_refused(run: Run, tmp_path: Path, old: str, new: str, cluster: str) -> None:
    """By the check of the space, which is made for each change; and by that of the cluster that loses by it."""
    edit(tmp_path, "fabric/rendered/index.jsonl", old, new)
    code, said = run("compile", "fabric", "--check")
    assert (code, "out of date: rendered/index.jsonl" in said) == (1, True)
    assert not cluster or run("compile", cluster, "--check")[0] == 1
