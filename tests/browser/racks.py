"""A cluster of racks, written as files with its lock: nothing has to be compiled."""

from __future__ import annotations

import json
from pathlib import Path

from ipamc.model.cidr import address_text

RACKS = 8
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""
POOL = """\
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: rack-%(rack)d}
spec:
  nodeSelector: rack == "%(rack)d"
  ipv4: {cidrs: [%(cidr)s], blockSize: 26}
"""
STATES = {3: '"quarantined":"2026-11-20"', 7: '"pending":true', 11: '"released":true'}
"""Of every thirteenth line, one of these states."""


def write(folder: Path, nodes: int) -> Path:
    """Write a cluster in which each rack is a little fuller than the one before; return its folder."""
    cluster = folder / "clusters/lab"
    cluster.mkdir(parents=True)
    prefix = 26 - max(nodes // 2, 1).bit_length()
    size = 1 << (32 - prefix)
    pools, items, rows = [], [], []
    for rack in range(RACKS):
        first = (10 << 24) + rack * size
        pools.append(POOL % {"rack": rack, "cidr": f"{address_text(4, first)}/{prefix}"})
        for number in range(nodes * (rack + 1) * 2 // (RACKS * (RACKS + 1))):
            name = f"node-{rack}-{number:06}"
            state = STATES.get(number % 13, "")
            if state != STATES[11] and state != STATES[3]:
                items.append({"name": name, "labels": {"rack": str(rack), "zone": f"z{rack % 3}"}})
            block = f"{address_text(4, first + number * 64)}/26"
            rows.append(
                f'{{"block":"{block}","pool":"rack-{rack}","node":"{name}"{state and f",{state}"}}}\n'
            )
    (cluster / "cluster.yaml").write_text(CLUSTER + "".join(pools))
    inventory = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": items}
    (cluster / "nodes.json").write_text(json.dumps(inventory))
    head = '{"lock":1,"cluster":"lab","mode":"cluster-pool","shards":1}\n'
    (cluster / "ipam.lock").write_text(head + "".join(rows))
    return cluster
