"""`ipamc import`: from a dump of a running cluster to its files, and later its inventory brought up to date."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, get_args

import click
from msgspec.structs import replace

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.interrupted import NOTHING, accounted, imported_so_far, refreshed_so_far
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import Diagnostic, Refused
from ipamc.model.progress import phase
from ipamc.workspace.clusters import find
from ipamc.workspace.output import begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipamc.importing.bring_in import Imported, Options
    from ipamc.model.cidr import Block
    from ipamc.model.dump import Dump

_OF_THE_DUMP = "IPC0540"
"""Says that pools of the operator may have other CIDRs than those here. The import took them from the dump."""


@click.command(
    cls=Verb,
    examples=(
        (
            "kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,pods,cm -A -o json | ipamc import lab",
            "start clusters/lab/ with the blocks that the nodes of a running cluster have",
        ),
        ("ipamc import lab dump.json cilium-sysdump.zip", "the same from files"),
        ("ipamc import lab dump.json --label 'example.com/*'", "keep these labels of nodes, too"),
        (
            "ipamc import lab dump.json --distinct 10.100.0.0/16",
            "where Calico has an overlay: give the nodes blocks of a range beside Calico's",
        ),
        ("ipamc import lab --refresh dump.json", "bring nodes.yaml and ciliumnodes.yaml up to date"),
        (
            "ipamc import lab --prefixes plan.csv",
            "make pools of the ranges that a NetBox or a spreadsheet plans",
        ),
    ),
    refused="refused: the dump, or what a compile of it finds; or an I/O or environment error",
)
@click.argument("cluster")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option(
    "--refresh", is_flag=True, help="Bring the inventory of a cluster up to date, and nothing else."
)
@click.option(
    "--prefixes",
    metavar="FILE",
    help="Make pools of the prefixes in a CSV file instead: an export of NetBox, or a spreadsheet.",
)
@click.option(
    "--block-size",
    "sizes",
    multiple=True,
    type=click.IntRange(8, 128),
    metavar="N",
    help="With --prefixes: the block size of pools that the file does not tell; above 32 it is for IPv6. Repeatable.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY",
    help="Keep this label of nodes, too; KEY may end in *. Repeatable.",
)
@click.option(
    "--mode",
    type=click.Choice(("kubernetes", "cluster-pool", "multi-pool", "crd")),
    help="Cilium's IPAM mode, where the dump does not tell.  [default for Calico: multi-pool]",
)
@click.option(
    "--cilium-version", metavar="MINOR", help="The lowest minor that runs, where the dump does not tell."
)
@click.option(
    "--managed-by",
    type=click.Choice(("helm", "kustomize", "none")),
    help="Who owns cilium-config.  [default: as the dump tells]",
)
@click.option(
    "--operator",
    type=click.Choice(("bystander", "adopt")),
    default="bystander",
    show_default=True,
    help="Who gives blocks from now on in cluster-pool mode: ipamc alone, or the operator in the ranges that it has.",
)
@click.option(
    "--distinct",
    multiple=True,
    metavar="CIDR",
    help="Where Calico runs: give the nodes new blocks of this range, beside Calico's. Repeatable, for IPv6.",
)
@click.option(
    "--rebuilt", is_flag=True, help="With --refresh: the cluster was built again, and all uids are new."
)
@format_option
def command(  # noqa: PLR0913 - an argument for each option
    *,
    cluster: str,
    files: tuple[str, ...],
    refresh: bool,
    prefixes: str | None,
    sizes: tuple[int, ...],
    labels: tuple[str, ...],
    mode: str | None,
    cilium_version: str | None,
    managed_by: str | None,
    operator: str,
    distinct: tuple[str, ...],
    rebuilt: bool,
    style: str,
) -> int:
    """Bring a running cluster into git, with the blocks that its nodes have.

    CLUSTER is a name below clusters/, or a folder. FILE is a dump of kubectl in JSON or YAML, also with gzip or
    several documents in it, or a zip, such as that of cilium sysdump; `-`, or no file, is stdin. Make it with

    \b
        kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,pods,cm -A -o json

    and leave out kinds that the cluster does not have. Of Calico, add

    \b
        ippools,ipamblocks,blockaffinities,ipreservations,ipamconfigs

    each with `.crd.projectcalico.org` behind it, before the first node moves to Cilium: nodes keep their
    blocks. Of pools with IPIP or VXLAN they cannot: --distinct CIDR gives them new ones. Where Calico keeps its data in etcd, `calicoctl datastore migrate export` shows the same.

    Writes cluster.yaml, ippools.yaml, nodes.yaml (names, uids, labels, podCIDRs: nothing that changes by
    itself) and ciliumnodes.yaml (the blocks that the cluster shows), and compiles: nobody is renumbered. What
    the dump does not tell is said, and what a person must decide.

    With --refresh, writes nodes.yaml and ciliumnodes.yaml again from a newer dump, and every other NodeInventory of
    the folder that has a node which exists: a node stays in its file. Planned nodes stay.

    With --prefixes, reads no dump: it writes the pools that a table plans, and never changes a pool that is
    there. Columns: prefix; pool, name, role or description; blockSize; status; nodeSelector, zone or site.
    """  # noqa: D301 - a backspace tells click where lines stay as they are
    from ipamc.workspace.dump import refuse_for_cluster

    refuse_for_cluster(cluster, files, "import --refresh" if refresh else "import")
    try:
        if prefixes is not None:
            return _planned(cluster, prefixes, sizes, style)
        if sizes:
            raise click.UsageError("--block-size goes with --prefixes")
        if not files and sys.stdin.isatty():
            raise click.UsageError("name a FILE, or pipe a dump into stdin")
        if refresh:
            return _refresh(cluster, files, labels, style, rebuilt=rebuilt)
        options = _options(labels, mode, cilium_version, managed_by, operator)
        return _start(cluster, files, replace(options, distinct=tuple(map(_range, distinct))), style)
    except Refused as refused:
        print_findings(refused.diagnostics, style)
        return REFUSED


_OF_PREFIXES = {"cluster", "prefixes", "sizes", "style", "report"}
"""Parameters that go with --prefixes."""


def _planned(cluster: str, prefixes: str, sizes: tuple[int, ...], style: str) -> int:
    """Import a plan; an option that is about dumps would do nothing, so it is refused."""
    from click.core import ParameterSource

    from ipamc.cli.import_prefixes import import_prefixes

    context = click.get_current_context()
    if any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]
        for name in context.params.keys() - _OF_PREFIXES
    ):
        raise click.UsageError("--prefixes reads no dump: only --block-size goes with it")
    by_family = {6 if size > 32 else 4: size for size in sizes}
    if len(by_family) < len(sizes):
        raise click.UsageError("--block-size is given twice for one family")
    return import_prefixes(cluster, prefixes, by_family, style)


def _options(
    labels: tuple[str, ...], mode: str | None, cilium: str | None, managed_by: str | None, operator: str
) -> Options:
    from ipamc.importing.bring_in import Options
    from ipamc.model.cluster import ManagedBy, Mode, OperatorRole

    owner = next((known for known in get_args(ManagedBy) if known == managed_by), None)
    role = next(known for known in get_args(OperatorRole) if known == operator)
    return Options(
        mode=Mode(mode) if mode else None,
        operator=role,
        cilium=_version(cilium) if cilium else None,
        managed_by=owner,
        labels=labels,
    )


def _range(text: str) -> Block:
    from ipamc.model.cidr import CidrError, parse_block

    try:
        return parse_block(text)
    except CidrError as problem:
        raise click.BadParameter(str(problem), param_hint="--distinct") from None


def _version(text: str) -> tuple[int, int]:
    parts = text.removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts[:2]):
        raise click.BadParameter(f"{text!r} is not a minor such as 1.18", param_hint="--cilium-version")
    return int(parts[0]), int(parts[1])


def _load(files: Sequence[str]) -> tuple[Dump, list[Diagnostic]]:
    from ipamc.workspace.dump import STDIN, load_dump

    with progress("reading the dump"):
        return load_dump(files or (STDIN,))


def _start(cluster: str, files: Sequence[str], options: Options, style: str) -> int:
    """Write the files of a new cluster, and compile it."""
    from ipamc.cli.init import new_folder
    from ipamc.importing.bring_in import bring_in

    folder, name = new_folder(cluster, "write")
    begin()
    with accounted(lambda: NOTHING):
        dump, warnings = _load(files)
        with progress("making the files"):
            imported = bring_in(name, dump, options)
    with accounted(lambda: imported_so_far(folder, imported.files)):
        return _write(folder, cluster, imported, warnings, style)


def _write(folder: str, cluster: str, imported: Imported, warnings: Sequence[Diagnostic], style: str) -> int:
    from ipamc.cli.init import prepare
    from ipamc.cli.runner import ClusterRun, Outcome, compile_all, conclude
    from ipamc.workspace.environment import today
    from ipamc.workspace.inputs import create_cluster

    written = create_cluster(folder, imported.files)
    for path in sorted(f"{folder}/{file}" for file in imported.files):
        say(f"{path}: {'written' if path in written else 'unchanged'}")
    (outcome,) = compile_all([ClusterRun(folder=folder, today=today())], 1)
    found = tuple(finding for finding in outcome.findings if finding.code != _OF_THE_DUMP)
    both: Outcome = replace(outcome, findings=(*warnings, *imported.findings, *found))
    if not (outcome.done or outcome.trouble):
        both = replace(both, line="refused: the files are there, and neither a lock nor anything rendered")
    code = conclude([both], style)
    prepare(folder)
    if code == DONE:
        above = PurePath(folder).parent.as_posix()
        say(f"next: read {folder}/, then commit it: git add .gitattributes {above} && git commit")
    elif not outcome.trouble:
        say(
            f"next: decide what is refused, in {folder}/ or in the cluster, then run: ipamc compile {cluster}"
        )
    return code


def _refresh(
    cluster: str, files: Sequence[str], labels: tuple[str, ...], style: str, *, rebuilt: bool
) -> int:
    """Write the inventory of a cluster again."""
    from ipamc.importing.refresh import SLACK, Past, changes, inventories, never_seen, refresh
    from ipamc.model.diagnostics import count, names
    from ipamc.read.locate import locate
    from ipamc.read.read import read
    from ipamc.workspace.environment import utc
    from ipamc.workspace.inputs import update_cluster
    from ipamc.workspace.revision import last_change
    from ipamc.workspace.source import Disk

    (folder,) = find([cluster])
    with accounted(lambda: NOTHING):
        dump, warnings = _load(files)
        inputs = Disk().inputs(folder)
        try:
            with progress("reading the inventory"):
                there, _ = read(inputs.name, folder, inputs.sources, inputs.schemas)
                phase("making the files")
                written = (path.removeprefix(f"{folder}/") for path in inventories(there, folder))
                second = last_change(folder, *written)
                past = Past() if second is None else Past(committed=utc(second), limit=utc(second - SLACK))
                texts = refresh(
                    there, folder, dump, past, sources=inputs.sources, labels=labels, rebuilt=rebuilt
                )
        except Refused as refused:
            raise Refused(locate(refused.diagnostics, inputs.sources)) from None
        print_findings([*warnings, *locate(never_seen(there, folder, dump), inputs.sources)], style)
        difference = changes(there, dump, labels)
    with accounted(lambda: refreshed_so_far(folder, texts)):
        changed = update_cluster(folder, texts)
    for path in sorted(f"{folder}/{file}" for file in texts):
        say(f"{path}: {'written' if path in changed else 'unchanged'}")
    said = (
        f"{count(len(some), 'node')} {what}{f' ({names(some)})' if some else ''}"
        for what, some in (
            ("joined", difference.joined),
            ("left", difference.left),
            ("changed", difference.changed),
        )
    )
    say(f"{inputs.name}: {', '.join(said)}")
    if changed:
        say(f"next: ipamc compile {cluster}, then read what it does: ipamc plan {cluster}")
    return DONE
