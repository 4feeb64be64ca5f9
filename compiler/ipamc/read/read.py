"""The bytes of a cluster's files in, one Cluster and findings out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from ipamc.model.assertion import Assertion
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import MOST, Diagnostic, Enough, Place, Refused
from ipamc.model.gc_pause import paused_collector
from ipamc.model.progress import reading as begin_reading
from ipamc.read import rules
from ipamc.read.assemble import Assembly
from ipamc.read.decode import Mistyped, mistyped, shape
from ipamc.read.kinds import FIELDS, OURS, TESTS, unread, walk
from ipamc.read.kinds.inventory import RawInventory, read_inventory
from ipamc.read.locate import Texts
from ipamc.read.schema import Schemas
from ipamc.read.syntax.document import MAX_CONTAINERS, Document, Unread, Unreadable
from ipamc.read.syntax.encoding import BOM, check, decode
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.other_text import conflict_marker, other_text
from ipamc.read.syntax.yaml import cut_documents, yaml_documents
from ipamc.read.syntax.yaml_cut import cut
from ipamc.read.values import Reading


def read(
    name: str, folder: str, sources: Mapping[str, bytes], schemas: Mapping[str, str], *, tests: bool = False
) -> tuple[Cluster, list[Diagnostic]]:
    """Read the documents of one cluster; return the model and the warnings.

    `sources` are bytes by path; the order of files and documents does not matter. `name` is the name that the
    Cluster must have, `folder` the place of a finding about all files. Documents of kind Tests are read with
    `tests` alone: nobody else minds what is wrong with them. Raises Refused, with every finding of
    every file up to MOST errors, if one of them is an error. Linear: some 0.1 s for each megabyte of YAML,
    a quarter of that for JSON, and a tenth for a dump of Nodes, of which nine tenths are not read. A caller that pauses the garbage collector for longer saves a pass.
    """
    with paused_collector():
        reading = Reading()
        assembly, shapes, cluster = Assembly(reading.found), Schemas(schemas), None
        with contextlib.suppress(Enough):
            for path in sorted(sources):
                _read_file(path, sources[path], shapes, reading, assembly, tests=tests)
            cluster = assembly.cluster(name, folder, complete=reading.complete)
    found = list(reading.found)
    if cluster is None or reading.found.failed:
        raise Refused(tuple(found))
    return cluster, found


def read_shared(
    sources: Mapping[str, bytes], schemas: Mapping[str, str]
) -> tuple[tuple[Assertion, ...], list[Diagnostic]]:
    """Read files that stand beside clusters, and have Tests alone; return these and the warnings.

    Raises Refused as `read` does.
    """
    reading = Reading()
    assembly, shapes = Assembly(reading.found), Schemas(schemas)
    with contextlib.suppress(Enough):
        for path in sorted(sources):
            _read_file(path, sources[path], shapes, reading, assembly, tests=True, others=False)
    found = list(reading.found)
    if reading.found.failed:
        raise Refused(tuple(found))
    return tuple([replace(test, shared=True) for test in assembly.tests]), found


def documents_of(
    path: str, data: bytes, fields: Mapping[str, frozenset[str]], unread: Unread
) -> Iterator[Document]:
    """Yield the documents of a file; in place of what nobody reads they may have None, or what another object has.

    `fields` are those of `cut`. Raises Unreadable. A file with findings is read as a whole.
    """
    check(path, data)
    found = cut(data, fields)
    documents = cut_documents(path, found, unread) if found else None
    yield from yaml_documents(path, decode(path, data)) if documents is None else documents


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_INVENTORY = msgspec.json.Decoder(RawInventory)
_CONTAINERS = 4
"""Mappings and lists of a node at most: itself, its labels, its podCIDRs, its podIPs."""


def plain_inventory(data: bytes) -> RawInventory | None:
    """Return the inventory of a JSON file in UTF-8 of which nothing has to be reported; None where something may be.

    The usual way makes plain values first, to find keys that are there twice, and then the structs: with 100,000
    nodes twice the time. Here the structs are printed again. Every value prints in no more bytes than it was written
    in, so where the whole prints in as many as the file has without its blanks, nothing of it was dropped.
    """
    data = data.removeprefix(BOM)
    try:
        head = _HEAD.decode(data)
        if (head.api_version, head.kind) != (OURS, "NodeInventory"):
            return None
        inventory = _INVENTORY.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if len(inventory.nodes) * _CONTAINERS > MAX_CONTAINERS:
        return None
    same = len(msgspec.json.encode(inventory)) == len(msgspec.json.format(data, indent=-1))
    return inventory if same else None


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
    """Add the values of a file, and report what is wrong with it. Raises Enough."""
    begin_reading(path.rpartition("/")[2])
    if other := other_text(path, data):
        reading.found.append(other)
        reading.complete = False
        return
    late: list[Mistyped] = []
    try:
        if path.endswith(".json"):
            check(path, data)
            if others and (inventory := plain_inventory(data)):
                assembly.add(read_inventory(inventory, Place(path), reading))
                return
        is_json = path.endswith(".json")
        documents = json_documents(path, data) if is_json else documents_of(path, data, FIELDS, unread)
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
                reading.complete = reading.complete and item.kind.name != "Cluster"
            if len(late) >= MOST:
                break
    except Unreadable as broken:
        marker = conflict_marker(path, data)  # its neighbours may be gone
        reading.found.extend((marker,) if marker else broken.diagnostics)
        reading.complete = False
    if late:
        texts = Texts({path: data}, [value.at for value in late[:MOST]])
        reading.found.extend(mistyped(value, texts.source(value.at)) for value in late[:MOST])
