"""Routing tables as routers print them: FRR, BIRD 2, GoBGP and iproute2, as JSON or text.

The format is recognized by its content. A router's table may be hostile: lines and sizes are limited,
patterns take linear time, and a line with a prefix that no pattern matches is reported as not read. Shapes
are those that FRR 8.4, BIRD 2.0.12, GoBGP 3.10 and iproute2 6.1 printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.cidr import Address, Block, CidrError, parse_address, parse_either
from ipamc.model.diagnostics import At, Diagnostic, Refused, Span, error
from ipamc.model.dump import Route, Table
from ipamc.model.limits import LARGEST_ROUTES, LONGEST_ROUTE
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.text import decode

SUPPORTED = (
    "vtysh -c 'show ip route json', vtysh -c 'show bgp ipv4 unicast json', birdc show route, "
    "gobgp global rib -j, or ip -j route"
)


def unknown_table(
    at: At, problem: str, way_out: str = f"write what one of these prints: {SUPPORTED}"
) -> Diagnostic:
    """IPC0881: a routing table is what FRR, BIRD, GoBGP or iproute2 prints."""
    return error("IPC0881", at, problem, help=way_out)


def read_routes(path: str, data: bytes) -> Table:
    """Read the table of one router. Raises Refused for any other text."""
    if len(data) > LARGEST_ROUTES:
        fewer = (
            "print the routes of the pools alone, as vtysh -c 'show ip route 10.0.0.0/8 longer-prefixes json'"
        )
        problem = f"the table has more than {LARGEST_ROUTES:,} bytes"
        raise Refused((unknown_table(Span(path), problem, fewer),))
    try:
        text = decode(path, data)
    except Unreadable as problem:
        raise Refused(problem.diagnostics) from None
    if text.lstrip()[:1] in {"{", "["}:
        return Table(path=path, text=text, routes=tuple(_of_json(path, text)))
    unread: list[int] = []
    parser = next((parser for sign, parser in _TEXTS if any(sign(row) for _, row in _lines(text))), None)
    routes = tuple(parser(text, unread)) if parser else ()
    if parser and (routes or not unread):
        return Table(path=path, text=text, routes=routes, unread=tuple(unread))
    raise Refused((unknown_table(Span(path), "this is no routing table that ipamc reads"),))


class _Hop(Struct):
    """A next hop of FRR, or of `nexthops` of iproute2."""

    ip: str = ""
    gateway: str = ""
    via: dict[str, Any] = {}
    scope: str = ""  # BGP: there may be a link-local address besides the global one
    active: bool = True  # zebra omits it for an unreachable hop
    resolver: bool = False  # a hop that resolves a recursive next hop, not one of the route itself
    blackhole: bool = False
    unreachable: bool = False
    reject: bool = False


class _Attribute(Struct):
    """A BGP attribute of GoBGP: NEXT_HOP, or MP_REACH_NLRI (RFC 8950 for IPv4 by IPv6)."""

    nexthop: str = ""


class _Path(Struct):
    """A route of zebra, or a path of FRR's bgpd or of GoBGP."""

    nexthops: list[_Hop] | None = None
    protocol: str = ""  # only zebra
    selected: bool = False
    failed: bool = False  # the kernel rejected it
    bestpath: Any = False  # bgpd; an object in details
    multipath: bool = False
    attrs: list[_Attribute] | None = None  # only GoBGP
    best: bool = False


class _IpRoute(_Hop):
    """An entry of `ip -j route`."""

    dst: str = ""
    type: str = "unicast"
    nexthops: list[_Hop] = []


_OTHER = frozenset({"local", "broadcast", "multicast", "anycast", "throw", "nat"})
_DROPS = frozenset({"blackhole", "unreachable", "prohibit"})


