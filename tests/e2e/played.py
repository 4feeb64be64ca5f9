"""A runbook, played step by step as it is written: its JSON is read, and each command that it prints is run by a shell.

What this machine has not is played: agents, kubelets, the forge's merge button, the pipeline that starts an operator.
Nothing else is: git pushes to a real remote, kubectl and ipamc reach the real servers.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ipamc.cli import VERBS
from tests.e2e.api import CILIUM_NODES, NODES, POOLS, Api, Object
from tests.e2e.objects import allocated
from tests.e2e.operator import LEADS, Operator
from tests.e2e.processes import Program
from tests.e2e.proof import agent_starts
from tests.e2e.site import Site, dumped, loaded
from tests.e2e.test_ci_apply import flags
from tests.support.pipelines import tools

Edit = Callable[[Site], None]
AGENT = "k8s-app=cilium"
PATIENCE = 20
"""Seconds in which a check must come true; a person has a minute."""
DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
NOT_HERE = {f"ipamc {verb} " for verb in ("import", "audit")} - {f"ipamc {verb} " for verb in VERBS}
"""Commands of verbs that this version does not have: they are played, or left out."""


@dataclass
class Player:
    """A clone with a remote, the servers, and a log of what was run and what was played."""

    site: Site
    operator: Operator
    folder: Path
    edits: dict[str, Edit] = field(default_factory=dict)
    """What a person writes into files, by the key of the step."""
    conditions: set[str] = field(default_factory=set)
    """Keys of conditional steps whose condition holds."""
    ran: list[str] = field(default_factory=list)
    played: list[str] = field(default_factory=list)
    after: Callable[[], None] = lambda: None
    """It is called after each step, with an assertion that must always hold."""
    program: Program | None = None
    patience: float = PATIENCE
    absent: list[str] = field(default_factory=list)
    """Nodes that a step does not name, because only an audit finds them."""

    def __post_init__(self) -> None:
        """Make the repository, with the cluster on its main branch, and a remote."""
        self.tools = tools(self.folder / "bin")
        (self.tools / "kubectl").symlink_to(self.api.binaries / "kubectl")
        kubeconfig = json.loads(self.api.kubeconfig.read_text())
        kubeconfig["contexts"] = [{**kubeconfig["contexts"][0], "name": self.site.name}]
        kubeconfig["current-context"] = "somewhere-else"
        (self.folder / "kubeconfig").write_text(json.dumps(kubeconfig))
        remote = self.folder / "origin.git"
        self.sh(f"git init --quiet --bare --initial-branch=main {remote}")
        self.sh(
            "git init --quiet --initial-branch=main && git config user.name a && git config user.email a@example.org "
            f"&& git add -A && git commit --quiet -m one && git remote add origin {remote} "
            "&& git push --quiet origin main && git remote set-head origin main"
        )

    @property
    def api(self) -> Api:
        """The kube-apiserver."""
        return self.site.api

    def sh(self, command: str) -> str:
        """Run a line as a person would paste it; return what it prints to stdout. Fails if it fails."""
        environment = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "IPAMC_WAIT": "0.5",
            "SOURCE_DATE_EPOCH": "1795219200",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.site.work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def runbook(self, *options: str) -> dict[str, Any]:
        """Ask for the one runbook that these options give."""
        (found,) = self.runbooks(*options)
        return found

    def runbooks(self, *options: str) -> list[dict[str, Any]]:
        """Ask for the runbooks of the cluster."""
        said = self.sh(f"ipamc runbook {self.site.name} --output json {' '.join(options)}")
        return list(json.loads(said)["runbooks"])

    # The operator

    @property
    def config(self) -> Mapping[str, str]:
        """The keys of cilium-config that the operator starts with: those that are rendered."""
        return self.site.config

    @property
    def arguments(self) -> list[str]:
        """What the operator's command line needs besides."""
        return self.site.arguments

    def start_operator(self) -> None:
        """Let the operator start, with its flags."""
        self.stop_operator()
        program = self.program = self.operator.program = self.operator.start(self.config, *self.arguments)
        program.until(lambda: LEADS in program.said(), "the operator leads")

    def stop_operator(self) -> None:
        """End the operator."""
        if self.program:
            self.program.stop()
        self.program = self.operator.program = None

    def roll_out(self) -> None:
        """Write the flags that are rendered, as Helm would, and start the operator."""
        flags(self.api, self.site.config, *self.site.arguments)
        self.daemon_set("cilium")
        self.start_operator()

    def daemon_set(self, name: str) -> None:
        """Make a DaemonSet, which no controller serves here."""
        labels = {"app": name}
        container = {"name": "a", "image": "none"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}
        if name not in self.api.items(DAEMON_SETS):
            self.api.create(DAEMON_SETS, body)

    # The steps

    def play(self, runbook: Mapping[str, Any], *, phases: slice = slice(None)) -> None:
        """Do every step of the phases, in their order."""
        for phase in runbook["phases"][phases]:
            for wave in phase["waves"]:
                for step in wave["steps"]:
                    self.step(step)

    def step(self, step: Mapping[str, Any]) -> None:
        """Do one step as it is written, and check it as it says."""
        if step["only_if"] and step["key"] not in self.conditions:
            return
        getattr(self, f"_{step['where']}")(step)
        if step["check"]:
            self._check(step["check"])
        self.after()

    def _check(self, check: Mapping[str, str]) -> None:
        command = check["command"]
        if self.cannot(command):
            self.played.append(command)
            return
        end = time.monotonic() + self.patience
        while (printed := self.sh(f"{command} || true")).split() != check["expect"].split():
            said = "" if time.monotonic() < end else self.sh(f"{command} 2>&1 || true")
            assert time.monotonic() < end, f"{command}\n{said or printed}\nexpected:\n{check['expect']}"
            time.sleep(0.5)
        self.ran.append(command)

    def _here(self, step: Mapping[str, Any]) -> None:
        for command in step["commands"]:
            self.command(command, step)

    _pipeline = _here

    def command(self, command: str, step: Mapping[str, Any]) -> None:
        """Run a command, or play it."""
        if command.startswith("helm "):
            self.played.append(command)
            if step["key"] in {"operator", "flags", "upgrade"}:
                self.roll_out()
            if step["key"] == "agents":
                self.agents(self.names)
            return
        if _missing(command) or command.startswith("calicoctl "):
            self.played.append(command)
            return
        self.sh(command)
        self.ran.append(command)
        self.follow(command)

    def cannot(self, check: str) -> bool:
        """Tell whether a check asks about what is not here: it is taken to have come true."""
        return AGENT in check or "rollout status" in check or _missing(check)

    def follow(self, command: str) -> None:
        """Play what agents, controllers and kubelets do about a command that was run."""
        self.agents_of_nodes(command)
        if AGENT in command and " delete pod " in command:
            self.agents([command.rpartition("spec.nodeName=")[2]])
        elif "rollout restart daemonset/cilium" in command:
            self.agents(self.names)
        elif "rollout restart deployment/cilium-operator" in command or "--replicas=1" in command:
            self.start_operator()
        elif "--replicas=0" in command:
            self.stop_operator()

    def back_on_the_trunk(self) -> None:
        """Take what is merged: a runbook leaves its branch."""
        self.sh("git fetch --quiet origin && git switch --quiet --force-create main origin/main")

    def refresh(self) -> None:
        """Take the live Nodes and CiliumNodes over into the inputs of the trunk."""
        self.back_on_the_trunk()
        get = "kubectl --context=NAME get nodes,ciliumnodes,pods,configmaps --all-namespaces --output=json"
        name = self.site.name
        self.sh(f"{get.replace('NAME', name)} > live.json && ipamc import {name} --refresh live.json")

    def refreshed(self) -> None:
        """Take the live Nodes and CiliumNodes over, and commit them to the trunk."""
        self.refresh()
        name = self.site.name
        self.sh(
            f"ipamc compile {name} && git add clusters && git commit --quiet -m refreshed && git push --quiet origin main"
        )

    def forget(self, names: list[str]) -> None:
        """Remove CiliumNodes from the inputs."""
        file = self.site.folder / "ciliumnodes.yaml"
        (found,) = loaded(file.read_text())
        found["items"] = [each for each in found["items"] if each["metadata"]["name"] not in names]
        file.write_text(dumped([found]))

    def _forge(self, step: Mapping[str, Any]) -> None:
        branch = self.sh("git branch --show-current").strip()
        assert branch in step["title"]
        self.sh(f"git push --quiet origin {branch}:main")
        self.played.append(f"merge {branch}")
        self._here(step)

    def _editor(self, step: Mapping[str, Any]) -> None:
        if step["key"] == "forget-evidence":
            self.forget([line.rpartition(" ")[2] for line in step["edit"].splitlines()])
        else:
            assert step["key"] in self.edits, f"nobody edits: {step['title']}"
            self.edits[step["key"]](self.site)
        self.played.append(step["title"])
        self._here(step)

    def _node(self, step: Mapping[str, Any]) -> None:
        self.played.append(step["title"])
        if step["key"] in {"restart-kubelet", "start-kubelet", "join"}:
            self.kubelets(step["nodes"] or self.absent)
            self.agents(self.absent)  # they have run all the time
        if step["key"] in {"join", "reboot"}:  # its agent does not wait for anybody
            self.agents(step["nodes"])

    # What is played

    @property
    def names(self) -> list[str]:
        """The nodes that the server has."""
        return sorted(self.api.items(NODES))

    def kubelets(self, nodes: list[str]) -> None:
        """Let kubelets register their Nodes, where these are not there."""
        there = self.api.items(NODES)
        self.api.create(NODES, *({"metadata": {"name": name}} for name in nodes if name not in there))

    def agents(self, nodes: list[str]) -> None:
        """Let agents start: each makes its CiliumNode where there is none, and asks for addresses."""
        mode = self.site.cluster["ipam"]["mode"]
        live, there = self.api.items(CILIUM_NODES), self.api.items(NODES)
        for name in nodes:
            if name not in live:
                self.api.create(CILIUM_NODES, self._empty(name, there[name]))
            elif mode == "multi-pool" and not allocated(live[name]):
                asks = self._empty(name, there[name])["spec"]["ipam"]
                self.api.change(f"{CILIUM_NODES}/{name}", partial(_set_ipam, ipam=asks))
            elif mode != "kubernetes":
                agent_starts(self.api, live[name], there, multi_pool=mode == "multi-pool")
            if mode == "kubernetes":
                cidrs = there[name]["spec"].get("podCIDRs", [])
                self.api.change(f"{CILIUM_NODES}/{name}", partial(_set_ipam, ipam={"podCIDRs": cidrs}))

    def agents_of_nodes(self, command: str) -> None:
        """Play what agents and the garbage collector do in kubernetes mode about Nodes that join again.

        A CiliumNode goes with its Node; the agent of one that joins waits for podCIDRs, and then writes them.
        """
        if self.site.cluster["ipam"]["mode"] != "kubernetes":
            return
        self.collect_garbage(command)
        if command.startswith("ipamc apply "):
            live, there = self.api.items(CILIUM_NODES), self.api.items(NODES)
            self.agents([name for name in there if name not in live and there[name]["spec"].get("podCIDRs")])

    def collect_garbage(self, command: str) -> None:
        """Play the garbage collector of kube-controller-manager: a CiliumNode goes with its Node."""
        if " delete node " in command:
            self.api.delete(*(f"{CILIUM_NODES}/{name}" for name in command.split(" delete node ")[1].split()))

    def seed(self) -> None:
        """Apply the seeds, if there are any, as pages and plans say it."""
        if self.site.rendering("seeds/*.yaml"):
            self.sh(
                f"kubectl --context={self.site.name} apply --server-side --field-manager=ipamc-seeds "
                f"--filename={self.site.rendered}/seeds"
            )

    def _empty(self, name: str, node: Object) -> Object:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        ipam: Object = {}
        spec = self.site.cluster["ipam"]
        if spec["mode"] == "multi-pool":
            own = f"default.{name}"  # as its CiliumNodeConfig says, once it is there
            pool = own if own in self.api.items(POOLS) else "default"
            ipam = {"pools": {"requested": [{"pool": pool, "needed": {"ipv4-addrs": 16}}]}}
        return {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNode",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"ipam": ipam},
        }


def _missing(command: str) -> bool:
    return any(command.startswith(word) for word in NOT_HERE)


def _set_ipam(whole: Object, ipam: Object) -> None:
    whole["spec"].update(ipam=ipam)
