"""What the scheduled jobs do beside the repair: an audit with its issue, an id token in place of a secret, and no approval each hour."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli import test_ci
from tests.cli.test_ci import FILES, child, serving, written
from tests.support.pipelines import ROOT, Repository, workflow

made, repository = test_ci.made, test_ci.repository


class Forge(BaseHTTPRequestHandler):
    """The issues of GitHub and of GitLab: one list, which both APIs show in their own words; and GitHub's id tokens."""

    issues: list[dict[str, Any]]
    asked: list[str]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self.asked.append(f"{self.command} {urlsplit(self.path).path}")
        data = json.dumps(self.found(body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815 - its names

    def found(self, body: dict[str, Any]) -> Any:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if url.path == "/token":
            return {"value": f"{self.headers['Authorization']} for {query['audience'][0]}".replace(" ", "-")}
        if url.path == "/graphql":
            return {"data": {"viewer": {"login": "bot"}}}
        if url.path == "/user":
            return {"id": 9}
        if self.command == "GET":
            assert query["state"][0] in {"open", "opened"}
            return [issue for issue in self.issues if not issue["closed"]]
        if self.command == "POST":
            number = len(self.issues) + 1
            mine = {"user": {"login": "bot"}, "author": {"id": 9}}
            self.issues.append(
                {"id": 70 + number, "number": number, "iid": number, "closed": False, **mine, **body}
            )
            return self.issues[-1]
        issue = self.issues[int(url.path.rpartition("/")[2]) - 1]
        issue.update(body, closed="state" in body or "state_event" in body)
        return issue


@pytest.fixture
def forge() -> Iterator[tuple[str, type[Forge]]]:
    """Return the URL of a forge, and what it has."""
    handler = type("OneForge", (Forge,), {"issues": [], "asked": []})
    with serving(handler) as url:
        yield url, handler


def variables(name: str, url: str) -> dict[str, Any]:
    """Return what the jobs of a forge have."""
    if name == "github":
        on = {"GITHUB_ACTIONS": "true", "GITHUB_API_URL": url, "GITHUB_REPOSITORY": "o/r"}
        return {**on, "GITHUB_TOKEN": "t0ken"}
    return {"GITLAB_CI": "true", "CI_API_V4_URL": url, "CI_PROJECT_ID": "5", "IPAMC_TOKEN": "t0ken"}


# The audit.


def audited(repository: Repository, tmp_path: Path, *joined: str, code: int = 0, **more: str) -> str:
    """Audit the cluster red with a dump to which these nodes joined; return what is said."""
    options = [word for name in joined for word in ("--join", f"{name}=n1")]
    text = repository.run(
        *(sys.executable, "-m", "tests.support.page_dump", "red", *options),
        PYTHONPATH=f"{ROOT}/compiler:{ROOT}",
    )
    (tmp_path / "red.json").write_text(text.replace("2026-11-22T", "2030-01-01T"))  # newer than the commits
    command = ("ipamc", "ci", "audit", "red", str(tmp_path / "red.json"), "--remote")
    return repository.run(*command, str(tmp_path / "origin.git"), code=code, **more)


@pytest.mark.deep
@pytest.mark.parametrize("name", FILES)
def test_one_issue_is_opened_replaced_and_closed(
    repository: Repository, tmp_path: Path, forge: tuple[str, type[Forge]], name: str
) -> None:
    url, there = forge
    variables_ = variables(name, url)
    text = "body" if name == "github" else "description"
    stranger = {"id": 70, "user": {"login": "x"}, "author": {"id": 1}, "closed": False, "number": 1, "iid": 1}
    there.issues.append({**stranger, text: "<!-- ipamc ci audit red -->\nmine"})
    assert "found" not in audited(repository, tmp_path, **variables_)
    assert len(there.issues) == 1
    said = audited(repository, tmp_path, "n7", **variables_)
    assert "red: issue 2 opened" in said
    issue = there.issues[1]
    assert issue["title"] == "ipamc audit: red"
    assert issue[text].startswith("<!-- ipamc ci audit red -->\n- <code>")
    assert "n7" in issue[text]
    there.asked.clear()
    audited(repository, tmp_path, "n7", **variables_)
    assert not [line for line in there.asked if re.match("PUT|PATCH|POST .*issues", line)]
    audited(repository, tmp_path, "n8", **variables_)
    assert len(there.issues) == 2
    assert "n8" in issue[text]
    assert "n7" not in issue[text]
    assert "red: issue 2 closed" in audited(repository, tmp_path, **variables_)
    assert issue["closed"]
    assert not there.issues[0]["closed"]


def test_without_a_token_the_job_fails_where_something_is_wrong(
    repository: Repository, tmp_path: Path
) -> None:
    on = {**variables("gitlab", "http://127.0.0.1:9"), "IPAMC_TOKEN": ""}
    assert "red: no issue: there is no IPAMC_TOKEN" in audited(repository, tmp_path, "n7", code=1, **on)
    audited(repository, tmp_path, **on)


def test_an_audit_that_cannot_be_made_is_told_and_fails(
    repository: Repository, tmp_path: Path, forge: tuple[str, type[Forge]]
) -> None:
    url, there = forge
    command = ("ipamc", "ci", "audit", "red", str(tmp_path / "nowhere.json"), "--remote")
    repository.run(*command, str(tmp_path / "origin.git"), code=1, **variables("github", url))
    assert "The audit failed" in there.issues[0]["body"]


def test_what_is_wrong_is_only_text_in_the_issue(
    repository: Repository, tmp_path: Path, forge: tuple[str, type[Forge]]
) -> None:
    url, there = forge
    audited(repository, tmp_path, "n7", **variables("github", url))
    listed = there.issues[0]["body"].splitlines()[1:-3]
    assert listed
    assert all(re.fullmatch("- <code>[^<>`]*</code>", line) for line in listed)


def test_the_audit_comes_after_the_repair_with_rights_of_its_own(repository: Repository) -> None:
    job = workflow(written("--audit"))["jobs"]["audit"]
    assert job["needs"] == ["changes", "apply"]
    assert job["permissions"] == {"contents": "read", "issues": "write"}
    secrets = [step for step in job["steps"] if "secrets." in str(step)]
    tokens = [step for step in job["steps"] if "github.token" in str(step)]
    assert [step["run"].count("ipamc dump") for step in secrets] == [1]
    assert [step["run"].count("ipamc ci audit") for step in tokens] == [1]
    repository.run("ipamc", "ci", "gitlab", "--audit")
    assert "--audit\n" in (repository.folder / FILES["gitlab"]).read_text()
    found = child(repository, "repair", "--audit")
    assert found[".audit"]["stage"] == ".post"
    assert found["audit"]["parallel"]["matrix"][0]["TARGETS"] == "blue"
    assert "audit" not in child(repository, "apply", "--audit")


# The id token.


def test_github_is_asked_for_a_token_for_the_audience(
    repository: Repository, forge: tuple[str, type[Forge]]
) -> None:
    on: dict[str, Any] = {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{forge[0]}/token?api-version=2.0",
    }
    on |= {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "asker"}
    found = json.loads(repository.run("ipamc", "ci", "token", "--audience", "lab", **on))
    assert found == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "Bearer-asker-for-lab"},
    }
    said = repository.run("ipamc", "ci", "token", GITHUB_ACTIONS="true", code=1)
    assert "it needs the permission id-token: write" in said


