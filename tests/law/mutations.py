"""Seeded changes of a tree: those that give addresses to a node which does not hold them, and those that do not.

A change returns the files of the head that differ from the base, None for a file that is deleted; {} if the tree has no place for the change.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, NamedTuple

import yaml

from ipamc.model.lock import Line, State

Files = dict[str, bytes]
Delta = dict[str, bytes | None]
Network = IPv4Network | IPv6Network
ADDRESS = re.compile(
    r"(?<![\w.:/-])(?:[0-9]+(?:\.[0-9]+){3}|[0-9a-f]+(?::+[0-9a-f]*)+)(?:/[0-9]+)?(?![\w.:])"
)
Change = Callable[["Tree"], Delta]
TABLE_ROW = re.compile(r"(?m)^ +([a-z0-9][a-z0-9.-]*)((?: [0-9a-f.:/]+)+)$")


class Document(NamedTuple):
    """A document of a rendered file."""

    path: str
    parts: tuple[str, ...]
    """All documents of the file."""
    number: int

    @property
    def text(self) -> str:
        return self.parts[self.number]

    @property
    def fields(self) -> Any:
        return yaml.safe_load(self.text)

    @property
    def node(self) -> str:
        """Return the node of a Node, a CiliumNode or a pinned pool; "" of others."""
        kind, name = self.fields["kind"], self.fields["metadata"]["name"]
        return str(
            name
            if kind in {"Node", "CiliumNode"}
            else name.partition(".")[2]
            if kind == "CiliumPodIPPool"
            else ""
        )

    def replaced(self, *texts: str) -> Delta:
        """Return the file with other documents in place of this one."""
        parts = [*self.parts[: self.number], *texts, *self.parts[self.number + 1 :]]
        return {self.path: "---\n".join(parts).encode() if parts else None}


class Tree(NamedTuple):
    """A tree that compiles, and the source of chance."""

    files: Files
    lines: tuple[Line, ...]
    random: random.Random

    def documents(self, *kinds: str) -> Iterator[Document]:
        for path, text in self.files.items():
            parts = tuple(re.split(r"(?m)^---\n", text.decode())) if "/rendered/" in path else ()
            found = (Document(path, parts, index) for index in range(len(parts)))
            yield from (each for each in found if re.search(rf"(?m)^kind: (?:{'|'.join(kinds)})$", each.text))

    def giving(self) -> list[Document]:
        """Return the documents that give addresses to one node."""
        return [
            each
            for each in self.documents("Node", "CiliumNode", "CiliumPodIPPool")
            if each.node and ADDRESS.search(each.text)
        ]

    def tables(self) -> list[tuple[Document, re.Match[str]]]:
        """Return the rows of the tables of policies."""
        found = list(self.documents("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"))
        return [(each, row) for each in found if "'''" in each.text for row in TABLE_ROW.finditer(each.text)]

    def nodes(self) -> list[str]:
        return sorted({line.node for line in self.lines})

    def holds(self, node: str, network: Network) -> bool:
        """Return whether a node holds all addresses of a network."""
        held = [
            ip_network(str(line.block))
            for line in self.lines
            if (line.node, line.state) == (node, State.HELD)
        ]
        same = [(each, network) for each in held if each.version == network.version]
        return (
            sum(min(one.num_addresses, two.num_addresses) for one, two in same if one.overlaps(two))
            == network.num_addresses
        )

    def foreign(self, node: str, like: str) -> str:
        """Return addresses of which a node does not hold all: of others, wider ones, or the ones behind; "" if there are none."""
        was = ip_network(like, strict=False)
        wider = [was.supernet(step) for step in (1, 2, 8) if was.prefixlen >= step]
        behind = (
            [ip_network(f"{was.broadcast_address + 1}/{was.prefixlen}", strict=False)]
            if int(was.broadcast_address) + 1 < 1 << was.max_prefixlen
            else []
        )
        others = [ip_network(str(line.block)) for line in self.lines if line.node != node]
        options = [
            each
            for each in (*others, *wider, *behind)
            if each.version == was.version and not self.holds(node, each)
        ]
        return str(self.random.choice(options)) if options else ""

    def other(self, *nodes: str) -> str:
        """Return another node of the lock, or one that is in no file."""
        return self.random.choice([*(each for each in self.nodes() if each not in nodes), "in-no-file"])

    @property
    def own(self) -> list[int]:
        """Return the indexes of lines about which ipamc decides, and not Cilium's operator."""
        settings = b"".join(text for path, text in self.files.items() if path.count("/") == 1)
        theirs = b"adopt" in settings or (
            b"multi-pool" in self.files[self.lock[0]] and b"pinning: node" not in settings
        )
        return [] if theirs else [*range(len(self.lines))]

    @property
    def lock(self) -> tuple[str, list[str]]:
        """Return the path and the rows of the lock."""
        path = next(path for path in self.files if path.endswith("/ipam.lock"))
        return path, self.files[path].decode().splitlines()

    def locked(self, change: Callable[[list[dict[str, Any]]], object]) -> Delta:
        """Return the lock with its rows changed in place."""
        path, (header, *rows) = self.lock
        records = [json.loads(row) for row in rows]
        change(records)
        records.sort(key=lambda each: (ip_network(each["block"]).version, ip_network(each["block"])))
        keys = ("block", "pool", "node", "quarantined", "moved", "pending", "released", "addresses")
        texts = (
            json.dumps({key: each[key] for key in keys if key in each}, separators=(",", ":"))
            for each in records
        )
        return {path: "".join(f"{text}\n" for text in (header, *texts)).encode()}


