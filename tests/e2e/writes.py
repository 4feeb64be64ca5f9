"""Writes of blocks into the objects of nodes: in every field, in other words, by every kind of request, with several identities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from ipaddress import ip_interface, ip_network
from typing import Any

from tests.e2e.api import CILIUM_NODES, MERGE, NODES, STRATEGIC, Answer, Api, Object
from tests.e2e.joins import ANNOTATIONS, LISTED, Play, claims

JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
OPERATOR = ("system:serviceaccount:kube-system:cilium-operator", "system:serviceaccounts")
AGENT = ("system:serviceaccount:kube-system:cilium", "system:serviceaccounts")
ADMIN: tuple[str, ...] = ()
KUBELET = "kubelet"
IDENTITIES = {"admin": ADMIN, "agent": AGENT, "operator": OPERATOR, KUBELET: ADMIN}


def changes(play: Play, name: str, block: str) -> Iterator[tuple[str, Object]]:
    """Yield the ways in which a block can be written into the objects of a node: a path, and what changes."""
    if play.of_nodes:
        for key in ANNOTATIONS:
            yield NODES, {"metadata": {"annotations": {key: block}}}
        yield NODES, {"metadata": {"annotations": dict.fromkeys(ANNOTATIONS, block)}}
        yield NODES, {"spec": {"podCIDR": block, "podCIDRs": [block]}}
        yield NODES, {"spec": {"podCIDR": block}}
    ways: list[Object] = [
        {"podCIDRs": [block]},
        {"podCIDRs": ["10.200.0.0/27", block]},
        {"pools": {"allocated": [{"pool": "default", "cidrs": [block]}]}},
        {"pools": {"allocated": [{"pool": f"default.{name}", "cidrs": [block]}]}},
        {"pools": {"allocated": [{"pool": "team.blue", "cidrs": ["10.200.0.0/27", block]}]}},
        {"podCIDRs": [], "pools": {"allocated": [{"pool": "default", "cidrs": [block]}]}},
        {"pool": {str(ip_interface(block).network[1]): {}}},
    ]
    for ipam in ways:
        yield CILIUM_NODES, {"spec": {"ipam": ipam}}


def pointers(change: Object) -> list[Object]:
    """Return a change as a JSON patch: whole maps, as people paste them."""
    patch = []
    for section, fields in change.items():
        for key, value in fields.items():
            patch.append({"op": "add", "path": f"/{section}/{key}", "value": value})
    return patch


def merged(whole: Object, change: Object) -> Object:
    """Return an object with a change in it."""
    found = dict(whole)
    for key, value in change.items():
        found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return found


def with_change(path: str, name: str, change: Object) -> Object:
    """Return a new object with a change in it."""
    version, kind = {NODES: ("v1", "Node"), CILIUM_NODES: ("cilium.io/v2", "CiliumNode")}[path]
    return merged({"apiVersion": version, "kind": kind, "metadata": {"name": name}}, change)


def send(api: Api, method: str, path: str, body: Any, content: str, name: str, who: str) -> Answer:
    """Send a request with an identity."""
    return api.ask(method, path, body, content, name if who == KUBELET else "", IDENTITIES[who])


def requests(api: Api, path: str, name: str, change: Object, who: str) -> Iterator[Answer]:
    """Send a change in every way that an API has."""
    url = f"{path}/{name}"
    for sub in ("", "/status"):
        ways = [("PATCH", sub, change, MERGE), ("PATCH", sub, pointers(change), JSON_PATCH)]
        ways += [("PATCH", f"{sub}?fieldManager={who}&force=true", with_change(path, name, change), APPLY)]
        ways += [("PATCH", sub, change, STRATEGIC)] if path == NODES else []
        for method, rest, body, content in ways:
            yield send(api, method, url + rest, body, content, name, who)
        if whole := api.ask("GET", url).body:
            yield send(api, "PUT", url + sub, merged(whole, change), "application/json", name, who)


def network(text: str) -> Any:
    """Return the addresses of a text as Go reads it."""
    found = ip_interface(text).network
    mapped = getattr(found.network_address, "ipv4_mapped", None)
    return ip_network(f"{mapped}/{found.prefixlen - 96}") if mapped and found.prefixlen >= 96 else found


def nobody_has_anothers(play: Play, said: object) -> None:
    """No node claims an address that git gives another one, nor do two claim one."""
    every = [(network(text), name) for name, some in claims(play.api).items() for text in some]
    lock = [(network(block), name) for name in LISTED for block in play.given(name)]
    for (one, first), (two, second) in itertools.product(every, [*every, *lock]):
        if first != second and one.version == two.version:
            assert not one.overlaps(two), (first, one, second, two, said)


def forms(block: str) -> list[str]:
    """Return a block in other words, and others with addresses of it."""
    whole = ip_network(block)
    inner = f"{whole.network_address}/{whole.prefixlen + 1}"
    found = [block, f"{whole[1]}/{whole.prefixlen}", str(whole.supernet(4)), inner]
    return [*found, f"::ffff:{whole.network_address}/{whole.prefixlen + 96}"] if whole.version == 4 else found
