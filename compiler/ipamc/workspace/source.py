"""Clusters at one moment: on the disk, or in a commit. Verbs use both in the same way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ipamc.read.parts import BINDING, INDEX, is_looked_at
from ipamc.workspace import disk, tree
from ipamc.workspace.clusters import below, name_of, parent_of
from ipamc.workspace.committed import committed, is_deleted, lost_cluster, never_committed
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import (
    SHARED_TESTS,
    is_source,
    near_inputs,
    read_shared_tests,
    read_sources,
    source_paths,
)
from ipamc.workspace.spaces import indexes_beside, of_space, own_index, spaces_in

if TYPE_CHECKING:
    from ipamc.model.cluster import Version
    from ipamc.model.space import Surveyed
    from ipamc.pipeline import Inputs


class LockFile(Struct, frozen=True, kw_only=True):
    """The text of a lock (None: there is none), and its path for findings."""

    path: str
    text: bytes | None


class Disk(Struct, frozen=True):
    """The clusters as they are on the disk."""

    folders: tuple[str, ...] = ()
    """As the user would type them, in order of name; for a commit, only those that it has."""
    assume: Version | None = None  # the known minor to assume for a newer Cilium
    spaces: Mapping[str, Sequence[str]] = {}
    """The folders of address spaces by parent, where `fleet` looked for them."""
    absent: frozenset[str] = frozenset()  # paths of missing locks and Clusters that HEAD has not, either

    def only(self, folder: str) -> Disk:
        """Return the disk for a task of one cluster: the tasks of a fleet together are not its square."""
        return replace(self, folders=(), absent=self.absent & _started(folder))

    def has(self, folder: str) -> bool:
        """Return whether the folder exists."""
        return disk.is_folder(folder)

    def lock(self, folder: str) -> LockFile:
        """Read a cluster's lock. Raises EnvironmentFailure where it is a link."""
        return LockFile(path=disk.lock_path(folder), text=disk.read_lock(folder))

    def inputs(self, folder: str, *, rendered: bool = True) -> Inputs:
        """Read all of a compile but consent and day; not `rendered`: pools, lock. Raises Refused."""
        from ipamc.model.diagnostics import Refused
        from ipamc.pipeline import Inputs

        sources, refused = read_sources(folder)
        if not refused and f"{folder}/cluster.yaml" not in self.absent:  # refused files may have it
            refused = [*lost_cluster(folder, sources)]
        if refused:
            raise Refused(tuple(refused))
        shared, not_shared = read_shared_tests(folder) if rendered else ({}, ())
        lock = self.lock(folder)
        is_rendered = tree.is_there(folder)
        published = _published(folder) if rendered else {}
        if rendered and lock.text is not None and not is_rendered:
            within = f"{disk.RENDERED}/"
            found = committed(folder, [within + path for path in (*BINDING, INDEX)])
            published = _rendered(found)
        own = of_space(lock.text, sources)
        surveyed: Surveyed = ()
        if own and rendered:
            surveyed = _surveyed(folder, lock.text, self.spaces)
        return Inputs(
            name=name_of(folder),
            folder=folder,
            sources=sources,
            shared=shared,
            not_shared=not_shared,
            passed_over=near_inputs(folder) if rendered else (),
            lock_path=lock.path,
            lock=lock.text,
            rendered=is_rendered,
            lost=lock.text is None and self._lost_lock(folder),
            published=published,
            spaces=own_index(folder) if own else indexes_beside(folder, self.spaces),
            surveyed=surveyed,
            schemas=disk.assets("schemas"),
            templates=disk.assets("templates"),
            assume=self.assume,
        )

    def _lost_lock(self, folder: str) -> bool:
        return f"{folder}/{disk.LOCK}" not in self.absent and is_deleted(folder, disk.LOCK)

    def changed(self, inputs: Inputs) -> str:
        """Return a file other than the lock that has changed since it was read; "" if none has.
        The bytes are compared, not the times: two branches may be checked out within one tick of a clock.
        """
        path = folder = inputs.folder
        try:
            if new := set(source_paths(folder)) ^ inputs.sources.keys():
                return min(new)
            for path, data in inputs.sources.items():
                if not is_source(path, folder, data):
                    return path
            now_shared, _ = read_shared_tests(folder)
            if other := set(now_shared.items()) ^ set(inputs.shared.items()):
                return min(other)[0]
            path = f"{folder}/{disk.RENDERED}"
            if tree.is_there(folder) != inputs.rendered:
                return path
            now = _published(folder)
        except (EnvironmentFailure, OSError):
            return path
        found = set(now.items()) ^ set(inputs.published.items()) if inputs.rendered else set()
        return f"{path}/{min(found)[0]}" if found else ""

    def rendered(self, folder: str) -> Mapping[str, bytes]:
        """Read the files below a cluster's `rendered/`.
        Raises EnvironmentFailure for links and irregular files.
        """
        return tree.read(folder, tree.paths(folder))

    def beside(self, _: Mapping[str, bytes]) -> Disk:
        """Return self: reading the disk is as fast as comparing."""
        return self

    def day(self) -> str:
        """Return today's date, ISO 8601 in UTC."""
        from ipamc.workspace.environment import today

        return today()

    def record(self) -> Mapping[str, Mapping[str, str]]:
        """Return the fields that describe this moment in JSON output: none."""
        return {}


