"""What is rendered for a cluster at one moment: on the disk, or in the commit that was applied last."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from ipamc.model.diagnostics import Span
from ipamc.review.live.config import Assumed
from ipamc.review.live.objects import Object

_SEPARATOR = re.compile(rb"^---\s*\n", re.MULTILINE)


class Tree(Struct, frozen=True, kw_only=True, dict=True):
    """The rendered objects of one moment."""

    shown: str
    """The folder `rendered/` as the user would type it, with the revision before it."""
    revision: str = ""
    """As it is shown; "" for the disk."""
    objects: Mapping[str, Object]
    """What is applied, by identity; without ConfigMaps, which are in `flags`."""
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The path below `rendered/` of each object, and the number of its document there, from 0."""
    others: frozenset[str] = frozenset()
    """The identities of what somebody applies by hand (seeds) or by a flag (autoCreate)."""
    flags: Assumed
    texts: Mapping[str, bytes] = field(default_factory=dict)
    """The files, by path below `rendered/`."""

    def at(self, name: str) -> Span:
        """Return the place of an object by its identity; of what is not there, the folder. O(file)."""
        path, number = self.places.get(name, ("", 0))
        if not path:
            return Span(self.shown)
        text = self.texts.get(path, b"")
        starts = [0, *(found.end() for found in _SEPARATOR.finditer(text) if found.start())]
        line = text.count(b"\n", 0, starts[number]) + 1 if number < len(starts) else 0
        return Span(f"{self.shown}/{path}", line, 1, 1) if line else Span(f"{self.shown}/{path}")
