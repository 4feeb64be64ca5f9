"""`ipamc show --runway`: for how many weeks the pools have room, by the history of the lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ipamc.cli.findings import Problems
from ipamc.cli.terminal import progress, show, show_json

if TYPE_CHECKING:
    from ipamc.report.runway import History
    from ipamc.review.runway.runway import Runway
    from ipamc.workspace.source import Source


def tell_runway(source: Source, output: str, style: str) -> int:
    """Print for how long the pools of each cluster have room; return the exit code."""
    from ipamc.report import runway as report

    problems = Problems()
    found: list[tuple[Runway, History]] = []
    with progress("reading the history"):
        for folder in source.folders:
            with problems.of(folder):
                found.append(_of(folder, source))
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
    return problems.conclude(style)


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
