"""What both ways from Calico to Cilium share: the label of nodes that run Cilium, and the end of Calico."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ipamc.review.runbook.commands import Commands, quoted
from ipamc.review.runbook.common import audited
from ipamc.review.runbook.values import Check, Step, Where

LABEL = "io.cilium.migration/cilium-default"
"""The label of nodes that run Cilium, as in Cilium's own guide."""


def given(run: Commands, document: object, *options: str) -> str:
    """Return how an object that is no part of the tree is applied."""
    text = json.dumps(document, separators=(",", ":"))
    apply = run.kubectl("apply", "--server-side", "--field-manager=ipamc-migration", *options, "--filename=-")
    return f"printf '%s\\n' {quoted(text)} | {apply}"


def removed(run: Commands) -> Iterator[Step]:
    """Yield the steps after the last node has moved."""
    yield Step(
        key="all-moved",
        title="See that no node is left",
        check=Check(
            command=run.kubectl("get", "nodes", f"--selector={LABEL}!=true", "--output=name"), expect=""
        ),
        if_not="move them first",
    )
    yield Step(
        key="remove-calico",
        title="Delete Calico, with its CRDs and so its IPReservations, and enforce policies again",
        why="nothing of Calico runs, so nothing gives addresses out of its books any more",
        where=Where.EDITOR,
        edit="delete what Calico was installed with; in Cilium's values remove nodeSelector and policyEnforcementMode",
    )
    yield audited(run)
