"""Routing tables as routers print them: FRR, BIRD 2, GoBGP, iproute2, Junos and Cilium, as text.

The format is recognized by its content; `routes_json.py` reads JSON. A router's table may be hostile: lines
and sizes are limited, patterns take linear time, and a line with a prefix that no pattern matches is reported
as not read. Shapes are those that FRR 8.4, BIRD 2.0.12, GoBGP 3.10 and iproute2 6.1 printed, of Juniper's
documentation, and of Cilium 1.15 to 1.20 (cilium-cli/bgp/routes.go, pkg/bgp/commands/routes.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ipamc.model.cidr import Address, Block, CidrError
from ipamc.model.diagnostics import At, Diagnostic, Refused, Span, error
from ipamc.model.dump import Route, Table
from ipamc.model.limits import LARGEST_ROUTES, LONGEST_ROUTE
from ipamc.read.routes_json import ACTIVE, DROPS, MISTAKES, OTHER, address_of, block_of, junos_vrf, of_json
from ipamc.read.syntax.document import Unreadable
from ipamc.read.syntax.text import decode

SUPPORTED = (
    "vtysh -c 'show ip route json', birdc show route, gobgp global rib -j, ip -j route, show route (Junos), "
    "show ip route | json (EOS, NX-OS), cilium bgp routes advertised"
)


def unknown_table(
    at: At, problem: str, way_out: str = f"use the output of one of these: {SUPPORTED}"
) -> Diagnostic:
    """IPC0881: a routing table has a format that ipamc reads."""
    return error("IPC0881", at, problem, help=way_out)


def read_routes(path: str, data: bytes) -> Table:
    """Read the table of one router. Raises Refused for any other text."""
    if len(data) > LARGEST_ROUTES:
        fewer = "print only the routes of the pools: vtysh -c 'show ip route 10.0.0.0/8 longer-prefixes json'"
        large = f"the table has more than {LARGEST_ROUTES:,} bytes"
        raise Refused((unknown_table(Span(path), large, fewer),))
    try:
        text = decode(path, data)
    except Unreadable as problem:
        raise Refused(problem.diagnostics) from None
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return Table(path=path, text=text, routes=tuple(of_json(text)))
        except MISTAKES as mistake:
            why = f"this JSON is not a routing table that ipamc reads: {mistake}"
            raise Refused((unknown_table(Span(path), why),)) from None
    unread: list[int] = []
    for sign, parser in _TEXTS:
        if any(sign(row) for _, row in _lines(text)):
            routes = tuple(parser(text, unread))
            if routes or not unread:
                of_node = sign is _CILIUM_NODE
                return Table(path=path, text=text, routes=routes, unread=tuple(unread), of_node=of_node)
            break
    line = f": line {unread[0]} has a prefix in an unknown format" if unread else ""
    at = Span(path, unread[0], 1, 1) if unread else Span(path)
    raise Refused((unknown_table(at, f"this is not a routing table that ipamc reads{line}"),))


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
    rf"(?:(?P<kind>{'|'.join(sorted(DROPS | OTHER))}|unicast) )?(?P<block>default|{_CIDR}|{_IP}) "
    r"(?=(?:via|dev|nhid|proto|metric|scope|src) )"
).match
_JUNOS_TABLE = re.compile(r"(?P<name>[\w.-]{1,200}\.\d+): \d+ destinations").match
_JUNOS_BLOCK = re.compile(rf"(?P<block>{_CIDR})(?:\s|$)").match
_JUNOS_ENTRY = re.compile(r"(?:^|\s)(?P<marks>[*+@#-]{0,2})\[[A-Z][\w-]{0,40}[ /\]]").search
_JUNOS_HOP = re.compile(
    rf"\s+(?:> {{0,3}})?(?:to (?P<hop>{_IP})(?: via|$)|(?P<drops>Discard|Reject)\b"
    r"|via |to table )"
).match
_CILIUM = re.compile(r"Node\s+VRouter\s+(?:Peer\s+)?Prefix\s+NextHop\b").match
_CILIUM_NODE = re.compile(r"(?:VRouter|Instance)\s+(?:Peer\s+)?Prefix\s+NextHop\b").match
_IS_CIDR = re.compile(_CIDR).fullmatch
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
            yield Route(block, None, drops=kind in DROPS, line=number - 1)
        block, open_ = None, False
        found = _IP_ROUTE(line)
        if found is None:
            _note(number, line, unread)
            continue
        kind = found["kind"] or "unicast"
        if kind in OTHER:
            continue
        hop = _IP_HOP(line)
        block = _readable(found["block"], _hop(hop["hop"]) if hop else None)
        if block is None:
            unread.append(number)
        elif hop:
            yield Route(block, _hop(hop["hop"]), drops=kind in DROPS, line=number)
        else:
            open_ = True


def _of_junos(text: str, unread: list[int]) -> Iterator[Route]:
    block, vrf, used, alone = None, None, False, 0  # type: Block | None, str | None, bool, int
    for number, line in _lines(text):
        if table := _JUNOS_TABLE(line):
            vrf, block = junos_vrf(table["name"]), None
            continue
        if vrf is None:
            continue
        prefix, entry, hop = _JUNOS_BLOCK(line), _JUNOS_ENTRY(line), _JUNOS_HOP(line)
        if alone and not entry:
            unread.append(alone)
        alone = 0
        if prefix:
            block, used = _readable(prefix["block"]), False
            alone = 0 if entry and block else number  # a long prefix has its entry on the next line
        if entry:
            used = not ACTIVE.isdisjoint(entry["marks"])
        elif hop and block:
            yield Route(block, _hop(hop["hop"]), used, bool(hop["drops"]), number, vrf)
        elif not prefix:
            _note(number, line, unread)


def _of_cilium(text: str, unread: list[int]) -> Iterator[Route]:
    """Yield routes once for all peers. Cells that repeat those above may be empty: the node, the prefix."""
    block, node, named = None, "", False  # type: Block | None, str, bool
    known: set[tuple[str, Block, Address]] = set()
    for number, line in _lines(text):
        words = line.split()
        if _CILIUM(line) or _CILIUM_NODE(line):
            block, named = None, line.startswith("Node")
            continue
        if named and words and not line.startswith(" "):
            node = words[0]
        at = next((index for index, word in enumerate(words[:4]) if _IS_CIDR(word)), -1)
        block = _readable(words[at]) if at >= 0 else block if line.startswith(" ") else None
        hop = _hop(words[at + 1]) if words[at + 1 :] else None
        if block is None or hop is None:
            _note(number, line, unread)
        elif (node, block, hop) not in known:
            known.add((node, block, hop))
            yield Route(block, hop, words[at + 2 : at + 3] != ["false"], line=number, node=node)


def _note(number: int, line: str, unread: list[int]) -> None:
    if _HAS_CIDR(line):
        unread.append(number)


def _readable(text: str, hop: Address | None = None) -> Block | None:
    try:
        return block_of(text, hop)
    except CidrError:
        return None


def _hop(text: str | None) -> Address | None:
    try:
        return address_of(text)
    except CidrError:
        return None


Match = Callable[[str], re.Match[str] | None]


_TEXTS: tuple[tuple[Match, Callable[[str, list[int]], Iterator[Route]]], ...] = (
    (_JUNOS_TABLE, _of_junos),
    (_CILIUM_NODE, _of_cilium),
    (_CILIUM, _of_cilium),
    (_BIRD, _of_bird),
    (re.compile(r"\s+Network\s+Next Hop|Network not in table").match, _of_bgp),
    (_ZEBRA, _of_zebra),
    (_IP_ROUTE, _of_iproute),
)
"""For each format, a test that recognizes its text, and its reader."""
