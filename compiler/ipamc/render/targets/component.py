"""A kustomize Component that patches ConfigMap `cilium-config` and Deployment `cilium-operator` of a chart.

Both patches are strategic, so a base without those objects fails the build. The operator reads its
configuration only at its start: an annotation with the data's hash restarts it when the data changes. As a
bystander it gets `--ipam=kubernetes`, which overrides the ConfigMap, and hands out nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from ipamc.model.cilium.operator_list import BYSTANDER
from ipamc.render.targets import cilium_config
from ipamc.render.targets.context import File, Layout

TEMPLATE = "component.yaml.j2"

FOLDER = "cilium/component"


def files(layout: Layout) -> Iterator[File]:
    """Yield the files of `cilium/component/`, which the user's kustomization with Cilium names, not ours."""
    namespace = layout.plan.cluster.namespace
    yield File(
        f"{FOLDER}/cilium-config.yaml", cilium_config.TEMPLATE, cilium_config.values(layout), applied=False
    )
    digest = hashlib.sha256(json.dumps(cilium_config.data(layout), sort_keys=True).encode()).hexdigest()
    yield File(
        f"{FOLDER}/cilium-operator.yaml", TEMPLATE, {"namespace": namespace, "digest": digest}, applied=False
    )
    patches: list[dict[str, str]] = [{"path": "cilium-config.yaml"}, {"path": "cilium-operator.yaml"}]
    if layout.plan.cluster.bystander:
        operation = {
            "op": "add",
            "path": "/spec/template/spec/containers/0/args/-",
            "value": BYSTANDER,
        }
        patches.append(
            {
                "patch": json.dumps([operation]),
                "group": "apps",
                "version": "v1",
                "kind": "Deployment",
                "name": "cilium-operator",
                "namespace": namespace,
            }
        )
    kustomization = {
        "api": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "sort": "",
        "resources": (),
        "patches": tuple(patches),
    }
    yield File(f"{FOLDER}/kustomization.yaml", "kustomization.yaml.j2", kustomization, applied=False)
