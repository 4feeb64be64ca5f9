"""Calico's IPPools and IPReservations in a dump, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from ipamc.importing.calico import pool_rules
from ipamc.model.cidr import BITS, Block, CidrError, parse_block
from ipamc.model.diagnostics import Diagnostic, Span
from ipamc.model.dump import Dump, SeenObject
from ipamc.model.selector.error import SelectorError
from ipamc.model.selector.selector import EVERY, Selector, parse_calico

BLOCK_SIZES = {4: 26, 6: 122}
"""What Calico takes where a pool says nothing (api/pkg/apis/projectcalico/v3/ippool.go)."""


class CalicoPool(Struct, frozen=True, kw_only=True):
    """An IPPool."""

    name: str
    block: Block
    size: int
    """Prefix length of its blocks."""
    selector: Selector
    workload: bool
    """Pods get addresses of it; else tunnels or load balancers alone."""
    overlay: str = ""
    """`ipipMode` or `vxlanMode` where it is not Never."""
    halted: str = ""
    """Why Calico makes no new blocks of it for the pods of a node; "": it does."""
    labels: Mapping[str, str] = field(default_factory=dict)
    at: Span


class _Spec(msgspec.Struct, rename="camel"):
    cidr: str
    block_size: int | None = None
    node_selector: str | None = None
    namespace_selector: str | None = None
    disabled: bool | None = None
    ipip_mode: str | None = None
    vxlan_mode: str | None = None
    allowed_uses: list[str] | None = None
    assignment_mode: str | None = None


class _Condition(msgspec.Struct):
    type: str | None = None
    status: str | None = None
    reason: str | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str | None] | None = None
    deletion_timestamp: str | None = None


class _Pool(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None


class _Reserved(msgspec.Struct):
    cidrs: list[str] | None = msgspec.field(name="reservedCIDRs", default=None)


class _Reservation(msgspec.Struct):
    spec: _Reserved | None = None


def read_pools(dump: Dump) -> tuple[list[CalicoPool], list[Diagnostic]]:
    """Return the IPPools by name, which is the order in which Calico tries them, and what cannot be read."""
    found: list[Diagnostic] = []
    pools: dict[str, CalicoPool] = {}
    for item in dump.of_kind("IPPool"):
        try:
            pools.setdefault(item.name, _pool(item, msgspec.convert(dict(item.value), _Pool), found))
        except (msgspec.ValidationError, CidrError, SelectorError, _BlockSizeError) as problem:
            found.append(pool_rules.unreadable(item.at, f"IPPool {item.name}", str(problem)))
    return list(pools.values()), found


class _BlockSizeError(ValueError):
    """A block size that a pool cannot have."""


def _pool(item: SeenObject, raw: _Pool, found: list[Diagnostic]) -> CalicoPool:
    """Return an IPPool. Raises CidrError, SelectorError, _BlockSizeError."""
    spec = raw.spec
    workload = not spec.allowed_uses or "Workload" in spec.allowed_uses
    block = parse_block(spec.cidr, pods=workload)
    size = spec.block_size or BLOCK_SIZES[block.family]
    if not 0 < size <= BITS[block.family]:
        raise _BlockSizeError(f"blockSize {size} is no prefix length of IPv{block.family}")
    if spec.namespace_selector and workload and parse_calico(spec.namespace_selector) != EVERY:
        found.append(pool_rules.namespace_selector(item.at, item.name, spec.namespace_selector))
    return CalicoPool(
        name=item.name,
        block=block,
        size=max(size, block.prefix),
        selector=parse_calico(spec.node_selector or ""),
        workload=workload,
        overlay=" and ".join(
            f"{key}: {mode}"
            for key, mode in (("ipipMode", spec.ipip_mode), ("vxlanMode", spec.vxlan_mode))
            if mode not in {None, "", "Never"}
        ),
        halted=_halted(raw),
        labels={key: value or "" for key, value in (raw.metadata.labels or {}).items()},
        at=item.at,
    )


def _halted(raw: _Pool) -> str:
    """Return why Calico makes no new blocks for the pods of a node."""
    spec = raw.spec
    if spec.disabled:
        return "it is disabled"
    if raw.metadata.deletion_timestamp:
        return "it is being deleted"
    if spec.assignment_mode == "Manual":
        return "its assignmentMode is Manual"
    for condition in (raw.status or _Status()).conditions or ():
        if condition.type == "Allocatable" and condition.status == "False":
            return f"Calico says Allocatable=False ({condition.reason or 'no reason'})"
    if spec.namespace_selector and parse_calico(spec.namespace_selector) != EVERY:
        return "it has a namespaceSelector"
    return ""


def read_reservations(dump: Dump) -> tuple[list[tuple[Block, SeenObject]], list[Diagnostic]]:
    """Return the CIDRs of IPReservations by address, each with its object, and what cannot be read."""
    reserved: list[tuple[Block, SeenObject]] = []
    found: list[Diagnostic] = []
    for item in dump.of_kind("IPReservation"):
        try:
            raw = msgspec.convert(dict(item.value), _Reservation)
            reserved += [
                (parse_block(text, pods=False), item) for text in (raw.spec or _Reserved()).cidrs or ()
            ]
        except (msgspec.ValidationError, CidrError) as problem:
            found.append(pool_rules.unreadable(item.at, f"IPReservation {item.name}", str(problem)))
    return sorted(reserved, key=lambda pair: (pair[0], pair[1].name)), found


def config_of(items: Iterable[SeenObject]) -> Mapping[str, Any]:
    """Return the `spec` of Calico's one IPAMConfig; {} without one, or where it is no object."""
    for item in items:
        spec = item.value.get("spec")
        if isinstance(spec, dict):
            return spec
    return {}
