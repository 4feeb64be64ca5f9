"""Members of an address space: the addresses of each cluster, and the requests of its pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Place


class Ask(Struct, frozen=True, kw_only=True):
    """A pool's request to an address space in one family, instead of CIDRs of its own."""

    space: str
    prefix: int = 0
    """Prefix length of each range; 0: the space's."""
    ranges: int = 1
    """The number of requested ranges."""
    beside: tuple[str, ...] = ()  # the address spaces that have an index beside the cluster
    at: Place


class Prefix(Struct, frozen=True, kw_only=True):
    """A CIDR that belongs to a cluster, and its place in the input."""

    block: Block
    at: At
    owner: str  # the pool of a range, else the node that has the block
    state: str = ""  # held, pending or quarantined; "" for a range
    number: int = 0  # of a range that an address space gave, from 1; 0: the pool's own
    moving: bool = False  # it will replace the range with this number

    def __str__(self) -> str:
        return f"{self.block} of node {self.owner}" if self.state else f'{self.block} of pool "{self.owner}"'


class Asked(Struct, frozen=True, kw_only=True):
    """The request of a cluster's pool to an address space, in one family."""

    pool: str
    family: int
    ask: Ask


class ClusterPrefixes(Struct, frozen=True, kw_only=True):
    """All addresses of a cluster, and the requests of its pools."""

    cluster: str
    space: str
    at: Place  # the place that names its address space
    prefixes: tuple[Prefix, ...]
    asks: tuple[Asked, ...] = ()
    labels: Mapping[str, str] = {}
    cluster_id: int = 0
    mesh_name: str = ""
    texts: Mapping[str, bytes] = {}
    """The files with its pools, by path: findings quote them."""


class Unread(Struct, frozen=True, kw_only=True):
    """A cluster that cannot be read and names, or may name, an address space."""

    cluster: str
    space: str  # "" if the name of the address space cannot be read either
    at: At
    problem: str


Surveyed = Sequence[ClusterPrefixes | Unread]
"""The members of an address space, and clusters that may be members, in order of folder."""


def node_name(cluster: str, pool: str, number: int) -> str:
    """Return the name of a pool's range as a node of a space; ranges count from 1."""
    return f"{cluster}/{pool}" if number == 1 else f"{cluster}/{pool}/{number}"


def range_of(node: str) -> tuple[str, str, int]:
    """Return the cluster, the pool and the number of a range: the inverse of `node_name`."""
    cluster, _, pool = node.partition("/")
    pool, _, number = pool.partition("/")
    return cluster, pool, int(number) if number.isdecimal() else 1
