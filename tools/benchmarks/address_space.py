"""Measure what an address space costs: many clusters, of which one is compiled, or all.

    python tools/benchmarks/address_space.py [CLUSTERS] [NODES] [--runs N]      default: 100 clusters of 5000 nodes, 3 runs

Prints wall time in seconds and the peak of resident memory in MB of `ipamc compile --check`, in a cold process, without and with `addressSpace`. Each
cluster has a range of its own, ten pools and a lock; the inventories are YAML.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from inputs import ZONES, as_yaml, nodes, start
from measure import ipamc, least

POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {{name: zone-{zone}}}
spec:
  ipv4: {{cidrs: ["10.{octet}.{third}.0/19"], blockSize: 28}}
  nodeSelector: topology.kubernetes.io/zone == "zone-{zone}"
"""
SPACE = "  addressSpace: fabric\n"


def pools(index: int) -> str:
    """Return the pools of a cluster: a range of its own."""
    return "---\n".join(
        POOL.format(zone=zone, octet=2 * index + zone // 8, third=zone % 8 * 32) for zone in range(ZONES)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clusters", nargs="?", type=int, default=100)
    parser.add_argument("nodes", nargs="?", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    _measure_all(options.clusters, options.nodes, options.runs)


def _measure_all(clusters: int, count: int, runs: int) -> None:
    inventory = as_yaml(nodes(range(count)))
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        folders = [start(top, f"c{index:03d}", pool_text=pools(index)) for index in range(clusters)]
        for folder in folders:
            (folder / "nodes.yaml").write_text(inventory)
        first = ipamc(top, "compile")
        print(f"{clusters} clusters of {count:,} nodes; the first compile of all: {first.wall:.1f} s")
        for words in (["compile", "--check", "c000"], ["compile", "--check", "--locked"]):
            _measure(words, top, "without", runs)
        for folder in folders:
            with (folder / "cluster.yaml").open("a") as file:
                file.write(SPACE)
        ipamc(top, "init", "--space", "fabric")
        for words in (["compile", "--check", "c000"], ["compile", "--check", "--locked"]):
            _measure(words, top, "with   ", runs)


def _measure(words: Sequence[str], top: Path, what: str, runs: int) -> None:
    best = least([ipamc(top, *words) for _ in range(runs)])
    print(f"{what} addressSpace: {best.wall:6.2f} s {best.memory / 1e6:5.0f} MB   ipamc {' '.join(words)}")


if __name__ == "__main__":
    main()
