"""Documents to the model: every dialect, how documents are dispatched, and what their values are refused for."""

from __future__ import annotations

import gc
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import Block, Range, parse_block
from ipamc.model.cluster import Cluster, Dialect, Mode
from ipamc.model.diagnostics import Located, Place, Refused, Severity
from ipamc.model.selector.selector import EVERY, parse_calico, parse_label_selector, parse_node_selector
from ipamc.read.locate import locate
from ipamc.read.read import read
from ipamc.workspace.disk import assets

SCHEMAS = assets("schemas")
CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""


def model(*sources: str, cluster: str = CLUSTER) -> Cluster:
    """Read a Cluster and other documents, and expect nothing to be said."""
    value, found = read("c", "clusters/c", files(*sources, cluster=cluster), SCHEMAS)
    assert found == []
    return value


def files(*sources: str, cluster: str = CLUSTER) -> dict[str, bytes]:
    return {
        f"clusters/c/{index}.{'json' if text[:1] in '{[' else 'yaml'}": text.encode()
        for index, text in enumerate((cluster, *sources))
        if text
    }


def said(*sources: str, cluster: str = CLUSTER) -> list[str]:
    """Return `CODE file:line text` for each finding: the text that is underlined, or what follows the point, after a ^."""
    given = files(*sources, cluster=cluster)
    found: Any
    try:
        found = read("c", "clusters/c", given, SCHEMAS)[1]
    except Refused as refused:
        found = refused.diagnostics
    return [brief(each) for each in locate(found, given)]


def brief(each: Located) -> str:
    mark = {Severity.ERROR: "", Severity.WARNING: "w "}[each.severity]
    at = each.at
    text = at.source[at.column - 1 : at.end_column - 1] or "^" + at.source[max(at.column - 1, 0) :][:6]
    return f"{mark}{each.code} {at.path.rpartition('/')[2]}:{at.line} {text}"


def blocks(*texts: str) -> tuple[Block, ...]:
    return tuple(parse_block(text, pods=False) for text in texts)


def pool(spec: str, api: str = "ipamc/v1alpha1", kind: str = "IPPool", metadata: str = "{name: p}") -> str:
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"


def calico(spec: str, metadata: str = "{name: p}", api: str = "projectcalico.org/v3") -> str:
    return pool(spec, api, metadata=metadata)


def test_defaults_of_a_cluster() -> None:
    cluster = model()
    assert (cluster.cilium, cluster.managed_by, cluster.namespace, cluster.mode) == (
        (1, 18),
        "helm",
        "kube-system",
        Mode.CLUSTER_POOL,
    )
    assert (cluster.routing_mode, cluster.native_routing, cluster.kubernetes) == ("", None, None)
    assert (cluster.operator, cluster.pinning, cluster.auto_create, cluster.families) == (
        "bystander",
        "pool",
        (),
        (4,),
    )
    assert (cluster.excluded, cluster.unmatched_nodes, cluster.unpooled, cluster.quarantine_days) == (
        (),
        "error",
        "refuse",
        7,
    )
    assert (cluster.budget_leave, cluster.bgp, cluster.address_space, cluster.patch_nodes) == (
        5,
        "none",
        "",
        "none",
    )
    assert (cluster.shard_size, cluster.node_objects, cluster.truncated) == (250, "guarded", None)


def test_a_cluster_with_everything() -> None:
    cluster = model(
        cluster="""\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  cilium: {version: v1.14.5, managedBy: none, namespace: cilium, routingMode: tunnel, nativeRoutingCIDR: 10.0.0.0/8}
  kubernetes: {version: "1.33.1+k3s1"}
  ipam: {mode: multi-pool, operator: adopt, autoCreate: [default]}
  ipFamilies: [IPv6, IPv4]
  excludedCIDRs: [169.254.0.0/16, "fd00::/64"]
  quarantineDays: never
  budget: {leave: 100}
  bgp: control-plane
  addressSpace: fabric
  output: {shardSize: 8, nodeObjects: create}
"""
    )
    assert (cluster.cilium, cluster.kubernetes, cluster.namespace, cluster.routing_mode) == (
        (1, 14),
        (1, 33),
        "cilium",
        "tunnel",
    )
    assert cluster.native_routing == Range(
        parse_block("10.0.0.0/8"),
        Place("clusters/c/0.yaml", 0, ("spec", "cilium", "nativeRoutingCIDR")),
    )
    assert (cluster.mode, cluster.pinning, cluster.auto_create, cluster.families) == (
        Mode.MULTI_POOL,
        "none",
        ("default",),
        (6, 4),
    )
    assert [each.block for each in cluster.excluded] == list(blocks("169.254.0.0/16", "fd00::/64"))
    assert (cluster.quarantine_days, cluster.budget_leave, cluster.bgp, cluster.address_space) == (
        None,
        100,
        "control-plane",
        "fabric",
    )
    assert (cluster.shard_size, cluster.node_objects) == (8, "create")


