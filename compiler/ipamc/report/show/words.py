"""Numbers of addresses and shares of them, as short as they can be read without being taken for others."""

from __future__ import annotations

import math

_IN_FULL = 10_000_000
"""Numbers below this are written with all digits."""


def amount(value: int) -> str:
    """Return a number with all digits, or a huge one as a power of two."""
    return f"{value:,}" if value < _IN_FULL else power(value)


def addresses(value: int, family: int) -> str:
    """Return a number of addresses: of IPv4 with all digits, of IPv6 as a power of two."""
    return f"{value:,}" if family == 4 or value < 1 << 16 else power(value)


def power(value: int) -> str:
    """Return a number as a power of two: `2^72`; `~2^72.6` where it is none."""
    if value and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    text = f"{math.log2(value):.1f}".removesuffix(".0") if value else "0"
    return f"~2^{text}" if value else "0"


def percent(part: int, total: int) -> str:
    """Return a share, rounded down: 0% and 100% are said only where they are exact. "" of nothing."""
    if not total:
        return ""
    return "<1%" if 0 < part * 100 < total else f"{part * 100 // total}%"


def percent_left(left: int, total: int) -> str:
    """Return the other share, so that both add up: where `<1%` are used, `>99%` are left. "" of nothing."""
    if not total:
        return ""
    if 0 < left * 100 < total:
        return "<1%"
    used = total - left
    return ">99%" if 0 < used * 100 < total else f"{100 - used * 100 // total}%"
