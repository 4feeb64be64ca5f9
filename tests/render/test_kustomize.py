"""The real kustomize builds what is rendered: the same objects, in the same order, in the same style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipamc.model.plan import Plan
from ipamc.render.targets.context import File
from ipamc.render.yaml import emit
from tests.render.test_yaml import PLAIN, QUOTED
from tests.support.builders import TEMPLATES, node, plan, pool, read, rendered
from tests.support.kustomize import attempt, build, write

DUAL = pool("a", "10.0.0.0/16", "fd00::/112", size=28, size6=124, labels={"rack": "y"})
HELD = {f"n{index}": [f"10.0.{index}.0/28", f"fd00::{index}0/124"] for index in range(8)}
BOTH: dict[str, Any] = {"families": (4, 6), "shards": 4}

PLANS = {
    "kubernetes": plan("kubernetes", [DUAL], HELD, **BOTH),
    "cluster-pool": plan("cluster-pool", [DUAL], HELD, patch_nodes="podCIDRs", **BOTH),
    "helm": plan("cluster-pool", [DUAL], HELD, managed_by="helm", **BOTH),
    "crd": plan("crd", [DUAL], HELD, **BOTH),
    "pinning pool": plan(
        "multi-pool",
        [DUAL, pool("z", "10.9.0.0/16", nodes="has(x)")],
        HELD,
        nodes=[node("n1", {"x": ""})],
        **BOTH,
    ),
    "pinning node": plan(
        "multi-pool",
        [DUAL],
        {**HELD, "n1": [*HELD["n1"], "pending 10.0.99.0/28"]},
        pinning="node",
        managed_by="kustomize",
        **BOTH,
    ),
    "nothing": plan("kubernetes", [DUAL], {}, managed_by="helm"),
}
ORDER = ["ConfigMap", "CiliumPodIPPool", "CiliumNodeConfig", "Node", "CiliumNode"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Return the objects that kustomize builds of each plan as a whole."""
    folder = tmp_path_factory.mktemp("built")
    return {name: read(build(write(folder / name, rendered(made)))) for name, made in PLANS.items()}


def identity(each: dict[str, Any]) -> tuple[str, str, str]:
    return each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")


@pytest.mark.deep
@pytest.mark.parametrize("name", PLANS)
def test_kustomize_builds_what_is_rendered(
    name: str, built: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    made, whole = PLANS[name], built[name]
    texts = rendered(made)
    write(tmp_path, texts)
    folders = sorted(
        (
            path.rpartition("/")[0]
            for path in texts
            if path.count("/") and path.endswith("/kustomization.yaml") and "component" not in path
        ),
        key=order,
    )
    parts = {folder: build(tmp_path / folder) for folder in folders}
    for folder, text in parts.items():
        resources = read(texts[f"{folder}/kustomization.yaml"])[0].get("resources", [])
        assert read(text) == [each for name in resources for each in read(texts[f"{folder}/{name}"])]
    assert whole == [each for folder in folders for each in read(parts[folder])]
    kinds = [ORDER.index(each["kind"]) for each in whole]
    # There each shard has both kinds of its own
    assert kinds == sorted(kinds) or made.cluster.pinning == "node"
    assert len({identity(each) for each in whole}) == len(whole)


def order(folder: str) -> tuple[int, str]:
    return ["cilium", "pools", "nodes", "ciliumnodes"].index(folder.partition("/")[0]), folder


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("kubernetes", {"ConfigMap", "Node"}),
        ("helm", {"CiliumNode"}),
        ("nothing", set()),
        ("pinning pool", {"ConfigMap", *ORDER[1:3]}),
    ],
)
def test_which_kinds_are_applied(name: str, kinds: set[str], built: dict[str, list[dict[str, Any]]]) -> None:
    assert {each["kind"] for each in built[name]} == kinds


