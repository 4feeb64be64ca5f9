"""Helm with the charts of Cilium: it installs and upgrades, as runbooks print it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.agents.lab import Lab
from tests.e2e.api import CONFIG_MAPS, DEPLOYMENTS, Object

HELM, CHARTS = (Path(each) for each in os.environ.get("IPAMC_CHARTS", "helm charts").split())
"""What `.ci/charts` prints."""
SECRETS = "/api/v1/namespaces/cilium-secrets"
VALUES: Object = {
    "routingMode": "native",
    "autoDirectNodeRoutes": True,
    "ipv4NativeRoutingCIDR": "10.0.0.0/8",
    "endpointRoutes": {"enabled": True},
    "enableIPv4Masquerade": False,
    "enableIPv6Masquerade": False,
    "kubeProxyReplacement": "false",
    "cgroup": {"autoMount": {"enabled": False}, "hostRoot": "/run/cilium/cgroupv2"},
    "cni": {"customConf": True},  # else agents write to the disk that all nodes share
    "l7Proxy": False,
    "envoy": {"enabled": False},
    "envoyConfig": {"enabled": False},
    "hubble": {"enabled": False},
    "healthChecking": False,
    "endpointHealthChecking": {"enabled": False},
    "bpf": {
        "ctTcpMax": 4096,
        "ctAnyMax": 4096,
        "natMax": 4096,
        "neighMax": 4096,
        "policyMapMax": 1024,
        "lbMapMax": 1024,
    },
    "bgpControlPlane": {"enabled": True},
    "configDriftDetection": {"ignoredKeys": ["procfs"]},  # agents here have an argument for it
}
"""A user's own values: what SETTINGS of `lab` are as flags."""
WORDS = """#!/bin/bash
# Runs helm with charts in folders: there is no repository of charts here.
for word; do case $word in --version=*) version=${word#--version=} ;; esac; done
words=()
for word; do
  case $word in
    cilium/cilium) words+=("CHARTS/$version") ;;
    --version=*) ;;
    *) words+=("$word") ;;
  esac
done
exec HELM "${words[@]}"
"""


class WithHelm(Lab):
    """A cluster in which cilium-config and the operator's Deployment are of a release of Helm. No controller serves the Deployment and the DaemonSet: it is played."""

    def __exit__(self, *error: object) -> None:
        """End all, and uninstall the release."""
        super().__exit__(*error)
        self.sh("helm --kube-context=fleet --namespace=kube-system uninstall cilium --ignore-not-found")
        # What kube-controller-manager does about a namespace of the chart that is deleted: else none can be made again.
        self.api.ask("PUT", f"{SECRETS}/finalize", {"metadata": {"name": SECRETS.rpartition("/")[2]}})

    def roll_out(self, config: Mapping[str, str] | None = None) -> None:
        """Install the release, once; and start the operator as its Deployment says."""
        assert not config
        if not (self.tools / "helm").exists():
            self._install()
        self.start_operator()

    def _install(self) -> None:
        script = self.tools / "helm"
        script.write_text(WORDS.replace("CHARTS", str(CHARTS)).replace("HELM", str(HELM)))
        script.chmod(0o755)
        values = self.folder / "values.json"
        values.write_text(json.dumps(VALUES))
        self.api.delete(f"{CONFIG_MAPS}/cilium-config", f"{DEPLOYMENTS}/cilium-operator")
        self.sh(
            f"helm --kube-context=fleet --namespace=kube-system upgrade --install --values={values} "
            f"--values={self.site.rendered}/cilium/helm-values.yaml "
            f"cilium cilium/cilium --version={next(iter(self.nodes.values())).version}"
        )

    @property
    def arguments(self) -> list[str]:
        """What the Deployment's command line has besides the flags that this machine sets."""
        deployment = self.api.get(f"{DEPLOYMENTS}/cilium-operator")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return [each for each in container["args"] if "$(" not in each and "--config-dir" not in each]

    def command(self, command: str, step: Mapping[str, Any]) -> None:
        """Run a command that calls helm, too, before what comes of it is played."""
        if command.startswith("helm "):
            self.sh(command)
            self.ran.append(command)
        super().command(command, step)
