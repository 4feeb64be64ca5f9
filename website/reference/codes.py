"""An index of the codes by subject, and a page for each code."""

from __future__ import annotations

from itertools import groupby

from ipamc.catalogue import Entry, catalogue
from website.reference.markdown import page, paragraphs, prose, table

FOLDER = "codes/"
SUBJECTS = {
    "00": "syntax of files",
    "01": "names and kinds",
    "02": "addresses and pools",
    "03": "selection of pools",
    "04": "the lock",
    "05": "Cilium and Kubernetes",
    "06": "use of blocks",
    "07": "address spaces",
    "08": "dumps and tables that are imported",
    "09": "audit of a running cluster",
    "10": "tests of the address plan",
}
"""By the first two digits of a code."""


def pages() -> dict[str, str]:
    """Return the pages by path."""
    entries = catalogue()
    made = {f"{FOLDER}{code}.md": page(*_code(entry)) for code, entry in entries.items()}
    parts = []
    for digits, codes in groupby(entries.values(), lambda entry: entry.code[3:5]):
        parts.append(f"## {digits}: {SUBJECTS[digits]}")
        parts.append(
            table(["code", "rule"], [[f"[{each.code}]({each.code}.md)", prose(each.title)] for each in codes])
        )
    index = page(
        "# Codes",
        "Every rule that ipamc checks, by its code. A finding ends with its code; `ipamc explain CODE` prints what its page here says.",
        "The first two digits are the subject: "
        + ", ".join(
            f"[{digits}: {name}](#{digits}-{name.lower().replace(' ', '-')})"
            for digits, name in SUBJECTS.items()
        )
        + ".",
        *parts,
    )
    return {**made, f"{FOLDER}README.md": index}


def _code(entry: Entry) -> tuple[str, ...]:
    return (
        f"# {entry.code}: {prose(entry.title).removesuffix('.')}",
        paragraphs(entry.body, "./").replace("](./", "]("),
        f"[All codes](README.md#{entry.code[3:5]}-{SUBJECTS[entry.code[3:5]].lower().replace(' ', '-')}), "
        f"and in a terminal: `ipamc explain {entry.code}`.",
    )
