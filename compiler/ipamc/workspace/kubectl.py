"""One cluster, reached by kubectl and kustomize: `ipamc ci apply` works through this module alone.

No secret is an argument of a command.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ipamc.workspace.environment import variable
from ipamc.workspace.trouble import Trouble

PATIENCE = 3
"""How many times the waiting time an error may last.

Operators since 1.19 report some errors that they correct themselves.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The answer to `kubectl apply`."""

    objects: int
    """Those that the apiserver took."""
    problem: str = ""
    """What kubectl complains of; "" where it exits with 0."""
    conflict: bool = False
    """Another field manager owns a field."""


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
        objects = sum(line.endswith("serverside-applied") for line in said.splitlines())
        if not code:
            return Applied(objects=objects)
        problem = complaint.strip() or f"kubectl exits with {code}"
        return Applied(objects=objects, problem=problem, conflict="onflict" in complaint)

    def operator_errors(self, only: Collection[str] | None, wait: float) -> dict[str, str]:
        """Watch the CiliumNodes for `wait` seconds; return the operator's errors at the end, by node.

        `only` are the nodes to watch; None: all. Some errors go away by themselves: where there are errors,
        watch PATIENCE times as long.
        """
        start = time.monotonic()
        while True:
            errors = {
                node: error
                for node, error in self._operator_status().items()
                if error and (only is None or node in only)
            }
            passed = time.monotonic() - start
            if passed >= (wait * PATIENCE if errors else wait):
                return errors
            time.sleep(min(2.0, max(0.1, wait - passed)))

    def _operator_status(self) -> dict[str, str]:
        """Return the operator's error for each CiliumNode, "" for none.

        Nothing where the cluster has no such kind.
        """
        row = '{range .items[*]}{.metadata.name}{"\\t"}{.status.ipam.operator-status.error}{"\\n"}{end}'
        code, text, complaint = self._ask("get", "ciliumnodes.cilium.io", "-o", f"jsonpath={row}")
        if code and "the server doesn't have a resource type" in complaint:
            return {}
        if code:
            raise Trouble(f"CiliumNodes cannot be read: {complaint.strip()}")
        return {
            name: error for name, tab, error in (line.partition("\t") for line in text.splitlines()) if tab
        }

    def _ask(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        return _run([*self.kubectl, "--context", self.context, *arguments], stdin)


def _run(command: Sequence[str], stdin: str = "") -> tuple[int, str, str]:
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)  # noqa: S603 - no shell
    except FileNotFoundError:
        raise Trouble(
            f"there is no {command[0]} here: install it, or name it in $KUBECTL or $KUSTOMIZE"
        ) from None
    return done.returncode, done.stdout, done.stderr
