"""Runbooks for programs, as schemas/runbook.output.json describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ipamc.review.runbook.values import Runbook, Step

VERSION = 1
"""Grows when a program that reads the output must change."""


def render(cluster: str, runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster."""
    return json.dumps(
        {"version": VERSION, "cluster": cluster, "runbooks": [record(each) for each in runbooks]}, indent=2
    )


def record(runbook: Runbook) -> Mapping[str, Any]:
    """Return one runbook; every key is there, also if it has no value."""
    return {
        "change": runbook.change,
        "title": runbook.title,
        "about": list(runbook.about),
        "phases": [
            {
                "title": phase.title,
                "waves": [
                    {
                        "name": wave.name,
                        "nodes": list(wave.nodes),
                        "steps": [_step(step) for step in wave.steps],
                    }
                    for wave in phase.waves
                ],
            }
            for phase in runbook.phases
        ],
        "way_back": runbook.way_back,
    }


def _step(step: Step) -> Mapping[str, Any]:
    return {
        "key": step.key,
        "title": step.title,
        "why": step.why,
        "nodes": list(step.nodes),
        "where": step.where.value,
        "only_if": step.only_if,
        "edit": step.edit,
        "commands": list(step.commands),
        "check": {"command": step.check.command, "expect": step.check.expect} if step.check else None,
        "if_not": step.if_not,
    }
