"""Rules about the addresses of pods. Linear in the pods: there may be 150,000."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.model.cidr import BITS, Address, Block, address_text
from ipamc.model.cilium.flags import is_true
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Related, count, error, names, several, warning
from ipamc.model.dump import SeenEndpoint, SeenPod
from ipamc.review.audit.causes import ENDPOINT, POD, Suppressed
from ipamc.review.audit.context import CALICO, LISTED, Context, Result, texts
from ipamc.review.live.objects import restart

_Ranges = Mapping[str, Sequence[tuple[int, int, int]]]  # by node: (family, first, last) of its blocks


def _name(item: SeenPod | SeenEndpoint) -> str:
    return f"{item.namespace}/{item.name}"


def pods_outside(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0960: each pod has addresses of its node's blocks."""
    outside = [
        item
        for item in _all_outside(context, _ranges(context))
        if not suppressed.explains("IPC0960", context.source(item[1]), [_single(item[2])])
    ]
    if not outside:
        return
    first, node, _ = outside[0]
    nodes = list(dict.fromkeys(name for _, name, _ in outside))
    on = f"{count(len(nodes), 'node')} ({names(nodes)})" if len(nodes) > 1 else f"node {node}"
    which = [f"{_name(item)} ({address_text(*address)})" for item, _, address in outside]
    text = several(which, "pod", f"on {on} with an address outside the blocks of the node")
    also = []
    for item, name, address in outside[:LISTED]:
        others = (
            other
            for other, blocks in context.shown.items()
            if other != name and any(shown.block.contains(_single(address)) for shown in blocks)
        )
        of = next((f", which node {other} has" for other in others), "")
        also.append(Related(item.at, f"{_name(item)} has {address_text(*address)}{of}"))
        also.append(context.related(name, f"{name} has {texts(context.blocks_of(name))}"))
    delete = f"kubectl -n {first.namespace} delete pod {first.name}"
    way_out = f"{delete}, after its agent has restarted with the blocks of the node"
    yield Result(error("IPC0960", first.at, text, also=also, help=way_out))


def _all_outside(context: Context, ranges: _Ranges) -> Iterator[tuple[SeenPod | SeenEndpoint, str, Address]]:
    """Yield pods, then CiliumEndpoints, with their node and an address outside its blocks, each name once.
    In multi-pool mode a young pod may be in a block that is newer than the list of CiliumNodes;
    CiliumEndpoints have no age.
    """
    multi = context.cluster.mode is Mode.MULTI_POOL
    reported: set[tuple[str, str]] = set()
    for pod in context.dump.pods:
        if pod.host_network or not pod.addresses or pod.has_ended or pod.node not in ranges:
            continue
        address = _outside(pod.addresses, ranges[pod.node])
        if address and not (multi and context.is_young(pod)):
            reported.add((pod.namespace, pod.name))
            yield pod, pod.node, address
    if multi:
        return
    node_by_ip = context.dump.node_by_ip
    for endpoint in context.dump.endpoints:
        node = node_by_ip.get(endpoint.node_ip, "") if endpoint.node_ip else ""
        address = _outside(endpoint.addresses, ranges[node]) if node in ranges else None
        if address and (endpoint.namespace, endpoint.name) not in reported:
            yield endpoint, node, address


def _ranges(context: Context) -> _Ranges:
    """Return the address ranges of nodes with blocks, without nodes that only another network serves."""
    others = {node for node in context.pods_of.get(CALICO, {}) if not context.agent_ran(node)}
    return {
        node: [(shown.block.family, shown.block.first, shown.block.last) for shown in blocks]
        for node, blocks in context.shown.items()
        if node not in others and node in context.dump.nodes_by_name
    }


def _outside(addresses: Sequence[Address], ranges: Sequence[tuple[int, int, int]]) -> Address | None:
    for address in addresses:
        family, number = address
        for other, first, last in ranges:
            if other == family and first <= number <= last:
                break
        else:
            return address
    return None


def _single(address: Address) -> Block:
    return Block(address[0], address[1], BITS[address[0]])


def one_address_twice(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0961: no two pods have one address."""
    users: dict[Address, SeenPod] = {}
    pairs: list[tuple[SeenPod, SeenPod, Address]] = []
    for pod in context.dump.pods:
        if pod.host_network or pod.deleting or pod.has_ended:
            continue
        for address in pod.addresses:
            first = users.setdefault(address, pod)
            if first is not pod:
                pairs.append((first, pod, address))
    if pairs:
        one, other, address = pairs[0]
        more = f"; {len(pairs):,} pairs" if pairs[1:] else ""
        both = f"{_name(one)} ({one.node}) and {_name(other)} ({other.node})"
        text = f"pods {both} both have {address_text(*address)}{more}"
        some = [(pod, address_text(*shared)) for pod, _, shared in pairs[:LISTED]]
        also = [Related(pod.at, f"{_name(pod)} has {shared}") for pod, shared in some]
        way_out = f"kubectl -n {other.namespace} delete pod {other.name}"
        yield Result(error("IPC0961", other.at, text, also=also, help=way_out))


def without_endpoint(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0962: Cilium knows each pod of a node with an agent."""
    config = context.config
    if not {ENDPOINT, POD} <= context.dump.kinds or config is None:
        return
    if is_true(config, "disable-endpoint-crd"):
        return
    agents = {node.name for node in context.dump.nodes if context.agent_ran(node.name)}
    without = [
        pod
        for pod in context.dump.pods
        if (pod.namespace, pod.name) not in context.endpoints
        and pod.phase == "Running"
        and pod.addresses
        and not (pod.host_network or pod.deleting)
        and pod.node in agents
        and pod.started
        and not context.is_young(pod)
    ]
    if without:
        first = without[0]
        text = several([*map(_name, without)], "pod", "without a CiliumEndpoint, started before Cilium")
        also = [Related(pod.at, f"{_name(pod)} on {pod.node}") for pod in without[1:LISTED]]
        way_out = f"kubectl -n {first.namespace} delete pod {first.name}"
        yield Result(warning("IPC0962", first.at, text, also=also, help=way_out))


def endpoint_differs(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0963: a pod and its CiliumEndpoint have the same addresses."""
    if POD not in context.dump.kinds:
        return
    endpoints, ranges = context.endpoints, _ranges(context)
    differ = [
        (pod, endpoint)
        for pod in (context.dump.pods if endpoints else ())
        if (endpoint := endpoints.get((pod.namespace, pod.name))) is not None
        and endpoint.addresses
        and pod.addresses
        and pod.addresses[0] not in endpoint.addresses
        and pod.phase == "Running"
        and not (pod.host_network or pod.deleting)
        and set(pod.addresses).isdisjoint(endpoint.addresses)
        and pod.node in ranges
        and not _outside((*pod.addresses, *endpoint.addresses), ranges[pod.node])
        and not context.is_young(pod)
    ]
    if differ:
        pod, endpoint = differ[0]
        pods = [_name(pod) for pod, _ in differ]
        text = several(pods, "CiliumEndpoint", "with another address than its pod")
        has, other = (address_text(*item.addresses[0]) for item in (pod, endpoint))
        also = [Related(pod.at, f"the pod has {has}, and its CiliumEndpoint {other}")]
        way_out = restart(context.cluster.namespace, pod.node)
        yield Result(warning("IPC0963", endpoint.at, text, also=also, help=way_out))
