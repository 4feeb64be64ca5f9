"""The proof itself: a deliberate bug in what was rendered makes it fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.operator import Operator
from tests.e2e.proof import prove
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

NODES = [{"name": f"node-{number}"} for number in range(3)]
DUAL = {
    "ipv4": {"cidrs": ["10.0.0.0/20"], "blockSize": 26},
    "ipv6": {"cidrs": ["fd00::/112"], "blockSize": 122},
}
SPARE = {
    "ipv4": {"cidrs": ["10.0.16.0/24", "10.0.18.0/24"], "blockSize": 26},
    "ipv6": {"cidrs": ["fd00:0:0:1::/120"], "blockSize": 122},
    "unlisted": True,
}
ADOPT = [
    cluster(
        "cluster-pool", ipam={"operator": "adopt"}, cilium={"managedBy": "none"}, ipFamilies=["IPv4", "IPv6"]
    ),
    pool("default", **DUAL),
    pool("spare", **SPARE),
    inventory(NODES),
]
MULTI = [
    cluster("multi-pool", ipam={"pinning": "pool"}, cilium={"managedBy": "none"}),
    pool("default", ipv4={"cidrs": ["10.0.0.0/20"], "blockSize": 27}),
    inventory(NODES),
]


def edit(path: str, change: Callable[[str], str]) -> Callable[[Site], None]:
    """Make a mutation that changes one rendered file."""

    def mutate(site: Site) -> None:
        file = site.rendered / path
        before = file.read_text()
        after = change(before)
        assert after != before
        file.write_text(after)

    return mutate


def swapped(text: str) -> str:
    """Give two nodes each other's block."""
    return (
        text.replace("10.0.0.0/26", "SWAP")
        .replace("10.0.0.64/26", "10.0.0.0/26")
        .replace("SWAP", "10.0.0.64/26")
    )


def another_order(text: str) -> str:
    """Leave the order to kustomize."""
    return text.replace("sortOptions:\n  order: fifo\n", "")


def six_first(text: str) -> str:
    """Write the IPv6 block of each node first."""
    return re.sub(r"( +- 10\S+\n)( +- \"fd\S+\n)", r"\2\1", text)


def seed_inside(site: Site) -> None:
    """Let the root apply the seeds, with everything else, each time."""
    (site.rendered / "seeds.yaml").write_text((site.rendered / "seeds/000.yaml").read_text())
    edit("kustomization.yaml", lambda text: f"{text}- seeds.yaml\n")(site)


def commas(text: str) -> str:
    """Join the ranges by commas."""
    return text.replace("10.0.16.0/24 10.0.18.0/24", "10.0.16.0/24,10.0.18.0/24")


def another_block(text: str) -> str:
    """Give a node a block that the lock does not have."""
    return text.replace("10.0.0.0/26", "10.0.9.0/26")


CILIUM_NODES = "ciliumnodes/000/ciliumnodes.yaml"
COMMAS = edit("cilium/configmap.yaml", commas)
MUTATIONS: dict[str, tuple[list[dict[str, object]], Callable[[Site], None], str]] = {
    "two blocks swapped": (ADOPT, edit(CILIUM_NODES, swapped), "10.0.0.64/26"),
    "a block that is not in the lock": (ADOPT, edit(CILIUM_NODES, another_block), "10.0.9.0/26"),
    "a comma in a list of the ConfigMap": (ADOPT, COMMAS, "the program ended"),
    "families unsorted": (ADOPT, edit(CILIUM_NODES, six_first), "fd00::40/122"),
    "kustomize's own order": (
        MULTI,
        edit("kustomization.yaml", another_order),
        "another order than our files",
    ),
    "a seed inside the root": (MULTI, seed_inside, "conflict with .cilium-operator."),
}


@pytest.mark.deep("the operator runs")
@pytest.mark.parametrize("running", [True, False], ids=["the operator runs", "it is started later"])
@pytest.mark.parametrize("bug", MUTATIONS)
def test_the_proof_fails_for(
    api: Api, operator: Operator, tmp_path: Path, bug: str, *, running: bool
) -> None:
    documents, mutate, why = MUTATIONS[bug]
    if mutate is COMMAS and operator.version >= (1, 20):
        pytest.skip("this operator reads lists with commas, too")
    if documents is MULTI and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = Site.made(api, tmp_path, documents, operator.minor)
    site.join()
    site.compile()
    mutate(site)
    with pytest.raises(AssertionError, match=why):
        prove(site, operator, running=running)


@pytest.mark.parametrize("documents", [ADOPT, MULTI], ids=["adopt", "multi-pool"])
def test_and_holds_without(
    api: Api, operator: Operator, tmp_path: Path, documents: list[dict[str, object]]
) -> None:
    if documents is MULTI and operator.version < (1, 15):
        pytest.skip("multi-pool mode with pinning needs Cilium 1.15")
    site = Site.made(api, tmp_path, documents, operator.minor)
    site.join()
    site.compile()
    prove(site, operator, running=True)
