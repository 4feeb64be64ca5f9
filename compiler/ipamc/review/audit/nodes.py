"""Rules about nodes, those in the cluster and in git, and about the addresses of their pods.

Linear in the pods: there may be 150,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ipamc.check.evidence import cidr_texts
from ipamc.lock.file import line_at
from ipamc.model.address_sets import lines_over
from ipamc.model.cidr import Address, address_text, single
from ipamc.model.cilium.flags import is_true
from ipamc.model.cilium.operator_list import giver_logs, restart
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Related, and_others, count, error, names, note, several, warning
from ipamc.model.dump import SeenEndpoint, SeenPod
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Ownership
from ipamc.model.wording import ip
from ipamc.review.audit.context import (
    CALICO,
    ENDPOINT,
    POD,
    Cause,
    Context,
    Fact,
    Make,
    Result,
    Suppressed,
)
from ipamc.review.live.objects import CILIUM_NODE, NODE, pod_cidr_annotations


def ghost_nodes(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0920: every Node has a kubelet."""
    if not any(node.kubelet for node in context.dump.nodes):
        return  # the dump has no status of Nodes, or no kubelet runs at all
    without = [node for node in context.dump.nodes if not (node.kubelet or node.ready or node.internal_ips)]
    ghosts = [node for node in without if not context.agent_ran(node.name)]
    if ghosts:
        first, every = ghosts[0], [node.name for node in ghosts]
        text = several(every, "Node", "without a kubelet")
        way_out = f"if no such machine exists: kubectl delete node {first.name}"
        way_out += "" if context.alone else ", and remove it from the inventory"
        listed = [name for name in every[:MOST_PLACES] if name in context.inventory]
        also = [Related(context.inventory[name].at, f"{name} is listed here") for name in listed]
        finding = warning("IPC0920", first.at, text, also=also, help=way_out)
        yield Result(finding, [Cause(f"{NODE} {name}", Fact.NO_MACHINE) for name in every])


