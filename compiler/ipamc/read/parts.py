"""Names of files in `rendered/` that ipamc reads, and its parts: folders that build and apply alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

ADMISSION = "admission"
"""The part with the admission policies, applied before all others."""
FIRST = "cilium"
"""The part that is applied before all shards."""
BEFORE_SHARDS = (ADMISSION, FIRST)
KINDS = ("pools", "nodes", "ciliumnodes")
"""Folders of shards, in the order of application."""
SEEDS = "seeds/"
"""The folder of CiliumNodes that people apply by hand: in no kustomization."""

KUSTOMIZATION = "kustomization.yaml"
POOLS = f"{FIRST}/ippools.yaml"
FLAGS = f"{FIRST}/configmap.yaml"
VALUES = f"{FIRST}/helm-values.yaml"
MASQ_AGENT = f"{FIRST}/ip-masq-agent.yaml"
NOT_APPLIED = (f"{FIRST}/component", f"{FIRST}/bgp")
"""Folders with Components for the user's own kustomization."""
BINDING = (POOLS, FLAGS, VALUES, KUSTOMIZATION)
"""Files with settings that a later compile cannot change."""

INDEX = "index.jsonl"
"""The only file of an address space."""
NODES = "nodes/"
"""The folder of shards of Nodes."""
OWN_POOLS = re.compile(r"pools/[^/]+/ippools\.yaml").fullmatch
"""Matches the files with the CiliumPodIPPools of single nodes."""

_PART = re.compile(rf"{ADMISSION}|{FIRST}|(?:{'|'.join(KINDS)})/[0-9a-f]{{3,8}}").fullmatch


def is_part(text: str) -> bool:
    """Return whether a path below `rendered/` is the folder of a part."""
    return _PART(text) is not None


def parts(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of files with a kustomization, in the order of application; shards by number."""
    found = {path.rpartition("/")[0] for path in paths if path.endswith(f"/{KUSTOMIZATION}")}
    return tuple(
        sorted(
            filter(is_part, found),
            key=lambda path: ((*BEFORE_SHARDS, *KINDS).index(path.partition("/")[0]), path),
        )
    )


def shards_of(parts: Iterable[str]) -> list[str]:
    """Return the parts that are shards."""
    return [part for part in parts if part not in BEFORE_SHARDS]


def is_looked_at(path: str) -> bool:
    """Return whether the next compile reads a file below `rendered/`, to know which blocks may be in use."""
    return path in (*BINDING, INDEX) or path.startswith(NODES) or OWN_POOLS(path) is not None
