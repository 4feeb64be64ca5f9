"""A lock as it is once quarantines are over: how much room there is then."""

from __future__ import annotations

import msgspec

from ipamc.model.lock import Lock, State


def released(lock: Lock, last: str, today: str = "") -> Lock:
    """Return a lock in which the lines in quarantine since the day `last` or before count as released.

    Those from which a node was moved `today` do not: the move is not applied yet. Days are ISO 8601. O(lines).
    """
    lines = (
        msgspec.structs.replace(line, state=State.RELEASED, since="", moved=False)
        if line.state is State.QUARANTINED and line.since <= last and not (line.moved and line.since == today)
        else line
        for line in lock.lines
    )
    return msgspec.structs.replace(lock, lines=tuple(lines))