# What gives a node addresses that it does not hold, or addresses to two nodes.


def another_address(tree: Tree) -> Delta:
    document = tree.random.choice(tree.giving())
    found = tree.random.choice(list(ADDRESS.finditer(document.text)))
    text = tree.foreign(document.node, found[0])
    return (
        document.replaced(document.text[: found.start()] + text + document.text[found.end() :])
        if text
        else {}
    )


def one_address_more(tree: Tree) -> Delta:
    document = tree.random.choice(tree.giving())
    found = tree.random.choice(
        list(re.finditer(rf"(?m)^( *- (?:cidr: )?)({ADDRESS.pattern})\n", document.text))
    )
    text = tree.foreign(document.node, found[2])
    return (
        document.replaced(
            document.text[: found.end()] + found[1] + text + "\n" + document.text[found.end() :]
        )
        if text
        else {}
    )


def another_node(tree: Tree) -> Delta:
    document = tree.random.choice(tree.giving())
    name = document.fields["metadata"]["name"]
    other = name.removesuffix(document.node) + tree.other(document.node)
    return document.replaced(document.text.replace(f"  name: {name}\n", f"  name: {other}\n", 1))


def a_new_object(tree: Tree) -> Delta:
    document, node = tree.random.choice(list(tree.documents(r"\w+"))), tree.other()
    cidr = tree.foreign(node, str(tree.random.choice(tree.lines).block))
    mode = tree.random.choice(["podCIDRs", "pool", "allocated", "node", "pinned"])
    alone = [
        str(each)
        for each in (ip_network(cidr)[0], ip_network(cidr)[-1])
        if not tree.holds(node, ip_network(each))
    ]
    ipam: Any = {
        "podCIDRs": [cidr],
        "pool": {each: {} for each in alone},
        "allocated": {"pools": {"allocated": [{"pool": "default", "cidrs": [cidr]}]}},
    }.get(mode)
    fields = {
        "kind": "CiliumNode",
        "apiVersion": "cilium.io/v2",
        "metadata": {"name": node},
        "spec": {"ipam": ipam if mode != "pool" else {"pool": ipam}},
    }
    if mode == "node":
        fields |= {"kind": "Node", "apiVersion": "v1", "spec": {"podCIDR": cidr}}
    if mode == "pinned":
        family = "ipv6" if ":" in cidr else "ipv4"
        fields |= {
            "kind": "CiliumPodIPPool",
            "metadata": {"name": f"default.{node}"},
            "spec": {family: {"cidrs": [cidr], "maskSize": 28}},
        }
    new = tree.random.choice(
        [json.dumps(fields) + "\n", yaml.safe_dump(fields), yaml.safe_dump(fields, default_flow_style=True)]
    )
    return (
        document.replaced(*tree.random.choice([(document.text, new), (new, document.text)])) if alone else {}
    )