def test_no_cluster_scoped_object_has_a_namespace(built: dict[str, list[dict[str, Any]]]) -> None:
    for whole in built.values():
        for each in whole:
            assert ("namespace" in each["metadata"]) is (each["kind"] in {"ConfigMap", "CiliumNodeConfig"})


@pytest.mark.parametrize("name", ["kubernetes", "cluster-pool"])
def test_the_style_is_kustomizes_own(name: str, tmp_path: Path) -> None:
    texts = rendered(PLANS[name])
    write(tmp_path, texts)
    for path, text in texts.items():
        folder, _, file = path.rpartition("/")
        if file in {"nodes.yaml", "ciliumnodes.yaml"}:
            assert build(tmp_path / folder).replace("fd00::", '"fd00::').replace("/124", '/124"') == text


def test_text_stays_text_in_kustomize(tmp_path: Path) -> None:
    # kustomize reads them, and writes what not every reader takes
    beyond = {
        "=",
        "<<",
        "\x00",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ufffe",
    }
    data = tuple((f"k{index}", text) for index, text in enumerate((*PLAIN, *QUOTED)) if text not in beyond)
    values = {"namespace": "kube-system", "data": data}
    texts = emit([File("a.yaml", "cilium_config.yaml.j2", values)], TEMPLATES)
    write(
        tmp_path,
        {
            **texts,
            "kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
        },
    )
    assert read(build(tmp_path))[0]["data"] == dict(data)


BASE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data: {ipam: cluster-pool, debug: "false", cluster-pool-ipv4-cidr: 10.0.0.0/8}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cilium-operator, namespace: kube-system}
spec:
  selector: {matchLabels: {name: cilium-operator}}
  template:
    metadata: {labels: {name: cilium-operator}, annotations: {a: b}}
    spec:
      containers:
      - {name: cilium-operator, image: cilium, args: [--config-dir=/tmp/cilium/config-map, --debug=$(CILIUM_DEBUG)]}
"""


def with_component(folder: Path, made: Plan, base: str) -> Path:
    """Write a kustomization that has Cilium in `base`, and the Component over it."""
    write(folder / "rendered", rendered(made))
    own = {
        "base.yaml": base,
        "kustomization.yaml": "resources: [base.yaml]\ncomponents: [rendered/cilium/component]\n",
    }
    return write(folder, own)


def test_the_component_patches_config_and_operator(tmp_path: Path) -> None:
    made = PLANS["cluster-pool"]
    config, operator = read(build(with_component(tmp_path, made, BASE)))
    assert config["data"] == {"debug": "false", **read(rendered(made)["cilium/configmap.yaml"])[0]["data"]}
    template = operator["spec"]["template"]
    assert template["spec"]["containers"][0]["args"] == [
        "--config-dir=/tmp/cilium/config-map",
        "--debug=$(CILIUM_DEBUG)",
        "--ipam=kubernetes",
    ]
    assert set(template["metadata"]["annotations"]) == {"a", "ipamc/cilium-config-sha256"}


def test_the_component_rolls_the_operator_when_the_config_changes(tmp_path: Path) -> None:
    found = []
    for index, cidr in enumerate(("10.0.0.0/16", "10.0.0.0/16", "10.1.0.0/16")):
        made = plan("cluster-pool", [pool("a", cidr, unlisted=True)], {}, operator="adopt")
        operator = read(build(with_component(tmp_path / str(index), made, BASE)))[1]["spec"]["template"]
        assert len(operator["spec"]["containers"][0]["args"]) == 2
        found.append(operator["metadata"]["annotations"]["ipamc/cilium-config-sha256"])
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("missing", ["ConfigMap", "Deployment"])
def test_the_component_fails_loudly_without_its_base(missing: str, tmp_path: Path) -> None:
    base = "---\n".join(part for part in BASE.split("---\n") if f"kind: {missing}" not in part)
    done = attempt(with_component(tmp_path, PLANS["cluster-pool"], base))
    assert done.returncode != 0
    assert "no matches for Id" in done.stderr
    assert missing in done.stderr
