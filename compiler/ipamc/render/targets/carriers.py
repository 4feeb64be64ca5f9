"""The objects that carry blocks: how admission policies read, judge and write their blocks, in CEL.

Agents find their own blocks in one field, by the mode, and those of other nodes in all fields of their
CiliumNodes (ParseCiliumNode in pkg/node/types/node.go@1.20). Of a Node they prefer `podCIDRs`. For a family
that is missing there they take an annotation, by its name or by its alias (ParseNode in pkg/k8s/node.go). So
a policy about one of the fields is about all of them. The conditions of a policy are the same for all objects
(`render/targets/cel.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ipamc.model.address_sets import aggregated
from ipamc.model.admission import CIDR_IN_CEL, PROBE
from ipamc.model.cidr import Block
from ipamc.model.cilium.versions import POD_CIDR_ANNOTATIONS, pod_cidr_annotation
from ipamc.model.cluster import Cluster, Mode, Pool
from ipamc.model.plan import Plan
from ipamc.render.targets.context import texts

POD_CIDRS, ALLOCATED, ADDRESSES = "spec.ipam.podCIDRs", "spec.ipam.pools.allocated", "spec.ipam.pool"
"""The fields of a CiliumNode."""
OWN = {
    Mode.KUBERNETES: POD_CIDRS,
    Mode.CLUSTER_POOL: POD_CIDRS,
    Mode.MULTI_POOL: ALLOCATED,
    Mode.CRD: ADDRESSES,
}
"""The field of a CiliumNode with its node's blocks, by mode. In kubernetes mode the agent copies them."""


class Resource(Struct, frozen=True):
    """A resource that a policy matches."""

    group: str
    version: str
    name: str
    also: tuple[str, ...] = ()
    """Subresources through which its objects are written, too."""


NODES = Resource("", "v1", "nodes", ("nodes/status",))
CILIUM_NODES = Resource("cilium.io", "v2", "ciliumnodes", ("ciliumnodes/status",))
POOLS = Resource("cilium.io", "v2alpha1", "ciliumpodippools")


def of(expression: str, it: str) -> str:
    """Return an expression about an object, `object` or `oldObject`."""
    return expression.replace("{it}", it)


def before(expression: str, none: str = "[]") -> str:
    """Return an expression about the object before the request; `none` if the request creates it."""
    return f"(oldObject == null ? {none} : {of(expression, 'oldObject')})"


def annotation(key: str) -> str:
    """Return the expression for the text of an annotation of the object `{it}`, as a list."""
    there = "has({it}.metadata.annotations)"
    return (
        f"({there} && '{key}' in {{it}}.metadata.annotations ? [{{it}}.metadata.annotations['{key}']] : [])"
    )


NODE_CIDRS = "(has({it}.spec.podCIDRs) ? {it}.spec.podCIDRs : [])"
"""The podCIDRs of a Node. kube-apiserver makes the first one and `podCIDR` the same."""
THERE = "has({it}.spec.ipam) && has({it}.spec.ipam.pools) && has({it}.spec.ipam.pools.allocated)"
"""Whether a CiliumNode lists blocks by pool."""
ENTRY = "(has(entry.cidrs) ? entry.cidrs.map(it, string(it)) : [])"
"""The blocks of one pool, `entry`, in a CiliumNode."""
OF_CILIUM_NODE: Mapping[str, str] = {
    POD_CIDRS: "(has({it}.spec.ipam) && has({it}.spec.ipam.podCIDRs) ? {it}.spec.ipam.podCIDRs : [])",
    ALLOCATED: f"({THERE} ? {{it}}.spec.ipam.pools.allocated.map(entry, {ENTRY}.join(','))"
    ".join(',').split(',').filter(it, it != '') : [])",
    ADDRESSES: "(has({it}.spec.ipam) && has({it}.spec.ipam.pool) ? {it}.spec.ipam.pool.map(it, it) : [])",
}
"""Blocks and addresses of a CiliumNode as a list of texts, by field."""


def beside(own: str) -> tuple[str, ...]:
    """Return the expressions of the other fields of a CiliumNode."""
    return tuple(text for name, text in OF_CILIUM_NODE.items() if name != own)


