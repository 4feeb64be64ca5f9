"""`ipamc export netbox`: what a bulk import of NetBox creates first, and what it changes later."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from ipamc.cli import main
from tests.support.netbox import FIELDS, NetBox

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: multi-pool, pinning: none}
  ipFamilies: [IPv4, IPv6]
  excludedCIDRs: [172.16.0.0/12]
"""
POOLS = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: default}
spec:
  ipv4: {cidrs: [10.0.0.0/24, 10.0.2.0/23, 10.0.9.0/27], blockSize: 27}
  ipv6: {cidrs: ["fd00::/112"], blockSize: 120}
  reserved: [10.0.2.0/28, 10.0.3.128/25]
  pins: {later: [10.0.2.64/27]}
"""
SEEN = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: ghost}
spec: {ipam: {pools: {allocated: [{pool: default, cidrs: [10.0.2.96/27]}]}}}
"""
LOCK = """\
{"lock":1,"cluster":"NAME","mode":"multi-pool","shards":1}
{"block":"10.0.0.0/27","pool":"default","node":"n1"}
{"block":"10.0.0.32/27","pool":"default","node":"n1","pending":true}
{"block":"10.0.0.64/27","pool":"default","node":"n2","quarantined":"2026-11-20"}
{"block":"10.0.0.128/27","pool":"default","node":"n3","released":true}
{"block":"10.0.9.0/27","pool":"default","node":"n4"}
{"block":"fd00::/120","pool":"default","node":"n1"}
"""
FIRST = """\
prefix,status,description
10.0.0.0/24,container,ipamc blue/default: range of /27 blocks
10.0.0.0/27,active,ipamc blue/default: held by n1
10.0.0.32/27,reserved,ipamc blue/default: pending for n1
10.0.0.64/27,deprecated,ipamc blue/default: quarantined since 2026-11-20 from n2
10.0.2.0/23,container,ipamc blue/default: range of /27 blocks
10.0.2.0/28,reserved,ipamc blue/default: reserved
10.0.2.64/27,reserved,ipamc blue/default: pinned for later
10.0.2.96/27,active,ipamc blue/default: shown by CiliumNode ghost
10.0.3.128/25,reserved,ipamc blue/default: reserved
10.0.9.0/27,active,ipamc blue/default: range of /27 blocks and held by n4
fd00::/112,container,ipamc blue/default: range of /120 blocks
fd00::/120,active,ipamc blue/default: held by n1
"""


def write(name: str, pools: str = POOLS, lock: str = LOCK) -> Path:
    folder = Path("clusters") / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("NAME", name))
    (folder / "ippools.yaml").write_text(pools)
    (folder / "seen.yaml").write_text(SEEN)
    (folder / "ipam.lock").write_text(lock.replace("NAME", name))
    return folder


@pytest.fixture(autouse=True)
def blue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("blue")


