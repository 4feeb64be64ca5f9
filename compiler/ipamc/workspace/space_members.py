"""The clusters of an address space, as folders: all whose addresses count for who looks for free ones."""

from __future__ import annotations

from collections.abc import Iterable

from ipamc.workspace import disk
from ipamc.workspace.clusters import name_of
from ipamc.workspace.neighbours import beside, survey_of


def members(folders: Iterable[str], space: str) -> list[str]:
    """Return the folders of an address space among those beside some folders, in order of name.

    A cluster that cannot be read is among them unless it is known to be of another space: whoever reads it
    next finds what is wrong with it.
    """
    from ipamc.address_space import Unread

    every = {disk.identity(folder): folder for folder in (*beside(folders), *folders)}
    found = []
    for folder in every.values():
        surveyed = survey_of(folder)
        if surveyed and (surveyed.space == space or (isinstance(surveyed, Unread) and not surveyed.space)):
            found.append(folder)
    return sorted(found, key=lambda folder: (name_of(folder), folder))
