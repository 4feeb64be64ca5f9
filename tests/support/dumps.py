"""Objects of a running cluster as kubectl prints them, for tests of dumps: as little as a test needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = dict[str, Any]


def node(  # noqa: PLR0913 - a fixture names what a test is about
    name: str,
    *pod_cidrs: str,
    uid: str = "",
    labels: Mapping[str, str] = {},
    ip: str = "",
    ready: bool = True,
    max_pods: int = 110,
    heartbeat: str = "2026-11-22T12:00:00Z",
    kubelet: str = "v1.33.4",
) -> Object:
    """Return a Node with the noise that a kubelet writes."""
    spec: Object = {"podCIDR": pod_cidrs[0], "podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, **labels},
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "resourceVersion": "100",
        },
        "spec": spec,
        "status": {
            "addresses": [{"type": "InternalIP", "address": ip}] if ip else [],
            "allocatable": {"cpu": "4", "pods": str(max_pods)},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "lastHeartbeatTime": heartbeat,
                    "lastTransitionTime": "2026-01-05T08:00:00Z",
                }
            ],
            "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320_368}],
            "nodeInfo": {"kubeletVersion": kubelet},
        },
    }


def cilium_node(
    name: str,
    *pod_cidrs: str,
    allocated: Mapping[str, Sequence[str]] = {},
    addresses: Iterable[str] = (),
    used: Iterable[str] = (),
    router: Iterable[str] = (),
    error: str = "",
    owner: str | None = None,
) -> Object:
    """Return a CiliumNode as agent and operator leave it. `router` are its CiliumInternalIPs."""
    ipam: Object = {"podCIDRs": list(pod_cidrs)} if pod_cidrs else {}
    if allocated:
        ipam["pools"] = {
            "allocated": [{"pool": pool, "cidrs": list(some)} for pool, some in allocated.items()]
        }
    if single := list(addresses):
        ipam["pool"] = {address: {} for address in single}
    status: Object = {"operator-status": {"error": error} if error else {}}
    if taken := {address: {"owner": "pod"} for address in used}:
        status["used"] = taken
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {
            "name": name,
            "uid": f"cilium-{name}",
            "creationTimestamp": "2026-01-05T08:00:30Z",
            "resourceVersion": "200",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner or f"uid-{name}"}
            ],
        },
        "spec": {
            "addresses": [{"type": "CiliumInternalIP", "ip": ip} for ip in router],
            "ipam": ipam,
        },
        "status": {"ipam": status},
    }


def pod(name: str, on: str, *ips: str, namespace: str = "default", **more: Any) -> Object:
    """Return a running Pod. `more` are fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "app:1"}], **more},
        "status": {
            "phase": "Running",
            "podIP": ips[0] if ips else None,
            "podIPs": [{"ip": ip} for ip in ips],
            "startTime": "2026-11-01T00:00:00Z",
        },
    }


def config_map(name: str = "cilium-config", namespace: str = "kube-system", **data: str) -> Object:
    """Return a ConfigMap; `_` in a key stands for `-`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key.replace("_", "-"): value for key, value in data.items()},
    }


def pool(name: str, *, mask: int, cidrs: Sequence[str], family: str = "ipv4") -> Object:
    """Return a CiliumPodIPPool of one family."""
    return {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": name},
        "spec": {family: {"cidrs": list(cidrs), "maskSize": mask}},
    }


def kubectl(*objects: Object) -> str:
    """Return objects as `kubectl get -o json` prints several kinds."""
    shell = {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}
    return json.dumps(shell, indent=4) + "\n"
