"""Prefixes for others: aggregates, prefix lists of routers (FRR, Junos, IOS XR), and NetBox's bulk import."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from ipamc.model.cidr import BITS, Block
from ipamc.model.diagnostics import count, names
from ipamc.model.limits import PREFIX_LIST_NAME, PREFIXES_SHOWN
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.aggregates import FilterLine, LineGroup, PrefixChange
from ipamc.review.netbox import NetBoxImport


class ClusterAggregates(Struct, frozen=True, kw_only=True):
    """The aggregates of one cluster."""

    name: str
    label: str  # the label's key, if grouped by its values; "" for pools
    states: tuple[str, ...]  # the states of the covered lines
    groups: Sequence[LineGroup]
    started: frozenset[Block] = frozenset()  # blocks that nodes started with, and may no longer have

    def name_of(self, group: LineGroup) -> str:
        """Return the displayed name of a group."""
        if group.name:
            return group.name
        return f"(without {self.label})" if self.label else "(outside all pools)"


def render(clusters: Sequence[ClusterAggregates], *, colour: bool = False) -> str:
    """Return a paragraph for each cluster: group, prefix, and number of blocks in it."""
    paragraphs = (_cluster(cluster, colour=colour) for cluster in clusters)
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in paragraphs)


def _cluster(cluster: ClusterAggregates, *, colour: bool) -> Iterator[str]:
    groups = [(group, prefix) for group in cluster.groups for prefix in chain(*group.prefixes.values())]
    found = [(visible(cluster.name_of(of)), str(prefix.block), prefix.blocks) for of, prefix in groups]
    blocks = sum(group.blocks for group in cluster.groups)
    name = paint(visible(cluster.name), "strong", colour=colour)
    of = f"{count(blocks, 'block')}, {' or '.join(cluster.states)}"
    yield f"{name}: {count(len(found), 'prefix', 'prefixes')} of {of}"
    named = max((width(name) for name, _, _ in found), default=0)
    wide = max((len(prefix) for _, prefix, _ in found), default=0)
    for name, prefix, number in found:
        yield f"{name}{' ' * (named - width(name))}  {prefix:{wide}}  {count(number, 'block')}"


def changed_prefixes(change: PrefixChange) -> str:
    """Return at most PREFIXES_SHOWN prefixes of a pool and family that a plan changes; "" without."""
    removed, added = change.prefixes
    every = [f"−{block}" for block in removed]  # noqa: RUF001 - a minus is as wide as a plus
    return _some([*every, *(f"+{block}" for block in added)], " ")


def filter_lines(lines: Sequence[FilterLine]) -> str:
    """Return lines of a filter in the syntax of most routers, at most PREFIXES_SHOWN."""
    longer = (f" le {line.longest}" if line.longest > line.block.prefix else "" for line in lines)
    return _some([f"{line.block}{more}" for line, more in zip(lines, longer, strict=True)], ", ")


def _some(every: Sequence[str], between: str) -> str:
    more = len(every) - PREFIXES_SHOWN
    return between.join(every[:PREFIXES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


VERSION = 1


def record(cluster: ClusterAggregates) -> dict[str, Any]:
    """Return the aggregates of one cluster for JSON."""
    return {
        "cluster": cluster.name,
        "label": cluster.label or None,
        "states": list(cluster.states),
        "groups": [
            {
                "name": group.name or None,
                "blocks": group.blocks,
                "nodes": group.nodes,
                "families": [
                    {
                        "family": f"IPv{family}",
                        "list": list_name(cluster.name, group.name, family),
                        "prefixes": [
                            {"prefix": str(prefix.block), "longest": prefix.longest, "blocks": prefix.blocks}
                            for prefix in prefixes
                        ],
                    }
                    for family, prefixes in group.prefixes.items()
                ],
            }
            for group in cluster.groups
        ],
    }


_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

Match = tuple[str, int]  # a prefix and the longest prefix length of its routes; 0: the prefix alone


def list_name(cluster: str, group: str, family: int) -> str:
    """Return the name of a list, of letters, digits, - and _ alone: `ipamc_lab_rack-a_v4`.
    It is unique: a cluster has no underscore, and no group begins with one. If a name has other characters,
    or too many, two underscores and a hash of the original name are appended.
    """
    whole = f"ipamc_{cluster}_{group or '_none'}"
    safe = _UNSAFE.sub("-", whole)
    if safe != whole or len(safe) > PREFIX_LIST_NAME - 3:
        mark = hashlib.sha256(whole.encode()).hexdigest()[:12]
        safe = f"ipamc__{mark}_{safe.removeprefix('ipamc_')}"[: PREFIX_LIST_NAME - 3]
    return f"{safe}_v{family}"


def frr(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return `ip prefix-list` and `ipv6 prefix-list`, for frr.conf."""

    def lines(name: str, family: int, matches: Sequence[Match]) -> Iterator[str]:
        command = f"{'ip' if family == 4 else 'ipv6'} prefix-list {name}"
        if not matches:
            yield f"{command} seq 5 deny any"
        for number, (prefix, longest) in enumerate(matches, 1):
            yield f"{command} seq {number * 5} permit {prefix}{f' le {longest}' if longest else ''}"

    return _lists(clusters, match, "!", lines)


