"""A plan for programs: everything, in the shape of schemas/plan.output.json."""

from __future__ import annotations

import json
from typing import Any

from ipamc.lock.utilisation import Use
from ipamc.model.lock import Line
from ipamc.report.findings import document as findings
from ipamc.report.utilisation import state_record, use_record
from ipamc.review.diff import Difference
from ipamc.review.diff.document import Document, Planned
from ipamc.review.diff.lock_lines import Added, Counts, Gone, Renumber
from ipamc.review.diff.pools import Capacity

VERSION = 1
"""Grows when a field changes its meaning or goes; new fields may come without that."""


def render(document: Document) -> str:
    """Give the document, indented, with a newline at the end."""
    body = {
        "version": VERSION,
        "base": document.base or None,
        "changed": any(each.changed for each in document.clusters),
        "clusters": [_cluster(each) for each in document.clusters],
    }
    return json.dumps(body, indent=2) + "\n"


def _cluster(planned: Planned) -> dict[str, Any]:
    return {
        "cluster": planned.name,
        "status": planned.status.value,
        "said": planned.said,
        "changed": planned.changed,
        "findings": [findings.record(each) for each in planned.findings],
        **(_difference(planned.difference) if planned.difference else {}),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    lines = difference.lines
    return {
        "nodes": _counts(lines.counts),
        "added": [_added(each) for each in lines.added],
        "left": [_gone(each) for each in lines.left],
        "released": [_gone(each) for each in lines.released],
        "renumbered": [
            *(_renumber(each, "settled") for each in lines.settled),
            *(_renumber(each, "pending") for each in lines.pending),
            *(_renumber(each, "pending as before") for each in lines.standing),
        ],
        "vanished": [_line(each) for each in lines.vanished],
        "misplaced": [
            {"why": each.why, "illegal": each.illegal, "lines": [_line(line) for line in each.lines]}
            for each in difference.misplaced
        ],
        "lock": [{"name": each.name, "old": each.old, "new": each.new} for each in difference.settings],
        "flags": [{"name": each.name, "old": each.old, "new": each.new} for each in difference.flags],
        "pools": [
            {
                "pool": each.name,
                "change": each.change,
                "fields": [
                    {"name": part.name, "old": list(part.old), "new": list(part.new), "whole": part.whole}
                    for part in each.fields
                ],
            }
            for each in difference.pools
        ],
        "repooled": [
            {"old": each.before, "new": each.after, "lines": [_line(line) for line in each.lines]}
            for each in lines.repooled
        ],
        "poolsKnown": difference.pools_known,
        "capacity": [_capacity(each) for each in difference.capacity],
        "rendered": {"written": list(difference.files.written), "removed": list(difference.files.removed)},
    }


def _counts(counts: Counts) -> dict[str, int]:
    return {
        "renumbered": counts.renumbered,
        "added": counts.added,
        "left": counts.left,
        "vanished": counts.vanished,
        "unchanged": counts.unchanged,
    }


def _line(line: Line) -> dict[str, str | bool]:
    return {"node": line.node, "block": str(line.block), "pool": line.pool, **state_record(line)}


def _added(added: Added) -> dict[str, str | bool]:
    return {**_line(added.line), "origin": added.origin, **({"of": added.of} if added.of else {})}


def _gone(gone: Gone) -> dict[str, str | bool]:
    before = {"was": str(gone.before.state)} if gone.before else {}
    return {**_line(gone.line), **before, **({"to": gone.to} if gone.to else {})}


def _renumber(renumber: Renumber, stage: str) -> dict[str, Any]:
    return {
        "node": renumber.node,
        "stage": stage,
        "old": [str(line.block) for line in renumber.old],
        "new": [str(line.block) for line in renumber.new],
        "why": renumber.why,
    }


def _capacity(each: Capacity) -> dict[str, Any]:
    return {
        "pool": each.pool,
        "family": f"IPv{each.family}",
        "blockSize": each.size,
        "short": each.short,
        "before": _use(each.before),
        "after": _use(each.after),
    }


def _use(use: Use | None) -> dict[str, object] | None:
    return use_record(use) if use else None
