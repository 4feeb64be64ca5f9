"""GitHub or GitLab, where this job runs: comments, issues, labels, past pipelines, and the tokens of the job.

Anybody may imitate ipamc's comments, so only those of the token's owner count. No token is printed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ipamc.model.limits import FORGE_PAGES, FORGE_SECONDS
from ipamc.workspace import git
from ipamc.workspace.environment import variable
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.remote import Answer, Api, Credentials, api_url, checked_token, is_local, remote

Number = Annotated[int, msgspec.Meta(ge=0)]
Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]


class Author(msgspec.Struct):
    """The author of a comment, or the owner of a token: GitHub identifies by `login`, GitLab by `id`."""

    login: str = ""
    id: Number | None = None


class _Created(msgspec.Struct):
    number: Number = 0
    iid: Number = 0


class Post(msgspec.Struct):
    """A comment or an issue; for number, text and author of an issue GitLab uses the second names."""

    id: Number
    number: Number = 0
    iid: Number = 0
    body: str | None = None
    description: str | None = None
    user: Author | None = None
    author: Author | None = None

    @property
    def name(self) -> int:
        """The number of an issue as people use it; the id of a comment."""
        return self.number or self.iid or self.id

    @property
    def text(self) -> str:
        """The text of the comment or issue."""
        return self.body or self.description or ""


class _ViewerAnswer(msgspec.Struct):
    data: dict[str, Author | None] | None = None


class _Run(msgspec.Struct):
    """A pipeline; GitHub calls its commit `head_sha`."""

    sha: Sha = ""
    head_sha: Sha = ""


class _Runs(msgspec.Struct):
    workflow_runs: list[_Run]


class _Label(msgspec.Struct):
    name: str


class _IdToken(msgspec.Struct):
    value: str


class Nowhere(EnvironmentFailure):
    """There is no merge request or pull request here, or no token."""


class Forge(Struct, frozen=True, kw_only=True):
    """The project of this job, with a token for it.
    Methods raise EnvironmentFailure where the forge refuses.
    """

    api: Api
    github: bool
    project: str  # the path of the project in the API

    @property
    def closed(self) -> Mapping[str, str]:
        """The fields that close an issue or a request."""
        return {"state": "closed"} if self.github else {"state_event": "close"}

    def me(self) -> str | int:
        """Return the owner of the token, as an author: a login of GitHub, an id of GitLab.
        GitHub's REST API does not answer a workflow's own token, its GraphQL API does: `github-actions[bot]`.
        Raises EnvironmentFailure where the forge does not answer.
        """
        if self.github:
            data = self.graphql("query { viewer { login } }", _ViewerAnswer).data or {}
            owner: str | int | None = (data.get("viewer") or Author()).login
        else:
            owner = self.api.ask("GET", "/user", Author).id
        if owner in {None, ""}:
            raise EnvironmentFailure("the forge does not say who owns the token")
        return owner

    def graphql(self, query: str, answer: type[Answer], **variables: str) -> Answer:
        """Send a query to GitHub's GraphQL API."""
        root = self.api.url.removesuffix("/v3")  # GitHub Enterprise Server: /api/v3 and /api/graphql
        return self.api.ask("POST", "/graphql", answer, {"query": query, "variables": variables}, root=root)

    def labels(self, number: int | str) -> list[str]:
        """Return the labels of a pull request of GitHub."""
        path = f"{self.project}/issues/{number}/labels?per_page=100&page=1"
        return [label.name for label in self.api.ask("GET", path, list[_Label])]

    def change(self, path: str, fields: Mapping[str, Any]) -> None:
        """Replace fields of the resource at a path."""
        self.api.ask("PATCH" if self.github else "PUT", path, dict, fields)


