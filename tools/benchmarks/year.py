"""Measure what a year of changes does to the git repository of a fleet.

    python tools/benchmarks/year.py [CLUSTERSxNODES] [--days N] [--changes N]      default: 200x500, 250 days, 20 changes a day

Each change is one node of a cluster that leaves and another one that joins; each day is a commit of what `ipamc
compile` makes of its changes: inventories, locks and manifests. Nothing is random. Prints the repository's size at
the beginning and at the end, packed as `git gc` does, what a change costs, and the seconds of ordinary commands.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import tempfile
from pathlib import Path

from fleet import BLOCK, POOL, fleet, ranges
from inputs import as_yaml, nodes, start
from measure import Cost, git, run
from tables import table

from ipamc.cli import main as ipamc

HEAD = ("moment", "files", "commits", "MB checked out", "MB packed")


def write(top: Path, clusters: int, count: int) -> None:
    """Write a fleet that is compiled, and commit it."""
    for number, cidr in enumerate(ranges(clusters, 2 * count)):
        folder = start(top, f"c{number:04}", POOL.format(cidr=cidr, block=BLOCK))
        (folder / "nodes.yaml").write_text(as_yaml(nodes(range(count))))
    git(top, "init", "-q")
    _commit(top, "compile", "--jobs", "1")


def live(top: Path, clusters: int, count: int, days: int, changes: int) -> None:
    """Let so many days pass, each with so many changes, in clusters one after the other."""
    joined = dict.fromkeys(range(clusters), count)
    for day in range(days):
        some = sorted({(day * changes + change) * 7 % clusters for change in range(changes)})
        for number in some:
            joined[number] += 1
            there = range(joined[number] - count, joined[number])
            (top / f"clusters/c{number:04}/nodes.yaml").write_text(as_yaml(nodes(there)))
        _commit(top, "compile", "--jobs", "1", *(f"c{number:04}" for number in some))


def _commit(top: Path, *words: str) -> None:
    with contextlib.chdir(top), contextlib.redirect_stderr(io.StringIO()) as said:
        if code := ipamc(list(words)):
            raise SystemExit(f"ipamc {' '.join(words)} ended with {code}:\n{said.getvalue()[:4000]}")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "change")


def row(top: Path, moment: str) -> list[str]:
    """Pack a repository; return its size."""
    git(top, "gc", "-q", "--prune=now")
    files = [path for path in (top / "clusters").rglob("*") if path.is_file()]
    packed = sum(path.stat().st_size for path in (top / ".git/objects/pack").iterdir())
    commits = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=top, check=True, capture_output=True, text=True
    ).stdout.strip()
    size = sum(path.stat().st_size for path in files)
    return [moment, f"{len(files):,}", commits, f"{size / 1e6:.1f}", f"{packed / 1e6:.2f}"]


def commands(top: Path) -> dict[str, Cost]:
    """Return what commands cost that a pipeline runs, in the repository and in a clone of it."""
    url = f"file://{top}"
    return {
        "git status": run(["git", "status", "--short"], top),
        "git log -1 of one cluster": run(["git", "log", "-1", "--", "clusters/c0000"], top),
        "git clone": run(["git", "clone", "-q", url, "whole"], top.parent),
        "git clone --depth 1": run(["git", "clone", "-q", "--depth", "1", url, "shallow"], top.parent),
        "git clone --filter=blob:none": run(
            ["git", "-c", "uploadpack.allowFilter=1", "clone", "-q", "--filter=blob:none", url, "partial"],
            top.parent,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("fleet", nargs="?", type=fleet, default=(200, 500), metavar="CLUSTERSxNODES")
    parser.add_argument("--days", type=int, default=250)
    parser.add_argument("--changes", type=int, default=20)
    options = parser.parse_args()
    clusters, count = options.fleet
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch, "fleet")
        top.mkdir()
        write(top, clusters, count)
        rows = [row(top, "compiled")]
        live(top, clusters, count, options.days, options.changes)
        git(top, "config", "uploadpack.allowFilter", "true")
        rows.append(row(top, f"{options.days} days later"))
        print(table(HEAD, rows), "", sep="\n")
        found = commands(top)
        print(
            table(
                ("command", "seconds", "processor"),
                [[name, f"{cost.wall:.2f}", f"{cost.seconds:.2f}"] for name, cost in found.items()],
            )
        )


if __name__ == "__main__":
    main()
