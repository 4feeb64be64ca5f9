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
        "What each Cilium minor does, how that was verified, and what depends on it in ipamc. `ipamc explain versions` prints the same tables.",
        "[`cilium.version`](fields/cluster.md#specciliumversion), the lowest minor that runs in the cluster, decides what ipamc renders and refuses. "
        "ipamc refuses minors that are newer than the table. To use one anyway, set [`assume`](fields/cluster.md#specciliumassume) to a known minor: "
        "every verb and pipeline then treats the newer Cilium as that minor, with a warning.",
        "## What each minor does",
        linked(versions_text().rstrip(), "codes/"),
        "## How it was verified",
        "Bold cells come from tests that run the real programs.",
        "`make e2e` builds etcd, kube-apiserver and cilium-operator from their Go modules, starts them on loopback, and applies what ipamc renders for every "
        "example, and for generated clusters of 500 nodes in each mode. After a first apply, a second apply, a restart, and a killed operator, every node has "
        "exactly its blocks, and a further apply changes nothing. The suite also turns rules off and sends the servers what the rules would have stopped: "
        "the servers refuse it too, or show the damage that the rule describes. Random histories of edits, applies, new nodes, deletions and restarts run on the "
        "live cluster; after every step, no address belongs to two nodes. In this suite, tests act as the agents, and a small program calls functions of "
        "Cilium's agent.",
        "`make e2e-agents` runs real agents with their datapath, in namespaces of one machine, beside a BGP router. It follows the runbooks for a first "
        "apply, an import of a running cluster, renumbers, nodes that leave, rejoin or are replaced, and new ranges, families, modes and minors. Pods ping "
        "each other all the time, and must have addresses from the blocks that the lock gives to their nodes. A row about agents is bold for the minors "
        "whose agents ran in this suite.",
        "The other cells were only read in the source, so they are less certain.",
        "## Sources",
        f"The plain cells come from the source of Cilium at the tags {read}. Each row that changes from one minor to the next has a case in "
        "`tests/cases/versions` that compiles one input for every minor.",
        table(
            ["Cilium", "source"],
            [[row.capability.value, prose(row.source)] for row in TABLE],
        ),
        table(["kube-apiserver", "source"], [[row.text, prose(row.source)] for row in APISERVER_TABLE]),
    )
    return {"versions.md": text}
