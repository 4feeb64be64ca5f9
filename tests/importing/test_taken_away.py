"""Dumps that lack something: what an import makes of them is the live allocation, or a refusal; never another block.

    IPAMC_TAKEN_AWAY_NODES=300 IPAMC_TAKEN_AWAY_FIELDS=every pytest -n 2 tests/importing/test_taken_away.py

takes from larger clusters, and each field that there is. A whole dump is imported as it lives.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.support import dumps
from tests.support.in_process import ipamc
from tests.support.live_clusters import CLUSTERS, Live
from tests.support.taken_away import TOGETHER, Taking, takings

NODES = int(os.environ.get("IPAMC_TAKEN_AWAY_NODES", "12"))
PODS = 2 if NODES < 100 else 6
EVERY = os.environ.get("IPAMC_TAKEN_AWAY_FIELDS") == "every"
VERSION = ("--cilium-version", "1.18")
NO_BLOCKS = ("eks-vpc-cni", "eks-eni")
"""Clusters in which no node has a block: none of them may get one while pods run on it, but for a move."""
MOVES = "eks-eni"
"""With --mode its import prepares a move: its nodes get blocks that overlap nothing of their present mode."""
ON_EKS = "eks-cluster-pool"
"""It is `cluster-pool` but for its Nodes."""
UNKNOWN = ("no CiliumNode, no conditions", "no CiliumNode, no status")
"""Nothing in Nodes alone tells then that they run: pods do, which are no input of a compile."""
DIRECT = ("cluster-pool-left-over", "kubernetes-dual", "multi-pool-left-over")
"""Clusters whose Nodes and CiliumNodes are compiled: what is left over is beside what they use."""
OF_INVENTORIES = ("only", "Node", "CiliumNode", "ConfigMap", "IPAMBlock", "BlockAffinity", "IPPool")
"""What a refresh looks at."""
NEWCOMER = """\
apiVersion: ipamc/v1alpha1
kind: NodeInventory
nodes: [{name: a-newcomer, labels: {rack: a}, planned: true}, {name: b-newcomer, labels: {rack: b}, planned: true}]
"""
_ERRORS = re.compile(r"^error\[IPC\d{4}\]", re.MULTILINE).findall
_OF_BLOCKS = re.compile(r"^error\[IPC(?:091\d|0941)\].*", re.MULTILINE).findall


@functools.cache
def live(cluster: str) -> Live:
    return CLUSTERS[cluster](NODES, PODS)


@functools.cache
def of(cluster: str) -> Sequence[tuple[str, Taking]]:
    return list(takings(live(cluster).objects, every=EVERY))


def table(*clusters: str, kinds: Sequence[str] = (), but: Sequence[str] = ()) -> list[object]:
    """Return each taking of some clusters; with `kinds` those that leave something out of objects of these."""
    return [
        pytest.param(cluster, taking, id=f"{cluster}: {name}")
        for cluster in clusters
        for name, taking in of(cluster)
        if name not in but and (not kinds or name in TOGETHER or any(kind in name.split() for kind in kinds))
    ]


class Home:
    """A folder of a user who imports the cluster `lab`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = folder / "clusters" / "lab"

    def write(self, name: str, objects: Iterable[dumps.Object]) -> None:
        shell = {"apiVersion": "v1", "items": list(objects), "kind": "List"}
        (self.folder / name).write_text(json.dumps(shell))  # without blanks: it is as good, and quick

    def run(self, *arguments: str) -> bool:
        """Run ipamc; tell whether it did what it was told: else it refused, with an error."""
        code, said = self._run(*arguments)
        assert code == 0 or (code == 1 and _ERRORS(said)), said
        return code == 0

    def audit(self, dump: str) -> list[str]:
        """Return the errors of an audit about blocks."""
        return _OF_BLOCKS(self._run("audit", "lab", dump)[1])

    def _run(self, *arguments: str) -> tuple[int, str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull}
        done = ipamc(*arguments, cwd=self.folder, environment=environment, one_stream=True)
        return done.returncode, done.stdout

    def lines(self) -> list[dict[str, str]]:
        """Return the lines of the lock."""
        return [json.loads(line) for line in (self.lab / "ipam.lock").read_text().splitlines()[1:]]

    def held(self) -> dict[str, set[str]]:
        """Return the held blocks of the lock by node."""
        found = defaultdict(set)
        for line in self.lines():
            if line.keys() <= {"block", "pool", "node"}:
                found[line["node"]].add(line["block"])
        return found

    def digest(self) -> str:
        """Return all that an import wrote."""
        return repr([(path, path.read_bytes()) for path in sorted(self.lab.rglob("*")) if path.is_file()])


