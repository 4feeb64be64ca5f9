"""What each mode and version is given: objects by table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cidr import Block, parse_block
from ipamc.model.pool_ranges import Given, pool_ranges
from ipamc.render import targets
from ipamc.render.arrange import arrange, shard, shard_name
from ipamc.render.targets.cilium_node import single
from tests.support.builders import TEMPLATES, node, plan, pool, read, rendered

A = pool("a", "10.0.0.0/16", size=24)
DUAL = pool("a", "10.0.0.0/16", "fd00::/112", size=24, size6=120)


def objects(texts: dict[str, str], path: str) -> dict[str, Any]:
    """Return the objects of a file by name."""
    return {each["metadata"]["name"]: each for each in read(texts[path])}


def config(texts: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = read(texts["cilium/configmap.yaml"])[0]["data"]
    return found


def test_every_template_is_rendered() -> None:
    sources = "".join(path.read_text() for path in Path(targets.__file__).parent.glob("*.py"))
    assert [name for name in TEMPLATES if f'"{name}"' not in sources] == []


def test_nodes() -> None:
    texts = rendered(plan("kubernetes", [A], {"n1": "10.0.1.0/24", "y": "10.0.2.0/24"}))
    assert texts["nodes/000/nodes.yaml"] == (
        "apiVersion: v1\nkind: Node\nmetadata:\n  annotations:\n    argocd.argoproj.io/sync-options: Prune=false,Delete=false\n"
        "    kustomize.toolkit.fluxcd.io/prune: disabled\n  name: n1\n  uid: uid-of-n1\nspec:\n  podCIDR: 10.0.1.0/24\n  podCIDRs:\n  - 10.0.1.0/24\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata:\n  annotations:\n    argocd.argoproj.io/sync-options: Prune=false,Delete=false\n"
        '    kustomize.toolkit.fluxcd.io/prune: disabled\n  name: "y"\n  uid: uid-of-y\nspec:\n  podCIDR: 10.0.2.0/24\n  podCIDRs:\n  - 10.0.2.0/24\n'
    )


@pytest.mark.parametrize(
    ("families", "cidrs"),
    [((4, 6), ["10.0.1.0/24", "fd00::100/120"]), ((6, 4), ["fd00::100/120", "10.0.1.0/24"])],
)
def test_pod_cidrs_come_in_the_order_of_ip_families(families: tuple[int, ...], cidrs: list[str]) -> None:
    texts = rendered(plan("kubernetes", [DUAL], {"n1": ["10.0.1.0/24", "fd00::100/120"]}, families=families))
    assert objects(texts, "nodes/000/nodes.yaml")["n1"]["spec"] == {"podCIDR": cidrs[0], "podCIDRs": cidrs}


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        ("1.12", {"io.cilium.network.ipv4-pod-cidr", "io.cilium.network.ipv6-pod-cidr"}),
        ("1.13", {"network.cilium.io/ipv4-pod-cidr", "network.cilium.io/ipv6-pod-cidr"}),
    ],
)
def test_annotations_by_version(version: str, keys: set[str]) -> None:
    made = plan(
        "kubernetes",
        [DUAL],
        {"n1": ["10.0.1.0/24", "fd00::100/120"]},
        families=(6, 4),
        version=version,
        patch_nodes="annotations",
    )
    found = objects(rendered(made), "nodes/000/nodes.yaml")["n1"]
    assert "spec" not in found
    assert set(found["metadata"]["annotations"]) == keys | {
        "argocd.argoproj.io/sync-options",
        "kustomize.toolkit.fluxcd.io/prune",
    }
    assert config(rendered(made))["annotate-k8s-node"] == "true"


def test_nodes_without_uid_planned_or_without_a_block() -> None:
    nodes = [node("created", uid=""), node("planned", planned=True), node("empty")]
    texts = rendered(
        plan("kubernetes", [A], {"created": "10.0.1.0/24", "planned": "10.0.2.0/24"}, nodes=nodes)
    )
    assert list(objects(texts, "nodes/000/nodes.yaml")) == ["created"]
    assert "uid" not in texts["nodes/000/nodes.yaml"]


def test_a_node_that_is_being_renumbered_is_held_back_while_it_shows_other_pod_cidrs() -> None:
    held = {"n1": ["10.0.1.0/24", "pending 10.0.3.0/24"], "n2": ["10.0.2.0/24", "pending 10.0.4.0/24"]}
    nodes = [node("n1", pod_cidrs=["10.0.1.0/24"]), node("n2", pod_cidrs=["10.9.0.0/24"])]
    texts = rendered(plan("kubernetes", [A], held, nodes=nodes))
    assert list(objects(texts, "nodes/000/nodes.yaml")) == ["n1"]


def test_a_node_that_was_settled_is_left_out_until_it_joins_again() -> None:
    nodes = [node("n1", pod_cidrs=["10.0.1.0/24"]), node("n2", uid="another")]
    texts = rendered(plan("kubernetes", [A], {"n1": "10.0.3.0/24", "n2": "10.0.4.0/24"}, nodes=nodes))
    found = objects(texts, "nodes/000/nodes.yaml")
    assert list(found) == ["n2"]
    assert (found["n2"]["metadata"]["uid"], found["n2"]["spec"]["podCIDR"]) == ("another", "10.0.4.0/24")


PENDING = {"n1": ["10.0.1.0/24", "fd00::100/120", "pending 10.0.3.0/24", "pending fd00::300/120"]}


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        ("kubernetes", {}),
        ("kubernetes", {"patch_nodes": "annotations"}),
        ("cluster-pool", {}),
        ("cluster-pool", {"operator": "adopt"}),
        ("crd", {}),
        ("multi-pool", {}),
        ("multi-pool", {"pinning": "node"}),
        ("multi-pool", {"pinning": "pool"}),
    ],
)
def test_a_pending_block_is_rendered_nowhere(mode: str, fields: dict[str, Any]) -> None:
    held = {node: lines[:2] for node, lines in PENDING.items()}
    whole = rendered(plan(mode, [DUAL], PENDING, families=(4, 6), **fields))
    assert whole == rendered(plan(mode, [DUAL], held, families=(4, 6), **fields))


def test_no_object_for_a_node_with_a_block_outside_every_pool() -> None:
    held = {"n1": ["10.0.1.0/24", "fd01::/120"], "n2": ["10.0.2.0/24", "fd00::/120"]}
    for mode, path in (
        ("kubernetes", "nodes/000/nodes.yaml"),
        ("cluster-pool", "ciliumnodes/000/ciliumnodes.yaml"),
        ("crd", "ciliumnodes/000/ciliumnodes.yaml"),
    ):
        assert list(objects(rendered(plan(mode, [DUAL], held, families=(4, 6))), path)) == ["n2"]
    seeds = objects(rendered(plan("multi-pool", [DUAL], held, families=(4, 6))), "seeds/000.yaml")
    assert seeds["n1"]["spec"]["ipam"]["pools"]["allocated"] == [{"cidrs": ["10.0.1.0/24"], "pool": "a"}]


def test_cilium_nodes_of_cluster_pool_mode() -> None:
    texts = rendered(plan("cluster-pool", [DUAL], {"n1": ["10.0.1.0/24", "fd00::100/120"]}, families=(6, 4)))
    assert texts["ciliumnodes/000/ciliumnodes.yaml"] == (
        'apiVersion: cilium.io/v2\nkind: CiliumNode\nmetadata:\n  name: n1\nspec:\n  ipam:\n    podCIDRs:\n    - 10.0.1.0/24\n    - "fd00::100/120"\n'
    )
    assert not any(path.startswith("nodes/") for path in texts)


@pytest.mark.parametrize("mode", ["cluster-pool", "crd", "multi-pool"])
@pytest.mark.parametrize(("version", "there"), [("1.17", False), ("1.18", True)])
def test_planned_nodes_are_kept_from_collection_or_held_back(mode: str, version: str, there: bool) -> None:  # noqa: FBT001 - a table
    made = plan(
        mode,
        [A],
        {"n1": "10.0.1.0/24", "soon": "10.0.2.0/24"},
        nodes=[node("soon", planned=True)],
        version=version,
    )
    path = "seeds/000.yaml" if mode == "multi-pool" else "ciliumnodes/000/ciliumnodes.yaml"
    found = objects(rendered(made), path)
    assert ("soon" in found) is there
    if there:
        assert found["soon"]["metadata"] == {"name": "soon", "annotations": {"cilium.io/do-not-gc": "true"}}
    assert found["n1"]["metadata"] == {"name": "n1"}


@pytest.mark.parametrize(
    ("block", "addresses"),
    [
        ("10.0.0.0/32", ["10.0.0.0"]),
        ("10.0.0.0/31", ["10.0.0.0", "10.0.0.1"]),
        ("10.0.0.0/30", ["10.0.0.1", "10.0.0.2"]),
        ("10.0.0.248/29", [f"10.0.0.{last}" for last in range(249, 255)]),
        ("fd00::/127", ["fd00::", "fd00::1"]),
        ("fd00::fffc/126", ["fd00::fffd", "fd00::fffe"]),
    ],
)
def test_single_addresses_of_crd_mode(block: str, addresses: list[str]) -> None:
    assert list(single(parse_block(block))) == addresses


def test_cilium_nodes_of_crd_mode() -> None:
    made = plan(
        "crd",
        [pool("a", "10.0.0.0/16", "fd00::/112", size=29)],
        {"n1": ["10.0.0.8/29", "10.0.1.0/30", "fd00::8/127"]},
        families=(4, 6),
    )
    ipam = objects(rendered(made), "ciliumnodes/000/ciliumnodes.yaml")["n1"]["spec"]["ipam"]
    assert ipam["podCIDRs"] == ["10.0.0.8/29", "10.0.1.0/30", "fd00::8/127"]
    assert list(ipam["pool"]) == [
        *(f"10.0.0.{last}" for last in range(9, 15)),
        "10.0.1.1",
        "10.0.1.2",
        "fd00::8",
        "fd00::9",
    ]
    assert set(map(str, ipam["pool"].values())) == {"{}"}


@pytest.mark.parametrize(
    ("version", "v4", "v6"),
    [
        ("1.19", ["10.0.0.128/27", "10.0.0.96/27"], ["fd00::10:0/112", "fd00::9:0/112"]),
        ("1.20", ["10.0.0.96/27", "10.0.0.128/27"], ["fd00::9:0/112", "fd00::10:0/112"]),
    ],
)
def test_seeds_have_the_order_of_that_version(version: str, v4: list[str], v6: list[str]) -> None:
    pools = [pool("b", "10.0.0.0/16", "fd00::/96", size=27, size6=112), pool("a", "10.1.0.0/16", size=27)]
    held = {"n1": ["10.0.0.96/27", "10.0.0.128/27", "10.1.0.0/27", "fd00::9:0/112", "fd00::10:0/112"]}
    texts = rendered(plan("multi-pool", pools, held, version=version, families=(4, 6)))
    allocated = objects(texts, "seeds/000.yaml")["n1"]["spec"]["ipam"]["pools"]["allocated"]
    assert allocated == [{"pool": "a", "cidrs": ["10.1.0.0/27"]}, {"pool": "b", "cidrs": [*v4, *v6]}]
    assert not any("ciliumnodes" in path for path in texts)


POOLS = [
    pool("b", "10.2.0.0/16", "10.1.0.0/16", size=24),
    pool("a", "10.3.0.0/16", "fd00::/112", size=26, size6=120),
    pool("z", "10.9.0.0/24", size=27, unlisted=True),
]


@pytest.mark.parametrize(
    ("mode", "fields", "data"),
    [
        ("kubernetes", {}, {}),
        ("crd", {}, {}),
        ("multi-pool", {}, {}),
        ("multi-pool", {"pinning": "node", "auto_create": ("a",)}, {}),
        (
            "multi-pool",
            {"auto_create": ("b",)},
            {"auto-create-cilium-pod-ip-pools": "b=ipv4-cidrs:10.2.0.0/16,10.1.0.0/16;ipv4-mask-size:24"},
        ),
        (
            "multi-pool",
            {"auto_create": ("b", "a"), "families": (6, 4)},
            {
                "auto-create-cilium-pod-ip-pools": "a=ipv4-cidrs:10.3.0.0/16;ipv4-mask-size:26;ipv6-cidrs:fd00::/112;ipv6-mask-size:120,"
                "b=ipv4-cidrs:10.2.0.0/16,10.1.0.0/16;ipv4-mask-size:24",
            },
        ),
        (
            "cluster-pool",
            {},
            {
                "cluster-pool-ipv4-cidr": "10.3.0.0/16 10.2.0.0/16 10.1.0.0/16 10.9.0.0/24",
                "cluster-pool-ipv4-mask-size": "27",
            },
        ),
        (
            "cluster-pool",
            {"operator": "adopt"},
            {"cluster-pool-ipv4-cidr": "10.9.0.0/24", "cluster-pool-ipv4-mask-size": "27"},
        ),
        (
            "cluster-pool",
            {"families": (6,)},
            {"cluster-pool-ipv6-cidr": "fd00::/112", "cluster-pool-ipv6-mask-size": "120"},
        ),
        (
            "cluster-pool",
            {"families": (6,), "patch_nodes": "annotations"},
            {
                "annotate-k8s-node": "true",
                "cluster-pool-ipv6-cidr": "fd00::/112",
                "cluster-pool-ipv6-mask-size": "120",
            },
        ),
    ],
)
def test_config(mode: str, fields: dict[str, Any], data: dict[str, str]) -> None:
    families = fields.get("families", (4,))
    switches = {f"enable-ipv{family}": str(family in families).lower() for family in (4, 6)}
    assert config(rendered(plan(mode, POOLS, {}, **fields))) == {"ipam": mode, **switches, **data}


@pytest.mark.parametrize(
    ("line", "mask"), [("10.3.0.0/26", "27"), ("10.3.0.0/28", "28"), ("pending 10.3.0.0/29", "29")]
)
def test_the_mask_is_the_longest_prefix_in_use(line: str, mask: str) -> None:
    assert config(rendered(plan("cluster-pool", POOLS, {"n1": line})))["cluster-pool-ipv4-mask-size"] == mask


def test_pod_ip_pools() -> None:
    pools = [
        pool("a", "10.0.0.0/24", "10.9.0.0/24", "fd00::/112", labels={"rack": "y", "a": "1"}),
        pool("b", "10.1.0.0/24"),
        pool("c", "10.2.0.0/24", disabled=True),
    ]
    found = objects(
        rendered(plan("multi-pool", pools, {}, auto_create=("b",), families=(4, 6))), "cilium/ippools.yaml"
    )
    assert found["a"] == {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumPodIPPool",
        "metadata": {"name": "a", "labels": {"a": "1", "rack": "y"}},
        "spec": {
            "ipv4": {"cidrs": ["10.0.0.0/24", "10.9.0.0/24"], "maskSize": 26},
            "ipv6": {"cidrs": ["fd00::/112"], "maskSize": 122},
        },
    }
    assert list(found) == ["a", "c"]


@pytest.mark.parametrize(
    ("reserved", "line", "cidrs"),
    [
        (["10.9.0.0/26"], "", ["10.9.0.64/26", "10.9.0.128/25", "10.1.0.0/25"]),
        (["10.9.0.3/32"], "", ["10.9.0.64/26", "10.9.0.128/25", "10.1.0.0/25"]),
        (["10.9.0.0/25", "10.1.0.0/25"], "", ["10.9.0.128/25"]),
        (["10.9.0.32/27"], "10.9.0.0/28", ["10.9.0.0/27", "10.9.0.64/26", "10.9.0.128/25", "10.1.0.0/25"]),
        (["10.9.0.0/27"], "10.9.0.0/26", ["10.9.0.0/24", "10.1.0.0/25"]),
        (["10.9.0.0/27"], "pending 10.9.0.0/26", ["10.9.0.0/24", "10.1.0.0/25"]),
        (["fd00::/64"], "", ["10.9.0.0/24", "10.1.0.0/25"]),
    ],
)
def test_reserved_addresses_are_taken_out(reserved: list[str], line: str, cidrs: list[str]) -> None:
    made = plan(
        "multi-pool",
        [pool("a", "10.9.0.0/24", "10.1.0.0/25", reserved=reserved)],
        {"n1": line} if line else {},
    )
    assert objects(rendered(made), "cilium/ippools.yaml")["a"]["spec"] == {
        "ipv4": {"cidrs": cidrs, "maskSize": 26}
    }


def test_a_pool_that_is_reserved_whole_is_no_object() -> None:
    assert "cilium/ippools.yaml" not in rendered(
        plan("multi-pool", [pool("a", "10.9.0.0/24", reserved=["10.9.0.0/24"])], {})
    )


@pytest.mark.parametrize(("version", "api"), [("1.15", "cilium.io/v2alpha1"), ("1.16", "cilium.io/v2")])
def test_pinned_nodes_have_pools_and_configs_of_their_own(version: str, api: str) -> None:
    pools = [
        pool("a", "10.0.0.0/24", "fd00::/112", nodes="zone == 'a'", labels={"zone": "a"}),
        pool("b", "10.1.0.0/24", size=28, priority=-1),
    ]
    nodes = [node("n1", {"zone": "a", "kubernetes.io/hostname": "host-1"}), node("n2")]
    held = {"n1": ["10.0.0.64/27", "10.0.0.0/26", "fd00::/122", "10.1.0.0/28"], "n2": "10.1.0.16/28"}
    texts = rendered(
        plan("multi-pool", pools, held, nodes=nodes, version=version, pinning="node", families=(4, 6))
    )
    assert "cilium/ippools.yaml" not in texts
    found = objects(texts, "pools/000/ippools.yaml")
    assert list(found) == ["a.n1", "b.n1", "b.n2"]
    assert found["a.n1"]["metadata"] == {"name": "a.n1", "labels": {"zone": "a"}}
    assert found["a.n1"]["spec"] == {
        "ipv4": {"cidrs": ["10.0.0.0/26", "10.0.0.64/27"], "maskSize": 27},
        "ipv6": {"cidrs": ["fd00::/122"], "maskSize": 122},
    }
    assert found["b.n2"]["spec"] == {"ipv4": {"cidrs": ["10.1.0.16/28"], "maskSize": 28}}
    configs = objects(texts, "pools/000/nodeconfigs.yaml")
    assert configs["n1"] == {
        "apiVersion": api,
        "kind": "CiliumNodeConfig",
        "metadata": {"name": "n1", "namespace": "kube-system"},
        "spec": {
            "defaults": {"ipam-default-ip-pool": "a.n1", "ipam-multi-pool-pre-allocation": "a.n1=8,b.n1=8"},
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "host-1"}},
        },
    }
    assert configs["n2"]["spec"]["defaults"] == {
        "ipam-default-ip-pool": "b.n2",
        "ipam-multi-pool-pre-allocation": "b.n2=7",
    }
    assert configs["n2"]["spec"]["nodeSelector"] == {"matchLabels": {"kubernetes.io/hostname": "n2"}}
    assert objects(texts, "seeds/000.yaml")["n2"]["spec"]["ipam"]["pools"]["allocated"] == [
        {"cidrs": ["10.1.0.16/28"], "pool": "b.n2"}
    ]


def values(mode: str, version: str = "1.18", **fields: Any) -> Any:
    """Return the Helm values of a plan."""
    return read(rendered(plan(mode, POOLS, {}, version=version, **fields))["cilium/helm-values.yaml"])[0]


ALWAYS = {
    "ipv4": {"enabled": True},
    "ipv6": {"enabled": False},
    "operator": {"rollOutPods": True},
}


@pytest.mark.parametrize(
    ("mode", "version", "fields", "wanted"),
    [
        ("kubernetes", "1.18", {}, {"ipam": {"mode": "kubernetes"}}),
        (
            "kubernetes",
            "1.18",
            {"patch_nodes": "annotations"},
            {"ipam": {"mode": "kubernetes"}, "annotateK8sNode": True},
        ),
        (
            "kubernetes",
            "1.11",
            {"patch_nodes": "annotations"},
            {"ipam": {"mode": "kubernetes"}, "extraConfig": {"annotate-k8s-node": "true"}},
        ),
        (
            "cluster-pool",
            "1.18",
            {"families": (6, 4)},
            {
                "ipam": {
                    "mode": "cluster-pool",
                    "operator": {
                        "clusterPoolIPv4PodCIDRList": [
                            "10.3.0.0/16",
                            "10.2.0.0/16",
                            "10.1.0.0/16",
                            "10.9.0.0/24",
                        ],
                        "clusterPoolIPv4MaskSize": 27,
                        "clusterPoolIPv6PodCIDRList": ["fd00::/112"],
                        "clusterPoolIPv6MaskSize": 120,
                    },
                },
                "ipv6": {"enabled": True},
                "operator": {"extraArgs": ["--ipam=kubernetes"], "rollOutPods": True},
            },
        ),
        (
            "cluster-pool",
            "1.18",
            {"operator": "adopt"},
            {
                "ipam": {
                    "mode": "cluster-pool",
                    "operator": {
                        "clusterPoolIPv4PodCIDRList": ["10.9.0.0/24"],
                        "clusterPoolIPv4MaskSize": 27,
                    },
                },
            },
        ),
        (
            "multi-pool",
            "1.18",
            {"auto_create": ("a",), "families": (4, 6)},
            {
                "ipam": {
                    "mode": "multi-pool",
                    "operator": {
                        "autoCreateCiliumPodIPPools": {
                            "a": {
                                "ipv4": {"cidrs": ["10.3.0.0/16"], "maskSize": 26},
                                "ipv6": {"cidrs": ["fd00::/112"], "maskSize": 120},
                            },
                        },
                    },
                },
                "ipv6": {"enabled": True},
            },
        ),
    ],
)
def test_helm_values(mode: str, version: str, fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert values(mode, version, **fields) == {**ALWAYS, **wanted}


def test_shards() -> None:
    held = {f"n{index}": f"10.0.{index}.0/24" for index in range(40)}
    made = plan("cluster-pool", [A], held, shards=1024)
    files = [file.path for file in arrange(made) if file.path.endswith("/ciliumnodes.yaml")]
    assert files == sorted({f"ciliumnodes/{shard_name(shard(name, 1024))}/ciliumnodes.yaml" for name in held})
    assert shard_name(shard("n0", 1024)) == "2c6"  # SHA-256 of n0 begins with 820d5d8baf762ec6
    assert shard_name(shard("n0", 1)) == "000"


CIDRS = st.sampled_from(
    [
        str(Block(4, (10 << 24) + first * (256 >> extra), 24 + extra))
        for extra in range(9)
        for first in range(1 << extra)
    ]
)


@given(st.lists(CIDRS, max_size=5), st.lists(CIDRS, max_size=3))
def test_a_pool_is_its_range_less_what_is_reserved_and_not_held(reserved: list[str], held: list[str]) -> None:
    lines = {
        f"n{index}": cidr
        for index, cidr in enumerate(held)
        if not any(parse_block(cidr).overlaps(parse_block(other)) for other in held[:index])
    }
    built = pool("a", "10.0.0.0/24", size=27, reserved=reserved)
    made = plan("multi-pool", [built], lines)
    found = pool_ranges(made.cluster, built, built.families[4], Given(made.cluster, made.lock)).cidrs

    def numbers(blocks: Iterable[Block]) -> set[int]:
        return {number for block in blocks for number in range(block.first, block.last + 1)}

    kept = numbers(map(parse_block, lines.values()))
    wished = numbers([parse_block("10.0.0.0/24")]) - (numbers(map(parse_block, reserved)) - kept)
    assert kept <= numbers(found) <= wished
    assert sum(block.size for block in found) == len(numbers(found))
    whole = (Block(4, (10 << 24) + first, 27) for first in range(0, 256, 32))
    assert all(numbers([block]) <= numbers(found) for block in whole if numbers([block]) <= wished)
