"""`ipamc show --aggregates`: the prefixes of held blocks, for people, programs and routers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ipamc.cli.terminal import colour, show, show_record
from ipamc.workspace.trouble import Trouble

if TYPE_CHECKING:
    from ipamc.model.cluster import Cluster
    from ipamc.model.lock import Lock
    from ipamc.report.aggregates import ClusterAggregates
    from ipamc.review.shown_pools import Choice


def aggregated(choice: Choice, by: str | None) -> Callable[[Cluster, Lock], ClusterAggregates | None]:
    """Return what makes the aggregates of a cluster: by pool, or by a label of nodes; None: it has nothing."""
    from ipamc.report.aggregates import ClusterAggregates
    from ipamc.review.aggregates import IN_USE, LabelError, by_label, by_pool, chosen, label_key
    from ipamc.review.as_needed import started_with

    states = choice.states or IN_USE

    def make(cluster: Cluster, lock: Lock) -> ClusterAggregates | None:
        lines = chosen(cluster, lock, choice)
        key = ""
        if by is None:
            groups = by_pool(cluster, lines)
        else:
            try:
                key = label_key(cluster, by)
            except LabelError as problem:
                raise Trouble(str(problem)) from None
            groups = by_label(cluster, lines, key)
        if choice.of_lines:
            groups = tuple(group for group in groups if group.blocks)
        if choice.any and not groups:
            return None
        said = tuple(str(state) for state in type(next(iter(states))) if state in states)
        return ClusterAggregates(
            name=cluster.name, label=key, states=said, groups=groups, started=started_with(cluster, lock)
        )

    return make


def write(output: str, found: Sequence[ClusterAggregates], match: str, at: Mapping[str, object]) -> None:
    """Write aggregates to stdout. `at`: what JSON says of the moment."""
    from ipamc.report.aggregates import FORMATS, VERSION, record, render

    if output == "json":
        records = list(map(record, found))
        show_record({"version": VERSION, **at, "clusters": records})
    elif output in FORMATS:
        show(FORMATS[output](found, match))
    else:
        show(render(found, colour=colour(sys.stdout)))
