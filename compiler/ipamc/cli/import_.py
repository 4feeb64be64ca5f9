"""`ipamc import`: the files of a cluster from a dump, later its inventory; machines and pools from plans."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import format_option, print_findings
from ipamc.cli.init import first_files, new_folder, prepare
from ipamc.cli.options import several
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import Diagnostic, Refused, count, names
from ipamc.model.limits import DUMP_SLACK
from ipamc.model.progress import phase
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.environment import today, utc
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import create_cluster, source_paths, update_cluster
from ipamc.workspace.safe_read import refuse_links
from ipamc.workspace.spaces import not_space

if TYPE_CHECKING:
    from ipamc.importing.bring_in import Options
    from ipamc.importing.prefixes import PlannedPools
    from ipamc.model.dump import Dump
    from ipamc.pipeline import Inputs

_OF_THE_DUMP = "IPC0540"
"""A warning that the operator's pools may have other CIDRs: an import took the CIDRs from the dump."""
_OF_PREFIXES = {"cluster", "prefixes", "sizes", "style", "report"}  # parameters that go with --prefixes
_OF_MACHINES = {"cluster", "machines", "files", "labels", "style", "report"}


@click.command(cls=Verb)
@click.argument("cluster")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--refresh", is_flag=True)
@click.option("--machines", is_flag=True)
@click.option("--prefixes", metavar="FILE")
@click.option("--helm-values", "values", metavar="FILE")
@several("--block-size", "sizes", type=click.IntRange(8, 128), metavar="N,…")
@several("--label", "labels", metavar="KEY,…")
@click.option("--mode", type=click.Choice(("kubernetes", "cluster-pool", "multi-pool", "crd")))
@click.option("--cilium-version", metavar="MINOR")
@click.option("--managed-by", type=click.Choice(("helm", "kustomize", "none")))
@click.option("--operator", type=click.Choice(("bystander", "adopt")), default="bystander", show_default=True)
@several("--distinct", metavar="CIDR,…")
@click.option("--rebuilt", is_flag=True)
@format_option
def command(
    *,
    cluster: str,
    files: tuple[str, ...],
    refresh: bool,
    machines: bool,
    style: str,
    **given: Any,
) -> int:
    """Import a running cluster into git; its nodes keep their blocks.

    Writes cluster.yaml, ippools.yaml, nodes.yaml and ciliumnodes.yaml, and compiles. Prints what the dump
    lacks and what you must decide. CLUSTER is a name below clusters/ or a folder. FILE is a cilium-sysdump
    zip, or the output of this command, in JSON or YAML; `-`, or no FILE, is stdin:

    \b
        kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,pods,cm -A -o json

    Omit the kinds that the cluster lacks. With Calico, make the dump before the first node moves to Cilium,
    and add `ippools,ipamblocks,blockaffinities,ipreservations,ipamconfigs`, each followed by
    `.crd.projectcalico.org`. If Calico uses etcd, run `calicoctl datastore migrate export`.

    Options:
        --refresh: Update nodes.yaml, ciliumnodes.yaml and other NodeInventories of the cluster from a newer
            dump. Nodes stay in their files, and planned nodes stay.
        --machines: Add a planned node to machines.yaml for each machine in FILE, and change nothing else.
            FILE is the output of `kubectl get machines,baremetalhosts -A -o yaml`, a kubespray inventory in
            YAML or INI, or a .csv, .tsv or .txt file: a table with the column name, whose other columns are
            labels, or one name per line.
        --prefixes: Add the pools of this CSV file, from NetBox or a spreadsheet; existing pools stay.
            Columns: prefix; pool, name, role or description; blockSize; status; nodeSelector, zone or site.
        --helm-values: Values of Cilium's Helm chart, if the dump lacks ConfigMap cilium-config.
        --block-size: With --prefixes, the block size of pools without one in the file. With --distinct, the
            size of the new blocks. Values above 32 are for IPv6.
        --label: Also keep this label of nodes or machines. KEY may end in *.
        --mode: Cilium's IPAM mode, if the dump does not show it.  [default for Calico: multi-pool]
        --cilium-version: Lowest Cilium minor in the cluster, if the dump does not show it.
        --managed-by: Owner of cilium-config.  [default: as in the dump]
        --operator: Who gives out blocks in cluster-pool mode from now on: only ipamc (bystander), or also the
            operator, from its present ranges (adopt).
        --distinct: With Calico: give the nodes new blocks from this range, which Calico does not use.
            Required for pools with IPIP or VXLAN. Blocks are /24 (IPv6: /112), or smaller if twice the nodes
            would not fit. Name one range per family.
        --rebuilt: With --refresh: the cluster was built again, and all uids are new.
    Examples:
        kubectl get nodes,ciliumnodes,ciliumpodippools,ciliumnodeconfigs,pods,cm -A -o json | ipamc import lab
            # start clusters/lab/ with the blocks of a running cluster
        ipamc import lab dump.json cilium-sysdump.zip  # the same, from files
        ipamc import lab dump.json --helm-values values.yaml  # if the dump lacks ConfigMap cilium-config
        ipamc import lab dump.json --label 'example.com/*'  # also keep these labels of nodes
        ipamc import lab dump.json --distinct 10.100.0.0/16
            # if Calico has an overlay: give the nodes new blocks from another range
        ipamc import lab --refresh dump.json  # update nodes.yaml and ciliumnodes.yaml
        ipamc import lab --machines machines.yaml racks.csv  # plan the nodes of new machines
        ipamc import lab --prefixes plan.csv  # add the pools of a NetBox export or a spreadsheet
    Exit codes:
        1: the dump or a compile of it was refused, or an I/O or environment error
    """  # noqa: D301 - a backspace tells click where lines stay as they are
    from ipamc.workspace.dump import refuse_for_cluster

    way = " --machines" if machines else " --refresh" if refresh else ""
    refuse_for_cluster(cluster, files, f"import{way}")
    try:
        if (prefixes := given["prefixes"]) is not None:
            _refuse_others("--prefixes reads no dump: combine it only with --block-size", _OF_PREFIXES)
            return _planned(cluster, prefixes, given["sizes"], style)
        if given["sizes"] and not given["distinct"]:
            raise click.UsageError("--block-size needs --prefixes or --distinct")
        if refresh and given["values"]:
            raise click.UsageError("--helm-values is for the first import: a refresh reads no flags")
        if not files and sys.stdin.isatty():
            raise click.UsageError(f"name a FILE, or pipe {'machines' if machines else 'a dump'} into stdin")
        if machines:
            _refuse_others("--machines reads no dump: combine it only with --label", _OF_MACHINES)
            return _machines(cluster, files, given["labels"], style)
        if refresh:
            return _refresh(cluster, files, given["labels"], style, rebuilt=given["rebuilt"])
        return _start(cluster, files, _options(given), style, given["values"])
    except Refused as refused:
        print_findings(refused.diagnostics, style)
        return REFUSED


