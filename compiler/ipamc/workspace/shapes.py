"""The shapes of Kubernetes objects, as far as ipamc reads them: checked once, where they come in.

Objects come from an apiserver, from kustomize and from files below `rendered/`, and people may have written
into all of them. What passes here may be read by plain look-ups; fields that no shape names may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ipamc.workspace.trouble import Trouble

Text = str | None
Texts = list[str] | None
Map = dict[str, str] | None


class Pool(msgspec.Struct):
    """`f:pool` of managed fields."""

    entries: dict[str, Any] | None = msgspec.field(default=None, name="f:pool")


class Ipam(msgspec.Struct):
    """`f:ipam` of managed fields."""

    ipam: Pool | None = msgspec.field(default=None, name="f:ipam")


class Fields(msgspec.Struct):
    """The managed fields of an object."""

    spec: Ipam | None = msgspec.field(default=None, name="f:spec")


class Manager(msgspec.Struct):
    """What one field manager owns."""

    manager: Text = None
    operation: Text = None
    fields: Fields | None = msgspec.field(default=None, name="fieldsV1")


class Metadata(msgspec.Struct):
    """The metadata of every object."""

    name: str
    namespace: Text = None
    uid: Text = None
    labels: Map = None
    annotations: Map = None
    version: Text = msgspec.field(default=None, name="resourceVersion")
    managed: list[Manager] | None = msgspec.field(default=None, name="managedFields")


class Named(msgspec.Struct):
    """An object of a kind of which only the metadata are read."""

    kind: str
    metadata: Metadata
    spec: dict[str, Any] | None = None


class NodeSpec(msgspec.Struct):
    """The spec of a Node."""

    pod_cidr: Text = msgspec.field(default=None, name="podCIDR")
    pod_cidrs: Texts = msgspec.field(default=None, name="podCIDRs")
    unschedulable: bool | None = None


class Node(Named):
    """A Node."""

    spec: NodeSpec | None = None  # type: ignore[assignment]  # narrower


class Allocated(msgspec.Struct):
    """Blocks of a pool, or a wish for some."""

    pool: Text = None
    cidrs: Texts = None


class Pools(msgspec.Struct):
    """`spec.ipam.pools` of a CiliumNode."""

    allocated: list[Allocated] | None = None
    requested: list[Allocated] | None = None


class NodeIpam(msgspec.Struct):
    """`spec.ipam` of a CiliumNode."""

    pod_cidrs: Texts = msgspec.field(default=None, name="podCIDRs")
    pool: dict[str, Any] | None = None
    pools: Pools | None = None


class CiliumNodeSpec(msgspec.Struct):
    """The spec of a CiliumNode."""

    ipam: NodeIpam | None = None


class OperatorStatus(msgspec.Struct):
    """What the operator says about a CiliumNode."""

    error: Text = None


class IpamStatus(msgspec.Struct):
    """`status.ipam` of a CiliumNode."""

    operator: OperatorStatus | None = msgspec.field(default=None, name="operator-status")


class CiliumNodeStatus(msgspec.Struct):
    """The status of a CiliumNode."""

    ipam: IpamStatus | None = None


class CiliumNode(Named):
    """A CiliumNode."""

    spec: CiliumNodeSpec | None = None  # type: ignore[assignment]  # narrower
    status: CiliumNodeStatus | None = None


class Family(msgspec.Struct):
    """A family of a CiliumPodIPPool."""

    cidrs: Texts = None


class PoolSpec(msgspec.Struct):
    """The spec of a CiliumPodIPPool."""

    ipv4: Family | None = None
    ipv6: Family | None = None


class Version(msgspec.Struct):
    """The metadata of a list."""

    version: Text = msgspec.field(default=None, name="resourceVersion")


class Versioned(msgspec.Struct):
    """A list, of which only its version is read."""

    metadata: Version | None = None


class Event(msgspec.Struct):
    """What a watch tells of an object; of an error the object is a Status."""

    type: str
    object: dict[str, Any]


class CiliumPodIPPool(Named):
    """A CiliumPodIPPool."""

    spec: PoolSpec | None = None  # type: ignore[assignment]  # narrower


class ConfigMap(Named):
    """A ConfigMap."""

    data: Map = None


class Container(msgspec.Struct):
    """A container."""

    name: Text = None
    command: Texts = None
    args: Texts = None


class PodSpec(msgspec.Struct):
    """The spec of a pod."""

    containers: list[Container] | None = None


class Template(msgspec.Struct):
    """A template of pods."""

    spec: PodSpec | None = None


class DeploymentSpec(msgspec.Struct):
    """The spec of a Deployment."""

    template: Template | None = None


class Deployment(msgspec.Struct):
    """A Deployment."""

    spec: DeploymentSpec | None = None


class Owner(msgspec.Struct):
    """What owns a pod."""

    kind: Text = None


class PodIp(msgspec.Struct):
    """An address of a pod."""

    ip: Text = None


class Operator(msgspec.Struct):
    """`operator` of the Helm values."""

    arguments: Texts = msgspec.field(default=None, name="extraArgs")


class IpamOperator(msgspec.Struct):
    """`ipam.operator` of the Helm values."""

    created: dict[str, Any] | None = msgspec.field(default=None, name="autoCreateCiliumPodIPPools")


class IpamValues(msgspec.Struct):
    """`ipam` of the Helm values."""

    operator: IpamOperator | None = None


class Values(msgspec.Struct):
    """The Helm values, as they are rendered."""

    operator: Operator | None = None
    ipam: IpamValues | None = None


class Kustomization(msgspec.Struct):
    """A kustomization, as it is rendered."""

    resources: Texts = None


KINDS: Mapping[str, type[Named]] = {
    "Node": Node,
    "CiliumNode": CiliumNode,
    "CiliumPodIPPool": CiliumPodIPPool,
    "ConfigMap": ConfigMap,
}
"""The kinds of which more is read than the metadata."""


def checked(where: str, document: Any, shape: Any = None) -> Any:
    """Return a document that has a shape: by default that of its kind. Raises Trouble, which names `where`."""
    try:
        if shape is None:
            kind = document.get("kind") if isinstance(document, dict) else None
            shape = KINDS.get(kind, Named) if isinstance(kind, str) else Named
        msgspec.convert(document, shape)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise Trouble(f"{where}: {problem}") from None
    return document


def decoded(where: str, text: str | bytes, shape: Any) -> Any:
    """Read JSON of a shape, as plain values. Raises Trouble, which names `where`."""
    try:
        msgspec.json.decode(text, type=shape)
        return msgspec.json.decode(text)
    except RecursionError:
        raise Trouble(f"{where}: JSON that is nested too deep") from None
    except (msgspec.MsgspecError, UnicodeError) as problem:
        raise Trouble(f"{where}: {problem}") from None
