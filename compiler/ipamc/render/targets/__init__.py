"""Makes the files of each kind of manifest from a layout.

A target is a function, a template, and an entry in `TARGETS`; it chooses no block. The order of
`TARGETS` is the order of application: the root kustomization lists folders, and each folder its files, in
that order. CiliumNodes come last: an operator in multi-pool mode that sees one before its CiliumPodIPPools
empties it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ipamc import on_demand
from ipamc.render.targets import cilium_config, cilium_node, node, node_config, pod_ip_pool
from ipamc.render.targets.context import File, Layout

if TYPE_CHECKING:
    from ipamc.render.targets import admission, bgp
else:
    admission, bgp = on_demand(__name__, "admission", "bgp")


def _admission(layout: Layout) -> Iterator[File]:
    return admission.files(layout) if layout.plan.cluster.admission.used else iter(())


def _bgp(layout: Layout) -> Iterator[File]:
    rendered = any(each.rendered for each in layout.plan.cluster.advertisements)
    return bgp.files(layout) if rendered else iter(())


TARGETS = (
    _admission,
    cilium_config.files,
    cilium_config.masq_agent,
    cilium_config.helm_values,
    cilium_config.component,
    _bgp,
    pod_ip_pool.files,
    node_config.files,
    node.files,
    cilium_node.files,
)
