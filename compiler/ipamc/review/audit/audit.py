"""All rules of an audit, in order: a cause before its consequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.review.audit.blocks import block_of_another, block_of_no_pool, other_blocks, two_nodes_one_block
from ipamc.review.audit.causes import Suppressed
from ipamc.review.audit.comparable import not_in_the_dump, nothing_applied
from ipamc.review.audit.context import Found, Scene
from ipamc.review.audit.flags import controller_allocates, flags_differ, older_cilium, other_keys
from ipamc.review.audit.nodes import (
    created_again,
    ghost_nodes,
    gone,
    left_but_runs,
    unlisted,
    waiting,
    without_node,
)
from ipamc.review.audit.operator import operator_errors
from ipamc.review.audit.pods import endpoint_differs, one_address_twice, pods_outside, without_endpoint
from ipamc.review.audit.routes import former_router, unread_pod_cidrs, wrong_routes
from ipamc.review.audit.three_ways import three_ways

CHECKS: tuple[Callable[[Scene, Suppressed], Iterator[Found]], ...] = (
    nothing_applied,
    not_in_the_dump,
    flags_differ,
    other_keys,
    ghost_nodes,
    two_nodes_one_block,
    wrong_routes,
    left_but_runs,
    block_of_another,
    created_again,
    waiting,
    unlisted,
    gone,
    without_node,
    three_ways,
    block_of_no_pool,
    other_blocks,
    former_router,
    pods_outside,
    one_address_twice,
    without_endpoint,
    endpoint_differs,
    operator_errors,
    unread_pod_cidrs,
    controller_allocates,
    older_cilium,
)


def audit(scene: Scene) -> Iterator[Diagnostic]:
    """Yield what is wrong in a cluster. Linear in the objects of the dump, but for sorting blocks."""
    told = Suppressed()
    for check in CHECKS:
        for item in list(check(scene, told)):
            told.add(item.causes)
            yield item.finding


def number_of_problems(findings: Iterable[Diagnostic]) -> int:
    """Count the errors and warnings; notes are no problems."""
    return sum(finding.severity is not Severity.NOTE for finding in findings)
