"""`ipamc import --prefixes`: pools from an export of NetBox or a spreadsheet, and what is wrong with tables."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipamc.cli import main
from ipamc.importing.prefixes import COLUMNS, read_plan
from ipamc.model.address_sets import covers
from ipamc.model.cidr import Block, parse_block
from ipamc.model.diagnostics import Refused
from ipamc.read import csv_table
from ipamc.read.csv_table import read_table
from tests.support.netbox import NetBox

EXAMPLES = Path(__file__).parents[2] / "clusters"
PLAN = """\
Prefix,Pool,Block Size,Status,Zone
10.1.0.0/16,rack-a,26,active,a
10.1.4.0/24,rack-a,,reserved,
10.1.9.0/24,,,active,
10.9.0.0/16,,,active,
10.0.0.0/16,rack-a,26,reserved,a
fd00:1::/104,rack-a,120,,a
10.2.0.0/16,rack-b,/27,container,
10.3.0.0/16,rack-b,27,deprecated,
"""
POOLS = """\
# yaml-language-server: $schema=../.schemas/ippool.schema.json
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-a}
spec:
  ipv4: {cidrs: [10.1.0.0/16, 10.0.0.0/16], blockSize: 26}
  ipv6: {cidrs: ["fd00:1::/104"], blockSize: 120}
  nodeSelector: "topology.kubernetes.io/zone == \\"a\\""
  reserved: [10.1.4.0/24, 10.1.9.0/24]
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-b}
spec:
  ipv4: {cidrs: [10.2.0.0/16], blockSize: 27}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bring(
    capsys: pytest.CaptureFixture[str],
    table: str | bytes,
    *arguments: str,
    cluster: str = "lab",
    code: int = 0,
) -> str:
    """Import a table; return what was said."""
    Path("plan.csv").write_bytes(table.encode() if isinstance(table, str) else table)
    got = main(["import", cluster, "--prefixes", "plan.csv", *arguments])
    out, err = capsys.readouterr()
    assert (got, out) == (code, ""), err
    return err


def concise(capsys: pytest.CaptureFixture[str], table: str | bytes) -> list[str]:
    """Return the findings of a table that is refused, each on a line; nothing was written."""
    said = bring(capsys, table, "--format", "concise", code=1)
    assert not Path("clusters").exists()
    return said.splitlines()[:-1]


def pools(folder: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] == "IPPool":
                spec = document["spec"]
                found[document["metadata"]["name"]] = {
                    "ranges": {
                        family: (set(spec[family]["cidrs"]), spec[family]["blockSize"])
                        for family in ("ipv4", "ipv6")
                        if family in spec
                    },
                    "reserved": set(spec.get("reserved", ())),
                }
    return found


def test_a_new_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    said = bring(capsys, PLAN)
    assert Path("clusters/lab/ippools.yaml").read_text() == POOLS
    assert "ipFamilies: [IPv4, IPv6]" in Path("clusters/lab/cluster.yaml").read_text()
    assert said.startswith(
        "note[IPC0880]: 2 rows left out: outside planned ranges, without a pool, or deprecated; the first is here"
    )
    assert "clusters/lab/ippools.yaml: written\n" in said
    assert main(["compile", "lab"]) == 0


def test_a_second_import_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bring(capsys, PLAN)
    before = {path: path.read_bytes() for path in Path("clusters").rglob("*") if path.is_file()}
    assert bring(capsys, PLAN).endswith("clusters/lab: unchanged, it has the 2 pools of the plan\n")
    assert {path: path.read_bytes() for path in Path("clusters").rglob("*") if path.is_file()} == before


def test_a_cluster_that_is_there_gets_new_pools_and_keeps_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The planner gave rack-a a range, another block size and a reserved part, took one away, and planned rack-c."""
    bring(capsys, PLAN)
    plan = """\
