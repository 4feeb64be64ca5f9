"""The files of a dump in, one `Dump` out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from ipamc.model.cluster import CiliumNode, Node
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
from ipamc.read.dump import rules
from ipamc.read.dump.items import MAX_OBJECTS, Item, items
from ipamc.read.dump.kinds import NAMED, NAMES, Kind, Value, is_app, kind_of, printed
from ipamc.read.dump.reader import Reader
from ipamc.read.syntax.document import MAX_NODES, Unreadable

Source = tuple[str, Iterable[bytes]]
"""A file as the user would type it, and its bytes in pieces."""

_PLACES = ("file", "line", "at")


def read_dump(
    sources: Iterable[Source], *, nodes: bool = True, pods: bool = True
) -> tuple[Dump, list[Diagnostic]]:
    """Read the files of a dump; return what they show together, and the warnings.

    With `nodes` a dump without Nodes is refused; without `pods` only those of the control plane and of the pod
    network are read. Raises Refused with every finding. Linear; of a file as
    `kubectl -o json` prints it, one object at a time is in memory beside what ipamc keeps of it.
    """
    found, collection = Findings(), _Collection()
    reader, objects = Reader(), 0
    with paused_collector(), contextlib.suppress(Enough):
        for path, chunks in sources:
            reader.file = path
            collection.files.append(path)
            try:
                for item in items(path, chunks):
                    objects += 1
                    if objects > MAX_OBJECTS:
                        found.append(rules.too_many(reader.at(item), MAX_OBJECTS, "objects"))
                        raise Enough
                    if pods or item.kind != "Pod" or is_app(item):
                        _add(item, reader, collection, found)
                    else:
                        collection.kinds.add(item.kind)
            except Unreadable as broken:
                found.extend(broken.diagnostics)
            found.extend(reader.found)
            reader.found.clear()
        if nodes and not found.failed and not collection.has(Node):
            first = collection.files[0] if collection.files else ""
            found.append(rules.no_nodes(Span(first), sorted(collection.kinds)))
    if found.failed:
        raise Refused(tuple(found))
    return collection.dump(reader.newest), list(found)


class _Collection:
    """The objects that were read, by type and name."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.kinds: set[str] = set()
        self.rendered: list[Mapping[str, Any]] = []
        self._objects: dict[type, dict[Any, Value]] = {}
        self._keys: dict[type, Callable[[Value], Any]] = {}
        """What makes an object of a type one."""

    def add(self, value: Value) -> Value | None:
        """Keep a value; return the one of its type and name that is there already."""
        shape = type(value)
        known = self._objects.get(shape)
        if known is None:
            known = self._objects[shape] = {}
            self._keys[shape] = _key_of(shape)
        key = self._keys[shape](value)
        first = known.setdefault(key, value)
        return None if first is value else first

    def has(self, kind: type) -> bool:
        """Tell whether there is a value of a type."""
        return kind in self._objects

    def number(self, kind: type) -> int:
        """Return how many values of a type there are."""
        return len(self._objects.get(kind, ()))

    def _sorted(self, kind: type[Any]) -> tuple[Any, ...]:
        known = self._objects.get(kind, {})
        return tuple([known[key] for key in sorted(known)])

    def dump(self, newest: str) -> Dump:
        return Dump(
            files=tuple(self.files),
            nodes=self._sorted(Node),
            cilium_nodes=self._sorted(CiliumNode),
            pools=self._sorted(SeenPool),
            node_configs=self._sorted(SeenNodeConfig),
            endpoints=self._sorted(SeenEndpoint),
            pods=self._sorted(SeenPod),
            calico_blocks=self._sorted(SeenBlock),
            affinities=self._sorted(SeenAffinity),
            others=self._sorted(SeenObject),
            rendered=tuple(self.rendered),
            kinds=frozenset(self.kinds),
            newest=newest,
        )


def _key_of(shape: type[Value]) -> Callable[[Value], Any]:
    """Return what makes an object of a type one: its name, or kind, namespace, name and API group."""
    if shape is SeenObject:
        whole = attrgetter("kind", "namespace", "name")
        group = attrgetter("api_version")
        return lambda value: (*whole(value), group(value).rpartition("/")[0])
    return attrgetter(*[key for key in ("namespace",) if key in shape.__struct_fields__], "name")


def _add(item: Item, reader: Reader, collection: _Collection, found: Findings) -> None:
    """Read an item, and keep its value. An item without a kind is refused. Raises Enough after MAX_NODES of a kind."""
    if not item.kind:
        found.append(rules.wrong_object(reader.at(item), "an object", "it has no kind"))
        return
    collection.kinds.add(item.kind)
    kind = kind_of(item.api_version, item.kind)
    if kind is None:
        return
    try:
        raw = _converted(item, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        words = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
        found.append(rules.wrong_object(reader.at(item), f"a {item.kind}", words))
        return
    if item.kind in NAMED and getattr(raw.metadata, "name", "") not in NAMES:
        return
    reader.item, reader.raw = item, raw
    value = kind.read(raw, item, reader)
    if value is None:
        return
    if isinstance(value, Node | CiliumNode) and collection.number(type(value)) >= MAX_NODES:
        found.append(rules.too_many(reader.at(item), MAX_NODES, f"{item.kind}s"))
        raise Enough
    if (first := collection.add(value)) is None:
        if kind.rendered:
            collection.rendered.append(printed(item.kind, raw, value))
    elif _differ(first, value):
        found.append(rules.two_states(f"{item.kind} {value.name}", reader.at(item), first.at))


def _converted(item: Item, kind: Kind) -> Any:
    if isinstance(item.raw, bytes):
        return kind.decode(item.raw)
    return msgspec.convert(item.raw, kind.shape)


def _differ(first: Value, second: Value) -> bool:
    """Tell whether two values differ in more than their places."""
    places = {key: getattr(first, key) for key in _PLACES if key in first.__struct_fields__}
    return msgspec.structs.replace(second, **places) != first
