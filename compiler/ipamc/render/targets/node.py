"""Partial Nodes for server-side apply: `spec.podCIDRs`, or the annotations that Cilium reads instead.

With `metadata.uid` the apiserver refuses to create a Node and to change a re-created one. Annotations keep
Argo CD and Flux from deleting a Node whose manifest is gone. A planned node has no Node object: its kubelet
creates one. If admission gives blocks, a node without a uid has none either.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cidr import Block
from ipamc.model.cilium.versions import pod_cidr_annotation
from ipamc.model.cluster import Cluster
from ipamc.model.lock import Line
from ipamc.model.node import Node
from ipamc.model.plan import Want, pod_cidrs
from ipamc.render.targets.context import File, Layout, texts

TEMPLATE = "node.yaml.j2"

Values = tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]]
"""Name, uid or "", annotations, podCIDRs."""


def files(layout: Layout) -> Iterator[File]:
    """Yield `nodes/<shard>/nodes.yaml`."""
    cluster = layout.plan.cluster
    if cluster.patch_nodes == "none":
        return

    def values(want: Want, lines: tuple[Line, ...]) -> Values | None:
        node = want.node
        if cluster.admission.assign and not node.uid and cluster.node_objects == "guarded":
            return None  # it gets its blocks when it joins
        if node.planned or not writable(cluster, node, blocks := pod_cidrs(cluster, lines)):
            return None
        if cluster.patch_nodes != "annotations":
            return node.name, node.uid, (), texts(blocks)
        annotations = ((pod_cidr_annotation(cluster.cilium, block.family), str(block)) for block in blocks)
        return node.name, node.uid, tuple(sorted(annotations)), ()

    for shard, nodes in layout.by_shard(values):
        yield File(f"nodes/{shard}/nodes.yaml", TEMPLATE, {"nodes": nodes})


def writable(cluster: Cluster, node: Node, blocks: tuple[Block, ...]) -> bool:
    """Return whether the apiserver accepts the Node: one block of each family, no change of podCIDRs.
    A Node with other podCIDRs is omitted until it was deleted and joined again; IPC0503 reports it.
    """
    if len(blocks) > 1 and len({block.family for block in blocks}) < len(blocks):
        return False
    return cluster.patch_nodes == "annotations" or not node.pod_cidrs or node.pod_cidrs == blocks
