"""Fields and values of other tools, and their counterparts in ipamc. Data only.

`words/tools/` has verbs and options.
"""

from __future__ import annotations

_POOL = "ranges are in pools: in ippools.yaml write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}"
_CALICO = "remove it: it tells Calico how to route, and Cilium has its own settings for that"
_OF_HELM = "leave it in the values of Cilium: only what decides addresses stands here"
FIELDS = {
    "IPPool": {
        "maskSize": "write blockSize, which is rendered as Cilium's maskSize",
        "cidr": "write ipv4: {cidrs: [{value}], blockSize: 24}; "
        "or make it a pool of Calico: apiVersion: projectcalico.org/v3",
        "selector": "did you mean 'nodeSelector'?",
        "blocks": "ranges of pods are in ipv4 and ipv6: write ipv4: {cidrs: [10.244.0.0/16], blockSize: 24}",
        "weight": "write priority: {value}",
        "nodes": "write nodeSelector, or reserve blocks for single nodes by pins: "
        "ipamc explain IPPool.spec.pins",
        "allowedUses": "remove it: a pool here is for pods alone",
        "enabled": "write disabled: {opposite}",
        **dict.fromkeys(
            ("natOutgoing", "vxlanMode", "ipipMode", "disableBGPExport", "assignmentMode"), _CALICO
        ),
    },
    "Cluster": {
        **dict.fromkeys(("serviceCIDR", "serviceCidr", "serviceSubnet"), "write excludedCIDRs: [{value}]"),
        **dict.fromkeys(
            ("podCIDR", "podSubnet", "clusterCIDR", "cidrs", "pools", "cluster-pool-ipv4-cidr"), _POOL
        ),
        **dict.fromkeys(("clusterPoolIPv4PodCIDRList", "clusterPoolIPv4MaskSize"), _POOL),
        "tunnel": "write routingMode: tunnel",
        "tunnelProtocol": "write routingMode: tunnel",
        "ipv4NativeRoutingCIDR": "write nativeRoutingCIDR: {value}",
        **dict.fromkeys(("autoDirectNodeRoutes", "kubeProxyReplacement", "hubble", "bpf"), _OF_HELM),
    },
    "NodeInventory": {"role": "write it as a label: labels: {role: {value}}"},
}
"""By ipamc's kind and a foreign field: what to write instead. `{value}` is the field's value."""

VALUES = {
    "mode": {
        "host-scope": "kubernetes",
        "hostscope": "kubernetes",
        "cluster-scope": "cluster-pool",
        "clusterpool": "cluster-pool",
    },
    "managedBy": {
        "argocd": "helm or kustomize, whichever it renders",
        "argo": "helm or kustomize, whichever it renders",
        "flux": "helm or kustomize, whichever it applies",
    },
    "routingMode": {"vxlan": "tunnel", "geneve": "tunnel", "direct": "native"},
    "bgp": {"bird": "none", "calico": "none"},
}
"""By field: words of other tools, and the word of ipamc."""

HELM = frozenset(
    {"ipam", "operator", "hubble", "kubeProxyReplacement", "k8sServiceHost", "tunnelProtocol", "bpf", "cni"}
)
KUSTOMIZE = frozenset({"resources", "patches", "components", "namePrefix", "configMapGenerator", "bases"})
"""Top-level fields of the values of Cilium's chart, and of a kustomization."""
