"""`ipamc forecast`: how long the pools last, and what other nodes would get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from ipamc.cli.command import REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import output_option, several, source_of, source_options
from ipamc.cli.shown import POOL
from ipamc.cli.terminal import progress, show, show_record
from ipamc.model.diagnostics import count

if TYPE_CHECKING:
    from ipamc.report.runway import History
    from ipamc.review.runway import Runway
    from ipamc.review.what_if import WhatIf
    from ipamc.workspace.source import Source


@click.command(cls=Verb)
@several("--pool", "pools", metavar="NAME,…", help=POOL)
@click.option("--what-if", "changes", multiple=True, metavar="CHANGE")
@output_option("text", "json")
@source_options
@format_option
def command(
    *, pools: tuple[str, ...], changes: tuple[str, ...], output: str, style: str, **where: Any
) -> int:
    """Show for how many weeks the pools have room, or simulate nodes added or removed. Writes nothing.

    The forecast is a range from the history of the lock in git, and shows its method. CLUSTER is a name below
    clusters/ or a folder; by default all clusters.

    Options:
        --what-if: Simulate a compile with nodes added or removed: '+40 rack=b', '+3 like NODE', '-rack=b',
            '-node NAME'. Repeatable. Exits 1 if the compile would be refused.
    Examples:
        ipamc forecast lab  # for how many weeks each pool has room
        ipamc forecast --pool 'rack-*'  # only some pools
        ipamc forecast lab --what-if '+40 rack=b'  # which blocks 40 new nodes get, and which pools are full
    Exit codes:
        1: an input or a lock was refused, no pool matches --pool, the nodes of --what-if do not fit, or an
            I/O or environment error
    """
    source = source_of(**where)
    if not changes:
        return _runway(source, pools, output, style)
    if pools:
        raise click.UsageError("--what-if takes no --pool: the selectors of pools choose the nodes")
    from ipamc.report import what_if as report
    from ipamc.review.node_changes import ChangeError, parse_change
    from ipamc.review.what_if import what_if
    from ipamc.workspace.spaces import not_space

    if len(source.folders) != 1:
        raise click.UsageError("--what-if is for one cluster: name one cluster")
    folder, problems = not_space(*source.folders), Problems()
    answer: WhatIf | None = None
    misfit = ""
    with progress("simulating"), problems.of(folder):
        try:
            answer = what_if(source.inputs(folder), [parse_change(text) for text in changes], source.day())
        except ChangeError as problem:
            misfit = str(problem)
    if misfit:
        raise click.UsageError(f"--what-if {misfit}")
    if answer and output == "json":
        show_record({"version": report.VERSION, **source.record(), **report.record(answer)})
    elif answer:
        show(report.text(answer))
    code = problems.conclude(style, answered=answer is not None)
    return code if answer is None or answer.fits else REFUSED


def _runway(source: Source, pools: Sequence[str], output: str, style: str) -> int:
    """Print how long pools of these names or patterns, or all, have room; return the exit code."""
    from ipamc.pipeline import load_folder
    from ipamc.report import runway as report
    from ipamc.review.runway import runway, to_read
    from ipamc.review.shown_pools import Choice, without_match
    from ipamc.workspace.revision import is_last, lock_history, texts

    problems, choice = Problems(), Choice(pools=tuple(pools))
    known: set[str] = set()
    found: list[tuple[Runway, History]] = []
    with progress("reading the history"):
        for folder in source.folders:
            with problems.of(folder):
                inputs = source.inputs(folder, rendered=False)
                cluster, lock = load_folder(inputs)
                past = lock_history(folder, source.record().get("at", {}).get("commit", "HEAD"))
                today = source.day()
                seconds = [version.second for version in past.versions]
                wanted = [past.versions[number] for number in to_read(seconds, today)]
                one = runway(cluster, lock, seconds, (text for _, text in texts(past, wanted)), today)
                known.update(one.cluster.pools_by_name)
                chosen = tuple(pool for pool in one.pools if choice.has_pool(pool.use.pool.name))
                history = report.History(
                    commits=[(version.commit, version.second) for version in past.versions],
                    shallow=past.shallow,
                    cut=past.cut,
                    uncommitted=bool(past.versions) and not is_last(past, inputs.lock),
                )
                found.append((replace(one, pools=chosen), history))
    if output == "json":
        head = {"version": report.VERSION, **source.record(), "today": source.day()}
        show_record({**head, "clusters": [report.record(*one) for one in found]})
    else:
        show("\n".join(report.text(*one) for one in found))
    where, missing = count(len(source.folders), "cluster"), list(without_match(pools, known))
    tell(style, *(f"no pool of {where} is named {name}" for name in missing))
    return problems.conclude(style, answered=not missing)
