"""Rules of an import: what the dump does not tell, and what a person must decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipamc.importing.managed import Offering
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, count, error, names, note, warning
from ipamc.model.wording import listing
from ipamc.read.dump.rules import DUMP


def mode_not_ours(at: At, problem: str, known: Iterable[str], managed: Offering | None) -> Diagnostic:
    """IPC0811: the cluster gets its addresses in an IPAM mode that ipamc has.

    In the modes of clouds (eni, azure, alibabacloud) the cloud gives addresses, and `delegated-plugin` is
    somebody else's program, as in Azure CNI powered by Cilium; so is another plugin before Cilium
    (`cni-chaining-mode`). `cluster-pool-v2beta` is gone since Cilium 1.15.

    Why: nothing of such a mode can be planned here: blocks of ipamc would be used by nobody, and the
    addresses in use would not be known to it.

    Run: leave the cluster to its cloud. To prepare a new cluster, or a move to a mode of ipamc: `ipamc
    import CLUSTER dump.json --mode cluster-pool`. It writes the nodes; add a pool in ippools.yaml, and
    `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0811",
        at,
        f"cilium-config has {problem}",
        help=f"its modes are {listing(known)}; --mode MODE prepares a move to one of them{_there(managed)}",
    )


def giver(mode: str) -> str:
    """Return who gives pods their addresses in a mode of a cloud, behind other words."""
    givers = {
        "eni": "AWS, of VPC subnets,",
        "azure": "Azure, of virtual networks,",
        "alibabacloud": "Alibaba Cloud, of VPC subnets,",
        "delegated-plugin": "another IPAM plugin",
    }
    return f": {givers[mode]} gives pods their addresses" if mode in givers else ""


def _there(managed: Offering | None) -> str:
    """Return what can be done in a managed Kubernetes, behind other words of a help."""
    return f"; this is {managed.name}: {managed.way}" if managed else ""


def mode_unknown(at: At, what: str, *, cilium_nodes: bool, managed: Offering | None) -> Diagnostic:
    """IPC0810: an import knows in which IPAM mode the cluster runs.

    ConfigMap cilium-config says it by its key `ipam`, and ClusterCIDRs do. Nodes alone do not: kube-controller-manager sets
    their podCIDRs in every mode. Where Cilium is not installed yet, nothing says it.

    Why: the same fields mean something else in each mode: nodes would be imported without their blocks, or
    with those of Node podCIDRs that nobody uses.

    Run: add ConfigMaps to the dump: `cm` in the list of kinds, and a role that may list them in Cilium's
    namespace. If you know the mode: `ipamc import CLUSTER dump.json --mode cluster-pool --cilium-version
    1.18`. With `--mode kubernetes` the podCIDRs of Nodes are the blocks.
    """
    podcidrs = "" if cilium_nodes else " (kubernetes, where pods have addresses of podCIDRs)"
    return error(
        "IPC0810",
        at,
        f"the dump has {what} ConfigMap cilium-config: the IPAM mode is not known",
        help=f"add cm to the dump: {DUMP}; or name the mode: --mode cluster-pool{podcidrs}{_there(managed)}",
    )


def other_mode(at: At, runs: str, wanted: str) -> Diagnostic:
    """IPC0820: a cluster is imported in the mode in which it runs.

    A change of mode is a change of its own, with steps for each node.

    Why: Cilium uses the blocks as this mode has them: in cluster-pool mode those of `podCIDRs`, in
    multi-pool mode those of `pools.allocated`. Imported in another mode, nodes would be without their
    blocks.

    Run: `ipamc import CLUSTER dump.json` without `--mode`, and commit. Then `ipamc runbook CLUSTER --change
    mode --to multi-pool` has the steps.
    """
    return error(
        "IPC0820",
        at,
        f"the cluster runs with ipam: {runs}, and --mode is {wanted}",
        help=f"import it without --mode; then: ipamc runbook CLUSTER --change mode --to {wanted}",
    )


def version_unknown(at: At, *, images: Sequence[str], nodes_alone: bool) -> Diagnostic:
    """IPC0812: an import knows Cilium's version.

    The images of Cilium's pods, DaemonSet and Deployment tell it by their tags, else their labels
    `app.kubernetes.io/version` and `helm.sh/chart`. An image with a digest alone does not. A dump of Nodes
    alone tells neither the version nor the mode nor, in most modes, the blocks.

    Why: what is rendered depends on the lowest minor that runs: a key, the name of an annotation, the
    version of an API. For a guess that is too new, an older agent reads nothing.

    Run: make the dump with `pods` in the list of kinds. Or name the lowest minor that runs, or that you
    will install: `ipamc import CLUSTER dump.json --cilium-version 1.18`.
    """
    if images:
        digests = all("@" in image for image in images)
        which = names(image.partition("@")[0] for image in images)
        what = (
            f"its pods run images that only have a digest: {which}"
            if digests
            else f"its images name no version: {which}"
        )
        ask = "kubectl -n kube-system exec ds/cilium -c cilium-agent -- cilium-agent --version tells it; "
    else:
        what = "it has no pods of Cilium"
        ask = f"if Cilium runs there, make a dump with all kinds: {DUMP}; else " if nodes_alone else ""
    return error(
        "IPC0812",
        at,
        f"the dump does not tell which Cilium runs: {what}",
        help=f"{ask}name the lowest minor that runs, or that you will install: --cilium-version 1.18",
    )


def owner_unknown(at: At) -> Diagnostic:
    """IPC0813: somebody owns cilium-config.

    A release of Helm leaves its name in the ConfigMap. Without it, `managedBy: helm` is written.

    Why: two owners of one ConfigMap undo each other's changes. With `helm` ipamc applies no flags: they are
    in rendered/cilium/helm-values.yaml, for review, until somebody rolls them out.

    Run: if it is Helm, nothing; `ipamc import CLUSTER dump.json --managed-by helm` says nothing of it. If
    it is not, write `managedBy: kustomize` or `none` in cluster.yaml, and `ipamc compile CLUSTER`.
    """
    return note(
        "IPC0813",
        at,
        "the dump does not tell who owns cilium-config: managedBy: helm is written",
        help="if it is not Helm, write managedBy: kustomize or none in cluster.yaml",
    )


def outside_ranges(at: At, blocks: Sequence[Block], nodes: Sequence[str], pool: str) -> Diagnostic:
    """IPC0814: blocks in use are in the ranges that the cluster was configured with.

    Ranges were changed after these blocks were given out, and Cilium never takes a block back.

    Why: pods use these addresses. They stay where they are, in a pool of their own, `outside`, that is
    disabled: nobody else gets them, and no new node gets one.

    Run: commit it as it is. If the range is really to be left: `ipamc lock CLUSTER --renumber
    pool/outside`, then the steps of `ipamc runbook CLUSTER`. Else give it a name of yours, and write the
    whole range.
    """
    return warning(
        "IPC0814",
        at,
        f"{count(len(nodes), 'node has blocks', 'nodes have blocks')} outside the configured ranges: {names(map(str, blocks))}",
        help=f"the pool {pool} keeps them; later: ipamc lock CLUSTER --renumber pool/{pool}",
    )


def ranges_derived(at: At, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0815: the ranges of pools are known.

    Where no pool object and no flag says them, they are derived: the fewest CIDRs around the blocks in use
    that are not mostly empty.

    Why: the CIDR that was planned is larger, as a rule: without it the pool is soon full (IPC0215), and
    routers and firewalls know another one.

    Run: write the planned CIDR into clusters/CLUSTER/ippools.yaml before new nodes need more, then `ipamc
    compile CLUSTER`. If the dump lacks cilium-config, make it again with `cm` in the list of kinds, and
    import again.
    """
    return warning(
        "IPC0815",
        at,
        f"no flag and no pool says the ranges: derived from the blocks in use: {listing(map(str, ranges))}",
        help="write the ranges that are planned into ippools.yaml",
    )


def operator_allocates(at: At) -> Diagnostic:
    """IPC0816: only ipamc gives blocks in cluster-pool mode, or the operator has a pool of its own.

    With `operator: bystander`, which is written, it must run with `--ipam=kubernetes` before ipamc gives a
    new node its block.

    Why: the operator of this cluster hands out blocks by itself. As long as it does, a node that joins gets
    one from it, which the lock may give to somebody else.

    Run: roll out `operator.extraArgs` of rendered/cilium/helm-values.yaml first, then make a dump, and
    `ipamc import CLUSTER --refresh dump.json`. If the operator is to go on, with a pool of its own: `ipamc
    import CLUSTER dump.json --operator adopt`, into a folder that is not there yet.
    """
    return note(
        "IPC0816",
        at,
        "the operator hands out blocks by itself: with operator: bystander it must stop before the next node joins",
        help="roll out operator.extraArgs of rendered/cilium/helm-values.yaml first; or import with --operator adopt, and it goes on",
    )


def leftovers(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0817: podCIDRs of Nodes are the blocks of their pods, or nobody reads them.

    kube-controller-manager set them; Cilium does not use them in this mode. In a managed Kubernetes the
    provider sets them, and nobody else can end it.

    Why: a BGP speaker that announces podCIDRs of Nodes announces routes to pods that are not there. When
    its range is used up, new Nodes show an event, and nothing else.

    Run: set `--allocate-node-cidrs=false` for kube-controller-manager, where you run it. Those that are
    there stay: the field is immutable. `ipamc audit CLUSTER dump.json` says later who reads them (IPC0951).
    """
    return note(
        "IPC0817",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} spec.podCIDRs that are not the blocks of {'its' if len(nodes) == 1 else 'their'} pods: {names(nodes)}",
        help=f"{managed.name} sets them, and nothing of Cilium reads them in this mode"
        if managed
        else "run kube-controller-manager with --allocate-node-cidrs=false; see ipamc audit",
    )


def provider_gives(at: At, managed: Offering) -> Diagnostic:
    """IPC0829: in kubernetes mode ipamc gives the blocks, and no managed control plane.

    GKE, AKS and others set the podCIDRs of Nodes themselves, and nobody reaches the flags of their
    kube-controller-manager. The nodes keep their blocks, and the provider goes on to give them out of
    these ranges. `disabled: true` of their pools means that ipamc gives none of them to a node that waits
    (`unmatchedNodes: skip`).

    Why: podCIDRs are immutable. A block of the lock that the provider did not give would never reach its
    node.

    Run: `ipamc import CLUSTER --refresh dump.json` brings new nodes with the provider's blocks; show, which
    and audit work. Where ipamc is to give blocks, run Cilium in cluster-pool or multi-pool mode, if the
    offering lets you.
    """
    return warning(
        "IPC0829",
        at,
        f"this is {managed.name}, whose control plane gives Nodes their podCIDRs: ipamc gives none here",
        help=managed.way,
    )


def without_block(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0818: every node has its blocks when a cluster is imported.

    These have none, or not of every family: the next compile gives them some.

    Why: a node that just joined, as a rule. Where something else gives blocks, too (IPC0816), the node may
    have got another one in the meantime: then the lock and the cluster have two.

    Run: where ipamc alone gives blocks: `ipamc compile CLUSTER`, and apply. Else make a new dump first:
    `ipamc import CLUSTER --refresh dump.json`, then `ipamc compile CLUSTER`.
    """
    return note(
        "IPC0818",
        at,
        f"{count(len(nodes), 'node waits', 'nodes wait')} for a block: {names(nodes)}",
        help=f"{managed.name} gives it: refresh then"
        if managed and managed.sets_pod_cidrs
        else "the lock gives them blocks, which an apply brings; if the operator still gives blocks, refresh first",
    )


def inside_pool(at: At, block: Block, why: str, pool: str, inside: Block) -> Diagnostic:
    """IPC0819: ranges of pods and of everything else are apart.

    The service range, load balancers and addresses of nodes are looked at. What is in a range of pods is
    written as `reserved`, so that no new block has it.

    Why: pods of such addresses cannot be reached, or take what is another's: a Service and a pod with one
    address.

    Run: look at `reserved` in ippools.yaml, then `ipamc compile CLUSTER`. A node that has a block over
    these addresses gets another one with `ipamc lock CLUSTER --renumber NODE`.
    """
    return warning(
        "IPC0819",
        at,
        f"{inside}, a range of pool {pool}, has addresses of {why}: {block}",
        help="they are reserved in ippools.yaml; if a node has a block over them, a compile says so: renumber it",
    )


def other_cluster(at: At, name: str, known: Sequence[str], seen: Sequence[str]) -> Diagnostic:
    """IPC0821: a refresh reads a dump of the same cluster.

    A node keeps its uid as long as it exists. Where no uid of the inventory is in the dump, it is another
    cluster, or this one was built again. Without uids, names are compared.

    Why: all nodes would leave the inventory, and all blocks would go into quarantine.

    Run: make the dump with the context of this cluster (`kubectl config current-context`). If the cluster
    was built again: `ipamc import CLUSTER --refresh dump.json --rebuilt`, then `ipamc compile CLUSTER`.
    """
    return error(
        "IPC0821",
        at,
        f"this is no dump of {name}: it has none of its nodes ({names(known)}), but {names(seen)}",
        help=f"use a dump of {name}; if the cluster was built again, add --rebuilt",
    )


def older_dump(at: At, newest: str, since: str, path: str) -> Diagnostic:
    """IPC0822: a refresh reads a dump that is newer than the inventory.

    The time of a dump is the latest one that an object in it tells, the inventory's is that of its last
    commit; ten minutes are let go.

    Why: an older dump would bring back nodes that left, whose blocks may be others' by now, and uids of
    nodes that were created again, which an apply refuses.

    Run: make the dump again with the `kubectl` command of the finding, then `ipamc import CLUSTER --refresh
    dump.json`.
    """
    return error(
        "IPC0822",
        at,
        f"the dump is older than the inventory: its latest time is {newest}, and {path} was committed {since}",
        help=f"make a new one: {DUMP}",
    )


def elsewhere(at: At, path: str, what: str) -> Diagnostic:
    """IPC0823: a refresh writes nodes.yaml and ciliumnodes.yaml, and no other file has what is in them.

    A refresh writes nodes.yaml and ciliumnodes.yaml. Planned nodes may be in any file until they have
    joined.

    Why: a node in another file would be in the folder twice, which a compile refuses (IPC0106), or would
    stay there after it left.

    Run: take the nodes that exist out of the other file, or delete it; then `ipamc import CLUSTER --refresh
    dump.json`, which brings them back in nodes.yaml. Write `planned: true` for those that are still to
    join.
    """
    return error(
        "IPC0823",
        at,
        f"{what} in a file that a refresh does not write",
        help=f"delete {path}, or what is in it of nodes that exist: the refresh brings it back in nodes.yaml",
    )


def joined(nodes: Sequence[str]) -> str:
    """Return what IPC0823 says of planned nodes that a dump shows."""
    return f"{count(len(nodes), 'planned node that has', 'planned nodes that have')} joined ({names(nodes)})"


def there_already(at: At, path: str) -> Diagnostic:
    """IPC0824: an import starts a cluster; it changes no file that people may have edited.

    An import writes cluster.yaml, ippools.yaml, nodes.yaml and ciliumnodes.yaml. Files with the same
    contents are left as they are.

    Why: people may have edited these files: a pool that was renamed, or a range that was added, would be
    gone, and the blocks of its nodes with it.

    Run: `ipamc import CLUSTER --refresh dump.json` writes the inventory alone, and is what a running
    cluster needs. To start again, delete the folder, as long as nothing of it was applied.
    """
    return error(
        "IPC0824",
        at,
        f"{path} is there already, and has other contents than this import would write",
        help="ipamc import CLUSTER --refresh FILE brings the inventory up to date; to start again, delete the folder",
    )


def no_cilium_nodes(at: At, path: str, number: int) -> Diagnostic:
    """IPC0825: a refresh reads a dump with the kinds that the evidence is made of.

    Without the kind in the list, or with a role that may not list it, the dump has no CiliumNodes.

    Why: a refresh would remove what CiliumNodes show, and a compile could give away a block that the
    operator gave out.

    Run: make the dump again with `ciliumnodes` in the list of kinds; `ipamc ci rbac` prints a role that may
    list them. Then `ipamc import CLUSTER --refresh dump.json`.
    """
    return error(
        "IPC0825",
        at,
        f"the dump has no CiliumNodes, and {path} has {number:,}",
        help="make a dump with ciliumnodes; its role must allow to list them",
    )


def never_seen(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0828: a node that is still to come is planned, so that a refresh keeps it.

    A node without a uid was written by hand, and the dump does not have it.

    Why: a refresh writes nodes.yaml from the dump, and keeps planned nodes alone. The next compile takes the
    node for one that left, and puts its block into quarantine.

    Run: write the node again with `planned: true` if it is still to come, then `ipamc compile CLUSTER`. A
    node that was removed for good needs nothing.
    """
    return warning(
        "IPC0828",
        at,
        f"{count(len(nodes), 'node')} of {path} without a uid, and not in the dump, {'leaves' if len(nodes) == 1 else 'leave'} the inventory: {names(nodes)}",
        help="if it is still to come, write it again with planned: true, which a refresh keeps",
    )


def cluster_cidr_unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0826: ClusterCIDRs can be read, and a dump has at most 1,000.

    A dump has at most 1,000 of them, because each is compared with each other one.

    Why: the validator that refuses wrong host bits is called by no webhook, so the apiserver takes them.
    The pool would be left out, and the blocks of its nodes would be in no range.

    Run: the object is immutable: delete it and create it again with a CIDR without host bits, make a dump,
    and `ipamc import CLUSTER dump.json`. Or write the pool into ippools.yaml by hand.
    """
    return error(
        "IPC0826", at, f"{what}: {problem}", help="correct it in the cluster, and make the dump again"
    )


def cluster_cidrs_overlap(at: At, name: str, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0827: no two pools share an address.

    The one that comes first for a node keeps what they share; the other one is written without it.

    Why: node-ipam-controller lets ClusterCIDRs overlap, and compares every block with all others. Pools
    that share an address would give it to two nodes, so a compile refuses them (IPC0207).

    Run: look at the ranges in ippools.yaml before the first compile is merged: write them as they were
    planned, then `ipamc compile CLUSTER`.
    """
    return warning(
        "IPC0827",
        at,
        f"{listing(map(str, ranges))} of ClusterCIDR {name} overlaps one that comes before it",
        help="look at the ranges in ippools.yaml before the first compile is merged",
    )
