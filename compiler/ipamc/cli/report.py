"""`ipamc report`: the address plan as a page, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option, writable
from ipamc.cli.options import assume_option, at_option, checked, clusters_argument, source_of, write_option
from ipamc.cli.terminal import progress, say, show
from ipamc.model.diagnostics import count, names
from ipamc.workspace import disk

if TYPE_CHECKING:
    from ipamc.report.page_data import Part
    from ipamc.workspace.source import Source

_MOST_BYTES = 100 << 20
"""The most bytes of versions of a lock, each counted with the size of the last: git takes about a second."""


@click.command(cls=Verb)
@clusters_argument
@write_option(
    "The page. It is replaced as a whole. - is stdout.",
    required=True,
    callback=checked(lambda path: path if path == "-" else writable(path)),
)
@click.option("--history", "most", type=click.IntRange(0, 1000), default=60, show_default=True, metavar="N")
@at_option
@assume_option
@format_option
def command(*, path: str, most: int, style: str, **where: Any) -> int:
    """Write the address plan as one HTML page: a map of each pool, who has what and why, and its history.

    The page needs no network and no server: it works from a file, as an artifact of a pipeline, and printed.
    It shows the inventory, the pools and the lock as they are; nothing is compiled. Whoever has the page has
    all names and labels of nodes.

    CLUSTER is a folder, or a name below clusters/; without one, all of them.

    Options:
        --history: How many versions of a lock the slider has, at most: half of them the newest ones, the
            others spread over the rest. Large locks have fewer.
    Examples:
        ipamc report --write plan.html  # all clusters below clusters/ on one page
        ipamc report lab --write lab.html  # one cluster
        ipamc report --at 2026-11-01 --write then.html  # as it was at the end of that day, UTC
        ipamc report --history 0 --write plan.html  # without the history of the locks, for a small page
    Exit codes:
        1: an input or a lock was refused, or an I/O or environment error; the page has the other clusters
    """
    from ipamc.report import page
    from ipamc.report.terminal_text import visible
    from ipamc.workspace.environment import today

    source = source_of(**where)
    problems = Problems()
    parts: list[Part] = []
    missing = [*source.folders]
    day = today() if where["at"] is None else source.day()
    with progress("reading the clusters"):
        for folder in source.folders:
            with problems.of(folder):
                parts.append(_part(folder, source, day, most))
                missing.remove(folder)
    if parts:
        titles = [part.map.cluster.name for part in parts]
        title = ", ".join(titles) if len(titles) <= 3 else count(len(titles), "cluster")
        about = page.About(
            title=f"Addresses of {title}",
            subtitle=f"as of {day}" + "".join(f", {found['revision']}" for found in source.record().values()),
            day=day,
            failures=[visible(f"{names(missing)} could not be read: not on this page")] if missing else (),
        )
        text = page.render(parts, disk.assets("templates/page"), about)
        if path == "-":
            show(text)
        else:
            disk.replace(path, text)
            say(f"wrote {path}: {count(len(parts), 'cluster')}, {len(text.encode()) // 1024:,} KiB")
    return problems.conclude(style, answered=bool(parts))


def _part(folder: str, source: Source, day: str, most: int) -> Part:
    from ipamc.lock.file import dumps
    from ipamc.pipeline import load_folder
    from ipamc.place.candidates import assign
    from ipamc.report.page_data import Part
    from ipamc.review.address_map import chosen, map_of, versions_of
    from ipamc.review.shown_pools import started_with
    from ipamc.workspace.lock_history import lock_history, texts
    from ipamc.workspace.spaces import of_space

    inputs = source.inputs(folder, rendered=False)
    if of_space(inputs.lock, inputs.sources):
        inputs = source.inputs(folder)  # also what its clusters ask for
    cluster, lock = load_folder(inputs)
    mapped = map_of(cluster, lock, assign(cluster), day)
    versions = versions_of(lock)
    left_out, shallow = 0, False
    if most:
        history = lock_history(folder, source.record().get("at", {}).get("commit", "HEAD"))
        most = min(most, max(_MOST_BYTES // max(len(dumps(lock)), 1), 2))
        some = [history.versions[number] for number in chosen(len(history.versions), most)]
        for version, text in texts(history, some):
            versions.add(text, commit=version.commit, second=version.second, subject=version.subject)
        left_out, shallow = len(history.versions) - len(some), history.shallow
    versions.add_current(lock)
    return Part(
        map=mapped,
        versions=versions,
        lock_path=inputs.lock_path,
        left_out=left_out,
        shallow=shallow,
        started=frozenset(started_with(cluster, lock)),
    )
