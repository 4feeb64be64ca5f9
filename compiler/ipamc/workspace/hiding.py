"""What a branch can hide from who reviews it, from Flux and from Argo CD.

Files hide others, which a plan shows. A submodule is a folder of another repository, attributes make git
write other bytes than the commit has, and the work tree may differ from its commit: these are refused,
because a review, Flux and later plans read the commit.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from shlex import quote

from ipamc.model.diagnostics import count
from ipamc.workspace import disk, git, git_tree, safe_read, tree
from ipamc.workspace.clusters import below
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.git_run import must
from ipamc.workspace.inputs import shared_test_paths, source_paths
from ipamc.workspace.source import is_read

_IGNORES = re.compile(r"(?:.*/)?\.sourceignore", re.DOTALL).fullmatch
_OVERRIDES = re.compile(r"(?:.*/)?\.argocd-source(?:-[^/]*)?\.yaml", re.DOTALL).fullmatch
_GENERATED = ("linguist-generated", "linguist-vendored", "gitlab-generated")
_SHOWN = frozenset({"unset", "unspecified", "false"})


def hiding(top: str, commit: str) -> dict[str, str]:
    """Return what hides files since a commit, and how, by path below the repository's top.
    Flux leaves out what a `.sourceignore` lists; Argo CD builds with what an `.argocd-source.yaml` says. A
    forge folds away, or does not show, what an attribute calls generated or not to be compared. Attributes
    are looked at only if a `.gitattributes` differs. Up to three processes.
    """
    changed = git.changed(top, commit)
    there = [path for path in changed if os.path.lexists(PurePosixPath(top, path))]
    found = {path: "Flux skips the files that it lists" for path in there if _IGNORES(path)}
    found |= {path: "it changes what Argo CD builds" for path in there if _OVERRIDES(path)}
    if any(PurePosixPath(path).name == ".gitattributes" for path in changed):
        before = set(_attributes(top, "--source", commit))
        more = [each for each in _attributes(top, "--cached") if each not in before]
        found |= {path: f"it has the attribute {name}" for path, name in more}
    return found


def about(top: str, folder: str, paths: Collection[str]) -> Iterator[str]:
    """Yield those paths that concern a cluster: in its folder, or beside one of the folders that it is in."""
    own = f"{below(top, folder)}/" if paths else ""
    for path in paths:
        above = path.rpartition("/")[0]
        if not above or own.startswith(f"{above}/") or path.startswith(own):
            yield path


def _attributes(top: str, *how: str) -> Iterator[tuple[str, str]]:
    """Yield files below `clusters/`, each with an attribute that hides it. Git before 2.40 cannot tell the
    attributes of a commit: none. That rendered files are generated is what `ipamc init` writes.
    """
    files = [
        path for path in must(top, "ls-files", "-z").text.split("\0") if disk.CLUSTERS in path.split("/")
    ]
    for path, name, value in git.attributes(top, files, ("diff", *_GENERATED), *how):
        generated = name in _GENERATED and value not in _SHOWN
        if (name, value) == ("diff", "unset") or (generated and f"/{disk.RENDERED}/" not in path):
            yield path, name if generated else "-diff"


BESIDE = ""
"""The key, in place of a cluster's name, for files beside the clusters' folders, such as shared tests."""

_CHANGE_BYTES = ("working-tree-encoding", "ident", "filter", "eol")
"""Attributes with which a checkout has other bytes than the blob; `text` may, by the user's configuration."""
_SAME_BYTES = frozenset({"unspecified", "unset"})


def files_of_head(top: str, where: str) -> dict[str, dict[str, git_tree.TreeEntry]]:
    """Return what HEAD has below the folder of the clusters: by cluster (or BESIDE), then by path.
    Raises EnvironmentFailure for a submodule there or in place of the folder: no `.gitmodules` of a branch
    can hide it.
    """
    try:
        listed = git_tree.listed(top, "HEAD", [where] if where else [], "-r")
    except EnvironmentFailure:
        if git.commit(top, "HEAD"):
            raise
        listed = {}  # a new branch without a commit
    within = f"{where}/" if where else ""
    found: dict[str, dict[str, git_tree.TreeEntry]] = {BESIDE: {}}
    for path, entry in listed.items():
        if entry.sort == git_tree.SUBMODULE:
            raise EnvironmentFailure(
                f"{path} is a submodule, so reviews of this repository do not show its files: "
                f"run git rm --cached {quote(path)} and commit the files"
            )
        name, slash, _ = path.removeprefix(within).partition("/")
        found.setdefault(name if slash else BESIDE, {})[path] = entry
    return found


