"""The index of an address space: the ranges of each member, one per line; and the ranges given to pools.

JSON Lines in canonical form: a header; a line for each member with a ClusterMesh id or name, by cluster; then
CIDRs by family, address and cluster. It is derived from the members and the lock of the space, so that a
check of one cluster reads only its own folder and this file, and no neighbour. The check of the space proves
that it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from ipamc.model.address_sets import outermost
from ipamc.model.cidr import Block, CidrError, Range, parse_block, parse_either
from ipamc.model.cluster import Cluster, PoolFamily
from ipamc.model.wording import shown

_FORMAT = 1
_strange = re.compile(r"[^A-Za-z0-9./-]").search
_asks = re.compile(rb"""\bfrom["']?\s*:""").search
_ADDRESS = re.compile(
    rb"(?:[0-9]+\.){3}[0-9]+(?:/[0-9]+)?|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:/[0-9]+)?"
)
_HIDDEN_TEXT = re.compile(rb"[\\!\0]|CiliumNode")
"""Escapes, tags and another encoding hide an address; which of a CiliumNode counts, Nodes say too."""
is_inventory = re.compile(
    rb'\s*\{\s*(?:"apiVersion"\s*:\s*"ipamc/v1alpha1"\s*,\s*)?"kind"\s*:\s*"NodeInventory"'
).match
"""Whether a file in JSON that begins so has nothing but entries of nodes, or is refused."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    index: int
    space: str


class IndexLine(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False, kw_only=True
):
    """A CIDR of a cluster: a range of a pool, or a block of a node outside every pool. Or, without a CIDR,
    the cluster's identity in ClusterMesh.
    """

    cidr: str = ""
    cluster: str
    pool: str = ""
    node: str = ""
    range: int = 0
    """The number of a range that the space gave to the pool, from 1; 0: the pool's own range."""
    pending: bool = False
    """The range will replace the one with this number, by a renumber in the space."""
    cluster_id: int = msgspec.field(name="clusterID", default=0)
    cluster_name: str = msgspec.field(name="clusterName", default="")


_HEADER, _ENCODER = msgspec.json.Decoder(_Header), msgspec.json.Encoder()
_LINES = msgspec.json.Decoder(list[IndexLine])


class Index(msgspec.Struct, frozen=True):
    """The lines of an index, with their blocks; None for a line without a CIDR."""

    space: str
    lines: tuple[tuple[Block | None, IndexLine], ...]

    def of(self, cluster: str) -> tuple[IndexLine, ...]:
        """Return the lines of a cluster. O(lines)."""
        return tuple([line for _, line in self.lines if line.cluster == cluster])

    def others(self, cluster: str) -> tuple[Block, ...]:
        """Return all addresses of the other clusters, by address. O(n log n)."""
        return tuple(outermost(block for block, line in self.lines if block and line.cluster != cluster))


def dump_index(space: str, lines: Iterable[IndexLine]) -> str:
    """Return the canonical text. O(n log n)."""
    return _text(space, sorted(map(_with_block, lines), key=_order))


def _text(space: str, lines: Iterable[tuple[Block | None, IndexLine]]) -> str:
    return _ENCODER.encode_lines((_Header(_FORMAT, space), *(line for _, line in lines))).decode()


def _with_block(line: IndexLine) -> tuple[Block | None, IndexLine]:
    return parse_block(line.cidr, pods=False) if line.cidr else None, line


def _order(entry: tuple[Block | None, IndexLine]) -> tuple[Block, str, str, str]:
    block, line = entry
    return block or Block(0, 0, 0), line.cluster, line.pool, line.node


def space_of(path: str) -> str:
    """Return the address space of an index: the name of its folder, whatever the index says."""
    return path.split("/")[-3]


@lru_cache(maxsize=4)
def load_index(text: bytes, space: str) -> Index | str:
    """Return the index of a space, or the error in its text. Some 3 ms for 1,000 lines, once."""
    if not text:
        return "it is empty"
    row, _, body = text.partition(b"\n")
    try:
        header = _HEADER.decode(row)
        found = _LINES.decode(b"[" + body[:-1].replace(b"\n", b",") + b"]")
        if header.index != _FORMAT:
            return f"format {header.index} is unknown: this version of ipamc reads format {_FORMAT}"
        lines = tuple(map(_with_block, found))
    except CidrError as problem:
        return problem.reason
    except ValueError:  # msgspec's errors are ValueErrors
        return "a line is not an object of an index: a conflict marker or an edit"
    if header.space != space:
        return f"it names address space {shown(header.space)}"
    names = {name for line in found for name in (line.cluster, line.pool, line.node)}
    if _strange("".join(names)) or _text(header.space, sorted(lines, key=_order)).encode() != text:
        return "it is not as ipamc writes it"
    return Index(header.space, lines)


def with_ranges(cluster: Cluster, indexes: Mapping[str, Index], beside: tuple[str, ...]) -> Cluster:
    """Return a cluster whose pools have the ranges that address spaces gave them, in order of their numbers;
    that of its services is excluded, too.
    `beside` are all spaces with an index. A range that will replace another comes after it. Pools that
    request fewer ranges than they have use the first ones.
    """
    given: dict[tuple[str, str], list[tuple[int, bool, Block]]] = {}
    for name, index in indexes.items():
        for block, line in index.lines:
            if line.cluster == cluster.name and line.range and block:
                given.setdefault((name, line.pool), []).append((line.range, line.pending, block))

    def served(name: str, part: PoolFamily) -> PoolFamily:
        if (ask := part.ask) is None:
            return part
        found = sorted(given.get((ask.space, name), ()))
        mine = [block for number, _, block in found if block.family == part.family and number <= ask.ranges]
        ranges = tuple(Range(block, ask.at) for block in mine)
        return replace(part, ranges=ranges, ask=replace(ask, beside=beside))

    pools = [
        replace(pool, families={family: served(pool.name, part) for family, part in pool.families.items()})
        for pool in cluster.networks
    ]
    services = pools.pop() if cluster.services else None
    excluded = (*cluster.excluded, *(services.ranges if services else ()))
    return replace(cluster, pools=tuple(pools), services=services, excluded=excluded)


def may_ask(data: bytes) -> bool:
    """Return whether a file may have a pool that asks an address space. Misses escaped keys."""
    return b"from" in data and _asks(data) is not None  # the first is 10 times as fast


def may_mention(data: bytes, block: Block) -> bool:
    """Tell whether a file may have an address of a block, or a CIDR over it. It is searched, not parsed."""
    if not data.isascii() or _HIDDEN_TEXT.search(data):
        return True
    for text in map(bytes.decode, set(_ADDRESS.findall(data))):
        try:
            if parse_either(text).overlaps(block):
                return True
        except CidrError:
            return True
    return False
