"""Admission policies: the cluster's settings, the Kubernetes versions with them, names and labels."""

from __future__ import annotations

import hashlib
from typing import Literal

from msgspec import Struct

from ipamc.model.limits import LONGEST_LABEL_VALUE

Enforce = Literal["none", "warn", "deny"]

ENFORCE = (1, 30)
"""The first Kubernetes with ValidatingAdmissionPolicy v1, always on (KEP-3488)."""
CIDR_IN_CEL = (1, 31)
"""The first Kubernetes whose policies have functions for addresses and CIDRs."""
ASSIGN = (1, 36)
"""The first Kubernetes with MutatingAdmissionPolicy v1, always on (KEP-3962)."""
ASSIGN_BETA = (1, 34)
"""The first with v1beta1 of it, off by default."""


class Admission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`spec.admission`: how kube-apiserver handles writes of blocks. A document is decoded into it."""

    assign: bool = False
    """A node gets its blocks in the request that creates its Node or CiliumNode."""
    assign_beta: bool = False
    """Kubernetes 1.34 and 1.35: the gate and the API of MutatingAdmissionPolicy are on."""
    enforce: Enforce = "none"
    """The action for a request that gives a node other blocks than the lock."""

    @property
    def used(self) -> bool:
        """Return whether any policy is rendered."""
        return self.assign or self.enforce != "none"


CLUSTER = "ipamc/cluster"
"""The label of policies and bindings with the cluster that they belong to."""


def label_of(cluster: str) -> str:
    """Return the value of CLUSTER for a cluster: its name, or a hash of a name that is too long."""
    return cluster if len(cluster) <= LONGEST_LABEL_VALUE else f"{digest(cluster):016x}"


def digest(name: str) -> int:
    """Return a stable hash of a name, as a number: the first 8 bytes of SHA-256."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


POLICIES = {
    f"{how}AdmissionPolicy{part}": f"{how.lower()}admissionpolic{plural}"
    for part, plural in (("Binding", "ybindings"), ("", "ies"))
    for how in ("Mutating", "Validating")
}
"""The resources of admission policies by kind; bindings first, because a policy without one does nothing."""
PROBE = "ipamc-probe"
"""The name of an unused Node or CiliumNode. A dry run that creates it tests the policies."""
KNOWN = "ipamc/blocks-of"
"""The annotation in which a policy that gives blocks answers such a dry run: with its commit."""
COMMIT = "commit"
"""The variable of each policy with the commit of its blocks; empty before an apply fills it in."""
