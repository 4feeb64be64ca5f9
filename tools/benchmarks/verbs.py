"""Shapes of whole repositories, and the verbs that read them: what `growth.py` doubles.

A shape is a function from n to the files of a repository, by path below its top. It is compiled and committed,
then every verb runs over it as a cold process: `compile` anew, the others over what it wrote. The verbs about a
running cluster get a dump of it, which the lock tells: Nodes and CiliumNodes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import inputs
import kubectl
import running
from measure import IPAMC, Cost, git, least, run
from shapes import placing

Files = Mapping[str, str]
Shape = Callable[[int], Files]
HOME = "clusters/bench/"
READING: dict[str, list[str]] = {
    "compile": ["compile", "--jobs", "1"],
    "compile --check": ["compile", "--check", "--jobs", "1"],
    "plan": ["plan", "--jobs", "1"],
    "plan --base": ["plan", "--base", "HEAD~1", "--output", "markdown", "--jobs", "1"],
    "test": ["test", "--jobs", "1"],
    "show": ["show"],
    "which": ["which", "10.0.0.1"],
    "why": ["why", "node-000001"],
    "report": ["report", "--write", "page.html"],
    "export": ["export", "netbox", "--write", "prefixes.csv"],
    "verify": ["verify", "--base", "HEAD~1"],
}
RUNNING: dict[str, list[str]] = {
    "check": ["check", "{dump}"],
    "import": ["import", "new", "{dump}", "--cilium-version", "1.18"],
    "import --refresh": ["import", "bench", "{dump}", "--refresh"],
    "audit": ["audit", "bench", "{dump}"],
}
LIMITS = (120, 4 << 30)
"""Seconds of a processor and bytes of memory that a process may take."""


class Case(NamedTuple):
    """A shape, its first n, and what is special about it."""

    shape: Shape
    parts: int
    verbs: tuple[str, ...] = ()
    """Only these; none: all."""
    dump: str = "json"
    """How the dump is written: json, yaml, line (JSON on one line), zip (an entry for each object)."""
    commits: bool = False
    """n commits of history, each with another lock."""
    beside: Callable[[int], Iterable[dict[str, Any]]] | None = None
    """Further objects of the dump."""


def home(files: Files) -> Files:
    """Return the files of one cluster as those of a repository."""
    return {HOME + name: text for name, text in {"cluster.yaml": inputs.CLUSTER, **files}.items()}


def pooled(nodes: str, name: str = "nodes.yaml", first: int | None = None, **spec: Any) -> Files:
    """Return a cluster of one pool: 10.0.0.0/8, or the /22 of this number."""
    cidr = "10.0.0.0/8" if first is None else placing.cidr(first, 22)
    return home({"pools.json": placing.listed([placing.pool("a", cidr, **spec)]), name: nodes})


def objects(count: int) -> Iterable[dict[str, Any]]:
    return (running.node(number, inputs.ZONES) for number in range(count))


def quarantined(count: int) -> Files:
    """Return a cluster of two nodes, and a lock with lines of nodes that left."""
    lock = placing.lock(placing.line(number, quarantined="2099-01-01") for number in range(count))
    return home({"pools.json": placing.listed([placing.pool("a", "10.0.0.0/8")]), "ipam.lock": lock,
                 "nodes.json": placing.nodes(2)})  # fmt: skip


def clusters(count: int) -> Files:
    """Clusters of an address space, of four nodes each."""
    found = {
        "clusters/fabric/space.yaml": f"apiVersion: {placing.API}\nkind: AddressSpace\nmetadata: {{name: fabric}}\n"
        "spec:\n  ipv4: {cidrs: [10.0.0.0/8], prefixLength: 20}\n"
    }
    for number in range(count):
        name = f"c{number:04}" if number else "bench"
        found[f"clusters/{name}/cluster.yaml"] = (
            inputs.CLUSTER.replace("name: bench", f"name: {name}") + "  addressSpace: fabric\n"
        )
        pool = placing.pool("a")
        pool["spec"] = {"ipv4": {"from": "fabric", "prefixLength": 20, "blockSize": 28}}
        found[f"clusters/{name}/pools.json"] = placing.listed([pool])
        found[f"clusters/{name}/nodes.json"] = placing.nodes(4)
    return found


def dumped(text: Callable[[int], str], name: str = "nodes.yaml") -> Shape:
    """Return a shape whose inventory is a dump of running nodes, which have their blocks in the lock."""
    return lambda count: {
        **pooled(text(count), name),
        f"{HOME}ipam.lock": placing.lock(placing.line(number) for number in range(count)),
    }


def fleet(count: int) -> Files:
    """Return clusters of four nodes each, which have nothing to do with one another."""
    found: dict[str, str] = {}
    for number in range(count):
        name = f"c{number:04}" if number else "bench"
        for path, text in pooled(placing.nodes(4), first=number).items():
            found[path.replace("bench", name)] = text.replace("name: bench", f"name: {name}")
    return found


def one_pool(nodes: str, *cidrs: str, **spec: Any) -> Files:
    return home({"pools.json": placing.listed([placing.pool("a", *cidrs, **spec)]), "nodes.json": nodes})


def racks(count: int) -> Files:
    return home({"pools.json": placing.listed(placing.racks(count)), "nodes.json": placing.in_racks(count)})


def reserved(count: int) -> Files:
    entries = [{"cidr": placing.cidr(2 * number, 28), "reason": "x"} for number in range(count)]
    return one_pool(placing.nodes(count), "10.0.0.0/8", reserved=entries)


def cluster_cidrs(count: int) -> Iterable[dict[str, Any]]:
    """Return ClusterCIDRs, each for the nodes of one zone."""
    for number in range(count):
        chosen = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"z{number}"]}
        yield {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": f"c{number}"},
               "spec": {"perNodeHostBits": 8, "ipv4": placing.cidr(number, 20, 11 << 24),
                        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [chosen]}]}}}  # fmt: skip


def advertised(count: int) -> Iterable[dict[str, Any]]:
    """Return Services and CiliumPodIPPools, with ranges that do not overlap."""
    for number in range(count):
        yield {"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumPodIPPool", "metadata": {"name": f"p{number}"},
               "spec": {"ipv4": {"cidrs": [placing.cidr(number, 24, 12 << 24)], "maskSize": 28}}}  # fmt: skip
        yield {"apiVersion": "cilium.io/v2", "kind": "CiliumLoadBalancerIPPool", "metadata": {"name": f"l{number}"},
               "spec": {"blocks": [{"cidr": placing.cidr(number, 24, 13 << 24)}]}}  # fmt: skip


def pods(count: int) -> Iterable[dict[str, Any]]:
    return (
        running.pod(f"p{number}", "node-000001", placing.cidr(number, 32).partition("/")[0])
        for number in range(count)
    )


OF_HISTORY = ("show", "which", "report", "plan --base", "forecast")
CASES: dict[str, Case] = {
    "nodes, slim YAML": Case(lambda n: pooled(inputs.as_yaml(inputs.nodes(range(n)))), 8000),
    "nodes, slim JSON": Case(lambda n: pooled(placing.nodes(n)), 16000),
    "nodes, JSON on one line": Case(
        lambda n: pooled(inputs.as_json(inputs.nodes(range(n))), "nodes.json"), 8000, dump="line"
    ),
    "nodes, kubectl YAML": Case(dumped(lambda n: "".join(kubectl.yaml_list(objects(n)))), 100, dump="yaml"),
    "nodes, kubectl JSON": Case(dumped(lambda n: "".join(kubectl.json_list(objects(n))), "nodes.json"), 400),
    "nodes, kubectl JSON on one line": Case(
        dumped(lambda n: json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects(n)]}), "nodes.json"),
        400, dump="line",
    ),
    "nodes, several documents": Case(
        dumped(lambda n: "".join(f"---\n{kubectl.one(each, 'yaml')}" for each in objects(n))), 100
    ),
    "labels of one node": Case(
        lambda n: pooled(placing.inventory(
            [{"name": "node-000001", "labels": {f"k{i}": "x" * 63 for i in range(n)}}]
        )), 16000,
    ),
    "long labels": Case(lambda n: pooled(placing.nodes(n, rack="x" * 63)), 8000),
    "pools": Case(racks, 3000),
    "ranges": Case(lambda n: one_pool(placing.nodes(n), *(placing.cidr(2 * i) for i in range(n))), 4000),
    "reserved CIDRs": Case(reserved, 4000),
    "selectors": Case(
        lambda n: pooled(placing.nodes(4), nodeSelector=placing.chain(n, 'a{0} != "{0}"', " && ")), 8000
    ),
    "lines in quarantine": Case(quarantined, 16000),
    "folders without documents": Case(
        lambda n: {**pooled(placing.nodes(2)), **{f"clusters/x{i:05}/x.yaml": "#" for i in range(n)}}, 1000
    ),
    "clusters": Case(fleet, 200),
    "clusters in a space": Case(clusters, 150),
    "commits": Case(lambda _: pooled(placing.nodes(4)), 400, OF_HISTORY, commits=True),
    "entries of a zip": Case(lambda n: pooled(placing.nodes(n)), 4000, (*RUNNING,), "zip"),
    "ClusterCIDRs": Case(lambda _: pooled(placing.nodes(40)), 3000, (*RUNNING,), beside=cluster_cidrs),
    "pools of Cilium": Case(lambda _: pooled(placing.nodes(40)), 4000, (*RUNNING,), beside=advertised),
    "pods": Case(lambda _: pooled(placing.nodes(40)), 20000, (*RUNNING,), beside=pods),
    "errors": Case(lambda n: pooled(placing.inventory([{"name": f"?{i}"} for i in range(n)])), 8000, (*READING,)),
}  # fmt: skip
MORE = {"forecast": ["forecast"]}


def write(top: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)


class Scene:
    """A repository of a shape, compiled and committed."""

    def __init__(self, top: Path, case: Case, parts: int) -> None:
        self.top, self.files = top, case.shape(parts)
        write(top, self.files)
        run([*IPAMC, *READING["compile"]], top, codes=None)
        git(top, "init", "-q")
        self._commit()
        self._commit()
        if case.commits:
            self._history(parts)
        self.dump = self._dump(case.dump, case.beside(parts) if case.beside else ())

    def _commit(self) -> None:
        git(self.top, "add", "-A")
        git(self.top, "commit", "-q", "--allow-empty", "-m", "changed")

    def _history(self, count: int) -> None:
        """Commit many states of the lock: a node comes and goes."""
        path = self.top / HOME / "ipam.lock"
        text = path.read_text()
        for number in range(count):
            more = placing.line(100 + number % 50, of=100 + number % 50)
            path.write_text(f"{text}{more}\n")
            self._commit()
        path.write_text(text)
        self._commit()

    def _dump(self, style: str, beside: Iterable[dict[str, Any]]) -> str:
        lock = self.top / HOME / "ipam.lock"
        rows = list(map(json.loads, lock.read_text().splitlines()[1:])) if lock.exists() else []
        rows = [row for row in rows if "quarantined" not in row]
        found = [running.config_map(), *beside]
        for row in rows:
            number = int(row["node"].rpartition("-")[2])
            small = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": row["node"], "uid": running.uid_of(number)},
                     "status": {"nodeInfo": {"kubeletVersion": "v1.33.1"}}}  # fmt: skip
            found += [running.node(number, inputs.ZONES) if len(rows) < 600 else small]
            found += [running.cilium_node(number, row["block"])]
        name = f"dump.{'json' if style == 'line' else style}"
        if style == "zip":
            with zipfile.ZipFile(self.top / name, "w", zipfile.ZIP_DEFLATED) as archive:
                for index, each in enumerate(found):
                    archive.writestr(f"{index:06}.json", json.dumps(each))
        elif style == "line":
            whole = {"apiVersion": "v1", "kind": "List", "items": found}
            (self.top / name).write_text(json.dumps(whole, separators=(",", ":")))
        else:
            kubectl.write(self.top / name, iter(found))
        return name

    def cost(self, verb: str, runs: int) -> Cost:
        """Return the least that a verb costs in some runs."""
        return least([self._run(verb) for _ in range(runs)])

    def _run(self, verb: str) -> Cost:
        words = [*IPAMC, *(word.format(dump=self.dump) for word in (READING | RUNNING | MORE)[verb])]
        if verb == "compile":  # with no lock, and no commit that has one
            with tempfile.TemporaryDirectory() as scratch:
                write(Path(scratch), self.files)
                return run(words, Path(scratch), codes=None, limits=LIMITS)
        cost = run(words, self.top, codes=None, limits=LIMITS)
        shutil.rmtree(self.top / "clusters/new", ignore_errors=True)
        git(self.top, "checkout", "-q", "--", ".")
        return cost


def measure(case: Case, verbs: Iterable[str], runs: int) -> dict[str, tuple[Cost, Cost, Cost]]:
    """Return what each verb costs with 2, n and 2n parts."""
    found: dict[str, list[Cost]] = {verb: [] for verb in verbs}
    for parts in (2, case.parts, 2 * case.parts):
        with tempfile.TemporaryDirectory() as scratch:
            scene = Scene(Path(scratch), case, parts)
            for verb in verbs:
                found[verb].append(scene.cost(verb, runs))
    return {verb: (costs[0], costs[1], costs[2]) for verb, costs in found.items()}
