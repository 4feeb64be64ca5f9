"""CiliumBGPAdvertisements: the announcements of the blocks that ipamc gives nodes.

The user owns the peers, and chooses the moment: the kinds exist once `enable-bgp-control-plane` is set. So
this is a kustomize Component, which the user's kustomization with the peers names.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.admission import CLUSTER, label_of
from ipamc.model.bgp import POD_IP_POOL, Advertisement
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.render.targets.context import File, Layout, kustomization
from ipamc.render.targets.pod_ip_pool import label_selector

FOLDER = "cilium/bgp"
_FILE = "advertisements.yaml"


def files(layout: Layout) -> Iterator[File]:
    """Yield the files of `cilium/bgp/`, which only clusters with `bgpAdvertisements` have."""
    cluster = layout.plan.cluster
    ours = {CLUSTER: label_of(cluster.name)}

    def entry(each: Advertisement) -> tuple[object, ...]:
        (advert,) = each.adverts
        selector = label_selector(advert.selector, ours) if advert.type == POD_IP_POOL else None
        return each.name, tuple(sorted(each.labels.items())), advert.type, selector

    rendered = tuple(entry(each) for each in cluster.advertisements if each.rendered)
    api = "cilium.io/v2" if can(cluster.cilium, Capability.BGP_V2) else "cilium.io/v2alpha1"
    found = {"api": api, "advertisements": rendered}
    yield File(f"{FOLDER}/{_FILE}", "bgp_advertisement.yaml.j2", found, applied=False)
    yield kustomization(f"{FOLDER}/kustomization.yaml", [_FILE], component=True)
