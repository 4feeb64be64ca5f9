"""The input files of a cluster on the disk, shared tests, and files that were perhaps meant as inputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from ipamc.model.diagnostics import Diagnostic, Place, Refused, Span
from ipamc.model.limits import FILE_HEAD, LARGEST_INPUTS
from ipamc.read import space_index
from ipamc.workspace import disk, safe_read
from ipamc.workspace.atomic_write import is_leftover
from ipamc.workspace.clusters import parent_of
from ipamc.workspace.disk import RENDERED, SUFFIXES
from ipamc.workspace.safe_read import Irregular, refuse_links

if TYPE_CHECKING:
    from ipamc.model.cidr import Block

SHARED_TESTS = tuple(f"tests{suffix}" for suffix in sorted(SUFFIXES))
"""The names of files with tests for all clusters, beside their folders. Other tools have files there, too."""

# Compiled where they are used: few runs need them.
_OBJECT = rb"""(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n|---[^\n]*\n|\{)*["']?(?:apiVersion|kind)["']?\s*:"""
_KIND = (
    rb"""\bkind["']?\s*:\s*["']?(Cluster|IPPool|ClusterCIDR|NodeInventory|Node|CiliumNode|Tests)(?:List)?\b"""
)
_PACKED = r"(?i)\.(?:ya?ml|json)\.(?:gz|bz2|xz|zst|zip)$"
_BACKUP = r"(?i)(?P<name>.*\.(?:yaml|yml|json))(?:\.(?:bak|orig|old|save|tmpl|txt|rej)|~)$"


def read_sources(folder: str) -> tuple[dict[str, bytes], list[Diagnostic]]:
    """Read every input file of a cluster: bytes by path as the user would type it, in order of path.
    Inputs are all `*.yaml`, `*.yml` and `*.json` below the folder, except `rendered/` and names that start
    with a dot. The second value has the findings about irregular files; if there is one, no bytes are
    returned. Raises EnvironmentFailure if the folder is behind a link.
    """
    found: dict[str, bytes] = {}
    refused: list[Diagnostic] = []
    total = 0
    for path in source_paths(folder):
        try:
            data = _read_source(path, folder)
            total += len(data)
            safe_read.refuse_excess(path, total)
        except Irregular as problem:
            refused.append(_no_input(path, problem))
            if total > LARGEST_INPUTS:
                break
        else:
            if not refused:
                found[path] = data
    return ({}, refused) if refused else (found, refused)


def source_paths(folder: str) -> list[str]:
    """Return the paths of all inputs of a cluster, sorted, including files that reading refuses."""
    refuse_links(folder)
    return sorted(path for path in _files(folder) if _is_candidate(path))


def may_mention(folder: str, block: Block) -> bool:
    """Tell whether an input of a cluster may have an address of a block, entries of nodes aside.
    Of a large file only the beginning is read. Raises EnvironmentFailure as `read_sources` does.
    """
    for path in source_paths(folder):
        data = safe_read.head(path, FILE_HEAD)
        small = 0 < len(data) < FILE_HEAD
        if not (space_index.is_inventory(data) or (small and not space_index.may_mention(data, block))):
            return True
    return False


def _read_source(path: str, folder: str) -> bytes:
    data = safe_read.read(_followed(path, folder))
    if data is None:
        raise Irregular(path, "was removed while it was read", "run it again")
    return data


def is_source(path: str, folder: str, data: bytes) -> bool:
    """Return whether an input file has these bytes, without loading it. Raises Irregular."""
    return safe_read.has(_followed(path, folder), data)


def _is_candidate(path: str) -> bool:
    return PurePath(path).suffix in SUFFIXES or Path(path).is_dir()


def _files(folder: str) -> Iterator[str]:
    """Yield the files below a cluster's folder that may be inputs, and links to folders."""
    top = PurePath(folder).as_posix()
    waiting = [top]
    while waiting:
        above = waiting.pop()
        with os.scandir(above) as entries:
            for entry in entries:
                if entry.name.startswith(".") or (above == top and entry.name == RENDERED):
                    continue
                path = entry.name if above == "." else f"{above}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                else:
                    yield path


def _followed(path: str, folder: str) -> str:
    """Return the path of an input, or of the file in the folder that it links to. Raises Irregular."""
    if not Path(path).is_symlink():
        return path
    try:
        target = Path(path).resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        raise Irregular(path, "is a link to nothing") from None
    if not target.is_relative_to(Path(folder).resolve()):
        raise Irregular(path, "is a link that leaves the cluster's folder")
    if target.is_dir():
        raise Irregular(path, "is a link to a folder")
    return target.as_posix()


def _no_input(path: str, problem: Irregular) -> Diagnostic:
    from ipamc.read.rules import not_a_regular_file

    return not_a_regular_file(Place(path), PurePath(path).name, problem.problem, problem.fix)


def read_shared_tests(folder: str) -> tuple[dict[str, bytes], tuple[Diagnostic, ...]]:
    """Read the SHARED_TESTS beside a cluster's folder by path, and findings about irregular files."""
    found: dict[str, bytes] = {}
    refused: list[Diagnostic] = []
    for path in shared_test_paths(folder):
        try:
            if (data := safe_read.read(path)) is not None:
                found[path] = data
        except Irregular as problem:
            refused.append(_no_input(path, problem))
    return found, tuple(refused)


def shared_test_paths(folder: str) -> list[str]:
    """Return possible paths of SHARED_TESTS beside a cluster's folder; none if not in `clusters`."""
    parent = parent_of(folder)
    if Path(parent).resolve().name != disk.CLUSTERS:
        return []
    # A cluster may be called tests.yaml: then this is its folder.
    paths = [PurePosixPath(parent, name).as_posix() for name in SHARED_TESTS]
    return [path for path in paths if Path(path).is_symlink() or not Path(path).is_dir()]


def near_inputs(folder: str) -> tuple[Diagnostic, ...]:
    """Return a warning for each file with objects that ipamc reads, whose name is not that of an input.
    Files without such objects are not named. Links are not followed, and only regular files are read. Reads
    the beginning of each file.
    """
    lock = disk.lock_path(folder)
    others = (Path(path) for path in _files(folder) if not _is_candidate(path) and path != lock)
    found = (_ignored(path) for path in sorted(others) if not is_leftover(path))
    return tuple(finding for finding in found if finding)


def _ignored(path: Path) -> Diagnostic | None:
    from ipamc.read.rules import not_an_input

    shown, name = path.as_posix(), ""
    if path.is_symlink():
        target = Path(os.readlink(path))  # noqa: PTH115 - it may lead nowhere
        if target.suffix not in SUFFIXES:
            return None
        what = f"is a link to {target.name}"
    elif re.search(_PACKED, path.name):
        what = "is packed"
    else:
        head = safe_read.head(shown, FILE_HEAD)
        kind = re.search(_KIND, head) if re.match(_OBJECT, head) else None
        if not kind:
            return None
        what, known = f"has a {kind[1].decode()}", re.match(_BACKUP, path.name)
        suffix = ".json" if head.lstrip().startswith(b"{") else ".yaml"
        name = known["name"] if known else path.with_suffix(suffix).name
    free = name and not os.path.lexists(path.with_name(name))
    better = f"{shown.removesuffix(path.name)}{name}" if free else ""
    return not_an_input(Place(shown), path.name, what, better)


def create_cluster(folder: str, files: Mapping[str, str]) -> list[str]:
    """Write a new cluster's files; return those that changed. Raises Refused first for other inputs."""
    from ipamc.importing.import_rules import there_already

    refuse_links(folder)
    ours = {f"{folder}/{name}": text.encode() for name, text in files.items()}
    if disk.is_folder(folder):
        sources, refused = read_sources(folder)
        if refused:
            raise Refused(tuple(refused))
        if other := sorted(path for path, data in sources.items() if ours.get(path) != data):
            raise Refused(tuple(there_already(Span(path), path) for path in other))
    return update_cluster(folder, files)


def update_cluster(folder: str, files: Mapping[str, str]) -> list[str]:
    """Write files of a cluster; return those that changed."""
    refuse_links(folder)
    return [path for name, text in files.items() if disk.replace(path := f"{folder}/{name}", text)]
