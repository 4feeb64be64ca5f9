"""What a target is given, and what it gives: the plan cut into shards, and files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ipamc.model.cidr import Block
from ipamc.model.cluster import Node
from ipamc.model.lock import Line
from ipamc.model.plan import Plan, Want

LONGEST = 200
"""Characters of a node's name that a file may be called by."""


class File(NamedTuple):
    """A file to be: one render of one template."""

    path: str
    """Below `rendered/`."""
    template: str
    """The template's file name."""
    values: Mapping[str, object]
    """Text, whole numbers and truth values, in tuples; every one is quoted as it is written."""
    applied: bool = True
    """The kustomization of its folder names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The plan, and which nodes stand in which shard."""

    plan: Plan
    shards: tuple[tuple[str, tuple[Want, ...]], ...]
    """Nodes by name in shards by name; no shard is empty."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, by family and address. Without blocks that lie outside every pool, and in the modes that write a node's blocks into one
    object without the nodes that have such blocks: half an object is worse than none."""
    coming: Mapping[str, tuple[Line, ...]]
    """The same as it will be once pending lines are live, for the nodes of the inventory that have some; by name."""
    masks: Mapping[int, int]
    """In cluster-pool mode: the longest prefix in use, by family of the cluster."""

    def renumbered(self) -> Iterator[tuple[Node, tuple[Line, ...]]]:
        """Yield the nodes that are being renumbered, by name, with their lines to come."""
        if self.coming:
            for node in self.plan.cluster.nodes:
                if node.name in self.coming:
                    yield node, self.coming[node.name]


class Target(NamedTuple):
    """A kind of manifest."""

    name: str
    """The module's, and the template's."""
    files: Callable[[Layout], Iterator[File]]


def renumber_path(node: str) -> str:
    """Give the file, in no kustomization, that shows a node's object with its pending blocks.

    A node's name may have 253 characters and a file's 255 bytes, of which writing beside and renaming needs some: a longer name is cut, and told apart by
    the first 8 bytes of its SHA-256.
    """
    if len(node) > LONGEST:
        node = f"{node[:LONGEST]}-{hashlib.sha256(node.encode()).hexdigest()[:16]}"
    return f"renumber/{node}.yaml"


def texts(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Print blocks."""
    return tuple([str(block) for block in blocks])
