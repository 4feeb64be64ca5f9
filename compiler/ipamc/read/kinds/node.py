"""`v1 Node`: the inventory as `kubectl get nodes` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import field

from ipamc.model.cidr import CidrError, parse_address
from ipamc.model.cluster import Node
from ipamc.model.diagnostics import Place
from ipamc.read import rules
from ipamc.read.kinds.base import Foreign, ForeignMetadata
from ipamc.read.values import Reading

OF_CILIUM = ("network.cilium.io/", "io.cilium.network.")
"""Prefixes of the annotations that agents write to Nodes, from 1.13 on and before."""
_PODS = re.compile(r"\+?([0-9]{1,9})(k?)").fullmatch


class RawSpec(Foreign):
    """`spec`: the CIDRs that a pod network may have set."""

    pod_cidr: str | None = field(name="podCIDR", default=None)
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)


class RawAddress(Foreign):
    """An entry of `status.addresses`."""

    type: str | None = None
    address: str | None = None


class RawAmounts(Foreign):
    """`status.allocatable` and `status.capacity`."""

    pods: str | int | None = None


class RawCondition(Foreign):
    """An entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None


class RawStatus(Foreign):
    """`status`, as the kubelet reports it."""

    conditions: list[RawCondition] | None = None
    addresses: list[RawAddress] | None = None
    allocatable: RawAmounts | None = None
    capacity: RawAmounts | None = None


class RawMetadata(ForeignMetadata):
    """`metadata`, with the annotations, of which only the keys count."""

    annotations: dict[str, object] | None = None


class RawNode(Foreign):
    """The document."""

    metadata: RawMetadata
    spec: RawSpec | None = None
    status: RawStatus | None = None


def read_node(raw: RawNode, at: Place, reading: Reading) -> Iterator[Node]:
    """Yield the node. A node that is being deleted still counts: it holds its block until it is gone."""
    metadata, spec, status = raw.metadata, raw.spec or RawSpec(), raw.status or RawStatus()
    reading.name(metadata.name, "node", at, "metadata", "name")
    cidrs, field_name = spec.pod_cidrs or [], "podCIDRs"
    if spec.pod_cidr and spec.pod_cidr not in cidrs[:1]:
        cidrs, field_name = [spec.pod_cidr], "podCIDR"  # wins over the list (apis/core/v1/conversion.go)
    yield Node(
        name=metadata.name,
        labels=reading.labels(metadata.labels, at, "metadata", "labels"),
        at=at,
        uid=metadata.uid or "",
        pod_cidrs=reading.blocks(cidrs, at, "spec", field_name) if cidrs else (),
        max_pods=pods(status.allocatable) or pods(status.capacity),
        internal_ips=tuple(_addresses(status.addresses or [], at, reading)),
        live=True,
        running=_is_running(metadata, status),
    )


def _is_running(metadata: RawMetadata, status: RawStatus) -> bool:
    """Tell whether a node runs pods: the kubelet says that it is ready, or Cilium's agent was there.

    The agent sets the condition NetworkUnavailable with the reason CiliumIsUp, and annotations
    (pkg/k8s/init.go, pkg/annotation, 1.12 to 1.20). podCIDRs alone are kube-controller-manager's.
    """
    return any(
        (condition.type == "Ready" and condition.status == "True") or condition.reason == "CiliumIsUp"
        for condition in status.conditions or ()
    ) or any(key.startswith(OF_CILIUM) for key in metadata.annotations or ())


def _addresses(addresses: list[RawAddress], at: Place, reading: Reading) -> Iterator[tuple[int, int]]:
    for index, entry in enumerate(addresses):
        if entry.type == "InternalIP" and entry.address:
            try:
                yield parse_address(entry.address)
            except CidrError as problem:
                place = at / "status" / "addresses" / index / "address"
                reading.found.append(rules.not_cidr(place, problem.reason, problem.better))


def pods(amounts: RawAmounts | None) -> int:
    """Return a number of pods, written as a number or as text; 0 for any other spelling."""
    match = _PODS(str(amounts.pods)) if amounts and amounts.pods is not None else None
    return int(match[1]) * (1000 if match[2] else 1) if match else 0
