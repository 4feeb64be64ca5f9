"""The columns of labels on the page: what they say, and that nodes with a key each cost no more than others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipamc.pipeline import load_cluster
from ipamc.place.candidates import assign
from ipamc.report.page_data import Part, document
from ipamc.review.address_map import map_of, versions_of
from tests.support.calls import counted
from tests.support.imports import NAME, inputs

CLUSTER = f"""\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {{name: {NAME}}}
spec:
  cilium: {{version: "1.18", managedBy: helm}}
  ipam: {{mode: cluster-pool}}
---
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: default}}
spec: {{ipv4: {{cidrs: [10.0.0.0/16], blockSize: 26}}}}
"""


def part(labels: Sequence[dict[str, str]]) -> Part:
    """Return a cluster of nodes with these labels, and nothing in its lock."""
    nodes = [{"name": f"n{number:05}", "labels": each} for number, each in enumerate(labels)]
    inventory = {"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": nodes}
    cluster, lock = load_cluster(inputs({"cluster.yaml": CLUSTER, "nodes.json": json.dumps(inventory)}, None))
    mapped = map_of(cluster, lock, assign(cluster), "2026-11-22")
    return Part(map=mapped, versions=versions_of(lock), lock_path="ipam.lock")


def read(column: dict[str, Any], nodes: int) -> dict[int, str]:
    """Return the values of a column by the number of the node, as the page's script reads them."""
    if "few" in column:
        return {number: column["values"][value] for number, value in column["few"]}
    runs = [iter(column["of"])] * 2
    places = [value for value, times in zip(*runs, strict=True) for _ in range(times)]
    assert len(places) == nodes
    return {number: column["values"][value] for number, value in enumerate(places) if value >= 0}


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", ""])), max_size=40))
def test_a_column_has_the_values_of_its_nodes(labels: list[dict[str, str]]) -> None:
    (cluster,) = json.loads(document([part(labels)]))["clusters"]
    found = {column["key"]: read(column, len(labels)) for column in cluster["labels"]}
    keys = sorted({key for each in labels for key in each})
    assert found == {
        key: {number: each[key] for number, each in enumerate(labels) if key in each} for key in keys
    }


def test_a_key_for_each_node_costs_no_more_than_another() -> None:
    def work(number: int) -> int:
        made = part([{f"key-{each}": "x"} for each in range(number)])
        return counted(lambda: document([made]))

    assert work(1600) < 4 * 1.3 * work(400) + 20_000