class Posts(Struct, frozen=True, kw_only=True):
    """The comments of a request, or the issues of a project.
    Methods raise EnvironmentFailure if the forge refuses.
    """

    forge: Forge
    issues: bool
    path: str  # the path of all comments or issues
    one: str  # the path of one of them, without its name

    def mine(self, me: str | int, mark: str) -> Iterator[Post]:
        """Yield comments, or open issues, oldest first, that `me` wrote and that begin with `mark`."""
        github, asked = self.forge.github, {}
        if self.issues and github:  # the API has no filter for its own bot as an author
            asked = {"state": "open", "sort": "created", "direction": "asc"}
        elif self.issues:
            asked = {"state": "opened", "order_by": "created_at", "sort": "asc", "author_id": str(me)}
        end, size = time.monotonic() + FORGE_SECONDS, 100 if github or self.issues else 10
        for page in range(1, FORGE_PAGES + 1):
            if time.monotonic() > end:
                raise EnvironmentFailure(f"{self.path} took more than {FORGE_SECONDS} seconds to read")
            query = urlencode({**asked, "per_page": size, "page": page})
            found = self.forge.api.ask("GET", f"{self.path}?{query}", list[Post])
            for post in found:
                author = (post.user if github else post.author) or Author()
                if post.text.startswith(mark) and me in {author.login, author.id}:
                    yield post
            if len(found) < size:
                return
        if self.issues:  # ours may be on a later page; then each run would open another
            raise EnvironmentFailure(f"there are more than {FORGE_PAGES * size:,} open issues")

    def create(self, text: str, **fields: str) -> int:
        """Write a comment, or open an issue; return the number of the issue."""
        found = self.forge.api.ask("POST", self.path, _Created, {self._text: text, **fields})
        return found.number or found.iid

    def replace(self, post: Post, text: str) -> None:
        """Replace the text of a comment or issue."""
        self.forge.change(f"{self.one}/{post.name}", {self._text: text})

    def close(self, post: Post) -> None:
        """Close an issue."""
        self.forge.change(f"{self.one}/{post.name}", self.forge.closed)

    @property
    def _text(self) -> str:
        return "description" if self.issues and not self.forge.github else "body"


def on_github() -> bool:
    """Return whether this is a job of GitHub; False is GitLab. Raises Nowhere outside of both."""
    if variable("GITHUB_ACTIONS") == "true":
        return True
    if variable("GITLAB_CI") == "true":
        return False
    raise Nowhere("this is not a job of GitHub or GitLab")


def forge_of_this_job(github_variable: str = "GITHUB_TOKEN") -> Forge:
    """Return the forge on which this job runs, with the token of a variable: on GitLab IPAMC_TOKEN.
    Raises Nowhere outside of a forge and without a token, EnvironmentFailure where a variable is not what a
    forge sets.
    """
    github = on_github()
    name = github_variable if github else "IPAMC_TOKEN"
    if not (token := variable(name)):
        raise Nowhere(f"there is no {name}")
    url = "GITHUB_API_URL" if github else "CI_API_V4_URL"
    api = {"url": api_url(url, variable(url)), "token": checked_token(name, token)}
    if github:
        more = {"header": "Authorization", "scheme": "Bearer ", "accept": "application/vnd.github+json"}
        return Forge(api=Api(**api, **more), github=True, project=f"/repos/{_path_of('GITHUB_REPOSITORY')}")
    project = f"/projects/{_path_of('CI_PROJECT_ID')}"
    return Forge(api=Api(**api, header="PRIVATE-TOKEN"), github=False, project=project)


def comments_of_this_job() -> Posts:
    """Return the comments of the request for which this job runs. Raises Nowhere and EnvironmentFailure."""
    if on_github():
        number = re.fullmatch(r"refs/pull/([0-9]+)/\w+", variable("GITHUB_REF"))
        found = number[1] if number else ""
    else:
        found = variable("CI_MERGE_REQUEST_IID") and _path_of("CI_MERGE_REQUEST_IID")
    if not found:
        raise Nowhere("this is not a merge request or pull request")
    forge = forge_of_this_job()
    if forge.github:
        one, path = f"{forge.project}/issues/comments", f"{forge.project}/issues/{found}/comments"
    else:
        one = path = f"{forge.project}/merge_requests/{found}/notes"
    return Posts(forge=forge, issues=False, path=path, one=one)


def issues_of_this_job() -> Posts:
    """Return the issues of the project of this job. Raises Nowhere and EnvironmentFailure."""
    forge = forge_of_this_job()
    path = f"{forge.project}/issues"
    return Posts(forge=forge, issues=True, path=path, one=path)


