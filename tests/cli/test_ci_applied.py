"""`ipamc ci applied`: refs in a real bare remote say what was applied last, and completely."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.cli import test_ci, test_ci_apply
from tests.cli.test_ci import serving
from tests.cli.test_ci_apply import Cluster
from tests.support.pipelines import CLUSTER, Repository, inventory

TOKEN = "s3cret-T0KEN"  # noqa: S105 - of nobody
REF = "refs/ipamc/applied/red"

made, repository = test_ci.made, test_ci.repository
made_cluster = test_ci_apply.made


@pytest.fixture
def cluster(made_cluster: Cluster) -> Cluster:
    made_cluster.reset()
    made_cluster.flags("--ipam=kubernetes")
    return made_cluster


# Receipts.


def receipts(cluster: Cluster, tmp_path: Path, *options: str, code: int = 0) -> list[dict[str, Any]]:
    """Apply, and return the receipts."""
    cluster.apply("--receipt", str(tmp_path / "receipts"), *options, code=code)
    return [json.loads(path.read_text()) for path in (tmp_path / "receipts").glob("*.json")]


def test_an_apply_that_took_everything_writes_a_receipt(cluster: Cluster, tmp_path: Path) -> None:
    head = cluster.repository.run("git", "rev-parse", "HEAD").strip()
    assert receipts(cluster, tmp_path) == [{"cluster": "red", "commit": head, "parts": []}]


def test_a_repair_and_an_apply_before_the_flags_write_none(cluster: Cluster, tmp_path: Path) -> None:
    assert not receipts(cluster, tmp_path, "--repair")
    assert not receipts(cluster, tmp_path, "--before-flags")


def test_an_apply_that_was_refused_writes_none(cluster: Cluster, tmp_path: Path) -> None:
    cluster.flags("--ipam=cluster-pool")
    assert not receipts(cluster, tmp_path, code=1)


def test_an_object_that_was_withheld_leaves_no_receipt(cluster: Cluster, tmp_path: Path) -> None:
    nodes = cluster.rendered()
    nodes[0]["spec"]["ipam"]["podCIDRs"] = ["10.0.3.0/27"]
    cluster.has["pods"] = [
        f'{nodes[0]["metadata"]["name"]}\t\t[]\t[{{"ip": "10.0.3.1"}}]',
    ]
    assert not receipts(cluster, tmp_path, code=1)


def test_what_is_not_committed_gets_no_receipt(cluster: Cluster, tmp_path: Path) -> None:
    cluster.repository.write("clusters/red/note.yaml", "# not committed\n")
    assert not receipts(cluster, tmp_path)


# Refs.


def receipt(repository: Repository, *parts: str, name: str = "red", number: int = 0) -> None:
    """Write what a job writes that applied these parts of a cluster, or all of it."""
    head = repository.run("git", "rev-parse", "HEAD").strip()
    text = json.dumps({"cluster": name, "commit": head, "parts": parts})
    repository.write(f"receipts/{name}{number}.json", text)


def applied(repository: Repository, *options: str, code: int = 0, url: str = "", **more: str) -> str:
    """Run the step, against the bare repository beside the clone."""
    url = url or str(repository.folder.parent / "origin.git")
    return repository.run("ipamc", "ci", "applied", "receipts", "--remote", url, *options, code=code, **more)


def refs(repository: Repository) -> dict[str, str]:
    """Return the refs of ipamc in the remote repository, as git itself lists them."""
    rows = repository.run("git", "ls-remote", "origin", "refs/ipamc/*").split()
    return dict(zip(rows[1::2], rows[::2], strict=True))


def commit(repository: Repository, cluster: str = "red") -> str:
    """Commit a change of a cluster, and return the commit."""
    number = repository.run("git", "rev-list", "--count", "HEAD").strip()
    repository.write(f"clusters/{cluster}/more{number}.yaml", inventory(f"m{number}"))
    repository.run("ipamc", "compile", cluster)
    repository.run("git", "add", "clusters")
    repository.run("git", "commit", "-q", "-m", number)
    return repository.run("git", "rev-parse", "HEAD").strip()


def test_the_ref_moves_on_with_each_complete_apply(repository: Repository) -> None:
    first = repository.run("git", "rev-parse", "HEAD").strip()
    receipt(repository)
    assert f"{REF}: {first[:12]}" in applied(repository)
    assert refs(repository) == {REF: first}
    second = commit(repository)
    receipt(repository)
    receipt(repository, name="blue")
    applied(repository)
    assert refs(repository) == {REF: second, "refs/ipamc/applied/blue": second}
    assert f"stays at {second[:12]}" in applied(repository)


def test_a_job_that_is_run_again_later_moves_nothing_back(repository: Repository) -> None:
    commit(repository)
    receipt(repository)
    applied(repository)
    before = refs(repository)
    repository.run("git", "checkout", "-q", "HEAD^")
    receipt(repository)
    assert "a newer commit" in applied(repository)
    assert refs(repository) == before


def test_a_commit_of_another_run_counts_for_nothing(repository: Repository) -> None:
    receipt(repository)
    commit(repository)
    assert "not completely applied: 1 part missing: ciliumnodes/000" in applied(repository)
    assert not refs(repository)


def test_a_skipped_cluster_is_not_claimed(repository: Repository) -> None:
    """The job that was run again applied nothing, because the trunk is newer; its exit code is 0."""
    commit(repository)
    repository.run("git", "branch", "-f", "trunk")
    repository.run("git", "checkout", "-q", "HEAD^")
    receipt(repository)
    assert "skipped: trunk is newer" in applied(repository, "--trunk", "trunk")
    assert not refs(repository)


def test_shards_that_several_jobs_apply_count_together(repository: Repository) -> None:
    text = CLUSTER.replace("NAME", "green").replace("  ipam:", "  output: {shardSize: 1}\n  ipam:")
    repository.write("clusters/green/cluster.yaml", text)
    repository.write("clusters/green/nodes.yaml", inventory(*(f"n{number}" for number in range(4))))
    repository.run("ipamc", "compile", "green")
    repository.commit("shards")
    folder = repository.folder / "clusters/green/rendered/ciliumnodes"
    shards = [f"ciliumnodes/{each.name}" for each in sorted(folder.iterdir())]
    assert len(shards) > 2
    for number, shard in enumerate(shards[:-1]):
        receipt(repository, shard, name="green", number=number)
    assert f"1 part missing: {shards[-1]}" in applied(repository)
    assert not refs(repository)
    receipt(repository, shards[-1], name="green", number=len(shards))
    applied(repository)
    assert list(refs(repository)) == ["refs/ipamc/applied/green"]


def test_after_a_trunk_that_was_pushed_by_force_the_ref_follows(repository: Repository) -> None:
    """What it names is on no branch any more, and was never fetched."""
    commit(repository)
    receipt(repository)
    applied(repository)
    repository.run("git", "reset", "-q", "--hard", "HEAD^")
    repository.run("git", "reflog", "expire", "--expire=now", "--all")
    repository.run("git", "gc", "-q", "--prune=now")
    other = commit(repository, "blue")
    receipt(repository)
    applied(repository)
    assert refs(repository) == {REF: other}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cluster": "red", "commit": "x", "parts": []}', "\xff"])
def test_a_receipt_that_is_none_is_an_error(repository: Repository, text: str) -> None:
    (repository.folder / "receipts").mkdir()
    (repository.folder / "receipts/a.json").write_bytes(text.encode("latin-1"))
    assert "is not a receipt of ipamc apply" in applied(repository, code=1)
    assert not refs(repository)


def test_the_name_of_a_receipt_is_a_cluster_or_nothing(repository: Repository) -> None:
    head = repository.run("git", "rev-parse", "HEAD").strip()
    for number, name in enumerate(["../../heads/main", "red/../../../heads/main", "gone"]):
        text = json.dumps({"cluster": name, "commit": head, "parts": []})
        repository.write(f"receipts/{number}.json", text)
    applied(repository)
    assert not refs(repository)


# Who may push, and where the token goes.


def hook(repository: Repository, said: str) -> None:
    """Let the remote repository refuse every push."""
    path = repository.folder.parent / "origin.git/hooks/pre-receive"
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    path.chmod(0o755)


def test_where_the_token_may_not_push_a_line_says_so(repository: Repository) -> None:
    receipt(repository)
    hook(repository, "GitLab: You are not allowed to push code to this project.")
    said = applied(repository)
    assert "skipped: nothing is pushed" in said
    assert "audits work without these refs" in said


def test_without_a_token_a_line_says_so(repository: Repository) -> None:
    receipt(repository)
    said = applied(repository, url="https://example.org/fleet.git", GITLAB_CI="true")
    assert "skipped: there is no IPAMC_TOKEN and no CI_JOB_TOKEN" in said


class Http(BaseHTTPRequestHandler):
    """A server of git that refuses or redirects, and remembers the header that has the token."""

    tokens: list[str]
    code, location = 403, ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def do_GET(self) -> None:
        self.tokens.append(self.headers.get("Authorization") or "")
        self.send_response(self.code)
        if self.location:
            self.send_header("Location", self.location + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.parametrize(
    ("variables", "user"),
    [
        ({"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": TOKEN}, "x-access-token"),
        ({"GITLAB_CI": "true", "IPAMC_TOKEN": TOKEN}, "ipamc"),
        ({"GITLAB_CI": "true", "CI_JOB_TOKEN": TOKEN}, "gitlab-ci-token"),
    ],
)
def test_the_token_goes_to_the_repository_alone(
    repository: Repository, variables: dict[str, str], user: str
) -> None:
    receipt(repository)
    target: Any = type("Target", (Http,), {"tokens": [], "code": 403})
    handler: Any = type("OneHttp", (Http,), {"tokens": [], "code": 302})
    with serving(target) as elsewhere, serving(handler) as url:
        handler.location = elsewhere
        repository.run("git", "config", f"url.{elsewhere}/.insteadOf", f"{url}/")
        repository.run("git", "config", f"credential.{url}.helper", "!echo username=a; echo password=b; #")
        said = applied(repository, url=f"{url}/fleet.git", code=1, **variables)
    assert TOKEN not in said
    assert not target.tokens
    assert [base64.b64decode(text.removeprefix("Basic ")).decode() for text in handler.tokens] == [
        f"{user}:{TOKEN}"
    ] * len(handler.tokens)
    assert handler.tokens


@pytest.mark.parametrize("url", ["ext::sh -c id", "ssh://a/b", "https://u:p@a/b", "../b", "--upload-pack=x"])
def test_an_odd_url_is_refused(repository: Repository, url: str) -> None:
    receipt(repository)
    variables = {"GITLAB_CI": "true", "CI_JOB_TOKEN": TOKEN}
    repository.run("ipamc", "ci", "applied", "receipts", f"--remote={url}", code=1, **variables)
