"""Rendered CiliumBGPAdvertisements against the CRDs of a minor, in the kustomization of somebody who has the peers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.router import BGP_CONTROL_PLANE, version_of_kinds
from tests.e2e.api import CRDS, Object
from tests.e2e.conftest import KINDS, OPERATORS, minor, serving
from tests.e2e.operator import Operator
from tests.e2e.site import Site, dumped, loaded
from tests.support import kustomize
from tests.support.fleet import cluster, inventory, pool

BGP = ("ciliumbgpadvertisements", "ciliumbgppeerconfigs", "ciliumbgpclusterconfigs")
BLOCKS: Object = {"name": "blocks", "labels": {"advertise": "blocks"}}
PUBLIC = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["public"]}]}


@pytest.fixture(scope="module", params=OPERATORS, ids=lambda folder: folder.name)
def bgp_operator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """Start the servers of a minor, whose operator registers the kinds of the BGP control plane."""
    if minor(request.param) < (1, 16):
        pytest.skip("advertisements work from 1.16 on")
    folder = tmp_path_factory.mktemp(request.param.name)
    with serving(folder, request.param, kinds=(*KINDS, *BGP), flags=BGP_CONTROL_PLANE) as found:
        yield found


def peers(version: tuple[int, int]) -> list[Object]:
    """Make the user's own objects: they select the advertisements by their label."""
    families = [{"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": BLOCKS["labels"]}}]
    peer = {"name": "tor", "peerASN": 64500, "peerAddress": "172.30.0.250", "peerConfigRef": {"name": "tor"}}
    instances = [{"name": "fabric", "localASN": 64512, "peers": [peer]}]
    return [
        {
            "apiVersion": version_of_kinds(version),
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        for kind, name, spec in (
            ("CiliumBGPPeerConfig", "tor", {"families": families}),
            ("CiliumBGPClusterConfig", "fabric", {"bgpInstances": instances}),
        )
    ]


@pytest.mark.parametrize("mode", ["kubernetes", "cluster-pool", "multi-pool"])
def test_the_apiserver_takes_what_is_rendered_as_it_is(
    bgp_operator: Operator, mode: str, tmp_path: Path
) -> None:
    api, multi = bgp_operator.api, mode == "multi-pool"
    advertised = [{**BLOCKS, **({"selector": PUBLIC} if multi else {})}]
    default = pool("default", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 27})
    default["metadata"] = {"name": "default", "labels": {"tier": "public"}}
    documents = [
        cluster(mode, bgp="control-plane", bgpAdvertisements=advertised),
        default,
        inventory([{"name": "a", "uid": "a"}]),
        *peers(bgp_operator.version),
    ]
    site = Site.made(api, tmp_path, documents, bgp_operator.minor)
    assert "IPC058" not in site.compile()

    folder = tmp_path / "bgp"
    folder.mkdir()
    (folder / "peers.yaml").write_text(dumped(peers(bgp_operator.version)))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["peers.yaml"],
        "components": [f"../clusters/{site.name}/rendered/cilium/bgp"],
    }
    (folder / "kustomization.yaml").write_text(dumped([kustomization]))
    built = kustomize.build(folder)
    (ours,) = (each for each in loaded(built) if each["kind"] == "CiliumBGPAdvertisement")
    for options in (["--dry-run=server"], []):
        api.applied(built, *options)
        if multi:
            api.applied(site.build("cilium"), *options)
    served = api.items(CRDS)["ciliumbgpadvertisements.cilium.io"]["spec"]["versions"]
    assert ("v2" in {each["name"] for each in served}) == can(bgp_operator.version, Capability.BGP_V2)
    found = api.get(f"/apis/{ours['apiVersion']}/ciliumbgpadvertisements/blocks")
    assert found["spec"] == ours["spec"]
    assert found["metadata"]["labels"] == ours["metadata"]["labels"]
