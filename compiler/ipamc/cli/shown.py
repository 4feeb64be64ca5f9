"""What `ipamc show` and `ipamc aggregates` read, and how they choose pools and blocks of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from ipamc.cli.findings import Problems
from ipamc.model.diagnostics import count

if TYPE_CHECKING:
    from ipamc.model.cluster import Scheme
    from ipamc.model.lock import Lock
    from ipamc.review.shown_pools import Choice
    from ipamc.workspace.source import Source

Made = TypeVar("Made")

STATES = ("held", "pending", "quarantined", "released")
POOL = "Only this pool, or the pools that match a pattern such as 'rack-*'."
NODE = "Only the blocks of this node, or of nodes that match a pattern, and their pools."


class Reading(Struct):
    """The clusters to show. A refused cluster does not stop the others."""

    source: Source
    choice: Choice
    problems: Problems = field(default_factory=Problems)
    pools: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def read(self, make: Callable[[Scheme, Lock], Made | None]) -> list[Made]:
        """Return the results of `make` that are not None."""
        from ipamc.pipeline import load_folder

        found = []
        for folder in self.source.folders:
            with self.problems.of(folder):
                cluster, lock = load_folder(self.source.inputs(folder, rendered=False))
                self.pools.update(cluster.pools_by_name)
                if self.choice.nodes:
                    self.nodes.update(line.node for line in lock.lines)
                if made := make(cluster, lock):
                    found.append(made)
        return found

    def missing(self) -> list[str]:
        """Return a line for each value of --pool and --node that matches nothing, with a similar name."""
        from ipamc.model.wording import nearest_name, suggestion
        from ipamc.review.shown_pools import without_match

        where = count(len(self.source.folders), "cluster")
        asked = (("pool", self.choice.pools, self.pools), ("node", self.choice.nodes, self.nodes))
        return [
            f"no {kind} of {where} is named {name}{f': {near}' if near else ''}"
            for kind, names, known in asked
            for name in without_match(names, known)
            for near in [suggestion(name, known, nearest_name)]
        ]

    def nothing(self) -> str:
        """Return the line for filters of which each matches something, but no block matches all."""
        choice = self.choice
        chosen = (("of pool", choice.pools), ("of node", choice.nodes), ("that is", sorted(choice.states)))
        asked = [f"{what} {' or '.join(some)}" for what, some in chosen if some]
        unread = " (some could not be read)" if self.problems else ""
        return f"{count(len(self.source.folders), 'cluster')}{unread}: no block {' '.join(asked)}"

    def unmatched(self, found: Sequence[object]) -> list[str]:
        """Return a line for each filter that matches nothing, or for all of them together."""
        missing = self.missing()
        return missing or ([] if found or not self.choice.of_lines else [self.nothing()])

    def conclude(self, style: str) -> int:
        """Print the findings; return the exit code."""
        return self.problems.conclude(style, answered=not self.missing())
