"""What makes a cluster less safe: each setting in both directions, and an ordinary request, which does nothing of the kind."""

from __future__ import annotations

import pytest

from ipamc.model.cluster import Scheme
from ipamc.pipeline import Inputs
from ipamc.review.diff import read_base
from ipamc.review.diff.documents import weaker
from ipamc.workspace.disk import assets

BASE = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.17", managedBy: none, routingMode: native}
  kubernetes: {version: "1.36"}
  ipam: {mode: cluster-pool}
  admission: {assign: true, enforce: warn}
  excludedCIDRs: [10.1.0.0/28, 192.168.0.0/16]
  bgp: metallb
  quarantineDays: 5
  budget: {leave: 10}
  cloudRoutes: 100
  acknowledge: [{code: IPC0311, reason: to come, pools: [a, old], nodes: zone == "z"}]
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [10.1.0.0/16, 10.2.0.0/16], blockSize: 27}
  reserved: [10.1.4.0/24, 10.2.0.0/24]
  pins: {n1: [10.1.5.0/27]}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: old}
spec:
  ipv4: {cidrs: [10.9.0.0/24], blockSize: 27}
  disabled: true
---
apiVersion: ipamc/v1alpha1
kind: Tests
tests:
- name: in the pool
  blocks: {nodeSelector: all(), within: [10.0.0.0/8]}
- name: room
  room: {nodes: 3, pool: a}
- name: tickets
  renumber: {ticket: "NET-*", agreed: [{node: n1, ticket: NET-1}]}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}]
"""


def cluster(text: str) -> Scheme:
    inputs = Inputs(
        name="lab",
        folder="clusters/lab",
        sources={"clusters/lab/a.yaml": text.encode()},
        lock=None,
        lock_path="clusters/lab/ipam.lock",
        schemas=assets("schemas"),
        templates={},
    )
    found = read_base(inputs, {}).cluster
    assert found
    return found


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("quarantineDays: 5", "quarantineDays: 4", ["quarantineDays 5 → 4"]),
        ("quarantineDays: 5", "quarantineDays: 6", []),
        ("quarantineDays: 5", "quarantineDays: never", []),
        ("budget: {leave: 10}", "budget: {leave: 50}", ["budget.leave 10 % → 50 %"]),
        ("budget: {leave: 10}", "budget: {}", []),
        ("cloudRoutes: 100", "cloudRoutes: 200", ["cloudRoutes 100 → 200"]),
        ("  cloudRoutes: 100\n", "", ["cloudRoutes 100 → (none)"]),
        ("cloudRoutes: 100", "cloudRoutes: 50", []),
        ("assign: true, ", "", ["admission.assign true → false"]),
        ("enforce: warn", "enforce: none", ["admission.enforce warn → none"]),
        ("enforce: warn", "enforce: deny", []),
        ("10.1.0.0/28, ", "", ["excludedCIDRs 10.1.0.0/28 → (none)"]),
        ("10.1.0.0/28, ", "10.1.0.0/27, ", []),
        (", 192.168.0.0/16", "", ["excludedCIDRs 192.168.0.0/16 → (none)"]),  # the next pool may have it
        ('"1.36"', '"1.35"', ["kubernetes.version 1.36 → 1.35"]),
        (", routingMode: native", "", ["cilium.routingMode native → (none)"]),
        ("  bgp: metallb\n", "", ["bgp metallb → (none)"]),
        ("  pins: {n1: [10.1.5.0/27]}\n", "", ["pins of a 10.1.5.0/27 → (none)"]),
        ("nodes: [{name: n1}]", "nodes: [{name: n2}]", []),  # with a node its pin may go
        ("  disabled: true\n", "", ["disabled old 10.9.0.0/24 → (none)"]),
        ("10.1.4.0/24, ", "", ["reserved of a 10.1.4.0/24 → (none)"]),
        ("10.1.4.0/24, ", "10.1.4.0/25, 10.1.4.128/25, ", []),
        ("10.2.0.0/16], ", "10.3.0.0/16], ", []),  # its reservation goes with the range
        ('"1.17"', '"1.16"', ["cilium.version 1.17 → 1.16"]),
        ('"1.17"', '"1.18"', []),
        ("  budget", "  context: admin@lab\n  budget", ["context lab → admin@lab"]),
        ("  budget", "  unpooled: hold\n  budget", ["unpooled refuse → hold"]),
        ("  budget", "  unmatchedNodes: skip\n  budget", ["unmatchedNodes error → skip"]),
        ("- name: room\n  room: {nodes: 3, pool: a}\n", "", ["test room asserted → removed"]),
        ("nodes: 3", "nodes: 2", ["test room asserted → changed"]),
        ("- name: room", "- name: some room", []),
        ("- name: room", "- name: room\n  warn: true", ["test room an error → a warning"]),
        ("{node: n1, ticket: NET-1}", "{node: n1, ticket: NET-1}, {node: n2, ticket: NET-2}", []),
        ('"NET-*"', '"*"', ["test tickets asserted → changed"]),
        ("nodes: [{name: n1}]", "nodes: [{name: n1}, {name: n2}]", []),
        ("10.2.0.0/16], ", "10.2.0.0/16, 10.3.0.0/16], ", []),
        ("pools: [a, old], ", "pools: [old], ", []),
        ("reason: to come", "reason: for others", []),
        ("pools: [a, old], ", "", ['acknowledge IPC0311 of nodes zone == "z" (none) → to come']),
        (', nodes: zone == "z"', "", ["acknowledge IPC0311 of pools a, old (none) → to come"]),
        (
            "acknowledge: [",
            "acknowledge: [{code: IPC0568, reason: by hand}, ",
            ["acknowledge IPC0568 (none) → by hand"],
        ),
    ],
)  # fmt: skip
def test_a_setting(old: str, new: str, found: list[str]) -> None:
    assert BASE.count(old) == 1
    differ = weaker(cluster(BASE), cluster(BASE.replace(old, new)))
    assert [f"{each.name} {each.old} → {each.new}" for each in differ] == found
    assert [*weaker(cluster(BASE), cluster(BASE))] == []
