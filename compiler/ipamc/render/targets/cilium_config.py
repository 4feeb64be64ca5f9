"""A partial ConfigMap `cilium-config`: the keys that decide where addresses come from.

Values are strings; lists are joined by a space, which every version accepts (a comma only from 1.20 on). Keys
of a disabled family are left out: the operator does not start with CIDRs of such a family.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamc.model.cilium.operator_list import operator_lists
from ipamc.model.cluster import Mode
from ipamc.model.pool_ranges import Given
from ipamc.model.pool_words import FLAG_FIELDS
from ipamc.render.targets.context import File, Layout, texts
from ipamc.render.targets.pod_ip_pool import allowed, shared_families

TEMPLATE = "cilium_config.yaml.j2"


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/configmap.yaml`, which is applied only with `managedBy: none`."""
    cluster = layout.plan.cluster
    yield File("cilium/configmap.yaml", TEMPLATE, values(layout), applied=cluster.managed_by == "none")


def values(layout: Layout) -> dict[str, object]:
    """Return the values of the template."""
    return {"namespace": layout.plan.cluster.namespace, "data": tuple(data(layout).items())}


def data(layout: Layout) -> dict[str, str]:
    """Return the ConfigMap's data by key, without keys of other modes and disabled families."""
    cluster = layout.plan.cluster
    found = {"ipam": str(cluster.mode)}
    for family in (4, 6):
        found[f"enable-ipv{family}"] = "true" if family in cluster.families else "false"
    if cluster.patch_nodes == "annotations":
        found["annotate-k8s-node"] = "true"
    for family, (cidrs, mask) in cluster_pools(layout).items():
        found[f"cluster-pool-ipv{family}-cidr"] = " ".join(cidrs)
        found[f"cluster-pool-ipv{family}-mask-size"] = str(mask)
    if pools := auto_created(layout):
        found["auto-create-cilium-pod-ip-pools"] = ",".join(
            f"{name}={_spec(families, allows)}" for name, (families, allows) in pools.items()
        )
    return dict(sorted(found.items()))


def cluster_pools(layout: Layout) -> dict[int, tuple[tuple[str, ...], int]]:
    """Return (CIDRs, mask) of cluster-pool mode by family: pools by name, ranges in the order of the file.

    With `operator: adopt` the operator gives out whatever is free in the list: see `operator_list`. A bystander
    gives out nothing and has all pools. The mask is the longest prefix in use: with a shorter one the operator
    would book more addresses than a block has.
    """
    cluster = layout.plan.cluster
    if cluster.mode is not Mode.CLUSTER_POOL:
        return {}
    if cluster.operator_adopts:
        lists = operator_lists(cluster, layout.plan.lock.lines, layout.masks)
        return {
            family: (texts(blocks), layout.masks[family])
            for family, blocks in sorted(lists.items())
            if blocks
        }
    pools = sorted(cluster.pools, key=lambda pool: pool.name)
    found = {}
    for family in sorted(cluster.families):
        cidrs = texts(
            part.block for pool in pools if family in pool.families for part in pool.families[family].ranges
        )
        if cidrs:
            found[family] = (cidrs, layout.masks[family])
    return found


Families = tuple[tuple[int, tuple[str, ...], int], ...]
"""(family, CIDRs, mask)."""


def auto_created(layout: Layout) -> dict[str, tuple[Families, tuple[str, ...]]]:
    """Return families and fields of `allowed` by pool, for the shared pools that the operator's flag creates."""
    cluster = layout.plan.cluster
    created = layout.plan.operator_pools.intersection(cluster.auto_create)
    if not created:
        return {}
    given = Given(cluster, layout.plan.lock)
    found = {}
    for pool in sorted(cluster.pools, key=lambda pool: pool.name):
        if pool.name in created and (families := tuple(shared_families(layout, pool, given))):
            found[pool.name] = families, allowed(pool)
    return found


def _spec(families: Families, allows: tuple[str, ...]) -> str:
    """Return a pool in the flag's grammar and Helm's order
    (operator/pkg/ipam/allocator/multipool/pool_handler.go@1.20.2, ParsePoolSpec).
    """
    parts = [
        f"ipv{family}-cidrs:{','.join(cidrs)};ipv{family}-mask-size:{mask}"
        for family, cidrs, mask in families
    ]
    return ";".join((*parts, *(f"{FLAG_FIELDS[name]}:true" for name in allows)))
