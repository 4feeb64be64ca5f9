"""A small cluster of two nodes, n1 and n2: put its name in the place of NAME."""

CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: a}
spec:
  ipv4: {cidrs: [10.0.0.0/22], blockSize: 27}
---
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: n1}, {name: n2}]
"""
