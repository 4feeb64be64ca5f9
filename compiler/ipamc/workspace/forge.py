"""GitLab or GitHub, where this job runs: the comments of a merge request or pull request, and past pipelines.

Anybody who may comment can write a comment that looks like ours, so only those are replaced whose author is
the owner of the token. No token is printed.
"""

from __future__ import annotations

import re
import time
import urllib.parse
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Struct, field

from ipamc.workspace import git
from ipamc.workspace.environment import variable
from ipamc.workspace.git_remote import Credentials, is_local, remote
from ipamc.workspace.trouble import Trouble
from ipamc.workspace.web import Api, api_url, checked_token

PAGES = 200
"""Pages of comments that are read."""
SECONDS = 300
"""How long it may take to read them all."""

Id = Annotated[int, msgspec.Meta(ge=0)]
Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]


class Author(msgspec.Struct):
    """Who wrote a comment, or whose a token is: GitHub tells by `login`, GitLab by `id`."""

    login: str = ""
    id: Id | None = None


class Comment(msgspec.Struct):
    """A comment; GitHub has its author as `user`."""

    id: Id
    body: str | None = None
    user: Author | None = None
    author: Author | None = None


class Viewer(msgspec.Struct):
    """The answer of GitHub to `viewer { login }`."""

    class Data(msgspec.Struct):
        """What was asked for."""

        viewer: Author | None = None

    data: Data | None = None


class Run(msgspec.Struct):
    """A pipeline; GitHub calls its commit `head_sha`."""

    sha: Sha = ""
    head_sha: Sha = ""


class Runs(msgspec.Struct):
    """A page of GitHub's pipelines."""

    workflow_runs: list[Run]


class Label(msgspec.Struct):
    """A label of a pull request."""

    name: str


class _IdToken(msgspec.Struct):
    """The answer of GitHub to a question for an id token."""

    value: str


class Nowhere(Exception):  # noqa: N818 - a fact; its text says why
    """There is no merge request or pull request here, or no token."""


class Forge(Struct, frozen=True, kw_only=True):
    """The comments of one merge request or pull request."""

    api: Api
    notes: str
    """The path of all comments."""
    note: str
    """The path of a comment, without its id."""
    update: str
    """The method that replaces a comment."""
    page: int
    """How many comments are read at once."""
    github: bool = field(default=False)

    def newest(self, me: str | int, mark: str) -> int | None:
        """Return the id of the newest comment that begins with `mark` and has this author; None without one."""
        found = (
            comment.id
            for comment in self._comments()
            if (comment.body or "").startswith(mark) and self._author(comment) == me
        )
        return max(found, default=None)

    def add(self, text: str) -> None:
        """Write a new comment."""
        self.api.ask("POST", self.notes, dict, {"body": text})

    def replace(self, identifier: int, text: str) -> None:
        """Replace the text of a comment."""
        self.api.ask(self.update, f"{self.note}/{identifier}", dict, {"body": text})

    def me(self) -> str | int:
        """Return the owner of the token, as an author of comments."""
        return me(self.api, github=self.github)

    def _author(self, comment: Comment) -> str | int | None:
        if self.github:
            return comment.user.login if comment.user else None
        return comment.author.id if comment.author else None

    def _comments(self) -> Iterator[Comment]:
        end = time.monotonic() + SECONDS
        for page in range(1, PAGES + 1):
            if time.monotonic() > end:
                raise Trouble(f"the comments of this request were not read within {SECONDS} seconds")
            found = self.api.ask("GET", f"{self.notes}?per_page={self.page}&page={page}", list[Comment])
            yield from found
            if len(found) < self.page:
                return


def me(api: Api, *, github: bool) -> str | int:
    """Return the owner of a token, as an author: a login of GitHub, an id of GitLab.

    GitHub's REST API does not tell that to a workflow's own token, its GraphQL API does:
    `github-actions[bot]`. Raises Trouble where the forge does not tell.
    """
    if github:
        root = api.url.removesuffix("/v3")  # GitHub Enterprise Server: /api/v3 and /api/graphql
        found = api.ask("POST", "/graphql", Viewer, {"query": "query { viewer { login } }"}, root=root)
        owner: str | int | None = found.data.viewer.login if found.data and found.data.viewer else None
    else:
        owner = api.ask("GET", "/user", Author).id
    if owner in {None, ""}:
        raise Trouble("the forge does not tell whose the token is")
    return owner


def on_github() -> bool:
    """Tell whether this is a job of GitHub; else it is one of GitLab. Raises Nowhere where it is neither."""
    if variable("GITHUB_ACTIONS") == "true":
        return True
    if variable("GITLAB_CI") == "true":
        return False
    raise Nowhere("this is not a job of GitHub or GitLab")


def forge_of_this_job() -> Forge:
    """Return the forge on which this job runs, from the variables that it sets.

    Raises Nowhere, and Trouble where one of them is not what a forge sets.
    """
    if on_github():
        number = re.fullmatch(r"refs/pull/([0-9]+)/\w+", variable("GITHUB_REF"))
        if not number:
            raise Nowhere("this is not a merge request or pull request")
        api = github_api()
        path = f"/repos/{path_of('GITHUB_REPOSITORY')}/issues"
        return Forge(
            api=api,
            notes=f"{path}/{number[1]}/comments",
            note=f"{path}/comments",
            update="PATCH",
            page=100,
            github=True,
        )
    if not variable("CI_MERGE_REQUEST_IID"):
        raise Nowhere("this is not a merge request or pull request")
    api = gitlab_api()
    path = f"/projects/{path_of('CI_PROJECT_ID')}/merge_requests/{path_of('CI_MERGE_REQUEST_IID')}/notes"
    return Forge(api=api, notes=path, note=path, update="PUT", page=10)


