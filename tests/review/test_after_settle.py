"""The steps after `ipamc lock --settle`, by mode; tests/e2e/test_renumber.py runs them."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.review.runbook.sentences import after_settle
from ipamc.workspace.disk import assets
from tests.support.builders import plan, pool

TEMPLATES = assets("templates/runbooks")
POOL = pool("default", "10.0.0.0/24")
KUBECTL = "kubectl --context=built"
RESTART = f"restart the agent of each node: {KUBECTL} --namespace=kube-system delete pod --selector=k8s-app=cilium --field-selector=spec.nodeName=n1"
PODS = f"restart the remaining pods, after the agents are ready: {KUBECTL} delete pods --all-namespaces '--selector=k8s-app!=cilium' --field-selector=spec.nodeName=n1"
UNCORDON = f"uncordon each node: {KUBECTL} uncordon n1"
REFRESH = "refresh the inventory: ipamc dump built --for refresh --write built.live.json && ipamc import built --refresh "
DELETE = f"delete the CiliumNode of each node: {KUBECTL} delete ciliumnode n1"
AGAIN = "delete the CiliumNode of each node, and apply again"
APPLY = f"{AGAIN}: {KUBECTL} delete ciliumnode --ignore-not-found n1 && ipamc apply built"
FLAGS = "roll out cilium/ and restart the operator; only if cluster-pool-ipv4-cidr changes"
REFUSED = f"{APPLY}; only if the apply is refused as a conflict"
JOINS = [
    f"save each Node: {KUBECTL} get node n1 --output=yaml > n1.saved.yaml",
    f"delete each Node: {KUBECTL} delete node n1",
    "on the node: restart the kubelet: the node joins again: sudo systemctl restart kubelet",
    f"cordon each node again: {KUBECTL} cordon n1",
    REFRESH,
]


@pytest.mark.parametrize(
    ("mode", "fields", "commands"),
    [
        (
            "kubernetes",
            {},
            [*JOINS, RESTART, PODS, UNCORDON],
        ),
        (
            "cluster-pool",
            {"patch_nodes": "podCIDRs"},
            [*JOINS, REFUSED, RESTART, PODS, UNCORDON, REFRESH],
        ),
        ("kubernetes", {"patch_nodes": "annotations"}, [RESTART, PODS, UNCORDON, REFRESH]),
        ("cluster-pool", {}, [REFUSED, RESTART, PODS, UNCORDON, REFRESH]),
        (
            "cluster-pool",
            {"operator": "adopt"},
            [FLAGS, f"{AGAIN}; only if the apply is refused as a conflict", RESTART, PODS, UNCORDON, REFRESH],
        ),
        ("crd", {}, [APPLY, RESTART, PODS, UNCORDON, REFRESH]),
        ("multi-pool", {"pinning": "node"}, [DELETE, RESTART, PODS, UNCORDON, REFRESH]),
        (
            "multi-pool",
            {"pinning": "pool"},
            [
                "delete the CiliumNode of each node, and apply its seed at once",
                RESTART,
                PODS,
                UNCORDON,
                REFRESH,
            ],
        ),
    ],
)
def test_the_steps_by_mode(mode: str, fields: dict[str, Any], commands: list[str]) -> None:
    first, *steps = after_settle(plan(mode, [POOL], {}, **fields), ["n1"], TEMPLATES)
    assert (
        first
        == "next: compile, merge and apply this change; ipamc runbook built prints all steps, with checks:"
    )
    numbered = [f"{number}. {command}" for number, command in enumerate(commands, 1)]
    assert [step[: len(start)] for step, start in zip(steps, numbered, strict=True)] == numbered


def test_several_nodes_have_the_steps_once() -> None:
    cluster = plan("cluster-pool", [POOL], {})
    first, *steps = after_settle(cluster, ["n1", "n2"], TEMPLATES)
    assert "then for each of n1, n2; " in first
    assert steps[-2] == "4. uncordon each node: kubectl --context=built uncordon NODE"
    assert after_settle(cluster, [], TEMPLATES) == ()
