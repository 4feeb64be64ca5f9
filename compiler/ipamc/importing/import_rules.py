"""Rules of an import: facts that the dump lacks, and what a person must decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ipamc.importing.draft import DraftRange, PoolRange
from ipamc.model.address_sets import outermost
from ipamc.model.cidr import Block, around
from ipamc.model.diagnostics import At, Diagnostic, Related, count, error, names, note, several, warning
from ipamc.model.dump import Dump, Scalar, SeenObject
from ipamc.model.node import Node
from ipamc.model.wording import listing, shown, typed
from ipamc.read.dump.machines import COMMAND as MACHINES
from ipamc.read.dump.machines import Machine
from ipamc.read.dump.programs import Offering
from ipamc.read.rules import DUMP

GIVERS = {
    "eni": "AWS gives pods addresses of VPC subnets",
    "azure": "Azure gives pods addresses of virtual networks",
    "alibabacloud": "Alibaba Cloud gives pods addresses of VPC subnets",
    "delegated-plugin": "another IPAM plugin gives pods their addresses",
}
"""The source of pods' addresses in the modes of clouds."""


def mode_not_ours(at: At, problem: str, known: Iterable[str], managed: Offering | None) -> Diagnostic:
    """IPC0811: the cluster gets its addresses in an IPAM mode that ipamc has."""
    way_out = f"its modes are {listing(known)}; --mode MODE prepares a move to one of them{_advice(managed)}"
    return error("IPC0811", at, f"cilium-config has {problem}", help=way_out)


def _advice(managed: Offering | None) -> str:
    """Return what can be done in a managed Kubernetes, as the end of a help."""
    return f"; this is {managed.name}: {managed.way}" if managed else ""


def mode_unknown(at: At, what: str, *, cilium_nodes: bool, managed: Offering | None) -> Diagnostic:
    """IPC0810: an import knows in which IPAM mode the cluster runs."""
    text = f"the dump has {what} ConfigMap cilium-config: the IPAM mode is not known"
    others = "" if cilium_nodes else " (kubernetes, where pods have addresses of podCIDRs)"
    way_out = f"add cm to the dump: {DUMP}; or name the mode: --mode cluster-pool{others}{_advice(managed)}"
    return error("IPC0810", at, text, help=way_out)


def other_mode(at: At, runs: str, wanted: str) -> Diagnostic:
    """IPC0820: a cluster is imported in the mode in which it runs."""
    way_out = f"import it without --mode; then: ipamc runbook CLUSTER --change mode --to {wanted}"
    return error("IPC0820", at, f"the cluster runs with ipam: {runs}, and --mode is {wanted}", help=way_out)


def version_unknown(at: At, *, images: Sequence[str], nodes_alone: bool) -> Diagnostic:
    """IPC0812: an import knows Cilium's version."""
    if images:
        digests = all("@" in image for image in images)
        what = "its pods run images that only have a digest" if digests else "its images name no version"
        what += f": {names(image.partition('@')[0] for image in images)}"
        ask = "kubectl -n kube-system exec ds/cilium -c cilium-agent -- cilium-agent --version tells it; "
    else:
        what = "it has no pods of Cilium"
        ask = f"if Cilium runs there, make a dump with all kinds: {DUMP}; else " if nodes_alone else ""
    way_out = f"{ask}name the lowest minor that runs, or that you will install: --cilium-version 1.18"
    return error("IPC0812", at, f"the dump does not tell which Cilium runs: {what}", help=way_out)


def owner_unknown(at: At) -> Diagnostic:
    """IPC0813: the owner of cilium-config is known."""
    text = "the dump does not tell who owns cilium-config: managedBy: helm is written"
    way_out = "if it is not Helm, write managedBy: kustomize or none in cluster.yaml"
    return note("IPC0813", at, text, help=way_out)


def outside_ranges(at: At, blocks: Sequence[Block], nodes: Sequence[str], pool: str) -> Diagnostic:
    """IPC0814: blocks in use are in the ranges that the cluster was configured with."""
    have = count(len(nodes), "node has blocks", "nodes have blocks")
    text = f"{have} outside the configured ranges: {names(map(str, blocks))}"
    way_out = f"the pool {pool} keeps them; later: ipamc lock CLUSTER --renumber pool/{pool}"
    return warning("IPC0814", at, text, help=way_out)


