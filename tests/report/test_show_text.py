"""`ipamc show` on terminals of every width, and in a pipe."""

from __future__ import annotations

import re

import pytest

from ipamc.model.cidr import parse_block
from ipamc.model.limits import POOLS_SHOWN
from ipamc.model.lock import Line
from ipamc.report.show_text import Screen, ShowOptions, render
from ipamc.report.terminal_text import width
from ipamc.report.utilisation import addresses, amount, percent, percent_left
from tests.support.shown import RACK_A, lab, part, pool

FULL = pool("full", part(27, "10.1.0.0/27"))
FULL_LINE = Line(block=parse_block("10.1.0.0/27"), pool="full", node="n7")
KEPT = pool("kept", part(26, "10.2.0.0/24"), reserved=part(26, "10.2.0.0/26").ranges)
OFF = pool("off", part(26, "10.3.0.0/24"), disabled=True)


def on(columns: int, **more: bool) -> Screen:
    return Screen(width=columns, blocks=True, cuts=True, **more)


def show(columns: int = 80, **more: object) -> str:
    cluster = lab(FULL_LINE, pools=(FULL, KEPT, OFF, RACK_A), lines=bool(more.get("blocks")))
    return render([cluster], ShowOptions(**more), on(columns))  # type: ignore[arg-type]  # a short cut of this test


def test_80_columns() -> None:
    assert show(80) == (
        """\
lab: 2 nodes with 3 blocks
POOL    BLOCK  SIZE  USED                        FREE  ROOM FOR  COMES FREE
full    /27      32  █████████████████████ 100%     0   0 nodes
kept    /26     256  ▒▒▒▒▒░░░░░░░░░░░░░░░░  25%   192   3 nodes
rack-a  /27     384  ███▒▒░░░░░░░░░░░░░░░░  25%   288   9 nodes  1 on 2026-11-28
  10.0.0.0/24   256  ███▒▒░░░░░░░░░░░░░░░░  25%   192
  10.0.2.0/25   128  █████░░░░░░░░░░░░░░░░  25%    96
rack-a  /64    2^80  █░░░░░░░░░░░░░░░░░░░░  <1%  >99%   9 nodes
off     /26     256  ░░░░░░░░░░░░░░░░░░░░░   0%   256  disabled
total, IPv4     928  ██▒▒░░░░░░░░░░░░░░░░░  20%   736  12 nodes

█ held  ▒ quarantined, reserved  ░ free
"""
    )


def test_40_columns() -> None:
    assert show(40) == (
        """\
lab: 2 nodes with 3 blocks; 1 block
  comes free on 2026-11-28
POOL    BLOCK USED         FREE ROOM FOR
full    /27   ███████ 100%    0  0 nodes
kept    /26   ▒▒░░░░░  25%  192  3 nodes
rack-a  /27   █▒░░░░░  25%  288  9 nodes
  10.0.0.0/24 █▒░░░░░  25%  192
  10.0.2.0/25 ██░░░░░  25%   96
rack-a  /64   █░░░░░░  <1% >99%  9 nodes
off     /26   ░░░░░░░   0%  256 disabled
total, IPv4   █░░░░░░  20%  736 12 nodes

█ held  ▒ quarantined, reserved  ░ free
"""
    )


def test_120_columns() -> None:
    assert show(120) == (
        """\
lab: 2 nodes with 3 blocks
POOL    BLOCK  SIZE  USED                           FREE  QUARANTINED  RESERVED  ROOM FOR  COMES FREE
full    /27      32  ████████████████████████ 100%     0                          0 nodes
kept    /26     256  ▒▒▒▒▒▒░░░░░░░░░░░░░░░░░░  25%   192                     64   3 nodes
rack-a  /27     384  ████▒▒░░░░░░░░░░░░░░░░░░  25%   288           32             9 nodes  1 on 2026-11-28
  10.0.0.0/24   256  ███▒▒▒░░░░░░░░░░░░░░░░░░  25%   192           32
  10.0.2.0/25   128  ██████░░░░░░░░░░░░░░░░░░  25%    96
rack-a  /64    2^80  █░░░░░░░░░░░░░░░░░░░░░░░  <1%  >99%                          9 nodes
off     /26     256  ░░░░░░░░░░░░░░░░░░░░░░░░   0%   256                         disabled
total, IPv4     928  ███▒▒░░░░░░░░░░░░░░░░░░░  20%   736           32        64  12 nodes

█ held  ▒ quarantined, reserved  ░ free
"""
    )


