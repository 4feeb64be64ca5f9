"""`ipamc audit`: a running cluster, as a dump shows it, against git and against what was applied last."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, print_findings
from ipamc.cli.options import Revision, cluster_argument
from ipamc.cli.terminal import progress, show
from ipamc.model.diagnostics import Located, Refused, Severity, count
from ipamc.model.progress import phase


@click.command(cls=Verb)
@cluster_argument
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@click.option("--applied", type=Revision(), metavar="REV")
@click.option("--routes", multiple=True, metavar="FILE", type=click.Path(allow_dash=True))
@format_option
def command(
    *, cluster: str, files: tuple[str, ...], applied: str | None, routes: tuple[str, ...], style: str
) -> int:
    """Compare a running cluster with git and with the last apply, from a dump. Writes nothing.

    FILE is a cilium-sysdump zip, or the output of `kubectl get
    nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,ciliumendpoints,pods,cm,deployments,daemonsets -A -o
    json`; `-` is stdin. If the cluster has admission policies, add mutatingadmissionpolicies,
    validatingadmissionpolicies and their bindings.

    Finds what is pending, edited by hand, missing, stale or foreign, blocks on two nodes, routes to the wrong
    node, nodes that wait for a block, pods outside their node's blocks, and more: see `ipamc explain IPC0910`
    and the other IPC09 codes. Findings go to stderr, their number to stdout.

    Options:
        --applied: The revision that was applied last.  [default: the ref refs/ipamc/applied/CLUSTER]
        --routes: Routing table of a router, in which each prefix of a pool must come from the node that holds
            the block. Repeatable; `-` is stdin. Formats, for IPv4 or IPv6: `show ip route` and `show bgp` of
            FRR, EOS and NX-OS, with `json`; `show route` of Junos and BIRD 2; `gobgp global rib`; `ip
            route`; `cilium bgp routes`. The page "Are the routes right?" has each command.
    Examples:
        ipamc audit lab dump.json  # where the cluster differs from git, and what is wrong in it
        kubectl get … -A -o json | ipamc audit lab -  # the same, from stdin
        ipamc audit lab cilium-sysdump.zip  # the same, from a sysdump
        ipamc audit lab dump.json --applied HEAD~1  # if HEAD is not applied yet
        ipamc audit lab dump.json --routes leaf-1.json --routes leaf-2.json  # also check tables of routers
        ipamc audit lab dump.json --format json  # for programs
    Exit codes:
        0: no errors and no warnings; there may be notes
        1: problems were found, the dump cannot be compared, an input was refused, or an I/O or environment
            error
    """
    from ipamc.report.findings import FORMATS
    from ipamc.review.audit import number_of_problems
    from ipamc.workspace.clusters import find
    from ipamc.workspace.dump import refuse_for_cluster
    from ipamc.workspace.spaces import not_space

    refuse_for_cluster(cluster, files, "audit")
    folder = not_space(*find([cluster]))
    problems = Problems()
    found: Sequence[Located] = ()
    with progress("reading the cluster"), problems.of(folder):
        found = audited(folder, files, applied, routes)
    if problems:
        return problems.conclude(style)
    print_findings(found, style)
    number = number_of_problems(found)
    if not FORMATS[style].document:
        show(f"found {count(number, 'problem')}\n")
    return REFUSED if number else DONE


def audited(
    folder: str, files: Sequence[str], applied: str | None, routes: Sequence[str] = ()
) -> tuple[Located, ...]:
    """Return the findings of an audit, located, in order of place.
    Raises Refused, EnvironmentFailure, OSError.
    """
    from ipamc.check.acknowledged import Acknowledging
    from ipamc.check.selection import left_out
    from ipamc.importing.facts import with_kept
    from ipamc.model.gc_pause import paused_collector
    from ipamc.model.without_cilium import with_cilium, without_cilium
    from ipamc.read.locate import locate
    from ipamc.review.audit import audit, refused
    from ipamc.review.audit.context import Context
    from ipamc.workspace.dump import load_dump, load_routes
    from ipamc.workspace.rendered import load_sides

    with paused_collector():
        sides = load_sides(folder, applied)
        dump, warnings = load_dump(files)
        without = without_cilium(dump, sides.cluster.runs_on)
        dump = with_cilium(dump, without, kept={node.name for node in sides.cluster.nodes})
        phase("comparing")
        scene = Context(
            cluster=sides.cluster,
            lock=sides.lock,
            dump=with_kept(dump, sides.cluster.mode, ((line.node, line.block) for line in sides.lock.lines)),
            git=sides.git,
            applied=sides.applied,
            routers=load_routes(routes, files),
            spaces=sides.spaces,
        )
        reasons = refused(scene, sides.changed, sides.applied_at)
        if any(reason.severity is Severity.ERROR for reason in reasons):
            raise Refused(locate([*warnings, *reasons], sides.sources))
        about = (*warnings, *reasons, *left_out(dump.apart, without), *audit(scene))
        return locate(Acknowledging(sides.cluster, sides.lock.lines).mark(about), sides.sources)
