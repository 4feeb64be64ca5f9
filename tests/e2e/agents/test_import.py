"""A cluster that runs is taken over: dump, import, apply, new flags. No pod notices."""

from __future__ import annotations

import pytest

from ipamc.read.rules import DUMP
from tests.e2e.agents.clusters import RANGE
from tests.e2e.agents.conftest import Begin
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.api import MERGE, NODES

FOUR = {"enable-ipv4": "true", "enable-ipv6": "false"}
CONFIGS: dict[str, dict[str, str]] = {
    "cluster-pool": {
        "ipam": "cluster-pool",
        "cluster-pool-ipv4-cidr": RANGE,
        "cluster-pool-ipv4-mask-size": "27",
        **FOUR,
    },
    "multi-pool": {
        "ipam": "multi-pool",
        "auto-create-cilium-pod-ip-pools": f"default=ipv4-cidrs:{RANGE};ipv4-mask-size:27",
        **FOUR,
    },
    "kubernetes": {"ipam": "kubernetes", **FOUR},
}


def give_podcidrs(lab: Lab, blocks: dict[str, str]) -> None:
    """Do what kube-controller-manager does for Nodes that join."""
    for name, block in blocks.items():
        lab.api.sure("PATCH", f"{NODES}/{name}", {"spec": {"podCIDR": block, "podCIDRs": [block]}}, MERGE)


@pytest.mark.deep(part=2)
@pytest.mark.parametrize("owner", ["bystander", "adopt"])
@pytest.mark.parametrize("mode", CONFIGS)
def test_a_cluster_that_runs_is_taken_over_without_a_lost_packet(begin: Begin, mode: str, owner: str) -> None:
    if owner == "adopt" and mode != "cluster-pool":
        pytest.skip("adopt is of cluster-pool mode")
    lab = begin()
    if mode == "kubernetes":
        give_podcidrs(lab, {"a": "10.0.0.0/27", "b": "10.0.0.32/27", "c": "10.0.0.64/27"})
    lab.roll_out(CONFIGS[mode])
    lab.agents(lab.nodes)
    lab.ready()
    lab.start_pods("a1", "b1", "c1")
    assert not lab.unreachable()
    blocks = lab.blocks()

    with lab.pinging("a1", "b1", "c1") as pings:
        lab.sh(f"{DUMP.replace('kubectl', 'kubectl --context=fleet')} > ../dump.json")
        lab.sh(f"ipamc import fleet ../dump.json --operator {owner}")
        assert {name: [block for _, block in lines] for name, lines in lab.site.lock().items()} == blocks
        lab.sh("git add . && git commit --quiet -m imported")
        lab.sh("ipamc ci apply fleet --before-flags")
        lab.roll_out()
        lab.sh("ipamc ci apply fleet")
        lab.agents(lab.nodes)
        lab.ready()
        lab.start_pods("a2", "b2", "c2")
    assert not lost(pings)
    assert lab.blocks() == blocks
    lab.as_locked()
