"""A plan as JSON for programs, complete, as schemas/plan.output.json describes it."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import asdict

from ipamc.law.change import Verdict
from ipamc.lock.line_changes import LineChange
from ipamc.model.lock import Line
from ipamc.report import finding_documents
from ipamc.report.lock_lines import state_record
from ipamc.report.utilisation import use_record
from ipamc.review.aggregates import PrefixChange
from ipamc.review.diff import Difference
from ipamc.review.diff.plan_report import ClusterReport, PlanReport

VERSION = 1


def render(report: PlanReport) -> str:
    """Return the JSON document, indented, with a newline at the end."""
    body = {
        "version": VERSION,
        "base": report.base or None,
        "changed": any(cluster.changed for cluster in report.clusters),
        "clusters": [_cluster(cluster) for cluster in report.clusters],
    }
    return json.dumps(body, indent=2) + "\n"


def _cluster(cluster: ClusterReport) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "status": cluster.status.value,
        "said": cluster.said,
        "changed": cluster.changed,
        "findings": [finding_documents.record(each) for each in cluster.findings if not each.acknowledged],
        **(_difference(cluster.difference) if cluster.difference else {}),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    lines = difference.lines
    return {
        "nodes": asdict(lines.counts),
        "added": [
            {**_line(each.line), "origin": each.origin, **({"of": each.of} if each.of else {})}
            for each in lines.added
        ],
        "quarantine": [
            {
                "reason": found.verdict,
                "before": found.before and _line(found.before),
                "after": found.now and _line(found.now),
            }
            for found in lines.lines
            if found.is_about_quarantine
        ],
        "left": list(map(_former, lines.left)),
        "released": list(map(_former, (*lines.early, *lines.released))),
        "takenBack": list(map(_former, lines.of(Verdict.FOLLOWED))),
        "givenBack": list(map(_former, lines.of(Verdict.GIVEN_BACK))),
        "resized": [
            {**_line(found.line), "before": (found.before and found.before.addresses) or None}
            for found in lines.resized
        ],
        "renumbered": [
            {
                "node": renumber.node,
                "stage": stage,
                "old": [str(line.block) for line in renumber.old],
                "new": [str(line.block) for line in renumber.new],
                "why": renumber.why,
            }
            for stage, renumbers in (
                ("settled", lines.completed),
                ("pending", lines.pending),
                ("pending as before", lines.still_pending),
            )
            for renumber in renumbers
        ],
        "vanished": [_line(found.line) for found in lines.vanished],
        "taken": [
            {"line": _line(found.before), "by": {"node": found.now.node, "block": str(found.now.block)}}
            for found in lines.of(Verdict.TAKEN)
            if found.before and found.now
        ],
        "misplaced": [{**asdict(one), "lines": list(map(_line, one.lines))} for one in difference.misplaced],
        "steps": list(difference.steps),
        "restarts": list(map(asdict, difference.restarts)),
        "leaving": [
            {**asdict(each), "stays": each.stays.value, "removable": each.removable}
            for each in difference.leaving
        ],
        "lock": list(map(asdict, difference.settings)),
        "weaker": list(map(asdict, difference.weaker)),
        "disputed": [node for node, _ in difference.disputed],
        "flags": list(map(asdict, difference.flags)),
        "pools": [
            {"pool": pool.name, "change": pool.change, "fields": list(map(asdict, pool.fields))}
            for pool in difference.pools
        ],
        "repooled": [
            {"old": old, "new": new, "lines": list(map(_line, moved))}
            for (old, new), moved in lines.pool_transfers.items()
        ],
        "poolsKnown": difference.pools_known,
        "capacity": [
            {
                "pool": capacity.pool,
                "family": f"IPv{capacity.family}",
                "blockSize": capacity.size,
                "short": capacity.short,
                "before": capacity.before and use_record(capacity.before),
                "after": capacity.after and use_record(capacity.after),
            }
            for capacity in difference.capacity
        ],
        "aggregates": [
            {**_pool_of(change), "removed": list(map(str, removed)), "added": list(map(str, added))}
            for change in difference.prefixes
            for removed, added in [change.prefixes]
            if removed or added
        ],
        **(
            {"filters": list(map(_filters, difference.prefixes))}
            if difference.announced and difference.prefixes
            else {}
        ),
        "rendered": asdict(difference.files),
    }


def _filters(change: PrefixChange) -> dict[str, Any]:
    lines = {
        name: [{"prefix": str(line.block), "longest": line.longest} for line in some]
        for name, some in {"addBefore": change.added, "removeAfter": change.removed}.items()
    }
    return {**_pool_of(change), **lines}


def _pool_of(change: PrefixChange) -> dict[str, str]:
    return {"pool": change.pool, "family": f"IPv{change.family}"}


def _line(line: Line) -> dict[str, str | bool | int]:
    return {"node": line.node, "block": str(line.block), "pool": line.pool, **state_record(line)}


def _former(found: LineChange) -> dict[str, str | bool | int]:
    line = found.before if found.to and found.before else found.line
    before = {"was": str(found.before.state)} if found.before else {}
    return {**_line(line), **before, **({"to": found.to} if found.to else {})}
