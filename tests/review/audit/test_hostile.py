"""Whatever stands in a dump, it is read or refused: no value brings a rule down."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.model.diagnostics import Refused
from tests.review.audit.worlds import living
from tests.support import dumps
from tests.support.living import controller

VALUES: list[Any] = [
    None,
    0,
    -1,
    True,
    "",
    "x" * 300,
    [],
    {},
    [{}],
    [None],
    [[]],
    {"a": None},
    {"": {"": ""}},
    "10.0.0.0/99",
    "10.1.0.0/0",
    "::/0",
    ["10.1.0.0/8", "10.1.0.0/26"],
    "2026-99-99T00:00:00Z",
    "z",
    1e400,
]
LISTED = (
    "Node a",
    "CiliumNode a",
    "Pod kube-system cilium-a",
    "Pod default web-a",
    "CiliumEndpoint default web-a",
)


def places(value: Any) -> Any:
    """Yield (container, key) of every value inside a value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key
        yield from places(inner)


@pytest.mark.deep
@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize(
    "world", ["kubernetes annotations", "multi-pool pool", "multi-pool node", "crd", "cluster-pool adopt"]
)
def test_no_value_brings_a_rule_down(world: str, shift: int) -> None:
    live = living(world)
    live.add(controller("--allocate-node-cidrs=true"))
    live.add(dumps.config_map("kubeadm-config", ClusterConfiguration="networking: {podSubnet: 10.2.0.0/16}"))
    few = ("CiliumPodIPPool", "CiliumNodeConfig", "ConfigMap", "Deployment")
    items = [item for name, item in live.objects.items() if name in LISTED or item["kind"] in few]
    items.append(live["Pod kube-system kube-controller-manager-m"])
    read = number = 0
    for item in items:
        for parent, key in list(places(item)):
            kept, number = parent[key], number + 1
            parent[key] = VALUES[(7 * number + shift) % len(VALUES)]
            try:
                live.audit()
                read += 1
            except Refused:
                pass
            parent[key] = kept
    assert number > 100
    assert read > number // 4
