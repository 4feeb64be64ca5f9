"""The networks of a cluster, as `ipamc check` shows them: records for programs, and a table of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ipamc.importing.alone import DERIVED, Alone
from ipamc.lock.utilisation import utilisation
from ipamc.model.address_sets import blocks_over, outermost, without
from ipamc.model.cidr import Block, single
from ipamc.model.diagnostics import At, count
from ipamc.model.limits import MOST_PLACES
from ipamc.report.terminal_text import visible, where, width
from ipamc.report.utilisation import amount, percent

_PREFIXES = {4: (24, 20, 16, 12, 8), 6: (64, 56, 48, 32)}
"""The sizes of networks around addresses, where no object tells any: the first of which MOST_PLACES do."""


def networks(known: Alone) -> Iterator[Mapping[str, Any]]:
    """Yield the networks of a cluster: those of pods first, each kind by address. O(n log n).
    `of` is `pods`, `nodes`, `services`, `load balancers` or `others`; `used` are the blocks of nodes in it,
    or of a network without blocks its addresses in use; `room` is for further nodes.
    """
    dump = known.dump
    for each in utilisation(known.cluster, known.lock):
        source, at = known.sources[each.pool.name]
        for part in each.ranges:
            yield {
                **_record(part.range.block, "pods", source, at, part.use.blocks_held),
                "blockSize": each.family.block_size,
                "blocks": part.use.blocks,
                "room": part.use.blocks_free // each.pool.blocks_per_node,
            }
    pools = [cidr.block for pool in known.cluster.pools for cidr in pool.ranges]
    pods = sorted({single(ip) for pod in dump.pods if not pod.host_network for ip in pod.addresses})
    machines = sorted(single(ip) for node in dump.nodes for ip in node.internal_ips)
    services = outermost(block for each in dump.scalars if each.kind == "Service" for block in each.blocks)
    others: defaultdict[tuple[str, At], list[Block]] = defaultdict(list)
    for scalar in dump.scalars:
        if scalar.owner not in {"", "nodes", "Services", "Ingresses", "Gateways"}:
            others[scalar.owner, scalar.at] += scalar.blocks
    found: list[tuple[Block, str, str, At, Sequence[Block]]]
    found = [(cidr, "pods", "addresses of pods", dump.at, pods) for cidr in _around(without(pods, pools))]
    found += [(cidr, "nodes", "InternalIPs", dump.at, machines) for cidr in _around(machines)]
    for item in known.facts.excluded:
        if item.why != "nodes":
            of, source = item.why.partition(" (")[0], item.kind or "kube-apiserver's flags"
            found.append((item.block, of, source, item.at or dump.at, services))
    for (owner, place), blocks in others.items():
        found += [(cidr, "others", owner, place, services) for cidr in outermost(blocks)]
    for cidr, of, source, place, addresses in found:
        yield _record(cidr, of, source, place, len(blocks_over(addresses, cidr)))


def _record(cidr: Block, of: str, source: str, at: At, used: int) -> dict[str, Any]:
    return {"network": str(cidr), "of": of, "from": source, "at": where(at), "used": used}


def _around(addresses: Sequence[Block]) -> Iterator[Block]:
    """Yield a few CIDRs around addresses."""
    for family, prefixes in _PREFIXES.items():
        mine = [ip for ip in addresses if ip.family == family]
        several = ({ip.widened(prefix) for ip in mine} for prefix in prefixes)
        yield from sorted(next((some for some in several if len(some) <= MOST_PLACES), mine))


def table(every: Iterable[Mapping[str, Any]]) -> str:
    """Return the table, with columns of two blanks between them."""
    rows = [("network", "of", "from", "in use", "room")]
    for each in every:
        used, room = count(each["used"], "address", "addresses"), ""
        if size := each.get("blockSize"):
            total, nodes = each["blocks"], each["room"]
            used = f"{each['used']:,} of {amount(total)} /{size} ({percent(each['used'], total)})"
            room = f"{amount(nodes)} {'node' if nodes == 1 else 'nodes'}" if each["from"] != DERIVED else ""
        rows.append((each["network"], each["of"], visible(each["from"]), used, room))
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{text:<{wide}}" for text, wide in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)
