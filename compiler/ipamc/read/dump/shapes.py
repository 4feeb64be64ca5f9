"""The fields of live objects that ipamc reads, as structs. A field of another type is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from ipamc.read.kinds import nodes
from ipamc.read.values import Foreign, ForeignMetadata


class Metadata(ForeignMetadata):
    """`metadata`."""

    namespace: str | None = None
    creation_timestamp: str | None = None


class _NodeMetadata(nodes.RawMetadata):
    annotations: dict[str, str | None] | None = None  # type: ignore[assignment]  # narrower
    creation_timestamp: str | None = None


class _Condition(nodes.RawCondition):
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class NodeInfo(Foreign):
    """`status.nodeInfo`."""

    kubelet_version: str | None = None
    operating_system: str | None = None


class NodeStatus(nodes.RawStatus):
    """`status` of a Node."""

    conditions: list[_Condition] | None = None  # type: ignore[assignment]  # narrower
    node_info: NodeInfo | None = None


class NodeSpec(nodes.RawSpec):
    """`spec` of a Node."""

    provider_id: str | None = field(name="providerID", default=None)
    unschedulable: bool | None = None
    taints: list[dict[str, Any]] | None = None


class Node(nodes.RawNode):
    """A Node, with the fields that only a dump has."""

    metadata: _NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class _PoolFamily(Foreign):
    cidrs: list[str] | None = None
    mask_size: int | None = None
    pool: list[dict[str, Any]] | None = None  # from `v2` on (cilium/cilium#46880)


class PoolSpec(Foreign):
    """`spec` of a CiliumPodIPPool."""

    ipv4: _PoolFamily | None = None
    ipv6: _PoolFamily | None = None


class _RenderedMetadata(Metadata):
    annotations: dict[str, str | None] | None = None


class Pool(Foreign):
    """A CiliumPodIPPool."""

    metadata: _RenderedMetadata
    spec: PoolSpec | None = None


class NodeConfigSpec(Foreign):
    """`spec` of a CiliumNodeConfig."""

    node_selector: dict[str, Any] | None = None
    defaults: dict[str, str] | None = None


class NodeConfig(Foreign):
    """A CiliumNodeConfig."""

    metadata: _RenderedMetadata
    spec: NodeConfigSpec | None = None


class Networking(Foreign):
    """`status.networking` of a CiliumEndpoint."""

    addressing: list[nodes.Families] | None = None
    node: str | None = None


class _EndpointStatus(Foreign):
    networking: Networking | None = None


class Endpoint(Foreign):
    """A CiliumEndpoint."""

    metadata: Metadata
    status: _EndpointStatus | None = None


class _Container(Foreign):
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None


class PodSpec(Foreign):
    """`spec` of a Pod."""

    node_name: str | None = None
    host_network: bool | None = None
    containers: list[_Container] | None = None


class PodIp(Foreign):
    """An address of a Pod."""

    ip: str | None = None


class PodStatus(Foreign):
    """`status` of a Pod."""

    phase: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    pod_ips: list[PodIp] | None = field(name="podIPs", default=None)
    start_time: str | None = None


_ASK = re.compile(
    r"cni\.projectcalico\.org/(ipv[46]pools|ipAddrs|floatingIPs)|ipam\.cilium\.io/ip(v[46])?-pool"
)


def asked(annotations: Mapping[str, str | None] | None) -> dict[str, str]:
    """Return the annotations by which a pod or namespace asks for its pool or address."""
    return {key: text for key, text in (annotations or {}).items() if text and _ASK.fullmatch(key)}


class Pod(Foreign):
    """A Pod. `ipamc dump` writes these fields but the annotations, so no other may be a secret."""

    metadata: _RenderedMetadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class BlockAttributes(Foreign):
    """An entry of `spec.attributes` of an IPAMBlock: the user of an address."""

    handle: str | None = field(name="handle_id", default=None)
    released_at: str | None = None
    """The pod is gone, and the address is not reused yet (`ipCooldownSeconds`)."""
    secondary: dict[str, str | None] | None = None


class _BlockSpec(Foreign):  # libcalico-go, lib/apis/v3/ipam_block.go
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
    spec: _BlockSpec


class _AffinitySpec(Foreign):  # lib/apis/v3/block_affinity.go; in some versions `deleted` is a text
    cidr: str
    node: str
    state: str | None = None
    type: str | None = None
    """`host` or nothing; `virtual` for load balancers."""
    deleted: bool | _Truth | None = None


class Affinity(Foreign):
    """A Calico BlockAffinity."""

    metadata: Metadata
    spec: _AffinitySpec


class _Variable(Foreign):
    name: str
    expression: str


class PolicySpec(Foreign):
    """`spec` of an admission policy."""

    variables: list[_Variable] | None = None


class Policy(Foreign):
    """An admission policy, or a binding of one."""

    metadata: _RenderedMetadata
    spec: PolicySpec | None = None


class Other(Foreign):
    """An object of another kind."""

    metadata: Metadata | UnsetType = UNSET


PARTS = re.compile(rb"^===\s*$", re.MULTILINE)
"""Separates the parts of an export of `calicoctl`."""
IPAM = 2
"""The index (from 0) of the part with Calico's IPAM, the last one."""

_Truth = Literal["", "1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"]
_AFFINITY = re.compile(r"/?calico/ipam/v2/([a-z]+)/([^/]+)/ipv[46]/block/([^/]+)-(\d+)").fullmatch
"""The key of an affinity: type, host, CIDR (libcalico-go, lib/backend/model/block_affinity.go)."""


class _Pair(Struct, rename={"key": "Key", "value": "Value"}):
    key: str
    value: dict[str, Any] | None = None


class Export(Struct):
    """The fields of Calico's IPAM that ipamc reads."""

    block_affinities: list[_Pair] = []
    blocks: list[_Pair] = []
    config: _Pair | None = None


def exported(export: Export) -> Iterator[dict[str, Any]]:
    """Yield the objects of an export in the form that `kubectl` prints for a cluster without etcd.
    `calicoctl datastore migrate export` prints the lists of `calicoctl get -o yaml`, the ClusterInformation
    as JSON, and Calico's IPAM as JSON, with lines of `===` between them; names of nodes are those of
    Kubernetes (calicoctl/commands/datastore/migrate/export.go, migrateipam.go).
    """

    def custom(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        version = "crd.projectcalico.org/v1"
        return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}

    for pair in export.blocks:
        yield custom("IPAMBlock", pair.key.rpartition("/")[2], pair.value or {})
    for pair in export.block_affinities:
        if found := _AFFINITY(pair.key):
            kind, host, address, prefix = found.groups()
            spec = {**(pair.value or {}), "type": kind, "node": host, "cidr": f"{address}/{prefix}"}
            yield custom("BlockAffinity", f"{host}-{address}-{prefix}", spec)
    if export.config:
        words = {"strict_affinity": "strictAffinity", "auto_allocate_blocks": "autoAllocateBlocks"}
        value = {words.get(key, key): member for key, member in (export.config.value or {}).items()}
        absent = dict.fromkeys(words.values(), False)  # etcd omits false fields
        yield custom("IPAMConfig", "default", absent | value)