def _refuse_others(problem: str, taken: Collection[str]) -> None:
    """Raise UsageError for a parameter that would have no effect."""
    context = click.get_current_context()
    for name in context.params.keys() - set(taken):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]:
            raise click.UsageError(problem)


def _options(given: Mapping[str, Any]) -> Options:
    from ipamc.importing.bring_in import Options
    from ipamc.model.cidr import CidrError, parse_block
    from ipamc.model.cluster import Mode

    cilium = None
    if minor := given["cilium_version"]:
        parts = minor.removeprefix("v").split(".")
        short = all(part.isascii() and part.isdecimal() and len(part) < 4 for part in parts[:2])
        if len(parts) < 2 or not short:
            raise click.BadParameter(f"{minor!r} is not a minor such as 1.18", param_hint="--cilium-version")
        cilium = int(parts[0]), int(parts[1])
    try:
        distinct = tuple(map(parse_block, given["distinct"]))
    except CidrError as problem:
        raise click.BadParameter(str(problem), param_hint="--distinct") from None
    return Options(
        mode=Mode(given["mode"]) if given["mode"] else None,
        cilium=cilium,
        distinct=distinct,
        sizes=_by_family(given["sizes"]),
        **{name: given[name] for name in ("operator", "managed_by", "labels")},
    )


def _load(files: Sequence[str], values: str | None = None) -> tuple[Dump, list[Diagnostic]]:
    from ipamc.workspace.dump import STDIN, load_dump

    with progress("reading the dump"):
        return load_dump(files or (STDIN,), every=True, values=values)