def test_gitlab_gives_the_token_with_the_job(repository: Repository) -> None:
    found = json.loads(repository.run("ipamc", "ci", "token", GITLAB_CI="true", IPAMC_ID_TOKEN="id.t"))  # noqa: S106 - none
    assert found["status"] == {"token": "id.t"}
    assert "the job needs id_tokens" in repository.run("ipamc", "ci", "token", GITLAB_CI="true", code=1)


def test_with_oidc_no_job_has_a_kubeconfig_s_secret(repository: Repository) -> None:
    jobs = workflow(written("--oidc", "--refresh", "--audit"))["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == {
        "apply",
        "refresh",
        "audit",
    }
    assert "secrets.IPAMC_KUBECONFIG" not in str(jobs)
    assert str(jobs).count("vars.IPAMC_KUBECONFIG") == 3
    assert "id-token" not in str(workflow(written("--refresh", "--audit")))
    repository.run("ipamc", "ci", "gitlab", "--oidc")
    assert "--oidc\n" in (repository.folder / FILES["gitlab"]).read_text()
    for stage, names in (("apply", {".job"}), ("repair", {".job", ".refresh", ".audit"})):
        found = child(repository, stage, "--oidc", "--refresh", "--audit")
        having = {name for name, job in found.items() if isinstance(job, dict) and "id_tokens" in job}
        assert having == names
        assert found[".job"]["id_tokens"] == {"IPAMC_ID_TOKEN": {"aud": "ipamc"}}
    assert "id_tokens" not in str(child(repository, "compile", "--oidc"))


