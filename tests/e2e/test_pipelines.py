"""The apply steps of generated pipelines, run with bash against real servers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import CILIUM_NODES, CRDS, NODES, POOLS, Api
from tests.e2e.objects import cilium_node
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site
from tests.e2e.test_clusters import fleet
from tests.support.pipelines import HASH, bash, steps, tools

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")
TRUNK = "refs/remotes/origin/main"
WAIT = "3"
"""Seconds that the operator has to object, in place of ten."""


class Pipeline:
    """A cluster that is compiled, and the machine of a CI job that may reach it."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.tools = tools(folder / "bin")
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            [*AUTHOR, "commit", "-q", "-m", "one"],
            ["update-ref", TRUNK, "HEAD"],
        ):
            self.git(*command)
        (self.tools / "kubectl").symlink_to(site.api.binaries / "kubectl")
        kubeconfig = json.loads(site.api.kubeconfig.read_text())
        kubeconfig["contexts"] = [{**kubeconfig["contexts"][0], "name": site.name}]
        kubeconfig["current-context"] = "somewhere-else"
        self.secret = json.dumps(kubeconfig)
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def git(self, *arguments: str) -> None:
        """Run git in the checkout."""
        subprocess.run(["git", *arguments], cwd=self.site.work, check=True)

    def run(self, *scripts: str, code: int = 0, target: str = "", **more: str) -> str:
        """Run scripts one after the other, as a job does; they have the variables that the pipelines give them."""
        environment = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(self.temporary),
            "RUNNER_TEMP": str(self.temporary),
            "IPAMC_KUBECONFIG": self.secret,
            "IPAMC_WAIT": WAIT,
            "TRUNK": "origin/main",
            "CI_DEFAULT_BRANCH": "main",
            "TARGETS": target or self.site.name,
            "SOURCE_DATE_EPOCH": "1795219200",
            **more,
        }
        said = ""
        for script in scripts:
            done = subprocess.run(
                bash(script),
                cwd=self.site.work,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            said += done.stdout
            if done.returncode:
                break
        assert bool(done.returncode) == bool(code), said
        return said

    def github(self, **options: Any) -> str:
        """Run the workflow's job `apply`."""
        text = self.site.run("ci", "github", "--sha256", HASH, "--write", "-")
        return self.run(*steps(text, "apply"), **options)

    def gitlab(self, **options: Any) -> str:
        """Run the child's job `apply`; GitLab gives the kubeconfig as a file."""
        self.site.run("ci", "matrix", "--output", "gitlab", "--stage", "apply", "--write", "child.yml")
        text = (self.site.work / "child.yml").read_text()
        (self.temporary / "kubeconfig-file").write_text(self.secret)
        scripts = yaml.safe_load(text)[".job"]["script"]
        return self.run(*scripts, KUBECONFIG=str(self.temporary / "kubeconfig-file"), **options)


def made(
    api: Api,
    operator: Operator,
    tmp_path: Path,
    mode: str = "cluster-pool",
    settings: dict[str, str] | None = None,
) -> Pipeline:
    """Compile a cluster of two shards."""
    site = Site.made(api, tmp_path / "work", fleet(6, mode=mode, ipam=settings or {}), operator.minor)
    site.join()
    site.compile()
    return Pipeline(site, tmp_path)


@pytest.mark.deep("kubernetes-github", "multi-pool-gitlab")
@pytest.mark.parametrize(
    ("mode", "forge"),
    [
        ("cluster-pool", "github"),
        ("cluster-pool", "gitlab"),
        ("kubernetes", "github"),
        ("multi-pool", "gitlab"),
    ],
)
def test_everything_rendered_arrives(
    api: Api, operator: Operator, tmp_path: Path, forge: str, mode: str
) -> None:
    pipeline = made(api, operator, tmp_path, mode, {"pinning": "node"} if mode == "multi-pool" else None)
    said = getattr(pipeline, forge)()
    assert "fleet/cilium: 1 object applied" in said
    expected = {name: [block for _, block in blocks] for name, blocks in pipeline.site.lock().items()}
    if mode == "kubernetes":
        assert {name: each["spec"]["podCIDRs"] for name, each in api.items(NODES).items()} == expected
    elif mode == "multi-pool":
        shown = {
            name.rpartition(".")[2]: each["spec"]["ipv4"]["cidrs"] for name, each in api.items(POOLS).items()
        }
        assert shown == expected
    else:
        assert {
            name: each["spec"]["ipam"]["podCIDRs"] for name, each in api.items(CILIUM_NODES).items()
        } == expected
    again = getattr(pipeline, forge)()
    assert said.splitlines()[-3:] == again.splitlines()[-3:]
    assert not list(pipeline.temporary.glob("kubeconfig"))


def test_the_last_job_says_what_was_applied_completely(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    text = pipeline.site.run("ci", "github", "--sha256", HASH, "--write", "-")
    pipeline.git("init", "-q", "--bare", str(tmp_path / "fleet.git"))
    variables: Any = {"GITHUB_SERVER_URL": str(tmp_path), "GITHUB_REPOSITORY": "fleet"}
    pipeline.github(target="fleet/ciliumnodes/000")
    said = pipeline.run(*steps(text, "applied"), **variables)
    assert "fleet: not completely applied: 1 part missing: ciliumnodes/001" in said
    pipeline.github(target="fleet/ciliumnodes/001")
    said = pipeline.run(*steps(text, "applied"), **variables)
    assert "refs/ipamc/applied/fleet: " in said
    moved = tmp_path / "fleet.git/refs/ipamc/applied/fleet"
    head = pipeline.site.work / ".git/refs/heads/main"
    assert moved.read_text() == head.read_text()


def test_one_shard_alone_comes_after_cilium(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    said = pipeline.github(target="fleet/ciliumnodes/001")
    shard = {each["metadata"]["name"] for each in pipeline.site.rendering("ciliumnodes/001/ciliumnodes.yaml")}
    assert api.items(CILIUM_NODES).keys() == shard
    assert said.index("fleet/cilium: ") < said.index("fleet/ciliumnodes/001: ")


def test_a_shard_that_loses_an_object_fails_before_anything_is_applied(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path)
    lossy = pipeline.tools / "lossy"
    lossy.write_text("#!/bin/sh\nkubectl kustomize \"$2\" | awk '/^---$/ { exit } { print }'\n")
    lossy.chmod(0o755)
    said = pipeline.github(code=1, KUSTOMIZE=str(lossy))
    assert "objects in its files" in said
    assert "; lost: CiliumNode node-" in said
    assert not api.items(CILIUM_NODES)


def test_an_object_that_kubectl_does_not_send_fails(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    (pipeline.tools / "lossy").write_text(
        '#!/bin/sh\nkubectl "$@" | { [ "$1$3" = --contextapply ] && sed 1d || cat; }\n'
    )
    (pipeline.tools / "lossy").chmod(0o755)
    said = pipeline.github(code=1, KUBECTL=str(pipeline.tools / "lossy"))
    assert "ConfigMap kube-system cilium-config: kubectl reports neither an error nor an apply" in said


def test_what_was_not_compiled_is_not_applied(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    file = pipeline.site.rendered / "ciliumnodes/000/ciliumnodes.yaml"
    file.write_text(file.read_text().replace("/27", "/26"))
    pipeline.github(code=1)
    assert not api.items(CILIUM_NODES)


def test_an_old_job_that_is_run_again_takes_nothing_back(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path)
    (pipeline.site.folder / "note.yaml").write_text("# newer\n")
    for command in (
        ["add", "-A"],
        [*AUTHOR, "commit", "-q", "-m", "two"],
        ["update-ref", TRUNK, "HEAD"],
        ["reset", "-q", "--hard", "HEAD^"],
    ):
        pipeline.git(*command)
    assert "fleet: skipped: origin/main is newer" in pipeline.github()
    assert not api.items(CILIUM_NODES)
    pipeline.git("reset", "-q", "--hard", "origin/main")
    pipeline.github()
    assert api.items(CILIUM_NODES)


def test_what_the_operator_finds_wrong_fails_the_job(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path, settings={"operator": "adopt"})
    site = pipeline.site
    name, ((_, block),) = min(site.lock().items())
    with operator.running(site.config, *site.arguments):
        api.create(CILIUM_NODES, cilium_node("intruder", block))
        said = pipeline.github(code=1)
        assert f"error: fleet: CiliumNode {name}: " in said
        api.delete(f"{CILIUM_NODES}/intruder", f"{CILIUM_NODES}/{name}")
        pipeline.github()


def test_what_somebody_else_owns_is_not_taken_by_force(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    first = min(pipeline.site.lock())
    api.create(CILIUM_NODES, cilium_node(first, "10.99.0.0/27"))
    said = pipeline.github(code=1)
    assert "ipamc does not use force" in said
    live = api.items(CILIUM_NODES)
    assert live[first]["spec"]["ipam"]["podCIDRs"] == ["10.99.0.0/27"]
    assert pipeline.site.lock().keys() - live.keys() <= {
        each["metadata"]["name"]
        for path in sorted(pipeline.site.rendered.glob("ciliumnodes/*/ciliumnodes.yaml"))
        if first in path.read_text()
        for each in yaml.safe_load_all(path.read_text())
    }


def test_a_kubeconfig_without_the_cluster_applies_nowhere(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    pipeline = made(api, operator, tmp_path)
    pipeline.secret = api.kubeconfig.read_text()  # its context, and its current one, has another name
    said = pipeline.run("ipamc apply fleet", code=1, KUBECONFIG=str(api.kubeconfig))
    assert 'context "fleet" does not exist' in said
    assert not api.items(CILIUM_NODES)


def test_missing_crds_are_waited_for(api: Api, operator: Operator, tmp_path: Path) -> None:
    pipeline = made(api, operator, tmp_path)
    crd = api.get(f"{CRDS}/ciliumnodes.cilium.io")
    api.delete(f"{CRDS}/ciliumnodes.cilium.io")
    try:
        (pipeline.temporary / "kubeconfig").write_text(pipeline.secret)
        said = pipeline.run(
            "ipamc apply --timeout 1 fleet", code=1, KUBECONFIG=str(pipeline.temporary / "kubeconfig")
        )
        assert "ciliumnodes.cilium.io: still missing after 1 seconds; is Cilium installed?" in said
    finally:
        body = {
            "apiVersion": crd["apiVersion"],
            "kind": crd["kind"],
            "metadata": {"name": crd["metadata"]["name"]},
            "spec": crd["spec"],
        }
        until(
            lambda: (
                api.ask("POST", CRDS, body).code in {201, 409} and api.ask("GET", CILIUM_NODES).code == 200
            ),
            "the CRD is back",
        )
