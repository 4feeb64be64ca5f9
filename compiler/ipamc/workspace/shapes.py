"""The shapes of Kubernetes objects, as far as ipamc reads them: checked once, where they come in.

Objects come from an apiserver, from kustomize and from files below `rendered/`, and people may have written
into all of them. What passes here may be read by plain look-ups; fields that no shape names may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from ipamc.read.dump import shapes as dump
from ipamc.read.kinds import nodes
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


Spec = TypeVar("Spec")
Status = TypeVar("Status")


class Named(msgspec.Struct, Generic[Spec, Status]):
    """An object: its metadata, and as much of its spec and its status as is read."""

    kind: str
    metadata: Metadata
    spec: Spec | None = None
    status: Status | None = None


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


class ConfigMap(Named[Any, Any]):
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


ANY = Named[dict[str, Any], Any]
"""An object of a kind of which only the metadata are read."""
KINDS: Mapping[str, Any] = {
    "Node": Named[dump.NodeSpec, Any],
    "CiliumNode": Named[nodes.RawCiliumSpec, nodes.RawCiliumStatus],
    "CiliumPodIPPool": Named[dump.PoolSpec, Any],
    "ConfigMap": ConfigMap,
}
"""The kinds of which more is read than the metadata."""


def checked(where: str, document: Any, shape: Any = None) -> Any:
    """Return a document that has a shape: by default that of its kind. Raises Trouble, which names `where`."""
    try:
        if shape is None:
            kind = document.get("kind") if isinstance(document, dict) else None
            shape = KINDS.get(kind, ANY) if isinstance(kind, str) else ANY
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
