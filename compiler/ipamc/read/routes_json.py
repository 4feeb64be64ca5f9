"""Routing tables as JSON: FRR, GoBGP, iproute2, Junos, EOS, NX-OS and cilium-cli."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.cidr import Address, Block, CidrError, parse_address, parse_either
from ipamc.model.dump import Route

OTHER = frozenset({"local", "broadcast", "multicast", "anycast", "throw", "nat"})
DROPS = frozenset({"blackhole", "unreachable", "prohibit"})
"""Types of routes of iproute2: of no use to pods, and those that drop packets."""
ACTIVE = frozenset("*+@#")
"""Marks of active routes: also of those for routing or forwarding alone."""


def junos_vrf(table: str) -> str | None:
    """Return the VRF of a table of Junos, such as vrf-a of `vrf-a.inet.0`; None for another kind of table,
    whose prefixes are no routes of packets: inet.3, mpls.0, bgp.evpn.0.
    """
    vrf, dot, kind = f".{table}".removesuffix(".0").rpartition(".")
    return vrf[1:] if dot and kind in {"inet", "inet6"} and table.endswith(".0") else None


def block_of(text: str, hop: Address | None = None) -> Block:
    """Read a prefix; an address alone, as iproute2 prints it, is a prefix of full length. Raises CidrError.
    `default` of iproute2 has the family of its next hop.
    """
    if text == "default":
        return Block(hop[0] if hop else 4, 0, 0)
    return parse_either(text)


def address_of(text: str | None) -> Address | None:
    """Read a next hop; over a session of IPv4 one of IPv6 is an IPv4 address, mapped. EOS has "-" for none,
    and an interface or a VRF may follow "%". Raises CidrError.
    """
    return parse_address(text.partition("%")[0]) if text and text != "-" else None


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
    """A route of zebra, a path of FRR's bgpd or of GoBGP, or a route of cilium-cli."""

    nexthops: list[_Hop] | None = None
    protocol: str = ""  # only zebra
    selected: bool = False
    failed: bool = False  # the kernel rejected it
    bestpath: Any = False  # bgpd; an object in details
    multipath: bool = False
    attrs: list[_Attribute] | None = None  # only GoBGP
    best: bool = False
    prefix: str = ""
    paths: Any = None  # only cilium-cli


class _IpRoute(_Hop):
    """An entry of `ip -j route`."""

    dst: str = ""
    type: str = "unicast"
    nexthops: list[_Hop] = []


MISTAKES = (msgspec.MsgspecError, CidrError, RecursionError)
"""What `of_json` raises for anything else than a table."""

_ENGINE = re.compile(r"\{\w+:\w+\}").fullmatch  # a print of Junos ends with its routing engine: {master:0}


def of_json(text: str) -> Iterator[Route]:
    """Yield the routes of a table, in its order. Raises one of MISTAKES."""
    head, _, last = text.strip().rpartition("\n")
    text = head if _ENGINE(last) else text
    if text.lstrip().startswith("["):
        for entry in msgspec.json.decode(text, type=list[_IpRoute]):
            yield from _of_ip(entry)
        return
    top = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    for key, reader in _SHAPES.items():
        if key in top:
            yield from reader(msgspec.json.decode(text))
            return
    if "routes" in top:  # bgpd puts the router's identity around them
        top = msgspec.json.decode(top["routes"], type=dict[str, msgspec.Raw])
    for prefix, raw in top.items():
        for each in msgspec.json.decode(raw, type=list[_Path]):
            if each.paths is not None and "/" not in prefix:  # cilium-cli: the key is a node
                yield Route(block_of(each.prefix), (4, 0), node=prefix)
                continue
            if each.attrs is None and each.nexthops is None:
                raise msgspec.ValidationError(f"{prefix} has neither nexthops nor attrs")
            yield from _of_path(block_of(prefix), each)


_Row = dict[str, Any]


def _rows(row: _Row, key: str, *keys: str) -> Iterator[_Row]:
    """Yield the objects below some keys: NX-OS has a list of them, or the only one."""
    value = row.get(key) or []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise msgspec.ValidationError(f"the value of {key!r} is not an object")
        yield from _rows(each, *keys) if keys else [each]


def _first(row: _Row, *keys: str) -> str:
    """Return the first value that is there; Junos wraps it: `[{"data": "inet.0"}]`."""
    for key in keys:
        value = row.get(key)
        if found := next(_rows(row, key), {}).get("data") if isinstance(value, list) else value:
            return str(found)
    return ""


