"""The HTTP API of GitLab or GitHub: the comments of a merge request or pull request, and past pipelines.

No token is printed.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipamc.workspace.environment import variable
from ipamc.workspace.trouble import Trouble

PAGE, PAGES = 100, 50
"""Comments of a page, and pages that are read."""
SECONDS = 30
"""How long a request may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nowhere:
    """There is no merge request or pull request here, or no token."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """The comments of one merge request or pull request."""

    notes: str
    """The URL of all comments."""
    note: str
    """The URL of a comment, without its id."""
    update: str
    """The method that replaces a comment."""
    headers: dict[str, str]

    def comments(self) -> Iterator[dict[str, Any]]:
        """Yield the comments, page by page."""
        for page in range(1, PAGES + 1):
            found = self._ask("GET", f"{self.notes}?per_page={PAGE}&page={page}")
            yield from found
            if len(found) < PAGE:
                return

    def add(self, text: str) -> None:
        """Write a new comment."""
        self._ask("POST", self.notes, {"body": text})

    def replace(self, identifier: object, text: str) -> None:
        """Replace the text of a comment."""
        self._ask(self.update, f"{self.note}/{identifier}", {"body": text})

    def _ask(self, method: str, url: str, body: dict[str, str] | None = None) -> Any:
        return ask(method, url, self.headers, body)


def ask(method: str, url: str, headers: Mapping[str, str], body: dict[str, str] | None = None) -> Any:
    """Send one request. Raises Trouble with the forge's answer, and without the headers."""
    data = None if body is None else json.dumps(body).encode()
    every = {**headers, "Content-Type": "application/json"}
    request = urllib.request.Request(url, data, every, method=method)  # noqa: S310 - the URL is the forge's
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        said = problem.read(300).decode("utf-8", "replace")
        raise Trouble(f"{method} {url}: {problem.code} {said}") from None
    except (urllib.error.URLError, TimeoutError, ValueError) as problem:
        raise Trouble(f"{method} {url}: {problem}") from None


def forge_of_this_job() -> Forge | Nowhere:
    """Return the forge on which this job runs, from the variables that it sets.

    Raises Trouble where one of them is not a URL.
    """
    if variable("GITHUB_ACTIONS") == "true":
        number = re.fullmatch(r"refs/pull/(\d+)/\w+", variable("GITHUB_REF"))
        url = f"{_url('GITHUB_API_URL')}/repos/{variable('GITHUB_REPOSITORY')}/issues"
        name = "GITHUB_TOKEN"
        target = number[1] if number else ""
        headers = _github_headers()
        forge = Forge(
            notes=f"{url}/{target}/comments", note=f"{url}/comments", update="PATCH", headers=headers
        )
    elif variable("GITLAB_CI") == "true":
        target = variable("CI_MERGE_REQUEST_IID")
        url = f"{_url('CI_API_V4_URL')}/projects/{variable('CI_PROJECT_ID')}/merge_requests/{target}/notes"
        name = "IPAMC_TOKEN"
        forge = Forge(notes=url, note=url, update="PUT", headers={"PRIVATE-TOKEN": variable(name)})
    else:
        return Nowhere(reason="this is not a job of GitHub or GitLab")
    if not target:
        return Nowhere(reason="this is not a merge request or pull request")
    return forge if variable(name) else Nowhere(reason=f"there is no {name}")


def last_success() -> str | Nowhere:
    """Return the commit of the last successful pipeline of this branch that a push started.

    What such a pipeline was to apply is applied: it fails where one cluster does. GitHub needs GITHUB_TOKEN
    with the permission actions: read. GitLab needs IPAMC_TOKEN with the scope read_api, because a job's own
    token may not list pipelines. Raises Trouble where the forge refuses.
    """
    if variable("GITHUB_ACTIONS") == "true":
        file = re.search(r"/([^/@]+\.ya?ml)@", variable("GITHUB_WORKFLOW_REF"))
        token, branch, key = "GITHUB_TOKEN", variable("GITHUB_REF_NAME"), "head_sha"
        headers = _github_headers()
        path = f"repos/{variable('GITHUB_REPOSITORY')}/actions/workflows/{file[1] if file else ''}/runs"
        url = f"{_url('GITHUB_API_URL')}/{path}?{_query(branch=branch, event='push', status='success')}"
        complete = bool(file)
    elif variable("GITLAB_CI") == "true":
        token, branch, key = "IPAMC_TOKEN", variable("CI_COMMIT_BRANCH"), "sha"
        headers = {"PRIVATE-TOKEN": variable(token)}
        query = _query(ref=branch, source="push", status="success", order_by="id", sort="desc")
        url = f"{_url('CI_API_V4_URL')}/projects/{variable('CI_PROJECT_ID')}/pipelines?{query}"
        complete = True
    else:
        return Nowhere(reason="this is not a job of GitHub or GitLab")
    if not variable(token):
        return Nowhere(reason=f"there is no {token}")
    if not branch or not complete:
        return Nowhere(reason="this is not a job of a branch")
    found = ask("GET", url, headers)
    runs = found.get("workflow_runs") if isinstance(found, dict) else found
    return str(runs[0][key]) if runs else Nowhere(reason=f"no pipeline of {branch} was successful yet")


def _query(**fields: str) -> str:
    return urllib.parse.urlencode({**fields, "per_page": "1"})


def _github_headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {variable('GITHUB_TOKEN')}", "Accept": "application/vnd.github+json"}


def _url(name: str) -> str:
    url = variable(name)
    if not re.match(r"https?://", url):
        raise Trouble(f"{name} is not the URL of an API: {url!r}")
    return url.rstrip("/")
