"""Clusters of one address space: what overlaps is refused on both sides, and so is what nobody can tell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.check.address_space import overlapping_clusters
from ipamc.cli import main
from ipamc.model.cidr import BITS, Block, parse_block
from ipamc.model.diagnostics import Place
from ipamc.model.space import ClusterPrefixes, Prefix
from tests.support.spaces import cluster, inventory, pool

AT = Place("built.yaml")
SPACE = "{apiVersion: ipamc/v1alpha1, kind: AddressSpace, metadata: {name: fabric}, spec: {}}\n"
ALL = ["compile", "--jobs", "1"]


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two clusters of one address space that share nothing, as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    start("blue", "10.1.0.0/24")
    start("red", "10.2.0.0/24")
    Path("clusters/fabric").mkdir()
    Path("clusters/fabric/space.yaml").write_text(SPACE)
    assert main(["compile", "fabric"]) == 0
    return tmp_path


def start(name: str, cidr: str, *, parent: str = "clusters") -> None:
    folder = Path(parent, name)
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(cluster(name))
    (folder / "ippools.yaml").write_text(pool(f"cidrs: [{cidr}]", size=27, name=f"pods-of-{name}"))
    (folder / "nodes.yaml").write_text(inventory(f"{name}-1"))


def edit(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new))


def refused(arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, set[str]]:
    """Run a verb that refuses; give the places of IPC0701 and IPC0702 by the folder that they are in, and check that nothing was written there."""
    before = files()
    capsys.readouterr()
    assert main(arguments.split()) == 1
    found = re.findall(r"error\[(IPC070[12])\]: .*\n *--> ([^\s:]+)", capsys.readouterr().err)
    by_folder: dict[str, set[str]] = {}
    for code, place in found:
        by_folder.setdefault(Path(place).parent.name, set()).add(f"{code} {Path(place).name}")
    assert {path: text for path, text in files().items() if by_folder.keys() & Path(path).parts} == {
        path: text for path, text in before.items() if by_folder.keys() & Path(path).parts
    }
    return by_folder


def files() -> dict[str, str]:
    return {path.as_posix(): path.read_text() for path in sorted(Path().rglob("*")) if path.is_file()}


# Both are refused.


def test_clusters_that_share_nothing_compile(fabric: Path) -> None:
    assert main(ALL) == 0
    assert (fabric / "clusters/red/ipam.lock").exists()
    assert main([*ALL, "--locked", "--check"]) == 0


def test_both_ends_are_shown_and_a_way_out(fabric: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.2.0.0/24, 10.1.0.0/25")
    assert main(ALL) == 1
    text = capsys.readouterr().err
    assert (
        'error[IPC0701]: 10.1.0.0/24 of pool "pods-of-blue" overlaps 10.1.0.0/25 of pool "pods-of-red" of cluster red '
        "in the same address space\n"
        " --> clusters/blue/ippools.yaml:5:18\n"
        "5 |   ipv4: {cidrs: [10.1.0.0/24], blockSize: 27}\n"
        "  |                  ^^^^^^^^^^^\n"
        " ::: clusters/red/ippools.yaml:5:31: 10.1.0.0/25 belongs to cluster red here\n"
        " ::: clusters/blue/cluster.yaml:7:17: address space fabric is named here\n"
        " = help: split 10.1.0.0/24 around 10.1.0.0/25 in cluster blue, or use another range in one of the two\n"
    ) in text
    assert " --> clusters/red/ippools.yaml:5:31\n" in text
    assert text.endswith(
        "blue: refused, nothing written\nfabric: refused, nothing written\nred: refused, nothing written\n"
    )
    assert [path.parent.name for path in fabric.rglob("ipam.lock")] == ["fabric"]


@pytest.mark.usefixtures("fabric")
@pytest.mark.parametrize(
    "verb",
    [
        "compile --jobs 1",
        "compile --jobs 2",
        "compile --jobs 1 --check",
        "compile --jobs 1 --locked",
        "plan --jobs 1",
        "lock",
        "lock --check",
    ],
)
def test_every_way_to_write_is_refused_and_so_is_the_plan(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ALL) == 0
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.2.0.0/24, 10.1.0.0/16")
    assert refused(verb, capsys) == {"blue": {"IPC0701 ippools.yaml"}, "red": {"IPC0701 ippools.yaml"}}


def test_a_third_cluster_is_written_all_the_same(fabric: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.1.0.0/24")
    start("green", "10.3.0.0/24")
    assert sorted(refused("compile --jobs 1", capsys)) == ["blue", "red"]
    assert (fabric / "clusters/green/ipam.lock").exists()


@pytest.mark.usefixtures("fabric")
def test_one_cluster_is_compared_with_the_index(capsys: pytest.CaptureFixture[str]) -> None:
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.1.0.0/24")
    assert refused("compile clusters/red", capsys) == {"red": {"IPC0701 ippools.yaml"}}
    assert main(["compile", "blue"]) == 0, "the space gave red nothing"
    assert refused("compile fabric", capsys) == {
        "blue": {"IPC0701 ippools.yaml"},
        "red": {"IPC0701 ippools.yaml"},
    }


def test_also_by_a_folder_that_one_is_in(
    fabric: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.1.0.0/24")
    monkeypatch.chdir(fabric / "clusters/red")
    assert main(["compile", "."]) == 1
    assert " ::: ../fabric/rendered/index.jsonl:2" in capsys.readouterr().err
    monkeypatch.chdir(fabric / "clusters/fabric")
    assert main(["compile", "."]) == 1
    assert " ::: ../red/ippools.yaml:5:18" in capsys.readouterr().err


def test_outside_of_clusters_a_member_is_what_has_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("blue", "red"):
        start(name, "10.1.0.0/24", parent="sites")
    assert main(["init", "--space", "sites/fabric"]) == 1
    assert "no cluster beside sites/fabric belongs to address space fabric" in capsys.readouterr().err
    assert main(["compile", "sites/blue"]) == 0
    assert main(["init", "--space", "sites/fabric"]) == 0
    assert refused("compile sites/red", capsys) == {"red": {"IPC0701 ippools.yaml"}}


# What is shared, and what is not.


@pytest.mark.usefixtures("fabric")
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("clusters/red/cluster.yaml", "  addressSpace: fabric\n", ""),
        ("clusters/red/cluster.yaml", "addressSpace: fabric", "addressSpace: elsewhere"),
        ("clusters/red/ippools.yaml", "10.1.0.0/24", "10.1.1.0/24"),
    ],
)
def test_other_spaces_and_other_addresses_are_nobodys_business(path: str, old: str, new: str) -> None:
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.1.0.0/24")
    edit(path, old, new)
    assert main(ALL) == 0


@pytest.mark.usefixtures("fabric")
def test_what_one_excludes_another_may_have() -> None:
    edit("clusters/red/cluster.yaml", "  addressSpace", "  excludedCIDRs: [10.1.0.0/16]\n  addressSpace")
    assert main(ALL) == 0


@pytest.mark.usefixtures("fabric")
@pytest.mark.parametrize("field", ["disabled: true", "reserved: [10.1.0.0/24]"])
def test_a_range_counts_even_if_nothing_is_given_out_of_it(
    field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = pool("cidrs: [10.1.0.0/16]", size=27, name="more") + f"  {field}\n"
    Path("clusters/red/more.yaml").write_text(more)
    assert refused("compile --jobs 1", capsys) == {
        "blue": {"IPC0701 ippools.yaml"},
        "red": {"IPC0701 more.yaml"},
    }


def leave_outside(name: str) -> None:
    """Have the only node of a cluster leave, and take its range away: the line stays, in no range."""
    assert main(["compile", name]) == 0
    edit(f"clusters/{name}/nodes.yaml", f"[{{name: {name}-1}}]", "[]")
    edit(f"clusters/{name}/ippools.yaml", "10.2.0.0/24", "10.9.0.0/24")
    assert main(["lock", name, "--leave", "all"]) == 0


@pytest.mark.usefixtures("fabric")
def test_a_block_that_was_left_counts_until_it_is_released(capsys: pytest.CaptureFixture[str]) -> None:
    leave_outside("red")
    edit("clusters/blue/ippools.yaml", "10.1.0.0/24", "10.2.0.0/24")
    assert refused("compile --jobs 1", capsys) == {
        "blue": {"IPC0701 ippools.yaml"},
        "red": {"IPC0701 ipam.lock"},
    }
    assert main(["compile", "fabric"]) == 1
    text = capsys.readouterr().err
    assert "overlaps 10.2.0.0/27 of node red-1 of cluster red" in text
    assert " ::: clusters/red/ipam.lock:2:10: 10.2.0.0/27 belongs to cluster red here\n" in text
    assert " = help: once no pod uses it: ipamc lock red --release 10.2.0.0/27\n" in text
    assert main(["lock", "red", "--release", "10.2.0.0/27"]) == 0
    assert main(ALL) == 0


@pytest.mark.usefixtures("fabric")
def test_a_block_held_outside_of_every_pool_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ALL) == 0
    edit("clusters/red/cluster.yaml", "  addressSpace", "  unpooled: hold\n  addressSpace")
    edit("clusters/red/ippools.yaml", "10.2.0.0/24", "10.9.0.0/24")
    edit("clusters/blue/ippools.yaml", "10.1.0.0/24", "10.1.0.0/24, 10.2.0.0/16")
    assert refused("compile --jobs 1", capsys) == {
        "blue": {"IPC0701 ippools.yaml"},
        "red": {"IPC0701 ipam.lock"},
    }
    assert main(["compile", "fabric"]) == 1
    help_line = "remove addressSpace from red until node red-1 has moved: ipamc lock red --renumber red-1"
    assert help_line in capsys.readouterr().err


@pytest.mark.usefixtures("fabric")
def test_a_block_that_is_adopted_in_this_run_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """It is in no lock yet: it is shown where the lock is, as a whole."""
    edit("clusters/red/cluster.yaml", "  addressSpace", "  unpooled: hold\n  addressSpace")
    seen = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": "red-1"},
        "spec": {"ipam": {"podCIDRs": ["10.1.0.32/27"]}},
    }
    Path("clusters/red/seen.json").write_text(json.dumps(seen))
    assert refused("compile red", capsys) == {"red": {"IPC0701 ipam.lock"}}


# A member that cannot be read.


@pytest.mark.usefixtures("fabric")
@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        ("cluster.yaml", "mode: cluster-pool", "mode: magic", "'magic'"),
        ("ippools.yaml", "10.2.0.0/24", "10.2.0.1/24", "'10.2.0.1/24' has host bits set"),
        ("ipam.lock", '"pool"', '"pol"', "unknown fields"),
        ("ipam.lock", '"cluster":"red"', '"cluster":"other"', "this is the lock of cluster 'other'"),
    ],
)
def test_nothing_is_written_beside_it(
    path: str, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(ALL) == 0
    edit(f"clusters/red/{path}", old, new)
    assert refused("compile fabric", capsys) == {"fabric": {"IPC0702 space.yaml"}}
    assert main(["compile", "fabric"]) == 1
    text = capsys.readouterr().err
    assert "cluster red cannot be read, and may have the same addresses: " in text
    assert said in text
    assert f" ::: clusters/red/{path}:" in text
    assert " = help: correct all of its findings: ipamc compile red --check\n" in text


def test_a_lost_lock_and_a_link_are_said_too(fabric: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ALL) == 0
    lock = fabric / "clusters/red/ipam.lock"
    kept = lock.read_bytes()
    lock.unlink()
    assert refused("compile fabric", capsys) == {"fabric": {"IPC0702 space.yaml"}}
    lock.symlink_to(fabric / "clusters/blue/ipam.lock")
    assert refused("compile fabric", capsys) == {"fabric": {"IPC0702 space.yaml"}}
    lock.unlink()
    lock.write_bytes(kept)
    (fabric / "clusters/red/more.yaml").symlink_to(fabric / "clusters/blue/ippools.yaml")
    assert refused("compile fabric", capsys) == {"fabric": {"IPC0702 space.yaml"}}


def test_of_another_space_it_does_not_matter(fabric: Path) -> None:
    assert main(ALL) == 0
    edit("clusters/red/cluster.yaml", "addressSpace: fabric", "addressSpace: elsewhere")
    (fabric / "clusters/red/ipam.lock").write_text("")
    assert main(["compile", "fabric"]) == 0


def test_nor_do_its_nodes_or_what_names_no_space(fabric: Path) -> None:
    (fabric / "clusters/red/nodes.yaml").write_text("nodes: [")
    start("green", "10.1.0.0/24")
    edit("clusters/green/cluster.yaml", "  addressSpace: fabric\n", "")
    edit("clusters/green/ippools.yaml", "10.1.0.0/24", "10.1.0.1/24")
    assert main(["compile", "fabric"]) == 0


@pytest.mark.usefixtures("fabric")
def test_two_clusters_change_their_mode_one_after_the_other() -> None:
    assert main(ALL) == 0
    for name in ("blue", "red"):
        edit(f"clusters/{name}/cluster.yaml", "mode: cluster-pool", "mode: multi-pool, pinning: node")
    for name in ("blue", "red"):
        assert main(["lock", name, "--mode"]) == 0
    assert main(ALL) == 0


# The sweep.


def using(cluster: str, *cidrs: str, space: str = "fabric") -> ClusterPrefixes:
    blocks = [parse_block(cidr) for cidr in cidrs]
    return ClusterPrefixes(
        cluster=cluster,
        space=space,
        at=AT,
        prefixes=tuple(Prefix(block=block, at=AT, owner=f"pool-{block}") for block in blocks),
    )


def test_a_range_over_many_of_another_cluster_is_one_finding() -> None:
    mine, red = using("blue", "10.0.0.0/8"), using("red", "10.1.0.0/16", "10.2.0.0/16", "fd00::/64")
    green = using("green", "10.3.0.0/16")
    texts = [each.message for each in overlapping_clusters(mine, [red, green])]
    assert [
        re.findall(r"overlaps (\S+) of pool \S+?(?:, and (\d) more)? of cluster (\w+)", text)
        for text in texts
    ] == [
        [("10.1.0.0/16", "1", "red")],
        [("10.3.0.0/16", "", "green")],
    ]


@st.composite
def disjoint(draw: st.DrawFn) -> list[Block]:
    """Give blocks of a small world that share nothing with each other, as those of one cluster."""
    found: list[Block] = []
    for family, prefix, place in draw(
        st.lists(st.tuples(st.sampled_from([4, 6]), st.integers(0, 4), st.integers(0, 15)), max_size=6)
    ):
        shift = BITS[family] - prefix
        block = Block(family, place >> (4 - prefix) << shift, prefix)
        if not any(block.overlaps(each) for each in found):
            found.append(block)
    return found


@given(st.lists(disjoint(), min_size=2, max_size=4))
def test_a_cluster_has_a_finding_if_and_only_if_it_shares_an_address(worlds: list[list[Block]]) -> None:
    every = [
        ClusterPrefixes(
            cluster=f"c{index}",
            space="fabric",
            at=AT,
            prefixes=tuple(Prefix(block=block, at=AT, owner="p") for block in blocks),
        )
        for index, blocks in enumerate(worlds)
    ]
    for mine in every:
        others = [each for each in every if each is not mine]
        shares = any(
            a.block.overlaps(b.block) for other in others for a in mine.prefixes for b in other.prefixes
        )
        assert bool(list(overlapping_clusters(mine, others))) == shares


# A cluster that leaves its space, and what it takes.


@pytest.fixture
def committed(fabric: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the same, compiled and committed, with a third cluster of no space."""
    start("grey", "10.3.0.0/24")
    leave("grey")
    assert main(ALL) == 0
    commit_all()
    capsys.readouterr()
    return fabric


