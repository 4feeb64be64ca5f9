"""What follows from the pools: which routes a router learns, and whom pods of another cluster see."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest

from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin, needs_ip6tables
from tests.e2e.agents.lab import Lab
from tests.e2e.agents.machine import Machine
from tests.e2e.agents.node import PATIENCE
from tests.e2e.agents.pod import Pod
from tests.e2e.agents.router import BGP_CONTROL_PLANE, SPEC, GoBgp, version_of_kinds
from tests.e2e.agents.test_pools import RACKS
from tests.e2e.agents.test_pools import documents as two_pools
from tests.e2e.agents.test_router import all_sessions, next_hops
from tests.e2e.api import Object
from tests.e2e.operator import Operator
from tests.e2e.processes import Program, until
from tests.e2e.rules import shows
from tests.e2e.site import dumped
from tests.support import kustomize
from tests.support.fleet import cluster, inventory, pool


@pytest.mark.deep("selected")
@shows("IPC0587")
@pytest.mark.parametrize("mode", ["bystander", "pinned", "selected"])
def test_a_router_learns_the_lock_by_what_is_rendered(begin: Begin, operator: Operator, mode: str) -> None:
    """The advertisements are rendered; the peers are the user's, who names the Component beside them.

    Where they select a pool, no other one is announced.
    """
    if not can(operator.version, Capability.BGP_ADVERTISEMENT):
        pytest.skip("advertisements work from 1.16 on")
    group = version_of_kinds(operator.version)
    peers: list[Object] = [
        {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": SPEC[which]}
        for kind, name, which in (
            ("CiliumBGPPeerConfig", "router", "peer"),
            ("CiliumBGPClusterConfig", "fabric", "cluster"),
        )
    ]
    ours, *others = two_pools("node") if mode == "selected" else documents(mode, "ab")
    advertisement: Object = {"name": "blocks", "labels": {"to": "router"}}
    if mode == "selected":
        public_ones = others[0]["metadata"]["labels"] = {"tier": "public"}
        advertisement["selector"] = {"matchLabels": public_ones}
    ours["spec"] |= {"bgp": "control-plane", "bgpAdvertisements": [advertisement]}
    lab = begin([ours, *others, *peers], "ab", labels=RACKS, settings=BGP_CONTROL_PLANE)
    assert ("IPC0587" in lab.site.compile("--check")) == (mode == "selected")
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
        all_sessions(lab, router)
        wanted = next_hops(lab)
        if mode == "selected":
            wanted = {block: hops for block, hops in wanted.items() if hops == [lab.nodes["a"].address]}
        until(lambda: router.table() == wanted, "the router has the blocks of the lock", 180)


PORT = 9999
LISTEN = f"""
import socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as here:
    here.bind(("::", {PORT}))
    while True:
        text, (sender, *_) = here.recvfrom(100)
        print(text.decode(), sender.removeprefix("::ffff:"), flush=True)
"""
SEND = f"""
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.sendto(sys.argv[2].encode(), (sys.argv[1], {PORT}))
"""
LISTED, OTHER = {4: "10.7.0.5", 6: "fd00:7::5"}, {4: "10.8.0.5", 6: "fd00:8::5"}
"""Addresses of pods of another cluster, by family: of ranges of its pool, and of another network."""
OWN, WIDER = {4: "10.0.0.0/24", 6: "fd00::/112"}, {4: "10.0.0.0/13", 6: "fd00::/29"}
"""The range of the node's pool, and one that has it and the other cluster's pool."""
LINK_LOCAL = {4: "169.254.0.0/16", 6: "fe80::/10"}
LIST = 16_384
"""CIDRs of a family that an agent does not masquerade, at most."""
AGENT_FILE = "/run/cilium/ip-masq-agent/config"
MASQUERADING = {
    "enable-ipv4-masquerade": "true",
    "enable-ipv6-masquerade": "true",
    "enable-bpf-masquerade": "true",
    "ipv4-native-routing-cidr": OWN[4],
    "ipv6-native-routing-cidr": OWN[6],
    "kube-proxy-replacement": "true",
    "devices": "eth0",
    "ip-masq-agent-config-path": AGENT_FILE,
}


FAMILIES = pytest.mark.parametrize("families", [[4], [4, 6]])


@dataclass
class Receiver:
    """A machine that stands for pods of another cluster, and says from whom it gets what."""

    program: Program

    def sees(self, pod: Pod, addresses: Mapping[int, str]) -> set[str]:
        """Let a pod send something to an address of each of its families; return whom the receiver sees: the pod, its node."""
        node = dict.fromkeys((pod.node.address, pod.node.address_6), "node")
        return {
            {**node, own: "pod"}[self._sender(pod, addresses[6 if ":" in own else 4])]
            for own in pod.addresses
        }

    def masquerades(self, pod: Pod) -> None:
        """Wait until the agent, which may be ready before, masquerades what a pod sends to another network."""
        until(lambda: self.sees(pod, OTHER) == {"node"}, "the receiver sees the node", 60)

    def _sender(self, pod: Pod, address: str) -> str:
        what = f"{address}-{len(self.program.said().splitlines())}"

        def seen() -> list[str]:
            pod.run(sys.executable, "-c", SEND, address, what)
            return [
                line.split()[1] for line in self.program.said().splitlines() if line.startswith(f"{what} ")
            ]

        until(seen, f"{address} gets something", 60, pause=1)
        return seen()[0]


@contextmanager
def receiver(lab: Lab, folder: Path) -> Iterator[Receiver]:
    """Run the machine: node a knows the way to it, and it knows the way to the node's pods."""
    with Machine("other", 200, folder) as other:
        node = lab.nodes["a"]
        for address in (*LISTED.values(), *OTHER.values()):
            other.run("ip", "addr", "add", address, "dev", "lo")
            node.run(
                "ip", "route", "add", address, "via", other.address_6 if ":" in address else other.address
            )
        other.run("ip", "route", "add", "10.0.0.0/14", "via", node.address)
        other.run("ip", "route", "add", OWN[6], "via", node.address_6)
        with Program(folder / "receiver.log", *other.inside(sys.executable, "-c", LISTEN)) as program:
            yield Receiver(program)


