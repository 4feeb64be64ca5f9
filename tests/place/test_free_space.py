"""The free pieces of ranges: lowest first, any mix of sizes, and old lines when nothing is free."""

from __future__ import annotations

import pytest

from ipamc.law.change import last_day
from ipamc.model.address_sets import outermost
from ipamc.place.allocate.free_space import Space
from ipamc.place.allocate.occupancy import Occupancy
from ipamc.place.quarantine import first_day
from tests.support.pools import block, line


def space(
    *ranges: str, lines: tuple[str, ...] = (), blocked: tuple[str, ...] = (), last: str = "2026-11-14"
) -> Space:
    some = [block(each) for each in ranges]
    made = sorted((line(each) for each in lines), key=lambda each: each.block)
    return Space(some[0].family, some, Occupancy(made, outermost(map(block, blocked)), last))


def take(of: Space, prefix: int) -> str:
    found = of.find(prefix)
    if found is None:
        return "none"
    assert of.find(prefix) == found  # looking takes nothing
    of.take(found)
    return str(found.block)


def takes(of: Space, *prefixes: int) -> list[str]:
    return [take(of, prefix) for prefix in prefixes]


def test_ranges_come_in_the_order_as_written() -> None:
    assert takes(space("10.0.1.0/25", "10.0.0.0/25"), 26, 26, 26, 26, 26) == [
        "10.0.1.0/26",
        "10.0.1.64/26",
        "10.0.0.0/26",
        "10.0.0.64/26",
        "none",
    ]


def test_sizes_mix_without_waste() -> None:
    assert takes(space("10.0.0.0/24"), 27, 25, 26, 27, 28, 26) == [
        "10.0.0.0/27",
        "10.0.0.128/25",
        "10.0.0.64/26",
        "10.0.0.32/27",
        "none",
        "none",
    ]


def test_a_block_larger_than_the_range_is_never_there() -> None:
    assert takes(space("10.0.0.0/26", "10.0.1.0/24"), 25, 26, 23) == ["10.0.1.0/25", "10.0.0.0/26", "none"]


def test_the_width_of_a_range_costs_nothing() -> None:
    wide = space("fd00::/8", lines=("fd00::/64 a", "fd00:0:0:1::/80 b"), blocked=("fd00:0:0:2::/63",))
    assert takes(wide, 64, 128, 9) == ["fd00:0:0:4::/64", "fd00:0:0:1:1::/128", "fd80::/9"]


def test_lines_that_reach_beyond_a_range_block_it() -> None:
    assert takes(space("10.0.0.0/26", "10.0.0.128/26", lines=("10.0.0.0/25 a",)), 27) == ["10.0.0.128/27"]


def test_released_lines_come_before_waited_days_and_those_by_their_youngest_day() -> None:
    lines = (
        "10.0.0.0/28 a 2026-11-14",
        "10.0.0.16/29 b 2026-11-01",
        "10.0.0.24/29 c 2026-11-12",
        "10.0.0.32/28 d 2026-11-10",
        "10.0.0.48/29 e released",
        "10.0.0.56/29 f",
        "10.0.0.64/29 g released",
        "10.0.0.80/28 h 2026-11-15",
    )
    full = space("10.0.0.0/26", "10.0.0.64/27", lines=lines, blocked=("10.0.0.75/32",))
    assert takes(full, 28, 28, 28, 28) == ["10.0.0.32/28", "10.0.0.16/28", "10.0.0.0/28", "none"]


def test_a_place_may_be_partly_free() -> None:
    part = space("10.0.0.0/26", lines=("10.0.0.0/28 a", "10.0.0.32/30 b released", "10.0.0.48/32 c released"))
    assert takes(part, 27, 28, 28, 29) == ["10.0.0.32/27", "10.0.0.16/28", "none", "none"]


def test_a_larger_block_takes_the_places_of_smaller_ones() -> None:
    lines = (
        "10.0.0.0/28 a 2026-11-01",
        "10.0.0.32/28 b 2026-11-02",
        "10.0.0.48/28 c 2026-11-03",
        "10.0.0.16/28 d 2026-11-04",
    )
    assert takes(space("10.0.0.0/26", lines=lines), 28, 27, 28, 28) == [
        "10.0.0.0/28",
        "10.0.0.32/27",
        "10.0.0.16/28",
        "none",
    ]


def test_blocked_addresses_may_nest() -> None:
    nested = space(
        "10.0.0.0/25",
        lines=("10.0.0.32/28 a released",),
        blocked=("10.0.0.0/26", "10.0.0.0/28", "10.0.0.64/27", "10.0.0.0/26"),
    )
    assert takes(nested, 28, 28, 28) == ["10.0.0.96/28", "10.0.0.112/28", "none"]


def test_what_is_left_of_a_larger_line_is_free_at_once() -> None:
    occupancy = Occupancy(
        [line("10.0.0.0/25 a released"), line("10.0.0.128/25 b")], [block("10.0.0.0/29")], ""
    )
    rest = Space(4, [block("10.0.0.0/24")], occupancy)
    assert takes(rest, 27, 26, 28, 28, 29, 29) == [
        "10.0.0.32/27",
        "10.0.0.64/26",
        "10.0.0.16/28",
        "none",
        "10.0.0.8/29",
        "none",
    ]
    assert occupancy.reused == {block("10.0.0.0/25")}


def test_a_line_over_two_pools_frees_what_is_left_in_both() -> None:
    occupancy = Occupancy([line("10.0.0.0/24 a released"), line("10.0.1.0/25 b")], [], "")
    one, other = (
        Space(4, [block("10.0.0.0/26")], occupancy),
        Space(4, [block("10.0.1.0/24"), block("10.0.0.64/26")], occupancy),
    )
    assert take(other, 26) == "10.0.1.128/26"
    assert take(one, 27) == "10.0.0.0/27"
    assert take(one, 27) == "10.0.0.32/27"
    assert takes(other, 26, 27, 27, 27) == ["10.0.1.192/26", "10.0.0.64/27", "10.0.0.96/27", "none"]
    assert occupancy.reused == {block("10.0.0.0/24")}


def test_lines_wait_for_ever_where_no_day_is_over() -> None:
    assert takes(space("10.0.0.0/28", lines=("10.0.0.0/28 a 2000-01-01",), last=""), 28) == ["none"]


@pytest.mark.parametrize(
    ("today", "days", "expected"),
    [
        ("2026-11-21", 7, "2026-11-14"),
        ("2024-03-01", 1, "2024-02-29"),
        ("2026-11-21", 0, "2026-11-21"),
        ("2026-11-21", None, ""),
        ("2026-11-21", 10**9, ""),
    ],
)
def test_last_day(today: str, days: int | None, expected: str) -> None:
    assert last_day(today, days) == expected


@pytest.mark.parametrize(
    ("left", "days", "expected"), [("2024-02-28", 2, "2024-03-01"), ("2026-11-21", 10**12, "")]
)
def test_first_day(left: str, days: int, expected: str) -> None:
    assert first_day(left, days) == expected
