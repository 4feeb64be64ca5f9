"""Random pull requests to one cluster, through the checks of its pipeline; and an oracle, which says what no request may do without a label.

The oracle shares no code with ipamc: it reads JSON and YAML by itself, and decides for each address, one by one. The checks are the commands
of the pipeline; only the author's compile calls ipamc's function, and the checks do not trust it.
"""

from __future__ import annotations

import datetime
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import yaml
from msgspec.structs import replace

from ipamc.lock.consent import parse_consent
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, compile_cluster
from tests.fuzz.requests.repositories import TODAY as NOW
from tests.fuzz.requests.repositories import environment, git, top
from tests.fuzz.subjects import BASE, Subject, published
from tests.support import in_process
from tests.support.casefile import Case

BASES = 200
FOLDER, LOCK = "clusters/case", "ipam.lock"
GATES = "renumber,rename,release,follow,delete-cluster,weaker"
"""Whatever fails on these needs a label."""
STEPS = (
    ("compile", "case", "--locked", "--check"),
    ("plan", "case", "--base", "HEAD", "--output", "markdown", "--fail-on", GATES),
    ("verify", "case", "--base", "HEAD", "--fail-on", GATES),
)
DAY = datetime.datetime.fromtimestamp(NOW, datetime.UTC).date()
TODAY = DAY.isoformat()
Record = dict[str, Any]
"""The spec of a document, a node of the inventory, or a line of the lock."""

# A cluster, and the request that changes it.


@dataclass
class World:
    """A cluster as its author sees it."""

    spec: Record
    pools: dict[str, Record]
    nodes: dict[str, Record]
    shown: dict[str, Record] = field(default_factory=dict)
    """The specs of CiliumNodes."""
    header: str = ""
    rows: list[Record] = field(default_factory=list)
    rendered: Mapping[str, bytes] = field(default_factory=dict)
    """What the trunk published."""

    @property
    def held(self) -> list[Record]:
        return [row for row in self.rows if row.keys() <= {"block", "pool", "node"}]

    @property
    def lock(self) -> bytes:
        rows = sorted(self.rows, key=lambda row: (":" in row["block"], ip_network(row["block"])))
        texts = [json.dumps(row, separators=(",", ":")) for row in rows]
        return "".join([self.header, *(f"{text}\n" for text in texts)]).encode()

    def files(self) -> dict[str, bytes]:
        """Write the documents; a field or a node on each line, so that failures can be made small."""
        nodes = "".join(f"- {json.dumps({'name': name, **node})}\n" for name, node in self.nodes.items())
        found = {"nodes.yaml": f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n{nodes}".encode()}
        every = [("ipamc/v1alpha1", "Cluster", "case", self.spec)]
        every += [("ipamc/v1alpha1", "IPPool", name, pool) for name, pool in self.pools.items()]
        if self.spec["ipam"]["mode"] != "kubernetes":
            every += [("cilium.io/v2", "CiliumNode", name, spec) for name, spec in self.shown.items()]
        for api, kind, name, spec in every:
            rows = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in spec.items())
            text = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n{rows}"
            found[f"{kind.lower()}-{name}.yaml"] = text.encode()
        return found

    def show(self, name: str, rows: Iterable[Record]) -> None:
        """Let the evidence of a node show these blocks."""
        blocks = [row["block"] for row in rows]
        pools = [{"pool": row.get("pool", ""), "cidrs": [row["block"]]} for row in rows]
        mode = self.spec["ipam"]["mode"]
        ipam = {"pools": {"allocated": pools}} if mode == "multi-pool" else {"podCIDRs": blocks}
        self.shown[name] = {"ipam": ipam}
        if mode == "kubernetes" and name in self.nodes:
            self.nodes[name]["podCIDRs"] = blocks

    def free(self) -> list[Record]:
        """Return lines without a node for the blocks of pools that no line has."""
        taken = {address for row in self.rows for address in _addresses(row["block"])}
        return [
            {"block": str(block), "pool": name}
            for name, pool in self.pools.items()
            for part in (pool["ipv4"], *([pool["ipv6"]] if "ipv6" in pool else []))
            for cidr in part["cidrs"]
            for block in _blocks(cidr, part["blockSize"])
            if taken.isdisjoint(_addresses(str(block)))
        ]

    def compile(self, day: str, **consent: Any) -> Compilation | None:
        """Bring the lock up to date, as `ipamc lock` with this consent; a refused one changes nothing."""
        files = {**self.files(), **({LOCK: self.lock} if self.header else {})}
        done = _author(_subject(files, day), self.rendered, parse_consent(**consent))
        if done:
            self.header, *rows = done.lock.splitlines(keepends=True)
            self.rows = [json.loads(row) for row in rows]
        return done