def _start(cluster: str, files: Sequence[str], options: Options, style: str, values: str | None) -> int:
    from ipamc.cli.runner import ClusterRun, Outcome, compile_all, conclude
    from ipamc.importing.bring_in import bring_in

    folder, name = new_folder(cluster, "write")
    dump, warnings = _load(files, values)
    with progress("making the files"):
        imported = bring_in(name, dump, options)
    _say_files(folder, imported.files, create_cluster(folder, imported.files))
    if imported.draft.proposed:
        # No lock yet: it would keep what nobody planned.
        print_findings([*warnings, *imported.findings], style)
        prepare(folder)
        say(f"next: write the planned ranges into {folder}/, then run: ipamc compile {cluster}")
        return DONE
    (outcome,) = compile_all([ClusterRun(folder=folder, today=today(), dumped=dump.kinds)], 1)
    found = (each for each in outcome.findings if each.code != _OF_THE_DUMP)
    both: Outcome = replace(outcome, findings=(*warnings, *imported.findings, *found))
    if not (outcome.done or outcome.failed):
        line = "refused: the input files are written, but no lock and nothing in rendered/"
        both = replace(both, line=line)
    code = conclude([both], style)
    prepare(folder)
    if code == DONE:
        above = PurePath(folder).parent.as_posix()
        say(f"next: read {folder}/, then commit it: git add .gitattributes {above} && git commit")
    elif not outcome.failed:
        where = f"in {folder}/ or in the cluster"
        say(f"next: fix the errors {where}, then run: ipamc compile {cluster}")
    return code


def _refresh(cluster: str, files: Sequence[str], labels: Sequence[str], style: str, *, rebuilt: bool) -> int:
    from ipamc.check.acknowledged import Acknowledging
    from ipamc.importing import refresh as anew
    from ipamc.importing.refresh import Past, refresh
    from ipamc.read.locate import locate
    from ipamc.read.read import read
    from ipamc.workspace.revision import last_change
    from ipamc.workspace.source import Disk

    folder = not_space(*find([cluster]))
    dump, warnings = _load(files)
    inputs = Disk().inputs(folder)
    sources = inputs.sources
    try:
        with progress("reading the inventory"):
            there, _ = read(inputs.name, folder, sources, inputs.schemas)
            phase("making the files")
            dump, without = anew.of_cilium(there, dump, inputs.lock, inputs.lock_path)
            written = (path.removeprefix(f"{folder}/") for path in anew.inventories(there, folder))
            second = last_change(folder, *written)
            past = Past() if second is None else Past(committed=utc(second), limit=utc(second - DUMP_SLACK))
            texts = refresh(there, folder, dump, past, sources=sources, labels=labels, rebuilt=rebuilt)
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, sources)) from None
    about = [*warnings, *without, *anew.about_nodes(there, folder, dump), *anew.inside_ranges(there, dump)]
    print_findings(locate(Acknowledging(there, ()).mark(about), sources), style)
    found = anew.changes(there, dump, labels)
    said = (
        f"{count(len(some), 'node')} {what}{f' ({names(some)})' if some else ''}"
        for what, some in (("joined", found.joined), ("left", found.left), ("changed", found.changed))
    )
    return _update(cluster, folder, texts, texts, f"{inputs.name}: {', '.join(said)}")


def _update(cluster: str, folder: str, files: Iterable[str], texts: Mapping[str, str], line: str) -> int:
    """Write texts of an inventory; print which of the named files changed, the line, and what to run next."""
    changed = update_cluster(folder, texts)
    _say_files(folder, files, changed)
    say(line)
    if changed:
        say(f"next: ipamc compile {cluster}; to see its changes first: ipamc plan {cluster}")
    return DONE


def _say_files(folder: str, files: Iterable[str], written: Collection[str]) -> None:
    for path in sorted(f"{folder}/{file}" for file in files):
        say(f"{path}: {'written' if path in written else 'unchanged'}")


def _machines(cluster: str, files: Sequence[str], labels: Sequence[str], style: str) -> int:
    """Add the nodes that a cluster does not have to its inventory of machines, and change nothing else.
    Raises Refused, and writes nothing, for files or an inventory in error.
    """
    from ipamc.importing.machines import FILE, additions, extended
    from ipamc.read.locate import locate
    from ipamc.read.read import read
    from ipamc.workspace.dump import load_machines
    from ipamc.workspace.source import Disk

    folder = not_space(*find([cluster]))
    path = f"{folder}/{FILE}"
    inputs = Disk().inputs(folder)
    sources = inputs.sources
    try:
        with progress("reading the machines"):
            found = load_machines(files, inputs.name, labels)
            there, _ = read(inputs.name, folder, sources, inputs.schemas)
            new = additions(found, there, path)
        texts = {}
        if new.nodes:
            text = extended(path, sources.get(path), new.nodes)
            sources = {**sources, path: text or b""}
            after, _ = read(inputs.name, folder, sources, inputs.schemas) if text else (there, ())
            if len(after.nodes) != len(there.nodes) + len(new.nodes):
                lines = "is not a plain list of nodes, so no node can be added"
                raise EnvironmentFailure(f"{path} {lines}: rename it, and run this again")
            texts = {FILE: sources[path].decode()}
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, sources)) from None
    print_findings(locate(new.findings, inputs.sources), style)
    listed = f" ({names(node.name for node in new.nodes)})" if new.nodes else ""
    added = f"{inputs.name}: {count(len(new.nodes), 'planned node')} added{listed}"
    return _update(cluster, folder, [FILE], texts, f"{added}, {new.there:,} exist already")


