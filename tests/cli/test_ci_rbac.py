"""`ipamc ci rbac` and `ipamc dump`, on the examples and with a kubectl that answers from files.

That the roles suffice, and that each verb is needed, is shown on a real apiserver in `tests/e2e/test_rbac.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.workspace.dump import load_dump
from tests.cli import test_ci
from tests.support import in_process
from tests.support.pipelines import ROOT, Repository

made, repository = test_ci.made, test_ci.repository


def printed(*arguments: str, code: int = 0) -> str:
    """Run `ipamc ci rbac` at the top of this repository."""
    done = in_process.ipamc("ci", "rbac", *arguments, cwd=ROOT, environment={}, one_stream=True)
    assert done.returncode == code, done.stdout
    return done.stdout


def rights(*arguments: str) -> dict[str, list[str]]:
    """Return the verbs by `ROLE RESOURCE`, or `ROLE RESOURCE NAMES`."""
    return {
        " ".join(
            (
                document["metadata"]["name"].removeprefix("ipamc-"),
                *rule["resources"],
                *rule.get("resourceNames", ()),
            )
        ): rule["verbs"]
        for document in yaml.safe_load_all(printed(*arguments))
        if document["kind"] in {"Role", "ClusterRole"}
        for rule in document["rules"]
    }


READ = {
    "apply nodes": ["list"],
    "apply ciliumnodeconfigs": ["list"],
    "apply ciliumpodippools": ["list"],
    "apply ciliumnodes": ["list", "watch"],
    "apply configmaps cilium-config": ["get"],
    "apply deployments cilium-operator": ["get"],
}
"""What every apply compares."""
WRITES = {
    "host-scope": {"apply nodes": ["list", "patch"], "apply pods": ["list"]},
    "annotations": {"apply nodes": ["list", "patch"], "apply pods": ["list"]},
    "zones": {
        "apply customresourcedefinitions ciliumnodes.cilium.io": ["get"],
        "apply ciliumnodes": ["create", "list", "patch", "watch"],
        "apply pods": ["list"],
    },
    "multi-pool": {
        "apply customresourcedefinitions ciliumpodippools.cilium.io": ["get"],
        "apply ciliumpodippools": ["create", "list", "patch"],
    },
}
"""What an apply of an example writes besides; a shared pool is of no node, and asks for no pods."""


@pytest.mark.parametrize("name", WRITES)
def test_an_apply_may_write_what_is_rendered_and_nothing_else(name: str) -> None:
    assert rights(name, "--job", "apply") == READ | WRITES[name]


def test_only_with_prune_may_it_delete() -> None:
    less, more = rights("pinned", "--job", "apply"), rights("pinned", "--job", "apply", "--prune")
    added = {key: set(verbs) - set(less.get(key, ())) for key, verbs in more.items()}
    assert {key for key, verbs in added.items() if verbs == {"delete"}} == {
        "apply ciliumnodes",
        "apply ciliumpodippools",
        "apply ciliumnodeconfigs",
    }
    assert not any("delete" in verbs for verbs in less.values())


def test_jobs_that_read_may_not_write_and_read_config_maps_by_name() -> None:
    found = rights("zones", "--job", "refresh", "--job", "audit")
    assert {verb for verbs in found.values() for verb in verbs} == {"get", "list"}
    of_refresh = ["refresh nodes", "refresh ciliumnodes", "refresh daemonsets cilium"]
    assert [key for key in found if key.startswith("refresh")] == of_refresh
    assert [key for key in found if "configmaps" in key] == ["audit configmaps cilium-config kubeadm-config"]
    assert not [key for key in found if "secrets" in key]


def test_the_job_plan_needs_nothing() -> None:
    assert list(yaml.safe_load_all(printed("zones", "--job", "plan"))) in ([], [None])


def test_a_subject_gets_the_roles_and_no_account_is_made() -> None:
    text = printed("zones", "--job", "apply", "--subject", "ServiceAccount:ci/runner")
    found = list(yaml.safe_load_all(text))
    assert not [document for document in found if document["kind"] == "ServiceAccount"]
    subjects = [document["subjects"] for document in found if document["kind"].endswith("Binding")]
    assert subjects == [[{"kind": "ServiceAccount", "namespace": "ci", "name": "runner"}]] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["zones", "bgp"], "each cluster has its own roles"),
        (["zones", "--subject", "Robot:a"], "'Robot:a' is not one of User:NAME"),
        (["zones", "--subject", "ServiceAccount:a"], "is not one of User:NAME"),
        (["nowhere"], "there is no cluster 'nowhere'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], said: str) -> None:
    assert said in printed(*arguments, code=64)


KUBECTL = """\
#!{python}
import json, pathlib, sys
from urllib.parse import parse_qs, urlsplit
answers = json.loads(pathlib.Path("{answers}").read_text())
arguments = sys.argv[3:]
if arguments[1] == "--raw":
    url = urlsplit(arguments[2])
    pages = answers[url.path]
    number = int(parse_qs(url.query).get("continue", ["0"])[0])
    token = str(number + 1) if number + 1 < len(pages) else ""
    print(json.dumps({{"items": pages[number], "metadata": {{"continue": token}}}}))
