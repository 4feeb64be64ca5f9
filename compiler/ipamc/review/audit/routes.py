"""Rules about routers' tables: each prefix of a pool comes from the node that has the block.

The rules of `model/ownership.py` decide whether the node whose address is the next hop may have the block.
Where Cilium's operator allocates, the dump decides. A table may also have leaves as next hops, and default
routes: routes that cannot be attributed to a node are counted, and not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from ipamc.check.evidence import cidr_texts
from ipamc.lock.file import line_at
from ipamc.model.address_sets import aggregated, blocks_over, covers, index_around, outermost
from ipamc.model.cidr import BITS, Block, address_text
from ipamc.model.cilium.versions import bgp_peers
from ipamc.model.diagnostics import Related, Span, and_others, count, error, names, note, warning
from ipamc.model.dump import Route, Table
from ipamc.model.limits import MOST_PLACES
from ipamc.model.lock import Line, State
from ipamc.model.ownership import Ownership
from ipamc.model.plan import ShownBlock
from ipamc.review.audit.context import Context, Result, Suppressed

_RIGHT = frozenset({Ownership.OWN, Ownership.PENDING, Ownership.ADDRESS, Ownership.FOREIGN})
"""Blocks that a node may announce; also one that it will move to: the next compile settles it."""


class _Announced(NamedTuple):
    """A route inside a range of a pool, and the owner of its prefix."""

    route: Route
    node: str  # the node with the address of the next hop; "" if none has it
    others: Sequence[Line | ShownBlock]  # the blocks of other nodes that hold the prefix
    nobody: str  # why nobody may announce it; "" if a node may


class _Tables:
    """All tables, and what the rules derive from them. O(routes log n)."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.router_ips = {ip: each.name for each in context.dump.cilium_nodes for ip in each.internal_ips}
        """The nodes by the address of their cilium_host, the next hop of Cilium's routes on a node."""
        self._ips = {name: ip for ip, name in context.dump.node_by_ip.items()}
        self.tables = [part for table in context.routers for part in self._by_vrf(table)]

    def _by_vrf(self, table: Table) -> Iterator[Table]:
        """Yield the tables of a file: those of VRFs with a route to a pool, else the first one. Routes with
        the name of a node get its address as next hop.
        """
        ranges, parts = self.context.ownership.ranges, defaultdict[str, list[Route]](list)
        for route in table.routes:
            hop = self._ips.get(route.node, route.hop)
            parts[route.vrf].append(replace(route, hop=hop) if hop != route.hop else route)
        of_pods = [vrf for vrf, some in parts.items() if any(ranges.of(route.block) for route in some)]
        for vrf in of_pods or [*parts][:1] or [""]:
            where = "" if vrf in {"", "default"} else f" in VRF {vrf}"
            yield replace(table, routes=tuple(parts[vrf]), where=where)

    def _needed(self, table: Table) -> Sequence[ShownBlock]:
        """Return the blocks that a table must have: in one that a node printed, those of the node."""
        hops = {route.hop for route in table.routes if route.hop}
        nodes = {self.router_ips[hop] for hop in hops & self.router_ips.keys()}
        if table.of_node:
            nodes |= {self.context.dump.node_by_ip.get(hop, "") for hop in hops}
        return [shown for shown in self.shown if shown.node in nodes] if nodes else self.shown

    @cached_property
    def shown(self) -> Sequence[ShownBlock]:
        """The blocks that running nodes rightly have, by address: routers must know them.
        For a node that shows none (it waits, or the dump lacks the kind), its blocks in the lock count.
        """
        context, found = self.context, []
        for node in context.dump.nodes:
            if not node.running:
                continue
            blocks = context.shown.get(node.name, ())
            if not blocks and not context.knows_blocks:
                blocks = tuple(ShownBlock(block, node.name, node.at) for block in context.held(node.name))
            found += [
                shown
                for shown in blocks
                if context.ownership.of(shown) in {*_RIGHT, Ownership.OPERATORS}
                and context.ownership.ranges.of(shown.block)
            ]
        return sorted(found, key=lambda shown: shown.block)

    @cached_property
    def _blocks(self) -> Sequence[Block]:
        return outermost(shown.block for shown in self.shown)

    @cached_property
    def _by_block(self) -> Mapping[Block, ShownBlock]:
        return {shown.block: shown for shown in reversed(self.shown)}

    def _over(self, block: Block) -> list[ShownBlock]:
        return [self._by_block[each] for each in blocks_over(self._blocks, block)]

    @cached_property
    def announced(self) -> Mapping[str, Sequence[_Announced]]:
        """The routes inside ranges that lead to a next hop, by table and VRF."""
        by_ip, ranges = self.context.dump.node_by_ip, self.context.ownership.ranges
        return {
            table.name: [
                self._announced(table, route, by_ip.get(route.hop, ""))
                for route in table.routes
                if route.hop and not route.drops and ranges.of(route.block)
                if route.hop not in self.router_ips  # with a tunnel, blocks of all nodes lead there
            ]
            for table in self.tables
        }

    def _announced(self, table: Table, route: Route, node: str) -> _Announced:
        ownership, block = self.context.ownership, route.block
        pool = self.context.ownership.ranges.pool_of(block)
        part = ShownBlock(block, node, Span(table.path), pool.name if pool else "", part=True)
        inside = [shown for shown in self._over(block) if shown.block.prefix > block.prefix]
        if inside:  # of the blocks in an aggregate, those without a route of their own
            mine = self.own_routes[table.name]
            wrong = [shown for shown in inside if shown.node != node and shown.block not in mine]
            return _Announced(route, node, wrong if node else (), "")
        if ownership.operator_gave(part):
            holders = self._over(block)
            others = [] if node in {shown.node for shown in holders} else holders
            return _Announced(route, node, others, "" if holders else "no node has it")
        if ownership.of(part) in _RIGHT:
            return _Announced(route, node, (), "")
        lines = ownership.others(part)
        held = [line for line in lines if line.state is State.HELD]
        return _Announced(route, node, held, "" if held else self._nobody(part, lines))

    def _nobody(self, shown: ShownBlock, lines: Sequence[Line]) -> str:
        own = [line for line in self.context.lines(shown.node) if line.block.overlaps(shown.block)]
        for line in (*lines, *own):
            if line.state is State.QUARANTINED:
                return f"it has been in quarantine since {line.since} (node {line.node})"
            if line.state is State.PENDING:
                return f"it is pending for node {line.node}"
        pool = self.context.ownership.ranges.pool_of(shown.block)
        reserved = any(cidr.block.overlaps(shown.block) for cidr in pool.reserved) if pool else False
        return "it is reserved" if reserved else "no node holds it"

    @cached_property
    def own_routes(self) -> Mapping[str, frozenset[Block]]:
        """The prefixes for which a table has a route with a next hop, by table and VRF."""
        return {
            table.name: frozenset(route.block for route in table.routes if route.used and not route.drops)
            for table in self.tables
        }

    def lacking(self, table: Table) -> Iterator[tuple[ShownBlock, Route | None]]:
        """Yield blocks without a route in a table, each with the route that matches: a default route or one
        that drops. A larger prefix counts as a route. O(blocks log routes).
        """
        families = table.families or frozenset(self.context.cluster.families)
        ways = self.own_routes[table.name]
        larger = outermost(block for block in ways if block.prefix)
        drops = {route.block: route for route in table.routes if route.drops and route.used}
        default = {route.block.family: route for route in table.routes if not route.block.prefix}
        for shown in self._needed(table):
            block = shown.block
            if block.family not in families or block in ways:
                continue
            dropped = self._around(drops, block)
            around = index_around(larger, block)
            inside = blocks_over(larger, block) if around is None else ()
            if around is not None and not (dropped and dropped.block.prefix > larger[around].prefix):
                continue
            if not (inside and covers(inside, block)):
                yield shown, dropped or default.get(block.family)

    @staticmethod
    def _around(routes: Mapping[Block, Route], block: Block) -> Route | None:
        """Return the route with the longest prefix that contains a block."""
        around = (block.widened(prefix) for prefix in range(block.prefix, -1, -1))
        return next((routes[each] for each in around if each in routes), None)

    def absent(self, table: Table) -> Mapping[Block, Sequence[ShownBlock]]:
        """Return aggregates of which a table has no block, though it has others, each with its blocks if
        they are of several nodes. The cause is a filter that lacks the aggregate.
        """
        lacking = {shown.block for shown, _ in self.lacking(table)}
        if len(lacking) in {0, len(self.shown)}:
            return {}
        by_pool: dict[str, list[Block]] = defaultdict(list)
        for shown in self.shown:
            pool = self.context.ownership.ranges.pool_of(shown.block)
            by_pool[pool.name if pool else ""].append(shown.block)
        found = {}
        for prefix in (prefix for blocks in by_pool.values() for prefix in aggregated(blocks)):
            inside = self._over(prefix)
            if len({each.node for each in inside}) > 1 and lacking.issuperset(each.block for each in inside):
                found[prefix] = inside
        return found


