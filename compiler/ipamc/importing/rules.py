"""Rules of an import: what the dump does not tell, and what a person must decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipamc.importing.managed import Offering
from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, count, error, names, note, warning
from ipamc.model.wording import listing
from ipamc.read.dump.rules import DUMP


def mode_not_ours(at: At, problem: str, known: Iterable[str], managed: Offering | None) -> Diagnostic:
    """IPC0811: the cluster gets its addresses in an IPAM mode that ipamc has."""
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
    """IPC0810: an import knows in which IPAM mode the cluster runs."""
    podcidrs = "" if cilium_nodes else " (kubernetes, where pods have addresses of podCIDRs)"
    return error(
        "IPC0810",
        at,
        f"the dump has {what} ConfigMap cilium-config: the IPAM mode is not known",
        help=f"add cm to the dump: {DUMP}; or name the mode: --mode cluster-pool{podcidrs}{_there(managed)}",
    )


def other_mode(at: At, runs: str, wanted: str) -> Diagnostic:
    """IPC0820: a cluster is imported in the mode in which it runs."""
    return error(
        "IPC0820",
        at,
        f"the cluster runs with ipam: {runs}, and --mode is {wanted}",
        help=f"import it without --mode; then: ipamc runbook CLUSTER --change mode --to {wanted}",
    )


def version_unknown(at: At, *, images: Sequence[str], nodes_alone: bool) -> Diagnostic:
    """IPC0812: an import knows Cilium's version."""
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
    """IPC0813: somebody owns cilium-config."""
    return note(
        "IPC0813",
        at,
        "the dump does not tell who owns cilium-config: managedBy: helm is written",
        help="if it is not Helm, write managedBy: kustomize or none in cluster.yaml",
    )


def outside_ranges(at: At, blocks: Sequence[Block], nodes: Sequence[str], pool: str) -> Diagnostic:
    """IPC0814: blocks in use are in the ranges that the cluster was configured with."""
    return warning(
        "IPC0814",
        at,
        f"{count(len(nodes), 'node has blocks', 'nodes have blocks')} outside the configured ranges: {names(map(str, blocks))}",
        help=f"the pool {pool} keeps them; later: ipamc lock CLUSTER --renumber pool/{pool}",
    )


def ranges_derived(at: At, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0815: the ranges of pools are known."""
    return warning(
        "IPC0815",
        at,
        f"no flag and no pool says the ranges: derived from the blocks in use: {listing(map(str, ranges))}",
        help="write the ranges that are planned into ippools.yaml",
    )


def operator_allocates(at: At) -> Diagnostic:
    """IPC0816: only ipamc gives blocks in cluster-pool mode, or the operator has a pool of its own."""
    return note(
        "IPC0816",
        at,
        "the operator hands out blocks by itself: with operator: bystander it must stop before the next node joins",
        help="roll out operator.extraArgs of rendered/cilium/helm-values.yaml first; or import with --operator adopt, and it goes on",
    )


def leftovers(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0817: podCIDRs of Nodes are the blocks of their pods, or nobody reads them."""
    return note(
        "IPC0817",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} spec.podCIDRs that are not the blocks of {'its' if len(nodes) == 1 else 'their'} pods: {names(nodes)}",
        help=f"{managed.name} sets them, and nothing of Cilium reads them in this mode"
        if managed
        else "run kube-controller-manager with --allocate-node-cidrs=false; see ipamc audit",
    )


def provider_gives(at: At, managed: Offering) -> Diagnostic:
    """IPC0829: in kubernetes mode ipamc gives the blocks, and no managed control plane."""
    return warning(
        "IPC0829",
        at,
        f"this is {managed.name}, whose control plane gives Nodes their podCIDRs: ipamc gives none here",
        help=managed.way,
    )


def pools_unknown(at: At, pools: Sequence[str]) -> Diagnostic:
    """IPC0830: a dump of multi-pool mode has the pools that nodes have blocks of."""
    return error(
        "IPC0830",
        at,
        f"the dump has no CiliumPodIPPool, and nodes have blocks of {count(len(pools), 'pool')}: {names(pools)}",
        help=f"make a dump with all kinds: {DUMP}",
    )


