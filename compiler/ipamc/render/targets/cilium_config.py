"""The keys of `cilium-config` that decide about addresses: partial ConfigMap, Helm values, Component.

Values are strings; lists are joined by a space, which every version accepts (a comma only from 1.20 on). Keys
of a disabled family are omitted: the operator does not start with CIDRs of such a family.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from ipamc.model import masquerade
from ipamc.model.cilium.operator_list import BYSTANDER, operator_lists
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from ipamc.model.cluster import Mode
from ipamc.model.pool_ranges import Given
from ipamc.model.pool_words import FLAG_FIELDS
from ipamc.read.parts import MASQ_AGENT
from ipamc.render.targets.context import File, Layout, kustomization, texts
from ipamc.render.targets.pod_ip_pool import allowed, shared_families

TEMPLATE = "cilium_config.yaml.j2"
COMPONENT = "cilium/component"
ANNOTATE, BPF, ONLY_DEFAULT = "annotate-k8s-node", "enable-bpf-masquerade", "only-masquerade-default-pool"
NATIVE = {family: f"ipv{family}-native-routing-cidr" for family in (4, 6)}


def files(layout: Layout) -> Iterator[File]:
    """Yield `cilium/configmap.yaml`, which is applied only with `managedBy: none`."""
    cluster = layout.plan.cluster
    yield File("cilium/configmap.yaml", TEMPLATE, values(layout), applied=cluster.managed_by == "none")


def masq_agent(layout: Layout) -> Iterator[File]:
    """Yield `cilium/ip-masq-agent.yaml`, the list of CIDRs that are not masqueraded.
    It is applied with `managedBy: none`, and if the chart is too old to make this ConfigMap.
    """
    cluster = layout.plan.cluster
    by_chart = cluster.managed_by == "helm" and can(cluster.cilium, Capability.HELM_IP_MASQ_CONFIG)
    if found := _masq_agent(layout):
        applied = cluster.managed_by != "kustomize" and not by_chart
        yield File(MASQ_AGENT, "ip_masq_agent.yaml.j2", found, applied=applied)


def _masq_agent(layout: Layout) -> dict[str, object]:
    """Return the values of the template of the ip-masq-agent; {} without one."""
    cluster, asked = layout.plan.cluster, layout.plan.cluster.masquerade
    if not asked or not asked.ip_masq_agent:
        return {}
    link_local = {"masqLinkLocal": asked.link_local, "masqLinkLocalIPv6": asked.link_local_6}
    return {
        "namespace": cluster.namespace,
        "masquerade": tuple(name for name, is_set in link_local.items() if is_set),
        "cidrs": texts(layout.unmasqueraded),
    }


def helm_values(layout: Layout) -> Iterator[File]:
    """Yield `cilium/helm-values.yaml` for `helm upgrade -f`; it is no manifest.
    `operator.rollOutPods` annotates the operator's pods with a checksum of `cilium-config`: it restarts by
    itself, and pods lose nothing by that. There is no `rollOutCiliumPods`: it would restart every agent at
    any change of `cilium-config`, also of keys that only the operator reads and of keys of others, and in a
    change of mode before the nodes are drained. The plan says which agents must restart; a value that the
    user sets stays as it is.
    """
    cluster = layout.plan.cluster
    annotate = cluster.patch_nodes == "annotations"
    chart_value = can(cluster.cilium, Capability.HELM_ANNOTATE_NODE)
    given, by_extra = data(layout), (ONLY_DEFAULT, *(() if chart_value else (ANNOTATE,)))
    found = {
        "annotate": annotate and chart_value,
        "extra": tuple((key, given[key]) for key in sorted(by_extra) if key in given),
        "bpf": BPF in given,
        "masq_agent": _masq_agent(layout),
        "mode": str(cluster.mode),
        "pools": tuple((family, *rest) for family, rest in cluster_pools(layout).items()),
        "auto_created": tuple(auto_created(layout).items()),
        "families": tuple(
            (family, family in cluster.families, given.get(NATIVE[family], "")) for family in (4, 6)
        ),
        "arguments": (BYSTANDER,) if cluster.bystander else (),
    }
    yield File("cilium/helm-values.yaml", "helm_values.yaml.j2", found, applied=False)


def component(layout: Layout) -> Iterator[File]:
    """Yield the files of `cilium/component/`, which the user's kustomization with Cilium names, not ours.
    A kustomize Component that patches ConfigMap `cilium-config` and Deployment `cilium-operator` of a chart.
    Both patches are strategic, so a base without those objects fails the build. The operator reads its
    configuration only at its start: an annotation with the data's hash restarts it when the data changes. As
    a bystander it gets `--ipam=kubernetes`, which overrides the ConfigMap, and hands out nothing.
    """
    namespace = layout.plan.cluster.namespace
    yield File(f"{COMPONENT}/cilium-config.yaml", TEMPLATE, values(layout), applied=False)
    digest = hashlib.sha256(json.dumps(data(layout), sort_keys=True).encode()).hexdigest()
    found = {"namespace": namespace, "digest": digest}
    yield File(f"{COMPONENT}/cilium-operator.yaml", "component.yaml.j2", found, applied=False)
    patches: list[dict[str, str]] = [{"path": "cilium-config.yaml"}, {"path": "cilium-operator.yaml"}]
    if layout.plan.cluster.bystander:
        operation = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": BYSTANDER}
        patches.append(
            {
                "patch": json.dumps([operation]),
                "group": "apps",
                "version": "v1",
                "kind": "Deployment",
                "name": "cilium-operator",
                "namespace": namespace,
            }
        )
    masq_agent, name = _masq_agent(layout), MASQ_AGENT.rpartition("/")[2]
    if masq_agent:
        yield File(f"{COMPONENT}/{name}", "ip_masq_agent.yaml.j2", masq_agent, applied=False)
    path = f"{COMPONENT}/kustomization.yaml"
    yield kustomization(path, [name] if masq_agent else [], patches, component=True)


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
        found[ANNOTATE] = "true"
    found |= _masquerading(layout)
    for family, (cidrs, mask) in cluster_pools(layout).items():
        found[f"cluster-pool-ipv{family}-cidr"] = " ".join(cidrs)
        found[f"cluster-pool-ipv{family}-mask-size"] = str(mask)
    if pools := auto_created(layout):
        found["auto-create-cilium-pod-ip-pools"] = ",".join(
            f"{name}={_spec(families, allows)}" for name, (families, allows) in pools.items()
        )
    return dict(sorted(found.items()))


def _masquerading(layout: Layout) -> dict[str, str]:
    """Return the keys that decide about masquerading. The ip-masq-agent does not start without BPF."""
    asked = layout.plan.cluster.masquerade
    if asked is None:
        return {}
    native = masquerade.native_routing(layout.plan.cluster, layout.unmasqueraded)
    found = {
        BPF: asked.ip_masq_agent or asked.only_default_pool,
        "enable-ip-masq-agent": asked.ip_masq_agent,
        ONLY_DEFAULT: asked.only_default_pool,
    }
    flags = {key: "true" for key, is_set in found.items() if is_set}
    return flags | {NATIVE[family]: str(block) for family, block in native.items()}


def cluster_pools(layout: Layout) -> dict[int, tuple[tuple[str, ...], int]]:
    """Return (CIDRs, mask) of cluster-pool mode by family: pools by name, ranges in the order of the file.
    With `operator: adopt` the operator gives out all free blocks of the list: see `operator_list`. A
    bystander gives out nothing and has all pools. The mask is the longest prefix in use: with a shorter one
    the operator would reserve more addresses than a block has.
    """
    cluster = layout.plan.cluster
    if cluster.mode is not Mode.CLUSTER_POOL:
        return {}
    if cluster.operator_adopts:
        lists = operator_lists(cluster, layout.plan.lock.lines, layout.masks)
    else:
        pools = sorted(cluster.pools, key=lambda pool: pool.name)
        every = [cidr.block for pool in pools for cidr in pool.ranges]
        families = cluster.families
        lists = {family: tuple(block for block in every if block.family == family) for family in families}
    filled = [(family, blocks) for family, blocks in sorted(lists.items()) if blocks]
    return {family: (texts(blocks), layout.masks[family]) for family, blocks in filled}


Families = tuple[tuple[int, tuple[str, ...], int], ...]
"""(family, CIDRs, mask)."""


def auto_created(layout: Layout) -> dict[str, tuple[Families, tuple[str, ...]]]:
    """Return families and fields of `allowed` by pool, for shared pools that the operator's flag creates."""
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
    """Return a pool in the flag's grammar (pool_handler.go@1.20.2, ParsePoolSpec), in Helm's order."""
    parts = [
        f"ipv{family}-cidrs:{','.join(some)};ipv{family}-mask-size:{mask}" for family, some, mask in families
    ]
    return ";".join((*parts, *(f"{FLAG_FIELDS[name]}:true" for name in allows)))
