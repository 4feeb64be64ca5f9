"""Objects of the BGP control plane: an import writes them into the folder, where a compile finds what they select."""

from __future__ import annotations

from ipamc.importing.refresh import Past, about_nodes, refresh
from ipamc.read.read import read
from tests.support import dumps
from tests.support.imports import FOLDER, NAME, SCHEMAS, compiled, dump_of, imported


def bgp(kind: str, name: str, spec: object, version: str = "cilium.io/v2", **labels: str) -> dumps.Object:
    metadata = {"name": name, "labels": labels, "uid": "u-1", "resourceVersion": "7"}
    status = {"conditions": [{"type": "cilium.io/NoMatchingNode"}]}
    return {
        "apiVersion": version,
        "kind": f"CiliumBGP{kind}",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


POLICY = bgp(
    "PeeringPolicy",
    "old",
    {"virtualRouters": [{"localASN": 64512, "exportPodCIDR": True}]},
    "cilium.io/v2alpha1",
)
FABRIC = bgp(
    "ClusterConfig",
    "fabric",
    {
        "nodeSelector": {"matchLabels": {"example.com/bgp": "leaf"}},
        "bgpInstances": [
            {
                "name": "main",
                "localASN": 64512,
                "peers": [{"name": "tor", "peerAddress": "192.0.2.1", "peerConfigRef": {"name": "tor"}}],
            }
        ],
    },
)
BGP = [
    bgp("Advertisement", "pods", {"advertisements": [{"advertisementType": "PodCIDR"}]}, to="tor"),
    FABRIC,
    bgp("NodeConfigOverride", "n1", {"bgpInstances": [{"name": "main", "routerID": "192.0.2.7"}]}),
    bgp(
        "PeerConfig", "tor", {"families": [{"afi": "ipv4", "advertisements": {"matchLabels": {"to": "tor"}}}]}
    ),
]
RUNNING = [
    dumps.node("n1", uid="u1", labels={"example.com/bgp": "leaf"}),
    dumps.node("n2", uid="u2"),
    dumps.cilium_node("n1", "10.0.0.0/24"),
    dumps.cilium_node("n2", "10.0.1.0/24"),
    dumps.config_map(
        ipam="cluster-pool",
        cluster_pool_ipv4_cidr="10.0.0.0/16",
        cluster_pool_ipv4_mask_size="24",
        enable_bgp_control_plane="true",
    ),
]


def codes(objects: list[dumps.Object], files: dict[str, str]) -> list[str]:
    """Return what a refresh by some objects says of the objects that it does not write."""
    sources = {f"{FOLDER}/{path}": text.encode() for path, text in files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    return [f"{each.code} {each.message}" for each in about_nodes(cluster, FOLDER, dump_of(objects))]


def test_a_compile_of_an_import_sees_them() -> None:
    """They come without what the apiserver adds, and nodes with the labels by which they are selected."""
    brought = imported([*RUNNING, *BGP], cilium=(1, 18))
    assert not [each for each in brought.findings if each.code in {"IPC0835", "IPC0591"}]
    assert (
        brought.files["bgp.yaml"].split("---\n")[0]
        == """\
apiVersion: cilium.io/v2
kind: CiliumBGPAdvertisement
metadata: {name: pods, labels: {to: tor}}
spec: {advertisements: [{advertisementType: PodCIDR}]}
"""
    )
    assert brought.files["bgp.yaml"].count("kind: CiliumBGP") == len(BGP)
    assert "resourceVersion" not in brought.files["bgp.yaml"]
    found = {each.code: each.message for each in compiled(brought.files).diagnostics}
    assert found["IPC0589"] == "no object with peers selects n2"
    assert not found.keys() & {"IPC0585", "IPC0586", "IPC0587", "IPC0588", "IPC0590"}


def test_a_refresh_leaves_them_and_names_new_ones() -> None:
    files = dict(imported([*RUNNING, *BGP], cilium=(1, 18)).files)
    sources = {f"{FOLDER}/{path}": text.encode() for path, text in files.items()}
    cluster, _ = read(NAME, FOLDER, sources, SCHEMAS)
    for _ in range(2):
        again = refresh(cluster, FOLDER, dump_of([*RUNNING, *BGP]), Past())
        assert {**files, **again} == files
    assert codes([*RUNNING, *BGP], files) == []
    other = {**FABRIC, "metadata": {"name": "other"}}
    assert codes([*RUNNING, *BGP, other], files) == [
        "IPC0591 BGP objects not in the cluster's folder: CiliumBGPClusterConfig other; ipamc does not check them"
    ]


def test_a_policy_that_cilium_does_not_read_stays_out() -> None:
    """After the upgrade to 1.19 it is still in the cluster; a compile would refuse it."""
    brought = imported([*RUNNING, POLICY], cilium=(1, 19))
    assert "bgp.yaml" not in brought.files
    assert [each.message for each in brought.findings if each.code == "IPC0591"] == [
        "BGP objects not in the cluster's folder: CiliumBGPPeeringPolicy old; this Cilium does not read them"
    ]
    before = imported([*RUNNING, POLICY], cilium=(1, 18))
    assert "kind: CiliumBGPPeeringPolicy" in before.files["bgp.yaml"]


def test_a_selector_that_cannot_be_read_is_left_to_the_compile() -> None:
    odd = {**FABRIC, "spec": {"nodeSelector": {"matchExpressions": [{"operator": "In"}]}}}
    assert "bgp.yaml" in imported([*RUNNING, odd], cilium=(1, 18)).files
