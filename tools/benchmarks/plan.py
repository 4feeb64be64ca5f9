"""Measure `ipamc plan` as a user runs it: a cold process, against HEAD and against the disk.

    python tools/benchmarks/plan.py [NODES ...] [--inventory KIND ...] [--runs N]      default: 5000 20000, slim, 5 runs

A repository with one cluster, compiled and committed; then one node joins, or 500 do, or a range is added to a pool. Prints wall time in seconds, the best
of so many runs, and the peak of resident memory in MB. The goal is 1 s for 5,000 nodes against HEAD.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from inputs import KINDS, pools, start, write_inventory
from measure import git, ipamc, least


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int)
    parser.add_argument("--inventory", nargs="+", choices=KINDS[:2], default=KINDS[:2])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{'':<50}  {'seconds':>7}  {'MB':>6}", flush=True)
    for count in options.nodes or [5_000, 20_000]:
        for kind in options.inventory:
            _measure(kind, count, options.runs)


def _measure(kind: str, count: int, runs: int) -> None:
    wider = pools().replace("[10.0.0.0/12]", "[10.0.0.0/12, 11.0.0.0/12]")
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        cluster = start(top)
        write_inventory(cluster, kind, range(count))
        git(top, "init", "-q")
        ipamc(top, "compile")
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", "compiled")
        for label, number, pool_text in (
            ("nothing changes", count, pools()),
            ("a range is added", count, wider),
            ("a node joins", count + 1, pools()),
            ("500 nodes join", count + 500, pools()),
        ):
            (cluster / "ippools.yaml").write_text(pool_text)
            write_inventory(cluster, kind, range(number))
            for against, arguments in (("HEAD", ["--base", "HEAD"]), ("disk", [])):
                words = ("plan", "--output", "markdown", *arguments)
                best = least([ipamc(top, *words) for _ in range(runs)])
                title = f"{count:>7,}  {kind}  {label:<17} against {against}"
                print(f"{title:<50}  {best.wall:>7.2f}  {best.memory / 1e6:>6.0f}", flush=True)


if __name__ == "__main__":
    main()
