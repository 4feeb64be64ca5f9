"""One cluster, by kubectl and kustomize: a collaborator of `ipamc ci apply`, and the only place where they are run. No secret is an argument."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ipamc.workspace.disk import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Kube:
    """The cluster that a context of the kubeconfig leads to."""

    context: str
    kubectl: tuple[str, ...] = field(
        default_factory=lambda: tuple(shlex.split(os.environ.get("KUBECTL") or "kubectl"))
    )

    def build(self, folder: str) -> str:
        """Build a kustomization."""
        if told := os.environ.get("KUSTOMIZE"):
            command = [*shlex.split(told), "build"]
        else:
            command = ["kustomize", "build"] if shutil.which("kustomize") else [*self.kubectl, "kustomize"]
        code, text, complaint = _run([*command, folder])
        if code:
            raise Trouble(f"{folder} does not build: {complaint.strip()}")
        return text

    def wait_for_crds(self, crds: Sequence[str], seconds: int) -> None:
        """Wait until the cluster knows kinds: on a new one, Cilium's operator registers them when it starts."""
        end = time.monotonic() + seconds
        while crds:
            code, _, complaint = self._ask(
                "wait", "--for=condition=Established", "--timeout=5s", *(f"crd/{each}" for each in crds)
            )
            if not code:
                return
            if (
                "NotFound" not in complaint and "timed out" not in complaint
            ):  # no such context, no right, no way there: waiting helps nobody
                raise Trouble(f"the cluster does not answer: {complaint.strip()}")
            if time.monotonic() > end:
                raise Trouble(
                    f"{', '.join(crds)}: not there after {seconds} seconds; is Cilium installed? {complaint.strip()}"
                )
            time.sleep(1)

    def apply(self, text: str) -> tuple[int, str, str]:
        """Apply a stream of objects; give kubectl's exit code, and what it says on both streams."""
        return self._ask("apply", "--server-side", "--field-manager=ipamc", "-f", "-", stdin=text)

    def verdicts(self) -> dict[str, str]:
        """Give what the operator finds wrong with each CiliumNode, "" where nothing; none where the cluster has no such kind."""
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