@pytest.mark.parametrize(
    ("mode", "version", "pinning", "patch"),
    [
        ("kubernetes", "1.18", "pool", "podCIDRs"),
        ("multi-pool", "1.15", "pool", "none"),
        ("multi-pool", "1.14", "none", "none"),
        ("crd", "1.20", "pool", "none"),
    ],
)
def test_defaults_that_depend(mode: str, version: str, pinning: str, patch: str) -> None:
    cluster = model(cluster=CLUSTER.replace("cluster-pool", mode).replace("1.18", version))
    assert (cluster.pinning, cluster.patch_nodes) == (pinning, patch)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.18", (1, 18)),
        ("v1.18.5", (1, 18)),
        ("1.20.0-rc.1", (1, 20)),
        ("v1.33.4+rke2r1", (1, 33)),
        ("1", None),
        ("1.18.", None),
        ("1.x", None),
        ("latest", None),
    ],
)
def test_versions(text: str, version: tuple[int, int] | None) -> None:
    source = CLUSTER.replace("1.18", text)
    if version:
        assert model(cluster=source).cilium == version
    else:
        assert said(cluster=source) == [f'IPC0007 0.yaml:5 "{text}"']


def test_a_native_pool() -> None:
    cluster = model(
        """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: beijing, labels: {tier: web}}
spec:
  ipv4: {cidrs: [10.1.0.0/19, 10.0.0.0/19], blockSize: 27}
  ipv6: {cidrs: ["fd00::/48"], blockSize: 64}
  nodeSelector: topology.kubernetes.io/zone == "beijing"
  priority: -1
  overflow: [spare]
  blocksPerNode: 2
  blockSizes:
  - {nodeSelector: {matchLabels: {size: large}}, ipv4: 25}
  - {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]}, ipv6: 62}
  reserved: [10.1.0.0/24]
  pins: {node-7: [10.1.1.0/27], node-10: ["fd00::/64"]}
  unlisted: true
  disabled: true
"""
    )
    (got,) = cluster.pools
    assert (got.name, got.dialect, got.labels, got.at) == (
        "beijing",
        Dialect.NATIVE,
        {"tier": "web"},
        Place("clusters/c/1.yaml"),
    )
    assert list(got.families) == [4, 6]
    assert [each.block for each in got.families[4].ranges] == list(blocks("10.1.0.0/19", "10.0.0.0/19"))
    assert got.families[4].ranges[1].at == got.at / "spec" / "ipv4" / "cidrs" / 1
    assert (got.families[4].block_size, got.families[6].block_size) == (27, 64)
    assert got.selector == parse_calico('topology.kubernetes.io/zone == "beijing"')
    assert (got.priority, got.overflow, got.blocks_per_node, got.unlisted, got.disabled) == (
        -1,
        ("spare",),
        2,
        True,
        True,
    )
    assert [(each.selector, each.sizes) for each in got.block_sizes] == [
        (parse_label_selector({"matchLabels": {"size": "large"}}), {4: 25}),
        (
            parse_node_selector(
                {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
            ),
            {6: 62},
        ),
    ]
    assert [each.block for each in got.reserved] == list(blocks("10.1.0.0/24"))
    assert {name: [each.block for each in pins] for name, pins in got.pins.items()} == {
        "node-10": list(blocks("fd00::/64")),
        "node-7": list(blocks("10.1.1.0/27")),
    }


@pytest.mark.parametrize(
    "selector",
    ["", "nodeSelector: ''", "nodeSelector: {}", "nodeSelector: {matchLabels: {}}", "nodeSelector: all()"],
)
def test_selectors_of_every_node(selector: str) -> None:
    assert (
        model(pool(f"{{ipv4: {{cidrs: [10.0.0.0/8], blockSize: 24}}, {selector}}}")).pools[0].selector
        == EVERY
    )


@pytest.mark.parametrize(
    ("spec", "metadata", "family", "size", "disabled"),
    [
        ("{cidr: 10.0.0.0/16}", "{name: p}", 4, 26, False),
        ("{cidr: 10.0.0.0/16, blockSize: 0, allowedUses: []}", "{name: p}", 4, 26, False),
        ('{cidr: "fd00::/64", blockSize: null}', "{name: p}", 6, 122, False),
        ("{cidr: 10.0.0.0/16, blockSize: 28, disabled: true}", "{name: p}", 4, 28, True),
        ("{cidr: 10.0.0.0/16, assignmentMode: Manual}", "{name: p}", 4, 26, True),
        (
            "{cidr: 10.0.0.0/16, namespaceSelector: all()}",
            '{name: p, deletionTimestamp: "2026-01-01T00:00:00Z"}',
            4,
            26,
            True,
        ),
    ],
)
@pytest.mark.parametrize("api", ["projectcalico.org/v3", "crd.projectcalico.org/v1"])
def test_calico_pools(spec: str, metadata: str, family: int, size: int, disabled: bool, api: str) -> None:  # noqa: FBT001 - a table
    (got,) = model(calico(spec, metadata, api)).pools
    assert (got.dialect, list(got.families), got.families[family].block_size, got.disabled) == (
        Dialect.CALICO,
        [family],
        size,
        disabled,
    )


def test_a_calico_pool_that_is_not_for_workloads_is_excluded() -> None:
    tunnel = calico("{cidr: 10.2.0.0/16, allowedUses: [Tunnel]}", "{name: t}")
    balancer = calico("{cidr: 169.254.7.0/24, allowedUses: [LoadBalancer]}", "{name: l}")
    cluster = model(
        tunnel,
        balancer,
        calico("{cidr: 10.0.0.0/16, allowedUses: [Tunnel, Workload]}"),
        cluster=CLUSTER + "  excludedCIDRs: [192.168.0.0/16]\n",
    )
    assert [str(each.block) for each in cluster.excluded] == [
        "192.168.0.0/16",
        "10.2.0.0/16",
        "169.254.7.0/24",
    ]
    assert [each.name for each in cluster.pools] == ["p"]


def test_cluster_cidrs() -> None:
    spec = '{perNodeHostBits: 8, ipv4: 10.0.0.0/16, ipv6: "fd00::/112", nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}'
    (got,) = model(pool(spec, "networking.x-k8s.io/v1", "ClusterCIDR")).pools
    assert (got.dialect, [got.families[each].block_size for each in (4, 6)], got.selector.language) == (
        Dialect.CLUSTER_CIDR,
        [24, 120],
        "NodeSelector",
    )
    (got,) = model(
        pool(
            "{perNodeHostBits: 4, ipv6: null, ipv4: 10.0.0.0/16, nodeSelector: null}",
            "networking.k8s.io/v1alpha1",
            "ClusterCIDR",
        )
    ).pools
    assert (list(got.families), got.selector, got.disabled) == ([4], EVERY, False)


def test_nodes() -> None:
    (node,) = model(
        """\
apiVersion: v1
kind: Node
metadata:
  name: n1
  uid: 7c2b
  labels: {rack: r1, "": null}
  deletionTimestamp: "2026-01-01T00:00:00Z"
spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24, "fd00::/64"]}
status:
  addresses: [{type: InternalIP, address: 192.168.0.1}, {type: Hostname, address: n1}, {type: InternalIP, address: "fd01::1"}]
  allocatable: {pods: "110"}
  capacity: {pods: "250"}
""".replace(', "": null', ", empty: null")
    ).nodes
    assert (node.name, node.uid, node.labels, node.live, node.planned, node.max_pods) == (
        "n1",
        "7c2b",
        {"rack": "r1", "empty": ""},
        True,
        False,
        110,
    )
    assert node.pod_cidrs == blocks("10.0.0.0/24", "fd00::/64")
    assert node.internal_ips == ((4, 0xC0A80001), (6, 0xFD01 << 112 | 1))


@pytest.mark.parametrize(
    ("spec", "cidrs"),
    [
        ("{}", ()),
        ("{podCIDR: 10.0.0.0/24}", ("10.0.0.0/24",)),
        ("{podCIDRs: [10.0.0.0/24]}", ("10.0.0.0/24",)),
        ("{podCIDR: 10.1.0.0/24, podCIDRs: [10.0.0.0/24, 10.1.0.0/24]}", ("10.1.0.0/24",)),
        ('{podCIDR: "", podCIDRs: []}', ()),
    ],
)
def test_pod_cidrs_as_the_apiserver_takes_them(spec: str, cidrs: tuple[str, ...]) -> None:
    (node,) = model(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n9}}\nspec: {spec}\n").nodes
    assert node.pod_cidrs == blocks(*cidrs)


