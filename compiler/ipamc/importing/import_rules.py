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
    "eni": "AWS gives pods addresses from VPC subnets",
    "azure": "Azure gives pods addresses from virtual networks",
    "alibabacloud": "Alibaba Cloud gives pods addresses from VPC subnets",
    "delegated-plugin": "another IPAM plugin gives pods their addresses",
}
"""The source of pods' addresses in the modes of clouds."""


def mode_not_ours(at: At, problem: str, known: Iterable[str], managed: Offering | None) -> Diagnostic:
    """IPC0811: ipamc supports the IPAM mode of the cluster."""
    way_out = f"ipamc supports {listing(known)}; --mode MODE prepares a move to one of them{_advice(managed)}"
    return error("IPC0811", at, f"cilium-config has {problem}", help=way_out)


def _advice(managed: Offering | None) -> str:
    """Return what can be done in a managed Kubernetes, as the end of a help."""
    return f"; this is {managed.name}: {managed.way}" if managed else ""


def mode_unknown(at: At, what: str, *, cilium_nodes: bool, managed: Offering | None) -> Diagnostic:
    """IPC0810: an import knows the IPAM mode of the cluster."""
    text = f"the dump has {what} ConfigMap cilium-config, so the IPAM mode is unknown"
    others = "" if cilium_nodes else " (kubernetes if pods have addresses from Node podCIDRs)"
    way_out = f"add cm to the dump: {DUMP}; or set the mode: --mode cluster-pool{others}{_advice(managed)}"
    return error("IPC0810", at, text, help=way_out)


def other_mode(at: At, runs: str, wanted: str) -> Diagnostic:
    """IPC0820: an import keeps the mode of the running cluster."""
    way_out = f"import it without --mode; then: ipamc runbook CLUSTER --change mode --to {wanted}"
    return error("IPC0820", at, f"the cluster runs with ipam: {runs}, and --mode is {wanted}", help=way_out)


def version_unknown(at: At, *, images: Sequence[str], nodes_alone: bool) -> Diagnostic:
    """IPC0812: an import knows Cilium's version."""
    if images:
        digests = all("@" in image for image in images)
        what = "the images of its pods have only a digest" if digests else "its images name no version"
        what += f": {names(image.partition('@')[0] for image in images)}"
        ask = "run kubectl -n kube-system exec ds/cilium -c cilium-agent -- cilium-agent --version, then "
    else:
        what = "it has no Cilium pods"
        ask = f"if Cilium runs there, make a dump with all kinds: {DUMP}; else " if nodes_alone else ""
    way_out = f"{ask}set the lowest minor that runs or that you will install: --cilium-version 1.18"
    return error("IPC0812", at, f"the dump does not show the Cilium version: {what}", help=way_out)


def owner_unknown(at: At) -> Diagnostic:
    """IPC0813: an import knows who manages cilium-config."""
    text = "the dump does not show who manages cilium-config, so cluster.yaml gets managedBy: helm"
    way_out = "if Helm does not manage it, write managedBy: kustomize or none in cluster.yaml"
    return note("IPC0813", at, text, help=way_out)


def outside_ranges(at: At, blocks: Sequence[Block], nodes: Sequence[str], pool: str) -> Diagnostic:
    """IPC0814: blocks in use are inside the configured ranges."""
    have = count(len(nodes), "node has blocks", "nodes have blocks")
    text = f"{have} outside the configured ranges: {names(map(str, blocks))}"
    way_out = f"pool {pool} keeps them; to renumber them later: ipamc lock CLUSTER --renumber pool/{pool}"
    return warning("IPC0814", at, text, help=way_out)


def ranges_derived(at: At, ranges: Sequence[Block], ipam: str = "") -> Diagnostic:
    """IPC0815: an import knows the ranges of pools."""
    derived = listing(map(str, ranges))
    text = f"no flag and no pool lists the ranges; derived from the blocks in use: {derived}"
    way_out = "write the planned ranges into ippools.yaml"
    if ipam:  # the mode that runs, of which no block is kept
        text = f"nodes keep no block of ipam: {shown(ipam)}, and no pool lists ranges"
        text += f"; ipamc proposes {derived}, which overlaps nothing in the dump"
        way_out += ", then compile"
    return warning("IPC0815", at, text, help=way_out)


