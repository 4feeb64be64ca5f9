"""Random walks of a cluster whose agents are real: after each step pods are where the lock says, and all reach each other.

`IPAMC_SOAK_STEPS` and `IPAMC_SOAK_SEED` make them longer and other ones: `make soak-agents STEPS=200 SEED=7`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from tests.e2e.agents.clusters import documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab, lost

STEPS = int(os.environ.get("IPAMC_SOAK_STEPS") or 5)
SEED = int(os.environ.get("IPAMC_SOAK_SEED") or 1)
MOST = 4
"""Pods of a node: each pings each other one after a step."""


class Walk:
    """A cluster of up to four nodes, and what happens to it."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        """Start with one pod on each node."""
        self.lab, self.chance = lab, chance
        self.numbers = dict.fromkeys(lab.nodes, 0)
        lab.conditions = {"cordon", "drain"}
        for name in lab.names:
            self.start(name)

    # Steps: each returns what it did, or nothing where it cannot be done now.

    def start(self, name: str = "") -> str:
        """Start a pod."""
        name = name or self.chance.choice(self.lab.names)
        if len(self.pods_of(name)) >= MOST:
            return ""
        self.numbers[name] += 1
        pod = f"{name}{self.numbers[name]}"
        self.lab.start_pods(pod)
        return f"pod {pod}"

    def end(self) -> str:
        """End a pod."""
        if not self.lab.pods:
            return ""
        pod = self.chance.choice(sorted(self.lab.pods))
        self.lab.end_pod(pod)
        return f"pod {pod} ends"

    def restart_agent(self) -> str:
        """Restart the agent of a node."""
        name = self.chance.choice(self.lab.names)
        self.lab.agents([name])
        self.lab.ready()
        return f"agent of {name} restarts"

    def restart_operator(self) -> str:
        """Restart the operator."""
        self.lab.start_operator()
        return "operator restarts"

    def apply(self) -> str:
        """Apply again."""
        self.lab.sh("ipamc ci apply fleet")
        return "apply"

    def renumber(self) -> str:
        """Give a node another block, by its runbook."""
        if self.lab.site.cluster["ipam"].get("pinning") == "pool":
            return ""
        return self.by_runbook("renumber")

    def replace(self) -> str:
        """Install a machine again, by its runbook."""
        return self.by_runbook("replace-node")

    def by_runbook(self, change: str) -> str:
        """Play a runbook about one node: no pod elsewhere loses a packet."""
        name = self.chance.choice(self.lab.names)
        others = [pod for pod in sorted(self.lab.pods) if not pod.startswith(name)]
        with self.lab.pinging(*others[:2]) as pings:
            self.lab.play(self.lab.runbook(f"--change {change} --node {name}"))
        assert not lost(pings)
        return f"{change} {name}"

    def join(self) -> str:
        """Let a machine join."""
        away = sorted(self.lab.nodes.keys() - set(self.lab.names))
        if not away:
            return ""
        name = away[0]
        self.lab.nodes[name].register()
        self.lab.sh(
            "git fetch --quiet origin && git switch --quiet --force-create main origin/main"
        )  # a runbook leaves it
        self.lab.refreshed()
        self.lab.sh("ipamc ci apply fleet")
        self.lab.agents([name])
        self.lab.ready()
        self.start(name)
        return f"{name} joins"

    def leave(self) -> str:
        """Take a node out of the cluster, by its runbook."""
        return self.by_runbook("decommission") if len(self.lab.names) > 2 else ""

    def pods_of(self, name: str) -> list[str]:
        """Return the pods of a node."""
        return [pod for pod in self.lab.pods if pod.startswith(name)]

    @property
    def steps(self) -> list[Callable[[], str]]:
        """What may happen, the frequent ones more than once."""
        quick = [self.start, self.start, self.end, self.restart_agent, self.restart_operator, self.apply]
        return [*quick, self.renumber, self.replace, self.join, self.join, self.leave]


@pytest.mark.deep(part=2)
@pytest.mark.parametrize("mode", ["kubernetes", "bystander", "pinned", "crd"])
def test_whatever_happens_pods_are_where_the_lock_says(begin: Begin, mode: str) -> None:
    some = documents(mode)
    some[1]["spec"]["ipv4"]["cidrs"] = ["10.0.0.0/18"]  # blocks that nodes moved away from stay in quarantine
    lab = begin(some, spare="d")
    lab.install()
    walk = Walk(lab, random.Random(f"{SEED} {mode}"))  # noqa: S311 - it is to be the same again
    lab.as_locked()
    done: list[str] = []
    while len(done) < STEPS:
        if step := walk.chance.choice(walk.steps)():
            done.append(step)
            print(step, flush=True)  # noqa: T201 - what led to a failure
            lab.as_locked()
