"""Pools: `ipamc/v1alpha1 IPPool`, Calico's `IPPool` and `ClusterCIDR`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, UnsetType, field, to_builtins

from ipamc.model.cidr import BITS, Range
from ipamc.model.cluster import Dialect, Pool, PoolFamily, SizeClass, Usage
from ipamc.model.diagnostics import Place
from ipamc.model.limits import LONGEST_CALICO_SELECTOR
from ipamc.model.pool_words import native_form
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.selector import EVERY, Selector, parse_label_selector, parse_node_selector
from ipamc.read import rules
from ipamc.read.rules import wrong_shape
from ipamc.read.values import (
    AnyOf,
    Family4,
    Family6,
    Foreign,
    ForeignMetadata,
    Metadata,
    NativeFields,
    Own,
    Positive,
    Prefix4,
    Prefix6,
    Reading,
    Reserved,
    Text,
    given,
    native_fields,
    range_lengths,
    read_ask,
)

T = TypeVar("T")

Percent = Annotated[int, Meta(ge=0, le=100)]
Priority = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class _Requirement(Own):
    key: str
    operator: str
    values: list[str] | UnsetType = UNSET


class _Term(Own):
    match_expressions: list[_Requirement] | UnsetType = UNSET
    match_fields: list[_Requirement] | UnsetType = UNSET


class RawLabelSelector(Own):
    """A LabelSelector."""

    match_labels: dict[str, str] | UnsetType = UNSET
    match_expressions: list[_Requirement] | UnsetType = UNSET


class RawSelector(RawLabelSelector):
    """A NodeSelector or a LabelSelector; `model.selector` decides which, and checks it."""

    node_selector_terms: list[_Term] | UnsetType = UNSET


class _SizeClass(AnyOf):
    any_of = ("ipv4", "ipv6")
    node_selector: str | RawSelector
    ipv4: Prefix4 | UnsetType = UNSET
    ipv6: Prefix6 | UnsetType = UNSET


class _Usage(Own):
    high: Percent = 85
    low: Percent = 40
    min_blocks: Positive | UnsetType = UNSET
    max_blocks: Positive | UnsetType = UNSET
    addresses: Positive | UnsetType = UNSET


class _Spec(AnyOf):
    any_of = ("ipv4", "ipv6")
    ipv4: Family4 | UnsetType = UNSET
    ipv6: Family6 | UnsetType = UNSET
    node_selector: str | RawSelector = ""
    priority: Priority = 0
    overflow: list[str] = field(default_factory=list)
    blocks_per_node: Positive = 1
    block_sizes: list[_SizeClass] = field(default_factory=list)
    reserved: list[str | Reserved] = field(default_factory=list)
    pins: dict[str, list[str]] = field(default_factory=dict)
    unlisted: bool = False
    disabled: bool = False
    pods_only: bool = False
    usage: _Usage | UnsetType = UNSET
    pod_selector: RawLabelSelector | UnsetType = UNSET
    namespace_selector: RawLabelSelector | UnsetType = UNSET
    allow_first_ip: bool = field(name="allowFirstIP", default=False)
    allow_last_ip: bool = field(name="allowLastIP", default=False)
    skip_masquerade: bool = False


class RawPool(Own):
    """The document."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: _Spec


def read_pool(raw: RawPool, at: Place, reading: Reading) -> Iterator[Pool]:
    """Yield the pool. `usage` without bounds keeps `blocksPerNode` blocks for each node."""
    metadata, spec, here = raw.metadata, raw.spec, at / "spec"
    reading.name(metadata.name, "pool", at, "metadata", "name")
    parts: Mapping[int, Family4 | Family6] = by_family(spec.ipv4, spec.ipv6)
    families = {}
    for family, part in parts.items():
        place, size = here / f"ipv{family}", part.block_size
        lengths = range_lengths(family, size)
        ranges = reading.ranges(given(part.cidrs, []), place / "cidrs", family=family, lengths=lengths)
        ask = read_ask(part, place, reading)
        where = place / "follows"
        network = reading.block(part.follows, where, family=family, pods=False) if part.follows else None
        families[family] = PoolFamily(
            family=family,
            ranges=ranges,
            block_size=size,
            ask=ask,
            follows=Range(network, where) if network else None,
            at=place,
        )
    selector = read_selector(spec.node_selector, here / "nodeSelector", reading)
    classes = []
    for index, each in enumerate(spec.block_sizes):
        place = here / "blockSizes" / index
        of = read_selector(each.node_selector, place / "nodeSelector", reading)
        classes.append(SizeClass(selector=of, sizes=by_family(each.ipv4, each.ipv6), at=place))
    pins_at, lengths = here / "pins", {family: (part.block_size,) * 2 for family, part in parts.items()}
    for name in spec.pins:
        reading.name(name, "node", Place(at.path, at.document, (*pins_at.keys, name), key=True))
    usage = None
    if not isinstance(raw_usage := spec.usage, UnsetType):
        per_node = spec.blocks_per_node
        usage = Usage(
            high=raw_usage.high,
            low=raw_usage.low,
            least=given(raw_usage.min_blocks, per_node),
            most=given(raw_usage.max_blocks, per_node),
            addresses=given(raw_usage.addresses, 0),
            at=here / "usage",
        )
    follows = [family for family, part in parts.items() if part.follows]
    of_nodes = {
        "nodeSelector": to_builtins(spec.node_selector),
        "priority": spec.priority,
        "overflow": spec.overflow,
        "blocksPerNode": spec.blocks_per_node > 1,
        "blockSizes": spec.block_sizes,
        "pins": spec.pins,
        "unlisted": spec.unlisted,
        "disabled": spec.disabled,
        "usage": usage,
    }
    if spec.pods_only:
        beside = {**{f"ipv{family}": part.follows for family, part in parts.items()}, **of_nodes}
        reading.found.extend(
            rules.beside_pods_only(here / name, metadata.name, name, here / "podsOnly")
            for name, value in beside.items()
            if value
        )
    elif follows:
        beside = {
            **{f"ipv{family}": not part.follows for family, part in parts.items()},
            "reserved": spec.reserved,
            **of_nodes,
        }
        reading.found.extend(
            rules.beside_follows(here / name, metadata.name, name, here / f"ipv{follows[0]}" / "follows")
            for name, value in beside.items()
            if value
        )
    yield Pool(
        name=metadata.name,
        at=at,
        families=families,
        selector=selector,
        selector_at=here / "nodeSelector",
        priority=spec.priority,
        overflow=tuple(spec.overflow),
        blocks_per_node=spec.blocks_per_node,
        block_sizes=tuple(classes),
        reserved=reading.reserved(spec.reserved, here / "reserved"),
        pins={
            name: reading.ranges(spec.pins[name], pins_at / name, lengths=lengths)
            for name in sorted(spec.pins)
        },
        unlisted=spec.unlisted,
        disabled=spec.disabled or spec.pods_only or bool(follows),
        pods_only=spec.pods_only,
        labels=reading.labels(metadata.labels, at, "metadata", "labels"),
        pod_selector=read_label_selector(spec.pod_selector, here / "podSelector", reading),
        namespace_selector=read_label_selector(spec.namespace_selector, here / "namespaceSelector", reading),
        allow_first=spec.allow_first_ip,
        allow_last=spec.allow_last_ip,
        skip_masquerade=spec.skip_masquerade,
        usage=usage,
    )


