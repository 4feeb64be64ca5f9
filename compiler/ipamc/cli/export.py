"""`ipamc export`: the prefixes of clusters for a program that manages the addresses of a company."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import assume_option, at_option, clusters_argument, source_of, write_option
from ipamc.cli.terminal import progress, show
from ipamc.workspace import disk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipamc.model.cluster import Version
    from ipamc.review.netbox import NetBoxImport, Prefix
    from ipamc.workspace.source import Source

_OURS = frozenset({"id", "prefix", "status", "description"})
"""Columns that the export fills."""


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value) or not value.isprintable():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        if name in found:
            raise click.BadParameter(f"{name} is given twice")
        found[name] = value
    return found


def _columns(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001 - click's signature
    found = _pairs(given)
    for name in found:
        if name in _OURS or not name.replace("_", "").replace(".", "").isalnum() or not name.isascii():
            raise click.BadParameter(
                f"{name!r} is no column that can be set: vrf, tenant, role, tags, scope_type, scope_id, site and cf_NAME are some"
            )
    return found


def _statuses(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001 - click's signature
    from ipamc.review.netbox import STATUSES

    found = _pairs(given)
    for name, status in found.items():
        if name not in STATUSES or not status.replace("-", "").replace("_", "").isalnum():
            raise click.BadParameter(
                f"{f'{name}={status}'!r}: the kinds are {', '.join(STATUSES)}; the status is one of NetBox, such as active"
            )
    return {**STATUSES, **found}


@click.command(
    cls=Verb,
    examples=(
        ("ipamc export netbox > prefixes.csv", "of all clusters below clusters/, for NetBox's bulk import"),
        ("ipamc export netbox lab --set vrf=pods --set role=kubernetes", "in a VRF, with a role"),
        (
            "ipamc export netbox lab --existing netbox_prefixes.csv --write changes.csv",
            "only what differs from an export of NetBox",
        ),
    ),
    refused="an input, a lock or a table was refused, or an I/O or environment error",
)
@click.argument("target", type=click.Choice(("netbox",)))
@clusters_argument
@click.option(
    "--existing",
    metavar="FILE",
    help="What NetBox has: its list of prefixes, exported as All Data (CSV). Only differences are written, with NetBox's id.",
)
@click.option(
    "--set",
    "columns",
    multiple=True,
    metavar="COLUMN=VALUE",
    callback=_columns,
    help="A column with this value in every row: vrf, tenant, role, tags, site (up to 4.1), scope_type and scope_id (from 4.2). Repeatable.",
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    metavar="KIND=STATUS",
    callback=_statuses,
    help="NetBox's status of a kind of prefix: range, held, pending, quarantined, pinned, reserved, gone. Repeatable.",
)
@write_option("Write this file.  [default: -, which is stdout]", default="-")
@at_option
@assume_option
@format_option
def command(  # noqa: PLR0913 - an argument for each option
    *,
    target: str,  # noqa: ARG001 - one target so far
    clusters: tuple[str, ...],
    existing: str | None,
    columns: dict[str, str],
    statuses: dict[str, str],
    path: str,
    at: str | None,
    assume: Version | None,
    style: str,
) -> int:
    """Write the prefixes of clusters as CSV for NetBox's bulk import.

    Ranges of pools are containers, blocks of nodes active, pending, pinned and reserved ones reserved, and
    quarantined ones deprecated. CLUSTER is a folder, or a name below clusters/; without one, all of them.

    Run it with --existing once NetBox has some of the prefixes: NetBox itself updates a prefix by its id only. What
    ipamc made in NetBox begins with 'ipamc CLUSTER/' in its description; everything else there stays as it is.
    """
    from ipamc.review.netbox import first_import, later_import

    problems = Problems()
    source = source_of(clusters, at, assume)
    changes: NetBoxImport | None = None
    with problems.of(""):
        there = None
        if existing is not None:
            from ipamc.review.netbox import COLUMNS, read_export
            from ipamc.workspace.dump import load_table

            with progress("reading what NetBox has"):
                there = read_export(load_table(existing, COLUMNS))
        found = _prefixes(source, problems)
        every = [prefix for _, _, prefixes in found for prefix in prefixes]
        if there is None:
            changes = first_import(every, statuses)
        else:
            names = [name for _, name, _ in found]
            changes = later_import(every, there, names, statuses, columns)
    if problems or changes is None:
        return problems.conclude(style)
    return _write(changes, columns, path, style, problems, ids=existing is not None)


def _prefixes(source: Source, problems: Problems) -> list[tuple[str, str, Sequence[Prefix]]]:
    """Return (folder, name, prefixes) of every cluster. Raises Refused where two of them share an address."""
    from ipamc.model.diagnostics import Log
    from ipamc.review.as_needed import enough_for_use, load_without_nodes
    from ipamc.review.netbox import prefixes_of, same_in_several

    found: list[tuple[str, str, Sequence[Prefix]]] = []
    for folder in source.folders:
        with problems.of(folder):
            cluster, lock, _ = load_without_nodes(source.inputs(folder, rendered=False), enough_for_use)
            found.append((folder, cluster.name, prefixes_of(cluster, lock)))
    Log().add(same_in_several([(folder, prefixes) for folder, _, prefixes in found]))
    return found


def _write(
    changes: NetBoxImport, columns: Mapping[str, str], path: str, style: str, problems: Problems, *, ids: bool
) -> int:
    from ipamc.report.netbox import summary, table

    text = table(changes, columns, ids=ids)
    if path == "-":
        show(text)
        written = ""
    else:
        written = f"; {path} {'written' if disk.replace(path, text) else 'unchanged'}"
    code = problems.conclude(style)
    if code == DONE:
        first, *more = summary(changes)
        tell(style, f"{first}{written}", *more)
    return code
