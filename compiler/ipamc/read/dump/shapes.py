"""The fields of live objects that ipamc reads, as structs: what has another type is refused by name."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from ipamc.read.kinds.base import Foreign, Text
from ipamc.read.kinds.ciliumnode import RawPools
from ipamc.read.kinds.node import RawAddress, RawAmounts


class Owner(Foreign):
    """An entry of `metadata.ownerReferences`."""

    kind: str | None = None
    uid: str | None = None


class Metadata(Foreign):
    """`metadata`."""

    name: Text
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str | None = None
    owner_references: list[Owner] | None = None


class Condition(Foreign):
    """An entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class NodeInfo(Foreign):
    """`status.nodeInfo`."""

    kubelet_version: str | None = None


class NodeStatus(Foreign):
    """`status` of a Node."""

    conditions: list[Condition] | None = None
    addresses: list[RawAddress] | None = None
    allocatable: RawAmounts | None = None
    capacity: RawAmounts | None = None
    node_info: NodeInfo | None = None


class NodeSpec(Foreign):
    """`spec` of a Node."""

    pod_cidr: str | None = field(name="podCIDR", default=None)
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    provider_id: str | None = field(name="providerID", default=None)
    unschedulable: bool | None = None


class Node(Foreign):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Needed(Foreign):
    """`needed` of a request."""

    ipv4_addrs: int | None = field(name="ipv4-addrs", default=None)
    ipv6_addrs: int | None = field(name="ipv6-addrs", default=None)


class Request(Foreign):
    """An entry of `spec.ipam.pools.requested`."""

    pool: str
    needed: Needed | None = None


class NodePools(RawPools):
    """`spec.ipam.pools` of a CiliumNode."""

    requested: list[Request] | None = None


class NodeIpam(Foreign):
    """`spec.ipam` of a CiliumNode."""

    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)
    pools: NodePools | None = None
    pool: dict[str, Any] | None = None


class TypedAddress(Foreign):
    """An entry of `spec.addresses` of a CiliumNode."""

    type: str | None = None
    ip: str | None = None


class CiliumNodeSpec(Foreign):
    """`spec` of a CiliumNode."""

    ipam: NodeIpam | None = None
    addresses: list[TypedAddress] | None = None


class OperatorStatus(Foreign):
    """`status.ipam.operator-status`."""

    error: str | None = None


class IpamStatus(Foreign):
    """`status.ipam` of a CiliumNode."""

    operator_status: OperatorStatus | None = field(name="operator-status", default=None)
    used: dict[str, Any] | None = None


class CiliumNodeStatus(Foreign):
    """`status` of a CiliumNode."""

    ipam: IpamStatus | None = None


class CiliumNode(Foreign):
    """A CiliumNode."""

    metadata: Metadata
    spec: CiliumNodeSpec | None = None
    status: CiliumNodeStatus | None = None


class PoolFamily(Foreign):
    """`spec.ipv4` or `spec.ipv6` of a CiliumPodIPPool."""

    cidrs: list[str] | None = None
    mask_size: int | None = None


class PoolSpec(Foreign):
    """`spec` of a CiliumPodIPPool."""

    ipv4: PoolFamily | None = None
    ipv6: PoolFamily | None = None


class Pool(Foreign):
    """A CiliumPodIPPool."""

    metadata: Metadata
    spec: PoolSpec | None = None


class NodeConfigSpec(Foreign):
    """`spec` of a CiliumNodeConfig."""

    node_selector: dict[str, Any] | None = None
    defaults: dict[str, str] | None = None


class NodeConfig(Foreign):
    """A CiliumNodeConfig."""

    metadata: Metadata
    spec: NodeConfigSpec | None = None


class EndpointAddresses(Foreign):
    """An entry of `status.networking.addressing`."""

    ipv4: str | None = None
    ipv6: str | None = None


class Networking(Foreign):
    """`status.networking` of a CiliumEndpoint."""

    addressing: list[EndpointAddresses] | None = None
    node: str | None = None


class EndpointStatus(Foreign):
    """`status` of a CiliumEndpoint."""

    networking: Networking | None = None


class Endpoint(Foreign):
    """A CiliumEndpoint."""

    metadata: Metadata
    status: EndpointStatus | None = None


class Container(Foreign):
    """A container."""

    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None


class PodSpec(Foreign):
    """`spec` of a Pod."""

    node_name: str | None = None
    host_network: bool | None = None
    containers: list[Container] | None = None


class PodIp(Foreign):
    """An entry of `status.podIPs`."""

    ip: str | None = None


class PodStatus(Foreign):
    """`status` of a Pod."""

    phase: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    pod_ips: list[PodIp] | None = field(name="podIPs", default=None)
    start_time: str | None = None


class Labels(Foreign):
    """`metadata`, as far as it says what a pod is."""

    labels: dict[str, str | None] | None = None


class Labelled(Foreign):
    """A Pod, as far as it says what it is."""

    metadata: Labels | None = None


class Pod(Foreign):
    """A Pod."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class BlockAttributes(Foreign):
    """An entry of `spec.attributes` of an IPAMBlock: who uses an address."""

    handle: str | None = field(name="handle_id", default=None)
    released_at: str | None = None
    """The pod has gone, and nobody gets the address yet (`ipCooldownSeconds`)."""
    secondary: dict[str, str | None] | None = None


class BlockSpec(Foreign):
    """`spec` of an IPAMBlock (libcalico-go, lib/apis/v3/ipam_block.go)."""

    cidr: str
    affinity: str | None = None
    """`host:NODE`; `virtual:…` of blocks of load balancers."""
    allocations: list[int | None] | None = None
    """An index into `attributes` for each address, by its number in the block; null: it is free."""
    attributes: list[BlockAttributes] | None = None
    deleted: bool | None = None


class CalicoBlock(Foreign):
    """A Calico IPAMBlock."""

    metadata: Metadata
    spec: BlockSpec


class AffinitySpec(Foreign):
    """`spec` of a BlockAffinity; `deleted` is a text in some versions (lib/apis/v3/block_affinity.go)."""

    cidr: str
    node: str
    state: str | None = None
    type: str | None = None
    """`host` or nothing; `virtual` for load balancers."""
    deleted: str | bool | None = None


class Affinity(Foreign):
    """A Calico BlockAffinity."""

    metadata: Metadata
    spec: AffinitySpec


class Other(Foreign):
    """An object of another kind."""

    metadata: Metadata | UnsetType = UNSET
