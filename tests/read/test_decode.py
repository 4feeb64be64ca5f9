"""The shape of documents: the typed fast path and the JSON Schemas agree, and what is refused is explained."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipamc.model.diagnostics import Diagnostic, Place, Refused, Severity
from ipamc.read.decode import Mistyped, explain, mistyped
from ipamc.read.kinds import KINDS, Kind
from ipamc.read.locate import locate
from ipamc.read.read import read
from ipamc.workspace.disk import assets
from tests.support import depth

SCHEMAS = {name: text for name, text in assets("schemas").items() if name.endswith(".schema.json")}
LABELS = {"rack": "r1"}
FOREIGN = {"name": "n1", "labels": LABELS, "uid": "u", "deletionTimestamp": None}
SELECTORS = [
    {"key": "rack", "operator": "In", "values": ["r1"]},
    {"key": "gpu", "operator": "Exists"},
]
FULL: dict[str, dict[str, Any]] = {
    "cluster.schema.json": {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "c", "labels": LABELS, "annotations": {"a": "b"}},
        "spec": {
            "cilium": {
                "version": "1.18",
                "assume": "1.20",
                "managedBy": "helm",
                "namespace": "cilium",
                "routingMode": "native",
                "nativeRoutingCIDR": "10.0.0.0/8",
                "clusterID": 7,
                "clusterName": "c-7",
                "nodeSelector": {
                    "matchLabels": LABELS,
                    "matchExpressions": SELECTORS,
                    "nodeSelectorTerms": [{"matchExpressions": SELECTORS, "matchFields": SELECTORS[:1]}],
                },
                "masquerade": {
                    "ipMasqAgent": True,
                    "nonMasqueradeCIDRs": ["172.16.0.0/12"],
                    "addressSpace": False,
                    "masqLinkLocal": True,
                    "masqLinkLocalIPv6": True,
                    "onlyMasqueradeDefaultPool": True,
                },
            },
            "kubernetes": {"version": "v1.33.4"},
            "ipam": {"mode": "multi-pool", "operator": "adopt", "pinning": "node", "autoCreate": ["default"]},
            "ipFamilies": ["IPv4", "IPv6"],
            "excludedCIDRs": ["10.96.0.0/12"],
            "services": {
                "ipv4": {"from": "fabric", "prefixLength": 20},
                "ipv6": {"from": "fabric", "prefixLength": 112},
            },
            "unmatchedNodes": "skip",
            "unpooled": "hold",
            "quarantineDays": "never",
            "budget": {"leave": 10},
            "bgp": "metallb",
            "bgpAdvertisements": [
                {
                    "name": "pods",
                    "labels": LABELS,
                    "selector": {"matchLabels": LABELS, "matchExpressions": SELECTORS},
                }
            ],
            "addressSpace": "fabric",
            "context": "kubernetes-admin@lab",
            "patchNodes": "annotations",
            "cloudRoutes": 100,
            "admission": {"assign": True, "assignBeta": True, "enforce": "deny"},
            "output": {"shardSize": 10, "nodeObjects": "create"},
            "acknowledge": [
                {
                    "code": "IPC0951",
                    "reason": "no speaker reads Nodes",
                    "pools": ["default"],
                    "nodes": {
                        "nodeSelectorTerms": [{"matchExpressions": SELECTORS, "matchFields": SELECTORS[:1]}]
                    },
                }
            ],
        },
    },
    "addressspace.schema.json": {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "AddressSpace",
        "metadata": {"name": "fabric", "labels": LABELS, "annotations": {"a": "b"}},
        "spec": {
            "ipv4": {"cidrs": ["10.0.0.0/8"], "prefixLength": 19},
            "ipv6": {"cidrs": ["fd00::/32"], "prefixLength": 48},
            "levels": [
                {
                    "name": "eu",
                    "clusterSelector": {"matchLabels": LABELS, "matchExpressions": SELECTORS},
                    "ipv4": {"cidrs": ["10.0.0.0/10"]},
                    "ipv6": {"cidrs": ["fd00::/34"]},
                },
                {
                    "name": "us",
                    "clusterSelector": {
                        "nodeSelectorTerms": [{"matchExpressions": SELECTORS, "matchFields": SELECTORS[:1]}]
                    },
                    "ipv4": {"cidrs": ["10.64.0.0/10"]},
                },
            ],
            "reserved": ["10.255.0.0/16", {"cidr": "10.254.0.0/16", "reason": "load balancers"}],
            "quarantineDays": 30,
            "budget": {"leave": 10},
        },
    },
    "ippool.schema.json": {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": "p", "labels": LABELS, "annotations": {}},
        "spec": {
            "ipv4": {
                "cidrs": ["10.0.0.0/16"],
                "from": "fabric",
                "prefixLength": 19,
                "ranges": 2,
                "blockSize": 24,
                "follows": "172.30.0.0/24",
            },
            "ipv6": {"cidrs": ["fd00::/48"], "blockSize": 64, "follows": "fd01::/120"},
            "nodeSelector": {"matchLabels": LABELS, "matchExpressions": SELECTORS},
            "priority": -3,
            "overflow": ["q"],
            "blocksPerNode": 2,
            "blockSizes": [
                {"nodeSelector": "large == 'yes'", "ipv4": 23},
                {
                    "nodeSelector": {
                        "nodeSelectorTerms": [{"matchExpressions": SELECTORS, "matchFields": SELECTORS[:1]}]
                    },
                    "ipv6": 62,
                },
            ],
            "reserved": ["10.0.0.0/24", {"cidr": "10.0.1.0/24", "reason": "routers"}],
            "pins": {"node-1": ["10.0.1.0/24"]},
            "unlisted": True,
            "disabled": False,
            "podsOnly": False,
            "usage": {"high": 85, "low": 40, "minBlocks": 1, "maxBlocks": 8, "addresses": 20},
            "podSelector": {"matchLabels": LABELS, "matchExpressions": SELECTORS},
            "namespaceSelector": {},
            "allowFirstIP": True,
            "allowLastIP": False,
            "skipMasquerade": True,
        },
    },
    "nodeinventory.schema.json": {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "NodeInventory",
        "metadata": {"name": "n", "labels": {}, "annotations": {}},
        "nodes": [
            {
                "name": "n1",
                "labels": LABELS,
                "uid": "u",
                "podCIDRs": ["10.0.0.0/24"],
                "maxPods": 110,
                "planned": True,
                "running": False,
                "podIPs": ["10.0.1.7"],
                "internalIPs": ["172.30.0.1"],
            },
            {"name": "n2"},
            {"names": "n{3..9}", "planned": True, "maximum": 20},
        ],
    },
    "tests.schema.json": {
        "apiVersion": "ipamc/v1alpha1",
        "kind": "Tests",
        "metadata": {"name": "t", "labels": {}, "annotations": {}},
        "addressSpace": "fabric",
        "tests": [
            {
                "name": "rack 7",
                "because": "its switches",
                "warn": True,
                "allowEmpty": True,
                "blocks": {
                    "nodeSelector": {"matchLabels": LABELS, "matchExpressions": SELECTORS},
                    "within": ["10.7.0.0/16"],
                    "outside": ["10.7.255.0/24"],
                    "ipv4": 26,
                    "ipv6": 64,
                },
            },
            {
                "blocks": {
                    "nodeSelector": {
                        "nodeSelectorTerms": [{"matchExpressions": SELECTORS, "matchFields": SELECTORS[:1]}]
                    },
                    "ipv4": 26,
                }
            },
            {"node": {"name": "n", "has": ["10.7.0.0/26"]}},
            {"room": {"nodes": 1, "pool": "p"}},
            {"room": {"nodes": 1, "like": LABELS}},
            {"room": {"nodes": 1, "nodeSelector": "all()", "each": "rack"}},
            {"apart": {"nodeSelectors": ["a", {}], "ipv4": 16}},
            {"apart": {"each": "rack", "ipv6": 48}},
            {"nothingIn": ["10.200.0.0/16"]},
            {"renumber": {"ticket": "NET-*", "agreed": [{"node": "n", "ticket": "NET-1"}]}},
        ],
    },
    "calico-ippool.schema.json": {
        "apiVersion": "projectcalico.org/v3",
        "kind": "IPPool",
        "metadata": {**FOREIGN, "labels": {"a": None}, "generation": 3},
        "spec": {
            "cidr": "10.0.0.0/16",
            "blockSize": 26,
            "nodeSelector": "all()",
            "namespaceSelector": None,
            "disabled": False,
            "allowedUses": ["Workload"],
            "assignmentMode": "Manual",
            "ipipMode": "Never",
        },
    },
    "clustercidr.schema.json": {
        "apiVersion": "networking.x-k8s.io/v1",
        "kind": "ClusterCIDR",
        "metadata": FOREIGN,
        "spec": {
            "perNodeHostBits": 8,
            "ipv4": "10.0.0.0/16",
            "ipv6": None,
            "nodeSelector": {"nodeSelectorTerms": []},
        },
    },
    "node.schema.json": {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {**FOREIGN, "annotations": {"network.cilium.io/ipv4-cilium-host": "10.0.0.1"}},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "taints": None},
        "status": {
            "conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "CiliumIsUp"}],
            "addresses": [{"type": "InternalIP", "address": "192.168.0.1"}],
            "allocatable": {"pods": "110"},
            "capacity": {"pods": 110},
        },
    },
    "ciliumnode.schema.json": {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {**FOREIGN, "ownerReferences": [{"kind": "Node", "uid": "u-1"}]},
        "spec": {
            "addresses": [{"type": "CiliumInternalIP", "ip": "10.0.0.7"}],
            "health": {"ipv4": "10.0.0.8"},
            "ingress": {"ipv6": "fd00::8"},
            "ipam": {
                "podCIDRs": ["10.0.0.0/24"],
                "pools": {
                    "allocated": [{"pool": "p", "cidrs": ["10.0.0.0/24"]}],
                    "requested": [{"pool": "p", "needed": {"ipv4-addrs": 8, "ipv6-addrs": 8}}],
                },
                "pool": {"10.0.1.1": {}, "10.0.1.2": None},
            },
        },
        "status": {"ipam": {"operator-status": {"error": "allocator full"}, "used": {"10.0.1.1": {}}}},
    },
    "ciliumbgpadvertisement.schema.json": {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPAdvertisement",
        "metadata": FOREIGN,
        "spec": {
            "advertisements": [{"advertisementType": "CiliumPodIPPool", "selector": {"matchLabels": LABELS}}]
        },
    },
    "ciliumbgppeerconfig.schema.json": {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPPeerConfig",
        "metadata": FOREIGN,
        "spec": {"families": [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]},
    },
    "ciliumbgpclusterconfig.schema.json": {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPClusterConfig",
        "metadata": FOREIGN,
        "spec": {
            "nodeSelector": {"matchLabels": LABELS},
            "bgpInstances": [{"peers": [{"name": "tor", "peerConfigRef": {"name": "router"}}]}],
        },
    },
    "ciliumbgppeeringpolicy.schema.json": {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeeringPolicy",
        "metadata": FOREIGN,
        "spec": {
            "nodeSelector": {"matchLabels": LABELS},
            "virtualRouters": [{"exportPodCIDR": True, "podIPPoolSelector": {}}],
        },
    },
    "ciliumbgpnodeconfigoverride.schema.json": {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfigOverride",
        "metadata": FOREIGN,
        "spec": {
            "bgpInstances": [{"name": "fabric", "routerID": "10.0.0.7", "localPort": 1790, "localASN": 64512}]
        },
    },
}
BY_SCHEMA = {kind.schema: kind for kind in KINDS}


def schema(name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(SCHEMAS[name])
    return parsed


def fast(kind: Kind, document: object) -> bool:
    try:
        msgspec.convert(document, kind.shape)
    except msgspec.ValidationError:
        return False
    return True


def slow(kind: Kind, document: object) -> list[Diagnostic]:
    said = explain(document, schema(kind.schema), Place("x"))
    return [mistyped(each, "") if isinstance(each, Mistyped) else each for each in said]


def paths(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield keys
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(each, (*keys, key))


def test_every_kind_has_a_schema_and_a_full_example() -> None:
    assert set(SCHEMAS) == {kind.schema for kind in KINDS} == set(FULL)
    for name in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", FULL)
def test_full_examples_are_accepted_and_use_every_field(name: str) -> None:
    assert fast(BY_SCHEMA[name], FULL[name])
    assert slow(BY_SCHEMA[name], FULL[name]) == []
    written = {key for keys in paths(FULL[name]) for key in keys if isinstance(key, str)}
    known = {
        key
        for keys in paths(schema(name))
        for key, below in zip(keys[1:], keys[:-1], strict=True)
        if below == "properties"
    }
    assert known <= written


junk: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        33,
        129,
        1.0,
        1.5,
        10**30,
        "",
        "x",
        "27",
        "never",
        "none",
        "IPv4",
        [],
        ["IPv4", "IPv4"],
        ["x"],
        [None],
        [[]],
        {},
        {"x": "y"},
    ]
)


@settings(max_examples=depth.examples(400))
@given(st.sampled_from(sorted(FULL)), st.data())
def test_fast_and_slow_path_accept_the_same_documents(name: str, data: st.DataObject) -> None:
    kind, document = BY_SCHEMA[name], json.loads(json.dumps(FULL[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        places = [keys for keys in paths(document) if keys and keys[0] not in {"apiVersion", "kind"}]
        if not places:
            break
        *above, last = data.draw(st.sampled_from(places))
        owner: Any = document
        for key in above:
            owner = owner[key]
        change = data.draw(st.sampled_from(["replace", "remove", "add", "rename"]))
        if change == "replace":
            owner[last] = copy.deepcopy(data.draw(junk))
        elif change == "remove":
            del owner[last]
        elif isinstance(owner, dict):
            owner[f"{last}x"] = copy.deepcopy(owner[last]) if change == "add" else owner.pop(last)
    found = slow(kind, document)
    assert fast(kind, document) == (not found)
    assert all(
        re.match(r"IPC000[67]$", each.code)
        and not re.search(r"[A-Z]xpected|\$|required property", each.message)
        for each in found
    )


@pytest.mark.deep(part=3)
@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("value", [None, 1, 1.5, True, "text", [], {}])
def test_every_field_refuses_the_same_values(name: str, value: object) -> None:
    kind = BY_SCHEMA[name]
    for keys in paths(FULL[name]):
        if not keys or keys[0] in {"apiVersion", "kind"}:
            continue
        document = copy.deepcopy(FULL[name])
        owner: Any = document
        for key in keys[:-1]:
            owner = owner[key]
        owner[keys[-1]] = value
        assert fast(kind, document) == (not slow(kind, document)), (keys, value)


CLUSTER = """\
apiVersion: ipamc/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  cilium: {version: "1.18", managedBy: helm}
  ipam: {mode: cluster-pool}