def without_block(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0818: every node has its blocks when a cluster is imported."""
    return note(
        "IPC0818",
        at,
        f"{count(len(nodes), 'node waits', 'nodes wait')} for a block: {names(nodes)}",
        help=f"{managed.name} gives it: refresh then"
        if managed and managed.sets_pod_cidrs
        else "the lock gives them blocks, which an apply brings; if the operator still gives blocks, refresh first",
    )


def inside_pool(at: At, block: Block, why: str, pool: str, inside: Block) -> Diagnostic:
    """IPC0819: ranges of pods and of everything else are apart."""
    return warning(
        "IPC0819",
        at,
        f"{inside}, a range of pool {pool}, has addresses of {why}: {block}",
        help="they are reserved in ippools.yaml; if a node has a block over them, a compile says so: renumber it",
    )


def other_cluster(at: At, name: str, known: Sequence[str], seen: Sequence[str]) -> Diagnostic:
    """IPC0821: a refresh reads a dump of the same cluster."""
    return error(
        "IPC0821",
        at,
        f"this is no dump of {name}: it has none of its nodes ({names(known)}), but {names(seen)}",
        help=f"use a dump of {name}; if the cluster was built again, add --rebuilt",
    )


def older_dump(at: At, newest: str, since: str, path: str) -> Diagnostic:
    """IPC0822: a refresh reads a dump that is newer than the inventory."""
    return error(
        "IPC0822",
        at,
        f"the dump is older than the inventory: its latest time is {newest}, and {path} was committed {since}",
        help=f"make a new one: {DUMP}",
    )


def elsewhere(at: At, path: str, what: str, back: str) -> Diagnostic:
    """IPC0823: a refresh writes inventories and ciliumnodes.yaml, and no other file has what is in them."""
    return error(
        "IPC0823",
        at,
        f"{what} in a file that a refresh does not write",
        help=f"take what is in {path} of nodes that exist out of it: the refresh brings it back in {back}",
    )


def joined(nodes: Sequence[str]) -> str:
    """Return what IPC0823 says of planned nodes that a dump shows."""
    return f"{count(len(nodes), 'planned node that has', 'planned nodes that have')} joined ({names(nodes)})"


def there_already(at: At, path: str) -> Diagnostic:
    """IPC0824: an import starts a cluster; it changes no file that people may have edited."""
    return error(
        "IPC0824",
        at,
        f"{path} is there already, and has other contents than this import would write",
        help="ipamc import CLUSTER --refresh FILE brings the inventory up to date; to start again, delete the folder",
    )


def no_cilium_nodes(at: At, path: str, number: int) -> Diagnostic:
    """IPC0825: a refresh reads a dump with the kinds that the evidence is made of."""
    return error(
        "IPC0825",
        at,
        f"the dump has no CiliumNodes, and {path} has {number:,}",
        help="make a dump with ciliumnodes; its role must allow to list them",
    )


def never_seen(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0828: a node that is still to come is planned, so that a refresh keeps it."""
    return warning(
        "IPC0828",
        at,
        f"{count(len(nodes), 'node')} of {path} without a uid, and not in the dump, {'leaves' if len(nodes) == 1 else 'leave'} the inventory: {names(nodes)}",
        help="if it is still to come, write it again with planned: true, which a refresh keeps",
    )


def cluster_cidr_unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0826: ClusterCIDRs can be read, and a dump has at most 1,000."""
    return error(
        "IPC0826", at, f"{what}: {problem}", help="correct it in the cluster, and make the dump again"
    )


def cluster_cidrs_overlap(at: At, name: str, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0827: no two pools share an address."""
    return warning(
        "IPC0827",
        at,
        f"{listing(map(str, ranges))} of ClusterCIDR {name} overlaps one that comes before it",
        help="look at the ranges in ippools.yaml before the first compile is merged",
    )
