"""`ipamc import --prefixes`: the pools that a table plans, for a cluster of git; no dump is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ipamc.cli.command import DONE
from ipamc.cli.findings import print_findings
from ipamc.cli.init import first_files, new_folder, prepare
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import Diagnostic, Log, Refused, count
from ipamc.workspace import disk
from ipamc.workspace.clusters import find, name_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import source_paths
from ipamc.workspace.safe_read import refuse_links

if TYPE_CHECKING:
    from ipamc.importing.prefixes import PlannedPools


def planned(cluster: str, file: str, sizes: tuple[int, ...], style: str) -> int:
    """Write those pools of a table that a cluster does not have; return the exit code.
    Existing pools stay. Raises Refused, and writes nothing, for a table or pools that are in error.
    """
    from ipamc.importing.prefixes import COLUMNS, read_plan
    from ipamc.workspace.dump import load_table

    by_family = {6 if size > 32 else 4: size for size in sizes}
    if len(by_family) < len(sizes):
        raise click.UsageError("--block-size is given twice for one family")
    folder, name = new_folder(cluster, "write")
    is_there = disk.is_folder(folder) and bool(source_paths(folder))
    if is_there:
        (folder,) = find([cluster])
        name = name_of(folder)
    findings: Sequence[Diagnostic] = ()
    with progress("reading the prefixes"):
        plan = read_plan(load_table(file, COLUMNS), name, by_family)
    if is_there:
        files, findings = _additions(folder, plan)
    else:
        files = _first_files(folder, name, plan)
    print_findings((*plan.findings, *findings), style)
    refuse_links(folder)
    for path, text in sorted((f"{folder}/{each}", text) for each, text in files.items()):
        if not disk.create(path, text):
            raise EnvironmentFailure(f"{path} is there already, and was not a moment ago: run it again")
        say(f"{path}: written")
    if not is_there:
        prepare(folder)
        say(f"next: list your nodes in {folder}/nodes.yaml, then run: ipamc compile {cluster}")
    elif files:
        then = "then write a nodeSelector where a pool is not for every node"
        say(f"next: see what changes: ipamc plan {cluster}; {then}")
    else:
        say(f"{folder}: has the {count(len(plan.pools), 'pool')} of the plan; nothing is written")
    return DONE


def _first_files(folder: str, name: str, plan: PlannedPools) -> dict[str, str]:
    """Return the files of a new cluster. Raises Refused where its pools do not fit together."""
    from ipamc.check import check
    from ipamc.importing.files import POOLS, pools_text
    from ipamc.read.locate import locate
    from ipamc.read.read import read

    families = sorted({family for pool in plan.pools for family in pool.draft.ranges})
    files = first_files(name, ", ".join(f"IPv{family}" for family in families))
    files[POOLS] = pools_text(pool.draft for pool in plan.pools)
    sources = {f"{folder}/{file}": text.encode() for file, text in files.items()}
    try:
        there, _ = read(name, folder, sources, disk.assets("schemas"))
        Log().add(check(there))
    except Refused as refused:
        _say_quoted(sources)
        raise Refused(locate(refused.diagnostics, sources)) from None
    return files


def _additions(folder: str, plan: PlannedPools) -> tuple[dict[str, str], Sequence[Diagnostic]]:
    """Return the files to add to a cluster, and the differences between its pools and the plan.
    Raises Refused where a compile would refuse the cluster with these pools.
    """
    from ipamc.importing.files import POOLS, pools_text
    from ipamc.importing.prefixes import differences, new_pools
    from ipamc.pipeline import load_cluster
    from ipamc.read.locate import locate
    from ipamc.workspace.source import Disk

    inputs = Disk().inputs(folder)
    there, _ = load_cluster(inputs)
    findings = locate(differences(plan, there), inputs.sources)
    drafts = [pool.draft for pool in new_pools(plan, there)]
    if not drafts:
        return {}, findings
    if f"{folder}/{POOLS}" in inputs.sources:
        files = {f"ippools-{draft.name}.yaml": pools_text([draft]) for draft in drafts}
    else:
        files = {POOLS: pools_text(drafts)}
    sources = {f"{folder}/{file}": text.encode() for file, text in files.items()}
    if clash := sorted(sources.keys() & inputs.sources.keys()):
        raise EnvironmentFailure(
            f"{clash[0]} is there already, without the pool that it would have: rename it"
        )
    try:
        load_cluster(replace(inputs, sources={**inputs.sources, **sources}))
    except Refused:
        _say_quoted(sources)
        raise
    return files, findings


def _say_quoted(paths: Mapping[str, bytes]) -> None:
    """Print why findings quote files that do not exist."""
    say(f"nothing is written; the findings quote what {' and '.join(sorted(paths))} would have")
