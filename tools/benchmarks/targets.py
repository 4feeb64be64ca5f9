"""What ipamc is to reach, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from compile import Measured
from fleet import speedup
from measure import Cost
from peers import COMMANDS, TITLES, ratio
from scaling import exponents

HEAD = ("goal", "at most", "measured", "met")
COMPILES = {
    ("slim JSON", 5_000): (0.20, None),
    ("slim JSON", 20_000): (0.45, None),
    ("slim JSON", 100_000): (1.6, 400),
    ("slim YAML", 5_000): (0.35, None),
    ("slim YAML", 20_000): (1.0, None),
    ("slim YAML", 100_000): (5.0, 600),
    ("full JSON", 5_000): (0.9, 300),
    ("full YAML", 5_000): (2.0, 250),
}
"""Seconds and MB of `full`."""
LARGE = 100_000
EXPONENT = 1.05
AGAIN = 0.6
PLAN = 1.5
SPEEDUP = 1.8
FLEET_SECONDS = 60
START = 0.08


@dataclass(kw_only=True)
class Results:
    """Everything that was measured; what was not is empty."""

    compiles: list[Measured] = field(default_factory=list)
    peers: dict[int, dict[str, Cost]] = field(default_factory=dict)
    grown: dict[str, dict[int, Cost]] = field(default_factory=dict)
    fleets: dict[tuple[int, int], dict[int, Cost]] = field(default_factory=dict)
    starts: dict[str, Cost] = field(default_factory=dict)


Row = tuple[str, str, str, str]


def rows(results: Results) -> list[Row]:
    """Return a row for each goal that can be judged."""
    return [
        *(row for measured in results.compiles for row in _compile(measured)),
        *(row for count, costs in results.peers.items() for row in _ahead(count, costs)),
        *(row for kind, costs in results.grown.items() if len(costs) > 1 for row in _growth(kind, costs)),
        *_fleets(results),
        *(_most(name, cost.wall, START, "s", 3) for name, cost in results.starts.items()),
    ]


def _most(goal: str, measured: float, most: float, unit: str, digits: int = 2) -> Row:
    return goal, f"{most:g} {unit}", f"{measured:.{digits}f} {unit}", "yes" if measured <= most else "**no**"


def _is(goal: str, wanted: str, measured: str, *, met: bool) -> Row:
    return goal, wanted, measured, "yes" if met else "**no**"


def _compile(measured: Measured) -> Iterator[Row]:
    what, costs = f"{measured.count:,} nodes, {measured.kind}", measured.costs
    seconds, memory = COMPILES.get((measured.kind, measured.count), (None, None))
    if seconds:
        yield _most(f"compile {what}", costs["full"].wall, seconds, "s")
    if memory:
        yield _most(f"compile {what}: memory", costs["full"].memory / 1e6, memory, "MB", 0)
    if "again" in costs:
        share = costs["again"].wall / costs["full"].wall
        yield _most(f"nothing changed, {what}", 100 * share, 100 * AGAIN, "% of a compile", 0)
        paths = measured.touched["again"]
        yield _is(f"nothing changed, {what}: files written", "none", str(len(paths)), met=not paths)
    if "more" in costs:
        paths = measured.touched["more"]
        shards = {path.parent for path in map(PurePosixPath, paths) if path.name != "ipam.lock"}
        yield _is(
            f"one node more, {what}",
            "a shard's files, the lock",
            f"files of {len(shards)} shards" if len(shards) > 1 else "so it is",
            met=len(shards) <= 1,
        )
    if "plan" in costs and measured.count >= LARGE:
        share = costs["plan"].wall / costs["full"].wall
        yield _most(f"plan, {what}", share, PLAN, "compiles")
    if "which" in costs:
        said = "yes" if measured.which_reads else "no"
        yield _is(f"which reads the inventory, {what}", "no", said, met=not measured.which_reads)


def _ahead(count: int, costs: dict[str, Cost]) -> Iterator[Row]:
    for name in costs:
        if name in COMMANDS:
            share = 1 / ratio(name, costs)
            yield _most(f"ahead of {TITLES[name]}, {count:,} nodes", share, 1, "of its time")


def _growth(kind: str, costs: dict[int, Cost]) -> Iterator[Row]:
    wall, _, memory = exponents(costs)
    sizes: Sequence[int] = sorted(costs)
    for what, value in (("seconds", wall), ("memory", memory)):
        goal = f"{what} grow, {sizes[0]:,} to {sizes[-1]:,} nodes, {kind}"
        yield _most(goal, value, EXPONENT, "exponent")


def _fleets(results: Results) -> Iterator[Row]:
    for (clusters, count), costs in results.fleets.items():
        if 2 in costs and (clusters, count) == (100, 500):
            value = speedup(costs, 2)
            goal = "two processes, 100 clusters of 500 nodes"
            yield _is(goal, f"at least {SPEEDUP} times one", f"{value:.2f} times", met=value >= SPEEDUP)
        if 2 in costs and (clusters, count) == (1_000, 200):
            yield _most("1,000 clusters of 200 nodes, two processes", costs[2].wall, FLEET_SECONDS, "s", 1)
