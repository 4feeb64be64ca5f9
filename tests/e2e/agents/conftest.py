"""What the agents' lab needs of this machine, the servers, and that nothing of it stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.agents.kubelet import LOOPBACK
from tests.e2e.agents.lab import ENDPOINTS, FIRST, Lab
from tests.e2e.agents.machine import HOST, devices, lay_cables, ran, remove_cables
from tests.e2e.agents.node import AGENT_PODS
from tests.e2e.agents.pod import PODS
from tests.e2e.agents.router import BGP_CONTROL_PLANE, POLICIES
from tests.e2e.api import Api, Object
from tests.e2e.conftest import KINDS, OPERATORS, SERVERS, minor, serving
from tests.e2e.operator import Operator
from tests.e2e.processes import commands, until
from tests.e2e.rules import compile_without
from tests.e2e.site import Site
from tests.support import forking

AGENTS = [each for each in SERVERS if each.name.startswith("agent-")]
"""Folders that `.ci/agents` prints: the agents to run, each with the operator of its minor."""
ISOLATED = os.environ.get("IPAMC_ISOLATED", "")
"""The name of the control group of this run, and the sign that it is in namespaces of its own: `.ci/isolated` sets it."""
BGP = ("bgpadvertisements", "bgpclusterconfigs", "bgpnodeconfigoverrides", "bgpnodeconfigs", "bgppeerconfigs")
AGENTS_KINDS = (
    "cidrgroups",
    "clusterwidenetworkpolicies",
    "endpoints",
    "identities",
    "l2announcementpolicies",
    "loadbalancerippools",
    "networkpolicies",
)
"""Of the CRDs that agents wait for, those that no other test asks about."""
LEFT = (
    PODS,
    AGENT_PODS,
    ENDPOINTS,
    "/apis/cilium.io/v2/ciliumidentities",
    *(f"/apis/cilium.io/{version}/cilium{kind}" for kind in BGP for version in ("v2alpha1", "v2")),
    POLICIES,
    "/apis/apps/v1/namespaces/kube-system/daemonsets",
)
"""What a test leaves in the kube-apiserver, besides what all others do."""
CGROUPS = Path("/mnt")
"""Where the tests see the control groups of the machine: in their own mount namespace."""

collect_ignore_glob = [] if AGENTS else ["test_*.py"]


def lacking() -> str:
    """Return why agents cannot run here; nothing if they can."""
    if not ISOLATED:
        return "no namespaces of one's own: it takes root, and `make e2e-agents`, which runs the tests by .ci/isolated"
    known = Path("/proc/filesystems").read_text().split()
    if absent := [each for each in ("bpf", "cgroup2") if each not in known]:
        return f"the kernel does not have {', '.join(absent)}"
    programs = (
        "bird",
        "clang-19",
        "containerd",
        "gobgpd",
        "ip",
        "ipset",
        "iptables",
        "nsenter",
        "ping",
        "pkill",
        "runc",
        "unshare",
        "vtysh",
        LOOPBACK,
    )
    if absent := [each for each in programs if not shutil.which(each)]:
        return f"not installed: {', '.join(absent)}"
    return ""


def needs_ip6tables(version: tuple[int, int]) -> None:
    """Skip a test with IPv6 where agents cannot have it."""
    if version < (1, 18) and not Path("/proc/net/ip6_tables_names").exists():
        pytest.skip("agents up to 1.17 end with IPv6 on a kernel without ip6_tables")


@pytest.fixture(scope="session")
def cgroups() -> Iterator[Path]:
    """Prepare this machine, and give a control group to divide; nothing stays."""
    if why := lacking():
        pytest.skip(why)
    before = here()
    ran("mount", "-n", "-t", "cgroup2", "cgroup2", str(CGROUPS))
    own = CGROUPS / ISOLATED
    own.mkdir()
    lay_cables()
    yield own
    remove_cables()
    ran("find", str(own), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")
    ran("umount", "-n", str(CGROUPS))
    assert here() == before
    until(lambda: not others(), f"no process is left, but there is {others()}")


def here() -> dict[str, object]:
    """Return what must be afterwards as it was before."""
    return {"mounts": Path("/proc/self/mounts").read_text(), "devices": devices()}


def others() -> list[str]:
    """Return the commands that run in this namespace besides this one, those above it, and the process that ipamc's are copies of, which ends with it."""
    above = {1, os.getpid(), os.getppid()}
    return [
        command
        for number, command in commands().items()
        if number not in above and forking.__name__ not in command
    ]


@pytest.fixture(scope="session", params=AGENTS, ids=lambda folder: folder.name)
def release(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the agents of a release."""
    return Path(request.param)


def operator_of(release: Path) -> Path:
    """Return the folder of the operator that belongs to agents."""
    return next(
        each for each in OPERATORS if each.name.removeprefix("cilium-") == release.name.removeprefix("agent-")
    )


@contextmanager
def servers(release: Path, folder: Path) -> Iterator[Operator]:
    """Run the servers, where all nodes reach them, with the CRDs of a release."""
    own = operator_of(release)
    kinds = (*KINDS, *(f"cilium{each}" for each in (*AGENTS_KINDS, *(BGP if minor(own) >= (1, 16) else ()))))
    with serving(folder, own, HOST, kinds, BGP_CONTROL_PLANE) as found:
        yield found


@pytest.fixture(scope="session")
def operator(release: Path, cgroups: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Start the servers."""
    assert cgroups.exists()
    with servers(release, tmp_path_factory.mktemp(release.name)) as found:
        yield found


Begin = Callable[..., Lab]


@pytest.fixture
def begin(api: Api, operator: Operator, release: Path, cgroups: Path, tmp_path: Path) -> Iterator[Begin]:
    """Return what makes a cluster of nodes without agents: Nodes are registered, and what was rendered is committed.

    Without documents it has no folder yet: somebody else runs it. `spare` machines register later. It is compiled `without`
    rules that refuse it.
    """
    api.delete(*(f"{each}?gracePeriodSeconds=0" for each in LEFT))
    until(lambda: not any(api.items(each) for each in LEFT), "what a test before left is gone")
    before = devices()
    with ExitStack() as stack:

        def made(
            documents: Iterable[Object] = (),
            nodes: Iterable[str] = "abc",
            settings: Mapping[str, str] | None = None,
            spare: Iterable[str] = (),
            labels: Mapping[str, Mapping[str, str]] | None = None,
            without: Collection[str] = (),
            kind: type[Lab] = Lab,
        ) -> Lab:
            some = {
                name: stack.enter_context(kind.KIND_OF_NODE(name, number, api, release, cgroups, tmp_path))
                for number, name in enumerate([*nodes, *spare], FIRST)
            }
            for name in nodes:
                some[name].register((labels or {}).get(name))
            if documents := list(documents):
                site = Site.made(api, tmp_path / "work", documents, operator.minor)
                listed = next(site.folder.glob("*-nodeinventory.yaml"))
                listed.rename(site.folder / "nodes.yaml")  # where a refresh writes it
                site.export()
                if without:
                    compile_without(site, *without)
                else:
                    site.compile()
            else:
                site = Site(api, tmp_path / "work", "fleet", operator.minor)
                site.work.mkdir()
                (site.work / "README").touch()
            return stack.enter_context(
                kind(
                    site, operator, tmp_path, nodes=some, settings=dict(settings or {}), refused=bool(without)
                )
            )

        yield made
    assert devices() == before
