"""Measure ipamc and other tools in turn, on the same file, in one run.

    python tools/benchmarks/peers.py [NODES ...] [--runs N] [--slow] [--kustomize NODES]      default: 1000 5000 20000

The others read the inventory (names and seven labels a node), and print a CiliumNode for each node, with its labels
and a CIDR that follows from its position: no selectors, no lock, no checks, no files. ipamc does all its work: a lock and files of
half of the nodes are there, it checks, places the other half, and writes everything. Each is compared with ipamc on
the format that it reads.

Each is written in the fastest form that was found. At 5,000 nodes, in processor seconds: a List of helm's takes 0.42
and documents 0.54, JSON of cue's 0.61 and YAML 1.0, a CIDR that jsonnet joins 0.62 and one that it formats 7.

Of each the median of so many runs, in turn, after a round that is not counted. At 100,000 nodes go-jsonnet and
kapitan do not run; helm and cue do with --slow, once. kustomize builds what ipamc rendered, which takes quadratic
time: up to 1,000 nodes, or as many as --kustomize says. `.ci/peers` installs the tools.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import indent

from inputs import as_json, as_yaml, nodes
from measure import Cost, alternate, run
from scene import Scene
from tables import FIGURES, figures, table

ROOT = Path(__file__).parents[2]
NODES = (1_000, 5_000, 20_000)
LARGE = 50_000
"""From so many nodes on the others run with --slow only, and only helm and cue."""
KUSTOMIZE = 1_000
HELM = """\
apiVersion: v1
kind: List
items:
{{- range $i, $node := .Values.nodes }}
- apiVersion: cilium.io/v2
  kind: CiliumNode
  metadata: {name: {{ $node.name }}, labels: {{ toJson $node.labels }}}
  spec:
    ipam:
      podCIDRs:
      - {{ printf "10.%d.%d.%d/26" (div $i 1024) (mod (div $i 4) 256) (mul (mod $i 4) 64) }}
{{- end }}
"""
CUE = """\
package bench