def test_a_pipe_gets_ascii() -> None:
    assert render([lab()], ShowOptions(), Screen()) == (
        """\
lab: 1 node with 2 blocks
POOL    BLOCK  SIZE  USED                        FREE  ROOM FOR  COMES FREE
rack-a  /27     384  ####==................ 25%   288   9 nodes  1 on 2026-11-28
  10.0.0.0/24   256  ###===................ 25%   192
  10.0.2.0/25   128  ######................ 25%    96
rack-a  /64    2^80  #..................... <1%  >99%   9 nodes

# held  = quarantined, reserved  . free
"""
    )


def test_blocks() -> None:
    assert show(blocks=True) == (
        """\
lab: 2 nodes with 3 blocks
POOL    BLOCK  SIZE  USED                        FREE  ROOM FOR  COMES FREE
full    /27      32  █████████████████████ 100%     0   0 nodes
  10.1.0.0/27  n7  held
kept    /26     256  ▒▒▒▒▒░░░░░░░░░░░░░░░░  25%   192   3 nodes
rack-a  /27     384  ███▒▒░░░░░░░░░░░░░░░░  25%   288   9 nodes  1 on 2026-11-28
  10.0.0.0/24   256  ███▒▒░░░░░░░░░░░░░░░░  25%   192
    10.0.0.0/27   n1  held
    10.0.0.32/27  n2  quarantined 2026-11-21, free on 2026-11-28
  10.0.2.0/25   128  █████░░░░░░░░░░░░░░░░  25%    96
    10.0.2.0/27  n1  pending
rack-a  /64    2^80  █░░░░░░░░░░░░░░░░░░░░  <1%  >99%   9 nodes
  fd00::/64  n1  held
off     /26     256  ░░░░░░░░░░░░░░░░░░░░░   0%   256  disabled
total, IPv4     928  ██▒▒░░░░░░░░░░░░░░░░░  20%   736  12 nodes

█ held  ▒ quarantined, reserved  ░ free
"""
    )


def test_a_quarantine_that_is_over_is_told_so() -> None:
    options = ShowOptions(blocks=True)
    assert "quarantined 2026-11-21, free on 2026-11-28\n" in render([lab(lines=True)], options, Screen())
    over = lab(lines=True, today="2026-11-28")
    assert "quarantined 2026-11-21, free since 2026-11-28\n" in render([over], options, Screen())
    never = lab(lines=True, quarantine_days=None)
    assert "quarantined 2026-11-21\n" in render([never], options, Screen())


def test_a_long_name_of_a_node_has_a_line_of_its_own() -> None:
    name = "ip-10-0-0-1.eu-central-1.compute"
    line = Line(block=parse_block("10.1.0.0/27"), pool="full", node=name)
    cluster = lab(pools=(FULL,), of=(line,), lines=True)
    options = ShowOptions(blocks=True)
    assert render([cluster], options, on(40)).splitlines()[3:] == ["  10.1.0.0/27  held", f"    {name}"]
    assert render([cluster], options, on(80)).splitlines()[3:] == [f"  10.1.0.0/27  {name}  held"]
    assert render([cluster], options, Screen(width=40)).splitlines()[3:] == [f"  10.1.0.0/27  {name}  held"]


def test_ranges_of_one_range_are_shown_when_asked_for() -> None:
    assert "10.1.0.0/27" not in show()
    assert "  10.1.0.0/27 " in show(ranges=True)
    assert "10.0.2.0/25" in show()
    assert "10.0.2.0/25" not in show(ranges=False)


