"""`ipamc ci refresh`: one request for each cluster, in a real bare remote and on forges that answer as GitHub and GitLab do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli import test_ci
from tests.cli.test_ci import serving
from tests.support.pipelines import Repository

repository = test_ci.repository

BRANCH = "refs/heads/ipamc/refresh/red"


BRANCHES: dict[str, dict[str, Any]] = {
    "ours": {"head": {"repo": {"full_name": "o/r"}}, "source_project_id": 5, "project_id": 5},
    "a fork": {"head": {"repo": {"full_name": "o/fork"}}, "source_project_id": 6, "project_id": 5},
}
"""Where a request comes from, for GitHub and for GitLab."""


class Forge(BaseHTTPRequestHandler):
    """The requests of GitHub and of GitLab: one list, which both APIs show in their own words."""

    asked: list[tuple[str, str]]
    open: dict[int, dict[str, Any]]
    closed: list[dict[str, Any]]
    strangers: list[dict[str, Any]]
    """Requests of forks, from a branch of the same name."""
    refuses: str
    """Why nothing merges by itself; "" where it does."""
    tip: str
    """What GitLab's pipeline runs for."""
    status: str = "running"
    """Of that pipeline; "" where there is none."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        path = urlsplit(self.path).path
        self.asked.append((self.command, path.rpartition("/r/")[2] or path))
        code, found = 200, self.found(path, body)
        if found is None:
            code, found = 405, {"message": self.refuses}
        data = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - its names

    def found(self, path: str, body: dict[str, Any]) -> Any:
        number = int(match[1]) if (match := re.search(r"/(?:pulls|issues|merge_requests)/(\d+)", path)) else 0
        if path == "/graphql":
            request = next(each for each in self.open.values() if each["node_id"] == body["variables"]["id"])
            enable = "enablePullRequestAutoMerge" in body["query"]
            if enable and self.refuses:
                return {"data": None, "errors": [{"message": self.refuses}]}
            request["auto_merge"] = {"commit": body["variables"]["commit"]} if enable else None
            request["merge_when_pipeline_succeeds"] = enable
            return {"data": {}}
        if path == "/repos/o/r":
            return {"allow_squash_merge": True}
        if path.endswith("/labels"):
            labels = self.open[number]["labels"]
            labels.extend(body.get("labels", ()))
            return [{"name": name} for name in labels]
        if self.command == "DELETE":
            self.open[number]["labels"].clear()
            return []
        if path.endswith("/merge"):
            if self.refuses:
                return None
            assert body["sha"] == self.tip
            assert body["merge_when_pipeline_succeeds"]
            self.open[number].update(merge_when_pipeline_succeeds=True, auto_merge={"commit": body["sha"]})
            return {}
        if path.endswith("/cancel_merge_when_pipeline_succeeds"):
            self.open[number].update(merge_when_pipeline_succeeds=False, auto_merge=None)
            return {}
        if self.command == "GET" and not number:
            query = parse_qs(urlsplit(self.path).query)
            wanted = (query.get("head") or query["source_branch"])[0]
            assert re.fullmatch("(o:)?ipamc/refresh/(red|lab)", wanted)
            if query["state"] == ["closed"]:
                return self.closed[-1:]
            return [*self.open.values(), *self.strangers]
        if self.command == "POST":
            number = len(self.asked)
            self.open[number] = {
                "number": number,
                "iid": number,
                "node_id": f"N{number}",
                "auto_merge": None,
                "merge_when_pipeline_succeeds": False,
                "labels": [],
                **BRANCHES["ours"],
            }
        self.open[number].update({**body, **BRANCHES["ours"], "sha": self.tip})
        # Of a merged result, whose commit is another one
        pipeline = {"id": len(self.asked), "sha": "0" * 40, "status": self.status}
        self.open[number]["head_pipeline"] = pipeline if self.status else None
        if label := body.get("add_labels"):
            self.open[number]["labels"].append(label)
        if body.get("remove_labels"):
            self.open[number]["labels"].clear()
        request = self.open[number]
        if body.get("state") == "closed" or body.get("state_event") == "close":
            del self.open[number]
        return request


def dump(repository: Repository, *nodes: str) -> str:
    """Write a dump with these nodes, NAME or NAME#UID; return where it is."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": uid or f"uid-{name}",
                "creationTimestamp": "2030-01-01T00:00:00Z",
                "labels": {"kubernetes.io/hostname": name},
            },
            "spec": {},
            "status": {"capacity": {"pods": "20"}, "allocatable": {"pods": "20"}},
        }
        for name, _, uid in (node.partition("#") for node in nodes)
    ]
    path = repository.folder.parent / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository whose cluster red has the inventory that an import writes."""
    folder = tmp_path_factory.mktemp("made")
    found = Repository(folder)
    found.run("ipamc", "import", "red", "--refresh", dump(found, "n1"))
    found.run("ipamc", "compile", "red")
    found.commit("imported")
    found.run("git", "push", "-q", "origin", "main")
    found.run("git", "fetch", "-q")
    return folder


class Site:
    """The repository, and the forge on which it is."""

    def __init__(self, repository: Repository, handler: Any, url: str, where: str) -> None:
        self.repository, self.handler = repository, handler
        variables = {
            "github": {"GITHUB_ACTIONS": "true", "GITHUB_API_URL": url, "GITHUB_REPOSITORY": "o/r"},
            "gitlab": {"GITLAB_CI": "true", "CI_API_V4_URL": url, "CI_PROJECT_ID": "5"},
        }
        self.variables = {**variables[where], "IPAMC_TOKEN": "t0ken"}

    def run(self, *nodes: str, code: int = 0, **more: str) -> str:
        """Refresh the cluster red from a dump with these nodes; return what is printed."""
        url = str(self.repository.folder.parent / "origin.git")
        self.handler.asked.clear()
        command = ("ci", "refresh", "red", dump(self.repository, *nodes), "--remote", url, "--target", "main")
        said = self.repository.run("ipamc", *command, code=code, **{**self.variables, **more})
        assert "t0ken" not in said
        return said

    def refresh(self, *nodes: str, code: int = 0, **more: str) -> str:
        """Do `run`; the work tree is as it was."""
        said = self.run(*nodes, code=code, **more)
        assert not self.repository.run("git", "status", "--porcelain", "clusters")
        return said

    @property
    def request(self) -> dict[str, Any]:
        """The only open request."""
        (found,) = self.handler.open.values()
        return dict(found)

    @property
    def branch(self) -> str:
        """The commit of the branch in the remote repository; "" without it."""
        return self.repository.run("git", "ls-remote", "origin", BRANCH).partition("\t")[0]

    def body(self) -> str:
        """The text of the open request."""
        return str(self.request.get("body") or self.request.get("description"))


@pytest.fixture(params=["github", "gitlab"])
def site(
    repository: Repository, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    handler: Any = type(
        "OneForge",
        (Forge,),
        {"asked": [], "open": {}, "closed": [], "strangers": [], "refuses": "", "tip": ""},
    )
    origin = repository.folder.parent / "origin.git"

    def tip(_: Any) -> str:
        return repository.run("git", "--git-dir", str(origin), "rev-parse", BRANCH).strip()

    handler.tip = property(tip)
    monkeypatch.setattr("ipamc.workspace.forge_request.PIPELINE_SECONDS", 0)
    with serving(handler) as url:
        yield Site(repository, handler, url, request.param)


def test_a_node_that_joined_is_a_request_that_merges_by_itself(site: Site) -> None:
    said = site.refresh("n1", "n2")
    assert "only adds nodes or uids; it merges by itself after its checks pass" in said
    assert site.request["auto_merge"] == {"commit": site.branch}
    assert site.request["labels"] == ["ipamc/only-adds"]
    assert "This only adds nodes or uids: it merges by itself" in site.body()
    assert "n2" in site.body()
    run = site.repository.run
    run("git", "fetch", "-q", "origin")
    changed = run("git", "diff", "--name-only", "main", site.branch).splitlines()
    assert all(path.startswith("clusters/red/") for path in changed)
    run("git", "checkout", "-q", site.branch)
    run("ipamc", "compile", "red", "--locked", "--check")


@pytest.mark.deep
def test_the_same_again_pushes_nothing(site: Site) -> None:
    site.refresh("n1", "n2")
    before = site.branch
    site.refresh("n1", "n2")
    assert site.branch == before
    assert len(site.handler.open) == 1
    assert site.request["auto_merge"]


@pytest.mark.deep
def test_a_request_that_somebody_closed_is_not_opened_again_for_the_same(site: Site) -> None:
    site.refresh("n1", "n2")
    _, request = site.handler.open.popitem()
    head = {**request["head"], "sha": site.branch}
    site.handler.closed.append({**request, "head": head, "sha": site.branch})
    assert "red: no request: the last one was closed" in site.refresh("n1", "n2")
    assert not site.handler.open
    site.refresh("n1", "n2", "n3")
    assert site.request["auto_merge"]


def test_a_request_of_a_fork_is_left_alone(site: Site) -> None:
    site.handler.strangers.append(
        {"number": 1, "iid": 1, "node_id": "X", "auto_merge": None, **BRANCHES["a fork"]}
    )
    site.refresh("n1", "n2")
    assert site.request["number"] != 1


def test_one_more_node_updates_the_one_request(site: Site) -> None:
    site.refresh("n1", "n2")
    before = site.branch
    site.refresh("n1", "n2", "n3")
    assert site.branch != before
    assert site.request["auto_merge"] == {"commit": site.branch}
    assert "n3" in site.body()


def test_a_node_that_left_is_for_a_person(site: Site) -> None:
    site.refresh("n1", "n2")
    site.repository.run("git", "fetch", "-q", "origin")
    site.repository.run("git", "merge", "-q", site.branch)
    said = site.refresh("n1", "n2", "n3")
    assert site.request["auto_merge"]
    # It was to merge by itself; that is stopped before the branch has something else
    said = site.refresh("n1", "n3")
    assert "needs your decision: 1 node left: n2" in said
    assert site.request["auto_merge"] is None
    assert site.request["labels"] == []
    assert "**Needs your decision**" in site.body()
    stopped = [path for _, path in site.handler.asked if "graphql" in path or "cancel" in path]
    assert stopped


@pytest.mark.deep
def test_what_is_up_to_date_again_closes_the_request(site: Site) -> None:
    site.refresh("n1", "n2")
    said = site.refresh("n1")
    assert "the inventory is up to date: request" in said
    assert not site.handler.open
    assert not site.branch
    said = site.refresh("n1")
    assert "the inventory is up to date" in said
    assert {method for method, _ in site.handler.asked} == {"GET"}


@pytest.mark.deep
def test_where_it_may_not_merge_by_itself_the_request_says_so(site: Site) -> None:
    site.handler.refuses = "Auto-merge is not allowed for this <b>repository</b> @all"
    said = site.refresh("n1", "n2")
    assert "cannot merge by itself: " in said
    assert site.request["labels"] == ["ipamc/only-adds"]
    assert "It cannot merge by itself: <code>" in site.body()
    assert "@all" not in site.body()
    assert "<b>" not in site.body()
    # And once it may, it does
    site.handler.refuses = ""
    site.refresh("n1", "n2")
    assert site.request["auto_merge"]


@pytest.mark.deep
def test_a_branch_that_somebody_pushed_to_is_written_again(site: Site) -> None:
    """What rides on our branch must not merge by itself with it."""
    site.refresh("n1", "n2")
    run = site.repository.run
    run("git", "fetch", "-q", "origin")
    run("git", "checkout", "-q", site.branch)
    site.repository.write("clusters/blue/more.yaml", "# theirs\n")
    run("git", "add", "clusters")
    run("git", "commit", "-q", "-m", "theirs")
    theirs = run("git", "rev-parse", "HEAD").strip()
    run("git", "push", "-q", "origin", f"HEAD:{BRANCH}")
    run("git", "checkout", "-q", "main")
    run("git", "reset", "-q", "--hard", "origin/main")
    site.refresh("n1", "n2")
    assert site.branch != theirs
    assert site.request["auto_merge"] == {"commit": site.branch}
    run("git", "fetch", "-q", "origin")
    assert "blue" not in run("git", "diff", "--name-only", "main", site.branch)


def test_a_dump_of_another_cluster_changes_nothing(site: Site) -> None:
    said = site.refresh("x1", "x2", code=1)
    assert "IPC" in said
    assert not site.handler.asked
    assert not site.branch


@pytest.mark.deep
def test_a_node_that_was_created_again_keeps_its_block_and_needs_nobody(site: Site) -> None:
    site.refresh("n1", "n2")
    run = site.repository.run
    run("git", "fetch", "-q", "origin")
    run("git", "merge", "-q", site.branch)
    lock = (site.repository.folder / "clusters/red/ipam.lock").read_text()
    said = site.refresh("n1", "n2#another")
    assert "only adds nodes or uids" in said
    run("git", "fetch", "-q", "origin")
    assert run("git", "show", f"{site.branch}:clusters/red/ipam.lock") == lock
    assert "another" in run("git", "show", f"{site.branch}:clusters/red/nodes.yaml")


def test_a_job_that_is_run_again_later_requests_nothing(site: Site) -> None:
    """Its HEAD is not what a request would be merged into."""
    run = site.repository.run
    site.repository.write("clusters/red/note.yaml", "# newer\n")
    run("git", "add", "clusters")
    run("git", "commit", "-q", "-m", "newer")
    run("git", "push", "-q", "origin", "HEAD:main")
    run("git", "reset", "-q", "--hard", "HEAD^")
    assert "red: skipped: main is newer" in site.refresh("n1", "n2")
    assert not site.handler.asked


def test_a_cluster_whose_inventory_is_elsewhere_is_skipped(site: Site) -> None:
    run = site.repository.run
    run("git", "mv", "clusters/red/nodes.yaml", "clusters/red/terraform.yaml")
    run("git", "commit", "-q", "-m", "elsewhere")
    assert "red: skipped: it has no nodes.yaml" in site.refresh("n1", "n2")
    assert not site.handler.asked


def test_without_a_token_a_line_says_so(site: Site) -> None:
    said = site.refresh("n1", "n2", IPAMC_TOKEN="")
    assert "red: no request: there is no" in said
    assert not site.branch


@pytest.mark.parametrize("site", ["gitlab"], indirect=True)
@pytest.mark.parametrize(
    ("status", "said"), [("", "no pipeline has started for it"), ("failed", "its pipeline is failed")]
)
def test_nothing_merges_before_its_checks(site: Site, status: str, said: str) -> None:
    """Asked to merge when the pipeline succeeds, GitLab merges at once where it knows of none."""
    site.handler.status = status
    assert said in site.refresh("n1", "n2")
    assert site.request["auto_merge"] is None
    assert not [path for _, path in site.handler.asked if path.endswith("/merge")]


@pytest.mark.parametrize("site", ["github"], indirect=True)
def test_the_token_of_the_job_opens_a_request_that_does_not_merge_by_itself(site: Site) -> None:
    said = site.refresh("n1", "n2", IPAMC_TOKEN="", GITHUB_TOKEN="t0ken")  # noqa: S106 - of nobody
    assert "requests of the job's own token start no workflow: set the secret IPAMC_TOKEN" in said
    assert site.request["auto_merge"] is None
    assert site.request["labels"] == ["ipamc/only-adds"]


def test_changes_that_are_not_committed_are_left_alone(site: Site) -> None:
    site.repository.write("clusters/red/mine.yaml", "# mine\n")
    assert "there are uncommitted changes below clusters/" in site.run("n1", "n2", code=1)
    assert (site.repository.folder / "clusters/red/mine.yaml").exists()
