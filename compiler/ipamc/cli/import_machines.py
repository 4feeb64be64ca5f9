"""`ipamc import --machines`: planned nodes from Machines, BareMetalHosts and tables of names."""

from __future__ import annotations

from collections.abc import Sequence

from ipamc.cli.command import DONE
from ipamc.cli.findings import print_findings
from ipamc.cli.terminal import progress, say
from ipamc.model.diagnostics import Refused, count, names
from ipamc.workspace.clusters import find
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.inputs import update_cluster
from ipamc.workspace.spaces import not_space


def plan_machines(cluster: str, files: Sequence[str], labels: Sequence[str], style: str) -> int:
    """Add the nodes that a cluster does not have to its inventory of machines, and change nothing else.
    Raises Refused, and writes nothing, for files or an inventory in error.
    """
    from ipamc.importing.machines import COLUMNS, FILE, SUFFIXES, additions, extended, of_objects, of_table
    from ipamc.read.locate import locate
    from ipamc.read.read import read
    from ipamc.workspace.dump import STDIN, load_machines
    from ipamc.workspace.source import Disk

    folder = not_space(*find([cluster]))
    path = f"{folder}/{FILE}"
    inputs = Disk().inputs(folder)
    sources = inputs.sources
    try:
        with progress("reading the machines"):
            tables, objects = load_machines(files, SUFFIXES, COLUMNS)
            found = [of_table(table) for table in tables]
            if objects:
                first = next((each for each in files if not each.endswith(SUFFIXES)), STDIN)
                found.append(of_objects(*objects, first, inputs.name, labels))
            there, _ = read(inputs.name, folder, sources, inputs.schemas)
            new = additions(found, there, path)
        text = extended(path, sources.get(path), new.nodes) if new.nodes else sources.get(path, b"")
        if text is None:
            raise EnvironmentFailure(
                f"{path} is no list of nodes to which lines can be added: rename it, and run this again"
            )
        sources = {**sources, path: text} if new.nodes else sources
        after, _ = read(inputs.name, folder, sources, inputs.schemas)
    except Refused as refused:
        raise Refused(locate(refused.diagnostics, sources)) from None
    if len(after.nodes) != len(there.nodes) + len(new.nodes):
        raise EnvironmentFailure(
            f"{path} is not as it is read with more lines: rename it, and run this again"
        )
    print_findings(locate(new.findings, inputs.sources), style)
    texts = {FILE: text.decode()} if new.nodes else {}
    changed = update_cluster(folder, texts)
    say(f"{path}: {'written' if changed else 'unchanged'}")
    listed = f" ({names(node.name for node in new.nodes)})" if new.nodes else ""
    say(f"{inputs.name}: {count(len(new.nodes), 'planned node')} added{listed}, {new.there:,} there already")
    if changed:
        say(f"next: ipamc compile {cluster}, then read what it does: ipamc plan {cluster}")
    return DONE