@pytest.mark.parametrize(
    ("status", "pods"),
    [
        ("{}", 0),
        ("{capacity: {pods: '1k'}}", 1000),
        ("{allocatable: {pods: 30}}", 30),
        ("{allocatable: {pods: many}}", 0),
    ],
)
def test_max_pods(status: str, pods: int) -> None:
    assert (
        model(f"apiVersion: v1\nkind: Node\nmetadata: {{name: n9}}\nstatus: {status}\n").nodes[0].max_pods
        == pods
    )


def test_an_inventory() -> None:
    cluster = model(
        "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes:\n- {name: n2}\n"
        "- {name: n1, labels: {a: b}, uid: u, podCIDRs: [10.0.0.0/24], maxPods: 60, planned: true}\n"
    )
    first, second = cluster.nodes
    assert (
        first.name,
        first.labels,
        first.uid,
        first.pod_cidrs,
        first.max_pods,
        first.planned,
        first.live,
    ) == (
        "n1",
        {"a": "b"},
        "u",
        blocks("10.0.0.0/24"),
        60,
        True,
        False,
    )
    assert (second.name, second.at, second.labels) == ("n2", Place("clusters/c/1.yaml", 0, ("nodes", 0)), {})


PLANNED = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n1, planned: true, maxPods: 5}]\n"
LISTED = "apiVersion: ipamc/v1alpha1\nkind: NodeInventory\nnodes: [{name: n1}]\n"
LIVE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, uid: u}\n"


