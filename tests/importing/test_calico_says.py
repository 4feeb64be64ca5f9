"""What an import from Calico says: where Cilium does otherwise, and what a person must decide before a node moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ipamc.catalogue import catalogue
from ipamc.importing.calico import LABELS
from ipamc.importing.refresh import Past, refresh
from ipamc.model.cidr import parse_block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Refused, Severity
from ipamc.model.limits import MOST_CALICO_POOLS
from ipamc.read.read import read
from ipamc.workspace.disk import assets
from tests.support import calico, dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, held, imported

Objects = Sequence[dumps.Object]

NODES = [dumps.node("n1", labels={"rack": "a"}), dumps.node("n2", labels={"rack": "b"})]
POOL = calico.pool("pods", "10.0.0.0/16")
OVERLAY = calico.pool("pods", "10.0.0.0/16", ipipMode="CrossSubnet")
POOL6 = calico.pool("six", "fd00::/64")
BLOCKS = [*calico.affine("10.0.0.0/26", "n1"), *calico.affine("10.0.0.64/26", "n2")]
SOUND = [*NODES, POOL, *BLOCKS, calico.FROZEN]
WEB = (3, "n1", "default/web")


def said(objects: Objects, **options: Any) -> list[tuple[Severity, str, str]]:
    """Import objects; return what is said, refused or not."""
    try:
        found = imported(objects, **options).findings
    except Refused as refused:
        found = refused.diagnostics
    return [(finding.severity, finding.code, finding.message) for finding in found]


def with_pod_cidrs(node: str, *cidrs: str) -> Objects:
    """Return SOUND with podCIDRs that kube-controller-manager gave to a node, and Calico does not use."""
    return [
        dumps.node(node, *cidrs) if (item["kind"], item["metadata"]["name"]) == ("Node", node) else item
        for item in SOUND
    ]


def asking(name: str, **what: str) -> dumps.Object:
    """Return a pod that asks Calico for a pool or an address."""
    return calico.asking(dumps.pod(name, "n1", "10.0.0.3"), **what)


def labelled_in_calico() -> Objects:
    node = dumps.node("n3")
    node["metadata"]["annotations"] = {LABELS: '{"disk": "ssd"}'}
    pool = calico.pool("fast", "10.1.0.0/16", nodeSelector="disk == 'ssd'")
    return [*SOUND, node, pool, *calico.affine("10.0.0.128/26", "n3")]


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
SAID: dict[str, tuple[Callable[[], list[tuple[Severity, str, str]]], Severity, str]] = {
    "IPC0840": (
        lambda: said([*SOUND, calico.pool("odd", "10.1.0.0/16", nodeSelector="rack = 'a'")]),
        ERROR,
        "IPPool odd: '=': expected an operator after 'rack'",
    ),
    "IPC0841": (
        lambda: said(
            [
                *SOUND,
                *(
                    calico.pool(f"p{number}", f"10.{number // 256}.{number % 256}.0/24")
                    for number in range(MOST_CALICO_POOLS)
                ),
            ]
        )[:1],
        ERROR,
        "the dump has 501 IPPools; the limit is 500",
    ),
    "IPC0842": (
        lambda: said([*NODES, POOL, calico.FROZEN])[:1],
        ERROR,
        "the dump has Calico IPPools, but neither IPAMBlocks nor BlockAffinities, so no node would keep its blocks",
    ),
    "IPC0843": (
        lambda: said([*SOUND, calico.pool("x", "10.1.0.0/16", namespaceSelector="tenant == 'x'")]),
        WARNING,
        "pool x has namespaceSelector \"tenant == 'x'\", so ipamc writes it as disabled",
    ),
    "IPC0844": (
        lambda: said([*SOUND, calico.pool("part", "10.0.128.0/17", disabled=True)]),
        WARNING,
        "10.0.128.0/17 of pool part overlaps 10.0.0.0/16 of pool pods, which keeps the shared addresses",
    ),
    "IPC0845": (
        lambda: said([*SOUND, calico.pool("public", "198.51.100.0/24", allowedUses=["LoadBalancer"])]),
        NOTE,
        "pool public is not for pods; excludedCIDRs gets 198.51.100.0/24",
    ),
    "IPC0846": (
        lambda: said([*SOUND, calico.pool("rack-a", "10.1.0.0/16", nodeSelector="rack == 'a'")]),
        WARNING,
        "ipamc writes pool rack-a as disabled: pool pods, which Calico tries first, selects every node",
    ),
    "IPC0847": (
        lambda: said(
            [
                *SOUND,
                calico.pool("a-v6", "fd00::/64", nodeSelector="rack == 'a'"),
                *calico.affine("fd00::/122", "n1"),
            ]
        )[:1],
        WARNING,
        "pool a-v6 has no IPv4 counterpart with the same nodeSelector",
    ),
    "IPC0848": (
        lambda: said([*SOUND, POOL6]),
        NOTE,
        "no node holds an IPv6 block, so pool six (fd00::/64) is left out",
    ),
    "IPC0849": (
        lambda: [
            one
            for one in said(
                [
                    *SOUND,
                    calico.pool("host", "10.1.0.0/25", allowedUses=["Tunnel"]),
                    calico.pool("rest", "10.1.0.0/24", blockSize=24, disabled=True),
                ]
            )
            if one[1] == "IPC0849"
        ],
        NOTE,
        "left out of pool rest, because smaller than a /24: 10.1.0.128/25",
    ),
    "IPC0850": (
        lambda: said([*SOUND, *calico.affine("172.16.0.0/26", "n1")]),
        WARNING,
        "1 block is outside all IPPools: 172.16.0.0/26 of n1",
    ),
    "IPC0851": (
        lambda: said(
            [
                *SOUND,
                calico.affinity("10.0.1.0/26", "n1", "pending"),
                calico.affinity("10.0.1.0/26", "n2", "pending"),
            ]
        ),
        ERROR,
        "10.0.1.0/26 is claimed by node n2 (pending) and by node n1 (pending)",
    ),
    "IPC0852": (
        lambda: said([*SOUND, calico.affinity("10.0.0.0/26", "n2", "pending")]),
        NOTE,
        "10.0.0.0/26 is claimed by node n2 (pending), but its IPAMBlock belongs to node n1",
    ),
    "IPC0853": (
        lambda: said([*SOUND, *calico.affine("10.0.0.64/27", "n1")]),
        ERROR,
        "10.0.0.64/27 of node n1 overlaps 10.0.0.64/26 of node n2",
    ),
    "IPC0854": (
        lambda: said([*SOUND, *calico.affine("10.0.1.0/26", "gone", [WEB])]),
        WARNING,
        "1 block of missing nodes has addresses in use and stays reserved: gone",
    ),
    "IPC0855": (
        lambda: said([*SOUND, calico.block("10.0.1.0/26", "", [WEB])]),
        WARNING,
        "10.0.1.0/26 belongs to no node, so ipamc reserves it; 1 address in use: 10.0.1.3 by default/web on n1",
    ),
    "IPC0856": (
        lambda: said([*SOUND, *calico.affine("10.0.1.0/26", "n2", [WEB])]),
        WARNING,
        "node n1 uses 1 address from blocks of other nodes: 10.0.1.3 of n2 for default/web",
    ),
    "IPC0857": (
        lambda: said([*SOUND, *calico.affine("10.0.1.0/26", "n1", [(0, "n1", "ipipTunnelAddress")])]),
        NOTE,
        "1 address belongs to a host tunnel, not to pods: ipipTunnelAddress",
    ),
    "IPC0858": (
        lambda: said([*SOUND, calico.reservation("vips", ["10.0.0.60/30", "10.0.9.0/30"])]),
        WARNING,
        "10.0.0.60/30 of IPReservation vips overlaps 10.0.0.0/26 of node n1; Cilium may give these addresses to pods",
    ),
    "IPC0859": (
        lambda: [one for one in said(labelled_in_calico()) if one[1] == "IPC0859"],
        WARNING,
        "pools select nodes by disk, a label that only Calico knows: n3",
    ),
    "IPC0860": (
        lambda: said([*SOUND, *calico.affine("10.0.1.0/26", "n1")], mode=Mode.CLUSTER_POOL),
        ERROR,
        "1 node has several blocks of a family, but cluster-pool mode allows one: n1",
    ),
    "IPC0861": (
        lambda: said(with_pod_cidrs("n1", "10.244.0.0/24"), mode=Mode.KUBERNETES),
        ERROR,
        "1 node has podCIDRs that do not match Calico's blocks: n1",
    ),
    "IPC0862": (
        lambda: said([item for item in SOUND if item is not calico.FROZEN]),
        WARNING,
        "Calico can still create blocks and borrow addresses, so this dump will go out of date",
    ),
    "IPC0863": (
        lambda: said(
            [
                *SOUND,
                dumps.config_map(ipam="multi-pool"),
                dumps.cilium_node("n1", allocated={"p": ["10.0.0.0/26"]}),
            ]
        )[:1],
        ERROR,
        "1 node has Calico blocks, but other nodes already have Cilium blocks: n2",
    ),
    "IPC0865": (
        lambda: said([each if each is not POOL else OVERLAY for each in SOUND]),
        ERROR,
        "1 pool has an overlay, so Cilium cannot route the same blocks: pods (ipipMode: CrossSubnet)",
    ),
    "IPC0866": (
        lambda: said(SOUND, distinct=[parse_block("10.0.0.0/8")]),
        ERROR,
        "--distinct 10.0.0.0/8 overlaps ranges of Calico: 10.0.0.0/16",
    ),
    "IPC0867": (
        lambda: said([*SOUND, asking("web", ipv4pools='["gone"]')]),
        WARNING,
        (
            "1 pod or namespace requests a pool or an address from Calico, but not from Cilium: "
            'pod default/web needs a pool with podsOnly for ["gone"]'
        ),
    ),
    "IPC0868": (
        lambda: said([*SOUND, calico.pool("egress", "198.51.100.0/27", blockSize=31, nodeSelector="!all()")]),
        NOTE,
        "pool egress selects no node, so ipamc writes it as podsOnly",
    ),
    "IPC0869": (
        lambda: said([*SOUND, calico.bgp("BGPPeer", "tor-a", peerIP="192.0.2.1", asNumber=64600)]),
        NOTE,
        "Calico announces routes to 1 router, but Cilium does not yet: tor-a (192.0.2.1, AS 64600); nodes have AS 64512",
    ),
    "IPC0864": (
        lambda: said(
            [
                *SOUND,
                calico.block("10.0.1.0/26", "n1"),
                calico.affinity("10.0.1.0/26", "n1", "pendingDeletion"),
            ]
        ),
        WARNING,
        "1 block is being released and stays reserved: 10.0.1.0/26 of n1",
    ),
}


@pytest.mark.parametrize("code", SAID)
def test_what_is_said(code: str) -> None:
    say, severity, message = SAID[code]
    assert say() == [(severity, code, message)]


def test_every_code_is_shown() -> None:
    assert set(SAID) == {code for code in catalogue(assets("rules")) if "IPC0840" <= code <= "IPC0869"}


def test_a_sound_cluster_has_nothing_to_say() -> None:
    assert said(SOUND) == []


@pytest.mark.parametrize("mode", [Mode.KUBERNETES, Mode.CLUSTER_POOL, Mode.CRD])
def test_other_modes_keep_the_blocks_too(mode: Mode) -> None:
    objects = [*NODES, POOL, *calico.affine("10.0.5.0/26", "n1"), *calico.affine("10.0.3.64/26", "n2")]
    result = compiled(imported(objects, mode=mode).files)
    assert held(result) == {"n1": ["10.0.5.0/26"], "n2": ["10.0.3.64/26"]}


def test_podcidrs_that_calico_does_not_use_are_no_blocks() -> None:
    came = imported(with_pod_cidrs("n1", "10.244.0.0/24"))
    assert held(compiled(came.files)) == {"n1": ["10.0.0.0/26"], "n2": ["10.0.0.64/26"]}


def test_affinities_alone_say_whose_blocks_are() -> None:
    objects = [item for item in SOUND if item["kind"] != "IPAMBlock"]
    assert [code for _, code, _ in said(objects)] == ["IPC0842"]
    assert held(compiled(imported(objects).files)) == {"n1": ["10.0.0.0/26"], "n2": ["10.0.0.64/26"]}


def test_blocks_of_no_node_of_the_dump() -> None:
    found = said([*NODES, POOL, *calico.affine("10.0.0.0/26", "node-1.example.com"), calico.FROZEN])
    assert found[0] == (
        ERROR,
        "IPC0854",
        "no block belongs to a Node of the dump: 1 block of node-1.example.com",
    )


def test_an_empty_block_of_a_node_that_is_gone_is_free() -> None:
    objects = [*SOUND, dumps.node("n3"), *calico.affine("10.0.0.128/26", "gone")]
    assert [code for _, code, _ in said(objects)] == ["IPC0854", "IPC0818"]
    assert held(compiled(imported(objects).files))["n3"] == ["10.0.0.128/26"]


def test_pools_that_share_nodes_serve_each_node_once() -> None:
    """Calico tries a, b and c by name: a has rack a, b the others that have a rack, c the rest."""
    pools = [
        calico.pool("a", "10.1.0.0/16", nodeSelector="rack == 'a'"),
        calico.pool("b", "10.2.0.0/16", nodeSelector="has(rack)"),
        calico.pool("c", "10.3.0.0/16"),
    ]
    came = imported([*NODES, dumps.node("n3"), *pools, *calico.affine("10.1.0.0/26", "n1"), calico.FROZEN])
    assert held(compiled(came.files)) == {"n1": ["10.1.0.0/26"], "n2": ["10.2.0.0/26"], "n3": ["10.3.0.0/26"]}
    text = came.files["ippools.yaml"]
    assert 'nodeSelector: "(has(rack) && !rack == \\"a\\")"' in text
    assert 'nodeSelector: "(!rack == \\"a\\" && !has(rack))"' in text


def test_another_block_size_is_a_pool_of_its_own() -> None:
    objects = [*SOUND, calico.pool("wide", "10.1.0.0/16", blockSize=24), *calico.affine("10.1.3.0/24", "n1")]
    assert (
        "IPC0846",
        "ipamc writes pool wide as disabled: pool pods selects the same nodes, but has /26 blocks",
    ) in [(code, message) for _, code, message in said(objects)]
    assert held(compiled(imported(objects).files))["n1"] == ["10.0.0.0/26", "10.1.3.0/24"]


@pytest.mark.parametrize(
    "spec",
    [
        {"cidr": 5},
        {"cidr": "10.1.0.0"},
        {"cidr": "10.1.0.0/16", "blockSize": 99},
        {"cidr": "10.1.0.0/16", "namespaceSelector": "("},
        {"cidr": "10.1.0.0/16", "allowedUses": "Workload"},
        {},
    ],
)
def test_a_pool_that_nobody_checked(spec: dict[str, Any]) -> None:
    pool = {**calico.pool("odd", "10.1.0.0/16"), "spec": spec}
    assert [(level, code) for level, code, _ in said([*SOUND, pool])] == [(ERROR, "IPC0840")]


@pytest.mark.parametrize("value", [5, ["10.0.0.1"], [7], {"a": 1}])
def test_a_reservation_that_nobody_checked(value: object) -> None:
    odd = {**calico.reservation("odd", []), "spec": {"reservedCIDRs": value}}
    assert [(level, code) for level, code, _ in said([*SOUND, odd])] == [(ERROR, "IPC0840")]


def refreshed(objects: Objects) -> dict[str, str]:
    """Refresh what was imported from SOUND."""
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in imported(SOUND).files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    return refresh(cluster, FOLDER, dump_of(objects), Past())


def test_a_refresh_before_the_migration() -> None:
    """A node that joined Calico after the import keeps its blocks."""
    newcomer = [dumps.node("n3"), *calico.affine("10.0.7.0/26", "n3")]
    assert refreshed(SOUND)["ciliumnodes.yaml"] == imported(SOUND).files["ciliumnodes.yaml"]
    assert (
        "{name: n3}, spec: {ipam: {pools: {allocated: [{pool: pods.n3, cidrs: [10.0.7.0/26]}]}}}"
        in (refreshed([*SOUND, *newcomer])["ciliumnodes.yaml"])
    )


def test_a_refresh_while_nodes_move() -> None:
    """n1 has moved, and its CiliumNode says what it has; that of n2 is there, and empty."""
    moved = [dumps.cilium_node("n1", allocated={"pods.n1": ["10.0.0.0/26"]}), dumps.cilium_node("n2")]
    assert refreshed([*SOUND, *moved])["ciliumnodes.yaml"] == imported(SOUND).files["ciliumnodes.yaml"]


def test_a_refresh_after_the_migration() -> None:
    moved = [
        dumps.cilium_node("n1", allocated={"pods.n1": ["10.0.0.0/26"]}),
        dumps.cilium_node("n2", allocated={"pods.n2": ["10.0.0.64/26"]}),
    ]
    for left in ([], [POOL]):
        assert (
            refreshed([*NODES, *moved, *left])["ciliumnodes.yaml"]
            == imported(SOUND).files["ciliumnodes.yaml"]
        )


def test_pools_that_serve_nodes_without_a_label_share_them() -> None:
    """Both select n3, which has no rack, so Calico takes a."""
    pools = [
        calico.pool("a", "10.1.0.0/16", nodeSelector="rack != 'a'"),
        calico.pool("b", "10.2.0.0/16", nodeSelector="!has(rack)"),
    ]
    came = imported([*SOUND[:2], dumps.node("n3"), *pools, *BLOCKS, calico.FROZEN])
    assert held(compiled(came.files))["n3"] == ["10.1.0.64/26"]


def test_nobody_gets_a_block_that_is_being_released() -> None:
    """n3 would get 10.0.0.128/26."""
    objects = [*SOUND, dumps.node("n3"), calico.affinity("10.0.0.128/26", "n1", "pendingDeletion")]
    assert held(compiled(imported(objects).files)) == {
        "n1": ["10.0.0.0/26"],
        "n2": ["10.0.0.64/26"],
        "n3": ["10.0.0.192/26"],
    }


def test_blocks_of_load_balancers_are_of_no_node() -> None:
    block = calico.block("10.0.9.7/32", "", [(0, "", "ingress/gateway")], affinity="virtual:load-balancer")
    claim = calico.affinity("10.0.9.8/32", "load-balancer", type="virtual")
    assert said([*SOUND, block, claim]) == []


def test_addresses_that_nobody_uses() -> None:
    """Windows keeps some of each block; Calico keeps one for a while after its pod."""
    block = calico.block("10.0.9.0/28", "gone")
    block["spec"]["attributes"] = [
        {"handle_id": "windows-reserved-ipam-handle"},
        {"handle_id": "x", "secondary": {"node": "n1"}, "releasedAt": "2026-11-22T11:59:40Z"},
    ]
    block["spec"]["allocations"] = [0, 0, 0, 1, *[None] * 11, 0]
    assert [(level, code) for level, code, _ in said([*SOUND, block])] == [(NOTE, "IPC0854")]


def test_names_with_dots() -> None:
    objects = [
        *NODES,
        calico.pool("a.b", "10.0.0.0/17"),
        calico.pool("a-b", "10.0.128.0/17", disabled=True),
        *BLOCKS,
    ]
    text = imported(objects).files["ippools.yaml"]
    assert "metadata: {name: a-b}\n" in text
    assert "metadata: {name: a-b-x}\n" in text
    assert held(compiled(imported(objects).files)) == {"n1": ["10.0.0.0/26"], "n2": ["10.0.0.64/26"]}


def test_a_pool_that_is_smaller_than_its_blocks() -> None:
    came = imported([*SOUND, calico.pool("tiny", "10.1.0.0/28", disabled=True)])
    assert "ipv4: {cidrs: [10.1.0.0/28], blockSize: 28}" in came.files["ippools.yaml"]
    assert compiled(came.files).diagnostics is not None


def test_a_block_that_is_larger_than_its_pool() -> None:
    objects = [*SOUND, calico.pool("cut", "10.1.0.0/26"), *calico.affine("10.1.0.0/24", "n1")]
    assert held(compiled(imported(objects).files))["n1"] == ["10.0.0.0/26", "10.1.0.0/24"]


def test_one_pool_in_both_api_groups() -> None:
    both = [{**item, "apiVersion": calico.V3} for item in SOUND if item["kind"] == "IPPool"]
    assert imported([*SOUND, *both]).files == imported(SOUND).files


def test_an_overlay_that_nobody_uses() -> None:
    """A pool of which no new blocks are made and no node has one does not route anything."""
    idle = calico.pool("idle", "10.7.0.0/16", vxlanMode="Always", disabled=True)
    assert held(compiled(imported([*SOUND, idle]).files)) == {"n1": ["10.0.0.0/26"], "n2": ["10.0.0.64/26"]}
    with pytest.raises(Refused):
        imported([*SOUND, idle, *calico.affine("10.7.0.0/26", "n1")])


@pytest.mark.parametrize("mode", [None, Mode.CLUSTER_POOL, Mode.MULTI_POOL, Mode.CRD])
def test_a_distinct_range(mode: Mode | None) -> None:
    """Every node gets a new block beside Calico's, which are excluded; a refresh while Calico runs changes nothing."""
    objects = [*NODES, OVERLAY, *BLOCKS, calico.block("10.9.0.0/26", "n1", [WEB]), calico.config()]
    came = imported(objects, distinct=[parse_block("10.100.0.0/16")], mode=mode)
    assert [found.code for found in came.findings] == []
    first = compiled(came.files)
    assert held(first) == {"n1": ["10.100.0.0/24"], "n2": ["10.100.1.0/24"]}
    assert [str(item.block) for item in came.draft.excluded] == ["10.0.0.0/16", "10.9.0.0/26"]
    sources = {f"{FOLDER}/{name}": text.encode() for name, text in came.files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    again = refresh(cluster, FOLDER, dump_of(objects), Past())
    assert again == {name: came.files[name] for name in again}


def test_a_distinct_range_has_room() -> None:
    """Blocks get smaller until there are twice as many as nodes; a dual-stack cluster names a range of each family."""
    nodes = [dumps.node(f"n{number}") for number in range(40)]
    ranges = [parse_block("10.100.0.0/18"), parse_block("fd00:1::/104")]
    came = imported([*nodes, OVERLAY, *calico.affine("10.0.0.0/26", "n1")], distinct=ranges)
    (pool,) = came.draft.pools
    assert (came.draft.families, pool.sizes) == ((4, 6), {4: 25, 6: 112})
    assert len(held(compiled(came.files))) == 40


@pytest.mark.parametrize(
    ("objects", "options"),
    [
        (SOUND, {"mode": Mode.KUBERNETES}),
        ([*NODES, dumps.cilium_node("n1", "10.0.0.0/24"), dumps.config_map(ipam="cluster-pool")], {}),
        ([*NODES], {"mode": Mode.CLUSTER_POOL}),
    ],
)
def test_where_no_range_is_distinct(objects: Objects, options: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        imported(objects, distinct=[parse_block("10.100.0.0/16")], **options)
    assert [found.code for found in refused.value.diagnostics] == ["IPC0866"]


def test_calico_with_podcidrs() -> None:
    """With host-local Calico gives pods addresses of podCIDRs, and its pools only say what is masqueraded."""
    config = dumps.config_map(
        "calico-config", cni_network_config='{"ipam": {"type": "host-local", "subnet": "usePodCidr"}}'
    )
    config["data"] = {"cni_network_config": config["data"]["cni-network-config"]}
    came = imported([dumps.node("n1", "10.0.0.0/24"), dumps.node("n2", "10.0.1.0/24"), POOL, config])
    assert held(compiled(came.files)) == {"n1": ["10.0.0.0/24"], "n2": ["10.0.1.0/24"]}
    assert "ipam: {mode: kubernetes}" in came.files["cluster.yaml"]


@pytest.mark.parametrize(
    ("api", "resource"),
    [(calico.CRD, "ipamconfigs.crd.projectcalico.org"), (calico.V3, "ipamconfigurations.projectcalico.org")],
)
def test_how_to_freeze_calico(api: str, resource: str) -> None:
    pool = calico.pool("pods", "10.0.0.0/16", api=api)
    for config in ([], [calico.config(strict=True, api=api)], [{**calico.FROZEN, "spec": None}]):
        (found,) = imported([*NODES, pool, *BLOCKS, *config]).findings
        assert found.code == "IPC0862"
        assert f"kubectl patch {resource} default --type=merge" in found.help
    assert not imported([*NODES, pool, *BLOCKS, calico.config(strict=True, auto=False, api=api)]).findings