def listed(*items: str) -> str:
    """Return a list of expressions."""
    return f"[{', '.join(items)}]"


def mapped(entries: Mapping[str, str]) -> str:
    """Return a map of expressions."""
    return f"{{{', '.join(f'{key!r}: {value}' for key, value in entries.items())}}}"


def add(pointer: str, value: str) -> str:
    """Return the patch that writes a value."""
    return f"JSONPatch{{op: 'add', path: '{pointer}', value: {value}}}"


def put(keys: Sequence[str], value: str, above: str = "object.spec", pointer: str = "/spec") -> str:
    """Return the patches that put a value below `spec`, and create missing parents."""
    here, path, rest = f"{above}.{keys[0]}", f"{pointer}/{keys[0]}", keys[1:]
    nested = value
    for key in reversed(rest):
        nested = mapped({key: nested})
    whole = listed(add(path, nested))
    return f"(has({here}) ? {put(rest, value, here, path)} : {whole})" if rest else whole


Rows = Literal["nodes", "pools", "none"]
"""`NODE BLOCK...`, `POOL ipv4-SIZE-CIDR-CIDR...`, or nothing."""


class Carrier(Struct, frozen=True, kw_only=True):
    """A kind of object with a field that lists the blocks of a node, or the ranges of a pool."""

    name: str
    resource: Resource
    addresses: str = ""
    """The object's InternalIPs; "": no block follows from them."""
    carried: str
    """The list of the blocks in the object `{it}`, each in the form of the rows."""
    beside: tuple[str, ...] = ()
    """The lists of the other fields in which Cilium finds blocks of the object `{it}`."""
    patches: str = ""
    """The JSON patches that write `variables.given` there; "": a policy never writes blocks there."""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    """The requests that give a node its blocks."""
    given: str = "variables.row"
    """The blocks in the lock, from the node's row."""
    blocks: str = "variables.row"
    """The same, each as a CIDR alone."""
    agrees: str
    """Whether a node may have the carried blocks."""
    node: str = "object.metadata.name"
    about: str = ""
    """The condition for objects that carry blocks, if not all do."""
    rows: Rows = "nodes"
    """What the rows of its refusing policies are about. Where the operator chooses, no node has one."""
    shows: str = "variables.{}"
    """The list of texts of a variable, for messages."""
    chosen: str = ""
    """The list of CIDRs in `{it}` among which are some that Cilium's operator chose; "": there are none."""

    @property
    def fields(self) -> str:
        """The lists of all its fields: a list of lists, of `dyn`, the one type."""
        return listed(*(f"dyn({each})" for each in (self.carried, *self.beside)))


def carriers(plan: Plan, masks: Mapping[int, int]) -> Iterator[Carrier]:
    """Yield the carriers of a cluster. In kubernetes mode agents copy a Node's blocks to its CiliumNode.
    `masks`: prefix lengths of the blocks that an operator of cluster-pool mode gives.
    """
    cluster, own, agrees = plan.cluster, OWN[plan.cluster.mode], "variables.carried == variables.given"
    elsewhere = [pool for pool in cluster.pools if pool.name in plan.operator_pools]
    if cluster.mode is Mode.MULTI_POOL:
        yield from _of_pools(cluster, elsewhere)
    elif elsewhere:
        # The operator gives nodes that are not in the lock blocks of its mask, and of no other size.
        ranges = [cidr.block for pool in elsewhere for cidr in pool.ranges]
        inside = _of_size({block: masks[block.family] for block in ranges if block.family in masks})
        agrees += f" || size(variables.row) == 0 && variables.carried.all(it, isCIDR(it) && {inside})"
    copied = cluster.mode is Mode.KUBERNETES and cluster.patch_nodes != "none"
    if copied or cluster.mode is Mode.CLUSTER_POOL:
        yield Carrier(
            name="ciliumnodes",
            resource=CILIUM_NODES,
            addresses=_ADDRESSES.format("spec", "ip"),
            carried=OF_CILIUM_NODE[own],
            beside=beside(own),
            patches="" if copied else put(("ipam", "podCIDRs"), "variables.given"),
            agrees="variables.carried.all(it, it in variables.given)" if copied else agrees,
            chosen=OF_CILIUM_NODE[own] if elsewhere else "",
        )
    if cluster.patch_nodes == "podCIDRs":
        yield Carrier(
            name="nodes",
            resource=NODES,
            addresses=_ADDRESSES.format("status", "address"),
            carried=NODE_CIDRS,
            beside=tuple(map(annotation, POD_CIDR_ANNOTATIONS)),
            patches=listed(
                add("/spec/podCIDR", "variables.given[0]"), add("/spec/podCIDRs", "variables.given")
            ),
            # Rows have IPv4 first, podCIDRs are in the order of `ipFamilies`.
            given=f"variables.row.filter(it, {_IPV6}) + variables.row.filter(it, !{_IPV6})"
            if cluster.families == (6, 4)
            else "variables.row",
            agrees=agrees,
            chosen=NODE_CIDRS if elsewhere and cluster.mode is Mode.CLUSTER_POOL else "",
        )
    if cluster.patch_nodes == "annotations":
        yield _annotated(cluster, agrees)