def _of_junos(top: _Row) -> Iterator[Route]:
    for table in _rows(top, "route-information", "route-table"):
        vrf = junos_vrf(_first(table, "table-name"))
        for route in _rows(table, "rt") if vrf is not None else ():
            block = block_of(_first(route, "rt-destination"))
            for entry in _rows(route, "rt-entry"):
                used = _first(entry, "active-tag") in ACTIVE
                drops = _first(entry, "nh-type") in {"Discard", "Reject"}
                for hop in [*_rows(entry, "nh")] or [{}]:
                    yield Route(block, address_of(_first(hop, "to")), used, drops, vrf=vrf or "")


def _named(row: _Row, key: str) -> Iterator[tuple[str, _Row]]:
    for each in _rows(row, key):
        for name in each:
            yield from ((name, value) for value in _rows(each, name))


def _of_eos(top: _Row) -> Iterator[Route]:
    for name, vrf in _named(top, "vrfs"):
        if not {"routes", "bgpRouteEntries"} & vrf.keys():
            raise msgspec.ValidationError(f"VRF {name} has neither routes nor bgpRouteEntries")
        for prefix, entry in (*_named(vrf, "routes"), *_named(vrf, "bgpRouteEntries")):
            block, drops = block_of(prefix), entry.get("routeAction") == "drop"
            for path in [*_rows(entry, "vias"), *_rows(entry, "bgpRoutePaths")] or [{}]:
                kinds = [*_rows(path, "routeType")]  # only BGP
                used = not kinds or bool(kinds[0].get("active") or kinds[0].get("ecmpContributor"))
                hop = address_of(_first(path, "nexthopAddr", "vtepAddr", "nextHop"))
                yield Route(block, hop, used, drops, vrf=name)


def _of_nxos(row: _Row, vrf: str = "", prefix: str = "") -> Iterator[Route]:
    """Yield the routes of `show ip route`, or of `show bgp`, which has more levels of TABLE and ROW."""
    vrf, prefix = _first(row, "vrf-name-out") or vrf, _first(row, "ipprefix", "ipv6prefix") or prefix
    for key in row:
        known = {"vrf", "addrf", "afi", "af", "safi", "saf", "rd", "prefix"}
        if key.startswith("TABLE_") and not prefix and key.removeprefix("TABLE_") not in known:
            raise msgspec.ValidationError(f"{key} does not belong to a routing table")
        for each in _rows(row, key) if key.startswith(("TABLE_", "ROW_")) else ():
            if key == "ROW_path":
                best = _first(each, "ubest", "pathbest").lower() == "true"
                used = best or _first(each, "bestcode") in {">", "|"}
                hop = address_of(_first(each, "ipnexthop", "ipv6nexthop"))
                yield Route(block_of(prefix), hop, used, each.get("ifname") == "Null0", vrf=vrf)
            yield from _of_nxos(each, vrf, prefix)


_SHAPES: Mapping[str, Callable[[_Row], Iterator[Route]]] = {
    "route-information": _of_junos,
    "vrfs": _of_eos,
    "TABLE_vrf": _of_nxos,
}
"""The reader of a table by a key of its JSON; without one of them it is of FRR, GoBGP or cilium-cli."""


def _of_path(block: Block, path: _Path) -> Iterator[Route]:
    if path.attrs is not None:
        for text in {attribute.nexthop: 0 for attribute in path.attrs if attribute.nexthop}:
            yield Route(block, address_of(text), path.best)
        return
    used = path.selected and not path.failed if path.protocol else bool(path.bestpath or path.multipath)
    hops = [hop for hop in path.nexthops or () if not hop.resolver]
    if any(hop.scope == "global" for hop in hops):
        hops = [hop for hop in hops if hop.scope != "link-local"]
    for hop in hops:
        drops = hop.blackhole or hop.unreachable or hop.reject
        yield Route(block, address_of(hop.ip), used and hop.active, drops)


def _of_ip(entry: _IpRoute) -> Iterator[Route]:
    if not entry.dst:
        raise msgspec.ValidationError("an entry has no dst")
    if entry.type in OTHER:
        return
    for hop in entry.nexthops or [entry]:
        found = address_of(hop.gateway or str(hop.via.get("host", "")))
        yield Route(block_of(entry.dst, found), found, drops=entry.type in DROPS)
