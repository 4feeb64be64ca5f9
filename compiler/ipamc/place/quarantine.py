"""The end of a block's quarantine, after which its addresses may be given out again.

The law decides whether it is over: `is_over()` in `law/change.py`, which needs no other room.
"""

from __future__ import annotations

from datetime import date, timedelta

from msgspec.structs import replace

from ipamc.law.change import is_over, last_day
from ipamc.model.cluster import Scheme
from ipamc.model.lock import Lock, State


def first_day(since: str, days: int) -> str:
    """Return the day `days` days after `since`, from which lines may be re-used; "" if the calendar ends."""
    try:
        return (date.fromisoformat(since) + timedelta(days=days)).isoformat()
    except OverflowError:
        return ""


def released_on(cluster: Scheme, lock: Lock, today: str) -> Lock:
    """Return a lock in which lines that a compile of `today` may give out count as released."""
    return released(lock, last_day(today, cluster.quarantine_days), today)


def released(lock: Lock, last: str, today: str = "") -> Lock:
    """Return a lock in which lines whose quarantine `is_over` count as released. O(lines)."""
    if not any(is_over(line, last, today) for line in lock.lines if line.since):
        return lock
    lines = (
        replace(line, state=State.RELEASED, since="", moved=False) if is_over(line, last, today) else line
        for line in lock.lines
    )
    return replace(lock, lines=tuple(lines))