_IPV6 = "it.contains(':')"
_ADDRESSES = (
    "has(object.{0}.addresses) ? "
    "object.{0}.addresses.filter(it, it.type == 'InternalIP').map(it, it.{1}) : []"
)


def _annotated(cluster: Cluster, agrees: str) -> Carrier:
    keys = [pod_cidr_annotation(cluster.cilium, family) for family in sorted(cluster.families)]
    values = {key: f"variables.given[{place}]" for place, key in enumerate(keys)}
    pointers = {f"/metadata/annotations/{key.replace('/', '~1')}": value for key, value in values.items()}
    one_by_one = listed(*(add(pointer, value) for pointer, value in pointers.items()))
    all_at_once = listed(add("/metadata/annotations", mapped(values)))
    return Carrier(
        name="nodes",
        resource=NODES,
        addresses=_ADDRESSES.format("status", "address"),
        carried=f"({' + '.join(map(annotation, keys))})",
        beside=(NODE_CIDRS, *(annotation(key) for key in POD_CIDR_ANNOTATIONS if key not in keys)),
        patches=f"(has(object.metadata.annotations) ? {one_by_one} : {all_at_once})",
        agrees=agrees,
    )


def _of_pools(cluster: Cluster, shared: Sequence[Pool]) -> Iterator[Carrier]:
    """Yield the carriers of multi-pool mode: a row has `POOL=CIDR,CIDR` for each pool.
    Operator and agent own the list of blocks once the node joined, so it is given only by the first request.
    The operator chooses the blocks of pools that nodes share; those with a node's name are the lock's.
    Foreign pools have ranges of their own.
    """
    own, here = OWN[cluster.mode], OF_CILIUM_NODE[OWN[cluster.mode]]
    pools = listed(*(f"'{name}.'" for name in (*cluster.pools_by_name, PROBE)))
    of_node, entry = f"{pools}.exists(pool, {{}}.startsWith(pool))", f"entry.pool + '=' + {ENTRY}.join(',')"
    apart = _apart(cluster)
    parts = (part for pool in shared for part in pool.families.values())
    sizes = {cidr.block: part.block_size for part in parts for cidr in part.ranges}
    lawful = f"({apart} || {_of_size(sizes)})" if sizes and has_cidr(cluster) else apart
    mine = "given.startsWith(entry.pool + '=') && it in given.substring(size(entry.pool) + 1).split(',')"
    pinned = (
        f"!({THERE}) || {{it}}.spec.ipam.pools.allocated.all(entry, {of_node.format('entry.pool')} ? "
        f"{ENTRY}.all(it, variables.given.exists(given, {mine})) : "
        f"({entry}) in variables.was[0] || {ENTRY}.all(it, {lawful}))"
    )
    fresh = f"{here}.all(it, it in {before(here)} || {lawful})"
    yield Carrier(
        name="ciliumnodes",
        resource=CILIUM_NODES,
        carried=f"({THERE} ? {{it}}.spec.ipam.pools.allocated.map(entry, {entry}) : [])",
        beside=beside(own),
        patches=put(("ipam", "pools", "allocated"), f"variables.given.map(given, {_entry(cluster)})"),
        operations=("CREATE",),
        blocks="variables.row.map(it, it.split('=')[1]).join(',').split(',')",
        agrees=of(pinned if cluster.own_pools else fresh, "object"),
        rows="nodes" if cluster.own_pools else "none",
        chosen=here if shared else "",
    )
    name = "object.metadata.name"
    if cluster.own_pools:
        cidrs = [f"(has({{it}}.spec.ipv{family}) ? {{it}}.spec.ipv{family}.cidrs : [])" for family in (4, 6)]
        yield Carrier(
            name="ciliumpodippools",
            resource=POOLS,
            carried=f"({' + '.join(cidrs)})",
            given=f"variables.row.filter(it, it.startsWith({name} + '='))"
            f".map(it, it.substring(size({name}) + 1))",
            agrees="sets.equivalent(variables.carried, "
            "size(variables.given) == 0 ? [] : variables.given[0].split(',').map(it, it))",
            node=f"{name}.substring({name}.indexOf('.') + 1)",
            about=of_node.format(name),
        )
    spec = "{{it}}.spec.ipv{0}"
    part = f"(has({spec}) ? [['ipv{{0}}', string({spec}.maskSize)] + {spec}.cidrs] : [])"
    others = f"variables.carried.all(part, part.all(it, !it.contains('/') || {apart}))"
    foreign = f"{name} != '{PROBE}.{PROBE}' && {others}"
    yield Carrier(
        name="shared-pools",
        resource=POOLS,
        carried=f"({part.format(4)} + {part.format(6)})",
        given="variables.row.map(it, it.split('-').map(it, it))",
        agrees=f"size(variables.row) > 0 ? variables.carried == variables.given : {foreign}",
        about=f"!{of_node.format(name)}" if cluster.own_pools else "",
        rows="pools",
        shows="variables.{}.map(it, it.join(' '))",
    )