def routes(context: Context, suppressed: Suppressed) -> Iterator[Result]:
    """Yield findings about the routers' tables, if some are given."""
    if context.routers:
        tables = _Tables(context)
        yield from wrong_next_hop(tables)
        yield from still_announced(tables, suppressed)
        yield from aggregate_absent(tables)
        yield from held_missing(tables)
        yield from outside_of_pools(tables, suppressed)
        yield from not_attributed(tables)


def wrong_next_hop(tables: _Tables) -> Iterator[Result]:
    """IPC0953: routers send the traffic of a block to the node that holds it."""
    context = tables.context
    for table in tables.tables:
        wrong = [each for each in tables.announced[table.name] if each.node and each.others]
        if not wrong:
            continue
        also = []
        for each in wrong[:MOST_PLACES]:
            holder = each.others[0]
            route, hop = f"{each.route.block} leads to {each.node}", address_text(*_hop(each.route))
            also.append(Related(table.at(each.route), route))
            also.append(context.related(each.node, f"{each.node} has the address {hop}"))
            also.append(context.related(holder.node, f"{holder.node}, which holds {holder.block}"))
            if isinstance(holder, Line) and holder in context.lock.written:
                also.append(Related(line_at(context.lock, holder), f"the lock has {holder.block} for it"))
        first = wrong[0]
        holders = " and ".join(dict.fromkeys(other.node for other in first.others[:MOST_PLACES]))
        leads = "leads to" if first.route.used else "has an unused path to"
        more = f"; {count(len(wrong), 'route')} to wrong nodes" if wrong[1:] else ""
        more += and_others(list(dict.fromkeys(each.node for each in wrong)))
        text = f"{first.route.block}{table.where} {leads} node {first.node}, but {holders} holds it{more}"
        make = error if any(each.route.used for each in wrong) else warning
        command = f"kubectl get ciliumnode {first.node} -o jsonpath='{{.spec.ipam}}'"
        router = "if it lacks this one, find out which router announces it"
        way_out = f"see the blocks of {first.node}: {command}\n{router}"
        yield Result(make("IPC0953", table.at(first.route), text, also=also[1:], help=way_out))


