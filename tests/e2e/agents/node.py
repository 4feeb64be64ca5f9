"""A node: a machine with a cilium-agent, and the kubelet's part played."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.agents.machine import Machine, attempt
from tests.e2e.api import MERGE, NODES, STRATEGIC, Api, Object
from tests.e2e.processes import Program, until

PATIENCE = 300
"""Seconds in which an agent must become ready: it takes 4 to 10 on a machine that does nothing else."""
BUSY = "timeout waiting for parameter"
"""What an agent says as it ends because a kernel setting took a second (reconciliationTimeout of pkg/datapath/linux/sysctl/sysctl.go): the machine is busy."""
GRACE = 1
"""Seconds that an agent has to end before it is killed: terminationGracePeriodSeconds of all charts.

Agents of 1.17.8 never end in time: a loop waits for channels that are closed after it (pkg/datapath/iptables/iptables.go, in another order since 1.18).
"""
PROBE = r"exec 3<>/dev/tcp/127.0.0.1/9879 && printf 'GET /healthz HTTP/1.0\r\nbrief: true\r\n\r\n' >&3 && head -n 1 <&3"
"""What kubelets ask an agent."""
READINESS = {
    "httpGet": {
        "host": "127.0.0.1",
        "port": 9879,
        "path": "/healthz",
        "httpHeaders": [{"name": "brief", "value": "true"}],
    },
    "periodSeconds": 1,
}
"""The same as charts have it, more often."""
AGENT_PODS = "/api/v1/namespaces/kube-system/pods"
RUN = "/run/cilium"
LIB = "/run/cilium-lib"
HEALTH = f"{RUN}/state/health-endpoint.pid"
"""Of what an agent starts to answer at its health endpoint, and does not end when it is killed."""


def owner(kind: str, name: str) -> Object:
    """Return the reference to what made a Pod: kubectl drain leaves Pods of nobody alone."""
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def sources(release: Path) -> str:
    """Return the command that gives a node the sources of a release's datapath: its agent writes headers among them."""
    return f"rm -rf {LIB}/bpf; cp -r {release}/bpf {LIB}/bpf"


def mounts(cgroup: Path, release: Path) -> str:
    """Return the script that gives a node what an agent must not share with others: sysfs, bpffs, its control group, /run.

    And the devices that an agent makes where it does not find them. Their MAC addresses, random otherwise, are in what it compiles: see .ci/clang.
    """
    return f"""
    ip link add cilium_host address 02:00:00:00:01:01 txqueuelen 1000 type veth peer name cilium_net address 02:00:00:00:01:02
    mkdir {cgroup}; echo $$ >{cgroup}/cgroup.procs
    mount -n -t sysfs sysfs /sys; mount -n -t bpf bpf /sys/fs/bpf
    mount -n -t tmpfs tmpfs /run; mkdir -p {RUN}/cgroupv2 {LIB} /run/lock
    mount -n --bind {cgroup} {RUN}/cgroupv2
    {sources(release)}"""