def a_row_of_a_table(tree: Tree) -> Delta:
    document, row = tree.random.choice(tree.tables())
    cidr = row[2].split()[0]
    foreign = tree.foreign(row[1], cidr)
    new = tree.random.choice(
        [
            (row[1], f"{row[2]} {foreign}"),
            (row[1], row[2].replace(cidr, foreign)),
            (tree.other(row[1]), row[2]),
        ]
    )
    return (
        document.replaced(document.text[: row.start(1)] + "".join(new) + document.text[row.end() :])
        if foreign
        else {}
    )


def pods_of_another_node(tree: Tree) -> Delta:
    """Make the pinned pool of a node the default of another one, or of many."""
    document = tree.random.choice(list(tree.documents("CiliumNodeConfig")))
    host = re.search(r"(?m)^ +kubernetes.io/hostname: (\S+)$", document.text)
    if not host or f".{host[1]}" not in document.text:
        return {}
    other = tree.random.choice([each for each in tree.nodes() if each != host[1]])
    new = tree.random.choice([f"kubernetes.io/hostname: {other}", "kubernetes.io/os: linux"])
    return document.replaced(document.text.replace(f"kubernetes.io/hostname: {host[1]}", new))


def a_block_twice(tree: Tree) -> Delta:
    one = tree.random.choice(tree.lines)
    network, node = ip_network(str(one.block)), tree.other(one.node)
    part = tree.random.choice(
        [network, *(network.subnets(1) if network.prefixlen < network.max_prefixlen else ())]
    )
    return tree.locked(
        lambda rows: rows.append(
            {"block": str(part), "pool": one.pool, "node": node}
            if one.pool
            else {"block": str(part), "node": node}
        )
    )


def a_held_block_to_another_node(tree: Tree) -> Delta:
    held = [index for index in tree.own if tree.lines[index].state is State.HELD]
    index, others = tree.random.choice(held), {line.node for line in tree.lines if line.in_use}
    other = tree.random.choice(sorted(others - {tree.lines[index].node}))
    return tree.locked(lambda rows: rows[index].update(node=other))


def two_nodes_swap(tree: Tree) -> Delta:
    held = [index for index in tree.own if tree.lines[index].state is State.HELD]
    one, two = tree.random.sample(held, 2)
    nodes = tree.lines[one].node, tree.lines[two].node
    swap = [(one, nodes[1]), (two, nodes[0])]
    return (
        tree.locked(lambda rows: [rows[index].update(node=node) for index, node in swap])
        if len({*nodes}) == 2
        else {}
    )


def a_wider_line(tree: Tree) -> Delta:
    """Let the block of a line reach into that of another node."""
    one, two = tree.random.sample(range(len(tree.lines)), 2)
    wider = ip_network(str(tree.lines[one].block))
    while wider.prefixlen and not wider.overlaps(ip_network(str(tree.lines[two].block))):
        wider = wider.supernet()
    fits = tree.lines[one].node != tree.lines[two].node and wider.overlaps(
        ip_network(str(tree.lines[two].block))
    )
    return tree.locked(lambda rows: rows[one].update(block=str(wider))) if fits else {}


def what_waits_to_another_node(tree: Tree) -> Delta:
    waits = [
        index
        for index in tree.own
        if tree.lines[index].state is State.QUARANTINED and tree.lines[index].since > "2026-11-16"
    ]
    index = tree.random.choice(waits)
    old = tree.lines[index]
    new = {"block": str(old.block), "pool": old.pool, "node": tree.other(old.node)}
    return tree.locked(lambda rows: rows.__setitem__(index, new))


# What does neither.


def a_comment(tree: Tree) -> Delta:
    document = tree.random.choice(list(tree.documents(r"\w+")))
    return document.replaced(
        tree.random.choice(["# 10.9.9.9 was here\n", "\n", "# kind: Node\n"]) + document.text
    )


def another_style(tree: Tree) -> Delta:
    document = tree.random.choice(tree.giving() or list(tree.documents(r"\w+")))
    styles = [
        json.dumps(document.fields) + "\n",
        yaml.safe_dump(document.fields, default_flow_style=True, width=1000),
        yaml.safe_dump(document.fields, sort_keys=False, default_style='"'),
    ]
    return document.replaced(tree.random.choice(styles))


