"""Measure many clusters at once, with one process and with two, and how long a command takes that does no work.

    python tools/benchmarks/fleet.py [CLUSTERSxNODES ...] [--runs N]              default: 100x500 1000x200
    python tools/benchmarks/fleet.py --space [CLUSTERSxNODES ...] [--runs N]      default: 1000x1000 3000x1000

Each run is the first compile of all clusters, from JSON: no lock, no rendered files. The processor's seconds are
those of all processes; the memory is that of the largest. The medians of so many runs; from 1,000 clusters on one run.

With --space the clusters are of one address space. The first compile of all of them is followed by what people and
pipelines ask of it, each in a cold process; the least of so many runs.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from inputs import as_json, nodes, start
from measure import Cost, alternate, ipamc, least
from tables import FIGURES, figures, table

from ipamc.model.cidr import Block

FLEETS = ((100, 500), (1_000, 200))
JOBS = (1, 2)
SPACES = ((1_000, 1_000), (3_000, 1_000))
MANY = 1_000
"""So many clusters are compiled once with each number of processes."""
HEAD = ("clusters", "nodes each", "processes", *FIGURES, "times one")
START_HEAD = ("command", *FIGURES)
SPACE_HEAD = ("clusters", "nodes each", "command", *FIGURES)
STARTS = {"ipamc --version": ("--version",), "ipamc completion bash": ("completion", "bash")}
Costs = Mapping[tuple[int, int], Mapping[int, Cost]]


def measure(fleets: Sequence[tuple[int, int]], runs: int) -> dict[tuple[int, int], dict[int, Cost]]:
    """Compile fleets of (clusters, nodes of each) with each number of processes in turn."""
    found = {}
    for clusters, count in fleets:
        with tempfile.TemporaryDirectory() as scratch:
            top = Path(scratch)
            inventory = as_json(nodes(range(count)))
            folders = [start(top, f"c{number:04}") for number in range(clusters)]
            for folder in folders:
                (folder / "nodes.json").write_text(inventory)
            works = {str(jobs): partial(_compile, top, folders, jobs) for jobs in JOBS}
            costs = alternate(works, 0 if clusters >= MANY else runs)
            found[clusters, count] = {int(jobs): cost for jobs, cost in costs.items()}
    return found


def measure_starts(runs: int) -> dict[str, Cost]:
    """Run commands that do no work; return the medians of five times as many runs."""
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        return alternate({name: partial(ipamc, top, *words) for name, words in STARTS.items()}, 5 * runs)


def _compile(top: Path, folders: Sequence[Path], jobs: int) -> Cost:
    for folder in folders:
        shutil.rmtree(folder / "rendered", ignore_errors=True)
        (folder / "ipam.lock").unlink(missing_ok=True)
    return ipamc(top, "compile", "--jobs", str(jobs))


BLOCK = 28
POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: pods}}
spec:
  ipv4: {{cidrs: [{cidr}], blockSize: {block}}}
"""
SPACE = """\
apiVersion: ipamc/v1alpha1
kind: AddressSpace
metadata: {{name: fabric}}
spec:
  ipv4: {{cidrs: [{cidrs}], prefixLength: {prefix}}}
"""


def write_space(top: Path, clusters: int, count: int) -> None:
    """Write an address space and clusters that ask it for a range each, which are not compiled."""
    inventory = as_json(nodes(range(count)))
    prefix = int(ranges(1, count)[0].partition("/")[2])
    for number in range(clusters):
        pool = POOL.replace("cidrs: [{cidr}]", f"from: fabric, prefixLength: {prefix}").format(block=BLOCK)
        folder = start(top, f"c{number:04}", pool)
        (folder / "nodes.json").write_text(inventory)
        with (folder / "cluster.yaml").open("a") as file:
            file.write("  addressSpace: fabric\n")
    (top / "clusters/fabric").mkdir()
    cidrs = ", ".join(f"{10 + number}.0.0.0/8" for number in range((clusters << 24 - prefix + 8 >> 24) + 1))
    (top / "clusters/fabric/space.yaml").write_text(SPACE.format(cidrs=cidrs, prefix=prefix))


def measure_space(clusters: int, count: int, runs: int) -> Iterator[tuple[str, Cost]]:
    """Yield what commands cost in an address space of so many clusters."""
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        write_space(top, clusters, count)
        yield "compile", ipamc(top, "compile")
        last = f"c{clusters - 1:04}"
        held = (top / f"clusters/{last}/ipam.lock").read_text().splitlines()[-1].split('"')[3]
        for words in (
            ("compile", last, "--locked", "--check"),
            ("compile", "fabric", "--locked", "--check"),
            ("compile", "--locked", "--check"),
            ("which", held.partition("/")[0]),
            ("which", "9.9.9.9"),
            ("which", "no-such-node"),
        ):
            again = 0 if words == ("compile", "--locked", "--check") else runs
            yield " ".join(words), least([ipamc(top, *words, codes=(0, 1)) for _ in range(again + 1)])


def ranges(clusters: int, count: int) -> list[str]:
    """Return the CIDR of each cluster, one behind the other from 10.0.0.0 on: the least with a block for each node."""
    bits = 32 - BLOCK + max(count - 1, 1).bit_length()
    return [str(Block(4, (10 << 24) + (number << bits), 32 - bits)) for number in range(clusters)]


def speedup(costs: Mapping[int, Cost], jobs: int) -> float:
    """Return how many times as fast so many processes are as one."""
    return costs[1].wall / costs[jobs].wall


def rows(found: Costs) -> list[list[str]]:
    """Return a row for each fleet and number of processes."""
    return [
        [f"{clusters:,}", f"{count:,}", str(jobs), *figures(cost), f"{speedup(costs, jobs):.2f}"]
        for (clusters, count), costs in found.items()
        for jobs, cost in costs.items()
    ]


def start_rows(found: Mapping[str, Cost]) -> list[list[str]]:
    """Return a row for each command."""
    return [
        [name, f"{cost.wall:.3f}", f"{cost.seconds:.3f}", f"{cost.memory / 1e6:.0f}"]
        for name, cost in found.items()
    ]


def fleet(text: str) -> tuple[int, int]:
    """Return clusters and nodes of `100x500`."""
    clusters, _, count = text.partition("x")
    return int(clusters), int(count)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("fleets", nargs="*", type=fleet, metavar="CLUSTERSxNODES")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--space", action="store_true")
    options = parser.parse_args()
    if options.space:
        for clusters, count in options.fleets or SPACES:
            found = measure_space(clusters, count, options.runs)
            named = [[f"{clusters:,}", f"{count:,}", name, *figures(cost)] for name, cost in found]
            print(table(SPACE_HEAD, named), flush=True)
        return
    print(table(HEAD, rows(measure(options.fleets or FLEETS, options.runs))), "", sep="\n")
    print(table(START_HEAD, start_rows(measure_starts(options.runs))))


if __name__ == "__main__":
    main()
