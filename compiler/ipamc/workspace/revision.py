"""Revisions of git and paths below a repository's top folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ipamc.model.wording import nearest
from ipamc.workspace import disk, git, git_tree
from ipamc.workspace.clusters_folder import clusters_folder
from ipamc.workspace.trouble import Trouble


def known(folder: str, revision: str) -> str:
    """Return the commit that a revision names in a folder's repository.

    Raises Trouble where git knows none.
    """
    commit = git.commit(folder, revision)
    if commit is None:
        raise unknown(folder, revision)
    return commit


def unknown(folder: str, revision: str, more: str = "") -> Trouble:
    """Return the Trouble with a revision that git does not know, and what to run."""
    remote, slash, branch = revision.partition("/")
    if revision == "HEAD":
        return Trouble(
            "nothing is committed here yet: git add --all && git commit --message start, and run this again"
        )
    if slash and remote in git.remotes(folder):
        way_out = f"git fetch {remote}, and run this again"
    elif near := branch if branch in (there := git.names_of_revisions(folder)) else nearest(revision, there):
        way_out = f"did you mean {near!r}?"
    elif slash:
        way_out = f"this clone has no remote {remote!r}; git branch --all lists the branches that it has"
    else:
        way_out = "fetch it, or check its name: git branch --all lists the branches"
    return Trouble(f"git knows no revision {revision!r} here: {way_out}{more}")


def is_below(top: str, folder: str) -> bool:
    """Tell whether a folder, which need not exist, is in the repository of this top folder.

    A link is where it is, and not where it leads to.
    """
    return disk.identity(folder).is_relative_to(Path(top).resolve())


def below(top: str, folder: str) -> str:
    """Return a folder's path below the repository's top, as git writes it; "" for the top itself.

    Raises Trouble where it is elsewhere.
    """
    if not is_below(top, folder):
        raise Trouble(f"{folder} is not in the git repository {top}: run ipamc once for each repository")
    path = disk.identity(folder).relative_to(Path(top).resolve())
    return path.as_posix() if path.name else ""


def clusters_below(top: str) -> str | None:
    """Return the path of the folder of the clusters below the repository's top; None where it is elsewhere."""
    folder = clusters_folder()
    return below(top, folder) if is_below(top, folder) else None


def require_top() -> None:
    """Raise Trouble where the working directory is inside a repository but not its top folder.

    The paths in pipelines begin at the top.
    """
    top = git.root(".")
    if top is not None and Path(top).resolve() != Path.cwd():
        raise Trouble(f"run this at the top of the repository: cd {top}")


@lru_cache(maxsize=64)
def folders_at(top: str, commit: str, path: str) -> tuple[str, ...]:
    """Return the names of the folders right below a path in a commit, in order.

    A commit never changes, so git is asked once.
    """
    return tuple(git_tree.folders(top, commit, path))


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
