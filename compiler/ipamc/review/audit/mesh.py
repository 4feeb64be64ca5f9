"""Rules about a cluster beside the other members of its address space: its identity, and its addresses.

A dump is compared with its own Cluster, and with the addresses and identities that the index of the space has
of the others. A compile compares the Clusters with each other (IPC0701, IPC0707).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from ipamc.check.address_space import members_in, overlaps
from ipamc.model.cidr import Block
from ipamc.model.cilium.flags import arguments
from ipamc.model.cilium.operator_list import listed
from ipamc.model.diagnostics import Related, count, error, note, warning
from ipamc.model.space import ClusterPrefixes, Prefix
from ipamc.read.space_index import Index, load_index, space_of
from ipamc.review.audit.context import Context, Result, Suppressed


def _others(context: Context, over: Iterable[Block] = ()) -> list[ClusterPrefixes]:
    """Return the other members, with those of their addresses that share one with some blocks."""
    name, space = context.cluster.name, context.cluster.address_space
    for path, text in context.spaces.items():
        if space_of(path) == space and isinstance(index := load_index(text, space), Index):
            return [each for each in members_in(path, index, over).values() if each.cluster != name]
    return []


def other_identity(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0936: a cluster has the ClusterMesh id and name in git, and no other member has the same."""
    config, cluster, others = context.config or {}, context.cluster, _others(context)
    # The defaults stand for a cluster of no mesh (pkg/clustermesh/types/option.go of Cilium 1.20).
    alone = config.get("cluster-id", "").strip() in {"", "0"}
    for key, field, own, default in (
        ("cluster-id", "clusterID", "cluster_id", "0"),
        ("cluster-name", "clusterName", "mesh_name", "default"),
    ):
        live, git = config.get(key, "").strip() or default, str(getattr(cluster, own) or "")
        nothing = not git and (alone or live == default or not cluster.address_space)
        if live == git or nothing or context.config is None:
            continue
        same = next((each for each in others if str(getattr(each, own) or "") == live), None)
        text, write = f"cilium-config has {key}: {live}", f"spec.cilium.{field} of {cluster.name}"
        if same:
            make, text = error, f"{text}, which cluster {same.cluster} of the address space has too"
            fix = f"give one of the two another {key}, then restart its agents and all its pods"
        elif git:
            make, text = warning, f"{text}, but {write} is {git}"
            more = ", max-connected-clusters: 511" if own == "cluster_id" and int(git) > 255 else ""
            fix = f"roll out {key}: {git}{more}, then restart agents and all pods; or correct {write}"
        else:
            make, text = note, f"{text}, but git has none, so no compile compares it with other clusters"
            fix = f"write it into {write}"
        also = [Related(same.at if same else cluster.field("spec", "cilium"), "compared with this")]
        yield Result(make("IPC0936", context.config_at, text, also=also, help=fix))
        if alone:
            return


def addresses_of_others(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0937: no node, pool or operator uses addresses of another member of the address space."""
    every = [(each.block, each.at, f"node {node}") for node, some in context.shown.items() for each in some]
    for pool in context.dump.pools:
        every += [(one, pool.at, f"CiliumPodIPPool {pool.name}") for one in chain(*pool.cidrs.values())]
    flags = {"ipam": "cluster-pool", **context.flags.values, **arguments(context.flags.arguments or ())}
    for block in (*listed(flags, 4), *listed(flags, 6)) if flags["ipam"] == "cluster-pool" else ():
        every.append((block, context.config_at, "the operator's list"))
    seen = tuple([Prefix(block=block, at=at, owner=owner) for block, at, owner in every])
    mine = ClusterPrefixes(cluster="", space="", at=context.cluster.at, prefixes=seen)
    found: dict[str, list[tuple[Prefix, Prefix]]] = {}
    for prefix, cluster, other in overlaps(mine, _others(context, [prefix.block for prefix in seen])):
        found.setdefault(cluster, []).append((prefix, other))
    for cluster, pairs in found.items():
        prefix, other = pairs[0]
        more = f", and {count(len(pairs) - 1, 'more overlap')}" if pairs[1:] else ""
        text = f"{prefix.block} of {prefix.owner} overlaps {other} of cluster {cluster}{more}"
        also = [Related(other.at, f"{other.block} belongs to cluster {cluster} here")]
        fix = f"move the pods with its addresses to another block, in this cluster or in {cluster}"
        yield Result(error("IPC0937", prefix.at, text, also=also, help=fix))
