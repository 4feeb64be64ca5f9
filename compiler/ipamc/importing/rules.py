"""Rules of an import: what the dump does not tell, and what a person must decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, count, error, names, note, warning
from ipamc.model.wording import listing, shown
from ipamc.read.dump.rules import DUMP


def mode_not_ours(at: At, mode: str, known: Iterable[str]) -> Diagnostic:
    """IPC0811: the cluster gets its addresses in an IPAM mode that ipamc has.

    In the modes of clouds the cloud gives addresses, and `delegated-plugin` is somebody else's program:
    nothing of it can be planned here. `cluster-pool-v2beta` is gone since Cilium 1.15.
    """
    return error(
        "IPC0811",
        at,
        f"cilium-config has ipam: {shown(mode)}, in which ipamc plans nothing",
        help=f"its modes are {listing(known)}; --mode MODE prepares a move to one of them",
    )


def mode_unknown(at: At) -> Diagnostic:
    """IPC0810: an import knows in which IPAM mode the cluster runs.

    ConfigMap cilium-config says it. CiliumNodes without it may be of any mode, and the same fields mean
    something else in each of them.
    """
    return error(
        "IPC0810",
        at,
        "the dump has CiliumNodes, and no ConfigMap cilium-config: the IPAM mode is not known",
        help="add cm to the dump: kubectl get cm -A -o json; or name the mode: --mode cluster-pool",
    )


def other_mode(at: At, runs: str, wanted: str) -> Diagnostic:
    """IPC0820: a cluster is imported in the mode in which it runs.

    Cilium uses the blocks as this mode has them. A change of mode is a change of its own, with
    steps for each node.
    """
    return error(
        "IPC0820",
        at,
        f"the cluster runs with ipam: {runs}, and --mode is {wanted}",
        help="import it without --mode; then: ipamc runbook CLUSTER --change mode",
    )


def version_unknown(at: At, *, nodes_alone: bool) -> Diagnostic:
    """IPC0812: an import knows Cilium's version.

    What is rendered depends on the lowest minor that runs. The images of Cilium's pods tell it. A dump of Nodes
    alone tells neither the version nor the mode nor, in most modes, the blocks.
    """
    whole = f"if Cilium runs there, make a dump with all kinds: {DUMP}; else " if nodes_alone else ""
    return error(
        "IPC0812",
        at,
        "the dump does not tell which Cilium runs: it has no pods of Cilium",
        help=f"{whole}name the lowest minor that runs, or that you will install: --cilium-version 1.18",
    )


def owner_unknown(at: At) -> Diagnostic:
    """IPC0813: somebody owns cilium-config.

    A release of Helm leaves its name in the ConfigMap. Without it, `managedBy: helm` is written, because then
    ipamc applies no flags: they are in cilium/helm-values.yaml for review.
    """
    return note(
        "IPC0813",
        at,
        "the dump does not tell who owns cilium-config: managedBy: helm is written",
        help="if it is not Helm, write managedBy: kustomize or none in cluster.yaml",
    )


def outside_ranges(at: At, blocks: Sequence[Block], nodes: Sequence[str], pool: str) -> Diagnostic:
    """IPC0814: blocks in use are in the ranges that the cluster was configured with.

    Ranges were changed after these blocks were given out, and Cilium never takes a block back. They stay
    where they are, in a pool of their own that is disabled: nobody else gets them, and no new node gets one.
    """
    return warning(
        "IPC0814",
        at,
        f"{count(len(nodes), 'node has blocks', 'nodes have blocks')} outside the configured ranges: {names(map(str, blocks))}",
        help=f"the pool {pool} keeps them; later: ipamc lock --renumber pool/{pool}",
    )


def ranges_derived(at: At, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0815: the ranges of pools are known.

    Where no pool object and no flag says them, they are derived: the fewest CIDRs around the blocks in use
    that are not mostly empty. Write the CIDR that was planned, before new nodes need more.
    """
    return warning(
        "IPC0815",
        at,
        f"no flag and no pool says the ranges: derived from the blocks in use: {listing(map(str, ranges))}",
        help="write the ranges that are planned into ippools.yaml",
    )


def operator_allocates(at: At) -> Diagnostic:
    """IPC0816: only ipamc gives blocks in cluster-pool mode, or the operator has a pool of its own.

    The operator of this cluster hands out blocks by itself. With `operator: bystander`, which is written, it
    must run with --ipam=kubernetes before ipamc gives a new node its block: else both give one block away.
    """
    return note(
        "IPC0816",
        at,
        "the operator hands out blocks by itself: with operator: bystander it must stop before the next node joins",
        help="roll out operator.extraArgs of rendered/cilium/helm-values.yaml first; or import with --operator adopt, and it goes on",
    )