FROM_PUBLIC = {"ipam.cilium.io/ip-pool": "public"}
"""The annotation of a pod that wants an address of that pool."""


def public(**spec: object) -> Object:
    """Make a pool for pods that choose it."""
    return pool("public", ipv4={"cidrs": ["10.2.0.0/24"], "blockSize": 27}, **spec)


def masquerading(families: Collection[int], mode: str = "bystander", **asked: object) -> list[Object]:
    """Make the documents of a cluster of one node, which asks for some masquerading."""
    ours, default, *rest = documents(mode, "a")
    ours["spec"]["cilium"]["masquerade"] = asked
    ours["spec"]["ipFamilies"] = [f"IPv{family}" for family in families]
    if 6 in families:
        default["spec"]["ipv6"] = {"cidrs": [OWN[6]], "blockSize": 122}
    return [ours, default, *rest]


def give_list(lab: Lab) -> None:
    """Do what the kubelet does with the ConfigMap: the file is a link through one that is exchanged."""
    (rendered,) = lab.site.rendering("cilium/ip-masq-agent.yaml")
    mount(lab, rendered["data"]["config"])


def mount(lab: Lab, text: str) -> None:
    """Let the agent of node a find a list."""
    folder, _, file = AGENT_FILE.rpartition("/")
    script = f"""
    set -e; mkdir -p {folder}; cd {folder}
    new=$(mktemp -d ..XXXXXX); cat >$new/{file}
    ln -s $new ..data_tmp; mv -T ..data_tmp ..data
    ln -sfn ..data/{file} {file}"""
    lab.nodes["a"].run("sh", "-c", script, text=text)


def not_masqueraded(lab: Lab) -> set[str]:
    """Return what the agent of node a has in its list, and words around it."""
    node = lab.nodes["a"]
    return set(node.run("cilium-dbg", "bpf", "ipmasq", "list", environment=node.environment).split())


def link_local(lab: Lab) -> set[str]:
    """Return the link-local ranges that the agent of node a does not masquerade."""
    return not_masqueraded(lab) & set(LINK_LOCAL.values())


@pytest.mark.deep("families1")
@FAMILIES
def test_pods_of_the_address_space_see_the_pod_and_others_see_the_node(
    begin: Begin, operator: Operator, families: Collection[int], tmp_path: Path
) -> None:
    """Seen from the receiver; and agents read a changed list without a restart."""
    if 6 in families:
        needs_ip6tables(operator.version)
    ours, *rest = masquerading(families, addressSpace=False)
    ours["spec"]["addressSpace"] = "fabric"
    lab = begin([ours, *rest], "a", settings=MASQUERADING)
    beside = lab.site.folder.with_name("beside")
    beside.mkdir()
    others = [
        {**cluster(addressSpace="fabric", ipFamilies=["IPv4", "IPv6"]), "metadata": {"name": "beside"}},
        pool(
            "default",
            ipv4={"cidrs": ["10.7.0.0/24"], "blockSize": 27},
            ipv6={"cidrs": ["fd00:7::/112"], "blockSize": 122},
        ),
        inventory([]),
    ]
    (beside / "all.yaml").write_text(dumped(others))
    lab.site.run("init", "--space", "fabric")
    with receiver(lab, tmp_path) as other:
        give_list(lab)
        lab.install()
        lab.start_pods("a1")
        pod = lab.pods["a1"]
        other.masquerades(pod)
        assert other.sees(pod, LISTED) == {"node"}
        assert link_local(lab) == {LINK_LOCAL[family] for family in families}

        def listed(document: Object) -> None:
            if document["kind"] == "Cluster":
                six = {"masqLinkLocalIPv6": True} if 6 in families else {}
                document["spec"]["cilium"]["masquerade"] = {"masqLinkLocal": True, **six}

        lab.site.edit(listed)
        lab.site.compile()
        give_list(lab)
        until(lambda: other.sees(pod, LISTED) == {"pod"}, "the other cluster's pods see the pod itself", 60)
        assert other.sees(pod, OTHER) == {"node"}
        assert not link_local(lab)


