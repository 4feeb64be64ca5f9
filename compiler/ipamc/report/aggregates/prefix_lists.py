"""Aggregates as prefix lists of routers: FRR, Junos (route-filter-list) and IOS XR (prefix-set).

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

from ipamc.model.cidr import BITS, Block
from ipamc.model.diagnostics import count
from ipamc.report.aggregates import ClusterAggregates
from ipamc.report.terminal_text import visible
from ipamc.review.aggregates import Aggregate

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
                text += lines(name, family, [_entry(prefix, match) for prefix in prefixes])
    return "".join(f"{line}\n" for line in text)


def _entry(prefix: Aggregate, match: str) -> Entry:
    return str(
        prefix.block
    ), prefix.longest if match == "within" and prefix.longest > prefix.block.prefix else 0
