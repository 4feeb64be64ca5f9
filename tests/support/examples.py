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

FOLDERS = sorted(path for path in (Path(__file__).parents[2] / "clusters").iterdir() if path.is_dir())
NAMES = [folder.name for folder in FOLDERS]
"""Of the clusters."""


@cache
def clusters() -> dict[str, Compilation]:
    """Compile every cluster, by name."""
    return {
        folder.name: compile_cluster(replace(Disk().inputs(str(folder)), today="2026-11-21"))
        for folder in FOLDERS
    }


@cache
def cases() -> dict[str, Compilation]:
    """Compile every case that is not one of a refusal, rows of the version table for each minor; by name. `make test`: every third."""
    found = {}
    for path in sorted(casefile.ROOT.rglob("*.txtar"))[:: 1 if depth.ALL else 3]:
        case = casefile.load(path)
        for version, each in case.each.items() or ((None, case),):
            try:
                found[
                    f"{path.relative_to(casefile.ROOT).as_posix()}{f' {text(version)}' if version else ''}"
                ] = compile_cluster(casefile.inputs(each))
            except Refused:
                continue
    return found


def everything() -> dict[str, Compilation]:
    """Return both."""
    return {**clusters(), **cases()}
