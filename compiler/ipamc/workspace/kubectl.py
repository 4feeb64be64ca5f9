"""One cluster, reached by kubectl and kustomize: `ipamc ci apply` works through this module alone.

No secret is an argument of a command.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipamc.review.live.blocks import Pod
from ipamc.review.live.config import CONFIG, OPERATOR
from ipamc.review.live.objects import NODE, identity
from ipamc.workspace.environment import variable
from ipamc.workspace.trouble import Trouble

PATIENCE = 3
"""How many times the waiting time an error may last.

Operators since 1.19 report some errors that they correct themselves.
"""
FEW = 8
"""The most nodes whose pods are asked for one by one; for more, all pods are listed once."""
AT_ONCE = 100
"""Names in one `kubectl delete`."""

CRDS = {
    "CiliumNode": "ciliumnodes.cilium.io",
    "CiliumPodIPPool": "ciliumpodippools.cilium.io",
    "CiliumNodeConfig": "ciliumnodeconfigs.cilium.io",
}
"""The CRD of each kind; kubectl knows the kind by this name too."""


class Forbidden(Trouble):
    """The credentials may not do this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The answer to `kubectl apply`."""

    objects: int
    """Those that the apiserver took."""
    taken: frozenset[tuple[str, str]] = frozenset()
    """The same: kind in lower case, and name."""
    problem: str = ""
    """What kubectl complains of; "" where it exits with 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kube:
    """The cluster that a context of the kubeconfig leads to."""

    context: str
    kubectl: tuple[str, ...] = field(
        default_factory=lambda: tuple(shlex.split(variable("KUBECTL") or "kubectl"))
    )

    def build(self, folder: str) -> str:
        """Return what a kustomization builds to. Raises Trouble where it does not build."""
        if given := variable("KUSTOMIZE"):
            command = [*shlex.split(given), "build"]
        else:
            command = ["kustomize", "build"] if shutil.which("kustomize") else [*self.kubectl, "kustomize"]
        code, text, complaint = _run([*command, folder])
        if code:
            raise Trouble(f"{folder} does not build: {complaint.strip()}")
        return text

    def wait_for_crds(self, crds: Sequence[str], seconds: int) -> None:
        """Wait until the cluster has these CRDs. Raises Trouble after `seconds`.

        In a new cluster, Cilium's operator registers them when it starts.
        """
        end = time.monotonic() + seconds
        while crds:
            code, _, complaint = self._ask(
                "wait", "--for=condition=Established", "--timeout=5s", *(f"crd/{crd}" for crd in crds)
            )
            if not code:
                return
            # kubectl has one exit code for all failures. No such context, no permission, no route: waiting does not help.
            if "NotFound" not in complaint and "timed out" not in complaint:
                raise Trouble(f"the cluster does not answer: {complaint.strip()}")
            if time.monotonic() > end:
                raise Trouble(
                    f"{', '.join(crds)}: not there after {seconds} seconds; is Cilium installed? {complaint.strip()}"
                )
            time.sleep(1)

    def apply(self, text: str) -> Applied:
        """Apply a stream of objects, server-side, without --force-conflicts."""
        code, said, complaint = self._ask(
            "apply", "--server-side", "--field-manager=ipamc", "-f", "-", stdin=text
        )
        lines = [line for line in said.splitlines() if line.endswith("serverside-applied")]
        named = (line.split()[0].partition("/") for line in lines)
        taken = frozenset((resource.partition(".")[0], name) for resource, _, name in named)
        if not code:
            return Applied(objects=len(lines), taken=taken)
        problem = complaint.strip() or f"kubectl exits with {code}"
        return Applied(objects=len(lines), taken=taken, problem=problem)

    def flags(self, namespace: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return ConfigMap cilium-config and Deployment cilium-operator, None for what is not there."""
        config_map, deployment = (
            self._one(namespace, kind, name)
            for kind, name in (("configmaps", CONFIG), ("deployments.apps", OPERATOR))
        )
        return config_map, deployment

    def _one(self, namespace: str, kind: str, name: str) -> dict[str, Any] | None:
        text = self._read(
            f"{kind} {name} in {namespace}",
            "get",
            kind,
            name,
            "-n",
            namespace,
            "--ignore-not-found",
            "-o",
            "json",
        )
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found

    def listed(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the objects of a custom resource by identity, with managed fields.

        Nothing where the cluster has no such kind.
        """
        text = self._read(f"{kind}s", "get", CRDS[kind], "-A", "--show-managed-fields", "-o", "json")
        items = json.loads(text)["items"] if text else []
        return {identity(item): item for item in items}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return the Nodes by identity, with what ipamc needs of them: whole Nodes are large."""
        row = _row(
            "metadata.name", "metadata.uid", "spec.unschedulable", "spec.podCIDRs[*]", "metadata.annotations"
        )
        found = {}
        for line in self._read("Nodes", "get", "nodes", "-o", f"jsonpath={row}").splitlines():
            name, uid, cordoned, cidrs, annotations = line.split("\t", 4)
            node = {
                "kind": NODE,
                "metadata": {
                    "name": name,
                    "uid": uid,
                    "annotations": json.loads(annotations) if annotations.startswith("{") else {},
                },
                "spec": {
                    "unschedulable": cordoned == "true",
                    "podCIDRs": cidrs.split(),
                    "podCIDR": cidrs.split(" ")[0],  # the apiserver keeps it the first one
                },
            }
            found[identity(node)] = node
        return found

    def pods(self, nodes: Collection[str]) -> dict[str, list[Pod]]:
        """Return the pods of some nodes that run and have addresses of their own, by node.

        A call for each of a few nodes, one call for all pods where there are many.
        """
        row = _row(
            "spec.nodeName",
            "spec.hostNetwork",
            "metadata.ownerReferences[*].kind",
            "status.podIP",
            "status.podIPs[*].ip",
        )
        running = "status.phase!=Succeeded,status.phase!=Failed"
        several = len(nodes) <= FEW
        selectors = [f"{running},spec.nodeName={node}" for node in sorted(nodes)] if several else [running]
        found: dict[str, list[Pod]] = defaultdict(list)
        for selector in selectors:
            text = self._read(
                "pods", "get", "pods", "-A", "--field-selector", selector, "-o", f"jsonpath={row}"
            )
            for line in text.splitlines():
                node, on_host, owners, *addresses = line.split("\t")
                if node in nodes and on_host != "true":
                    stays = bool({"DaemonSet", NODE} & set(owners.split()))
                    every = tuple(dict.fromkeys(" ".join(addresses).split()))
                    found[node].append(Pod(node=node, addresses=every, stays=stays))
        return found

    def delete(self, kind: str, namespace: str, names: Sequence[str]) -> str:
        """Delete objects of a custom resource; return what went wrong, or ""."""
        where = ("-n", namespace) if namespace else ()
        problems = []
        for start in range(0, len(names), AT_ONCE):
            code, _, complaint = self._ask(
                "delete",
                CRDS[kind],
                *where,
                "--ignore-not-found",
                "--wait=false",
                *names[start : start + AT_ONCE],
            )
            problems += [complaint.strip()] if code else []
        return "; ".join(problems)

    def watch(self, failures: Callable[[dict[str, str]], Collection[str]], wait: float) -> dict[str, str]:
        """Watch the CiliumNodes for `wait` seconds; return the operator's errors at the end, by node.

        `failures` tells which of them count. Some errors go away by themselves: where there are failures,
        watch PATIENCE times as long.
        """
        start = time.monotonic()
        while True:
            errors = self.operator_errors()
            passed = time.monotonic() - start
            if passed >= (wait * PATIENCE if failures(errors) else wait):
                return errors
            time.sleep(min(2.0, max(0.1, wait - passed)))

    def operator_errors(self) -> dict[str, str]:
        """Return the operator's error of each CiliumNode that has one. An error may have several lines.

        Nothing where the cluster has no such kind.
        """
        row = _row("metadata.name", "status.ipam.operator-status")
        text = self._read("CiliumNodes", "get", CRDS["CiliumNode"], "-o", f"jsonpath={row}")
        found = {}
        for line in text.splitlines():
            name, _, status = line.partition("\t")
            if status.startswith("{") and (error := json.loads(status).get("error")):
                found[name] = str(error)
        return found

    def _read(self, what: str, *arguments: str) -> str:
        """Return what kubectl prints, "" where the cluster has no such kind. Raises Forbidden and Trouble."""
        code, text, complaint = self._ask(*arguments)
        if not code:
            return text
        if "the server doesn't have a resource type" in complaint:
            return ""
        kind = Forbidden if "(Forbidden)" in complaint else Trouble
        raise kind(f"{what} cannot be read: {complaint.strip()}")

    def _ask(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        return _run([*self.kubectl, "--context", self.context, *arguments], stdin)


def _row(*paths: str) -> str:
    """Return a jsonpath that prints a line of these fields for each item, with tabs between."""
    fields = '{"\\t"}'.join(f"{{.{path}}}" for path in paths)
    return f'{{range .items[*]}}{fields}{{"\\n"}}{{end}}'


def _run(command: Sequence[str], stdin: str = "") -> tuple[int, str, str]:
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    except FileNotFoundError:
        raise Trouble(
            f"there is no {command[0]} here: install it, or name it in $KUBECTL or $KUSTOMIZE"
        ) from None
    return done.returncode, done.stdout, done.stderr
