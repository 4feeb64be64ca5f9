"""Admission policies on real kube-apiservers: a node has its block in the request with which it joins, and nobody writes another one."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus as Status
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, MERGE, NODES, POOLS, Answer, Api, Object
from tests.e2e.conftest import OPERATORS, SERVERS, serving
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site
from tests.e2e.test_ci_apply import apply, flags
from tests.e2e.test_pipelines import AUTHOR, Pipeline
from tests.support.fleet import cluster, inventory, pool

Network = IPv4Network | IPv6Network
KUBERNETES = [
    pytest.param(folder, marks=() if rank == 0 else pytest.mark.deep(part=5), id=folder.name)
    for rank, folder in enumerate(
        sorted(folder for folder in SERVERS if folder.name.startswith("kubernetes-"))[::-1]
    )
]
"""Folders of kube-apiservers, with and without the rest of Kubernetes: the newest first, of others a part."""
POLICIES = tuple(
    f"/apis/admissionregistration.k8s.io/{version}/{kind}"
    for version, how in (("v1", "validating"), ("v1", "mutating"), ("v1beta1", "mutating"))
    for kind in (f"{how}admissionpolicybindings", f"{how}admissionpolicies")
)
MODES: dict[str, Object] = {
    "bystander": {"mode": "cluster-pool"},
    "adopt": {"mode": "cluster-pool", "ipam": {"operator": "adopt"}},
    "kubernetes": {"mode": "kubernetes"},
    "dual": {"mode": "kubernetes", "ipFamilies": ["IPv6", "IPv4"]},
    "annotated": {"mode": "kubernetes", "patchNodes": "annotations"},
    "pinned": {"mode": "multi-pool", "ipam": {"pinning": "node"}},
    "shared": {"mode": "multi-pool", "ipam": {"pinning": "pool"}},
}
FOLLOWING = {"bystander", "kubernetes", "annotated"}
"""Modes in which a pool follows the nodes' network."""
ANNOTATION = "network.cilium.io/ipv4-pod-cidr"
LISTED = ["worker-1", "worker-2", "worker-3", "worker-4"]
STRANGER = "stranger"
FOLLOWER, ITS_ADDRESS, ITS_BLOCK = "follower", "172.30.0.77", "10.64.19.64/26"
"""A node that nobody listed, in the network that a pool follows."""
FOLLOWS = {"cidrs": ["10.64.0.0/18"], "blockSize": 26, "follows": "172.30.0.0/24"}


