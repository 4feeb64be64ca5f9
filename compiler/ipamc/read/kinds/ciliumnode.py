"""`cilium.io/v2 CiliumNode`: the blocks that a live node uses. For inputs, dumps and live clusters."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import CiliumNode
from ipamc.model.diagnostics import At
from ipamc.read.syntax.document import Keys
from ipamc.read.values import Foreign, ForeignMetadata, Values


class _Allocation(Foreign):
    pool: str
    cidrs: list[str] | None = None


class _Needed(Foreign):
    ipv4_addrs: int | None = field(name="ipv4-addrs", default=None)
    ipv6_addrs: int | None = field(name="ipv6-addrs", default=None)


class _Request(Foreign):
    pool: str
    needed: _Needed | None = None


class _Pools(Foreign):
    allocated: list[_Allocation] | None = None
    requested: list[_Request] | None = None


class _Ipam(Foreign):
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    pools: _Pools | None = None
    pool: dict[str, object] | None = None
    """crd mode: single addresses, as keys."""


class _Address(Foreign):
    type: str | None = None
    ip: str | None = None


class _Families(Foreign):  # addresses of Cilium itself on the node
    ipv4: str | None = None
    ipv6: str | None = None


class RawSpec(Foreign):
    """`spec`."""

    ipam: _Ipam | None = None
    addresses: list[_Address] | None = None
    health: _Families | None = None
    ingress: _Families | None = None


class _Owner(Foreign):
    kind: str | None = None
    uid: str | None = None


class RawMetadata(ForeignMetadata):
    """`metadata`."""

    owner_references: list[_Owner] | None = None


class _OperatorStatus(Foreign):
    error: str | None = None


class _IpamStatus(Foreign):
    operator_status: _OperatorStatus | None = field(name="operator-status", default=None)
    used: dict[str, object] | None = None


class RawStatus(Foreign):
    """`status`."""

    ipam: _IpamStatus | None = None


class RawDocument(Foreign):
    """The document."""

    metadata: RawMetadata
    spec: RawSpec | None = None
    status: RawStatus | None = None


def read_cilium_node(raw: RawDocument, at: At, values: Values) -> Iterator[CiliumNode]:
    """Yield the CiliumNode with its blocks in the order of the document; one that is listed twice is one."""
    metadata, spec = raw.metadata, raw.spec or RawSpec()
    values.name(metadata.name, "CiliumNode", at, "metadata", "name")
    ipam, status = spec.ipam or _Ipam(), (raw.status or RawStatus()).ipam or _IpamStatus()
    pools = ipam.pools or _Pools()
    here: Keys = ("spec", "ipam")
    allocated = [
        (block, values.text(entry.pool))
        for index, entry in enumerate(pools.allocated or ())
        for block in values.blocks(entry.cidrs or (), at, *here, "pools", "allocated", index, "cidrs")
    ]
    requested = [
        (values.text(entry.pool), needed.ipv4_addrs or 0, needed.ipv6_addrs or 0)
        for entry in pools.requested or ()
        for needed in (entry.needed or _Needed(),)
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
        error=(status.operator_status or _OperatorStatus()).error or "",
        deleting=bool(metadata.deletion_timestamp),
    )
