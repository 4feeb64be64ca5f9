"""Measure `ipamc which` as a user runs it: a cold process, over the locks of many clusters.

    python tools/benchmarks/which.py [CLUSTERS [NODES]] [--runs N]      default: 100 clusters of 1000 nodes, 9 runs

Prints wall time in seconds, the best of so many runs and the middle one, after one that is not counted: of a process that only starts, of an address, a CIDR and a node that are found in
one cluster, and of an address in the past (`--at HEAD`). Every other cluster is looked through as well.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from inputs import start
from measure import git, ipamc

from ipamc.lock.file import dumps
from ipamc.model.cidr import Block
from ipamc.model.cluster import Mode
from ipamc.model.lock import Line, Lock


def write(folder: Path, clusters: int, nodes: int) -> None:
    """Write clusters whose locks lie one behind the other, a /26 a node."""
    for number in range(clusters):
        name = f"cluster-{number:04}"
        base = (10 << 24) + number * nodes * 64
        lines = tuple(
            Line(
                block=Block(4, base + index * 64, 26), pool="pods", node=f"node-{index:06}.{name}.example.org"
            )
            for index in range(nodes)
        )
        (start(folder, name) / "ipam.lock").write_text(
            dumps(Lock(cluster=name, mode=Mode.CLUSTER_POOL, shards=1, lines=lines))
        )
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "b")


def seconds(runs: int, folder: Path, *arguments: str) -> tuple[float, float]:
    """Run the command line so many times in a cold process; give the best and the middle time."""
    spent = [ipamc(folder, *arguments).wall for _ in range(runs + 1)][1:]
    return min(spent), statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clusters", nargs="?", type=int, default=100)
    parser.add_argument("nodes", nargs="?", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    clusters, nodes = options.clusters, options.nodes
    last = f"node-{nodes - 1:06}.cluster-{clusters - 1:04}.example.org"
    first = (10 << 24) + (clusters * nodes - 1) * 64
    address = str(Block(4, first + 7, 32)).removesuffix("/32")
    print(f"{clusters} clusters of {nodes:,} nodes\n{'':<24}  {'best':>6}  {'middle':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch), clusters, nodes)
        for label, arguments in (
            ("ipamc --version", ["--version"]),
            ("which IP", ["which", address]),
            ("which CIDR", ["which", str(Block(4, first, 26))]),
            ("which NODE", ["which", last]),
            ("which IP --at HEAD", ["which", address, "--at", "HEAD"]),
        ):
            best, middle = seconds(options.runs, Path(scratch), *arguments)
            print(f"{label:<24}  {best:>6.3f}  {middle:>6.3f}", flush=True)


if __name__ == "__main__":
    main()
