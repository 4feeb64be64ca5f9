"""`ipamc which` and `ipamc why`: who has an address, which blocks a node has, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, field

from ipamc.cli.command import Verb
from ipamc.cli.findings import Problems, format_option, tell
from ipamc.cli.options import output_option, source_of, source_options
from ipamc.cli.query import Query, is_address, node_name, parse_query, whole
from ipamc.cli.terminal import columns, progress, show, show_record
from ipamc.model.diagnostics import Refused, count
from ipamc.model.lock import State
from ipamc.workspace.clusters import name_of
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.spaces import of_space

if TYPE_CHECKING:
    from ipamc.model.cidr import Block
    from ipamc.pipeline import Inputs
    from ipamc.report.explanation import Find
    from ipamc.report.lock_lines import InputAnswer, LockAnswer
    from ipamc.review.explain_node import ExplainedNode
    from ipamc.workspace.source import Source


@click.command(cls=Verb)
@click.argument("target", metavar="IP|CIDR|NODE|CLUSTER/POOL")
@source_options
@output_option("text", "json")
@format_option
def command(*, target: str, output: str, style: str, **where: Any) -> int:
    """Show which node has an address, or which blocks a node has, according to the locks. Writes nothing.

    For an address or a CIDR, shows each overlapping line: held, pending, quarantined or released. Without
    such a line, shows whether the pools have it free, reserved, excluded or pinned, or which node address it
    follows. Separate several with commas. CLUSTER is a name below clusters/ or a folder; by default all
    clusters.

    Examples:
        ipamc which 100.162.224.7  # the node with this address, in all clusters below clusters/
        ipamc which 100.162.224.0/24 zones  # all lines that overlap a CIDR, in one cluster
        ipamc which bj-001,bj-002  # the blocks of two nodes
        ipamc which lab/pods  # the ranges that an address space gave to a pool of a cluster
        ipamc which 100.162.224.7 --at 2026-11-21  # the node that had it at the end of that day, UTC
    Exit codes:
        0: a line of a lock has it
        1: no node has it: it is free, released, reserved, excluded or in no pool; or a lock could not be read
    """
    from ipamc.report import lock_lines as report

    source, problems = source_of(**where), Problems()
    found: dict[LockAnswer | InputAnswer, None] = {}  # in order, each once
    notes: dict[str, None] = {}
    missing = 0
    for query in map(parse_query, target.split(",")):
        search = _Search(query, source, problems=problems)
        some: list[LockAnswer | InputAnswer] = list(search.holders())
        of_nodes = [each.line for each in search.found if query.block is None or "/" not in each.line.node]
        if not of_nodes and query.block:  # a range of a cluster may have it, and no node of the cluster
            with progress("reading the pools"):
                some += search.unheld(query.block)
        if not any(line.state is not State.RELEASED for line in of_nodes):
            missing += 1
            notes[search.not_held(some)] = None
        found |= dict.fromkeys(some)
        notes |= dict.fromkeys(search.notes)
    answers = list(found)
    if output == "json":
        head = {"version": report.VERSION, "asked": target, **source.record(), "held": not missing}
        show_record({**head, **report.records(answers)})
    elif answers:
        show(report.table(answers, columns()))
    tell(style, *notes)
    return problems.conclude(style, answered=not missing)


class _Search(Struct):
    """A search through clusters. A refused cluster does not stop the others."""

    query: Query
    source: Source
    found: list[LockAnswer] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    unread: bool = False  # some lock could not be read
    notes: list[str] = field(default_factory=list)
    """An explanation of `held at start`, for each cluster with such a line."""

    def holders(self) -> list[LockAnswer]:
        """Return the matching lines, cluster by cluster.
        Reads locks only, and decodes only matching lines. In multi-pool mode, where Cilium's operator gives
        out blocks, it also reads the input of a cluster whose lock matches.
        """
        for folder in self.source.folders:
            with self.problems.of(folder):
                lock = self.source.lock(folder)
                if lock.text is not None:
                    self.found += self._holders(folder, lock.path, lock.text)
        self.unread = bool(self.problems)
        return self.found

    def _holders(self, folder: str, path: str, text: bytes) -> Iterator[LockAnswer]:
        from ipamc.lock.file import named
        from ipamc.lock.file_rules import row_at
        from ipamc.lock.lookup import of, over
        from ipamc.report.lock_lines import LockAnswer

        name = name_of(folder)
        found = set(over(text, path, self.query.block) if self.query.block else ())
        found.update(of(text, path, self.query.node) if self.query.node else ())
        if named(text) != name:
            instead = "restore this cluster's, or delete the copied one"
            raise EnvironmentFailure(f"{path} belongs to cluster {named(text)!r}, not to {name!r}: {instead}")
        started: frozenset[Block] = frozenset()
        if any(row.line.in_use for row in found):
            from ipamc.pipeline import load_folder
            from ipamc.report.lock_lines import about_disputed, about_started
            from ipamc.review.shown_pools import disputed, started_with

            with suppress(Refused):
                cluster, lock = load_folder(self.source.inputs(folder, rendered=False))
                started = started_with(cluster, lock) & {row.line.block for row in found}
                if nodes := disputed(cluster, lock) & {row.line.node for row in found}:
                    self.notes.append(about_disputed(name, nodes))
            if started:
                self.notes.append(about_started(name, started))
        for row in sorted(found, key=lambda row: row.number):
            at = row_at(path, row.number, b"")
            yield LockAnswer(cluster=name, line=row.line, at=at, started=row.line.block in started)

    def unheld(self, block: Block) -> Iterator[InputAnswer]:
        """Yield what the inputs say of a block that overlaps no line of a lock."""
        from ipamc.workspace.spaces import members_without

        spaces = chain.from_iterable(self.source.spaces.values())
        silent = members_without(self.source.folders, spaces, block)
        for folder in self.source.folders:
            with self.problems.of(folder):
                if folder not in silent:
                    yield from self._unheld(folder, block)

    def _unheld(self, folder: str, block: Block) -> Iterator[InputAnswer]:
        from ipamc.pipeline import load_folder
        from ipamc.read.locate import Texts
        from ipamc.report.lock_lines import InputAnswer
        from ipamc.review.explain_pools import explain_address

        inputs = self.source.inputs(folder, rendered=False)
        some = explain_address(*load_folder(inputs), block)
        texts = Texts(inputs.sources, [unheld.at for unheld in some])
        for unheld in some:
            yield InputAnswer(cluster=name_of(folder), unheld=unheld, at=texts.span(unheld.at))

    def not_held(self, answers: list[LockAnswer | InputAnswer]) -> str:
        """Return the line for an address or a node that is in no lock."""
        text, where = self.query.text, count(len(self.source.folders), "cluster")
        unread = " in the locks that could be read" if self.unread else ""
        if self.query.block is None:
            would = f"to see what it would get: ipamc why {text}"
            if meant := whole(text):
                would = f"for its addresses: ipamc which {meant}"
            return f"no lock of {where} has a line of {text}{unread}; {would}"
        nowhere = "" if answers or self.problems else f", and no pool of {where} has it"
        return f"no node has {text}{unread}{nowhere}"


@click.command(cls=Verb)
@click.argument("node", metavar="NODE|CLUSTER/POOL")
@source_options
@output_option("text", "json")
@format_option
def why(*, node: str, output: str, style: str, **where: Any) -> int:
    """Show why a node has its blocks: the selector, the skipped pools, the line of the lock. Writes
    nothing.

    For blocks that are not in the lock yet, shows what the next compile does. CLUSTER is a name below
    clusters/ or a folder; by default all clusters.

    Examples:
        ipamc why bj-001  # in all clusters below clusters/ that know the node
        ipamc why bj-001 zones  # in one cluster
        ipamc why lab/pods  # why an address space gave a pool of a cluster its range
        ipamc why bj-001 --at HEAD~5  # five commits ago
    Exit codes:
        0: explained
        1: no cluster knows the node, or an input or a lock was refused
    """
    from ipamc.lock.lookup import similar
    from ipamc.report import explanation

    if is_address(node) and ("/" in node or ":" in node):  # four numbers may be the name of a node
        raise click.UsageError(f"{node!r} is an address, not a node: for its node, run ipamc which {node}")
    node_name(node)
    if "/" in node and where["at"]:
        raise click.UsageError("why CLUSTER/POOL reads only the files on the disk: omit --at")
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
            meant = f"; for an address, run: ipamc which {node}"
        else:
            locks = [source.inputs(folder, rendered=False).lock for folder in source.folders]
            name = similar(filter(None, locks), node)
            meant = f"; did you mean {name!r}?" if name else ""
            if name == f"pool/{node}":
                meant = f"; it is a pool: ipamc show --pool {node}"
        missing = f"no node {node} in {count(len(source.folders), 'cluster')}"
        tell(style, f"{missing}: not in an inventory, not in a lock, and not pinned{meant}")
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
