"""The parts of `rendered/`: folders that build and apply alone, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable

FIRST = "cilium"
"""The part that is applied before all others."""
KINDS = ("pools", "nodes", "ciliumnodes")
"""Folders of shards, in the order of application."""

_PART = re.compile(rf"{FIRST}|(?:{'|'.join(KINDS)})/[0-9a-f]{{3,8}}").fullmatch


def is_part(text: str) -> bool:
    """Return whether a path below `rendered/` is that of a part."""
    return _PART(text) is not None


def parts(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the parts among paths below `rendered/`: `cilium`, pools, nodes, ciliumnodes, each by shard."""
    return tuple(
        sorted(
            filter(is_part, set(paths)),
            key=lambda path: ((FIRST, *KINDS).index(path.partition("/")[0]), path),
        )
    )
