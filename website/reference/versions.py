"""The page with what each Cilium minor does: as `ipamc explain versions` prints it, and where each row was read."""

from __future__ import annotations

from ipamc.model.cilium.support import APISERVER_TABLE, READ_AT, TABLE
from ipamc.report.support_table import markdown
from website.reference.markdown import linked, page, prose, table


def pages() -> dict[str, str]:
    """Return the page by its path."""
    read = ", ".join(READ_AT.values())
    text = page(
        "# Cilium by version",
        "What each Cilium minor does, how that is known, and what ipamc decides by it. `ipamc explain versions` prints the same tables.",
        "What is rendered and what is refused depends on [`cilium.version`](fields/cluster.md#specciliumversion), the lowest minor that runs in the cluster. "
        "A newer one than those of the table is refused: nothing of it was read. "
        "[`assume`](fields/cluster.md#specciliumassume) beside it takes it for a minor that is known, in every verb and pipeline, with a warning.",
        "## What each minor does",
        linked(markdown().rstrip(), "codes/"),
        "## Where it was read",
        f"The source of Cilium was read at the tags {read}. A row that changes from one minor to the next has a case in "
        "`tests/cases/versions`: one input, compiled for every minor.",
        table(
            ["Cilium", "source"],
            [[row.capability.value, prose(row.source)] for row in TABLE],
        ),
        table(["kube-apiserver", "source"], [[row.text, prose(row.source)] for row in APISERVER_TABLE]),
    )
    return {"versions.md": text}
