"""The fields of live objects that ipamc reads, as structs: what has another type is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from ipamc.read.kinds import nodes
from ipamc.read.values import Foreign, Text


class Metadata(Foreign):
    """`metadata`."""

    name: Text
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str | None] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class NodeMetadata(nodes.RawMetadata):
    """`metadata` of a Node."""

    annotations: dict[str, str | None] | None = None  # type: ignore[assignment]  # narrower
    creation_timestamp: str | None = None


class Condition(nodes.RawCondition):
    """An entry of `status.conditions`."""

    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class NodeInfo(Foreign):
    """`status.nodeInfo`."""

    kubelet_version: str | None = None


class NodeStatus(nodes.RawStatus):
    """`status` of a Node."""

    conditions: list[Condition] | None = None  # type: ignore[assignment]  # narrower
    node_info: NodeInfo | None = None


class NodeSpec(nodes.RawSpec):
    """`spec` of a Node."""

    provider_id: str | None = field(name="providerID", default=None)
    unschedulable: bool | None = None


class Node(nodes.RawNode):
    """A Node, with what only a dump tells."""

    metadata: NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


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


PARTS = re.compile(rb"^===\s*$", re.MULTILINE)
"""What stands between the parts of an export of `calicoctl`."""
IPAM = 2
"""The number of the part with Calico's IPAM, the last one; from 0."""

_AFFINITY = re.compile(r"/?calico/ipam/v2/([a-z]+)/([^/]+)/ipv[46]/block/([^/]+)-(\d+)").fullmatch
"""The key of an affinity: its type, its host, its CIDR (libcalico-go, lib/backend/model/block_affinity.go)."""


class Pair(Struct, rename={"key": "Key", "value": "Value"}):
    """A key of etcd, with its value."""

    key: str
    value: dict[str, Any] | None = None


class Export(Struct):
    """Calico's IPAM, as far as ipamc reads it."""

    block_affinities: list[Pair] = []
    blocks: list[Pair] = []
    config: Pair | None = None


def exported(export: Export) -> Iterator[dict[str, Any]]:
    """Yield the objects of an export as `kubectl` prints those of a cluster without etcd.

    `calicoctl datastore migrate export` prints the lists of `calicoctl get -o yaml`, the ClusterInformation as
    JSON, and Calico's IPAM as JSON, with lines of `===` between them
    (calicoctl/commands/datastore/migrate/export.go, migrateipam.go). Names of nodes are Kubernetes' ones already.
    """
    for pair in export.blocks:
        yield _object("IPAMBlock", pair.key.rpartition("/")[2], pair.value or {})
    for pair in export.block_affinities:
        if found := _AFFINITY(pair.key):
            kind, host, address, prefix = found.groups()
            spec = {**(pair.value or {}), "type": kind, "node": host, "cidr": f"{address}/{prefix}"}
            yield _object("BlockAffinity", f"{host}-{address}-{prefix}", spec)
    if export.config:
        yield _object("IPAMConfig", "default", _config(export.config.value or {}))


def _config(value: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the names of the custom resource; etcd leaves out what is false."""
    words = {"strict_affinity": "strictAffinity", "auto_allocate_blocks": "autoAllocateBlocks"}
    absent = dict.fromkeys(words.values(), False)
    return absent | {words.get(key, key): member for key, member in value.items()}


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "crd.projectcalico.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
