"""`ipamc why`: how a node came to its blocks, and what it would be given now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import DONE, REFUSED, Verb
from ipamc.cli.findings import Problems, format_option, print_findings
from ipamc.cli.query import node_name
from ipamc.cli.terminal import progress, say, today
from ipamc.model.diagnostics import count
from ipamc.workspace.clusters import clusters_argument, find, inputs_of
from ipamc.workspace.history import Past, at_option, look_back

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs
    from ipamc.report.explanation import Find
    from ipamc.review.explain_node import ExplainedNode


@click.command(
    cls=Verb,
    examples=(
        ("ipamc why bj-001", "in every cluster below clusters/ that knows the node"),
        ("ipamc why bj-001 zones", "in one cluster"),
        ("ipamc why bj-001 --at HEAD~5", "as it was five commits ago"),
    ),
    done="explained",
    refused="no cluster knows the node; or the input or a lock was refused",
)
@click.argument("node", metavar="NODE")
@clusters_argument
@at_option
@click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What goes to stdout.",
)
@format_option
def command(*, node: str, clusters: tuple[str, ...], at: str, output: str, style: str) -> int:
    """Show why a node has the blocks that it has: the selector that matched, the pools that were passed over, the line of the lock. Writes nothing.

    What the lock does not hold yet is what the next compile would do. CLUSTER is a folder, or a name below clusters/; without one, all of them.
    """
    from ipamc.report import explanation
    from ipamc.report.findings import format_of

    node_name(node)
    past = look_back(at, clusters) if at else None
    folders = past.folders if past else find(clusters)
    problems = Problems()
    texts: list[str] = []
    records: list[dict[str, Any]] = []
    with progress("reading the clusters"):
        for folder in folders:
            with problems.of(folder):
                if answer := _look(folder, node, past):
                    texts.append(explanation.text(*answer))
                    records.append(explanation.record(*answer))
    if output == "json":
        click.echo(
            json.dumps(
                {
                    "version": explanation.VERSION,
                    "asked": node,
                    **({"at": past.record()} if past else {}),
                    "clusters": records,
                },
                indent=2,
            )
        )
    else:
        click.echo("\n".join(texts), nl=False)
    if not records and not problems and not format_of(style).document:
        say(
            f"{count(len(folders), 'cluster')} looked at, and none knows {node}: it is in no inventory, in no line of a lock, and not pinned"
        )
    print_findings(problems.findings, style, problems.failures)
    return DONE if records and not problems else REFUSED


def _look(folder: str, node: str, past: Past | None) -> tuple[ExplainedNode, str, Find] | None:
    """Explain a node of a cluster; None if the cluster does not know it. If no file contains the name, the cluster is not parsed."""
    from ipamc.model.lock import Consent

    inputs = past.inputs(folder) if past else inputs_of(folder, today="", consent=Consent())
    name = node.encode()
    if not any(name in text for text in (inputs.lock or b"", *inputs.sources.values())):
        return None
    return explain(inputs, node, past.day if past else today())


def explain(inputs: Inputs, node: str, day: str) -> tuple[ExplainedNode, str, Find] | None:
    """Return the arguments of `report.explanation` for a node: its explanation, the lock's path, and how a place is found. Raises Refused."""
    from ipamc.cli.show import survey
    from ipamc.read.locate import Texts
    from ipamc.review.explain_node import explain_node

    cluster, lock = survey(inputs)
    found = explain_node(cluster, lock, node, day)
    if found is None:
        return None
    places = [
        *(explained.pool.selector_at for explained in found.pools),
        *(explained.size.at / "nodeSelector" for explained in found.pools if explained.size),
        *(at for at in (found.at, *(block.at for block in found.blocks)) if at),
    ]
    return found, inputs.lock_path, Texts(inputs.sources, places).span
