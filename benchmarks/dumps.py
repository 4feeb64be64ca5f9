"""Measure `ipamc import`, `import --refresh` and `audit` on a dump of a running cluster, as a user runs them: cold processes.

    python benchmarks/dumps.py [NODES PODS_OF_EACH]      default: 5000 30

The dump is what `kubectl get nodes,ciliumnodes,pods,cm -A -o json` prints: Nodes with the images, conditions and managed fields of a kubelet (14 KB each), CiliumNodes as
agents leave them, Pods with two containers (6 KB each). Prints wall time in seconds and the peak of resident memory in MB of each run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from compile import run

Object = dict[str, Any]
DAY = "2026-11-22T12:00:00Z"


def managed(*managers: str) -> list[Object]:
    """Return managed fields as the apiserver keeps them."""
    fields: Object = {f"f:field-{number}": {"f:value": {}, ".": {}} for number in range(12)}
    return [
        {
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": fields}, "f:spec": fields},
            "manager": manager,
            "operation": "Update",
            "time": DAY,
        }
        for manager in managers
    ]


def metadata(name: str, number: int, **more: Any) -> Object:
    return {
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "name": name,
        "resourceVersion": str(1_000_000 + number),
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        **more,
    }


def node(number: int, block: str, address: str) -> Object:
    name = f"node-{number:06d}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "node-role.kubernetes.io/worker": "",
        "topology.kubernetes.io/zone": f"zone-{number % 10}",
        "example.com/rack": f"r{number % 400}",
    }
    conditions = [
        {
            "lastHeartbeatTime": DAY,
            "lastTransitionTime": "2026-01-05T08:00:00Z",
            "message": f"kubelet says that {kind} is as it should be",
            "reason": f"Kubelet{kind}",
            "status": "True" if kind == "Ready" else "False",
            "type": kind,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {
            "names": [f"registry.example.com/team/image-{image}@sha256:{'0' * 64}", f"image-{image}:1"],
            "sizeBytes": 9,
        }
        for image in range(50)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, number, labels=labels, managedFields=managed("kubelet", "cilium")),
        "spec": {"podCIDR": block, "podCIDRs": [block]},
        "status": {
            "addresses": [{"address": address, "type": "InternalIP"}, {"address": name, "type": "Hostname"}],
            "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
            "conditions": conditions,
            "images": images,
            "nodeInfo": {"kubeletVersion": "v1.33.4"},
        },
    }


def cilium_node(number: int, block: str, address: str) -> Object:
    name = f"node-{number:06d}"
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name,
        "uid": f"00000000-0000-4000-8000-{number:012d}",
    }
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": metadata(name, 500_000 + number, ownerReferences=[owner]),
        "spec": {
            "addresses": [
                {"ip": address, "type": "InternalIP"},
                {"ip": block.replace(".0/24", ".7"), "type": "CiliumInternalIP"},
            ],
            "ipam": {"podCIDRs": [block]},
        },
        "status": {"ipam": {"operator-status": {}}},
    }


def pod(number: int, on: int, address: str) -> Object:
    containers = [
        {
            "env": [{"name": f"VARIABLE_{index}", "value": "some value of a service"} for index in range(15)],
            "image": f"registry.example.com/team/image-{number % 50}:1",
            "name": f"main-{index}",
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
        }
        for index in range(2)
    ]
    labels = {"app": f"service-{number % 900}", "pod-template-hash": "0123456789"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(
            f"pod-{number:07d}", 1_000_000 + number, namespace=f"team-{number % 50}", labels=labels
        ),
        "spec": {"containers": containers, "nodeName": f"node-{on:06d}"},
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": "2026-11-01T00:00:00Z",
        },
    }


def config() -> Object:
    data = {
        "cluster-pool-ipv4-cidr": "10.0.0.0/8",
        "cluster-pool-ipv4-mask-size": "24",
        "enable-ipv4": "true",
        "enable-ipv6": "false",
        "ipam": "cluster-pool",
    }
    more = {"namespace": "kube-system", "annotations": {"meta.helm.sh/release-name": "cilium"}}
    return {
        "apiVersion": "v1",
        "data": data,
        "kind": "ConfigMap",
        "metadata": metadata("cilium-config", 0, **more),
    }


def objects(nodes: int, pods: int) -> Iterator[Object]:
    """Yield a cluster, its nodes first."""
    blocks = [f"10.{number >> 8}.{number & 255}.0/24" for number in range(nodes)]
    addresses = [f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}" for number in range(nodes)]
    for number in range(nodes):
        yield node(number, blocks[number], addresses[number])
    for number in range(nodes):
        yield cilium_node(number, blocks[number], addresses[number])
    for number in range(nodes * pods):
        on, place = number % nodes, number // nodes
        yield pod(number, on, blocks[on].replace(".0/24", f".{10 + place}"))
    yield config()


def write(file: TextIO, nodes: int, pods: int) -> None:
    """Write what kubectl prints: four blanks for each level."""
    file.write('{\n    "apiVersion": "v1",\n    "items": [')
    for number, item in enumerate(objects(nodes, pods)):
        text = json.dumps(item, indent=4).replace("\n", "\n        ")
        file.write(f"{',' if number else ''}\n        {text}")
    file.write('\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


def main() -> None:
    nodes, pods = [int(text) for text in sys.argv[1:3]] or [5_000, 30]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (folder / "dump.json").open("w") as file:
            write(file, nodes, pods)
        size = (folder / "dump.json").stat().st_size >> 20
        print(f"{nodes:,} nodes, {nodes * pods:,} pods, {size:,} MB of JSON")
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        start = ["import", "bench", "dump.json", "--cilium-version", "1.18"]
        again = ["import", "bench", "--refresh", "dump.json"]
        for arguments in (start, again, ["audit", "bench", "dump.json"]):
            seconds, memory = run(arguments, folder)
            print(f"{' '.join(arguments[:3]):<28}  {seconds:>7.2f} s  {memory:>6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