def last_success() -> str:
    """Return the commit of the last successful pipeline of this branch that a push started.
    Such a pipeline has applied all it was to apply: it fails if one cluster fails. GitHub needs GITHUB_TOKEN
    with the permission actions: read. GitLab needs IPAMC_TOKEN with the scope read_api, because a job's own
    token may not list pipelines. Raises Nowhere, and EnvironmentFailure where the forge refuses.
    """
    forge = forge_of_this_job()
    branch = variable("GITHUB_REF_NAME" if forge.github else "CI_COMMIT_BRANCH")
    file = re.search(r"/([^/@]+\.ya?ml)@", variable("GITHUB_WORKFLOW_REF")) if forge.github else None
    if not branch or (forge.github and not file):
        raise Nowhere("this job does not run on a branch")
    if file:
        asked = urlencode({"branch": branch, "event": "push", "status": "success", "per_page": 1})
        path = f"{forge.project}/actions/workflows/{quote(file[1])}/runs?{asked}"
        found = forge.api.ask("GET", path, _Runs).workflow_runs
    else:
        newest = {"order_by": "id", "sort": "desc", "per_page": 1}
        asked = urlencode({"ref": branch, "source": "push", "status": "success", **newest})
        found = forge.api.ask("GET", f"{forge.project}/pipelines?{asked}", list[_Run])
    commit = found[0].sha or found[0].head_sha if found else ""
    if not commit:
        raise Nowhere(f"no pipeline of {branch} has succeeded yet")
    return commit


def labels_of_merge_group() -> list[str]:
    """Return the labels of the pull request for which GitHub's merge queue created this job's group.
    The group's ref names the pull request. GitHub creates a group for each pull request in the queue, on top
    of those before it. Raises Nowhere, and EnvironmentFailure where the forge refuses.
    """
    ref = variable("GITHUB_REF")
    group = re.fullmatch(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]+)-[0-9a-f]{40,64}", ref)
    if not on_github() or not group:
        raise Nowhere("this job does not run on a merge group of GitHub")
    return forge_of_this_job().labels(group[1])


def id_token(audience: str) -> str:
    """Return the id token (OIDC) of this job, of GitHub one for an audience.
    Raises Nowhere, EnvironmentFailure.
    """
    if not on_github():
        if not (token := variable("IPAMC_ID_TOKEN")):
            raise Nowhere(
                "there is no IPAMC_ID_TOKEN: the job needs id_tokens, as 'ipamc ci gitlab --oidc' writes"
            )
        return checked_token("IPAMC_ID_TOKEN", token)
    name, secret = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
    token = variable(secret)
    if not (token and variable(name)):
        raise Nowhere(
            "this job may have no id token: it needs the permission id-token: write, "
            "as 'ipamc ci github --oidc' writes"
        )
    root, _, given = variable(name).partition("?")
    token = checked_token(secret, token)
    api = Api(url=api_url(name, root), token=token, header="Authorization", scheme="Bearer ")
    path = f"?{given}&{urlencode({'audience': audience})}"
    return checked_token("the id token", api.ask("GET", path, _IdToken).value)


def push_credentials(url: str) -> Credentials | None:
    """Return a token that may be allowed to push; None for a folder. Raises Nowhere without a token."""
    if is_local(url):
        return None
    if on_github():
        names = {"IPAMC_TOKEN": "x-access-token", "GITHUB_TOKEN": "x-access-token"}
    else:
        names = {"IPAMC_TOKEN": "ipamc", "CI_JOB_TOKEN": "gitlab-ci-token"}
    for name, user in names.items():
        if token := variable(name):
            return Credentials(user=user, token=checked_token(name, token))
    raise Nowhere(f"there is no {' and no '.join(names)}")


def last_applied(url: str, cluster: str = "*") -> dict[str, str]:
    """Return the commits last applied completely, by cluster, from refs.
    Raises Nowhere, EnvironmentFailure.
    """
    with remote(".", url, push_credentials(url)) as there:
        found = there.refs(f"{git.APPLIED}{cluster}")
    return {ref.removeprefix(git.APPLIED): commit for ref, commit in found.items()}


def _path_of(name: str) -> str:
    """Return a variable that is part of a URL's path. Raises EnvironmentFailure for any other text."""
    value = variable(name)
    if not re.fullmatch(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?", value) or ".." in value:
        raise EnvironmentFailure(f"{name} is {value!r:.80}, which is not a name or number set by a forge")
    return value
