"""The table of `ipamc show`, and its numbers for programs."""

from __future__ import annotations

import pytest

from ipamc.lock.utilisation import PoolUse, utilisation
from ipamc.model.cidr import parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.selector.selector import Selector
from ipamc.report.utilisation import number, records, state, table

AT = Place("pools.yaml")


def lab() -> tuple[tuple[PoolUse, ...], Lock]:
    def part(size: int, *ranges: str) -> PoolFamily:
        blocks = [parse_block(text) for text in ranges]
        return PoolFamily(
            family=blocks[0].family,
            ranges=tuple(Range(block, AT) for block in blocks),
            block_size=size,
            at=AT,
        )

    everything: Selector = object()  # type: ignore[assignment]  # no selector is asked here
    families = {4: part(27, "10.0.0.0/24", "10.0.2.0/25"), 6: part(64, "fd00::/48")}
    pool = Pool(name="rack-a", at=AT, families=families, selector=everything, selector_at=AT)
    lines = (
        Line(block=parse_block("10.0.0.0/27"), pool="rack-a", node="n1"),
        Line(
            block=parse_block("10.0.0.32/27"),
            pool="rack-a",
            node="n2",
            state=State.QUARANTINED,
            since="2026-11-21",
        ),
        Line(block=parse_block("10.0.2.0/27"), pool="rack-a", node="n1", state=State.PENDING),
        Line(block=parse_block("fd00::/64"), pool="rack-a", node="n1"),
    )
    lock = Lock(cluster="lab", mode=Mode.KUBERNETES, shards=1, lines=lines)
    return utilisation(
        Cluster(name="lab", at=AT, cilium=(1, 18), managed_by="helm", mode=Mode.KUBERNETES, pools=(pool,)),
        lock,
    ), lock


def test_table() -> None:
    assert table("lab", *lab()) == (
        """\
lab: 1 node with 2 blocks
+----------+-------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+
| GROUPING | CIDR        |  IPS TOTAL |        IPS HELD | IPS QUARANTINED | IPS RESERVED |          IPS FREE | BLOCKS HELD |  BLOCKS FREE |
+----------+-------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+
| IP Pool  | rack-a /27  |        384 |        64 (17%) |         32 (8%) |       0 (0%) |         288 (75%) |           2 |      9 (75%) |
| Range    | 10.0.0.0/24 |        256 |        32 (12%) |        32 (12%) |       0 (0%) |         192 (75%) |           1 |      6 (75%) |
| Range    | 10.0.2.0/25 |        128 |        32 (25%) |          0 (0%) |       0 (0%) |          96 (75%) |           1 |      3 (75%) |
+----------+-------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+
| IP Pool  | rack-a /64  | 1.2089e+24 | 1.8447e+19 (0%) |          0 (0%) |       0 (0%) | 1.2089e+24 (100%) |           1 | 65535 (100%) |
| Range    | fd00::/48   | 1.2089e+24 | 1.8447e+19 (0%) |          0 (0%) |       0 (0%) | 1.2089e+24 (100%) |           1 | 65535 (100%) |
+----------+-------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+
"""
    )


