"""`ipamc check`: what is wrong with the addresses of a cluster, from a dump alone."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.cli.check import checked
from ipamc.model.diagnostics import Severity
from ipamc.report.networks import networks, table
from tests.importing.test_unreadable import CLUSTERS
from tests.review.audit.test_no_alarm import HARMLESS
from tests.review.audit.worlds import WORLDS, living
from tests.support import dumps
from tests.support.in_process import ipamc

CONFIG = dumps.config_map(
    ipam="cluster-pool",
    enable_ipv4="true",
    cluster_pool_ipv4_cidr="10.244.0.0/16",
    cluster_pool_ipv4_mask_size="24",
)
SERVICES = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "ServiceCIDR",
    "metadata": {"name": "kubernetes"},
    "spec": {"cidrs": ["10.96.0.0/16"]},
}


def fleet(*blocks: str, ip: str = "192.168.7") -> list[dumps.Object]:
    """Return nodes n1, n2, ... with their CiliumNodes, and the flags of cluster-pool mode."""
    made: list[dumps.Object] = [CONFIG]
    for number, block in enumerate(blocks, 1):
        made.append(dumps.node(f"n{number}", uid=f"u{number}", ip=f"{ip}.{number}"))
        made.append(dumps.cilium_node(f"n{number}", *([block] if block else [])))
    return made


SOUND = [*fleet("10.244.0.0/24", "10.244.1.0/24"), dumps.pod("web", "n1", "10.244.0.9"), SERVICES]
CALICO = CLUSTERS["Calico"]
POOLS = [
    dumps.config_map(ipam="multi-pool", enable_ipv4="true"),
    dumps.node("n1", ip="192.168.7.1"),
    dumps.cilium_node("n1", allocated={"a": ["10.1.0.0/24"]}),
    dumps.pool("a", mask=24, cidrs=["10.1.0.0/16"]),
]
FAULTS: dict[str, tuple[list[dumps.Object], list[str]]] = {
    "sound": (SOUND, []),
    "one block on two nodes": (fleet("10.244.0.0/24", "10.244.0.0/24"), ["error IPC0910 nodes n1 and n2"]),
    "a stale CiliumNode": (
        [*fleet("10.244.0.0/24"), dumps.cilium_node("gone", "10.244.9.0/24")],
        ["warning IPC0926 1 CiliumNode"],
    ),
    "a block of no flag": (fleet("10.9.0.0/24", "10.244.1.0/24"), ["warning IPC0814 1 node has blocks"]),
    "no block": (fleet("10.244.0.0/24", ""), ["error IPC0922 node n2 has no IPv4 block"]),
    "a pod outside its node's block": (
        [*fleet("10.244.0.0/24", "10.244.1.0/24"), dumps.pod("web", "n1", "10.244.1.9")],
        ["error IPC0960 1 pod on node n1"],
    ),
    "one address twice": (
        [*fleet("10.244.0.0/24"), *(dumps.pod(name, "n1", "10.244.0.9") for name in ("a", "b"))],
        ["error IPC0961 pods default/a (n1) and default/b (n1)"],
    ),
    "services over the pods": (
        [*fleet("10.244.0.0/24"), {**SERVICES, "spec": {"cidrs": ["10.244.128.0/20"]}}],
        ["warning IPC0819 range 10.244.0.0/16 of pool default contains addresses of services"],
    ),
    "services over the nodes": (
        [*fleet("10.244.0.0/24", ip="10.96.0"), SERVICES],
        ["error IPC0915 the network of services (10.96.0.0/16) contains node n1 (10.96.0.1)"],
    ),
    "a node in a block of pods": (
        fleet("10.244.0.0/24", "10.244.1.0/24", ip="10.244.1"),
        ["error IPC0914 node n1 has 10.244.1.1, inside block 10.244.1.0/24 of n2"],
    ),
    "pools that overlap": (
        [*POOLS, dumps.pool("b", mask=24, cidrs=["10.1.128.0/17"])],
        ['error IPC0207 10.1.128.0/17 of pool "b" overlaps pool "a"'],
    ),
    "a pool that is gone": (
        [*POOLS[:2], dumps.cilium_node("n1", allocated={"c": ["10.3.0.0/24"]}), *POOLS[3:]],
        ["error IPC0913 node n1 has 10.3.0.0/24 of CiliumPodIPPool c"],
    ),
    "a full pool": (
        [*POOLS[:3], dumps.pool("a", mask=24, cidrs=["10.1.0.0/24"])],
        ['warning IPC0215 pool "a" has 0 %'],
    ),
    "Calico": (CALICO, ["warning IPC0855 10.2.0.16/28", "warning IPC0858 10.2.0.8/29"]),
}


def run(folder: Path, *words: str, code: int) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = ipamc("check", *words, cwd=folder, environment=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def found(path: Path, objects: list[dumps.Object]) -> tuple[list[str], str]:
    """Return the problems that a check finds, and its table."""
    path.write_text(dumps.kubectl(*objects))
    known, findings = checked([str(path)])
    said = [f"{each.severity.word} {each.code} {each.message}" for each in findings]
    problems = [text for text, each in zip(said, findings, strict=True) if each.severity is not Severity.NOTE]
    return problems, table(networks(known))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str, tmp_path: Path) -> None:
    objects, expected = FAULTS[name]
    problems, _ = found(tmp_path / "dump.json", objects)
    assert len(problems) == len(expected), problems
    for problem, start in zip(sorted(problems), sorted(expected), strict=True):
        assert problem.startswith(start)


def test_the_networks_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(dumps.kubectl(*SOUND))
    assert run(tmp_path, "dump.json", code=0).stdout == (
        "\n"
        "network         of        from           in use              room\n"
        "10.244.0.0/16   pods      cilium-config  2 of 256 /24 (<1%)  254 nodes\n"
        "192.168.7.0/24  nodes     InternalIPs    2 addresses\n"
        "10.96.0.0/16    services  ServiceCIDR    0 addresses\n"
        "\n"
        "found 0 problems\n"
    )
    document = json.loads(run(tmp_path, "dump.json", "--output", "json", code=0).stdout)
    assert document["problems"] == 0
    assert [each["network"] for each in document["networks"]] == [
        "10.244.0.0/16",
        "192.168.7.0/24",
        "10.96.0.0/16",
    ]


def test_the_next_step_works_and_the_fault_comes_first(tmp_path: Path) -> None:
    objects = [*fleet("10.244.0.0/24", "10.244.1.0/24"), dumps.cilium_node("gone", "10.244.9.0/24")]
    operator = dumps.pod("cilium-operator-x", "n1", "192.168.7.1", namespace="kube-system", hostNetwork=True)
    operator["metadata"]["labels"] = {"name": "cilium-operator"}
    operator["spec"]["containers"] = [{"image": "quay.io/cilium/operator-generic:v1.18.5"}]
    (tmp_path / "dump.json").write_text(dumps.kubectl(*objects, operator))
    done = run(tmp_path, "dump.json", code=1)
    assert done.stderr.startswith("warning[IPC0926]: 1 CiliumNode without a Node")
    assert done.stdout.endswith("\nfound 1 problem\n")
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("next: ")]
    command = line.rpartition(": ")[2].split()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert ipamc(*command[1:], cwd=tmp_path, environment=environment).returncode == 0


def test_a_sysdump_and_stdin_are_dumps(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "cilium-sysdump.zip", "w") as sysdump:
        for number, item in enumerate(SOUND):
            listed = {"apiVersion": item["apiVersion"], "kind": f"{item['kind']}List", "items": [item]}
            sysdump.writestr(f"cilium-sysdump/{number}.yaml", yaml.safe_dump(listed))
    assert "10.244.0.0/16   pods" in run(tmp_path, "cilium-sysdump.zip", code=0).stdout
    assert not [path for path in tmp_path.iterdir() if path.name != "cilium-sysdump.zip"]


@pytest.mark.parametrize("word", ["lab", "clusters/lab"])
def test_a_cluster_of_git_has_a_verb_of_its_own(word: str, tmp_path: Path) -> None:
    (tmp_path / "clusters" / "lab").mkdir(parents=True)
    (tmp_path / "clusters" / "lab" / "cluster.yaml").touch()
    assert f"ipamc compile --check {word}" in run(tmp_path, word, code=64).stderr


@pytest.mark.parametrize("ipam", ["eni", "azure", "delegated-plugin"])
def test_a_mode_without_blocks_is_said(ipam: str, tmp_path: Path) -> None:
    objects = [dumps.config_map(ipam=ipam), *SOUND[1:]]
    problems, shown = found(tmp_path / "dump.json", objects)
    assert problems == []
    assert "10.244.0.0/24   pods      addresses of pods  1 address\n" in shown


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_what_is_missing_stops_no_check(cluster: str, tmp_path: Path) -> None:
    """Each kind in turn is not in the dump."""
    objects: list[Any] = CLUSTERS[cluster]
    for kind in sorted({each["kind"] for each in objects} - {"Node"}):
        found(tmp_path / f"{kind}.json", [each for each in objects if each["kind"] != kind])


@pytest.mark.parametrize("world", WORLDS)
def test_nodes_alone_do_not_show_the_mode(world: str, tmp_path: Path) -> None:
    """Without podCIDRs the blocks may be in CiliumNodes, which the dump lacks."""
    nodes = [each for each in living(world).objects.values() if each["kind"] == "Node"]
    alone = [each | {"spec": {}} for each in nodes]
    assert found(tmp_path / "dump.json", alone)[0] == []


@pytest.mark.parametrize("name", ["nothing", *HARMLESS])
def test_no_false_alarm(name: str, tmp_path: Path) -> None:
    """In these worlds the nodes fill their pool; in one the operator's list has not the blocks of ipamc."""
    worlds, plant = (WORLDS, None) if name == "nothing" else HARMLESS[name]
    for world in worlds:
        live = living(world)
        if plant:
            plant(live)
        problems, _ = found(tmp_path / "dump.json", list(live.objects.values()))
        known = ("IPC0215", *(("IPC0814", "IPC0970") if world == "cluster-pool adopt" else ()))
        assert not [each for each in problems if each.split()[1] not in known], world