def wrong(home: Home, whole: Live, left: Iterable[dumps.Object], *, moving: bool = False) -> list[str]:
    """Return what is wrong with the lock: another block than the pods of a node use, or a block of somebody's pods.
    Nodes that are to move get other blocks, in which no pod runs, not even one of their own.
    """
    there = {item["metadata"]["name"] for item in left if item["kind"] == "Node"}
    running = {node for _, node in whole.pods} & there
    held = home.held()
    found = [
        f"{node} has {sorted(held.get(node, ()))}, its pods use {sorted(whole.truth.get(node, ()))}"
        for node in sorted(running)
        if not moving and held.get(node, set()) != set(whole.truth.get(node, ()))
    ]
    used = {ip_network(block): node for node, blocks in whole.truth.items() for block in blocks}
    used |= {ip_network(address): node for address, node in whole.pods}
    taken = sorted(used, key=lambda block: (block.version, int(block.network_address)))
    for line in home.lines():
        block = ip_network(line["block"])
        found += [
            f"{line['node']} has {block}, in which pods of {used[other]} run"
            for other in taken
            if other.version == block.version
            and block.overlaps(other)
            and (moving or used[other] != line["node"])
        ][:1]
    return found


_SEEN: dict[str, set[str]] = defaultdict(set)
"""What was imported already, by cluster, and found to be sound by an audit and with newcomers."""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("cluster", "taking"),
    [
        *table(*(each for each in CLUSTERS if each != ON_EKS)),
        *table(ON_EKS, kinds=() if EVERY else ("Node",)),
    ],
)
def test_an_import_is_the_live_allocation_or_a_refusal(cluster: str, taking: Taking, tmp_path: Path) -> None:
    whole = live(cluster)
    left = taking(whole.objects)
    answers = [VERSION, (*VERSION, "--mode", whole.mode or "cluster-pool")]
    for number, flags in enumerate(answers):
        (tmp_path / str(number)).mkdir()
        home = Home(tmp_path / str(number))
        home.write("dump.json", left)
        if not home.run("import", "lab", "dump.json", *flags):
            continue  # a person is asked, and names the mode
        moving = cluster == MOVES and bool(number)
        if moving and not (home.lab / "ipam.lock").exists():  # the ranges are a proposal
            assert home.run("compile", "lab")
        assert wrong(home, whole, left, moving=moving) == []
        digest = home.digest().replace(str(home.folder), "")
        if digest in _SEEN[cluster]:
            return
        home.write("whole.json", whole.objects)
        assert home.audit("whole.json") == []
        (home.lab / "more.yaml").write_text(NEWCOMER)
        if home.run("compile", "lab"):
            assert wrong(home, whole, left, moving=moving) == []
        _SEEN[cluster].add(digest)
        return


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_whole_dump_is_imported_as_it_lives(cluster: str, tmp_path: Path) -> None:
    home, whole = Home(tmp_path), live(cluster)
    home.write("dump.json", whole.objects)
    if cluster in NO_BLOCKS:
        assert not home.run("import", "lab", "dump.json", *VERSION)
        assert not (home.lab / "ipam.lock").exists()
        return
    assert home.run("import", "lab", "dump.json", *VERSION)
    assert wrong(home, whole, whole.objects) == []


@functools.cache
def imported(cluster: str, folder: Path) -> Path:
    """Import a whole dump in a folder; return it."""
    home = Home(folder / cluster)
    home.folder.mkdir()
    home.write("dump.json", live(cluster).objects)
    assert home.run("import", "lab", "dump.json", *VERSION)
    return home.folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imported")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("cluster", "taking"),
    table(
        *(
            (each for each in CLUSTERS if not each.startswith("eks"))
            if EVERY
            else (*DIRECT, "cluster-pool", "calico")
        ),
        kinds=() if EVERY else OF_INVENTORIES,
    ),
)
def test_a_refresh_changes_no_held_block(cluster: str, taking: Taking, tmp_path: Path, folder: Path) -> None:
    whole = live(cluster)
    left = taking(whole.objects)
    shutil.copytree(imported(cluster, folder), tmp_path / "home")
    home = Home(tmp_path / "home")
    before = home.held()
    home.write("later.json", left)
    if not (home.run("import", "lab", "--refresh", "later.json") and home.run("compile", "lab")):
        return
    there = {item["metadata"]["name"] for item in left if item["kind"] == "Node"}
    assert home.held() == {node: blocks for node, blocks in before.items() if node in there}
    kept = {(line["block"], line["node"]) for line in home.lines()}
    assert {(block, node) for node, blocks in before.items() for block in blocks} <= kept


@pytest.mark.deep
@pytest.mark.parametrize(("cluster", "taking"), table(*DIRECT, kinds=("Node", "CiliumNode"), but=UNKNOWN))
def test_a_compile_of_nodes_is_the_live_allocation_or_a_refusal(
    cluster: str, taking: Taking, tmp_path: Path, folder: Path
) -> None:
    whole = live(cluster)
    left = [item for item in taking(whole.objects) if item["kind"] in {"Node", "CiliumNode"}]
    home = Home(tmp_path)
    home.lab.mkdir(parents=True)
    for name in ("cluster.yaml", "ippools.yaml"):
        shutil.copy(imported(cluster, folder) / "clusters" / "lab" / name, home.lab)
    home.write("clusters/lab/nodes.json", left)
    if not home.run("compile", "lab"):
        return
    assert wrong(home, whole, left) == []
