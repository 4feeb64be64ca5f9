"""`ipamc lock`: the lock alone, and every consent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option
from ipamc.cli.terminal import today
from ipamc.workspace.clusters import clusters_argument, find

if TYPE_CHECKING:
    from ipamc.model.lock import Consent

TARGETED = ("renumber", "settle", "release", "rename")
"""Consents that name something of one cluster."""


@click.command(
    cls=Verb,
    examples=(
        ("ipamc lock lab", "bring the lock of clusters/lab/ up to date"),
        ("ipamc lock --check", "write nothing; fail if a lock is out of date, with the reasons by name"),
        ("ipamc lock lab --leave node-7", "node-7 is really gone, although the inventory looks cut off"),
        (
            "ipamc lock lab --renumber pool/rack-a",
            "give the nodes of rack-a a pending block each; they move when they are drained",
        ),
        ("ipamc lock lab --settle node-7", "node-7 was drained and came up with its pending block"),
        ("ipamc lock --onto origin/main", "merge the trunk's locks in, where a forge did not"),
        (
            "ipamc lock lab --rename node-7=node-8",
            "node-8 replaces node-7, which is gone, and has its blocks",
        ),
    ),
    refused="refused, out of date with --check, or the surroundings failed",
)
@clusters_argument
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 if a lock is out of date, with the reasons by name."
)
@click.option(
    "--leave",
    multiple=True,
    metavar="NODE|all",
    help="This node is really gone: quarantine its blocks. Repeatable; all: every leaver.",
)
@click.option(
    "--renumber",
    multiple=True,
    metavar="NODE|CIDR|pool/NAME",
    help="Give these nodes a pending block, to move to. Repeatable.",
)
@click.option(
    "--settle", multiple=True, metavar="NODE", help="This node has moved to its pending block. Repeatable."
)
@click.option(
    "--release",
    multiple=True,
    metavar="NODE|CIDR",
    help="Free quarantined blocks now; also cancels a pending renumber. Repeatable.",
)
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    help="Hand the blocks of a node that is gone to its replacement. Repeatable.",
)
@click.option("--mode", is_flag=True, help="The lock goes over to the mode that the Cluster names.")
@click.option(
    "--onto",
    metavar="REV",
    default="",
    help="Merge the lock of this revision in first, as the merge driver would. The inputs have to be merged already.",
)
@click.option("--reshard", is_flag=True, help="Let the shard count grow to what output.shardSize asks for.")
@format_option
def command(*, clusters: tuple[str, ...], check: bool, onto: str, style: str, **given: Any) -> int:
    """Write the lock alone, and nothing below rendered/.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. Consent is given here, once, and is reviewed in the lock's lines.
    """
    from ipamc.cli.runner import Job, compile_all, conclude

    folders = find(clusters)
    consent = _consent(given)
    context = click.get_current_context()
    if check and any(given.values()):
        raise click.UsageError("--check gives no consent: leave one of the two away", context)
    if len(folders) > 1 and any(given[name] for name in TARGETED):
        raise click.UsageError("consent for a node, CIDR or pool is for one cluster: name it", context)
    day = today()
    todo = [
        Job(
            folder=folder,
            today=day,
            consent=consent,
            render=False,
            locked=check and not onto,
            check=check,
            onto=onto,
        )
        for folder in folders
    ]
    return conclude(compile_all(todo, None), style)


def _consent(given: dict[str, Any]) -> Consent:
    from ipamc.lock.consent import parse_consent

    pairs = []
    for text in given["rename"]:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise click.UsageError(f"--rename {text!r} is not OLD=NEW", click.get_current_context())
        pairs.append((old, new))
    return parse_consent(
        leave=given["leave"],
        renumber=given["renumber"],
        settle=given["settle"],
        release=given["release"],
        rename=pairs,
        mode=given["mode"],
        reshard=given["reshard"],
    )