def ranges_derived(at: At, ranges: Sequence[Block], ipam: str = "") -> Diagnostic:
    """IPC0815: the ranges of pools are known."""
    derived = listing(map(str, ranges))
    text = f"no flag and no pool has the ranges: these are derived from the blocks in use: {derived}"
    way_out = "write the ranges that are planned into ippools.yaml"
    if ipam:  # the mode that runs, of which no block is kept
        text = f"nodes keep no block of ipam: {shown(ipam)}, and no pool has ranges: {derived} is a proposal"
        text += ", which overlaps nothing in the dump"
        way_out += ", then compile"
    return warning("IPC0815", at, text, help=way_out)


def operator_allocates(at: At) -> Diagnostic:
    """IPC0816: only ipamc gives blocks in cluster-pool mode, or the operator has a pool of its own."""
    text = "the operator hands out blocks by itself"
    must = "with operator: bystander it must stop before the next node joins"
    way_out = "roll out operator.extraArgs of rendered/cilium/helm-values.yaml first"
    other = "or import with --operator adopt, and it goes on"
    return note("IPC0816", at, f"{text}: {must}", help=f"{way_out}; {other}")


def leftovers(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0817: podCIDRs of Nodes are the blocks of their pods, or nobody reads them."""
    have, whose = count(len(nodes), "node has", "nodes have"), "its" if len(nodes) == 1 else "their"
    text = f"{have} spec.podCIDRs that are not the blocks of {whose} pods: {names(nodes)}"
    way_out = "run kube-controller-manager with --allocate-node-cidrs=false"
    if managed:
        way_out = f"{managed.name} sets them, and nothing of Cilium reads them in this mode"
    return note("IPC0817", at, text, help=way_out)


def provider_gives(at: At, managed: Offering) -> Diagnostic:
    """IPC0829: in kubernetes mode ipamc gives the blocks, and no managed control plane."""
    text = f"this is {managed.name}, whose control plane gives Nodes their podCIDRs: ipamc gives none here"
    return warning("IPC0829", at, text, help=managed.way)


def pools_unknown(at: At, pools: Sequence[str]) -> Diagnostic:
    """IPC0830: a dump of multi-pool mode has the pools that nodes have blocks of."""
    text = f"the dump has no CiliumPodIPPool, and nodes have blocks of {count(len(pools), 'pool')}: "
    return error("IPC0830", at, f"{text}{names(pools)}", help=f"make a dump with all kinds: {DUMP}")


def without_block(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0818: every node has its blocks when a cluster is imported."""
    text = f"{count(len(nodes), 'node waits', 'nodes wait')} for a block: {names(nodes)}"
    if managed and managed.sets_pod_cidrs:
        return note("IPC0818", at, text, help=f"{managed.name} gives it: refresh then")
    way_out = "the lock gives them blocks, which an apply brings"
    return note("IPC0818", at, text, help=f"{way_out}; if the operator still gives blocks, refresh first")


def inside_pool(
    dump: Dump, items: Sequence[DraftRange], part: PoolRange, reserved: Mapping[Block, str]
) -> Diagnostic:
    """IPC0819: ranges of pods and of everything else are apart."""
    whys = dict.fromkeys(item.why for item in items)
    text = f"{part.block}, a range of pool {part.pool}, has addresses of {names(whys)}"
    text += f": {names(map(str, outermost(item.block for item in items)))}"
    way_out = "a node with a block over them gets another one: ipamc lock CLUSTER --renumber NODE"
    if free := [f"{{cidr: {block}, reason: {shown(why)}}}" for block, why in reserved.items() if why in whys]:
        add = f"add {names(free)} to reserved of pool {part.pool}"
        way_out = f"{add if part.at else 'they are reserved in ippools.yaml'}; {way_out}"
    also = [Related(part.at, "the range here")] if part.at else []
    return warning("IPC0819", items[0].at or dump.at, text, also=also, help=way_out)


def unaccounted(dump: Dump, found: Iterable[tuple[Sequence[Scalar], PoolRange]]) -> Iterator[Diagnostic]:
    """IPC0835: every address of a dump in a range of pods is explained."""
    for scalars, part in found:  # of one kind, and the range of the first
        text = (
            f"{scalars[0].kind} has {names(scalar.text for scalar in scalars)} in ranges of pods, the first"
        )
        text += f" in {part.block} of pool {part.pool}: the dump does not tell what that is"
        family, first, _ = scalars[0].blocks[0]
        entry = f"{{cidr: {around(family, first, scalars[0].blocks[-1].last)}, reason: another network}}"
        way_out = f"if another network has it, add {entry} to reserved of pool {part.pool}"
        also = [Related(part.at, "the range here")] if part.at else []
        yield warning(
            "IPC0835", scalars[0].at, text, also=also, help=f"{way_out}; if it is a version, do nothing"
        )
    if dump.unread:
        kinds = names((f"{number:,} {kind}" for kind, number in dump.unread.items()), 20)
        way_out = "leave them out of the dump, or look for their networks yourself"
        yield note("IPC0835", dump.at, f"kinds of which only the addresses are read: {kinds}", help=way_out)


def other_cluster(at: At, name: str, known: Sequence[str], seen: Sequence[str]) -> Diagnostic:
    """IPC0821: a refresh reads a dump of the same cluster."""
    text = f"this is no dump of {name}: it has none of its nodes ({names(known)}), but {names(seen)}"
    way_out = f"use a dump of {name}; if the cluster was built again, add --rebuilt"
    return error("IPC0821", at, text, help=way_out)


def older_dump(at: At, newest: str, since: str, path: str) -> Diagnostic:
    """IPC0822: a refresh reads a dump that is newer than the inventory."""
    text = f"the dump is older than the inventory: its latest time is {newest}"
    return error("IPC0822", at, f"{text}, and {path} was committed {since}", help=f"make a new one: {DUMP}")


def elsewhere(at: At, path: str, what: str, back: str) -> Diagnostic:
    """IPC0823: a refresh writes inventories and ciliumnodes.yaml, and no other file has what is in them."""
    way_out = f"remove nodes that exist from {path}: the refresh writes them into {back}"
    return error("IPC0823", at, f"{what} in a file that a refresh does not write", help=way_out)


def joined(nodes: Sequence[str]) -> str:
    """Return the text in IPC0823 about planned nodes that a dump shows."""
    return f"{count(len(nodes), 'planned node that has', 'planned nodes that have')} joined ({names(nodes)})"


def there_already(at: At, path: str) -> Diagnostic:
    """IPC0824: an import starts a cluster; it changes no file that people may have edited."""
    text = f"{path} is there already, and has other contents than this import would write"
    way_out = f"to update it: ipamc import {typed(path.rpartition('/')[0])} --refresh dump.json"
    return error("IPC0824", at, text, help=f"{way_out}; to start again, delete the folder")


def no_cilium_nodes(at: At, path: str, number: int) -> Diagnostic:
    """IPC0825: a refresh reads a dump with the kinds that the evidence is made of."""
    way_out = "make a dump with ciliumnodes; its role must allow to list them"
    return error("IPC0825", at, f"the dump has no CiliumNodes, and {path} has {number:,}", help=way_out)


def never_seen(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0828: a node that is still to come is planned, so that a refresh keeps it."""
    which = f"{count(len(nodes), 'node')} of {path} without a uid, and not in the dump"
    text = f"{which}, {'leaves' if len(nodes) == 1 else 'leave'} the inventory: {names(nodes)}"
    way_out = "if it has not joined yet, write it again with planned: true: a refresh keeps planned nodes"
    return warning("IPC0828", at, text, help=way_out)


def not_of_one_cluster(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0831: files of machines have the machines of one cluster."""
    return error("IPC0831", at, problem, help=way_out)


def no_machines(at: At, kinds: Iterable[str]) -> Diagnostic:
    """Return the finding, by the rule of `not_of_one_cluster`, about files without a machine."""
    found = f"only {names(kinds)}" if kinds else "no objects"
    text = f"no Machine of cluster.x-k8s.io and no BareMetalHost of metal3.io is in the files: {found}"
    return not_of_one_cluster(at, text, f"in the management cluster run {MACHINES}")


def several_clusters(at: At, name: str, clusters: Sequence[str]) -> Diagnostic:
    """Return the finding, by the rule of `not_of_one_cluster`, about machines of several clusters."""
    text = f"the Machines are of {len(clusters):,} Clusters, and none is called {name}: {names(clusters)}"
    label = typed(f"cluster.x-k8s.io/cluster-name={clusters[0]}")
    one = f"kubectl get machines -A -l {label} -o yaml"
    return not_of_one_cluster(at, text, f"take those of one: {one}")


def joined_already(at: At, cluster: str, nodes: Iterable[str]) -> Diagnostic:
    """IPC0832: a planned node has not joined yet."""
    known = list(nodes)
    have = count(len(known), "Machine has a node", "Machines have nodes")
    text = f"{have} that the inventory does not have, and that cannot be planned any more: {names(known)}"
    way_out = f"bring them in with their blocks: ipamc import {cluster} --refresh dump.json"
    return warning("IPC0832", at, text, help=way_out)


def names_unknown(
    by_instance: Sequence[Machine], free: Sequence[Machine], unclear: Sequence[Machine]
) -> Iterator[Diagnostic]:
    """IPC0833: the name of a node is known before it joins."""
    if by_instance:
        text = several([each.name for each in by_instance], "AWSMachine", "planned under its own name")
        fix = "on AWS a node is called as the private DNS name of its instance, unless nodeRegistration.name"
        yield warning("IPC0833", by_instance[0].at, text, help=f"{fix} of their KubeadmConfig says otherwise")
    if free:
        text = several(
            [each.name for each in free], "BareMetalHost", "without a Machine, planned under its own name"
        )
        fix = "nodes are called so where metadata takes name or local-hostname from the BareMetalHost"
        yield warning("IPC0833", free[0].at, text, help=f"{fix}; else remove them, and import the Machines")
    if unclear:
        text = several(
            [each.name for each in unclear],
            "BareMetalHost",
            "not taken, whose Machines are in none of the files",
        )
        yield warning("IPC0833", unclear[0].at, text, help=f"add the Machines: {MACHINES}")


def left_the_files(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0834: every node of machines.yaml is still in the files of machines."""
    has = count(len(nodes), "node is", "nodes are")
    text = f"{has} in none of the files, and stays in {path}: {names(nodes)}"
    text = text if len(nodes) == 1 else text.replace("and stays", "and stay")
    way_out = "remove those that will not come: the next compile puts their blocks into quarantine"
    return note("IPC0834", at, text, help=way_out)


def stays_without_cilium(
    cluster: str, nodes: Sequence[Node], reasons: Mapping[str, str], held: Mapping[str, Block]
) -> Iterator[Diagnostic]:
    """IPC0837: a node that holds a block runs Cilium."""
    if nodes:
        which = [f"{node.name} ({held[node.name]}): {reasons[node.name]}" for node in nodes]
        text = several(which, "node", "of the inventory not running Cilium, and holding a block; it stays")
        way_out = f"take it out of {nodes[0].at.path}, then ipamc compile {cluster}: its block goes into"
        way_out += " quarantine; if Cilium runs there, say so: ipamc explain Cluster.spec.cilium.nodeSelector"
        yield warning("IPC0837", nodes[0].at, text, help=way_out)


def cluster_cidr_unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0826: ClusterCIDRs can be read, and a dump has at most 1,000."""
    way_out = "correct it in the cluster, and make the dump again"
    return error("IPC0826", at, f"{what}: {problem}", help=way_out)


def cluster_cidrs_overlap(
    at: At, name: str, ranges: Sequence[Block], rivals: Sequence[str], gone: Sequence[int]
) -> Diagnostic:
    """IPC0827: no two pools share an address."""
    text = (
        f"{listing(map(str, ranges))} of ClusterCIDR {name} overlaps {names(rivals)}, which comes before it"
    )
    if gone:  # families of which its nodes get no more blocks
        text += f" and leaves no {listing(f'IPv{family}' for family in gone)} for new nodes of {name}"
    way_out = "look at the ranges in ippools.yaml before the first compile is merged"
    return warning("IPC0827", at, text, help=way_out)


def bgp_objects_left(objects: Sequence[SeenObject], why: str) -> Iterator[Diagnostic]:
    """IPC0591: the folder of the cluster has the BGP objects of the dump."""
    if objects:
        text = f"not in the cluster's folder: {names(f'{each.kind} {each.name}' for each in objects)}: {why}"
        way_out = "write those that are in use into bgp.yaml there; remove the others from the cluster"
        yield note("IPC0591", objects[0].at, text, help=way_out)
