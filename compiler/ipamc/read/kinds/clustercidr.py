"""`ClusterCIDR` of networking.x-k8s.io/v1 (node-ipam-controller) or networking.k8s.io/v1alpha1 (KEP-2593)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta

from ipamc.model.cidr import BITS
from ipamc.model.cluster import Dialect, Pool, PoolFamily, Range
from ipamc.model.diagnostics import Place
from ipamc.model.pool_words import native_form
from ipamc.model.selector.error import SelectorError
from ipamc.model.selector.selector import EVERY, parse_node_selector
from ipamc.read import rules
from ipamc.read.kinds.base import Foreign, ForeignMetadata, NativeFields, native_fields
from ipamc.read.syntax.rules import wrong_shape
from ipamc.read.values import Reading, range_lengths


class RawSpec(NativeFields, kw_only=True):
    """`spec`, with one number of host bits for both families."""

    per_node_host_bits: Annotated[int, Meta(ge=0, le=128)]
    ipv4: str | None = None
    ipv6: str | None = None
    node_selector: dict[str, Any] | None = None
    disabled: Any = None
    block_size: Any = None
    namespace_selector: Any = None


class RawClusterCidr(Foreign):
    """The document."""

    metadata: ForeignMetadata
    spec: RawSpec


def read_cluster_cidr(raw: RawClusterCidr, at: Place, reading: Reading) -> Iterator[Pool]:
    """Yield the pool: one range for each family, and every node if there is no selector."""
    metadata, spec, here = raw.metadata, raw.spec, at / "spec"
    reading.name(metadata.name, "pool", at, "metadata", "name")
    families = {}
    for family, text in ((4, spec.ipv4), (6, spec.ipv6)):
        size, place = BITS[family] - spec.per_node_host_bits, here / f"ipv{family}"
        if not text:
            continue
        if size < 0:
            problem = f"perNodeHostBits {spec.per_node_host_bits} is more than the {BITS[family]} bits of an IPv{family} address"
            reading.found.append(wrong_shape(here / "perNodeHostBits", problem))
        elif (
            block := reading.block(text, place, family=family, lengths=range_lengths(family, size))
        ) is not None:
            families[family] = PoolFamily(
                family=family, ranges=(Range(block, place),), block_size=size, at=here / "perNodeHostBits"
            )
    if not (spec.ipv4 or spec.ipv6):
        reading.found.append(wrong_shape(here / "ipv4", "spec has no ipv4 or ipv6", "write ipv4 or ipv6"))
    selector = EVERY
    if spec.node_selector:
        try:
            selector = parse_node_selector(spec.node_selector)
        except SelectorError as problem:
            reading.bad_selector(problem, here / "nodeSelector")
    pool = Pool(
        name=metadata.name,
        at=at,
        dialect=Dialect.CLUSTER_CIDR,
        families=families,
        selector=selector,
        selector_at=here / "nodeSelector",
        disabled=bool(metadata.deletion_timestamp),
        labels=reading.labels(metadata.labels, at, "metadata", "labels"),
    )
    if ours := native_fields(spec, "disabled", "block_size", "namespace_selector"):
        kept = {name: value for name, value in ours.items() if name != "blockSize"}
        way_out = f"write the pool in the native form: {native_form(pool, kept)}"
        reading.found.append(rules.native_fields(here, pool.dialect, list(ours), way_out))
    yield pool
