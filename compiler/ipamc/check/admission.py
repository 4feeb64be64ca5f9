"""Rules about admission policies: which Kubernetes has them, and in which modes they have an effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ipamc.model.admission import ASSIGN, ASSIGN_BETA, CIDR_IN_CEL, ENFORCE
from ipamc.model.cilium.versions import text
from ipamc.model.cluster import Cluster, Mode
from ipamc.model.diagnostics import Diagnostic, Related, error
from ipamc.model.limits import LARGEST_OBJECT, LONGEST_EXPRESSION

_GATE = "--feature-gates=MutatingAdmissionPolicy=true"
_API = "--runtime-config=admissionregistration.k8s.io/v1beta1=true"


def check_admission(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield findings about `admission`."""
    yield from kubernetes_without_policies(cluster)
    yield from nothing_to_assign(cluster)
    yield from nothing_to_enforce(cluster)


def kubernetes_without_policies(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0571: the cluster's Kubernetes supports the rendered admission policies."""
    asked, runs = cluster.admission, cluster.kubernetes
    lowest = 'kubernetes: {version: "1.36"} with the lowest minor that runs in the cluster'
    if runs is None:
        at, message = cluster.field("spec", "admission"), "admission needs the version of Kubernetes"
        yield error("IPC0571", at, message, help=f"write {lowest}")
        return
    also = [Related(cluster.field("spec", "kubernetes", "version"), "the version is set here")]
    if asked.assign and runs < ASSIGN and not (asked.assign_beta and runs >= ASSIGN_BETA):
        message = f"assign needs Kubernetes {text(ASSIGN)}, but the cluster has {text(runs)}"
        fix = "remove assign until Kubernetes is upgraded"
        if runs >= ASSIGN_BETA:
            fix = f"remove assign, or write assignBeta: true if each kube-apiserver runs with {_GATE} {_API}"
        yield error("IPC0571", cluster.field("spec", "admission", "assign"), message, also=also, help=fix)
    asks = [" where a pool is unlisted" for pool in cluster.pools if pool.unlisted]
    asks += [" where a pool has follows" for pool in cluster.pools if pool.follows]
    needed = CIDR_IN_CEL if asks else ENFORCE
    if asked.enforce != "none" and runs < needed:
        why = next(iter(asks), "")
        message = f"enforce needs Kubernetes {text(needed)}{why}, but the cluster has {text(runs)}"
        fix = "write enforce: none until Kubernetes is upgraded"
        yield error("IPC0571", cluster.field("spec", "admission", "enforce"), message, also=also, help=fix)


def nothing_to_assign(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0572: admission policies give no blocks in crd mode."""
    if cluster.admission.assign and cluster.mode is Mode.CRD:
        message = "assign has no effect in crd mode, where a CiliumNode lists single addresses"
        fix = "write assign: false; ipamc apply gives a node its addresses after it joins"
        at = cluster.field("spec", "admission", "assign")
        yield error("IPC0572", at, message, also=[cluster.mode_here], help=fix)


def nothing_to_enforce(cluster: Cluster) -> Iterator[Diagnostic]:
    """IPC0573: admission policies enforce nothing in crd mode."""
    if cluster.admission.enforce != "none" and cluster.mode is Mode.CRD:
        message = "enforce has no effect in crd mode, where a CiliumNode lists single addresses"
        at = cluster.field("spec", "admission", "enforce")
        yield error("IPC0573", at, message, also=[cluster.mode_here], help="write enforce: none")


def policy_too_large(cluster: Cluster, files: Mapping[str, str]) -> Iterator[Diagnostic]:
    """IPC0574: an admission policy has at most 1.4 MB, and each expression at most 100,000 characters."""
    for path, rendered in files.items():
        if path.startswith("admission/"):
            at = cluster.field("spec", "admission")
            if (largest := max(map(len, rendered.split("\n---\n")))) > LARGEST_OBJECT:
                message = f"a policy in {path} has {largest:,} bytes; the limit is {LARGEST_OBJECT:,}"
                fix = f"write a smaller output: {{shardSize}}, then ipamc lock {cluster.name} --reshard"
                yield error("IPC0574", at, message, help=fix)
            if (longest := max(map(len, rendered.split("\n")))) > LONGEST_EXPRESSION:
                limit = f"the limit is {LONGEST_EXPRESSION:,}"
                message = f"an expression in {path} has {longest:,} characters; {limit}"
                fewer = "write fewer and wider ranges, or fewer pools with follows"
                fix = f"{fewer}, or move the nodes that hold blocks there (IPC0314)"
                yield error("IPC0574", at, message, help=fix)
