"""Clusters as they were in a revision: read from git, without touching the work tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of
from ipamc.workspace.disk import Trouble

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs


def known(folder: str, revision: str) -> str:
    """Give the commit that a revision names in a folder's repository. Raises Trouble where git knows none."""
    from ipamc.workspace import git

    commit = git.commit(folder, revision)
    if commit is None:
        raise unknown(revision)
    return commit


def unknown(revision: str, more: str = "") -> Trouble:
    """Make the trouble with a revision that git does not know."""
    return Trouble(f"git knows no revision {revision!r} here: fetch it, or check its name{more}")


def is_below(top: str, folder: str) -> bool:
    """Tell whether a folder, which need not be there any more, is in the repository of this top folder."""
    return Path(folder).resolve().is_relative_to(Path(top).resolve())


def below(top: str, folder: str) -> str:
    """Give a folder's path below the repository's top, as git writes it. Raises Trouble where it is elsewhere."""
    if not is_below(top, folder):
        raise Trouble(f"{folder} is not in the git repository {top}: run ipamc once for each repository")
    return Path(folder).resolve().relative_to(Path(top).resolve()).as_posix()


def inputs_at(folder: str, revision: str) -> Inputs | None:
    """Give what a compile of this folder depended on in a revision; None where the revision has no such cluster. Raises Trouble as `tree_at` does."""
    tree = tree_at(folder, revision)
    return tree.inputs() if tree.files else None


def tree_at(folder: str, revision: str) -> Tree:
    """Read a cluster in a revision. Raises Trouble where there is no repository or no such revision."""
    from ipamc.workspace import git

    top = git.root(folder) or git.root(".")
    if top is None:
        raise Trouble(f"{folder} is not in a git repository")
    path = below(top, folder)
    files = {
        name.removeprefix(f"{path}/"): data
        for name, data in git.files(top, known(top, revision), path).items()
    }
    return Tree(name=name_of(folder), shown=f"{revision}:{path}", files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A cluster as it was."""

    name: str
    shown: str
    """Its folder as `REVISION:PATH`, which git understands."""
    files: Mapping[str, bytes]
    """Every file by path below its folder; none where the revision has no such cluster."""

    def inputs(self) -> Inputs:
        """Give what a compile depended on."""
        from ipamc.check.published import BINDING
        from ipamc.model.lock import Consent
        from ipamc.pipeline import Inputs

        return Inputs(
            name=self.name,
            folder=self.shown,
            sources={f"{self.shown}/{path}": data for path, data in self.files.items() if _is_source(path)},
            lock_path=f"{self.shown}/{disk.LOCK}",
            lock=self.files.get(disk.LOCK),
            rendered=any(path.startswith(f"{disk.RENDERED}/") for path in self.files),
            published={
                name: self.files[f"{disk.RENDERED}/{name}"]
                for name in BINDING
                if f"{disk.RENDERED}/{name}" in self.files
            },
            schemas=disk.assets("schemas"),
            templates=disk.assets("templates"),
            consent=Consent(),
            today="",
            locked=True,
        )

    def rendered(self) -> dict[str, bytes]:
        """Give the rendered tree by path below it: what ipamc writes."""
        within = f"{disk.RENDERED}/"
        found = {
            path.removeprefix(within): data for path, data in self.files.items() if path.startswith(within)
        }
        return {path: data for path, data in found.items() if not PurePosixPath(path).name.startswith(".")}


def _is_source(path: str) -> bool:
    """Tell whether `disk.read_sources` would read a file, by its path below the cluster's folder."""
    parts = PurePosixPath(path).parts
    return (
        PurePosixPath(path).suffix in disk.SUFFIXES
        and parts[0] != disk.RENDERED
        and not any(part.startswith(".") for part in parts)
    )
