"""Values of a dump that are not as Go reads them: the right value, or a finding with its place; never silence."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from ipamc.importing.bring_in import Options, bring_in
from ipamc.importing.refresh import about_nodes
from ipamc.model.diagnostics import Diagnostic, Refused, Span
from ipamc.pipeline import compile_cluster
from ipamc.read.dump.read import read_dump
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, inputs

NODES = [dumps.node("n1", uid="u1"), dumps.node("n2", uid="u2")]
BLOCKS = [dumps.cilium_node("n1", "10.1.0.0/24"), dumps.cilium_node("n2", "10.1.1.0/24")]
POOL = {"ipam": "cluster-pool", "cluster_pool_ipv4_cidr": "10.1.0.0/16", "cluster_pool_ipv4_mask_size": "24"}


def brought(*objects: dumps.Object) -> tuple[dict[str, str], list[Diagnostic]]:
    """Import objects; return the files, none if they are refused, and every finding."""
    dump, warnings = read_dump([("dump.json", [dumps.kubectl(*objects).encode()])])
    try:
        found = bring_in("lab", dump, Options(cilium=(1, 18), managed_by="helm"))
    except Refused as refused:
        return {}, [*warnings, *refused.diagnostics]
    return dict(found.files), [*warnings, *found.findings]


def operator(*arguments: str) -> dumps.Object:
    container = {"name": "cilium-operator", "image": "operator:v1.18.2", "args": list(arguments)}
    spec = {"template": {"spec": {"containers": [container]}}}
    metadata = {"name": "cilium-operator", "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def pools(files: dict[str, str]) -> list[Any]:
    return [{**each["spec"]} for each in yaml.safe_load_all(files["ippools.yaml"])]


def has_a_place(found: Diagnostic) -> bool:
    """Return whether a finding has the line of its object."""
    return isinstance(found.at, Span) and found.at.line > 1


def odd(found: list[Diagnostic]) -> list[str]:
    return [each.message for each in found if each.code == "IPC0805"]


def test_the_second_range_has_host_bits() -> None:
    config = dumps.config_map(**{**POOL, "cluster_pool_ipv4_cidr": "10.1.0.0/16 10.2.0.5/16"})
    files, found = brought(*NODES, *BLOCKS, config)
    assert pools(files) == [{"ipv4": {"cidrs": ["10.1.0.0/16", "10.2.0.0/16"], "blockSize": 24}}]
    (one,) = [each for each in found if each.code == "IPC0805"]
    assert one.message == (
        "cilium-config has cluster-pool-ipv4-cidr: '10.2.0.5/16', which is read as 10.2.0.0/16"
    )
    assert has_a_place(one)


def test_booleans_of_kubespray() -> None:
    six = {"cluster_pool_ipv6_cidr": "fd00::/104", "cluster_pool_ipv6_mask_size": "120"}
    on = dict.fromkeys(("enable_ipv4", "enable_ipv6", "enable_bgp_control_plane"), "True")
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**POOL, **six, **on))
    spec = yaml.safe_load(files["cluster.yaml"])["spec"]
    assert (spec["ipFamilies"], spec["bgp"]) == (["IPv4", "IPv6"], "control-plane")
    assert pools(files)[0]["ipv6"] == {"cidrs": ["fd00::/104"], "blockSize": 120}
    assert odd(found) == []


def test_arguments_of_the_operator_come_before_the_config_map() -> None:
    words = ("--cluster-pool-ipv4-cidr=10.1.0.0/16,10.2.0.0/16", "--cluster-pool-ipv4-mask-size", "25")
    config = dumps.config_map(**{**POOL, "cluster_pool_ipv4_cidr": "10.9.0.0/16"})
    files, _ = brought(*NODES, *BLOCKS, config, operator(*words))
    assert pools(files) == [{"ipv4": {"cidrs": ["10.1.0.0/16", "10.2.0.0/16"], "blockSize": 25}}]


SIX = {"enable_ipv6": "true", "cluster_pool_ipv6_cidr": "fd00::/104", "cluster_pool_ipv6_mask_size": "120"}
MULTI = {"ipam": "multi-pool", "ipam_default_ip_pool": "default"}
MULTI |= {"auto_create_cilium_pod_ip_pools": "default=ipv4-cidrs:10.1.0.0/16;ipv4-mask-size:24"}
KEYS = {
    **POOL,
    **SIX,
    "enable_ipv4": "true",
    "cni_chaining_mode": "none",
    "routing_mode": "native",
    "tunnel": "disabled",
    "ipv4_native_routing_cidr": "10.0.0.0/8",
    "enable_bgp_control_plane": "true",
    "bgp_announce_pod_cidr": "true",
}
"""Every key of cilium-config that an import reads, in cluster-pool mode."""


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_cannot_be_read_is_a_finding(key: str) -> None:
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**KEYS))
    assert files
    assert odd(found) == []
    _, found = brought(*NODES, *BLOCKS, dumps.config_map(**{**KEYS, key: "zonk"}))
    assert any("zonk" in each.message and has_a_place(each) for each in found)


@pytest.mark.parametrize("more", [{}, {"tunnel": "vxlan"}], ids=["alone", "beside the older key"])
def test_a_routing_mode_that_a_cluster_has_not_is_named_and_not_written(more: dict[str, str]) -> None:
    """Hybrid routing (cilium/cilium#45001): nobody has to correct it."""
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**POOL, **more, routing_mode="hybrid"))
    (one,) = [each for each in found if each.code == "IPC0805"]
    assert one.message == (
        "cilium-config has routing-mode: hybrid, which ipamc does not support (cilium/cilium#45001): "
        "it does not write routingMode, nor check its rules"
    )
    assert (one.severity.word, one.help) == ("note", "")
    assert has_a_place(one)
    assert "routingMode" not in files["cluster.yaml"]


