"""Measure everything that ipamc promises about speed, beside the tools that people would use instead.

    make bench      or      python tools/benchmarks/bench.py [options]; see --help

Prints each table as it is complete, and at the end the goals with what was measured. With --output it writes all of it
to a file of Markdown, which is how RESULTS.md comes to be. A full run takes some 40 minutes on 2 cores; --runs 0 takes one round of
everything. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from pathlib import Path

import compile as compiles
import fleet
import peers
import scaling
import targets
from inputs import KINDS
from tables import machine, table
from targets import Results

from ipamc import __version__

SECTIONS = ("peers", "slim", "full", "growth", "fleets", "start")
SLIM = (5_000, 20_000, 100_000)
FULL = (5_000,)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="parts (default: all)")
    add("--runs", type=int, default=5, help="medians of so many, after one that is not counted (default: 5)")
    add("--peers", nargs="+", type=int, default=peers.NODES, metavar="NODES", help="sizes beside the others")
    add("--slow", action="store_true", help="helm and cue also from 50,000 nodes on, once")
    add("--kustomize", type=int, default=peers.KUSTOMIZE, metavar="NODES", help="the largest for kustomize")
    add("--slim", nargs="+", type=int, default=SLIM, metavar="NODES", help="sizes of slim inventories")
    add("--full", nargs="+", type=int, default=FULL, metavar="NODES", help="sizes of full dumps")
    add("--growth", nargs="+", type=int, default=scaling.NODES, metavar="NODES", help="sizes of the fit")
    add("--fleets", nargs="+", type=fleet.fleet, default=fleet.FLEETS, metavar="CLUSTERSxNODES")
    add("--date", default="", help="the day of the run; the last commit's by default")
    add("--output", type=Path, help="a file for all tables")
    return parser.parse_args(arguments)


def day() -> str:
    """Return the day of the last commit."""
    command = ["git", "log", "-1", "--format=%cs"]
    done = subprocess.run(command, cwd=peers.ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Page:
    """A page of Markdown that is printed while it grows."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def add(self, *parts: str) -> None:
        """Add paragraphs, and print them."""
        self.parts += parts
        print(*parts, sep="\n\n", end="\n\n", flush=True)


def measured(asked: argparse.Namespace, page: Page) -> Results:
    """Measure the parts that were asked for."""
    results, runs, medians = Results(), asked.runs, _medians(asked.runs)
    if "peers" in asked.only and peers.versions():
        results.peers = peers.measure_all(asked.peers, runs, slow=asked.slow, largest=asked.kustomize)
        page.add(
            "## Beside other tools",
            "The others read names and seven labels of each node, and print a CiliumNode for each, with its labels and a "
            "CIDR that follows from its position: no selectors, no lock, no checks, no files. ipamc does all its work: "
            "a lock and files of half of the nodes are there; it checks, places the other half, and writes everything. "
            "The others are written in the fastest form that was found. "
            f"The same file, in turn, {medians}; from {peers.LARGE:,} nodes on one run. *times ipamc* and *memory*: in "
            "parts of ipamc on the format that the tool reads.",
            table(peers.HEAD, peers.rows(results.peers)),
        )
    for part, title, kinds in (("slim", "Slim inventories", KINDS[:2]), ("full", "Full dumps", KINDS[2:])):
        if part in asked.only:
            found = compiles.measure_all(kinds, getattr(asked, part), runs)
            results.compiles += found
            rows = [row for each in found for row in each.rows]
            page.add(
                f"## {title}",
                _EXPLAINED[part] + f" {medians[0].upper()}{medians[1:]}.",
                table(compiles.HEAD, rows),
            )
    if "growth" in asked.only:
        results.grown = scaling.measure(KINDS[:2], asked.growth, min(runs, 3))
        page.add(
            "## Growth",
            f"`full`, the least of {max(min(runs, 3), 1)} runs. Exponents by least squares over the logarithms; nothing "
            "is subtracted: what every run costs makes them smaller, least in the last step.",
            table(scaling.HEAD, scaling.rows(results.grown)),
            table(scaling.FIT_HEAD, scaling.fits(results.grown)),
        )
    if "fleets" in asked.only:
        results.fleets = fleet.measure(asked.fleets, runs)
        page.add(
            "## Fleets",
            f"The first compile of all clusters, from JSON, {medians}; of {fleet.MANY:,} clusters one run. Memory of the "
            "largest process.",
            table(fleet.HEAD, fleet.rows(results.fleets)),
        )
    if "start" in asked.only:
        results.starts = fleet.measure_starts(runs)
        page.add("## Start", table(fleet.START_HEAD, fleet.start_rows(results.starts)))
    return results


_EXPLAINED = {
    "slim": "Names, seven labels and maxPods. `first`: no lock. `full`: a lock and files of half of the nodes are there; "
    "the other half gets blocks, everything is written. `again`: nothing changed. `more`: one node more. `plan`: against the "
    "commit before, one node joins.",
    "full": "All Nodes as `kubectl get nodes --show-managed-fields -o json|yaml` prints them, 36 and 19 KB each. The nodes run, "
    "and ipamc refuses running nodes without a line in the lock; so a slim inventory of them, and of one more, was compiled "
    "before. `full`: the files of all nodes were removed and are written, and so is the lock, in which that node leaves.",
}


def _medians(runs: int) -> str:
    return f"medians of {runs} runs after one that does not count" if runs else "one run each"


def main(arguments: Sequence[str] | None = None) -> None:
    asked = options(arguments)
    page = Page()
    page.add(
        "# Results",
        "Written by `make bench`; [`benchmarks/`](.) has the programs. Every run is a cold process with all checks on.",
        table(("machine", ""), [*machine(), *_versions(asked)]),
    )
    page.add(
        "## Goals",
        table(targets.HEAD, targets.rows(measured(asked, page))),
    )
    if asked.output:
        goals = page.parts[-2:]
        asked.output.write_text("\n\n".join([*page.parts[:3], *goals, *page.parts[3:-2]]) + "\n")


def _versions(asked: argparse.Namespace) -> list[tuple[str, str]]:
    known = {name: version for name, (version, _) in peers.versions().items()}
    if peers.kustomize():
        known["kustomize"] = peers.kustomize_version()
    return [
        ("ipamc", __version__),
        ("other tools", ", ".join(f"{name} {version}" for name, version in sorted(known.items())) or "none"),
        ("date", asked.date or day()),
    ]


if __name__ == "__main__":
    main()