@pytest.fixture(scope="session", params=KUBERNETES)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Start a kube-apiserver of each release, with the CRDs of the newest operator."""
    folder: Path = request.param
    newest = max(OPERATORS, key=lambda each: tuple(map(int, each.name.removeprefix("cilium-").split("."))))
    with serving(tmp_path_factory.mktemp(folder.name), newest, server=folder) as found:
        yield found


def asked(api: Api, mode: str) -> Object:
    """Return what a Cluster of a mode asks for on this kube-apiserver."""
    assign = {"assign": api.minor >= (1, 34), "assignBeta": (1, 34) <= api.minor < (1, 36)}
    return {**assign, "enforce": "none" if mode == "shared" else "deny"}


@dataclass
class Play:
    """A cluster whose nodes join, leave and are edited; and what git says of it."""

    servers: Operator
    mode: str
    pipeline: Pipeline
    joined: set[str] = field(default_factory=set)

    @property
    def api(self) -> Api:
        return self.servers.api

    @property
    def site(self) -> Site:
        return self.pipeline.site

    @property
    def names(self) -> list[str]:
        """Which nodes join and leave."""
        return [*LISTED, STRANGER, *([FOLLOWER] if self.mode in FOLLOWING else [])]

    @property
    def of_nodes(self) -> bool:
        """Tell whether Nodes carry the blocks."""
        return self.mode in {"kubernetes", "dual", "annotated"}

    def apply(self, *options: str, code: int = 0) -> str:
        """Commit what was compiled, and apply it as a job does."""
        self.pipeline.git("add", "-A")
        self.pipeline.git(*AUTHOR, "commit", "-q", "--allow-empty", "-m", "more")
        return apply(self.pipeline, *options, code=code)

    @property
    def commit(self) -> str:
        """What git's HEAD is."""
        words = ["git", "rev-parse", "HEAD"]
        return subprocess.run(
            words, cwd=self.site.work, check=True, capture_output=True, text=True
        ).stdout.strip()

    def join(self, name: str) -> Answer:
        """Let a kubelet register a Node, then an agent its CiliumNode; return the answer to the one that carries the blocks."""
        address = ITS_ADDRESS if name == FOLLOWER else "172.31.0.9"
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        of_node = self.api.ask("POST", NODES, node, kubelet=name)
        if of_node.code != Status.CREATED:
            return of_node
        self.joined.add(name)
        blank = cilium_node(name)
        blank["spec"] = {"addresses": [{"type": "InternalIP", "ip": address}]}
        answer = of_node

        def taken() -> bool:
            nonlocal answer
            answer = self.api.ask("POST", CILIUM_NODES, blank)
            return answer.code != Status.SERVICE_UNAVAILABLE

        # A kube-apiserver that just started knows the kind for its policies after some seconds; agents try again.
        until(taken, "the kube-apiserver knows CiliumNodes")
        return of_node if self.of_nodes else answer

    def leave(self, name: str) -> None:
        """Let a node leave, with its CiliumNode."""
        self.api.delete(f"{CILIUM_NODES}/{name}", f"{NODES}/{name}")
        self.joined.discard(name)

    def blocks(self, name: str) -> list[str]:
        """Return the blocks that a node has, in the order in which they are carried."""
        path = NODES if self.of_nodes else CILIUM_NODES
        found = self.api.ask("GET", f"{path}/{name}").body
        if self.mode == "annotated":
            notes = found.get("metadata", {}).get("annotations", {})
            return [notes[ANNOTATION]] if ANNOTATION in notes else []
        spec = found.get("spec", {})
        if self.of_nodes:
            return list(spec.get("podCIDRs", ()))
        ipam = spec.get("ipam", {})
        pools = ipam.get("pools", {}).get("allocated", ())
        return [*ipam.get("podCIDRs", ()), *(cidr for each in pools for cidr in each["cidrs"])]

    def given(self, name: str) -> list[str]:
        """Return the blocks that git gives a node."""
        found = [block for _, block in self.site.lock().get(name, ())]
        return found[::-1] if self.mode == "dual" else found

    def write(self, name: str, block: str) -> Answer:
        """Let a hand write another block."""
        if self.mode == "annotated":
            return self._merge(NODES, name, {"metadata": {"annotations": {ANNOTATION: block}}})
        if self.of_nodes:
            return self._merge(NODES, name, {"spec": {"podCIDR": block, "podCIDRs": [block]}})
        if self.mode in {"pinned", "shared"}:
            entry = {"pool": f"default.{name}", "cidrs": [block]}
            return self._merge(CILIUM_NODES, name, {"spec": {"ipam": {"pools": {"allocated": [entry]}}}})
        return self._merge(CILIUM_NODES, name, {"spec": {"ipam": {"podCIDRs": [block]}}})

    def label(self, name: str, value: str) -> Answer:
        """Let somebody write what no policy is about."""
        path = NODES if self.of_nodes else CILIUM_NODES
        return self._merge(path, name, {"metadata": {"labels": {"a": value}}})

    def _merge(self, path: str, name: str, change: Object) -> Answer:
        return self.api.ask("PATCH", f"{path}/{name}", change, MERGE)

    def as_git_says(self) -> None:
        """No node has a block that git does not give it, and each listed one that joined has its own."""
        for name in sorted(self.joined):
            has = self.blocks(name)
            if name == FOLLOWER:
                assert has == [ITS_BLOCK]
            elif name in LISTED and self.api.minor >= (1, 34):
                assert has == self.given(name), (name, has, self.given(name))
            else:
                assert set(has) <= {*self.given(name), *self.unlisted(has)}, (name, has)

    def unlisted(self, blocks: list[str]) -> set[str]:
        """Return the blocks that the operator may give."""
        return {block for block in blocks if self.mode == "adopt" and block.startswith("10.9.")}