@pytest.mark.parametrize("columns", [36, 40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    """Long names are cut where they say least: two pools never look the same for that."""
    pools = tuple(
        pool(f"rack-{number:03}-datacenter-north.example", part(26, f"10.{number}.0.0/20"))
        for number in range(20)
    )
    text = render([lab(pools=pools, of=())], ShowOptions(), on(columns))
    assert max(map(width, text.splitlines())) <= columns
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("rack")]
    assert len(set(rows)) == 20


def test_many_pools_are_cut_on_a_terminal_and_never_in_a_pipe() -> None:
    pools = tuple(pool(f"rack-{number:03}", part(26, f"10.{number}.0.0/20")) for number in range(200))
    lines = tuple(
        Line(
            block=parse_block(f"10.{number}.0.0/{20 + number // 8}"),
            pool=f"rack-{number:03}",
            node=f"n{number}",
        )
        for number in range(40)
    )
    cluster = lab(pools=pools, of=lines)
    assert render([cluster], ShowOptions(), Screen()).count("\nrack-") == 200
    assert render([cluster], ShowOptions(every=True), on(80)).count("\nrack-") == 200
    text = render([cluster], ShowOptions(), on(80))
    assert text.count("\nrack-") == POOLS_SHOWN
    assert text.splitlines()[-1] == "… and 170 more pools, at most 12% used: --all shows them"
    assert text.splitlines()[-2].startswith("total  ")


ORDERS = [
    ("use", ["full", "kept", "rack-a", "rack-a", "off"]),
    ("name", ["full", "kept", "off", "rack-a", "rack-a"]),
    ("free", ["rack-a", "rack-a", "off", "kept", "full"]),
    ("size", ["rack-a", "rack-a", "kept", "off", "full"]),
    ("room", ["rack-a", "rack-a", "kept", "full", "off"]),
]


@pytest.mark.parametrize(("sort", "names"), ORDERS, ids=[sort for sort, _ in ORDERS])
def test_orders(sort: str, names: list[str]) -> None:
    """The families of a pool stay together. What has no room comes first, what is disabled last."""
    rows = [line.split()[0] for line in show(120, sort=sort).splitlines()[2:] if line]
    assert [name for name in rows if name in {"full", "kept", "off", "rack-a"}] == names


def test_colours() -> None:
    low = pool(
        "low",
        part(26, "10.4.0.0/24"),
        reserved=part(26, "10.4.0.0/25", "10.4.0.128/26", "10.4.0.192/27").ranges,
    )
    low_lines = (Line(block=parse_block("10.4.0.224/28"), node="n8"),)
    text = render(
        [lab(*low_lines, FULL_LINE, pools=(FULL, OFF, low, RACK_A))], ShowOptions(), on(80, colour=True)
    )
    styles = {
        line.split()[0]: re.findall(r"\x1b\[([0-9;]+)m[█▒░]", line)
        for line in text.splitlines()[2:-1]
        if line
    }
    assert styles["full"] == ["1;31"]
    assert styles["low"] == ["1;31"]
    assert styles["off"] == ["2"]
    assert styles["rack-a"] == []


def test_a_pool_with_little_left_is_yellow() -> None:
    lines = tuple(
        Line(block=parse_block(f"10.2.{number // 8}.{number % 8 * 32}/27"), pool="a", node=f"n{number}")
        for number in range(59)
    )
    text = render(
        [lab(pools=(pool("a", part(27, "10.2.0.0/21")),), of=lines)], ShowOptions(), on(80, colour=True)
    )
    assert "\x1b[1;33m" in text
    assert "5 nodes" in text


def test_totals_of_clusters() -> None:
    text = render([lab(), lab(name="other")], ShowOptions(), Screen(width=80))
    assert text.splitlines()[-4:-2] == [
        "all clusters, IPv4   768  ###=............. 25%   576  18 nodes",
        "all clusters, IPv6  2^81  #................ <1%  >99%  18 nodes",
    ]


def test_names_are_text() -> None:
    hostile = pool("x\x1b[31m\n::error::y", part(27, "10.0.0.0/24"))
    text = render([lab(pools=(hostile,), of=(), name="a\x07b")], ShowOptions(), on(80))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert len(text.splitlines()) == 3


def test_a_cluster_without_pools() -> None:
    assert render([lab(pools=(), of=())], ShowOptions(), Screen()) == "lab: 0 nodes with 0 blocks\n"


def test_lines_outside_every_pool_are_told() -> None:
    stray = Line(block=parse_block("172.16.0.0/27"), node="n9")
    assert render([lab(stray, pools=(), of=())], ShowOptions(), Screen()) == (
        "lab: 1 node with 1 block; 1 line of the lock outside all pools\n"
    )
    assert render([lab(stray, pools=(), of=(), lines=True)], ShowOptions(blocks=True), Screen()).splitlines()[
        1:
    ] == [
        "outside all pools",
        "  172.16.0.0/27  n9  held",
    ]


@pytest.mark.parametrize(
    ("part", "total", "used", "left"),
    [
        (0, 1000, "0%", "0%"),
        (1, 1000, "<1%", "<1%"),
        (10, 1000, "1%", "1%"),
        (999, 1000, "99%", ">99%"),
        (1000, 1000, "100%", "100%"),
        (1, 1 << 80, "<1%", "<1%"),
        ((1 << 80) - 1, 1 << 80, "99%", ">99%"),
        (2, 3, "66%", "67%"),
        (0, 0, "", ""),
    ],
)
def test_shares_are_exact_at_their_ends(part: int, total: int, used: str, left: str) -> None:
    assert percent(part, total) == used
    assert percent_left(part, total) == left


def test_numbers() -> None:
    assert [addresses(each, 4) for each in (0, 65536, 1 << 24, (1 << 32) - 1)] == [
        "0",
        "65,536",
        "16,777,216",
        "4,294,967,295",
    ]
    assert [addresses(each, 6) for each in (0, 256, 1 << 16, 1 << 72, 3 << 71)] == [
        "0",
        "256",
        "2^16",
        "2^72",
        "~2^72.6",
    ]
    assert [amount(each) for each in (0, 212, 9_999_999, 1 << 24, (1 << 64) - 1)] == [
        "0",
        "212",
        "9,999,999",
        "2^24",
        "~2^64",
    ]
