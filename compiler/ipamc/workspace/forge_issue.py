"""The one open issue about a cluster that this job's token wrote: found, opened, replaced, closed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Struct

from ipamc.workspace.forge import PAGES, Author, github_api, gitlab_api, me, on_github, path_of, query
from ipamc.workspace.trouble import Trouble
from ipamc.workspace.web import Api

PAGE = 100
"""How many issues are read at once."""

Number = Annotated[int, msgspec.Meta(ge=0)]


class Issue(msgspec.Struct):
    """An issue; GitLab calls its number `iid`, its text `description`, and its author `author`."""

    number: Number = 0
    iid: Number = 0
    body: str | None = None
    description: str | None = None
    user: Author | None = None
    author: Author | None = None

    @property
    def name(self) -> int:
        """What people call it by, after #."""
        return self.number or self.iid

    @property
    def text(self) -> str:
        """What it says."""
        return self.body or self.description or ""


class Issues(Struct, frozen=True, kw_only=True):
    """The issues of one project. Methods raise Trouble where the forge refuses."""

    api: Api
    path: str
    github: bool

    def find(self, mark: str) -> Issue | None:
        """Return the oldest open issue that begins with `mark` and that the owner of the token wrote.

        Anybody may open one that looks like it. GitHub has no filter for its own bot as an author.
        """
        mine = me(self.api, github=self.github)
        for page in range(1, PAGES + 1):
            asked = {"per_page": str(PAGE), "page": str(page), "sort": "created"}
            asked |= (
                {"state": "open", "direction": "asc"} if self.github else {"state": "opened", "sort": "asc"}
            )
            if not self.github:
                asked |= {"author_id": str(mine), "order_by": "created_at"}
            found = self.api.ask("GET", f"{self.path}?{query(**asked)}", list[Issue])
            for issue in found:
                author = (issue.user if self.github else issue.author) or Author()
                if issue.text.startswith(mark) and mine in {author.login, author.id}:
                    return issue
            if len(found) < PAGE:
                return None
        raise Trouble(f"there are more than {PAGES * PAGE:,} open issues")

    def create(self, title: str, text: str) -> Issue:
        """Open an issue."""
        return self.api.ask("POST", self.path, Issue, {"title": title, self._text: text})

    def replace(self, issue: Issue, text: str) -> None:
        """Replace the text of an issue, unless it is that already."""
        if issue.text.strip() != text.strip():
            self._change(issue, {self._text: text})

    def close(self, issue: Issue) -> None:
        """Close an issue."""
        self._change(issue, {"state": "closed"} if self.github else {"state_event": "close"})

    @property
    def _text(self) -> str:
        return "body" if self.github else "description"

    def _change(self, issue: Issue, fields: dict[str, str]) -> None:
        self.api.ask("PATCH" if self.github else "PUT", f"{self.path}/{issue.name}", Issue, fields)


def issues_of_this_job() -> Issues:
    """Return the issues of the forge on which this job runs. Raises Nowhere outside of one, or without a token."""
    if on_github():
        path = f"/repos/{path_of('GITHUB_REPOSITORY')}/issues"
        return Issues(api=github_api(), path=path, github=True)
    return Issues(api=gitlab_api(), path=f"/projects/{path_of('CI_PROJECT_ID')}/issues", github=False)
