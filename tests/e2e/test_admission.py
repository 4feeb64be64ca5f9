"""Admission policies on real kube-apiservers: a node has its block in the request with which it joins, and nobody writes another one."""

from __future__ import annotations

import os
import random
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus as Status
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, MERGE, NODES, POOLS, Api, Object
from tests.e2e.conftest import OPERATORS, SERVERS, serving
from tests.e2e.joins import (
    FOLLOWER,
    FOLLOWING,
    LISTED,
    MODES,
    NAMED,
    POLICIES,
    STRANGER,
    Play,
    asked,
    claims,
    documents,
)
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import CLUSTERS, Site, dumped
from tests.e2e.test_ci_apply import apply, flags
from tests.e2e.test_controller_manager import allocating
from tests.e2e.test_pipelines import Pipeline
from tests.e2e.test_refused_by_the_apiserver import TWO_MEANINGS, node
from tests.e2e.writes import IDENTITIES, changes, forms, nobody_has_anothers, requests
from tests.support.fleet import cluster, inventory, pool

RIGHTS: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "agents-and-operators"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}
    ],
}
"""ServiceAccounts may write everything: what they may not, the policies say."""
Network = IPv4Network | IPv6Network
KUBERNETES = [
    pytest.param(folder, marks=() if rank == 0 else pytest.mark.deep(part=0), id=folder.name)
    for rank, folder in enumerate(
        sorted(folder for folder in SERVERS if folder.name.startswith("kubernetes-"))[::-1]
    )
]
"""Folders of kube-apiservers, with and without the rest of Kubernetes: the newest first, which a part of the tests has alone."""


