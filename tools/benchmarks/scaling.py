"""Measure how seconds and memory of a full compile grow with the nodes, and fit an exponent.

    python tools/benchmarks/scaling.py [NODES ...] [--inventory KIND ...] [--runs N]

Default: 5000 10000 20000 50000 100000, slim, 3 runs

The exponent is the slope of the line through the logarithms, by least squares: 1 is linear, 2 quadratic. Of each
size the least of so many runs counts, because other work of a machine only adds. Nothing is subtracted: the time and
the memory of an empty run are in it, so the exponent is below 1 where they weigh much. The last column is the slope
between the two largest sizes alone, where they weigh least.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from inputs import KINDS
from measure import Cost, least
from scene import Scene
from tables import FIGURES, figures, table

NODES = (5_000, 10_000, 20_000, 50_000, 100_000)
HEAD = ("inventory", "nodes", *FIGURES)
FIT_HEAD = ("inventory", "exponent of seconds", "of processor", "of memory", "of processor, last step")
Grown = Mapping[str, Mapping[int, Cost]]


def exponent(points: Mapping[int, float]) -> float:
    """Return k of the power law c * n^k that fits values by size best: least squares over the logarithms."""
    sizes = [math.log(size) for size in points]
    return statistics.linear_regression(sizes, [math.log(value) for value in points.values()]).slope


def exponents(costs: Mapping[int, Cost]) -> tuple[float, float, float]:
    """Return those of seconds, of processor seconds and of memory."""
    return (
        exponent({count: cost.wall for count, cost in costs.items()}),
        exponent({count: cost.seconds for count, cost in costs.items()}),
        exponent({count: cost.memory for count, cost in costs.items()}),
    )


def last_step(costs: Mapping[int, Cost]) -> float:
    """Return the exponent of processor seconds between the two largest sizes."""
    return exponent({count: costs[count].seconds for count in sorted(costs)[-2:]})


def measure(kinds: Sequence[str], counts: Sequence[int], runs: int) -> dict[str, dict[int, Cost]]:
    """Compile clusters of each size; return the least of so many runs."""
    found: dict[str, dict[int, Cost]] = {}
    for kind in kinds:
        for count in counts:
            with tempfile.TemporaryDirectory() as scratch:
                scene = Scene(Path(scratch), kind, count)
                found.setdefault(kind, {})[count] = least([scene.run("full") for _ in range(max(runs, 1))])
    return found


def rows(grown: Grown) -> list[list[str]]:
    """Return a row for each size."""
    return [
        [kind, f"{count:,}", *figures(cost)] for kind, costs in grown.items() for count, cost in costs.items()
    ]


def fits(grown: Grown) -> list[list[str]]:
    """Return a row for each kind of inventory. One size has no exponent."""
    return [
        [kind, *(f"{value:.2f}" for value in (*exponents(costs), last_step(costs)))]
        for kind, costs in grown.items()
        if len(costs) > 1
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int)
    parser.add_argument("--inventory", nargs="+", choices=KINDS, default=KINDS[:2])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    grown = measure(options.inventory, options.nodes or NODES, options.runs)
    print(table(HEAD, rows(grown)), table(FIT_HEAD, fits(grown)), sep="\n\n")


if __name__ == "__main__":
    main()
