"""Reads the files of a dump into one `Dump`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec

from ipamc.model.diagnostics import Diagnostic, Enough, Findings, Refused, Span
from ipamc.model.dump import (
    Dump,
    SeenAffinity,
    SeenBlock,
    SeenEndpoint,
    SeenNodeConfig,
    SeenObject,
    SeenPod,
    SeenPool,
)
from ipamc.model.gc_pause import paused_collector
from ipamc.model.limits import MOST_NODES, MOST_OBJECTS_OF_DUMP
from ipamc.model.node import CiliumNode, Node
from ipamc.read import rules
from ipamc.read.dump.addresses import OF_OTHERS, Addresses
from ipamc.read.dump.items import DumpItem, items
from ipamc.read.dump.kinds import NAMED, NAMES, Reader, Value, kind_of
from ipamc.read.dump.programs import odd_flags
from ipamc.read.syntax.document import Unreadable

Source = tuple[str, Iterable[bytes]]
"""A file as the user would type it, and its bytes in pieces."""

_PLACES = ("file", "line", "at")


def read_dump(
    sources: Iterable[Source], *, nodes: bool = True, every: bool = False
) -> tuple[Dump, list[Diagnostic]]:
    """Read the files of a dump; return their contents as one Dump, and the warnings.
    With `nodes` a dump without Nodes is refused; with `every`, other objects are searched for addresses, the
    `scalars`. Raises Refused with every finding. Linear; from the output of `kubectl -o json`, only one
    object at a time is in memory besides the fields that ipamc keeps.
    """
    found, collection, addresses = Findings(), _Collection(), Addresses()
    reader, objects = Reader(), 0
    with paused_collector(), contextlib.suppress(Enough):
        for path, chunks in sources:
            reader.file = path
            collection.files.append(path)
            try:
                for item in items(path, chunks):
                    objects += 1
                    if objects > MOST_OBJECTS_OF_DUMP:
                        found.append(rules.too_many_objects(reader.at(item), MOST_OBJECTS_OF_DUMP, "objects"))
                        raise Enough
                    _add(item, reader, collection, found)
                    if every:
                        addresses.search(item, path)
            except Unreadable as broken:
                found.extend(broken.diagnostics)
            found.extend(reader.found)
            reader.found.clear()
        if nodes and not found.failed and Node not in collection.objects:
            first = collection.files[0] if collection.files else ""
            found.append(rules.no_nodes(Span(first), sorted(collection.kinds)))
    if found.failed:
        raise Refused(tuple(found))
    dump = collection.dump(reader.newest, addresses)
    return dump, [*found, *odd_flags(dump)]


class _Collection:
    """The objects read so far, by type and identity."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.kinds: set[str] = set()
        self.unread: Counter[str] = Counter()
        self.objects: dict[type, dict[Any, Value]] = {}
        self._keys: dict[type, Callable[[Value], Any]] = {}

    def add(self, value: Value) -> Value | None:
        """Store a value; return the stored one if its type and identity exist already."""
        shape = type(value)
        known = self.objects.get(shape)
        if known is None:
            known = self.objects[shape] = {}
            self._keys[shape] = _key_of(shape)
        first = known.setdefault(self._keys[shape](value), value)
        return None if first is value else first

    def dump(self, newest: str, addresses: Addresses) -> Dump:
        def by_name(kind: type[Any]) -> tuple[Any, ...]:
            known = self.objects.get(kind, {})
            return tuple([known[key] for key in sorted(known)])

        return Dump(
            files=tuple(self.files),
            nodes=by_name(Node),
            cilium_nodes=by_name(CiliumNode),
            pools=by_name(SeenPool),
            node_configs=by_name(SeenNodeConfig),
            endpoints=by_name(SeenEndpoint),
            pods=by_name(SeenPod),
            calico_blocks=by_name(SeenBlock),
            affinities=by_name(SeenAffinity),
            others=by_name(SeenObject),
            kinds=frozenset(self.kinds),
            scalars=tuple(addresses.scalars()),
            unread={kind: self.unread[kind] for kind in sorted(self.unread)},
            newest=newest,
        )


def _key_of(shape: type[Value]) -> Callable[[Value], Any]:
    """Return the function for a type's identity: name, or kind, namespace, name and API group."""
    if shape is SeenObject:
        whole, group = attrgetter("kind", "namespace", "name"), attrgetter("api_version")
        return lambda value: (*whole(value), group(value).rpartition("/")[0])
    return attrgetter(*[key for key in ("namespace",) if key in shape.__struct_fields__], "name")


def decoded(item: DumpItem, shape: type, decode: Callable[[bytes], Any], at: Span, found: Findings) -> Any:
    """Return an item as the struct of its kind; None, with a finding, if it has another shape."""
    try:
        return decode(item.raw) if isinstance(item.raw, bytes) else msgspec.convert(item.raw, shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        words = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
        found.append(rules.wrong_object(at, f"a {item.kind}", words))
        return None


def _add(item: DumpItem, reader: Reader, collection: _Collection, found: Findings) -> None:
    """Read an item, and store its value. Raises Enough after MOST_NODES of a kind."""
    if not item.kind:
        found.append(rules.wrong_object(reader.at(item), "an object", "it has no kind"))
        return
    collection.kinds.add(item.kind)
    if (kind := kind_of(item.group, item.kind)) is None:
        if (item.group, item.kind) not in OF_OTHERS:
            collection.unread[f"{item.kind}.{item.group}" if item.group else item.kind] += 1
        return
    if (raw := decoded(item, kind.shape, kind.decode, reader.at(item), found)) is None:
        return
    if item.kind in NAMED and getattr(raw.metadata, "name", "") not in NAMES:
        return
    reader.item, reader.raw = item, raw
    value = kind.read(raw, item, reader)
    if value is None:
        return
    if isinstance(value, Node | CiliumNode) and len(collection.objects.get(type(value), ())) >= MOST_NODES:
        found.append(rules.too_many_objects(reader.at(item), MOST_NODES, f"{item.kind}s"))
        raise Enough
    if (first := collection.add(value)) is None:
        return
    places = {key: getattr(first, key) for key in _PLACES if key in first.__struct_fields__}
    if msgspec.structs.replace(value, **places) != first:
        found.append(rules.two_states(f"{item.kind} {value.name}", reader.at(item), first.at))
