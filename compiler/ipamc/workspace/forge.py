"""The comments of a merge request or pull request, by the HTTP API of GitLab or GitHub.

No token is printed.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
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
        """Send one request. Raises Trouble with the forge's answer, and without the headers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - the URL is the forge's
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
        headers = {"Authorization": f"Bearer {variable(name)}", "Accept": "application/vnd.github+json"}
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


def _url(name: str) -> str:
    url = variable(name)
    if not re.match(r"https?://", url):
        raise Trouble(f"{name} is not the URL of an API: {url!r}")
    return url.rstrip("/")