def fleet(folders: Sequence[str], assume: Version | None = None) -> Disk:
    """Return the disk with clusters, and what each of them asks of all folders, or of git: looked up once."""
    _surveyed_once.cache_clear()
    spaces = {parent: spaces_in(parent) for parent in set(map(parent_of, folders))}
    missing = [path for each in folders for path in _started(each) if not os.path.lexists(path)]
    absent = frozenset[str]()
    with suppress(EnvironmentFailure, OSError):  # it is reported with each cluster
        absent = never_committed(missing) if len(folders) > 1 and missing else absent
    return Disk(tuple(folders), assume=assume, spaces=spaces, absent=absent)


def _started(folder: str) -> frozenset[str]:
    return frozenset({f"{folder}/{disk.LOCK}", f"{folder}/cluster.yaml"})


class _GivenFiles(Struct, eq=False):
    """Files that the caller already has, by path below a cluster's folder, hashable as a key of a cache."""

    files: Mapping[str, bytes]


class Commit(Struct, frozen=True, kw_only=True):
    """The clusters in a commit, read by git without the work tree."""

    top: str  # the top folder of the repository
    revision: str  # for messages: what the user typed, or the commit of a date
    commit: str
    folders: tuple[str, ...]  # folders that the commit has, in order of name
    notes: tuple[str, ...] = ()
    """Lines for the user: the commit of a date, and the clusters that it does not have."""
    assume: Version | None = None
    spaces: Mapping[str, Sequence[str]] = {}  # none: of a commit git reads all files of a folder at once
    given: _GivenFiles | None = None

    def has(self, folder: str) -> bool:
        """Return whether the commit has files of a cluster.
        Raises EnvironmentFailure if it is in another repository.
        """
        return bool(self._files(folder))

    def lock(self, folder: str) -> LockFile:
        """Read a cluster's lock; with the first one, all locks of `folders`, in one process of git."""
        folders = self.folders if folder in self.folders else (folder,)
        path, text = _locks(self.top, self.commit, folders)[folder]
        return LockFile(path=f"{self.revision}:{path}", text=text)

    def inputs(self, folder: str, *, rendered: bool = True) -> Inputs:
        """Return a cluster's inputs and lock.
        Raises EnvironmentFailure where the commit has no such cluster.
        """
        from ipamc.pipeline import Inputs

        files = self._files(folder, rendered=rendered)
        if disk.LOCK not in files and not rendered:
            # Rendered files without a lock mean that the lock was lost.
            files = self._files(folder)
        if not files:
            raise EnvironmentFailure(f"{self.revision} has no files of {folder}")
        shown = f"{self.revision}:{below(self.top, folder)}"
        shared = _shared(self.top, self.commit, self.revision, parent_of(folder)) if rendered else {}
        return Inputs(
            name=name_of(folder),
            folder=shown,
            sources={f"{shown}/{name}": data for name, data in files.items() if _is_source(name)},
            shared=shared,
            lock_path=f"{shown}/{disk.LOCK}",
            lock=files.get(disk.LOCK),
            rendered=bool(_rendered(files)),
            published={path: data for path, data in _rendered(files).items() if is_looked_at(path)},
            spaces=_indexes(self.top, self.commit, self.revision, parent_of(folder)),
            schemas=disk.assets("schemas"),
            templates=disk.assets("templates"),
            locked=True,
            assume=self.assume,
        )

    def rendered(self, folder: str) -> Mapping[str, bytes]:
        """Return the files below a cluster's `rendered/`."""
        return _rendered(self._files(folder))

    def _files(self, folder: str, *, rendered: bool = True) -> Mapping[str, bytes]:
        return _files(self.top, self.commit, below(self.top, folder), self.given, rendered=rendered)

    def beside(self, files: Mapping[str, bytes]) -> Commit:
        """Return this commit with known files, which git need not read if their bytes are the same."""
        return replace(self, given=_GivenFiles(files))

    def day(self) -> str:
        """Return the day of the commit."""
        from ipamc.workspace import git
        from ipamc.workspace.environment import utc

        return utc(git.committed(self.top, self.commit)).partition("T")[0]

    def record(self) -> Mapping[str, Mapping[str, str]]:
        """Return the commit that was read, under the key `at`."""
        return {"at": {"revision": self.revision, "commit": self.commit}}


