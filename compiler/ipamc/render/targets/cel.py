"""The expressions of admission policies, in CEL as kube-apiserver compiles it (1.30 to 1.36 were run).

An object that contains the blocks of a node is a `Carrier`: how they are read from it and written to it. The
conditions of a policy are then the same for all carriers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ipamc.model.admission import COMMIT, KNOWN, PROBE
from ipamc.model.cilium.versions import pod_cidr_annotation
from ipamc.model.cluster import Cluster, Mode
from ipamc.render.targets.context import Lines

Variables = tuple[tuple[str, str], ...]
"""Names and expressions, ordered so that each uses only earlier ones."""


class Rows(Struct, frozen=True, kw_only=True):
    """Consecutive nodes with their blocks."""

    first: str
    """The start of their range of names; "" for the first ones."""
    lines: Lines
    """`NODE BLOCK...`, by name."""


class Part(Struct, frozen=True, kw_only=True):
    """The nodes of one policy: all nodes, or a range of names."""

    number: int
    first: str
    """The start of its range of names; "" for the first part."""
    end: str
    """The start of the next part; "" for the last part."""
    rows: tuple[Rows, ...]


class Policy(Struct, frozen=True, kw_only=True):
    """A policy and its binding."""

    carrier: Carrier
    part: Part
    mutates: bool
    action: str = ""
    """For a validating policy, the action of its binding: Deny or Warn."""
    failure: str
    """What happens to a request if an expression has an error: Fail or Ignore."""
    condition: str
    """The requests that it applies to."""
    variables: Variables
    expression: str
    """A list of JSON patches, or a boolean."""
    message: str = ""

    @property
    def name(self) -> str:
        """Its name, without the number of its part."""
        return f"{'assign' if self.mutates else 'enforce'}-{self.carrier.name}"


class Resource(Struct, frozen=True):
    """A resource that a policy matches."""

    group: str
    version: str
    name: str


_NODES = Resource("", "v1", "nodes")
_CILIUM_NODES = Resource("cilium.io", "v2", "ciliumnodes")
_POOLS = Resource("cilium.io", "v2alpha1", "ciliumpodippools")


class Carrier(Struct, frozen=True, kw_only=True):
    """A kind of object with a field that lists the blocks of a node."""

    name: str
    resource: Resource
    addresses: str = ""
    """The object's InternalIPs; "": no block follows from them."""
    carried: str
    """The list of the blocks in the object `{it}`, each in the form of the rows."""
    patches: str = ""
    """The JSON patches that write `variables.given` there; "": blocks are not written."""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    """The requests that give a node its blocks."""
    given: str = "variables.row"
    """The blocks in the lock, from the node's row."""
    agrees: str
    """Whether a node may have the carried blocks; "": nothing is refused."""
    node: str = "object.metadata.name"
    about: str = ""
    """The condition for objects that carry blocks, if not all do."""

    def has(self, it: str) -> str:
        """Return the expression for the blocks of an object."""
        return self.carried.replace("{it}", it)


def carriers(cluster: Cluster) -> Iterator[Carrier]:
    """Yield the carriers of a cluster. In kubernetes mode agents copy a Node's blocks to its CiliumNode."""
    agrees = "variables.carried == variables.given"
    if ranges := [repr(str(cidr.block)) for pool in cluster.pools if pool.unlisted for cidr in pool.ranges]:
        # Nodes that are not in the lock have blocks from the operator.
        inside = f"isCIDR(it) && {_list(*ranges)}.exists(range, cidr(range).containsCIDR(it))"
        agrees += f" || size(variables.row) == 0 && variables.carried.all(it, {inside})"
    if cluster.mode is Mode.CLUSTER_POOL:
        yield Carrier(
            name="ciliumnodes",
            resource=_CILIUM_NODES,
            addresses=_ADDRESSES.format("spec", "ip"),
            carried="(has({it}.spec.ipam) && has({it}.spec.ipam.podCIDRs) ? {it}.spec.ipam.podCIDRs : [])",
            patches=_put(("ipam", "podCIDRs"), "variables.given"),
            agrees=agrees,
        )
    if cluster.mode is Mode.MULTI_POOL:
        yield from _of_pools(cluster)
    if cluster.patch_nodes == "podCIDRs":
        yield Carrier(
            name="nodes",
            resource=_NODES,
            addresses=_ADDRESSES.format("status", "address"),
            carried="(has({it}.spec.podCIDRs) ? {it}.spec.podCIDRs : [])",
            patches=_list(
                _add("/spec/podCIDR", "variables.given[0]"), _add("/spec/podCIDRs", "variables.given")
            ),
            # Rows have IPv4 first, podCIDRs are in the order of `ipFamilies`.
            given=f"variables.row.filter(it, {_IPV6}) + variables.row.filter(it, !{_IPV6})"
            if cluster.families == (6, 4)
            else "variables.row",
            agrees=agrees,
        )
    if cluster.patch_nodes == "annotations":
        yield _annotated(cluster, agrees)


