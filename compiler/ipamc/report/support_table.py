"""What each Cilium minor supports, as Markdown, for the README and for `ipamc explain versions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipamc.model.cilium.support import APISERVER, APISERVER_TABLE, TABLE, Known
from ipamc.model.cilium.versions import minors, text

LEGEND = (
    "A cell in **bold** was run: a server of that minor was seen to do so. "
    "A plain one was read in its source; one with a question mark is inferred. "
    "The last column names the rule (`ipamc explain CODE`) or the rendered files that rest on it."
)


def markdown() -> str:
    """Return the legend, a table of a row a capability and a column a minor, and the kube-apiserver's."""
    return f"{LEGEND}\n\n{''.join(_table(*_cilium()))}\n{''.join(_table(*_apiserver()))}"


def _cilium() -> tuple[Sequence[str], Iterator[Sequence[str]]]:
    rows = (
        (
            row.modes,
            row.capability.value,
            *(_cell(row.of(minor), row.known(minor)) for minor in minors()),
            row.decides,
        )
        for row in TABLE
    )
    return ("mode", "Cilium", *map(text, minors()), "ipamc"), rows


def _apiserver() -> tuple[Sequence[str], Iterator[Sequence[str]]]:
    return ("kube-apiserver", APISERVER, "ipamc"), (
        (row.text, _cell(True, row.known), row.decides) for row in APISERVER_TABLE
    )


def _cell(yes: bool, known: Known) -> str:  # noqa: FBT001 - the content of the cell
    word = "yes" if yes else "no"
    return {Known.RUN: f"**{word}**", Known.READ: word, Known.INFERRED: f"{word}?"}[known]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _line(head)
    yield _line(["---"] * len(head))
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
