"""The values around a target: the layout (a plan divided into shards) and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.lock import Line
from ipamc.model.plan import Plan, Want
from ipamc.read.rendered import Rendered

T = TypeVar("T")


class File(Struct, frozen=True):
    """A file to write: one rendering of one template."""

    path: str
    """Below `rendered/`."""
    template: str
    """The template's file name."""
    values: Mapping[str, object]
    """Texts, integers and booleans, in tuples; each is quoted when it is written."""
    applied: bool = True
    """The kustomization of its folder lists it."""


def kustomization(
    path: str, resources: Iterable[str], patches: Iterable[Mapping[str, str]] = (), *, component: bool = False
) -> File:
    """Return a kustomization; a component is applied by the user's kustomization that names it."""
    values = {
        "api": f"kustomize.config.k8s.io/{'v1alpha1' if component else 'v1beta1'}",
        "kind": "Component" if component else "Kustomization",
        "sort": "" if component else "fifo",  # see `arrange`
        "resources": tuple(resources),
        "patches": tuple(patches),
    }
    return File(path, "kustomization.yaml.j2", values, applied=not component)


class Lines(Struct, frozen=True):
    """Lines of printable ASCII with single spaces and without quotes: a text of CEL, in a block of YAML."""

    rows: tuple[str, ...]


class Layout(Struct, frozen=True, kw_only=True):
    """The plan, and the shard of each node."""

    plan: Plan
    before: Rendered
    """The output of an earlier compile."""
    shards: Sequence[str]
    """The name of the shard of each of the plan's wants, in their order."""
    held: Mapping[str, tuple[Line, ...]]
    """Held lines by node name, sorted by family and address, without blocks outside every pool. Pending ones
        are not rendered: a node gets a block when the line is held, after it was drained. In modes that
        write all blocks of a node into one object, nodes with such a block are omitted: an incomplete object
        is worse than none."""
    unmasqueraded: Sequence[Block] = ()
    """The CIDRs that pods reach with their own address, if `masquerade` requests it, by address."""
    masks: Mapping[int, int]
    """In cluster-pool mode the longest prefix in use, by family of the cluster."""

    def by_shard(self, make: Callable[[Want, tuple[Line, ...]], T | None]) -> Iterator[tuple[str, list[T]]]:
        """Yield each shard by name, with the result of `make` for the held lines of its nodes, by node name.
        Results that are None and empty shards are omitted. Nodes are processed in the order in which they
        were read: shard by shard, each is elsewhere in memory, and 100,000 of them took half as long again.
        """
        rows: dict[str, list[T]] = {shard: [] for shard in sorted(set(self.shards))}
        held = self.held
        for want, shard in zip(self.plan.wants, self.shards, strict=True):
            lines = held.get(want.node.name)
            if lines and (value := make(want, lines)) is not None:
                rows[shard].append(value)
        return ((shard, made) for shard, made in rows.items() if made)


def texts(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Return the texts of blocks."""
    return tuple([str(block) for block in blocks])
