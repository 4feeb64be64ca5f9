"""The charts of all minors, rendered by the real helm with our values, give the flags and the operator's arguments that ipamc renders.

`.ci/charts` prints helm and the charts, which are taken out of Cilium's released Go modules.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.diagnostics import Refused
from ipamc.model.dump import Dump
from ipamc.pipeline import Compilation
from ipamc.read.dump.helm_values import with_values
from tests.support import fleet

HELM, CHARTS = (Path(each) for each in os.environ.get("IPAMC_CHARTS", "helm charts").split())
VERSIONS = (
    "1.11.5",
    "1.12.19",
    "1.13.18",
    "1.14.19",
    "1.15.19",
    "1.16.19",
    "1.17.8",
    "1.18.5",
    "1.19.7",
    "1.20.2",
)
NODES = [
    {"name": "n1", "uid": "u1", "labels": {"rack": "a"}},
    {"name": "n2", "uid": "u2", "labels": {"rack": "b"}},
]
V4 = {"ipv4": {"cidrs": ["10.1.0.0/20"], "blockSize": 26}}
BOTH = {**V4, "ipv6": {"cidrs": ["fd00:1::/48"], "blockSize": 64}}
TWO = {"ipv4": {"cidrs": ["10.2.0.0/20", "10.9.0.0/24"], "blockSize": 27}, "nodeSelector": 'rack == "b"'}
DUAL = ["IPv4", "IPv6"]
ROUTED = {"routingMode": "native", "nativeRoutingCIDR": "10.0.0.0/8"}

CLUSTERS: Mapping[str, tuple[str, Mapping[str, Any], tuple[Mapping[str, Any], ...]]] = {
    "kubernetes": ("kubernetes", {"patchNodes": "podCIDRs"}, (V4,)),
    "kubernetes, annotations": ("kubernetes", {"patchNodes": "annotations"}, (V4,)),
    "kubernetes, dual-stack": ("kubernetes", {"patchNodes": "podCIDRs", "ipFamilies": DUAL}, (BOTH,)),
    "cluster-pool": ("cluster-pool", {}, (V4, TWO)),
    "cluster-pool, native routing": ("cluster-pool", {"cilium": ROUTED}, (V4,)),
    "cluster-pool, tunnel": ("cluster-pool", {"cilium": {"routingMode": "tunnel"}}, (V4,)),
    "cluster-pool, dual-stack": ("cluster-pool", {"ipFamilies": DUAL}, (BOTH,)),
    "cluster-pool, IPv6": ("cluster-pool", {"ipFamilies": ["IPv6"]}, ({"ipv6": BOTH["ipv6"]},)),
    "cluster-pool, adopt": (
        "cluster-pool",
        {"ipam": {"operator": "adopt"}},
        (V4, {"ipv4": {"cidrs": ["10.7.0.0/20"], "blockSize": 26}, "unlisted": True}),
    ),
    "multi-pool": ("multi-pool", {"ipam": {"pinning": "none"}}, (V4, TWO)),
    "multi-pool, pinned to pools": ("multi-pool", {"ipam": {"pinning": "pool"}}, (V4, TWO)),
    "multi-pool, pinned to nodes": (
        "multi-pool",
        {"ipam": {"pinning": "node"}},
        ({**V4, "nodeSelector": 'rack == "a"'}, TWO),
    ),
    "multi-pool, created by the operator": (
        "multi-pool",
        {"ipam": {"pinning": "none", "autoCreate": ["default"]}},
        (V4,),
    ),
    "crd": ("crd", {}, (V4,)),
    "a list of the ip-masq-agent": (
        "cluster-pool",
        {"cilium": {"masquerade": {"nonMasqueradeCIDRs": ["172.16.0.0/12"], "masqLinkLocal": True}}},
        (V4, TWO),
    ),
    "a list of the ip-masq-agent, dual-stack": (
        "cluster-pool",
        {"cilium": {"masquerade": {"masqLinkLocalIPv6": True}}, "ipFamilies": DUAL},
        (BOTH,),
    ),
    "native routing of the pools": (
        "cluster-pool",
        {"cilium": {"routingMode": "native", "masquerade": {"ipMasqAgent": False}}, "ipFamilies": DUAL},
        (BOTH,),
    ),
    "multi-pool, masquerading of one pool": (
        "multi-pool",
        {"ipam": {"pinning": "none"}, "cilium": {"masquerade": {"onlyMasqueradeDefaultPool": True}}},
        (V4, {**TWO, "skipMasquerade": True}),
    ),
    "MetalLB": ("cluster-pool", {"bgp": "metallb", "patchNodes": "podCIDRs"}, (V4,)),
}


def compiled(name: str, version: str) -> Compilation | None:
    """Compile a cluster for a minor; None where that minor does not have it."""
    mode, spec, pools = CLUSTERS[name]
    minor = version.rpartition(".")[0]
    documents = [
        fleet.cluster(mode, version=minor, **spec),
        *(fleet.pool(f"p{index}" if index else "default", **each) for index, each in enumerate(pools)),
        fleet.inventory(NODES),
    ]
    try:
        return fleet.compiled(fleet.as_json(documents))
    except Refused:
        return None


def objects(text: str) -> Iterator[dict[str, Any]]:
    yield from filter(None, yaml.load_all(text, yaml.CSafeLoader))


def named(found: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (one,) = (each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return one


def first(name: str) -> tuple[int, int]:
    """Return the first minor that has a mode and a pinning."""
    for part, minor in (
        ("list of the ip-masq-agent, dual", 14),
        ("native routing of", 12),
        ("of one pool", 19),
    ):
        if part in name:
            return 1, minor
    return (1, 15) if "pinned" in name else (1, 14) if "multi-pool" in name else (1, 11)


def rendered(version: str, home: Path, *options: str) -> list[dict[str, Any]]:
    """Return the objects that a chart gives."""
    done = subprocess.run(
        [
            HELM,
            "template",
            "cilium",
            CHARTS / version,
            "--kube-version=1.30",
            "--namespace=kube-system",
            *options,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return list(objects(done.stdout))


@pytest.mark.deep("1.18.5")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_chart_has_a_value_for_the_pre_allocation(version: str, tmp_path: Path) -> None:
    found = rendered(version, tmp_path, "--set=ipam.mode=multi-pool,ipam.multiPoolPreAllocation=default=8")
    minor = (1, int(version.split(".")[1]))
    has = "ipam-multi-pool-pre-allocation" in named(found, "ConfigMap", "cilium-config")["data"]
    assert has == can(minor, Capability.HELM_PRE_ALLOCATION)


@pytest.mark.deep(part=11)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_the_chart_gives_what_is_rendered(name: str, version: str, tmp_path: Path) -> None:
    compilation = compiled(name, version)
    minor = (1, int(version.split(".")[1]))
    assert (compilation is None) == (minor < first(name) or (name == "MetalLB" and minor > (1, 16)))
    if compilation is None:
        return
    values = tmp_path / "values.yaml"
    values.write_text(compilation.files["cilium/helm-values.yaml"])
    found = rendered(version, tmp_path, f"--values={values}")

    (promised,) = objects(compilation.files["cilium/configmap.yaml"])
    flags = named(found, "ConfigMap", "cilium-config")["data"]
    assert {key: flags.get(key) for key in promised["data"]} == promised["data"]

    if listed := compilation.files.get("cilium/ip-masq-agent.yaml"):
        by_chart = [each for each in found if each["metadata"]["name"] == "ip-masq-agent"]
        applied = "ip-masq-agent.yaml" in compilation.files["cilium/kustomization.yaml"]
        assert applied == (minor < (1, 13)) == (not by_chart)
        (ours,) = objects(listed)
        for each in by_chart:
            assert yaml.safe_load(each["data"]["config"]) == yaml.safe_load(ours["data"]["config"])

    (container,) = named(found, "Deployment", "cilium-operator")["spec"]["template"]["spec"]["containers"]
    assert set(arguments(compilation)) <= set(container["args"])
    assert bool(arguments(compilation)) == (
        compilation.plan.cluster.mode == "cluster-pool" and "adopt" not in name
    )


VALUES: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "cluster-pool": {
        "ipam": {"operator": {"clusterPoolIPv4PodCIDRList": ["10.1.0.0/16", "10.2.0.0/16"], "clusterPoolIPv4MaskSize": 26}},
        "ipv6": {"enabled": True},
        "cluster": {"name": "a", "id": 7},
        "k8s": {"requireIPv4PodCIDR": True},
        "annotateK8sNode": True,
        "extraConfig": {"cni-exclusive": "false"},
    },
    "IPv6": {"ipv4": {"enabled": False}, "ipv6": {"enabled": True}},
    "kubernetes": {"ipam": {"mode": "kubernetes"}, "ipv4NativeRoutingCIDR": "10.0.0.0/8", "cni": {"chainingMode": "portmap"}},
    "crd": {"ipam": {"mode": "crd"}},
    "native": {"routingMode": "native", "ipv4NativeRoutingCIDR": "10.0.0.0/8"},
}  # fmt: skip
"""A user's own values."""


@pytest.mark.deep("1.18.5")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", VALUES)
def test_an_import_takes_values_for_what_the_chart_makes_of_them(
    name: str, version: str, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(VALUES[name]))
    dump, found = with_values(Dump(files=("nodes.json",)), "values.yaml", values.read_bytes())
    config = dump.other("ConfigMap", "cilium-config")
    assert config
    assert not found
    flags = named(rendered(version, tmp_path, f"--values={values}"), "ConfigMap", "cilium-config")["data"]
    if int(version.split(".")[1]) < 14:  # which has the flag tunnel
        flags["routing-mode"] = config.value["data"]["routing-mode"]
    assert {key: flags.get(key) for key in config.value["data"]} == config.value["data"]


def arguments(compilation: Compilation) -> list[str]:
    """Return the arguments that the Component appends to the operator's."""
    (component,) = objects(compilation.files["cilium/component/kustomization.yaml"])
    patches = [json.loads(each["patch"]) for each in component["patches"] if "patch" in each]
    return [step["value"] for patch in patches for step in patch]