def test_blocks() -> None:
    assert table("lab", *lab(), blocks=True) == (
        """\
lab: 1 node with 2 blocks
+----------+--------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+------+------------------------+
| GROUPING | CIDR         |  IPS TOTAL |        IPS HELD | IPS QUARANTINED | IPS RESERVED |          IPS FREE | BLOCKS HELD |  BLOCKS FREE | NODE | STATE                  |
+----------+--------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+------+------------------------+
| IP Pool  | rack-a /27   |        384 |        64 (17%) |         32 (8%) |       0 (0%) |         288 (75%) |           2 |      9 (75%) |      |                        |
| Range    | 10.0.0.0/24  |        256 |        32 (12%) |        32 (12%) |       0 (0%) |         192 (75%) |           1 |      6 (75%) |      |                        |
| Block    | 10.0.0.0/27  |         32 |                 |                 |              |                   |             |              | n1   | held                   |
| Block    | 10.0.0.32/27 |         32 |                 |                 |              |                   |             |              | n2   | quarantined 2026-11-21 |
| Range    | 10.0.2.0/25  |        128 |        32 (25%) |          0 (0%) |       0 (0%) |          96 (75%) |           1 |      3 (75%) |      |                        |
| Block    | 10.0.2.0/27  |         32 |                 |                 |              |                   |             |              | n1   | pending                |
+----------+--------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+------+------------------------+
| IP Pool  | rack-a /64   | 1.2089e+24 | 1.8447e+19 (0%) |          0 (0%) |       0 (0%) | 1.2089e+24 (100%) |           1 | 65535 (100%) |      |                        |
| Range    | fd00::/48    | 1.2089e+24 | 1.8447e+19 (0%) |          0 (0%) |       0 (0%) | 1.2089e+24 (100%) |           1 | 65535 (100%) |      |                        |
| Block    | fd00::/64    | 1.8447e+19 |                 |                 |              |                   |             |              | n1   | held                   |
+----------+--------------+------------+-----------------+-----------------+--------------+-------------------+-------------+--------------+------+------------------------+
"""
    )


def test_no_pools() -> None:
    lock = Lock(cluster="lab", mode=Mode.KUBERNETES, shards=1)
    assert table("lab", (), lock).splitlines()[0] == "lab: 0 nodes with 0 blocks"


def test_records() -> None:
    v4, v6 = records("lab", *lab())["pools"]
    assert v4 == {
        "pool": "rack-a",
        "family": "IPv4",
        "blockSize": 27,
        "addresses": {"total": 384, "held": 64, "quarantined": 32, "released": 0, "reserved": 0, "free": 288},
        "blocks": {"total": 12, "held": 2, "free": 9},
        "ranges": [
            {
                "cidr": "10.0.0.0/24",
                "addresses": {
                    "total": 256,
                    "held": 32,
                    "quarantined": 32,
                    "released": 0,
                    "reserved": 0,
                    "free": 192,
                },
                "blocks": {"total": 8, "held": 1, "free": 6},
            },
            {
                "cidr": "10.0.2.0/25",
                "addresses": {
                    "total": 128,
                    "held": 32,
                    "quarantined": 0,
                    "released": 0,
                    "reserved": 0,
                    "free": 96,
                },
                "blocks": {"total": 4, "held": 1, "free": 3},
            },
        ],
    }
    assert v6["addresses"]["total"] == 1 << 80


def test_records_of_lines() -> None:
    v4, _ = records("lab", *lab(), blocks=True)["pools"]
    assert [each["lines"] for each in v4["ranges"]] == [
        [
            {"block": "10.0.0.0/27", "node": "n1", "state": "held"},
            {"block": "10.0.0.32/27", "node": "n2", "state": "quarantined", "since": "2026-11-21"},
        ],
        [{"block": "10.0.2.0/27", "node": "n1", "state": "pending"}],
    ]


def test_lines_outside_every_pool_are_told() -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    lock = Lock(cluster="lab", mode=Mode.KUBERNETES, shards=1, lines=(stray,))
    assert table("lab", (), lock).startswith(
        "lab: 1 node with 1 block; 1 line of the lock outside every pool\n"
    )


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (Line(block=parse_block("10.0.0.0/27"), node="n"), "held"),
        (Line(block=parse_block("10.0.0.0/27"), node="n", state=State.PENDING), "pending"),
        (Line(block=parse_block("10.0.0.0/27"), node="n", state=State.RELEASED), "released"),
        (
            Line(
                block=parse_block("10.0.0.0/27"),
                node="n",
                state=State.QUARANTINED,
                since="2026-11-21",
                moved=True,
            ),
            "quarantined 2026-11-21, moved",
        ),
    ],
)
def test_states(line: Line, word: str) -> None:
    assert state(line) == word


def test_numbers() -> None:
    assert [number(each) for each in (0, 65536, 9_999_999, 10_000_000, 1 << 64)] == [
        "0",
        "65536",
        "9999999",
        "1e+07",
        "1.8447e+19",
    ]
