"""`CRASH_PART=k/N make crash`: one of N pieces of it, and figures that can be added up over the pieces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

ALL = os.environ.get("IPAMC_CRASH") == "all"
PART, PARTS = (int(number) for number in (os.environ.get("CRASH_PART") or "1/1").split("/"))
"""Which piece, from 1 on, and of how many."""
FIGURES: Counter[str] = Counter({"kills": 0, "refusals of the disk": 0, "pairs": 0})


def mine(events: Iterable[int]) -> list[int]:
    """Return the events of this piece."""
    return [at for at in events if at % PARTS == PART - 1]