def test_reserved_ranges_of_a_pool_are_named_and_not_written() -> None:
    """CiliumPodIPPool v2 (cilium/cilium#46880): the operator gives no new block of them."""
    entry = {"cidr": "10.0.0.0/16", "reservedRanges": [{"start": "10.0.8.0", "end": "10.0.8.255"}]}
    spec = {"ipv4": {"cidrs": ["10.0.0.0/16"], "maskSize": 24, "pool": [entry]}}
    pool = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "default"},
        "spec": spec,
    }
    config = dumps.config_map(ipam="multi-pool", enable_ipv4="true")
    files, found = brought(*NODES, pool, config)
    (one,) = [each for each in found if each.code == "IPC0805"]
    assert one.message == (
        "CiliumPodIPPool default has reservedRanges in 10.0.0.0/16, which ipamc does not know (cilium/cilium#46880)"
    )
    assert (one.severity.word, one.help) == (
        "note",
        "add them to reserved of the pool",
    )
    assert "10.0.0.0/16" in files["ippools.yaml"]
    assert "10.0.8" not in files["ippools.yaml"]


@pytest.mark.parametrize(
    ("cidr", "has"),
    [
        (
            "10.1.200.0/24",
            "range 10.1.0.0/16 of pool default contains addresses of devices (nics): 10.1.200.0/24",
        ),
        ("10.7.0.0/24", ""),
        ("10.7.0.0/240", "CiliumResourceIPPool nics has '10.7.0.0/240'"),
    ],
)
def test_a_pool_of_devices_in_a_range_of_pods_is_a_finding(cidr: str, has: str) -> None:
    """Cilium's network driver (cilium/cilium#44081) compares them with nothing."""
    devices = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumResourceIPPool",
        "metadata": {"name": "nics"},
        "spec": {"ipv4": {"cidrs": [cidr], "maskSize": 28}},
    }
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**POOL), devices)
    some = [each.message for each in found if each.code in {"IPC0805", "IPC0819", "IPC0835"}]
    assert [each.startswith(has) for each in some] == ([True] if has else [])
    assert ("devices (nics)" in files["ippools.yaml"]) == has.startswith("range 10.1.0.0/16")


@pytest.mark.parametrize("key", MULTI)
def test_a_key_of_multi_pool_mode_that_cannot_be_read_is_a_finding(key: str) -> None:
    objects = [*NODES, dumps.pool("default", mask=24, cidrs=["10.1.0.0/16"])]
    objects += [dumps.cilium_node("n1", allocated={"default": ["10.1.0.0/24"]})]
    _, found = brought(*objects, dumps.config_map(**MULTI))
    assert odd(found) == []
    _, found = brought(*objects, dumps.config_map(**{**MULTI, key: "zonk"}))
    assert any("zonk" in each.message and has_a_place(each) for each in found)


