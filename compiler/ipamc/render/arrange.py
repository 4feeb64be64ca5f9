"""Divides a plan into files: which object is in which file.

`kustomize build` takes quadratic time in the number of objects, so nodes are divided into shards, each a
kustomization of its own. A node's shard depends only on its name and on the shard count in the lock: joining
and leaving nodes do not move the objects of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.model import masquerade
from ipamc.model.admission import digest
from ipamc.model.cidr import Block
from ipamc.model.cilium.operator_list import longest_prefix
from ipamc.model.cilium.versions import waits_for_agent
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.read.parts import ADMISSION
from ipamc.read.rendered import Rendered
from ipamc.render.targets import TARGETS
from ipamc.render.targets.cilium_node import waiting
from ipamc.render.targets.context import File, Layout, kustomization

ALWAYS = "cilium"
"""A folder that exists even with nothing to apply; then it builds to nothing, with exit code 0."""


def arrange(plan: Plan, before: Rendered | None = None, members: Sequence[Block] = ()) -> tuple[File, ...]:
    """Return every file below `rendered/` in order of application, kustomizations first. O(nodes + lines).
    `members` are the addresses of the other clusters of the address space.
    """
    layout = _layout(plan, before, members)
    files = tuple(file for files_of in TARGETS for file in files_of(layout))
    return (*_kustomizations(files), *files)


def arrange_waiting(plan: Plan) -> tuple[File, ...]:
    """Return objects that are applied and not written, by path of their part: see `cilium_node.waiting`."""
    cluster = plan.cluster
    some = cluster.admission.assign or any(waits_for_agent(cluster, node) for node in cluster.nodes)
    return tuple(waiting(_layout(plan, None, ()))) if some else ()


def _layout(plan: Plan, before: Rendered | None, members: Sequence[Block]) -> Layout:
    cluster = plan.cluster
    numbers = [shard(want.node.name, plan.lock.shards) for want in plan.wants]
    names = {number: shard_name(number) for number in set(numbers)}
    return Layout(
        plan=plan,
        before=before or Rendered(),
        shards=[names[number] for number in numbers],
        held=_held(plan),
        unmasqueraded=masquerade.unmasqueraded(cluster, plan.lock.lines, members)
        if cluster.masquerade
        else (),
        masks={family: longest_prefix(cluster, family, plan.lock.lines) for family in cluster.families}
        if cluster.mode is Mode.CLUSTER_POOL
        else {},
    )


def shard(node: str, count: int) -> int:
    """Return the shard of a node: the first 8 bytes of SHA-256 of its name, modulo the shard count."""
    return digest(node) % count


def shard_name(number: int) -> str:
    """Return the name of a shard: three hexadecimal digits."""
    return f"{number:03x}"


def _held(plan: Plan) -> Mapping[str, tuple[Line, ...]]:
    """Return held lines by node, without nodes that get no object (see `Layout.held`)."""
    nodes = {line.node for line in plan.lock.lines if not line.pool and line.state is State.HELD}
    if not nodes:
        return plan.held
    if plan.cluster.mode is Mode.MULTI_POOL:
        return {node: tuple(line for line in lines if line.pool) for node, lines in plan.held.items()}
    return {node: lines for node, lines in plan.held.items() if node not in nodes}


def _kustomizations(others: Iterable[File]) -> Iterator[File]:
    """Yield the kustomization of the root and of each folder with files to apply.
    `others` are in the order of application: `sortOptions: fifo` keeps it, while kustomize's own order puts
    CiliumNodes before CiliumPodIPPools.
    """
    folders: dict[str, list[str]] = {ADMISSION: [], ALWAYS: []}
    for file in others:
        if file.applied:
            folder, _, name = file.path.rpartition("/")
            folders.setdefault(folder, []).append(name)
    if not folders[ADMISSION]:
        del folders[ADMISSION]
    tops = {folder.partition("/")[0]: index for index, folder in reversed(list(enumerate(folders)))}
    yield kustomization(
        "kustomization.yaml", sorted(folders, key=lambda folder: (tops[folder.partition("/")[0]], folder))
    )
    for folder, names in sorted(folders.items()):
        yield kustomization(f"{folder}/kustomization.yaml", names)