"""


def findings(source: str, path: str = "c/x.yaml") -> list[str]:
    """Read a Cluster and one more file; give `line:column text: message; help` for each finding."""
    sources = {"c/cluster.yaml": CLUSTER.encode(), path: source.encode()}
    try:
        found: Any = read("c", "c", sources, SCHEMAS)[1]
    except Refused as refused:
        found = refused.diagnostics
    shown = []
    for each in locate(found, sources):
        mark = "" if each.severity is Severity.ERROR else "w "
        shown.append(
            f"{mark}{each.code} {each.at.line}:{each.at.column} {each.message}; {each.help}".removesuffix(
                "; "
            )
        )
    return shown


def pool(spec: str) -> str:
    return f"apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {{name: p}}\nspec: {spec}\n"


GOOD = "ipv4: {cidrs: [10.0.0.0/16], blockSize: 24}"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            f"{{{GOOD}, prioritty: 3}}",
            ["IPC0006 4:53 unknown field 'prioritty' in spec; did you mean 'priority'?"],
        ),
        (
            "{ipv4: {cidrs: [10.0.0.0/16]}}",
            ["IPC0007 4:15 spec.ipv4 has no blockSize; write, for example, blockSize: 27"],
        ),
        ("{}", ["IPC0007 4:7 spec has no ipv4 or ipv6; write ipv4 or ipv6"]),
        (
            "null",
            [
                'IPC0007 4:7 null: spec must be a mapping; write, for example, spec: {ipv4: {cidrs: ["100.162.224.0/19"], blockSize: 27}, nodeSelector: "rack == \\"a\\""}'
            ],
        ),
        (
            "",
            [
                'IPC0007 4:1 no value: spec must be a mapping; write, for example, spec: {ipv4: {cidrs: ["100.162.224.0/19"], blockSize: 27}, nodeSelector: "rack == \\"a\\""}'
            ],
        ),
        (
            f"{{{GOOD}, reserved: ~}}",
            [
                'IPC0007 4:63 null: reserved must be a list; write, for example, reserved: ["100.162.224.0/27", {cidr: "100.162.224.32/27", reason: "load balancers of the fabric, NET-123"}]'
            ],
        ),
        (
            f"{{{GOOD}, reserved: 10.0.0.0/24}}",
            ["IPC0007 4:63 10.0.0.0/24 is text: reserved must be a list; write reserved: [10.0.0.0/24]"],
        ),
        (
            f"{{{GOOD}, unlisted: yes}}",
            ["IPC0007 4:63 yes is text: unlisted must be true or false; write unlisted: true"],
        ),
        (
            f"{{{GOOD}, disabled: 'false'}}",
            ["IPC0007 4:63 'false' is text: disabled must be true or false; write disabled: false"],
        ),
        (
            f"{{{GOOD}, priority: 1_000}}",
            ["IPC0007 4:63 1_000 is text: priority must be an integer; write priority: 1000"],
        ),
        (
            f"{{{GOOD}, priority: 1.0}}",
            ["IPC0007 4:63 1.0 is a number: priority must be an integer; write, for example, priority: 0"],
        ),
        (
            f"{{{GOOD}, priority: [1]}}",
            ["IPC0007 4:63 a list: priority must be an integer; write, for example, priority: 0"],
        ),
        (
            f"{{{GOOD}, blocksPerNode: 0}}",
            [
                "IPC0007 4:68 0 is less than 1, the minimum of blocksPerNode; write, for example, blocksPerNode: 1"
            ],
        ),
        (
            f"{{{GOOD}, overflow: [7]}}",
            ['IPC0007 4:64 7 is a number: an item of overflow must be text; write "7"'],
        ),
        (
            f"{{{GOOD}, nodeSelector: {{matchLabels: {{rack: 1.20}}}}}}",
            ['IPC0007 4:88 1.20 is a number: rack must be text; write rack: "1.20"'],
        ),
        (
            f"{{{GOOD}, nodeSelector: {{matchLables: {{}}}}}}",
            ["IPC0006 4:68 unknown field 'matchLables' in spec.nodeSelector; did you mean 'matchLabels'?"],
        ),
        (
            f"{{{GOOD}, blockSizes: [{{nodeSelector: x}}]}}",
            ["IPC0007 4:67 spec.blockSizes[0] has no ipv4 or ipv6; write ipv4 or ipv6"],
        ),
        (
            "{ipv4: {cidrs: [], blockSize: 99}}",
            [
                'IPC0007 4:22 cidrs is empty; write, for example, cidrs: ["100.162.224.0/19"]',
                "IPC0007 4:37 99 is more than 32, the maximum of blockSize; write, for example, blockSize: 27",
            ],
        ),
    ],
)
def test_explanations(spec: str, expected: list[str]) -> None:
    assert findings(pool(spec)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: c", "name: ''", 'IPC0007 3:18 name is empty; write, for example, name: "beijing-1"'),
        (
            "cluster-pool}",
            "cluster-pool}\n  ipFamilies: [IPv4, IPv4]",
            "IPC0007 7:15 ipFamilies contains an item twice; remove one of the two",
        ),
        (
            "cluster-pool}",
            "cluster-pool}\n  quarantineDays: -1",
            "IPC0007 7:19 -1 is less than 0, the minimum of quarantineDays; write, for example, quarantineDays: 7",
        ),
        (
            "cluster-pool}",
            "cluster-pool}\n  bgp: off",
            "IPC0007 7:8 'off' is not one of none, metallb or control-plane; write bgp: none, metallb or control-plane",
        ),
        (
            "cluster-pool",
            "clusterpool",
            "IPC0007 6:16 'clusterpool' is not one of kubernetes, cluster-pool, multi-pool or crd; write mode: cluster-pool",
        ),
        (
            ", managedBy: helm",
            "",
            "IPC0007 5:12 spec.cilium has no managedBy; write managedBy: helm, kustomize or none",
        ),
    ],
)
def test_explanations_of_a_cluster(old: str, new: str, expected: str) -> None:
    sources = {"c/cluster.yaml": CLUSTER.replace(old, new).encode()}
    with pytest.raises(Refused) as refused:
        read("c", "c", sources, SCHEMAS)
    (found,) = locate(refused.value.diagnostics, sources)
    assert (
        f"{found.code} {found.at.line}:{found.at.column} {found.message}; {found.help}".removesuffix("; ")
        == expected
    )


@pytest.mark.parametrize("name", ["cluster.schema.json", "ippool.schema.json", "nodeinventory.schema.json"])
def test_the_defaults_that_editors_show_are_those_of_the_reader(name: str) -> None:
    kind = BY_SCHEMA[name]

    def without(value: Any, schema: Any) -> Any:
        """Drop everything that has a default."""
        if isinstance(value, list):
            return [without(each, schema.get("items", {})) for each in value]
        if not isinstance(value, dict):
            return value
        known = schema.get("properties", {})
        return {
            key: without(each, known.get(key, {}))
            for key, each in value.items()
            if "default" not in known.get(key, {})
        }

    def filled(value: Any, schema: Any) -> Any:
        """Write every default out."""
        if isinstance(value, list):
            return [filled(each, schema.get("items", {})) for each in value]
        if not isinstance(value, dict):
            return value
        known = schema.get("properties", {})
        defaults = {key: each["default"] for key, each in known.items() if "default" in each}
        return {key: filled(each, known.get(key, {})) for key, each in {**defaults, **value}.items()}

    bare = without(FULL[name], schema(name))
    assert msgspec.convert(bare, kind.shape) == msgspec.convert(filled(bare, schema(name)), kind.shape)
    assert bare != filled(bare, schema(name))


def test_versions_without_quotes_keep_their_text() -> None:
    sources = {"c/cluster.yaml": CLUSTER.replace('"1.18"', "1.20").encode()}
    with pytest.raises(Refused) as refused:
        read("c", "c", sources, SCHEMAS)
    (found,) = refused.value.diagnostics
    assert (found.message, found.help) == (
        "1.20 is a number: version must be text",
        'write version: "1.20"',
    )


def test_ambiguous_text_is_a_warning_where_text_is_wanted_and_nothing_elsewhere() -> None:
    source = """\
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {rack: 08, on: x, "off": "1e3"}
  annotations: {a: on, 3: 08}
  weird: yes