def test_a_second_cilium_config_is_named() -> None:
    other = dumps.config_map(namespace="old", **{**POOL, "cluster_pool_ipv4_cidr": "10.9.0.0/16"})
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**POOL), other)
    assert pools(files)[0]["ipv4"]["cidrs"] == ["10.1.0.0/16"]
    assert odd(found) == ["namespace old has a second cilium-config"]


def test_a_node_config_names_a_pool_that_the_dump_has_not() -> None:
    config = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNodeConfig",
        "metadata": {"name": "mars", "namespace": "kube-system"},
    }
    config["spec"] = {"nodeSelector": {}, "defaults": {"ipam-default-ip-pool": "mars"}}
    pool = dumps.pool("default", mask=24, cidrs=["10.1.0.0/16"])
    _, found = brought(*NODES, pool, config, dumps.config_map(ipam="multi-pool"))
    (one,) = [each for each in found if each.code == "IPC0805"]
    assert one.message == "CiliumNodeConfig mars has pool 'mars', which the dump lacks"
    assert has_a_place(one)


@pytest.mark.parametrize("small", ["10.3.0.0/25", "10.3.0.9/25"])
def test_a_range_smaller_than_a_block_is_named(small: str) -> None:
    config = dumps.config_map(**{**POOL, "cluster_pool_ipv4_cidr": f"10.1.0.0/16 {small}"})
    files, found = brought(*NODES, *BLOCKS, config)
    assert pools(files)[0]["ipv4"]["cidrs"] == ["10.1.0.0/16"]
    assert "the list of ranges has 10.3.0.0/25, too small for a /24" in odd(found)


@pytest.mark.parametrize("text", ["10.1.1.7/24", "::ffff:10.1.1.0/120"])
def test_a_block_of_a_node_is_read_as_go_reads_it(text: str) -> None:
    for objects in (
        [dumps.cilium_node("n1", "10.1.0.0/24"), dumps.cilium_node("n2", text), dumps.config_map(**POOL)],
        [dumps.node("n1", "10.1.0.0/24"), dumps.node("n2", text), dumps.config_map(ipam="kubernetes")],
    ):
        nodes = [] if objects[0]["kind"] == "Node" else NODES
        files, found = brought(*nodes, *objects)
        assert any(text in each and "which is read as 10.1.1.0/24" in each for each in odd(found))
        lines = compiled(files).lock.splitlines()
        assert any('"10.1.1.0/24"' in line and '"n2"' in line for line in lines)


@pytest.mark.parametrize(
    "entry",
    [{"cidr": "x"}, {"start": "10.9.0.9", "stop": "10.9.0.1"}, {"start": "10.9.0.9", "stop": "fd00::1"}, "x"],
)
def test_a_range_of_load_balancers_that_cannot_be_read(entry: Any) -> None:
    balancer = {"apiVersion": "cilium.io/v2", "kind": "CiliumLoadBalancerIPPool", "metadata": {"name": "lb"}}
    balancer["spec"] = {"blocks": [entry, {"cidr": "10.9.1.7/24"}, {"start": "10.9.0.1", "stop": "10.9.0.2"}]}
    files, found = brought(*NODES, *BLOCKS, dumps.config_map(**POOL), balancer)
    assert any(each.startswith("CiliumLoadBalancerIPPool lb has ") for each in odd(found))
    assert all(block in files["cluster.yaml"] for block in ("10.9.1.0/24", "10.9.0.1/32", "10.9.0.2/32"))


FULL = {**POOL, "cluster_pool_ipv4_cidr": "10.1.0.0/23"}


def waiting(error: str, **more: Any) -> list[dumps.Object]:
    """Return a full pool of two nodes, and a third one that waits."""
    third = copy.deepcopy(dumps.cilium_node("n3", **more))
    third["status"] = {"ipam": {"operator-status": {"error": error}}}
    node = dumps.node("n3", uid="u3")
    node["spec"] = {"taints": [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}]}
    return [*NODES, *BLOCKS, node, third, dumps.config_map(**FULL)]


