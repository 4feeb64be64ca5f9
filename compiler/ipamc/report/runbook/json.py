"""Runbooks for programs, as schemas/runbook.output.json describes them: by the fields of `review/runbook/values.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from ipamc.review.runbook.values import Runbook

VERSION = 1
"""Grows when a program that reads the output must change."""


def render(cluster: str, runbooks: Iterable[Runbook]) -> str:
    """Return the runbooks of one cluster, by the names of their fields; every key is there, also if it has no value."""
    records = [msgspec.to_builtins(runbook) for runbook in runbooks]
    for record in records:
        del record["cluster"]
    return json.dumps({"version": VERSION, "cluster": cluster, "runbooks": records}, indent=2)