else:
    found = answers.get(arguments[1], "" if "--ignore-not-found" in arguments else {{"items": []}})
    if isinstance(found, str) and found:
        sys.exit(found)
    print(json.dumps(found) if found else "")
"""


def dump(repository: Repository, tmp_path: Path, answers: Any, *options: str, code: int = 0) -> str:
    """Run `ipamc dump red` with a kubectl that has these answers; return what it prints."""
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL.format(python=sys.executable, answers=tmp_path / "answers.json"))
    program.chmod(0o755)
    return repository.run(
        "ipamc", "dump", "red", "--write", "dump.json", *options, code=code, KUBECTL=str(program)
    )


def a_pod(namespace: str, number: int) -> dict[str, Any]:
    """Return a Pod as an apiserver lists it: without its kind."""
    container = {"name": "a", "image": "i", "args": ["--password=s3cret"], "env": [{"value": "s3cret"}]}
    return {
        "metadata": {"name": f"p{number}", "namespace": namespace, "annotations": {"note": "s3cret"}},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": "Running", "podIPs": [{"ip": f"10.0.0.{number}"}]},
    }


def test_a_dump_has_every_pod_and_no_secret_of_one(repository: Repository, tmp_path: Path) -> None:
    pages = [[a_pod("default", 1), a_pod("default", 2)], [a_pod("shop", 3)]]
    endpoint = {"metadata": {"name": "e", "namespace": "shop"}, "status": {}}
    dump(
        repository,
        tmp_path,
        {
            "nodes": {"items": [{"kind": "Node", "metadata": {"name": "n1"}}]},
            "/api/v1/pods": pages,
            "/apis/cilium.io/v2/ciliumendpoints": [[endpoint]],
        },
    )
    text = (repository.folder / "dump.json").read_text()
    assert "s3cret" not in text
    found = json.loads(text)["items"]
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [
        ("Node", "n1"),
        ("CiliumEndpoint", "e"),
        *(("Pod", f"p{number}") for number in (1, 2, 3)),
    ]
    read, _ = load_dump([str(repository.folder / "dump.json")])
    assert [(pod.node, pod.addresses) for pod in read.pods][2] == ("n1", ((4, 10 << 24 | 3),))


def test_what_may_not_be_read_is_not_left_out(repository: Repository, tmp_path: Path) -> None:
    answers = {"ciliumnodes.cilium.io": "Error from server (Forbidden): ciliumnodes"}
    said = dump(repository, tmp_path, answers, code=1)
    assert "ciliumnodes cannot be read" in said
    assert not (repository.folder / "dump.json").exists()


def test_what_a_role_of_before_may_not_read_is_said(repository: Repository, tmp_path: Path) -> None:
    """Neither a role without admission policies nor an apiserver without some of them stops a dump."""
    group = "admissionregistration.k8s.io"
    answers = {
        "/api/v1/pods": [[]],
        "/apis/cilium.io/v2/ciliumendpoints": [[]],
        f"validatingadmissionpolicies.{group}": "Error from server (Forbidden): no",
        f"mutatingadmissionpolicies.{group}": "error: the server doesn't have a resource type",
    }
    said = dump(repository, tmp_path, answers)
    assert (
        "no permission to read validatingadmissionpolicies: apply the roles of 'ipamc ci rbac red' again"
        in said
    )
    assert "mutating" not in said


@pytest.mark.parametrize("may", [True, False])
def test_a_refresh_reads_which_nodes_run_cilium(repository: Repository, tmp_path: Path, may: bool) -> None:  # noqa: FBT001 - a table
    """With a role of before it does not, and says so; a cluster without that DaemonSet has nothing to say."""
    agents = {"kind": "DaemonSet", "metadata": {"name": "cilium"}}
    answers = {"daemonsets.apps": agents if may else "Error from server (Forbidden): no"}
    said = dump(repository, tmp_path, answers, "--for", "refresh")
    assert ("daemonsets: apply the roles of 'ipamc ci rbac red' again" in said) is not may
    assert json.loads((repository.folder / "dump.json").read_text())["items"] == ([agents] if may else [])
    assert "daemonsets" not in dump(repository, tmp_path, {}, "--for", "refresh")


def test_an_apiserver_that_goes_round_in_circles_is_left(repository: Repository, tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho \'{"items": [], "metadata": {"continue": "again"}}\'\n')
    program.chmod(0o755)
    said = repository.run("ipamc", "dump", "red", code=1, KUBECTL=str(program))
    assert "returns the same page of the list again" in said
