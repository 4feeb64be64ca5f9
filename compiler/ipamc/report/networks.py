"""The networks of a cluster, as `ipamc check` shows them: a table, and records for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ipamc.importing.alone import DERIVED, Alone
from ipamc.lock.utilisation import utilisation
from ipamc.model.address_sets import blocks_over, outermost, without
from ipamc.model.cidr import BITS, Block
from ipamc.model.diagnostics import At, count
from ipamc.model.limits import MOST_PLACES
from ipamc.report.terminal_text import visible, where, width
from ipamc.report.utilisation import amount, percent

_PREFIXES = {4: (24, 20, 16, 12, 8), 6: (64, 56, 48, 32)}
"""The sizes of networks around addresses, where no object tells any: the first of which MOST_PLACES do."""


class Network(Struct, frozen=True, kw_only=True):
    """One network of a cluster."""

    cidr: Block
    of: str
    """`pods`, `nodes`, `services`, `load balancers`, or what has it."""
    source: str
    at: At
    used: int
    """Blocks of nodes in it; of a network without blocks, its addresses that are in use."""
    size: int = 0
    """The prefix length of its blocks; 0 without blocks."""
    total: int = 0
    room: int = 0
    """The number of further nodes."""


def networks(known: Alone) -> Iterator[Network]:
    """Yield the networks of a cluster: those of pods first, each kind by address. O(n log n)."""
    dump = known.dump
    for each in utilisation(known.cluster, known.lock):
        source, at = known.sources[each.pool.name]
        for part in each.ranges:
            yield Network(
                cidr=part.range.block,
                of="pods",
                source=source,
                at=at,
                used=part.use.blocks_held,
                size=each.family.block_size,
                total=part.use.blocks,
                room=part.use.blocks_free // each.pool.blocks_per_node,
            )
    pools = [cidr.block for pool in known.cluster.pools for cidr in pool.ranges]
    in_use = {Block(*ip, BITS[ip[0]]) for pod in dump.pods if not pod.host_network for ip in pod.addresses}
    for cidr in _around(without(in_use, pools)):
        yield _of_addresses(cidr, "pods", "addresses of pods", dump.at, sorted(in_use))
    machines = sorted(Block(*ip, BITS[ip[0]]) for node in dump.nodes for ip in node.internal_ips)
    for cidr in _around(machines):
        yield _of_addresses(cidr, "nodes", "InternalIPs", dump.at, machines)
    services = outermost(block for each in dump.scalars if each.kind == "Service" for block in each.blocks)
    for item in known.facts.excluded:
        if item.why != "nodes":
            of = item.why.partition(" (")[0]
            source = item.kind or "kube-apiserver's flags"
            yield _of_addresses(item.block, of, source, item.at or dump.at, services)
    others: defaultdict[tuple[str, At], list[Block]] = defaultdict(list)
    for scalar in dump.scalars:
        if scalar.owner not in {"", "nodes", "Services", "Ingresses", "Gateways"}:
            others[scalar.owner, scalar.at] += scalar.blocks
    for (owner, at), blocks in others.items():
        for cidr in outermost(blocks):
            yield _of_addresses(cidr, "others", owner, at, services)


def _around(addresses: Sequence[Block]) -> Iterator[Block]:
    """Yield a few CIDRs around addresses."""
    for family, prefixes in _PREFIXES.items():
        mine = [ip for ip in addresses if ip.family == family]
        several = ({ip.widened(prefix) for ip in mine} for prefix in prefixes)
        yield from sorted(next((some for some in several if len(some) <= MOST_PLACES), mine))


def _of_addresses(cidr: Block, of: str, source: str, at: At, known: Sequence[Block]) -> Network:
    used = len(blocks_over(known, cidr))
    return Network(cidr=cidr, of=of, source=source, at=at, used=used)


def table(every: Iterable[Network]) -> str:
    """Return the table, with columns of two blanks between them."""
    rows = [("network", "of", "from", "in use", "room")]
    for each in every:
        share = f"{each.used:,} of {amount(each.total)} /{each.size} ({percent(each.used, each.total)})"
        used = share if each.size else count(each.used, "address", "addresses")
        nodes = "node" if each.room == 1 else "nodes"
        room = f"{amount(each.room)} {nodes}" if each.size and each.source != DERIVED else ""
        rows.append((str(each.cidr), each.of, visible(each.source), used, room))
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{text:<{wide}}" for text, wide in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def records(every: Iterable[Network]) -> list[dict[str, Any]]:
    """Return the networks for JSON."""
    return [
        {
            "network": str(each.cidr),
            "of": each.of,
            "from": each.source,
            "at": where(each.at),
            "used": each.used,
            **({"blockSize": each.size, "blocks": each.total, "room": each.room} if each.size else {}),
        }
        for each in every
    ]
