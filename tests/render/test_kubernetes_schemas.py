"""Core objects keep Kubernetes' own schemas, strictly: no field that Kubernetes does not know, none of another type.

The schemas are the apiserver's OpenAPI document, as kubernetes-validate ships it. Objects for server-side apply are partial; what Kubernetes requires of a
whole object (a Deployment's selector) is there once the Component is built over the object that it patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import ValidationError, validate  # type: ignore[import-untyped] # it has no types
from kubernetes_validate.utils import all_versions  # type: ignore[import-untyped] # as above

from ipamc.pipeline import Compilation
from tests.render.test_kustomize import BASE
from tests.support.examples import NAMES, clusters
from tests.support.kustomize import build, write

Object = dict[str, Any]

SHIPPED = sorted({tuple(map(int, version.split(".")[:2])) for version in all_versions()})
"""Kubernetes minors whose schemas there are: 1.25 and on."""
NEWEST = "{}.{}".format(*SHIPPED[-1])
CORE = {"v1", "apps/v1"}


def minors(made: Compilation) -> set[str]:
    """Return the minors to check against: the newest, and the cluster's own or the one nearest to it."""
    major, minor = min(max(made.plan.cluster.kubernetes or SHIPPED[-1], SHIPPED[0]), SHIPPED[-1])
    return {NEWEST, f"{major}.{minor}"}


def core(text: str) -> Iterator[Object]:
    """Yield the objects of a text whose schemas are Kubernetes' own."""
    for each in yaml.load_all(text, yaml.CSafeLoader):
        if each.get("apiVersion") in CORE:
            yield each


def refused(objects: list[Object], minor: str) -> list[str]:
    """Say what is wrong with the objects: all those of a kind at once, as a list of them, which costs as much as a single one."""
    said = []
    for kind in sorted({each["kind"] for each in objects}):
        items = [each for each in objects if each["kind"] == kind]
        try:
            validate(
                {"apiVersion": items[0]["apiVersion"], "kind": f"{kind}List", "items": items},
                minor,
                strict=True,
            )
        except ValidationError as problem:
            said.append(problem.message)
    return said


@pytest.mark.parametrize("name", NAMES)
def test_nodes_and_config_maps_of_every_cluster(name: str) -> None:
    made = clusters()[name]
    objects = [
        each
        for path, text in made.files.items()
        if path != "cilium/component/cilium-operator.yaml"
        for each in core(text)
    ]
    assert {each["kind"] for each in objects} == {
        "ConfigMap",
        *(["Node"] if made.plan.cluster.patch_nodes != "none" else []),
    }
    assert {minor: found for minor in minors(made) if (found := refused(objects, minor))} == {}


@pytest.mark.deep(part=4)
@pytest.mark.parametrize("name", NAMES)
def test_the_component_over_a_deployment_of_every_cluster(name: str, tmp_path: Path) -> None:
    made = clusters()[name]
    namespace = made.plan.cluster.namespace
    own = {
        "base.yaml": BASE.replace("namespace: kube-system", f"namespace: {namespace}"),
        "kustomization.yaml": "resources: [base.yaml]\ncomponents: [rendered/cilium/component]\n",
    }
    write(tmp_path / "rendered", made.files)
    objects = list(core(build(write(tmp_path, own))))
    assert [each["kind"] for each in objects] == ["ConfigMap", "Deployment"]
    assert refused(objects, NEWEST) == []


def test_a_patch_alone_is_no_whole_deployment() -> None:
    """So it is not sent as it is: kustomize lays it over the chart's."""
    [patch] = core(clusters()["dual-stack"].files["cilium/component/cilium-operator.yaml"])
    assert refused([patch], "1.33") == ["'selector' is a required property"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            {"kind": "Node", "spec": {"podCidrs": ["10.0.0.0/24"]}},
            "Additional properties are not allowed ('podCidrs' was unexpected)",
        ),
        (
            {"kind": "Node", "spec": {"podCIDRs": "10.0.0.0/24"}},
            "'10.0.0.0/24' is not of type 'array', 'null'",
        ),
        ({"kind": "ConfigMap", "data": {"enable-ipv4": True}}, "True is not of type 'string', 'null'"),
        (
            {"kind": "ConfigMap", "data": {}, "spec": {}},
            "Additional properties are not allowed ('spec' was unexpected)",
        ),
    ],
)
def test_the_schemas_refuse_what_kubernetes_would(made: Object, said: str) -> None:
    assert refused([{"apiVersion": "v1", **made}], "1.33") == [said]
