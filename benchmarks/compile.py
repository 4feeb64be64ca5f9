"""Measure `ipamc compile` as a user runs it: a cold process, a first compile and one that changes nothing, from YAML and from JSON.

    python benchmarks/compile.py [NODES ...]      default: 5000 20000

Prints wall time in seconds and the peak of resident memory in MB of each run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ZONES = 10
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: bench}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""


def pools() -> str:
    return "---\n".join(
        f"""apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: zone-{zone}}}
spec:
  ipv4: {{cidrs: [10.{zone * 16}.0.0/12], blockSize: 26}}
  nodeSelector: topology.kubernetes.io/zone == "zone-{zone}"
  blockSizes:
  - {{nodeSelector: 'size == "large"', ipv4: 25}}
  - {{nodeSelector: 'size == "small"', ipv4: 28}}
"""
        for zone in range(ZONES)
    )


def nodes(count: int) -> list[dict[str, object]]:
    sizes = ("medium", "large", "small", "medium")
    return [
        {
            "name": f"node-{number:06d}",
            "labels": {
                "kubernetes.io/hostname": f"node-{number:06d}",
                "node-role.kubernetes.io/worker": "",
                "rack": f"r{number % 400}",
                "size": sizes[number // ZONES % 4],
                "topology.kubernetes.io/zone": f"zone-{number % ZONES}",
            },
            "maxPods": 14,
        }
        for number in range(count)
    ]


def as_yaml(items: list[dict[str, object]]) -> str:
    rows = ["apiVersion: ipamc/v1alpha1", "kind: NodeInventory", "nodes:"]
    for item in items:
        labels = item["labels"]
        assert isinstance(labels, dict)
        rows += [f"- name: {item['name']}", "  labels:"]
        rows += [f"    {key}: {value or chr(34) * 2}" for key, value in labels.items()]
        rows.append(f"  maxPods: {item['maxPods']}")
    return "\n".join(rows) + "\n"


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run the command line in a cold process; give seconds and peak MB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "ipamc", *arguments], cwd=folder, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    trouble = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(trouble)
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [5_000, 20_000]
    print(f"{'nodes':>7}  {'inventory':<9}  {'run':<9}  {'seconds':>7}  {'MB':>6}")
    for count in counts:
        for kind in ("YAML", "JSON"):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / "clusters" / "bench"
                folder.mkdir(parents=True)
                (folder / "cluster.yaml").write_text(CLUSTER)
                (folder / "ippools.yaml").write_text(pools())
                if kind == "YAML":
                    (folder / "nodes.yaml").write_text(as_yaml(nodes(count)))
                else:
                    document = {
                        "apiVersion": "ipamc/v1alpha1",
                        "kind": "NodeInventory",
                        "nodes": nodes(count),
                    }
                    (folder / "nodes.json").write_text(json.dumps(document))
                for label, arguments in (
                    ("first", ["compile"]),
                    ("again", ["compile"]),
                    ("--check", ["compile", "--check"]),
                ):
                    seconds, memory = run(arguments, Path(scratch))
                    print(f"{count:>7,}  {kind:<9}  {label:<9}  {seconds:>7.2f}  {memory:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
