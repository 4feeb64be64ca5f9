"""The values around a target: a layout (the plan divided into shards) in, files out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ipamc.model.cidr import Block
from ipamc.model.lock import Line
from ipamc.model.plan import Plan, Want
from ipamc.model.pool_ranges import Published


@dataclass(frozen=True, slots=True)
class File:
    """A file to write: one render of one template."""

    path: str
    """Below `rendered/`."""
    template: str
    """The template's file name."""
    values: Mapping[str, object]
    """Texts, integers and truth values, in tuples; each is quoted when it is written."""
    applied: bool = True
    """The kustomization of its folder lists it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The plan, and which nodes are in which shard."""

    plan: Plan
    published: Published
    """What an earlier compile rendered."""
    shards: tuple[tuple[str, tuple[Want, ...]], ...]
    """Shards by name with nodes by name; no shard is empty."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, sorted by family and address, without blocks outside every pool. Pending ones
    are rendered nowhere: a node gets a block when the line is held, after it was drained. In modes that
    write all blocks of a node into one object, without the nodes that have such a block: an incomplete object
    is worse than none."""
    masks: Mapping[int, int]
    """In cluster-pool mode the longest prefix in use, by family of the cluster."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of manifest."""

    name: str
    """The name of the module and of the template."""
    files: Callable[[Layout], Iterator[File]]


def texts(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Return the texts of blocks."""
    return tuple([str(block) for block in blocks])
