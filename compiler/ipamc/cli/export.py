"""`ipamc export`: addresses for programs of the company; `ipamc report`: a page for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.findings import Problems, format_option, tell, writable
from ipamc.cli.options import checked, source_of, source_options, write_option
from ipamc.cli.terminal import progress, say, show
from ipamc.model.diagnostics import count, names
from ipamc.model.limits import LARGEST_LOCK_HISTORY
from ipamc.workspace import disk
from ipamc.workspace.failure import EnvironmentFailure

if TYPE_CHECKING:
    from ipamc.report.page_data import Part
    from ipamc.review.netbox import ExportedPrefix, NetBoxImport, NetBoxPrefix
    from ipamc.workspace.source import Source

_TOOLS = ("tfvars", "values", "capi")
_OURS = frozenset({"id", "prefix", "status", "description"})  # columns that the export fills


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value) or not value.isprintable():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        if name in found:
            raise click.BadParameter(f"{name} has two values")
        found[name] = value
    return found


def _columns(given: tuple[str, ...]) -> dict[str, str]:
    found = _pairs(given)
    for name in found:
        if name in _OURS or not name.replace("_", "").replace(".", "").isalnum() or not name.isascii():
            some = "columns are vrf, tenant, role, tags, scope_type, scope_id, site, cf_NAME"
            raise click.BadParameter(f"{name!r} is not a column that --set can set: {some}")
    return found


def _statuses(given: tuple[str, ...]) -> dict[str, str]:
    from ipamc.review.netbox import STATUSES

    found = _pairs(given)
    for name, status in found.items():
        if name not in STATUSES or not status.replace("-", "").replace("_", "").isalnum():
            kinds = f"the kinds are {', '.join(STATUSES)}; a status is one of NetBox's, such as active"
            raise click.BadParameter(f"{f'{name}={status}'!r}: {kinds}")
    return {**STATUSES, **found}


@click.command(cls=Verb)
@click.argument("target", type=click.Choice(("netbox", *_TOOLS)))
@click.option("--existing", metavar="FILE")
@click.option("--set", "columns", multiple=True, metavar="COLUMN=VALUE", callback=checked(_columns))
@click.option("--status", "statuses", multiple=True, metavar="KIND=STATUS", callback=checked(_statuses))
@write_option("Write this file.  [default: -, which is stdout]", default="-")
@source_options
@format_option
def command(
    *,
    target: str,
    existing: str | None,
    columns: dict[str, str],
    statuses: dict[str, str],
    path: str,
    style: str,
    **where: Any,
) -> int:
    """Export the addresses of clusters to other programs.

    netbox: prefixes as CSV for NetBox's bulk import. Ranges of pools are containers, blocks of nodes active;
    pending, pinned and reserved ones are reserved, quarantined ones deprecated. If NetBox has some of them
    already, use --existing; only prefixes whose description begins with 'ipamc CLUSTER/' change.

    tfvars, values: pools, ranges, aggregates, nodes and blocks as JSON maps with stable keys, for OpenTofu
    and Terraform (the variable ipamc) or Helm (global.ipamc). capi: a patch of clusterNetwork.pods for a
    Cluster of Cluster API. CLUSTER is a name below clusters/ or a folder; by default all clusters.

    Options:
        --existing: NetBox's list of prefixes, exported as All Data (CSV). Only differences are written, with
            NetBox's id.
        --set: A column with this value in every row: vrf, tenant, role, tags, site (up to 4.1), scope_type
            and scope_id (from 4.2). Repeatable.
        --status: NetBox's status of a kind of prefix: range, held, pending, quarantined, pinned, reserved,
            gone. Repeatable.
    Examples:
        ipamc export netbox > prefixes.csv  # all clusters below clusters/, for NetBox's bulk import
        ipamc export netbox lab --set vrf=pods --set role=kubernetes  # in a VRF, with a role
        ipamc export netbox lab --existing netbox_prefixes.csv --write changes.csv
            # only the differences from an export of NetBox
        ipamc export tfvars --write ipamc.auto.tfvars.json  # for OpenTofu, all clusters
        ipamc export capi lab --write patch.json  # then: kubectl patch cluster lab --type merge --patch-file
    Exit codes:
        1: an input, a lock or a table was refused, or an I/O or environment error
    """
    from ipamc.model.cluster import AddressSpace
    from ipamc.model.diagnostics import Log
    from ipamc.pipeline import load_folder
    from ipamc.report.prefixes import netbox_summary, netbox_table
    from ipamc.review import netbox
    from ipamc.workspace.dump import load_table

    problems = Problems()
    source = source_of(**where)
    if target in _TOOLS:
        if existing is not None or columns or statuses != netbox.STATUSES:
            raise click.UsageError("--existing, --set and --status are only for netbox")
        text = _for_tool(target, source, problems)
        return problems.conclude(style) if problems else _finish(text, path, problems, style)
    changes: NetBoxImport | None = None
    with problems.of(""):
        there: Sequence[NetBoxPrefix] = ()
        if existing is not None:
            with progress("reading NetBox's prefixes"):
                there = netbox.read_export(load_table(existing, netbox.COLUMNS))
        found: list[tuple[str, str, Sequence[ExportedPrefix]]] = []
        around: set[str] = set()
        for folder in source.folders:
            with problems.of(folder):
                cluster, lock = load_folder(source.inputs(folder, rendered=False))
                found.append((folder, cluster.name, netbox.prefixes_of(cluster, lock)))
                around |= {folder} if isinstance(cluster, AddressSpace) else set()
        own = [(folder, prefixes) for folder, _, prefixes in found if folder not in around]
        Log().add(netbox.same_in_several(own))
        # A cluster contributes its own prefixes, an address space the ranges around them.
        known = {prefix.block for _, prefixes in own for prefix in prefixes}
        every = [
            prefix
            for folder, _, prefixes in found
            for prefix in prefixes
            if folder not in around or prefix.block not in known
        ]
        changes = netbox.later_import(every, there, [name for _, name, _ in found], statuses, columns)
    if problems or changes is None:
        return problems.conclude(style)
    text = netbox_table(changes, columns, ids=existing is not None)
    return _finish(text, path, problems, style, *netbox_summary(changes))


def _finish(text: str, path: str, problems: Problems, style: str, *summary: str) -> int:
    written = ""
    if path == "-":
        show(text)
    else:
        written = f"{path} {'written' if disk.replace(path, text) else 'unchanged'}"
    code = problems.conclude(style)
    if code == DONE and (written or summary):
        tell(style, "; ".join(filter(None, (*summary[:1], written))), *summary[1:])
    return code


def _for_tool(target: str, source: Source, problems: Problems) -> str:
    """Return the text of a target; it counts only without problems: OpenTofu destroys what a file lacks."""
    from ipamc.pipeline import load_folder
    from ipamc.report import tool_data

    if target == "capi" and len(source.folders) != 1:
        raise click.UsageError("capi writes the patch of one cluster: name one cluster")
    data: dict[str, Any] = {}
    for folder in source.folders:
        with problems.of(folder):
            cluster, lock = load_folder(source.inputs(folder, rendered=False))
            if cluster.name in data:
                raise EnvironmentFailure(f"two clusters have the name {cluster.name}: give the folder of one")
            if target != "capi":
                data[cluster.name] = tool_data.data_of(cluster, lock)
                continue
            try:
                return tool_data.cluster_network(cluster)
            except ValueError as problem:
                raise EnvironmentFailure(str(problem)) from None
    return tool_data.document(data, helm=target == "values")


@click.command(cls=Verb)
@write_option(
    "The page to write, which replaces the file. - is stdout.",
    required=True,
    callback=checked(lambda path: path if path == "-" else writable(path)),
)
@click.option("--history", "most", type=click.IntRange(0, 1000), default=60, show_default=True, metavar="N")
@source_options
@format_option
def report(*, path: str, most: int, style: str, **where: Any) -> int:
    """Write the address plan as one HTML page: maps of the pools, who has what and why, and the history.

    The page needs no network and no server, and can be printed. It shows the inventory, the pools and the
    lock without a compile. It contains all names and labels of nodes. CLUSTER is a name below clusters/ or a
    folder; by default all clusters.

    Options:
        --history: The most versions of a lock on the slider: one half the newest ones, the other half spread
            over older ones. Large locks have fewer.
    Examples:
        ipamc report --write plan.html  # all clusters below clusters/ on one page
        ipamc report lab --write lab.html  # one cluster
        ipamc report --at 2026-11-01 --write then.html  # the plan at the end of that day, UTC
        ipamc report --history 0 --write plan.html  # a small page, without the history of the locks
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
    from ipamc.workspace.revision import lock_history, texts
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
        most = min(most, max(LARGEST_LOCK_HISTORY // max(len(dumps(lock)), 1), 2))
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
