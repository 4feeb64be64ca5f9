"""Rules of multi-pool mode, and about pools that select pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can, since, text
from ipamc.model.cluster import Cluster, Dialect, Mode, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, count, error, warning
from ipamc.model.limits import MOST_PAIRS_OF_POOLS
from ipamc.model.node import HOSTNAME, Node
from ipamc.model.plan import Want, by_place
from ipamc.model.pool_words import FLAG_FIELDS, block_size, other_family
from ipamc.model.selector.normal_form import ANYTHING, Outcomes, apart
from ipamc.model.wording import shown


def check_multi_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about multi-pool mode."""
    if cluster.mode is not Mode.MULTI_POOL:
        return
    yield from multi_pool_too_early(cluster)
    yield from multi_pool_tunnel(cluster)
    yield from pinning_too_early(cluster)
    yield from no_default_pool(cluster)
    if cluster.pinning == "none":
        defaults = (pool for pool in cluster.pools if pool.name == "default")
        yield from default_pool_lacks_family(cluster, defaults)
    yield from one_size_a_pool(cluster)
    yield from dotted_pool_name(cluster)
    yield from auto_create_pinned(cluster)
    if cluster.pinning != "none":
        yield from one_hostname(cluster)
        yield from name_too_long(cluster)


def multi_pool_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0521: multi-pool mode needs Cilium 1.14."""
    if not can(cluster.cilium, Capability.MULTI_POOL):
        at = cluster.field("spec", "ipam", "mode")
        message = needs(cluster, "multi-pool mode", Capability.MULTI_POOL)
        yield error("IPC0521", at, message, also=[cluster.version_here], help="use cluster-pool mode")


def needs(cluster: Cluster, what: str, capability: Capability) -> str:
    """Return the text that the cluster's Cilium lacks something, and the version that has it."""
    first, has = text(since(capability)), text(cluster.cilium)
    return f"{what} needs Cilium {first} or newer, but the cluster has Cilium {has}"