def has_cidr(cluster: Cluster) -> bool:
    """Return whether policies can ask whether a CIDR is in another one."""
    return cluster.kubernetes is not None and cluster.kubernetes >= CIDR_IN_CEL


def _apart(cluster: Cluster) -> str:
    """Return whether `it` is a CIDR without an address of the pools; before 1.31 only that it is no range."""
    ranges = [cidr.block for pool in cluster.pools for cidr in pool.ranges]
    if not has_cidr(cluster):
        return f"!(it in {listed(*map(repr, texts(ranges)))})"
    overlaps = "cidr(range).containsCIDR(it) || cidr(it).containsCIDR(range)"
    return f"isCIDR(it) && !{listed(*map(repr, texts(aggregated(ranges))))}.exists(range, {overlaps})"


def _of_size(sizes: Mapping[Block, int]) -> str:
    """Return whether the CIDR `it` is in a range, and has the prefix length of that range's blocks."""
    ranges: dict[int, list[Block]] = {}
    for block, size in sizes.items():
        ranges.setdefault(size, []).append(block)
    wholes = ((block, size) for size, blocks in ranges.items() for block in aggregated(blocks))
    rows = listed(*(f"['{block}', '{size}']" for block, size in wholes))
    return f"{rows}.exists(of, cidr(of[0]).containsCIDR(it) && cidr(it).prefixLength() == int(of[1]))"


def _entry(cluster: Cluster) -> str:
    """Return the entry of `allocated` for `POOL=CIDR,CIDR`, with the fields that its pool allows."""
    name = "given.split('=')[0]"
    entry = {"pool": f"dyn({name})", "cidrs": "dyn(given.split('=')[1].split(',').map(it, it))"}
    found = mapped(entry)
    for pool in cluster.pools:
        if any(pool.allows.values()):
            allows = {key: "dyn(true)" for key, allowed in pool.allows.items() if allowed}
            of_pool = f"({name} + '.').startsWith('{pool.name}.')"
            found = f"({of_pool} ? {mapped({**entry, **allows})} : {found})"
    return found
