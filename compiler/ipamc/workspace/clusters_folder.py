"""Where the folder of all clusters is: here, or above, so that a verb works in every folder of a repository.

Paths stay relative to the working directory, as what a user types is: findings, and commands to copy, name files as
they are reached from where the user stands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

NAME = "clusters"


def clusters_folder() -> str:
    """Return the path of `clusters/` from the working directory: `clusters`, `../clusters`, `.` inside of it.

    It is the one here, else the nearest above, up to the top of the work tree: a folder with `.git`, as in `links`.
    Outside of a work tree it is a folder of this name that we are in. One that belongs to another user than the
    working directory is passed over: in a folder where everybody may write, it would be a stranger's. Where there is
    none, it would be here.
    """
    if os.path.lexists(NAME):
        return NAME
    here = Path.cwd()
    found = next(_above(here), None)
    return Path(os.path.relpath(found, here)).as_posix() if found and _same_owner(found, here) else NAME


def folder_of(name: str) -> str:
    """Return the path of a cluster's folder in `clusters/`, which need not exist."""
    return Path(clusters_folder(), name).as_posix()


def _above(here: Path) -> Iterator[Path]:
    ways = [here, *here.parents]
    top = next((number for number, folder in enumerate(ways) if os.path.lexists(folder / ".git")), None)
    if top is None:
        yield from (folder for folder in ways if folder.name == NAME)
    else:
        yield from (folder / NAME for folder in ways[: top + 1] if (folder / NAME).is_dir())


def _same_owner(found: Path, here: Path) -> bool:
    try:
        return found.stat().st_uid == here.stat().st_uid
    except OSError:
        return False
