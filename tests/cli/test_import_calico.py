"""`ipamc import` of a cluster that runs Calico, as a user runs it, and what the first commands after it say."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.in_process import ipamc

EXPORTS = Path(__file__).parent.parent / "importing" / "calico"
MINOR = ("--cilium-version", "1.19", "--managed-by", "helm")

LOCK = """\
{"lock":1,"cluster":"lab","mode":"multi-pool","shards":1}
{"block":"10.20.0.64/26","pool":"zone-a","node":"control-1"}
{"block":"10.20.1.128/26","pool":"zone-a","node":"worker-1"}
{"block":"10.20.7.0/26","pool":"zone-a","node":"worker-1"}
{"block":"10.20.64.0/26","pool":"zone-b","node":"worker-2"}
{"block":"10.20.64.192/26","pool":"zone-b","node":"worker-3"}
{"block":"10.20.66.0/26","pool":"zone-b","node":"worker-3"}
{"block":"10.244.171.128/26","pool":"default-ipv4-ippool","node":"worker-2"}
"""
SEED = """\
apiVersion: cilium.io/v2
kind: CiliumNode
metadata:
  name: worker-1
spec:
  ipam:
    pools:
      allocated:
      - cidrs:
        - 10.20.1.128/26
        - 10.20.7.0/26
        pool: zone-a.worker-1
"""
PLACE = """\
warning[IPC0858]: 10.20.64.60/30 of IPReservation routers overlaps 10.20.64.0/26 of node worker-2; \
Cilium may give these addresses to pods
"""


class Home:
    """A folder in which a user works, with the exports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in EXPORTS.iterdir():
            shutil.copy(path, folder)

    def run(self, *arguments: str, code: int = 0) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_GLOBAL": os.devnull}
        done = ipamc(*arguments, cwd=self.folder, environment=environment, one_stream=True)
        assert done.returncode == code, done.stdout
        return done.stdout

    def file(self, name: str) -> str:
        return (self.folder / "clusters" / "lab" / name).read_text()

    def times(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (self.folder / "clusters").rglob("*")}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_nodes_keep_their_blocks(home: Home) -> None:
    said = home.run("import", "lab", "kubectl-crd-v1.yaml", *MINOR)
    assert "7 blocks added (7 adopted), 0 returned, 0 left, 0 renumbered" in said
    assert PLACE in said
    assert "--> kubectl-crd-v1.yaml:" in said
    assert home.file("ipam.lock") == LOCK
    assert SEED in home.file("rendered/seeds/000.yaml")
    assert "name: zone-a.worker-1" in home.file("rendered/pools/000/ippools.yaml")


@pytest.mark.parametrize(
    "files",
    [
        ("kubectl-crd-v1.yaml",),
        ("kubectl-v3.json",),
        ("etcd-export.yaml", "etcd-nodes.json"),
        ("calicoctl-ippool.yaml", "calicoctl-ipreservation.yaml", "calicoctl-blocks.yaml"),
    ],
)
def test_again_a_refresh_and_a_compile_change_nothing(home: Home, files: tuple[str, ...]) -> None:
    home.run("import", "lab", *files, *MINOR)
    before = home.times()
    home.run("import", "lab", *files, *MINOR)
    home.run("import", "lab", "--refresh", *files)
    home.run("compile", "lab", "--locked", "--check")
    assert home.times() == before


EGRESS = """\
- {apiVersion: crd.projectcalico.org/v1, kind: IPPool, metadata: {name: egress}, spec: {cidr: 198.51.100.0/27, \
blockSize: 31, nodeSelector: "!all()"}}
- {apiVersion: v1, kind: Pod, metadata: {name: egress-gw, namespace: apps, annotations: \
{cni.projectcalico.org/ipv4pools: '["egress"]'}}, spec: {nodeName: w1}, status: {phase: Running, \
podIP: 198.51.100.0, podIPs: [{ip: 198.51.100.0}]}}
- {apiVersion: crd.projectcalico.org/v1, kind: IPAMBlock, metadata: {name: 198-51-100-0-31}, spec: \
{cidr: 198.51.100.0/31, affinity: 'host:w1', allocations: [0, null], attributes: [{handle_id: x, secondary: \
{node: w1, namespace: apps, pod: egress-gw}}]}}
- {apiVersion: crd.projectcalico.org/v1, kind: IPPool, metadata: {name: pods}, spec: {cidr: 10.0.0.0/16}}
- {apiVersion: crd.projectcalico.org/v1, kind: IPAMBlock, metadata: {name: 10-0-0-0-26}, spec: \
{cidr: 10.0.0.0/26, affinity: 'host:w1'}}
- {apiVersion: crd.projectcalico.org/v1, kind: IPAMConfig, metadata: {name: default}, spec: \
{strictAffinity: true, autoAllocateBlocks: false}}
- {apiVersion: v1, kind: Node, metadata: {name: w1, uid: u1}}
"""