def created_again(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0921: the uid of a node matches the inventory."""
    pairs = [(node, context.dump.nodes_by_name.get(node.name)) for node in context.cluster.nodes if node.uid]
    again = [
        (node, there)
        for node, there in pairs
        if there and there.uid and node.uid != there.uid
        if not suppressed.explains("IPC0921", f"{NODE} {node.name}")
    ]
    if not again:
        return
    node, there = again[0]
    nodes = [node.name for node, _ in again]
    blockless = [node for node in nodes if context.knows_blocks and not _families(context, node)]
    waits = [node for node in blockless if context.held(node)]
    make = error if waits and context.cluster.mode is not Mode.MULTI_POOL else warning
    wait = f"; without a block: {names(waits)}" if waits else ""
    inventory = f"the inventory has {node.uid}: it was created again"
    text = f"node {node.name} has uid {there.uid}, but {inventory}{and_others(nodes)}{wait}"
    also = [Related(node.at, f"{node.name} with the old uid") for node, _ in again[:MOST_PLACES]]
    causes = [Cause(f"{NODE} {name}", Fact.CREATED_AGAIN) for name in nodes]
    causes += [_no_block(context, name) for name in waits if make is error]
    repair = f"{context.apply} --repair\nto update the uid: {context.refresh}"
    way_out = repair if make is error and context.cluster.patch_nodes == "none" else context.refresh_and_apply
    yield Result(make("IPC0921", there.at, text, also=also, help=way_out), causes)


def _no_block(context: Context, node: str) -> Cause:
    """Return the fact that a node waits for the blocks that the lock gives it."""
    return Cause(context.object_of(node), Fact.NO_BLOCK, context.held(node))


def _families(context: Context, node: str) -> set[int]:
    """Return the families in which a node has a block: in kubernetes mode agents read only the Node."""
    if context.shows_nodes and context.cluster.patch_nodes != "annotations":
        return {block.family for block in context.dump.nodes_by_name[node].pod_cidrs}
    return {block.family for block in context.blocks_of(node)}


def waiting(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0922: every node with a Cilium agent has a block of each IP family."""
    lacks = {
        node.name: families
        for node in context.dump.nodes
        if not node.deleting
        and not suppressed.explains("IPC0922", f"{NODE} {node.name}")
        and not suppressed.explains("IPC0922", context.object_of(node.name))
        and (families := _missing(context, node.name))
    }
    since = [node for node in lacks if context.waits_since_import(node)]
    if since:
        text = f"node {since[0]} has no block yet, as at its import{and_others(since)}"
        finding = note("IPC0922", context.at(since[0]), text, help=context.apply)
        yield Result(finding, [_no_block(context, node) for node in since])
    nodes = [node for node in lacks if node not in since]
    if not nodes:
        return
    name, families = nodes[0], lacks[nodes[0]]
    held = [block for block in context.held(name) if block.family in families]
    mode, listed = context.cluster.mode, context.inventory.get(name)
    no_uid = mode is Mode.KUBERNETES and listed is not None and listed.planned
    if context.alone:
        way_out = f"find out why: {giver_logs(context.cluster)}"
    elif held and mode is Mode.MULTI_POOL:
        seen = context.dump.cilium_nodes_by_name.get(name)
        pools = f"check the room in its pools: ipamc show {context.cluster.name}"
        asks = f"read the operator's error: kubectl get ciliumnodes -o yaml\n{pools}"
        way_out = asks if seen and seen.requested else restart(context.cluster.namespace, name)
    else:
        way_out = f"{context.apply} --repair" if held and not no_uid else context.refresh_and_apply
    has = f", but the lock has {cidr_texts(held)} for it" if held else ""
    text = f"node {name} has no {ip(families)} block{has}{and_others(nodes)}"
    also = [related for node in nodes[:MOST_PLACES] for related in context.line_of(node, *lacks[node])]
    finding = error("IPC0922", context.at(name), text, also=also, help=way_out)
    yield Result(finding, [_no_block(context, node) for node in nodes])


def _missing(context: Context, name: str) -> list[int]:
    mode, node = context.cluster.mode, context.dump.nodes_by_name[name]
    seen = context.dump.cilium_nodes_by_name.get(name)
    there = _families(context, name)
    wanted = [family for family in context.cluster.families if family not in there]
    if not wanted or context.is_skipped(name) or context.mode_unknown:
        return []
    if mode is Mode.KUBERNETES:
        given = pod_cidr_annotations(node)
        if context.cluster.patch_nodes == "annotations":
            wanted = [family for family in wanted if not any(f"ipv{family}-" in key for key in given)]
        return wanted if node.ready or context.agent_ran(name) else []
    if seen is None:
        # If the dump lacks the kind, nothing is known; a rendered object that is missing is IPC0943.
        known = CILIUM_NODE in context.dump.kinds and f"{CILIUM_NODE} {name}" not in context.git.objects
        return wanted if known and context.agent_ran(name) else []
    if mode is Mode.MULTI_POOL:
        numbers = [pair for _, four, six in seen.requested for pair in ((4, four), (6, six))]
        asked = {family for family, number in numbers if number > 0}
        return [family for family in wanted if family in asked or (seen.owner_uid and not there)]
    return wanted


def left_but_runs(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0923: no node uses a block that is in quarantine."""
    users: dict[str, Line] = {}
    for node in context.dump.nodes:
        known = node.name in context.inventory or suppressed.explains("IPC0923", f"{NODE} {node.name}")
        former = [] if known or node.deleting else _former(context, node.name)
        if former and _uses(context, node.name, former):
            users[node.name] = former[0]
    if users:
        nodes = list(users)
        name, line = nodes[0], users[nodes[0]]
        since = f" since {line.since}" if line.since else ""
        blocks = cidr_texts(context.blocks_of(name))
        text = f"node {name} still uses {blocks}, in quarantine{since}{and_others(nodes)}"
        rows = [(node, line_at(context.lock, users[node])) for node in nodes[:MOST_PLACES]]
        also = [Related(row, f"{node} left the inventory here") for node, row in rows]
        way_out = f"to keep it, add it to the inventory again: {context.refresh}"
        finding = error("IPC0923", context.at(name), text, also=also, help=way_out)
        yield Result(finding, [Cause(context.source(node), Fact.NOT_LISTED) for node in nodes])


def _former(context: Context, node: str) -> list[Line]:
    """Return the lines of a node's former blocks, by address."""
    lines = (line for line in context.lines(node) if line.state is not State.HELD)
    return sorted(lines, key=lambda line: line.block)


def _uses(context: Context, node: str, lines: Sequence[Line]) -> bool:
    return any(lines_over(lines, block) for block in context.blocks_of(node))


def unlisted(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0924: every node of the cluster is in the inventory."""
    by_severity: dict[Make, list[str]] = {error: [], warning: []}
    for node in context.dump.nodes:
        name, shown = node.name, context.shown.get(node.name, ())
        if name in context.inventory or node.deleting or suppressed.explains("IPC0924", f"{NODE} {name}"):
            continue
        former = _former(context, name)
        if former and (_uses(context, name, former) or not context.knows_blocks):
            continue
        operators = all(context.ownership.of(each) is Ownership.OPERATORS for each in shown)
        if context.cluster.operator_adopts and operators:
            continue
        by_severity[error if any(context.refuses(each.block) for each in shown) else warning].append(name)
    for make, some in by_severity.items():
        if some:
            blocks = cidr_texts(context.blocks_of(some[0]))
            has = f", with blocks that a compile refuses: {blocks}" if make is error else ""
            text = f"{several(some, 'node', f'not in the inventory of {context.cluster.name}')}{has}"
            finding = make("IPC0924", context.dump.nodes_by_name[some[0]].at, text, help=context.refresh)
            kinds = [f"{kind} {name}" for name in some for kind in (NODE, CILIUM_NODE)]
            yield Result(finding, [Cause(about, Fact.NOT_LISTED) for about in kinds])


def gone(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0925: every node of the inventory is in the cluster, unless it is planned."""
    listed = [node for node in context.cluster.nodes if not node.planned]
    lost = [node for node in listed if node.name not in context.dump.nodes_by_name]
    if lost:
        routed = [node.name for node in lost if node.name in context.dump.cilium_nodes_by_name]
        more = f"; other nodes still route to {names(routed)}" if routed else ""
        which = several([node.name for node in lost], "node", "in the inventory, but not in the dump")
        also = [context.related(name, f"CiliumNode {name} still exists") for name in routed[:MOST_PLACES]]
        also += context.line_of(lost[0].name)
        way_out = f"if it left for good: {context.refresh}"
        finding = warning("IPC0925", lost[0].at, f"{which}{more}", also=also, help=way_out)
        yield Result(finding, [Cause(f"{NODE} {node.name}", Fact.GONE) for node in lost])


def without_node(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0926: every CiliumNode has a Node."""
    known = context.dump.nodes_by_name.keys() | context.inventory.keys()
    left = [
        seen
        for seen in context.dump.cilium_nodes
        if seen.name not in known and not seen.deleting
        if not suppressed.explains("IPC0926", f"{NODE} {seen.name}")
    ]
    if left:
        which = [f"{seen.name} ({cidr_texts(context.blocks_of(seen.name)) or 'no block'})" for seen in left]
        text = several(which, "CiliumNode", "without a Node, to which other nodes still route")
        lines = context.written(line for seen in left[:MOST_PLACES] for line in context.lines(seen.name)[:1])
        rows = [(line, f"the lock has {line.block} for {line.node} ({line.state})") for line in lines]
        also = [Related(line_at(context.lock, line), row) for line, row in rows]
        way_out = f"kubectl delete ciliumnode {left[0].name}"
        finding = warning("IPC0926", left[0].at, text, also=also, help=way_out)
        yield Result(finding, [Cause(f"{NODE} {seen.name}", Fact.GONE) for seen in left])


_Ranges = Mapping[str, Sequence[tuple[int, int, int]]]  # by node: (family, first, last) of its blocks


def _name(item: SeenPod | SeenEndpoint) -> str:
    return f"{item.namespace}/{item.name}"


def pods_outside(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0960: each pod has addresses in its node's blocks."""
    outside = [
        item
        for item in _all_outside(context, _ranges(context))
        if not suppressed.explains("IPC0960", context.source(item[1]), [single(item[2])])
    ]
    if not outside:
        return
    first, node, _ = outside[0]
    nodes = list(dict.fromkeys(name for _, name, _ in outside))
    on = f"{count(len(nodes), 'node')} ({names(nodes)})" if len(nodes) > 1 else f"node {node}"
    which = [f"{_name(item)} ({address_text(*address)})" for item, _, address in outside]
    text = several(which, "pod", f"on {on} with an address outside the node's blocks")
    also = []
    for item, name, address in outside[:MOST_PLACES]:
        others = (
            other
            for other, blocks in context.shown.items()
            if other != name and any(shown.block.contains(single(address)) for shown in blocks)
        )
        of = next((f", in a block of {other}" for other in others), "")
        also.append(Related(item.at, f"{_name(item)} has {address_text(*address)}{of}"))
        also.append(context.related(name, f"{name} has {cidr_texts(context.blocks_of(name))}"))
    delete = f"kubectl -n {first.namespace} delete pod {first.name}"
    way_out = f"{delete}, after its agent restarts with the node's blocks"
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


def one_address_twice(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0961: no two pods have the same address."""
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
        some = [(pod, address_text(*shared)) for pod, _, shared in pairs[:MOST_PLACES]]
        also = [Related(pod.at, f"{_name(pod)} has {shared}") for pod, shared in some]
        way_out = f"kubectl -n {other.namespace} delete pod {other.name}"
        yield Result(error("IPC0961", other.at, text, also=also, help=way_out))


def without_endpoint(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0962: each pod on a node with an agent has a CiliumEndpoint."""
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
        also = [Related(pod.at, f"{_name(pod)} on {pod.node}") for pod in without[1:MOST_PLACES]]
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
        text = several(pods, "CiliumEndpoint", "with an address that differs from its pod")
        has, other = (address_text(*item.addresses[0]) for item in (pod, endpoint))
        also = [Related(pod.at, f"the pod has {has}, its CiliumEndpoint has {other}")]
        way_out = restart(context.cluster.namespace, pod.node)
        yield Result(warning("IPC0963", endpoint.at, text, also=also, help=way_out))
