"""The options of `ipamc show` that ask about the future: --what-if and --runway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from msgspec.structs import replace

from ipamc.cli.command import REFUSED
from ipamc.cli.findings import Problems, tell
from ipamc.cli.terminal import progress, show, show_record
from ipamc.model.diagnostics import count

if TYPE_CHECKING:
    from ipamc.report.runway import History
    from ipamc.review.runway import Runway
    from ipamc.review.what_if import WhatIf
    from ipamc.workspace.source import Source

_COMMON = {"clusters", "output", "at", "assume", "style", "report"}
"""Parameters of `show` that both questions accept."""


def tell_future(
    source: Source, changes: tuple[str, ...], pools: tuple[str, ...], *, runway: bool, output: str, style: str
) -> int:
    """Answer --what-if or --runway; return the exit code. Raises UsageError for other options."""
    if runway and changes:
        raise click.UsageError("--runway and --what-if are two questions: ask one after the other")
    name, own = ("--runway", {"runway", "pools"}) if runway else ("--what-if", {"changes"})
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if given and param.name not in own | _COMMON:
            raise click.UsageError(f"{name} takes no {param.opts[0]}")
    if output not in {"text", "json"}:
        raise click.UsageError(f"{name} is no --output {output}: text or json")
    if runway:
        return _tell_runway(source, pools, output, style)
    return _tell_what_if(source, changes, output, style)


def _tell_what_if(source: Source, changes: Sequence[str], output: str, style: str) -> int:
    """Print the compile of one cluster with other nodes; return 0 if every node has its blocks, else 1."""
    from ipamc.report import what_if as report
    from ipamc.review.node_changes import ChangeError, parse_change
    from ipamc.review.what_if import what_if
    from ipamc.workspace.spaces import not_space

    if len(source.folders) != 1:
        raise click.UsageError("--what-if asks about the nodes of one cluster: name it")
    folder, problems = not_space(*source.folders), Problems()
    answer: WhatIf | None = None
    misfit = ""
    with progress("compiling in thought"), problems.of(folder):
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


def _tell_runway(source: Source, pools: Sequence[str], output: str, style: str) -> int:
    """Print how long pools of these names or patterns, or all, have room; return the exit code."""
    from ipamc.report import runway as report
    from ipamc.review.as_needed import enough_for_use, load_without_nodes
    from ipamc.review.runway import runway, to_read
    from ipamc.review.shown_pools import Choice, without_match
    from ipamc.workspace.lock_history import is_last, lock_history, texts

    problems, choice = Problems(), Choice(pools=tuple(pools))
    known: set[str] = set()
    found: list[tuple[Runway, History]] = []
    with progress("reading the history"):
        for folder in source.folders:
            with problems.of(folder):
                inputs = source.inputs(folder, rendered=False)
                cluster, lock, _ = load_without_nodes(inputs, enough_for_use)
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
