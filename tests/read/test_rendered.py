"""What is asked about `rendered/`: a file is parsed when it is needed, once; a damaged one counts as missing, or is EnvironmentFailure."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from ipamc.read.rendered import Rendered
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.rendered import Manifests
from tests.support import builders

MODULE = sys.modules[Rendered.__module__]
POOL = builders.pool("a", "10.0.0.0/24")


def tree(mode: str, **fields: Any) -> dict[str, bytes]:
    """Return what is rendered for a cluster of two nodes."""
    plan = builders.plan(mode, [POOL], {"n1": "10.0.0.0/28", "n2": "10.0.0.16/28"}, **fields)
    return {path: text.encode() for path, text in builders.rendered(plan).items()}


FLAGS = {"cilium/configmap.yaml", "cilium/helm-values.yaml", "cilium/kustomization.yaml"}
OWN = tree("multi-pool", pinning="node")
SHARED = tree("multi-pool", pinning="pool")
SHARD = {path for path in OWN if path.startswith("pools/") and "kustomization" not in path}


@pytest.mark.parametrize(
    ("texts", "question", "parsed"),
    [
        (OWN, "mode", set()),
        (OWN, "parts", set()),
        (OWN, "of_nodes", {"kustomization.yaml"}),
        (OWN, "own_allowed", {"kustomization.yaml"}),
        (OWN, "uids", set()),
        (SHARED, "flags", FLAGS),
        (SHARED, "pools", {*FLAGS, "cilium/ippools.yaml"}),
        (OWN, "objects", {"cilium/kustomization.yaml", "cilium/configmap.yaml", *SHARD}),
    ],
)
def test_a_question_parses_the_files_that_it_needs_once(
    texts: dict[str, bytes], question: str, parsed: set[str]
) -> None:
    """There may be 100,000 nodes in the others."""
    with mock.patch.object(MODULE, "yaml_documents", wraps=MODULE.yaml_documents) as parse:
        rendered = Manifests(texts, "rendered")
        for _ in range(2):
            assert getattr(rendered, question) is not None
    assert sorted(call.args[0] for call in parse.call_args_list) == sorted(
        f"rendered/{path}" for path in parsed
    )


def test_equal_files_of_two_moments_are_parsed_once() -> None:
    one = Manifests(OWN, "now")
    objects = one.objects
    with mock.patch.object(MODULE, "yaml_documents", side_effect=AssertionError):
        assert replace(one, shown="then").objects == objects


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b"a: [", "rendered/cilium/configmap.yaml: the file ends inside a value"),
        (b"\xff", "rendered/cilium/configmap.yaml is not UTF-8 text"),
        (b"- a", "rendered/cilium/configmap.yaml: Expected `object`, got `array`"),
        (
            b"---\n",
            "there is no ConfigMap of a namespace in rendered/cilium/configmap.yaml: run ipamc compile",
        ),
        (None, "there is no rendered/cilium/configmap.yaml: run ipamc compile"),
    ],
)
def test_what_is_damaged_counts_as_missing_for_a_compile_and_is_told_by_an_apply(
    damage: bytes | None, problem: str
) -> None:
    texts = {path: text for path, text in SHARED.items() if path != "cilium/configmap.yaml"}
    if damage is not None:
        texts["cilium/configmap.yaml"] = damage
    lenient = Rendered(texts)
    assert (lenient.flags.data, lenient.mode, lenient.pools_lost) == ({}, "", None)
    assert lenient.pools.keys() == {"a"}
    with pytest.raises(EnvironmentFailure) as failure:
        assert Manifests(texts).flags.data
    assert str(failure.value) == problem


def test_an_object_is_where_its_document_begins() -> None:
    found = Rendered(tree("cluster-pool"), "clusters/lab/rendered")
    name, other = "CiliumNode n1", "CiliumNode n2"
    path = "clusters/lab/rendered/ciliumnodes/000/ciliumnodes.yaml"
    text = found.texts["ciliumnodes/000/ciliumnodes.yaml"].decode().splitlines()
    for each in (name, other):
        at = found.at(each)
        assert at.path == path
        assert f"  name: {each.split()[1]}" in text[at.line - 1 : at.line + 5]
    assert found.at("CiliumNode n3").path == "clusters/lab/rendered"
