"""The settings of `cilium_config` as Helm values, with the switch that restarts the operator.

`operator.rollOutPods` annotates the operator's pods with a checksum of `cilium-config`: it restarts by itself,
and pods lose nothing by that. There is no `rollOutCiliumPods`: it would restart every agent at any change of
`cilium-config`, also of keys that only the operator reads and of keys of others, and in a change of mode before
the nodes are drained. The plan says which agents must restart; a value that the user sets stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.features import Capability
from ipamc.model.cilium.operator_list import BYSTANDER
from ipamc.model.cilium.versions import can
from ipamc.render.targets.cilium_config import auto_created, cluster_pools
from ipamc.render.targets.context import File, Layout

TEMPLATE = "helm_values.yaml.j2"


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/helm-values.yaml` for `helm upgrade -f`; it is no manifest."""
    cluster = layout.plan.cluster
    annotate = cluster.patch_nodes == "annotations"
    chart_value = can(cluster.cilium, Capability.HELM_ANNOTATE_NODE)
    values = {
        "annotate": annotate and chart_value,
        "extra": (("annotate-k8s-node", "true"),) if annotate and not chart_value else (),
        "mode": str(cluster.mode),
        "pools": tuple((family, *rest) for family, rest in cluster_pools(layout).items()),
        "auto_created": tuple(auto_created(layout).items()),
        "families": tuple((family, family in cluster.families) for family in (4, 6)),
        "arguments": (BYSTANDER,) if cluster.bystander else (),
    }
    yield File("cilium/helm-values.yaml", TEMPLATE, values, applied=False)
