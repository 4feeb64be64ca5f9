"""Whoever owns cilium-config: our keys arrive, theirs stay, and the operator that reads them does as we say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, DEPLOYMENTS, Api, Object
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.proof import at_rest, everything
from tests.e2e.site import Site, dumped
from tests.support import kustomize
from tests.support.fleet import cluster, inventory, pool

THEIRS = {"debug": "false", "cluster-name": "lab"}
NAMED = {"name": "cilium-config", "namespace": "kube-system"}
CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": NAMED,
    "data": {**THEIRS, "ipam": "kubernetes"},
}
CONTAINER = {
    "name": "cilium-operator",
    "image": "operator",
    "command": ["cilium-operator-generic"],
    "args": ["--config-dir=/tmp/cilium/config-map"],
}
LABELS = {"name": "cilium-operator"}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "cilium-operator", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
    },
}


def site_of(api: Api, operator: Operator, work: Path, owner: str) -> Site:
    """Compile a cluster-pool cluster whose operator is a bystander."""
    documents = [
        cluster(cilium={"managedBy": owner}),
        pool("pods", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        inventory([{"name": "a"}]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    site.compile()
    return site


def test_the_component_brings_the_list_of_the_ip_masq_agent(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    documents = [
        cluster(cilium={"managedBy": "kustomize", "masquerade": {}}),
        pool("pods", ipv4={"cidrs": ["10.0.0.0/24"], "blockSize": 26}),
        inventory([{"name": "a"}]),
    ]
    site = Site.made(api, tmp_path, documents, operator.minor)
    assert "IPC0584" in site.compile()
    base = tmp_path / "cilium"
    base.mkdir()
    (base / "cilium.yaml").write_text(dumped([CONFIG_MAP, DEPLOYMENT]))
    (base / "kustomization.yaml").write_text(
        f"resources: [cilium.yaml]\ncomponents: [../clusters/{site.name}/rendered/cilium/component]\n"
    )
    api.applied(kustomize.build(base))
    config = api.get(f"{CONFIG_MAPS}/cilium-config")["data"]
    assert config == {**THEIRS, **site.config}
    assert config["enable-ip-masq-agent"] == config["enable-bpf-masquerade"] == "true"
    listed = api.get(f"{CONFIG_MAPS}/ip-masq-agent")["data"]["config"]
    assert listed == "nonMasqueradeCIDRs:\n- 10.0.0.0/24"
    api.delete(f"{CONFIG_MAPS}/ip-masq-agent")


def test_the_component_patches_what_kustomize_manages(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = site_of(api, operator, tmp_path, "kustomize")
    base = tmp_path / "cilium"
    base.mkdir()
    (base / "cilium.yaml").write_text(dumped([CONFIG_MAP, DEPLOYMENT]))
    (base / "kustomization.yaml").write_text(
        f"resources: [cilium.yaml]\ncomponents: [../clusters/{site.name}/rendered/cilium/component]\n"
    )
    text = kustomize.build(base)
    api.applied(text)
    before = everything(api)
    api.applied(text)
    assert everything(api) == before

    config = api.get(f"{CONFIG_MAPS}/cilium-config")["data"]
    assert config == {**THEIRS, **site.config}
    arguments = api.get(f"{DEPLOYMENTS}/cilium-operator")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments == [*CONTAINER["args"], "--ipam=kubernetes"]
    site.apply()
    with operator.running(config, *arguments[1:]):
        api.create(CILIUM_NODES, {**cilium_node("stranger"), "spec": {}})
        live = at_rest(api, operator, config, handled=False)
    assert {name: node["spec"].get("ipam", {}).get("podCIDRs") for name, node in live.items()} == {
        "a": ["10.0.0.0/26"],
        "stranger": None,
    }


def test_the_partial_config_map_leaves_the_other_keys_alone(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    """With `managedBy: none` the ConfigMap is applied with the rest; a key that somebody else sets otherwise is a conflict, not overwritten."""
    site = site_of(api, operator, tmp_path, "none")
    api.create(CONFIG_MAPS, {**CONFIG_MAP, "data": THEIRS})
    site.apply()
    assert api.get(f"{CONFIG_MAPS}/cilium-config")["data"] == {**THEIRS, **site.config}
    api.change(f"{CONFIG_MAPS}/cilium-config", lambda whole: whole["data"].update(ipam="kubernetes"))
    refused = api.apply(site.build())
    assert refused.returncode == 1
    assert ".data.ipam" in refused.stderr
    assert api.get(f"{CONFIG_MAPS}/cilium-config")["data"]["ipam"] == "kubernetes"


@pytest.mark.parametrize("owner", ["helm", "kustomize"])
def test_who_has_another_owner_gets_no_config_map_from_us(
    api: Api, operator: Operator, tmp_path: Path, owner: str
) -> None:
    site = site_of(api, operator, tmp_path, owner)
    site.apply()
    assert "cilium-config" not in api.items(CONFIG_MAPS)
