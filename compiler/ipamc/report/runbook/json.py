"""Runbooks for programs, as schemas/runbook.output.json describes them: by the fields of `review/runbook/values.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ipamc.review.runbook.values import Runbook

VERSION = 1
"""Grows when a program that reads the output must change."""


def render(cluster: str, runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster."""
    return json.dumps(
        {"version": VERSION, "cluster": cluster, "runbooks": [record(each) for each in runbooks]}, indent=2
    )


def record(runbook: Runbook) -> Mapping[str, Any]:
    """Return one runbook by the names of its fields; every key is there, also if it has no value."""
    fields: dict[str, Any] = msgspec.to_builtins(runbook)
    del fields["cluster"]
    return fields
