"""`ipamc why`: why a node has its blocks, and which blocks it would get now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import assume_option, at_option, clusters_argument, output_option, source_of
from ipamc.cli.query import is_address, node_name
from ipamc.cli.terminal import progress, show, show_record
from ipamc.model.diagnostics import count
from ipamc.workspace.spaces import of_space

if TYPE_CHECKING:
    from ipamc.pipeline import Inputs
    from ipamc.report.explanation import Find
    from ipamc.review.explain_node import ExplainedNode


@click.command(cls=Verb)
@click.argument("node", metavar="NODE|CLUSTER/POOL")
@clusters_argument
@at_option
@assume_option
@output_option("text", "json")
@format_option
def command(*, node: str, output: str, style: str, **where: Any) -> int:
    """Show why a node has its blocks: the selector, the pools that were passed over, the line of the lock.

    Writes nothing.

    For blocks that are not in the lock yet, it shows what the next compile would do. CLUSTER is a folder, or
    a name below clusters/; without one, all of them.

    Examples:
        ipamc why bj-001  # in all clusters below clusters/ that know the node
        ipamc why bj-001 zones  # in one cluster
        ipamc why lab/pods  # why an address space gave a pool of a cluster its range
        ipamc why bj-001 --at HEAD~5  # as it was five commits ago
    Exit codes:
        0: explained
        1: no cluster knows the node, or an input or a lock was refused
    """
    from ipamc.lock.lookup import similar
    from ipamc.report import explanation

    if is_address(node) and ("/" in node or ":" in node):  # four numbers may be the name of a node
        raise click.UsageError(f"{node!r} is an address and no node: ipamc which {node} tells whose it is")
    node_name(node)
    if "/" in node and where["at"]:
        raise click.UsageError("why a pool has a range is told of the files on the disk alone: omit --at")
    source = source_of(**where)
    problems = Problems()
    texts: list[str] = []
    records: list[dict[str, Any]] = []
    with progress("reading the clusters"):
        for folder in source.folders:
            with problems.of(folder):
                inputs = source.inputs(folder, rendered=False)
                if "/" in node:  # a range: what asks for it is in other folders
                    if not of_space(inputs.lock, inputs.sources):
                        continue
                    inputs = source.inputs(folder)
                # Where no file contains the name, nothing is parsed.
                elif not any(
                    node.encode() in text for text in (inputs.lock or b"", *inputs.sources.values())
                ):
                    continue
                if found := explain(inputs, node, source.day()):
                    texts.append(explanation.text(*found))
                    records.append(explanation.record(*found))
    if output == "json":
        show_record({"version": explanation.VERSION, "asked": node, **source.record(), "clusters": records})
    else:
        show("\n".join(texts))
    if not records and not problems:
        if is_address(node):
            meant = f"; for an address, ask: ipamc which {node}"
        else:
            locks = [source.inputs(folder, rendered=False).lock for folder in source.folders]
            name = similar(filter(None, locks), node)
            meant = f"; did you mean {name!r}?" if name else ""
            if name == f"pool/{node}":
                meant = f"; it is a pool: ipamc show --pool {node}"
        nobody = f"none of {count(len(source.folders), 'cluster')} knows {node}"
        tell(style, f"{nobody}: it is in no inventory, in no line of a lock, and not pinned{meant}")
    return problems.conclude(style, answered=bool(records))


def explain(inputs: Inputs, node: str, day: str) -> tuple[ExplainedNode, str, Find] | None:
    """Return the arguments of `report.explanation`, or None if the cluster has no such node.
    They are the explanation, the lock's path, and the function that locates a field. Raises Refused.
    """
    from ipamc.pipeline import load_folder, texts_of
    from ipamc.read.locate import Texts
    from ipamc.review.explain_node import explain_node

    found = explain_node(*load_folder(inputs), node, day)
    if found is None:
        return None
    places = [
        *(explained.pool.selector_at for explained in found.pools),
        *(explained.size.at / "nodeSelector" for explained in found.pools if explained.size),
        *(at for at in (found.at, *(block.at for block in found.blocks)) if at),
    ]
    return found, inputs.lock_path, Texts(texts_of(inputs), places).span