@pytest.fixture(scope="session", params=KUBERNETES)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Start a kube-apiserver of each release, with the CRDs of the newest operator."""
    folder: Path = request.param
    newest = max(OPERATORS, key=lambda each: tuple(map(int, each.name.removeprefix("cilium-").split("."))))
    with serving(tmp_path_factory.mktemp(folder.name), newest, server=folder) as found:
        found.api.sure("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", RIGHTS)
        yield found


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


@pytest.mark.deep("dual", "pinned")
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
    for name in play.names[len(LISTED) + 1 :]:
        play.join(name)
    play.as_git_says()
    play.ordinary(LISTED[0], "b")


@pytest.mark.deep("bystander")
@pytest.mark.parametrize("mode", sorted(FOLLOWING))
def test_a_name_does_not_bring_the_block_of_an_older_address(
    begin: Begin, servers: Operator, mode: str
) -> None:
    """Two nodes would have one block: a node joins again with another address, and a stranger has its old one."""
    if servers.api.minor < (1, 34):
        pytest.skip("blocks that follow from addresses need a MutatingAdmissionPolicy")
    play = begin(mode)
    play.join(NAMED)
    play.as_git_says()
    play.leave(NAMED)
    old, play.places[NAMED] = play.places[NAMED], 6
    play.join(NAMED)
    play.places[FOLLOWER] = old
    play.join(FOLLOWER)
    play.as_git_says()
    play.apply(code=1 if mode == "bystander" else 0)  # git knows of the other address after a refresh
    play.as_git_says()


def test_pools_of_others_are_theirs(begin: Begin) -> None:
    """Also with a dot in their names, as those of nodes have one."""
    play = begin("pinned")
    spec = {"ipv4": {"cidrs": ["10.99.0.0/24"], "maskSize": 28}}
    body = {"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumPodIPPool", "spec": spec}
    for name, code in (("team.blue", Status.CREATED), ("default.blue", Status.UNPROCESSABLE_ENTITY)):
        answer = play.api.ask("POST", POOLS, {**body, "metadata": {"name": name}})
        assert answer.code == code, answer.message
    assert "git gives blue no block, not 10.99.0.0/24" in answer.message
    if play.api.minor >= (1, 34):
        play.join(LISTED[0])
        entries = play.api.get(f"{CILIUM_NODES}/{LISTED[0]}")["spec"]["ipam"]["pools"]["allocated"]
        entries += [{"pool": "team.blue", "cidrs": ["10.99.0.0/28"]}]
        change = {"spec": {"ipam": {"pools": {"allocated": entries}}}}
        assert play.api.ask("PATCH", f"{CILIUM_NODES}/{LISTED[0]}", change, MERGE).code == Status.OK


def test_kube_controller_manager_gives_nothing_beside_it(
    begin: Begin, servers: Operator, tmp_path: Path
) -> None:
    """With --allocate-node-cidrs, which nobody should leave on: it finds blocks there, or is refused."""
    play = has_policies(begin, servers, "kubernetes")
    with allocating(play.api, tmp_path, cidr="10.1.0.0/24", mask=27) as program:
        for name in (*LISTED, STRANGER):
            assert play.join(name).code == Status.CREATED
        program.until(lambda: f"git gives {STRANGER} no block" in program.said(), "it is refused")
        play.as_git_says()
        assert not play.blocks(STRANGER)


@pytest.mark.deep("adopt", "annotated")
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


BALANCER = """\
#!/bin/sh
# Policies, and dry runs that test them, go to one kube-apiserver; what is applied later goes to another one.
case "$*" in
*--dry-run=server*) touch {sign} ;;
*apply*) if [ -e {sign} ]; then kill -CONT {process}; set -- "$@" --server={url}; fi ;;
esac
exec {kubectl} "$@"
"""


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", ["bystander", "pinned"])
def test_an_apply_goes_on_when_every_kube_apiserver_has_its_policies(
    begin: Begin, mode: str, tmp_path: Path
) -> None:
    """A kube-apiserver that is behind refuses new blocks by policies of the commit before."""
    play = begin(mode)
    sign, balancer = tmp_path / "sign", tmp_path / "balancer"
    with play.api.beside() as (other, url):
        process, kubectl = other.process.pid, play.api.binaries / "kubectl"
        balancer.write_text(BALANCER.format(sign=sign, process=process, url=url, kubectl=kubectl))
        balancer.chmod(0o755)
        if mode == "bystander":
            assert all(play.join(name).code == Status.CREATED for name in LISTED)
        for one, two in (LISTED[:2], LISTED[2:], LISTED[:2]):
            play.site.run("lock", play.site.name, "--renumber", one, "--renumber", two)
            play.site.run("lock", play.site.name, "--settle", one, "--settle", two)
            play.site.compile()
            sign.unlink(missing_ok=True)
            other.process.send_signal(signal.SIGSTOP)
            try:
                assert "applied" in play.apply(kubectl=str(balancer))
            finally:
                other.process.send_signal(signal.SIGCONT)


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


@pytest.mark.deep(part=5)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("begin")
def test_the_policy_and_the_compiler_count_alike(servers: Operator, tmp_path: Path, seed: int) -> None:
    """Nodes that nobody listed have the blocks that the compiler says of their addresses; and no two have one."""
    if servers.api.minor < (1, 34):
        pytest.skip("blocks that follow from addresses need a MutatingAdmissionPolicy")
    chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
    families = FAMILIES[seed % len(FAMILIES)]
    parts = {int(family[-1]): network_and_range(chance, int(family[-1])) for family in families}
    version = "{}.{}".format(*servers.api.minor)
    admission = asked(servers.api)
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


@pytest.mark.usefixtures("begin")
def test_the_recording_shows_what_a_kube_apiserver_prints(servers: Operator, tmp_path: Path) -> None:
    if servers.api.minor < (1, 36):
        pytest.skip("it was recorded with 1.36")
    folder = CLUSTERS.parent / "docs" / "recordings"
    tape = runpy.run_path(str(folder / "record.py"))["read"](folder / "joins.tape")
    (tmp_path / "clusters").mkdir()
    path = f"{servers.api.binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(servers.api.kubeconfig)}
    for sign, command, printed in tape.steps:
        if sign == "~":
            time.sleep(3)  # policies work some moments after they were written
        elif sign != "#":
            words = ["/bin/sh", "-c", command]
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert (done.returncode == 0) == (sign != "!"), done.stderr
            assert not printed or done.stdout + done.stderr == printed


CLAIM: dict[str, Callable[[str, str], Object]] = {
    "bystander": cilium_node,
    "shared": lambda name, block: cilium_node(
        name, pools={"allocated": [{"pool": "default", "cidrs": [block]}]}
    ),
}
BEAT = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
LABEL = {"metadata": {"labels": {"a": "b"}}}
REQUESTS: dict[str, Callable[[Api, str], Object]] = {
    "join": lambda api, name: api.sure("POST", CILIUM_NODES, cilium_node(name)),
    "ordinary write": lambda api, name: api.sure("PATCH", f"{CILIUM_NODES}/{name}", LABEL, MERGE),
    "heartbeat": lambda api, name: api.sure("PATCH", f"{NODES}/{name}/status", BEAT, MERGE),
}


def costs(api: Api) -> dict[str, tuple[float, float]]:
    """Return what 200 requests of each kind take: the time in policies, and the whole, in milliseconds a request."""
    names, found = [f"worker-{place:05}" for place in range(1, 20_001, 100)], {}
    api.create(NODES, *({"metadata": {"name": name}} for name in names))
    for kind, request in REQUESTS.items():
        before, start = api.policy_seconds(), time.monotonic()
        for name in names:
            request(api, name)
        whole = time.monotonic() - start
        found[kind] = ((api.policy_seconds() - before) / len(names) * 1000, whole / len(names) * 1000)
    return found


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("mode", ["bystander", "shared"])
@pytest.mark.usefixtures("begin")
def test_what_policies_cost_with_20000_nodes(servers: Operator, tmp_path: Path, mode: str) -> None:
    """With `-s` it prints the figures of docs/performance.md."""
    api = servers.api
    if api.minor < (1, 36):
        pytest.skip("one release is enough")
    without = costs(api)
    api.delete(NODES, CILIUM_NODES)
    nodes = {"names": "worker-{00001..20000}", "planned": True}
    wide = pool("default", ipv4={"cidrs": ["10.0.0.0/11"], "blockSize": 27})
    every = [documents(api, mode)[0], wide, inventory([nodes])]
    site = Site.made(api, tmp_path / "work", every, servers.minor)
    site.compile()
    flags(api, site.config, *site.arguments)
    apply(Pipeline(site, tmp_path))
    for kind, (policy, whole) in costs(api).items():
        none = f"without policies {without[kind][0]:.2f} of {without[kind][1]:.1f} ms"
        sys.stdout.write(f"{mode}, {kind}: {policy:.2f} of {whole:.1f} ms in policies; {none}\n")
    joined = claims(api)
    assert all(joined.values())
    for name, blocks in joined.items():  # in every text of every policy
        for block in blocks:
            answer = api.ask("POST", f"{CILIUM_NODES}?dryRun=All", CLAIM[mode]("stranger", block))
            assert f"git gives {block} to {name}, not to stranger" in answer.message or mode != "shared"
            assert answer.code >= Status.BAD_REQUEST


@dataclass
class Walk:
    """Random steps of kubelets, agents, hands, operators, colleagues and machines."""

    play: Play
    chance: random.Random
    other: Site
    """Another cluster, with other blocks for nodes of the same names."""

    def joins(self) -> None:
        play, name = self.play, self.chance.choice(self.play.names)
        play.leave(name)
        if name in play.places:
            taken = {place for other, place in play.places.items() if other in play.joined}
            play.places[name] = self.chance.choice([place for place in (5, 6, 77, 255) if place not in taken])
        assert play.join(name).code == Status.CREATED

    def hand(self) -> None:
        """Somebody writes a block into the objects of a node, in some way."""
        play, chance = self.play, self.chance
        if not play.joined:
            return
        name = chance.choice(sorted(play.joined))
        block = f"10.{chance.choice((1, 3, 77))}.0.{32 * chance.randrange(8)}/27"
        if block not in play.given(name) and play.mode != "shared":
            assert play.write(name, block).code >= Status.BAD_REQUEST
        path, change = chance.choice([*changes(play, name, chance.choice(forms(block)))])
        for answer in requests(play.api, path, name, change, chance.choice([*IDENTITIES])):
            nobody_has_anothers(play, answer)
        if not claims(play.api)[name] <= {*play.given(name)}:  # another pool's, that is nobody's
            play.leave(name)

    def ordinary(self) -> None:
        for name in self.play.joined:
            self.play.ordinary(name, str(self.chance.random()))

    def operator(self) -> None:
        with self.play.servers.running(self.play.site.config, *self.play.site.arguments):
            self.joins()

    def colleague(self) -> None:
        """Somebody applies another cluster's tree here."""
        play, name = self.play, self.chance.choice(LISTED)
        play.api.apply(self.other.build())
        play.leave(name)
        if play.join(name).code == Status.CREATED:  # else both clusters' policies refuse it
            assert set(play.blocks(name)) <= set(play.given(name)) or play.mode == "shared"
        selected = ",".join(path.rpartition("/")[2] for path in POLICIES[:4])
        assert play.api.kubectl("delete", selected, "-l", "ipamc/cluster=other").returncode == 0
        until(lambda: play.touch(name, "c").code != Status.BAD_REQUEST, "the other policies are gone")
        for each in LISTED:
            play.leave(each)
        self.applied()

    def renumber(self) -> None:
        """The block of a node that runs moves with its CiliumNode; elsewhere the node is created again."""
        play, name = self.play, self.chance.choice(LISTED)
        if play.mode in {"dual", "shared"}:
            return
        if play.mode != "bystander":
            play.leave(name)
        play.site.run("lock", play.site.name, "--renumber", name)
        play.site.run("lock", play.site.name, "--settle", name)
        play.site.compile()
        self.applied()
        if name not in play.joined:
            play.join(name)

    def killed(self) -> None:
        self.play.api.serve()

    def applied(self) -> None:
        """Let git and its job work while every node has the address that git knows."""
        for name in self.play.places:
            self.play.leave(name)
        self.play.places[NAMED] = 5
        self.play.apply()


