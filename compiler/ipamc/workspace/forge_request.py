"""The one merge request or pull request of a branch that ipamc pushes: found, opened, updated, merged, closed.

A request of another repository with a branch of the same name is another request. Merging by itself always
names the commit, so that nobody's later push rides along.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from ipamc.workspace.environment import variable
from ipamc.workspace.forge import github_api, gitlab_api, on_github, path_of, query
from ipamc.workspace.trouble import Trouble
from ipamc.workspace.web import Api

LABEL = "ipamc/only-adds"
"""The label of a request that nobody has to decide on."""
PATIENCE = 60
"""Seconds in which GitLab starts the pipeline of a push."""

_UNDECIDED = {"approvals_syncing", "checking", "preparing", "unchecked"}
"""What GitLab says of a merge request before it knows whether it can be merged."""

Number = Annotated[int, msgspec.Meta(ge=0)]


class Request(Struct, frozen=True, kw_only=True):
    """An open request."""

    number: int
    url: str
    waits: bool = False
    """It merges by itself, once its checks have passed."""
    node: str = ""
    """GitHub's id for its GraphQL API."""
    pipeline: int = 0
    """GitLab's pipeline for what the branch had when the request was found; 0: none, or it has the same now."""


class _Repository(msgspec.Struct):
    full_name: str = ""


class _Head(msgspec.Struct):
    sha: str = ""
    repo: _Repository | None = None


class _Pull(msgspec.Struct):
    number: Number
    head: _Head
    merged_at: str | None = None
    node_id: str = ""
    html_url: str = ""
    auto_merge: dict[str, Any] | None = None


class _Methods(msgspec.Struct):
    """How a repository of GitHub lets requests be merged."""

    allow_merge_commit: bool = False
    allow_squash_merge: bool = False
    allow_rebase_merge: bool = False


class _Error(msgspec.Struct):
    message: str = ""


class _Graph(msgspec.Struct):
    errors: list[_Error] | None = None


class GitHub(Struct, frozen=True, kw_only=True):
    """Pull requests."""

    api: Api
    repository: str
    branch: str
    target: str
    own_token: bool
    """The token is the job's: what it opens and merges starts no workflow."""

    def find(self) -> Request | None:
        """Return the open request; None without one."""
        return next(map(_pull, self._pulls(state="open")), None)

    def was_closed(self, commit: str) -> bool:
        """Tell whether somebody closed the last request, unmerged, when its branch named this commit."""
        last = next(self._pulls(state="closed", sort="updated", direction="desc"), None)
        return last is not None and last.head.sha == commit and last.merged_at is None

    def create(self, title: str, body: str) -> Request:
        """Open a request."""
        fields = {"title": title, "body": body, "head": self.branch, "base": self.target}
        return _pull(self.api.ask("POST", f"/repos/{self.repository}/pulls", _Pull, fields))

    def update(self, request: Request, title: str, body: str) -> None:
        """Replace title and text."""
        self._patch(request, {"title": title, "body": body})

    def label(self, request: Request, *, wanted: bool) -> None:
        """Add or remove LABEL."""
        path = f"/repos/{self.repository}/issues/{request.number}/labels"
        there = {each.get("name") for each in self.api.ask("GET", path, list[dict[str, Any]])}
        if wanted and LABEL not in there:
            self.api.ask("POST", path, list[Any], {"labels": [LABEL]})
        elif not wanted and LABEL in there:
            self.api.ask("DELETE", f"{path}/{LABEL.replace('/', '%2F')}", list[Any])

    def merge_when_checked(self, request: Request, commit: str) -> None:
        """Let it merge by itself. Raises Trouble with the reason where that is not possible here."""
        if self.own_token:
            raise Trouble(
                "what the token of the job opens and merges starts no workflow: set the secret IPAMC_TOKEN"
            )
        known = self.api.ask("GET", f"/repos/{self.repository}", _Methods)
        method = "MERGE" if known.allow_merge_commit else "SQUASH" if known.allow_squash_merge else "REBASE"
        self._mutate(
            "mutation($id: ID!, $commit: GitObjectID!, $method: PullRequestMergeMethod!)"
            " { enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $commit,"
            " mergeMethod: $method}) { clientMutationId } }",
            {"id": request.node, "commit": commit, "method": method},
        )

    def stop(self, request: Request) -> None:
        """Let it no longer merge by itself."""
        self._mutate(
            "mutation($id: ID!) { disablePullRequestAutoMerge(input: {pullRequestId: $id})"
            " { clientMutationId } }",
            {"id": request.node},
        )

    def close(self, request: Request) -> None:
        """Close it unmerged."""
        self._patch(request, {"state": "closed"})

    def _pulls(self, **fields: str) -> Iterator[_Pull]:
        """Yield requests of this repository's own branch: forks of the same owner answer to the same name."""
        head = f"{self.repository.partition('/')[0]}:{self.branch}"
        asked = query(**fields, head=head, base=self.target, per_page="100")
        for found in self.api.ask("GET", f"/repos/{self.repository}/pulls?{asked}", list[_Pull]):
            if found.head.repo and found.head.repo.full_name.lower() == self.repository.lower():
                yield found

    def _patch(self, request: Request, fields: Mapping[str, Any]) -> None:
        self.api.ask("PATCH", f"/repos/{self.repository}/pulls/{request.number}", dict, fields)

    def _mutate(self, mutation: str, variables: Mapping[str, str]) -> None:
        root = self.api.url.removesuffix("/v3")  # GitHub Enterprise Server: /api/v3 and /api/graphql
        body = {"query": mutation, "variables": variables}
        if errors := self.api.ask("POST", "/graphql", _Graph, body, root=root).errors:
            raise Trouble("; ".join(error.message for error in errors))


