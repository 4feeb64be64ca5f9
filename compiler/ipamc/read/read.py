"""Reads the bytes of a cluster's files into one Cluster and findings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from msgspec import Struct, field
from msgspec.structs import replace

from ipamc.model.assertion import Assertion
from ipamc.model.bgp import Advertisement, BgpObject, NodeOverride, PeerCluster, PeerConfig
from ipamc.model.cidr import Range
from ipamc.model.cluster import AddressSpace, Cluster, Pool
from ipamc.model.diagnostics import At, Diagnostic, Enough, Findings, Place, Refused, Span
from ipamc.model.follows import with_followed
from ipamc.model.gc_pause import paused_collector
from ipamc.model.limits import MOST_FINDINGS, MOST_NODES
from ipamc.model.node import CiliumNode, Node, NodeGroup
from ipamc.model.ownership import with_node_addresses
from ipamc.model.progress import reading as begin_reading
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.read import rules, space_index
from ipamc.read.decode import Mistyped, mistyped, shape
from ipamc.read.kinds import POOL_WORDS, TESTS, Value, walk
from ipamc.read.locate import Texts
from ipamc.read.schema import Schemas
from ipamc.read.syntax import json_stream
from ipamc.read.syntax.document import Document, Unreadable
from ipamc.read.syntax.text import check, conflict_marker, decode, other_text
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.read.syntax.yaml_cut import read_cut
from ipamc.read.values import Reading

Named = AddressSpace | Cluster | Pool | Node | CiliumNode | BgpObject


class Assembly(Struct):
    """The values of a folder, in the order of its files."""

    found: Findings
    """Findings about values with equal names, and about what a folder must have."""
    clusters: dict[str, AddressSpace | Cluster] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    planned: dict[str, Node] = field(default_factory=dict)
    """Inventory entries of nodes that do not exist yet."""
    groups: dict[Place, NodeGroup] = field(default_factory=dict)
    cilium_nodes: dict[str, CiliumNode] = field(default_factory=dict)
    bgp: dict[tuple[str, str], BgpObject] = field(default_factory=dict)
    """By kind and name."""
    excluded: list[Range] = field(default_factory=list)
    tests: list[Assertion] = field(default_factory=list)
    truncated: Place | None = None
    entries: int = 0
    """The number of added values."""
    twice: dict[tuple[str, str, str], tuple[list[str], At, At]] = field(default_factory=dict)
    """Repeated names, by kind and the two files: a copied file is one finding.
        With the place of the first repeated name, and of the earlier value that has it."""

    def add(self, values: Iterable[Value]) -> None:
        """Add values; report a repeated name, and more than MOST_NODES of a kind. Raises Enough."""
        for value in values:
            self.entries += 1
            if isinstance(value, Node):
                known = self.planned if value.planned else self.nodes
                if known.setdefault(value.name, value) is not value:  # nearly all values come here
                    self._twice(known[value.name], value, "node")
            elif isinstance(value, NodeGroup):
                self.groups[value.at] = value
            elif isinstance(value, Range):
                self.excluded.append(value)
            elif isinstance(value, Assertion):
                self.tests.append(value)
            elif isinstance(value, Pool):
                self._twice(self.pools.setdefault(value.name, value), value, "pool")
            elif isinstance(value, CiliumNode):
                self._twice(self.cilium_nodes.setdefault(value.name, value), value, "CiliumNode")
            elif isinstance(value, BgpObject):
                first = self.bgp.setdefault((value.kind, value.name), value)
                self._twice(first, value, value.kind)
            else:
                self._twice(self.clusters.setdefault(value.name, value), value, "Cluster")
            if self.entries > MOST_NODES:
                several = (self.nodes, self.planned, self.cilium_nodes, self.pools, self.excluded)
                numbers = [len(some) for some in several]
                if max(numbers) > MOST_NODES or self.entries - sum(numbers) > MOST_NODES:
                    words = {Node: "nodes", CiliumNode: "CiliumNodes", Pool: "pools"}
                    self.found.append(rules.too_many(value.at, words.get(type(value), "entries")))
                    raise Enough

    def _twice(self, first: Named, value: Named, what: str) -> None:
        if first is not value:
            key = what, value.at.path, first.at.path
            if key not in self.twice:
                self.twice[key] = [], _name_at(value), _name_at(first)
            self.twice[key][0].append(value.name)

    def cluster(
        self, name: str, folder: str, spaces: Mapping[str, bytes], kind: str, *, complete: bool
    ) -> AddressSpace | Cluster | None:
        """Return the Cluster called `name` with all added values. Raises Enough.
        `spaces` are the indexes of address spaces by path, from which pools may have ranges. `complete`: no
        unreadable document may have been the Cluster, or other `kind`, so a folder without one is reported.
        """
        for plan in self.planned.values():
            node = self.nodes.setdefault(plan.name, plan)
            # A v1 Node replaces its planned entry, and each entry of a node that of its group.
            if not node.live and plan.at not in self.groups:
                self._twice(node, plan, "node")
        if len(self.nodes) > MOST_NODES:
            self.found.append(rules.too_many(plan.at, "nodes"))
        named = (self.nodes, self.planned, self.pools, self.cilium_nodes, self.clusters)
        for (what, path, first), (names, at, first_at) in self.twice.items():
            new = path == first or any(value.at.path == path for known in named for value in known.values())
            self.found.append(rules.same_name(what, names, at, first_at, copied=not new))
        for other in self.clusters.values():
            at = other.at / "metadata" / "name"
            if problem := subdomain_problem(other.name) or subdomain_problem(name):
                wrong = other.name if subdomain_problem(other.name) else name
                self.found.append(rules.bad_cluster_name(at, wrong, problem, name, folder))
            elif other.name != name:
                second = name in self.clusters
                self.found.append(rules.other_folder(at, other, name, folder, second=second))
        if not self.clusters and complete:
            self.found.append(rules.no_cluster(Span(folder), name, folder, kind))
        cluster = self.clusters.get(name)
        if cluster is None:
            return None
        in_order = sorted(
            self.excluded, key=lambda cidr: (cidr.block, cidr.at.path, cidr.at.document, repr(cidr.at.keys))
        )
        whole = replace(
            cluster,
            excluded=(*cluster.excluded, *in_order),
            pools=tuple(self.pools[key] for key in sorted(self.pools)),
            nodes=tuple(self.nodes[key] for key in sorted(self.nodes)),
            groups=tuple(self.groups.values()),
            cilium_nodes=tuple(self.cilium_nodes[key] for key in sorted(self.cilium_nodes)),
            truncated=self.truncated,
            tests=tuple(self.tests),
        )
        if isinstance(whole, AddressSpace):
            own = (whole.at.path, whole.at.document)
            places = [each.at for kind in (whole.pools, whole.nodes, whole.cilium_nodes) for each in kind]
            places += [cidr.at for cidr in whole.excluded]
            strangers = (at for at in places if (at.path, getattr(at, "document", 0)) != own)
            self.found.extend(rules.beside_space(at, name) for at in islice(strangers, 1))
            return whole
        objects = [self.bgp[key] for key in sorted(self.bgp)]
        whole = replace(
            whole,
            advertisements=tuple(each for each in objects if isinstance(each, Advertisement)),
            peer_configs=tuple(each for each in objects if isinstance(each, PeerConfig)),
            peer_clusters=tuple(each for each in objects if isinstance(each, PeerCluster)),
            node_overrides=tuple(each for each in objects if isinstance(each, NodeOverride)),
        )
        if whole.services and whole.services.name in self.pools:
            way_out = "give the pool another name"
            self.found.append(
                rules.wrong_shape(whole.services.at, "a pool has the name services, too", way_out)
            )
        asks = [part.ask for pool in whole.networks for part in pool.families.values() if part.ask]
        space = whole.address_space or (asks[0].space if asks else "")
        self.found.extend(rules.other_space(ask, space) for ask in asks if ask.space != space)
        whole = replace(whole, address_space=space)
        return with_node_addresses(with_followed(self._with_ranges(whole, spaces) if asks else whole))

    def _with_ranges(self, cluster: Cluster, spaces: Mapping[str, bytes]) -> Cluster:
        indexes: dict[str, space_index.Index] = {}
        for path, text in spaces.items():
            if space_index.space_of(path) == cluster.address_space:
                index = space_index.load_index(text, cluster.address_space)
                if isinstance(index, space_index.Index):
                    indexes[cluster.address_space] = index
                else:
                    self.found.append(rules.index_unreadable(path, index))
        return space_index.with_ranges(cluster, indexes, tuple(map(space_index.space_of, spaces)))


def _name_at(value: Named) -> At:
    """Return the place of a name; an entry of an inventory has no metadata."""
    if isinstance(value, Node) and value.pattern:
        return value.at / "names"
    entry = isinstance(value, Node) and not value.live
    return value.at / "name" if entry else value.at / "metadata" / "name"


def read(
    name: str,
    folder: str,
    sources: Mapping[str, bytes],
    schemas: Mapping[str, str],
    *,
    spaces: Mapping[str, bytes] = {},
    tests: bool = False,
) -> tuple[Cluster, list[Diagnostic]]:
    """Read the documents of one cluster, as `read_folder` does; refuse those of an address space."""
    cluster, found = read_folder(name, folder, sources, schemas, spaces=spaces, tests=tests)
    if isinstance(cluster, AddressSpace):
        raise Refused((rules.no_cluster(Span(folder), name, folder, "Cluster"),))
    return cluster, found


def read_folder(
    name: str,
    folder: str,
    sources: Mapping[str, bytes],
    schemas: Mapping[str, str],
    *,
    spaces: Mapping[str, bytes] = {},
    tests: bool = False,
    kind: str = "Cluster",
) -> tuple[AddressSpace | Cluster, list[Diagnostic]]:
    """Read the documents of one cluster or address space; return the model and the warnings.
    `sources` are bytes by path, in any order. `name` is the name that the Cluster must have, `folder` the
    place of a finding about all files. `spaces` are the indexes of address spaces beside it, by path. Without
    `tests`, documents of kind Tests and errors in them are ignored. `kind` is what the lock is of. Raises
    Refused, with all findings up to MOST_FINDINGS errors, if one of them is an error. Linear: some 0.1 s for
    a megabyte of YAML, a quarter of that for JSON, a tenth for a dump of Nodes, of which most is skipped.
    """
    with paused_collector():
        reading = Reading()
        assembly, shapes, cluster = Assembly(reading.found), Schemas(schemas), None
        with contextlib.suppress(Enough):
            for path in sorted(sources):
                _read_file(path, sources[path], shapes, reading, assembly, tests=tests)
            cluster = assembly.cluster(name, folder, spaces, kind, complete=reading.complete)
    found = list(reading.found)
    if cluster is None or reading.found.failed:
        raise Refused(tuple(found))
    return cluster, found


def may_have_pools(data: bytes) -> bool:
    """Return whether a file may have a Cluster or a pool, or a pool without its kind. Most have neither."""
    return any(word in data for word in POOL_WORDS) or space_index.may_ask(data)


def read_shared(
    sources: Mapping[str, bytes], schemas: Mapping[str, str]
) -> tuple[tuple[Assertion, ...], list[Diagnostic]]:
    """Return the Tests in files beside the clusters, and the warnings. Raises Refused as `read` does."""
    reading = Reading()
    assembly, shapes = Assembly(reading.found), Schemas(schemas)
    with contextlib.suppress(Enough):
        for path in sorted(sources):
            _read_file(path, sources[path], shapes, reading, assembly, tests=True, others=False)
    if reading.found.failed:
        raise Refused(tuple(reading.found))
    return tuple([replace(test, shared=True) for test in assembly.tests]), list(reading.found)


def _documents(path: str, data: bytes) -> Iterable[Document]:
    """Return the documents of a YAML file; values of unread fields may be None. Raises Unreadable."""
    check(path, data)
    found = read_cut(path, data)
    return found[1] if found else yaml_documents(path, decode(path, data))


def _read_file(
    path: str,
    data: bytes,
    shapes: Schemas,
    reading: Reading,
    assembly: Assembly,
    *,
    tests: bool,
    others: bool = True,
) -> None:
    """Add the values of a file, and report its errors. Raises Enough."""
    begin_reading(path.rpartition("/")[2])
    if other := other_text(path, data):
        reading.found.append(other)
        reading.complete = False
        return
    late: list[Mistyped] = []
    try:
        is_json = path.endswith(".json")
        documents = json_stream.json_documents(path, data) if is_json else _documents(path, data)
        for item in chain.from_iterable(walk(document, reading) for document in documents):
            if isinstance(item, Place):
                assembly.truncated = assembly.truncated or item
            elif item.kind.name == TESTS and not tests:
                continue
            elif item.kind.name != TESTS and not others:
                reading.found.append(rules.not_tests(item.at / "kind", item.kind.name))
            elif (raw := shape(item, shapes, late, reading.found)) is not None:
                assembly.add(item.kind.read(raw, item.at, reading))
            else:
                reading.complete = reading.complete and item.kind.name not in {"Cluster", "AddressSpace"}
            if len(late) >= MOST_FINDINGS:
                break
    except Unreadable as broken:
        marker = conflict_marker(path, data)  # values beside it may be missing
        reading.found.extend((marker,) if marker else broken.diagnostics)
        reading.complete = False
    if late:
        texts = Texts({path: data}, [value.at for value in late[:MOST_FINDINGS]])
        reading.found.extend(mistyped(value, texts.source(value.at)) for value in late[:MOST_FINDINGS])