# No approval each hour.


def test_unattended_repairs_leave_alone_what_was_not_applied_yet(
    repository: Repository, tmp_path: Path
) -> None:
    origin = str(tmp_path / "origin.git")
    command = ("ipamc", "ci", "matrix", "--output", "names", "--stage", "repair", "--unattended", origin)
    said = repository.run(*command)
    assert "0 jobs" in said
    assert "red: not repaired unattended: git has changes after the last apply" in said
    for name in ("blue", "red"):
        repository.run("git", "push", "-q", "origin", f"HEAD:refs/ipamc/applied/{name}")
    assert repository.run(*command).splitlines()[-2:] == ["blue", "red"]
    repository.branch("feature", "red", "n2")
    said = repository.run(*command)
    assert said.splitlines()[-1] == "blue"
    assert "red: not repaired unattended" in said
    repository.run("git", "remote", "set-url", "origin", "nowhere")
    assert "there is no repository" in repository.run(*command[:-1], str(tmp_path / "nowhere.git"), code=1)


def test_unattended_jobs_have_environments_of_their_own(repository: Repository) -> None:
    jobs = workflow(written("--unattended", "--refresh", "--audit"))["jobs"]
    assert jobs["apply"]["environment"] == (
        "${{ matrix.environment }}${{ github.event_name == 'schedule' && '-unattended' || '' }}"
    )
    for name in ("refresh", "audit"):
        assert jobs[name]["environment"] == "${{ matrix.environment }}-unattended"
    step = next(step for step in jobs["changes"]["steps"] if step.get("id") == "matrix")
    assert step["env"]["REMOTE"].startswith("${{ github.event_name == 'schedule' && ")
    assert '${REMOTE:+--unattended "$REMOTE"}' in step["run"]
    repository.run("ipamc", "ci", "gitlab", "--unattended")
    assert '--unattended "$CI_PROJECT_URL.git"\n' in (repository.folder / FILES["gitlab"]).read_text()
    origin = str(repository.folder.parent / "origin.git")
    found = child(repository, "repair", "--refresh", "--audit", "--unattended", origin)
    names = {found[name]["environment"]["name"] for name in (".job", ".refresh", ".audit")}
    assert names == {"ipamc/$ENVIRONMENT-unattended"}
    assert "repair" not in found  # nothing was applied yet; what reads goes on
    assert {"refresh", "audit"} <= found.keys()
    found = child(repository, "apply", "--unattended", origin)
    assert found[".job"]["environment"]["name"] == "ipamc/$ENVIRONMENT"


# GitHub Enterprise Server.


def test_the_workflow_for_a_server_has_what_it_knows(repository: Repository) -> None:
    text = written("--server", "--refresh", "--audit")
    assert "queue" not in workflow(text)["concurrency"]
    artifacts = set(re.findall(r"actions/(?:up|down)load-artifact@\S+ # (\S+)", text))
    assert {version.partition(".")[0] for version in artifacts} == {"v3"}
    said = repository.run("ipamc", "ci", "github", "--server", "--unattended", code=64)
    assert "omit --unattended" in said
