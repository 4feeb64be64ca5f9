"""What a base published and a plan takes back.

A revert of a commit reverts `rendered/` as well, and a compile compares with the `rendered/` of its own commit: it sees nothing wrong. The base
is what may have been applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ipamc.check.published import check_mode_change
from ipamc.check.published_ranges import check_published_ranges
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.plan import Plan
from ipamc.review.diff import ClusterBase


def taken_back(base: ClusterBase, plan: Plan, folder: str) -> tuple[Diagnostic, ...]:
    """Return what cannot be taken back of that which the base rendered below `folder`.

    IPC0538 for CIDRs of CiliumPodIPPools that would not stay. IPC0543 for a mode that nodes cannot leave: a warning, because
    the revert is the way out where it was not applied yet.
    """
    return tuple(_found(base, plan, folder))


def _found(base: ClusterBase, plan: Plan, folder: str) -> Iterator[Diagnostic]:
    rendered = replace(base.rendered, shown=folder)
    for found in check_mode_change(plan.cluster, base.lock, None, rendered):
        if found.code == "IPC0543":
            yield replace(found, severity=Severity.WARNING)
    for found in check_published_ranges(plan, rendered) if rendered.pools else ():
        if found.code == "IPC0538" and found.severity is Severity.ERROR:
            yield found
