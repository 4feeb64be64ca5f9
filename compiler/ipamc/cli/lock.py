"""`ipamc lock`: write only the lock, and take every consent."""

from __future__ import annotations

import re
from typing import Any

import click
from msgspec.structs import replace

from ipamc.cli.command import Verb
from ipamc.cli.findings import format_option
from ipamc.cli.options import Minor, Revision, assume_option, clusters_argument
from ipamc.workspace.clusters import find, name_of

TARGETED = ("renumber", "settle", "release", "rename")
"""Consents that name a node, CIDR or pool of one cluster."""


@click.command(cls=Verb)
@clusters_argument
@click.option("--check", is_flag=True)
@click.option("--leave", multiple=True, metavar="NODE|all")
@click.option("--no-pods", multiple=True, metavar="NODE|all")
@click.option("--adopt-pods", multiple=True, metavar="NODE|all")
@click.option("--renumber", multiple=True, metavar="NODE|CIDR|pool/NAME")
@click.option("--settle", multiple=True, metavar="NODE")
@click.option("--release", multiple=True, metavar="NODE|CIDR")
@click.option("--rename", multiple=True, metavar="OLD=NEW")
@click.option("--follow", is_flag=True)
@click.option("--mode", is_flag=True)
@click.option("--onto", type=Revision(), metavar="REV")
@click.option("--reshard", is_flag=True)
@assume_option
@format_option
def command(
    *, clusters: tuple[str, ...], check: bool, onto: str | None, assume: Minor | None, style: str, **asks: Any
) -> int:
    """Write only the lock, and nothing below rendered/.

    CLUSTER is a folder, or a name below clusters/; without one, all of them. Every consent is an option of
    this command; its effect is reviewed in the lines of the lock.

    Options:
        --check: Write nothing; exit 1 if a lock is out of date, with the reasons.
        --leave: This node is gone: quarantine its blocks. Repeatable; all: every node that left.
        --no-pods: This running node has no pods of Cilium's yet, so its CiliumNode need not be known.
            Repeatable; all: every node.
        --adopt-pods: This running node holds the block around the addresses in use on it. Repeatable; all:
            every node whose block is not known.
        --renumber: Reserve a pending block for these nodes; nothing is rendered for it until --settle.
            Repeatable, or with commas: n1,n2.
        --settle: This node is drained: its pending block is held and rendered, the old one quarantined.
            Repeatable.
        --release: Free quarantined blocks now; also cancels a pending renumber. Repeatable.
        --rename: Give the blocks of a node that is gone to its replacement. Repeatable.
        --follow: Let the lock follow CiliumNodes although most of them show none of its blocks.
        --mode: Let the lock switch to the Cluster's IPAM mode.
        --onto: First merge the lock of this revision in, as the merge driver does, and date with today what
            went into quarantine on this branch. The inputs must be merged already.
        --reshard: Let the shard count grow to fit output.shardSize.
    Examples:
        ipamc lock lab  # bring the lock of clusters/lab/ up to date
        ipamc lock --check  # write nothing; fail if a lock is out of date, with the reasons
        ipamc lock lab --leave node-7  # node-7 is really gone, although the inventory looks truncated
        ipamc lock lab --renumber pool/rack-a
            # reserve a pending block for each node of rack-a; nothing is rendered for it
        ipamc lock lab --settle node-7
            # node-7 is drained: render its pending block; prints what is to be done then
        ipamc lock --onto origin/main  # merge the locks of the trunk in, which a forge cannot do
        ipamc lock lab --rename node-7=node-8  # node-8 replaces node-7, which is gone, and takes its blocks
    Exit codes:
        1: refused, out of date with --check, or an I/O or environment error
    """
    from ipamc.cli.runner import ClusterRun, compile_all, conclude
    from ipamc.lock.consent import parse_consent
    from ipamc.model.cluster import Mode
    from ipamc.model.wording import listing
    from ipamc.workspace.environment import today

    if asks["mode"] and (modes := {mode.value for mode in Mode} & set(clusters)):
        instead = f"write mode: {min(modes)} in cluster.yaml, and give --mode alone"
        raise click.UsageError(f"--mode has no value: {instead}")
    folders = find(clusters)
    pairs = []
    for text in asks["rename"]:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            names = [name for name in re.split(r"\s*(?:->|=>|[:,=\s])\s*", text) if name]
            better = f": write --rename {'='.join(names)}" if len(names) == 2 else ""
            raise click.UsageError(f"--rename {text!r} is not OLD=NEW{better}")
        pairs.append((old, new))
    # An option may be repeated, and name several with commas. No name has one.
    values: dict[str, Any] = {
        name: [part for text in found for part in text.split(",")] if isinstance(found, tuple) else found
        for name, found in asks.items()
    }
    consent = parse_consent(**{**values, "rename": pairs})
    if check and any(asks.values()):
        raise click.UsageError("--check and consent exclude each other: omit one of them")
    if len(folders) > 1 and any(asks[name] for name in TARGETED):
        one = f"name the cluster, {listing(map(name_of, folders))}"
        raise click.UsageError(f"consent for a node, CIDR or pool is for one cluster: {one}")
    run = ClusterRun(folder="", today=today(), consent=consent, render=False, check=check, assume=assume)
    run = replace(run, locked=check and not onto, onto=onto or "")
    return conclude(compile_all([replace(run, folder=folder) for folder in folders], None), style)
