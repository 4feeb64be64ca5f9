"""An imported cluster on the disk: its first files, a refresh of its inventory, and the age of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipamc.importing import rules
from ipamc.importing.refresh import Past
from ipamc.model.diagnostics import Refused, Span
from ipamc.model.dump import SLACK
from ipamc.workspace import disk, git
from ipamc.workspace.environment import utc
from ipamc.workspace.links import refuse_links
from ipamc.workspace.revision import below


def create(folder: str, files: Mapping[str, str]) -> list[str]:
    """Write the files of a new cluster; return those that were not there yet.

    Raises Refused, and writes nothing, where the folder has other inputs than these.
    """
    refuse_links(folder)
    ours = {f"{folder}/{name}": text.encode() for name, text in files.items()}
    if disk.is_folder(folder):
        sources, refused = disk.read_sources(folder)
        if refused:
            raise Refused(tuple(refused))
        if other := sorted(path for path, data in sources.items() if ours.get(path) != data):
            raise Refused(tuple(rules.there_already(Span(path), path) for path in other))
    return [path for path, data in ours.items() if disk.replace(path, data.decode())]


def update(folder: str, files: Mapping[str, str]) -> list[str]:
    """Write files of a cluster; return those that changed."""
    refuse_links(folder)
    return [path for name, text in files.items() if disk.replace(path := f"{folder}/{name}", text)]


def past_of(folder: str, inventories: Sequence[str]) -> Past:
    """Return when one of the inventories of a cluster was committed last; nothing outside of git, and where none was."""
    top = git.root(folder)
    if top is None:
        return Past()
    second = git.last_change(
        top, *(f"{below(top, folder)}{path.removeprefix(folder)}" for path in inventories)
    )
    if second is None:
        return Past()
    return Past(committed=utc(second), limit=utc(second - SLACK))