def _planned(cluster: str, file: str, sizes: Sequence[int], style: str) -> int:
    """Write those pools of a table that a cluster does not have, or a new cluster with them.
    Existing pools stay. Raises Refused, and writes nothing, for a table or pools that are in error.
    """
    from ipamc.importing.prefixes import COLUMNS, read_plan
    from ipamc.pipeline import Inputs, load_cluster
    from ipamc.workspace.dump import load_table
    from ipamc.workspace.source import Disk

    by_family = _by_family(sizes)
    folder, name = new_folder(cluster, "write")
    is_new = not (disk.is_folder(folder) and source_paths(folder))
    if not is_new:
        (folder,) = find([cluster])
        name = name_of(folder)
    with progress("reading the prefixes"):
        plan = read_plan(load_table(file, COLUMNS), name, by_family)
    if is_new:
        schemas = disk.assets("schemas")
        inputs = Inputs(name=name, folder=folder, sources={}, lock_path="", lock=None, schemas=schemas)
    else:
        inputs = Disk().inputs(folder)
    files, findings = _files_of(plan, inputs)
    if clash := sorted(files.keys() & inputs.sources.keys()):
        raise EnvironmentFailure(f"{clash[0]} exists, but not with the planned pool: rename it")
    try:
        if files:
            load_cluster(replace(inputs, sources={**inputs.sources, **files}))
    except Refused:
        say(f"nothing is written; the findings quote the planned text of {' and '.join(sorted(files))}")
        raise
    print_findings((*plan.findings, *findings), style)
    refuse_links(folder)
    for path, data in sorted(files.items()):
        if not disk.create(path, data.decode()):
            raise EnvironmentFailure(f"another program has just created {path}: run this again")
        say(f"{path}: written")
    if is_new:
        prepare(folder)
        say(f"next: list your nodes in {folder}/nodes.yaml, then run: ipamc compile {cluster}")
    elif files:
        then = "then add a nodeSelector to pools that are not for every node"
        say(f"next: see what changes: ipamc plan {cluster}; {then}")
    else:
        say(f"{folder}: unchanged, it has the {count(len(plan.pools), 'pool')} of the plan")
    return DONE


def _by_family(sizes: Sequence[int]) -> Mapping[int, int]:
    by_family = {6 if size > 32 else 4: size for size in sizes}
    if len(by_family) < len(sizes):
        raise click.UsageError("--block-size has two values for one family")
    return by_family


def _files_of(plan: PlannedPools, inputs: Inputs) -> tuple[dict[str, bytes], Sequence[Diagnostic]]:
    """Return the files with what a cluster does not have, and where its pools differ from the plan."""
    from ipamc.importing.files import POOLS, pools_text
    from ipamc.importing.prefixes import differences, new_pools
    from ipamc.pipeline import load_cluster
    from ipamc.read.locate import locate

    pools, files = plan.pools, dict[str, str]()
    findings: Sequence[Diagnostic] = ()
    if inputs.sources:
        there, _ = load_cluster(inputs)
        findings, pools = locate(differences(plan, there), inputs.sources), new_pools(plan, there)
    else:
        families = sorted({family for pool in pools for family in pool.draft.ranges})
        files = first_files(inputs.name, ", ".join(f"IPv{family}" for family in families))
    drafts = [pool.draft for pool in pools]
    if f"{inputs.folder}/{POOLS}" in inputs.sources:
        files |= {f"ippools-{draft.name}.yaml": pools_text([draft]) for draft in drafts}
    elif drafts:
        files[POOLS] = pools_text(drafts)
    return {f"{inputs.folder}/{path}": text.encode() for path, text in files.items()}, findings
