"""The one merge request or pull request of a branch that ipamc pushes.

A request from another repository, for a branch of the same name, is ignored. An automatic merge always names
the commit, so that nobody's later push is merged with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ipamc.model.limits import PIPELINE_PAUSE, PIPELINE_SECONDS
from ipamc.workspace.environment import variable
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.forge import Forge, Number, forge_of_this_job

LABEL = "ipamc/only-adds"  # the label of a request that needs no decision by a person

_UNDECIDED = {"approvals_syncing", "checking", "preparing", "unchecked"}
"""States of a GitLab merge request for which GitLab does not know yet whether it can be merged."""
_AUTO_MERGE = (
    "mutation($id: ID!, $commit: GitObjectID!, $method: PullRequestMergeMethod!)"
    " { enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $commit,"
    " mergeMethod: $method}) { clientMutationId } }"
)
_NO_AUTO_MERGE = (
    "mutation($id: ID!) { disablePullRequestAutoMerge(input: {pullRequestId: $id}) { clientMutationId } }"
)


class _Repository(msgspec.Struct):
    full_name: str = ""


class _Head(msgspec.Struct):
    sha: str = ""
    repo: _Repository | None = None


class _Pipeline(msgspec.Struct):
    id: Number = 0
    sha: str = ""
    status: str = ""


class Request(msgspec.Struct):
    """A request: first the fields of GitHub, then those of GitLab."""

    number: Number = 0
    head: _Head | None = None
    merged_at: str | None = None
    node_id: str = ""
    auto_merge: dict[str, Any] | None = None

    iid: Number = 0
    sha: str | None = None
    source_project_id: Number | None = None
    project_id: Number | None = None
    merge_when_pipeline_succeeds: bool = False
    detailed_merge_status: str = ""
    head_pipeline: _Pipeline | None = None

    def __post_init__(self) -> None:
        self.number = self.number or self.iid
        if not self.number or not (self.iid or self.head):
            raise ValueError("the request has no number or no head")

    @property
    def waits(self) -> bool:
        """Whether it is set to merge automatically once its checks have passed."""
        return self.auto_merge is not None or self.merge_when_pipeline_succeeds

    @property
    def commit(self) -> str | None:
        """The commit at the head of its branch."""
        return self.head.sha if self.head else self.sha


class _Methods(msgspec.Struct):
    """The merge methods that a repository of GitHub allows."""

    allow_merge_commit: bool = False
    allow_squash_merge: bool = False


class _Error(msgspec.Struct):
    message: str = ""


class _Graph(msgspec.Struct):
    errors: list[_Error] | None = None


class Requests(Struct, frozen=True, kw_only=True):
    """The requests of one branch into another. Methods raise EnvironmentFailure where the forge refuses."""

    forge: Forge
    branch: str
    target: str
    own_token: bool  # the token is a GitHub job's own: requests and merges made with it start no workflow

    def find(self) -> Request | None:
        """Return the open request; None if there is none."""
        return next(self._listed(state="open" if self.forge.github else "opened"), None)

    def was_closed(self, commit: str) -> bool:
        """Return whether the last request was closed unmerged while its branch was at this commit."""
        github = {"sort": "updated", "direction": "desc"}
        newest = github if self.forge.github else {"order_by": "updated_at", "sort": "desc"}
        last = next(self._listed(state="closed", **newest), None)
        return last is not None and last.commit == commit and last.merged_at is None

    def create(self, title: str, body: str) -> Request:
        """Open a request."""
        fields: dict[str, Any]
        if self.forge.github:
            fields = {"title": title, "body": body, "head": self.branch, "base": self.target}
        else:
            branches = {"source_branch": self.branch, "target_branch": self.target}
            fields = {"title": title, "description": body, "remove_source_branch": True, **branches}
        return self.forge.api.ask("POST", self._path(), Request, fields)

    def update(self, request: Request, title: str, body: str, *, only_adds: bool) -> None:
        """Replace title and text, and add or remove LABEL."""
        if not self.forge.github:
            label = {"add_labels" if only_adds else "remove_labels": LABEL}
            self.forge.change(self._path(request), {"title": title, "description": body, **label})
            return
        self.forge.change(self._path(request), {"title": title, "body": body})
        api, path = self.forge.api, f"{self.forge.project}/issues/{request.number}/labels"
        has_label = LABEL in self.forge.labels(request.number)
        if only_adds and not has_label:
            api.ask("POST", path, list[Any], {"labels": [LABEL]})
        elif has_label and not only_adds:
            api.ask("DELETE", f"{path}/{quote(LABEL, safe='')}", list[Any])

    def merge_when_checked(self, request: Request, commit: str, *, pushed: bool) -> None:
        """Enable automatic merging; `pushed`: this run pushed the commit.
        Raises EnvironmentFailure if impossible.
        """
        if self.own_token:
            raise EnvironmentFailure(
                "requests of the job's own token start no workflow: set the secret IPAMC_TOKEN"
            )
        if self.forge.github:
            known = self.forge.api.ask("GET", self.forge.project, _Methods)
            squash = "SQUASH" if known.allow_squash_merge else "REBASE"
            method = "MERGE" if known.allow_merge_commit else squash
            self._mutate(_AUTO_MERGE, id=request.node_id, commit=commit, method=method)
            return
        # Without a pipeline of the commit GitLab would merge at once. That of a merged result has another
        # commit; it is recognized because it is new.
        old = request.head_pipeline.id if pushed and request.head_pipeline else 0
        end = time.monotonic() + PIPELINE_SECONDS
        while True:
            found = self.forge.api.ask("GET", self._path(request), Request)
            pipeline, status = found.head_pipeline, found.detailed_merge_status
            decided = found.sha == commit and status not in _UNDECIDED
            if decided and pipeline and (pipeline.sha == commit or pipeline.id != old):
                break
            if time.monotonic() > end:
                why = f"it is still {status}" if status in _UNDECIDED else "no pipeline has started for it"
                raise EnvironmentFailure(f"{why} after {PIPELINE_SECONDS} seconds")
            time.sleep(PIPELINE_PAUSE)
        if pipeline.status in {"failed", "canceled", "canceling", "skipped", "manual"}:
            raise EnvironmentFailure(f"its pipeline is {pipeline.status}")
        fields = {"sha": commit, "auto_merge": True, "should_remove_source_branch": True}
        fields["merge_when_pipeline_succeeds"] = True  # the name of auto_merge before GitLab 17.11
        self.forge.change(f"{self._path(request)}/merge", fields)

    def stop(self, request: Request) -> None:
        """Disable automatic merging."""
        if self.forge.github:
            self._mutate(_NO_AUTO_MERGE, id=request.node_id)
        else:
            self.forge.api.ask("POST", f"{self._path(request)}/cancel_merge_when_pipeline_succeeds", dict, {})

    def close(self, request: Request) -> None:
        """Close a request without merging it."""
        self.forge.change(self._path(request), self.forge.closed)

    def _listed(self, **asked: str) -> Iterator[Request]:
        """Yield requests for the project's own branch, without those of forks with an equal branch."""
        if self.forge.github:
            own = self.forge.project.removeprefix("/repos/")
            asked |= {"head": f"{own.partition('/')[0]}:{self.branch}", "base": self.target}
        else:
            asked |= {"source_branch": self.branch, "target_branch": self.target}
        query = urlencode({**asked, "per_page": 100})
        for found in self.forge.api.ask("GET", f"{self._path()}?{query}", list[Request]):
            if not self.forge.github:
                is_own = found.source_project_id == found.project_id
            else:
                repository = found.head.repo if found.head else None
                is_own = repository is not None and repository.full_name.lower() == own.lower()
            if is_own:
                yield found

    def _path(self, request: Request | None = None) -> str:
        every = f"{self.forge.project}/{'pulls' if self.forge.github else 'merge_requests'}"
        return f"{every}/{request.number}" if request else every

    def _mutate(self, mutation: str, **variables: str) -> None:
        if errors := self.forge.graphql(mutation, _Graph, **variables).errors:
            raise EnvironmentFailure("; ".join(error.message for error in errors))


def requests_of_this_job(branch: str, target: str) -> Requests:
    """Return the requests of the forge on which this job runs. Raises Nowhere and EnvironmentFailure."""
    own = not variable("IPAMC_TOKEN")
    forge = forge_of_this_job("GITHUB_TOKEN" if own else "IPAMC_TOKEN")
    return Requests(forge=forge, branch=branch, target=target, own_token=own and forge.github)
