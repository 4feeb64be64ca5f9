"""A plan in one of its formats."""

from __future__ import annotations

from collections.abc import Mapping

from ipamc.report.plan import html, json, markdown, svg, text
from ipamc.review.diff.plan_report import PlanReport


def rendered(
    report: PlanReport, style: str, day: str, assets: Mapping[str, str], *, coloured: bool = False
) -> str:
    """Return the plan as text, markdown, json, html or svg.

    `day` is today, `assets` are the files of `page/`, for html; `coloured` is for text.
    """
    match style:
        case "json":
            return json.render(report)
        case "markdown":
            return markdown.render(report)
        case "html":
            return html.render(report, assets, day)
        case "svg":
            return svg.render(report)
        case _:
            return text.render(report, colour=coloured)
