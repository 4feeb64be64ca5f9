"""Measure `ipamc import` and `ipamc audit` as a user runs them: cold processes, a full dump of a running cluster, and a repository that knows what was applied.

    python benchmarks/dumps.py [NODES [PODS]]      default: 5000 30 (pods on each node)

The dump is as kubectl prints it, with what kubelets and people write around the fields that count: 5.5 KB for each pod, 6 KB for each Node. Prints wall time
in seconds, the best of three, and the peak of resident memory in MB: of loading the dump alone, of an audit that finds nothing, of an import with its compile, and of
an audit of faults of some kinds. The goals are 5 s and 700 MB for an audit of 5,000 nodes with 150,000 pods, and 3 s for an import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from compile import run
from plan import git

REPEAT = 3
Object = dict[str, Any]
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: bench}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec:
  ipv4: {cidrs: [10.0.0.0/9], blockSize: 24}
"""


def node(name: str, number: int, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, "rack": f"r{number % 40}"},
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "resourceVersion": str(number),
        },
        "spec": spec,
        "status": {
            "addresses": [{"type": "InternalIP", "address": f"192.168.{number // 250}.{number % 250 + 1}"}],
            "allocatable": {"pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-22T12:00:00Z"}],
            "images": [
                {"names": [f"registry.example/{'a' * 40}:v{k}"], "sizeBytes": 1_234} for k in range(40)
            ],
            "nodeInfo": {"kubeletVersion": "v1.33.4"},
        },
    }


def cilium_node(name: str, block: str) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"uid-{name}"}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": name, "uid": f"c-{name}", "ownerReferences": [owner], "resourceVersion": "1"},
        "spec": {
            "addresses": [{"type": "CiliumInternalIP", "ip": block.replace(".0/24", ".17")}],
            "ipam": {"podCIDRs": [block]},
        },
        "status": {"ipam": {"operator-status": {}}},
    }


def pod(name: str, on: str, address: str) -> Object:
    variables = [{"name": f"VARIABLE_{number}", "value": "v" * 30} for number in range(25)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "x"}},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "app:1", "env": variables}]},
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": "2026-11-01T00:00:00Z",
        },
    }


def objects(nodes: int, pods: int, lock: list[Object]) -> Iterator[Object]:
    blocks = {line["node"]: line["block"] for line in lock}
    names = sorted(blocks)[:nodes]
    for number, name in enumerate(names):
        yield node(name, number)
    for name in names:
        yield cilium_node(name, blocks[name])
    for name in names:
        network = ip_network(blocks[name])
        for number in range(pods):
            yield pod(f"{name}-{number}", name, str(network[number + 20]))
    data = {"ipam": "cluster-pool", "enable-ipv4": "true", "enable-ipv6": "false"}
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"},
        "data": data,
    }


def write(path: Path, every: Iterator[Object], change: Callable[[Object], Object]) -> None:
    """Write objects as kubectl prints a list of them, one at a time."""
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number, item in enumerate(every):
            text = json.dumps(change(item), indent=4).replace("\n", "\n        ")
            file.write(f"{',' if number else ''}{chr(10) if number else ''}        {text}")
        file.write(
            '\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'
        )


def fault(item: Object) -> Object:
    """Plant a fault in every hundredth object."""
    name = item["metadata"]["name"]
    if item["kind"] == "CiliumNode" and name.endswith("07"):
        item["spec"]["ipam"]["podCIDRs"] = ["10.127.0.0/24"]
    if item["kind"] == "Node" and name.endswith("09"):
        item["metadata"]["uid"] = "another"
    if item["kind"] == "Pod" and name.endswith("11-3"):
        item["status"]["podIPs"] = [{"ip": "10.126.0.1"}]
    return item


def main() -> None:
    nodes, pods = (*map(int, sys.argv[1:]), *(5_000, 30)[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cluster = folder / "clusters" / "bench"
        cluster.mkdir(parents=True)
        (cluster / "cluster.yaml").write_text(CLUSTER)
        listed = [{"name": f"node-{number:06d}", "uid": f"uid-node-{number:06d}"} for number in range(nodes)]
        inventory = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": listed}
        (cluster / "nodes.json").write_text(json.dumps(inventory))
        git(folder, "init", "-q")
        run(["compile"], folder)
        git(folder, "add", "-A")
        os.environ["GIT_COMMITTER_DATE"] = "2026-11-20T10:00:00Z"
        git(folder, "commit", "-q", "-m", "applied")
        git(folder, "update-ref", "refs/ipamc/applied/bench", "HEAD")
        lock = [json.loads(line) for line in (cluster / "ipam.lock").read_text().splitlines()[1:]]
        for title, change in (("sound", lambda item: item), ("faults", fault)):
            path = folder / "dump.json"
            write(path, objects(nodes, pods, lock), change)
            size = path.stat().st_size / 1e6
            print(f"{nodes:,} nodes, {nodes * pods:,} pods, {size:,.0f} MB, {title}", flush=True)
            for label in ("load", "audit", *(("import", "refresh") if title == "sound" else ())):
                runs = [measured(command(label, number), folder) for number in range(REPEAT)]
                print(
                    f"  {label:<7} {min(each for each, _ in runs):>6.2f} s  {max(each for _, each in runs):>5.0f} MB",
                    flush=True,
                )


def command(label: str, number: int) -> list[str]:
    """Return the command line of a run; each import starts a cluster of its own."""
    if label == "load":
        text = "from ipamc.workspace.dump import load_dump; load_dump(['dump.json'])"
        return [sys.executable, "-c", text]
    arguments = {
        "audit": ["audit", "bench", "dump.json", "--format", "concise"],
        "import": ["import", f"import-{number}", "dump.json", "--cilium-version", "1.18"],
        "refresh": ["import", f"import-{number}", "--refresh", "dump.json"],
    }
    return [sys.executable, "-m", "ipamc", *arguments[label]]


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Return seconds and MB of a process; its findings are not what is measured here."""
    text = (
        "import resource, subprocess, sys, time; start = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False); "
        "print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


if __name__ == "__main__":
    main()
