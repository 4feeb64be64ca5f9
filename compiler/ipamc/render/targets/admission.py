"""Admission policies: kube-apiserver gives a node its blocks as it joins, and refuses other ones.

The policies contain the blocks, as a text with a line for each node. ConfigMaps as parameters would be
shorter, but are not reliable: when the last binding with such a parameter is deleted, by anybody, a
kube-apiserver keeps using the old ConfigMaps until it restarts (seen on 1.36.3; kubernetes/kubernetes#130887
and #133827). They also cost more: all of them are read for every request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ipamc.model.admission import ASSIGN, digest, label_of
from ipamc.model.cilium.operator_list import given_by_operator
from ipamc.model.cluster import Mode
from ipamc.model.follows import given_by_address
from ipamc.read.parts import ADMISSION
from ipamc.render.targets import cel, cel_follows
from ipamc.render.targets.cilium_node import allocated
from ipamc.render.targets.context import File, Layout, Lines, texts

_TEXT = 90_000
"""The most characters of a text: kube-apiserver accepts expressions of 100,000."""
_NAMES = 1_024
"""The average number of names in a text: a name begins a new one by its hash alone, once in this many."""
_SHARDS = 24
"""The approximate number of shards per policy: some 6,000 nodes, of 80 bytes each at most."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `admission/<policy>.yaml`: policies for one kind of object, with their bindings."""
    cluster, admission = layout.plan.cluster, layout.plan.cluster.admission
    parts = list(_parts(list(texts_of(sorted(_rows(layout)))), max(1, layout.plan.lock.shards // _SHARDS)))
    older = cluster.kubernetes is not None and cluster.kubernetes < ASSIGN
    values = {"cluster": label_of(cluster.name), "mutating": "v1beta1" if older else "v1"}
    by_address = given_by_address(cluster, layout.held)
    lines = [line for line in layout.plan.lock.lines if line.node not in by_address]
    for carrier in cel.carriers(cluster):
        follows = tuple(cel_follows.variables(cluster, lines, carrier.addresses))
        if admission.assign and carrier.patches:
            yield _file(values, [cel.assign(carrier, part, follows) for part in parts])
        if admission.enforce != "none" and carrier.agrees:
            action = admission.enforce.title()
            yield _file(values, [cel.enforce(carrier, part, follows, action) for part in parts])


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
        if place and (size > _TEXT or digest(row.partition(" ")[0]) % _NAMES == 0):
            starts.append(place)
            size = len(row) + 1
    for start, end in pairwise((*starts, len(rows))):
        first = rows[start].partition(" ")[0] if start else ""
        yield cel.Rows(first=first, lines=Lines(tuple(rows[start:end])))


def _parts(found: Sequence[cel.Rows], number: int) -> Iterator[cel.Part]:
    """Divide texts among `number` policies, some of which may be empty. The number depends on the count of
    shards, which never falls: a policy that was applied is always rendered again.
    """
    bounds = [place * len(found) // number for place in range(number + 1)]
    firsts = [found[place].first if 0 < place < len(found) else "" for place in bounds]
    for place, (start, end) in enumerate(pairwise(bounds)):
        yield cel.Part(
            number=place,
            first=firsts[place],
            end=firsts[place + 1],
            rows=tuple(found[start:end]) or (cel.Rows(first="", lines=Lines(())),),
        )


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
