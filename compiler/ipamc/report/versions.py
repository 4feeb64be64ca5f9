"""The table that `ipamc explain versions` prints: the abilities of each Cilium minor, with their sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipamc.model.cilium.support import APISERVER, APISERVER_TABLE, TABLE, Known
from ipamc.model.cilium.versions import minors, text

LEGEND = (
    "A cell in **bold** was run: a server, an agent or a chart of that minor was seen to do so. "
    "A plain one was read in its source; one with a question mark is inferred. "
    "The last column names the rule (`ipamc explain CODE`) or the rendered files that rest on it."
)


def versions_text() -> str:
    """Return as Markdown what each Cilium minor and each kube-apiserver supports."""
    cells = [(row, [_cell(row.known(minor), yes=row.of(minor)) for minor in minors()]) for row in TABLE]
    cilium = _table(
        ("mode", "Cilium", *map(text, minors()), "ipamc"),
        ((row.modes, row.capability.value, *known, row.decides) for row, known in cells),
    )
    apiserver = _table(
        ("kube-apiserver", APISERVER, "ipamc"),
        ((row.text, _cell(Known.RUN, yes=True), row.decides) for row in APISERVER_TABLE),
    )
    return f"{LEGEND}\n\n{cilium}\n{apiserver}"


def _cell(known: Known, *, yes: bool) -> str:
    word = "yes" if yes else "no"
    return {Known.RUN: f"**{word}**", Known.READ: word, Known.INFERRED: f"{word}?"}[known]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))