_IPV6 = "it.contains(':')"
_ADDRESSES = (
    "has(object.{0}.addresses) ? "
    "object.{0}.addresses.filter(it, it.type == 'InternalIP').map(it, it.{1}) : []"
)


def _annotated(cluster: Cluster, agrees: str) -> Carrier:
    keys = {family: pod_cidr_annotation(cluster.cilium, family) for family in sorted(cluster.families)}
    there = "has({it}.metadata.annotations)"
    carried = " + ".join(
        f"({there} && '{key}' in {{it}}.metadata.annotations ? [{{it}}.metadata.annotations['{key}']] : [])"
        for key in keys.values()
    )
    values = {key: f"variables.given[{place}]" for place, key in enumerate(keys.values())}
    pointers = {f"/metadata/annotations/{key.replace('/', '~1')}": value for key, value in values.items()}
    one_by_one = _list(*(_add(pointer, value) for pointer, value in pointers.items()))
    return Carrier(
        name="nodes",
        resource=_NODES,
        addresses=_ADDRESSES.format("status", "address"),
        carried=f"({carried})",
        patches=f"({there.replace('{it}', 'object')} ? {one_by_one} : "
        f"{_list(_add('/metadata/annotations', _map(values)))})",
        agrees=agrees,
    )


def _of_pools(cluster: Cluster) -> Iterator[Carrier]:
    """Yield the carriers of multi-pool mode: a row has `POOL=CIDR,CIDR` for each pool.
    Operator and agent own the list of blocks once the node joined, so it is given only by the first request.
    The operator chooses the blocks of pools that nodes share; those with a node's name are the lock's.
    Foreign pools are ignored here.
    """
    allocated = "{it}.spec.ipam.pools.allocated"
    there = f"has({{it}}.spec.ipam) && has({{it}}.spec.ipam.pools) && has({allocated})"
    pools = _list(*(f"'{name}.'" for name in (*cluster.pools_by_name, PROBE)))
    own, of_node = f"{pools}.exists(pool, {{}}.startsWith(pool))", "given.startsWith(entry.pool + '=')"
    listed = "given.substring(size(entry.pool) + 1).split(',')"
    yield Carrier(
        name="ciliumnodes",
        resource=_CILIUM_NODES,
        carried=f"({there} ? {allocated}.map(entry, entry.pool + '=' + entry.cidrs.join(',')) : [])",
        patches=_put(("ipam", "pools", "allocated"), f"variables.given.map(given, {_entry(cluster)})"),
        operations=("CREATE",),
        agrees=f"!({there}) || {allocated}.all(entry, !{own.format('entry.pool')} || entry.cidrs.all(cidr, "
        f"variables.given.exists(given, {of_node} && cidr in {listed})))".replace("{it}", "object")
        if cluster.own_pools
        else "",
    )
    if cluster.own_pools:
        name = "object.metadata.name"
        cidrs = [f"(has({{it}}.spec.ipv{family}) ? {{it}}.spec.ipv{family}.cidrs : [])" for family in (4, 6)]
        yield Carrier(
            name="ciliumpodippools",
            resource=_POOLS,
            carried=f"({' + '.join(cidrs)})",
            given=f"variables.row.filter(it, it.startsWith({name} + '='))"
            f".map(it, it.substring(size({name}) + 1))",
            agrees="sets.equivalent(variables.carried, "
            "size(variables.given) == 0 ? [] : variables.given[0].split(',').map(it, it))",
            node=f"{name}.substring({name}.indexOf('.') + 1)",
            about=own.format(name),
        )


