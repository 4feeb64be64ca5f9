"""A cluster that runs is taken over: dump, import, apply, new flags. No pod notices."""

from __future__ import annotations

import pytest

from ipamc.read.rules import DUMP
from tests.e2e.agents.clusters import RANGE
from tests.e2e.agents.conftest import Begin, needs_ip6tables
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.test_changes import in_mode
from tests.e2e.api import MERGE, NODES
from tests.e2e.operator import Operator
from tests.e2e.site import Site, dumped, second_family
from tests.support.fleet import pool

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


def that_runs(lab: Lab, mode: str, cidr: str = RANGE) -> None:
    """Install Cilium without ipamc, and start pods."""
    if mode == "kubernetes":
        give_podcidrs(lab, {"a": "10.0.0.0/27", "b": "10.0.0.32/27", "c": "10.0.0.64/27"})
    lab.roll_out({key: value.replace(RANGE, cidr) for key, value in CONFIGS[mode].items()})
    lab.agents(lab.names)
    lab.ready()
    lab.start_pods("a1", "b1", "c1")
    assert not lab.unreachable()


def take_over(lab: Lab, owner: str) -> None:
    """Dump, import and apply; then come the new flags."""
    lab.sh(f"{DUMP.replace('kubectl', 'kubectl --context=fleet')} > ../dump.json")
    lab.sh(f"ipamc import fleet ../dump.json --operator {owner}")
    blocks = {name: [block for _, block in lines] for name, lines in lab.site.lock().items()}
    assert blocks == lab.blocks()
    lab.sh("git add . && git commit --quiet -m imported && git push --quiet origin main")
    lab.sh("ipamc apply fleet --before-flags")
    lab.roll_out()
    lab.sh("ipamc apply fleet")
    lab.agents(lab.names)
    lab.ready()


@pytest.mark.deep("cluster-pool-adopt", "multi-pool-bystander")
@pytest.mark.parametrize("owner", ["bystander", "adopt"])
@pytest.mark.parametrize("mode", CONFIGS)
def test_a_cluster_that_runs_is_taken_over_without_a_lost_packet(begin: Begin, mode: str, owner: str) -> None:
    if owner == "adopt" and mode != "cluster-pool":
        pytest.skip("adopt is of cluster-pool mode")
    lab = begin()
    that_runs(lab, mode)
    blocks = lab.blocks()
    with lab.pinging("a1", "b1", "c1") as pings:
        take_over(lab, owner)
        lab.start_pods("a2", "b2", "c2")
    assert not lost(pings)
    assert lab.blocks() == blocks
    lab.as_locked()


@pytest.mark.deep(part=0)
@pytest.mark.parametrize(
    ("mode", "owner"),
    [("cluster-pool", "bystander"), ("cluster-pool", "adopt"), ("kubernetes", "bystander")],
)
def test_a_second_family_comes_beside_blocks_that_operator_or_agents_wrote(
    begin: Begin, operator: Operator, mode: str, owner: str
) -> None:
    needs_ip6tables(operator.version)
    lab = begin()
    that_runs(lab, mode)
    take_over(lab, owner)
    lab.edits = {
        "edit-mode": lambda site: in_mode(site, {"mode": "cluster-pool"}),
        "edit-families": both_families,
    }
    before = lab.blocks()
    with lab.pinging("a1", "b1", "c1") as pings:
        if mode == "kubernetes":
            lab.play(lab.runbook("--change mode --to cluster-pool"))
        lab.play(lab.runbook("--change dual-stack"), phases=slice(0, 1))
        runbook = lab.runbook("--base HEAD~1")
        lab.play(runbook, phases=slice(0, -1))
    assert not lost(pings)
    assert {name: blocks[:1] for name, blocks in lab.blocks().items()} == before
    lab.play(runbook, phases=slice(-1, None))
    lab.start_pods("a2", "b2", "c2")
    assert all(len(pod.addresses) == 2 for pod in lab.pods.values())
    lab.as_locked()
    assert "found 0 problems" in lab.audit()


def both_families(site: Site) -> None:
    """Write IPv6 into the Cluster and its pools. The imported one serves listed nodes from now on; others have one of their own."""
    site.edit(lambda each: each["kind"] == "IPPool" and each["spec"].pop("unlisted", None))
    if site.cluster["ipam"].get("operator") == "adopt":
        spare = pool("spare", unlisted=True, ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 27})
        (site.folder / "spare.yaml").write_text(dumped([spare]))
    second_family(site)
