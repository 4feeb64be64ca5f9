"""Results of the tests of clusters: lines for people, records for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ipamc.model.diagnostics import count
from ipamc.report.finding_documents import record as finding_record
from ipamc.report.findings import Checked
from ipamc.report.terminal_text import paint, visible

VERSION = 1

_STYLES = {"passed": "dim", "failed": "error", "warned": "warning", "skipped": "note"}


def text(cluster: str, checked: Sequence[Checked], *, colour: bool) -> str:
    """Return a line with the cluster and the number of passed tests, then a line for each test in order."""
    if not checked:
        way_out = "write some in a document of kind Tests beside the Cluster (ipamc schema Tests)"
        return f"{visible(cluster)}: no tests: {way_out}\n"
    of_status = Counter(test.status for test in checked)
    numbers = [f"{of_status[status]:,} {status}" for status in _STYLES if of_status[status]]
    lines = [f"{visible(cluster)}: {count(len(checked), 'test')}, {', '.join(numbers)}"]
    for test in checked:
        status = paint(f"{test.status:<7}", _STYLES[test.status], colour=colour)
        about = "about no node here" if test.status == "skipped" else test.subjects
        lines.append(f"  {status}  {visible(test.name)} ({about})")
    return "\n".join(lines) + "\n"


def record(cluster: str, checked: Sequence[Checked] | None) -> dict[str, object]:
    """Return the JSON object of one cluster; `tests` is null if it was refused before its tests ran."""
    tests = [
        {
            "name": test.name,
            "because": test.because,
            "status": test.status,
            "subjects": test.subjects,
            "file": test.at.path,
            "line": test.at.line,
            "column": test.at.column,
            "findings": list(map(finding_record, test.findings)),
        }
        for test in checked or ()
    ]
    return {"name": cluster, "tests": None if checked is None else tests}
