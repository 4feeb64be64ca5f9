"""Servers that get a token, and cannot leak it: an HTTP API, and a git repository that is named by its URL.

The token of an API goes only to its scheme, host and port: no redirect is followed. No text that leaves this
module contains it, whatever a server, a proxy or a library says. An answer has a limit in bytes and in time,
and the shape that the caller names. The proxy variables of the environment apply.

For a repository git runs in an empty one of its own that borrows our objects. So no setting of ours, such as
`url.insteadOf` or a credential helper, decides where a token goes. No argument has it.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from ipamc.model.limits import ERROR_SHOWN, LARGEST_ANSWER, REQUEST_SECONDS
from ipamc.workspace import git_run
from ipamc.workspace.disk import is_folder
from ipamc.workspace.failure import EnvironmentFailure
from ipamc.workspace.git import is_shallow
from ipamc.workspace.git_run import Done

_VISIBLE = re.compile(r"[!-~]+").fullmatch
_PLAIN = re.compile(r"[!#-&(-~]+").fullmatch

Answer = TypeVar("Answer")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: urllib would send the token along, also to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An HTTP API, and the token for it."""

    url: str  # without a slash at the end
    token: str = field(repr=False)
    header: str  # the name of the header that has the token
    scheme: str = ""  # the prefix of the token there, such as `Bearer `
    accept: str = "application/json"

    def ask(
        self,
        method: str,
        path: str,
        answer: type[Answer],
        body: Mapping[str, Any] | None = None,
        *,
        root: str = "",
    ) -> Answer:
        """Send one request below the API's URL, or below `root`; return the answer, of the shape `answer`.
        Raises EnvironmentFailure, without the token, where the server cannot be reached, refuses, redirects,
        takes longer than REQUEST_SECONDS, or answers with other JSON or none.
        """
        url = (root or self.url) + path
        what = f"{method} {url}"
        headers = {"Accept": self.accept, "Content-Type": "application/json"}
        headers[self.header] = self.scheme + self.token
        data = None if body is None else json.dumps(body).encode()
        # api_url() knows its scheme
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - as above
        got: list[bytes | str] = []
        # A thread limits a server that sends a byte a minute. Exit does not wait for a daemon thread.
        sender = threading.Thread(target=lambda: got.append(self._sent(request)), daemon=True)
        sender.start()
        sender.join(REQUEST_SECONDS)
        if not got:
            raise EnvironmentFailure(f"{what}: no complete answer within {REQUEST_SECONDS} seconds")
        if isinstance(got[0], str):
            raise EnvironmentFailure(self.without_token(f"{what}: {got[0]}"))
        try:
            return msgspec.json.decode(got[0], type=answer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            said = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
            raise EnvironmentFailure(
                self.without_token(f"{what}: not an answer of this API: {said}")
            ) from None

    def _sent(self, request: urllib.request.Request) -> bytes | str:
        """Send a request; return the bytes of the answer, or the text of the error."""
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=REQUEST_SECONDS) as answer:
                data: bytes = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as problem:
            if 300 <= problem.code < 400:
                said = "a redirect, which ipamc does not follow, because it would send the token: "
                said += "set the API's own URL"
            else:
                try:
                    said = problem.read(LARGEST_ANSWER).decode("utf-8", "replace")
                except (OSError, http.client.HTTPException):
                    said = ""
            # The token is removed before the text is cut: half a token is secret, too.
            return f"{problem.code} {self.without_token(said)[:ERROR_SHOWN]}"
        except (OSError, http.client.HTTPException) as problem:
            return str(problem) or type(problem).__name__
        except Exception as problem:  # noqa: BLE001 - a traceback of urllib would show the headers
            return type(problem).__name__
        return data if len(data) <= LARGEST_ANSWER else f"the answer has more than {LARGEST_ANSWER:,} bytes"

    def without_token(self, text: str) -> str:
        """Replace the token in a text by stars."""
        return text.replace(self.token, "***")


def checked_token(name: str, token: str) -> str:
    """Return a token. Raises EnvironmentFailure, naming only the variable, for one that a header cannot
    have.
    """
    if not _VISIBLE(token):
        raise EnvironmentFailure(
            f"{name} is not a token: it has a space, a line break or a character outside of ASCII; "
            "set the variable again without it"
        )
    return token


def api_url(name: str, url: str) -> str:
    """Return the URL of an API, without a slash at the end. Raises EnvironmentFailure for other texts.
    A user and a password are refused, because URLs are printed, and a query, because paths are appended.
    """
    found = _parts(url)
    if found is None or not _VISIBLE(url) or not found.hostname or found.scheme not in {"http", "https"}:
        raise EnvironmentFailure(f"{name} is not the URL of an API, such as https://example.org/api")
    if "@" in found.netloc or found.query or found.fragment:
        raise EnvironmentFailure(
            f"{name} has a user, a password, a query or a fragment: leave only the URL of the API"
        )
    return url.rstrip("/")


def plain_url(text: str, schemes: Collection[str]) -> urllib.parse.SplitResult | None:
    """Return the parts of a URL of these schemes without fragment and quote; None for other texts."""
    found = _parts(text)
    if found is None or not _PLAIN(text) or found.scheme not in schemes or found.fragment:
        return None
    return found if found.hostname or found.scheme == "file" else None


def _parts(url: str) -> urllib.parse.SplitResult | None:
    """Split a URL; None if its host or its port cannot be one."""
    try:
        found = urllib.parse.urlsplit(url)
        sound = found.port != 0
    except ValueError:
        return None
    return found if sound else None


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
