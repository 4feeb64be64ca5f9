"""A lock as it is once quarantines are over: how much room there is then."""

from __future__ import annotations

import msgspec

from ipamc.model.cluster import Cluster
from ipamc.model.lock import Lock, State
from ipamc.place.allocate.occupancy import is_over
from ipamc.place.allocate.reuse import last_day


def released_on(cluster: Cluster, lock: Lock, today: str) -> Lock:
    """Return a lock in which the lines that a compile of a day (ISO 8601, UTC) may give out count as released."""
    return released(lock, last_day(today, cluster.quarantine_days), today)


def released(lock: Lock, last: str, today: str = "") -> Lock:
    """Return a lock in which the lines whose quarantine `is_over` count as released. O(lines)."""
    if not any(is_over(line, last, today) for line in lock.lines if line.since):
        return lock
    lines = (
        msgspec.structs.replace(line, state=State.RELEASED, since="", moved=False)
        if is_over(line, last, today)
        else line
        for line in lock.lines
    )
    return msgspec.structs.replace(lock, lines=tuple(lines))
