"""The catalogue of rules: what each checks, why, and what to run. One Markdown file a code, below `rules/`.

    # IPC0207: no two ranges share an address.          the code, and what is checked, in one sentence

    This holds for ranges of one pool and of two.       what the sentence leaves open; may be missing

    Why: an address in two ranges …                     what happens in the cluster if it were let through

    Run: drop or shrink one of the two. …               what to do about it, with the commands to type

The function that checks a rule has the first line as its docstring; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

_TEXT = re.compile(r"# (IPC\d{4}): ([^\n]+)\n\n(.*)\n", re.DOTALL).fullmatch
_PARTS = re.compile(r"(?:^|\n\n)(Why|Run): ")


class Entry(Struct, frozen=True, kw_only=True):
    """A rule, as in its file."""

    code: str
    title: str
    """What is checked, in one sentence."""
    body: str
    """Details beyond the title: exceptions, limits, usual causes; "" for none."""
    why: str
    """What would happen in the cluster, or to the files, without the rule."""
    run: str
    """What to do about it, with the commands to type."""

    @property
    def text(self) -> str:
        """The paragraphs after the title."""
        named = (self.why and f"Why: {self.why}", self.run and f"Run: {self.run}")
        return "\n\n".join(part for part in (self.body, *named) if part)


def catalogue(files: Mapping[str, str]) -> dict[str, Entry]:
    """Return all rules by code, in order, from the texts of `rules/` by name. ValueError for others."""
    return {entry.code: entry for entry in map(_entry, dict(sorted(files.items())).values())}


def _entry(text: str) -> Entry:
    match = _TEXT(text)
    if match is None:
        raise ValueError(f"this is no text of a rule: {text[:100]!r}")
    code, title, rest = match.groups()
    body, *parts = _PARTS.split(rest)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    return Entry(
        code=code, title=title, body=body.strip(), why=named.get("Why", ""), run=named.get("Run", "")
    )
