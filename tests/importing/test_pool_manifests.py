"""Manifests of CiliumPodIPPools, as a user has them in git, are pools for an import as live ones are."""

from __future__ import annotations

import json

import pytest

from ipamc.importing.bring_in import Options, bring_in
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused
from ipamc.read.dump.read import read_dump
from tests.support import dumps
from tests.support.imports import NAME, compiled, held

NODES = dumps.kubectl(
    dumps.node("n1", uid="u1"), dumps.cilium_node("n1", allocated={"default": ["10.10.7.0/26"]})
)
MANIFESTS = """\
# as `kustomize build` prints a folder
apiVersion: v1
kind: Namespace
metadata: {name: web, annotations: {ipam.cilium.io/ip-pool: web}}
---
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: default
spec:
  ipv4:
    cidrs: [10.10.0.0/16]
    maskSize: 26
---
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata: {name: web, labels: {team: web}}
spec: {ipv4: {cidrs: [10.20.0.0/16], maskSize: 27}}
"""
LIVE = {
    "apiVersion": "cilium.io/v2alpha1",
    "kind": "CiliumPodIPPool",
    "metadata": {
        "name": "default",
        "uid": "p1",
        "creationTimestamp": "2026-11-22T08:00:00Z",
        "generation": 1,
    },
    "spec": {"ipv4": {"cidrs": ["10.10.0.0/16"], "maskSize": 26}},
}


def files(**texts: str) -> dict[str, str]:
    dump, _ = read_dump([(path, [text.encode()]) for path, text in texts.items()], every=True)
    return dict(bring_in(NAME, dump, Options(mode=Mode.MULTI_POOL, cilium=(1, 18), managed_by="helm")).files)


def test_manifests_are_pools() -> None:
    found = files(nodes=NODES, pools=MANIFESTS)
    assert (
        found["ippools.yaml"]
        .split("---\n")[0]
        .endswith("metadata: {name: default}\nspec:\n  ipv4: {cidrs: [10.10.0.0/16], blockSize: 26}\n")
    )
    assert "metadata: {name: web, labels: {team: web}}" in found["ippools.yaml"]
    assert "podsOnly: true" in found["ippools.yaml"]
    assert held(compiled(found)) == {"n1": ["10.10.7.0/26"]}


def test_each_in_a_file_of_its_own_and_in_any_order() -> None:
    first, second, third = MANIFESTS.split("---\n")
    assert files(c=third, nodes=NODES, b=second, a=first) == files(nodes=NODES, pools=MANIFESTS)


def test_a_manifest_beside_its_live_object_is_one_pool() -> None:
    assert files(nodes=NODES, pools=MANIFESTS, live=json.dumps(LIVE)) == files(nodes=NODES, pools=MANIFESTS)


def test_a_manifest_that_differs_from_its_live_object_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        files(nodes=NODES, pools=MANIFESTS.replace("maskSize: 26", "maskSize: 25"), live=json.dumps(LIVE))
    assert [each.code for each in refused.value.diagnostics] == ["IPC0803"]