@pytest.mark.parametrize("order", list(itertools.permutations([PLANNED, LIVE])))
def test_a_live_node_fulfils_a_plan(order: tuple[str, str]) -> None:
    (node,) = model(*order).nodes
    assert (node.live, node.planned, node.uid, node.max_pods) == (True, False, "u", 0)


@pytest.mark.parametrize(
    "pair",
    [
        (LIVE, LIVE),
        (LISTED, LIVE),
        (PLANNED, PLANNED),
        (LISTED, PLANNED),
        (PLANNED, LISTED),
        (PLANNED, LIVE, PLANNED),
        (LISTED, LISTED),
    ],
)
def test_other_nodes_of_one_name_are_refused(pair: tuple[str, ...]) -> None:
    assert [each[:7] for each in said(*pair)] == ["IPC0103"]


def test_cilium_nodes() -> None:
    (node,) = model(
        "apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata: {name: n1, ownerReferences: [{kind: Node}]}\n"
        'spec: {ipam: {podCIDRs: [10.0.0.0/24, "fd00::/64"], pools: {requested: [{pool: x}], allocated: [{pool: b, cidrs: [10.1.0.0/27]}, {pool: a}]}}}\n'
    ).cilium_nodes
    assert node.blocks == blocks("10.0.0.0/24", "fd00::/64")
    assert node.allocated == ((parse_block("10.1.0.0/27"), "b"),)


@pytest.mark.parametrize(
    "source",
    [
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- {apiVersion: v1, kind: Node, metadata: {name: n2}}\n",
        "apiVersion: v1\nkind: NodeList\nmetadata: {resourceVersion: ''}\nitems: [{metadata: {name: n1}}, {metadata: {name: n2}, kind: Node}]\n",
        '{"items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}], "kind": "NodeList", "apiVersion": "v1"}',
        '{"kind": "List", "apiVersion": "v1", "items": [{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}]}',
        "---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n2}\n",
    ],
)
def test_lists_and_streams(source: str) -> None:
    assert [node.name for node in model(source).nodes] == ["n1", "n2"]


def test_lists_of_other_kinds() -> None:
    cluster = model(
        "apiVersion: crd.projectcalico.org/v1\nkind: IPPoolList\nitems: [{metadata: {name: p}, spec: {cidr: 10.0.0.0/16}}]\n",
        "apiVersion: cilium.io/v2\nkind: CiliumNodeList\nitems: [{metadata: {name: n9}}]\n",
        "apiVersion: ipamc/v1alpha1\nkind: IPPoolList\nitems: [{metadata: {name: q}, spec: {ipv4: {cidrs: [10.1.0.0/16], blockSize: 24}}}]\n",
        "apiVersion: v1\nkind: List\nitems: null\n",
        "apiVersion: v1\nkind: List\n",
    )
    assert ([each.name for each in cluster.pools], len(cluster.cilium_nodes)) == (["p", "q"], 1)


