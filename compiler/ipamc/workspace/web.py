"""One HTTP API with a token: requests that can be trusted not to lose it, and answers that are checked.

The token goes to the scheme, host and port of the API and nowhere else: no redirect is followed. It is in no
text that leaves this module, whatever a server, a proxy or a library says. An answer has a limit in bytes and
in time, and the shape that the caller names. The proxy variables of the environment hold, as everywhere.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from ipamc.workspace.trouble import Trouble

SECONDS = 60
"""How long a request may take, from the look-up of the host to the last byte."""
LARGEST = 64 << 20
"""The most bytes of an answer: more than a page of the longest comments has (GitHub: 100 of 65,536 characters,
GitLab: 10 of 1,000,000; a character has at most 6 bytes in JSON)."""
SAID = 300
"""Characters of an error's text that are shown."""

_TOKEN = re.compile(r"[!-~]+").fullmatch
_URL = re.compile(r"[!-~]+").fullmatch
_PLAIN = re.compile(r"[!#-&(-~]+").fullmatch

Answer = TypeVar("Answer")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Lets a redirect be an error: urllib would send the token along, also to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An HTTP API, and the token for it."""

    url: str
    """Without a slash at the end."""
    token: str = field(repr=False)
    header: str
    """The name of the header that has the token."""
    scheme: str = ""
    """What stands before the token there, as `Bearer `."""
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
        """Send one request below the API's URL (`root`: below that one) and return what it answers.

        Raises Trouble, without the token, where the server cannot be reached, refuses, redirects, takes longer
        than SECONDS, or answers with something else than JSON of the shape `answer`.
        """
        url = (root or self.url) + path
        done = _Request(self, method, url, None if body is None else json.dumps(body).encode())
        done.start()
        done.join(SECONDS)
        if done.is_alive():  # a daemon: the process does not wait for it at its end
            raise Trouble(f"{method} {url}: no whole answer within {SECONDS} seconds")
        if done.problem:
            raise Trouble(self.without_token(done.problem))
        try:
            return msgspec.json.decode(done.data, type=answer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            said = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
            raise Trouble(self.without_token(f"{method} {url}: not the answer of this API: {said}")) from None

    def without_token(self, text: str) -> str:
        """Return a text in which stars stand for the token."""
        return text.replace(self.token, "***")


class _Request(threading.Thread):
    """A request in a thread of its own, so that a server that sends a byte a minute costs no more than others."""

    def __init__(self, api: Api, method: str, url: str, body: bytes | None) -> None:
        super().__init__(daemon=True)
        self.api, self.what, self.data, self.problem = api, f"{method} {url}", b"", ""
        headers = {
            "Accept": api.accept,
            "Content-Type": "application/json",
            api.header: api.scheme + api.token,
        }
        self.request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - api_url() knows its scheme

    def run(self) -> None:
        """Send it; keep the data, or what went wrong."""
        try:
            with urllib.request.build_opener(_NoRedirect).open(self.request, timeout=SECONDS) as answer:
                self.data = answer.read(LARGEST + 1)
            if len(self.data) > LARGEST:
                self.problem = f"{self.what}: the answer has more than {LARGEST:,} bytes"
        except urllib.error.HTTPError as problem:
            self.problem = f"{self.what}: {problem.code} {self._said(problem)}"
        except (OSError, http.client.HTTPException) as problem:
            self.problem = f"{self.what}: {str(problem) or type(problem).__name__}"
        except Exception as problem:  # noqa: BLE001 - a traceback of urllib would show the headers
            self.problem = f"{self.what}: {type(problem).__name__}"

    def _said(self, problem: urllib.error.HTTPError) -> str:
        """Return what an error's body says. The token goes before the text is cut: half of it is one, too."""
        if 300 <= problem.code < 400:
            return (
                "a redirect, which is not followed, because the token would go along: name the API's own URL"
            )
        try:
            said = problem.read(LARGEST).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            return ""
        return self.api.without_token(said)[:SAID]


def checked_token(name: str, token: str) -> str:
    """Return a token. Raises Trouble, which names the variable alone, where a header cannot have it."""
    if not _TOKEN(token):
        raise Trouble(
            f"{name} is not a token: it has a space, a line break or a character outside of ASCII; "
            "set the variable again without it"
        )
    return token


def api_url(name: str, url: str) -> str:
    """Return the URL of an API, without a slash at the end. Raises Trouble where it is none.

    A user or a password in it is refused, because URLs are printed; so is a query, because paths are appended.
    """
    try:
        found = urllib.parse.urlsplit(url)
        sound = bool(found.hostname) and found.port != 0
    except ValueError:
        sound = False
    if not sound or not _URL(url) or found.scheme not in {"http", "https"}:
        raise Trouble(f"{name} is not the URL of an API, such as https://example.org/api")
    if "@" in found.netloc or found.query or found.fragment:
        raise Trouble(f"{name} has a user, a password, a query or a fragment: leave only the URL of the API")
    return url.rstrip("/")


def plain_url(text: str, schemes: Collection[str]) -> urllib.parse.SplitResult | None:
    """Return the parts of a URL of one of these schemes, without a fragment or a quote in it; None where it is none."""
    try:
        found = urllib.parse.urlsplit(text)
        sound = bool(found.hostname or found.scheme == "file") and found.port != 0
    except ValueError:
        return None
    return found if sound and _PLAIN(text) and found.scheme in schemes and not found.fragment else None
