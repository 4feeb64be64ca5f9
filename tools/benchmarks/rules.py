"""Measure what the tests of an address plan (documents of kind Tests) cost beside a compile.

    python tools/benchmarks/rules.py [NODES] [--tests N] [--runs N]      default: 100000 nodes, 100 tests, 3 runs

Prints processor seconds, the least of the runs, of making N tests of one kind on a plan that is there; and of the compile up to that plan.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from inputs import ZONES, start, write_inventory
from msgspec.structs import replace

from ipamc.assertions.run import run_tests
from ipamc.model.plan import Plan
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.read.read import read
from ipamc.workspace.disk import assets
from ipamc.workspace.inputs import read_sources

HEAD = "apiVersion: ipamc/v1alpha1\nkind: Tests\ntests:\n"
ZONE = "topology.kubernetes.io/zone"
KINDS = {
    "blocks of a rack": "blocks: {{nodeSelector: rack == 'r{number}', within: [10.0.0.0/8]}}",
    "blocks of a zone": f"blocks: {{{{nodeSelector: {ZONE} == 'zone-{{zone}}', within: [10.0.0.0/8]}}}}",
    "blocks of all nodes": "blocks: {{nodeSelector: all(), outside: [192.168.{zone}.0/24]}}",
    "zones apart": f"apart: {{{{each: {ZONE}, ipv4: 12}}}}",
    "room for each zone": f"room: {{{{nodes: 40, each: {ZONE}}}}}",
    "nothing in": "nothingIn: [192.168.{zone}.0/24]",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="?", type=int, default=100_000)
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = start(Path(name))
        write_inventory(folder, "slim JSON", range(options.nodes))
        sources = {Path(path).name: data for path, data in read_sources(str(folder))[0].items()}
    begin = time.process_time()
    plan = compile_cluster(inputs(sources)).plan
    print(f"{options.nodes:,} nodes; the first compile: {time.process_time() - begin:.2f} s")
    for kind, entry in {"no tests": "", **KINDS}.items():
        print(f"{kind:<20} {least(with_tests(plan, sources, entry, options.tests), options.runs):6.3f} s")


def inputs(sources: dict[str, bytes]) -> Inputs:
    return Inputs(
        name="bench",
        folder="bench",
        sources=sources,
        lock_path="ipam.lock",
        lock=None,
        schemas=assets("schemas"),
        templates=assets("templates"),
        today="2026-11-21",
    )


def with_tests(plan: Plan, sources: dict[str, bytes], entry: str, count: int) -> Plan:
    """Return a plan whose cluster has so many tests of one kind."""
    lines = [
        f"- {entry.format(number=number, zone=number % ZONES)}\n" for number in range(count if entry else 0)
    ]
    files: dict[str, Any] = {"cluster.yaml": sources["cluster.yaml"]}
    if lines:
        files["tests.yaml"] = (HEAD + "".join(lines)).encode()
    cluster, _ = read("bench", "bench", files, assets("schemas"), tests=True)
    return replace(plan, cluster=replace(plan.cluster, tests=cluster.tests))


def least(plan: Plan, runs: int) -> float:
    times = []
    for _ in range(runs):
        begin = time.process_time()
        _, found = run_tests(plan, "2026-11-21")
        times.append(time.process_time() - begin)
        for finding in found[:1]:
            print(f"  {finding.message}")
    return min(times)


if __name__ == "__main__":
    main()
