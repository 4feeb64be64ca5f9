"""Aggregates as text for people, JSON, and prefix lists of routers: FRR, Junos (route-filter-list), IOS XR (prefix-set).

A list is for one of two things. `within`: to take from nodes the routes that they announce. A node announces
its own block, which is longer than the aggregate, so a prefix stands for itself and what is in it, down to the
longest block that it covers. `exact`: for the aggregates alone, as a router announces them.

A group without a block has a list that no route passes: by FRR's manual one that is not there permits
everything, and the others say little of an empty one. IPv4 and IPv6 have lists of their own, as FRR demands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ipamc.model.cidr import BITS, Block
from ipamc.model.diagnostics import count
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.aggregates import AggregateChange, Group


class ClusterAggregates(Struct, frozen=True, kw_only=True):
    """The aggregates of one cluster."""

    name: str
    label: str
    """The key of the label by whose values they are grouped; "" for pools."""
    states: tuple[str, ...]
    """Of the lines that are covered."""
    groups: Sequence[Group]
    started: frozenset[Block] = frozenset()
    """Blocks that nodes started with, and may not have any more."""

    def name_of(self, group: Group) -> str:
        """Return what a group is called."""
        if group.name:
            return group.name
        return f"(without {self.label})" if self.label else "(outside every pool)"


SHOWN = 6
"""Prefixes of a pool and family in a plan; JSON has all."""


def render(clusters: Sequence[ClusterAggregates], *, colour: bool = False) -> str:
    """Return a paragraph a cluster: the group, the prefix, and how many blocks it covers."""
    return "\n".join(
        "".join(f"{line}\n" for line in _cluster(cluster, colour=colour)) for cluster in clusters
    )


def _cluster(cluster: ClusterAggregates, *, colour: bool) -> Iterator[str]:
    found = [
        (visible(cluster.name_of(group)), str(prefix.block), prefix.blocks)
        for group in cluster.groups
        for prefixes in group.prefixes.values()
        for prefix in prefixes
    ]
    blocks = sum(group.blocks for group in cluster.groups)
    name = paint(visible(cluster.name), "strong", colour=colour)
    yield f"{name}: {count(len(found), 'prefix', 'prefixes')} of {count(blocks, 'block')}, {' or '.join(cluster.states)}"
    named = max((width(name) for name, _, _ in found), default=0)
    wide = max((len(prefix) for _, prefix, _ in found), default=0)
    for name, prefix, number in found:
        yield f"{name}{' ' * (named - width(name))}  {prefix:{wide}}  {count(number, 'block')}"


def prefixes(change: AggregateChange) -> str:
    """Return what a plan says of one pool and family: the prefixes that go, and those that come, at most SHOWN."""
    every = [*(f"−{block}" for block in change.removed), *(f"+{block}" for block in change.added)]  # noqa: RUF001 - a minus is as wide as a plus
    more = len(every) - SHOWN
    return " ".join(every[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


VERSION = 1
"""Grows when a field changes its meaning or is removed; not when a field is added."""


def record(cluster: ClusterAggregates) -> dict[str, Any]:
    """Return the aggregates of one cluster."""
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


LONGEST_NAME = 63
"""Characters of a name: FRR allows 128, Junos 255."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")

Entry = tuple[str, int]
"""A prefix and the longest route in it: its own length, if it stands for itself alone."""


def list_name(cluster: str, group: str, family: int) -> str:
    """Return the name of a list, of letters, digits, - and _ alone: `ipamc_lab_rack-a_v4`.

    No two groups have the same: a cluster has no underscore, and no group begins with one. A name with other
    characters, or with too many, gets a hash of what it was, behind two underscores.
    """
    whole = f"ipamc_{cluster}_{group or '_none'}"
    safe = _UNSAFE.sub("-", whole)
    if safe != whole or len(safe) > LONGEST_NAME - 3:
        mark = hashlib.sha256(whole.encode()).hexdigest()[:12]
        safe = f"ipamc__{mark}_{safe.removeprefix('ipamc_')}"[: LONGEST_NAME - 3]
    return f"{safe}_v{family}"


def frr(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return `ip prefix-list` and `ipv6 prefix-list`, for frr.conf."""
    return _written(clusters, match, "!", _frr)


def _frr(name: str, family: int, entries: Sequence[Entry]) -> Iterator[str]:
    command = f"{'ip' if family == 4 else 'ipv6'} prefix-list {name}"
    if not entries:
        yield f"{command} seq 5 deny any"
    for number, (prefix, longest) in enumerate(entries, 1):
        yield f"{command} seq {number * 5} permit {prefix}{f' le {longest}' if longest else ''}"


def junos(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return route-filter-lists that replace those of the same name: for `load replace`."""
    body = _written(clusters, match, "    #", _junos)
    return f"policy-options {{\n{body}}}\n"


def _junos(name: str, family: int, entries: Sequence[Entry]) -> Iterator[str]:
    yield f"    replace: route-filter-list {name} {{"
    for prefix, longest in entries or [(_nowhere(family), 0)]:
        yield f"        {prefix} {f'upto /{longest}' if longest else 'exact'};"
    yield "    }"


def ios_xr(clusters: Sequence[ClusterAggregates], match: str) -> str:
    """Return prefix-sets: a set replaces the one of the same name when it is committed."""
    return _written(clusters, match, "!", _ios_xr)


def _ios_xr(name: str, family: int, entries: Sequence[Entry]) -> Iterator[str]:
    yield f"prefix-set {name}"
    every = [f"  {prefix}{f' le {longest}' if longest else ''}" for prefix, longest in entries]
    yield ",\n".join(every or [f"  {_nowhere(family)}"])
    yield "end-set"


FORMATS: Mapping[str, Callable[[Sequence[ClusterAggregates], str], str]] = {
    "frr": frr,
    "junos": junos,
    "ios-xr": ios_xr,
}


def _nowhere(family: int) -> str:
    """Return a prefix that no route has: the unspecified address."""
    return str(Block(family, 0, BITS[family]))


def _written(
    clusters: Sequence[ClusterAggregates],
    match: str,
    comment: str,
    lines: Callable[[str, int, Sequence[Entry]], Iterator[str]],
) -> str:
    about = "prefixes and the routes of blocks in them" if match == "within" else "these prefixes alone"
    text = [f"{comment} by ipamc show --aggregates --match {match}: {about}"]
    for cluster in clusters:
        for group in cluster.groups:
            of = f"{cluster.label}" if cluster.label else "pool"
            text.append(
                f"{comment} cluster {visible(cluster.name)}, {of} {visible(group.name) or 'none'}: {count(group.blocks, 'block')}"
            )
            for family, prefixes in group.prefixes.items():
                name = list_name(cluster.name, group.name, family)
                within = match == "within"
                entries = [
                    (str(each.block), each.longest if within and each.longest > each.block.prefix else 0)
                    for each in prefixes
                ]
                text += lines(name, family, entries)
    return "".join(f"{line}\n" for line in text)