"""
    assert findings(source) == [
        'w IPC0008 5:18 08 is text to YAML 1.1 readers and the number 8 to YAML 1.2 readers; ipamc reads it as text; write rack: "08"',
        'w IPC0008 5:22 on is true to YAML 1.1 readers and text to YAML 1.2 readers; ipamc reads it as text; write "on"',
    ]


def test_keys_that_are_no_text() -> None:
    source = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {9: x, true: z}}}\n"
    assert findings(source) == [
        'IPC0007 4:62 the key 9 is not text; write "9"',
        'IPC0007 4:68 the key true is not text; write "true"',
    ]


def test_json_is_explained_alike() -> None:
    source = '{"apiVersion": "v1", "kind": "NodeList", "items": [\n{"metadata": {"name": 7}},\n{"metadata": {"labels": {"a": 1}}}]}'
    assert findings(source, "c/x.json") == [
        'IPC0007 2:23 7 is a number: name must be text; write name: "7"',
        'IPC0007 3:15 metadata has no name; write, for example, name: "node-7"',
        'IPC0007 3:31 1 is a number: a must be text; write a: "1"',
    ]


def test_nulls_in_foreign_kinds_are_absent_fields() -> None:
    source = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": null, "uid": null}, "spec": null, "status": {"addresses": null}}'
    assert findings(source, "c/x.json") == []