def export(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """Return the file, and what was said."""
    assert main(["export", "netbox", *arguments]) == code
    out, err = capsys.readouterr()
    return out, err


def later(capsys: pytest.CaptureFixture[str], netbox: NetBox, *arguments: str) -> tuple[str, str]:
    Path("there.csv").write_text(netbox.export())
    return export(capsys, *arguments, "--existing", "there.csv")


def test_the_prefixes_of_a_cluster_by_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert export(capsys) == (FIRST, "12 prefixes to create, 0 to update, 0 gone, 0 unchanged\n")


@pytest.mark.parametrize("version", FIELDS)
def test_every_netbox_imports_it(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = (
        ["--set", "site=DC 1"]
        if version < "4.2"
        else ["--set", "scope_type=dcim.site", "--set", "scope_id=4"]
    )
    more = ["--set", "vrf=pods", "--set", "role=kubernetes", "--set", "tags=ipamc,prod", *place]
    netbox = NetBox(version)
    netbox.bulk_import(export(capsys, *more)[0])
    assert len(netbox.seen()) == 12
    assert {(each.vrf, each.role) for each in netbox.seen()} == {("pods", "kubernetes")}
    assert netbox.prefixes[1]["tags"] == "ipamc,prod"


def test_an_import_after_an_import_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    netbox = NetBox("3.4", unique=False)
    netbox.bulk_import(export(capsys, "--set", "vrf=pods")[0])
    text, said = later(capsys, netbox, "--set", "vrf=pods")
    assert text == "id,prefix,status,vrf,description\n"
    assert said == "0 prefixes to create, 0 to update, 0 gone, 12 unchanged\n"


def test_what_joined_moved_and_left(capsys: pytest.CaptureFixture[str]) -> None:
    """n1 settles in its second block, n4 leaves, n5 joins, the addresses of n2 are free again."""
    netbox = NetBox()
    netbox.bulk_import(export(capsys)[0])
    lock = """\
{"lock":1,"cluster":"NAME","mode":"multi-pool","shards":1}
{"block":"10.0.0.0/27","pool":"default","node":"n1","quarantined":"2026-11-22","moved":true}
{"block":"10.0.0.32/27","pool":"default","node":"n1"}
{"block":"10.0.0.64/27","pool":"default","node":"n2","released":true}
{"block":"10.0.0.96/27","pool":"default","node":"n5"}
{"block":"10.0.9.0/27","pool":"default","node":"n4","released":true}
{"block":"fd00::/120","pool":"default","node":"n1"}
"""
    write("blue", lock=lock)
    text, said = later(capsys, netbox)
    assert text == (
        """\
id,prefix,status,description
2,10.0.0.0/27,deprecated,ipamc blue/default: quarantined since 2026-11-22 from n1
3,10.0.0.32/27,active,ipamc blue/default: held by n1
4,10.0.0.64/27,deprecated,ipamc blue/default: gone
,10.0.0.96/27,active,ipamc blue/default: held by n5
10,10.0.9.0/27,container,ipamc blue/default: range of /27 blocks
"""
    )
    assert said == "1 prefix to create, 3 to update, 1 gone, 8 unchanged\n"
    netbox.bulk_import(text)
    wanted = {row["prefix"]: row for row in csv.DictReader(io.StringIO(export(capsys)[0]))}
    for each in netbox.seen():
        if each.prefix in wanted:
            assert (each.status, each.description) == (
                wanted[each.prefix]["status"],
                wanted[each.prefix]["description"],
            )
        else:
            assert each.description == "ipamc blue/default: gone"
    text, said = later(capsys, netbox)
    assert (text, said) == (
        "id,prefix,status,description\n",
        "0 prefixes to create, 0 to update, 0 gone, 13 unchanged\n",
    )


def test_what_others_made_in_netbox_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """A planner's range, a prefix of another cluster, and the same addresses in another VRF."""
    netbox = NetBox()
    netbox.bulk_import(
        "prefix,status,vrf,description\n"
        '10.0.0.0/24,reserved,,"planned, see ticket 7"\n'
        "10.0.2.0/23,container,,pods of blue\n"
        "10.7.0.0/16,container,,ipamc red/default: range of /27 blocks\n"
        "10.0.0.0/24,container,pods,somebody else\n"
    )
    text, said = later(capsys, netbox)
    assert said == (
        "10 prefixes to create, 0 to update, 0 gone, 1 unchanged\n"
        "not made by this export, with another status, left unchanged: 1 prefix (10.0.0.0/24)\n"
    )
    before = netbox.seen()
    netbox.bulk_import(text)
    assert [each for each in netbox.seen() if each.id <= 4] == before


def test_what_is_there_twice_is_gone_and_what_is_in_another_vrf_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    netbox = NetBox(unique=False)
    text = export(capsys)[0]
    netbox.bulk_import(text)
    netbox.bulk_import(text)
    changes, said = later(capsys, netbox)
    assert said == "0 prefixes to create, 0 to update, 12 gone, 12 unchanged\n"
    assert {row["id"] for row in csv.DictReader(io.StringIO(changes))} == {
        str(number) for number in range(13, 25)
    }
    _, said = later(capsys, netbox, "--set", "vrf=pods")
    assert said.startswith(
        "12 prefixes to create, 0 to update, 0 gone, 0 unchanged\nmade by this export in another VRF"
    )
    assert said.endswith(
        "left unchanged: 24 prefixes (10.0.0.0/24, 10.0.0.0/27, 10.0.0.32/27, 10.0.0.64/27, 10.0.2.0/23, 10.0.2.0/28, 10.0.2.64/27, 10.0.2.96/27, 10.0.3.128/25, 10.0.9.0/27 and 2 more)\n"
    )


def test_a_vrf_by_its_route_distinguisher(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of VRFs need not be unique in NetBox."""
    netbox = NetBox()
    netbox.bulk_import(export(capsys, "--set", "vrf=pods")[0])
    text, said = later(capsys, netbox, "--set", "vrf.rd=65000:1")
    assert (text, said) == (
        "id,prefix,status,vrf.rd,description\n",
        "0 prefixes to create, 0 to update, 0 gone, 12 unchanged\n",
    )


def test_a_status_and_a_role_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    netbox = NetBox()
    netbox.bulk_import(export(capsys)[0])
    text, said = later(capsys, netbox, "--status", "quarantined=reserved", "--set", "role=kubernetes")
    assert said == "0 prefixes to create, 12 to update, 0 gone, 0 unchanged\n"
    netbox.bulk_import(text)
    assert {(each.role, each.status) for each in netbox.seen() if each.prefix == "10.0.0.64/27"} == {
        ("kubernetes", "reserved")
    }


def test_no_description_is_longer_than_netbox_takes(capsys: pytest.CaptureFixture[str]) -> None:
    long = ".".join(["n" * 60] * 4)
    write("blue", lock=LOCK.replace('"n1"', f'"{long}"'))
    netbox = NetBox()
    netbox.bulk_import(export(capsys)[0])
    assert max(len(each.description) for each in netbox.seen()) == 200
    assert later(capsys, netbox)[1].endswith("0 to update, 0 gone, 12 unchanged\n")


def test_clusters_that_share_addresses_are_not_exported_together(capsys: pytest.CaptureFixture[str]) -> None:
    write("red")
    out, err = export(capsys, code=1)
    assert out == ""
    assert "error[IPC0879]: 10.0.0.0/24 belongs to cluster red and to cluster blue" in err
    assert "ipamc export netbox red --set vrf=NAME" in err


def test_a_file_is_replaced_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = export(capsys, "--write", "new.csv")
    assert (out, err) == ("", "12 prefixes to create, 0 to update, 0 gone, 0 unchanged; new.csv written\n")
    assert Path("new.csv").read_text() == FIRST
    assert export(capsys, "blue", "--write", "new.csv")[1].endswith("; new.csv unchanged\n")


@pytest.mark.parametrize(
    ("existing", "finding"),
    [
        ("Préfixe;Statut\n10.0.0.0/24;Actif\n", "error[IPC0871]: the header row has no column id"),
        ("", "error[IPC0010]"),
        (
            "ID,Prefix,Status,VRF,Description\nx,10.0.0.0/24,Active,,\n",
            "error[IPC0870]: 'x' is not a NetBox ID\n --> there.csv:2:1",
        ),
        (
            "ID,Prefix,Status,VRF,Description\n1,10.0.0/24,Active,,\n",
            "error[IPC0873]: '10.0.0/24' is not a CIDR\n --> there.csv:2:3",
        ),
    ],
)
def test_a_table_that_is_no_export_of_netbox(
    existing: str, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.csv").write_text(existing)
    out, err = export(capsys, "--existing", "there.csv", code=1)
    assert out == ""
    assert finding in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere",),
        ("--set", "prefix=10.0.0.0/8"),
        ("--set", "vrf"),
        ("--set", "vrf="),
        ("--set", "vrf=a", "--set", "vrf=b"),
        ("--set", "a b=c"),
        ("--set", "vrf=a\nb"),
        ("--status", "held"),
        ("--status", "free=active"),
        ("--status", "held=a,b"),
    ],
)
def test_what_is_a_mistake_of_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert export(capsys, *arguments, code=64)[0] == ""


def test_a_cluster_that_is_refused_gives_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A file without the prefixes of one cluster would say that they are gone."""
    write("red", pools=POOLS.replace("10.0.", "10.9."), lock=LOCK.replace("10.0.", "10.9.") + "{}\n")
    out, err = export(capsys, "--write", "new.csv", code=1)
    assert (out, Path("new.csv").exists()) == ("", False)
    assert "clusters/red/ipam.lock" in err


def test_the_past(capsys: pytest.CaptureFixture[str]) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    shutil.rmtree("clusters")
    assert export(capsys, "--at", "HEAD")[0] == FIRST


@pytest.mark.parametrize("name", ['a,"b"', "a;b|c\\td", "=cmd", "a\\nb", "a'b", "\u202e", "\\u001b[2J"])
def test_a_hostile_name_reaches_no_cell(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock of a branch may have any text as the name of a node: it is refused, and nothing is exported."""
    escaped = name.replace('"', '\\"')
    write("blue", lock=LOCK.replace('"n1"', f'"{escaped}"'))
    assert main(["export", "netbox"]) == 1
    done = capsys.readouterr()
    assert done.out == ""
    assert "error[IPC0403]" in done.err
    assert all(line.isprintable() and line.isascii() for line in done.err.splitlines())
