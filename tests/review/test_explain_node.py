"""`ipamc why` says what a compile does: every node of every case is compared with the compiled plan."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ipamc.model.cluster import Cluster
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Consent, Lock
from ipamc.model.plan import Origin
from ipamc.pipeline import Inputs, compile_cluster, load_cluster
from ipamc.review.explain_node import ExplainedNode, NodeStatus, explain_node
from ipamc.review.explain_pools import PoolRole
from tests.support import casefile

OF_THE_INVENTORY = {
    *(NodeStatus.HELD, NodeStatus.PENDING, NodeStatus.NEWCOMER, NodeStatus.RETURNING),
    *(NodeStatus.SKIPPED, NodeStatus.UNMATCHED, NodeStatus.REFUSED),
}
OF_OTHERS = set(NodeStatus) - OF_THE_INVENTORY
SERVING = {PoolRole.FIRST, PoolRole.SERVES, PoolRole.STANDS_IN}


def explanations(cluster: Cluster, lock: Lock, today: str) -> Iterator[ExplainedNode]:
    names = (
        {node.name for node in cluster.nodes}
        | {line.node for line in lock.lines}
        | {each.name for each in cluster.cilium_nodes}
    )
    for name in sorted(names):
        found = explain_node(cluster, lock, name, today)
        assert found
        yield found


def read(name: str) -> Iterator[tuple[Inputs, Cluster, Lock]]:
    case = casefile.load(name)
    for each in list(case.each.values())[-1:] or (case,):
        inputs = replace(casefile.inputs(each), consent=Consent(), locked=False)
        try:
            yield inputs, *load_cluster(inputs)
        except Refused:
            continue


@pytest.mark.deep
@pytest.mark.parametrize("name", casefile.names())
def test_every_node_is_explained_as_it_is_compiled(name: str) -> None:
    for inputs, cluster, lock in read(name):
        inventory = {node.name for node in cluster.nodes}
        try:
            plan = compile_cluster(inputs).plan
        except Refused:
            plan = None
        try:
            explained = list(explanations(cluster, lock, inputs.today))
        except Refused:  # more blocks than a cluster may have
            assert plan is None
            continue
        for found in explained:
            assert found.status in (OF_THE_INVENTORY if found.node in inventory else OF_OTHERS)
            if found.node in inventory:
                assert {seen.pool.name for seen in found.pools} == {pool.name for pool in cluster.pools}
                assert all(seen.why for seen in found.pools)
            if plan is None:
                continue
            mine = {
                line.block for each in (lock, plan.lock) for line in each.lines if line.node == found.node
            }
            assert {block.line.block for block in found.blocks} == mine
            serving = {seen.pool.name for seen in found.pools if seen.verdict in SERVING}
            for block in found.blocks:
                if not block.number and block.origin in {Origin.FIRST_FIT, Origin.RE_USED, Origin.PIN}:
                    assert block.line.pool in serving
            assert (found.status in {NodeStatus.SKIPPED, NodeStatus.UNMATCHED, NodeStatus.REFUSED}) == (
                found.node in inventory and not plan.held.get(found.node)
            )
