"""Objects of a running cluster with everything that kubelets, controllers and people write into them.

A Node has what one of a real cluster has: the managedFields of five managers (`kubectl get --show-managed-fields`
and every client of the API see them), 50 images of two names, five conditions, annotations, capacity, nodeInfo and
some twenty labels. It is 33 KB of kubectl's JSON, and 19 KB of its YAML. Nothing is random, and keys are in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_network
from typing import Any

from kubectl import Shared

Object = dict[str, Any]
IMAGES = 50
CATALOGUE = 400
"""Images that the nodes of a cluster have together."""
MINUTES = 10
"""The kubelets' heartbeats fall into so many minutes."""
NOT_READY = 97
"""Of so many nodes one is not ready."""
SIZES = ("medium", "large", "small", "medium")


def name_of(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:06d}"


def uid_of(number: int) -> str:
    """Return the uid of a node."""
    digits = _digits(f"uid {number}")
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def labels_of(number: int, zones: int) -> dict[str, str]:
    """Return the seven labels of a node that a short inventory keeps."""
    return {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name_of(number),
        "node-role.kubernetes.io/worker": "",
        "node.kubernetes.io/instance-type": "m7i.metal-24xl",
        "rack": f"r{number % 400}",
        "size": SIZES[number // zones % 4],
        "topology.kubernetes.io/zone": f"zone-{number % zones}",
    }


def node(number: int, zones: int) -> Object:
    """Return a Node that runs Cilium."""
    name, digits = name_of(number), _digits(f"node {number}")
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        **_FEATURES,
        **labels_of(number, zones),
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "region-1",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "csi.volume.kubernetes.io/nodeid": f'{{"csi.storage.example.com":"{name}"}}',
                "nfd.node.kubernetes.io/feature-labels": ",".join(
                    key.partition("/")[2] for key in sorted(_FEATURES)
                ),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": f"2026-01-{1 + number % 28:02}T08:{number % 60:02}:00Z",
            "labels": dict(sorted(labels.items())),
            "managedFields": _managed(number % MINUTES),
            "name": name,
            "resourceVersion": str(100_000_000 + 37 * number),
            "uid": uid_of(number),
        },
        "spec": {"providerID": f"metal://{name}"},
        "status": {
            "addresses": [
                {"address": f"192.168.{number // 250}.{number % 250 + 1}", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": _AMOUNTS,
            "capacity": _AMOUNTS,
            "conditions": _conditions(number % MINUTES, ready=number % NOT_READY != NOT_READY - 1),
            "daemonEndpoints": _ENDPOINTS,
            "features": _STATUS_FEATURES,
            "images": [_image(number * 7 + index) for index in range(IMAGES)],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": f"{digits[:8]}-{digits[8:12]}-4a1e-9a51-{digits[12:24]}",
                "containerRuntimeVersion": "containerd://2.0.5",
                "kernelVersion": "6.12.48+deb13-amd64",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.33.4",
                "machineID": digits[:32],
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 13 (trixie)",
                "systemUUID": f"{digits[32:40]}-{digits[40:44]}-4b7c-8f3d-{digits[44:56]}",
            },
            "runtimeHandlers": _HANDLERS,
        },
    }


def cilium_node(number: int, block: str) -> Object:
    """Return the CiliumNode of a node with a block."""
    name = name_of(number)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(number)}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {
            "name": name,
            "ownerReferences": [owner],
            "resourceVersion": "1",
            "uid": f"c{uid_of(number)[1:]}",
        },
        "spec": {
            "addresses": [{"ip": str(ip_network(block)[1]), "type": "CiliumInternalIP"}],
            "ipam": {"podCIDRs": [block]},
        },
        "status": {"ipam": {"operator-status": {}}},
    }


