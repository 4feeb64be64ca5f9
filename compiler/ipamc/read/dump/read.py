"""The files of a dump in, one `Dump` out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec

from ipamc.model.diagnostics import Diagnostic, Enough, Findings, Refused, Span
from ipamc.model.dump import (
    Dump,
    Object,
    SeenAffinity,
    SeenBlock,
    SeenCiliumNode,
    SeenEndpoint,
    SeenNode,
    SeenNodeConfig,
    SeenObject,
    SeenPod,
    SeenPool,
)
from ipamc.model.gc_pause import paused_collector
from ipamc.read.dump import rules
from ipamc.read.dump.items import Item, items
from ipamc.read.dump.kinds import NAMES, Kind, is_app, kind_of
from ipamc.read.dump.reader import Reader
from ipamc.read.syntax.document import Unreadable

Source = tuple[str, Iterable[bytes]]
"""A file as the user would type it, and its bytes in pieces."""

_NAMED = frozenset({"ConfigMap", "Deployment"})


def read_dump(
    sources: Iterable[Source], *, nodes: bool = True, pods: bool = True
) -> tuple[Dump, list[Diagnostic]]:
    """Read the files of a dump; return what they show together, and the warnings.

    With `nodes` a dump without Nodes is refused; without `pods` only those of the control plane and of the pod
    network are read. Raises Refused with every finding. Linear; of a file as
    `kubectl -o json` prints it, one object at a time is in memory beside what ipamc keeps of it.
    """
    found, collection = Findings(), _Collection()
    reader = Reader()
    with paused_collector(), contextlib.suppress(Enough):
        for path, chunks in sources:
            reader.file = path
            collection.files.append(path)
            try:
                for item in items(path, chunks):
                    if pods or item.kind != "Pod" or is_app(item):
                        _add(item, reader, collection, found)
                    else:
                        collection.kinds.add(item.kind)
            except Unreadable as broken:
                found.extend(broken.diagnostics)
            found.extend(reader.found)
            reader.found.clear()
        if nodes and not found.failed and not collection.has(SeenNode):
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
        self._objects: dict[type, dict[tuple[str, ...], Object]] = {}

    def add(self, value: Object) -> Object | None:
        """Keep a value; return the one of its type and name that is there already."""
        group = getattr(value, "api_version", "").rpartition("/")[0]
        key = (getattr(value, "kind", ""), getattr(value, "namespace", ""), value.name, group)
        first = self._objects.setdefault(type(value), {}).setdefault(key, value)
        return None if first is value else first

    def has(self, kind: type) -> bool:
        """Tell whether there is a value of a type."""
        return kind in self._objects

    def _sorted(self, kind: type[Any]) -> tuple[Any, ...]:
        return tuple([value for _, value in sorted(self._objects.get(kind, {}).items(), key=_key)])

    def dump(self, newest: str) -> Dump:
        return Dump(
            files=tuple(self.files),
            nodes=self._sorted(SeenNode),
            cilium_nodes=self._sorted(SeenCiliumNode),
            pools=self._sorted(SeenPool),
            node_configs=self._sorted(SeenNodeConfig),
            endpoints=self._sorted(SeenEndpoint),
            pods=self._sorted(SeenPod),
            calico_blocks=self._sorted(SeenBlock),
            affinities=self._sorted(SeenAffinity),
            others=self._sorted(SeenObject),
            kinds=frozenset(self.kinds),
            newest=newest,
        )


def _key(entry: tuple[tuple[str, ...], Object]) -> tuple[str, ...]:
    return entry[0]


def _add(item: Item, reader: Reader, collection: _Collection, found: Findings) -> None:
    """Read an item, and keep its value. An item without a kind is refused."""
    at = reader.at(item)
    if not item.kind:
        found.append(rules.wrong_object(at, "an object", "it has no kind"))
        return
    collection.kinds.add(item.kind)
    kind = kind_of(item)
    if kind is None:
        return
    try:
        raw = _converted(item, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        words = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
        found.append(rules.wrong_object(at, f"a {item.kind}", words))
        return
    name = getattr(getattr(raw, "metadata", None), "name", "")
    if item.kind in _NAMED and name not in NAMES:
        return
    value = kind.read(raw, item, reader)
    if value is None:
        return
    if (first := collection.add(value)) is not None and _differ(first, value):
        found.append(rules.two_states(f"{item.kind} {name}", at, first.at))


def _converted(item: Item, kind: Kind) -> Any:
    if isinstance(item.raw, bytes):
        return msgspec.json.decode(item.raw, type=kind.shape)
    return msgspec.convert(item.raw, kind.shape)


_places = attrgetter("file", "line")


def _differ(first: Object, second: Object) -> bool:
    """Tell whether two values differ in more than their places."""
    file, line = _places(first)
    return msgspec.structs.replace(second, file=file, line=line) != first
