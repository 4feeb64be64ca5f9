"""Measure ipamc as a user runs it: cold processes, over a slim inventory and a full dump, in JSON and in YAML.

    python tools/benchmarks/compile.py [NODES ...] [--inventory KIND ...] [--run RUN ...] [--runs N]      default: 5000 20000, slim

What each run does stands in `scene.py`. Prints the medians of so many runs, after a round that is not counted, and
how long a run takes in parts of `full`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inputs import KINDS
from measure import Cost, alternate
from scene import RUNS, Scene
from tables import FIGURES, figures, table

NODES = (5_000, 20_000)
HEAD = ("nodes", "inventory", "run", *FIGURES, "of full", "files written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the runs over one cluster took."""

    kind: str
    count: int
    costs: dict[str, Cost]
    touched: dict[str, list[str]] = field(default_factory=dict)
    """The files that a run wrote, for `again` and `more`."""
    which_reads: bool = False
    """`which` of an address that a node has reads the inventory."""

    @property
    def rows(self) -> list[list[str]]:
        """A row for each run."""
        return [
            [
                f"{self.count:,}",
                self.kind,
                name,
                *figures(cost),
                f"{cost.wall / self.costs['full'].wall:.0%}",
                self._written(name),
            ]
            for name, cost in self.costs.items()
        ]

    def _written(self, name: str) -> str:
        if name not in self.touched:
            return ""
        paths = self.touched[name]
        return "none" if not paths else ", ".join(paths) if len(paths) < 6 else f"{len(paths)} files"


def measure(kind: str, count: int, runs: int, names: Iterable[str] = RUNS) -> Measured:
    """Run over a cluster of one kind of inventory. `full` always runs."""
    with tempfile.TemporaryDirectory() as scratch:
        scene = Scene(Path(scratch), kind, count, {"full", *names})
        costs = alternate(scene.contestants(), runs)
        reads = "which" in costs and scene.reads_inventory("which")
        return Measured(kind=kind, count=count, costs=costs, touched=scene.touched, which_reads=reads)


def measure_all(
    kinds: Sequence[str], counts: Sequence[int], runs: int, names: Iterable[str] = RUNS
) -> list[Measured]:
    """Measure each kind of inventory at each size."""
    return [measure(kind, count, runs, names) for count in counts for kind in kinds]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int)
    parser.add_argument("--inventory", nargs="+", choices=KINDS, default=KINDS[:2])
    parser.add_argument("--run", nargs="+", choices=RUNS, default=RUNS)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    found = measure_all(options.inventory, options.nodes or NODES, options.runs, options.run)
    print(table(HEAD, [row for measured in found for row in measured.rows]))


if __name__ == "__main__":
    main()
