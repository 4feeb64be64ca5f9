"""Compares a running cluster with git and with the last apply: the findings of `ipamc audit`.

Pure: a dump, the inputs and rendered objects in; findings out. Each rule is one generator; `CHECKS` is their
order. A rule records the facts that its finding proves of each object. A later rule omits a finding that
`EXPLAINS` in `context.py` lists as a consequence of them. This module has the rules about the dump itself:
which cluster it is of, its age, and missing kinds. A finding that rests on a missing kind proves nothing: a
dump without some kind has no finding that the complete dump would not have, except those that say what is
unknown, which are IPC0904, and IPC0943 for a kind that was not requested.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping

from ipamc.model.admission import POLICIES
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Related, Severity, Span, count, error, names, note
from ipamc.model.limits import DUMP_SLACK
from ipamc.read.rules import DUMP, DUMP_OF_POLICIES
from ipamc.review.audit import blocks, mesh, nodes, programs, routes, three_ways
from ipamc.review.audit.context import ENDPOINT, POD, Context, Result, Suppressed
from ipamc.review.live.objects import CILIUM_NODE, NODE, NODE_CONFIG, POOL


def refused(context: Context, changed: str, applied_at: str) -> list[Diagnostic]:
    """Return findings for which a dump cannot be compared; empty if it can.
    `changed` and `applied_at` are the commit times of the lock and of the applied commit, RFC 3339 in UTC.
    """
    return [*other_cluster(context), *older_dump(context, changed, applied_at)]


def other_cluster(context: Context) -> Iterator[Diagnostic]:
    """IPC0901: the dump belongs to the audited cluster."""
    if not context.dump.is_of_another(context.cluster):
        return
    listed = [node for node in context.cluster.nodes if not node.planned]
    live, name = context.dump.nodes_by_name, context.cluster.name
    one = next((node for node in listed if node.name in live), listed[0])
    if there := live.get(one.name):
        at, text = there.at, f"every node has another uid, such as {one.name} ({there.uid or 'none'})"
    else:
        at, text = context.dump.at, f"it contains {names(live)}, but none of {count(len(listed), 'node')}"
    again = f"if the cluster was built again: ipamc import {name} --refresh --rebuilt dump.json"
    also = [Related(one.at, f"{one.name} in the inventory, uid {one.uid or 'unknown'}")]
    fix = f"make the dump with the context of {name}: {DUMP}\n{again}"
    yield error("IPC0901", at, f"the dump is not of cluster {name}: {text}", also=also, help=fix)


def older_dump(context: Context, changed: str, applied_at: str) -> Iterator[Diagnostic]:
    """IPC0902: the dump is newer than the last applied commit and the lock."""
    newest, at, path = context.dump.newest, context.dump.at, context.lock.path
    since = applied_at or changed
    if context.applied and _is_before(newest, since):
        last = f"the last applied commit ({context.applied.revision}, {since})"
        text = f"the dump is from {newest}, before {last}: later changes look like edits by hand"
        yield error("IPC0902", at, text, help=f"make a new dump: {DUMP}")
    elif _is_before(newest, changed):
        text = f"the dump is from {newest}, before {path} ({changed}): pending changes may be applied since"
        yield note("IPC0902", at, text, help=f"for the current state make a new dump: {DUMP}")


def _is_before(one: str, other: str) -> bool:
    try:
        first, second = (datetime.datetime.fromisoformat(text) for text in (one, other))
        return (second - first).total_seconds() > DUMP_SLACK
    except (ValueError, TypeError):
        return False


def nothing_applied(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0903: the last applied commit is known."""
    if context.applied is None:
        ref = f"refs/ipamc/applied/{context.cluster.name}"
        text = f"{ref} is missing, so pending changes and edits by hand look alike"
        way_out = f"run git fetch origin '+{ref}:{ref}', or use --applied REV"
        yield Result(note("IPC0903", Span(context.git.shown), text, help=way_out))


_CONFIG_MAP, _DEPLOYMENT = "ConfigMap", "Deployment"
BLOCKS = "blocks"
"""The kind that shows the blocks of nodes: Node in kubernetes mode with podCIDRs, else CiliumNode."""

OF_ROUTES = ("IPC0953", "IPC0954", "IPC0955", "IPC0956")
"""The rules about routing tables, if some are given."""
OF_SPACE = ("IPC0936", "IPC0937")
"""The rules about the other members of an address space, if it has one."""

NEEDS: Mapping[str, frozenset[str]] = {
    code: frozenset(kinds)
    for kinds, codes in (
        ((BLOCKS,), ("IPC0910", "IPC0911", "IPC0912", "IPC0923", *OF_ROUTES)),
        ((BLOCKS, POD), ("IPC0922", "IPC0960")),
        ((BLOCKS, POD, ENDPOINT), ("IPC0963",)),
        ((CILIUM_NODE,), ("IPC0926", "IPC0950", "IPC0970")),
        ((CILIUM_NODE, _CONFIG_MAP), ("IPC0951",)),
        ((CILIUM_NODE, _CONFIG_MAP, POD), ("IPC0952",)),
        ((CILIUM_NODE, POOL), ("IPC0913",)),
        ((CILIUM_NODE, POOL, NODE_CONFIG, *POLICIES), ("IPC0941", "IPC0942", "IPC0943", "IPC0944")),
        ((POOL, NODE_CONFIG, *POLICIES), ("IPC0945",)),
        ((_CONFIG_MAP,), ("IPC0933", "IPC0934", "IPC0935", "IPC0936")),
        ((BLOCKS, POOL, _CONFIG_MAP), ("IPC0937",)),
        ((_CONFIG_MAP, _DEPLOYMENT), ("IPC0930",)),
        ((_CONFIG_MAP, POD), ("IPC0931",)),
        ((POD,), ("IPC0932", "IPC0961")),
        ((POD, ENDPOINT, _CONFIG_MAP), ("IPC0962",)),
    )
    for code in codes
}
"""The kinds without which a rule finds less, or nothing. Every rule needs Nodes too."""

