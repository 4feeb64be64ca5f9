"""Measure how the cost of an input grows with its size: each shape is compiled with n and with 4n parts.

    python tools/benchmarks/growth.py [NAME ...]      default: all shapes; NAME is a part of a shape's name

After them come whole repositories (`verbs.py`), with n and 2n parts, for every verb that reads them.

A shape is a function from n to the files of a cluster, by path below its folder; `shapes()` of each module in
`tools/benchmarks/shapes/` returns shapes by name. A Cluster is added where a shape has no `cluster.yaml`. Every
measurement is a cold process of `ipamc compile --check`, refused or not, that writes a report in each format.

n grows until a run costs BASE seconds more than that of an empty cluster, or the input has LARGEST bytes or parts.
The cost is processor time less that of the empty cluster, the best of some runs. A shape fails if 4n costs more than
4 * LIMIT times as much as n: a ratio within one run, so the machine does not matter. It fails too if an input
of HEAVY bytes takes more than BYTES of memory for each of them, beside what ten thousand findings take.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from inputs import CLUSTER
from measure import IPAMC, Cost, least, run
from verbs import CASES, READING, RUNNING, Case
from verbs import measure as measure_verbs

Files = Mapping[str, str | bytes]
Shape = Callable[[int], Files]

LIMIT = 1.3
BASE = 0.25
FREE = 0.15
"""Seconds beyond the ratio: a shape that is refused at once costs next to nothing at any size."""
LARGEST = 1 << 20
BYTES = 40
HEAVY = 4 << 20
SLACK = 128 << 20
"""Bytes of memory that any input may take: a cluster has at most some 10,000 findings, here in six formats."""
RUNS = 3
TIMEOUT = 120
MODULES = ("reading", "placing")
FORMATS = ("json", "github", "gitlab", "sarif", "junit", "concise")
EMPTY: Files = {"pool.yaml": "apiVersion: ipamc/v1alpha1\nkind: IPPool\nmetadata: {name: a}\n"
                "spec: {ipv4: {cidrs: [10.0.0.0/8], blockSize: 26}}\n"}  # fmt: skip


def shapes() -> dict[str, Shape]:
    """Return the shapes of all modules by name. A module that is not there has none."""
    found: dict[str, Shape] = {}
    for name in MODULES:
        with contextlib.suppress(ModuleNotFoundError):
            found |= importlib.import_module(f"shapes.{name}").shapes()
    return found


def size(files: Files) -> int:
    return sum(len(content) for content in files.values())


def cost(files: Files, runs: int) -> Cost:
    """Compile a cluster of these files in cold processes; return the least time and the least memory."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "clusters" / "bench"
        for name, content in {"cluster.yaml": CLUSTER, **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
            )
        done = [_run(Path(scratch)) for _ in range(runs)]
    return least(done)._replace(code=done[0].code)


def _run(top: Path) -> Cost:
    """Compile with a report in each format.

    A shape that is far from linear ends by a signal, and does not take the machine with it.
    """
    reports = [word for name in FORMATS for word in ("--report", f"{name}={top}/report.{name}")]
    command = [*IPAMC, "compile", "--check", "--jobs", "1", *reports]
    return run(command, top, codes=None, limits=(TIMEOUT, 4 << 30))


def less(cost: Cost, start: Cost) -> Cost:
    """Return what a process took beyond another one."""
    return cost._replace(seconds=max(cost.seconds - start.seconds, 0.001), memory=cost.memory - start.memory)


def measure(shape: Shape, start: Cost) -> tuple[int, Files, Cost, Files, Cost]:
    """Return n, and files and cost of n and of 4n parts. A first look decides on n."""
    parts = 64
    while True:
        files = shape(parts)
        once = less(cost(files, 1), start)
        if once.seconds >= BASE or once.code not in {0, 1} or max(size(files), parts) >= LARGEST:
            break
        parts *= 4 if once.seconds < BASE / 8 else 2
    grown = shape(4 * parts)
    return parts, files, less(cost(files, RUNS), start), grown, less(cost(grown, RUNS), start)


def weigh(shape: Shape, start: Cost) -> tuple[float, Cost]:
    """Return the bytes of memory for each byte of a large input, and what it cost."""
    parts = 1024
    while size(files := shape(parts)) < HEAVY and parts < HEAVY:
        parts = min(max(2 * parts, parts * HEAVY // max(size(files), 1)), HEAVY)
    once = less(cost(files, 1), start)
    return max(once.memory - SLACK, 0) / size(files), once


def double(name: str, case: Case, wanted: Sequence[str]) -> Iterator[str]:
    """Print what each verb costs for n and 2n parts of a repository; yield the names of those that fail.

    One run is enough where it passes; the others are measured again.
    """
    if wanted and not any(part in name for part in wanted):
        return
    verbs: Sequence[str] = case.verbs or (*READING, *RUNNING)
    for runs in (1, RUNS):
        failed = []
        for verb, (start, before, after) in measure_verbs(case, verbs, runs).items():
            small, large = less(before, start).seconds, less(after, start).seconds
            slow = large - FREE > 2 * LIMIT * small
            bad = ["SLOW"] * slow + [f"EXIT {after.code}"] * (after.code not in {0, 1})
            failed += [verb] if bad else []
            figures = (
                f"{case.parts:>9,} {'':>6} {small:>6.2f} {'':>7} {large:>6.2f} {large / small / 2:>6.2f}"
            )
            print(f"{f'{name}, {verb}':<46} {figures} {' '.join(bad)}", flush=True)
        verbs = failed
        if not verbs:
            break
    yield from (f"{name}, {verb}" for verb in verbs)


def main() -> None:
    wanted = sys.argv[1:]
    start = cost(EMPTY, 2 * RUNS)
    print(f"empty cluster: {start.seconds:.2f} s, {start.memory / 2**20:.0f} MB")
    print(
        f"{'shape':<46} {'n':>9} {'MB':>6} {'s':>6} {'4n: MB':>7} {'s':>6} {'growth':>6} {'large: s':>8} {'bytes':>6}"
    )
    failed = []
    for name, shape in shapes().items():
        if wanted and not any(part in name for part in wanted):
            continue
        parts, small, before, large, after = measure(shape, start)
        weight, heavy = weigh(shape, start)
        growth = after.seconds / before.seconds / 4
        slow = after.seconds - FREE > 4 * LIMIT * before.seconds
        bad = [word for word, true in (("SLOW", slow), ("LARGE", weight > BYTES)) if true]
        bad += [f"EXIT {each.code}" for each in (before, after, heavy) if each.code not in {0, 1}]
        failed += [name] if bad else []
        figures = f"{size(small) / 1e6:>6.2f} {before.seconds:>6.2f} {size(large) / 1e6:>7.2f} {after.seconds:>6.2f}"
        more = f"{growth:>6.2f} {heavy.seconds:>8.2f} {weight:>6.0f}"
        print(f"{name:<46} {parts:>9,} {figures} {more} {' '.join(bad)}", flush=True)
    failed += [each for name, case in CASES.items() for each in double(name, case, wanted)]
    if failed:
        sys.exit(f"{len(failed)} shapes cost more than they weigh: {', '.join(failed)}")


if __name__ == "__main__":
    main()
