"""Compares and explains plans, locks and clusters: `diff/` has changes, `explain_*` reasons. No decisions."""

from collections.abc import Mapping

from ipamc.law.change import Gate

GATES: Mapping[str, str] = {
    Gate.RENUMBER: "a node's block changes, now or later",
    Gate.RENAME: "a node's blocks go to a node of another name",
    Gate.RELEASE: "a block may be given out before its quarantine is over",
    Gate.FOLLOW: "a running node gets the block that its address or Cilium's operator chooses",
    Gate.LEAVE: "nodes leave",
    Gate.DELETE_CLUSTER: "a cluster is deleted",
    Gate.WEAKER: "a setting makes a cluster less safe",
    "disputed": "the lock and the cluster disagree about a node",
    "capacity": "a pool has little room left",
}
"""The words of `ipamc plan --fail-on`, in their order: what each refuses, and its label agrees to."""
