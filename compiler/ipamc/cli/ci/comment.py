"""`ipamc ci comment`: one comment on a merge request or pull request, kept up to date in place, by either forge's API."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from ipamc.cli.command import DONE, Verb
from ipamc.cli.terminal import say
from ipamc.workspace import disk
from ipamc.workspace.disk import Trouble

MARK = "<!-- ipamc ci comment -->\n"
"""How our comment begins: the one that begins so is replaced."""
LONGEST = 65_000
"""Characters that GitHub takes, nearly (65,536); GitLab takes more. `ipamc plan` stays below by itself."""
PAGE, PAGES = 100, 50
SECONDS = 30


@click.command(
    cls=Verb,
    examples=(("ipamc ci comment plan.md", "in a job of a merge request or pull request"),),
    done="posted, or there is nowhere to post, and that is said",
    refused="the forge refused, or the surroundings failed",
)
@click.argument("file")
def comment(*, file: str) -> int:
    """Post FILE, Markdown, as a comment; or replace the comment that was posted before.

    GitHub: GITHUB_TOKEN, with the permission pull-requests: write. GitLab: IPAMC_TOKEN, an access token of the project with the scope api, because
    a job's own token may not write notes. Without a token the job's log has the plan, and this says so.
    """
    found = disk.read_bytes(file)
    if found is None:
        raise Trouble(f"there is no file {file}")
    text = found.decode("utf-8", "replace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n\n… and {len(text) - LONGEST:,} more characters: see the job's log.\n"
    forge = _forge()
    if forge is None:
        return DONE
    before = next(
        (each for each in forge.comments() if str(each.get("body", "")).startswith(MARK.strip())), None
    )
    body = {"body": MARK + text}
    if before is None:
        forge.ask("POST", forge.notes, body)
    else:
        forge.ask(forge.update, f"{forge.note}/{before['id']}", body)
    say("comment posted" if before is None else "comment brought up to date")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """Where comments are, as a forge's API has it."""

    notes: str
    note: str
    update: str
    headers: dict[str, str]

    def comments(self) -> Iterator[dict[str, Any]]:
        """Yield the comments that there are, page by page."""
        for page in range(1, PAGES + 1):
            found = self.ask("GET", f"{self.notes}?per_page={PAGE}&page={page}")
            yield from found
            if len(found) < PAGE:
                return

    def ask(self, method: str, url: str, body: dict[str, str] | None = None) -> Any:
        """Send one request; raise Trouble with what the forge says. No header is ever printed."""
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


def _forge() -> Forge | None:
    """Find out where this job runs; None, and a line that says so, where there is nothing to comment on, or no token."""
    given = os.environ.get
    if given("GITHUB_ACTIONS") == "true":
        number = re.fullmatch(r"refs/pull/(\d+)/\w+", given("GITHUB_REF", ""))
        url = f"{_url('GITHUB_API_URL')}/repos/{given('GITHUB_REPOSITORY', '')}/issues"
        token, name = given("GITHUB_TOKEN"), "GITHUB_TOKEN"
        target = number[1] if number else ""
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        forge = Forge(
            notes=f"{url}/{target}/comments", note=f"{url}/comments", update="PATCH", headers=headers
        )
    elif given("GITLAB_CI") == "true":
        target = given("CI_MERGE_REQUEST_IID", "")
        url = f"{_url('CI_API_V4_URL')}/projects/{given('CI_PROJECT_ID', '')}/merge_requests/{target}/notes"
        token, name = given("IPAMC_TOKEN"), "IPAMC_TOKEN"
        forge = Forge(notes=url, note=url, update="PUT", headers={"PRIVATE-TOKEN": token or ""})
    else:
        say("no comment posted: this is no job of GitHub or GitLab")
        return None
    if target and token:
        return forge
    say(
        f"no comment posted: {f'there is no {name}' if target else 'this is no merge request or pull request'}"
    )
    return None


def _url(variable: str) -> str:
    url = os.environ.get(variable, "")
    if not re.match(r"https?://", url):
        raise Trouble(f"{variable} is no address of an API: {url!r}")
    return url.rstrip("/")
