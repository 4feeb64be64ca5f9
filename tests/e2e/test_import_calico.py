"""From Calico to Cilium on real servers: Calico's objects as the real kubectl prints them, nodes that move one by one, and an operator that never gives away a block that is not to be given away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, CRDS, NODES, Api, Object
from tests.e2e.objects import allocated
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.proof import at_rest
from tests.e2e.site import Site, dumped
from tests.support import calico

NUMBER = 24
NAMES = [f"node-{index:02}" for index in range(NUMBER)]
GROUP = "crd.projectcalico.org"
KINDS = {
    "IPPool": "ippools",
    "IPAMBlock": "ipamblocks",
    "BlockAffinity": "blockaffinities",
    "IPReservation": "ipreservations",
    "IPAMConfig": "ipamconfigs",
}
DUMP = ",".join(["nodes", "ciliumnodes", *(f"{plural}.{GROUP}" for plural in KINDS.values())])
POOLS = [
    calico.pool("old", "10.66.0.0/20", disabled=True, blockSize=27),
    calico.pool("zone-a", "10.64.0.0/18", nodeSelector="zone == 'a'"),
    calico.pool("zone-b", "10.64.64.0/18", nodeSelector="zone == 'b'"),
    calico.pool("zone-c.rest", "10.65.0.0/18", nodeSelector="has(zone)"),
]


def definition(kind: str, plural: str) -> Object:
    """Return a CustomResourceDefinition that takes whatever Calico writes."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def path(kind: str) -> str:
    return f"/apis/{GROUP}/v1/{KINDS[kind]}"


@pytest.fixture
def with_calico(api: Api) -> Iterator[Api]:
    """Return the kube-apiserver with Calico's CRDs."""
    there = api.items(CRDS)
    api.create(
        CRDS,
        *(definition(kind, plural) for kind, plural in KINDS.items() if f"{plural}.{GROUP}" not in there),
    )
    until(lambda: api.kubectl("get", DUMP).returncode == 0, "kubectl knows Calico's kinds")
    api.delete(*map(path, KINDS))
    yield api
    api.delete(*map(path, KINDS))


def zone(index: int) -> str:
    return "abc"[index % 3]


def blocks_of(index: int) -> list[str]:
    """Return the blocks of a node: one to three of its zone, as Calico scatters them, and some of the old pool."""
    base = {
        "a": ip_network("10.64.0.0/18"),
        "b": ip_network("10.64.64.0/18"),
        "c": ip_network("10.65.0.0/18"),
    }
    every = list(base[zone(index)].subnets(new_prefix=26))
    own = [every[(index * 37 + number * 101) % len(every)] for number in range(1 + index % 3)]
    old = list(ip_network("10.66.0.0/20").subnets(new_prefix=27))
    return [str(block) for block in own] + ([str(old[index * 5])] if index % 4 == 0 else [])


def running(api: Api) -> None:
    """Write what Calico writes of 24 nodes."""
    api.create(
        NODES,
        *({"metadata": {"name": name, "labels": {"zone": zone(index)}}} for index, name in enumerate(NAMES)),
    )
    written: dict[str, list[Object]] = defaultdict(list)
    objects = [*POOLS, calico.FROZEN, calico.reservation("routers", ["10.64.0.0/29", "10.65.63.0/24"])]
    for name, cidrs in given().items():
        for cidr in cidrs:
            objects += calico.affine(cidr, name, [(5, name, f"default/pod-of-{name}")])
    for item in objects:
        written[item["kind"]].append(item)
    for kind, items in written.items():
        api.create(path(kind), *items)


def given() -> dict[str, list[str]]:
    return {name: sorted(blocks_of(index)) for index, name in enumerate(NAMES)}


def held(site: Site) -> dict[str, list[str]]:
    return {name: sorted(block for _, block in lines) for name, lines in site.lock().items()}


def dump(site: Site, name: str) -> str:
    done = site.api.kubectl("get", DUMP, "-o", "json")
    assert done.returncode == 0, done.stderr
    (site.work / name).write_text(done.stdout)
    return name


def starts(site: Site, name: str) -> None:
    """Move a node: its seed is applied, its agent starts, and asks all its pools for more than they have."""
    (seed,) = [each for each in site.rendering("seeds/*.yaml") if each["metadata"]["name"] == name]
    site.api.applied(dumped([seed]))
    pools = [each["pool"] for each in seed["spec"]["ipam"]["pools"]["allocated"]]
    requested = [{"pool": pool, "needed": {"ipv4-addrs": 500}} for pool in pools]
    site.api.change(
        f"{CILIUM_NODES}/{name}", lambda whole: whole["spec"]["ipam"]["pools"].update(requested=requested)
    )


def test_nodes_move_with_their_blocks(with_calico: Api, operator: Operator, tmp_path: Path) -> None:
    if operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    api = with_calico
    site = Site(api, tmp_path, "lab", operator.minor)
    running(api)
    options = ("--cilium-version", operator.minor, "--managed-by", "none")
    said = site.run("import", "lab", dump(site, "dump.json"), *options)
    assert "0 returned, 0 left, 0 renumbered" in said
    assert held(site) == given()
    assert "unchanged" in site.run("import", "lab", dump(site, "dump.json"), *options)
    with operator.running(site.config):
        site.apply()
        for start in range(0, NUMBER, 8):
            wave = NAMES[start : start + 8]
            for name in wave:
                starts(site, name)
                for kind in ("IPAMBlock", "BlockAffinity"):  # as kube-controllers releases them
                    api.delete(
                        *(
                            f"{path(kind)}/{item}"
                            for item, each in api.items(path(kind)).items()
                            if name in str(each)
                        )
                    )
            live = at_rest(api, operator, site.config, handled=True)
            assert {name: sorted(allocated(node)) for name, node in live.items()} == {
                name: blocks for name, blocks in given().items() if name in NAMES[: start + 8]
            }
            # What CI does meanwhile: nobody's block moves, and the trees stay as they are.
            site.run("import", "lab", "--refresh", dump(site, "later.json"))
            assert "0 renumbered; unchanged" in site.compile()
            site.apply()
        assert held(site) == given()
        assert not [
            item for item, each in api.items(path("IPAMBlock")).items() if each["spec"].get("affinity")
        ]
