"""The real cilium-operator, configured by the ConfigMap that we render."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import LEASES, Api
from tests.e2e.processes import LOOPBACK, Program, free_port

PATIENT = (
    "--leader-election-lease-duration=60s",
    "--leader-election-renew-deadline=50s",
    "--leader-election-retry-period=500ms",
)
"""An operator ends when it cannot renew its lease in time, which a busy machine may cause. None waits for that of a killed one: `start` deletes it."""
BUSY = {
    "k8s-client-qps": "500",
    "k8s-client-burst": "1000",
    "operator-k8s-client-qps": "500",
    "operator-k8s-client-burst": "1000",
}
"""Up to 1.15 an operator sends 5 requests a second if it is told nothing. Keys that a version does not know are passed over."""
LEADS = "Leading the operator HA deployment"


@dataclass
class Operator:
    """A release of cilium-operator, and how to run it against an Api."""

    binary: Path
    version: tuple[int, int]
    api: Api
    folder: Path
    _runs: Iterator[int] = field(default_factory=itertools.count)

    program: Program | None = None
    """The one that runs in a `running` block."""
    registered: bool = False
    """Its CRDs are there: it need not register them again, which takes some versions 5 seconds."""

    @property
    def minor(self) -> str:
        """Its minor as users write it: `1.18`."""
        return "{}.{}".format(*self.version)

    def start(self, config: Mapping[str, str], *arguments: str) -> Program:
        """Start it with the keys of a ConfigMap as its `--config-dir`, and with further arguments. It takes over at once: no lease is waited for."""
        number = next(self._runs)
        settings = self.folder / f"config-{number}"
        settings.mkdir()
        for key, value in {**BUSY, **config}.items():
            (settings / key).write_text(value)
        self.api.delete(f"{LEASES}/cilium-operator-resource-lock")
        return Program(
            self.folder / f"operator-{number}.log",
            str(self.binary),
            f"--k8s-kubeconfig-path={self.api.kubeconfig}",
            "--kvstore=",
            f"--operator-api-serve-addr={LOOPBACK}:{free_port()}",
            f"--operator-prometheus-serve-addr={LOOPBACK}:{free_port()}",
            f"--gops-port={free_port()}",
            f"--config-dir={settings}",
            f"--skip-crd-creation={str(self.registered).lower()}",
            *PATIENT,
            *arguments,
            environment={"CILIUM_K8S_NAMESPACE": "kube-system", "K8S_NODE_NAME": "operator"},
        )

    @contextmanager
    def running(self, config: Mapping[str, str], *arguments: str) -> Iterator[Program]:
        """Run it until the block ends; it leads when the block starts."""
        with self.start(config, *arguments) as program:
            program.until(lambda: LEADS in program.said(), "the operator leads")
            self.program = program
            try:
                yield program
            finally:
                self.program = None
