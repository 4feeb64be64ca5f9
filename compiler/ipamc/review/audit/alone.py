"""The rules of an audit that need no git: what is wrong in a cluster, from a dump alone (`ipamc check`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.cidr import address_text
from ipamc.model.diagnostics import Diagnostic, Related, several, warning
from ipamc.model.limits import MOST_PLACES
from ipamc.review.audit import Check, blocks, nodes, not_in_the_dump, programs, through
from ipamc.review.audit.context import ENDPOINT, POD, Context, Result, Suppressed


def without_pod(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0964: each CiliumEndpoint has a pod."""
    dump = context.dump
    if not {ENDPOINT, POD} <= dump.kinds:
        return
    pods = {(pod.namespace, pod.name) for pod in dump.pods if not pod.has_ended}
    left = [each for each in dump.endpoints if each.addresses and (each.namespace, each.name) not in pods]
    if left:
        first = left[0]
        which = [f"{each.namespace}/{each.name} ({address_text(*each.addresses[0])})" for each in left]
        text = several(which, "CiliumEndpoint", "without a pod, which holds an address")
        also = [Related(each.at, name) for each, name in zip(left, which[:MOST_PLACES], strict=False)][1:]
        way_out = f"if it is still there: kubectl -n {first.namespace} delete ciliumendpoint {first.name}"
        yield Result(warning("IPC0964", first.at, text, also=also, help=way_out))


_ANY = (nodes.one_address_twice,)
"""The rules for a cluster whose nodes have no blocks."""
_BLOCKS = (blocks.two_nodes_one_block, blocks.address_of_a_node)
"""The rules for nodes with blocks, whoever gives them."""
CHECKS: Mapping[str, tuple[Check, ...]] = {
    "": (*_ANY, without_pod),
    "calico": (*_BLOCKS, *_ANY),
    "cilium": (
        not_in_the_dump,
        programs.masquerades_one_range,
        programs.routes_to_no_block,
        nodes.ghost_nodes,
        *_BLOCKS,
        blocks.wrong_routes,
        nodes.waiting,
        nodes.without_node,
        blocks.block_of_no_pool,
        blocks.former_router,
        nodes.pods_outside,
        *_ANY,
        nodes.without_endpoint,
        nodes.endpoint_differs,
        without_pod,
        programs.operator_errors,
        blocks.unread_pod_cidrs,
    ),
}
"""The rules in order, by the program that gives nodes their blocks: causes before consequences."""


def check_alone(context: Context, giver: str) -> Iterator[Diagnostic]:
    """Yield what is wrong in a cluster. Linear in the objects of the dump, except for sorting blocks."""
    return through(context, CHECKS[giver])
