"""Rules about the addresses of pods. Linear in the pods: there may be 150,000."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.model.cidr import BITS, Address, Block, address_text
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Related, count, error, names, warning
from ipamc.model.dump import SeenEndpoint, SeenPod
from ipamc.review.audit.causes import ENDPOINT, POD, Suppressed
from ipamc.review.audit.context import CALICO, SHOWN, Found, Scene, whose

_Ranges = Mapping[str, Sequence[tuple[int, int, int]]]
"""By node: (family, first, last) of its blocks."""


def pods_outside(scene: Scene, told: Suppressed) -> Iterator[Found]:
    """IPC0960: each pod has addresses of its node's blocks."""
    outside = [
        item
        for item in _all_outside(scene, _ranges(scene))
        if not told.explains("IPC0960", scene.source(item[1]), [_single(item[2])])
    ]
    if not outside:
        return
    first, node, _ = outside[0]
    nodes = list(dict.fromkeys(name for _, name, _ in outside))
    on = f" on {count(len(nodes), 'node')} ({names(nodes)})" if len(nodes) > 1 else f" on node {node}"
    yield Found(
        error(
            "IPC0960",
            first.at,
            f"{count(len(outside), 'pod')}{on} with an address outside the blocks of the node: "
            f"{names(f'{item.namespace}/{item.name} ({address_text(*bad)})' for item, _, bad in outside)}",
            also=[
                related
                for item, name, bad in outside[:SHOWN]
                for related in (
                    Related(
                        item.at,
                        f"{item.namespace}/{item.name} has {address_text(*bad)}{_of_whom(scene, name, bad)}",
                    ),
                    scene.related(name, f"{name} has {whose(scene.shown[name])}"),
                )
            ],
            help=f"kubectl -n {first.namespace} delete pod {first.name}, after its agent has restarted with the blocks of the node",
        ),
    )


def _all_outside(scene: Scene, ranges: _Ranges) -> Iterator[tuple[SeenPod | SeenEndpoint, str, Address]]:
    """Yield pods, then CiliumEndpoints, with their node and the address that is outside of its blocks, each name once.

    In multi-pool mode a young pod may be in a block that is younger than the list of CiliumNodes, and CiliumEndpoints
    do not tell how old they are.
    """
    multi = scene.cluster.mode is Mode.MULTI_POOL
    said: set[tuple[str, str]] = set()
    for pod in scene.dump.pods:
        if pod.host_network or not pod.addresses or pod.has_ended or pod.node not in ranges:
            continue
        bad = _outside(pod.addresses, ranges[pod.node])
        if bad and not (multi and scene.is_young(pod)):
            said.add((pod.namespace, pod.name))
            yield pod, pod.node, bad
    of_ip = {} if multi else scene.dump.node_by_ip
    for endpoint in () if multi else scene.dump.endpoints:
        node = of_ip.get(endpoint.node_ip, "") if endpoint.node_ip else ""
        bad = _outside(endpoint.addresses, ranges[node]) if node in ranges else None
        if bad and (endpoint.namespace, endpoint.name) not in said:
            yield endpoint, node, bad


def _ranges(scene: Scene) -> _Ranges:
    """Return the addresses of the nodes that are judged: with blocks, and not with another network alone."""
    others = {node for node in scene.pods_of.get(CALICO, {}) if not scene.agent_ran(node)}
    return {
        node: [(shown.block.family, shown.block.first, shown.block.last) for shown in blocks]
        for node, blocks in scene.shown.items()
        if node not in others and node in scene.dump.nodes_by_name
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


def _of_whom(scene: Scene, node: str, address: Address) -> str:
    """Return which other node has an address. Only for the few that are shown. O(blocks)."""
    single = _single(address)
    for other, blocks in scene.shown.items():
        if other != node and any(shown.block.contains(single) for shown in blocks):
            return f", which node {other} has"
    return ""


def one_address_twice(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0961: no two pods have one address."""
    users: dict[Address, SeenPod] = {}
    pairs: list[tuple[SeenPod, SeenPod, Address]] = []
    for pod in scene.dump.pods:
        if pod.host_network or pod.deleting or pod.has_ended:
            continue
        for address in pod.addresses:
            first = users.setdefault(address, pod)
            if first is not pod:
                pairs.append((first, pod, address))
    if pairs:
        one, other, address = pairs[0]
        more = f"; {len(pairs):,} pairs" if pairs[1:] else ""
        yield Found(
            error(
                "IPC0961",
                other.at,
                f"pods {one.namespace}/{one.name} ({one.node}) and {other.namespace}/{other.name} ({other.node}) both have {address_text(*address)}{more}",
                also=[
                    Related(first.at, f"{first.namespace}/{first.name} has {address_text(*shared)}")
                    for first, _, shared in pairs[:SHOWN]
                ],
                help=f"kubectl -n {other.namespace} delete pod {other.name}",
            )
        )


def without_endpoint(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0962: Cilium knows each pod of a node with an agent."""
    if not {ENDPOINT, POD} <= scene.dump.kinds:
        return
    if scene.config is None or scene.config.get("disable-endpoint-crd") == "true":
        return
    known = scene.endpoints
    agents = {node.name for node in scene.dump.nodes if scene.agent_ran(node.name)}
    without = [
        pod
        for pod in scene.dump.pods
        if (pod.namespace, pod.name) not in known
        and pod.phase == "Running"
        and pod.addresses
        and not (pod.host_network or pod.deleting)
        and pod.node in agents
        and pod.started
        and not scene.is_young(pod)
    ]
    if without:
        pod = without[0]
        yield Found(
            warning(
                "IPC0962",
                pod.at,
                f"{count(len(without), 'pod')} without a CiliumEndpoint, started before Cilium: {names(f'{each.namespace}/{each.name}' for each in without)}",
                also=[
                    Related(each.at, f"{each.namespace}/{each.name} on {each.node}")
                    for each in without[1:SHOWN]
                ],
                help=f"kubectl -n {pod.namespace} delete pod {pod.name}",
            )
        )


def endpoint_differs(scene: Scene, told: Suppressed) -> Iterator[Found]:  # noqa: ARG001 - every check has these
    """IPC0963: a pod and its CiliumEndpoint have the same addresses."""
    if POD not in scene.dump.kinds:
        return
    shown, ranges = scene.endpoints, _ranges(scene)
    differ = [
        (pod, endpoint)
        for pod in (scene.dump.pods if shown else ())
        if (endpoint := shown.get((pod.namespace, pod.name))) is not None
        and endpoint.addresses
        and pod.addresses
        and pod.addresses[0] not in endpoint.addresses
        and pod.phase == "Running"
        and not (pod.host_network or pod.deleting)
        and set(pod.addresses).isdisjoint(endpoint.addresses)
        and pod.node in ranges
        and not _outside((*pod.addresses, *endpoint.addresses), ranges[pod.node])
        and not scene.is_young(pod)
    ]
    if differ:
        pod, endpoint = differ[0]
        yield Found(
            warning(
                "IPC0963",
                endpoint.at,
                f"{count(len(differ), 'CiliumEndpoint')} with another address than its pod: {names(f'{each.namespace}/{each.name}' for each, _ in differ)}",
                also=[
                    Related(
                        pod.at,
                        f"the pod has {address_text(*pod.addresses[0])}, and its CiliumEndpoint {address_text(*endpoint.addresses[0])}",
                    )
                ],
                help=f"kubectl -n {pod.namespace} delete ciliumendpoint {pod.name}",
            )
        )