Source = Disk | Commit
"""Where clusters are read from, lazily. A commit caches the files of the last cluster, and the locks."""


def _rendered(files: Mapping[str, bytes]) -> dict[str, bytes]:
    within = f"{disk.RENDERED}/"
    return {path.removeprefix(within): data for path, data in files.items() if path.startswith(within)}


def _surveyed(folder: str, lock: bytes | None, spaces: Mapping[str, Sequence[str]]) -> Surveyed:
    from ipamc.workspace.survey import members_of, survey_members

    if (parent := parent_of(folder)) in spaces:
        return members_of(name_of(folder), _surveyed_once(parent))
    return survey_members(folder, lock)


@lru_cache(maxsize=1)
def _surveyed_once(parent: str) -> Mapping[str, Surveyed]:
    """Remember the survey of a run: S spaces and C clusters would take S surveys of C clusters."""
    from ipamc.workspace.survey import survey_all

    return survey_all(parent)


@lru_cache(maxsize=1)
def _files(
    top: str, commit: str, path: str, given: _GivenFiles | None, *, rendered: bool = True
) -> Mapping[str, bytes]:
    """Return files of a cluster by path below its folder; the last result is cached, as verbs ask again."""
    from ipamc.workspace import git_tree

    wanted = is_read if rendered else _is_not_rendered
    return MappingProxyType(git_tree.files(top, commit, path, wanted, given.files if given else {}))


@lru_cache(maxsize=1)
def _locks(top: str, commit: str, folders: tuple[str, ...]) -> Mapping[str, tuple[str, bytes | None]]:
    """Return the path and the text of each folder's lock. One process of git for all of them."""
    from ipamc.workspace import git_tree

    paths = {folder: (PurePosixPath(below(top, folder)) / disk.LOCK).as_posix() for folder in folders}
    texts = git_tree.blobs(top, commit, list(paths.values()))
    return MappingProxyType({folder: (path, texts.get(path)) for folder, path in paths.items()})


@lru_cache(maxsize=1)
def _indexes(top: str, commit: str, revision: str, parent: str) -> Mapping[str, bytes]:
    """Return the indexes in a commit of the address spaces that exist there."""
    from ipamc.workspace import git_tree

    paths = [below(top, space) + f"/{disk.RENDERED}/{INDEX}" for space in spaces_in(parent)]
    found = git_tree.blobs(top, commit, paths) if paths else {}
    return MappingProxyType({f"{revision}:{path}": text for path, text in found.items()})


@lru_cache(maxsize=1)
def _shared(top: str, commit: str, revision: str, parent: str) -> Mapping[str, bytes]:
    """Return the tests for all clusters in a commit."""
    from ipamc.workspace import git_tree

    where = below(top, parent)
    paths = [f"{where}/{name}" for name in SHARED_TESTS] if where.rpartition("/")[2] == disk.CLUSTERS else []
    found = git_tree.blobs(top, commit, paths) if paths else {}
    return MappingProxyType({f"{revision}:{path}": text for path, text in found.items()})


def _published(folder: str) -> Mapping[str, bytes]:
    """Read the rendered files that show which blocks may be in use."""
    return tree.read(folder, (*BINDING, INDEX, *tree.shards(folder)))


def is_read(path: str) -> bool:
    """Return whether a file is an input, the lock or rendered, by its path below the cluster's folder."""
    return PurePosixPath(path).parts[0] == disk.RENDERED or _is_not_rendered(path)


def _is_not_rendered(path: str) -> bool:
    """Return whether a file is an input or the lock, by its path below the cluster's folder."""
    return path == disk.LOCK or _is_source(path)


def _is_source(path: str) -> bool:
    """Return whether `read_sources` would read a file, by its path below the cluster's folder."""
    parts = PurePosixPath(path).parts
    return (
        PurePosixPath(path).suffix in disk.SUFFIXES
        and parts[0] != disk.RENDERED
        and not any(part.startswith(".") for part in parts)
    )
