"""The clusters that scenarios run: one pool with blocks of 29 addresses for pods, in each mode."""

from __future__ import annotations

from tests.e2e.api import Object
from tests.support.fleet import cluster, inventory, pool

RANGE = "10.0.0.0/24"
MODES: dict[str, Object] = {
    "kubernetes": {"mode": "kubernetes"},
    "annotated": {"mode": "kubernetes", "patchNodes": "annotations"},
    "bystander": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
    "crd": {"mode": "crd"},
}


def documents(mode: str, nodes: str = "abc") -> list[Object]:
    """Make the documents of a cluster whose flags are Helm's."""
    spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27}, unlisted=True)
    return [
        cluster(cilium={"managedBy": "helm"}, **MODES[mode]),
        pool("default", ipv4={"cidrs": [RANGE], "blockSize": 27}),
        *([spare] if mode == "adopt" else []),
        inventory([{"name": name} for name in nodes]),
    ]
