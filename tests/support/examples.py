"""Everything that the project's own clusters and cases compile to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from ipamc.model.cilium.versions import text
from ipamc.model.diagnostics import Refused
from ipamc.pipeline import Compilation, compile_cluster
from ipamc.workspace.source import Disk
from tests.support import casefile, depth

EVERY = sorted(path for path in (Path(__file__).parents[2] / "clusters").iterdir() if path.is_dir())
"""The folders of clusters, and of an address space."""
FOLDERS = [folder for folder in EVERY if (folder / "cluster.yaml").exists()]
NAMES = [folder.name for folder in FOLDERS]
"""Of the clusters."""
ALONE = [folder for folder in FOLDERS if "{from: " not in (folder / "ippools.yaml").read_text()]
"""The clusters that compile from their own files."""


@cache
def clusters() -> dict[str, Compilation]:
    """Compile every cluster, and the address space, by name."""
    return {
        folder.name: compile_cluster(replace(Disk().inputs(str(folder)), today="2026-11-21"))
        for folder in EVERY
    }


@cache
def cases() -> dict[str, Compilation]:
    """Compile every case that is not one of a refusal, rows of the version table for each minor; by name. `make test`: every third."""
    found = {}
    for name in casefile.names()[:: 1 if depth.ALL else 3]:
        case = casefile.load(name)
        for version, each in case.each.items() or ((None, case),):
            try:
                minor = f" {text(version)}" if version else ""
                found[f"{name}{minor}"] = compile_cluster(casefile.inputs(each))
            except Refused:
                continue
    return found


def everything() -> dict[str, Compilation]:
    """Return both."""
    return {**clusters(), **cases()}
