"""The page with what each Cilium minor does: as `ipamc explain versions` prints it, and where each row was read."""

from __future__ import annotations

from ipamc.model.cilium.support import APISERVER_TABLE, READ_AT, TABLE
from ipamc.report.explain import versions_text
from tools.website.reference.markdown import linked, page, prose, table


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
        linked(versions_text().rstrip(), "codes/"),
        "## How it is known",
        "A cell in bold was run: `make e2e` builds etcd, kube-apiserver and cilium-operator from their Go modules, starts them on loopback, and applies what "
        "ipamc writes: every example, and generated clusters of 500 nodes in each mode. After an apply, a second one, a restart and a killed operator every "
        "node has exactly its blocks, and a further apply changes nothing. What a rule keeps from a server is sent there all the same, with the rule taken "
        "away, and is seen to be refused, or to do silently what the rule says. Random histories (edits, applies, newcomers, deletions, restarts) are played "
        "on the live cluster, and after every step no address has two nodes.",
        "There the tests play the agents' part, and a small program of ours asks the functions of Cilium's agent. `make e2e-agents` runs real ones, with "
        "the datapath, as namespaces of one machine, beside a router that speaks BGP: a first apply, an import of a cluster that runs, renumbers, nodes that "
        "leave, join again or are replaced, new ranges, families, modes and minors, each by its runbook. Pods ping all the time, and have addresses of the blocks that "
        "the lock gives to their nodes. A row about agents is bold for the minors whose agents showed it.",
        "Cells that are not bold were read in the source, and not run: what is claimed of a version is known to a different degree.",
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
