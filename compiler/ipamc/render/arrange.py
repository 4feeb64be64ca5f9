"""A plan in, files out: which object is in which file.

`kustomize build` takes quadratic time in the number of objects, so nodes are divided into shards, each a
kustomization of its own. A node's shard depends only on its name and on the shard count in the lock: joining
and leaving nodes do not move the objects of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ipamc.model.cilium.cluster_mask import longest_prefix
from ipamc.model.cilium.versions import waits_for_agent
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, State
from ipamc.model.plan import Plan
from ipamc.read.rendered import Rendered
from ipamc.render.targets import TARGETS
from ipamc.render.targets.cilium_node import waiting
from ipamc.render.targets.context import File, Layout
from ipamc.render.targets.kustomization import files as kustomizations


def arrange(plan: Plan, before: Rendered | None = None) -> tuple[File, ...]:
    """Return every file below `rendered/` in order of application, kustomizations first. O(nodes + lines).

    `before` is what was rendered before; without it, nothing was.
    """
    layout = _layout(plan, before)
    files = tuple(file for target in TARGETS for file in target.files(layout))
    return (*kustomizations(files), *files)


def arrange_waiting(plan: Plan) -> tuple[File, ...]:
    """Return what is applied and not written, by the path of its part: see `cilium_node.waiting`."""
    some = any(waits_for_agent(plan.cluster, node) for node in plan.cluster.nodes)
    return tuple(waiting(_layout(plan, None))) if some else ()


def _layout(plan: Plan, before: Rendered | None) -> Layout:
    return Layout(
        plan=plan,
        before=before or Rendered(),
        shards=_shards(plan),
        held=_held(plan),
        masks=_masks(plan) if plan.cluster.mode is Mode.CLUSTER_POOL else {},
    )


def _masks(plan: Plan) -> Mapping[int, int]:
    return {family: longest_prefix(plan.cluster, family, plan.lock.lines) for family in plan.cluster.families}


def shard(node: str, count: int) -> int:
    """Return the shard of a node: the first 8 bytes of SHA-256 of its name, modulo the shard count."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big") % count


def shard_name(number: int) -> str:
    """Return the name of a shard: three hexadecimal digits."""
    return f"{number:03x}"


def _shards(plan: Plan) -> list[str]:
    numbers = [shard(want.node.name, plan.lock.shards) for want in plan.wants]
    names = {number: shard_name(number) for number in set(numbers)}
    return [names[number] for number in numbers]


def _held(plan: Plan) -> Mapping[str, tuple[Line, ...]]:
    """Return held lines by node, without nodes that no object is written for (see `Layout.held`)."""
    nodes = {line.node for line in plan.lock.lines if not line.pool and line.state is State.HELD}
    if not nodes:
        return plan.held
    if plan.cluster.mode is Mode.MULTI_POOL:
        return {node: tuple(line for line in lines if line.pool) for node, lines in plan.held.items()}
    return {node: lines for node, lines in plan.held.items() if node not in nodes}
