"""Links on the way to a path: those inside the work tree, which a branch may have, are not followed.

Links above the top of the work tree (a home folder, /tmp on macOS) are the machine's own, and stay allowed.
The top is the nearest folder above that has `.git`, a file or a folder. Without one, what was typed counts of
a relative path, and of an absolute one only the path itself. git is not asked: it would read a configuration.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ipamc.workspace.trouble import Trouble


def link_on_the_way(folder: str) -> str:
    """Return the first link on the way to a cluster's folder, itself included, as typed; "" without one."""
    top, inside = _inside(folder)
    if top is None and Path(folder).is_absolute():
        inside = [Path(folder)]
    return next((path.as_posix() for path in reversed(inside) if path.is_symlink()), "")


def refuse_links(folder: str) -> None:
    """Raise Trouble where a cluster's folder is a link, or is behind one inside the work tree."""
    if link := link_on_the_way(folder):
        raise Trouble(
            f"{link} is a link, and ipamc neither reads nor writes a cluster through links: put the folder itself there, or remove the link"
        )


def refuse_way_out(path: str) -> None:
    """Raise Trouble where a file to write is in a folder behind a link that leaves the work tree."""
    top, inside = _inside(path)
    if top is None and Path(path).is_absolute():
        return
    whole = Path(top or ".").resolve()
    for folder in reversed(inside[1:]):
        if folder.is_symlink() and not _leads_below(folder, whole):
            raise Trouble(
                f"{folder.as_posix()} is a link that leaves {whole.as_posix()}, so {path} is not written: put a folder there"
            )


def _leads_below(link: Path, top: Path) -> bool:
    try:
        return link.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself, before Python 3.13
        return False


def _inside(path: str) -> tuple[Path | None, Sequence[Path]]:
    """Return the top of a path's work tree, and the path with the folders above it that are below the top.

    They are as typed, the deepest first. A top that is a link itself counts only where no other is above it:
    a link inside a work tree may lead to another one.
    """
    typed = Path(path)
    ways = [typed, *typed.parents]
    above = [*ways[1:], *(() if typed.is_absolute() else Path.cwd().parents)]
    tops = [folder for folder in above if os.path.lexists(folder / ".git")]
    top = next((folder for folder in tops if not folder.is_symlink()), tops[-1] if tops else None)
    return top, ways[: ways.index(top)] if top in ways else ways
