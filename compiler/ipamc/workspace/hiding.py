"""Files of a branch that hide others: from reviewers, from Flux, and from Argo CD."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from ipamc.workspace import disk, git
from ipamc.workspace.git_run import must
from ipamc.workspace.source import below

_IGNORES = re.compile(r"(?:.*/)?\.sourceignore", re.DOTALL).fullmatch
_OVERRIDES = re.compile(r"(?:.*/)?\.argocd-source(?:-[^/]*)?\.yaml", re.DOTALL).fullmatch
_ATTRIBUTES = ".gitattributes"
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
    found = {path: "Flux applies nothing that it lists" for path in there if _IGNORES(path)}
    found |= {path: "Argo CD builds as it says" for path in there if _OVERRIDES(path)}
    if any(PurePosixPath(path).name == _ATTRIBUTES for path in changed):
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
