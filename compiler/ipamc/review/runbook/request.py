"""Runbooks of a change that a user asks for, and of changes that have begun in a cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.consent import parse_consent
from ipamc.lock.file_rules import lost_blocks
from ipamc.model.cidr import CidrError, Range, parse_block
from ipamc.model.cilium.support import LAST
from ipamc.model.cluster import Cluster, Mode, Pool, Version
from ipamc.model.diagnostics import names, several
from ipamc.model.lock import Consent
from ipamc.model.plan import Origin, Plan
from ipamc.model.selector.expression import SelectorError
from ipamc.model.selector.label_syntax import subdomain_problem
from ipamc.model.selector.selector import parse_calico
from ipamc.pipeline import Inputs, plan_edit
from ipamc.review.diff import ClusterBase, Difference
from ipamc.review.runbook import planners
from ipamc.review.runbook.site import Site
from ipamc.review.runbook.steps import Runbook, Split


class Request(Struct, frozen=True, kw_only=True):
    """A change that a user asks for."""

    change: str
    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    selector: str = ""  # in Calico's selector syntax; "": none
    to: str = ""
    split: Split
    inputs: Inputs
    """Those of the plan, from which the change starts."""


class Unclear(Exception):  # noqa: N818 - a statement about the request, not a failure
    """The request names something that does not exist, or is incomplete; the text says what."""


def requested(request: Request, plan: Plan, site: Site) -> Runbook:
    """Return the runbook of a requested change of a cluster as of today. Raises Unclear, and Refused if a
    compile would refuse what the change leads to.
    """
    return PLANNERS[request.change](request, plan, site)


def _renumber(request: Request, plan: Plan, site: Site) -> Runbook:
    pools = [f"pool/{pool.name}" for pool in _pools(request, plan.cluster)]
    by_name = request.nodes or request.selector or not pools
    asked = (*pools, *(_nodes(replace(request, pools=()), plan) if by_name else ()))
    found = _renumbered(plan.cluster, plan, request, asked)
    return planners.renumber(found, site, request.split, asked=asked)


def _mode(request: Request, plan: Plan, site: Site) -> Runbook:
    cluster = plan.cluster
    if request.to not in set(Mode):
        raise Unclear(f"--to {request.to or 'nothing'}: name the new mode: {', '.join(Mode)}")
    mode = Mode(request.to)
    if mode is cluster.mode:
        raise Unclear(f"{cluster.name} is already in {mode} mode")
    if lost := lost_blocks(plan.lock, cluster, cluster.mode, mode):
        nodes = several({line.node for line in lost}, "node", "cannot keep blocks (ipamc explain IPC0543)")
        raise Unclear(f"{cluster.mode} to {mode}: {nodes}")
    pools = tuple([replace(pool, unlisted=False) for pool in cluster.pools])  # of adopt alone (IPC0221)
    patch_nodes = "podCIDRs" if mode is Mode.KUBERNETES else "none"
    after = replace(cluster, mode=mode, patch_nodes=patch_nodes, pools=pools)
    then = _preview(after, plan, request, parse_consent(mode=True))
    return planners.mode_change(plan.lock, cluster, then, replace(site, plan=then), request.split)


def _dual_stack(request: Request, plan: Plan, site: Site) -> Runbook:
    name = plan.cluster.name
    if len(plan.cluster.families) > 1:
        raise Unclear(
            f"{name} already has both families; to print the steps of a rollout: ipamc runbook {name} "
            "--base REV, with the last applied commit"
        )
    if site.joins_again:
        raise Unclear(
            "podCIDRs of a Node are immutable, so running nodes cannot get a second block: first change to "
            "cluster-pool mode without patchNodes: podCIDRs "
            f"(ipamc runbook {name} --change mode --to cluster-pool)"
        )
    return planners.dual_stack(plan, site, request.split, 10 - plan.cluster.families[0], begun=False)


def _new_range(request: Request, plan: Plan, site: Site) -> Runbook:
    pools = _pools(request, plan.cluster)
    if len(pools) != 1:
        raise Unclear("name one pool that moves: --pool NAME")
    (pool,) = pools
    try:
        block = parse_block(request.to)
    except CidrError as problem:
        named = request.to or "nothing"
        raise Unclear(f"--to {named}: write the new range as a CIDR; {problem.reason}") from None
    if block.family not in pool.families:
        raise Unclear(f"pool {pool.name} has no IPv{block.family}: name a range of its own family")
    part = pool.families[block.family]
    if part.block_size < block.prefix:
        raise Unclear(f"{block} has no room for a /{part.block_size}, the block size of pool {pool.name}")
    held = [line.block for lines in plan.held.values() for line in lines]
    left = [str(each.block) for each in part.ranges if any(map(each.block.overlaps, held))]
    wider = replace(part, ranges=(Range(block, part.at), *part.ranges))
    changed = replace(pool, families={**pool.families, block.family: wider})
    every = tuple(changed if each.name == pool.name else each for each in plan.cluster.pools)
    after = _renumbered(replace(plan.cluster, pools=every), plan, request, left)
    return planners.new_range(after, site, request.split, pool, block, left)


def _replace_node(request: Request, plan: Plan, site: Site) -> Runbook:
    nodes = _nodes(request, plan)
    new = "" if (request.to,) == nodes else request.to
    if len(nodes) != 1 and (new or not nodes):
        raise Unclear("name one node, --node NODE, and its replacement, --to NODE")
    if new and (problem := subdomain_problem(new)):
        raise Unclear(f"--to {new!r} is not a valid node name: it {problem}")
    if new in {node.name for node in plan.cluster.nodes}:
        before = f"a replacement must get the blocks of {nodes[0]} before it gets others"
        raise Unclear(f"{new} is already in the inventory: {before}")
    return planners.replace_node(plan, site, nodes, new)


def _calico(request: Request, plan: Plan, site: Site) -> Runbook:
    if request.to == "distinct":
        return planners.calico_distinct(plan, site, request.split)
    if request.to:
        raise Unclear(f"--to {request.to}: omit it to keep the blocks, or write --to distinct")
    if not plan.cluster.own_pools:
        raise Unclear(
            "nodes keep their Calico blocks only in multi-pool mode with pinning: node, as ipamc import "
            "writes it; otherwise use --to distinct"
        )
    return planners.calico(plan, site, request.split)


def _upgrade(request: Request, plan: Plan, site: Site) -> Runbook:
    found = re.match(r"(\d{1,3})\.(\d{1,3})(?![^.])", request.to, re.ASCII)
    if not found:
        raise Unclear(f"--to {request.to or 'nothing'}: name a minor, such as 1.18")
    to: Version = (int(found[1]), int(found[2]))
    if not plan.cluster.cilium < to <= LAST:
        has, last = (".".join(map(str, minor)) for minor in (plan.cluster.cilium, LAST))
        knows = f"this ipamc supports minors up to {last}"
        raise Unclear(f"--to {request.to}: {plan.cluster.name} has {has}, and {knows}")
    return planners.upgrade(site, to)


def _nodes(request: Request, plan: Plan) -> tuple[str, ...]:
    """Return the nodes that are named, selected, or hold a block of a named pool; sorted."""
    known = {node.name: node for node in plan.cluster.nodes}
    if unknown := set(request.nodes) - known.keys():
        raise Unclear(f"the inventory of {plan.cluster.name} does not contain {names(unknown)}")
    found = set(request.nodes)
    pools = {pool.name for pool in _pools(request, plan.cluster)}
    found |= {node for node, lines in plan.held.items() if any(line.pool in pools for line in lines)}
    if request.selector:
        try:
            selector = parse_calico(request.selector)
        except SelectorError as problem:
            raise Unclear(f"--selector: {problem}") from None
        found |= {name for name, node in known.items() if selector.matches(node.labels, name)}
    if not found:
        raise Unclear("no node is selected: use --node, --pool or --selector")
    return tuple(sorted(found))


def _pools(request: Request, cluster: Cluster) -> list[Pool]:
    if unknown := set(request.pools) - cluster.pools_by_name.keys():
        known = names(cluster.pools_by_name)
        raise Unclear(f"{cluster.name} has no pool {names(unknown)}, only {known}")
    return [cluster.pools_by_name[name] for name in sorted(set(request.pools))]


def _renumbered(cluster: Cluster, plan: Plan, request: Request, scopes: Sequence[str]) -> Plan:
    after = _preview(cluster, plan, request, parse_consent(renumber=scopes))
    if not planners.pending_of(after):
        raise Unclear("no node would move: the nodes have no block there, hold their pins, or are planned")
    return after


def _preview(cluster: Cluster, plan: Plan, request: Request, consent: Consent) -> Plan:
    """Plan an edit that is not made yet, as a compile would; render and write nothing. Raises Refused."""
    return plan_edit(cluster, plan.lock, replace(request.inputs, consent=consent))


PLANNERS: Mapping[str, Callable[[Request, Plan, Site], Runbook]] = {
    "renumber": _renumber,
    "mode": _mode,
    "dual-stack": _dual_stack,
    "new-range": _new_range,
    "decommission": lambda request, plan, site: planners.decommission(
        plan, site, request.split, _nodes(request, plan), request.pools
    ),
    "replace-node": _replace_node,
    "calico": _calico,
    "upgrade": _upgrade,
    "restore-git": lambda request, plan, site: planners.restored(request.change, plan, site),
    "restore-etcd": lambda request, plan, site: planners.restored(request.change, plan, site),
}
"""Functions that make the runbook, by the name of the change."""


def under_way(
    base: ClusterBase, plan: Plan, difference: Difference, site: Site, split: Split
) -> tuple[Runbook, ...]:
    """Return the runbooks of begun changes that an apply alone cannot complete, in order; () without."""
    before, lock = base.cluster if isinstance(base.cluster, Cluster) else None, base.lock
    found: list[Runbook] = []
    if before and before.cilium < plan.cluster.cilium:
        found.append(planners.upgrade(replace(site, plan=replace(plan, scheme=before)), plan.cluster.cilium))
    # The families in the base's inputs are ignored: inputs may be edited and not compiled yet.
    had = {line.block.family for line in lock.lines}
    new = [family for family in plan.cluster.families if family not in had]
    if changed := planners.mode_under_way(lock, before, plan, site, split):
        found.append(changed)
    elif new and had:
        found.append(planners.dual_stack(plan, site, split, new[0], begun=True))
    settled = [renumber.node for renumber in difference.lines.completed if renumber.moves]
    if settled or planners.pending_of(plan):
        found.append(planners.renumber(plan, site, split, settled=settled))
    renamed = [block for block in difference.lines.added if block.origin is Origin.RENAMED]
    found += [planners.replace_node(plan, site, (block.of,), block.line.node) for block in renamed]
    return tuple(found)
