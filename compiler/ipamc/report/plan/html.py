"""A plan as a page: its text, and the maps before and after with what changes."""

from __future__ import annotations

from collections.abc import Mapping

from ipamc.report.page.data import Part
from ipamc.report.page.page import About
from ipamc.report.page.page import render as render_page
from ipamc.report.plan import text
from ipamc.review.diff.plan_report import PlanReport


def render(report: PlanReport, assets: Mapping[str, str], day: str) -> str:
    """Return the page. `assets` are the files of `page/`, `day` is today."""
    parts = [
        Part(map=found.map, versions=found.versions, lock_path=found.lock_path)
        for cluster in report.clusters
        if (found := cluster.picture)
    ]
    about = About(
        title="Plan of addresses",
        subtitle=f"against {report.base or 'the disk'}, {day}",
        day=day,
        plan=True,
        text=text.render(report),
    )
    return render_page(parts, assets, about)
