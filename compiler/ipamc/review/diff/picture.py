"""What a picture of a plan needs: the map after it, and both locks."""

from __future__ import annotations

from msgspec import Struct

from ipamc.lock.file import dumps
from ipamc.lock.transitions import Transition
from ipamc.model.lock import Lock
from ipamc.model.plan import Plan
from ipamc.review.address_map import ClusterMap, map_of
from ipamc.review.diff.lock_lines import changes_of
from ipamc.review.lock_versions import Versions, versions_of


class Picture(Struct, frozen=True, kw_only=True):
    """A cluster before and after a plan."""

    map: ClusterMap
    """After it."""
    before: Lock
    changes: tuple[Transition, ...]
    lock_path: str

    @property
    def versions(self) -> Versions:
        """The two locks; one, where they are the same."""
        versions = versions_of(self.map.lock)
        versions.add(dumps(self.before).encode(), subject="before")
        versions.add_current(self.map.lock, subject="planned")
        return versions


def picture(plan: Plan, before: Lock, lock_path: str, today: str) -> Picture:
    """Return the picture of a plan."""
    mapped = map_of(plan.cluster, plan.lock, plan.wants, today)
    return Picture(map=mapped, before=before, changes=changes_of(before.lines, plan), lock_path=lock_path)
