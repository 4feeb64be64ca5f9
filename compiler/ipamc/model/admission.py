"""Admission policies: what a cluster asks for, the Kubernetes that has it, and what policies call things."""

from __future__ import annotations

import hashlib
from typing import Literal

from msgspec import Struct

Enforce = Literal["none", "warn", "deny"]

ENFORCE = (1, 30)
"""The first Kubernetes with ValidatingAdmissionPolicy v1, always on (KEP-3488)."""
CIDR_IN_CEL = (1, 31)
"""The first Kubernetes whose policies may ask about addresses and CIDRs."""
ASSIGN = (1, 36)
"""The first Kubernetes with MutatingAdmissionPolicy v1, always on (KEP-3962)."""
ASSIGN_BETA = (1, 34)
"""The first with v1beta1 of it, off by default."""


class Admission(Struct, frozen=True, kw_only=True):
    """What kube-apiserver does by admission policies when somebody writes the blocks of a node."""

    assign: bool = False
    """A node gets its blocks in the request that creates its Node or CiliumNode."""
    assign_beta: bool = False
    """Kubernetes 1.34 and 1.35: the gate and the API of MutatingAdmissionPolicy are on."""
    enforce: Enforce = "none"
    """What becomes of a request that gives a node other blocks than the lock."""

    @property
    def used(self) -> bool:
        """Return whether any policy is rendered."""
        return self.assign or self.enforce != "none"


CLUSTER = "ipamc/cluster"
"""The label of policies and bindings by which they are of one cluster."""
_LABEL = 63
"""The longest value of a label."""


def label_of(cluster: str) -> str:
    """Return the value of CLUSTER for a cluster: its name, or a hash of a name that is too long."""
    return cluster if len(cluster) <= _LABEL else f"{digest(cluster):016x}"


def digest(name: str) -> int:
    """Return a number that is always the same for a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


PROBE = "ipamc-probe"
"""The name of a Node or CiliumNode that nobody has. A dry run that creates it shows what policies do now."""
KNOWN = "ipamc/blocks-of"
"""The annotation by which a policy that gives blocks answers such a dry run: with its commit."""
COMMIT = "commit"
"""The variable of each policy that names the commit of its blocks; empty where nobody filled it in."""
