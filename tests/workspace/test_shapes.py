"""What passes the check of an object's shape can be read: no value of a live object brings an apply down."""

from __future__ import annotations

import contextlib

import pytest

from ipamc.read.dump.kinds import read_object
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.shapes import checked
from tests.review.audit.test_hostile import VALUES, places
from tests.review.live.objects import Made, cilium_node, config, node, ours, pool

CIDR = "10.0.0.0/27"
METADATA: Made = {
    "uid": "u",
    "namespace": "",
    "labels": {"a": "b"},
    "annotations": {"network.cilium.io/ipv4-pod-cidr": CIDR},
    "ownerReferences": [{"kind": "Node", "uid": "u"}],
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:00:00Z",
}


def whole(made: Made, **status: object) -> Made:
    """Return an object with all the metadata that are read."""
    return {**made, "metadata": {**METADATA, **made["metadata"]}, "status": status}


def seen() -> Made:
    some = cilium_node("n", CIDR, pools={"p": [CIDR]}, addresses=["10.0.0.1"], asks=["p"], managed=ours())
    some["spec"]["addresses"] = [{"type": "InternalIP", "ip": "192.0.2.1"}]
    some["spec"] |= {"health": {"ipv4": "10.0.0.2"}, "ingress": {"ipv6": "fd00::1"}}
    return whole(some, ipam={"used": {"10.0.0.1": {}}, "operator-status": {"error": "x"}})


OBJECTS = {
    "CiliumNode": seen(),
    "Node": whole(
        node("n", CIDR),
        conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
        addresses=[{"type": "InternalIP", "address": "192.0.2.1"}],
        nodeInfo={"kubeletVersion": "v1.34.0"},
        allocatable={"pods": "110"},
    ),
    "CiliumPodIPPool": whole(pool("p.n", CIDR, six=("fd00::/123",))),
    "CiliumNodeConfig": whole(config("c")),
    "ValidatingAdmissionPolicy": whole(
        {
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "p"},
            "spec": {"variables": [{"name": "rows", "expression": "n 10.0.0.0/27"}]},
        }
    ),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_has_the_shape_is_read(kind: str) -> None:
    made, read = OBJECTS[kind], 0
    read_object(checked(kind, made))
    for parent, key in list(places(made)):
        kept = parent[key]
        for value in VALUES:
            parent[key] = value
            with contextlib.suppress(EnvironmentFailure):
                read_object(checked(kind, made))
                read += 1
        parent[key] = kept
    assert read > len(VALUES)