def refused(files: dict[str, str], *dumped: str) -> list[Diagnostic]:
    """Compile files that were imported from a dump of these kinds, and return the errors."""
    with pytest.raises(Refused) as caught:
        compile_cluster(replace(inputs(files), dumped=frozenset(dumped)))
    return [each for each in caught.value.diagnostics if each.severity.name == "ERROR"]


@pytest.mark.parametrize(
    "error", ["all CIDRs exhausted", "allocator clusterCIDR: 10.1.0.0/23, nodeMask: 24 full"]
)
def test_a_node_that_waits_at_a_full_pool(error: str) -> None:
    files, _ = brought(*waiting(error))
    assert [each.code for each in refused(files)] == ["IPC0303"]


@pytest.mark.parametrize(
    ("error", "router"), [("", ()), ("no such host", ()), ("all CIDRs exhausted", ("10.1.1.9",))]
)
def test_a_node_that_may_have_pods_is_still_refused(error: str, router: tuple[str, ...]) -> None:
    files, _ = brought(*waiting(error, router=router))
    (found,) = refused(files)
    assert found.code == "IPC0434"
    (less,) = refused(files, "Node", "CiliumNode", "Pod")
    assert less.help.startswith("add ciliumendpoints to the dump: ipamc import lab --refresh dump.json; ")
    (none,) = refused(files, "Node", "CiliumNode", "Pod", "CiliumEndpoint")
    assert not none.help.startswith(("add ", "make a dump "))


def test_a_node_that_lacks_one_family_is_named_with_it_and_gets_a_block() -> None:
    six = [dumps.cilium_node("n1", "10.1.0.0/24", "fd00::/120"), dumps.cilium_node("n2", "10.1.1.0/24")]
    files, found = brought(*NODES, *six, dumps.config_map(**POOL, **SIX, enable_ipv4="true"))
    assert [each.message for each in found if each.code == "IPC0818"] == [
        "1 node waits for a block: n2 (IPv6)"
    ]
    assert '{"block":"fd00::100/120","pool":"default","node":"n2"}' in compiled(files).lock


def test_a_refresh_names_a_newcomer_that_lacks_one_family() -> None:
    six = [
        dumps.cilium_node("n1", "10.1.0.0/24", "fd00::/120"),
        dumps.cilium_node("n2", "10.1.1.0/24", "fd00::100/120"),
    ]
    objects = [*NODES, *six, dumps.config_map(**POOL, **SIX, enable_ipv4="true")]
    files, _ = brought(*objects)
    cluster, _ = read(
        NAME, FOLDER, {f"{FOLDER}/{name}": text.encode() for name, text in files.items()}, SCHEMAS
    )
    dump = dump_of([*objects, dumps.node("n3", uid="u3"), dumps.cilium_node("n3", "10.1.2.0/24")])
    said = [each.message for each in about_nodes(cluster, FOLDER, dump)]
    assert said == ["1 node waits for a block: n3 (IPv6)"]
    assert not [*about_nodes(cluster, FOLDER, dump_of(objects))]


def test_ipv4_is_on_where_cilium_config_does_not_say() -> None:
    six = [
        dumps.cilium_node("n1", "10.1.0.0/24", "fd00::/120"),
        dumps.cilium_node("n2", "10.1.1.0/24", "fd00::100/120"),
    ]
    files, _ = brought(*NODES, *six, dumps.config_map(**POOL, **SIX))
    assert yaml.safe_load(files["cluster.yaml"])["spec"]["ipFamilies"] == ["IPv4", "IPv6"]