def an_object_less(tree: Tree) -> Delta:
    document = tree.random.choice(list(tree.documents(r"\w+")))
    return document.replaced() if len(document.parts) > 1 else {document.path: None}


def the_other_order(tree: Tree) -> Delta:
    document = tree.random.choice(list(tree.documents(r"\w+")))
    return {document.path: "---\n".join(reversed(document.parts)).encode()}


def another_file(tree: Tree) -> Delta:
    document = tree.random.choice(list(tree.documents(r"\w+")))
    return {document.path: None, document.path.rpartition("/")[0] + "/other.yaml": tree.files[document.path]}


def a_label(tree: Tree) -> Delta:
    document = tree.random.choice(list(tree.documents(r"\w+")))
    fields = document.fields
    fields.setdefault("metadata", {}).setdefault("labels", {})["example.com/rack"] = "10.1"
    return document.replaced(yaml.safe_dump(fields))


def fewer_addresses(tree: Tree) -> Delta:
    document = tree.random.choice(tree.giving())
    found = tree.random.choice(list(ADDRESS.finditer(document.text)))
    network = ip_network(found[0])
    part = next(network.subnets(1)) if network.prefixlen < network.max_prefixlen else network
    text = str(part) if "/" in found[0] else found[0]
    return document.replaced(document.text[: found.start()] + text + document.text[found.end() :])


def a_row_less(tree: Tree) -> Delta:
    document, row = tree.random.choice(tree.tables())
    return document.replaced(document.text[: row.start()] + document.text[row.end() + 1 :])


def another_setting(tree: Tree) -> Delta:
    """Change an address that is no node's: a masquerade range, or a native routing CIDR."""
    document = tree.random.choice(
        [each for each in tree.documents("ConfigMap", "Kustomization") if ADDRESS.search(each.text)]
    )
    found = [
        each
        for each in ADDRESS.finditer(document.text)
        if "pool" not in document.text[document.text.rfind("\n", 0, each.start()) : each.start()]
    ]
    one = tree.random.choice(found)
    return document.replaced(document.text[: one.start()] + "10.99.0.0/16" + document.text[one.end() :])


def a_node_joins(tree: Tree) -> Delta:
    one = tree.random.choice(tree.lines)
    behind = ip_network(
        f"{ip_network(str(one.block)).broadcast_address + 1}/{one.block.prefix}", strict=False
    )
    if any(behind.overlaps(ip_network(str(line.block))) for line in tree.lines):
        return {}
    return tree.locked(
        lambda rows: rows.append(
            {"block": str(behind), **({"pool": one.pool} if one.pool else {}), "node": "joins"}
        )
    )


def a_node_leaves(tree: Tree) -> Delta:
    node = tree.random.choice([line.node for line in tree.lines if line.state is State.HELD])
    objects = {
        each.path: None
        for each in tree.documents("Node", "CiliumNode", "CiliumPodIPPool", r"\w+AdmissionPolicy")
        if node in each.text
    }
    lines = [index for index, line in enumerate(tree.lines) if line.node == node]
    if any(tree.lines[index].state is not State.HELD for index in lines):
        return {}
    return {
        **objects,
        **tree.locked(lambda rows: [rows[index].update(quarantined="2026-11-22") for index in lines]),
    }


def what_waited_is_held(tree: Tree) -> Delta:
    waits = [index for index, line in enumerate(tree.lines) if line.state is State.PENDING]
    index = tree.random.choice(waits)
    return tree.locked(lambda rows: rows[index].pop("pending"))


HARMFUL = (
    another_address,
    one_address_more,
    another_node,
    a_new_object,
    a_row_of_a_table,
    pods_of_another_node,
    a_block_twice,
    a_held_block_to_another_node,
    two_nodes_swap,
    a_wider_line,
    what_waits_to_another_node,
)
HARMLESS = (
    a_comment,
    another_style,
    an_object_less,
    the_other_order,
    another_file,
    a_label,
    fewer_addresses,
    a_row_less,
    another_setting,
    a_node_joins,
    a_node_leaves,
    what_waited_is_held,
)
