"""Objects that are missing, or differ in what ipamc owns."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.review.live.apply import drift, unequal
from tests.review.live.objects import Made, by_identity, cilium_node, config, node, pool

A, B = "10.0.0.0/27", "10.0.0.32/27"
KEPT = {"cilium.io/do-not-gc": "true"}


def planned(name: str) -> Made:
    made = cilium_node(name, A)
    return {**made, "metadata": {**made["metadata"], "annotations": KEPT}}


@pytest.mark.parametrize(
    ("tree", "live", "state"),
    [
        (cilium_node("n", A), cilium_node("n", A), None),
        (cilium_node("n", A), cilium_node("n", A, pools={"p": [B]}, error="x"), None),
        (cilium_node("n", A), cilium_node("n"), "differs"),
        (cilium_node("n", A), cilium_node("n", A, B), "differs"),
        (cilium_node("n", A), None, "missing"),
        (cilium_node("left", A), None, "gone"),
        (planned("left"), None, "missing"),
        (planned("n"), cilium_node("n", A), None),
        (node("n", A), node("n", A), None),
        (node("n", A), node("n"), "differs"),
        (node("n", A), node("n", uid="another"), "re-created"),
        (node("n", A), None, "gone"),
        (node("n", A, annotations={"a": "b"}), node("n", A), "differs"),
        (pool("p", A), pool("p", A), None),
        (pool("p", A), pool("p", B), "differs"),
        (pool("p", A), pool("p", A, six=("fd00::/64",)), "differs"),
        (pool("p", A, labels={"a": "b"}), pool("p", A), "differs"),
        (pool("p", A), pool("p", A, labels={"a": "b"}), None),
        (config("c"), config("c"), None),
        (config("c"), None, "missing"),
    ],
)
def test_states(tree: Made, live: Made | None, state: Any) -> None:
    nodes = {"n"}
    found = [item.state for item in drift([tree], by_identity(*([live] if live else [])), nodes)]
    assert found == [state] * (state is not None)


def test_where_nodes_cannot_be_read_a_missing_ciliumnode_is_missing() -> None:
    assert [item.state for item in drift([cilium_node("left", A)], {}, None)] == ["missing"]


@pytest.mark.parametrize(
    ("tree", "live", "paths"),
    [
        (cilium_node("n", A), cilium_node("n", A), []),
        (cilium_node("n", A), cilium_node("n", B), ["spec.ipam.podCIDRs"]),
        (cilium_node("n", addresses=["10.0.0.1", "10.0.0.2"]), cilium_node("n"), ["spec.ipam.pool"]),
        (node("n", A), node("n", B), ["spec.podCIDRs", "spec.podCIDR"]),
        (node("n", annotations={"a/b": "c"}), node("n"), ["metadata.annotations.a/b"]),
        (pool("p", A), pool("p", B, six=("fd00::/64",)), ["spec.ipv4.cidrs", "spec.ipv6"]),
        (pool("p", A, labels={"a": "b"}), pool("p", A), ["metadata.labels.a"]),
        (config("c"), {**config("c"), "spec": {"nodeSelector": {}}}, ["spec.defaults"]),
        (config("c"), {**config("c"), "spec": []}, ["spec.defaults", "spec.nodeSelector"]),
    ],
)
def test_the_fields_that_differ_are_named(tree: Made, live: Made, paths: list[str]) -> None:
    assert unequal(tree, live) == paths
