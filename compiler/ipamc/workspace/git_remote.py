"""A remote repository that is named by its URL: which commits its refs name, and moving them.

git runs in an empty repository of its own that borrows our objects. So no setting of ours, such as
`url.insteadOf` or a credential helper, decides where a token goes. No redirect is followed. No argument has
it.
"""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ipamc.workspace import git_run
from ipamc.workspace.disk import is_folder
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.git import is_shallow
from ipamc.workspace.git_run import Done
from ipamc.workspace.web import api_url, checked_token

_MAY_NOT = re.compile(
    r"\b(?:401|403)\b|remote rejected|denied|not allowed|not authorized|permission|authentication failed|"
    r"could not read (?:username|password)",
    re.IGNORECASE,
).search
_ROW = re.compile(r"([0-9a-f]{40,64})\t(refs/\S+)").fullmatch


class MayNotPush(EnvironmentFailure):
    """The token may not write to the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A token, and the user name that its forge wants with it."""

    user: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A ref to move to another commit."""

    ref: str
    old: str
    """The commit it names now; "" if it does not exist. If the ref has changed meanwhile, it is not moved."""
    new: str  # "" deletes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote repository, as `remote` opens it.
    Methods raise EnvironmentFailure where it cannot be reached.
    """

    url: str
    credentials: Credentials | None
    folder: str  # the empty repository
    objects: str  # the folder of our objects

    def refs(self, pattern: str) -> dict[str, str]:
        """Return the commits of matching refs, by ref. Raises MayNotPush without the right to read."""
        done = self._run("ls-remote", "--refs", "--quiet", "--", self.url, pattern)
        if done.code:
            raise self._refusal(done, f"{self.url} cannot be read")
        return {row[2]: row[1] for row in filter(None, map(_ROW, done.text.splitlines()))}

    def has(self, one: str, ref: str, other: str) -> bool:
        """Return whether commit `one` is in the history of a ref at `other`, which is fetched first."""
        self._fetch(ref, other)
        return self._run("merge-base", "--is-ancestor", one, other).code == 0

    def changes_the_same(self, ref: str, other: str, ours: str, path: str) -> bool:
        """Return whether commit `other` of a ref makes the same change as `ours`, so no push is needed.
        Both change a path from the same state to the same, `other` nothing else; our history has its parent.
        """
        self._fetch(ref, other)
        parents = self._run("rev-list", "--parents", "--max-count=1", other).text.split()[1:]
        if len(parents) != 1 or self._run("merge-base", "--is-ancestor", parents[0], f"{ours}^").code:
            return False
        differ = self._run("diff-tree", "-r", "-z", "--name-only", parents[0], other).text.split("\0")[:-1]
        before, before_ours, after, after_ours = (
            self._run("rev-parse", "--verify", "--quiet", f"{commit}:{path}").text
            for commit in (parents[0], f"{ours}^", other, ours)
        )
        same = before == before_ours and after == after_ours
        return same and all(name.startswith(f"{path}/") for name in differ)

    def _fetch(self, ref: str, commit: str) -> None:
        if self._run("cat-file", "-e", f"{commit}^{{commit}}").code:
            done = self._run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self.url, ref)
            if done.code:
                raise EnvironmentFailure(f"{ref} cannot be fetched from {self.url}: {self._reason(done)}")

    def push(self, moves: Sequence[Move]) -> dict[str, str]:
        """Move refs; return the refs that could not be moved, with the reason. Raises MayNotPush."""
        leases = [f"--force-with-lease={move.ref}:{move.old}" for move in moves]
        specs = [f"{move.new}:{move.ref}" for move in moves]
        done = self._run("push", "--porcelain", "--no-verify", *leases, "--", self.url, *specs)
        rows = [row.split("\t") for row in done.text.splitlines() if row.count("\t") == 2]
        if done.code and not rows:
            raise self._refusal(done, "nothing is pushed")
        stayed = {spec.partition(":")[2]: said for flag, spec, said in rows if flag == "!"}
        if any(_MAY_NOT(said) for said in stayed.values()):
            raise MayNotPush(f"nothing is pushed: {'; '.join(stayed.values())}")
        return stayed

    def _run(self, command: str, *arguments: str) -> Done:
        header = ""
        if self.credentials:
            plain = f"{self.credentials.user}:{self.credentials.token}"
            header = f"Authorization: Basic {base64.b64encode(plain.encode()).decode()}"
        return git_run.transport(self.folder, self.objects, self.url, header, command, *arguments)

    def _refusal(self, done: Done, what: str) -> EnvironmentFailure:
        return (MayNotPush if _MAY_NOT(done.complaint) else EnvironmentFailure)(
            f"{what}: {self._reason(done)}"
        )

    def _reason(self, done: Done) -> str:
        said = done.reason or f"git exits with {done.code}"
        return said.replace(self.credentials.token, "***") if self.credentials else said


@contextmanager
def remote(folder: str, url: str, credentials: Credentials | None) -> Iterator[Remote]:
    """Open a repository by a URL of http(s) without a user, or an absolute path.
    Raises EnvironmentFailure.
    """
    if not is_local(url):
        api_url("--remote", url)
    elif not is_folder(url):
        raise EnvironmentFailure(f"there is no repository {url}")
    if credentials:
        checked_token("the token for pushing", credentials.token)
    if is_shallow(folder):
        raise EnvironmentFailure("this clone is shallow: git fetch --unshallow origin, or fetch-depth: 0")
    ours = git_run.must(folder, "rev-parse", "--path-format=absolute", "--git-path", "objects").text.strip()
    kind = git_run.must(folder, "rev-parse", "--show-object-format").text.strip()
    with tempfile.TemporaryDirectory(prefix="ipamc-") as own:
        init = ("init", "--bare", "--quiet", "--template=", f"--object-format={kind}")
        done = git_run.transport(own, ours, url, "", *init)
        if done.code:
            raise EnvironmentFailure(f"git init in {own}: {done.reason}")
        yield Remote(url=url, credentials=credentials, folder=own, objects=ours)


def is_local(url: str) -> bool:
    """Return whether a remote repository is a folder of this machine."""
    return url.startswith("/")
