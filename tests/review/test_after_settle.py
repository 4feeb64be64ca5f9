"""The steps after `ipamc lock --settle`, by mode; tests/e2e/test_renumber.py runs them."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.review.after_settle import after_settle
from tests.support.builders import plan, pool

POOL = pool("default", "10.0.0.0/24")
RESTART = "kubectl -n kube-system delete pod -l k8s-app=cilium --field-selector spec.nodeName=n1"
PODS = "kubectl delete pods -A --field-selector spec.nodeName=n1, once the agent is ready"
UNCORDON = "kubectl uncordon n1"
DELETE = "kubectl delete ciliumnode n1"
APPLY = f"{DELETE} && ipamc ci apply built"
FLAGS = "roll out cilium/ and restart the operator, if cluster-pool-ipv4-cidr changes"
REFUSED = f"{APPLY}, if the apply is refused as a conflict"


@pytest.mark.parametrize(
    ("mode", "fields", "commands"),
    [
        (
            "kubernetes",
            {},
            [
                "kubectl delete node n1, and restart its kubelet",
                "export the inventory again (kubectl get nodes -o yaml), then ipamc compile built, merge and apply",
            ],
        ),
        (
            "cluster-pool",
            {"patch_nodes": "podCIDRs"},
            [
                "kubectl delete node n1, and restart its kubelet",
                "export the inventory again (kubectl get nodes -o yaml), then ipamc compile built, merge and apply",
                REFUSED,
                RESTART,
                PODS,
                UNCORDON,
            ],
        ),
        ("kubernetes", {"patch_nodes": "annotations"}, [RESTART, PODS, UNCORDON]),
        ("cluster-pool", {}, [REFUSED, RESTART, PODS, UNCORDON]),
        ("cluster-pool", {"operator": "adopt"}, [FLAGS, REFUSED, RESTART, PODS, UNCORDON]),
        ("crd", {}, [APPLY, RESTART, PODS, UNCORDON]),
        ("multi-pool", {"pinning": "node"}, [DELETE, RESTART, PODS, UNCORDON]),
        (
            "multi-pool",
            {"pinning": "pool"},
            [f"{DELETE}, and apply its document of rendered/seeds/ at once", RESTART, PODS, UNCORDON],
        ),
    ],
)
def test_the_steps_by_mode(mode: str, fields: dict[str, Any], commands: list[str]) -> None:
    first, *steps = after_settle(plan(mode, [POOL], {}, **fields), ["n1"])
    assert first == "next: compile, merge and apply this:"
    assert [step.partition(": ")[0] for step in steps] == [
        f"{number}. {command}" for number, command in enumerate(commands, 1)
    ]


def test_several_nodes_have_the_steps_once() -> None:
    cluster = plan("cluster-pool", [POOL], {})
    first, *steps = after_settle(cluster, ["n1", "n2"])
    assert "then for each of n1, n2:" in first
    assert steps[-1] == "4. kubectl uncordon NODE"
    assert after_settle(cluster, []) == ()
