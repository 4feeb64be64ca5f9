"""Clusters of an address space as documents."""

from __future__ import annotations

_CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
  addressSpace: fabric
"""
_POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: NAME}
spec:
  ipv4: {RANGES, blockSize: SIZE}
"""


def cluster(name: str) -> str:
    """Return the Cluster of a member of the space fabric."""
    return _CLUSTER.replace("NAME", name)


def pool(ranges: str, *, size: int, name: str = "pods") -> str:
    """Return a pool with what it asks for, or with CIDRs of its own: `from: fabric`, `cidrs: [10.0.0.0/19]`."""
    return _POOL.replace("NAME", name).replace("RANGES", ranges).replace("SIZE", str(size))


def inventory(*nodes: str) -> str:
    """Return an inventory of nodes without labels."""
    names = ", ".join(f"{{name: {node}}}" for node in nodes)
    return f"apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{names}]\n"


def member(name: str, ranges: str) -> str:
    """Return a member with a pool in blocks of /25 and two nodes, as one file."""
    return "---\n".join((cluster(name), pool(ranges, size=25), inventory("n1", "n2")))
