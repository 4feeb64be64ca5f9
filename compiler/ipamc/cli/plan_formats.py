"""A plan in one of its formats. Each is imported, and the files of the page are read, where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipamc.workspace import disk

if TYPE_CHECKING:
    from ipamc.review.diff.plan_report import PlanReport

FORMATS = ("text", "markdown", "json", "html", "svg")
PICTURES = frozenset({"html", "svg"})
"""The formats that show maps."""


def rendered(report: PlanReport, style: str, day: str, *, coloured: bool = False) -> str:
    """Return the plan in one of FORMATS. `day` is today, ISO 8601; `coloured` is for text."""
    match style:
        case "json":
            from ipamc.report.plan import json

            return json.render(report)
        case "markdown":
            from ipamc.report.plan import markdown

            return markdown.render(report)
        case "html":
            from ipamc.report.page import render_plan

            return render_plan(report, disk.assets("page"), day)
        case "svg":
            from ipamc.report.plan import svg

            return svg.render(report)
        case _:
            from ipamc.report.plan import text

            return text.render(report, colour=coloured)