def refuse_other_bytes(
    top: str, found: Mapping[str, Mapping[str, git_tree.TreeEntry]], names: Iterable[str]
) -> None:
    """Raise EnvironmentFailure where attributes change the bytes of some clusters between HEAD and a
    checkout. The attributes are those of git's index, which a checkout obeys: a file `.gitattributes` may
    change its own bytes on the disk. One process for all files.
    """
    entries = [item for name in (BESIDE, *names) for item in found.get(name, {}).items()]
    files = (path for path, entry in entries if entry.sort == git_tree.FILE)
    changed: dict[str, list[str]] = {}
    for path, name, value in git.attributes(top, files, _CHANGE_BYTES, "--cached"):
        if value not in _SAME_BYTES and (name, value) != ("eol", "lf"):
            changed.setdefault(name, []).append(f"{path} has the attribute {name}: {value}")
    for name, said in changed.items():
        more = f" (and {count(len(said) - 1, 'file')} more)" if said[1:] else ""
        raise EnvironmentFailure(
            f"{said[0]}{more}, so a checkout differs from the commit that Flux and later plans read: "
            "remove it from its .gitattributes, or add a last line to the one at the top: "
            f"{disk.CLUSTERS}/** !{name}"
        )


def refuse_other_files(found: Mapping[str, Mapping[str, git_tree.TreeEntry]], names: Iterable[str]) -> None:
    """Raise EnvironmentFailure unless the work tree has the files of some clusters as HEAD has them, byte for
    byte. The working directory is the repository's top. A deleted cluster has no files. Files that ipamc does
    not read are ignored. Every cluster of HEAD must be in the work tree. O(bytes); runs no process.
    """
    for name in found:
        folder = f"{disk.CLUSTERS}/{name}"
        if name != BESIDE and not name.startswith(".") and not disk.is_folder(folder):
            raise _missing(folder)
    shared = shared_test_paths(f"{disk.CLUSTERS}/any")
    _refuse_others(found[BESIDE], shared, filter(os.path.lexists, shared))
    for name in names:
        folder, own = f"{disk.CLUSTERS}/{name}", found.get(name, {})
        _refuse_one_name(own)
        _refuse_others(own, (path for path in own if is_read(path.removeprefix(f"{folder}/"))), _here(folder))


def _refuse_others(found: Mapping[str, git_tree.TreeEntry], read: Iterable[str], here: Iterable[str]) -> None:
    """Raise EnvironmentFailure unless the files to read are exactly those of the commit, byte for byte."""
    for path in filter(found.__contains__, read):
        if not os.path.lexists(path):
            raise _missing(path)
        blob = found[path].blob
        if found[path].sort == git_tree.LINK:
            data = os.fsencode(Path(path).readlink()) if Path(path).is_symlink() else None
        else:
            data = safe_read.read(path)
        if data is None or git_tree.name_of(data, blob) != blob:  # the name is the hash of the bytes
            raise EnvironmentFailure(
                f"{path} differs from HEAD, and only HEAD gets merged: commit your change, or run "
                f"git checkout HEAD -- {quote(path)}; if git converts line ends, first run "
                "git config core.autocrlf false"
            )
    if more := next((path for path in here if path not in found), ""):
        raise EnvironmentFailure(f"{more} is not in HEAD, and only HEAD gets merged: commit it or remove it")


def _missing(path: str) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"{path} is in HEAD, but not here: run git checkout HEAD -- {quote(path)}, or commit its deletion; "
        "after a sparse checkout: git sparse-checkout disable"
    )


def _here(folder: str) -> Iterator[str]:
    """Yield the paths of all files that a run reads of a cluster."""
    if not disk.is_folder(folder):
        return
    yield from source_paths(folder)
    if os.path.lexists(disk.lock_path(folder)):
        yield disk.lock_path(folder)
    yield from map(Path.as_posix, tree.leaves(folder))


def _refuse_one_name(paths: Iterable[str]) -> None:
    """Raise EnvironmentFailure for two names that a disk treats as one: it ignores case, or normalizes
    accents.
    """
    waiting = set(paths)
    known: dict[str, str] = {}
    while waiting:  # the files, then the folders that they are in, and so on
        for path in sorted(waiting):
            one = known.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
            if one != path:
                first, second = sorted((one, path))
                ignores = "ignores case and the form of accents (macOS, Windows)"
                raise EnvironmentFailure(
                    f"{first} and {second} are the same on a disk that {ignores}: rename one of them"
                )
        waiting = {above for path in waiting if (above := path.rpartition("/")[0])}
