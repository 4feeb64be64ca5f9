"""A router's table: the next hops for a prefix."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from ipamc.model.cidr import BITS, Address, Block, address_text
from ipamc.model.diagnostics import Span


class Route(Struct, frozen=True, gc=False):
    """One route to a prefix: a router may have several. There are as many as a router prints."""

    block: Block
    hop: Address | None = None
    """The next hop; None if the network is connected, or the router drops the packets."""
    used: bool = True
    """The router uses this route; False for a path that was not selected."""
    drops: bool = False
    """The router drops the packets: blackhole, unreachable, prohibit, reject."""
    line: int = 0
    """The line in the file, from 1; 0 in JSON, where it is searched only for a finding."""


class Table(Struct, frozen=True, kw_only=True, dict=True):
    """The routes that one router printed."""

    path: str
    text: str
    routes: tuple[Route, ...]
    """In the order of the file."""
    unread: tuple[int, ...] = ()
    """Lines with a prefix that could not be read."""

    @cached_property
    def families(self) -> frozenset[int]:
        """Return the families with a route."""
        return frozenset(route.block.family for route in self.routes)

    def at(self, route: Route) -> Span:
        """Return the place of a route. O(text) in JSON: only findings need it."""
        if route.line:
            return Span(self.path, route.line, 1, 1)
        family, first, prefix = route.block
        single = [address_text(family, first)] if prefix == BITS[family] else []
        found = (self.text.find(f'"{name}"') for name in (str(route.block), *single))
        start = next((place for place in found if place >= 0), -1)
        if start < 0:
            return Span(self.path)
        column = start - self.text.rfind("\n", 0, start)
        return Span(self.path, self.text.count("\n", 0, start) + 1, column, column)
