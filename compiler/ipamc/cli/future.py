"""The options of `ipamc show` that ask about the future: --what-if and --runway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from click.core import ParameterSource

from ipamc.cli.command import REFUSED
from ipamc.cli.findings import Problems, tell
from ipamc.cli.terminal import progress, show, show_record
from ipamc.model.diagnostics import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipamc.report.runway import History
    from ipamc.review.runway import Runway
    from ipamc.review.shown_pools import Choice
    from ipamc.review.what_if import WhatIf
    from ipamc.workspace.source import Source

what_if_option = click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="CHANGE",
    help="Instead, what a compile would make of other nodes: '+40 rack=b', '+3 like NODE', '-rack=b', '-node NAME'. "
    "Repeatable. Exit code 1 where it would refuse them.",
)
runway_option = click.option(
    "--runway",
    is_flag=True,
    help="Instead, for how many weeks the pools have room, by the history of the lock in git: a range, and how it was found.",
)
_COMMON = {"clusters", "output", "at", "assume", "style", "report"}
"""Parameters of `show` that these questions have, too."""
_FORMATS = ("text", "json")


def tell_future(
    source: Source, changes: tuple[str, ...], pools: tuple[str, ...], *, runway: bool, output: str, style: str
) -> int:
    """Answer --what-if or --runway; return the exit code. Raises UsageError for options of other questions."""
    if runway and changes:
        raise click.UsageError("--runway and --what-if are two questions: ask one after the other")
    name = "--runway" if runway else "--what-if"
    _refuse_others(name, {"runway", "pools"} if runway else {"changes"}, output)
    if runway:
        return tell_runway(source, pools, output, style)
    return tell_what_if(source, changes, output, style)


def _refuse_others(name: str, own: set[str], output: str) -> None:
    """Raise UsageError where an option was given that would not count."""
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in own | _COMMON:
            raise click.UsageError(f"{name} takes no {param.opts[0]}")
    if output not in _FORMATS:
        raise click.UsageError(f"{name} is no --output {output}: {' or '.join(_FORMATS)}")


def tell_what_if(source: Source, changes: Sequence[str], output: str, style: str) -> int:
    """Print what a compile would make of changes of the nodes of one cluster; return the exit code.

    That is 0 where every node has its blocks, and 1 where a compile would refuse.
    """
    from ipamc.report import what_if as report
    from ipamc.review.node_changes import ChangeError, parse_change
    from ipamc.review.what_if import what_if

    if len(source.folders) != 1:
        raise click.UsageError("--what-if asks about the nodes of one cluster: name it")
    problems = Problems()
    answers: list[WhatIf] = []
    misfits: list[ChangeError] = []
    with progress("compiling in thought"), problems.of(source.folders[0]):
        try:
            wanted = [parse_change(text) for text in changes]
            answers.append(what_if(source.inputs(source.folders[0]), wanted, source.day()))
        except ChangeError as problem:
            misfits.append(problem)
    if misfits:
        raise click.UsageError(f"--what-if {misfits[0]}")
    for answer in answers:
        if output == "json":
            record = {"version": report.VERSION, **source.record(), **report.record(answer)}
            show_record(record)
        else:
            show(report.text(answer))
    code = problems.conclude(style, answered=bool(answers))
    return code if all(answer.fits for answer in answers) else REFUSED


def tell_runway(source: Source, pools: Sequence[str], output: str, style: str) -> int:
    """Print for how long the pools of each cluster have room; return the exit code.

    `pools` are names or patterns of those that are shown; none: all.
    """
    from ipamc.report import runway as report
    from ipamc.review.shown_pools import Choice, without_match

    problems = Problems()
    found: list[tuple[Runway, History]] = []
    with progress("reading the history"):
        for folder in source.folders:
            with problems.of(folder):
                found.append(_of(folder, source))
    missing = without_match(pools, (name for one, _ in found for name in one.cluster.pools_by_name))
    found = [(_chosen(one, Choice(pools=tuple(pools))), history) for one, history in found]
    if output == "json":
        body = {
            "version": report.VERSION,
            **source.record(),
            "today": source.day(),
            "clusters": [report.record(*one) for one in found],
        }
        show_record(body)
    else:
        show("\n".join(report.text(*one) for one in found))
    where = count(len(source.folders), "cluster")
    tell(style, *(f"no pool of {where} is named {name}" for name in missing))
    return problems.conclude(style, answered=not missing)


def _chosen(found: Runway, choice: Choice) -> Runway:
    pools = tuple(pool for pool in found.pools if choice.has_pool(pool.use.pool.name))
    return msgspec.structs.replace(found, pools=pools)


def _of(folder: str, source: Source) -> tuple[Runway, History]:
    from ipamc.report.runway import History
    from ipamc.review.as_needed import enough_for_use, load_without_nodes
    from ipamc.review.runway import runway, to_read
    from ipamc.workspace.lock_history import is_last, lock_history, texts

    inputs = source.inputs(folder, rendered=False)
    cluster, lock, _ = load_without_nodes(inputs, enough_for_use)
    history = lock_history(folder, source.record().get("at", {}).get("commit", "HEAD"))
    seconds = [version.second for version in history.versions]
    today = source.day()
    wanted = [history.versions[number] for number in to_read(seconds, today)]
    read = (text for _, text in texts(history, wanted)) if wanted else iter(())
    found = runway(cluster, lock, seconds, read, today)
    commits = [(version.commit, version.second) for version in history.versions]
    return found, History(
        commits=commits,
        shallow=history.shallow,
        cut=history.cut,
        uncommitted=bool(commits) and not is_last(history, inputs.lock),
    )
