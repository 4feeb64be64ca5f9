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
    """Print the ordered steps of a change, with commands to paste and checks.

    For changes that an apply alone cannot do: which nodes, in which waves, what is drained, deleted, merged,
    applied and restarted, how to tell that a step worked, and the way back. Without --change it compares the
    cluster with a base, and prints the steps of what is under way. Writes nothing.

    CLUSTER is a folder, or a name below clusters/. Commands are for the top folder of the repository, and for
    a kubeconfig with the context of the cluster. --selector and --node, --pool are added up.

    Options:
        --base: What the cluster has now.  [default: what was last applied, if git knows it
            (refs/ipamc/applied/CLUSTER); else the lock and the rendered files on the disk]
        --change: A change that has not begun.
        --node: The nodes to change.
        --pool: The pools to change.
        --selector: The nodes that it is about, in the language of nodeSelector.
        --to: What it leads to: a mode, a CIDR (new-range), a node (replace-node), a minor (upgrade),
            'distinct' (calico).
        --wave-size: The most nodes that are without pods at a time.  [default: a tenth of the cluster; with
            --by, all of a value]
        --by: Nodes with different values of this label are in different waves; 'zone' is
            topology.kubernetes.io/zone.
    Examples:
        ipamc runbook lab  # the steps of what is under way: pending and settled renumbers, a new mode, …
        ipamc runbook lab --base HEAD~1  # of what changed since this revision
        ipamc runbook lab --change renumber --pool rack-a --by zone
            # the steps of a renumber that has not begun, a wave for each zone
        ipamc runbook lab --change new-range --pool rack-a --to 10.9.0.0/16  # a pool moves to a new range
        ipamc runbook lab --change replace-node --node n7 --to n8  # n8 replaces n7, and gets its blocks
        ipamc runbook lab --change upgrade --to 1.18  # Cilium, minor by minor
        ipamc runbook lab --output json  # the same for programs
    Exit codes:
        0: printed; also if nothing is under way
        1: an input or a lock was refused, the change cannot be made as asked, or an I/O or environment error
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
        raise click.UsageError("--node, --pool, --selector and --to are for --change")
    if change and base:
        raise click.UsageError("--base is for what is under way, --change for what is not: omit one")
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
                meant = suggestion(split.by, known) or f"their labels: {names(sorted(known))}"
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
            f"{name}: nothing is under way that an apply alone cannot do, compared with {against}; "
            f"--base REV compares with another state, --change has the steps of {', '.join(CHANGES)}"
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