def documents(api: Api, mode: str, name: str = "fleet", second: int = 1) -> list[Object]:
    """Make a cluster of which two nodes are planned, with policies."""
    spec: dict[str, Any] = MODES[mode]
    version = "{}.{}".format(*api.minor)
    found = cluster(kubernetes={"version": version}, admission=asked(api, mode), **spec)
    found["metadata"]["name"] = name
    ranges: dict[str, Any] = {"ipv4": {"cidrs": [f"10.{second}.0.0/24"], "blockSize": 27}}
    if mode == "dual":
        ranges["ipv6"] = {"cidrs": [f"fd00:{second}::/112"], "blockSize": 120}
    spare = pool("spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27}, unlisted=True)
    nodes = [
        {
            "name": each,
            **({"planned": True} if api.minor >= (1, 34) or mode not in {"kubernetes", "dual"} else {}),
        }
        for each in LISTED
    ]
    follows = pool("by-address", ipv4=FOLLOWS)
    some = [follows] if mode in FOLLOWING and api.minor >= (1, 34) and name == "fleet" else []
    return [found, pool("default", **ranges), *some, *([spare] if mode == "adopt" else []), inventory(nodes)]


Begin = Callable[[str], Play]


@pytest.fixture
def begin(servers: Operator, tmp_path: Path) -> Begin:
    """Return what compiles and applies a cluster in a mode."""
    api = servers.api
    api.delete(*POLICIES, NODES, CILIUM_NODES, POOLS)
    until(lambda: not any(api.items(each) for each in (*POLICIES, NODES, CILIUM_NODES)), "nothing is left")

    def begun(mode: str) -> Play:
        site = Site.made(api, tmp_path / "work", documents(api, mode), servers.minor)
        site.compile()
        flags(api, site.config, *site.arguments)
        play = Play(servers, mode, Pipeline(site, tmp_path))
        assert "applied" in play.apply()
        return play

    return begun


def has_policies(begin: Begin, servers: Operator, mode: str) -> Play:
    """Begin with a cluster whose policies this kube-apiserver has."""
    if mode in {"kubernetes", "dual", "annotated", "shared"} and servers.api.minor < (1, 34):
        pytest.skip("what is given by admission alone needs a MutatingAdmissionPolicy")
    if mode == "adopt" and servers.api.minor < (1, 31):
        pytest.skip("policies of this kube-apiserver cannot ask whether a CIDR is in another one")
    return begin(mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_node_joins_with_its_block_and_keeps_it(begin: Begin, servers: Operator, mode: str) -> None:
    play = has_policies(begin, servers, mode)
    for name in LISTED:  # without assign, the CiliumNode of a planned node is there before it joins
        assert play.join(name).code in {Status.CREATED, Status.CONFLICT}
    play.as_git_says()
    again = LISTED[1]
    play.leave(again)
    play.join(again)
    play.as_git_says()
    assert play.join(STRANGER).code == Status.CREATED
    assert play.blocks(STRANGER) == []
    if servers.api.minor >= (1, 34) and FOLLOWER in play.names:
        play.join(FOLLOWER)
    play.as_git_says()
    assert play.label(LISTED[0], "b").code == Status.OK


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "shared"])
def test_nobody_writes_another_block(begin: Begin, servers: Operator, mode: str) -> None:
    play = has_policies(begin, servers, mode)
    one, other = LISTED[:2]
    play.join(one)
    play.join(STRANGER)
    for name, block in ((one, "10.77.0.0/27"), (STRANGER, play.given(other)[-1])):
        answer = play.write(name, block)
        assert answer.code >= Status.BAD_REQUEST
        if (
            name == STRANGER or not play.of_nodes or mode == "annotated"
        ):  # podCIDRs that are there never change
            assert f"git gives {name} " in answer.message
            assert f"(commit {play.commit})" in answer.message
    play.as_git_says()