@pytest.mark.parametrize("metadata", ['{"continue": "abc"}', '{"remainingItemCount": 7}'])
def test_a_list_that_goes_on_elsewhere(metadata: str) -> None:
    source = f'{{"apiVersion": "v1", "kind": "NodeList", "metadata": {metadata}, "items": []}}'
    assert model(source).truncated == Place("clusters/c/1.json", 0, ("metadata", "continue"))
    assert model(source.replace("abc", "").replace("7", "0")).truncated is None


def test_documents_of_others_are_passed_over() -> None:
    model(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [rendered]\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: null\n",
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n---\n---\n# and an empty one\n",
    )


BAD_CIDRS = {
    "10.0.0.1/8": "IPC0201",
    "10.0.0.0": "IPC0206",
    "010.0.0.0/8": "IPC0206",
    "10.0.0.0/33": "IPC0206",
    '"fd00::/48"': "IPC0202",
    '"::ffff:10.0.0.0/104"': "IPC0203",
    "127.0.0.0/8": "IPC0204",
    "169.254.1.0/24": "IPC0204",
    "239.0.0.0/8": "IPC0204",
}


@pytest.mark.parametrize(("text", "code"), BAD_CIDRS.items())
def test_cidrs(text: str, code: str) -> None:
    assert said(pool(f"{{ipv4: {{cidrs: [{text}], blockSize: 30}}}}")) == [f"{code} 1.yaml:4 {text}"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (pool('{ipv6: {cidrs: ["fd00:0::/48"], blockSize: 64}}'), ['w IPC0205 1.yaml:4 "fd00:0::/48"']),
        (pool("{ipv6: {cidrs: [10.0.0.0/8], blockSize: 64}}"), ["IPC0202 1.yaml:4 10.0.0.0/8"]),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, reserved: [10.0.0.1/24], pins: {n1: [x]}}"),
            ["IPC0201 1.yaml:4 10.0.0.1/24", "IPC0206 1.yaml:4 x"],
        ),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, pins: {n_1: [10.0.0.0/24]}}"),
            ["IPC0101 1.yaml:4 n_1"],
        ),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}}", metadata="{name: P, labels: {a b: c}}"),
            ["IPC0101 1.yaml:3 P", "IPC0102 1.yaml:3 a b"],
        ),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, nodeSelector: rack = 'a'}"),
            ["IPC0301 1.yaml:4 ="],
        ),
        (
            pool(
                "{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, nodeSelector: {matchExpressions: [{key: a, operator: in}]}}"
            ),
            ["IPC0301 1.yaml:4 in"],
        ),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, nodeSelector: {matchLabels: {a b: c}}}"),
            ["IPC0301 1.yaml:4 a b"],
        ),
        (
            pool("\n  ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}\n  nodeSelector: |\n    has(a) &&\n"),
            ["IPC0301 1.yaml:7 ^"],
        ),
        (
            calico("{cidr: 10.0.0.0/8, namespaceSelector: team ==}"),
            ["IPC0301 1.yaml:4 ^}"],
        ),
        (
            pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}, podSelector: {matchLabels: {a b: c}}}"),
            ["IPC0301 1.yaml:4 a b"],
        ),
        (
            calico(f"{{cidr: 10.0.0.0/8, nodeSelector: {'has(a) && ' * 110}has(b)}}"),
            ["IPC0301 1.yaml:4 a"],
        ),
        (calico("{cidr: 10.0.0.0/8, nodeSelector: global()}"), ["IPC0301 1.yaml:4 global()"]),
        (
            pool("{perNodeHostBits: 40, ipv4: 10.0.0.0/8}", "networking.x-k8s.io/v1", "ClusterCIDR"),
            ["IPC0007 1.yaml:4 40"],
        ),
        (
            pool("{perNodeHostBits: 8}", "networking.x-k8s.io/v1", "ClusterCIDR"),
            ["IPC0007 1.yaml:4 perNodeHostBits"],
        ),
        (
            pool(
                "{perNodeHostBits: 8, ipv4: 10.0.0.0/8, nodeSelector: {matchLabels: {a: b}}}",
                "networking.x-k8s.io/v1",
                "ClusterCIDR",
            ),
            ["IPC0301 1.yaml:4 matchLabels"],
        ),
        (
            LIVE + "status: {addresses: [{type: InternalIP, address: nowhere}]}\n",
            ["IPC0206 1.yaml:4 nowhere"],
        ),
        (LIVE + "spec: {podCIDRs: [10.0.0.1/24]}\n", ["IPC0201 1.yaml:4 10.0.0.1/24"]),
        (
            LIVE.replace("n1", "N1").replace("uid: u", "labels: {a: b c, -a: d}"),
            ["IPC0101 1.yaml:3 N1", "IPC0102 1.yaml:3 b c", "IPC0102 1.yaml:3 -a"],
        ),
        (
            LISTED.replace("n1", "a..b, labels: {x: -}, podCIDRs: [z]"),
            ["IPC0101 1.yaml:3 a..b", "IPC0102 1.yaml:3 -", "IPC0206 1.yaml:3 z"],
        ),
        ("apiVersion: v1\nkind: Pod\n", ["IPC0009 1.yaml:2 Pod"]),
        ("apiVersion: v1\nkind: PodList\nitems: []\n", ["IPC0009 1.yaml:2 PodList"]),
        ("kind: Node\n", ["IPC0007 1.yaml:1 kind"]),
        ("- a\n- b\n", ["IPC0007 1.yaml:1 - a"]),
        ("apiVersion: v1\nkind: List\nitems: [3, null]\n", ["IPC0007 1.yaml:3 3", "IPC0007 1.yaml:3 null"]),
        ("apiVersion: v1\nkind: List\nitems: {}\n", ["IPC0007 1.yaml:3 {}"]),
        (
            calico("{cidr: 10.0.0.0/8}") + "---\n" + pool("{ipv4: {cidrs: [10.0.0.0/8], blockSize: 24}}"),
            ["IPC0103 1.yaml:8 p"],
        ),
        (CLUSTER, ["IPC0103 1.yaml:3 c"]),
        (CLUSTER.replace("name: c", "name: other"), ["IPC0104 1.yaml:3 other"]),
    ],
)
def test_findings(source: str, expected: list[str]) -> None:
    assert said(source) == expected


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("", ["IPC0105 c:0 ^"]),
        (CLUSTER.replace("name: c", "name: d"), ["IPC0104 0.yaml:3 d"]),
        (CLUSTER.replace("name: c", "name: C"), ["IPC0101 0.yaml:3 C"]),
        (CLUSTER.replace("helm", "helm, namespace: a.b"), ["IPC0101 0.yaml:5 a.b"]),
        # where the Cluster may have been lost, nobody is told to write one
        (CLUSTER.replace("mode:", "mod:"), ["IPC0006 0.yaml:6 mod"]),
        (CLUSTER.replace("kind: Cluster", "kind: Clutser"), ["IPC0009 0.yaml:2 Clutser"]),
        (CLUSTER.replace("v1alpha1", "v1"), ["IPC0009 0.yaml:1 ipamc/v1"]),
        (CLUSTER.replace("{mode", "mode"), ["IPC0001 0.yaml:6 :"]),
    ],
)
def test_findings_about_the_cluster(cluster: str, expected: list[str]) -> None:
    assert said("# nothing else\n", cluster=cluster) == expected


