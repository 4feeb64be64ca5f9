"""A pod: a network namespace that the real CNI plugin connects, and what a kubelet does about it."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.e2e.agents.machine import Namespace, attempt
from tests.e2e.agents.node import PATIENCE, Node, owner
from tests.e2e.api import MERGE, Api
from tests.e2e.processes import Program, until

PODS = "/api/v1/namespaces/default/pods"
IMAGE = "pause:1"
"""What its container runs, where a kubelet starts it: see kubelet.py."""
INTERVAL = 0.1
"""Seconds between two pings of a continuous one."""
CNI = json.dumps(
    {"cniVersion": "0.3.1", "name": "cilium", "type": "cilium-cni", "log-file": "/run/cilium/cilium-cni.log"}
)


class Pod(Namespace):
    """A pod of a node. It has an address once it is connected."""

    def __init__(self, name: str, node: Node, annotations: Mapping[str, str] | None = None) -> None:
        """Create its Pod, bound to the node, as a ReplicaSet and the scheduler do; and its namespace, as the container runtime does."""
        self.node = node
        self.addresses: list[str] = []
        metadata = {
            "name": name,
            "labels": {"app": name},
            "annotations": dict(annotations or {}),
            "ownerReferences": [owner("ReplicaSet", "app")],
        }
        spec = {"nodeName": node.name, "containers": [{"name": "main", "image": IMAGE}]}
        made = self.api.sure("POST", PODS, {"metadata": metadata, "spec": spec})
        self._uid = str(made["metadata"]["uid"])
        super().__init__(name, node.folder / f"pod-{name}.log")

    @property
    def address(self) -> str:
        """Its first address, once it is connected."""
        return self.addresses[0]

    @property
    def api(self) -> Api:
        """The kube-apiserver."""
        return self.node.api

    def connect(self) -> None:
        """Let the CNI plugin connect it, as often as it takes: a kubelet repeats it, too."""
        until(self._added, f"the CNI plugin gives {self.name} an address", PATIENCE, pause=1)
        status = {
            "phase": "Running",
            "hostIP": self.node.address,  # agents up to 1.15 ask for it
            "podIP": self.address,
            "podIPs": [{"ip": each} for each in self.addresses],
        }
        self.api.sure("PATCH", f"{PODS}/{self.name}/status", {"status": status}, MERGE)

    def _added(self) -> bool:
        done = self.cni("ADD")
        if done.returncode:
            return False
        self.addresses = [each["address"].partition("/")[0] for each in json.loads(done.stdout)["ips"]]
        return True

    def cni(self, command: str) -> subprocess.CompletedProcess[str]:
        """Call the CNI plugin as a container runtime does."""
        container = hashlib.sha256(self._uid.encode()).hexdigest()  # its first characters name a device
        arguments = {
            "IgnoreUnknown": "1",
            "K8S_POD_NAMESPACE": "default",
            "K8S_POD_NAME": self.name,
            "K8S_POD_UID": self._uid,
            "K8S_POD_INFRA_CONTAINER_ID": container,
        }
        return attempt(
            self.node.inside("cilium-cni"),
            text=CNI,
            environment={
                **self.node.environment,
                "CNI_COMMAND": command,
                "CNI_CONTAINERID": container,
                "CNI_NETNS": f"/proc/{self.pid}/ns/net",
                "CNI_IFNAME": "eth0",
                "CNI_PATH": str(self.node.release),
                "CNI_ARGS": ";".join(f"{key}={value}" for key, value in arguments.items()),
            },
        )

    @contextmanager
    def pinging(self, other: Pod) -> Iterator[Ping]:
        """Ping another pod all the time, until the block ends; it answers when the block starts."""
        log = self.node.folder / f"ping-{self.name}-{other.name}.log"
        log.unlink(missing_ok=True)
        command = self.inside("ping", "-i", str(INTERVAL), other.address)
        with Program(log, *command) as program:
            ping = Ping(f"{self.name} -> {other.name}", program)
            program.until(lambda: "icmp_seq=" in program.said(), f"{ping.what} answers")
            try:
                yield ping
            finally:
                program.stop(signal.SIGINT)  # so that it prints its statistics

    def end(self) -> None:
        """Let the kubelet end it: its address is given back, its namespace goes, and then its Pod."""
        self.cni("DEL")
        self.abandon()
        self.api.delete(f"{PODS}/{self.name}?gracePeriodSeconds=0")

    def abandon(self) -> None:
        """End it without its agent, which knows nothing of it."""
        super().end()


@dataclass
class Ping:
    """A continuous ping, and what became of it."""

    what: str
    program: Program

    def counts(self) -> tuple[int, int]:
        """Return how many were sent and how many answered, once it has ended."""
        found = re.search(r"(\d+) packets transmitted, (\d+) received", self.program.said())
        assert found, self.program.tail()
        return int(found[1]), int(found[2])

    @property
    def lost(self) -> int:
        """How many were not answered, once it has ended."""
        sent, answered = self.counts()
        return sent - answered
