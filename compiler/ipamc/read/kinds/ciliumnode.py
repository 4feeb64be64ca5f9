"""`cilium.io/v2 CiliumNode`: evidence of the blocks that a live node uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import field

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import BITS, Block, CidrError, parse_address
from ipamc.model.cluster import CiliumNode
from ipamc.model.diagnostics import Place
from ipamc.read import rules
from ipamc.read.kinds.base import Foreign, ForeignMetadata
from ipamc.read.values import Reading


class RawAllocation(Foreign):
    """An entry of `spec.ipam.pools.allocated`."""

    pool: str
    cidrs: list[str] | None = None


class RawPools(Foreign):
    """`spec.ipam.pools`: multi-pool mode."""

    allocated: list[RawAllocation] | None = None


class RawIpam(Foreign):
    """`spec.ipam`."""

    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    pools: RawPools | None = None
    pool: dict[str, object] | None = None
    """crd mode: single addresses, as keys."""


class RawSpec(Foreign):
    """`spec`."""

    ipam: RawIpam | None = None


class RawCiliumNode(Foreign):
    """The document."""

    metadata: ForeignMetadata
    spec: RawSpec | None = None


def read_cilium_node(raw: RawCiliumNode, at: Place, reading: Reading) -> Iterator[CiliumNode]:
    """Yield the CiliumNode with its blocks in the order of the document; one that is listed twice is one."""
    reading.name(raw.metadata.name, "CiliumNode", at, "metadata", "name")
    ipam = (raw.spec or RawSpec()).ipam or RawIpam()
    here = at / "spec" / "ipam"
    allocated: list[tuple[Block, str]] = []
    for index, entry in enumerate((ipam.pools or RawPools()).allocated or []):
        blocks = reading.blocks(entry.cidrs or [], here, "pools", "allocated", index, "cidrs")
        allocated += [(block, entry.pool) for block in blocks]
    yield CiliumNode(
        name=raw.metadata.name,
        at=at,
        blocks=tuple(
            (block, "") for block in dict.fromkeys(reading.blocks(ipam.pod_cidrs or [], here, "podCIDRs"))
        ),
        allocated=tuple(dict.fromkeys(allocated)),
        addresses=_addresses(ipam.pool, here / "pool", reading) if ipam.pool else (),
    )


def _addresses(pool: Mapping[str, object], at: Place, reading: Reading) -> tuple[Block, ...]:
    """Return single addresses as the fewest aligned blocks. O(n log n)."""
    found: list[Block] = []
    for text in pool:
        try:
            family, number = parse_address(text)
        except CidrError as problem:
            reading.found.append(rules.not_cidr(at / text, problem.reason, problem.better))
        else:
            found.append(Block(family, number, BITS[family]))
    return tuple(aggregated(found))