def pod(name: str, on: str, address: str) -> Object:
    """Return a running Pod with a container of 25 variables."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"app": "x"}, "name": name, "namespace": "default", "uid": name},
        "spec": {"containers": _CONTAINERS, "nodeName": on},
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": "2026-11-01T00:00:00Z",
        },
    }


def config_map() -> Object:
    """Return cilium-config in cluster-pool mode."""
    return {
        "apiVersion": "v1",
        "data": {"enable-ipv4": "true", "enable-ipv6": "false", "ipam": "cluster-pool"},
        "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"},
    }


def nodes(count: int, zones: int) -> Iterator[Object]:
    """Return the Nodes of a cluster, one at a time."""
    return (node(number, zones) for number in range(count))


_CONTAINERS = [
    Shared(
        env=[{"name": f"VARIABLE_{number}", "value": "v" * 30} for number in range(25)],
        image="app:1",
        name="main",
    )
]
_AMOUNTS = Shared(
    {
        "cpu": "96",
        "ephemeral-storage": "1843000Mi",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "394886716Ki",
        "pods": "14",
    }
)
_ENDPOINTS = Shared(kubeletEndpoint={"Port": 10250})
_STATUS_FEATURES = Shared(supplementalGroupsPolicy=True)
_HANDLERS = [
    Shared(features={"recursiveReadOnlyMounts": True, "userNamespaces": True}, name=name)
    for name in ("", "runc")
]
_FEATURES = {
    f"feature.node.kubernetes.io/{name}": value
    for name, value in (
        ("cpu-cpuid.AESNI", "true"),
        ("cpu-cpuid.AVX512F", "true"),
        ("cpu-hardware_multithreading", "true"),
        ("kernel-version.full", "6.12.48-deb13-amd64"),
        ("system-os_release.ID", "debian"),
        ("system-os_release.VERSION_ID", "13"),
    )
}
_TYPES = ("DiskPressure", "MemoryPressure", "PIDPressure", "Ready")
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_WAITING = (
    "Ready",
    "False",
    "KubeletNotReady",
    (
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
        "message:Network plugin returns error: cni plugin not initialized"
    ),
)
_NETWORK = ("NetworkUnavailable", "False", "CiliumIsUp", "Cilium is running on this node")


@cache
def _conditions(minute: int, *, ready: bool) -> list[Object]:
    return [
        Shared(
            lastHeartbeatTime=f"2026-11-22T12:{minute:02}:{7 * minute % 60:02}Z",
            lastTransitionTime="2026-10-01T08:00:00Z",
            message=message,
            reason=reason,
            status=status,
            type=kind,
        )
        for kind, status, reason, message in (_NETWORK, *_HEALTHY, _READY if ready else _WAITING)
    ]


@cache
def _image(number: int) -> Object:
    """Return an image of the catalogue."""
    if number >= CATALOGUE:
        return _image(number % CATALOGUE)
    digest = _digits(f"image {number}")
    repository = f"registry.example.com/team-{number % 40}/service-{number}"
    version = f"v1.{number % 97}.{number % 13}"
    return Shared(
        names=[f"{repository}@sha256:{digest}", f"{repository}:{version}"],
        sizeBytes=1_000_000 + int(digest[:7], 16),
    )


@cache
def _managed(minute: int) -> list[Object]:
    """Return who wrote which field, and when."""
    conditions = {
        ".": {},
        **{
            f'k:{{"type":"{kind}"}}': _fields(
                ".", "lastHeartbeatTime", "lastTransitionTime", "message", "reason", "status", "type"
            )
            for kind in _TYPES
        },
    }
    labels = ("beta.kubernetes.io/arch", "beta.kubernetes.io/os", *labels_of(0, 1), "kubernetes.io/os")
    amounts = _fields(".", *_AMOUNTS)
    written = (
        (
            "kubelet",
            "",
            {
                "f:metadata": {
                    "f:annotations": _fields(".", "volumes.kubernetes.io/controller-managed-attach-detach"),
                    "f:labels": _fields(".", *sorted(labels)),
                },
                "f:spec": _fields("providerID"),
            },
        ),
        (
            "kube-controller-manager",
            "",
            {"f:metadata": {"f:annotations": _fields("node.alpha.kubernetes.io/ttl")}},
        ),
        (
            "nfd-master",
            "",
            {
                "f:metadata": {
                    "f:annotations": _fields("nfd.node.kubernetes.io/feature-labels"),
                    "f:labels": _fields(*sorted(_FEATURES)),
                }
            },
        ),
        (
            "cilium-operator-generic",
            "status",
            {
                "f:status": {
                    "f:conditions": {
                        'k:{"type":"NetworkUnavailable"}': _fields(
                            *(".", "lastHeartbeatTime", "lastTransitionTime", "message"),
                            *("reason", "status", "type"),
                        )
                    }
                }
            },
        ),
        (
            "kubelet",
            "status",
            {
                "f:metadata": {"f:annotations": _fields("csi.volume.kubernetes.io/nodeid")},
                "f:status": {
                    "f:addresses": {
                        ".": {},
                        **{
                            f'k:{{"type":"{kind}"}}': _fields(".", "address", "type")
                            for kind in ("Hostname", "InternalIP")
                        },
                    },
                    "f:allocatable": amounts,
                    "f:capacity": amounts,
                    "f:conditions": conditions,
                    "f:daemonEndpoints": {"f:kubeletEndpoint": _fields("Port")},
                    "f:images": {},
                    "f:nodeInfo": _fields(
                        *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion"),
                        *("kubeProxyVersion", "kubeletVersion", "machineID", "operatingSystem", "osImage"),
                        "systemUUID",
                    ),
                    "f:runtimeHandlers": {},
                },
            },
        ),
    )
    return [
        Shared(
            apiVersion="v1",
            fieldsType="FieldsV1",
            fieldsV1=fields,
            manager=manager,
            operation="Update",
            **({"subresource": subresource} if subresource else {}),
            time=f"2026-11-22T12:{minute:02}:{7 * minute % 60:02}Z",
        )
        for manager, subresource, fields in written
    ]


def _fields(*names: str) -> Object:
    return {name if name == "." else f"f:{name}": {} for name in names}


def _digits(seed: str) -> str:
    return hashlib.sha256(seed.encode()).hexdigest()
