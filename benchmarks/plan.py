"""Measure `ipamc plan` as a user runs it: a cold process, against HEAD and against the disk.

    python benchmarks/plan.py [NODES ...]      default: 5000 20000

A repository with one cluster, compiled and committed; then one node joins, or 500 do, or a range is added to a pool. Prints wall time in seconds, the best
of five, and the peak of resident memory in MB. The goal is 1 s for 5,000 nodes against HEAD.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from compile import CLUSTER, as_yaml, nodes, pools, run

REPEAT = 5


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def write(cluster: Path, kind: str, count: int, pool_text: str) -> None:
    (cluster / "cluster.yaml").write_text(CLUSTER)
    (cluster / "ippools.yaml").write_text(pool_text)
    if kind == "YAML":
        (cluster / "nodes.yaml").write_text(as_yaml(nodes(count)))
    else:
        (cluster / "nodes.json").write_text(
            json.dumps({"apiVersion": "ipamc/v1alpha1", "kind": "NodeInventory", "nodes": nodes(count)})
        )


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]] or [5_000, 20_000]
    quiet = os.open(os.devnull, os.O_WRONLY)
    shown = os.dup(1)
    print(f"{'':<45}  {'seconds':>7}  {'MB':>6}", flush=True)
    for count in counts:
        for kind in ("YAML", "JSON"):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                cluster = folder / "clusters" / "bench"
                cluster.mkdir(parents=True)
                write(cluster, kind, count, pools())
                git(folder, "init", "-q")
                run(["compile"], folder)
                git(folder, "add", "-A")
                git(folder, "commit", "-q", "-m", "compiled")
                cases = (
                    ("nothing changes", count, pools()),
                    (
                        "a range is added",
                        count,
                        pools().replace("[10.0.0.0/12]", "[10.0.0.0/12, 11.0.0.0/12]"),
                    ),
                    ("a node joins", count + 1, pools()),
                    ("500 nodes join", count + 500, pools()),
                )
                for label, number, pool_text in cases:
                    write(cluster, kind, number, pool_text)
                    for against, arguments in (("HEAD", ["--base", "HEAD"]), ("disk", [])):
                        os.dup2(quiet, 1)  # the plan itself is not what is measured here
                        try:
                            runs = [
                                run(["plan", "--format", "markdown", *arguments], folder)
                                for _ in range(REPEAT)
                            ]
                        finally:
                            os.dup2(shown, 1)
                        title = f"{count:>7,}  {kind}  {label:<17} against {against}"
                        print(
                            f"{title:<45}  {min(each for each, _ in runs):>7.2f}  {max(each for _, each in runs):>6.0f}",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
