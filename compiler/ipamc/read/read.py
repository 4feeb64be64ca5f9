"""The bytes of a cluster's files in, one Cluster and findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Place, Refused, Severity
from ipamc.model.gc_pause import paused_collector
from ipamc.read.assemble import Assembly
from ipamc.read.decode import shape
from ipamc.read.explain_shape import Mistyped, mistyped
from ipamc.read.kinds import walk
from ipamc.read.locate import Texts
from ipamc.read.schema import Schemas
from ipamc.read.syntax.document import Document, Unreadable
from ipamc.read.syntax.encoding import decode
from ipamc.read.syntax.json_stream import json_documents
from ipamc.read.syntax.yaml import yaml_documents
from ipamc.read.values import Reading


def read(
    name: str, folder: str, sources: Mapping[str, bytes], schemas: Mapping[str, str]
) -> tuple[Cluster, list[Diagnostic]]:
    """Read the documents of one cluster; return the model and the warnings.

    `sources` are bytes by path; the order of files and documents does not matter. `name` is the name that the
    Cluster must have, `folder` the place of a finding about all files. Raises Refused, with every finding of
    every file, if one of them is an error. Linear: some 0.15 s for each megabyte of YAML, and a quarter of
    that for JSON. A caller that pauses the garbage collector for longer saves a pass.
    """
    with paused_collector():
        reading, assembly, shapes = Reading(), Assembly(), Schemas(schemas)
        for path in sorted(sources):
            late: list[Mistyped] = []
            try:
                for document in _documents(path, sources[path]):
                    for item in walk(document, reading):
                        if isinstance(item, Place):
                            assembly.truncated = assembly.truncated or item
                        elif (raw := shape(item, shapes, late, reading.found)) is not None:
                            assembly.add(item.kind.read(raw, item.at, reading))
                        else:
                            reading.complete = reading.complete and item.kind.name != "Cluster"
            except Unreadable as broken:
                reading.found.extend(broken.diagnostics)
                reading.complete = False
            if late:
                texts = Texts(sources, [value.at for value in late])
                reading.found.extend(mistyped(value, texts.source(value.at)) for value in late)
        cluster, found = assembly.cluster(name, folder, complete=reading.complete)
    found = reading.found + found
    if cluster is None or any(finding.severity is Severity.ERROR for finding in found):
        raise Refused(tuple(found))
    return cluster, found


def _documents(path: str, data: bytes) -> Iterator[Document]:
    text = decode(path, data)
    return json_documents(path, data) if path.endswith(".json") else yaml_documents(path, text)
