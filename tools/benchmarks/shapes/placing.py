"""Shapes of what comes after reading: many pools, nodes, ranges, pins and lines, and few that mean many.

A shape is a function from n to the files of a cluster, by path below its folder. Those of `commands()` are
about another verb: the arguments of the command line stand beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Files = Mapping[str, str | bytes]
Shape = Callable[[int], Files]

API = "ipamc/v1alpha1"


def cluster(mode: str = "cluster-pool", *, version: str = "1.18", pinning: str = "", **spec: Any) -> str:
    """Write a Cluster."""
    ipam = {"mode": mode, **({"pinning": pinning} if pinning else {}), **spec.pop("ipam", {})}
    whole = {"cilium": {"version": version, "managedBy": "helm"}, "ipam": ipam, **spec}
    return json.dumps({"apiVersion": API, "kind": "Cluster", "metadata": {"name": "bench"}, "spec": whole})


def pool(name: str, *cidrs: str, size: int = 28, family: int = 4, **spec: Any) -> dict[str, Any]:
    """Make a pool of one family."""
    ranges = {f"ipv{family}": {"cidrs": cidrs, "blockSize": size}} if cidrs else {}
    return {"apiVersion": API, "kind": "IPPool", "metadata": {"name": name}, "spec": {**ranges, **spec}}


def cidr(number: int, prefix: int = 24, first: int = 10 << 24) -> str:
    """Return the CIDR of this number, of those that begin at an address."""
    at = first + (number << (32 - prefix))
    return f"{at >> 24}.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}/{prefix}"


def listed(items: Iterable[Mapping[str, Any]]) -> str:
    """Write a List, an item a line."""
    rows = ",\n".join(json.dumps(item) for item in items)
    return f'{{"apiVersion": "v1", "kind": "List", "items": [\n{rows}\n]}}\n'


def inventory(nodes: Iterable[Mapping[str, Any]]) -> str:
    """Write a NodeInventory, a node a line."""
    rows = ",\n".join(json.dumps(node) for node in nodes)
    return f'{{"apiVersion": "{API}", "kind": "NodeInventory", "nodes": [\n{rows}\n]}}\n'


def node(number: int, **labels: str) -> dict[str, Any]:
    return {"name": f"node-{number:06d}", "labels": labels}


def nodes(count: int, **labels: str) -> str:
    return inventory(node(number, **labels) for number in range(count))


def line(number: int, pool_name: str = "a", prefix: int = 28, *, of: int | None = None, **more: Any) -> str:
    """Write a line of a lock."""
    name = f"node-{number if of is None else of:06d}"
    return json.dumps(
        {"block": cidr(number, prefix), "pool": pool_name, "node": name, **more}, separators=(",", ":")
    )


def lock(lines: Iterable[str], mode: str = "cluster-pool", shards: int = 1) -> str:
    header = json.dumps(
        {"lock": 1, "cluster": "bench", "mode": mode, "shards": shards}, separators=(",", ":")
    )
    return "\n".join((header, *lines, ""))


def made(pools: Iterable[Mapping[str, Any]], nodes: str, head: str = "", **files: str) -> Files:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return {"cluster.yaml": head or cluster(), "pools.json": listed(pools), "nodes.json": nodes, **named}


# Selectors


def chain(count: int, text: str, sign: str = " || ") -> str:
    return sign.join(text.format(number) for number in range(count))


def of_selector(text: str, count: int = 1) -> Files:
    return made([pool("a", "10.0.0.0/8", nodeSelector=text)], nodes(count, rack="r1"))


def term(number: int) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{number:06d}"]}]}


def terms(count: int) -> dict[str, Any]:
    return {"nodeSelectorTerms": [term(number) for number in range(count)]}


def aliased(selector: str, count: int) -> Files:
    """One selector, written once, of many pools."""
    head = "apiVersion: v1\nkind: List\nitems:\n"
    rows = (
        f"- {{apiVersion: {API}, kind: IPPool, metadata: {{name: p{number}}}, spec: {{ipv4: {{cidrs: [{cidr(number, 24)}], "
        f"blockSize: 28}}, nodeSelector: {f'&s {selector}' if not number else '*s'}}}}}\n"
        for number in range(count)
    )
    return {"cluster.yaml": cluster(), "pools.yaml": head + "".join(rows), "nodes.json": nodes(4, rack="r1")}


def classes(selector: str, count: int) -> Files:
    """One selector, written once, of many size classes."""
    text = (
        f"apiVersion: {API}\nkind: IPPool\nmetadata: {{name: a}}\nspec:\n  ipv4: {{cidrs: [10.0.0.0/8], blockSize: 26}}\n  blockSizes:\n"
        + "".join(
            f"  - {{nodeSelector: {f'&s {selector}' if not number else '*s'}, ipv4: 27}}\n"
            for number in range(count)
        )
    )
    return {"cluster.yaml": cluster(), "pools.yaml": text, "nodes.json": nodes(4, rack="r1")}


def nested(count: int, inside: str, around: str, levels: int = 60) -> str:
    text = chain(count, inside, " && ")
    for level in range(levels):
        text = f"({text}) && " + around.format(level)
    return text


def selectors() -> dict[str, Shape]:
    values = "'rack in {{{}}}'"
    return {
        "alias of a text": lambda n: aliased("'" + chain(n, 'a{0} == "{0}"') + "'", n),
        "alias of a set": lambda n: aliased(values.format(chain(n, '"r{0}"', ",")), n),
        "alias of a text that is no selector": lambda n: aliased("'" + chain(n, 'a{0} == "{0}"') + " a'", n),
        "alias of an impossible text": lambda n: aliased("'" + chain(n, 'a{0} == "{0}"', " && ") + " && a1 == \"2\"'", n),
        "alias of an object": lambda n: aliased(
            "{matchExpressions: [{key: rack, operator: In, values: [" + chain(n // 8, "r{0}", ", ") + "]}]}", n // 8
        ),
        "alias in size classes": lambda n: classes("'" + chain(n, 'a{0} == "{0}"') + "'", n),
        "a set": lambda n: of_selector(f"rack in {{{chain(n, chr(34) + 'r{0}' + chr(34), ',')}}}"),
        "alternatives": lambda n: of_selector(chain(n, 'a{0} == "{0}"')),
        "conditions": lambda n: of_selector(chain(n, 'a{0} != "{0}"', " && ")),
        "conditions on one label": lambda n: of_selector(chain(n, 'rack != "{0}"', " && ")),
        "substrings of one label": lambda n: of_selector(chain(n, 'rack contains "{0}"', " && ")),
        "prefixes of one label": lambda n: of_selector(chain(n, 'rack starts with "r"', " && ")),
        "values and substrings": lambda n: of_selector(
            f"rack in {{{chain(n, chr(34) + 'r{0}' + chr(34), ',')}}} && " + chain(n, 'rack contains "{0}"', " && ")
        ),
        "deep conditions": lambda n: of_selector(nested(n, "has(a{0})", "has(b{0})")),
        "deep other tests": lambda n: of_selector(nested(n, 'a{0} contains "x"', "has(b{0})")),
        "not not": lambda n: of_selector("!" * n + "has(rack)"),
        "parentheses and nots": lambda n: of_selector(chain(n, "!(!(!(!(rack == 'r{0}'))))")),
        "names": lambda n: made([pool("a", "10.0.0.0/8", nodeSelector=terms(n))], nodes(n)),
        "names of no node": lambda n: made([pool("a", "10.0.0.0/8", nodeSelector=terms(n))], nodes(1)),
        "alternatives for many nodes": lambda n: made(
            [pool("a", "10.0.0.0/8", nodeSelector=chain(n, 'rack == "r{0}"'))],
            inventory(node(number, rack=f"r{number}") for number in range(n)),
        ),
        "alternatives of many keys for many nodes": lambda n: made(
            [pool("a", "10.0.0.0/8", nodeSelector=chain(n, 'a{0} == "r"'))],
            inventory(node(number, **{f"a{number}": "r"}) for number in range(n)),
        ),
        "conditions of many keys for many nodes": lambda n: made(
            [pool("a", "10.0.0.0/8", nodeSelector=chain(n, 'a{0} != "r"', " && "))],
            inventory(node(number, **{f"a{number}": "q"}) for number in range(n)),
        ),
    }  # fmt: skip


# Pools and nodes


def racks(count: int, **spec: Any) -> list[dict[str, Any]]:
    return [
        pool(f"p{number}", cidr(number), nodeSelector=f'rack == "r{number}"', **spec)
        for number in range(count)
    ]


def in_racks(count: int) -> str:
    return inventory(node(number, rack=f"r{number}") for number in range(count))


def every(count: int, prefix: int = 24, **spec: Any) -> list[dict[str, Any]]:
    """Pools that all select every node."""
    return [pool(f"p{number:05d}", cidr(number, prefix), **spec) for number in range(count)]


def pools() -> dict[str, Shape]:
    return {
        "pools": lambda n: made(every(n), nodes(1)),
        "pools without a node": lambda n: made(racks(n), nodes(1)),
        "racks": lambda n: made(racks(n), in_racks(n)),
        "racks, multi-pool": lambda n: made(racks(n), in_racks(n), cluster("multi-pool", pinning="pool")),
        "racks, own pools": lambda n: made(racks(n), in_racks(n), cluster("multi-pool", pinning="node")),
        "racks by name": lambda n: made(
            [
                pool(f"p{i}", cidr(i), nodeSelector={"matchLabels": {"kubernetes.io/hostname": f"node-{i:06d}"}})
                for i in range(n)
            ],
            inventory(node(i, **{"kubernetes.io/hostname": f"node-{i:06d}"}) for i in range(n)),
        ),
        "racks by terms": lambda n: made(
            [pool(f"p{i}", cidr(i), nodeSelector={"nodeSelectorTerms": [term(i)]}) for i in range(n)],
            nodes(n),
        ),
        "pools of one selector, all full": lambda n: made(every(n, 28), nodes(2 * n)),
        "pools of one selector, full one by one": lambda n: made(every(n, 28), nodes(n)),
        "pools of one selector, label sets": lambda n: made(
            [*every(n, nodeSelector="has(rack)"), pool("z", "172.16.0.0/12", nodeSelector='rack == "r1"')],
            inventory(node(number, rack=f"s{number}") for number in range(n)),
        ),
        "pools of one selector, label sets, classes": lambda n: made(
            every(n, nodeSelector="has(rack)", blockSizes=[{"nodeSelector": 'rack == "s1"', "ipv4": 27}]),
            inventory(node(number, rack=f"s{number}") for number in range(n)),
        ),
        "pools of two selectors, full": lambda n: made(
            [pool(f"p{i:05d}", cidr(i, 28), nodeSelector=f"has(rack{i % 2})") for i in range(n)],
            inventory(node(i, rack0="a", rack1="b") for i in range(2 * n)),
        ),
        "pools of other selectors": lambda n: made(
            [pool(f"p{i:05d}", cidr(i), nodeSelector=f'rack != "r{i}"') for i in range(n)],
            inventory(node(i, rack=f"s{i}") for i in range(n)),
        ),
        "pools of other selectors, multi-pool": lambda n: made(
            [pool(f"p{i:05d}", cidr(i), nodeSelector=f'rack != "r{i}"') for i in range(n)],
            inventory(node(i, rack=f"s{i}") for i in range(n)),
            cluster("multi-pool", pinning="pool"),
        ),
        "pools that lack a family": lambda n: made(
            every(n), nodes(n), cluster(ipFamilies=["IPv4", "IPv6"])
        ),
        "full in one family": lambda n: made(
            [
                {**p, "spec": {**p["spec"], "ipv6": {"cidrs": [f"fd00:{i:x}::/124"], "blockSize": 124}}}
                for i, p in enumerate(every(n))
            ],
            nodes(2 * n),
            cluster(ipFamilies=["IPv4", "IPv6"]),
        ),
        "overflow chains": lambda n: made(
            [
                pool(f"p{i}", cidr(i, 28), nodeSelector=f'rack == "r{i}"', overflow=[f"p{(i + 1) % n}"] if n > 1 else [])
                for i in range(n)
            ],
            inventory(node(number, rack="r0") for number in range(n)),
        ),
        "overflow of one pool": lambda n: made(
            [
                pool("a", "10.255.255.0/28", nodeSelector='rack == "r"', overflow=[f"p{i:05d}" for i in range(n)]),
                *every(n, 28, nodeSelector='rack == "s"'),
            ],
            nodes(2 * n, rack="r"),
        ),
        "overflow of one pool, pinned": lambda n: made(
            [
                pool("a", "10.128.0.0/9", nodeSelector='rack == "r"', overflow=[f"p{i:05d}" for i in range(n)],
                     pins={f"node-{i:06d}": [cidr(i, 28, (10 << 24) + (128 << 16))] for i in range(n)}),
                *every(n, 28, nodeSelector='rack == "s"'),
            ],
            nodes(n),
        ),
        "unknown overflow": lambda n: made(
            [pool(f"p{i}", cidr(i), overflow=[f"q{i}"]) for i in range(n)], nodes(1)
        ),
        "unknown overflow of one pool": lambda n: made(
            [pool("a", "10.255.0.0/16", overflow=[f"q{i}" for i in range(n)]), *every(n)], nodes(1)
        ),
        "unknown autoCreate": lambda n: made(
            every(n), nodes(1), cluster("multi-pool", pinning="pool", ipam={"autoCreate": [f"q{i}" for i in range(n)]})
        ),
        "autoCreate": lambda n: made(
            every(n, size=26), nodes(1), cluster("multi-pool", pinning="pool", ipam={"autoCreate": [f"p{i:05d}" for i in range(n)]})
        ),
        "labels that no node has": lambda n: made(
            [pool(f"p{i}", cidr(i), nodeSelector=f"has(rak{i})") for i in range(n)],
            inventory(node(i, **{f"rack{i}": "a"}) for i in range(n)),
        ),
        "values that no node has": lambda n: made(
            [pool(f"p{i}", cidr(i), nodeSelector=f'rack == "q{i}"') for i in range(n)], in_racks(n)
        ),
        "values of one pool that no node has": lambda n: made(
            [pool("p", "10.0.0.0/8", nodeSelector=f"rack in {{{chain(n, chr(34) + 'q{0}' + chr(34), ',')}}}")], in_racks(n)
        ),
        "many labels": lambda n: made(
            [pool(f"p{i}", cidr(i), nodeSelector=f"has(k{i})") for i in range(n)],
            inventory(node(i, **{f"k{i}": "a"}) for i in range(n)),
        ),
        "nodes without a pool": lambda n: made(
            [pool(f"p{i}", cidr(i), nodeSelector=f'k{i} == "b"') for i in range(n)],
            inventory(node(i, **{f"k{i}": "a"}) for i in range(n)),
        ),
        "priorities, pinning: pool": lambda n: made(
            [pool(f"p{i:05d}", cidr(i), nodeSelector=f"has(k{i})", priority=i) for i in range(n)],
            inventory(node(i, **{f"k{i}": "a"}) for i in range(n)),
            cluster("multi-pool", pinning="pool"),
        ),
        "sets, pinning: pool": lambda n: made(
            [pool(f"p{i:05d}", cidr(i), nodeSelector=f'rack in {{"r{i}", "q{i}"}}', priority=i) for i in range(n)],
            in_racks(n),
            cluster("multi-pool", pinning="pool"),
        ),
        "a default for all, pinning: pool": lambda n: made(
            [*racks(n, priority=1), pool("z", "172.16.0.0/12", nodeSelector="has(rack)")],
            inventory(node(i, rack=f"r{i}") for i in range(n + 1)),
            cluster("multi-pool", pinning="none"),
        ),
        "prefixes, pinning: pool": lambda n: made(
            [pool(f"p{i:05d}", cidr(i), nodeSelector=f'rack starts with "r{i}x"') for i in range(n)],
            inventory(node(i, rack=f"r{i}x") for i in range(n)),
            cluster("multi-pool", pinning="pool"),
        ),
        "pins, pinning: pool": lambda n: made(
            [
                pool(f"p{i:05d}", cidr(i), nodeSelector=f'rack == "r{i}"', pins={f"node-{i:06d}": [cidr(16 * i, 28)]})
                for i in range(n)
            ],
            in_racks(n),
            cluster("multi-pool", pinning="pool"),
        ),
        "priorities that overlap, pinning: pool": lambda n: made(
            [*racks(n, priority=1), pool("z", "172.16.0.0/12", nodeSelector="has(rack)")],
            inventory(node(i, rack=f"r{i % n}") for i in range(n)),
            cluster("multi-pool", pinning="pool"),
        ),
        "size classes": lambda n: made(
            [pool("a", "10.0.0.0/8", blockSizes=[{"nodeSelector": f'rack == "r{i}"', "ipv4": 27} for i in range(n)])],
            in_racks(n),
        ),
        "size classes of every pool": lambda n: made(
            [
                pool(f"p{i}", cidr(i), nodeSelector=f'rack == "r{i}"',
                     blockSizes=[{"nodeSelector": 'size == "large"', "ipv4": 27}])
                for i in range(n)
            ],
            inventory(node(i, rack=f"r{i}", size="large") for i in range(n)),
        ),
    }  # fmt: skip


# Ranges, reserved, excluded, pins


def ranges() -> dict[str, Shape]:
    def many(n: int, prefix: int = 28) -> list[str]:
        return [cidr(2 * number, prefix) for number in range(n)]

    def inner(n: int) -> list[str]:
        return [cidr(32 * number, 32) for number in range(n)]

    multi = cluster("multi-pool", pinning="pool")
    return {
        "ranges": lambda n: made([pool("a", *many(n))], nodes(n)),
        "ranges, full": lambda n: made([pool("a", *many(n))], nodes(2 * n)),
        "ranges of one node each": lambda n: made([pool("a", *many(n, 27))], nodes(2 * n)),
        "ranges that overlap": lambda n: made([pool("a", *many(n), *many(n))], nodes(1)),
        "ranges in one that overlaps": lambda n: made([pool("a", "10.0.0.0/8", *many(n))], nodes(1)),
        "ranges too small": lambda n: made([pool("a", *many(n), size=24)], nodes(1)),
        "ranges too small for a class": lambda n: made(
            [pool("a", *many(n), blockSizes=[{"nodeSelector": f'r == "{i}"', "ipv4": 20} for i in range(n)])], nodes(1)
        ),
        "ranges and reserved": lambda n: made([pool("a", *many(n), reserved=inner(n))], nodes(n)),
        "ranges and reserved, multi-pool": lambda n: made([pool("a", *many(n, 24), reserved=inner(n))], nodes(4), multi),
        "reserved outside": lambda n: made(
            [pool("a", *many(n), reserved=[cidr(2 * number + 1, 28) for number in range(n)])], nodes(1)
        ),
        "reserved twice": lambda n: made([pool("a", *many(n), reserved=[*inner(n), *inner(n)])], nodes(n)),
        "reserved of one range": lambda n: made([pool("a", "10.0.0.0/8", reserved=inner(n))], nodes(n)),
        "reserved of one range, multi-pool": lambda n: made([pool("a", "10.0.0.0/8", reserved=inner(n))], nodes(n), multi),
        "reserved of IPv6": lambda n: made(
            [pool("a", "fd00::/64", size=80, family=6, reserved=[f"fd00::{i:x}/128" for i in range(n)])],
            nodes(n),
            cluster(ipFamilies=["IPv6"]),
        ),
        "blocks of one address": lambda n: made(
            [pool("a", "fd00::/112", size=128, family=6)], nodes(n), cluster(ipFamilies=["IPv6"])
        ),
        "ranges and excluded": lambda n: made([pool("a", *many(n))], nodes(1), cluster(excludedCIDRs=inner(n))),
        "ranges and excluded, reserved": lambda n: made(
            [pool("a", *many(n), reserved=inner(n))], nodes(n), cluster(excludedCIDRs=inner(n))
        ),
        "pools and excluded": lambda n: made(
            every(n), nodes(n), cluster(excludedCIDRs=[cidr(i, 32, 11 << 24) for i in range(n)])
        ),
        "pools and excluded, adopt": lambda n: made(
            [*every(n, unlisted=True)], nodes(1),
            cluster(ipam={"operator": "adopt"}, excludedCIDRs=[cidr(i, 32, 11 << 24) for i in range(n)]),
        ),
        "ranges and excluded, adopt": lambda n: made(
            [pool("a", *many(n), unlisted=True, reserved=inner(n)), pool("b", "172.16.0.0/12")], nodes(n),
            cluster(ipam={"operator": "adopt"}, excludedCIDRs=inner(n)),
        ),
        "internal addresses": lambda n: made(
            [pool("a", *many(n), reserved=inner(n))],
            listed(
                {
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i:06d}"},
                    "status": {"addresses": [{"type": "InternalIP", "address": cidr(32 * i, 32)[:-3]}]},
                }
                for i in range(n)
            ),
        ),
        "outside the routed CIDR": lambda n: made(
            [pool("a", *many(n))],
            nodes(1),
            json.dumps({**json.loads(cluster()), "spec": {
                "cilium": {"version": "1.18", "managedBy": "helm", "routingMode": "native", "nativeRoutingCIDR": "172.16.0.0/16"},
                "ipam": {"mode": "cluster-pool"}}}),
        ),
        "pins": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={f"node-{i:06d}": [cidr(i, 28)] for i in range(n)})], nodes(n)
        ),
        "pins and ranges": lambda n: made(
            [pool("a", *many(n), pins={f"node-{i:06d}": [cidr(2 * i, 28)] for i in range(n)})], nodes(n)
        ),
        "pins of absent nodes": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={f"gone-{i:06d}": [cidr(i, 28)] for i in range(n)})], nodes(n)
        ),
        "pins over reserved": lambda n: made(
            [pool("a", *many(n), reserved=inner(n), pins={f"node-{i:06d}": [cidr(2 * i, 28)] for i in range(n)})], nodes(1)
        ),
        "pins beside reserved and excluded": lambda n: made(
            [pool("a", "10.0.0.0/8", reserved=[cidr(2 * i, 28) for i in range(n)],
                  pins={f"node-{i:06d}": [cidr(2 * i + 1, 28)] for i in range(n)})],
            nodes(n),
            cluster(excludedCIDRs=[cidr(i, 32, 11 << 24) for i in range(n)]),
        ),
        "pins outside": lambda n: made(
            [pool("a", *many(n), pins={f"node-{i:06d}": [cidr(2 * i + 1, 28)] for i in range(n)})], nodes(1)
        ),
        "pins that overlap": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={f"node-{i:06d}": ["10.0.0.0/28"] for i in range(n)})], nodes(1)
        ),
        "pins of one node": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={"node-000000": [cidr(i, 28) for i in range(n)]})],
            nodes(1), cluster("multi-pool", pinning="node"),
        ),
        "pins not held": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={f"node-{i:06d}": [cidr(n + i, 28)] for i in range(n)})],
            nodes(n), ipam_lock=lock(line(i) for i in range(n)),
        ),
        "pins not held, renumbered": lambda n: made(
            [pool("a", "10.0.0.0/8", pins={f"node-{i:06d}": [cidr(n + i, 28)] for i in range(n)})],
            nodes(n),
            ipam_lock=lock([*(line(i) for i in range(n)), *(line(n + i, of=i, pending=True) for i in range(n))]),
        ),
        "pins of a node in many pools": lambda n: made(
            [pool(f"p{i}", cidr(i), pins={"node-000000": [cidr(i, 24)]}, size=24) for i in range(n)],
            nodes(1), cluster("multi-pool", pinning="node"),
        ),
        "Calico pools with excluded ones": lambda n: made(
            [
                {"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": f"p{i}"},
                 "spec": {"cidr": cidr(i, 24), "blockSize": 26, **({"allowedUses": ["Tunnel"]} if i % 2 else {})}}
                for i in range(n)
            ],
            nodes(1),
        ),
        "ClusterCIDRs over excluded": lambda n: made(
            [
                {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": f"p{i}"},
                 "spec": {"ipv4": cidr(i, 24), "perNodeHostBits": 4}}
                for i in range(n)
            ],
            nodes(1), cluster(excludedCIDRs=["10.0.0.0/8"]),
        ),
    }  # fmt: skip


# Blocks of a node, locks, CiliumNodes


def seen(number: int, block: str) -> dict[str, Any]:
    return {
        "apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": f"node-{number:06d}"},
        "spec": {"ipam": {"podCIDRs": [block]}},
    }  # fmt: skip


def given(number: int, pool_name: str, *blocks: str) -> dict[str, Any]:
    return {
        "apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": f"node-{number:06d}"},
        "spec": {"ipam": {"pools": {"allocated": [{"pool": pool_name, "cidrs": blocks}]}}},
    }  # fmt: skip


def blocks() -> dict[str, Shape]:
    node_pools = cluster("multi-pool", pinning="node")
    one = [pool("a", "10.0.0.0/8")]
    return {
        "blocksPerNode": lambda n: made([pool("a", "10.0.0.0/8", size=32, blocksPerNode=n)], nodes(1), node_pools),
        "blocksPerNode, crd": lambda n: made([pool("a", "10.0.0.0/8", size=32, blocksPerNode=n)], nodes(1), cluster("crd")),
        "blocksPerNode of many nodes": lambda n: made(
            [pool("a", "10.0.0.0/8", size=32, blocksPerNode=300)], nodes(n), node_pools
        ),
        "blocks of many pools": lambda n: made(every(n), nodes(n), cluster("multi-pool", pinning="pool")),
        "held": lambda n: made(one, nodes(n), ipam_lock=lock(line(i) for i in range(n))),
        "held, own pools": lambda n: made(
            one, nodes(n), node_pools, ipam_lock=lock((line(i) for i in range(n)), "multi-pool")
        ),
        "held by one node": lambda n: made(
            [pool("a", "10.0.0.0/8", blocksPerNode=2)], nodes(1), node_pools,
            ipam_lock=lock((line(i, of=0) for i in range(n)), "multi-pool"),
        ),
        "held outside": lambda n: made(
            [pool("b", "172.16.0.0/12")], nodes(n), ipam_lock=lock(line(i) for i in range(n))
        ),
        "held outside, hold": lambda n: made(
            [pool("b", "172.16.0.0/12")], nodes(n), cluster(unpooled="hold"),
            ipam_lock=lock(line(i, "") for i in range(n)).replace('"pool":"",', ""),
        ),
        "held over reserved": lambda n: made(
            [pool("a", "10.0.0.0/8", reserved=[cidr(i, 28) for i in range(n)])], nodes(n),
            ipam_lock=lock(line(i) for i in range(n)),
        ),
        "held over excluded": lambda n: made(
            one, nodes(n), cluster(excludedCIDRs=[cidr(i, 28) for i in range(n)]),
            ipam_lock=lock(line(i) for i in range(n)),
        ),
        "held beside excluded": lambda n: made(
            one, nodes(n), cluster(excludedCIDRs=[cidr(i, 32, 11 << 24) for i in range(n)]),
            ipam_lock=lock(line(i) for i in range(n)),
        ),
        "held in pools of no node": lambda n: made(
            [pool("z", "172.16.0.0/12"), *every(n, 28, nodeSelector='rack == "r"')], nodes(n),
            ipam_lock=lock(line(i, f"p{i:05d}") for i in range(n)),
        ),
        "held in overflow": lambda n: made(
            [
                pool("z", "172.16.0.0/28", nodeSelector='rack == "r"', overflow=[f"p{i:05d}" for i in range(n)]),
                *every(n, 28, nodeSelector='rack == "s"'),
            ],
            nodes(n, rack="r"),
            ipam_lock=lock(line(i, f"p{i:05d}") for i in range(n)),
        ),
        "held in pools of one selector": lambda n: made(
            every(n, 28), nodes(n), ipam_lock=lock(line(i, f"p{i:05d}") for i in range(n))
        ),
        "held in other sizes": lambda n: made(
            [pool("a", "10.0.0.0/8", size=27)], nodes(n), ipam_lock=lock(line(i) for i in range(n))
        ),
        "held in pools of other sizes": lambda n: made(
            every(n, 24, size=27), nodes(n), ipam_lock=lock(line(16 * i, f"p{i:05d}", of=i) for i in range(n))
        ),
        "held by other names": lambda n: made(
            every(n), nodes(n), ipam_lock=lock(line(16 * i, f"q{i:05d}", of=i) for i in range(n))
        ),
        "left": lambda n: made(one, nodes(1), ipam_lock=lock(line(i) for i in range(n))),
        "left, budget": lambda n: made(
            every(n, 28), nodes(1), cluster(budget={"leave": 100}), ipam_lock=lock(line(i, f"p{i:05d}") for i in range(n))
        ),
        "quarantined": lambda n: made(
            [pool("a", cidr(0, 12))], inventory(node(n + i) for i in range(min(n, 60000))),
            ipam_lock=lock(line(i, quarantined="2020-01-01") for i in range(n)),
        ),
        "quarantined today, full": lambda n: made(
            [pool("a", *(cidr(i, 28) for i in range(n)))], inventory(node(n + i) for i in range(n)),
            cluster(quarantineDays=100000), ipam_lock=lock(line(i, quarantined="2020-01-01") for i in range(n)),
        ),
        "released": lambda n: made(
            [pool("a", *(cidr(i, 28) for i in range(n)))], inventory(node(n + i) for i in range(n)),
            ipam_lock=lock(line(i, released=True) for i in range(n)),
        ),
        "released, larger blocks": lambda n: made(
            [pool("a", "10.0.0.0/14", size=26)], inventory(node(n + i) for i in range(n // 8)),
            ipam_lock=lock(line(i, released=True) for i in range(n)),
        ),
        "released, smaller blocks": lambda n: made(
            [pool("a", *(cidr(i, 28) for i in range(n)), size=30)], inventory(node(n + i) for i in range(2 * n)),
            ipam_lock=lock(line(i, released=True) for i in range(n)),
        ),
        "released beyond ranges": lambda n: made(
            [pool("a", *(cidr(i, 29) for i in range(2 * n)), size=30)], inventory(node(n + i) for i in range(2 * n)),
            ipam_lock=lock(line(i, released=True) for i in range(n)),
        ),
        "released beyond pools": lambda n: made(
            every(2 * n, 29, size=30), inventory(node(n + i) for i in range(2 * n)),
            ipam_lock=lock(line(i, released=True) for i in range(n)),
        ),
        "returning": lambda n: made(one, nodes(n), ipam_lock=lock(line(i, quarantined="2020-01-01") for i in range(n))),
        "returning, all of one node": lambda n: made(
            one, nodes(1), ipam_lock=lock(line(i, of=0, quarantined="2020-01-01") for i in range(n))
        ),
        "pending": lambda n: made(
            one, nodes(n),
            ipam_lock=lock([*(line(i) for i in range(n)), *(line(n + i, of=i, pending=True) for i in range(n))]),
        ),
        "pending of one node": lambda n: made(
            one, nodes(1), node_pools,
            ipam_lock=lock([*(line(i, of=0) for i in range(n)), *(line(n + i, of=0, pending=True) for i in range(n))], "multi-pool"),
        ),
        "many shards": lambda n: made(one, nodes(n), cluster(output={"shardSize": 1})),
        "CiliumNodes": lambda n: made(one, listed([seen(i, cidr(i, 28)) for i in range(n)]), nodes_2_json=nodes(n)),
        "CiliumNodes without a node": lambda n: made(one, listed([seen(i, cidr(i, 28)) for i in range(n)])),
        "CiliumNodes without a node, unlisted": lambda n: made(
            [pool("z", "172.16.0.0/12"), *every(n, 28, unlisted=True)], listed([seen(i, cidr(i, 28)) for i in range(n)]),
            cluster(ipam={"operator": "adopt"}),
        ),
        "CiliumNodes that differ": lambda n: made(
            one, listed([seen(i, cidr(n + i, 28)) for i in range(n)]), nodes_2_json=nodes(n),
            ipam_lock=lock(line(i) for i in range(n)),
        ),
        "CiliumNodes that show one block": lambda n: made(
            one, listed([seen(i, cidr(0, 28)) for i in range(n)]), nodes_2_json=nodes(n)
        ),
        "one CiliumNode": lambda n: made(
            one, listed([given(0, "a", *(cidr(i, 28) for i in range(n)))]), cluster("multi-pool", pinning="pool"),
            nodes_2_json=nodes(1), ipam_lock=lock((line(i, of=0) for i in range(n)), "multi-pool"),
        ),
        "one CiliumNode, new": lambda n: made(
            one, listed([given(0, "a", *(cidr(i, 28) for i in range(n)))]), cluster("multi-pool", pinning="pool"),
            nodes_2_json=nodes(1),
        ),
        "one CiliumNode, others": lambda n: made(
            one, listed([given(0, "a", *(cidr(n + i, 28) for i in range(n)))]), cluster("multi-pool", pinning="pool"),
            nodes_2_json=nodes(1), ipam_lock=lock((line(i, of=0) for i in range(n)), "multi-pool"),
        ),
        "one CiliumNode of many podCIDRs": lambda n: made(
            one, listed([{**seen(0, ""), "spec": {"ipam": {"podCIDRs": [cidr(i, 28) for i in range(n)]}}}]),
            nodes_2_json=nodes(1),
        ),
        "single addresses": lambda n: made(
            [pool("a", "10.0.0.0/8", size=28, blocksPerNode=2)],
            listed([{**seen(0, ""), "spec": {"ipam": {"pool": {cidr(2 * i, 32)[:-3]: {} for i in range(n)}}}}]),
            cluster("crd"), nodes_2_json=nodes(1),
        ),
        "single addresses and podCIDRs": lambda n: made(
            [pool("a", "10.0.0.0/8", size=32, blocksPerNode=2)],
            listed([{**seen(0, ""), "spec": {"ipam": {
                "podCIDRs": [cidr(2 * i, 32, 11 << 24) for i in range(n)], "pool": {cidr(2 * i, 32)[:-3]: {} for i in range(n)}}}}]),
            cluster("crd"), nodes_2_json=nodes(1),
        ),
        "operator's pools": lambda n: made(
            every(n), listed([given(i, f"p{i:05d}", cidr(16 * i, 28)) for i in range(n)]),
            cluster("multi-pool", pinning="pool"), nodes_2_json=inventory([node(0)]),
        ),
        "foreign pools": lambda n: made(
            [pool("default", "172.16.0.0/12"), *every(n, nodeSelector='rack == "r"')],
            listed([given(i, f"q{i:05d}", cidr(i, 28, 11 << 24)) for i in range(n)]),
            cluster("multi-pool", pinning="pool"), nodes_2_json=nodes(n),
        ),
    }  # fmt: skip


def published() -> dict[str, Shape]:
    """Return shapes with rendered files of an earlier compile."""

    def before(n: int, cidrs: Callable[[int], str]) -> dict[str, str]:
        rows = "".join(f"    - {cidrs(i)}\n" for i in range(n))
        text = (
            "apiVersion: cilium.io/v2alpha1\nkind: CiliumPodIPPool\nmetadata:\n  name: a\nspec:\n  ipv4:\n    cidrs:\n"
            + rows + "    maskSize: 28\n"
        )  # fmt: skip
        flags = (
            "apiVersion: v1\ndata:\n  ipam: multi-pool\nkind: ConfigMap\nmetadata:\n  name: cilium-config\n"
        )
        return {"rendered/cilium/ippools.yaml": text, "rendered/cilium/configmap.yaml": flags}

    multi = cluster("multi-pool", pinning="pool")
    return {
        "published ranges": lambda n: {
            **made([pool("a", *(cidr(2 * i, 24) for i in range(n)))], nodes(1), multi, ipam_lock=lock([], "multi-pool")),
            **before(n, lambda i: cidr(2 * i, 24)),
        },
        "published ranges that leave": lambda n: {
            **made([pool("a", "172.16.0.0/12")], nodes(1), multi, ipam_lock=lock([], "multi-pool")),
            **before(n, lambda i: cidr(2 * i, 24)),
        },
        "published ranges that leave, reserved": lambda n: {
            **made([pool("a", "10.0.0.0/8", reserved=[cidr(2 * i, 24) for i in range(n)])], nodes(1), multi, ipam_lock=lock([], "multi-pool")),
            **before(n, lambda i: cidr(2 * i, 24)),
        },
        "published ranges in use that leave": lambda n: {
            **made(
                [pool("a", "172.16.0.0/12", *(cidr(2 * i + 1, 24) for i in range(n)))],
                nodes(n), cluster("multi-pool", pinning="pool", unpooled="hold"),
                ipam_lock=lock((line(32 * i, of=i) for i in range(n)), "multi-pool"),
            ),
            **before(n, lambda i: cidr(2 * i, 24)),
        },
    }  # fmt: skip


BOUNDED = (
    "pools of other selectors, multi-pool",
    "blocks of many pools",
    "priorities, pinning: pool",
    "prefixes, pinning: pool",
)
"""What grows faster than its input up to a limit, and is refused or written in another way above: IPC0312, IPC0313,
hostnames in CiliumNodeConfigs."""


def shapes() -> dict[str, Shape]:
    """Return the shapes that are compiled, by name."""
    every = {**selectors(), **pools(), **ranges(), **blocks(), **published()}
    return {name: shape for name, shape in every.items() if name not in BOUNDED}


def bounded() -> dict[str, Shape]:
    """Return the shapes that cost no more above some size."""
    every = {**pools(), **blocks()}
    return {name: every[name] for name in BOUNDED}


def commands() -> dict[str, tuple[list[str], Shape]]:
    """Return shapes for other verbs by name, each with the arguments of the command line."""
    of = shapes()
    every_verb = {
        "plan": ["plan"],
        "why": ["why", "node-000000"],
        "show": ["show"],
        "which": ["which", "10.0.0.0/8"],
    }
    names = (
        "alias of a text", "racks", "pools of one selector, label sets", "pools of one selector, all full", "overflow of one pool",
        "pools of other selectors", "ranges and reserved", "pins not held", "pins not held, renumbered", "held", "held outside, hold",
        "held in pools of one selector", "quarantined", "pending", "CiliumNodes", "returning", "foreign pools",
    )  # fmt: skip
    return {f"{name}, {verb}": (words, of[name]) for verb, words in every_verb.items() for name in names}