def _blocks(cidr: str, size: int) -> list[IPv4Network | IPv6Network]:
    with suppress(ValueError):
        return [*ip_network(cidr).subnets(new_prefix=size)]
    return []


def _addresses(cidr: str) -> set[tuple[int, int]]:
    block = ip_network(cidr)
    return {(block.version, int(address)) for address in block}


def _ago(days: int) -> str:
    return (DAY - datetime.timedelta(days=days)).isoformat()


def _subject(files: Mapping[str, bytes], day: str, **flags: str) -> Subject:
    """Return files as what is compiled on a day."""
    header = "".join(f"#! {flag}: {value}\n" for flag, value in {"today": day, **flags}.items())
    return Subject("request", Case(header, {}), files)


def _author(
    subject: Subject, rendered: Mapping[str, bytes], consent: Consent | None = None
) -> Compilation | None:
    """Compile as the author of a request does, beside what the trunk rendered; None where that is refused."""
    given = replace(subject.inputs(), published=rendered, rendered=bool(rendered))
    with suppress(Refused):
        return compile_cluster(replace(given, consent=consent or Consent()))
    return None


@dataclass
class Request(World):
    """What an author changes. An edit that finds nothing to change does nothing."""

    chance: random.Random = field(default_factory=random.Random)

    def day(self) -> str:
        return _day(self.chance, self)

    def node(self) -> str:
        names: list[str] = [*self.nodes, *(row["node"] for row in self.rows), "evil", "n9"]
        return self.chance.choice(names)

    def row(self) -> Record:
        return self.chance.choice(self.held if self.held and self.chance.random() < 0.7 else self.rows)

    def join(self, name: str = "", address: str = "") -> None:
        name = name or self.chance.choice(("n7", "n8", "g0", "g1", "g2"))
        rack = self.chance.choice("aab") if "b" in self.pools else "a"
        own = [address or f"172.30.0.{self.chance.randrange(8)}"]
        if own not in [node["internalIPs"] for node in self.nodes.values()]:
            new = {"uid": f"case-{name}", "labels": {"rack": rack}, "internalIPs": own}
            self.nodes.setdefault(name, new)

    def leave(self) -> None:
        if len(self.nodes) > 1:
            name = self.chance.choice([*self.nodes])
            del self.nodes[name]
            self.shown.pop(name, None)

    def label(self) -> None:
        self.nodes[self.chance.choice([*self.nodes])]["labels"] = {
            "rack": self.chance.choice("ab"),
            "zone": "z",
        }

    def rack(self) -> None:
        """Add a pool for a rack, and its first node."""
        first = next(iter(self.pools.values()))
        size = first["ipv4"]["blockSize"]
        ipv4 = {"cidrs": [f"10.1.8.0/{size - 2}"], "blockSize": size}
        ipv6 = {"ipv6": {"cidrs": ["fd00:8::/121"], "blockSize": 124}} if "ipv6" in first else {}
        self.pools["c"] = {"ipv4": ipv4, **ipv6, "nodeSelector": 'rack == "c"'}
        self.nodes["c0"] = {"uid": "case-c0", "labels": {"rack": "c"}, "internalIPs": ["172.30.0.9"]}

    def line(self) -> None:
        """Give a line to another node, swap the nodes of two, or name another pool."""
        one, other = self.row(), self.row()
        match self.chance.choice(("node", "swap", "swap", "pool")):
            case "node":
                one["node"] = self.node()
            case "swap":
                one["node"], other["node"] = other["node"], one["node"]
            case "pool":
                one["pool"] = self.chance.choice([*self.pools, "z"])

    def state(self) -> None:
        row = self.row()
        day = self.chance.choice((self.day(), self.day(), _ago(29), _ago(-1), _ago(400)))
        for name in row.keys() - {"block", "pool", "node"}:
            del row[name]
        row |= self.chance.choice(({}, {"quarantined": day}, {"pending": True}, {"released": True}))
        if "quarantined" in row:
            row |= self.chance.choice(({}, {"moved": True}, {"pending": True}))

    def block(self) -> None:
        """Split, narrow, delete or add a line, or let its node have another block, at once or by a move."""
        row, new = self.row(), self.chance.choice(self.free() or [{}])
        what = self.chance.choice(("split", "narrow", "delete", *(("add", "other", "moves") if new else ())))
        halves = [str(half) for half in ip_network(row["block"]).subnets()]
        if what == "other":
            row.update(new)
        elif what == "add":
            self.rows.append({**new, "node": self.node()})
        elif what == "moves":
            self.rows.append({**new, "node": row["node"]})
            row.update(quarantined=self.day(), moved=True)
        else:
            self.rows.remove(row)
            if what != "delete":
                self.rows.append({**row, "block": halves.pop(self.chance.randrange(2))})
            if what == "split":
                self.rows.append({**row, "block": halves[0], "node": self.node()})

    def renamed(self) -> None:
        """Rename a node in the inventory, and mostly in the lock: with its address, and what it shows."""
        old, new = self.chance.choice([*self.nodes]), self.chance.choice(("evil", "g0", "n1"))
        self.nodes = {new if name == old else name: node for name, node in self.nodes.items()}
        if old in self.shown and self.chance.random() < 0.5:
            self.shown[new] = self.shown.pop(old)
        for row in self.rows if self.chance.random() < 0.6 else ():
            row["node"] = new if row["node"] == old else row["node"]

    def internal_ips(self) -> None:
        """Two nodes swap addresses, and one of them may leave."""
        one, other = self.chance.choice([*self.nodes]), self.chance.choice([*self.nodes])
        ips = [self.nodes[name]["internalIPs"] for name in (one, other)]
        self.nodes[one]["internalIPs"], self.nodes[other]["internalIPs"] = ips[1], ips[0]
        if self.chance.random() < 0.3 and one != other:
            del self.nodes[other]

    def follow(self) -> None:
        """Let a pool follow addresses, those of nodes mostly such that they keep their lines; or let none follow any more."""
        if any("follows" in pool["ipv4"] for pool in self.pools.values()) and self.chance.random() < 0.6:
            for pool in self.pools.values():
                pool["ipv4"].pop("follows", None)
            return
        pool = self.pools[self.chance.choice([*self.pools])]
        part = pool["ipv4"]
        blocks = [str(block) for block in _blocks(part["cidrs"][0], part["blockSize"])]
        part.update(cidrs=part["cidrs"][:1], follows=f"172.30.0.0/{32 - (len(blocks) - 1).bit_length()}")
        for name in ("nodeSelector", "unlisted", "reserved", "pins"):
            pool.pop(name, None)
        if self.rows and self.chance.random() < 0.5:
            self.line()
        for row in self.rows if self.chance.random() < 0.8 else ():
            if row["block"] in blocks:
                address = f"172.30.0.{blocks.index(row['block'])}"
                if row["node"] in self.nodes:
                    self.nodes[row["node"]]["internalIPs"] = [address]
                elif self.chance.random() < 0.3:
                    self.join(self.chance.choice(("evil", row["node"])), address)

    def shows(self) -> None:
        """Let a node show a block of another, or two each other's; or let it show nothing."""
        one, other = self.row(), self.row()
        self.show(one["node"], [other] if self.chance.random() < 0.9 else [])
        if self.chance.random() < 0.6:
            self.show(other["node"], [one])

    def setting(self) -> None:
        """Change the quarantine, or who decides which blocks nodes have."""
        ipam, pool = self.spec["ipam"], self.pools[self.chance.choice([*self.pools])]
        if self.chance.random() < 0.5:
            self.spec["quarantineDays"] = self.chance.choice((*DAYS, 0, 30, 60))
        elif self.chance.random() < 0.3:
            self.spec["ipam"] = dict(KINDS[self.chance.choice([*KINDS])])
            self.compile(TODAY, mode=True)
        elif ipam["mode"] == "cluster-pool":
            ipam["operator"] = self.chance.choice(("adopt", "adopt", "bystander"))
            pool["unlisted"] = not pool.get("unlisted", False)
        elif ipam["mode"] == "multi-pool":
            ipam["pinning"] = self.chance.choice(("pool", "node", "none"))

    def range(self) -> None:
        """Rename a pool, split it, give a part of its range to another, keep addresses back, pin a block, or change the size."""
        name = self.chance.choice([*self.pools])
        pool, new = self.pools[name], self.chance.choice(("p", "u", "default"))
        part = pool["ipv4"]
        halves = [str(half) for half in ip_network(part["cidrs"][0]).subnets()]
        match self.chance.choice(("rename", "split", "give", "reserve", "pin", "size")):
            case "rename" if new not in self.pools:
                self.pools = {new if old == name else old: each for old, each in self.pools.items()}
                for row in self.rows if self.chance.random() < 0.3 else ():
                    row["pool"] = new if row.get("pool") == name else row.get("pool", "")
            case "split" if new not in self.pools:
                part["cidrs"][:1] = halves[:1]
                self.pools[new] = {**deepcopy(pool), "ipv4": {**part, "cidrs": halves[1:]}}
            case "give":
                part["cidrs"][:1] = halves[:1]
                self.pools[self.chance.choice([*self.pools])]["ipv4"]["cidrs"].append(halves[1])
            case "reserve":
                pool["reserved"] = [{"cidr": halves[0], "reason": "it is ours"}]
            case "pin":
                pool["pins"] = {self.node(): [self.row()["block"]]}
            case "size":
                part["blockSize"] += self.chance.choice((-1, 1))

    def verb(self) -> None:
        """Consent by `ipamc lock`; or a compile of some days ago, on a branch that was open since."""
        row, day = self.row(), TODAY
        old = name = self.chance.choice([*self.nodes])
        what = self.chance.choice(
            ("leave", "leave", "rename", "rename", "renumber", "settle", "release", "release", "adopt")
        )
        if what == "leave":
            self.leave()
            self.join()
            day = self.day()
        elif what == "rename":
            old = self.chance.choice((name, row["node"]))
            self.nodes.pop(old, None)
            self.join("n9")
        waits = [each["node"] for each in self.rows if "pending" in each] or [name]
        release = self.chance.choice((row["block"], row["node"]))
        consents = {
            "leave": "all",
            "rename": (old, "n9"),
            "settle": self.chance.choice(waits),
            "release": release,
            "adopt": "all",
        }
        self.compile(day, **{what: [consents.get(what, name)]})


