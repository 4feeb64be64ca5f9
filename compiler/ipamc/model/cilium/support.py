"""What Cilium minors and the kube-apiserver do: capabilities by name, tables of claims, and what needs them.

A cell of `TABLE`, one capability of one minor, is yes or no, and known in one of three ways: *run*, the
server of that minor did it in a test; *read*, its source at the tag of `READ_AT` says so; *inferred*,
neither, and it follows from other minors. Of agents, that is run which `make e2e-agents` shows
(tests/e2e/agents), or functions of theirs that a small program can call (tests/e2e/servers/agent); of charts,
what Helm renders. After a run of a server or an agent add its minor to the `run` of its rows, and run
`pytest tests/model/test_versions.py tests/test_cases.py --update`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from msgspec import Struct

from ipamc.model.cluster import Version

FIRST: Version = (1, 11)
"""The oldest minor whose behaviour is known here."""
LAST: Version = (1, 20)
"""The newest."""


class Capability(enum.Enum):
    """Something that Cilium does in some minors, or always. The value describes it in Markdown."""

    POD_CIDRS = "agents use a Node's `podCIDRs`"
    NETWORK_ANNOTATIONS = (
        "annotations of a Node begin with `network.cilium.io/`; before, with `io.cilium.network.`"
    )
    ANNOTATIONS_ASKED_FOR = (
        'agents use annotations of a Node only with `annotate-k8s-node: "true"`; before, always'
    )
    HELM_ANNOTATE_NODE = (
        "the charts of all patch releases have the value `annotateK8sNode`; in 1.11, that of 1.11.5 has it "
        "(default `true`), those of 1.11.1 and 1.11.2 do not"
    )
    CLUSTER_POOL_LIST = "the operator accepts several ranges per family"
    KEPT_POD_CIDRS = "the operator keeps the `podCIDRs` that a CiliumNode already has"
    UNDONE_POD_CIDRS = "the operator undoes a change of a CiliumNode's `podCIDRs`; before, it only complains"
    BYSTANDER = "with `--ipam=kubernetes` the operator gives out no blocks, regardless of `cilium-config`"
    NODE_GC = (
        "the operator garbage-collects CiliumNodes without a Node (in 1.12 only with `nodes-gc-interval`)"
    )
    DO_NOT_GC = '`cilium.io/do-not-gc: "true"` keeps the operator from garbage-collecting a CiliumNode'
    MULTI_POOL = (
        "the IPAM mode: `ipam: multi-pool`, CiliumPodIPPool `cilium.io/v2alpha1`, "
        "`auto-create-cilium-pod-ip-pools`"
    )
    DEFAULT_IP_POOL = (
        "`ipam-default-ip-pool` sets the default pool, in a CiliumNodeConfig also for some nodes only"
    )
    NODE_CONFIG_V2 = "CiliumNodeConfig is stored as `cilium.io/v2`; before, as `v2alpha1`"
    HELM_PRE_ALLOCATION = "the chart has the value `ipam.multiPoolPreAllocation`"
    MULTI_POOL_TUNNEL = "agents support tunnel routing; before, they refuse to start with it"
    LOCAL_ROUTES = (
        "an agent has a route to each block of its node; before, only to the blocks that the node had when "
        "the agent started (1.17), or to an unrelated range, so that pods need `enable-endpoint-routes`"
    )
    ORPHAN_BLOCKS = (
        "a block in `pools.allocated` stays if its CiliumPodIPPool is deleted; before, the operator "
        "removes it"
    )
    EXCHANGED_BLOCKS = (
        "a block whose CIDR leaves its CiliumPodIPPool stays with its node until the operator restarts; "
        "before, until the agent's next write"
    )
    NUMERIC_ALLOCATED = "the operator sorts `pools.allocated` by address; before, as text"
    EDITED_RANGES = (
        "the operator remembers allocated blocks when a CIDR of a CiliumPodIPPool is widened, divided or "
        "cut; before, it gives them out again"
    )
    REMOVED_RANGES = (
        "any CIDR can be removed from a CiliumPodIPPool; before, the operator crashes unless it is the last "
        "in the list. Two adjacent CIDRs can be removed together only from 1.19 on"
    )
    IMMUTABLE_MASK = "kube-apiserver refuses a change of `maskSize`; before, only the operator does"
    POD_SELECTORS = (
        "a CiliumPodIPPool has `podSelector` and `namespaceSelector`: selected pods without annotations get "
        "addresses from the pool on every node; a pod that two pools select gets none"
    )
    REQUIRED_MATCH = (
        'with `ipam.cilium.io/require-pool-match: "true"` on a pod or its namespace, a pod that no pool '
        "selects gets no address, not even from the default pool"
    )
    DRIFT_METRIC = (
        "by default an agent counts, in the metric `cilium_drift_checker_config_delta`, the keys of "
        "`cilium-config` that changed since its start; runbooks wait for 0"
    )
    ALLOW_ENDS = (
        "a CiliumPodIPPool has `allowFirstIP` and `allowLastIP`, which cannot change: pods can get the first "
        "or the last address of a block"
    )
    EGRESS_INTERFACES = (
        "an agent that masquerades with iptables does not start without `egress-masquerade-interfaces`; "
        "before, it starts, but masquerades only one address range, regardless of the node's blocks"
    )
    SKIP_MASQUERADE = (
        "with BPF masquerading, `only-masquerade-default-pool` exempts the pods of all other pools, and the "
        "annotation `ipam.cilium.io/skip-masquerade` of a CiliumPodIPPool exempts the pods of this pool"
    )
    IP_MASQ_AGENT = (
        "with `enable-ip-masq-agent` and BPF masquerading, agents reload `nonMasqueradeCIDRs` of ConfigMap "
        "ip-masq-agent when it changes"
    )
    IP_MASQ_AGENT_IPV6 = "ip-masq-agent supports IPv6 in `nonMasqueradeCIDRs`, and `masqLinkLocalIPv6`"
    HELM_IP_MASQ_CONFIG = (
        "the chart has the value `ipMasqAgent.config`; before, it does not create ConfigMap ip-masq-agent"
    )
    IPV6_NATIVE_ROUTING = "the agent has the flag `ipv6-native-routing-cidr`"
    CRD_ADDRESSES = "agents use the addresses in a CiliumNode's `spec.ipam.pool`, from blocks of any size"
    CRD_NATIVE_ONLY = "Cilium's documentation lists only native routing; in a test, tunnels also worked"
    CRD_NOT_ANNOUNCED = "in crd mode, Cilium does not announce pod addresses by BGP"
    TINY_BLOCKS = "pods can get every address of a /31, /32, /127 or /128; before, none of them"
    IPV6_BITMAP = "the operator refuses an IPv6 range of more than 2^16 blocks"
    METALLB = (
        "MetalLB in the agent announces pod CIDRs with `bgp-announce-pod-cidr`, only in kubernetes and "
        "cluster-pool mode"
    )
    METALLB_CILIUM_NODE = "MetalLB announces a CiliumNode's `podCIDRs`; before, a Node's"
    BGP_CONTROL_PLANE = "the BGP control plane announces `podCIDRs`, only in kubernetes and cluster-pool mode"
    BGP_CILIUM_NODE = "the BGP control plane announces a CiliumNode's `podCIDRs`; before, a Node's"
    BGP_POOL_ADVERTS = "the BGP control plane announces blocks by the labels of their CiliumPodIPPool"
    BGP_PEERING_POLICY = "CiliumBGPPeeringPolicy"
    BGP_ADVERTISEMENT = "CiliumBGPAdvertisement, CiliumBGPPeerConfig, CiliumBGPClusterConfig"
    BGP_INTERFACE = "a CiliumBGPAdvertisement can have the type `Interface`"
    BGP_V2 = (
        "CiliumBGPAdvertisement, CiliumBGPPeerConfig and CiliumBGPClusterConfig as `cilium.io/v2`; before, "
        "only as `v2alpha1`"
    )


_READ = "1.11.1 1.12.19 1.13.18 1.14.19 1.15.19 1.16.19 1.17.8 1.18.5 1.19.7 1.20.2"
READ_AT = {int(release.split(".")[1]): release for release in _READ.split()}
"""By minor the release whose source was read."""


NODE_CONFIG_CRD = "ciliumnodeconfigs.cilium.io"
UNFIT: Mapping[int, tuple[str, ...]] = {20: ("1.20.0", "1.20.1")}
"""By minor its releases whose operator does not start where the CRD of CiliumNodeConfigs was made by 1.15 or
older: they drop `v2alpha1`, which it lists as stored (cilium issue 47774; PR 48087 brings it back)."""


BGP_PEERS = {11: "cilium bgp peers", 15: "cilium-dbg bgp peers", 20: "cilium-dbg shell bgp/peers"}
"""By the first minor the command in an agent's pod that lists its BGP sessions; 1.20 calls the one before
deprecated (cilium-dbg/cmd/bgp_peer_get.go, pkg/bgp/commands)."""


class Basis(enum.StrEnum):
    """How a claim is known, the strongest evidence first."""

    RUN = "run"
    READ = "read"
    INFERRED = "inferred"


class Row(Struct, frozen=True):
    """One capability: the minors with it, how that is known for each, and the parts that depend on it."""

    capability: Capability
    modes: str
    """The `ipam` modes that it concerns."""
    since: int = FIRST[1]
    until: int = LAST[1]
    """The first and the last minor of Cilium 1 that have it."""
    run: tuple[int, ...] = ()
    """The minors whose server was run to see whether they do it."""
    inferred: tuple[int, ...] = ()
    """The minors for which nothing was run or read."""
    decides: str = ""
    """The rules or the rendered files that depend on it; "" for none."""

    @property
    def source(self) -> str:
        """Return the places in the source, or other references, that prove it."""
        return SOURCES[self.capability]

    def of(self, version: Version) -> bool:
        """Return whether a minor has it; one that is too new counts as the newest (IPC0501 refuses it)."""
        return (1, self.since) <= min(version, LAST) <= (1, self.until)

    def basis(self, version: Version) -> Basis:
        """Return the evidence that a minor has it, or has it not."""
        _, minor = version
        return Basis.RUN if minor in self.run else Basis.INFERRED if minor in self.inferred else Basis.READ


_KUBERNETES, _CLUSTER_POOL, _MULTI_POOL, _CRD = "kubernetes", "cluster-pool", "multi-pool", "crd"
_ONE_BLOCK, _ALL_BUT_CRD = f"{_KUBERNETES}, {_CLUSTER_POOL}", f"{_KUBERNETES}, {_CLUSTER_POOL}, {_MULTI_POOL}"
_ALL = f"{_ALL_BUT_CRD}, {_CRD}"
_CILIUMNODE = f"{_CLUSTER_POOL}, {_MULTI_POOL}, {_CRD}"
_SERVERS = (12, 15, 16, 17, 18, 19, 20)
"""The minors whose operators and functions of agents are run; all but the first have multi-pool mode."""
_AGENTS = (15, 16, 17, 18, 19, 20)
"""The minors whose whole agents are run."""
_CHARTS = tuple(range(12, LAST[1] + 1))
"""The minors whose chart Helm renders, at the release of `READ_AT`."""

C = Capability

TABLE = (
    Row(C.POD_CIDRS, _KUBERNETES, run=_SERVERS, decides="`nodes/`"),
    Row(C.NETWORK_ANNOTATIONS, _KUBERNETES, since=13, run=_SERVERS, decides="`nodes/`"),
    Row(C.ANNOTATIONS_ASKED_FOR, _KUBERNETES, since=12, run=_SERVERS),
    Row(C.HELM_ANNOTATE_NODE, _KUBERNETES, since=12, run=_CHARTS, decides="`helm-values.yaml`"),
    Row(C.CLUSTER_POOL_LIST, _CLUSTER_POOL, run=_SERVERS, decides="`configmap.yaml`, `helm-values.yaml`"),
    Row(C.KEPT_POD_CIDRS, _CLUSTER_POOL, run=_SERVERS, decides="`ciliumnodes/`"),
    Row(C.UNDONE_POD_CIDRS, _CLUSTER_POOL, since=19, run=_SERVERS),
    Row(C.BYSTANDER, _CLUSTER_POOL, run=_SERVERS, decides="`component/`, `helm-values.yaml`, IPC0515"),
    Row(C.NODE_GC, _CILIUMNODE, since=12, run=_SERVERS),
    Row(
        C.DO_NOT_GC, _CILIUMNODE, since=18, run=_SERVERS, decides="`ciliumnodes/`, `seeds/`, IPC0553, IPC0568"
    ),
    Row(C.MULTI_POOL, _MULTI_POOL, since=14, run=_SERVERS, decides="IPC0521"),
    Row(C.DEFAULT_IP_POOL, _MULTI_POOL, since=15, run=_AGENTS, decides="`pinning`, IPC0523"),
    Row(C.NODE_CONFIG_V2, _MULTI_POOL, since=16, run=_SERVERS[1:], decides="`nodeconfigs.yaml`"),
    Row(C.HELM_PRE_ALLOCATION, _MULTI_POOL, since=17, run=_CHARTS),
    Row(C.MULTI_POOL_TUNNEL, _MULTI_POOL, since=18, run=_AGENTS, decides="IPC0522"),
    Row(C.LOCAL_ROUTES, _MULTI_POOL, since=18, run=_AGENTS, decides="IPC0935"),
    Row(C.ORPHAN_BLOCKS, _MULTI_POOL, since=19, run=_SERVERS[1:]),
    Row(C.EXCHANGED_BLOCKS, _MULTI_POOL, since=19, run=_SERVERS[1:]),
    Row(C.NUMERIC_ALLOCATED, _MULTI_POOL, since=20, run=_SERVERS[1:], decides="`seeds/`"),
    Row(C.EDITED_RANGES, _MULTI_POOL, since=19, run=_SERVERS[1:], decides="`cilium/ippools.yaml`, IPC0538"),
    Row(C.REMOVED_RANGES, _MULTI_POOL, since=18, run=_SERVERS[1:], decides="`cilium/ippools.yaml`, IPC0538"),
    Row(C.IMMUTABLE_MASK, _MULTI_POOL, since=20, run=_SERVERS[1:]),
    Row(C.POD_SELECTORS, _MULTI_POOL, since=19, run=_AGENTS, decides="`ippools.yaml`, IPC0562"),
    Row(C.REQUIRED_MATCH, _MULTI_POOL, since=19),
    Row(C.DRIFT_METRIC, _ALL, since=20, decides="runbooks"),
    Row(
        C.ALLOW_ENDS,
        _MULTI_POOL,
        since=20,
        run=_AGENTS,
        decides="`ippools.yaml`, `seeds/`, `configmap.yaml`, IPC0562",
    ),
    Row(C.EGRESS_INTERFACES, f"{_MULTI_POOL}, {_CRD}", since=19, run=_AGENTS, decides="IPC0934"),
    Row(
        C.SKIP_MASQUERADE,
        _MULTI_POOL,
        since=19,
        run=_AGENTS,
        decides="`configmap.yaml`, `ippools.yaml`, IPC0562, IPC0581",
    ),
    Row(C.IP_MASQ_AGENT, _ALL, run=_AGENTS, decides="`ip-masq-agent.yaml`"),
    Row(C.IP_MASQ_AGENT_IPV6, _ALL, since=14, run=_AGENTS, decides="`ip-masq-agent.yaml`, IPC0581"),
    Row(C.HELM_IP_MASQ_CONFIG, _ALL, since=13, run=_CHARTS, decides="`helm-values.yaml`"),
    Row(C.IPV6_NATIVE_ROUTING, _ALL, since=12, run=_AGENTS, decides="`configmap.yaml`, IPC0581"),
    Row(C.CRD_ADDRESSES, _CRD, run=_AGENTS, decides="`ciliumnodes/`"),
    Row(C.CRD_NATIVE_ONLY, _CRD, inferred=(11, 12, 13), run=_AGENTS, decides="IPC0532"),
    Row(C.CRD_NOT_ANNOUNCED, _CRD, run=_AGENTS, decides="IPC0541, IPC0542"),
    Row(C.TINY_BLOCKS, _ALL_BUT_CRD, since=17, run=_SERVERS, decides="IPC0552, pre-allocation"),
    Row(C.IPV6_BITMAP, f"{_CLUSTER_POOL}, {_MULTI_POOL}", run=_SERVERS, decides="IPC0211"),
    Row(C.METALLB, _ONE_BLOCK, until=16, run=_AGENTS, decides="IPC0541"),
    Row(C.METALLB_CILIUM_NODE, _CLUSTER_POOL, since=12, until=16, run=_AGENTS, decides="IPC0541"),
    Row(C.BGP_CONTROL_PLANE, _ONE_BLOCK, since=12, run=_AGENTS, decides="IPC0542"),
    Row(C.BGP_CILIUM_NODE, _KUBERNETES, since=15, run=_AGENTS, decides="IPC0542"),
    Row(C.BGP_POOL_ADVERTS, _MULTI_POOL, since=15, run=_AGENTS, decides="IPC0542"),
    Row(C.BGP_PEERING_POLICY, _ALL_BUT_CRD, since=12, until=18, run=_AGENTS, decides="IPC0585"),
    Row(C.BGP_ADVERTISEMENT, _ALL_BUT_CRD, since=16, run=_AGENTS, decides="`bgp/`, IPC0585"),
    Row(C.BGP_INTERFACE, _ALL_BUT_CRD, since=19, decides="IPC0586"),
    Row(C.BGP_V2, _ALL_BUT_CRD, since=18, run=_AGENTS, decides="`bgp/`, IPC0585"),
)

SOURCES: Mapping[Capability, str] = {
    C.POD_CIDRS: "pkg/k8s/node.go, ParseNode",
    C.NETWORK_ANNOTATIONS: "pkg/annotation/k8s.go",
    C.ANNOTATIONS_ASKED_FOR: "pkg/k8s/node.go, ParseNode; pkg/defaults/defaults.go",
    C.HELM_ANNOTATE_NODE: "install/kubernetes/cilium/values.yaml, for 1.11 at 1.11.1, 1.11.2 and 1.11.5",
    C.CLUSTER_POOL_LIST: "cluster-pool-ipv4-cidr in operator/flags.go, operator/cmd/flags.go from 1.13, "
    "operator/pkg/ipam/clusterpool.go from 1.20; clusterPoolIPv4PodCIDRList in the chart",
    C.KEPT_POD_CIDRS: "reuseIPNets in pkg/ipam/allocator/podcidr/podcidr.go, "
    "operator/pkg/ipam/allocator/podcidr/podcidr.go from 1.20",
    C.UNDONE_POD_CIDRS: "allocateNode in podcidr.go (as above)",
    C.BYSTANDER: "the switch on ipam in operator/main.go, operator/cmd/root.go from 1.13, "
    "operator/pkg/ipam/clusterpool.go from 1.20",
    C.NODE_GC: "operator/watchers/cilium_node_gc.go from 1.12, nodes-gc-interval in the operator's flags: "
    "unused in 1.11, default 0s in 1.12 and 5m from 1.13",
    C.DO_NOT_GC: "operator/watchers/cilium_node_gc.go",
    C.MULTI_POOL: "PR #25824; pkg/ipam/option/option.go, pkg/ipam/ipam.go (before: unknown IPAM backend); "
    "client/crds/v2alpha1/ciliumpodippools.yaml",
    C.DEFAULT_IP_POOL: "PR #28818; pkg/option/config.go",
    C.NODE_CONFIG_V2: "client/crds/v2alpha1/ciliumnodeconfigs.yaml from 1.13, "
    "client/crds/v2/ciliumnodeconfigs.yaml from 1.16",
    C.HELM_PRE_ALLOCATION: "install/kubernetes/cilium/values.yaml",
    C.MULTI_POOL_TUNNEL: "PR #38483; TunnelingEnabled in daemon/cmd/daemon_main.go up to 1.17; "
    "Documentation/network/concepts/ipam/index.rst",
    C.LOCAL_ROUTES: "PR #40191, issues #32423 and #38102; updateLocalNodeStore in pkg/ipam/multipool.go; "
    "limitations in Documentation/network/concepts/ipam/multi-pool.rst",
    C.ORPHAN_BLOCKS: "PR #42126; pkg/ipam/allocator/multipool/pool_allocator.go, "
    "operator/pkg/ipam/allocator/multipool/pool_allocator.go from 1.20",
    C.EXCHANGED_BLOCKS: "PR #42126; AllocateToNode in pool_allocator.go (as above)",
    C.NUMERIC_ALLOCATED: "slices.Sort of strings in pool_allocator.go (as above); from 1.20 Prefix.Compare",
    C.EDITED_RANGES: "PR #42126; updateCIDRSets, reconcileOrphanCIDRs in pool_allocator.go (as above)",
    C.REMOVED_RANGES: "slices.Delete inside the loop of updateCIDRSets in pool_allocator.go (as above)",
    C.IMMUTABLE_MASK: "client/crds/v2alpha1/ciliumpodippools.yaml; pool_allocator.go (as above)",
    C.POD_SELECTORS: "PR #41688; client/crds/v2alpha1/ciliumpodippools.yaml; GetIPPoolForPod in "
    "pkg/ipam/metadata/manager.go",
    C.REQUIRED_MATCH: "pkg/ipam/metadata/manager.go; pkg/annotation/k8s.go",
    C.DRIFT_METRIC: "pkg/driftchecker; configDriftDetection in the chart. Before PR #45374, the number can "
    "be too high when an agent starts",
    C.ALLOW_ENDS: "client/crds/v2alpha1/ciliumpodippools.yaml; addrsInPrefix in pool_allocator.go; "
    "cidrRangeOpts in pkg/ipam/pool.go",
    C.EGRESS_INTERFACES: "PR #42531; newManager and allEgressMasqueradeCmds in "
    "pkg/datapath/iptables/iptables.go",
    C.SKIP_MASQUERADE: "pkg/ipam/cell/cell.go; allocateNext in pkg/ipam/multipool.go; pkg/annotation/k8s.go",
    C.IP_MASQ_AGENT: "pkg/ipmasq/ipmasq.go; daemon/cmd/daemon.go, which refuses ip-masq-agent without "
    "enable-bpf-masquerade",
    C.IP_MASQ_AGENT_IPV6: "pkg/ipmasq/ipmasq.go; pkg/maps/ipmasq/ipmasq.go",
    C.HELM_IP_MASQ_CONFIG: "install/kubernetes/cilium/templates/cilium-configmap.yaml",
    C.IPV6_NATIVE_ROUTING: "pkg/option/config.go",
    C.CRD_ADDRESSES: "pkg/ipam/crd.go",
    C.CRD_NATIVE_ONLY: "the table of features in Documentation/network/concepts/ipam/index.rst; 1.11 to 1.13 "
    "have no such table",
    C.CRD_NOT_ANNOUNCED: "BGPAnnouncePodCIDR in daemon/cmd/daemon_main.go up to 1.16; "
    "pkg/bgpv1/agent/nodespecer.go in 1.13 and 1.14, controller.go in 1.12; CanAdvertisePodCIDR in "
    "pkg/bgpv1/types/utils.go from 1.15, pkg/bgp/types/utils.go from 1.19",
    C.TINY_BLOCKS: "PR #34618; NewCIDRRange in pkg/ipam/service/ipallocator/allocator.go, in "
    "github.com/cilium/ipam up to 1.13",
    C.IPV6_BITMAP: "clusterSubnetMaxDiff in pkg/ipam/cidrset/cidr_set.go, in github.com/cilium/ipam up to "
    "1.13",
    C.METALLB: "BGPAnnouncePodCIDR in daemon/cmd/daemon_main.go; go.mod, which has no metallb from 1.17 on",
    C.METALLB_CILIUM_NODE: "issue #18852; daemon/cmd/daemon.go, from 1.16 pkg/bgp/speaker/cell.go. In "
    "kubernetes mode, every minor announces the Node's podCIDRs",
    C.BGP_CONTROL_PLANE: "pkg/bgpv1, pkg/bgp from 1.19; CanAdvertisePodCIDR in types/utils.go",
    C.BGP_CILIUM_NODE: "pkg/bgpv1/agent/nodespecer.go up to 1.14; manager/reconciler/pod_cidr.go from 1.15",
    C.BGP_POOL_ADVERTS: "PR #27100; manager/reconciler/pod_ip_pool.go: podIPPoolSelector; an advertisement "
    "of type CiliumPodIPPool from 1.16",
    C.BGP_PEERING_POLICY: "client/crds/v2alpha1/ciliumbgppeeringpolicies.yaml",
    C.BGP_ADVERTISEMENT: "pkg/bgpv1/manager/reconcilerv2 from 1.16 (1.15 contains the CRDs but does "
    "not install them); pkg/bgp from 1.19",
    C.BGP_INTERFACE: "PR #42469; client/crds/v2/ciliumbgpadvertisements.yaml",
    C.BGP_V2: "client/crds/v2/ciliumbgpadvertisements.yaml, which still serves v2alpha1",
}
"""Paths at the tags of `READ_AT`, pull requests or issues."""


class Claim(Struct, frozen=True):
    """An observed behaviour of the kube-apiserver, in Markdown."""

    text: str
    source: str
    decides: str
    """The rules or the rendered files that depend on it."""


APISERVER = "1.35.4"  # the kube-apiserver that was run

APISERVER_TABLE = (  # Nodes, then CIDRs
    Claim(
        "the `podCIDRs` of a Node, once set, cannot be changed, extended or removed: 422",
        "pkg/apis/core/validation, ValidateNodeUpdate",
        "IPC0503",
    ),
    Claim(
        "a Node has at most one CIDR of each family: 422", "pkg/apis/core/validation, ValidateNode", "IPC0505"
    ),
    Claim("applying a Node that does not exist creates it", "server-side apply", "IPC0554"),
    Claim(
        "applying a Node with `metadata.uid` neither creates a Node nor changes a re-created one: 409, 422",
        "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go",
        "`nodes/`, IPC0554",
    ),
    Claim("CIDRs with host bits are accepted, with a warning", "feature StrictIPCIDRValidation", "IPC0201"),
    Claim(
        "from 1.36 on, CIDRs with host bits are refused (1.36.3, 1.37.2)",
        "feature StrictIPCIDRValidation, on by default in 1.36",
        "IPC0201",
    ),
    Claim(
        "ValidatingAdmissionPolicy is served as v1 from 1.30 on (1.30.14, 1.34.4, 1.36.3, 1.37.2)",
        "KEP-3488",
        "`admission/`, IPC0571",
    ),
    Claim(
        "expressions of admission policies have `cidr()` from 1.31 on (1.34.4, 1.36.3, 1.37.2; not 1.30.14)",
        "staging/src/k8s.io/apiserver/pkg/cel/environment/base.go",
        "`admission/`, IPC0571",
    ),
    Claim(
        "MutatingAdmissionPolicy is served as v1 from 1.36 on (1.36.3, 1.37.2); in 1.34 and 1.35 it is "
        "v1beta1 and off by default",
        "KEP-3962",
        "`admission/`, IPC0571",
    ),
)
