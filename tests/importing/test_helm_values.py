"""`ipamc import --helm-values`: values of Cilium's chart say what the ConfigMap that it makes of them says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from ipamc.importing.bring_in import Imported, Options, bring_in
from ipamc.model.diagnostics import Diagnostic, Refused, Span
from ipamc.read.dump.helm_values import with_values
from tests.support import dumps
from tests.support.imports import NAME, compiled, dump_of, held

NODES = [dumps.node("n1", uid="u1"), dumps.node("n2", uid="u2")]
BLOCKS = [dumps.cilium_node("n1", "10.0.0.0/24"), dumps.cilium_node("n2", "10.0.1.0/24")]
ON = {"enable_ipv4": "true", "enable_ipv6": "false", "routing_mode": "tunnel"}
BOTH = {**ON, "enable_ipv6": "true"}
V4 = {"cluster_pool_ipv4_cidr": "10.0.0.0/16", "cluster_pool_ipv4_mask_size": "24"}
V6 = {"cluster_pool_ipv6_cidr": "fd00::/104", "cluster_pool_ipv6_mask_size": "120"}
LIST = {"clusterPoolIPv4PodCIDRList": ["10.0.0.0/16"], "clusterPoolIPv4MaskSize": 24}


def config(**flags: str) -> dumps.Object:
    made = dumps.config_map(**flags)
    made["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cilium"}
    return made


def read(
    values: Any, objects: Sequence[dumps.Object] = (*NODES, *BLOCKS), **options: Any
) -> tuple[Imported, Sequence[Diagnostic]]:
    """Import objects with values, which are an object or a text; return what came, and the warnings about the values."""
    text = values if isinstance(values, str) else yaml.safe_dump(values)
    dump, found = with_values(dump_of(objects), "values.yaml", text.encode())
    return bring_in(NAME, dump, Options(**{"cilium": (1, 18), **options})), found


def said(found: Sequence[Diagnostic]) -> list[str]:
    texts = []
    for each in found:
        assert isinstance(each.at, Span)
        texts.append(f"{each.at.path}:{each.at.line}:{each.at.column} {each.code} {each.message}")
    return texts


@pytest.mark.parametrize(
    ("values", "flags"),
    [
        ({"ipam": {"operator": LIST}}, {"ipam": "cluster-pool", **ON, **V4}),
        ({"ipam": {"operator": {**LIST, "clusterPoolIPv4PodCIDRList": "10.0.0.0/16"}}}, {"ipam": "cluster-pool", **ON, **V4}),
        ({"ipam": {"operator": {"clusterPoolIPv4PodCIDR": "10.0.0.0/16"}}}, {"ipam": "cluster-pool", **ON, **V4}),
        (
            {"ipam": {"operator": {**LIST, "clusterPoolIPv4PodCIDRList": ["10.0.0.0/17", "10.0.128.0/17"]}}},
            {"ipam": "cluster-pool", **ON, **V4, "cluster_pool_ipv4_cidr": "10.0.0.0/17 10.0.128.0/17"},
        ),
        ({}, {"ipam": "cluster-pool", **ON, **V4, "cluster_pool_ipv4_cidr": "10.0.0.0/8"}),
        ({"ipv6": {"enabled": True}, "ipam": {"operator": LIST}}, {"ipam": "cluster-pool", **BOTH, **V4, **V6}),
        (
            {"ipv4": {"enabled": False}, "ipv6": {"enabled": True}},
            {"ipam": "cluster-pool", "enable_ipv4": "false", "enable_ipv6": "true", "routing_mode": "tunnel", **V6},
        ),
        ({"ipam": {"mode": "kubernetes", "operator": LIST}, "k8s": {"requireIPv4PodCIDR": True}}, {"ipam": "kubernetes", **ON, "k8s_require_ipv4_pod_cidr": "true"}),
        (
            {"routingMode": "native", "ipv4NativeRoutingCIDR": "10.0.0.0/9", "cluster": {"name": "a", "id": 7}, "ipam": {"operator": LIST}},
            {"ipam": "cluster-pool", **ON, **V4, "routing_mode": "native", "ipv4_native_routing_cidr": "10.0.0.0/9", "cluster_name": "a", "cluster_id": "7"},
        ),
        ({"tunnel": "disabled", "bgp": {"announce": {"podCIDR": True}}, "ipam": {"operator": LIST}}, {"ipam": "cluster-pool", "enable_ipv4": "true", "enable_ipv6": "false", **V4, "tunnel": "disabled", "bgp_announce_pod_cidr": "true"}),
        ({"bgpControlPlane": {"enabled": True}, "ipam": {"operator": LIST}}, {"ipam": "cluster-pool", **ON, **V4, "enable_bgp_control_plane": "true"}),
        ({"extraConfig": {"cluster-pool-ipv4-cidr": "10.0.0.0/16", "ipam": "cluster-pool"}, "ipam": {"mode": "crd"}}, {"ipam": "cluster-pool", **ON, **V4}),
        ({"cilium": {"ipam": {"operator": LIST}}}, {"ipam": "cluster-pool", **ON, **V4}),
    ],
)  # fmt: skip
def test_values_say_what_the_config_map_says(values: Any, flags: Mapping[str, str]) -> None:
    came, found = read(values)
    same, nothing = read("{}", [*NODES, *BLOCKS, config(**flags)])
    assert not found
    assert not nothing
    assert dict(came.files) == dict(same.files)
    assert [each.code for each in came.findings] == [each.code for each in same.findings]


def test_a_cluster_of_values_is_compiled_and_keeps_its_blocks() -> None:
    came, _ = read({"ipam": {"operator": LIST}})
    assert held(compiled(came.files)) == {"n1": ["10.0.0.0/24"], "n2": ["10.0.1.0/24"]}


POOLS = {
    "blue": {"ipv4": {"cidrs": ["10.2.0.0/16"], "maskSize": 27}},
    "default": {"ipv4": {"cidrs": ["10.1.0.0/16"], "maskSize": 26}},
}


def test_pools_that_the_operator_creates_are_pools() -> None:
    values = {"ipam": {"mode": "multi-pool", "operator": {"autoCreateCiliumPodIPPools": POOLS}}}
    came, found = read(values, NODES)
    objects = [
        dumps.pool("blue", mask=27, cidrs=["10.2.0.0/16"]),
        dumps.pool("default", mask=26, cidrs=["10.1.0.0/16"]),
    ]
    flag = "blue=ipv4-cidrs:10.2.0.0/16;ipv4-mask-size:27,default=ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:26"
    same, _ = read(
        "{}", [*NODES, *objects, config(ipam="multi-pool", **ON, auto_create_cilium_pod_ip_pools=flag)]
    )
    assert not found
    assert dict(came.files) == dict(same.files)
    assert "autoCreate: [blue, default]" in came.files["cluster.yaml"]


def test_pools_of_the_dump_count() -> None:
    values = {"ipam": {"mode": "multi-pool", "operator": {"autoCreateCiliumPodIPPools": POOLS}}}
    came, _ = read(values, [*NODES, dumps.pool("default", mask=25, cidrs=["10.9.0.0/16"])])
    assert "10.9.0.0/16" in came.files["ippools.yaml"]
    assert "10.1.0.0/16" not in came.files["ippools.yaml"]


def test_what_runs_counts_and_what_differs_is_named_with_both_ends() -> None:
    values = "ipv6: {enabled: false}\nbgpControlPlane: {enabled: false}\ncni: {chainingMode: none}\nipam:\n  operator:\n    clusterPoolIPv4PodCIDRList: [10.0.0.0/16, 10.5.0.0/16]\n    clusterPoolIPv4MaskSize: 26\nannotateK8sNode: true\n"
    running = config(ipam="cluster-pool", **ON, **{**V4, "cluster_pool_ipv4_cidr": "10.5.0.0/16 10.0.0.0/16"})
    came, found = read(values, [*NODES, *BLOCKS, running])
    assert said(found) == [
        "values.yaml:7:30 IPC0838 the values set cluster-pool-ipv4-mask-size to '26', but cilium-config has '24': cilium-config is used",
        "values.yaml:8:18 IPC0838 the values set annotate-k8s-node to 'true', but cilium-config does not set it: cilium-config is used",
    ]
    assert [each.also[0].at.path for each in found] == ["dump.json", "dump.json"]
    assert "blockSize: 24" in came.files["ippools.yaml"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ipam: 5\n", "1:7 IPC0007"),
        ("ipam:\n  mode: [a]\n", "2:9 IPC0007"),
        ("ipam:\n  mode: {a: b}\n", "2:13 IPC0007"),
        ("routingMode: [native]\n", "1:14 IPC0007"),
        ("ipam: {operator: {clusterPoolIPv4MaskSize: [24]}}\n", "1:44 IPC0007"),
        ("ipam: {operator: {autoCreateCiliumPodIPPools: [a]}}\n", "1:47 IPC0007"),
        ("ipam: {operator: {autoCreateCiliumPodIPPools: {a: 5}}}\n", "1:51 IPC0007"),
        ("ipam: {operator: {autoCreateCiliumPodIPPools: {a: {ipv4: {cidrs: x}}}}}\n", "1:52 IPC0007"),
        ("extraConfig: [a]\n", "1:14 IPC0007"),
        ("- a\n", "1:1 IPC0007"),
        ("a: b\n---\nc: d\n", "1:1 IPC0007"),
        ("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {}\n", "1:1 IPC0007"),
        ("ipam: {mode: {{ .mode }}}\n", "1:15 IPC0007"),
        ("ipam: [\n", "1:8 IPC0001"),
        ("", "1:1 IPC0010"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused_at_its_place(text: str, problem: str) -> None:
    with pytest.raises(Refused) as refused:
        read(text)
    assert [each[: len(problem) + 12] for each in said(refused.value.diagnostics)] == [
        f"values.yaml:{problem}"
    ]


def test_what_cilium_would_not_read_is_named() -> None:
    _, found = read(
        "ipam:\n  operator:\n    clusterPoolIPv4PodCIDRList: [10.0.0.0/16, 10.0.0/24]\n    clusterPoolIPv4MaskSize: 264\nipv6: {enabled: yes}\n"
    )
    assert [each[: len("values.yaml:3:33 IPC0805")] for each in said(found)] == [
        "values.yaml:3:33 IPC0805", "values.yaml:4:30 IPC0805", "values.yaml:5:17 IPC0805",
    ]  # fmt: skip