HONEST: tuple[Callable[[Request], None], ...] = (Request.join, Request.leave, Request.label, Request.rack)
EDITS = (
    *HONEST,
    *(Request.line, Request.state, Request.block, Request.renamed, Request.internal_ips, Request.follow),
    *(Request.shows, Request.setting, Request.range, Request.verb),
    *(Request.line, Request.state, Request.verb, Request.follow, Request.follow, Request.shows),
)
KINDS: dict[str, Record] = {
    "bystander": {"mode": "cluster-pool", "operator": "bystander"},
    "adopt": {"mode": "cluster-pool", "operator": "adopt"},
    "kubernetes": {"mode": "kubernetes"},
    "pool": {"mode": "multi-pool", "pinning": "pool"},
    "node": {"mode": "multi-pool", "pinning": "node"},
    "none": {"mode": "multi-pool", "pinning": "none"},
    "crd": {"mode": "crd"},
}
DAYS = (0, 0, 1, 2, 3, 6, 7, "never")


@cache
def _base(number: int) -> Request:
    """Choose a cluster as the trunk has it."""
    chance = random.Random(f"base {number}")  # noqa: S311 - the same every time
    while True:
        world = _started(chance)
        if not world.compile(TODAY):
            continue
        if world.spec["ipam"].get("pinning") in {"pool", "none"} or chance.random() < 0.3:
            for name in chance.sample([*world.nodes], 2):
                world.show(name, [row for row in world.held if row["node"] == name])
        free = world.free()
        for at, row in enumerate(chance.sample(free, len(free) // 2)):  # what other days left
            gone, here = {"node": f"g{at}"}, {"node": chance.choice([*world.nodes])}
            waits, moved = {"quarantined": _day(chance, world)}, {"moved": True}
            states = ({**gone, **waits}, {**gone, **waits}, {**here, **waits, **moved})
            rest = ({**here, "pending": True}, {**gone, "released": True})
            world.rows.append({**row, **chance.choice((*states, *rest))})
        if done := world.compile(TODAY):
            world.rendered = published(done.files)
            return world


def _started(chance: random.Random) -> Request:
    """Choose pools and nodes, before anything is compiled."""
    kind, size = chance.choice(("bystander", *KINDS)), chance.choice((28, 28, 29))
    ipv6 = chance.random() < 0.15
    names = ["default", "b"][: chance.choice((1, 2))] + (["u"] if kind == "adopt" else [])
    pools: dict[str, Record] = {}
    for at, name in enumerate(names):
        cidr = f"10.1.{at}.0/{size - chance.choice((2, 3, 3))}"
        pools[name] = {"ipv4": {"cidrs": [cidr], "blockSize": size}}
        if ipv6:
            pools[name]["ipv6"] = {"cidrs": [f"fd00:{at}::/121"], "blockSize": 124}
        if name == "u":
            pools[name]["unlisted"] = True
        elif "b" in names and (kind == "node" or chance.random() < 0.7):
            pools[name]["nodeSelector"] = f'rack == "{"b" if name == "b" else "a"}"'
    world = Request({}, pools, {}, chance=chance)
    for at in range(chance.randint(2, 5)):
        world.join(f"n{at}", f"172.30.0.{at}")
    world.spec = {
        "cilium": {"version": "1.16" if kind == "crd" else "1.18", "managedBy": "none"},
        "ipam": dict(KINDS[kind]),
        "quarantineDays": chance.choice(DAYS),
        "budget": {"leave": 50},
    }
    if kind in {"kubernetes", "bystander", "adopt", "node"} and not ipv6 and chance.random() < 0.25:
        world.follow()
    unlisted = [row for row in world.free() if row["pool"] == "u" and ":" not in row["block"]]
    for name in [*world.nodes][: chance.randint(0, 2)] if unlisted else ():
        world.show(name, [unlisted.pop()])
    return world


def _day(chance: random.Random, world: World) -> str:
    """Return a day around the limits."""
    last: int = 7 if world.spec["quarantineDays"] == "never" else world.spec["quarantineDays"]
    return _ago(chance.choice((0, 0, 1, last // 2, last // 2 + 1, max(last - 1, 0), last, last + 1)))


def made(chance: random.Random) -> Subject:
    """Return a request: the files of base and head; without a lock of its own the head has that of the base."""
    was = _base(chance.randrange(BASES))
    world, edits = deepcopy(was), HONEST if chance.random() < 0.2 else EDITS
    world.chance = chance
    chosen = chance.choices(edits, k=chance.choice((1, 1, 2, 2, 3, 4)))
    for edit in chosen:
        if world.rows and world.nodes:
            edit(world)
    words = ", ".join(edit.__name__ for edit in chosen)
    return request(was, world, committed=_ago(chance.choice((0, 0, 1, 7, 30))), edits=words)


def request(was: World, now: World, **flags: str) -> Subject:
    """Return what the trunk has, and what the author has before the last compile."""
    files = {**now.files(), **({LOCK: now.lock} if now.lock != was.lock else {})}
    files |= {f"{BASE}{name}": text for name, text in {**was.files(), LOCK: was.lock}.items()}
    return _subject(files, TODAY, **flags)


# The oracle.


class Word(NamedTuple):
    """What a lock says of an address."""

    state: str = "free"
    node: str = ""
    since: str = ""
    moved: bool = False
    pool: str = ""

    @property
    def age(self) -> int:
        """Return how many days it has been in quarantine: less than 0 in the future."""
        return (DAY - datetime.date.fromisoformat(self.since)).days


class Side:
    """A commit, as its own files say it."""

    def __init__(self, files: Mapping[str, bytes], lock: str) -> None:
        self.entries: dict[tuple[str, str], Any] = {}
        for text in files.values():
            each = yaml.safe_load(text)
            for node in each.get("nodes") or ():
                self.entries["node", node["name"]] = {**node, "labels": 0}
            if each["kind"] != "NodeInventory":
                self.entries[each["kind"], each["metadata"]["name"]] = each["spec"]
        spec = self.entries["Cluster", "case"]
        self.days = inf if (days := spec.get("quarantineDays", 7)) == "never" else days
        self.elsewhere = {
            name for kind, name in self.entries if kind == "IPPool" and self._is_elsewhere(name)
        }
        self.words: dict[tuple[int, int], Word] = {}
        self.of: dict[tuple[str, str, int], set[tuple[int, int]]] = {}
        for row in map(json.loads, lock.splitlines()[1:]):
            state = next((each for each in ("released", "quarantined", "pending") if row.get(each)), "held")
            word = Word(state, row["node"], row.get("quarantined", ""), "moved" in row, row.get("pool", ""))
            own = _addresses(row["block"])
            self.words |= dict.fromkeys(own, word)
            self.of.setdefault((state, word.node, min(own)[0]), set()).update(own)

    def _is_elsewhere(self, name: str) -> bool:
        """Tell whether others than ipamc choose the blocks of a pool."""
        ipam, pool = self.entries["Cluster", "case"]["ipam"], self.entries["IPPool", name]
        others = [
            entry for (kind, _), entry in self.entries.items() if kind == "IPPool" and entry is not pool
        ]
        by_address = [each for each in (pool, *others) if "follows" in each["ipv4"]]
        if ipam["mode"] == "multi-pool":  # with a pool of its own for each node it may be any further one
            return pool in by_address or bool(others) or ipam.get("pinning") != "node"
        return pool in by_address or (ipam.get("operator") == "adopt" and bool(pool.get("unlisted")))

    def uses(self, node: str) -> bool:
        """Tell whether a node is not gone."""
        return any((state, node, family) in self.of for state in ("held", "pending") for family in (4, 6))


Change = tuple[tuple[int, int], Word, Word]


def _waiting(was: Side, now: Side) -> Iterator[Change]:
    """Yield what the base has with a node, or in quarantine that is not over; and what the head has there."""
    for address, word in was.words.items():
        over = word.state == "quarantined" and word.age >= max(was.days, now.days, word.moved)
        if word.state in {"held", "quarantined"} and not over:
            yield address, word, now.words.get(address, Word())


def changed_hands(was: Side, now: Side) -> str:
    """Return the addresses that another node has, or will have."""
    found = [each for each in _waiting(was, now) if each[2].state in {"held", "pending"}]
    return _shown(each for each in found if each[1].node != each[2].node)


def broken(was: Side, now: Side) -> dict[str, str]:
    """Return what no request does without a label, by kind."""
    found: dict[str, list[Change]] = {}
    shorter, days = sorted((was.days, now.days))
    for address, before, after in _waiting(was, now):
        used = after.state in {"held", "pending"}
        elsewhere = before.pool in was.elsewhere & now.elsewhere
        at_once = days == 0 and (used or after.state == "free")  # what a smaller block leaves over is free
        if not now.uses(before.node) and (elsewhere or at_once):
            continue
        if before.state == "held":
            fine = after.state == "held" or (after.state == "quarantined" and 0 <= after.age <= shorter / 2)
        elif used:
            fine = not before.moved
        else:
            fine = after.state == "quarantined" and 0 <= after.age <= before.age
        if not fine or before.node != after.node:
            kind = "taken" if before.state == "held" else "ended early"
            found.setdefault(kind, []).append((address, before, after))
    said = {kind: _shown(each) for kind, each in found.items()}
    for (state, node, family), had in was.of.items():
        has = now.of.get(("held", node, family), set())
        moves, will = (side.of.get(("pending", node, family), set()) for side in (was, now))
        if state == "held" and had - has and has - had - moves:
            said["renumbered"] = f"  {node} has other addresses of IPv{family}\n"
        if state == "held" and will - moves:
            said["begun"] = f"  {node} is to move, of IPv{family}\n"
    return said


def _shown(found: Iterable[Change]) -> str:
    text = ""
    for (was, now), each in groupby(sorted(found), key=lambda one: one[1:]):
        ends = [ip_address(value) for (_, value), _, _ in each]
        words = (" ".join(map(str, (*word[:3], "moved" * word.moved))).strip() for word in (was, now))
        text += f"  {ends[0]} to {ends[-1]}: {' → '.join(words)}\n"
    return text


def honest(was: Side, now: Side) -> bool:
    """Tell whether a request only lets nodes come and go, and adds pools; labels may change."""
    new = now.entries.keys() - was.entries.keys()
    left = {key for key in was.entries.keys() - now.entries.keys() if key[0] == "node"}
    kept = all(key in left or now.entries.get(key) == entry for key, entry in was.entries.items())
    return kept and {kind for kind, _ in new} <= {"node", "IPPool"}


# The checks.


def _finding(kind: str, text: str) -> Exception:
    """Return an exception of a class for each kind: a run shows one of each."""
    found: Exception = type(kind, (AssertionError,), {})(text)
    return found


def examine(subject: Subject) -> str:
    """Let the author compile, and play the checks; say what became of the request, or raise what is wrong."""
    before = {name.removeprefix(BASE): text for name, text in subject.files.items() if name.startswith(BASE)}
    after = {name: text for name, text in subject.files.items() if not name.startswith(BASE)}
    trunk = _author(_subject(before, TODAY), {})
    if trunk is None:
        return "no base"
    lock = after.pop(LOCK, trunk.lock.encode())
    head = _author(_subject({**after, LOCK: lock}, TODAY), published(trunk.files))
    if head is None:
        return "refused by the compile"
    before.pop(LOCK, None)
    work = _committed(_tree(before, trunk), subject.case.flags["committed"][0])
    for path, text in _tree(after, head).items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(text)
    shown = ""
    for step in STEPS:
        ran = in_process.ipamc(*step, cwd=work, environment=environment())
        shown += ran.stdout
        if ran.returncode:
            break
    if ran.returncode and step[0] == "verify":  # what it says, the compile and the plan say before
        raise _finding("alone", f"the plan passed, and\n{ran.stderr}")
    said = f"{' '.join(ran.args)}: {ran.returncode}\n{shown[:400]}\n{ran.stderr[-800:]}"
    why = re.search("^(error|refused|case: )", ran.stderr, re.MULTILINE)
    if ran.returncode not in {0, 1} or (ran.returncode and not why):
        raise _finding("code", said)
    was, now = Side(before, trunk.lock), Side(after, head.lock)
    for kind, found in broken(was, now).items() if not ran.returncode else ():
        raise _finding(kind, f"every step passed without a label, and\n{found}{said}")
    if "✅" in shown and (hands := changed_hands(was, now)):
        raise _finding("ticked", f"{hands}{said}")
    is_honest = lock == trunk.lock.encode() and honest(was, now)
    if is_honest and ran.returncode:
        raise _finding("false alarm", said)
    return f"{'honest, ' * is_honest}{f'refused by {step[0]}' if ran.returncode else 'passed'}"


def _tree(files: Mapping[str, bytes], done: Compilation) -> dict[str, bytes]:
    rendered = {f"rendered/{path}": text.encode() for path, text in done.files.items()}
    every = {**files, **rendered, LOCK: done.lock.encode()}
    return {f"{FOLDER}/{path}": text for path, text in every.items()}


def _committed(tree: Mapping[str, bytes], day: str) -> Path:
    """Return a repository with these files as its only commit, and an empty work tree."""
    work = top() / "changes"
    if not work.exists():
        git(top(), "init", "--quiet", "--template=", str(work))
    shutil.rmtree(work / "clusters", ignore_errors=True)
    at = int(datetime.datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp())
    files = [
        b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text) for path, text in tree.items()
    ]
    branch = work / f".git/refs/heads/{crc32(b''.join(files))}-{day}"
    if not branch.exists():
        head = f"commit refs/heads/{branch.name}\ncommitter a <a@example.org> {at} +0000\ndata 0\n"
        git(work, "fast-import", "--quiet", "--force", stdin=b"".join([head.encode(), *files]))
    (work / ".git/HEAD").write_text(f"ref: refs/heads/{branch.name}\n")
    return work