def test_all_findings_of_all_files_come_at_once() -> None:
    assert said(
        "a: [",
        '{"a"',
        pool("{}"),
        "kind: Pod\napiVersion: v1\n",
        LIVE.replace("n1", "_"),
        cluster=CLUSTER + "  x: y\n",
    ) == [
        "IPC0006 0.yaml:7 x",
        "IPC0001 1.yaml:1 ^",
        "IPC0002 2.json:1 ^",
        "IPC0007 3.yaml:4 {}",
        "IPC0009 4.yaml:1 Pod",
        "IPC0101 5.yaml:3 _",
    ]


@given(
    st.permutations(
        [
            CLUSTER,
            PLANNED.replace("n1", "n0"),
            LIVE,
            calico("{cidr: 10.2.0.0/16, allowedUses: [Tunnel]}", "{name: t}"),
            calico("{cidr: 10.0.0.0/16}"),
        ]
    ),
    st.booleans(),
)
def test_the_order_of_documents_does_not_matter(documents: list[str], one_file: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    texts = ["---\n".join(documents)] if one_file else documents
    value, _ = read("c", "c", {f"{index}.yaml": text.encode() for index, text in enumerate(texts)}, SCHEMAS)
    assert (
        [each.name for each in value.nodes],
        [each.name for each in value.pools],
        [str(each.block) for each in value.excluded],
    ) == (
        ["n0", "n1"],
        ["p"],
        ["10.2.0.0/16"],
    )


def test_the_collector_is_left_as_it_was() -> None:
    model(json.dumps({"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": [{"name": "n1"}]}))
    assert gc.isenabled()
