"""What a word names that is in the wrong place: a cluster, a node, a pool. Asked where a command line is refused."""

from __future__ import annotations

import json

from ipamc.workspace.trouble import Trouble


def cluster_of(word: str) -> str:
    """Return the cluster that a word names: by its name, its folder, or a file in it; "" without one."""
    from pathlib import PurePath

    from ipamc.workspace.clusters import known_names

    names = known_names()
    parts = PurePath(word).parts
    return next((part for part in reversed(parts) if part in names), "")


def in_locks(word: str) -> list[tuple[str, str]]:
    """Return ("node" or "pool", cluster) for every lock that has a node or a pool of this name."""
    from ipamc.workspace import disk
    from ipamc.workspace.clusters import name_of

    found: list[tuple[str, str]] = []
    try:
        for folder in disk.clusters():
            text = disk.read_lock(folder) or b""
            found += [
                (kind, name_of(folder))
                for kind in ("node", "pool")
                if f'"{kind}":{json.dumps(word)}'.encode() in text
            ]
    except (Trouble, OSError):
        pass
    return found
