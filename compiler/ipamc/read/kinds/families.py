"""One family of a pool as written: CIDRs of its own, or a request to an address space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.model.space import Ask
from ipamc.read.rules import wrong_shape
from ipamc.read.values import AnyOf, Reading, Text, given

Prefix4 = Annotated[int, Meta(ge=1, le=32)]
Prefix6 = Annotated[int, Meta(ge=1, le=128)]


class _Family(AnyOf, kw_only=True):
    any_of = ("cidrs", "from_")
    cidrs: Annotated[list[str], Meta(min_length=1)] | UnsetType = UNSET
    from_: Text | UnsetType = field(name="from", default=UNSET)
    ranges: Annotated[int, Meta(ge=1, le=1024)] | UnsetType = UNSET
    follows: str = ""


class Family4(_Family, kw_only=True):
    """IPv4."""

    prefix_length: Prefix4 | UnsetType = UNSET
    block_size: Prefix4


class Family6(_Family, kw_only=True):
    """IPv6."""

    prefix_length: Prefix6 | UnsetType = UNSET
    block_size: Prefix6


def read_ask(part: Family4 | Family6, at: Place, reading: Reading) -> Ask | None:
    """Return a pool's request to an address space; None if it has CIDRs. Report conflicting fields."""
    reading.found.extend(_odd_ask(part, at))
    if isinstance(part.from_, UnsetType):
        return None
    prefix, ranges = given(part.prefix_length, 0), given(part.ranges, 1)
    return Ask(space=part.from_, prefix=prefix, ranges=ranges, at=at / "from")


def _odd_ask(part: Family4 | Family6, at: Place) -> Iterator[Diagnostic]:
    """Yield findings about conflicting fields: `cidrs` and a request to a space."""
    if isinstance(part.from_, UnsetType):
        for name, value in (("ranges", part.ranges), ("prefixLength", part.prefix_length)):
            if not isinstance(value, UnsetType):
                way_out = "write from, with the name of an address space, or leave it out"
                yield wrong_shape(at / name, f"{name} is what a pool asks of an address space", way_out)
        return
    if not isinstance(part.cidrs, UnsetType):
        problem = "cidrs and from exclude each other: the ranges are those that the address space gives"
        yield wrong_shape(at / "cidrs", problem, "write one of the two")
    if part.follows:
        problem = "follows needs cidrs, whose n-th block is the n-th node's"
        yield wrong_shape(at / "follows", problem, "write cidrs in place of from")
    if given(part.prefix_length, 0) > part.block_size:
        problem = f"a range of /{part.prefix_length} has no block of /{part.block_size}"
        way_out = f"write a prefixLength of at most {part.block_size}"
        yield wrong_shape(at / "prefixLength", problem, way_out)