POLICY = "MutatingAdmissionPolicy"
"""Stands for all kinds of policies and their bindings: a dump has all of them or none."""
_WITHOUT = {
    POD: "addresses of pods, Cilium's version, kube-controller-manager's arguments",
    ENDPOINT: "pods that Cilium does not know",
    CILIUM_NODE: "blocks of agents, errors of the operator",
    POOL: "pools of the operator",
    NODE_CONFIG: "default pools of agents",
    _CONFIG_MAP: "Cilium's flags",
    _DEPLOYMENT: "the operator's arguments",
    POLICY: "blocks of nodes that join",
}
_WORDS = {
    _CONFIG_MAP: "cilium-config",
    _DEPLOYMENT: "the operator's Deployment",
    POLICY: "admission policies",
}
"""Words for kinds of which only one object is needed."""


def not_in_the_dump(context: Context, _: Suppressed) -> Iterator[Result]:
    """IPC0904: the dump contains every kind of object that an audit reads."""
    rendered = {document["kind"] for document in context.git.objects.values()}
    wanted = [
        POD,
        ENDPOINT,
        CILIUM_NODE,
        *(kind for kind in (POOL, NODE_CONFIG) if kind in rendered),
    ]
    missing = [kind for kind in wanted if kind not in context.dump.kinds]
    if context.config is None:
        missing.append(_CONFIG_MAP)
    if context.operator[0] is None and context.cluster.mode in {Mode.CLUSTER_POOL, Mode.MULTI_POOL}:
        missing.append(_DEPLOYMENT)
    if rendered & POLICIES.keys() and not context.has_policies:
        missing.append(POLICY)
    shows_blocks = {BLOCKS} if CILIUM_NODE in missing and not context.knows_blocks else set()
    without = (() if context.routers else OF_ROUTES) + (() if context.cluster.address_space else OF_SPACE)
    needs = ((code, kinds) for code, kinds in NEEDS.items() if code not in without)
    codes = sorted(code for code, kinds in needs if kinds & {*missing, *shows_blocks})
    if missing:
        lacks = ", ".join(_WORDS.get(kind, kind) for kind in missing)
        unknown = ", ".join(_WITHOUT[kind] for kind in missing)
        command = f"{DUMP}{DUMP_OF_POLICIES if POLICY in missing else ''}"
        text = f"{count(len(codes), 'rule')} not or only partly checked: the dump lacks {lacks}"
        way_out = f"run {command}\nnot checked: {unknown}\nrules: {', '.join(codes)}"
        yield Result(note("IPC0904", context.dump.at, text, help=way_out))


Check = Callable[[Context, Suppressed], Iterator[Result]]
CHECKS: tuple[Check, ...] = (
    nothing_applied,
    not_in_the_dump,
    programs.flags_differ,
    programs.other_keys,
    programs.masquerades_one_range,
    programs.routes_to_no_block,
    mesh.other_identity,
    mesh.addresses_of_others,
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
    nodes.pods_outside,
    nodes.one_address_twice,
    nodes.without_endpoint,
    nodes.endpoint_differs,
    programs.operator_errors,
    blocks.unread_pod_cidrs,
    programs.controller_allocates,
    programs.older_cilium,
    programs.stored_versions,
    routes.routes,
)
"""The rules in order: each cause comes before its consequences."""


ALONE: Mapping[str, tuple[Check, ...]] = {
    "": (nodes.one_address_twice, blocks.without_pod),
    "calico": (blocks.two_nodes_one_block, blocks.address_of_a_node, nodes.one_address_twice),
    "cilium": (
        not_in_the_dump,
        programs.masquerades_one_range,
        programs.routes_to_no_block,
        nodes.ghost_nodes,
        blocks.two_nodes_one_block,
        blocks.address_of_a_node,
        blocks.wrong_routes,
        nodes.waiting,
        nodes.without_node,
        blocks.block_of_no_pool,
        blocks.former_router,
        nodes.pods_outside,
        nodes.one_address_twice,
        nodes.without_endpoint,
        nodes.endpoint_differs,
        blocks.without_pod,
        programs.operator_errors,
        programs.stored_versions,
        blocks.unread_pod_cidrs,
    ),
}
"""The rules that need no git, in order, by the program that gives nodes their blocks; "": none does."""


def audit(context: Context, checks: Iterable[Check] = CHECKS) -> Iterator[Diagnostic]:
    """Yield the findings about a cluster. Linear in the objects of the dump, except for sorting blocks."""
    suppressed = Suppressed()
    for check in checks:
        for item in list(check(context, suppressed)):
            suppressed.add(item.causes)
            objects = [cause.about.partition(" ") for cause in item.causes]
            of_nodes = objects and all(kind in {NODE, CILIUM_NODE} for kind, _, _ in objects)
            yield item.finding.about(name for _, _, name in objects) if of_nodes else item.finding


def number_of_problems(findings: Iterable[Diagnostic]) -> int:
    """Count the errors and warnings; notes, and what is acknowledged, are no problems."""
    return sum(each.severity is not Severity.NOTE and not each.acknowledged for each in findings)