@pytest.mark.parametrize(
    ("variables", "words", "ranges"),
    [
        (
            [{"name": "CILIUM_CLUSTER_POOL_IPV4_CIDR", "value": "10.1.0.0/16 10.2.0.0/16"}],
            (),
            ["10.1.0.0/16", "10.2.0.0/16"],
        ),
        (
            [{"name": "CILIUM_CLUSTER_POOL_IPV4_CIDR", "value": "10.9.0.0/16"}],
            ("--cluster-pool-ipv4-cidr=10.1.0.0/16", "--cluster-pool-ipv4-cidr", "10.3.0.0/16"),
            ["10.1.0.0/16", "10.3.0.0/16"],
        ),
        ([None, {"name": "CILIUM_CLUSTER_POOL_IPV4_CIDR"}], ("--config-dir=/tmp/cilium",), ["10.1.0.0/20"]),
        (
            [
                {
                    "name": "CILIUM_CLUSTER_POOL_IPV4_CIDR",
                    "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}},
                }
            ],
            (),
            None,
        ),
    ],
)
def test_variables_of_the_operator(
    variables: list[Any], words: tuple[str, ...], ranges: list[str] | None
) -> None:
    program = operator(*words)
    program["spec"]["template"]["spec"]["containers"][0]["env"] = variables
    files, found = brought(
        *NODES, *BLOCKS, dumps.config_map(**{**POOL, "cluster_pool_ipv4_cidr": "10.1.0.0/20"}), program
    )
    if ranges:
        assert pools(files)[0]["ipv4"]["cidrs"] == ranges
    else:
        assert any(
            "cluster-pool-ipv4-cidr: 'valueFrom', which is neither a CIDR" in each for each in odd(found)
        )


@pytest.mark.parametrize("mode", ["cluster-pool", "kubernetes"])
def test_the_node_that_goes_is_named(mode: str) -> None:
    cidrs = ["10.1.0.0/24"] if mode == "kubernetes" else []
    going = dumps.node("n2", *cidrs, uid="u2")
    going["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    twins = [dumps.cilium_node(name, "10.1.0.0/24") for name in ("n1", "n2")]
    config = dumps.config_map(**{**POOL, "ipam": mode})
    files, _ = brought(dumps.node("n1", *cidrs, uid="u1"), going, *twins, config)
    (found,) = refused(files)
    assert found.code == "IPC0426"
    assert found.message.endswith("; n2 is being deleted")
    assert found.help.startswith("wait until kubectl get node,ciliumnode n2 finds neither")
    first = compiled(brought(dumps.node("n1", *cidrs, uid="u1"), twins[0], config)[0])
    with pytest.raises(Refused) as caught:
        compiled(files, first)
    (found,) = (each for each in caught.value.diagnostics if each.code == "IPC0423")
    assert found.message.endswith("; n2 is being deleted")


def test_flags_of_kube_controller_manager_with_a_blank_and_host_bits() -> None:
    manager = dumps.pod("kube-controller-manager-n1", "n1", namespace="kube-system", hostNetwork=True)
    manager["metadata"]["labels"] = {"component": "kube-controller-manager"}
    words = [
        "--cluster-cidr",
        "10.1.0.9/16",
        "--node-cidr-mask-size=zonk",
        "--service-cluster-ip-range=10.96.0.1/12",
    ]
    manager["spec"]["containers"] = [{"command": ["kube-controller-manager", *words, "-v=2"]}]
    nodes = [dumps.node("n1", "10.1.0.0/24", uid="u1"), dumps.node("n2", "10.1.1.0/24", uid="u2")]
    files, found = brought(*nodes, dumps.config_map(ipam="kubernetes"), manager)
    assert pools(files) == [{"ipv4": {"cidrs": ["10.1.0.0/16"], "blockSize": 24}}]
    assert "10.96.0.0/12" in files["cluster.yaml"]
    assert odd(found) == [
        "kube-controller-manager has cluster-cidr: '10.1.0.9/16', which is read as 10.1.0.0/16",
        "kube-controller-manager has node-cidr-mask-size: 'zonk', which is not a prefix length",
        "kube-controller-manager has service-cluster-ip-range: '10.96.0.1/12', which is read as 10.96.0.0/12",
    ]


@pytest.mark.parametrize(
    ("number", "name", "written"),
    [
        ("7", "beijing-1", "clusterID: 7, clusterName: beijing-1}"),
        ("511", "", "clusterID: 511}"),
        ("0", "kind-kind", ""),
        ("512", "beijing-1", ""),
        ("07", "beijing-1", ""),
    ],
)
def test_the_identity_in_clustermesh_comes_into_the_cluster(number: str, name: str, written: str) -> None:
    flags = dumps.config_map(**POOL, cluster_id=number, cluster_name=name)
    text = brought(*NODES, *BLOCKS, flags)[0]["cluster.yaml"]
    assert written in text
    assert ("clusterID" in text) == bool(written)
