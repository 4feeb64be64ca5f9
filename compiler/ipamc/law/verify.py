"""A small checker of the addresses in a repository. It trusts nothing that the compiler says.

It needs Python, git, PyYAML and this folder: `python -I law --base origin/main`. It checks addresses: `law`,
`unique`, `rendered`, `published`. All that ipamc never writes is a finding. A compile finds what is missing.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby, pairwise
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from struct import unpack
from typing import Any, NamedTuple

import yaml

from .change import HELD, IN_USE, OURS, PENDING, QUARANTINED, UNLAWFUL, Days, Gate, changes, is_over

_NAME = r"[a-z0-9][a-z0-9.-]*"
_MODE = "kubernetes|cluster-pool|multi-pool|crd|address-space"
_HEADER = re.compile(rf'{{"lock":1,"cluster":"({_NAME})","mode":"({_MODE})","shards":([1-9][0-9]{{0,6}})}}')
_LINE = re.compile(
    rf'{{"block":"([0-9a-f.:/]+)"(?:,"pool":"({_NAME})")?,"node":"({_NAME}(?:/{_NAME}){{0,2}})"'
    r'(?:,"quarantined":"([0-9-]{10})"(,"moved":true)?)?(,"pending":true)?(,"released":true)?'
    r'(?:,"addresses":([1-9][0-9]*))?}'
)
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # every scalar is a text
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map", "int", "bool", "null")}
_SETTINGS = re.compile(r"\b(?:Cluster|AddressSpace|IPPool|ClusterCIDR)\b").search
_DOCUMENT = re.compile(r"(?m)^---(?:[ \t]*\n|(?=[ \t]))")
_OBJECT = re.compile(  # a Node or a CiliumNode as it is rendered: all addresses in it are the node's
    r"apiVersion: [a-z0-9./]+\nkind: (?:Cilium)?Node\nmetadata:\n"
    r"(?:  annotations:\n(?:    [\w./-]+: [\w./=,\"-]+\n)+)?"
    r"  name: ([a-z0-9.-]+)\n(?:  uid: [\w\"-]+\n)?(?:spec:\n(?: +(?:- )?+[\w.:/-]+(?: [\w.:/{}-]+)?\n)*)?"
).fullmatch
_V6 = r"(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F]*(?::[0-9a-fA-F]*)*(?::[0-9a-fA-F.]+|::)"
_ADDRESS = rf"(?=[0-9a-fA-F:])(?<![\w.:-])(?:[0-9]+(?:\.[0-9]+){{3}}|{_V6})(?:/[0-9]+)?(?![\w.])"
_ADDRESSES = re.compile(_ADDRESS).findall
_POOL = re.compile(r"(?:^|,)([^=,;:]+)=")  # the name of a pool in the flag that creates pools
_LIST = re.compile(r"cluster-pool-ipv[46]-cidr|clusterpoolipv[46]podcidrlist").fullmatch
_DEFAULT = re.compile(r"ipam-default-ip-pool|ipam-multi-pool-pre-allocation").fullmatch
_SPACE, _PINNING, _DAYS = ("spec", "addressSpace"), ("spec", "ipam", "pinning"), ("spec", "quarantineDays")
_NAMED, _NEVER = ("metadata", "name"), {"binarydata", "requested"}
_UNLISTED, _FOLLOWS = ("spec", "unlisted"), {("spec", "ipv4", "follows"), ("spec", "ipv6", "follows")}
_HOST = ("spec", "nodeSelector", "matchLabels", "kubernetes.io/hostname")
_VALUES, _COMPONENT = "rendered/cilium/helm-values.yaml", "rendered/cilium/component/kustomization.yaml"
_BYSTANDER = (("operator", "extraArgs"), "--ipam=kubernetes")  # with it the operator gives out nothing
_KUSTOMIZE = re.compile(  # all that ipamc tells kustomize: what it builds is what the files say
    r"=(?:apiVersion|kind|metadata|resources|sortOptions|patches)|(?:apiVersion|kind|metadata.*|sortOptions.*)=.*"
    r"|resources=[\w-]+(?:/[\w-]+)?(?:\.yaml)?|patches=(?:path|patch|target)|patches/target=\w+"
    r"|patches/path=cilium-(?:config|operator)\.yaml|patches/patch=\[\{\"op\": \"add\", \"path\": "
    r"\"/spec/template/spec/containers/0/args/-\", \"value\": \"--ipam=kubernetes\"\}\]"
    r"|patches/target/(?:group=apps|version=v1|kind=Deployment|name=cilium-operator|namespace=[\w-]+)"
).fullmatch
_KIND = re.compile(
    r"Node|ConfigMap|Deployment|Cilium(?:Node(?:Config)?|PodIPPool|BGP\w+)|\w+Policy(?:Binding)?"
).fullmatch
Files = Mapping[str, bytes]  # by path
Leaf = tuple[tuple[str, ...], str, int]  # a key or scalar: the keys that lead to it, its text, its line
Given = tuple["Block", str, str, str]  # addresses, the node or "", the CiliumPodIPPool or "", the place
Fields = dict[tuple[str, ...], str]  # the leaves of an object, by the keys; of several, the last


class Finding(Exception):  # noqa: N818 - it is raised where nothing more can be read
    """Something that is not as it must be: a sentence, the place, and a place that contradicts it."""

    def __str__(self) -> str:
        return "\n".join(map("{} {}".format, ("error:", " -->", " :::"), self.args))


class Block(NamedTuple):
    """A run of addresses."""

    family: int  # 4 or 6
    first: int  # as a number
    last: int

    def shared(self, other: "Block") -> int:
        """Return the number of addresses that are in both."""
        common = min(self.last, other.last) - max(self.first, other.first) + 1
        return max(common, 0) if self.family == other.family else 0

    def __str__(self) -> str:  # a CIDR; of a run that is none, one from its first address on
        family, bits = (AF_INET, 32) if self.family == 4 else (AF_INET6, 128)
        address = inet_ntop(family, self.first.to_bytes(bits // 8, "big"))
        return f"{address}/{bits + 1 - (self.last - self.first + 1).bit_length()}"


def ends_of(text: str) -> tuple[int, int, int]:
    """Return family, first, last of a CIDR, whose host bits Go ignores, too. Raises OSError, ValueError."""
    address, _, length = text.partition("/")
    family, kind, bits = (6, AF_INET6, 128) if ":" in address else (4, AF_INET, 32)
    number, host = int.from_bytes(inet_pton(kind, address), "big"), bits - int(length) if length else 0
    return family, number >> host << host, number | (1 << host) - 1


def _merged(ends: Iterable[tuple[int, int, int]]) -> list[Block]:
    runs: list[list[int]] = []
    for each in sorted(ends):
        if runs and runs[-1][0] == each[0] and each[1] <= runs[-1][2] + 1:
            runs[-1][2] = max(each[2], runs[-1][2])
        else:
            runs.append([*each])
    return [Block(*run) for run in runs]


class Line(NamedTuple):
    """A line of a lock, as the law asks for it."""

    block: Block
    pool: str
    node: str
    state: str
    since: str
    moved: bool

    def __str__(self) -> str:
        return f"{self.block}, {self.state} for {self.node}"


class Lock:
    """A lock as ipamc writes it: lines by family and address without overlap. Raises a finding at others."""

    def __init__(self, path: str, text: str) -> None:
        header, *rows = text.split("\n")
        head = _HEADER.fullmatch(header)
        if not head or int(head[3]).bit_count() != 1 or (rows or [""]).pop():
            raise Finding("not a lock of this format, or no newline at its end", path)
        self.path, self.cluster, self.mode, self.lines = path, head[1], head[2], list[Line]()
        for number, row in enumerate(rows, 2):
            try:
                self.lines.append(_line(row))
            except (ValueError, AttributeError, OSError):
                raise Finding(f"ipamc does not write this line: {row[:100]!r}", f"{path}:{number}") from None
        self._ends = [(line.block.family, line.block.last) for line in self.lines]
        for one, two in pairwise(self.lines):
            if (one.block.family, one.block.last) >= two.block[:2]:
                raise Finding(f"{two.block} overlaps or precedes {one.block}", self.at(two), self.at(one))

    def at(self, line: Line) -> str:
        """Return the place of a line."""
        return f"{self.path}:{bisect_left(self._ends, (line.block.family, line.block.last)) + 2}"

    def over(self, block: Block) -> Iterator[Line]:
        """Yield the lines with an address of a block, by address. O(log n), and the lines."""
        for place in range(bisect_left(self._ends, block[:2]), len(self.lines)):
            if not self.lines[place].block.shared(block):
                return
            yield self.lines[place]


def _line(row: str) -> Line:
    """Return the line of a row. Raises AttributeError or ValueError if ipamc does not write it so."""
    cidr, pool, node, since, moved, waits, released, part = _LINE.fullmatch(row).groups("")  # type: ignore[union-attr] # it is caught
    day, block = str(date.fromisoformat(since)) if since else "", Block(*ends_of(cidr))
    if day != since or str(block) != cidr or (released and (since or waits or part)):
        raise ValueError(row)
    state = QUARANTINED if since else PENDING if waits else "released" if released else HELD
    return Line(block, pool, node, state, since, bool(moved))


def documents(text: str, path: str) -> Iterator[list[Leaf]]:
    """Yield the leaves of documents, and of items of a List. A tag, an alias or a double key is a finding."""
    try:
        for document in yaml.compose_all(text, _LOADER):
            yield list(_leaves(document, (), set()))
            for key, items in document.value if isinstance(document, yaml.MappingNode) else ():
                yield from (list(_leaves(each, (), set())) for each in items.value if key.value == "items")
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as cause:
        raise Finding(f"not readable: {' '.join(str(cause).split())[:200]}", path) from None


def _leaves(node: Any, keys: tuple[str, ...], seen: set[int]) -> Iterator[Leaf]:
    names = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    if node.tag not in _TAGS or id(node) in seen or len(set(names)) < len(names) or "<<" in names:
        raise ValueError(f"a tag, an alias, or a duplicate key in line {node.start_mark.line + 1}")
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield keys, node.value, node.start_mark.line + 1
    for each in node.value if isinstance(node, yaml.SequenceNode) else ():
        yield from _leaves(each, keys, seen)
    for name, (key, each) in zip(names, node.value, strict=False):
        yield from _leaves(key, keys, seen)
        yield from _leaves(each, (*keys, name), seen)


class Cluster:
    """A cluster in base or head: its lock, its settings, what its objects give, and findings about them. The
    addresses of nodes, or the operator, decide about the pools `elsewhere`. `days` is None for ever.
    """

    lock: Lock | None = None
    pins: bool = False  # each node has pools of its own

    def __init__(self, folder: str, files: Files) -> None:
        self.found, self.defaults, self.spec = list[Finding](), list[tuple[str, str, str, str]](), Fields()
        self.given, self.lists, self.pools = list[Given](), list[Given](), dict[str, Fields]()
        self.name, self.told = folder.rpartition("/")[2], set[str]()  # who makes the operator a bystander
        for path, text in sorted(files.items(), key=lambda each: each[0].startswith("rendered/")):
            try:
                self._read(path, f"{folder}/{path}", text.decode(errors="replace"))
            except Finding as found:
                self.found.append(found)
        self.lines, days = self.lock.lines if self.lock else [], self.spec.get(_DAYS) or "7"
        self.days = int(days) if re.fullmatch("[0-9]{1,6}", days) else None
        told = {f"{folder}/{path}" for path in (_VALUES, _COMPONENT) if path in files} <= self.told
        adopts = self.spec.get(("spec", "ipam", "operator")) == "adopt" or not told
        self.lists = [each for each in self.lists if each[2] or adopts]
        self.served = {pool for pool, each in self.pools.items() if adopts and each.get(_UNLISTED) == "true"}
        self.elsewhere = {pool for pool, each in self.pools.items() if _FOLLOWS & each.keys()} | self.served
        self.elsewhere |= {pool for _, _, pool, _ in self.lists if pool}
        if self.lock and self.lock.mode == "multi-pool" and not self.pins:
            self.elsewhere |= {line.pool for line in self.lines}

    def _read(self, path: str, where: str, text: str) -> None:
        if path == "ipam.lock":
            self.lock = Lock(where, text)
        space = self.lock is not None and self.lock.mode == "address-space"  # its index is no manifest
        line, drawn = 0, path.startswith("rendered/") and not (space and path == "rendered/index.jsonl")
        for part in _DOCUMENT.split(text) if drawn or _SETTINGS(text) else ():
            if found := drawn and _OBJECT(part):
                self._give(part.replace(f"  name: {found[1]}\n", "", 1), f"{where}:{line + 1}", found[1])
            for leaves in documents(part, where) if (not found if drawn else _SETTINGS(part)) else ():
                fields = {keys: leaf for keys, leaf, _ in leaves}
                if drawn:
                    self._object(where, line, leaves, fields)
                elif fields.get(("kind",)) in {"IPPool", "ClusterCIDR"}:
                    self.pools[fields.get(_NAMED, "")] = fields
                elif fields.get(("kind",)) in {"Cluster", "AddressSpace"}:
                    self.found += [Finding("a second Cluster", where)] if self.spec else []
                    self.spec, self.pins = fields, fields.get(_PINNING) == "node"
            line += part.count("\n") + 1

    def _object(self, path: str, start: int, leaves: list[Leaf], fields: Fields) -> None:
        """Collect what a rendered object gives, and what it must not say."""
        kind, name = fields.get(("kind",), ""), fields.get(_NAMED) or "?"
        host = fields.get(_HOST, "") if sum(keys[:2] == _HOST[:2] for keys in fields) == 3 else ""  # alone
        kustomize = "/kustomization" in path.lower() or kind in {"Kustomization", "Component"}
        known, policy = _KIND(kind) or path.endswith(_VALUES), kind.endswith("AdmissionPolicy")
        for keys, text, row in (leaf for leaf in leaves if leaf[0] != _NAMED and leaf[0][:2] != _HOST[:2]):
            at, last = f"{path}:{start + row}", keys[-1].lower() if keys else ""
            self.told |= {path} if keys == ("patches", "patch") or (keys, text) == _BYSTANDER else set()
            table = text.startswith("'''\n") and "\\" not in text
            strange = not known or last in _NEVER or (policy and "\n" in text and not table)
            if not _KUSTOMIZE(f"{'/'.join(keys)}={text}") if kustomize else strange:
                self.found.append(Finding(f"ipamc does not write this in kind {kind!r}: {text[:100]!r}", at))
            elif kind in {"Node", "CiliumNode"}:
                self._give(text, at, name)
            elif kind == "CiliumPodIPPool":
                self._give(text, at, pool=name)
            elif policy:
                for number, each in enumerate(text.split("\n") if table else (), start + row + 1):
                    self._give(each.partition(" ")[2], f"{path}:{number}", each.partition(" ")[0] or "?")
            elif _LIST(last):
                self._give(text, at)
            elif last == "auto-create-cilium-pod-ip-pools":
                parts = _POOL.split(text)
                for pool, spec in zip(parts[1::2], parts[2::2], strict=True):
                    self._give(spec.replace("-cidrs:", " "), at, pool=pool)
            elif "autoCreateCiliumPodIPPools" in keys[:-1]:
                self._give(text, at, pool=keys[keys.index("autoCreateCiliumPodIPPools") + 1])
            for pool in re.split(r"[\s,=]+", text) if _DEFAULT(last) and self.pins else ():
                self.defaults.append((pool.partition(".")[2], name, host, at))

    def _give(self, text: str, at: str, node: str = "", pool: str = "") -> None:
        own = self.pins or pool not in self.pools  # then what stands behind a dot is a node
        node, texts = node or (pool.partition(".")[2] if own else ""), _ADDRESSES(text)
        alone = [each for each in texts if "/" not in each and ":" not in each]  # most, in crd mode
        try:
            run = sorted({*unpack(f">{len(alone)}I", b"".join(inet_pton(AF_INET, each) for each in alone))})
            whole = bool(run) and run[-1] - run[0] < len(run)
            ends = [(4, run[0], run[-1])] if whole else [(4, each, each) for each in run]
            blocks = _merged((*ends, *(ends_of(each) for each in texts if "/" in each or ":" in each)))
        except (OSError, ValueError):
            raise Finding(f"not a CIDR: {text[:100]!r}", at) from None
        (self.given if node else self.lists).extend((block, node, pool, at) for block in blocks)


def law(base: Cluster, head: Cluster, days: Days, gates: Collection[str]) -> Iterator[Finding]:
    """Yield what the law refuses, and what needs a label that is not there."""
    for each in changes(base.lines, head.lines, days, base.elsewhere & head.elsewhere):
        if each.verdict in UNLAWFUL or each.gate in gates:
            sides = (head.lock, each.after), (base.lock, each.before)
            now, was = (f"{line.state} for {line.node}" if line else "in no line" for _, line in sides)
            why = f"it needs the label ipamc/{each.gate}" if each.gate else "it is never allowed"
            ends = [lock.at(line) for lock, line in sides if lock and line]
            yield Finding(f"{Block(*each[:3])} was {was} and is {now} ({each.verdict}): {why}", *ends)


def unique(clusters: Iterable[Cluster]) -> Iterator[Finding]:
    """Yield addresses that two clusters of an address space keep."""
    locks = [(space, each.lock) for each in clusters if each.lock and (space := each.spec.get(_SPACE))]
    kept = [(space, line, lock) for space, lock in locks for line in lock.lines if line.state in OURS]
    kept.sort(key=lambda each: (each[0], each[1].block))
    for (space, line, lock), (other, twice, second) in pairwise(kept):
        if space == other and line.block.shared(twice.block):
            yield Finding(f"{twice.block} is in two clusters of {space}", second.at(twice), lock.at(line))


def rendered(cluster: Cluster, lock: Lock) -> Iterator[Finding]:
    """Yield addresses that an object gives to a node which does not hold them."""
    hosts = {line.node: line.node for line in lock.lines if cluster.defaults}
    for node, name, host, at in cluster.defaults:
        if node and (node != name or not host or hosts.setdefault(host, node) != node):
            yield Finding(f"a pool of node {node} is the default pool of other nodes", at)
    for block, node, _, at in cluster.given:
        missing = block.last - block.first + 1
        for line in lock.over(block):
            missing -= line.block.shared(block)
            if (line.state, line.node) != (HELD, node):
                yield Finding(f"{node} gets {line}", at, lock.at(line))
                break
        else:
            if missing:
                yield Finding(f"{node} gets {block}, but does not hold {missing} of its addresses", at)


def published(base: Cluster, cluster: Cluster, lock: Lock, days: Days) -> Iterator[Finding]:
    """Yield addresses that the operator may give, and that are kept for a node which it does not serve."""
    pinned = {pool.partition(".")[0] for _, _, pool, _ in cluster.given if pool}
    own = (line.block for line in base.lines if line.state in IN_USE and line.pool in base.served)
    before = _merged((*(block for block, *_ in base.lists), *own))
    for block, _, pool, at in cluster.lists:
        for line in lock.over(block):
            kept = line.state in OURS and not is_over(line, days.over, days.today)
            place = bisect_left(before, (line.block.family, line.block.first + 1)) - 1
            late = line.state == QUARANTINED and (place < 0 or not before[place].shared(line.block))
            served = line.pool == pool if pool else line.pool in cluster.served and line.state != PENDING
            if kept and (late or not served or pool in pinned):
                yield Finding(f"the operator may give out {line}", at, lock.at(line))


def verify(
    folder: str, old: Files, new: Files, today: str, gates: Collection[str], names: Collection[str] = ()
) -> tuple[list[Finding], list[str]]:
    """Return findings about files by path in a folder, and its clusters; nobody opened these `gates`."""
    base, head, none = _clusters(f"base:{folder}", old), _clusters(folder, new), Cluster("", {})
    chosen, found = sorted({*base, *head} & ({*names} or {*base, *head})), list(unique(head.values()))
    for name in chosen:
        was, now, at = base.get(name, none), head.get(name, none), f"{folder}/{name}"
        if was.lines and not (now.lock or now.spec):  # another folder may have all of its lines
            others = (each for other, each in head.items() if other not in base)
            now = next((each for each in others if {*was.lines} <= {*each.lines}), now)
        gone = was.lock and now.spec.get(("kind",)) != was.spec.get(("kind",), "Cluster")
        if gone and Gate.DELETE_CLUSTER in gates:
            found.append(Finding("deleted or changed in kind: it needs the label ipamc/delete-cluster", at))
        was = none if gone else was
        found += [*(each for each in was.found if "ipam.lock" in each.args[1]), *now.found]
        if (lock := now.lock) and lock.cluster == now.spec.get(_NAMED) == now.name:
            days = Days(today, (was if was.spec else now).days, now.days)
            found += [*law(was, now, days, gates), *rendered(now, lock), *published(was, now, lock, days)]
        elif now.lock or now.spec or now.given or now.lists:
            found.append(Finding("the lock is not of this Cluster, or one of them is missing", at))
    return found, chosen


def _clusters(folder: str, files: Files) -> dict[str, Cluster]:
    parts = ((*path.partition("/")[::2], files[path]) for path in sorted(files))
    groups = groupby(parts, lambda each: each[0])
    return {name: Cluster(f"{folder}/{name}", {each[1]: each[2] for each in group}) for name, group in groups}