def _of_json(path: str, text: str) -> Iterator[Route]:
    try:
        if text.lstrip().startswith("["):
            for entry in msgspec.json.decode(text, type=list[_IpRoute]):
                yield from _of_ip(entry)
            return
        top = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        if "routes" in top:  # bgpd puts the router's identity around them
            top = msgspec.json.decode(top["routes"], type=dict[str, msgspec.Raw])
        for prefix, raw in top.items():
            for each in msgspec.json.decode(raw, type=list[_Path]):
                if each.attrs is None and each.nexthops is None:
                    raise msgspec.ValidationError(f"{prefix} has neither nexthops nor attrs")
                yield from _of_path(_block(prefix), each)
    except (msgspec.MsgspecError, CidrError, RecursionError) as problem:
        text = f"this is no routing table in JSON that ipamc reads: {problem}"
        raise Refused((unknown_table(Span(path), text),)) from None


def _of_path(block: Block, path: _Path) -> Iterator[Route]:
    if path.attrs is not None:
        for text in {attribute.nexthop: 0 for attribute in path.attrs if attribute.nexthop}:
            yield Route(block, _address(text), path.best)
        return
    used = path.selected and not path.failed if path.protocol else bool(path.bestpath or path.multipath)
    hops = [hop for hop in path.nexthops or () if not hop.resolver]
    if any(hop.scope == "global" for hop in hops):
        hops = [hop for hop in hops if hop.scope != "link-local"]
    for hop in hops:
        drops = hop.blackhole or hop.unreachable or hop.reject
        yield Route(block, _address(hop.ip), used and hop.active, drops)


def _of_ip(entry: _IpRoute) -> Iterator[Route]:
    if not entry.dst:
        raise msgspec.ValidationError("an entry has no dst")
    if entry.type in _OTHER:
        return
    for hop in entry.nexthops or [entry]:
        found = _address(hop.gateway or str(hop.via.get("host", "")))
        yield Route(_block(entry.dst, found), found, drops=entry.type in _DROPS)


def _block(text: str, hop: Address | None = None) -> Block:
    """Read a prefix; an address alone, as iproute2 prints it, is a prefix of full length. Raises CidrError.
    `default` of iproute2 has the family of its next hop.
    """
    if text == "default":
        return Block(hop[0] if hop else 4, 0, 0)
    return parse_either(text)


_CIDR = r"[0-9a-f.:]{3,39}/\d{1,3}"
_IP = r"[0-9a-f.:]{3,39}"
_HAS_CIDR = re.compile(rf"(?<![\w.:/]){_CIDR}\b").search
_ZEBRA = re.compile(
    rf"(?:[A-Za-z](?P<marks>[> ][*qrbto ]{{0,3}})\s{{0,4}}(?P<block>{_CIDR})(?: \[\d+/\d+\])?"
    rf"|  [ *rqbto]{{0,4}}) +(?P<way>via (?P<hop>{_IP})|(?P<drops>unreachable)|is directly connected)"
).match
_BGP = re.compile(
    rf"(?P<marks>[ A-Za-z]?\*[ a-zA-Z]?[>= ]?[ i]{{0,3}}) *(?:\d+ +)?"
    rf"(?:(?P<block>{_CIDR}) +)?(?P<hop>{_IP})(?: |$)"
).match
_BIRD = re.compile(
    rf"(?:(?P<block>{_CIDR})|\s{{8,60}})\s+(?P<kind>unicast|blackhole|unreachable|prohibit)\s+"
    r"\[[^\]]*\](?P<best> \*)?"
).match
_BIRD_HOP = re.compile(rf"\s+(?:via |(?P<bgp>BGP\.next_hop): )(?P<hop>{_IP})(?: |$)").match
_IP_ROUTE = re.compile(
    rf"(?:(?P<kind>{'|'.join(sorted(_DROPS | _OTHER))}|unicast) )?(?P<block>default|{_CIDR}|{_IP}) "
    r"(?=(?:via|dev|nhid|proto|metric|scope|src) )"
).match
_IP_HOP = re.compile(rf"\s*(?:nexthop )?(?:.{{0,60}}? )?via (?:inet6 )?(?P<hop>{_IP})(?: |$)").match


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line[:LONGEST_ROUTE].removesuffix("\r")