@pytest.mark.deep("families1")
@FAMILIES
def test_one_cidr_says_who_sees_the_pod_where_there_is_no_list(
    begin: Begin, operator: Operator, families: Collection[int], tmp_path: Path
) -> None:
    if 6 in families:
        needs_ip6tables(operator.version)
    some = masquerading(
        families, ipMasqAgent=False, nonMasqueradeCIDRs=[WIDER[family] for family in families]
    )
    lab = begin(some, "a", settings=MASQUERADING)
    with receiver(lab, tmp_path) as other:
        lab.install()
        lab.start_pods("a1")
        other.masquerades(lab.pods["a1"])
        assert other.sees(lab.pods["a1"], LISTED) == {"pod"}


@pytest.mark.deep(part=0)
@shows("IPC0934")
def test_iptables_masquerade_one_range_without_interfaces(
    begin: Begin, operator: Operator, tmp_path: Path
) -> None:
    """The node's first block; up to 1.16 a range that no pod has. From 1.19 on agents end: test_versions."""
    if can(operator.version, Capability.EGRESS_INTERFACES):
        pytest.skip("agents end from 1.19 on")
    settings = {"enable-ipv4-masquerade": "true", "ipv4-native-routing-cidr": OWN[4]}
    lab = begin([*documents("shared", "a"), public(podsOnly=True)], "a", settings=settings)
    with receiver(lab, tmp_path) as other:
        lab.install()
        lab.start_pods("a1")
        lab.start_pods("a2", **FROM_PUBLIC)
        if operator.version >= (1, 17):
            other.masquerades(lab.pods["a1"])
        assert other.sees(lab.pods["a1"], OTHER) == {"node" if operator.version >= (1, 17) else "pod"}
        assert other.sees(lab.pods["a2"], OTHER) == {"pod"}


@pytest.mark.deep(part=0)
def test_iptables_masquerade_pods_of_every_pool_where_the_interfaces_are_named(
    begin: Begin, tmp_path: Path
) -> None:
    settings = {
        "enable-ipv4-masquerade": "true",
        "ipv4-native-routing-cidr": OWN[4],
        "egress-masquerade-interfaces": "eth+",
    }
    lab = begin([*documents("shared", "a"), public(podsOnly=True)], "a", settings=settings)
    with receiver(lab, tmp_path) as other:
        lab.install()
        lab.start_pods("a1")
        lab.start_pods("a2", **FROM_PUBLIC)
        for pod in lab.pods.values():
            other.masquerades(pod)


@pytest.mark.deep(part=0)
@shows("IPC0216")
def test_pods_outside_the_native_cidr_see_nodes_in_place_of_pods(begin: Begin, tmp_path: Path) -> None:
    some = documents("bystander", "ab")
    some[0]["spec"]["cilium"] |= {"routingMode": "native", "nativeRoutingCIDR": "10.200.0.0/16"}
    lab = begin(some, "ab", settings={**MASQUERADING, "ipv4-native-routing-cidr": "10.200.0.0/16"})
    assert "IPC0216" in lab.site.compile("--check")
    lab.install()
    lab.start_pods("a1", "b1")
    listen = lab.pods["b1"].inside(sys.executable, "-c", LISTEN)
    with Program(tmp_path / "receiver.log", *listen) as program:
        other, there = Receiver(program), {4: lab.pods["b1"].address}
        until(lambda: other.sees(lab.pods["a1"], there) == {"node"}, "the pod of b sees the node of a", 60)


