"""What follows from the pools: which routes a router learns, and whom pods of another cluster see."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab
from tests.e2e.agents.machine import Machine, Namespace
from tests.e2e.agents.router import BGP_CONTROL_PLANE, SPEC, GoBgp
from tests.e2e.agents.test_router import next_hops
from tests.e2e.api import Object
from tests.e2e.operator import Operator
from tests.e2e.processes import Program, until
from tests.e2e.site import dumped
from tests.support import kustomize
from tests.support.fleet import cluster, inventory, pool


@pytest.mark.parametrize("mode", ["bystander", "pinned"])
def test_a_router_learns_the_lock_by_what_is_rendered(begin: Begin, operator: Operator, mode: str) -> None:
    """The advertisements are rendered; the peers are the user's, who names the Component beside them."""
    if operator.version < (1, 18):
        pytest.skip("the peers of this test are of cilium.io/v2")
    peers: list[Object] = [
        {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": {"name": name}, "spec": SPEC[which]}
        for kind, name, which in (
            ("CiliumBGPPeerConfig", "router", "peer"),
            ("CiliumBGPClusterConfig", "fabric", "cluster"),
        )
    ]
    ours, *others = documents(mode)
    ours["spec"] |= {
        "bgp": "control-plane",
        "bgpAdvertisements": [{"name": "blocks", "labels": {"to": "router"}}],
    }
    lab = begin([ours, *others, *peers], settings=BGP_CONTROL_PLANE)
    assert "IPC058" not in lab.site.compile("--check")
    folder = lab.site.work / "bgp"
    folder.mkdir()
    (folder / "peers.yaml").write_text(dumped(peers))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["peers.yaml"],
        "components": ["../clusters/fleet/rendered/cilium/bgp"],
    }
    (folder / "kustomization.yaml").write_text(dumped([kustomization]))
    lab.api.applied(kustomize.build(folder))
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        lab.install()
        until(lambda: router.table() == next_hops(lab), "the router has the blocks of the lock", 180)


PORT = 9999
LISTEN = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind(("0.0.0.0", {PORT}))
    while True:
        text, (sender, _) = here.recvfrom(100)
        print(text.decode(), sender, flush=True)
"""
SEND = f"""
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.sendto(sys.argv[2].encode(), (sys.argv[1], {PORT}))
"""
LISTED, OTHER = "10.7.0.5", "10.8.0.5"
"""Addresses of pods of another cluster: of a range of its pool, and of another network."""
AGENT_FILE = "/run/cilium/ip-masq-agent/config"


@contextmanager
def receiver(lab: Lab, folder: Path) -> Iterator[Program]:
    """Run a machine that stands for pods of another cluster, and says from whom it gets what."""
    with Machine("other", 200, folder) as other:
        node = lab.nodes["a"]
        for address in (LISTED, OTHER):
            other.run("ip", "addr", "add", f"{address}/32", "dev", "lo")
            node.run("ip", "route", "add", address, "via", other.address)
        other.run("ip", "route", "add", "10.0.0.0/24", "via", node.address)
        with Program(folder / "receiver.log", *other.inside(sys.executable, "-c", LISTEN)) as program:
            yield program


def sender_of(program: Program, pod: Namespace, address: str) -> str:
    """Send something from a pod to an address, and return the sender that the receiver saw."""
    what = f"{address}-{len(program.said().splitlines())}"

    def seen() -> list[str]:
        pod.run(sys.executable, "-c", SEND, address, what)
        return [line.split()[1] for line in program.said().splitlines() if line.startswith(f"{what} ")]

    until(seen, f"{address} gets something", 60, pause=1)
    return seen()[0]


def give_list(lab: Lab) -> None:
    """Compile, and do what the kubelet does with the ConfigMap: the agent finds the file."""
    lab.site.run("compile")
    (rendered,) = lab.site.rendering("cilium/ip-masq-agent.yaml")
    folder = AGENT_FILE.rpartition("/")[0]
    script = f"mkdir -p {folder}; cat >{AGENT_FILE}.new; mv {AGENT_FILE}.new {AGENT_FILE}"
    lab.nodes["a"].run("sh", "-c", script, text=rendered["data"]["config"])


def test_pods_of_the_address_space_see_the_pod_and_others_see_the_node(begin: Begin, tmp_path: Path) -> None:
    """Seen from the receiver; and agents read a changed list without a restart."""
    settings = {
        "enable-ipv4-masquerade": "true",
        "ipv4-native-routing-cidr": "10.0.0.0/24",
        "kube-proxy-replacement": "true",
        "devices": "eth0",
        "ip-masq-agent-config-path": AGENT_FILE,
    }
    ours, *rest = documents("bystander", "a")
    ours["spec"]["addressSpace"] = "fabric"
    ours["spec"]["cilium"] |= {"masquerade": {"addressSpace": False}}
    lab = begin([ours, *rest], "a", settings=settings)
    beside = lab.site.folder.with_name("beside")
    beside.mkdir()
    others = [
        {**cluster(addressSpace="fabric"), "metadata": {"name": "beside"}},
        pool("default", ipv4={"cidrs": ["10.7.0.0/24"], "blockSize": 27}),
        inventory([]),
    ]
    (beside / "all.yaml").write_text(dumped(others))
    with receiver(lab, tmp_path) as program:
        give_list(lab)
        lab.install()
        lab.start_pods("a1")
        pod, node = lab.pods["a1"], lab.nodes["a"]
        assert sender_of(program, pod, LISTED) == node.address
        assert sender_of(program, pod, OTHER) == node.address

        def listed(document: Object) -> None:
            if document["kind"] == "Cluster":
                document["spec"]["cilium"]["masquerade"] = {}

        lab.site.edit(listed)
        give_list(lab)
        until(
            lambda: sender_of(program, pod, LISTED) == pod.address,
            "pods of the other cluster see the pod's own address",
            60,
        )
        assert sender_of(program, pod, OTHER) == node.address
