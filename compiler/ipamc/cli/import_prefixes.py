"""`ipamc import --prefixes`: the pools that a NetBox or a spreadsheet plans, for a new cluster or one that is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ipamc.cli.command import DONE
from ipamc.cli.findings import print_findings
from ipamc.cli.interrupted import NOTHING, accounted, refreshed_so_far
from ipamc.cli.terminal import progress, say
from ipamc.importing.files import POOLS, pools_text
from ipamc.model.diagnostics import Diagnostic, Log, Refused, count
from ipamc.workspace import disk
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from ipamc.importing.prefixes import Plan, PlannedPool


def import_prefixes(cluster: str, file: str, sizes: Mapping[int, int], style: str) -> int:
    """Write the pools of a plan that a cluster does not have; return the exit code.

    A pool that is there stays as it is. `sizes` are block sizes by family. Raises Refused, and writes nothing,
    for what is wrong with the table and for what a compile would refuse of the pools.
    """
    from ipamc.cli.init import new_folder, prepare
    from ipamc.importing.prefixes import COLUMNS, read_plan
    from ipamc.workspace.clusters import find, name_of
    from ipamc.workspace.dump import load_table
    from ipamc.workspace.inputs import source_paths

    folder, name = new_folder(cluster, "write")
    is_there = disk.is_folder(folder) and bool(source_paths(folder))
    if is_there:
        (folder,) = find([cluster])
        name = name_of(folder)
    with accounted(lambda: NOTHING):
        with progress("reading the prefixes"):
            plan = read_plan(load_table(file, COLUMNS), name, sizes)
        files, findings = (
            _for_a_cluster(folder, plan) if is_there else (_for_a_new_one(folder, name, plan), ())
        )
    print_findings((*plan.findings, *findings), style)
    with accounted(lambda: refreshed_so_far(folder, files)):
        _write(folder, files)
    if not is_there:
        prepare(folder)
        say(f"next: list your nodes in {folder}/nodes.yaml, then run: ipamc compile {cluster}")
    elif files:
        say(
            f"next: see what changes: ipamc plan {cluster}; then write a nodeSelector where a pool is not for every node"
        )
    else:
        say(f"{folder}: has the {count(len(plan.pools), 'pool')} of the plan; nothing is written")
    return DONE


def _for_a_new_one(folder: str, name: str, plan: Plan) -> dict[str, str]:
    """Return the files of a new cluster. Raises Refused where its pools do not fit together."""
    from ipamc.check import check
    from ipamc.cli.init import first_files
    from ipamc.read.locate import locate
    from ipamc.read.read import read

    families = sorted({family for pool in plan.pools for family in pool.draft.ranges})
    files = first_files(name, ", ".join(f"IPv{family}" for family in families))
    files[POOLS] = _text(plan.pools)
    sources = {f"{folder}/{file}": text.encode() for file, text in files.items()}
    try:
        there, _ = read(name, folder, sources, disk.assets("schemas"))
        Log().add(check(there))
    except Refused as refused:
        _say_quoted(sources)
        raise Refused(locate(refused.diagnostics, sources)) from None
    return files


def _say_quoted(paths: Iterable[str]) -> None:
    """Say why findings quote files that are not there."""
    say(f"nothing is written; the findings quote what {' and '.join(sorted(paths))} would have")


def _for_a_cluster(folder: str, plan: Plan) -> tuple[dict[str, str], Sequence[Diagnostic]]:
    """Return the files to add to a cluster, and what of its pools is not as planned.

    Raises Refused where a compile would refuse the cluster with these pools.
    """
    from ipamc.importing.prefixes import differences, new_pools
    from ipamc.pipeline import load_cluster
    from ipamc.read.locate import locate
    from ipamc.workspace.source import Disk

    inputs = Disk().inputs(folder)
    there, _ = load_cluster(inputs)
    findings = locate(differences(plan, there), inputs.sources)
    new = new_pools(plan, there)
    if not new:
        return {}, findings
    pools = (
        {POOLS: new}
        if f"{folder}/{POOLS}" not in inputs.sources
        else {f"ippools-{pool.draft.name}.yaml": (pool,) for pool in new}
    )
    files = {file: _text(some) for file, some in pools.items()}
    sources = {f"{folder}/{file}": text.encode() for file, text in files.items()}
    if taken := sorted(sources.keys() & inputs.sources.keys()):
        raise Trouble(f"{taken[0]} is there already, without the pool that it would have: rename it")
    try:
        load_cluster(replace(inputs, sources={**inputs.sources, **sources}))
    except Refused:
        _say_quoted(sources)
        raise
    return files, findings


def _text(pools: Sequence[PlannedPool]) -> str:
    return pools_text(pool.draft for pool in pools)


def _write(folder: str, files: Mapping[str, str]) -> None:
    from ipamc.workspace.safe_read import refuse_links

    refuse_links(folder)
    for file, text in sorted(files.items()):
        path = f"{folder}/{file}"
        if not disk.create(path, text):
            raise Trouble(f"{path} is there already, and was not a moment ago: run it again")
        say(f"{path}: written")
