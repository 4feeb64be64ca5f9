"""Compares a running cluster with git and with the last apply: the findings of `ipamc audit`.

Pure: a dump, the inputs and rendered objects in; findings out. Each rule is one generator; `CHECKS` is their
order. A rule records the facts that its finding proves of each object. A later rule omits a finding that
`EXPLAINS` in `causes.py` lists as a consequence of them. This module has the rules about the dump itself:
which cluster it is of, its age, and missing kinds.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator

from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Related, Severity, Span, count, error, names, note
from ipamc.model.dump import SLACK
from ipamc.read.rules import DUMP, DUMP_OF_POLICIES
from ipamc.review.audit import blocks, causes, nodes, pods, programs, routes, three_ways
from ipamc.review.audit.context import Context, Result
from ipamc.review.live.objects import CILIUM_NODE, NODE_CONFIG, POLICIES, POOL


def refused(context: Context, changed: str, applied_at: str) -> list[Diagnostic]:
    """Return findings for which a dump cannot be compared; empty if it can.
    `changed` and `applied_at` are the commit times of the lock and of the applied commit, RFC 3339 in UTC.
    """
    return [*other_cluster(context), *older_dump(context, changed, applied_at)]


def other_cluster(context: Context) -> Iterator[Diagnostic]:
    """IPC0901: a dump is of the cluster that it is compared with."""
    if not context.dump.is_of_another(context.cluster):
        return
    listed = [node for node in context.cluster.nodes if not node.planned]
    live, name = context.dump.nodes_by_name, context.cluster.name
    one = next((node for node in listed if node.name in live), listed[0])
    if there := live.get(one.name):
        at, text = there.at, f"each node has another uid there, as {one.name} has {there.uid or 'none'}"
    else:
        at, text = context.dump.at, f"none of {count(len(listed), 'node')} is in it, but {names(live)}"
    again = f"if the cluster was built again: ipamc import {name} --refresh --rebuilt"
    also = [Related(one.at, f"{one.name} of the inventory, uid {one.uid or 'unknown'}")]
    fix = f"make the dump with the context of {name}: {DUMP}; {again}"
    yield error("IPC0901", at, f"this is no dump of {name}: {text}", also=also, help=fix)


def older_dump(context: Context, changed: str, applied_at: str) -> Iterator[Diagnostic]:
    """IPC0902: a dump is newer than what was applied, and than the lock."""
    newest, at, path = context.dump.newest, context.dump.at, context.lock.path
    since = applied_at or changed
    if _is_before(newest, since):
        what = f"what was applied last ({context.applied.revision})" if context.applied else path
        between = "changes in between would look like edits by hand"
        text = f"the dump is of {newest}, and {what} of {since}: {between}"
        yield error("IPC0902", at, text, help=f"make a new one: {DUMP}")
    elif _is_before(newest, changed):
        pending = "what is pending here may have been applied since"
        text = f"the dump is of {newest}, and {path} of {changed}: {pending}"
        yield note("IPC0902", at, text, help=f"for the state of now make a new one: {DUMP}")


def _is_before(one: str, other: str) -> bool:
    try:
        first, second = (datetime.datetime.fromisoformat(text) for text in (one, other))
        return (second - first).total_seconds() > SLACK
    except (ValueError, TypeError):
        return False


def nothing_applied(context: Context, _: causes.Suppressed) -> Iterator[Result]:
    """IPC0903: it is known what was applied last."""
    if context.applied is None:
        ref = f"refs/ipamc/applied/{context.cluster.name}"
        unknown = "what is pending and what was edited by hand cannot be told apart"
        text = f"there is no {ref}, so the dump is compared with git alone: {unknown}"
        way_out = f"git fetch origin '+{ref}:{ref}', or --applied REV"
        yield Result(note("IPC0903", Span(context.git.shown), text, help=way_out))


POLICY = "MutatingAdmissionPolicy"
"""Stands for all kinds of policies and their bindings: a dump has all of them or none."""
_WITHOUT = {
    causes.POD: "whether pods have addresses of their nodes' blocks, or two of them one address; which "
    "version of Cilium runs; kube-controller-manager's arguments",
    causes.ENDPOINT: "whether Cilium knows each pod",
    CILIUM_NODE: "the blocks that agents use, what the operator reports",
    POOL: "the pools of the operator",
    NODE_CONFIG: "the pools that agents start with",
    causes.CONFIG_MAP: "Cilium's flags, and what depends on them",
    causes.DEPLOYMENT: "the operator's arguments",
    POLICY: "whether nodes get the blocks of git as they join, and no others",
}
_WORDS = {
    causes.CONFIG_MAP: "cilium-config",
    causes.DEPLOYMENT: "the operator's Deployment or Pod",
    POLICY: "admission policies",
}
"""Words for kinds of which only one object is needed."""


def not_in_the_dump(context: Context, _: causes.Suppressed) -> Iterator[Result]:
    """IPC0904: a dump has the kinds of objects that an audit looks at."""
    rendered = {document["kind"] for document in context.git.objects.values()}
    wanted = [
        causes.POD,
        causes.ENDPOINT,
        CILIUM_NODE,
        *(kind for kind in (POOL, NODE_CONFIG) if kind in rendered),
    ]
    missing = [kind for kind in wanted if kind not in context.dump.kinds]
    if context.config is None:
        missing.append(causes.CONFIG_MAP)
    if context.operator[0] is None and context.cluster.mode in {Mode.CLUSTER_POOL, Mode.MULTI_POOL}:
        missing.append(causes.DEPLOYMENT)
    if rendered & POLICIES.keys() and not context.has_policies:
        missing.append(POLICY)
    shows_blocks = {causes.BLOCKS} if CILIUM_NODE in missing and not context.knows_blocks else set()
    without = () if context.routers else causes.OF_ROUTES
    needs = ((code, kinds) for code, kinds in causes.NEEDS.items() if code not in without)
    codes = sorted(code for code, kinds in needs if kinds & {*missing, *shows_blocks})
    if missing:
        lacks = ", ".join(_WORDS.get(kind, kind) for kind in missing)
        unknown = "; ".join(_WITHOUT[kind] for kind in missing)
        way_out = f"{DUMP}{DUMP_OF_POLICIES if POLICY in missing else ''}"
        text = f"the dump lacks {lacks}; not checked: {unknown} ({', '.join(codes)})"
        yield Result(note("IPC0904", context.dump.at, text, help=f"run {way_out}"))


CHECKS: tuple[Callable[[Context, causes.Suppressed], Iterator[Result]], ...] = (
    nothing_applied,
    not_in_the_dump,
    programs.flags_differ,
    programs.other_keys,
    programs.masquerades_one_range,
    programs.routes_to_no_block,
    nodes.ghost_nodes,
    blocks.two_nodes_one_block,
    blocks.wrong_routes,
    nodes.left_but_runs,
    blocks.block_of_another,
    blocks.address_of_a_node,
    nodes.created_again,
    nodes.waiting,
    nodes.unlisted,
    nodes.gone,
    nodes.without_node,
    three_ways.three_ways,
    blocks.block_of_no_pool,
    blocks.other_blocks,
    blocks.former_router,
    pods.pods_outside,
    pods.one_address_twice,
    pods.without_endpoint,
    pods.endpoint_differs,
    programs.operator_errors,
    blocks.unread_pod_cidrs,
    programs.controller_allocates,
    programs.older_cilium,
    routes.routes,
)
"""The rules in order: each cause comes before its consequences."""


def audit(context: Context) -> Iterator[Diagnostic]:
    """Yield the findings about a cluster. Linear in the objects of the dump, except for sorting blocks."""
    suppressed = causes.Suppressed()
    for check in CHECKS:
        for item in list(check(context, suppressed)):
            suppressed.add(item.causes)
            yield item.finding


def number_of_problems(findings: Iterable[Diagnostic]) -> int:
    """Count the errors and warnings; notes are no problems."""
    return sum(finding.severity is not Severity.NOTE for finding in findings)
