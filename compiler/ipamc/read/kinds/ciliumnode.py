"""`cilium.io/v2 CiliumNode`: evidence of the blocks that a live node uses. Input, dumps and clusters are read by it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import CiliumNode
from ipamc.model.diagnostics import At
from ipamc.read.syntax.document import Keys
from ipamc.read.values import Foreign, ForeignMetadata, Values


class RawAllocation(Foreign):
    """An entry of `spec.ipam.pools.allocated`."""

    pool: str
    cidrs: list[str] | None = None


class RawNeeded(Foreign):
    """`needed` of a request."""

    ipv4_addrs: int | None = field(name="ipv4-addrs", default=None)
    ipv6_addrs: int | None = field(name="ipv6-addrs", default=None)


class RawRequest(Foreign):
    """An entry of `spec.ipam.pools.requested`."""

    pool: str
    needed: RawNeeded | None = None


class RawPools(Foreign):
    """`spec.ipam.pools`: multi-pool mode."""

    allocated: list[RawAllocation] | None = None
    requested: list[RawRequest] | None = None


class RawIpam(Foreign):
    """`spec.ipam`."""

    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    pools: RawPools | None = None
    pool: dict[str, object] | None = None
    """crd mode: single addresses, as keys."""


class RawAddress(Foreign):
    """An entry of `spec.addresses`."""

    type: str | None = None
    ip: str | None = None


class RawFamilies(Foreign):
    """`spec.health` and `spec.ingress`: addresses that Cilium itself has on the node."""

    ipv4: str | None = None
    ipv6: str | None = None


class RawSpec(Foreign):
    """`spec`."""

    ipam: RawIpam | None = None
    addresses: list[RawAddress] | None = None
    health: RawFamilies | None = None
    ingress: RawFamilies | None = None


class RawOwner(Foreign):
    """An entry of `metadata.ownerReferences`."""

    kind: str | None = None
    uid: str | None = None


class RawMetadata(ForeignMetadata):
    """`metadata`."""

    owner_references: list[RawOwner] | None = None


class RawOperatorStatus(Foreign):
    """`status.ipam.operator-status`."""

    error: str | None = None


class RawIpamStatus(Foreign):
    """`status.ipam`."""

    operator_status: RawOperatorStatus | None = field(name="operator-status", default=None)
    used: dict[str, object] | None = None


class RawStatus(Foreign):
    """`status`."""

    ipam: RawIpamStatus | None = None


class RawDocument(Foreign):
    """The document."""

    metadata: RawMetadata
    spec: RawSpec | None = None
    status: RawStatus | None = None


def read_cilium_node(raw: RawDocument, at: At, values: Values) -> Iterator[CiliumNode]:
    """Yield the CiliumNode with its blocks in the order of the document; one that is listed twice is one."""
    metadata, spec = raw.metadata, raw.spec or RawSpec()
    values.name(metadata.name, "CiliumNode", at, "metadata", "name")
    ipam, status = spec.ipam or RawIpam(), (raw.status or RawStatus()).ipam or RawIpamStatus()
    pools = ipam.pools or RawPools()
    here: Keys = ("spec", "ipam")
    allocated = [
        (block, values.text(entry.pool))
        for index, entry in enumerate(pools.allocated or ())
        for block in values.blocks(entry.cidrs or (), at, *here, "pools", "allocated", index, "cidrs")
    ]
    requested = [
        (values.text(entry.pool), needed.ipv4_addrs or 0, needed.ipv6_addrs or 0)
        for entry in pools.requested or ()
        for needed in (entry.needed or RawNeeded(),)
    ]
    single = values.addresses([(text, (*here, "pool", text)) for text in ipam.pool or ()], at)
    of_type: dict[str | None, list[tuple[str | None, Keys]]] = {}
    for index, entry in enumerate(spec.addresses or ()):
        of_type.setdefault(entry.type, []).append((entry.ip, ("spec", "addresses", index, "ip")))
    health = [
        (text, ("spec", name, key))
        for name, part in (("health", spec.health), ("ingress", spec.ingress))
        for key, text in ((("ipv4", part.ipv4), ("ipv6", part.ipv6)) if part else ())
    ]
    owners = [owner.uid for owner in metadata.owner_references or () if owner.kind == "Node" and owner.uid]
    yield CiliumNode(
        name=values.text(metadata.name),
        at=at,
        blocks=tuple(dict.fromkeys(values.blocks(ipam.pod_cidrs or (), at, *here, "podCIDRs"))),
        allocated=tuple(dict.fromkeys(allocated)),
        requested=tuple(requested),
        addresses=tuple(aggregated([Block(family, first, BITS[family]) for family, first in single])),
        used=values.addresses([(text, ("status", "ipam", "used", text)) for text in status.used or ()], at),
        internal_ips=values.addresses(of_type.get("CiliumInternalIP", ()), at),
        health_ips=values.addresses(health, at),
        node_ips=values.addresses(of_type.get("InternalIP", ()), at),
        owner_uid=owners[0] if owners else "",
        error=(status.operator_status or RawOperatorStatus()).error or "",
        deleting=bool(metadata.deletion_timestamp),
    )