def by_family(ipv4: T | UnsetType, ipv6: T | UnsetType) -> Mapping[int, T]:
    """Return the fields of both families that are set, by family."""
    return {family: part for family, part in ((4, ipv4), (6, ipv6)) if not isinstance(part, UnsetType)}


def read_label_selector(raw: RawLabelSelector | UnsetType, at: Place, reading: Reading) -> Selector | None:
    """Return a LabelSelector; None if it is absent. An invalid one is reported."""
    return (
        None if isinstance(raw, UnsetType) else reading.selector(parse_label_selector, to_builtins(raw), at)
    )


def read_selector(raw: str | RawSelector, at: Place, reading: Reading) -> Selector:
    """Return a selector of nodes, in any of the languages; report an invalid one."""
    if isinstance(raw, str):
        return reading.calico(raw, at)
    fields: dict[str, Any] = to_builtins(raw)
    if not fields:
        return EVERY
    parse = parse_node_selector if "nodeSelectorTerms" in fields else parse_label_selector
    return reading.selector(parse, fields, at)


CALICO_SIZES = {4: 26, 6: 122}
"""Calico's default block sizes (api/pkg/apis/projectcalico/v3/ippool.go)."""


class _CalicoSpec(NativeFields, kw_only=True):
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
    spec: _CalicoSpec


def read_calico_pool(raw: RawCalicoPool, at: Place, reading: Reading) -> Iterator[Pool | Range]:
    """Yield the pool; for a pool that is not for workloads yield its CIDR as an excluded Range."""
    metadata, spec, here = raw.metadata, raw.spec, at / "spec"
    reading.name(metadata.name, "pool", at, "metadata", "name")
    workload = not spec.allowed_uses or "Workload" in spec.allowed_uses
    lengths = {family: (0, spec.block_size or size) for family, size in CALICO_SIZES.items()}
    block = reading.block(spec.cidr, here / "cidr", pods=workload, lengths=lengths)
    if block is None:
        return
    ours = native_fields(spec, "ipv4", "ipv6")
    if not workload:
        if ours:
            reading.found.append(rules.native_fields(here, Dialect.CALICO, list(ours), "remove these fields"))
        yield Range(block, here / "cidr")
        return
    selector_at = here / "nodeSelector"
    selector = _calico_selector(spec.node_selector or "", selector_at, reading)
    namespaces = _calico_selector(spec.namespace_selector or "", here / "namespaceSelector", reading)
    size = spec.block_size or CALICO_SIZES[block.family]
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


def _calico_selector(text: str, at: Place, reading: Reading) -> Selector:
    limit = LONGEST_CALICO_SELECTOR
    if len(text) > limit:
        why = f"a selector of {len(text):,} characters is longer than Calico's limit of {limit:,}"
        too_long = SelectorError(why, offset=limit, help="select by a label that a shorter selector can test")
        reading.bad_selector(too_long, at)
    return reading.calico(text, at)


class _ClusterCidrSpec(NativeFields, kw_only=True):
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
    spec: _ClusterCidrSpec


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
            bits = f"the {BITS[family]} bits of an IPv{family} address"
            problem = f"perNodeHostBits {spec.per_node_host_bits} is more than {bits}"
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
        selector = reading.selector(parse_node_selector, spec.node_selector, here / "nodeSelector")
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
