"""The plan on a page: for each cluster the sections that the Markdown has, as tables that fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ipamc.model.diagnostics import Diagnostic, Severity, errors_of, names
from ipamc.report.plan_text import Section, Sign, headline, notes, quiet, sections, worst_first
from ipamc.report.terminal_text import tally, visible, where
from ipamc.review.diff.plan_report import ClusterReport, PlanReport

_KINDS = {Sign.URGENT: "urgent", Sign.ADDED: "added", Sign.REMOVED: "removed"}


def plan(report: PlanReport) -> dict[str, Any]:
    """Return the values for the template about a plan: its text is escaped there."""
    clusters = worst_first(report.clusters)
    return {
        "headline": headline(report.clusters),
        "clusters": [_cluster(cluster) for cluster in clusters if not quiet(cluster)],
        "same": ", ".join(visible(cluster.name) for cluster in clusters if quiet(cluster)),
        "notes": [
            {**_finding(note), "where": f"in {names(map(visible, of))}"}
            for note, of in notes(report.clusters)
        ],
    }


def _cluster(cluster: ClusterReport) -> dict[str, Any]:
    found = sections(cluster.difference, cluster.name) if cluster.difference else ()
    return {
        "name": visible(cluster.name),
        "status": "" if cluster.difference and not cluster.said else str(cluster.status),
        "said": visible(cluster.said),
        "failed": cluster.difference is None,
        "headline": headline((cluster,)) if cluster.difference else "",
        "sections": [_section(section) for section in found],
        "errors": [_finding(finding) for finding in errors_of(cluster.findings)],
        "warnings": list(_warnings(cluster.findings)),
        "acknowledged": tally(finding for finding in cluster.findings if finding.acknowledged),
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "kind": _KINDS.get(section.sign, ""),
        "open": section.open,
        "title": section.counted_title,
        "about": visible(section.about),
        "head": section.head,
        "rows": [[visible(cell) for cell in row] for row in section.rows],
    }


def _warnings(findings: Sequence[Diagnostic]) -> Iterator[dict[str, str]]:
    for finding in findings:
        if finding.severity is Severity.WARNING and not finding.acknowledged:
            yield _finding(finding)


def _finding(finding: Diagnostic) -> dict[str, str]:
    return {
        "code": finding.code,
        "where": visible(where(finding.at)),
        "message": visible(finding.message),
        "help": visible(finding.help),
    }
