"""Rules about the use of blocks in a dump; calls the decisions of `ipamc resize`."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from ipamc.lock.file import line_at
from ipamc.model.address_sets import index_around, outermost
from ipamc.model.cidr import BITS, Block
from ipamc.model.cluster import Mode
from ipamc.model.diagnostics import Diagnostic, Log, Related, count, error, names, several, warning
from ipamc.model.dump import Dump
from ipamc.model.limits import FEW_NODES, OLDEST_DUMP_FOR_RESIZE
from ipamc.model.lock import State
from ipamc.model.node import CiliumNode
from ipamc.model.plan import Plan
from ipamc.place.resize.decide import HIGH, Sized, Verdict, decide, sources
from ipamc.read.rules import DUMP


class ResizeDecisions(Struct, frozen=True, kw_only=True):
    """The decisions about all nodes, and the kinds of objects that show the use."""

    rows: tuple[Sized, ...]
    sources: tuple[str, ...]


def checked_decisions(plan: Plan, dump: Dump, today: str) -> tuple[ResizeDecisions, Sequence[Diagnostic]]:
    """Decide about the nodes of an ordinary compile's plan; return the warnings, too.
    `today` is ISO 8601, in UTC. Raises Refused for a dump that does not show this cluster's use.
    """
    log = Log()
    log.add(
        chain(no_use(dump), of_another_cluster(plan, dump), unknown_blocks(plan, dump), too_old(dump, today))
    )
    rows = decide(plan, dump)
    log.add(stuck(plan, rows))
    return ResizeDecisions(rows=rows, sources=sources(dump)), tuple(log.diagnostics)


def no_use(dump: Dump) -> Iterator[Diagnostic]:
    """IPC0610: a dump shows which addresses are in use."""
    if not sources(dump):
        message = "the dump does not show which addresses are in use: it has no CiliumEndpoints and no Pods"
        yield error("IPC0610", dump.at, message, help=f"run {DUMP}")


def of_another_cluster(plan: Plan, dump: Dump) -> Iterator[Diagnostic]:
    """IPC0611: `ipamc resize` reads a dump of the same cluster."""
    held = [node for node in plan.cluster.nodes if node.name in plan.held]
    listed = dump.nodes_by_name.keys() | dump.cilium_nodes_by_name.keys()
    there = [node for node in held if node.name in listed]
    if held and not there:
        message = f"the dump has none of the {several([node.name for node in held], 'node', 'of the lock')}"
        yield error("IPC0611", dump.at, message, help="use a dump of this cluster")
    known = [node for node in there if node.uid and node.name in dump.nodes_by_name]
    others = [node for node in known if (uid := dump.nodes_by_name[node.name].uid) and uid != node.uid]
    if len(others) > max(FEW_NODES, len(known) // 2):
        first = others[0]
        uids = f"have another uid in the inventory: {names(node.name for node in others)}"
        message = f"{len(others):,} of {count(len(known), 'node')} {uids}"
        also = [Related(first.at, f"{first.name} is {first.uid} here")]
        fix = "use a dump of this cluster; if the cluster was rebuilt, export its inventory first"
        yield error("IPC0611", dump.nodes_by_name[first.name].at, message, also=also, help=fix)


def unknown_blocks(plan: Plan, dump: Dump) -> Iterator[Diagnostic]:
    """IPC0612: every block that a dump shows for a node is in the lock."""
    cluster = plan.cluster
    if cluster.operator_adopts or cluster.shared_pools:
        return
    lines: dict[str, list[Block]] = defaultdict(list)
    for line in plan.lock.lines:
        if line.state is not State.RELEASED:
            lines[line.node].append(line.block)
    strange = []
    for seen in dump.cilium_nodes:
        mine = outermost(lines.get(seen.name, ()))
        strays = [block for block in _shown(plan, dump, seen) if index_around(mine, block) is None]
        if seen.name in plan.held and strays:
            strange.append((seen, strays[0]))
    if strange:
        seen, block = strange[0]
        held = plan.held[seen.name][0]
        text = str(block).removesuffix(f"/{BITS[block.family]}")
        those = several([node.name for node, _ in strange], "node")
        message = f"CiliumNode {seen.name} has {text}, which its lines in the lock do not contain; {those}"
        also = [Related(line_at(plan.lock, held), f"{seen.name} holds {held.block} here")]
        fix = "use a dump of this cluster; if this is one, refresh the inventory from it and compile"
        yield error("IPC0612", seen.at, message, also=also, help=fix)


def _shown(plan: Plan, dump: Dump, seen: CiliumNode) -> Iterator[Block]:
    """Yield the blocks of a node in a dump, of pools about which the lock decides."""
    mode = plan.cluster.mode
    if mode is Mode.KUBERNETES:
        node = dump.nodes_by_name.get(seen.name)
        yield from node.pod_cidrs if node else ()
    elif mode is Mode.MULTI_POOL:
        yield from (block for block, pool in seen.allocated if pool.endswith(f".{seen.name}"))
    else:
        yield from seen.blocks
        yield from seen.addresses if mode is Mode.CRD else ()


def stuck(plan: Plan, rows: Iterable[Sized]) -> Iterator[Diagnostic]:
    """IPC0614: a node that uses most of its addresses can get more blocks."""
    groups: dict[tuple[str, int, str], list[Sized]] = defaultdict(list)
    for row in rows:
        if row.verdict is Verdict.STUCK:
            groups[row.pool, row.family, row.why].append(row)
    for (name, family, why), mine in sorted(groups.items()):
        pool = plan.cluster.pools_by_name[name]
        high = pool.usage.high if pool.usage else HIGH
        first = max(mine, key=lambda row: (row.percent, row.node))
        help_ = "raise maxBlocks, or use larger blocks"
        if first.prefix:
            size = f"blockSizes: [{{nodeSelector: …, ipv{family}: {first.prefix}}}]"
            help_ = f"{size}, then ipamc lock {plan.cluster.name} --renumber {first.node}"
        at = pool.usage.at if pool.usage else pool.at / "metadata" / "name"
        what = f'of pool "{name}" with over {high} % of the IPv{family} addresses in use, but {why}'
        message = several([f"{row.node} ({row.used:,} of {row.usable:,})" for row in mine], "node", what)
        yield warning("IPC0614", at, message, help=help_)


def too_old(dump: Dump, today: str) -> Iterator[Diagnostic]:
    """IPC0613: a dump is at most a day old."""
    if not dump.nodes:
        return
    try:
        made = datetime.date.fromisoformat(dump.newest[:10])
    except ValueError:
        return  # the dump has no time
    days = (datetime.date.fromisoformat(today) - made).days
    if days > OLDEST_DUMP_FOR_RESIZE:
        message = f"the dump is {days:,} days old: its newest timestamp is {dump.newest}"
        yield error("IPC0613", dump.at, message, help=f"run {DUMP} again")