def operator_allocates(at: At) -> Diagnostic:
    """IPC0816: in cluster-pool mode, the operator gives no blocks, or has a separate pool."""
    text = "the operator gives nodes their blocks"
    must = "with operator: bystander it must stop before the next node joins"
    way_out = "roll out operator.extraArgs of rendered/cilium/helm-values.yaml first"
    other = "or import with --operator adopt to let the operator continue"
    return note("IPC0816", at, f"{text}; {must}", help=f"{way_out}, {other}")


def leftovers(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0817: podCIDRs of Nodes match the blocks of their pods."""
    have, whose = count(len(nodes), "node has", "nodes have"), "its" if len(nodes) == 1 else "their"
    text = f"{have} spec.podCIDRs that do not match the blocks of {whose} pods: {names(nodes)}"
    way_out = "run kube-controller-manager with --allocate-node-cidrs=false"
    if managed:
        way_out = f"{managed.name} sets them; Cilium does not read them in this mode"
    return note("IPC0817", at, text, help=way_out)


def provider_gives(at: At, managed: Offering) -> Diagnostic:
    """IPC0829: in kubernetes mode, no managed control plane sets the podCIDRs of Nodes."""
    text = f"the control plane of {managed.name} gives Nodes their podCIDRs, so ipamc gives no blocks"
    return warning("IPC0829", at, text, help=managed.way)


def pools_unknown(at: At, pools: Sequence[str]) -> Diagnostic:
    """IPC0830: a dump of multi-pool mode contains the pools of the nodes' blocks."""
    text = f"the dump has no CiliumPodIPPool, but nodes hold blocks of {count(len(pools), 'pool')}: "
    return error("IPC0830", at, f"{text}{names(pools)}", help=f"make a dump with all kinds: {DUMP}")


def without_block(at: At, nodes: Sequence[str], managed: Offering | None) -> Diagnostic:
    """IPC0818: every node has its blocks at import."""
    text = f"{count(len(nodes), 'node waits', 'nodes wait')} for a block: {names(nodes)}"
    if managed and managed.sets_pod_cidrs:
        return note("IPC0818", at, text, help=f"{managed.name} gives the block; refresh afterwards")
    way_out = "compile and apply to give each node its block"
    return note("IPC0818", at, text, help=f"{way_out}; if the operator still gives blocks, refresh first")


def inside_pool(
    dump: Dump, items: Sequence[DraftRange], part: PoolRange, reserved: Mapping[Block, str]
) -> Diagnostic:
    """IPC0819: ranges of pods do not overlap other networks."""
    whys = dict.fromkeys(item.why for item in items)
    text = f"range {part.block} of pool {part.pool} contains addresses of {names(whys)}"
    text += f": {names(map(str, outermost(item.block for item in items)))}"
    way_out = "if the block of a node overlaps them: ipamc lock CLUSTER --renumber NODE"
    if free := [f"{{cidr: {block}, reason: {shown(why)}}}" for block, why in reserved.items() if why in whys]:
        add = f"add {names(free)} to reserved of pool {part.pool}"
        way_out = f"{add if part.at else 'ippools.yaml reserves them'}; {way_out}"
    also = [Related(part.at, "the range here")] if part.at else []
    return warning("IPC0819", items[0].at or dump.at, text, also=also, help=way_out)


def unaccounted(dump: Dump, found: Iterable[tuple[Sequence[Scalar], PoolRange]]) -> Iterator[Diagnostic]:
    """IPC0835: the use of all addresses in pod ranges is known."""
    for scalars, part in found:  # of one kind, and the range of the first
        text = (
            f"unexplained addresses in ranges of pods: {scalars[0].kind} contains "
            f"{names(scalar.text for scalar in scalars)}"
        )
        text += f"; the first is in {part.block} of pool {part.pool}"
        family, first, _ = scalars[0].blocks[0]
        entry = f"{{cidr: {around(family, first, scalars[0].blocks[-1].last)}, reason: another network}}"
        way_out = f"if another network uses it, add {entry} to reserved of pool {part.pool}"
        also = [Related(part.at, "the range here")] if part.at else []
        way_out += "; if it is a version number, do nothing"
        yield warning("IPC0835", scalars[0].at, text, also=also, help=way_out)
    if dump.unread:
        kinds = names((f"{number:,} {kind}" for kind, number in dump.unread.items()), 20)
        way_out = "leave them out of the dump, or check their networks yourself"
        yield note("IPC0835", dump.at, f"only the addresses of these kinds are read: {kinds}", help=way_out)


def other_cluster(at: At, name: str, known: Sequence[str], seen: Sequence[str]) -> Diagnostic:
    """IPC0821: a refresh reads a dump of the same cluster."""
    text = f"the dump does not match {name}: it contains {names(seen)}, but none of {names(known)}"
    way_out = f"use a dump of {name}; if the cluster was rebuilt, add --rebuilt"
    return error("IPC0821", at, text, help=way_out)


def older_dump(at: At, newest: str, since: str, path: str) -> Diagnostic:
    """IPC0822: a refresh reads a dump that is newer than the inventory."""
    text = f"the dump is older than the inventory: its newest timestamp is {newest}"
    return error("IPC0822", at, f"{text}, and {path} was committed {since}", help=f"make a new one: {DUMP}")


def elsewhere(at: At, path: str, what: str, back: str) -> Diagnostic:
    """IPC0823: only files that a refresh writes contain existing nodes and CiliumNodes."""
    way_out = f"remove nodes that exist from {path}: the refresh writes them into {back}"
    return error("IPC0823", at, f"{what} in a file that a refresh does not write", help=way_out)


def joined(nodes: Sequence[str]) -> str:
    """Return the text in IPC0823 about planned nodes that a dump shows."""
    return f"{count(len(nodes), 'planned node that has', 'planned nodes that have')} joined ({names(nodes)})"


def there_already(at: At, path: str) -> Diagnostic:
    """IPC0824: an import does not change files that already exist."""
    text = f"{path} already exists, and its contents differ from what this import writes"
    way_out = f"to update it: ipamc import {typed(path.rpartition('/')[0])} --refresh dump.json"
    return error("IPC0824", at, text, help=f"{way_out}; to start again, delete the folder")


def no_cilium_nodes(at: At, path: str, number: int) -> Diagnostic:
    """IPC0825: a refresh reads a dump with CiliumNodes if the inventory has them."""
    way_out = "add ciliumnodes to the dump; its role needs permission to list them"
    return error("IPC0825", at, f"the dump has no CiliumNodes, but {path} has {number:,}", help=way_out)


def never_seen(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0828: a node that has not joined yet has planned: true."""
    leave = count(len(nodes), "node leaves", "nodes leave")
    why = f"no uid in {path}, and not in the dump"
    text = f"{leave} the inventory ({why}): {names(nodes)}"
    way_out = "if a node has not joined yet, add it again with planned: true; a refresh keeps planned nodes"
    return warning("IPC0828", at, text, help=way_out)


def not_of_one_cluster(at: At, problem: str, way_out: str) -> Diagnostic:
    """IPC0831: machine files contain the machines of only one cluster."""
    return error("IPC0831", at, problem, help=way_out)


def no_machines(at: At, kinds: Iterable[str]) -> Diagnostic:
    """Return the finding, by the rule of `not_of_one_cluster`, about files without a machine."""
    found = f"only {names(kinds)}" if kinds else "no objects"
    text = f"the files contain no Machine of cluster.x-k8s.io and no BareMetalHost of metal3.io: {found}"
    return not_of_one_cluster(at, text, f"in the management cluster run {MACHINES}")


def several_clusters(at: At, name: str, clusters: Sequence[str]) -> Diagnostic:
    """Return the finding, by the rule of `not_of_one_cluster`, about machines of several clusters."""
    text = f"the Machines belong to {len(clusters):,} Clusters, none of them named {name}: {names(clusters)}"
    label = typed(f"cluster.x-k8s.io/cluster-name={clusters[0]}")
    one = f"kubectl get machines -A -l {label} -o yaml"
    return not_of_one_cluster(at, text, f"select the Machines of one Cluster: {one}")


def joined_already(at: At, cluster: str, nodes: Iterable[str]) -> Diagnostic:
    """IPC0832: a planned node has not joined yet."""
    known = list(nodes)
    have = count(len(known), "Machine already has a node", "Machines already have nodes")
    text = f"{have} that the inventory lacks: {names(known)}"
    way_out = f"add the nodes with their blocks: ipamc import {cluster} --refresh dump.json"
    return warning("IPC0832", at, text, help=way_out)


def names_unknown(
    by_instance: Sequence[Machine], free: Sequence[Machine], unclear: Sequence[Machine]
) -> Iterator[Diagnostic]:
    """IPC0833: the name of a node is known before it joins."""
    if by_instance:
        own = "planned under its own name" if len(by_instance) == 1 else "planned under their own names"
        text = several([each.name for each in by_instance], "AWSMachine", own)
        fix = "on AWS a node has the private DNS name of its instance, unless nodeRegistration.name"
        yield warning("IPC0833", by_instance[0].at, text, help=f"{fix} of the KubeadmConfig is set")
    if free:
        own = "planned under its own name" if len(free) == 1 else "planned under their own names"
        text = several([each.name for each in free], "BareMetalHost", f"without a Machine, {own}")
        fix = "this is right if metadata takes name or local-hostname from the BareMetalHost"
        yield warning("IPC0833", free[0].at, text, help=f"{fix}; else remove them and import the Machines")
    if unclear:
        text = several(
            [each.name for each in unclear],
            "BareMetalHost",
            "left out, because no file contains the Machine"
            if len(unclear) == 1
            else "left out, because no file contains the Machines",
        )
        yield warning("IPC0833", unclear[0].at, text, help=f"add the Machines: {MACHINES}")


def left_the_files(at: At, path: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0834: every node in machines.yaml is still in the machine files."""
    has = count(len(nodes), "node is", "nodes are")
    text = f"{has} in none of the files and stays in {path}: {names(nodes)}"
    text = text if len(nodes) == 1 else text.replace("and stays", "and stay")
    way_out = "remove nodes that will not join; the next compile puts their blocks into quarantine"
    return note("IPC0834", at, text, help=way_out)


def stays_without_cilium(
    cluster: str, nodes: Sequence[Node], reasons: Mapping[str, str], held: Mapping[str, Block]
) -> Iterator[Diagnostic]:
    """IPC0837: a node that holds a block runs Cilium."""
    if nodes:
        which = [f"{node.name} ({held[node.name]}): {reasons[node.name]}" for node in nodes]
        have = "holds a block but does" if len(nodes) == 1 else "hold blocks but do"
        text = several(which, "node", f"of the inventory {have} not run Cilium")
        way_out = f"to put the block into quarantine, remove the node from {nodes[0].at.path} and run ipamc"
        way_out += f" compile {cluster}; if Cilium runs there: ipamc explain Cluster.spec.cilium.nodeSelector"
        yield warning("IPC0837", nodes[0].at, text, help=way_out)


def cluster_cidr_unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0826: ClusterCIDRs can be read, and a dump has at most 1,000."""
    way_out = "correct it in the cluster, and make the dump again"
    return error("IPC0826", at, f"{what}: {problem}", help=way_out)


def cluster_cidrs_overlap(
    at: At, name: str, ranges: Sequence[Block], rivals: Sequence[str], gone: Sequence[int]
) -> Diagnostic:
    """IPC0827: no two ClusterCIDRs share an address."""
    text = (
        f"{listing(map(str, ranges))} of ClusterCIDR {name} overlaps {names(rivals)}, which comes before it"
    )
    if gone:  # families of which its nodes get no more blocks
        text += f" and leaves no {listing(f'IPv{family}' for family in gone)} for new nodes of {name}"
    way_out = "check the ranges in ippools.yaml before you merge the first compile"
    return warning("IPC0827", at, text, help=way_out)


def bgp_objects_left(objects: Sequence[SeenObject], why: str) -> Iterator[Diagnostic]:
    """IPC0591: the cluster's folder contains the BGP objects of the dump."""
    if objects:
        which = names(f"{each.kind} {each.name}" for each in objects)
        text = f"BGP objects not in the cluster's folder: {which}; {why}"
        way_out = "write those in use into its bgp.yaml; remove the others from the cluster"
        yield note("IPC0591", objects[0].at, text, help=way_out)