def junos(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return route-filter-lists that replace those of the same name: for `load replace`."""

    def lines(name: str, family: int, matches: Sequence[Match]) -> Iterator[str]:
        yield f"    replace: route-filter-list {name} {{"
        for prefix, longest in matches or [(_nowhere(family), 0)]:
            yield f"        {prefix} {f'upto /{longest}' if longest else 'exact'};"
        yield "    }"

    return f"policy-options {{\n{_lists(clusters, match, '    #', lines)}}}\n"


def ios_xr(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return prefix-sets; a committed set replaces the one of the same name."""

    def lines(name: str, family: int, matches: Sequence[Match]) -> Iterator[str]:
        yield f"prefix-set {name}"
        every = [f"  {prefix}{f' le {longest}' if longest else ''}" for prefix, longest in matches]
        yield ",\n".join(every or [f"  {_nowhere(family)}"])
        yield "end-set"

    return _lists(clusters, match, "!", lines)


FORMATS = {"frr": frr, "junos": junos, "ios-xr": ios_xr}
"""Lists of routers. One that matches `within` accepts the routes that nodes announce: their blocks, which are
longer than the aggregate. `exact` accepts the aggregates alone, as a router announces them. A group without a
block has a list that matches no route, because FRR permits everything by a list that does not exist (its
manual). IPv4 and IPv6 have separate lists, as FRR demands.
"""


def _nowhere(family: int) -> str:
    """Return a prefix that matches no route: the unspecified address."""
    return str(Block(family, 0, BITS[family]))


def _lists(
    clusters: Sequence[ClusterAggregates],
    match: str,
    comment: str,
    lines: Callable[[str, int, Sequence[Match]], Iterator[str]],
) -> str:
    within = match == "within"
    about = "prefixes and the routes of blocks in them" if within else "only these prefixes"
    text = [f"{comment} by ipamc aggregates --match {match}: {about}"]
    for cluster in clusters:
        for group in cluster.groups:
            of = f"{cluster.label or 'pool'} {visible(group.name) or 'none'}"
            blocks = count(group.blocks, "block")
            text.append(f"{comment} cluster {visible(cluster.name)}, {of}: {blocks}")
            for family, prefixes in group.prefixes.items():
                longer = [within and each.longest > each.block.prefix for each in prefixes]
                pairs = zip(prefixes, longer, strict=True)
                matches = [(str(each.block), each.longest if more else 0) for each, more in pairs]
                text += lines(list_name(cluster.name, group.name, family), family, matches)
    return "".join(f"{line}\n" for line in text)


class _Rows(list[str]):
    """A file-like list of rows for csv.writer."""

    write = list.append


def netbox_table(changes: NetBoxImport, columns: Mapping[str, str], *, ids: bool) -> str:
    """Return the CSV to import. `columns` have one value for all rows; `ids`: add NetBox's numbers.
    Cells begin with a digit, a hexadecimal letter, a colon or `ipamc`, so no spreadsheet takes one for a
    formula. They have no separator and no quote: NetBox guesses the separator from the whole text (Python's
    `csv.Sniffer`), and quotes mislead it.
    """
    rows = _Rows()
    writer = csv.writer(rows, lineterminator="\n")
    first = 0 if ids else 1
    writer.writerow(("id", "prefix", "status", *columns, "description")[first:])
    for row in changes.rows:
        cells = (row.id or "", row.block, row.status, *columns.values(), row.description)
        writer.writerow(map(str, cells[first:]))
    return "".join(rows)


def netbox_summary(changes: NetBoxImport) -> list[str]:
    """Return lines for people about the effect of an import."""
    made = f"{count(changes.created, 'prefix', 'prefixes')} to create, {changes.updated:,} to update"
    lines = [f"{made}, {changes.gone:,} gone, {changes.unchanged:,} unchanged"]
    kept = (
        ("not made by this export, with another status", changes.foreign),
        ("made by this export in another VRF", changes.elsewhere),
    )
    for why, prefixes in kept:
        if prefixes:
            which = names((visible(str(there.block)) for there in prefixes), limit=10)
            number = count(len(prefixes), "prefix", "prefixes")
            lines.append(f"{why}, left unchanged: {number} ({which})")
    return lines