@shows("IPC0571")
def test_policies_of_another_minor_are_refused(servers: Operator, tmp_path: Path) -> None:
    """v1beta1 is off from 1.36 on, and v1 is not there before."""
    api = servers.api
    older = api.minor >= (1, 36)
    spec: dict[str, Any] = {
        "kubernetes": {"version": "1.29" if older else "1.36"},
        "admission": {"assign": True},
    }
    every = [
        cluster(**spec),
        pool("default", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 27}),
        inventory([]),
    ]
    site = Site.made(api, tmp_path / "work", every, servers.minor)
    if older:
        compile_without(site, "IPC0571")
    else:
        site.compile()
    done = api.apply(site.build("admission"))
    assert done.returncode != 0
    assert 'no matches for kind "MutatingAdmissionPolicy' in done.stderr


@shows("IPC0574")
@pytest.mark.usefixtures("begin")
def test_a_policy_that_is_larger_is_refused(servers: Operator) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}]
    texts = [{"name": f"rows{number}", "expression": repr("x" * 90_000)} for number in range(18)]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "true"}],
        "variables": texts,
    }
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    answer = servers.api.ask("POST", POLICIES[1], {**policy, "metadata": {"name": "large"}, "spec": spec})
    assert "request is too large" in answer.message


def test_policies_work_again_after_they_were_removed(begin: Begin) -> None:
    """As parameters, ConfigMaps did not: kubernetes/kubernetes#130887."""
    play = begin("bystander")
    name = LISTED[0]
    play.api.delete(*POLICIES)
    until(lambda: not any(play.api.items(each) for each in POLICIES), "they are gone")
    play.join(name)
    until(lambda: play.write(name, "10.77.0.0/27").code == Status.OK, "nothing is refused any more")
    play.leave(name)
    play.apply()
    play.join(name)
    play.as_git_says()
    assert play.write(name, "10.77.0.0/27").code >= Status.BAD_REQUEST


def test_an_operator_gives_others_what_is_unlisted(begin: Begin, servers: Operator) -> None:
    play = has_policies(begin, servers, "adopt")
    with servers.running(play.site.config, *play.site.arguments):
        for name in (*LISTED, STRANGER):
            assert play.join(name).code == Status.CREATED
        until(lambda: play.blocks(STRANGER) != [], "the operator gives a block")
        play.as_git_says()
        assert play.write(STRANGER, "10.9.0.224/27").code == Status.OK
        assert play.write(STRANGER, play.given(LISTED[0])[0]).code >= Status.BAD_REQUEST


FAMILIES = (["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"])
BITS = {4: 32, 6: 128}


def network_and_range(chance: random.Random, family: int) -> tuple[Network, Object]:
    """Choose a network of nodes, and the part of a pool that follows it."""
    bits, nodes = BITS[family], chance.randint(2, 12)
    size = chance.randint(22, 29) if family == 4 else chance.randint(40, 125)
    make = IPv4Network if family == 4 else IPv6Network

    def inside(base: int, length: int) -> Network:
        return make(((base | chance.getrandbits(bits - 20)) >> (bits - length) << (bits - length), length))

    above = {4: (0xAC10 << 16, 0x0A << 24), 6: (0xFD00AAAA << 96, 0xFD01 << 112)}[family]
    network = inside(above[0], bits - nodes)
    cidr = inside(above[1], size - nodes - chance.randint(0, 3))
    return network, {"cidrs": [str(cidr)], "blockSize": size, "follows": str(network)}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.deep(part=5)
