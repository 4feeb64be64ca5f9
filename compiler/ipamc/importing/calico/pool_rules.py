"""Rules of an import from Calico, about its pools: where they do not become what they were."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.model.cidr import Block
from ipamc.model.diagnostics import At, Diagnostic, Related, error, names, note, warning
from ipamc.model.wording import cut, listing, shown


def too_many_pools(at: At, number: int, limit: int) -> Diagnostic:
    """IPC0841: a dump has at most 500 Calico IPPools."""
    return error(
        "IPC0841",
        at,
        f"{number:,} IPPools in the dump; {limit:,} is the limit",
        help="leave pools without blocks out of the dump",
    )


def unreadable(at: At, what: str, problem: str) -> Diagnostic:
    """IPC0840: Calico's pools and reservations can be read."""
    return error(
        "IPC0840", at, f"{what}: {cut(problem)}", help="correct it in the cluster, and make the dump again"
    )


def namespace_selector(at: At, pool: str, text: str) -> Diagnostic:
    """IPC0843: a Calico pool serves the pods of all namespaces of a node."""
    return warning(
        "IPC0843",
        at,
        f"pool {pool} has namespaceSelector {shown(text)}, and is written as disabled",
        help="annotate the namespaces with ipam.cilium.io/ip-pool, or let their pods use the pools of their nodes",
    )


def pools_overlap(one: tuple[At, str, Block], other: tuple[At, str, Block]) -> Diagnostic:
    """IPC0844: no two pools share an address."""
    (at, name, block), (there, winner, around) = one, other
    return warning(
        "IPC0844",
        at,
        f"{block} of pool {name} overlaps {around} of pool {winner}, which keeps what they share",
        also=[Related(there, f"pool {winner}")],
        help="look at both pools in ippools.yaml before the first compile is merged",
    )


def not_for_pods(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0845: ranges of load balancers and tunnels are not for pods."""
    return note("IPC0845", at, f"pool {pool} is not for pods: {block} is excluded")


def pool_is_second(at: At, pool: str, why: str) -> Diagnostic:
    """IPC0846: a node gets its blocks of one pool."""
    return warning(
        "IPC0846",
        at,
        f"pool {pool} is written as disabled: {why}",
        help="if it is to serve nodes, narrow the nodeSelector of both pools in ippools.yaml",
    )


def lacks_family(at: At, pool: str, family: int) -> Diagnostic:
    """IPC0847: pools of both families select the same nodes."""
    return warning(
        "IPC0847",
        at,
        f"pool {pool} has no IPv{family} pool with the same nodeSelector",
        help=f"join it in ippools.yaml with the pool that has the IPv{family} addresses of its nodes",
    )


def unused_family(at: At, pool: str, block: Block) -> Diagnostic:
    """IPC0848: the families of a cluster are those of which its nodes have blocks."""
    return note(
        "IPC0848", at, f"no node has a block of IPv{block.family}: pool {pool} ({block}) is not written"
    )


def too_small(at: At, pool: str, size: int, pieces: Sequence[Block]) -> Diagnostic:
    """IPC0849: the ranges of a pool have room for a block."""
    return note(
        "IPC0849", at, f"{listing(map(str, pieces))} of pool {pool}: smaller than a /{size}, and not written"
    )


def label_of_calico(at: At, key: str, nodes: Sequence[str]) -> Diagnostic:
    """IPC0859: labels by which pools select are labels of Nodes."""
    return warning(
        "IPC0859",
        at,
        f"pools select by {key}, a label that only Calico knows: {names(nodes)}",
        help=f"kubectl label node {nodes[0]} {key}=VALUE, for each of them, and make the dump again",
    )