def _hop(route: Route) -> tuple[int, int]:
    assert route.hop is not None  # noqa: S101 - only routes with a next hop are judged
    return route.hop


def still_announced(tables: _Tables, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0954: routers have no route to pool addresses that no node holds."""
    context = tables.context
    for table in tables.tables:
        some = [
            each
            for each in tables.announced[table.name]
            if each.nobody
            if not suppressed.explains("IPC0954", context.source(each.node), [each.route.block])
        ]
        if some:
            first = some[0]
            hop = address_text(*_hop(first.route))
            to = f"node {first.node}" if first.node else f"{hop}, which is not a node's address"
            blocks = sorted({each.route.block for each in some})
            more = f"; {count(len(blocks), 'prefix', 'prefixes')}: {cidr_texts(blocks)}" if blocks[1:] else ""
            text = f"{first.route.block}{table.where} leads to {to}, but {first.nobody}{more}"
            also = [
                Related(table.at(each.route), f"{each.route.block}: {each.nobody}")
                for each in some[1:MOST_PLACES]
            ]
            also += [context.related(first.node, f"{first.node} has {hop}")] if first.node else []
            which = f"ipamc which {first.route.block}"
            way_out = f"find out who announces it before a node gets the block: {which}"
            yield Result(warning("IPC0954", table.at(first.route), text, also=also, help=way_out))


def aggregate_absent(tables: _Tables) -> Iterator[Result]:
    """IPC0956: routers have routes to blocks in every aggregate of a pool."""
    context = tables.context
    for table in tables.tables:
        if absent := tables.absent(table):
            prefix, inside = next(iter(absent.items()))
            nodes = [shown.node for shown in inside]
            more = f"; {count(len(absent), 'aggregate')}: {cidr_texts(absent)}" if len(absent) > 1 else ""
            of = f"{count(len(inside), 'block')} of {count(len(set(nodes)), 'node')} ({names(nodes)})"
            why = f"a filter may lack the prefix{more}"
            text = f"no route to any of {of} in {prefix}{table.where}, only to other blocks: {why}"
            also = [
                context.related(each.node, f"{each.node} has {each.block}") for each in inside[:MOST_PLACES]
            ]
            filters = f"ipamc aggregates {context.cluster.name}"
            way_out = f"compare the filters of the router and of its peers with: {filters}"
            yield Result(error("IPC0956", Span(table.path), text, also=also, help=way_out))


def held_missing(tables: _Tables) -> Iterator[Result]:
    """IPC0955: routers have a route to each block that a node holds."""
    context = tables.context
    for table in tables.tables:
        known = {shown.block for some in tables.absent(table).values() for shown in some}
        lacking = [item for item in tables.lacking(table) if item[0].block not in known]
        defaults = [item for item in lacking if item[1] and not (item[1].block.prefix or item[1].drops)]
        for make, some in ((error, [item for item in lacking if item not in defaults]), (warning, defaults)):
            if not some:
                continue
            shown, caught = some[0]
            what = f"no route to {shown.block} of node {shown.node}{table.where}"
            if caught:
                what += (
                    f", only {caught.block}, which {'drops it' if caught.drops else 'is the default route'}"
                )
            blocks = [each.block for each, _ in some]
            more = (
                f"; {len(some):,} of {count(len(tables.shown), 'block')}: {cidr_texts(blocks)}"
                if some[1:]
                else ""
            )
            also = [Related(table.at(caught), f"{caught.block} matches it")] if caught else []
            for each, _ in some[:MOST_PLACES]:
                also.append(context.related(each.node, f"{each.node} has {each.block}"))
                also += context.line_of(each.node, each.block.family)
            peers = bgp_peers(context.cluster.cilium)
            command = f"in the agent's pod of {shown.node}, check that its session is up: {peers}"
            router = "if this router does not need the block, omit its table"
            at = table.at(caught) if caught else Span(table.path)
            yield Result(make("IPC0955", at, f"{what}{more}", also=also, help=f"{command}\n{router}"))


def outside_of_pools(tables: _Tables, suppressed: Suppressed) -> Iterator[Result]:
    """IPC0958: routes that lead to nodes have prefixes inside pools."""
    # In multi-pool mode agents make a route to a range of their own (cilium/cilium#28632, #32423).
    context, nodes = tables.context, {**tables.context.dump.node_by_ip, **tables.router_ips}
    pools = chain(*(cidrs for pool in context.dump.pools for cidrs in pool.cidrs.values()))
    known = outermost(chain((each.block for each in context.cluster.excluded), pools))
    for table in tables.tables:
        some = [
            (route, nodes[route.hop])
            for route in table.routes
            if route.used and not route.drops and route.hop in nodes
            if 0 < route.block.prefix < BITS[route.block.family]  # services have single addresses
            if not context.ownership.ranges.of(route.block) and index_around(known, route.block) is None
            if route.block not in context.blocks_of(nodes[route.hop])
            if not suppressed.explains("IPC0958", context.source(nodes[route.hop]), [route.block])
        ]
        if some:
            route, node = some[0]
            blocks = sorted({each.block for each, _ in some})
            more = f"; {count(len(blocks), 'prefix', 'prefixes')}: {cidr_texts(blocks)}" if blocks[1:] else ""
            text = f"{route.block}{table.where} leads to node {node}, but no pool contains it{more}"
            also = [context.related(node, f"{node} has {address_text(*_hop(route))}")]
            way_out = f"see kubectl get ciliumnode {node} -o yaml; add networks of services to excludedCIDRs"
            yield Result(warning("IPC0958", table.at(route), text, also=also, help=way_out))


def not_attributed(tables: _Tables) -> Iterator[Result]:
    """IPC0957: routes to addresses of pools lead to nodes in the dump."""
    context = tables.context
    for table in tables.tables:
        unknown = [each.route for each in tables.announced[table.name] if not (each.node or each.nobody)]
        if unknown:
            hops = {_hop(route) for route in unknown}
            more = f"; {count(len(hops), 'next hop')}" if len(hops) > 1 else ""
            of = "which is not a node's address in the dump"
            if not context.dump.node_by_ip:
                of = "but the dump has no InternalIPs"
            text = f"{unknown[0].block}{table.where} leads to {address_text(*_hop(unknown[0]))}, {of}{more}"
            seen = f"{text}; {count(len(unknown), 'route')} not checked"
            way_out = "use the tables of the routers that have sessions with nodes, and a dump with Nodes"
            yield Result(note("IPC0957", table.at(unknown[0]), seen, help=way_out))
    for table in context.routers:
        if table.unread:
            lines = f"line {table.unread[0]} has a prefix, but cannot be read"
            more = f"; {len(table.unread):,} lines" if table.unread[1:] else ""
            yield Result(note("IPC0957", Span(table.path, table.unread[0], 1, 1), f"{lines}{more}"))