nodes: _
list: {
	apiVersion: "v1"
	kind:       "List"
	items: [for i, node in nodes {
		apiVersion: "cilium.io/v2"
		kind:       "CiliumNode"
		metadata: {name: node.name, labels: node.labels}
		spec: ipam: podCIDRs: ["10.\\(div(i, 1024)).\\(mod(div(i, 4), 256)).\\(mod(i, 4)*64)/26"]
	}]
}
"""
JSONNET = """\
local nodes = (import 'nodes.json').nodes;
[
  {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNode',
    metadata: { name: nodes[i].name, labels: nodes[i].labels },
    spec: { ipam: { podCIDRs: [
      '10.' + std.floor(i / 1024) + '.' + std.floor(i / 4) % 256 + '.' + i % 4 * 64 + '/26',
    ] } },
  }
  for i in std.range(0, std.length(nodes) - 1)
]
"""
JINJA = """\
{% for node in inventory.parameters.nodes %}
---
apiVersion: cilium.io/v2
kind: CiliumNode
metadata:
  name: {{ node.name }}
  labels:
{% for key, value in node.labels.items() %}
    {{ key }}: "{{ value }}"
{% endfor %}
spec:
  ipam:
    podCIDRs:
    - 10.{{ loop.index0 // 1024 }}.{{ loop.index0 // 4 % 256 }}.{{ loop.index0 % 4 * 64 }}/26
{% endfor %}
"""
KAPITAN = """\
classes: [nodes]
parameters:
  kapitan:
    vars: {target: bench}
    compile:
    - {output_path: ., input_type: jinja2, input_paths: [templates/nodes.yaml]}
"""


def versions() -> dict[str, tuple[str, str]]:
    """Return version and path of each tool that `.ci/peers` installed. Empty where it did not run."""
    lines = os.environ.get("IPAMC_PEERS", "").splitlines()
    return {name: (version, path) for name, version, path in (line.split() for line in lines)}


def kustomize() -> list[str]:
    """Return the command that builds a folder, as `.ci/kustomize` prints it."""
    return shlex.split(os.environ.get("KUSTOMIZE_BUILD", ""))


def kustomize_version() -> str:
    """Return the version of the kustomize that builds."""
    *program, verb = kustomize()
    words = [*program, "version"] if verb == "build" else [*program, "version", "--client"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    return said[-1] if said else "unknown"


def prepare(top: Path, count: int) -> None:
    """Write what the others read."""
    items = nodes(range(count))
    text = as_yaml(items)
    files = {
        "nodes.json": as_json(items),
        "nodes.yaml": text,
        "emit.cue": CUE,
        "emit.jsonnet": JSONNET,
        "chart/Chart.yaml": "apiVersion: v2\nname: bench\nversion: 0.1.0\n",
        "chart/templates/nodes.yaml": HELM,
        "inventory/targets/bench.yml": KAPITAN,
        "inventory/classes/nodes.yml": "parameters:\n" + indent(text[text.index("nodes:") :], "  "),
        "templates/nodes.yaml": JINJA,
    }
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "helm": ("slim YAML", ("template", "bench", "chart", "--values", "nodes.yaml")),
    "cue": ("slim JSON", ("export", "emit.cue", "nodes.json", "--expression", "list", "--out", "json")),
    "jsonnet": ("slim JSON", ("--yaml-stream", "emit.jsonnet")),
    "kapitan": ("slim YAML", ("compile",)),
}
"""The format that each reads, and its arguments."""


def emitted(name: str, top: Path) -> int:
    """Return how many CiliumNodes a tool made in its last run."""
    path = top / "compiled" / "bench" / "nodes.yaml" if name == "kapitan" else top / f"{name}.out"
    text = path.read_text()
    return text.count("kind: CiliumNode") + text.count('"kind": "CiliumNode"')


def measure(count: int, runs: int, names: Sequence[str], *, kustomized: bool = False) -> dict[str, Cost]:
    """Run ipamc on JSON and YAML, and the others of these names. Ends where one does not do its work."""
    known = versions()
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        prepare(top / "peers", count)
        contestants: dict[str, Callable[[], Cost]] = {}
        for kind in ("slim JSON", "slim YAML"):
            contestants[kind] = partial(Scene(top / kind, kind, count).run, "full")
        for name in names:
            command = [known[name][1], *COMMANDS[name][1]]
            contestants[name] = partial(run, command, top / "peers", output=top / "peers" / f"{name}.out")
        if kustomized:
            build = [*kustomize(), str(top / "slim JSON" / "clusters" / "bench" / "rendered")]
            contestants["kustomize"] = partial(run, build, top)
        costs = alternate(contestants, runs)
        for name in names:
            assert emitted(name, top / "peers") == count, f"{name} did not print {count} CiliumNodes"
    return costs


def chosen(count: int, *, slow: bool) -> list[str]:
    """Return the tools that run at a size."""
    return [
        name
        for name in COMMANDS
        if name in versions() and (count < LARGE or (slow and name in {"helm", "cue"}))
    ]


def measure_all(counts: Sequence[int], runs: int, *, slow: bool, largest: int) -> dict[int, dict[str, Cost]]:
    """Measure at each size."""
    return {
        count: measure(
            count,
            0 if count >= LARGE else runs,
            chosen(count, slow=slow),
            kustomized=bool(kustomize()) and count <= largest,
        )
        for count in counts
    }


def rows(costs: dict[int, dict[str, Cost]]) -> list[list[str]]:
    """Return a row for each tool and size."""
    return [
        [f"{count:,}", TITLES[name], *figures(cost), *_ratio(name, cost, of_size)]
        for count, of_size in costs.items()
        for name, cost in of_size.items()
    ]


TITLES = {
    "slim JSON": "ipamc, JSON",
    "slim YAML": "ipamc, YAML",
    "helm": "helm template (YAML)",
    "cue": "cue export (JSON)",
    "jsonnet": "go-jsonnet (JSON)",
    "kapitan": "kapitan compile (YAML)",
    "kustomize": "kustomize build of what ipamc rendered",
}
HEAD = ("nodes", "tool", *FIGURES, "times ipamc", "memory")


def ratio(name: str, of_size: dict[str, Cost]) -> float:
    """Return how many times as long as ipamc a tool takes, on the format that it reads."""
    return of_size[name].wall / of_size[_ours(name)].wall


def _ours(name: str) -> str:
    return COMMANDS[name][0] if name in COMMANDS else "slim JSON"


def _ratio(name: str, cost: Cost, of_size: dict[str, Cost]) -> tuple[str, str]:
    if name.startswith("slim"):
        return "1", "1"
    return f"{ratio(name, of_size):.1f}", f"{cost.memory / of_size[_ours(name)].memory:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", nargs="*", type=int)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--kustomize", type=int, default=KUSTOMIZE)
    options = parser.parse_args()
    costs = measure_all(options.nodes or NODES, options.runs, slow=options.slow, largest=options.kustomize)
    print(table(HEAD, rows(costs)))


if __name__ == "__main__":
    main()
