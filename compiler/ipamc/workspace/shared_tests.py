"""Tests that hold for several clusters: files named `tests` in the folder of all clusters."""

from __future__ import annotations

from pathlib import Path, PurePath, PurePosixPath

from ipamc.model.diagnostics import Diagnostic, Place
from ipamc.workspace import disk, safe_read

NAMES = tuple(f"tests{suffix}" for suffix in sorted(disk.SUFFIXES))
"""Only these names: other tools have files beside the clusters, too."""


def read(folder: str) -> tuple[dict[str, bytes], tuple[Diagnostic, ...]]:
    """Read the files beside a cluster's folder: bytes by path as the user would type it.

    The folder of all clusters is called `clusters`; beside a cluster elsewhere nothing is read. The second
    value is the findings about files that are no inputs: links, pipes, and what is too large.
    """
    from ipamc.read.rules import not_a_regular_file

    found: dict[str, bytes] = {}
    refused: list[Diagnostic] = []
    for path in paths(folder):
        try:
            data = safe_read.read(path)
        except safe_read.Irregular as problem:
            name = PurePath(path).name
            refused.append(not_a_regular_file(Place(path), name, problem.problem, problem.fix))
        else:
            if data is not None:
                found[path] = data
    return found, tuple(refused)


def paths(folder: str) -> list[str]:
    """Return where these files would be beside a cluster's folder; nowhere beside one that is not in `clusters`."""
    whole = PurePath(folder)
    parent = f"{folder}/.." if whole.name in {"", ".."} else whole.parent.as_posix()
    if Path(parent).resolve().name != disk.CLUSTERS:
        return []
    # A cluster may be called tests.yaml: then this is its folder.
    names = [PurePosixPath(parent, name).as_posix() for name in NAMES]
    return [path for path in names if Path(path).is_symlink() or not Path(path).is_dir()]