def _entry(cluster: Cluster) -> str:
    """Return the entry of `allocated` for `POOL=CIDR,CIDR`, with the fields that its pool allows."""
    name = "given.split('=')[0]"
    entry = {"pool": f"dyn({name})", "cidrs": "dyn(given.split('=')[1].split(',').map(it, it))"}
    found = _map(entry)
    for pool in cluster.pools:
        if any(pool.allows.values()):
            allows = {key: "dyn(true)" for key, allowed in pool.allows.items() if allowed}
            of_pool = f"({name} + '.').startsWith('{pool.name}.')"
            found = f"({of_pool} ? {_map({**entry, **allows})} : {found})"
    return found


def assign(carrier: Carrier, part: Part, follows: Variables) -> Policy:
    """Return the policy that gives a node its blocks: also in an update, if it has none yet.
    An error must not stop a kubelet or an agent: a node without blocks waits, and the next request heals it.
    """
    probe = f"object.metadata.name == '{PROBE}'"
    answer = _list(_add("/metadata/annotations", _map({KNOWN: "variables.commit"})))
    return Policy(
        carrier=carrier,
        part=part,
        mutates=True,
        failure="Ignore",
        condition=_all(*_responsible(carrier, part), f"size({carrier.has('object')}) == 0"),
        variables=_variables(carrier, part, follows),
        expression=f"size(variables.given) > 0 ? {carrier.patches} : {probe} ? {answer} : []",
    )


def enforce(carrier: Carrier, part: Part, follows: Variables, action: str) -> Policy:
    """Return the policy that refuses, or warns of, blocks that the lock does not give.
    On an error, a CiliumNode is refused, and is sent again. A Node passes: a kubelet that cannot register is
    the greater harm.
    """
    before = f"(oldObject == null ? [] : {carrier.has('oldObject')})"
    git = f"'git gives ' + {carrier.node} + ' ' + {_shown('given', 'no block')}"
    commit = "(variables.commit == '' ? '' : ' (commit ' + variables.commit + ')')"
    return Policy(
        carrier=carrier,
        part=part,
        mutates=False,
        action=action,
        failure="Ignore" if carrier.resource is _NODES else "Fail",
        condition=_all(*_responsible(carrier, part), f"{carrier.has('object')} != {before}"),
        variables=(*_variables(carrier, part, follows), ("carried", carrier.has("object"))),
        expression=carrier.agrees,
        message=f"{git} + ', not ' + {_shown('carried', 'none')} + {commit}",
    )


def _variables(carrier: Carrier, part: Part, follows: Variables) -> Variables:
    """Return the variables that find the node's line. A variable that is not used costs nothing.
    `follows` are those for a node without a line, whose blocks may follow from its address.
    """
    which, found = "variables.rows0", "variables.found"
    other = f"variables.{follows[-1][0]}" if follows else "[]"
    for number, rows in enumerate(part.rows[1:], 1):
        which = f"{carrier.node} >= '{rows.first}' ? variables.rows{number} : {which}"
    return (
        (COMMIT, "''"),
        ("found", f"({which}).split('\\n' + {carrier.node} + ' ', 2)"),
        *follows,
        ("row", f"size({found}) < 2 ? {other} : {found}[1].split('\\n', 2)[0].split(' ').map(it, it)"),
        ("given", carrier.given),
    )


def _responsible(carrier: Carrier, part: Part) -> Iterator[str]:
    """Yield the conditions under which this policy's part is the one for the node's name."""
    yield carrier.about
    yield f"{carrier.node} >= '{part.first}'" if part.first else ""
    yield f"{carrier.node} < '{part.end}'" if part.end else ""


def _shown(variable: str, none: str) -> str:
    return f"(size(variables.{variable}) == 0 ? '{none}' : variables.{variable}.join(' '))"


def _all(*conditions: str) -> str:
    return " && ".join(filter(None, conditions))


def _put(keys: Sequence[str], value: str, above: str = "object.spec", pointer: str = "/spec") -> str:
    """Return the patches that put a value below `spec`, and create missing parents."""
    here, path, rest = f"{above}.{keys[0]}", f"{pointer}/{keys[0]}", keys[1:]
    nested = value
    for key in reversed(rest):
        nested = _map({key: nested})
    whole = _list(_add(path, nested))
    return f"(has({here}) ? {_put(rest, value, here, path)} : {whole})" if rest else whole


def _add(pointer: str, value: str) -> str:
    return f"JSONPatch{{op: 'add', path: '{pointer}', value: {value}}}"


def _list(*items: str) -> str:
    return f"[{', '.join(items)}]"


def _map(entries: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key!r}: {value}' for key, value in entries.items())}}}"
