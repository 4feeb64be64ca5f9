"""Differences between Cilium minors, by name; `support` says which minor has which, and how that is known."""

from __future__ import annotations

import enum

from ipamc.model.cluster import Version

FIRST: Version = (1, 11)
"""The oldest minor whose behaviour is known here."""
LAST: Version = (1, 20)
"""The newest."""


class Capability(enum.Enum):
    """Something that Cilium does in some minors, or always. The value describes it in Markdown."""

    POD_CIDRS = "agents use a Node's `podCIDRs`"
    NETWORK_ANNOTATIONS = (
        "a Node's annotations are called `network.cilium.io/…`; before, `io.cilium.network.…`"
    )
    ANNOTATIONS_ASKED_FOR = 'annotations count only with `annotate-k8s-node: "true"`; before, always'
    HELM_ANNOTATE_NODE = (
        "every chart has the value `annotateK8sNode`; in 1.11 that of 1.11.5 does, with the default `true`, "
        "and those of 1.11.1 and 1.11.2 do not"
    )
    CLUSTER_POOL_LIST = "the operator takes several ranges"
    KEPT_POD_CIDRS = "the operator keeps the `podCIDRs` that a CiliumNode has"
    UNDONE_POD_CIDRS = "the operator undoes a change of a CiliumNode's `podCIDRs`; before, it only complains"
    BYSTANDER = "with `--ipam=kubernetes` the operator hands out nothing, whatever `cilium-config` says"
    NODE_GC = "the operator collects CiliumNodes without a Node (in 1.12 only with `nodes-gc-interval`)"
    DO_NOT_GC = '`cilium.io/do-not-gc: "true"` keeps it from collecting a CiliumNode without a Node'
    MULTI_POOL = "`ipam: multi-pool`, CiliumPodIPPool `cilium.io/v2alpha1`, `auto-create-cilium-pod-ip-pools`"
    DEFAULT_IP_POOL = "`ipam-default-ip-pool`, also in a CiliumNodeConfig: a default pool for some nodes"
    NODE_CONFIG_V2 = "CiliumNodeConfig is stored as `cilium.io/v2`; before, as `v2alpha1`"
    HELM_PRE_ALLOCATION = "the chart has the value `ipam.multiPoolPreAllocation`"
    MULTI_POOL_TUNNEL = "tunnel routing; before, agents do not start with it"
    LOCAL_ROUTES = (
        "an agent has a route to each block of its node; before, to those of its start alone (1.17), or to a "
        "range that is none of them, so that pods need `enable-endpoint-routes`"
    )
    ORPHAN_BLOCKS = (
        "a block of `pools.allocated` whose CiliumPodIPPool is missing stays; before, the operator empties it"
    )
    EXCHANGED_BLOCKS = (
        "a block that is taken out of its CiliumPodIPPool stays with its node until the operator starts "
        "again; before, until its agent writes next"
    )
    NUMERIC_ALLOCATED = "the operator writes `pools.allocated` in order of address; before, of text"
    EDITED_RANGES = (
        "the operator keeps the books of a CIDR that is widened, divided or cut in a CiliumPodIPPool; "
        "before, it gives out again what nodes have of it"
    )
    REMOVED_RANGES = (
        "a CIDR may leave a CiliumPodIPPool wherever it stands; before, the operator crashes unless it is "
        "the last one, and two neighbours at once only leave from 1.19 on"
    )
    IMMUTABLE_MASK = "the apiserver refuses another `maskSize`; before, only the operator does"
    POD_SELECTORS = (
        "`podSelector` and `namespaceSelector` of a CiliumPodIPPool: pods without annotations that it "
        "selects get its addresses, on every node; a pod that two pools select gets none"
    )
    ALLOW_ENDS = (
        "`allowFirstIP` and `allowLastIP` of a CiliumPodIPPool, which cannot change: pods get the first, "
        "and the last address of a block"
    )
    EGRESS_INTERFACES = (
        "an agent that masquerades with iptables does not start without `egress-masquerade-interfaces`; "
        "before, its rule is for one range of addresses, whatever blocks the node has"
    )
    SKIP_MASQUERADE = (
        "`only-masquerade-default-pool`, and the annotation `ipam.cilium.io/skip-masquerade` of a "
        "CiliumPodIPPool: with BPF masquerading pods of other pools, or of this one, keep their addresses"
    )
    IP_MASQ_AGENT = (
        "with `enable-ip-masq-agent` and BPF masquerading agents read `nonMasqueradeCIDRs` of ConfigMap "
        "ip-masq-agent again when it changes"
    )
    IP_MASQ_AGENT_IPV6 = "`nonMasqueradeCIDRs` of IPv6, and `masqLinkLocalIPv6`"
    HELM_IP_MASQ_CONFIG = "the chart has the value `ipMasqAgent.config`; before, it makes no such ConfigMap"
    IPV6_NATIVE_ROUTING = "the flag `ipv6-native-routing-cidr`"
    CRD_ADDRESSES = "agents use the addresses of `spec.ipam.pool`, of blocks of any size"
    CRD_NATIVE_ONLY = (
        "Cilium's documentation lists native routing alone; where it was run, pods reached each other "
        "through tunnels all the same"
    )
    CRD_NOT_ANNOUNCED = "nothing in Cilium announces the addresses by BGP"
    TINY_BLOCKS = "pods get every address of a /31, /32, /127 and /128; before, none"
    IPV6_BITMAP = "the operator refuses an IPv6 range of more than 2^16 blocks"
    METALLB = "MetalLB in the agent, `bgp-announce-pod-cidr`, in these two modes only"
    METALLB_CILIUM_NODE = "MetalLB announces a CiliumNode's `podCIDRs`; before, a Node's"
    BGP_CONTROL_PLANE = "the BGP control plane announces `podCIDRs`, in these two modes only"
    BGP_CILIUM_NODE = "the BGP control plane announces a CiliumNode's `podCIDRs`; before, a Node's"
    BGP_POOL_ADVERTS = "the BGP control plane announces blocks by the labels of their CiliumPodIPPool"
    BGP_PEERING_POLICY = "CiliumBGPPeeringPolicy"
    BGP_ADVERTISEMENT = "CiliumBGPAdvertisement, CiliumBGPPeerConfig, CiliumBGPClusterConfig"
    BGP_V2 = "those BGP objects as `cilium.io/v2`; before, as `v2alpha1` alone"
