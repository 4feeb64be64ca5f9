"""Pools that pods ask for: they are only for pods, no node keeps blocks of them, and no address is given twice."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import parse_block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.read.read import read
from tests.support import calico, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

POOL = calico.pool("pods", "10.0.0.0/16")
POOL6 = calico.pool("pods6", "fd00::/64")
EGRESS = calico.pool("egress", "198.51.100.0/27", blockSize=31, nodeSelector="!all()")
GATEWAY = calico.asking(
    dumps.pod("egress-gw", "w1", "198.51.100.0", namespace="apps"), ipv4pools='["egress"]'
)
NODES = [dumps.node("w1"), dumps.node("w2")]
BLOCKS = [*calico.affine("10.0.0.0/26", "w1"), *calico.affine("10.0.0.64/26", "w2"), calico.FROZEN]
USED = calico.affine("198.51.100.0/31", "w1", [(0, "w1", "apps/egress-gw")])
OBJECTS = [*NODES, POOL, EGRESS, *BLOCKS, *USED]


def codes(found: tuple[Diagnostic, ...]) -> list[str]:
    return sorted(finding.code for finding in found)


def refreshed(files: dict[str, str], *objects: dumps.Object) -> dict[str, str]:
    """Refresh a cluster from a dump; return the texts that it writes."""
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in sorted(files.items())}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    return refresh(cluster, FOLDER, dump_of(objects), Past())


def test_a_pool_that_selects_no_node_is_for_pods_alone() -> None:
    came = imported([*OBJECTS, GATEWAY], cilium=(1, 18))
    assert codes(came.findings) == ["IPC0867", "IPC0868"]
    asks, pool = came.findings[1], came.findings[0]
    assert "pod apps/egress-gw needs ipam.cilium.io/ip-pool: egress" in asks.message
    assert pool.message.endswith("podsOnly; reserved, because Calico holds them: 198.51.100.0/31 of w1")
    egress, _, pods = came.files["ippools.yaml"].partition("---")
    assert "podsOnly: true" in egress
    assert "reserved: [198.51.100.0/31]" in egress
    assert "nodeSelector" not in egress + pods
    result = compiled(came.files)
    assert held(result) == {"w1": ["10.0.0.0/26"], "w2": ["10.0.0.64/26"]}
    assert "egress.w1" not in "".join([*result.files.values(), *came.files.values()])
    assert "- 198.51.100.2/31" in result.files["cilium/ippools.yaml"]
    assert "- 198.51.100.0/" not in result.files["cilium/ippools.yaml"]
    again = refreshed(dict(came.files), *OBJECTS, GATEWAY)
    assert again == {name: came.files[name] for name in again}


def test_every_pod_is_listed() -> None:
    pods = [
        calico.asking(dumps.pod(f"gw-{number}", "w1", namespace="apps"), ipv4pools='["egress"]')
        for number in range(9)
    ]
    came = imported([*OBJECTS, *pods], cilium=(1, 18))
    (asks,) = (each.message for each in came.findings if each.code == "IPC0867")
    assert asks.count("needs ipam.cilium.io/ip-pool: egress") == 9


@pytest.mark.parametrize(
    ("selector", "alone"),
    [
        ("!all()", True),
        ("has(rack) && !has(rack)", True),
        ("rack == 'a' && rack in {'b', 'c'}", True),
        ("!(has(rack) || !has(rack))", True),
        ("rack == 'nowhere'", False),
    ],
)
def test_what_is_provably_empty(selector: str, *, alone: bool) -> None:
    pool = calico.pool("egress", "198.51.100.0/27", blockSize=31, nodeSelector=selector)
    came = imported([*NODES, POOL, pool, *BLOCKS], cilium=(1, 18))
    assert ("podsOnly: true" in came.files["ippools.yaml"]) is alone


@pytest.mark.parametrize("spec", [{"disabled": True}, {"assignmentMode": "Manual"}])
def test_a_pool_that_is_closed_stays_disabled(spec: dict[str, Any]) -> None:
    pool = calico.pool("egress", "198.51.100.0/27", blockSize=31, nodeSelector="!all()", **spec)
    text = imported([*NODES, POOL, pool, *BLOCKS], cilium=(1, 18)).files["ippools.yaml"]
    assert "podsOnly" not in text
    assert "disabled: true" in text


@pytest.mark.parametrize("mode", [Mode.KUBERNETES, Mode.CLUSTER_POOL, Mode.CRD])
def test_other_modes_keep_its_addresses_back(mode: Mode) -> None:
    """Without pools only for pods no node gets an address of it, and the pods are told what they need."""
    objects = [*OBJECTS, dumps.node("w3", ready=False), GATEWAY]
    came = imported(objects, cilium=(1, 18), mode=mode)
    assert {"IPC0867", "IPC0868"} < set(codes(came.findings))
    helps = [each.help for each in came.findings if each.code in {"IPC0867", "IPC0868"}]
    assert all("--mode multi-pool" in text for text in helps)
    egress = came.files["ippools.yaml"].partition("---")[0]
    assert "disabled: true" in egress
    assert "podsOnly" not in egress
    blocks = held(compiled(came.files))
    assert blocks.pop("w3")[0].startswith("10.0.")
    assert blocks == {"w1": ["10.0.0.0/26"], "w2": ["10.0.0.64/26"]}
    again = refreshed(dict(came.files), *objects)
    assert again == {name: came.files[name] for name in again}


def test_a_block_that_calico_made_after_the_import_is_not_given_twice() -> None:
    came = imported(OBJECTS, cilium=(1, 18))
    later = calico.affine("198.51.100.2/31", "w2", [(0, "w2", "apps/second")])
    with pytest.raises(Refused) as refused:
        refreshed(dict(came.files), *OBJECTS, *later)
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.message) == (
        "IPC0868",
        "pool egress does not reserve the blocks that Calico holds of it: 198.51.100.2/31 of w2",
    )
    moved = dumps.cilium_node("w2", allocated={"pods.w2": ["10.0.0.64/26"]})
    refreshed(dict(came.files), *OBJECTS, *later, moved)
    files = dict(came.files)
    files["ippools.yaml"] = files["ippools.yaml"].replace("[198.51.100.0/31]", "[198.51.100.0/30]")
    refreshed(files, *OBJECTS, *later)


def test_an_overlay_of_such_a_pool_is_one() -> None:
    pool = {**EGRESS, "spec": {**EGRESS["spec"], "vxlanMode": "Always"}}
    with pytest.raises(Refused) as refused:
        imported([*NODES, POOL, pool, *BLOCKS, *USED], cilium=(1, 18))
    assert "IPC0865" in codes(refused.value.diagnostics)


NEEDS: dict[str, tuple[dict[str, str], str]] = {
    "a name": ({"ipv4pools": '["egress"]'}, "ipam.cilium.io/ip-pool: egress"),
    "a CIDR": ({"ipv4pools": '["198.51.100.0/27"]'}, "ipam.cilium.io/ip-pool: egress"),
    "a CIDR with host bits": ({"ipv4pools": '["198.51.100.9/27"]'}, "ipam.cilium.io/ip-pool: egress"),
    "the first that is known": ({"ipv4pools": '["gone", "egress"]'}, "ipam.cilium.io/ip-pool: egress"),
    "a pool that is not there": ({"ipv4pools": '["gone"]'}, 'a pool with podsOnly for ["gone"]'),
    "no list": ({"ipv4pools": "egress"}, "a pool with podsOnly for egress"),
    "the pool of every node": ({"ipv4pools": '["pods"]'}, ""),
    "another family": ({"ipv6pools": '["six"]'}, ""),
    "Cilium, too": ({"ipv4pools": '["egress"]', "ip_pool": "egress"}, ""),
    "an address": ({"ipAddrs": '["10.0.0.7"]'}, 'a pool with podsOnly for ["10.0.0.7"]'),
    "a floating address": ({"floatingIPs": '["10.0.0.7"]'}, 'a pool with podsOnly for ["10.0.0.7"]'),
    "an address, with a pool of Cilium": ({"ipAddrs": '["10.0.0.7"]', "ip_pool": "mail"}, ""),
    "something else": ({"podIP": "10.0.0.7/32"}, ""),
}


@pytest.mark.parametrize("ask", NEEDS)
@pytest.mark.parametrize("kind", ["pod", "namespace"])
def test_what_a_pod_needs_in_cilium(kind: str, ask: str) -> None:
    annotations, needs = NEEDS[ask]
    plain = {
        "pod": dumps.pod("web", "w1", "10.0.0.3", namespace="shop"),
        "namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    }
    came = imported([*OBJECTS, calico.asking(plain[kind], **annotations)], cilium=(1, 18))
    said = [each.message for each in came.findings if each.code == "IPC0867"]
    who = {"pod": "pod shop/web", "namespace": "namespace shop"}[kind]
    asks = "1 pod or namespace requests a pool or an address from Calico, but not from Cilium"
    assert said == ([f"{asks}: {who} needs {needs}"] if needs else [])


def test_a_pool_of_one_family_is_asked_for_in_that_family() -> None:
    """With `ip-pool` the other family would come from the same pool, which has none of it."""
    both = calico.asking(GATEWAY, ipv4pools='["egress"]', ipv6pools='["egress6"]')
    six = calico.pool("egress6", "fd01::/64", nodeSelector="!all()")
    blocks = [*calico.affine("fd00::/122", "w1"), *calico.affine("fd00::40/122", "w2")]
    for pod, needs in ((GATEWAY, ["ipv4-pool: egress"]), (both, ["ipv4-pool: egress", "ipv6-pool: egress6"])):
        came = imported([*OBJECTS, POOL6, six, *blocks, pod], cilium=(1, 18))
        (finding,) = [each for each in came.findings if each.code == "IPC0867"]
        assert finding.message.endswith(" and ".join(f"ipam.cilium.io/{each}" for each in needs))


def test_pods_that_have_ended_ask_for_nothing() -> None:
    ended = {**GATEWAY, "status": {**GATEWAY["status"], "phase": "Succeeded"}}
    assert codes(imported([*OBJECTS, ended], cilium=(1, 18)).findings) == ["IPC0868"]


def test_a_distinct_range_has_no_such_pool() -> None:
    router = calico.bgp("BGPPeer", "tor", peerIP="192.0.2.1", asNumber=64600)
    ranges = (parse_block("10.100.0.0/16"),)
    came = imported([*OBJECTS, GATEWAY, router], cilium=(1, 18), distinct=ranges)
    assert codes(came.findings) == ["IPC0867", "IPC0869"]
    assert 'needs a pool with podsOnly for ["egress"]' in came.findings[0].message


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([calico.bgp("BGPConfiguration", "default", asNumber=64513)], ""),
        ([calico.bgp("BGPPeer", "reflectors", peerSelector="route-reflector == 'true'")], ""),
        ([calico.bgp("BGPPeer", "node", peerIP="192.168.0.1", asNumber=64512)], ""),
        ([calico.bgp("BGPPeer", "odd", api=calico.V3)], ""),
        (
            [
                calico.bgp("BGPPeer", "tor-b", api=calico.V3, peerIP="192.0.2.2", asNumber=64600),
                calico.bgp("BGPPeer", "tor-a", peerIP="192.0.2.1", asNumber=64600),
                calico.bgp(
                    "BGPConfiguration",
                    "default",
                    asNumber=64513,
                    nodeToNodeMeshEnabled=False,
                    serviceClusterIPs=[{"cidr": "10.96.0.0/12"}],
                    serviceLoadBalancerIPs=[{"cidr": "203.0.113.0/24"}],
                ),
            ],
            (
                "Calico announces routes to 2 routers, but Cilium does not yet: tor-a (192.0.2.1, AS 64600), tor-b "
                "(192.0.2.2, AS 64600); nodes have AS 64513; it announces services: 10.96.0.0/12, 203.0.113.0/24"
            ),
        ),
    ],
)
def test_who_learns_blocks_by_bgp(objects: list[dumps.Object], said: str) -> None:
    nodes = [dumps.node("w1", ip="192.168.0.1"), dumps.node("w2", ip="192.168.0.2")]
    came = imported([*nodes, POOL, *BLOCKS, *objects])
    assert [each.message for each in came.findings if each.code == "IPC0869"] == ([said] if said else [])
    assert "bgp:" not in came.files["cluster.yaml"]


def test_pools_of_cilium_that_pods_ask_for() -> None:
    """No node has them as its default: they serve the pods that ask, and one that nobody asks for is closed."""
    pools = [
        dumps.pool(name, mask=26, cidrs=[f"10.{number}.0.0/20"])
        for number, name in enumerate(("default", "mars", "moon", "venus"), 1)
    ]
    pods = [
        calico.asking(dumps.pod("a", "w1", "10.2.0.3"), ip_pool="mars"),
        calico.asking(dumps.pod("b", "w1", "10.1.0.3"), ip_pool="default"),
        calico.asking({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, ipv6_pool="moon"),
    ]
    given = {"default": ["10.1.0.0/26"], "mars": ["10.2.0.0/26"], "venus": ["10.4.0.0/26"]}
    objects = [
        dumps.node("w1"),
        dumps.cilium_node("w1", allocated=given),
        dumps.config_map(ipam="multi-pool", enable_ipv4="true"),
        *pools,
        *pods,
    ]
    came = imported(objects, cilium=(1, 18))
    default, mars, moon, venus = came.files["ippools.yaml"].split("---\n")
    assert ["podsOnly: true" in each for each in (default, mars, moon, venus)] == [False, True, True, False]
    assert ["disabled: true" in each for each in (default, mars, moon, venus)] == [False, False, False, True]
    result = compiled(came.files)
    assert held(result) == {"w1": ["10.1.0.0/26", "10.2.0.0/26", "10.4.0.0/26"]}
    assert held(compiled({**came.files, **refreshed(dict(came.files), *objects)}, result)) == held(result)
