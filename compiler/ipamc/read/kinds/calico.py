"""`IPPool` of projectcalico.org/v3 and crd.projectcalico.org/v1: a pool as exported from Calico.

Defaults and bounds are those of Calico's `api/pkg/apis/projectcalico/v3/ippool.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from ipamc.model.cluster import Dialect, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Place
from ipamc.model.pool_words import native_form
from ipamc.model.selector.calico import MAX_CALICO_LENGTH
from ipamc.model.selector.error import SelectorError
from ipamc.model.selector.selector import EVERY, Selector
from ipamc.read import rules
from ipamc.read.kinds.base import Foreign, ForeignMetadata, NativeFields, Text, native_fields
from ipamc.read.values import Reading

_BLOCK_SIZES = {4: 26, 6: 122}


class RawSpec(NativeFields, kw_only=True):
    """`spec` without encapsulation, NAT and BGP, which concern Calico alone."""

    cidr: Text
    block_size: Annotated[int, Meta(ge=0, le=128)] | None = None
    node_selector: str | None = None
    namespace_selector: str | None = None
    disabled: bool | None = None
    allowed_uses: list[str] | None = None
    assignment_mode: str | None = None
    ipv4: Any = None
    ipv6: Any = None


class RawCalicoPool(Foreign):
    """The document."""

    metadata: ForeignMetadata
    spec: RawSpec


def read_calico_pool(raw: RawCalicoPool, at: Place, reading: Reading) -> Iterator[Pool | Range]:
    """Yield the pool; for a pool that is not for workloads yield its CIDR as an excluded Range."""
    metadata, spec, here = raw.metadata, raw.spec, at / "spec"
    reading.name(metadata.name, "pool", at, "metadata", "name")
    workload = not spec.allowed_uses or "Workload" in spec.allowed_uses
    lengths = {family: (0, spec.block_size or size) for family, size in _BLOCK_SIZES.items()}
    block = reading.block(spec.cidr, here / "cidr", pods=workload, lengths=lengths)
    if block is None:
        return
    ours = native_fields(spec, "ipv4", "ipv6")
    if not workload:
        if ours:
            reading.found.append(
                rules.native_fields(here, Dialect.CALICO, list(ours), "remove what it does not have")
            )
        yield Range(block, here / "cidr")
        return
    selector_at = here / "nodeSelector"
    selector = _selector(spec.node_selector or "", selector_at, reading)
    namespaces = _selector(spec.namespace_selector or "", here / "namespaceSelector", reading)
    size = spec.block_size or _BLOCK_SIZES[block.family]
    ranges = (Range(block, here / "cidr"),)
    pool = Pool(
        name=metadata.name,
        at=at,
        dialect=Dialect.CALICO,
        families={
            block.family: PoolFamily(
                family=block.family, ranges=ranges, block_size=size, at=here / "blockSize"
            )
        },
        selector=selector,
        selector_at=selector_at,
        disabled=bool(spec.disabled or metadata.deletion_timestamp or spec.assignment_mode == "Manual"),
        labels=reading.labels(metadata.labels, at, "metadata", "labels"),
        namespace_selector=None if namespaces == EVERY else namespaces,
    )
    if ours:
        kept = {name: value for name, value in ours.items() if name not in {"ipv4", "ipv6"}}
        way_out = f"write the pool in the native form: {native_form(pool, kept)}"
        reading.found.append(rules.native_fields(here, pool.dialect, list(ours), way_out))
    yield pool


def _selector(text: str, at: Place, reading: Reading) -> Selector:
    if len(text) > MAX_CALICO_LENGTH:
        problem = (
            f"a selector of {len(text):,} characters is longer than Calico's limit of {MAX_CALICO_LENGTH:,}"
        )
        too_long = SelectorError(
            problem, offset=MAX_CALICO_LENGTH, help="use a label that a shorter selector can test"
        )
        reading.bad_selector(too_long, at)
    return reading.calico(text, at)
