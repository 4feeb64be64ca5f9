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

_PODS = re.compile(r"\+?([0-9]{1,9})(k?)").fullmatch


class RawSpec(Foreign):
    """`spec`: what a pod network may have claimed."""

    pod_cidr: str | None = field(name="podCIDR", default=None)
    pod_cidrs: list[str] | None = field(name="podCIDRs", default=None)


class RawAddress(Foreign):
    """One of `status.addresses`."""

    type: str | None = None
    address: str | None = None


class RawAmounts(Foreign):
    """`status.allocatable` and `status.capacity`."""

    pods: str | int | None = None


class RawStatus(Foreign):
    """`status`, as the kubelet reports it."""

    addresses: list[RawAddress] | None = None
    allocatable: RawAmounts | None = None
    capacity: RawAmounts | None = None


class RawNode(Foreign):
    """The document."""

    metadata: ForeignMetadata
    spec: RawSpec | None = None
    status: RawStatus | None = None


def read_node(raw: RawNode, at: Place, reading: Reading) -> Iterator[Node]:
    """Give the node. One that is being deleted still is there: it holds its block until it is gone."""
    metadata, spec, status = raw.metadata, raw.spec or RawSpec(), raw.status or RawStatus()
    reading.name(metadata.name, "node", at, "metadata", "name")
    cidrs, field_name = spec.pod_cidrs or [], "podCIDRs"
    if spec.pod_cidr and spec.pod_cidr not in cidrs[:1]:
        cidrs, field_name = [spec.pod_cidr], "podCIDR"  # it wins over the list (apis/core/v1/conversion.go)
    yield Node(
        name=metadata.name,
        labels=reading.labels(metadata.labels, at, "metadata", "labels"),
        at=at,
        uid=metadata.uid or "",
        pod_cidrs=reading.blocks(cidrs, at, "spec", field_name) if cidrs else (),
        max_pods=_pods(status.allocatable) or _pods(status.capacity),
        internal_ips=tuple(_addresses(status.addresses or [], at, reading)),
        live=True,
    )


def _addresses(addresses: list[RawAddress], at: Place, reading: Reading) -> Iterator[tuple[int, int]]:
    for index, each in enumerate(addresses):
        if each.type == "InternalIP" and each.address:
            try:
                yield parse_address(each.address)
            except CidrError as problem:
                place = at / "status" / "addresses" / index / "address"
                reading.found.append(rules.not_cidr(place, problem.reason, problem.better))


def _pods(amounts: RawAmounts | None) -> int:
    """Read a quantity of pods, which is a number, as a text or not; any other spelling counts as not said."""
    match = _PODS(str(amounts.pods)) if amounts and amounts.pods is not None else None
    return int(match[1]) * (1000 if match[2] else 1) if match else 0