@pytest.mark.deep("pinned")
@pytest.mark.parametrize("mode", MODES)
def test_whatever_happens_git_decides(begin: Begin, servers: Operator, mode: str, tmp_path: Path) -> None:
    play = has_policies(begin, servers, mode)
    chance = random.Random(f"{mode} {servers.api.minor}")  # noqa: S311 - a test that can be repeated
    other = Site.made(play.api, tmp_path / "other", documents(play.api, mode, "other", 3), servers.minor)
    other.compile()
    walk = Walk(play, chance, other)
    often = [walk.joins] * 20 + [walk.hand] * 12 + [walk.ordinary] * 4
    for _ in range(300):
        chance.choice([*often, walk.operator, walk.colleague, walk.renumber, walk.killed])()
        play.as_git_says()


@shows("IPC0201", "IPC0203", "IPC0206")
@pytest.mark.parametrize("block", TWO_MEANINGS)
def test_cidrs_of_two_meanings_are_refused_from_1_36_on(servers: Operator, block: str) -> None:
    done = servers.api.apply(dumped([node("two-meanings", block)]))
    if servers.api.minor < (1, 36):
        assert "Warning: spec.podCIDRs[0]" in done.stderr
        servers.api.delete(f"{NODES}/two-meanings")
    else:
        assert done.returncode == 1
        assert "spec.podCIDRs[0]: Invalid value" in done.stderr
