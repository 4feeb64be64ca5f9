"""Random walks of a cluster whose agents are real: after each step pods are where the lock says, and all reach each other.

`IPAMC_SOAK_STEPS` and `IPAMC_SOAK_SEED` make them longer and other ones: `make soak-agents STEPS=200 SEED=7`.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.kubelet import LabWithKubelets
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.test_changes import SHARED, in_mode
from tests.e2e.agents.test_import import take_over, that_runs
from tests.e2e.api import NODES, POOLS, Object
from tests.e2e.site import dumped, second_family
from tests.e2e.soak.steps import EDITS, disable, front
from tests.e2e.soak.walk import words_of_edit
from tests.support.fleet import pool

STEPS = int(os.environ.get("IPAMC_SOAK_STEPS") or 5)
SEED = int(os.environ.get("IPAMC_SOAK_SEED") or 1)
WAYS: dict[str, list[Object]] = {
    "kubernetes": [{"mode": "cluster-pool"}, SHARED],
    "cluster-pool": [{"mode": "kubernetes"}, SHARED],
    "crd": [{"mode": "cluster-pool"}, {"mode": "kubernetes"}, SHARED],
}
"""The modes to which each mode can be left."""
MOST = 4
"""Pods of a node: each pings each other one after a step."""


class Walk:
    """A cluster of up to four nodes and two pools, and what happens to it."""

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        """Start with one pod on each node."""
        self.lab, self.chance = lab, chance
        self.numbers = {name: sum(pod.startswith(name) for pod in lab.pods) for name in lab.nodes}
        lab.conditions = {"cordon", "drain"}
        for name in () if lab.pods else lab.names:
            self.start(name)

    # Steps: each returns what it did, or nothing where it cannot be done now.

    def start(self, name: str = "", **annotations: str) -> str:
        """Start a pod."""
        name = name or self.chance.choice(self.lab.names)
        if len(self.pods_of(name)) >= MOST:
            return ""
        self.numbers[name] += 1
        pod = f"{name}{self.numbers[name]}"
        self.lab.start_pods(pod, **annotations)
        return f"pod {pod}"

    def start_with_annotation(self) -> str:
        """Start a pod that names its pool: the lock follows the operator."""
        if self.lab.site.cluster["ipam"]["mode"] != "multi-pool":
            return ""
        self.lab.back_on_the_trunk()
        pool = [each for each in self.lab.site.documents() if each["kind"] == "IPPool"][-1]
        name = pool["metadata"]["name"]
        if "disabled" in pool["spec"] or name not in self.lab.api.items(POOLS):  # it serves no node
            return ""
        if not (done := self.start(**{"ipam.cilium.io/ip-pool": name})):
            return ""
        self.follow()
        return f"{done} of {name}"

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
        self.lab.sh("ipamc apply fleet")
        return "apply"

    def renumber(self) -> str:
        """Give a node another block, by its runbook."""
        if self.lab.site.cluster["ipam"].get("pinning") == "pool":
            return ""
        return self.by_runbook("renumber")

    def replace(self) -> str:
        """Install a machine again, by its runbook."""
        return self.by_runbook("replace-node")

    def change_mode(self) -> str:
        """Go to another mode, by its runbook: nodes keep what they have."""
        spec = self.lab.site.cluster
        ways = [
            ipam
            for ipam in WAYS.get(spec["ipam"]["mode"], ())
            if ipam["mode"] != "kubernetes" or "ipFamilies" not in spec
        ]
        if not ways:
            return ""
        ipam = self.chance.choice(ways)
        self.lab.edits = {"edit-mode": lambda site: in_mode(site, ipam), "list-strangers": lambda _: None}
        return self.change(f"mode --to {ipam['mode']}")

    def move_range(self) -> str:
        """Move a pool to a new range node by node, by its runbook. The former one stays."""
        if self.lab.site.cluster["ipam"].get("pinning") == "pool":
            return ""
        number = sum(
            str(cidr).startswith("10.7.") for each in self.pools for cidr in each["spec"]["ipv4"]["cidrs"]
        )
        cidr, pool = f"10.7.{number}.0/24", self.chance.choice(self.pools)["metadata"]["name"]
        self.lab.edits = {"edit-pool": lambda site: front(site, pool, cidr), "network": lambda _: None}
        return self.change(f"new-range --pool {pool} --to {cidr} --wave-size 1", phases=slice(0, -1))

    def add_family(self) -> str:
        """Give each node a block of IPv6, too, by its runbook: pods have addresses of both once they started again."""
        if "ipFamilies" in self.lab.site.cluster or self.lab.operator.version < (1, 18):
            return ""  # agents up to 1.17 need ip6_tables for it
        self.lab.edits = {"edit-families": second_family}
        done = self.change("dual-stack", phases=slice(0, 1))
        if "refused" not in done:
            self.play("--base HEAD~1")
        return done

    def change(self, what: str, phases: slice = slice(None)) -> str:
        """Play the runbook of a change of the whole cluster, where it can be made."""
        self.lab.back_on_the_trunk()
        said = self.lab.sh(f"ipamc runbook fleet --change {what} 2>&1 || true")
        assert "this is a bug" not in said, said
        if refused := re.search(r"^error.*", said, re.MULTILINE):
            return f"{what}: refused, {refused[0]}"
        self.play(f"--change {what}", phases)
        return what

    def by_runbook(self, change: str) -> str:
        """Play a runbook about one node: no pod elsewhere loses a packet."""
        name = self.chance.choice(self.lab.names)
        self.play(f"--change {change} --node {name}")
        return f"{change} {name}"

    def play(self, options: str, phases: slice = slice(None)) -> None:
        """Play runbooks: no pod of a node that they do not name loses a packet."""
        for runbook in self.lab.runbooks(options):
            waves = [wave for phase in runbook["phases"][phases] for wave in phase["waves"]]
            named = {name for wave in waves for step in wave["steps"] for name in step["nodes"]}
            others = [name for name, pod in sorted(self.lab.pods.items()) if pod.node.name not in named]
            with self.lab.pinging(*others[:2]) as pings:
                self.lab.play(runbook, phases=phases)
            assert not lost(pings)

    def join(self) -> str:
        """Let a machine join."""
        away = sorted(self.lab.nodes.keys() - set(self.lab.names))
        if not away:
            return ""
        name = away[0]
        self.lab.nodes[name].register()
        self.lab.refreshed()
        self.lab.sh("ipamc apply fleet")
        self.lab.agents([name])
        self.lab.ready()
        self.start(name)
        self.follow()
        return f"{name} joins"

    def follow(self) -> None:
        """Let the lock have what the operator gave."""
        self.lab.refresh()
        assert "refused" not in self.merge("")

    def label(self) -> str:
        """Move a node to the other rack, by its label: it keeps what it has."""
        path = f"{NODES}/{self.chance.choice(self.lab.names)}"
        labels = self.lab.api.get(path)["metadata"]["labels"]
        rack = "a" if labels.get("rack") == "b" else "b"

        def change(to: str) -> None:
            self.lab.api.change(path, lambda whole: whole["metadata"]["labels"].update(rack=to))

        change(rack)
        self.lab.refresh()
        done = self.merge(f"{path.rpartition('/')[2]} in rack {rack}")
        if "refused" in done:
            change(labels.get("rack", ""))
        return done

    def edit_pool(self) -> str:
        """Edit a pool."""
        step = self.chance.choice(EDITS)
        self.lab.back_on_the_trunk()
        words = words_of_edit(self.lab.site.documents(), self.chance, step.__name__)
        if words is None or (step is disable and words[0] != "second"):
            return ""  # a node in no rack must have a pool when it joins
        step(self.lab.site, *words)
        return self.merge(" ".join((step.__name__, *words)))

    def merge(self, what: str) -> str:
        """Merge what was edited, do what it asks for, and apply. What is refused is undone."""
        said = self.lab.sh("ipamc compile fleet 2>&1 || git checkout --quiet clusters")
        if "refused, nothing written" in said:
            return f"{what}: refused, {', '.join(re.findall(r'error.(IPC[0-9]+)', said))}"
        if not self.lab.sh("git status --porcelain clusters"):
            return ""
        self.lab.sh("git add clusters && git commit --quiet -m edit && git push --quiet origin main")
        self.play("--base HEAD~1")
        said = self.lab.sh("ipamc apply fleet --prune 2>&1 || true")
        if "roll out what is in cilium/" in said:
            self.lab.roll_out()
            said = self.lab.sh("ipamc apply fleet --prune 2>&1")
        assert "error:" not in said, said
        self.lab.ready()
        return what

    def leave(self) -> str:
        """Take a node out of the cluster, by its runbook."""
        return self.by_runbook("decommission") if len(self.lab.names) > 2 else ""

    @property
    def pools(self) -> list[Object]:
        """The pools of nodes that git lists."""
        documents = self.lab.site.documents()
        return [each for each in documents if each["kind"] == "IPPool" and not each["spec"].get("unlisted")]

    def pods_of(self, name: str) -> list[str]:
        """Return the pods of a node."""
        return [pod for pod in self.lab.pods if pod.startswith(name)]

    @property
    def steps(self) -> list[Callable[[], str]]:
        """What may happen, the frequent ones more than once."""
        quick = [
            self.start,
            self.start,
            self.start_with_annotation,
            self.end,
            self.restart_agent,
            self.restart_operator,
            self.apply,
        ]
        edits = [self.label, *3 * [self.edit_pool]]
        whole = [self.change_mode, self.move_range, self.add_family]
        return [*quick, *edits, *whole, self.renumber, self.replace, self.join, self.join, self.leave]


WIDE = "10.0.0.0/18"
"""Blocks that nodes moved away from stay in quarantine."""
IMPORTED = {
    "imported-cluster-pool": ("cluster-pool", "bystander"),
    "imported-adopt": ("cluster-pool", "adopt"),
    "imported-kubernetes": ("kubernetes", "bystander"),
    "imported-multi-pool": ("multi-pool", "bystander"),
}
"""Clusters that ran before: their mode, and who gives blocks after the import."""


def second(mode: str) -> Object:
    """Make the pool of a rack."""
    later = {"priority": -10} if mode == "multi-pool" else {}
    return pool(
        "second", ipv4={"cidrs": ["10.2.0.0/24"], "blockSize": 27}, nodeSelector='rack == "b"', **later
    )


def installed(begin: Begin, mode: str, kind: type[Lab]) -> Lab:
    """Begin with a new cluster."""
    some = documents(mode)
    some[1]["spec"]["ipv4"]["cidrs"] = [WIDE]
    lab = begin([*some, second(some[0]["spec"]["ipam"]["mode"])], spare="d", kind=kind)
    lab.install()
    return lab


def imported(begin: Begin, mode: str) -> Lab:
    """Begin with a cluster that was taken over, and got pools for nodes that git lists."""
    lab, (ipam, owner) = begin(spare="d"), IMPORTED[mode]
    that_runs(lab, ipam, WIDE)
    take_over(lab, owner)
    if ipam == "kubernetes":  # a dump has the blocks of Nodes, and not their range
        lab.site.edit(lambda each: each["kind"] == "IPPool" and each["spec"]["ipv4"].update(cidrs=[WIDE]))
    served = pool("served", ipv4={"cidrs": ["10.3.0.0/18"], "blockSize": 27})
    more = [second(ipam), *([served] if owner == "adopt" else [])]
    (lab.site.folder / "more.yaml").write_text(dumped(more))
    lab.site.edit(lambda each: each["kind"] == "Cluster" and each["spec"]["ipam"].pop("autoCreate", None))
    lab.refreshed()
    lab.sh("ipamc apply fleet")
    return lab


@pytest.mark.deep("pinned", "imported-adopt", "kubernetes-LabWithKubelets")
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        *((mode, Lab) for mode in (*MODES, *IMPORTED)),
        *((mode, LabWithKubelets) for mode in ("kubernetes", "bystander")),
    ],
)
def test_whatever_happens_pods_are_where_the_lock_says(begin: Begin, mode: str, kind: type[Lab]) -> None:
    lab = imported(begin, mode) if mode in IMPORTED else installed(begin, mode, kind)
    walk = Walk(lab, random.Random(f"{SEED} {mode}"))  # noqa: S311 - it is to be the same again
    lab.as_locked()
    done: list[str] = []
    while len(done) < STEPS:
        if step := walk.chance.choice(walk.steps)():
            done.append(step)
            print(step, flush=True)  # noqa: T201 - what led to a failure
            lab.as_locked()
            walk.lab.back_on_the_trunk()
            lab.audit()
