"""Cilium is upgraded by one minor, by its runbook: the operator, then its agents one after the other, with pods that ping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipamc.model.cilium.support import UNFIT, Capability
from ipamc.model.cilium.versions import can
from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import AGENTS, Begin, operator_of, servers
from tests.e2e.agents.helm import WithHelm
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.router import (
    BGP_CONTROL_PLANE,
    POLICIES,
    GoBgp,
    Router,
    announce,
    announce_by_policy,
)
from tests.e2e.agents.test_router import next_hops
from tests.e2e.api import Object
from tests.e2e.conftest import minor
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site
from tests.e2e.test_stored_versions import as_1_15_left_it, stored


@pytest.fixture
def newer(release: Path) -> Path:
    """Return the agents of the next minor."""
    major, number = minor(operator_of(release))
    found = [each for each in AGENTS if minor(operator_of(each)) == (major, number + 1)]
    if not found:
        pytest.skip(f"agents of the next minor are not among AGENTS: {major}.{number + 1}")
    return found[0]


@pytest.fixture
def operator(release: Path, newer: Path, cgroups: Path, tmp_path: Path) -> Iterator[Operator]:
    """Start servers for one test: the newer operator changes their CRDs."""
    assert cgroups.exists()
    assert newer.exists()
    folder = tmp_path / "servers"
    folder.mkdir()
    with servers(release, folder) as found:
        yield found


@pytest.fixture
def after(operator: Operator, newer: Path, tmp_path: Path) -> Operator:
    """Return the operator of the next minor, which does not run yet."""
    folder = tmp_path / "newer"
    folder.mkdir()
    own = operator_of(newer)
    return Operator(own / "cilium-operator", minor(own), operator.api, folder)


def in_version(lab: Lab, operator: Operator) -> None:
    """Write another minor into the Cluster: no block changes."""

    def change(document: Object) -> None:
        if document["kind"] == "Cluster":
            document["spec"]["cilium"].update(version=operator.minor)

    lab.site.edit(change)
    assert "0 blocks added, 0 returned, 0 left, 0 renumbered" in lab.sh("ipamc compile fleet 2>&1")


def back(lab: Lab, before: Operator, release: Path) -> None:
    """Go the same way back: the version in git first, then Cilium."""
    blocks, addresses = lab.blocks(), lab.addresses_of_endpoints()
    in_version(lab, before)
    lab.sh("ipamc apply fleet")
    lab.newer = before, release
    with lab.pinging("a1", "b1", "c1") as pings:
        lab.upgrade()
    assert not lost(pings)
    assert {node.program.parent for node in lab.nodes.values()} == {release}
    assert lab.blocks() == blocks
    assert lab.addresses_of_endpoints() == addresses


def upgrade(lab: Lab, router: Router, after: Operator, newer: Path) -> None:
    """Play the runbook of an upgrade, with pods that ping: blocks, addresses and routes are the same before and after."""
    lab.newer = after, newer

    lab.edits["edit-version"] = lambda _: in_version(lab, after)
    before_1_16 = after.version[1] in UNFIT
    if before_1_16:
        as_1_15_left_it(lab.api)
        lab.conditions.add("stored-anew")
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.as_locked()
    lab.refreshed()
    table = {} if lab.site.cluster["ipam"]["mode"] == "crd" else next_hops(lab)
    blocks, addresses = lab.blocks(), lab.addresses()
    until(lambda: router.table() == table, "the router has the blocks of the lock", 300)

    with lab.pinging("a1", "b1", "c1") as pings:
        lab.play(lab.runbook(f"--change upgrade --to {after.minor}"))
    assert not lost(pings)
    assert not before_1_16 or stored(lab.api) == ["v2"]
    assert {node.program.parent for node in lab.nodes.values()} == {newer}
    assert lab.blocks() == blocks
    assert lab.addresses_of_endpoints() == addresses
    until(lambda: router.table() == table, "the router has them still", 300)
    lab.start_pods("a2", "b2", "c2")
    lab.as_locked()


@pytest.mark.deep("bystander-WithHelm")
@pytest.mark.parametrize(("mode", "kind"), [*((mode, Lab) for mode in MODES), ("bystander", WithHelm)])
def test_an_upgrade_by_one_minor_changes_no_block_and_loses_no_packet(
    begin: Begin, after: Operator, newer: Path, release: Path, mode: str, kind: type[Lab]
) -> None:
    lab = begin(documents(mode), settings=BGP_CONTROL_PLANE, kind=kind)
    before = lab.operator
    announce(lab.api, lab.operator.version, multi_pool=mode in {"pinned", "shared"})
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        upgrade(lab, router, after, newer)
        if kind is Lab:
            table = router.table()
            back(lab, before, release)
            until(lambda: router.table() == table, "the router has them still", 300)
            lab.start_pods("a3", "b3", "c3")
            lab.as_locked()


def test_a_peering_policy_is_replaced_before_the_minor_that_has_none(
    begin: Begin, after: Operator, newer: Path
) -> None:
    """The runbook says when; nothing announces by the policy afterwards."""
    some = documents("bystander")
    some[0]["spec"]["bgp"] = "control-plane"
    lab = begin(some, settings=BGP_CONTROL_PLANE)
    has = [can(version, Capability.BGP_PEERING_POLICY) for version in (lab.operator.version, after.version)]
    if has != [True, False]:
        pytest.skip("CiliumBGPPeeringPolicy goes from 1.18 to 1.19")
    announce_by_policy(lab.api)

    def replace(_: Site) -> None:
        lab.api.delete(POLICIES)
        announce(lab.api, lab.operator.version)

    lab.edits["before"] = replace
    with GoBgp(lab.folder, [node.address for node in lab.nodes.values()]) as router:
        upgrade(lab, router, after, newer)
