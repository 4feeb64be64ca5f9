"""Aggregates for people: a line a prefix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamc.model.diagnostics import count
from ipamc.report.aggregates import ClusterAggregates
from ipamc.report.terminal_text import paint, visible, width
from ipamc.review.diff.aggregates import AggregateChange

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
