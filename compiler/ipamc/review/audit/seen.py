"""A dump in the forms that other rooms compare with: objects as kubectl prints them, and a `Cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ipamc.model.cidr import address_text
from ipamc.model.cluster import CiliumNode, Cluster, Node
from ipamc.model.diagnostics import Place
from ipamc.model.dump import Dump, SeenCiliumNode, SeenNode
from ipamc.read.rendered import identity
from ipamc.review.live.objects import (
    CILIUM_NODE,
    NODE,
    NODE_CONFIG,
    POOL,
    Object,
    pod_cidr_annotations,
)


def live_objects(dump: Dump) -> dict[str, Object]:
    """Return the objects of a dump by identity, with what ipamc owns of them and nothing else."""
    return {identity(document): document for document in _documents(dump)}


def _documents(dump: Dump) -> Iterator[dict[str, Any]]:
    for node in dump.nodes:
        cidrs = [str(block) for block in node.pod_cidrs]
        yield {
            "kind": NODE,
            "metadata": {"name": node.name, "uid": node.uid, "annotations": _own(node.annotations)},
            "spec": {"podCIDR": cidrs[0], "podCIDRs": cidrs} if cidrs else {},
        }
    for seen in dump.cilium_nodes:
        ipam: dict[str, Any] = {}
        if seen.blocks:
            ipam["podCIDRs"] = [str(block) for block in seen.blocks]
        if seen.addresses:
            ipam["pool"] = {
                address_text(run.family, number): {}
                for run in seen.addresses
                for number in range(run.first, run.last + 1)
            }
        if seen.allocated:
            pools: dict[str, list[str]] = {}
            for block, pool in seen.allocated:
                pools.setdefault(pool, []).append(str(block))
            ipam["pools"] = {"allocated": [{"pool": name, "cidrs": cidrs} for name, cidrs in pools.items()]}
        yield {"kind": CILIUM_NODE, "metadata": {"name": seen.name}, "spec": {"ipam": ipam}}
    for each in dump.pools:
        yield {
            "kind": POOL,
            "metadata": {"name": each.name, "labels": dict(each.labels)},
            "spec": dict(each.spec),
        }
    for config in dump.node_configs:
        yield {
            "kind": NODE_CONFIG,
            "metadata": {"name": config.name, "namespace": config.namespace},
            "spec": {"nodeSelector": dict(config.selector), "defaults": dict(config.defaults)},
        }


def owned(document: Object) -> Object:
    """Return a rendered object as a dump can show it: of the annotations of a Node only those with its blocks."""
    if document["kind"] != NODE:
        return document
    metadata = {**document["metadata"], "annotations": pod_cidr_annotations(document)}
    return {**document, "metadata": metadata}


def _own(annotations: Mapping[str, str]) -> dict[str, str]:
    return pod_cidr_annotations({"metadata": {"annotations": annotations}})


def live_cluster(cluster: Cluster, dump: Dump) -> Cluster:
    """Return the cluster with the Nodes and CiliumNodes of a dump in place of those of the input."""
    return replace(
        cluster,
        nodes=tuple([_node(node) for node in dump.nodes]),
        cilium_nodes=tuple([_cilium_node(seen) for seen in dump.cilium_nodes]),
    )


def _node(node: SeenNode) -> Node:
    return Node(
        name=node.name,
        labels=dict(node.labels),
        at=Place(node.file),
        uid=node.uid,
        pod_cidrs=node.pod_cidrs,
        max_pods=node.max_pods,
        internal_ips=node.internal_ips,
        live=True,
        running=node.ready or node.cilium_runs,
    )


def _cilium_node(seen: SeenCiliumNode) -> CiliumNode:
    return CiliumNode(
        name=seen.name,
        at=Place(seen.file),
        blocks=tuple([(block, "") for block in seen.blocks]),
        allocated=seen.allocated,
        addresses=seen.addresses,
    )
