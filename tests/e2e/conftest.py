"""The servers, started once a run (and worker), and emptied before each test."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.api import CILIUM_NODES, CONFIG_MAPS, CRDS, DEPLOYMENTS, NODE_CONFIGS, NODES, POOLS, Api
from tests.e2e.operator import Operator
from tests.e2e.processes import LOOPBACK

SERVERS = [Path(each) for each in os.environ.get("IPAMC_SERVERS", "").split()]
"""Folders that `.ci/servers` prints: kubernetes-VERSION, then cilium-VERSION of each operator to run, and agent-VERSION of each agent."""
OPERATORS = [each for each in SERVERS if each.name.startswith("cilium-")]
KINDS = ("ciliumnodes", "ciliumpodippools", "ciliumnodeconfigs")

collect_ignore_glob = [] if SERVERS else ["test_*.py"]


def minor(folder: Path) -> tuple[int, int]:
    """Read the Cilium minor off a folder's name: `cilium-1.15.19` is 1.15."""
    major, minor, *_ = folder.name.removeprefix("cilium-").split(".")
    return int(major), int(minor)


@contextmanager
def serving(
    folder: Path,
    release: Path,
    address: str = LOOPBACK,
    kinds: Collection[str] = KINDS,
    flags: Mapping[str, str] | None = None,
    server: Path | None = None,
) -> Iterator[Operator]:
    """Run etcd and a kube-apiserver, let the cilium-operator of a release register its CRDs there, and wait for those of `kinds`.

    flags: of the operator, where CRDs depend on them. server: the folder of another kube-apiserver.
    """
    kubernetes = next(each for each in SERVERS if each.name.startswith("kubernetes-"))
    with Api(kubernetes, folder, server, address) as api:
        found = Operator(release / "cilium-operator", minor(release), api, folder)
        wanted = [f"{kind}.cilium.io" for kind in kinds if found.version >= (1, 14) or kind == "ciliumnodes"]
        first = {"ipam": "kubernetes", "enable-ipv4": "true", "enable-ipv6": "false", **(flags or {})}
        with found.running(first) as program:
            program.until(lambda: set(wanted) <= api.items(CRDS).keys(), "the operator registers its CRDs")
            program.until(
                lambda: api.kubectl("get", ",".join(wanted), "-A").returncode == 0, "kubectl knows the CRDs"
            )
        found.registered = True
        yield found
    left = [program for program in api.programs if program.running]
    assert not left


@pytest.fixture(scope="session", params=OPERATORS, ids=lambda folder: folder.name)
def operator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """Start the servers; the operator is started again by each test, as the test likes."""
    with serving(tmp_path_factory.mktemp(request.param.name), request.param) as found:
        yield found


@pytest.fixture
def api(operator: Operator) -> Api:
    """Return the kube-apiserver, without any object that a test before may have left."""
    operator.api.delete(
        NODES,
        CILIUM_NODES,
        POOLS,
        *NODE_CONFIGS,
        f"{CONFIG_MAPS}/cilium-config",
        f"{DEPLOYMENTS}/cilium-operator",
    )
    return operator.api
