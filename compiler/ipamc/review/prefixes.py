"""What a cluster has of an address space, prefix by prefix: for programs that manage the addresses of a company.

Only what is in ranges of pools or in lines of the lock: `excludedCIDRs` (service range, networks of nodes) are not
the cluster's to describe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from ipamc.model.address_sets import blocks_over, index_around, outermost, shared
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Diagnostic, Related, Span, error
from ipamc.model.evidence import Evidence
from ipamc.model.lock import Line, Lock, State

Kind = Literal["range", "held", "pending", "quarantined", "pinned", "reserved"]
"""What a prefix is. Released blocks are none: their addresses can be given out again, as free ones."""
KINDS = get_args(Kind)


class Prefix(Struct, frozen=True, kw_only=True):
    """A prefix of one cluster. Its address and length are its only key: no two of a cluster are the same."""

    block: Block
    kind: Kind
    cluster: str
    pool: str
    """"" of a block outside every pool."""
    words: str
    """What it is, for people; `range of /N blocks` first, where it is a whole range."""


def prefixes_of(cluster: Cluster, lock: Lock) -> tuple[Prefix, ...]:
    """Return the prefixes of a cluster by family and address, the larger one first. O(n log n).

    Of several things that one prefix is, a block of a node counts before a pin, a pin before what is reserved,
    and that before the range: a range may be as small as a block.
    """
    found: dict[Block, Prefix] = {}
    for prefix in (*_of_lines(cluster, lock), *_of_pins(cluster), *_reserved(cluster)):
        found.setdefault(prefix.block, prefix)
    for prefix in _ranges(cluster):
        inner = found.get(prefix.block)
        found[prefix.block] = replace(inner, words=f"{prefix.words} and {inner.words}") if inner else prefix
    return tuple(prefix for _, prefix in sorted(found.items()))


def _of_lines(cluster: Cluster, lock: Lock) -> Iterator[Prefix]:
    for line in lock.lines:
        if line.state is not State.RELEASED:
            kind, words = _described(line)
            yield Prefix(
                block=line.block,
                kind=kind,
                cluster=cluster.name,
                pool=line.pool,
                words=words,
            )
    lines = [line.block for line in lock.lines]
    for shown in Evidence(cluster).without_node():
        if index_around(lines, shown.block) is None:
            yield Prefix(
                block=shown.block,
                kind="held",
                cluster=cluster.name,
                pool=shown.pool,
                words=f"shown by CiliumNode {shown.node}",
            )


def _described(line: Line) -> tuple[Kind, str]:
    if line.state is State.HELD:
        return "held", f"held by {line.node}"
    if line.state is State.PENDING:
        return "pending", f"pending for {line.node}"
    return "quarantined", f"quarantined since {line.since} from {line.node}"


def _of_pins(cluster: Cluster) -> Iterator[Prefix]:
    for pool in cluster.pools:
        for node, pins in sorted(pool.pins.items()):
            for pin in pins:
                yield Prefix(
                    block=pin.block,
                    kind="pinned",
                    cluster=cluster.name,
                    pool=pool.name,
                    words=f"pinned for {node}",
                )


def _reserved(cluster: Cluster) -> Iterator[Prefix]:
    """Yield what is reserved of each pool: only addresses of its ranges."""
    for pool in cluster.pools:
        taken = outermost(cidr.block for cidr in pool.reserved)
        for part in pool.families.values():
            for cidr in part.ranges:
                for block in blocks_over(taken, cidr.block):
                    yield Prefix(
                        block=shared(block, cidr.block),
                        kind="reserved",
                        cluster=cluster.name,
                        pool=pool.name,
                        words="reserved",
                    )


def _ranges(cluster: Cluster) -> Iterator[Prefix]:
    for pool in cluster.pools:
        for part in pool.families.values():
            for cidr in part.ranges:
                yield Prefix(
                    block=cidr.block,
                    kind="range",
                    cluster=cluster.name,
                    pool=pool.name,
                    words=f"range of /{part.block_size} blocks",
                )


def same_in_two(block: Block, cluster: str, at: Span, other: str, there: Span) -> Diagnostic:
    """IPC0879: clusters whose prefixes are exported together share no address."""
    return error(
        "IPC0879",
        at,
        f"{block} of cluster {cluster} is also of cluster {other}",
        also=[Related(there, f"{other} has the same addresses")],
        help=f"export them one by one, each with its VRF: ipamc export netbox {cluster} --set vrf=NAME",
    )


def same_in_several(clusters: Sequence[tuple[str, Sequence[Prefix]]]) -> Iterator[Diagnostic]:
    """Yield a finding for the first address that a cluster shares with one before it. O(n log n).

    Clusters come as (folder, prefixes).
    """
    seen: list[tuple[str, Sequence[Prefix], list[Block]]] = []
    for folder, prefixes in clusters:
        mine = outermost(prefix.block for prefix in prefixes)
        for other, theirs, blocks in seen:
            met = next((block for block in mine if blocks_over(blocks, block)), None)
            if met is not None:
                yield same_in_two(met, prefixes[0].cluster, Span(folder), theirs[0].cluster, Span(other))
                break
        seen.append((folder, prefixes, mine))