cidr;name;blockSize;status;nodeSelector
10.1.0.0/16;rack-a;27;container;
10.1.128.0/17;rack-a;27;reserved;
10.7.0.0/16;rack-a;27;container;
10.8.0.0/16;rack-c;26;container;has(rack)
"""
    said = bring(capsys, plan, "--format", "concise")
    assert said == (
        "clusters/lab/ippools.yaml:2:1: warning[IPC0878] pool 'rack-a' may give nodes 10.1.128.0/17, which the plan keeps free\n"
        "clusters/lab/ippools.yaml:6:10: warning[IPC0878] pool 'rack-a' has 10.0.0.0/16, which is not planned\n"
        "clusters/lab/ippools.yaml:6:10: warning[IPC0878] pool 'rack-a' has blockSize 26, but 27 is planned\n"
        "clusters/lab/ippools.yaml:6:10: warning[IPC0878] pool 'rack-a' lacks the planned 10.7.0.0/16\n"
        "4 warnings\n"
        "clusters/lab/ippools-rack-c.yaml: written\n"
        "next: see what changes: ipamc plan lab; then add a nodeSelector to pools that are not for every node\n"
    )
    assert Path("clusters/lab/ippools.yaml").read_text() == POOLS
    assert 'nodeSelector: "has(rack)"' in Path("clusters/lab/ippools-rack-c.yaml").read_text()


def test_pools_that_a_compile_would_refuse_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    bring(capsys, PLAN)
    said = bring(capsys, "prefix,pool,blockSize\n10.2.128.0/17,rack-c,27\n", code=1)
    assert (
        "nothing is written; the findings quote the planned text of clusters/lab/ippools-rack-c.yaml" in said
    )
    assert "error[IPC0207]" in said
    assert not Path("clusters/lab/ippools-rack-c.yaml").exists()


@pytest.mark.parametrize("name", ["zones", "dual-stack", "multi-pool", "cluster-pool", "host-scope"])
def test_there_and_back(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What NetBox has of a cluster gives the same pools: of the cluster as it is, and of a copy without them."""
    shutil.copytree(EXAMPLES / name, Path("clusters") / name)
    assert main(["export", "netbox", name]) == 0
    netbox = NetBox()
    netbox.bulk_import(capsys.readouterr().out)
    assert "unchanged, it has the" in bring(capsys, netbox.export(";"), cluster=name)
    bring(capsys, netbox.export(), cluster=f"elsewhere/{name}")
    assert main(["export", "netbox", name]) == 0
    first = capsys.readouterr().out
    assert main(["export", "netbox", f"elsewhere/{name}"]) == 0
    kept = [row for row in first.splitlines() if not re.search(r"(held|pinned|pending)", row)]
    assert set(kept) <= set(capsys.readouterr().out.splitlines())


def test_what_other_clusters_have_in_a_range_is_reserved(capsys: pytest.CaptureFixture[str]) -> None:
    netbox = """\
Prefix,Status,VRF,Role,Description,ID
10.0.0.0/8,Container,Global,,the company,1
10.4.0.0/16,Container,Global,lab-pods,,2
10.4.1.0/24,Active,Global,,ipamc red/default: held by n1,3
10.5.0.0/16,Container,Global,,ipamc red/default: range of /24 blocks,4
"""
    bring(capsys, netbox, "--block-size", "26")
    assert pools("clusters/lab") == {
        "lab-pods": {"ranges": {"ipv4": ({"10.4.0.0/16"}, 26)}, "reserved": {"10.4.1.0/24"}}
    }