def test_a_pool_on_request_from_the_import_to_the_runbook(home: Home) -> None:
    """The pod keeps its pool, if it asks Cilium for it; no node gets addresses of it for other pods."""
    (home.folder / "dump.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n{EGRESS}")
    said = home.run("import", "lab", "dump.yaml", "--cilium-version", "1.18", "--managed-by", "helm")
    assert "pod apps/egress-gw needs ipam.cilium.io/ip-pool: egress" in said
    assert "pool egress selects no node, so ipamc writes it as podsOnly" in said
    assert "IPC0214" not in said
    assert "egress" not in home.file("ipam.lock")
    assert home.file("ippools.yaml").count("podsOnly: true") == 1
    assert "  name: egress\n" in home.file("rendered/cilium/ippools.yaml")
    before = home.times()
    home.run("import", "lab", "dump.yaml", "--refresh")
    home.run("compile", "lab", "--locked", "--check")
    assert home.times() == before
    assert "found 0 problems" in home.run("audit", "lab", "dump.yaml")
    # The runbook installs Cilium on no node before the first apply: nothing is missing yet.
    config = (
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system}, data: "
    )
    (home.folder / "installed.yaml").write_text(
        f"kind: List\nitems:\n{EGRESS}{config}{{ipam: multi-pool}}}}\n"
    )
    assert "found 0 problems" in home.run("audit", "lab", "installed.yaml")
    steps = home.run("runbook", "lab", "--change", "calico")
    assert "egress.w1" not in steps
    assert '"reservedCIDRs":["10.0.0.0/26"]' in steps
    assert "Check that pods that request a Calico pool also request a Cilium pool" in steps
    assert "from reserved of pool egress, remove those that Calico used: 198.51.100.0/31" in steps


def test_nodes_alone_are_no_way_in(home: Home) -> None:
    """Without the blocks every node would get another one than its pods have."""
    said = home.run("import", "lab", "calicoctl-ippool.yaml", "etcd-nodes.json", *MINOR, code=1)
    assert "error[IPC0842]" in said
    assert "ipamc explain IPC0842" in said
    assert not (home.folder / "clusters" / "lab").exists()


def test_a_mode_with_one_block_a_node(home: Home) -> None:
    said = home.run("import", "lab", "kubectl-crd-v1.yaml", *MINOR, "--mode", "cluster-pool", code=1)
    assert "error[IPC0860]: 3 nodes have several blocks of a family" in said
    home.run("import", "lab", "etcd-export.yaml", "etcd-nodes.json", *MINOR, "--mode", "cluster-pool")
    assert '{"block":"10.30.0.16/28","pool":"db","node":"db-1"}\n' in home.file("ipam.lock")


def test_pools_with_an_overlay(home: Home) -> None:
    """They lead to a distinct range, whose runbook is printed at once; the one of the same blocks is refused."""
    path = home.folder / "kubectl-crd-v1.yaml"
    path.write_text(path.read_text().replace("ipipMode: Never", "ipipMode: Always"))
    said = home.run("import", "lab", path.name, *MINOR, code=1)
    assert "error[IPC0865]: 3 pools have an overlay, so Cilium cannot route the same blocks" in said
    assert "--distinct CIDR" in said
    assert not (home.folder / "clusters" / "lab").exists()
    said = home.run("import", "lab", path.name, *MINOR, "--distinct", "10.100.0.0/16")
    assert "4 blocks added (4 first fit), 0 returned, 0 left, 0 renumbered" in said
    assert '{"block":"10.100.0.0/24","pool":"default","node":"control-1"}' in home.file("ipam.lock")
    assert "  - 10.20.0.0/18     # Calico" in home.file("cluster.yaml")
    before = home.times()
    home.run("import", "lab", "--refresh", path.name)
    home.run("compile", "lab", "--locked", "--check")
    assert home.times() == before
    assert "tunnelPort=8473" in home.run("runbook", "lab", "--change", "calico", "--to", "distinct")
    said = home.run("import", "other", path.name, "--distinct", "10.100.0.1/16", code=64)
    assert "invalid value for --distinct: '10.100.0.1/16' has host bits set" in said


def test_each_finding_is_explained(home: Home) -> None:
    assert "strictAffinity" in home.run("explain", "IPC0856")
    assert "autoAllocateBlocks" in home.run("explain", "IPC0862")
