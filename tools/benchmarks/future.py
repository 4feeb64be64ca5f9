"""How long the questions about the future take: `forecast`, `forecast --what-if` and `suggest pool`.

    .venv/bin/python tools/benchmarks/future.py [NODES...] [--weeks N] [--runs N]      default: 5000 100000 nodes, 50 weeks, 3 runs

The lock has a commit in each week, in which a part of the nodes joins: the last tenth of them, in equal steps. Prints
processor seconds and the peak of memory, the least of the runs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from inputs import start, write_inventory
from measure import git, ipamc, least
from tables import table

WEEK = 7 * 86_400


def main() -> None:
    """Print a row for each number of nodes and question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int, default=[5_000, 100_000])
    parser.add_argument("--weeks", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for count in options.nodes:
        with tempfile.TemporaryDirectory() as scratch:
            rows += _rows(Path(scratch), count, options.weeks, options.runs)
    print(table(("nodes", "question", "processor seconds", "MB of memory"), rows))


def _rows(top: Path, count: int, weeks: int, runs: int) -> list[list[str]]:
    folder = start(top)
    git(top, "init", "--quiet")
    now = int(time.time())
    for week in range(1, weeks + 1):
        write_inventory(folder, "slim JSON", range(count - count * (weeks - week) // (10 * weeks)))
        ipamc(top, "lock")
        git(top, "add", "clusters/bench/ipam.lock")
        os.environ["GIT_COMMITTER_DATE"] = f"@{now - WEEK * (weeks - week)} +0000"
        git(top, "commit", "--quiet", "--allow-empty", "--message", f"week {week}")
    questions = (
        ("show", "bench"),
        ("forecast", "bench"),
        ("forecast", "bench", "--what-if", "+40 topology.kubernetes.io/zone=zone-1"),
        ("suggest", "pool", "bench", "--size", "19", "--from", "172.16.0.0/12"),
    )
    rows = []
    for words in questions:
        cost = least([ipamc(top, *words) for _ in range(max(runs, 1))])
        rows.append([f"{count:,}", " ".join(words), f"{cost.seconds:.2f}", f"{cost.memory / 1e6:.0f}"])
    return rows


if __name__ == "__main__":
    main()