@pytest.mark.parametrize(
    "data",
    [
        PLAN.encode(),
        b"\xef\xbb\xbf" + PLAN.replace("\n", "\r\n").encode(),
        PLAN.replace(",", ";").encode(),
        b"\xef\xbb\xbfsep=;\r\n" + PLAN.replace(",", ";").replace("\n", "\r\n").encode(),
        PLAN.replace(",", "\t").encode(),
        re.sub(r"([^,\n]+)", r'"\1"', PLAN).encode(),
        PLAN.replace("\n", "\n,,,,\n").encode(),
    ],
    ids=["plain", "BOM and CRLF", "semicolons", "sep=", "tabs", "quoted", "empty rows"],
)
def test_dialects_of_csv(data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    bring(capsys, data)
    assert Path("clusters/lab/ippools.yaml").read_text() == POOLS


MISTAKES = {
    "prefix;pool;blockSize\n10.1.2.3/16;a;26\n10.1.0/16;a;26\n=B2;a;26\n#REF!;a;26\n;a;26\n127.0.0.0/8;a;26\n": [
        "plan.csv:2:1: error[IPC0873] '10.1.2.3/16' has host bits set",
        "plan.csv:3:1: error[IPC0873] '10.1.0/16' is not a CIDR",
        "plan.csv:4:1: error[IPC0873] '=B2' is not a CIDR",
        "plan.csv:5:1: error[IPC0873] '#REF!' is not a CIDR",
        "plan.csv:6:1: error[IPC0873] '' is not a CIDR",
        "plan.csv:7:1: error[IPC0873] '127.0.0.0/8' overlaps loopback addresses (127.0.0.0/8)",
    ],
    "prefix,pool,blockSize,blockSize\n10.0.0.0/16,a,26,27\n": [
        "plan.csv:1:23: error[IPC0872] the header row has the column 'blockSize' twice"
    ],
    "Préfixe,pool\n10.0.0.0/16,a\n": [
        "plan.csv:1: error[IPC0871] the header row has no column prefix, cidr or network"
    ],
    "prefix,name,blockSize\n10.0.0.0/16,Rack 7,26\n10.1.0.0/16,=cmd|x!A1,26\n10.2.0.0/16,,26\n10.3.0.0/16,a,26\n": [
        "plan.csv:2:13: error[IPC0875] 'Rack 7' cannot be a pool name: it must contain only lower-case letters, digits, - and ., with a letter or digit at both ends of each part",
        "plan.csv:3:13: error[IPC0875] '=cmd|x!A1' cannot be a pool name: it must contain only lower-case letters, digits, - and ., with a letter or digit at both ends of each part",
    ],
    "prefix,pool,blockSize\n10.0.0.0/16,a,\n10.1.0.0/16,b,12\n10.2.0.0/16,c,many\n10.3.0.0/16,d,26\n10.4.0.0/16,d,27\nfd00::/104,e,129\n": [
        "plan.csv:2:15: error[IPC0876] 10.0.0.0/16 has no block size",
        "plan.csv:3:15: error[IPC0876] /12 is not a block size for 10.1.0.0/16, which allows /16 to /32",
        "plan.csv:4:15: error[IPC0876] 'many' is not a block size for 10.2.0.0/16, which allows /16 to /32",
        "plan.csv:6:15: error[IPC0876] pool 'd' has the block sizes 26 and 27 in IPv4",
        "plan.csv:7:14: error[IPC0876] /129 is not a block size for fd00::/104, which allows /104 to /128",
    ],
    "prefix,pool,blockSize,status,site,nodeSelector\n10.0.0.0/16,a,26,,DC 1,\n10.1.0.0/16,b,26,,x,\n10.2.0.0/16,b,26,,y,\n10.3.0.0/16,c,26,,,has(\n": [
        "plan.csv:2:19: error[IPC0877] 'DC 1' cannot be a label value: it must contain only letters, digits, -, _ and ., with a letter or digit at both ends",
        "plan.csv:4:19: error[IPC0877] pool 'b' selects other nodes in line 3",
        "plan.csv:5:20: error[IPC0877] 'has(' is not a nodeSelector: the selector ends here: expected a label key",
    ],
    "prefix,pool,blockSize,status\n10.0.0.0/16,a,26,active\n10.0.0.0/16,a,26,active\n10.0.4.0/24,a,26,\n10.0.8.0/24,b,26,active\n": [
        "plan.csv:3:1: error[IPC0874] 10.0.0.0/16 of pool 'a' has the same addresses as 10.0.0.0/16 of pool 'a'",
        "plan.csv:4:1: error[IPC0874] 10.0.4.0/24 of pool 'a' is inside 10.0.0.0/16 of pool 'a'",
        "plan.csv:5:1: error[IPC0874] 10.0.8.0/24 of pool 'b' is inside 10.0.0.0/16 of pool 'a'",
    ],
    "prefix,pool\n": ["plan.csv:1: error[IPC0875] the table has no rows"],
    "prefix\n10.0.0.0/16\n": ["plan.csv:1: error[IPC0875] no row names a pool"],
    'prefix,pool,blockSize\n10.0.0.0/16,a,26,,\n10.1.0.0/16\n10.2.0.0/16,"a"b,26\n': [
        "plan.csv:2:1: error[IPC0870] the row has 5 cells, but the header row has 3",
        "plan.csv:3:1: error[IPC0870] the row has 1 cell, but the header row has 3",
        "plan.csv:4:1: error[IPC0870] the row is not CSV: ',' expected after '\"'",
    ],
    'prefix,pool,blockSize\n10.0.0.0/16,"a,26\n': [
        "plan.csv:2:1: error[IPC0870] the row is not CSV: unexpected end of data"
    ],
    f"prefix,pool\n10.0.0.0/16,{'a' * 200_000}\n": [
        "plan.csv:2:1: error[IPC0870] the row is not CSV: field larger than field limit (131072)"
    ],
    'prefix,pool,blockSize\n"10.0.0.0/16\n","a\nb",26\n': [
        "plan.csv:2:1: error[IPC0875] 'a\\nb' cannot be a pool name: it must contain only lower-case letters, digits, - and ., with a letter or digit at both ends of each part"
    ],
}


@pytest.mark.parametrize("table", MISTAKES, ids=range(len(MISTAKES)))
def test_every_mistake_has_its_line_and_column(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    got = concise(capsys, table)
    assert len(got) == len(MISTAKES[table]), got
    for line, expected in zip(sorted(got), sorted(MISTAKES[table]), strict=True):
        assert line.startswith(expected)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "IPC0010"),
        (b"\xff\xfe" + PLAN.encode("utf-16-le"), "IPC0005"),
        (PLAN.encode("utf-16-be"), "IPC0005"),
        (b"prefix,pool\n10.0.0.0/16,a\x00b\n", "IPC0005"),
        (b"prefix,pool\n10.0.0.0/16,caf\xe9\n", "IPC0005"),
        (b"prefix,pool\n10.0.0.0/16,\x1b[31m\n", "IPC0005"),
    ],
)
def test_what_is_no_text(data: bytes, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    (finding,) = concise(capsys, data)
    assert f"error[{code}]" in finding


def test_a_table_has_limits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"10.{number}.0.0/16,a,26\n" for number in range(5))
    monkeypatch.setattr(csv_table, "MOST_ROWS_OF_TABLE", 3)
    assert concise(capsys, f"prefix,pool,blockSize\n{rows}") == [
        "plan.csv:5: error[IPC0870] the file has more than 3 rows"
    ]
    monkeypatch.setattr(csv_table, "LARGEST_TABLE", 50)
    assert "IPC0870" in concise(capsys, f"prefix,pool,blockSize\n{rows}")[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("dump.json",),
        ("--refresh",),
        ("--mode", "crd"),
        ("--label", "a"),
        ("--block-size", "26", "--block-size", "27"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--" in bring(capsys, PLAN, *arguments, code=64)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[Block, str, str]]:
    blocks = st.builds(
        lambda prefix, number: Block(4, (10 << 24) + (number % (1 << (prefix - 8)) << (32 - prefix)), prefix),
        st.integers(12, 20),
        st.integers(0, 1 << 12),
    )
    return draw(
        st.lists(
            st.tuples(
                blocks,
                st.sampled_from(["", "a", "b"]),
                st.sampled_from(["", "active", "container", "reserved", "deprecated"]),
            ),
            max_size=8,
        )
    )


@given(tables())
def test_a_plan_gives_no_address_twice_and_none_that_somebody_has(rows: list[tuple[Block, str, str]]) -> None:
    """Whatever is planned: ranges are disjoint, and a row in a range is reserved or refused."""
    text = "prefix,pool,status\n" + "".join(f"{block},{pool},{status}\n" for block, pool, status in rows)
    try:
        plan = read_plan(read_table("plan.csv", text.encode(), COLUMNS), "lab", {4: 24})
    except Refused:
        return
    ranges = [block for pool in plan.pools for blocks in pool.draft.ranges.values() for block in blocks]
    reserved = [block for pool in plan.pools for block in pool.draft.reserved]
    assert all(not one.overlaps(other) for one in ranges for other in ranges if one is not other)
    for block, _, _ in rows:
        if block not in ranges and covers(ranges, block):
            assert covers(reserved, block)


def test_the_columns_of_a_cell_behind_quotes() -> None:
    table = read_table(
        "t.csv", b'a,prefix,pool\n"x,""y""",10.0.0.0/8,b\n', {"prefix": ["prefix"], "pool": ["pool"]}
    )
    (row,) = table.rows
    assert parse_block(row.cells["prefix"]) == Block(4, 10 << 24, 8)
    assert (table.at(row, "prefix").column, table.at(row, "pool").column) == (11, 22)