@pytest.mark.deep(part=0)
@shows("IPC0584")
def test_an_agent_without_a_list_has_one_of_its_own(begin: Begin, tmp_path: Path) -> None:
    """Pods of private networks see the pod, and nobody else does."""
    lab = begin(masquerading([4], addressSpace=False), "a", settings=MASQUERADING)
    with receiver(lab, tmp_path) as other:
        lab.nodes["a"].run("mkdir", "-p", AGENT_FILE.rpartition("/")[0])  # agents watch it
        lab.install()
        lab.start_pods("a1")
        assert {"10.0.0.0/8", "192.168.0.0/16"} <= not_masqueraded(lab)
        assert other.sees(lab.pods["a1"], OTHER) == {"pod"}


@shows("IPC0584")
@pytest.mark.deep(part=0)
def test_no_pod_starts_where_nothing_is_mounted_for_the_list(begin: Begin) -> None:
    """The agent watches the folder."""
    lab = begin(masquerading([4], addressSpace=False), "a", settings=MASQUERADING)
    lab.apply()
    lab.roll_out()
    lab.agents("a")
    agent = lab.nodes["a"].agent
    assert agent
    until(lambda: "fsnotify watcher" in agent.said(), "the agent misses the folder", PATIENCE)
    with Pod("a1", lab.nodes["a"]) as pod:
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            assert pod.cni("ADD").returncode
            time.sleep(1)


@pytest.mark.deep(part=0)
def test_an_agents_list_has_room_for_so_many_cidrs(begin: Begin) -> None:
    lab = begin(masquerading([4], addressSpace=False), "a", settings=MASQUERADING)
    some = [f"{ip_address(int(ip_address('100.64.0.0')) + number)}/32" for number in range(LIST + 1)]
    mount(lab, json.dumps({"nonMasqueradeCIDRs": some, "masqLinkLocal": True}))
    lab.install()

    def listed() -> int:
        return len(not_masqueraded(lab).intersection(some))

    until(lambda: listed() >= LIST, "the agent, which may be ready before, has read the list", 60)
    time.sleep(2)
    assert listed() == LIST


@pytest.mark.deep("pool")
@shows("IPC0562", "IPC0581")
@pytest.mark.parametrize("whose", ["pool", "cluster"])
def test_everybody_sees_pods_of_pools_that_skip_masquerading(
    begin: Begin, operator: Operator, whose: str, tmp_path: Path
) -> None:
    """Agents up to 1.18 masquerade them as all others."""
    skips = can(operator.version, Capability.SKIP_MASQUERADE)
    some = masquerading([4], "shared", **({"onlyMasqueradeDefaultPool": True} if whose == "cluster" else {}))
    some.append(public(**({"skipMasquerade": True} if whose == "pool" else {})))
    code = {"pool": "IPC0562", "cluster": "IPC0581"}[whose]
    lab = begin(some, "a", settings=MASQUERADING, without=[] if skips else [code])
    with receiver(lab, tmp_path) as other:
        give_list(lab)
        lab.install()
        lab.start_pods("a1")
        lab.start_pods("a2", **FROM_PUBLIC)
        other.masquerades(lab.pods["a1"])
        assert other.sees(lab.pods["a2"], OTHER) == {"pod" if skips else "node"}


@pytest.mark.deep("pool")
@pytest.mark.parametrize("whose", ["pool", "cluster"])
def test_a_pool_that_is_to_skip_masquerading_does_so_for_pods_that_start_afterwards(
    begin: Begin, operator: Operator, whose: str, tmp_path: Path
) -> None:
    if not can(operator.version, Capability.SKIP_MASQUERADE):
        pytest.skip("Cilium has it from 1.19 on")
    lab = begin([*masquerading([4], "shared"), public(podsOnly=True)], "a", settings=MASQUERADING)
    with receiver(lab, tmp_path) as other:
        give_list(lab)
        lab.install()
        lab.start_pods("a1", **FROM_PUBLIC)
        other.masquerades(lab.pods["a1"])

        def skip(document: Object) -> None:
            if (whose, document["kind"]) == ("pool", "IPPool") and document["metadata"]["name"] == "public":
                document["spec"]["skipMasquerade"] = True
            if (whose, document["kind"]) == ("cluster", "Cluster"):
                document["spec"]["cilium"]["masquerade"]["onlyMasqueradeDefaultPool"] = True

        lab.site.edit(skip)
        lab.site.compile()
        lab.site.apply()
        if whose == "cluster":
            lab.roll_out()
            lab.agents("a")
            lab.ready()
        lab.start_pods("a2", **FROM_PUBLIC)
        until(lambda: other.sees(lab.pods["a2"], OTHER) == {"pod"}, "others see the new pod", 60)
        lab.agents("a")
        lab.ready()
        assert other.sees(lab.pods["a1"], OTHER) == {"node"}
