"""How `ipamc apply` waits for errors of the operator, on real servers: what it asks the apiserver for, and watches that end before their time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipamc.review.live.objects import CILIUM_NODE, reported_errors
from ipamc.workspace.kubectl import CiliumNodes, Kube, version_of
from tests.e2e.api import CILIUM_NODES, Api
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.test_ci_apply import apply, made
from tests.e2e.test_rbac import Account
from tests.e2e.test_rbac import no_rights as no_rights  # noqa: PLC0414 - a fixture


def complain(api: Api, node: str, error: str) -> None:
    """Write an error where the operator writes it."""
    body = {"status": {"ipam": {"operator-status": {"error": error}}}}
    api.sure("PATCH", f"{CILIUM_NODES}/{node}/status", body, content="application/merge-patch+json")


@contextmanager
def meanwhile(do: Callable[[], None]) -> Iterator[Future[None]]:
    """Do something while the block runs; what it raises is raised at the end."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(do)
        yield future
        future.result()


@pytest.mark.parametrize("target", ["fleet", "fleet/ciliumnodes/000 fleet/ciliumnodes/001"])
def test_an_apply_lists_ciliumnodes_once_and_watches_once_for_all_its_shards(
    api: Api, operator: Operator, tmp_path: Path, target: str
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    before = api.requests("ciliumnodes")
    apply(pipeline, target=target, wait="6")
    asked = api.requests("ciliumnodes") - before
    assert asked.pop("LIST") == 2  # one of a single CiliumNode, which tells the version
    assert asked.pop("WATCH") == 1
    assert "GET" not in asked


def test_an_error_that_comes_during_the_watch_fails_and_one_that_goes_does_not(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    node = min(pipeline.site.lock())

    def comes() -> None:
        until(lambda: node in api.items(CILIUM_NODES), "it is applied")
        time.sleep(1)
        complain(api, node, "it\nlasts")

    with meanwhile(comes):
        said = apply(pipeline, code=1, wait="8")
    assert f"error: fleet: CiliumNode {node}: it\n    lasts" in said
    api.delete(CILIUM_NODES)

    def comes_and_goes() -> None:
        comes()
        time.sleep(8)  # so that the second watch, which is as long, sees it go
        complain(api, node, "")

    with meanwhile(comes_and_goes):
        said = apply(pipeline, wait="8")
    assert "lasts" not in said


def kube(api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kube:
    """Return what `ipamc apply` asks a cluster through."""
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Kube(name="e2e", context="e2e", kubectl=(str(api.binaries / "kubectl"),))


@pytest.mark.usefixtures("operator")
def test_a_version_that_the_apiserver_forgot_is_read_again(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.create(CILIUM_NODES, cilium_node("a"))
    complain(api, "a", "there")
    before = api.requests("ciliumnodes")
    nodes = CiliumNodes(kube(api, monkeypatch, tmp_path), {}, "1")
    nodes.follow(15)
    assert reported_errors(nodes.live.values()) == {"a": "there"}
    asked = api.requests("ciliumnodes") - before
    assert (asked["LIST"], asked["WATCH"]) == (2, 2)


@pytest.mark.usefixtures("operator")
def test_an_apiserver_that_restarts_is_watched_on(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        api.create(CILIUM_NODES, cilium_node(name))
    reached = kube(api, monkeypatch, tmp_path)
    nodes = CiliumNodes(reached, reached.listed(CILIUM_NODE), version_of(reached))

    with meanwhile(lambda: nodes.follow(40)):  # servers end with the thread that started them
        time.sleep(1)
        complain(api, "a", "before")
        api.serve()
        complain(api, "b", "after")
    assert reported_errors(nodes.live.values()) == {"a": "before", "b": "after"}
    until(lambda: api.kubectl("get", "ciliumnodes").returncode == 0, "kubectl knows the CRDs again")


def test_a_role_of_an_older_ipamc_may_not_watch_and_is_enough(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path, "bystander")
    account = Account(api, pipeline, "apply")
    assert "may not watch" not in apply(pipeline, wait="1")
    for what in account.mutations():
        if what == "watch ciliumnodes":
            said = apply(pipeline, wait="1")
            assert "fleet: read CiliumNodes again, because this job may not watch them" in said
            assert "apply its roles again ('ipamc ci rbac fleet')" in said
            complain(api, min(pipeline.site.lock()), "there")
            api.delete(f"{CILIUM_NODES}/{max(pipeline.site.lock())}")
            assert "an earlier error" in apply(pipeline, wait="1")