def _pull(found: _Pull) -> Request:
    return Request(
        number=found.number, url=found.html_url, waits=found.auto_merge is not None, node=found.node_id
    )


class _Pipeline(msgspec.Struct):
    id: Number = 0
    sha: str = ""
    status: str = ""


class _Merge(msgspec.Struct):
    iid: Number
    sha: str | None = None
    web_url: str = ""
    source_project_id: Number | None = None
    project_id: Number | None = None
    merge_when_pipeline_succeeds: bool = False
    detailed_merge_status: str = ""
    head_pipeline: _Pipeline | None = None


class GitLab(Struct, frozen=True, kw_only=True):
    """Merge requests."""

    api: Api
    project: str
    branch: str
    target: str
    pause: float = 3.0
    """Seconds between two questions for the pipeline."""

    def find(self) -> Request | None:
        """Return the open request; None without one."""
        return next(map(_merge, self._requests(state="opened")), None)

    def was_closed(self, commit: str) -> bool:
        """Tell whether somebody closed the last request, unmerged, when its branch named this commit."""
        last = next(self._requests(state="closed", order_by="updated_at", sort="desc"), None)
        return last is not None and last.sha == commit

    def create(self, title: str, body: str) -> Request:
        """Open a request."""
        fields = {
            "title": title,
            "description": body,
            "source_branch": self.branch,
            "target_branch": self.target,
            "remove_source_branch": True,
        }
        return _merge(self.api.ask("POST", self._path, _Merge, fields))

    def update(self, request: Request, title: str, body: str) -> None:
        """Replace title and text."""
        self._put(request, {"title": title, "description": body})

    def label(self, request: Request, *, wanted: bool) -> None:
        """Add or remove LABEL."""
        self._put(request, {"add_labels" if wanted else "remove_labels": LABEL})

    def merge_when_checked(self, request: Request, commit: str) -> None:
        """Let it merge by itself. Raises Trouble with the reason where that is not possible here.

        Without a pipeline GitLab would merge at once: the pipeline of this commit is waited for. That of a
        merged result has another commit, and is known by its being new.
        """
        end = time.monotonic() + PATIENCE
        while True:
            found = self.api.ask("GET", f"{self._path}/{request.number}", _Merge)
            pipeline = found.head_pipeline
            if (
                found.sha == commit
                and found.detailed_merge_status not in _UNDECIDED
                and pipeline
                and (pipeline.sha == commit or pipeline.id != request.pipeline)
            ):
                break
            if time.monotonic() > end:
                status = found.detailed_merge_status
                why = f"it is still {status}" if status in _UNDECIDED else "no pipeline was started for it"
                raise Trouble(f"{why} after {PATIENCE} seconds")
            time.sleep(self.pause)
        if pipeline.status in {"failed", "canceled", "canceling", "skipped", "manual"}:
            raise Trouble(f"its pipeline is {pipeline.status}")
        fields = {
            "sha": commit,
            "auto_merge": True,
            "merge_when_pipeline_succeeds": True,  # its name before GitLab 17.11
            "should_remove_source_branch": True,
        }
        self.api.ask("PUT", f"{self._path}/{request.number}/merge", dict, fields)

    def stop(self, request: Request) -> None:
        """Let it no longer merge by itself."""
        path = f"{self._path}/{request.number}/cancel_merge_when_pipeline_succeeds"
        self.api.ask("POST", path, dict, {})

    def close(self, request: Request) -> None:
        """Close it unmerged."""
        self._put(request, {"state_event": "close"})

    def _requests(self, **fields: str) -> Iterator[_Merge]:
        """Yield requests of the project's own branch, and of no fork's."""
        asked = query(**fields, source_branch=self.branch, target_branch=self.target, per_page="100")
        for found in self.api.ask("GET", f"{self._path}?{asked}", list[_Merge]):
            if found.source_project_id == found.project_id:
                yield found

    @property
    def _path(self) -> str:
        return f"/projects/{self.project}/merge_requests"

    def _put(self, request: Request, fields: Mapping[str, Any]) -> None:
        self.api.ask("PUT", f"{self._path}/{request.number}", dict, fields)


def _merge(found: _Merge) -> Request:
    return Request(
        number=found.iid,
        url=found.web_url,
        waits=found.merge_when_pipeline_succeeds,
        pipeline=found.head_pipeline.id if found.head_pipeline else 0,
    )


Requests = GitHub | GitLab
"""The requests of one branch into another, on one forge. Methods raise Trouble where the forge refuses."""


def requests_of_this_job(branch: str, target: str) -> Requests:
    """Return the requests of the forge on which this job runs. Raises Nowhere outside of one, or without a token."""
    if on_github():
        own = not variable("IPAMC_TOKEN")
        api = github_api("GITHUB_TOKEN" if own else "IPAMC_TOKEN")
        repository = path_of("GITHUB_REPOSITORY")
        return GitHub(api=api, repository=repository, branch=branch, target=target, own_token=own)
    return GitLab(api=gitlab_api(), project=path_of("CI_PROJECT_ID"), branch=branch, target=target)
