"""The cluster that is measured: ten pools by zone with three block sizes, and an inventory of any size.

An inventory is slim (a NodeInventory with names, seven labels and maxPods) or full (a dump of all Nodes, as
kubectl prints it), in JSON or YAML. The same number is the same node, in each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubectl
import running

ZONES = 10
KINDS = ("slim JSON", "slim YAML", "full JSON", "full YAML")
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


def nodes(numbers: Iterable[int], *, uids: bool = False) -> list[dict[str, Any]]:
    """Return nodes in short form."""
    return [
        {
            "name": running.name_of(number),
            **({"uid": running.uid_of(number)} if uids else {}),
            "labels": running.labels_of(number, ZONES),
            "maxPods": 14,
        }
        for number in numbers
    ]


def as_yaml(items: Iterable[dict[str, Any]]) -> str:
    rows = ["apiVersion: ipamc/v1alpha1", "kind: NodeInventory", "nodes:"]
    for item in items:
        rows.append(f"- name: {item['name']}")
        if "uid" in item:
            rows.append(f"  uid: {kubectl.text(item['uid'], 2, 7)}")
        rows.append("  labels:")
        rows += [f"    {key}: {value or chr(34) * 2}" for key, value in item["labels"].items()]
        rows.append(f"  maxPods: {item['maxPods']}")
    return "\n".join(rows) + "\n"


def as_json(items: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": list(items)})


def write_inventory(folder: Path, kind: str, numbers: Iterable[int], *, uids: bool = False) -> Path:
    """Write an inventory of a kind, and nothing but it, into a cluster's folder; return its path."""
    extent, style = kind.split()
    path = folder / f"nodes.{style.lower()}"
    for old in folder.glob("nodes.*"):
        old.unlink()
    if extent == "full":
        kubectl.write(path, (running.node(number, ZONES) for number in numbers))
    else:
        items = nodes(numbers, uids=uids)
        path.write_text(as_json(items) if style == "JSON" else as_yaml(items))
    return path


def start(top: Path, name: str = "bench", pool_text: str | None = None) -> Path:
    """Make the folder of a cluster below `clusters/`, with pools and no nodes; return it."""
    folder = top / "clusters" / name
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER.replace("name: bench", f"name: {name}"))
    (folder / "ippools.yaml").write_text(pools() if pool_text is None else pool_text)
    return folder