def multi_pool_tunnel(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0522: multi-pool mode with tunnel routing needs Cilium 1.18."""
    if cluster.routing_mode == "tunnel" and not can(cluster.cilium, Capability.MULTI_POOL_TUNNEL):
        at = cluster.field("spec", "cilium", "routingMode")
        message = needs(cluster, "routingMode: tunnel in multi-pool mode", Capability.MULTI_POOL_TUNNEL)
        upgraded = f"until Cilium {text(since(Capability.MULTI_POOL_TUNNEL))} runs on all nodes"
        fix = f"use cluster-pool mode {upgraded}; set routingMode: native only if cilium-config has it"
        yield error("IPC0522", at, message, help=fix)


def pinning_too_early(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0523: `pinning` needs Cilium 1.15."""
    if cluster.pinning != "none" and not can(cluster.cilium, Capability.DEFAULT_IP_POOL):
        message = needs(cluster, f"pinning: {cluster.pinning}", Capability.DEFAULT_IP_POOL)
        yield error("IPC0523", cluster.field("spec", "ipam", "pinning"), message, help="set pinning: none")


def no_default_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0525: `pinning: none` needs a pool named `default`."""
    named = next((pool for pool in cluster.pools if pool.name == "default"), None)
    if cluster.pinning == "none" and (named is None or named.pods_only):
        at = cluster.field("spec", "ipam", "pinning")
        message = f'pinning: none needs a pool {"for nodes " if named else ""}named "default"'
        yield error("IPC0525", at, message, help="name a pool default, or set pinning: pool")


def default_pool_lacks_family(cluster: Cluster, defaults: Iterable[Pool]) -> Iterator[Diagnostic]:
    """IPC0526: a node's default pool has ranges of every IP family of the cluster."""
    for pool in sorted(defaults, key=lambda pool: pool.name):
        missing = [family for family in cluster.families if family not in pool.families]
        if missing:
            message = f'default pool "{pool.name}" has no IPv{missing[0]} range'
            also = [Related(cluster.field("spec", "ipFamilies"), "the families are set here")]
            yield error("IPC0526", pool.at / "spec", message, also=also, help=other_family(pool, missing[0]))


def one_size_a_pool(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0528: with `pinning: pool` a pool has one block size and `blocksPerNode: 1`."""
    if cluster.pinning != "pool":
        return
    for pool in cluster.pools:
        if pool.block_sizes:
            at = pool.at / "spec" / "blockSizes"
            message = f'pool "{pool.name}" has blockSizes, which pinning: pool does not allow'
            yield error("IPC0528", at, message, help="set pinning: node, or write one pool for each size")
        if pool.blocks_per_node > 1:
            at, has = pool.at / "spec" / "blocksPerNode", f"has blocksPerNode {pool.blocks_per_node}"
            message = f'pool "{pool.name}" {has}, but pinning: pool allows 1'
            yield error("IPC0528", at, message, help="set pinning: node, or blocksPerNode: 1")


def dotted_pool_name(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0530: with `pinning: node` a pool's name has no dot."""
    if not cluster.own_pools:
        return
    for pool in cluster.pools:
        if "." in pool.name:
            at = pool.at / "metadata" / "name"
            message = f'pool "{pool.name}" has a dot in its name, which pinning: node does not allow'
            yield error("IPC0530", at, message, help=f"name it {pool.name.replace('.', '-')}")


def mask_size_changed(pool: Pool, family: int, before: int, now: int, also: Related) -> Diagnostic:
    """IPC0524: in multi-pool mode, a rendered pool and a pool with lock lines keep their block size."""
    message = f'maskSize of pool "{pool.name}" would change from {before} to {now}, but it is immutable'
    fix = f"set {block_size(pool, family, before)} again, and write a new pool for blocks of /{now}"
    return error("IPC0524", pool.families[family].at / "blockSize", message, also=[also], help=fix)


def auto_create_pinned(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0533: with `pinning: node` there is no `autoCreate`."""
    if cluster.own_pools and cluster.auto_create:
        at, pools = cluster.field("spec", "ipam", "autoCreate"), ", ".join(cluster.auto_create)
        message = f"autoCreate {pools} does not work with pinning: node, where all pools are manifests"
        also = [Related(cluster.field("spec", "ipam", "pinning"), "pinning is set here")]
        yield error("IPC0533", at, message, also=also, help="remove autoCreate, or set pinning: pool")


def first_and_further(cluster: Cluster, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """IPC0537: with `pinning: node` a pool is the first candidate of all its nodes or of none."""
    if not cluster.own_pools:
        return
    first, further = by_place(wants)
    for pool in cluster.pools:
        if pool.name in first and pool.name in further:
            one, other = first[pool.name], further[pool.name]
            nodes = f"node {one.name} and a further one of node {other.name}"
            message = f'pool "{pool.name}" is the first candidate of {nodes}'
            also = [Related(one.at, "first candidate here"), Related(other.at, "further candidate here")]
            narrow = f"narrow nodeSelector of {pool.name} or of the other pool so that they share no node"
            fix = f"{narrow}, change priority, or split {pool.name} into two pools"
            yield error("IPC0537", pool.at / "metadata" / "name", message, also=also, help=fix)


def one_hostname(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0534: with `pinning: pool` or `node` no two nodes have the same `kubernetes.io/hostname`."""
    first: dict[str, Node] = {}
    for node in cluster.nodes:
        before = first.setdefault(node.hostname, node)
        if before is not node:
            message = f"node {node.name} has the same {HOSTNAME} as node {before.name}: {node.hostname}"
            fix = "give each node its own hostname, or set pinning: none"
            yield error("IPC0534", node.at, message, also=[Related(before.at, "the other node")], help=fix)


def name_too_long(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0535: names that `pinning` derives from node names are valid in Kubernetes."""
    longest = max((len(pool.name) for pool in cluster.pools), default=0)
    for node in cluster.nodes:
        length = len(node.name)
        if HOSTNAME not in node.labels and length > 63:
            name = f"its name of {length} characters is too long for a label value (limit 63)"
            message = f"node {node.name} has no label {HOSTNAME}, and {name}"
            yield error("IPC0535", node.at, message, help=f"add the node's label {HOSTNAME} to the inventory")
        elif cluster.own_pools and longest + 1 + length > 253:
            name = f"a name of {longest + 1 + length} characters; the limit is 253"
            message = f"node {node.name} would get a pool with {name}"
            yield error("IPC0535", node.at, message, help="use a shorter pool name")


CALICO_NAME = "projectcalico.org/name"
"""A label that Calico adds to each namespace, and only Calico sees."""


def check_pods(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about the fields of pools that concern pods."""
    for pool in cluster.pools:
        if pool.dialect is Dialect.CALICO:
            yield from namespace_selector(cluster, pool)
        else:
            yield from only_in_multi_pool(cluster, pool)
            yield from field_too_early(cluster, pool)
            yield from selects_no_pod(cluster, pool)
    if cluster.mode is Mode.MULTI_POOL:
        yield from selected_twice(cluster)


def _written(pool: Pool) -> dict[str, Place]:
    """Return the fields of a pool about pods, in the order of the schema, with their places."""
    also = {**pool.allows, "skipMasquerade": pool.skip_masquerade}
    fields = (
        *(["podsOnly"] if pool.pods_only else []),
        *pool.by_pods,
        *(name for name, is_set in also.items() if is_set),
    )
    return {name: _field(pool, name) for name in fields}


def _field(pool: Pool, name: str) -> Place:
    return Place(pool.at.path, pool.at.document, (*pool.at.keys, "spec", name), key=True)


def _capability(field: str) -> Capability:
    if field == "skipMasquerade":
        return Capability.SKIP_MASQUERADE
    if field == "podsOnly":
        return Capability.MULTI_POOL  # the annotation of pods is as old as the mode
    return Capability.ALLOW_ENDS if field.startswith("allow") else Capability.POD_SELECTORS


def namespace_selector(cluster: Cluster, pool: Pool) -> Iterator[Diagnostic]:
    """IPC0106: Cilium can express the `namespaceSelector` of a Calico pool."""
    selector = pool.namespace_selector
    if selector is None:
        return
    help_ = "remove namespaceSelector, or this pool"
    if cluster.mode is not Mode.MULTI_POOL:
        problem = "a block serves pods of every namespace"
    elif not can(cluster.cilium, Capability.POD_SELECTORS):
        first = text(since(Capability.POD_SELECTORS))
        problem = f"it needs Cilium {first} or newer, but the cluster has Cilium {text(cluster.cilium)}"
    elif CALICO_NAME in selector.keys:
        problem = f"only Calico gives namespaces the label {CALICO_NAME}"
        help_ = "test kubernetes.io/metadata.name instead"
    elif selector.impossible:
        problem = selector.impossible
    elif pool.name in cluster.auto_create:
        problem = "autoCreate does not support it"
        help_ = f"remove {pool.name} from autoCreate: a manifest supports it"
    elif selector.label_selector is None:
        problem = "Cilium takes a LabelSelector, which cannot express this"
        help_ = "write it with ==, in, not in, has and &&; or remove namespaceSelector, or this pool"
    else:
        return
    message = f"namespaceSelector {shown(str(selector.source))} cannot apply: {problem}"
    yield error("IPC0106", pool.at / "spec" / "namespaceSelector", message, help=help_)


def only_in_multi_pool(cluster: Cluster, pool: Pool) -> Iterator[Diagnostic]:
    """IPC0561: pool fields about pods are set only in multi-pool mode."""
    fields = _written(pool)
    if fields and cluster.mode is not Mode.MULTI_POOL:
        message = f'pool "{pool.name}" has {" and ".join(fields)}, which {cluster.mode} mode does not support'
        fix = f"remove {' and '.join(fields)}, or use multi-pool mode"
        yield error("IPC0561", next(iter(fields.values())), message, also=[cluster.mode_here], help=fix)


def field_too_early(cluster: Cluster, pool: Pool) -> Iterator[Diagnostic]:
    """IPC0562: the cluster's Cilium supports the pool fields about pods."""
    if cluster.mode is not Mode.MULTI_POOL:
        return
    for name, at in _written(pool).items():
        if not can(cluster.cilium, _capability(name)):
            message = needs(cluster, f'{name} of pool "{pool.name}"', _capability(name))
            yield error("IPC0562", at, message, also=[cluster.version_here], help=f"remove {name}")


def selects_no_pod(cluster: Cluster, pool: Pool) -> Iterator[Diagnostic]:
    """IPC0563: ipamc can render the pool fields about pods."""
    for name in _written(pool):
        selector = pool.by_pods.get(name)
        if pool.name in cluster.auto_create and name not in FLAG_FIELDS:
            problem = f'pool "{pool.name}" has {name}, which autoCreate does not support'
            help_ = f"remove {pool.name} from autoCreate: a manifest supports it"
        elif selector and (selector.label_selector is None or selector.impossible):
            why = selector.impossible or "its conditions exclude each other"
            problem = f'{name} of pool "{pool.name}" selects nothing: {why}'
            help_ = f"remove {name}, or change its conditions"
        else:
            continue
        yield error("IPC0563", _field(pool, name), problem, help=help_)


def selects_for_each_node(
    cluster: Cluster, wants: Sequence[Want], shared: frozenset[str]
) -> Iterator[Diagnostic]:
    """IPC0564: with `pinning: node`, a node's first pool selects no pods."""
    for pool in cluster.pools:
        field = next(iter(pool.by_pods), "")
        if field and cluster.own_pools and pool.name not in shared:
            first = next((want.node for want in wants if want.first is pool), None)
            if first:
                has = f'pool "{pool.name}" has {field} and is the first candidate of node {first.name}'
                message = f"{has}: with pinning: node each node would get such a pool"
                pinning = Related(cluster.field("spec", "ipam", "pinning"), "pinning is set here")
                also = [pinning, Related(first.at, "the node")]
                other = "write another pool for the nodes, with a higher priority"
                fix = f"{other}; or remove {field}; or set pinning: pool"
                yield error("IPC0564", _field(pool, field), message, also=also, help=fix)


def pods_on_other_nodes(cluster: Cluster, wants: Sequence[Want]) -> Iterator[Diagnostic]:
    """IPC0567: pods that a pool selects get addresses of that pool on every node."""
    served: Counter[str] = Counter()
    for want in wants:
        served.update(offer.pool.name for offer in want.offers)
    for pool in cluster.pools:
        others = len(wants) - served[pool.name]
        if pool.by_pods and others and not pool.disabled:
            field = next(iter(pool.by_pods))
            nodes = f"{count(others, 'node')} that its nodeSelector does not select"
            message = f'{field} of pool "{pool.name}" selects pods on every node, including {nodes}'
            also = [Related(pool.selector_at, "the nodes are selected here")]
            fix = "keep these pods on the pool's nodes with a nodeSelector of their own"
            yield warning("IPC0567", _field(pool, field), message, also=also, help=fix)


def selected_twice(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0565: two pools of one IP family never select the same pod."""
    by_pods = [(pool, pool.by_pods.values()) for pool in cluster.pools if pool.by_pods]
    pools = [pool for pool, both in by_pods if not any(selector.impossible for selector in both)]
    for pool, other in _overlapping(pools):
        equal = pool.by_pods == other.by_pods
        make = error if equal else warning
        field = next(iter(pool.by_pods))
        same = "select the same pods, which get" if equal else "may select the same pod, which would get"
        message = f'pools "{pool.name}" and "{other.name}" {same} no address'
        also = [Related(_field(other, next(iter(other.by_pods))), "the other pool")]
        exclude = "make the selectors exclude each other by values of one label"
        fix = f"{exclude}, or remove {' and '.join(pool.by_pods)} of one"
        yield make("IPC0565", _field(pool, field), message, also=also, help=fix)


def _overlapping(pools: Sequence[Pool]) -> Iterator[tuple[Pool, Pool]]:
    """Yield pools that may select a pod of an earlier one, each with the first such.
    Compares only pools that share a value of the most tested label, or do not test it.
    """
    conditions: list[dict[tuple[str, str], Outcomes]] = []
    for pool in pools:
        both = ((field, selector.outcomes.items()) for field, selector in pool.by_pods.items())
        conditions.append({(field, key): outcomes for field, some in both for key, outcomes in some})
    tested = Counter(key for each in conditions for key, outcomes in each.items() if outcomes.listed)
    common = max(tested, key=lambda key: (tested[key], key), default=None)
    by_value: dict[str, list[int]] = {}
    without: list[int] = []
    for number, pool in enumerate(pools):
        outcomes = conditions[number].get(common, ANYTHING) if common else ANYTHING
        if outcomes.listed and not outcomes.absent:
            with_value = (one for value in outcomes.members for one in by_value.get(value, ()))
            earlier: Sequence[int] = sorted({*without, *with_value})
        else:
            earlier = range(number)
        for one in earlier[: MOST_PAIRS_OF_POOLS // len(pools)]:
            alike = pools[one].families.keys() & pool.families.keys()
            if alike and not apart(conditions[one], conditions[number]):
                yield pool, pools[one]
                break
        if outcomes.listed and not outcomes.absent:
            for value in outcomes.members:
                by_value.setdefault(value, []).append(number)
        else:
            without.append(number)
