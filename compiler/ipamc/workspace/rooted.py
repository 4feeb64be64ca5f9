"""Paths below the root of a repository, as forges want them in reports."""

from __future__ import annotations

from pathlib import Path

from ipamc.workspace import git


class Rooted:
    """Paths below the root of the repository that we are in.

    A path outside of it is below the root of its own repository, or else below the working directory.
    """

    def __init__(self) -> None:
        here = _root(".")
        self._roots = [here] if here else []
        self._folders: dict[Path, Path] = {}

    def path(self, text: str) -> str:
        """Return a path below its root, with forward slashes; outside of all roots, the absolute path."""
        _, colon, below = text.partition(":")
        if colon and not Path(text).exists():  # REVISION:PATH, which is below the root already
            return below
        folder, name = Path(text).parent, Path(text).name
        if folder not in self._folders:
            self._folders[folder] = self._below(folder.resolve())
        return (self._folders[folder] / name).as_posix()

    def _below(self, folder: Path) -> Path:
        if not any(folder.is_relative_to(root) for root in self._roots) and (root := _root(str(folder))):
            self._roots.append(root)
        return next(
            (folder.relative_to(root) for root in (*self._roots, Path.cwd()) if folder.is_relative_to(root)),
            folder,
        )


def _root(folder: str) -> Path | None:
    top = git.root(folder)
    return Path(top).resolve() if top else None