@pytest.mark.usefixtures("begin")
def test_the_policy_and_the_compiler_count_alike(servers: Operator, tmp_path: Path, seed: int) -> None:
    """Nodes that nobody listed have the blocks that the compiler says of their addresses; and no two have one."""
    if servers.api.minor < (1, 34):
        pytest.skip("blocks that follow from addresses need a MutatingAdmissionPolicy")
    chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
    families = FAMILIES[seed % len(FAMILIES)]
    parts = {int(family[-1]): network_and_range(chance, int(family[-1])) for family in families}
    version = "{}.{}".format(*servers.api.minor)
    admission = asked(servers.api, "kubernetes")
    whole = cluster("kubernetes", kubernetes={"version": version}, admission=admission, ipFamilies=families)
    follows = pool("by-address", **{f"ipv{family}": part for family, (_, part) in parts.items()})
    site = Site.made(servers.api, tmp_path / "work", [whole, follows, inventory([])], servers.minor)
    site.compile()
    flags(servers.api, site.config, *site.arguments)
    apply(Pipeline(site, tmp_path))
    most = min(network.num_addresses for network, _ in parts.values())
    seen: set[str] = set()
    for place in sorted({0, 1, most - 1, *(chance.randrange(most) for _ in range(15))}):
        addresses = [str(network[place]) for network, _ in parts.values()]
        status = {"addresses": [{"type": "InternalIP", "address": each} for each in addresses]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "nobody"}, "status": status}
        answer = servers.api.ask("POST", f"{NODES}?dryRun=All", node, kubelet="nobody")
        wanted = []
        for family, (_, part) in parts.items():
            range_ = ip_network(part["cidrs"][0])
            block = int(range_.network_address) + place * 2 ** (BITS[family] - part["blockSize"])
            wanted.append(str(type(range_)((block, part["blockSize"]))))
        assert answer.body["spec"].get("podCIDRs") == wanted, (parts, addresses, answer.body)
        assert f"the node with {addresses[0]}" in site.run("which", wanted[0], code=1)
        assert not seen & set(wanted)
        seen |= set(wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.deep(part=3)
def test_whatever_happens_git_decides(begin: Begin, servers: Operator, mode: str, tmp_path: Path) -> None:
    """Random steps of kubelets, agents, hands, operators, colleagues and machines."""
    play = has_policies(begin, servers, mode)
    chance = random.Random(f"{mode} {servers.api.minor}")  # noqa: S311 - a test that can be repeated
    api = play.api
    other = Site.made(api, tmp_path / "other", documents(api, mode, "other", 3), servers.minor)
    other.compile()

    def joins() -> None:
        name = chance.choice(play.names)
        play.leave(name)
        assert play.join(name).code == Status.CREATED

    def hand() -> None:
        if play.joined and mode != "shared":
            block = f"10.{chance.choice((1, 3, 77))}.0.{32 * chance.randrange(8)}/27"
            name = chance.choice(sorted(play.joined))
            if block not in play.given(name):
                assert play.write(name, block).code >= Status.BAD_REQUEST

    def labels() -> None:
        for name in play.joined:
            assert play.label(name, str(chance.random())).code == Status.OK

    def operator() -> None:
        with servers.running(play.site.config, *play.site.arguments):
            joins()

    def colleague() -> None:
        """Somebody applies another cluster's tree here, with other blocks for nodes of the same names."""
        api.apply(other.build())
        name = chance.choice(LISTED)
        play.leave(name)
        if play.join(name).code == Status.CREATED:  # else both clusters' policies refuse it
            assert set(play.blocks(name)) <= set(play.given(name)) or mode == "shared"
        selected = ",".join(path.rpartition("/")[2] for path in POLICIES[:4])
        assert api.kubectl("delete", selected, "-l", "ipamc/cluster=other").returncode == 0
        until(lambda: play.label(name, "c").code != Status.BAD_REQUEST, "the other policies are gone")
        for each in LISTED:
            play.leave(each)
        play.apply()

    def renumber() -> None:
        if mode == "bystander" and play.joined & set(LISTED):
            name = chance.choice(sorted(play.joined & set(LISTED)))
            play.site.run("lock", play.site.name, "--renumber", name)
            play.site.run("lock", play.site.name, "--settle", name)
            play.site.compile()
            play.apply()

    def killed() -> None:
        api.serve()

    steps = [joins] * 6 + [hand] * 4 + [labels, operator, colleague, renumber, killed]
    for _ in range(40):
        chance.choice(steps)()
        play.as_git_says()