class Node(Machine):
    """A machine whose agent has the programs of one release."""

    def __init__(self, name: str, number: int, api: Api, release: Path, cgroups: Path, folder: Path) -> None:
        """Start the machine, without its agent.

        release: what `.ci/agents` built; cgroups: a control group (v2) that it may divide; folder: for its logs.
        """
        self.api, self.release, self.folder = api, release, folder
        self.cgroup = cgroups / name
        self.agent: Program | None = None
        self.lock = threading.RLock()
        """Held by who starts and stops the agent: the test, and the kubelets that look after its Pod."""
        self.uid = ""
        """Of the agent's Pod."""
        self.reported = False
        super().__init__(name, number, folder, mounts(self.cgroup, release))

    @property
    def environment(self) -> dict[str, str]:
        """What programs of Cilium need on this node."""
        return {
            "PATH": f"{self.release}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "K8S_NODE_NAME": self.name,
            "CILIUM_K8S_NAMESPACE": "kube-system",
        }

    # The kubelet

    def register(self, labels: Mapping[str, str] | None = None, **spec: object) -> Object:
        """Make its Node object, as a kubelet does where there is none: it is Ready once an agent was, which brings the CNI plugin."""
        addresses = [
            {"type": "InternalIP", "address": self.address},
            {"type": "InternalIP", "address": self.address_6},
            {"type": "Hostname", "address": self.name},
        ]
        node = {
            "metadata": {
                "name": self.name,
                "labels": {"kubernetes.io/hostname": self.name, **(labels or {})},
            },
            "spec": spec,
            "status": {
                "addresses": addresses,
                "conditions": [{"type": "Ready", "status": str(self.reported)}],
                "nodeInfo": NODE_INFO,
            },
        }
        return self.api.sure("POST", NODES, node)

    # The agent

    def start_agent(self) -> None:
        """Start the agent, with the configuration that Cilium's own init container gives it: cilium-config, and the CiliumNodeConfigs that select this node."""
        with self.lock:
            assert not self.agent
            self.uid = self._create_pod()
            until(self.run_agent, f"the init container of {self.pod} has read the configuration")

    def run_agent(self) -> bool:
        """Start the agent of the Pod that is there; tell whether its init container could read the configuration: a kubelet repeats that."""
        kubeconfig = f"--k8s-kubeconfig-path={self.api.kubeconfig}"
        source = "--source=config-map:kube-system/cilium-config,cilium-node-config:kube-system"
        init = ("cilium-dbg", "build-config", kubeconfig, f"--dest={RUN}/config", source)
        if attempt(self.inside(*init), environment=self.environment).returncode:
            return False
        self.agent = Program(
            self.folder / f"agent-{self.name}.log",
            *self.inside(
                "cilium-agent",
                f"--config-dir={RUN}/config",
                f"--lib-dir={LIB}",
                "--procfs=/proc",  # charts have a container's mount of it
                kubeconfig,
            ),
            environment=self.environment,
        )
        return True

    @property
    def pod(self) -> str:
        """The name of the agent's Pod, of the DaemonSet `cilium`."""
        return f"cilium-{self.name}"

    def _create_pod(self) -> str:
        owners = [owner("DaemonSet", "cilium")]
        metadata = {"name": self.pod, "labels": {"k8s-app": "cilium"}, "ownerReferences": owners}
        container = {"name": "cilium-agent", "image": self.image, "readinessProbe": READINESS}
        spec = {"nodeName": self.name, "hostNetwork": True, "containers": [container]}
        made = self.api.sure("POST", AGENT_PODS, {"metadata": metadata, "spec": spec})
        return str(made["metadata"]["uid"])

    @property
    def image(self) -> str:
        """The image of the agent's Pod."""
        return f"quay.io/cilium/cilium:v{self.version}"

    @property
    def version(self) -> str:
        """The release of the agent: `1.18.5`."""
        return self.release.name.removeprefix("agent-")

    @property
    def program(self) -> Path:
        """The program that runs as the agent, as the kernel says it."""
        assert self.agent
        return Path(f"/proc/{self.agent.process.pid}/exe").readlink()

    def ready(self) -> bool:
        """Tell whether the agent says that all is well; its Pod and its Node say the same then."""
        if not attempt(self.inside("bash", "-c", PROBE)).stdout.startswith("HTTP/1.0 200"):
            return False
        container = {"name": "cilium-agent", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
        status = {
            "phase": "Running",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container],
        }
        self.api.sure("PATCH", f"{AGENT_PODS}/{self.pod}/status", {"status": status}, MERGE)
        made = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        self.api.ask("PATCH", f"{NODES}/{self.name}/status", made, STRATEGIC)  # somebody may have deleted it
        self.reported = True
        return True

    def regenerated(self) -> bool:
        """Tell whether all endpoints have the programs that this agent gives them: it is ready some seconds before."""
        states = ("cilium-dbg", "endpoint", "list", "-o", "jsonpath={[*].status.state}")
        said = attempt(self.inside(*states), environment=self.environment)
        return set(said.stdout.split()) == {"ready"}

    def has_its_flags(self) -> bool:
        """Tell whether the agent counts no key of cilium-config that it did not start with, or does not run."""
        words = ("cilium-dbg", "metrics", "list", "--match-pattern=drift_checker_config_delta")
        said = attempt(self.inside(*words), environment=self.environment)
        return not self.agent or said.stdout.split()[-1:] == ["0.000000"]

    def was_busy(self) -> bool:
        """Tell whether the agent ended because the kernel had not done in time what it asked for."""
        agent = self.agent
        return agent is not None and not agent.running and BUSY in agent.tail()

    def wait(self) -> None:
        """Wait until the agent is ready. It waits seconds for the kernel, and ends where a busy machine takes longer: it runs anew then, as kubelets have it."""
        assert self.agent
        for _ in range(5):
            self.agent.until(
                lambda: self.ready() or self.was_busy(), f"the agent of {self.name} is ready", PATIENCE
            )
            if not self.was_busy():
                return
            with self.lock:
                self.run_agent()

    def stop_agent(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the agent and its Pod; the datapath goes on without it."""
        with self.lock:
            self.end_agent(how)
            if self.uid:
                self.api.delete(f"{AGENT_PODS}/{self.pod}?gracePeriodSeconds=0")
            self.uid = ""

    def end_agent(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the agent, as its container ends."""
        if self.agent:
            # Pods on a node whose agent ends meanwhile are cut off until the next one is ready.
            if self.agent.running and self.reported and self.version.startswith(("1.17.", "1.19.")):
                what = f"all endpoints of {self.name} are as its agent wants them"
                self.agent.until(self.regenerated, what, PATIENCE)
            self.agent.stop(how, GRACE)
            attempt(self.inside("pkill", "--pidfile", HEALTH, "cilium-health"))
        self.agent, self.reported = None, False

    def look_after(self, pods: Mapping[str, Object]) -> None:
        """Do what a kubelet and a DaemonSet do: report an agent that is ready, and start it again where its Pod was deleted.

        pods: those of all agents as they were read, perhaps before somebody stopped this one.
        """
        with self.lock:
            metadata = pods.get(self.pod, {}).get("metadata", {})
            if self.uid and metadata.get("uid") == self.uid and "deletionTimestamp" in metadata:
                self.stop_agent()
                self.start_agent()
            elif self.agent and not self.reported:
                self.ready()

    def switch_off(self) -> None:
        """End what runs on the machine for Kubernetes."""
        self.stop_agent()

    def upgrade(self, release: Path) -> None:
        """Restart the agent with the programs of another release, as a DaemonSet does with another image; the datapath goes on meanwhile."""
        with self.lock:
            self.stop_agent()
            self.release, self._mounts = release, mounts(self.cgroup, release)
            self.run("sh", "-c", sources(release))
            self.start_agent()

    def install_again(self) -> None:
        """Replace the machine by an empty one: what the agent wrote to its disk is gone."""
        self.end()
        self.start()

    def end(self) -> None:
        """End the agent and the machine."""
        self.stop_agent()
        super().end()
        if self.cgroup.exists():
            self.cgroup.rmdir()


NODE_INFO = {
    "kubeletVersion": "v1.35.4",
    "architecture": "amd64",
    "operatingSystem": "linux",
    **dict.fromkeys(
        ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"), "none"
    ),
    "kubeProxyVersion": "",
}