def leftovers(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0817: podCIDRs of Nodes are the blocks of their pods, or nobody reads them.

    kube-controller-manager set them; Cilium does not use them in this mode. A BGP speaker that announces
    podCIDRs of Nodes announces the wrong routes.
    """
    return note(
        "IPC0817",
        at,
        f"{count(len(nodes), 'node has', 'nodes have')} spec.podCIDRs that are not its blocks: {names(nodes)}",
        help="run kube-controller-manager with --allocate-node-cidrs=false; see ipamc audit",
    )


def without_block(at: At, nodes: Sequence[str]) -> Diagnostic:
    """IPC0818: every node has its blocks when a cluster is imported.

    These have none, or not of every family: the next compile gives them some.
    """
    return note(
        "IPC0818",
        at,
        f"{count(len(nodes), 'node waits', 'nodes wait')} for a block: {names(nodes)}",
        help="the next compile places them; if the operator still gives blocks, refresh first",
    )


def inside_pool(at: At, block: Block, why: str, pool: str, inside: Block) -> Diagnostic:
    """IPC0819: ranges of pods and of everything else are apart.

    Addresses of the outside world are in a range of pods: pods of such addresses cannot be reached, or take
    what is another's. They are written as `reserved`, so that no new block has them.
    """
    return warning(
        "IPC0819",
        at,
        f"{inside}, a range of pool {pool}, has addresses of {why}: {block}",
        help="they are reserved in ippools.yaml; blocks over them should be renumbered",
    )


def other_cluster(at: At, name: str, known: Sequence[str], seen: Sequence[str]) -> Diagnostic:
    """IPC0821: a refresh reads a dump of the same cluster.

    A node keeps its uid as long as it exists. Where no uid of the inventory is in the dump, it is another
    cluster, or this one was built again.
    """
    return error(
        "IPC0821",
        at,
        f"this is no dump of {name}: it has none of its nodes ({names(known)}), but {names(seen)}",
        help=f"use a dump of {name}; if the cluster was built again, add --rebuilt",
    )


def older_dump(at: At, newest: str, since: str, path: str) -> Diagnostic:
    """IPC0822: a refresh reads a dump that is newer than the inventory.

    An older one would bring back nodes that left, and uids of nodes that were re-created. The time of a dump
    is the latest one that an object in it tells, the inventory's is that of its last commit.
    """
    return error(
        "IPC0822",
        at,
        f"the dump is older than the inventory: its latest time is {newest}, and {path} was committed {since}",
        help="make a new dump",
    )


def elsewhere(at: At, path: str, what: str) -> Diagnostic:
    """IPC0823: a refresh writes nodes.yaml and ciliumnodes.yaml, and no other file has what is in them.

    A node in another file would be in the folder twice, or would stay there after it left. Planned nodes may
    be in any file until they have joined.
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

    What changes later in the running cluster comes with `--refresh`, which writes the inventory alone.
    """
    return error(
        "IPC0824",
        at,
        f"{path} is there already, and has other contents than this import would write",
        help="import --refresh brings the inventory up to date; to start again, delete the folder",
    )


def no_cilium_nodes(at: At, path: str, number: int) -> Diagnostic:
    """IPC0825: a refresh reads a dump with the kinds that the evidence is made of.

    A dump of Nodes alone would remove what CiliumNodes show, and a compile could give away a block that the
    operator gave out.
    """
    return error(
        "IPC0825",
        at,
        f"the dump has no CiliumNodes, and {path} has {number:,}",
        help="make a dump with ciliumnodes; its role must allow to list them",
    )


def cluster_cidr_unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0826: ClusterCIDRs can be read, and a dump has at most 1,000.

    The validator that refuses wrong host bits is called by no webhook, so the apiserver takes them. Each is
    compared with each other one.
    """
    return error(
        "IPC0826", at, f"{what}: {problem}", help="correct it in the cluster, and make the dump again"
    )


def cluster_cidrs_overlap(at: At, name: str, ranges: Sequence[Block]) -> Diagnostic:
    """IPC0827: no two pools share an address.

    node-ipam-controller lets ClusterCIDRs overlap, and compares every block with all others. Here the one
    that comes first for a node keeps what they share.
    """
    return warning(
        "IPC0827",
        at,
        f"{listing(map(str, ranges))} of ClusterCIDR {name} overlaps one that comes before it",
        help="look at the ranges in ippools.yaml before the first compile is merged",
    )
