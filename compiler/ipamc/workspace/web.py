"""One HTTP API with a token: requests that cannot leak it, and checked answers.

The token goes only to the scheme, host and port of the API: no redirect is followed. No text that leaves this
module contains it, whatever a server, a proxy or a library says. An answer has a limit in bytes and in time,
and the shape that the caller names. The proxy variables of the environment apply.
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

from ipamc.workspace.failure import EnvironmentFailure

SECONDS = 60  # the most seconds of a request, from the look-up of the host to the last byte
LARGEST = 64 << 20
"""The most bytes of an answer: more than a page of the longest comments has (GitHub: 100 of 65,536
characters, GitLab: 10 of 1,000,000; a character has at most 6 bytes in JSON)."""
SAID = 300  # characters of an error's text that are printed

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
        takes longer than SECONDS, or answers with other JSON or none.
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
        sender.join(SECONDS)
        if not got:
            raise EnvironmentFailure(f"{what}: no whole answer within {SECONDS} seconds")
        if isinstance(got[0], str):
            raise EnvironmentFailure(self.without_token(f"{what}: {got[0]}"))
        try:
            return msgspec.json.decode(got[0], type=answer)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            said = "it is nested too deep" if isinstance(problem, RecursionError) else str(problem)
            raise EnvironmentFailure(
                self.without_token(f"{what}: not the answer of this API: {said}")
            ) from None

    def _sent(self, request: urllib.request.Request) -> bytes | str:
        """Send a request; return the bytes of the answer, or the text of the error."""
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
                data: bytes = answer.read(LARGEST + 1)
        except urllib.error.HTTPError as problem:
            if 300 <= problem.code < 400:
                said = "a redirect, which is not followed, because the token would go along: "
                said += "name the API's own URL"
            else:
                try:
                    said = problem.read(LARGEST).decode("utf-8", "replace")
                except (OSError, http.client.HTTPException):
                    said = ""
            # The token is removed before the text is cut: half a token is secret, too.
            return f"{problem.code} {self.without_token(said)[:SAID]}"
        except (OSError, http.client.HTTPException) as problem:
            return str(problem) or type(problem).__name__
        except Exception as problem:  # noqa: BLE001 - a traceback of urllib would show the headers
            return type(problem).__name__
        return data if len(data) <= LARGEST else f"the answer has more than {LARGEST:,} bytes"

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