def _of_zebra(text: str, unread: list[int]) -> Iterator[Route]:
    """Yield routes; lines indented below a recursive next hop are its resolution, not next hops."""
    block, chosen, column = None, False, 0
    for number, line in _lines(text):
        found = _ZEBRA(line)
        if found is None:
            block = None
            _note(number, line, unread)
            continue
        if found["block"]:
            block, column = _readable(found["block"]), found.start("way")
            chosen = found["marks"].startswith(">") and "r" not in found["marks"]  # rejected by the kernel
        if block is None:
            unread.append(number)
        elif found.start("way") <= column:
            yield Route(block, _hop(found["hop"]), chosen, bool(found["drops"]), number)


def _of_bgp(text: str, unread: list[int]) -> Iterator[Route]:
    """Yield the routes of `show bgp ipv4 unicast` and of `gobgp global rib`, which look alike."""
    block = None
    for number, line in _lines(text):
        found = _BGP(line)
        if found is None:
            _note(number, line, unread)
            continue
        if found["block"]:
            block = _readable(found["block"])
        if block is None:
            unread.append(number)
            continue
        yield Route(block, _hop(found["hop"]), not {">", "="}.isdisjoint(found["marks"]), line=number)


def _of_bird(text: str, unread: list[int]) -> Iterator[Route]:
    """Yield routes; with `all`, BGP's own next hop instead of the resolved one."""
    block: Block | None = None
    used = drops = False
    start, hops, own = 0, [], []  # type: int, list[Address | None], list[Address | None]

    def ended() -> Iterator[Route]:
        if block is not None:
            for hop in own or hops or [None]:
                yield Route(block, hop, used, drops, start)

    for number, line in _lines(text):
        if found := _BIRD(line):
            yield from ended()
            if found["block"]:
                block = _readable(found["block"])
            if block is None:
                unread.append(number)
            used, drops = bool(found["best"]), found["kind"] != "unicast"
            start, hops, own = number, [], []
        elif hop := _BIRD_HOP(line):
            (own if hop["bgp"] else hops).append(_hop(hop["hop"]))
        elif not line.startswith(("\t", " ")):
            yield from ended()
            block = None
            _note(number, line, unread)
    yield from ended()


def _of_iproute(text: str, unread: list[int]) -> Iterator[Route]:
    block, kind, open_ = None, "", False
    for number, line in _lines(f"{text}\n"):
        if line.startswith(("\t", " ")) and block is not None and (hop := _IP_HOP(line)):
            open_ = False
            yield Route(block, _hop(hop["hop"]), line=number)
            continue
        if block is not None and open_:
            yield Route(block, None, drops=kind in _DROPS, line=number - 1)
        block, open_ = None, False
        found = _IP_ROUTE(line)
        if found is None:
            _note(number, line, unread)
            continue
        kind = found["kind"] or "unicast"
        if kind in _OTHER:
            continue
        hop = _IP_HOP(line)
        block = _readable(found["block"], _hop(hop["hop"]) if hop else None)
        if block is None:
            unread.append(number)
        elif hop:
            yield Route(block, _hop(hop["hop"]), drops=kind in _DROPS, line=number)
        else:
            open_ = True


def _note(number: int, line: str, unread: list[int]) -> None:
    if _HAS_CIDR(line):
        unread.append(number)


def _readable(text: str, hop: Address | None = None) -> Block | None:
    try:
        return _block(text, hop)
    except CidrError:
        return None


def _address(text: str | None) -> Address | None:
    """Read a next hop; over a session of IPv4 one of IPv6 is an IPv4 address, mapped. Raises CidrError."""
    return parse_address(text) if text else None


def _hop(text: str | None) -> Address | None:
    try:
        return _address(text)
    except CidrError:
        return None


Match = Callable[[str], re.Match[str] | None]


_TEXTS: tuple[tuple[Match, Callable[[str, list[int]], Iterator[Route]]], ...] = (
    (_BIRD, _of_bird),
    (re.compile(r"\s+Network\s+Next Hop|Network not in table").match, _of_bgp),
    (_ZEBRA, _of_zebra),
    (_IP_ROUTE, _of_iproute),
)
"""For each format, a test that recognizes its text, and its reader."""
