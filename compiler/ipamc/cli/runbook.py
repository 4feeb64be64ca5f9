"""`ipamc runbook`: the ordered steps of a change that an apply alone cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.options import Revision, output_option, several
from ipamc.cli.terminal import progress, say, show, show_json
from ipamc.model.diagnostics import Refused, names
from ipamc.model.limits import LARGEST_CLUSTER
from ipamc.model.wording import suggestion
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.disk import assets
from ipamc.workspace.source import Disk, Source
from ipamc.workspace.spaces import not_space

if TYPE_CHECKING:
    from ipamc.model.plan import Plan
    from ipamc.pipeline import Compilation, Inputs
    from ipamc.review.runbook.request import Request
    from ipamc.review.runbook.site import Site
    from ipamc.review.runbook.steps import Runbook, Split

CHANGES = (
    "renumber",
    "mode",
    "dual-stack",
    "new-range",
    "decommission",
    "replace-node",
    "calico",
    "upgrade",
    "restore-git",
    "restore-etcd",
)
"""Changes that a user may ask for before they have begun."""


@click.command(cls=Verb)
@click.argument("cluster", metavar="CLUSTER")
@click.option("--base", type=Revision(), metavar="REV")
@click.option("--change", type=click.Choice(CHANGES))
@several("--node", "nodes", metavar="NODE,…")
@several("--pool", "pools", metavar="NAME,…")
@click.option("--selector", default="", metavar="TEXT")
@click.option("--to", default="", metavar="VALUE")
@click.option("--wave-size", type=click.IntRange(min=1, max=LARGEST_CLUSTER), metavar="N")
@click.option("--by", default="", metavar="LABEL")
@output_option("markdown", "json")
@format_option
def command(
    *, cluster: str, base: str | None, change: str | None, output: str, style: str, **asked: Any
) -> int:
    """Print the steps of a change that needs more than an apply, with commands and checks. Writes nothing.

    The steps name the nodes of each wave, what to drain, delete, merge, apply and restart, how to check each
    step, and the way back. Without --change, they are the steps of changes under way, compared with a base.

    Run the commands at the top of the repository, with a kubeconfig that has the context of the cluster.
    --node, --pool and --selector add up. CLUSTER is a name below clusters/ or a folder.

    Options:
        --base: The present state of the cluster.  [default: the last apply, if git has
            refs/ipamc/applied/CLUSTER; else the lock and the rendered files on the disk]
        --change: A change that has not begun.
        --node: The nodes to change.
        --pool: The pools to change.
        --selector: The nodes to change, in the syntax of nodeSelector.
        --to: The target of the change: a mode, a CIDR (new-range), a node (replace-node), a minor (upgrade),
            'distinct' (calico).
        --wave-size: The most nodes that are without pods at a time.  [default: a tenth of the cluster; with
            --by, all nodes of a value]
        --by: Put nodes with different values of this label into different waves; 'zone' is
            topology.kubernetes.io/zone.
    Examples:
        ipamc runbook lab  # the steps of changes under way: pending and settled renumbers, a new mode, …
        ipamc runbook lab --base HEAD~1  # the steps of what changed since this revision
        ipamc runbook lab --change renumber --pool rack-a --by zone
            # the steps of a renumber that has not begun, one wave per zone
        ipamc runbook lab --change new-range --pool rack-a --to 10.9.0.0/16  # move a pool to a new range
        ipamc runbook lab --change replace-node --node n7 --to n8  # n8 replaces n7, and gets its blocks
        ipamc runbook lab --change upgrade --to 1.18  # upgrade Cilium, minor by minor
        ipamc runbook lab --output json  # for programs
    Exit codes:
        0: printed; also if nothing is under way
        1: an input or a lock was refused, the change is impossible as requested, or an I/O or environment
            error
    """
    from ipamc.model.lock import Consent
    from ipamc.pipeline import compile_cluster
    from ipamc.report.runbook import to_json, to_markdown
    from ipamc.review.runbook.request import Request
    from ipamc.review.runbook.site import Site
    from ipamc.review.runbook.steps import SHORT, Split
    from ipamc.workspace.environment import today

    split = Split(size=asked.pop("wave_size") or 0, by=asked.pop("by"))
    if change is None and any(asked.values()):
        raise click.UsageError("--node, --pool, --selector and --to need --change")
    if change and base:
        raise click.UsageError("--base is for changes under way, --change for a new one: omit one of them")
    folder = not_space(*find((cluster,)))
    day = today()
    try:
        with progress("planning the steps"):
            # With consent to the mode that the Cluster names; nothing is written.
            inputs = replace(Disk().inputs(folder), today=day, consent=Consent(mode=True), skip_tests=True)
            compilation = compile_cluster(inputs)
            plan = compilation.plan
            known = {key for node in plan.scheme.nodes for key in node.labels}
            known |= {short for short, label in SHORT.items() if label in known}
            if split.by and split.by not in known:
                meant = suggestion(split.by, known) or f"the labels are {names(sorted(known))}"
                raise click.UsageError(f"--by {split.by}: no node has this label; {meant}")
            site = Site(plan, assets("templates/runbooks"), inputs.folder, loops=output == "markdown")
            if change:
                asked |= {"split": split, "inputs": inputs}
                found: Sequence[Runbook] = [_requested(Request(change=change, **asked), plan, site)]
            else:
                found = _under_way(folder, base, inputs, compilation, site, split)
    except Refused as refused:
        print_findings(refused.diagnostics, style)
        return REFUSED
    name = name_of(folder)
    if output == "json":
        show_json(to_json(name, found))
    elif found:
        show(to_markdown(found))
    if not found:
        against = _known(folder, base) or "the lock and the rendered files on the disk"
        say(
            f"{name}: no change is under way that needs more than an apply, compared with {against}\n"
            f"  --base REV compares with another state; --change prints the steps of a new change: "
            f"{', '.join(CHANGES)}"
        )
    return DONE


def _requested(request: Request, plan: Plan, site: Site) -> Runbook:
    """Return the runbook of a change that has not begun. Raises Refused and UsageError."""
    from ipamc.review.runbook.request import Unclear, requested

    try:
        return requested(request, plan, site)
    except Unclear as unclear:
        raise click.UsageError(str(unclear)) from None


def _under_way(
    folder: str, revision: str | None, inputs: Inputs, compilation: Compilation, site: Site, split: Split
) -> Sequence[Runbook]:
    """Return the runbooks of changes that have begun. Raises Refused and EnvironmentFailure."""
    from ipamc.review.diff import compare, empty_base
    from ipamc.review.runbook.request import under_way
    from ipamc.workspace.plan_base import cluster_base, find_base

    plan, known = compilation.plan, _known(folder, revision)
    source: Source = Disk((folder,)) if known is None else find_base(known, [folder], []).source
    before = cluster_base(source, folder, inputs, compilation)
    base = before or empty_base(inputs.name, plan.lock.mode)
    difference = compare(base, compilation, inputs.today, assets("templates/runbooks"))
    return under_way(base, plan, difference, site, split)


def _known(folder: str, revision: str | None) -> str | None:
    """Return the given revision, or else the ref of the last apply; None if the repository has neither."""
    from ipamc.workspace import git

    applied = f"{git.APPLIED}{name_of(folder)}"
    top = git.root(".")
    return applied if revision is None and top and git.commit(top, applied) else revision
