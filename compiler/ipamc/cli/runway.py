"""`ipamc show --runway`: for how many weeks the pools have room, by the history of the lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ipamc.cli.findings import Problems
from ipamc.cli.terminal import progress, say, show, show_json
from ipamc.model.diagnostics import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipamc.report.runway import History
    from ipamc.review.runway.runway import Runway
    from ipamc.review.shown_pools import Choice
    from ipamc.workspace.source import Source


def tell_runway(source: Source, pools: Sequence[str], output: str, style: str) -> int:
    """Print for how long the pools of each cluster have room; return the exit code.

    `pools` are names or patterns of those that are shown; none: all.
    """
    from ipamc.report import runway as report
    from ipamc.report.findings import format_of
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
        show_json(json.dumps(body, indent=2))
    else:
        show("\n".join(report.text(*one) for one in found))
    for name in missing if not format_of(style).document else ():
        say(f"no pool of {count(len(source.folders), 'cluster')} is named {name}")
    return problems.conclude(style, answered=not missing)


def _chosen(found: Runway, choice: Choice) -> Runway:
    pools = tuple(pool for pool in found.pools if choice.has_pool(pool.use.pool.name))
    return msgspec.structs.replace(found, pools=pools)


def _of(folder: str, source: Source) -> tuple[Runway, History]:
    from ipamc.report.runway import History
    from ipamc.review.as_needed import enough_for_use, load_without_nodes
    from ipamc.review.runway.runway import runway, to_read
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
