"""The shapes of Kubernetes objects, as far as ipamc reads them, checked once on input.

Objects come from an apiserver, from kustomize and from files below `rendered/`, and people may have edited
all of them. Fields of a checked object can be read without further tests; other fields may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from ipamc.read.dump import shapes as dump
from ipamc.read.kinds import nodes
from ipamc.read.values import Text as Name
from ipamc.workspace.failure import EnvironmentFailure

Text = str | None
Texts = list[str] | None
Map = dict[str, str] | None

Spec = TypeVar("Spec")
Status = TypeVar("Status")


class _ManagedPool(Struct):
    entries: dict[str, Any] | None = field(default=None, name="f:pool")


class _ManagedIpam(Struct):
    ipam: _ManagedPool | None = field(default=None, name="f:ipam")


class _ManagedFields(Struct):
    spec: _ManagedIpam | None = field(default=None, name="f:spec")


class _Manager(Struct):
    manager: Text = None
    operation: Text = None
    fields: _ManagedFields | None = field(default=None, name="fieldsV1")


class Owner(Struct):
    """An owner reference."""

    kind: Text = None
    uid: Text = None


class _Metadata(Struct):
    name: Name
    namespace: Text = None
    uid: Text = None
    labels: Map = None
    annotations: Map = None
    version: Text = field(default=None, name="resourceVersion")
    managed: list[_Manager] | None = field(default=None, name="managedFields")
    owners: list[Owner] | None = field(default=None, name="ownerReferences")
    created: Text = field(default=None, name="creationTimestamp")
    deleted: Text = field(default=None, name="deletionTimestamp")


class _Named(Struct, Generic[Spec, Status]):
    """An object: its metadata, and the fields of its spec and status that ipamc reads."""

    kind: str
    metadata: _Metadata
    spec: Spec | None = None
    status: Status | None = None


class ConfigMap(_Named[Any, Any]):
    """A ConfigMap."""

    data: Map = None


class _ListMetadata(Struct):
    version: Text = field(default=None, name="resourceVersion")


class Versioned(Struct):
    """A list of which only the resource version is read."""

    metadata: _ListMetadata | None = None


class Event(Struct):
    """An event of a watch; in an error event the object is a Status."""

    type: str
    object: dict[str, Any]


class _Container(Struct):
    name: Text = None
    command: Texts = None
    args: Texts = None


class _PodSpec(Struct):
    containers: list[_Container] | None = None


class _WithSpec(Struct, Generic[Spec]):
    spec: Spec | None = None


class _DeploymentSpec(Struct):
    template: _WithSpec[_PodSpec] | None = None


Deployment = _WithSpec[_DeploymentSpec]


class _Operator(Struct):
    arguments: Texts = field(default=None, name="extraArgs")


class _IpamOperator(Struct):
    created: dict[str, Any] | None = field(default=None, name="autoCreateCiliumPodIPPools")


class _Ipam(Struct):
    operator: _IpamOperator | None = None


class Values(Struct):
    """The rendered Helm values."""

    operator: _Operator | None = None
    ipam: _Ipam | None = None


class Kustomization(Struct):
    """A rendered kustomization."""

    resources: Texts = None


ANY = _Named[dict[str, Any], Any]  # an object of which only the metadata are read
KINDS: Mapping[str, Any] = {
    "Node": _Named[dump.NodeSpec, dump.NodeStatus],
    "CiliumNode": _Named[nodes.RawCiliumSpec, nodes.RawCiliumStatus],
    "CiliumPodIPPool": _Named[dump.PoolSpec, Any],
    "ConfigMap": ConfigMap,
    **{f"{how}AdmissionPolicy": _Named[dump.PolicySpec, Any] for how in ("Mutating", "Validating")},
}
"""The shapes of kinds of which more than the metadata is read."""


def checked(where: str, document: Any, shape: Any = None) -> Any:
    """Return a document if it has the shape, by default that of its kind.
    Raises EnvironmentFailure with `where`.
    """
    try:
        if shape is None:
            kind = document.get("kind") if isinstance(document, dict) else None
            shape = KINDS.get(kind, ANY) if isinstance(kind, str) else ANY
        msgspec.convert(document, shape)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise EnvironmentFailure(f"{where}: {problem}") from None
    return document


def decoded(where: str, text: str | bytes, shape: Any) -> Any:
    """Decode JSON of a shape into plain values. Raises EnvironmentFailure that names `where`."""
    try:
        msgspec.json.decode(text, type=shape)
        return msgspec.json.decode(text)
    except RecursionError:
        raise EnvironmentFailure(f"{where}: JSON that is nested too deep") from None
    except (msgspec.MsgspecError, UnicodeError) as problem:
        raise EnvironmentFailure(f"{where}: {problem}") from None
