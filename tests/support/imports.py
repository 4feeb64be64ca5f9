"""Imports in memory: objects of a running cluster in, files and a compile of them out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ipamc.importing.bring_in import Imported, Options, bring_in
from ipamc.model.dump import Dump
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from ipamc.read.dump.read import read_dump
from ipamc.workspace.disk import assets
from tests.support import dumps

DAY = "2026-11-22"
NAME = "lab"
FOLDER = f"clusters/{NAME}"
SCHEMAS, TEMPLATES = assets("schemas"), assets("templates")


def dump_of(objects: Iterable[dumps.Object]) -> Dump:
    """Read objects as kubectl prints them."""
    found, _ = read_dump([("dump.json", [dumps.kubectl(*objects).encode()])], every=True)
    return found


def imported(objects: Iterable[dumps.Object], **options: Any) -> Imported:
    """Import objects as the cluster `lab`, by default of Cilium 1.15 of Helm."""
    return bring_in(NAME, dump_of(objects), Options(**{"cilium": (1, 15), "managed_by": "helm", **options}))


def inputs(
    files: Mapping[str, str], lock: str | None = None, rendered: Mapping[str, str] | None = None
) -> Inputs:
    """Return what a compile of these files reads, after one that made this lock and these files."""
    return Inputs(
        name=NAME,
        folder=FOLDER,
        sources={f"{FOLDER}/{path}": text.encode() for path, text in sorted(files.items())},
        lock_path=f"{FOLDER}/ipam.lock",
        lock=None if lock is None else lock.encode(),
        rendered=rendered is not None,
        published={path: text.encode() for path, text in (rendered or {}).items()},
        schemas=SCHEMAS,
        templates=TEMPLATES,
        today=DAY,
    )


def compiled(files: Mapping[str, str], before: Compilation | None = None) -> Compilation:
    """Compile files, after an earlier compile of this cluster."""
    if before is None:
        return compile_cluster(inputs(files))
    return compile_cluster(inputs(files, before.lock, before.files))


def held(compilation: Compilation) -> dict[str, list[str]]:
    """Return the blocks that the lock gives to each node, as texts, by address."""
    found: dict[str, list[str]] = {}
    for line in compilation.plan.lock.lines:
        found.setdefault(line.node, []).append(str(line.block))
    return found
