"""What a base published and a plan takes back: a revert of a commit reverts `rendered/` too, so a compile of the result sees nothing wrong."""

from __future__ import annotations

from ipamc.check.published import BINDING, read_published
from ipamc.check.published_ranges import check_published_ranges
from ipamc.model.diagnostics import Diagnostic, Severity
from ipamc.model.plan import Plan
from ipamc.review.diff import ClusterBase

CODE = "IPC0538"


def unpublished(base: ClusterBase, plan: Plan, folder: str) -> tuple[Diagnostic, ...]:
    """Return IPC0538 for the CIDRs of CiliumPodIPPools that the base rendered below `folder`, and that would not stay.

    The compile compares with the `rendered/` of its own commit, which may never have been applied; the base is what was.
    """
    published = read_published(
        {path: base.rendered[path] for path in BINDING if path in base.rendered}, folder
    )
    if not published.pools:
        return ()
    return tuple(
        found
        for found in check_published_ranges(plan, published)
        if found.code == CODE and found.severity is Severity.ERROR
    )
