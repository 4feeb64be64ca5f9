"""Admission policies: kube-apiserver gives a node its blocks as it joins, and refuses other ones.

The policies contain the blocks, as a text with a line for each node. ConfigMaps as parameters would be
shorter, but are not reliable: when the last binding with such a parameter is deleted, by anybody, a
kube-apiserver keeps using the old ConfigMaps until it restarts (seen on 1.36.3; kubernetes/kubernetes#130887
and #133827). They also cost more: all of them are read for every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ipamc.model.admission import ASSIGN, digest, label_of
from ipamc.model.cidr import BITS, Block
from ipamc.model.cilium.operator_list import given_by_operator
from ipamc.model.cluster import Mode
from ipamc.model.follows import given_by_address
from ipamc.model.limits import LONGEST_TEXT_OF_POLICY
from ipamc.model.pool_ranges import Given
from ipamc.read.parts import ADMISSION
from ipamc.render.targets import cel
from ipamc.render.targets.carriers import carriers
from ipamc.render.targets.cilium_node import allocated
from ipamc.render.targets.context import File, Layout, Lines, texts
from ipamc.render.targets.pod_ip_pool import shared_families

_NAMES = 1_024
"""The average number of names in a text: a name begins a new one by its hash alone, once in this many."""
_SHARDS = 24
"""The approximate number of shards per policy: some 6,000 nodes, of 80 bytes each at most."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `admission/<policy>.yaml`: policies for one kind of object, with their bindings."""
    plan, cluster, admission = layout.plan, layout.plan.cluster, layout.plan.cluster.admission
    number, action = max(1, plan.lock.shards // _SHARDS), admission.enforce.title()
    parts = _parts(_rows(layout), number)
    enforced = admission.enforce != "none"
    pools = _parts(_pools(layout) if enforced else (), 1)
    tables = {"nodes": parts, "pools": pools, "none": _parts((), 1)}
    older = cluster.kubernetes is not None and cluster.kubernetes < ASSIGN
    values = {"cluster": label_of(cluster.name), "mutating": "v1beta1" if older else "v1"}
    by_address = given_by_address(cluster, layout.held)
    lines = [line for line in plan.lock.lines if line.node not in by_address]
    for carrier in carriers(plan, layout.masks):
        follows = tuple(cel.follow_variables(cluster, lines, carrier.addresses))
        if admission.assign and carrier.patches:
            yield _file(values, [cel.assign(carrier, part, follows) for part in parts])
        if not enforced:
            continue
        yield _file(values, [cel.enforce(carrier, part, follows, action) for part in tables[carrier.rows]])
        if carrier.chosen:
            blocks = dict(_chosen(layout))
            sizes = {family: {each.prefix for each in blocks if each.family == family} for family in BITS}
            of_blocks = _parts((f"{block} {owner}" for block, owner in blocks.items()), number)
            yield _file(values, [cel.keep(carrier, part, sizes, cluster, action) for part in of_blocks])


def _file(values: Mapping[str, str], policies: Sequence[cel.Policy]) -> File:
    path = f"{ADMISSION}/{policies[0].name}.yaml"
    return File(path, "admission_policy.yaml.j2", {**values, "policies": policies})


def texts_of(rows: Sequence[str]) -> Iterator[cel.Rows]:
    """Divide sorted rows into several texts. An added or removed row changes one of them; one of 1,024
    divides it. Boundaries depend only on the names, not on an earlier compile.
    """
    starts, size = [0], 0
    for place, row in enumerate(rows):
        size += len(row) + 1
        if place and (size > LONGEST_TEXT_OF_POLICY or digest(row.partition(" ")[0]) % _NAMES == 0):
            starts.append(place)
            size = len(row) + 1
    for start, end in pairwise((*starts, len(rows))):
        first = rows[start].partition(" ")[0] if start else ""
        yield cel.Rows(first=first, lines=Lines(tuple(rows[start:end])))


def _parts(rows: Iterable[str], number: int) -> list[cel.Part]:
    """Divide rows among `number` policies, some of which may be empty. The number depends on the count of
    shards, which never falls: a policy that was applied is always rendered again.
    """
    found = list(texts_of(sorted(rows)))
    bounds = [place * len(found) // number for place in range(number + 1)]
    firsts = [found[place].first if 0 < place < len(found) else "" for place in bounds]
    return [
        cel.Part(
            number=place,
            first=firsts[place],
            end=firsts[place + 1],
            rows=tuple(found[start:end]) or (cel.Rows(first="", lines=Lines(())),),
        )
        for place, (start, end) in enumerate(pairwise(bounds))
    ]


def _rows(layout: Layout) -> Iterator[str]:
    """Yield `NODE BLOCK...`, IPv4 first, for each node whose name decides its blocks; in multi-pool mode
    `NODE POOL=CIDR,CIDR...`.
    """
    cluster, lock = layout.plan.cluster, layout.plan.lock
    if cluster.mode is Mode.MULTI_POOL:
        for want in layout.plan.wants:
            lines = layout.held.get(want.node.name, ())
            if pools := allocated(cluster, layout.plan.operator_pools, want.node, lines):
                yield " ".join((want.node.name, *(f"{pool}={','.join(cidrs)}" for pool, cidrs, _ in pools)))
        return
    others = given_by_operator(cluster, lock.lines) | given_by_address(cluster, layout.held)
    for name, lines in layout.plan.held.items():
        if name not in others:
            yield " ".join((name, *texts(line.block for line in lines)))


def _pools(layout: Layout) -> Iterator[str]:
    """Yield `POOL ipv4-SIZE-CIDR-CIDR...` for each pool that nodes share: what its CiliumPodIPPool has."""
    given = Given(layout.plan.cluster, layout.plan.lock)
    for pool in layout.plan.cluster.pools if layout.plan.cluster.mode is Mode.MULTI_POOL else ():
        if pool.name in layout.plan.operator_pools and (parts := [*shared_families(layout, pool, given)]):
            words = ("-".join((f"ipv{family}", str(size), *cidrs)) for family, cidrs, size in parts)
            yield " ".join((pool.name, *words))


def _chosen(layout: Layout) -> Iterator[tuple[Block, str]]:
    """Yield the blocks of pools that Cilium's operator gives out, each with its node. The operator may give
    one again if the node is gone, unless git lists it for the node by name: a pin, or a node that is planned.
    """
    plan = layout.plan
    planned = {want.node.name for want in plan.wants if want.node.planned}
    pins = {
        (pin.block, node)
        for pool in plan.cluster.pools
        if pool.name in plan.operator_pools
        for node, some in pool.pins.items()
        for pin in some
    }
    yield from ((block, f"{cel.KEPT}{node}") for block, node in sorted(pins))
    ours = given_by_operator(plan.cluster, plan.lock.lines) if plan.cluster.operator_adopts else None
    for line in plan.lock.lines:
        if line.in_use and line.pool in plan.operator_pools:
            kept = line.node in planned or (line.block, line.node) in pins
            kept |= ours is not None and line.node not in ours
            yield line.block, f"{cel.KEPT if kept else cel.GIVEN}{line.node}"
