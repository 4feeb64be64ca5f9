"""Rules of an import from Calico, about its pools: where they do not become what they were."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, Related, error, names, note, warning
from ipamc.model.wording import cut, listing, shown


def too_many_pools(at: At, number: int, limit: int) -> Diagnostic:
    """IPC0841: a dump has at most 500 Calico IPPools.

    No cluster is known with more than some dozens.

    Why: each pool is compared with each other one, as Calico goes through all of them for each pod: ten
    times as many take a hundred times as long.

    Run: leave pools without blocks out of the dump: `calicoctl ipam show --show-blocks` lists those with
    blocks. Then `ipamc import CLUSTER dump.json --cilium-version 1.18`.
    """
    return error(
        "IPC0841",
        at,
        f"{number:,} IPPools in the dump; {limit:,} is the limit",
        help="leave pools without blocks out of the dump",
    )


def unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0840: Calico's pools and reservations can be read.

    Objects that were written with plain `kubectl` into crd.projectcalico.org were checked by nobody.

    Why: Calico itself gives no pod an address while one pool has a selector that it cannot read. Without
    the pool its blocks would be in no range.

    Run: correct the object (`kubectl edit ippools.crd.projectcalico.org NAME`), make the dump again, and
    `ipamc import CLUSTER dump.json --cilium-version 1.18`.
    """
    return error(
        "IPC0840", at, f"{what}: {cut(problem)}", help="correct it in the cluster, and make the dump again"
    )


def namespace_selector(at: At, pool: str, text: str) -> Diagnostic:
    """IPC0843: a Calico pool serves the pods of all namespaces of a node.

    Such a pool is written with `disabled: true`: nodes keep their blocks of it, and get no new ones. From
    Cilium 1.19 on a CiliumPodIPPool has a namespaceSelector, too.

    Why: a block belongs to a node, and the default pool of a node serves every pod that asks for nothing
    else: pods of other namespaces would get these addresses, for which a firewall may open more.

    Run: annotate the namespaces with `ipam.cilium.io/ip-pool`, or let their pods use the pools of their
    nodes. Change the pool in ippools.yaml as you need it, then `ipamc compile CLUSTER`.
    """
    return warning(
        "IPC0843",
        at,
        f"pool {pool} has namespaceSelector {shown(text)}, and is written as disabled",
        help="annotate the namespaces with ipam.cilium.io/ip-pool, or let their pods use the pools of their nodes",
    )


def pools_overlap(one: tuple[At, str, Block], other: tuple[At, str, Block]) -> Diagnostic:
    """IPC0844: no two pools share an address.

    Calico refuses it through its API; with plain `kubectl` it came about all the same. The pool of which
    Calico makes blocks keeps the addresses, of two such pools the first by name; the other one keeps the
    rest.

    Why: an address of two pools would be given to two nodes; a compile refuses them (IPC0207).

    Run: look at both pools in ippools.yaml before the first compile is merged: each has the ranges that are
    its own now. What was meant otherwise, write it; then `ipamc compile CLUSTER`.
    """
    (at, name, block), (there, winner, around) = one, other
    return warning(
        "IPC0844",
        at,
        f"{block} of pool {name} overlaps {around} of pool {winner}, which keeps what they share",
        also=[Related(there, f"pool {winner}")],
        help="look at both pools in ippools.yaml before the first compile is merged",
    )


def not_for_pods(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0845: ranges of load balancers and tunnels are not for pods.

    A pool whose allowedUses lacks Workload is written into `excludedCIDRs`.

    Why: pods get no address of it in Calico. In a pool of ipamc they would, and take the addresses of
    Services or of tunnels.

    Run: nothing, as a rule: `ipamc compile CLUSTER` keeps pods out of the range. If nobody uses it any
    more, take it out of `excludedCIDRs` in cluster.yaml.
    """
    return note("IPC0845", at, f"pool {pool} is not for pods: {block} is excluded")


def pool_is_second(at: At, pool: str, why: str) -> Diagnostic:
    """IPC0846: a node gets its blocks of one pool.

    Calico takes the first pool by name that selects a node and has a free block, and goes on to the next.
    The later pool is written with `disabled: true`: nodes keep their blocks of it.

    Why: in Cilium every pool that selects a node would give it blocks, maybe of a range that is routed to
    another rack.

    Run: if the pool is to serve nodes, narrow the nodeSelector of both pools in ippools.yaml, and take
    `disabled` out: each node gets blocks of its own pool then, and keeps those that it has. Then `ipamc
    compile CLUSTER`, and `ipamc why NODE`.
    """
    return warning(
        "IPC0846",
        at,
        f"pool {pool} is written as disabled: {why}",
        help="if it is to serve nodes, narrow the nodeSelector of both pools in ippools.yaml",
    )


def lacks_family(at: At, pool: str, family: int) -> Diagnostic:
    """IPC0847: pools of both families select the same nodes.

    Calico's pools of IPv4 and IPv6 become one where they have the same nodeSelector; this one has no other
    half.

    Why: a Cilium agent takes addresses of every family from one pool: a node of this pool would have no
    address of the other family, and a compile refuses it (IPC0526) if the pool selects a node.

    Run: join it in ippools.yaml with the pool that has the other family's addresses of its nodes: one
    IPPool with `ipv4` and `ipv6`. Then `ipamc compile CLUSTER`.
    """
    return warning(
        "IPC0847",
        at,
        f"pool {pool} has no IPv{family} pool with the same nodeSelector",
        help=f"join it in ippools.yaml with the pool that has the IPv{family} addresses of its nodes",
    )


def unused_family(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0848: the families of a cluster are those of which its nodes have blocks.

    No node has a block of this family, so the pods have no such address, and the pool is not written.

    Why: a family more is a change for every node: each would need a block of it, its agent would wait for
    it, and what is rendered would switch it on.

    Run: nothing, if the cluster is to stay as it is. To add the family later: `ipamc runbook CLUSTER
    --change dual-stack` has the steps.
    """
    return note(
        "IPC0848", at, f"no node has a block of IPv{block.family}: pool {pool} ({block}) is not written"
    )


def too_small(at: At, pool: str, size: int, pieces: Sequence[Block]) -> Diagnostic:
    """IPC0849: the ranges of a pool have room for a block.

    Other pools took a part of this one, and what is left here is smaller than a block.

    Why: no node can have a block in what is left: Calico made none there, either. It is not written, so
    that nobody counts on it.

    Run: look at the ranges of both pools in ippools.yaml. If the part was meant for this pool, take it from
    the other one, or write a smaller block (a larger `blockSize`); then `ipamc compile CLUSTER`.
    """
    return note(
        "IPC0849",
        at,
        f"{listing(map(str, pieces))} of pool {pool}: smaller than a /{size}, and not written",
    )


def label_of_calico(at: At, key: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0859: labels by which pools select are labels of Nodes.

    Calico has labels of its own, in an annotation of the Node; `kubectl` does not show them. The inventory
    has the labels of Kubernetes.

    Why: Cilium does not know these labels, and neither does ipamc: the pool would not select the node,
    which would get new blocks of another one.

    Run: `kubectl label node NODE KEY=VALUE` for each of the nodes, make the dump again, and `ipamc import
    CLUSTER dump.json --cilium-version 1.18` into a folder that is not there yet.
    """
    return warning(
        "IPC0859",
        at,
        f"pools select by {key}, a label that only Calico knows: {names(nodes)}",
        help=f"kubectl label node {nodes[0]} {key}=VALUE, for each of them, and make the dump again",
    )
