"""Cilium's words and those of the pages beside the concepts of ipamc: modes, flags, kinds. Data for `ipamc explain WORD`."""

from __future__ import annotations

from ipamc.report.concept import Concept

OF_CILIUM = (
    Concept(
        "kubernetes",
        ("kubernetes mode", "host scope", "hostscope"),
        """The mode in which agents use the podCIDRs of their Node: one block of each family. ipamc writes them, and
kube-controller-manager must run with --allocate-node-cidrs=false. podCIDRs cannot be changed once they are set.""",
        ("ipamc explain modes", "ipamc explain Cluster.spec.ipam.mode"),
        ("IPC0504", "IPC0554"),
    ),
    Concept(
        "cluster-pool",
        ("cluster-pool mode", "cluster scope", "clusterpool"),
        """The mode in which agents use `spec.ipam.podCIDRs` of their CiliumNode: one block of each family. By itself
Cilium's operator gives these blocks; with ipamc it is a bystander, or adopts: see operator modes.""",
        ("ipamc explain operator modes", "ipamc explain Cluster.spec.ipam.operator"),
        ("IPC0502", "IPC0515"),
    ),
    Concept(
        "multi-pool",
        ("multi-pool mode", "multipool"),
        """The mode with CiliumPodIPPools: a node may have several blocks of several pools, and the operator gives them
out when agents ask for addresses. How far it may choose says `pinning`.""",
        ("ipamc explain pinning", "ipamc explain seeds"),
        ("IPC0521", "IPC0523"),
    ),
    Concept(
        "crd",
        ("crd mode",),
        """The mode in which a CiliumNode lists each address that its pods may have, in `spec.ipam.pool`. ipamc writes the
addresses of the node's blocks, and nobody else gives any.""",
        ("ipamc explain modes", "ipamc explain IPPool.spec.usage.addresses"),
        ("IPC0543",),
    ),
    Concept(
        "block size",
        ("mask size", "masksize"),
        """The prefix length of a node's block: `blockSize: 26` gives 64 addresses. Cilium calls it maskSize or mask size:
ipamc renders it as `maskSize` of a CiliumPodIPPool, and the longest one as cluster-pool-ipv4-mask-size.""",
        ("ipamc explain blockSize", "ipamc explain IPPool.spec.blockSizes"),
        ("IPC0210",),
    ),
    Concept(
        "range",
        ("ranges", "cidrs"),
        """One CIDR of a pool's `cidrs`. Ranges are used in the order in which they are written, and no two pools share an
address. A range in use is extended by a further one, not replaced.""",
        ("ipamc explain IPPool.spec.ipv4.cidrs", "ipamc show CLUSTER --ranges"),
        ("IPC0207", "IPC0208"),
    ),
    Concept(
        "priority",
        (),
        """Of several pools that select a node, the one with the highest `priority` is its first candidate.""",
        ("ipamc explain IPPool.spec.priority", "ipamc why NODE"),
    ),
    Concept(
        "candidate",
        ("candidates", "first candidate"),
        """A pool that selects a node. The first candidate serves it: by priority, then by the number of requirements of
its selector, then by name.""",
        ("ipamc why NODE",),
        ("IPC0302", "IPC0303"),
    ),
    Concept(
        "newcomer",
        ("newcomers", "returning"),
        """A node of the inventory without a block. A compile gives it one: its pin, else the block that it had if that is
still in quarantine (it is returning then), else the first free one of its pools.""",
        ("ipamc why NODE", "ipamc explain quarantine"),
        ("IPC0303",),
    ),
    Concept(
        "planned",
        ("planned node",),
        """A node that is still to come: `planned: true` in the inventory. Its block waits for it, and dumps may lack it.
When it joins, `ipamc import --refresh` brings its uid.""",
        ("ipamc explain NodeInventory.nodes.planned", "ipamc import CLUSTER --refresh dump.json"),
        ("IPC0823", "IPC0828"),
    ),
    Concept(
        "dump",
        ("sysdump", "refresh"),
        """What kubectl prints of a running cluster, as JSON or YAML, or a cilium sysdump. ipamc reads it without
credentials: to import a cluster, to refresh its inventory (nodes.yaml and ciliumnodes.yaml are written again; planned
nodes stay), to audit and to resize.""",
        (
            "ipamc import CLUSTER dump.json",
            "ipamc import CLUSTER --refresh dump.json",
            "ipamc audit CLUSTER dump.json",
        ),
        ("IPC0801", "IPC0822", "IPC0904"),
    ),
    Concept(
        "adopt-pods",
        ("no-pods",),
        """`ipamc lock --adopt-pods NODE` takes over the block that addresses in use tell, where no object of a running
node shows it; `--no-pods` says that the node has none yet. Without one of them such a node is refused.""",
        ("ipamc lock CLUSTER --adopt-pods NODE", "ipamc lock CLUSTER --no-pods NODE"),
        ("IPC0434", "IPC0439"),
    ),
    Concept(
        "greenfield",
        ("new cluster", "brownfield"),
        """A cluster that does not run yet: `ipamc init` writes its files, and its nodes may be planned. One that runs
(brownfield) is imported, and keeps all of its blocks.""",
        ("ipamc init CLUSTER", "ipamc import CLUSTER dump.json"),
    ),
    Concept(
        "trunk",
        ("origin head",),
        """The branch that is applied, as git knows it: origin/HEAD, or the setting ipamc.trunk. A compile takes from it
which blocks were quarantined or given meanwhile, and the merge driver uses it to keep them.""",
        ("ipamc init CLUSTER", "ipamc plan --base origin/main"),
        ("IPC0441",),
    ),
    Concept(
        "merge driver",
        ("merge", "onto"),
        """The program that git calls to merge two versions of a lock: lines of both stay, and of two nodes with one block
the newcomer of the branch gets another one. `ipamc init git` sets it up in a clone.""",
        ("ipamc init git", "ipamc lock --onto origin/main"),
        ("IPC0405",),
    ),
    Concept(
        "stale",
        (),
        """A lock is stale when the inputs want something that it does not have: a newcomer, or a node that left. A compile
writes it; `ipamc compile --check` only says so, with exit code 1. A day that passes makes no lock stale.""",
        ("ipamc compile CLUSTER --check",),
    ),
    Concept(
        "moved",
        ("former",),
        """A quarantined line with `moved` is of a node that has another block now: it does not come back to this one.""",
        ("ipamc explain quarantine", "ipamc explain renumber"),
    ),
    Concept(
        "finding",
        ("findings", "error", "warning", "note"),
        """An error, a warning or a note: a code, a place, what is wrong and what to do. An error refuses: nothing is
written. Each code is explained.""",
        ("ipamc explain IPC0207",),
    ),
    Concept(
        "applied",
        ("applied ref",),
        """The ref refs/ipamc/applied/CLUSTER: the commit that was applied completely. An audit tells by it what is not
applied yet from what was edited by hand.""",
        ("ipamc ci apply CLUSTER", "ipamc audit CLUSTER dump.json --applied REV"),
        ("IPC0903", "IPC0940", "IPC0941"),
    ),
    Concept(
        "wave",
        ("waves",),
        """The nodes that are without pods at a time while a runbook is followed: by a label, or some nodes each.""",
        ("ipamc runbook CLUSTER --by rack",),
    ),
    Concept(
        "agent",
        ("cilium agent", "agents"),
        """Cilium's program on each node. It gives pods addresses out of the node's block, and reads cilium-config and its
block at its start; in most modes another block counts only after a restart, when the node is drained.""",
        ("ipamc explain modes", "ipamc runbook CLUSTER"),
    ),
    Concept(
        "dual-stack",
        ("dualstack", "dual stack", "second family"),
        """IPv4 and IPv6: `ipFamilies: [IPv4, IPv6]`, and pools with ranges of both. A node has a block of each family, and
runs no pods before it has both.""",
        ("ipamc explain Cluster.spec.ipFamilies", "ipamc runbook CLUSTER --change dual-stack"),
    ),
    Concept(
        "helm",
        ("helm values", "managedby"),
        """With `managedBy: helm` the flags come to Cilium by rendered/cilium/helm-values.yaml, as a further file of
values: `helm upgrade … -f`. ipamc never writes Cilium's own objects then. The same is in rendered/cilium/component
for kustomize.""",
        ("ipamc explain Cluster.spec.cilium.managedBy",),
    ),
    Concept(
        "CiliumNode",
        ("ciliumnodes",),
        """Cilium's object for a node. In cluster-pool, multi-pool and crd mode it has the node's blocks in `spec.ipam`. ipamc
renders it for the nodes of the inventory, and reads it as evidence of what a running node has.""",
        ("ipamc explain evidence", "ipamc explain seeds"),
        ("IPC0423", "IPC0922", "IPC0943"),
    ),
    Concept(
        "CiliumPodIPPool",
        ("ciliumpodippools", "pod ip pool"),
        """Cilium's object for a pool in multi-pool mode. ipamc renders it from an IPPool: its ranges without what is
reserved. It is no input: write an IPPool.""",
        ("ipamc explain pinning", "ipamc explain IPPool.spec"),
        ("IPC0523", "IPC0538"),
    ),
    Concept(
        "CiliumNodeConfig",
        ("ciliumnodeconfigs", "ipam-default-ip-pool", "ipam-multi-pool-pre-allocation"),
        """Flags of Cilium for some nodes. In multi-pool mode ipamc writes ipam-default-ip-pool in it, the pool of pods
without an annotation, and with `pinning: node` ipam-multi-pool-pre-allocation, how many addresses an agent asks
for beforehand. Of several that select a node the last name wins.""",
        ("ipamc explain pinning",),
        ("IPC0945",),
    ),
    Concept(
        "cluster-pool-ipv4-cidr",
        ("cluster-pool-ipv6-cidr", "cluster-pool-ipv4-mask-size", "cluster-pool-ipv6-mask-size"),
        """Flags of the operator in cluster-pool mode: the CIDRs of which it gives out blocks, and the prefix length of these
blocks. A bystander reads neither. With `operator: adopt` the list has the `unlisted` pools alone. By hand they come
from pools and `blockSize`.""",
        ("ipamc explain operator modes", "ipamc explain block size"),
        ("IPC0930", "IPC0933"),
    ),
    Concept(
        "cilium-config",
        ("ipam", "enable-ipv4", "enable-ipv6", "annotate-k8s-node", "flags", "flag"),
        """The ConfigMap with Cilium's flags. Of them ipamc writes `ipam` (the mode), enable-ipv4 and enable-ipv6 (from
ipFamilies), annotate-k8s-node (with `patchNodes: annotations`), those of cluster-pool mode, and
auto-create-cilium-pod-ip-pools. Agents and operator read them at their start; a plan says who must restart. The
operator's argument --ipam wins over `ipam`.""",
        ("ipamc explain helm", "ipamc plan CLUSTER"),
        ("IPC0930", "IPC0933"),
    ),
    Concept(
        "auto-create-cilium-pod-ip-pools",
        ("autocreate",),
        """A flag of the operator in multi-pool mode: it creates these CiliumPodIPPools at its start, and never updates them.
ipamc writes the pools there that `autoCreate` of the Cluster names.""",
        ("ipamc explain autoCreate",),
    ),
)
