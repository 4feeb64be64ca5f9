"""Documents to the model, whatever dialect they came in; and the places of findings to lines and columns.

syntax/             bytes -> text -> documents: plain values; positions: paths -> lines and columns
kinds/              documents -> items, each with its kind; one module a dialect: shapes -> the model
decode              items -> typed shapes: the fast path; explain_shape: the slow path, which says what is wrong
values              names, labels, CIDRs and selectors, the same in every dialect
assemble            values -> one Cluster
locate              places -> lines and columns
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cluster import Cluster
from ipamc.model.collector import paused_collector
from ipamc.model.diagnostics import Diagnostic, Place, Refused, Severity
from ipamc.read.assemble import Harvest
from ipamc.read.decode import shape
from ipamc.read.explain_shape import Mistyped, mistyped
from ipamc.read.kinds import walk
from ipamc.read.locate import Texts, locate
from ipamc.read.schema import Schemas
from ipamc.read.syntax.document import Document, Unreadable
from ipamc.read.syntax.encoding import decode
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.read.values import Reading

__all__ = ["locate", "read"]


def read(
    name: str, folder: str, sources: Mapping[str, bytes], schemas: Mapping[str, str]
) -> tuple[Cluster, list[Diagnostic]]:
    """Read the documents of one cluster: the model, and what is to be said about it beside.

    `sources` are bytes by path; the order of files and documents does not matter. `name` is what the Cluster must be called, `folder` is shown
    where a finding is about all of them. Raises Refused, with every finding of every file, if one of them is an error. Linear; some
    0.15 s a megabyte of YAML, and a quarter of that for JSON. Who pauses the collector for longer saves it a look at what was read.
    """
    with paused_collector():
        reading, harvest, shapes = Reading(), Harvest(), Schemas(schemas)
        for path in sorted(sources):
            late: list[Mistyped] = []
            try:
                for document in _documents(path, sources[path]):
                    for item in walk(document, reading):
                        if isinstance(item, Place):
                            harvest.truncated = harvest.truncated or item
                        elif (raw := shape(item, shapes, late, reading.found)) is not None:
                            harvest.add(item.kind.read(raw, item.at, reading))
                        else:
                            reading.complete = reading.complete and item.kind.name != "Cluster"
            except Unreadable as broken:
                reading.found.extend(broken.diagnostics)
                reading.complete = False
            if late:
                texts = Texts(sources, [each.at for each in late])
                reading.found.extend(mistyped(each, texts.source(each.at)) for each in late)
        cluster, found = harvest.cluster(name, folder, complete=reading.complete)
    found = reading.found + found
    if cluster is None or any(each.severity is Severity.ERROR for each in found):
        raise Refused(tuple(found))
    return cluster, found


def _documents(path: str, data: bytes) -> Iterator[Document]:
    text = decode(path, data)
    return json_documents(path, data) if path.endswith(".json") else yaml_documents(path, text)
