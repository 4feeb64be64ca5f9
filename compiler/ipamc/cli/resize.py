"""`ipamc resize`: grow and reclaim by use."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option
from ipamc.cli.options import assume_option, cluster_argument, files_argument, output_option
from ipamc.cli.terminal import progress, show, show_record


@click.command(cls=Verb)
@cluster_argument
@files_argument
@click.option("--check", is_flag=True)
@click.option("--all", "every", is_flag=True)
@output_option("text", "json")
@assume_option
@format_option
def command(*, cluster: str, files: tuple[str, ...], every: bool, output: str, style: str, **run: Any) -> int:
    """Give nodes more blocks, and take unused ones back, based on a dump of the cluster.

    FILE is the output of kubectl in JSON or YAML, a cilium-sysdump zip, or - for stdin. CiliumNodes,
    CiliumEndpoints and Pods show the use; `usage` of the pools has the thresholds. Returned blocks go into
    quarantine. Writes the lock and the manifests like a compile, or nothing if nothing changes. CLUSTER is a
    name below clusters/ or a folder.

    Options:
        --check: Write nothing; exit 1 if something would change.
        --all: Also show nodes that do not change.
    Examples:
        kubectl get nodes,ciliumnodes,ciliumendpoints,pods -A -o json | ipamc resize lab -
            # based on what runs now
        ipamc resize lab dump.json --check  # write nothing; fail if something would change
        ipamc resize lab dump.json --all --output json  # the use of every node, for programs
    Exit codes:
        1: refused, or with --check something would change, or an I/O or environment error
    """
    from ipamc.cli.runner import ClusterRun, Outcome, compile_all, conclude, refused
    from ipamc.model.diagnostics import Refused
    from ipamc.model.lock import Consent
    from ipamc.pipeline import compile_cluster
    from ipamc.place.resize.decide import resizes
    from ipamc.place.resize.resize_rules import checked_decisions
    from ipamc.read.locate import locate
    from ipamc.report import resize as report
    from ipamc.workspace import output as written
    from ipamc.workspace.clusters import find, name_of
    from ipamc.workspace.dump import load_dump
    from ipamc.workspace.environment import today
    from ipamc.workspace.source import Disk
    from ipamc.workspace.spaces import not_space

    folder = not_space(*find((cluster,)))
    day, name = today(), name_of(folder)
    try:
        with progress("reading the dump"):
            dump, warnings = load_dump(files, nodes=False)
        with progress("reading the use of blocks"):
            inputs = replace(Disk(assume=run["assume"]).inputs(folder), today=day, skip_tests=True)
            now = compile_cluster(inputs)
            try:
                decided, more = checked_decisions(now.plan, dump, day)
            except Refused as problem:
                raise Refused(locate((*warnings, *problem.diagnostics), inputs.sources)) from None
        findings = locate((*warnings, *more), inputs.sources)
        # An interrupted run wrote the lock with all decisions: the next one writes the manifests.
        unfinished = now.lock.encode() == inputs.lock and bool(written.compare(folder, None, now.files))
    except Refused as problem:
        return conclude([refused(folder, problem.diagnostics)], style)
    if output == "json":
        rows = [report.record(row) for row in decided.rows]
        show_record({"version": report.VERSION, "cluster": name, "sources": decided.sources, "nodes": rows})
    else:
        show(report.table(decided.rows, every=every))
    consent = Consent(resize=resizes(decided.rows))
    outcome = Outcome(name=name, folder=folder, done=True, line="nothing to resize, nothing written")
    if consent.resize or unfinished:
        (outcome,) = compile_all([ClusterRun(folder=folder, today=day, consent=consent, **run)], None)
    return conclude([replace(outcome, findings=(*findings, *outcome.findings))], style)