def last_success() -> str:
    """Return the commit of the last successful pipeline of this branch that a push started.

    What such a pipeline was to apply is applied: it fails where one cluster does. GitHub needs GITHUB_TOKEN
    with the permission actions: read. GitLab needs IPAMC_TOKEN with the scope read_api, because a job's own
    token may not list pipelines. Raises Trouble where the forge refuses.
    """
    if on_github():
        api = github_api()
        file = re.search(r"/([^/@]+\.ya?ml)@", variable("GITHUB_WORKFLOW_REF"))
        branch = variable("GITHUB_REF_NAME")
        if not branch or not file:
            raise Nowhere("this is not a job of a branch")
        path = f"/repos/{path_of('GITHUB_REPOSITORY')}/actions/workflows/{urllib.parse.quote(file[1])}/runs"
        found = api.ask(
            "GET", f"{path}?{query(branch=branch, event='push', status='success')}", Runs
        ).workflow_runs
    else:
        api = gitlab_api()
        branch = variable("CI_COMMIT_BRANCH")
        if not branch:
            raise Nowhere("this is not a job of a branch")
        asked = query(ref=branch, source="push", status="success", order_by="id", sort="desc")
        found = api.ask("GET", f"/projects/{path_of('CI_PROJECT_ID')}/pipelines?{asked}", list[Run])
    commit = found[0].sha or found[0].head_sha if found else ""
    if not commit:
        raise Nowhere(f"no pipeline of {branch} was successful yet")
    return commit


def labels_of_merge_group() -> list[str]:
    """Return the labels of the pull request for which GitHub's merge queue made the group of this job.

    The group's ref names it. GitHub makes a group for each pull request of the queue, on top of those before it.
    Raises Nowhere, and Trouble where the forge refuses.
    """
    group = re.fullmatch(
        r"refs/heads/gh-readonly-queue/.+/pr-([0-9]+)-[0-9a-f]{40,64}", variable("GITHUB_REF")
    )
    if not on_github() or not group:
        raise Nowhere("this is not a job of a merge group of GitHub")
    path = f"/repos/{path_of('GITHUB_REPOSITORY')}/issues/{group[1]}/labels?{query(per_page='100', page='1')}"
    return [label.name for label in github_api().ask("GET", path, list[Label])]


def id_token(audience: str) -> str:
    """Return the id token (OIDC) of this job: of GitHub a new one for an audience, of GitLab that of the job.

    Raises Nowhere where the job has none, and Trouble where GitHub refuses.
    """
    if not on_github():
        if not (token := variable("IPAMC_ID_TOKEN")):
            raise Nowhere(
                "there is no IPAMC_ID_TOKEN: the job needs id_tokens, as 'ipamc ci gitlab --oidc' writes"
            )
        return checked_token("IPAMC_ID_TOKEN", token)
    name = "ACTIONS_ID_TOKEN_REQUEST_URL"
    token = variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not (token and variable(name)):
        raise Nowhere(
            "this job may have no id token: it needs the permission id-token: write, as 'ipamc ci github --oidc' writes"
        )
    root, _, given = variable(name).partition("?")
    api = Api(
        url=api_url(name, root),
        token=checked_token("ACTIONS_ID_TOKEN_REQUEST_TOKEN", token),
        header="Authorization",
        scheme="Bearer ",
    )
    asked = urllib.parse.urlencode({"audience": audience})
    return checked_token("the id token", api.ask("GET", f"?{given}&{asked}", _IdToken).value)


def push_credentials(url: str) -> Credentials | None:
    """Return the token with which this job may push to a repository, perhaps; None for a folder, which needs none.

    Raises Nowhere without a token.
    """
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
    """Return the commits that were applied last and completely, by cluster, as the refs of a repository tell.

    Of one cluster, or of all. Raises Nowhere without a token, and Trouble where the refs cannot be read.
    """
    with remote(".", url, push_credentials(url)) as there:
        found = there.refs(f"{git.APPLIED}{cluster}")
    return {ref.removeprefix(git.APPLIED): commit for ref, commit in found.items()}


def query(**fields: str) -> str:
    """Return the query of a URL, for one item unless it says how many."""
    return urllib.parse.urlencode(fields if "per_page" in fields else {**fields, "per_page": "1"})


def github_api(name: str = "GITHUB_TOKEN") -> Api:
    """Return GitHub's API, with the token of a variable. Raises Nowhere without one."""
    if not (token := variable(name)):
        raise Nowhere(f"there is no {name}")
    return Api(
        url=api_url("GITHUB_API_URL", variable("GITHUB_API_URL")),
        token=checked_token(name, token),
        header="Authorization",
        scheme="Bearer ",
        accept="application/vnd.github+json",
    )


def gitlab_api() -> Api:
    """Return GitLab's API. Raises Nowhere without a token."""
    if not (token := variable("IPAMC_TOKEN")):
        raise Nowhere("there is no IPAMC_TOKEN")
    return Api(
        url=api_url("CI_API_V4_URL", variable("CI_API_V4_URL")),
        token=checked_token("IPAMC_TOKEN", token),
        header="PRIVATE-TOKEN",
    )


def path_of(name: str) -> str:
    """Return a variable that is a part of a URL's path. Raises Trouble where it is none."""
    value = variable(name)
    if not re.fullmatch(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?", value) or ".." in value:
        raise Trouble(f"{name} is {value!r:.80}, which is not a name or a number that a forge sets")
    return value
