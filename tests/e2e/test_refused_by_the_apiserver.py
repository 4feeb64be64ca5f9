"""Rules that keep from the kube-apiserver what it would refuse, or accept with another meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, NODES, Api, Object
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site, dumped
from tests.support.fleet import cluster, inventory, pool

NONE = {"managedBy": "none"}
LONG = "x" * 64
TWO_MEANINGS = ["10.0.0.1/26", "::ffff:10.0.0.0/120", "010.0.0.0/26"]


def node(name: str = "a", *blocks: str, **metadata: object) -> Object:
    """Make a Node with podCIDRs."""
    spec = {"podCIDR": blocks[0], "podCIDRs": list(blocks)} if blocks else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "spec": spec}


def said(api: Api, *objects: Object, code: int = 1) -> str:
    """Apply objects, and give what kubectl says."""
    done = api.apply(dumped(objects))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


@shows("IPC0101")
@pytest.mark.parametrize("name", ["Node-1", "node_1", "-node", "node.", f"{LONG * 4}"])
def test_names(api: Api, name: str) -> None:
    assert (
        "must consist of lower case alphanumeric characters"
        in (text := said(api, cilium_node(name, "10.0.0.0/26")))
        or "no more than" in text
    )


@shows("IPC0102")
@pytest.mark.parametrize("labels", [{"a b": ""}, {"rack": "r 1"}, {"rack": LONG}, {LONG: ""}, {"A_/x": ""}])
def test_labels(api: Api, labels: dict[str, str]) -> None:
    assert "metadata.labels: Invalid value" in said(api, node("a", labels=labels))


@shows("IPC0201", "IPC0203", "IPC0206")
@pytest.mark.parametrize("block", TWO_MEANINGS)
def test_cidrs_of_two_meanings_get_a_warning_until_1_36_refuses_them(api: Api, block: str) -> None:
    assert "Warning: spec.podCIDRs[0]" in said(api, node("a", block), code=0)


@shows("IPC0206")
def test_what_is_no_cidr(api: Api) -> None:
    assert "spec.podCIDRs[0]: Invalid value" in said(api, node("a", "10.0.0.0"))


@shows("IPC0205", "IPC0503")
@pytest.mark.parametrize(
    ("before", "after"), [("10.0.0.0/26", "10.0.0.64/26"), ("fd00::/120", "fd00:0::/120")]
)
def test_pod_cidrs_never_change_not_even_their_spelling(api: Api, before: str, after: str) -> None:
    said(api, node("a", before), code=0)
    assert 'node updates may not change podCIDR except from "" to valid' in said(api, node("a", after))


@shows("IPC0503")
def test_nor_do_they_grow_or_go(api: Api) -> None:
    said(api, node("a", "10.0.0.0/26"), code=0)
    assert "may not change podCIDR" in said(api, node("a", "10.0.0.0/26", "fd00::/120"))
    assert "may not change podCIDR" in said(api, node("a"))


@shows("IPC0502", "IPC0505", "IPC0408")
def test_two_blocks_of_one_family_on_a_node(api: Api, operator: Operator, tmp_path: Path) -> None:
    two = [
        cluster("kubernetes", cilium=NONE, output={"nodeObjects": "create"}),
        pool("pods", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
    ]
    site = Site.made(api, tmp_path, [*two, inventory([{"name": "a"}])], operator.minor)
    site.compile()
    assert len(site.rendering("nodes/*/nodes.yaml")) == 1
    assert "may specify no more than one CIDR for each IP family" in said(
        api, node("a", "10.0.0.0/26", "10.0.0.64/26")
    )


@shows("IPC0554")
def test_a_node_without_a_uid_is_created_out_of_nothing(api: Api, operator: Operator, tmp_path: Path) -> None:
    documents = [
        cluster("kubernetes", cilium=NONE),
        pool("pods", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        inventory([{"name": "typo"}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0554")
    site.apply()
    assert api.get(f"{NODES}/typo")["spec"]["podCIDRs"] == ["10.0.0.0/26"]


@shows("IPC0529")
def test_a_config_map_of_more_than_a_mebibyte(api: Api) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"},
    }
    room = 1 << 20  # all values together; keys do not count
    assert "Too long: may not be more than 1048576 bytes" in said(
        api, {**body, "data": {"a": "x" * room, "b": "x"}}
    )
    said(api, {**body, "data": {"a": "x" * room}}, code=0)
    assert len(api.items(CONFIG_MAPS)["cilium-config"]["data"]["a"]) == room


@shows("IPC0530")
def test_two_pools_of_one_name_do_not_even_build(api: Api, operator: Operator, tmp_path: Path) -> None:
    if operator.version < (1, 15):
        pytest.skip("no pinning")
    documents = [
        cluster("multi-pool", ipam={"pinning": "node"}, cilium=NONE),
        pool("a", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}, nodeSelector='rack == "a"'),
        pool("a.b", ipv4={"cidrs": ["10.0.1.0/24"], "blockSize": 27}, nodeSelector='rack == "b"'),
        inventory([{"name": "b.c", "labels": {"rack": "a"}}, {"name": "c", "labels": {"rack": "b"}}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0530")
    with pytest.raises(
        AssertionError, match=r"may not add resource with an already registered id: CiliumPodIPPool.*a\.b\.c"
    ):
        site.build()


@shows("IPC0535")
def test_names_that_pinning_makes(api: Api, operator: Operator) -> None:
    """A CiliumNodeConfig may ask for a label that no node can carry: it would select nobody."""
    if operator.version < (1, 15):
        pytest.skip("no pinning")
    version = "v2" if operator.version >= (1, 16) else "v2alpha1"
    config: Object = {
        "apiVersion": f"cilium.io/{version}",
        "kind": "CiliumNodeConfig",
        "metadata": {"name": "a", "namespace": "kube-system"},
    }
    selector = {"matchLabels": {"kubernetes.io/hostname": LONG}}
    said(api, {**config, "spec": {"defaults": {"a": "b"}, "nodeSelector": selector}}, code=0)
    assert "must be no more than 63" in said(api, node("a", labels=selector["matchLabels"]))
    named: Object = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "x" * 254},
    }
    assert "must be no more than 253" in said(
        api, {**named, "spec": {"ipv4": {"cidrs": ["10.0.0.0/24"], "maskSize": 27}}}
    )


@shows("IPC0534")
def test_two_configs_for_one_hostname_are_accepted_and_the_last_name_wins_for_both_nodes(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    if operator.version < (1, 15):
        pytest.skip("no pinning")
    same = {"kubernetes.io/hostname": "same"}
    documents = [
        cluster("multi-pool", ipam={"pinning": "node"}, cilium=NONE),
        pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27}),
        inventory([{"name": "a", "labels": same}, {"name": "b", "labels": same}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    compile_without(site, "IPC0534")
    site.apply()
    selectors = [each["spec"]["nodeSelector"] for each in site.rendering("pools/*/nodeconfigs.yaml")]
    assert selectors == [{"matchLabels": same}] * 2


@shows("IPC0524")
def test_another_mask_size(api: Api, operator: Operator) -> None:
    """From 1.20 the apiserver refuses it; before, the operator: see the tests of its refusals."""
    if operator.version < (1, 20):
        pytest.skip("the CRD of this version does not mind")
    named: Object = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "default"},
    }
    said(api, {**named, "spec": {"ipv4": {"cidrs": ["10.0.0.0/24"], "maskSize": 27}}}, code=0)
    assert "immutable" in said(api, {**named, "spec": {"ipv4": {"cidrs": ["10.0.0.0/24"], "maskSize": 26}}})


@shows("IPC0585")
def test_bgp_objects_of_another_minor(api: Api, operator: Operator) -> None:
    if operator.version == (1, 18):
        pytest.skip("it has all of them")
    kind = "CiliumBGPPeeringPolicy" if operator.version > (1, 18) else "CiliumBGPAdvertisement"
    version = "v2alpha1" if operator.version < (1, 16) or operator.version > (1, 18) else "v2"
    head = {"apiVersion": f"cilium.io/{version}", "kind": kind, "metadata": {"name": "a"}}
    assert f'no matches for kind "{kind}"' in said(api, {**head, "spec": {}})


@shows("IPC0566")
@pytest.mark.parametrize("field", ["allowFirstIP", "allowLastIP"])
@pytest.mark.parametrize("before", [True, False])
def test_another_say_about_the_first_or_the_last_address(
    api: Api, operator: Operator, field: str, *, before: bool
) -> None:
    if operator.version < (1, 20):
        pytest.skip("a CiliumPodIPPool of this version has no such fields")
    named: Object = {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "default"},
    }
    ranges = {"ipv4": {"cidrs": ["10.0.0.0/24"], "maskSize": 27}}
    said(api, {**named, "spec": {**ranges, **({field: True} if before else {})}}, code=0)
    changed = said(api, {**named, "spec": {**ranges, **({} if before else {field: True})}})
    assert f"{field} is immutable" in changed


@shows("IPC0531")
def test_a_cilium_node_of_a_whole_17_is_created_and_cannot_say_what_is_in_use(api: Api) -> None:
    """The apiserver takes far more than our 4,096 addresses: until the agent writes down who uses them."""
    addresses = [f"10.0.{index >> 8}.{index & 255}" for index in range(1, 1 << 15)]
    body = {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "a"}}
    made = api.sure(
        "POST", CILIUM_NODES, {**body, "spec": {"ipam": {"pool": {address: {} for address in addresses}}}}
    )
    used = {address: {"owner": "namespace/a-deployment-77d4bd5b6c-abcde"} for address in addresses}
    refused = api.ask("PUT", f"{CILIUM_NODES}/a/status", {**made, "status": {"ipam": {"used": used}}})
    assert "too large" in refused.message