def commit_all() -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "a change"]):
        subprocess.run(["git", *arguments], check=True)


def leave(name: str, space: str = "") -> None:
    edit(
        f"clusters/{name}/cluster.yaml",
        "  addressSpace: fabric\n",
        f"  addressSpace: {space}\n" if space else "",
    )


def grow(name: str, cidr: str) -> None:
    edit(f"clusters/{name}/ippools.yaml", "cidrs: [", f"cidrs: [{cidr}, ")


def taken(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Plan against HEAD; give the clusters that IPC0703 refuses."""
    capsys.readouterr()
    code = main(["plan", "--base", "HEAD", "--jobs", "1", *arguments])
    err = capsys.readouterr().err
    found = re.findall(r"error\[IPC0703\]: .*\n *--> clusters/([^/]+)/", err)
    assert code == (1 if found else 0), err
    return found


def test_a_space_is_left_and_a_range_of_a_member_is_taken(
    committed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where only this cluster is planned: the neighbour is in no job's matrix."""
    leave("blue")
    grow("blue", "10.2.0.0/25")
    assert main(ALL) == 0, "blue is of no space, and by itself sound"
    assert taken(capsys) == taken(capsys, "blue") == ["blue"]
    assert main(["plan", "--base", "HEAD", "blue"]) == 1
    assert (
        'error[IPC0703]: 10.2.0.0/25 of pool "pods-of-blue" overlaps 10.2.0.0/24 of pool "pods-of-red" of cluster red '
        "in address space fabric, which blue leaves in the same change\n"
        " --> clusters/blue/ippools.yaml:5:18\n"
        "5 |   ipv4: {cidrs: [10.2.0.0/25, 10.1.0.0/24], blockSize: 27}\n"
        "  |                  ^^^^^^^^^^^\n"
        " ::: clusters/fabric/rendered/index.jsonl:2: 10.2.0.0/24 belongs to cluster red here\n"
        " ::: HEAD:clusters/blue/cluster.yaml:7:17: address space fabric was named here\n"
        " = help: use another range (ipamc suggest pool blue --size 25); or leave the space first, and take the range in another change\n"
    ) in capsys.readouterr().err
    assert (committed / "clusters/blue/ipam.lock").exists()


@pytest.mark.usefixtures("committed")
def test_it_is_left_in_one_change_and_taken_in_another(capsys: pytest.CaptureFixture[str]) -> None:
    leave("blue")
    assert taken(capsys) == []
    grow("blue", "10.4.0.0/24")
    assert taken(capsys) == [], "nobody has that"
    grow("blue", "10.3.0.0/25")
    assert taken(capsys) == [], "grey was never a member"
    edit("clusters/blue/ippools.yaml", "10.3.0.0/25, 10.4.0.0/24, ", "")
    commit_all()
    grow("blue", "10.2.0.0/25")
    assert taken(capsys) == []


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("space", ["mesh", "fabric-2"])
def test_it_is_left_for_another(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    leave("blue", space)
    grow("blue", "10.2.0.0/25")
    assert taken(capsys) == ["blue"]


@pytest.mark.usefixtures("committed")
def test_a_space_that_is_renamed_with_all_members(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("blue", "red"):
        leave(name, "mesh")
    assert main(["init", "--space", "mesh"]) == 0
    assert taken(capsys) == []
    grow("blue", "10.2.0.0/25")
    assert main(["plan", "--base", "HEAD"]) == 1
    assert "IPC0701" in capsys.readouterr().err, "they are of one space as before"


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("space", ["", "mesh"])
def test_two_leave_together(space: str, capsys: pytest.CaptureFixture[str]) -> None:
    leave("blue")
    leave("red", space)
    grow("blue", "10.2.0.0/25")
    assert taken(capsys) == ["blue"]


@pytest.mark.usefixtures("committed")
def test_a_newcomer_takes_the_range_of_who_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    leave("blue")
    start("new", "10.1.0.0/24")
    assert main(ALL) == 0
    assert taken(capsys) == ["blue"]


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("who", ["blue", "red"])
def test_a_folder_is_renamed_meanwhile(who: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The one that leaves, or its neighbour, which leaves as well."""
    leave("blue")
    leave("red")
    grow("blue", "10.2.0.0/25")
    Path(f"clusters/{who}").rename(f"clusters/{who}-2")
    for file in ("cluster.yaml", "ipam.lock"):
        path = Path(f"clusters/{who}-2/{file}")
        path.write_text(
            path.read_text().replace(f"name: {who}}}", f"name: {who}-2}}").replace(f'"{who}"', f'"{who}-2"')
        )
    one = "blue-2" if who == "blue" else "blue"
    assert taken(capsys) == taken(capsys, one) == [one]


@pytest.mark.usefixtures("committed")
def test_the_neighbour_is_deleted_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    """What was applied there stays in the cluster, until somebody says that it may go."""
    leave("blue")
    grow("blue", "10.2.0.0/25")
    shutil.rmtree("clusters/red")
    assert taken(capsys) == taken(capsys, "blue") == ["blue"]
    assert taken(capsys, "--allow-deleted") == []


@pytest.mark.usefixtures("committed")
def test_a_neighbour_that_cannot_be_read_is_taken_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    leave("blue")
    grow("blue", "10.2.0.0/25")
    Path("clusters/red/ippools.yaml").write_text("{")
    assert taken(capsys, "blue") == ["blue"]


@pytest.mark.usefixtures("committed")
def test_what_overlaps_already_may_leave(capsys: pytest.CaptureFixture[str]) -> None:
    """That is the way out of IPC0701: two branches that took one range were both merged."""
    grow("blue", "10.4.0.0/24")
    grow("red", "10.4.0.0/25")
    commit_all()
    leave("blue")
    assert taken(capsys) == []
    grow("blue", "10.2.0.0/25")
    assert taken(capsys) == ["blue"]


MASQUERADE = ("managedBy: helm", "managedBy: helm, masquerade: {}")


def listed(name: str) -> list[str]:
    """Return the list of the ip-masq-agent of a cluster."""
    text = Path(f"clusters/{name}/rendered/cilium/ip-masq-agent.yaml").read_text()
    return re.findall(r"^    - (\S+)$", text, re.MULTILINE)


@pytest.mark.usefixtures("fabric")
def test_a_cluster_does_not_masquerade_the_others_and_a_change_of_theirs_is_stale(
    capsys: pytest.CaptureFixture[str],
) -> None:
    edit("clusters/blue/cluster.yaml", *MASQUERADE)
    assert main(ALL) == 0
    assert listed("blue") == ["10.1.0.0/24", "10.2.0.0/24"]
    assert main([*ALL, "--check"]) == main(["compile", "blue", "--check"]) == 0

    edit("clusters/red/ippools.yaml", "[10.2.0.0/24]", "[10.2.0.0/24, 10.9.0.0/24]")
    capsys.readouterr()
    assert main(["compile", "red"]) == 0
    assert main([*ALL, "--check"]) == 1
    assert "blue: out of date: rendered/cilium/component/ip-masq-agent.yaml" in capsys.readouterr().err
    assert main(["plan", "blue"]) == 0
    assert '10.2.0.0/24" → "nonMasqueradeCIDRs: 10.1.0.0/24 10.2.0.0/24 10.9.0.0/24"' in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["compile", "blue"]) == 0
    assert listed("blue") == ["10.1.0.0/24", "10.2.0.0/24", "10.9.0.0/24"]
    assert main([*ALL, "--check"]) == 0

    shutil.rmtree("clusters/red")
    assert main(ALL) == 0
    assert listed("blue") == ["10.1.0.0/24"]


@pytest.mark.usefixtures("fabric")
@pytest.mark.parametrize("command", [["compile", "blue"], ALL, ["plan", "blue"], ["runbook", "blue"]])
def test_a_list_is_whole_or_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    edit("clusters/blue/cluster.yaml", *MASQUERADE)
    shutil.rmtree("clusters/fabric")
    assert main(command) == 1
    assert "IPC0582" in capsys.readouterr().err
    edit("clusters/blue/cluster.yaml", "masquerade: {}", "masquerade: {addressSpace: false}")
    assert main(command) == 0
    assert ("warning[IPC0711]" in capsys.readouterr().err) == (command[0] != "runbook")


@pytest.mark.usefixtures("fabric")
def test_other_spaces_are_masqueraded() -> None:
    edit("clusters/blue/cluster.yaml", *MASQUERADE)
    edit("clusters/red/cluster.yaml", "addressSpace: fabric", "addressSpace: other")
    assert main(ALL) == 0
    assert listed("blue") == ["10.1.0.0/24"]
