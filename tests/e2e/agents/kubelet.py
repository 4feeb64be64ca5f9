"""Nodes with a real kubelet and containerd: they register their Nodes, run their Pods, and report both. The agent of a node runs beside its Pod."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus as Status
from pathlib import Path
from typing import Any, ClassVar

from tests.e2e.agents.lab import Lab
from tests.e2e.agents.machine import attempt
from tests.e2e.agents.node import AGENT_PODS, PATIENCE, Node
from tests.e2e.agents.pod import IMAGE, PODS, Pod
from tests.e2e.api import NODES, Object
from tests.e2e.processes import Program, until

CNI = "/run/cni"
"""Of a node: its agent writes the configuration there as soon as it is ready."""
LOOPBACK = "/usr/lib/cni/loopback"
"""The CNI plugin that containerd calls for each pod besides the one that is configured."""
SOCKET = "/run/containerd/containerd.sock"
CONTAINERD = f"""
version = 2
root = "/run/containerd/root"
state = "/run/containerd/state"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
path = "/run/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/{IMAGE}"
disable_cgroup = true
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI}/bin"
conf_dir = "{CNI}/net.d"
"""
KUBELET: Object = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "enableServer": False,
    "containerRuntimeEndpoint": f"unix://{SOCKET}",
    "podLogsDir": "/run/pods",
    "volumePluginDir": "/run/kubelet/plugins",
    # No control groups for classes of pods, which need controllers, nothing that depends on how full this machine is, and news at once.
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "failSwapOn": False,
    "maxPods": 25,
    "nodeStatusUpdateFrequency": "1s",
    "imageGCHighThresholdPercent": 100,
    "evictionHard": {"memory.available": "0%", "nodefs.available": "0%"},
    "resolvConf": "",
}
SETTINGS = {"write-cni-conf-when-ready": f"{CNI}/net.d/05-cilium.conflist", "cni-exclusive": "true"}
"""As charts have it, with another folder."""


def image(program: Path, file: Path, *names: str) -> None:
    """Write the image of one program, as `docker save` does, under names."""
    with tarfile.open(file, "w") as archive:

        def add(name: str, content: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))

        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as inner:
            inner.add(program, "pause")
        add("layer.tar", layer.getvalue())
        files = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]}
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": files,
        }
        add("config.json", json.dumps(config).encode())
        manifest = [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]
        add("manifest.json", json.dumps(manifest).encode())


class NodeWithKubelet(Node):
    """A machine that a kubelet looks after."""

    kubelet: Program | None = None
    containerd: Program | None = None

    def start(self) -> None:
        """Start the machine, and containerd."""
        super().start()
        self.run(
            "sh",
            "-c",
            f"mount -n -t cgroup2 cgroup2 /sys/fs/cgroup; mkdir -p {CNI}/bin {CNI}/net.d /run/kubelet",
        )
        self.run("ln", "-s", str(self.release / "cilium-cni"), LOOPBACK, f"{CNI}/bin")
        for name, text in (("containerd", CONTAINERD), ("kubelet", json.dumps(KUBELET))):
            self.run("sh", "-c", f"cat >/run/{name}.config", text=text)
        kubeconfig = json.loads(self.api.kubeconfig.read_text())
        kubeconfig["users"][0]["user"] |= {"as": f"system:node:{self.name}", "as-groups": ["system:nodes"]}
        self.run("sh", "-c", "cat >/run/kubeconfig", text=json.dumps(kubeconfig))
        self.start_containerd()
        archive = self.folder / "pause.tar"
        image(self.api.binaries / "pause", archive, f"docker.io/library/{IMAGE}", self.image)
        self.ctr("images", "import", str(archive))

    def start_containerd(self) -> None:
        """Start containerd, or start it again: its containers go on."""
        if self.containerd:
            self.containerd.stop()
        own = self.cgroup / "containerd"  # its containers become neighbours of this one
        script = (
            f"mkdir -p {own}; echo $$ >{own}/cgroup.procs; exec containerd --config=/run/containerd.config"
        )
        self.containerd = Program(
            self.folder / f"containerd-{self.name}.log",
            *self.inside("sh", "-c", script),
            environment=self.environment,
        )
        self.containerd.until(
            lambda: attempt(self.inside("ctr", f"--address={SOCKET}", "version")).returncode == 0,
            "containerd answers",
            PATIENCE,
        )

    def ctr(self, *arguments: str) -> str:
        """Ask containerd."""
        return self.run("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments)

    def register(self, labels: Mapping[str, str] | None = None, **spec: object) -> Object:
        """Start the kubelet, or start it again: it registers its Node where there is none."""
        assert not spec, "nobody tells a kubelet its podCIDRs"
        self.stop_kubelet()

        def registered() -> bool:
            # As systemd does: 1.35.4 may end by a race of its own while it has no Node.
            if not (self.kubelet and self.kubelet.running):
                self._start_kubelet(labels or {})
            return self.name in self.api.items(NODES)

        until(registered, f"the kubelet of {self.name} registers it", PATIENCE)
        return self.api.get(f"{NODES}/{self.name}")

    def _start_kubelet(self, labels: Mapping[str, str]) -> None:
        self.kubelet = Program(
            self.folder / f"kubelet-{self.name}.log",
            *self.inside(
                str(self.api.binaries / "kubelet"),
                "--config=/run/kubelet.config",
                "--kubeconfig=/run/kubeconfig",
                "--root-dir=/run/kubelet",
                f"--hostname-override={self.name}",
                f"--node-ip={self.address},{self.address_6}",
                f"--node-labels={','.join(f'{key}={value}' for key, value in labels.items())}",
            ),
        )

    def stop_kubelet(self) -> None:
        """End the kubelet; pods go on."""
        if self.kubelet:
            self.kubelet.stop()
        self.kubelet = None

    def look_after(self, pods: Mapping[str, Object]) -> None:
        """Let the agent follow its Pod, which the kubelet ends where the kube-apiserver has another one, or none; a DaemonSet makes one then."""
        with self.lock:
            super().look_after(pods)
            answer = self.api.ask("GET", AGENT_PODS)
            if self.kubelet and self.uid and answer.code == Status.OK:
                uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in answer.body["items"]}
                if uids.get(self.pod) != self.uid:
                    self.end_agent()
                    self.uid = uids.get(self.pod) or self._create_pod()
                if self.agent and not self.agent.running:
                    self.end_agent()  # by itself: its container is started again
                if not self.agent:
                    self.run_agent()

    def ready(self) -> bool:
        """Tell whether the kubelet says that the agent is ready, and the Node."""
        objects = self.api.items(AGENT_PODS).get(self.pod, {}), self.api.items(NODES).get(self.name, {})
        self.reported = all(condition(each) for each in objects)
        return self.reported

    def switch_off(self) -> None:
        """End kubelet and agent; pods go on."""
        self.stop_kubelet()
        super().switch_off()

    def end(self) -> None:
        """End the machine: all that containerd started, too."""
        self.stop_agent()
        self.stop_kubelet()
        if self.containerd:
            self.containerd.stop()
        (self.cgroup / "cgroup.kill").write_text("1")
        divided = (
            "find",
            str(self.cgroup),
            "-mindepth",
            "1",
            "-depth",
            "-type",
            "d",
            "-exec",
            "rmdir",
            "{}",
            "+",
        )
        until(lambda: attempt(divided).returncode == 0, f"all processes of {self.name} are gone")
        super().end()


def condition(whole: Object) -> bool:
    """Tell whether an object is Ready."""
    conditions = whole.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class PodOfKubelet(Pod):
    """A pod that a kubelet runs."""

    node: NodeWithKubelet

    def start(self) -> None:
        """Leave its start to the kubelet."""

    def connect(self) -> None:
        """Wait until the kubelet says that it runs, and has addresses."""
        path = f"{PODS}/{self.name}"
        until(lambda: running(self.api.get(path)), f"{self.name} runs", PATIENCE)
        status = self.api.get(path)["status"]
        self.addresses = [each["ip"] for each in status["podIPs"]]
        container = status["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        tasks = [line.split() for line in self.node.ctr("tasks", "ls").splitlines()]
        (pid,) = [pid for name, pid, *_ in tasks if name == container]
        self._enter = ["nsenter", f"--target={pid}", "--net", "--"]

    def end(self) -> None:
        """Let somebody delete it; the kubelet ends it."""
        self.api.delete(f"{PODS}/{self.name}")

    abandon = end


def running(pod: Object) -> bool:
    """Tell whether a kubelet says that a pod runs, with its addresses."""
    return pod["status"]["phase"] == "Running" and bool(pod["status"].get("podIPs"))


@dataclass
class LabWithKubelets(Lab):
    """A cluster whose kubelets are real."""

    KIND_OF_NODE: ClassVar[type[Node]] = NodeWithKubelet
    KIND_OF_POD: ClassVar[type[Pod]] = PodOfKubelet

    by_hand: dict[str, Callable[[Mapping[str, Any]], object]] = field(default_factory=dict)
    """What a person does in steps that name no nodes, by their keys."""

    def __post_init__(self) -> None:
        """Let agents tell containerd of themselves."""
        self.settings = SETTINGS | self.settings
        super().__post_init__()

    def kubelets(self, nodes: list[str]) -> None:
        """Start kubelets, those that run anew."""
        for name in nodes:
            self.nodes[name].register()

    def follow(self, command: str) -> None:
        """Forget the pods that a drain ended: their kubelets are quicker than who looks for them here."""
        super().follow(command)
        if " drain " in command:
            there = self.api.items(PODS)
            for name in [each for each in self.pods if each not in there]:
                self.pods.pop(name, None)

    def step(self, step: Mapping[str, Any]) -> None:
        """Do one step; those of `by_hand` as it says."""
        if step["key"] in self.by_hand:
            self.by_hand[step["key"]](step)
            self.played.append(step["title"])
        else:
            super().step(step)

    def machine(self, name: str) -> NodeWithKubelet:
        """Return a node."""
        found = self.nodes[name]
        assert isinstance(found, NodeWithKubelet)
        return found
