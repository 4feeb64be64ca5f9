"""Machines of Cluster API and BareMetalHosts of metal3, as kubectl prints them from a management cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.diagnostics import Enough, Findings, Refused, Span
from ipamc.model.limits import MOST_NODES, MOST_OBJECTS_OF_DUMP
from ipamc.read import rules
from ipamc.read.dump.items import DumpItem, items
from ipamc.read.dump.kinds import place_of
from ipamc.read.dump.read import Source, decoded
from ipamc.read.dump.shapes import Metadata
from ipamc.read.syntax.document import Unreadable
from ipamc.read.values import Foreign

COMMAND = "kubectl get machines,baremetalhosts -A -o yaml"
"""The command that prints them, in the management cluster."""


class _Reference(Foreign):
    """A reference to another object. In v1beta2 a Machine's has no namespace: it is the Machine's own."""

    kind: str | None = None
    name: str | None = None
    namespace: str | None = None


class _Spec(Foreign):
    cluster_name: str | None = None
    infrastructure_ref: _Reference | None = None
    consumer_ref: _Reference | None = None


class _Status(Foreign):
    node_ref: _Reference | None = None


class _Raw(Foreign):
    metadata: Metadata
    spec: _Spec | None = None
    status: _Status | None = None


class Machine(Struct, frozen=True, kw_only=True):
    """A Machine or a BareMetalHost."""

    name: str
    at: Span
    labels: Mapping[str, str]
    deleting: bool
    is_host: bool
    cluster: str
    """For a Machine: the name of its Cluster."""
    node: str
    """For a Machine: the name of its Node, once that has joined."""
    refers: tuple[str, str, str]
    """Kind, namespace and name of the object that creates the Machine, or that uses the BareMetalHost."""


_DECODE = msgspec.json.Decoder(_Raw).decode
_KINDS = {("cluster.x-k8s.io", "Machine"): False, ("metal3.io", "BareMetalHost"): True}
"""By API group and kind, in any version: whether it is a host."""


def read_machines(sources: Iterable[Source]) -> tuple[list[Machine], frozenset[str]]:
    """Return the machines and hosts of some files, in their order, and the kinds of all objects.
    Raises Refused with every finding, also above MOST_NODES machines or MOST_OBJECTS_OF_DUMP objects. Linear.
    """
    found, machines, kinds, objects = Findings(), list[Machine](), set[str](), 0
    with contextlib.suppress(Enough):
        for path, chunks in sources:
            try:
                for item in items(path, chunks):
                    objects += 1
                    kinds.add(item.kind)
                    machines += _machine(path, item, found)
                    many = len(machines) > MOST_NODES
                    if many or objects > MOST_OBJECTS_OF_DUMP:
                        most, what = (MOST_NODES, "machines") if many else (MOST_OBJECTS_OF_DUMP, "objects")
                        found.append(rules.too_many_objects(place_of(path, item), most, what))
                        raise Enough
            except Unreadable as broken:
                found.extend(broken.diagnostics)
    if found.failed:
        raise Refused(tuple([replace(each, help=each.help.replace(rules.DUMP, COMMAND)) for each in found]))
    return machines, frozenset(kinds - {""})


def _machine(path: str, item: DumpItem, found: Findings) -> Iterable[Machine]:
    is_host = _KINDS.get((item.group, item.kind))
    if is_host is None:
        return
    at = place_of(path, item)
    raw = decoded(item, _Raw, _DECODE, at, found)
    if raw is None:
        return
    spec, status = raw.spec or _Spec(), raw.status or _Status()
    refers = (spec.consumer_ref if is_host else spec.infrastructure_ref) or _Reference()
    namespace = raw.metadata.namespace or ""
    yield Machine(
        name=raw.metadata.name,
        at=at,
        labels={key: value or "" for key, value in (raw.metadata.labels or {}).items()},
        deleting=bool(raw.metadata.deletion_timestamp),
        is_host=is_host,
        cluster=spec.cluster_name or "",
        node=(status.node_ref.name if status.node_ref else "") or "",
        refers=(refers.kind or "", refers.namespace or namespace, refers.name or ""),
    )
