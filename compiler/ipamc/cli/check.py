"""`ipamc check`: what is wrong with the addresses of a cluster, from a dump alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.options import output_option
from ipamc.cli.terminal import progress, say, show, show_record
from ipamc.model.diagnostics import Located, Refused, Severity, count
from ipamc.model.progress import phase

if TYPE_CHECKING:
    from ipamc.importing.alone import Alone


@click.command(cls=Verb)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@output_option("text", "json")
@format_option
def command(*, files: tuple[str, ...], output: str, style: str) -> int:
    """Check the addresses of a running cluster from a dump. Needs no git and writes nothing.

    FILE is a cilium-sysdump zip, or the output of `kubectl get
    nodes,ciliumnodes,ciliumpodippools,ciliumendpoints,pods,services,cm,deployments,daemonsets -A -o json`;
    `-` is stdin. If the cluster has them, add `servicecidrs`, `ciliumloadbalancerippools` and, with Calico,
    `ippools,ipamblocks,blockaffinities`, each followed by `.crd.projectcalico.org`.

    Findings go to stderr: overlapping networks, blocks on two nodes, nodes without a block, CiliumNodes
    without a node, pods outside their node's block, addresses without a pod, full pools, operator errors. A
    table of the networks, with their use and their room for more nodes, goes to stdout.

    Examples:
        ipamc check dump.json  # problems and networks of the cluster
        kubectl get … -A -o json | ipamc check -  # the same, from stdin
        ipamc check cilium-sysdump.zip  # the same, from a sysdump
        ipamc check dump.json --output json  # networks and findings for programs
    Exit codes:
        0: no errors and no warnings; there may be notes
        1: problems were found, the dump was refused, or an I/O or environment error
    """
    from ipamc.report.finding_documents import record
    from ipamc.report.findings import FORMATS
    from ipamc.report.networks import networks, table
    from ipamc.review.audit import number_of_problems
    from ipamc.workspace.dump import refuse_cluster

    refuse_cluster(files, "ipamc compile --check")
    try:
        with progress("reading the dump"):
            known, found = checked(files)
    except Refused as refused:
        print_findings(refused.diagnostics, style)
        return REFUSED
    number, every = number_of_problems(found), list(networks(known))
    if output == "json":
        said = [record(each) for each in found]
        show_record({"version": 1, "problems": number, "networks": every, "findings": said})
    elif FORMATS[style].document:
        print_findings(found, style)
    else:
        for notes in (False, True):
            print_findings([each for each in found if (each.severity is Severity.NOTE) is notes], style)
        show(f"\n{table(every)}\n")
        if known.giver:
            name = known.facts.mesh.get("clusterName", "my-cluster")
            command_line = shlex.join(["ipamc", "import", str(name), *files])
            say(f"next: import the cluster into git, with its blocks: {command_line}")
        show(f"found {count(number, 'problem')}\n")
    return REFUSED if number else DONE


def checked(files: Sequence[str]) -> tuple[Alone, tuple[Located, ...]]:
    """Return a cluster as its dump shows it, and what is wrong, in order of place.
    Raises Refused, EnvironmentFailure, OSError.
    """
    from ipamc.importing.alone import alone
    from ipamc.model.gc_pause import paused_collector
    from ipamc.read.locate import locate
    from ipamc.read.rendered import Rendered
    from ipamc.review.audit import ALONE, audit
    from ipamc.review.audit.context import Context
    from ipamc.workspace.disk import schemas
    from ipamc.workspace.dump import load_dump

    with paused_collector():
        dump, warnings = load_dump(files, every=True)
        phase("checking")
        known = alone(dump, schemas())
        context = Context(
            cluster=known.cluster, lock=known.lock, dump=known.dump, git=Rendered(), applied=None, alone=True
        )
        return known, locate((*warnings, *known.findings, *audit(context, ALONE[known.giver])), {})
