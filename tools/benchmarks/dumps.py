"""Measure `ipamc import` and `ipamc audit` as a user runs them: cold processes, a full dump of a running cluster, and a repository that knows what was applied.

    python tools/benchmarks/dumps.py [NODES [PODS]] [--runs N]      default: 5000 30 (pods on each node), 3 runs

The dump is as kubectl prints it, with what kubelets and people write around the fields that count: 5.5 KB for each pod, 36 KB for each Node. Prints wall time
in seconds, the best of so many runs, and the peak of resident memory in MB: of loading the dump alone, of an audit that finds nothing, of an import with its compile, and of
an audit of faults of some kinds. The goals are 5 s and 700 MB for an audit of 5,000 nodes with 150,000 pods, and 3 s for an import.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_network
from pathlib import Path

import kubectl
from inputs import ZONES, as_json, nodes, start
from measure import IPAMC, git, ipamc, least, run
from running import Object, cilium_node, config_map, name_of, node, pod

POOL = """\
apiVersion: ipamc/v1alpha1
kind: IPPool
metadata: {name: pods}
spec:
  ipv4: {cidrs: [10.0.0.0/9], blockSize: 24}
"""


def objects(count: int, pods: int, lock: list[Object]) -> Iterator[Object]:
    blocks = {line["node"]: line["block"] for line in lock}
    names = [name_of(number) for number in range(count)]
    for number in range(count):
        yield node(number, ZONES)
    for number, name in enumerate(names):
        yield cilium_node(number, blocks[name])
    for name in names:
        network = ip_network(blocks[name])
        for number in range(pods):
            yield pod(f"{name}-{number}", name, str(network[number + 20]))
    yield config_map()


def fault(item: Object) -> Object:
    """Plant a fault in every hundredth object."""
    name = item["metadata"]["name"]
    if item["kind"] == "CiliumNode" and name.endswith("07"):
        item["spec"]["ipam"]["podCIDRs"] = ["10.127.0.0/24"]
    if item["kind"] == "Node" and name.endswith("09"):
        item["metadata"]["uid"] = "another"
    if item["kind"] == "Pod" and name.endswith("11-3"):
        item["status"]["podIPs"] = [{"ip": "10.126.0.1"}]
    return item


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="?", type=int, default=5_000)
    parser.add_argument("pods", nargs="?", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    count, pods = options.nodes, options.pods
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cluster = start(folder, pool_text=POOL)
        (cluster / "nodes.json").write_text(as_json(nodes(range(count), uids=True)))
        git(folder, "init", "-q")
        ipamc(folder, "compile")
        git(folder, "add", "-A")
        os.environ["GIT_COMMITTER_DATE"] = "2026-11-20T10:00:00Z"
        git(folder, "commit", "-q", "-m", "applied")
        git(folder, "update-ref", "refs/ipamc/applied/bench", "HEAD")
        lock = [json.loads(line) for line in (cluster / "ipam.lock").read_text().splitlines()[1:]]
        changes: tuple[tuple[str, Callable[[Object], Object]], ...] = (
            ("sound", lambda item: item),
            ("faults", fault),
        )
        for title, change in changes:
            path = folder / "dump.json"
            kubectl.write(path, map(change, objects(count, pods, lock)))
            size = path.stat().st_size / 1e6
            print(f"{count:,} nodes, {count * pods:,} pods, {size:,.0f} MB, {title}", flush=True)
            _measure(
                ("load", "audit", *(("import", "refresh") if title == "sound" else ())), folder, options.runs
            )


def _measure(labels: Iterable[str], folder: Path, runs: int) -> None:
    for label in labels:
        best = least([run(command(label, number), folder, codes=None) for number in range(runs)])
        print(f"  {label:<7} {best.wall:>6.2f} s  {best.memory / 1e6:>5.0f} MB", flush=True)


def command(label: str, number: int) -> list[str]:
    """Return the command line of a run; each import starts a cluster of its own."""
    if label == "load":
        text = "from ipamc.workspace.dump import load_dump; load_dump(['dump.json'])"
        return [sys.executable, "-c", text]
    arguments = {
        "audit": ["audit", "bench", "dump.json", "--format", "concise"],
        "import": ["import", f"import-{number}", "dump.json", "--cilium-version", "1.18"],
        "refresh": ["import", f"import-{number}", "--refresh", "dump.json"],
    }
    return [*IPAMC, *arguments[label]]


if __name__ == "__main__":
    main()
