"""What a cluster goes through, by its runbooks and with pods that run: nodes leave and replace others, a range, a family and a mode are new."""

from __future__ import annotations

import pytest

from tests.e2e.agents.clusters import MODES, documents
from tests.e2e.agents.conftest import Begin, needs_ip6tables
from tests.e2e.agents.helm import WithHelm
from tests.e2e.agents.lab import Lab, lost
from tests.e2e.agents.test_deleted import CUT_OFF
from tests.e2e.api import CILIUM_NODES, Object
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.site import Site, second_family
from tests.e2e.test_runbook import NEW, in_front, planned
from tests.support.fleet import pool

BEFORE = {"a": ["10.0.0.0/27"], "b": ["10.0.0.32/27"], "c": ["10.0.0.64/27"]}


@pytest.mark.deep("crd")
@pytest.mark.parametrize("mode", MODES)
def test_a_node_leaves_and_nobody_else_notices(begin: Begin, mode: str) -> None:
    lab = begin(documents(mode))
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    with lab.pinging("a1", "b1") as pings:
        lab.play(lab.runbook("--change decommission --node c"))
    assert not lost(pings)
    assert sorted(lab.pods) == ["a1", "b1"]
    assert lab.blocks() == {"a": BEFORE["a"], "b": BEFORE["b"]}
    assert list(lab.site.lock("quarantined")) == ["c"]
    lab.start_pods("a2")
    lab.as_locked()


@pytest.mark.deep("shared")
@pytest.mark.parametrize("mode", MODES)
def test_a_machine_with_another_name_gets_the_blocks_of_the_one_that_it_replaces(
    begin: Begin, mode: str
) -> None:
    lab = begin(documents(mode), spare="d")
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.edits = {"edit-inventory": planned("d")}
    with lab.pinging("a1", "c1") as pings:
        lab.conditions = {"cordon", "drain"}
        lab.play(lab.runbook("--change replace-node --node b --to d"))
    assert not lost(pings)
    assert lab.blocks() == {"a": BEFORE["a"], "c": BEFORE["c"], "d": BEFORE["b"]}
    lab.start_pods("d1")
    lab.as_locked()


@pytest.mark.deep("pinned")
@pytest.mark.parametrize(
    ("mode", "kind"), [*((mode, Lab) for mode in sorted(MODES.keys() - {"shared"})), ("bystander", WithHelm)]
)
def test_a_pool_moves_to_a_new_range_node_by_node(begin: Begin, mode: str, kind: type[Lab]) -> None:
    lab = begin(documents(mode), kind=kind)
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.edits = {"edit-pool": in_front, "network": lambda _: None}
    lab.play(lab.runbook(f"--change new-range --pool default --to {NEW} --wave-size 1"), phases=slice(0, -1))
    assert lab.blocks() == {"a": ["10.7.0.0/27"], "b": ["10.7.0.32/27"], "c": ["10.7.0.64/27"]}
    lab.start_pods("a2", "b2", "c2")
    lab.as_locked()


@pytest.mark.deep("bystander-WithHelm")
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        *((mode, Lab) for mode in ("bystander", "adopt", "annotated", "crd", "pinned", "shared")),
        ("bystander", WithHelm),
    ],
)
def test_pods_have_addresses_of_both_families_once_they_started_again(
    begin: Begin, operator: Operator, mode: str, kind: type[Lab]
) -> None:
    needs_ip6tables(operator.version)
    lab = begin(documents(mode, "ab"), "ab", kind=kind)
    lab.install()
    lab.start_pods("a1", "b1")
    lab.edits = {"edit-families": second_family}
    with lab.pinging("a1", "b1") as pings:
        lab.play(lab.runbook("--change dual-stack"), phases=slice(0, 1))
        runbook = lab.runbook("--base HEAD~1")
        lab.play(runbook, phases=slice(0, -1))
    assert not lost(pings)
    assert [len(pod.addresses) for pod in lab.pods.values()] == [1, 1]
    lab.play(runbook, phases=slice(-1, None))
    lab.start_pods("a2", "b2")
    assert all(len(lab.pods[name].addresses) == 2 for name in ("a2", "b2"))
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_nobody_is_reached_over_a_family_that_is_taken_away(begin: Begin, operator: Operator) -> None:
    needs_ip6tables(operator.version)
    some = documents("bystander", "ab")
    some[0]["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    some[1]["spec"]["ipv6"] = {"cidrs": ["fd00::/116"], "blockSize": 122}
    lab = begin(some, "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    lab.as_locked()
    lab.roll_out({**lab.site.config, "enable-ipv6": "false"})
    lab.agents(lab.names)
    lab.ready()
    (four,) = (address for address in lab.pods["b1"].addresses if "." in address)
    (six,) = (address for address in lab.pods["b1"].addresses if ":" in address)
    until(lambda: not lab.pods["a1"].reaches(six), "nobody is reached over IPv6", 300)
    assert lab.pods["a1"].reaches(four)


SHARED = {"mode": "multi-pool", "pinning": "none"}
FURTHER = pool("further", ipv4={"cidrs": ["10.7.0.0/24"], "blockSize": 27}, priority=-1)


@pytest.mark.deep("bystander-ipam2", "crd-ipam9")
@pytest.mark.parametrize(
    ("old", "ipam", "kind"),
    [
        ("kubernetes", {"mode": "cluster-pool"}, Lab),
        ("bystander", {"mode": "kubernetes"}, Lab),
        ("bystander", SHARED, Lab),
        ("bystander", SHARED, WithHelm),
        ("kubernetes", SHARED, Lab),
        ("adopt", {"mode": "kubernetes"}, Lab),
        ("annotated", {"mode": "cluster-pool"}, Lab),
        ("annotated", SHARED, Lab),
        ("crd", {"mode": "cluster-pool"}, Lab),
        ("crd", {"mode": "kubernetes"}, Lab),
        ("crd", SHARED, Lab),
    ],
)
def test_in_another_mode_pods_and_nodes_keep_what_they_have(
    begin: Begin, old: str, ipam: Object, kind: type[Lab]
) -> None:
    """In multi-pool mode they may get blocks of a further pool, too, which agents without pods of that pool give back."""
    more = [FURTHER] if ipam is SHARED and old in {"bystander", "kubernetes"} else []
    lab = begin([*documents(old), *more], kind=kind)
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.edits = {"edit-mode": lambda site: in_mode(site, ipam), "list-strangers": lambda _: None}
    addresses = lab.addresses()
    with lab.pinging("a1", "b1", "c1") as pings:
        lab.play(lab.runbook(f"--change mode --to {ipam['mode']}"))
        lab.start_pods("a2", "b2", "c2")
    assert not lost(pings)
    assert {name: blocks[:1] for name, blocks in lab.blocks().items()} == BEFORE
    assert {name: lab.addresses()[name] for name in addresses} == addresses
    lab.as_locked()
    if ipam is SHARED and old == "bystander":
        live = lab.api.items(CILIUM_NODES)
        assert {name: node["spec"]["ipam"]["podCIDRs"] for name, node in live.items()} == BEFORE


@pytest.mark.deep(part=0)
@pytest.mark.parametrize("old", ["bystander", "crd"])
def test_nodes_keep_their_blocks_in_pools_of_their_own_and_are_drained_for_it(begin: Begin, old: str) -> None:
    lab = begin(documents(old))
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    merge_mode(lab, {"mode": "multi-pool", "pinning": "node"})
    lab.sh("git push --quiet origin main")
    lab.play(lab.runbook("--base HEAD~1"))
    assert lab.blocks() == BEFORE
    assert not lab.pods
    lab.start_pods("a2", "b2", "c2")
    lab.as_locked()


@pytest.mark.deep(part=0)
def test_without_a_drain_pods_are_cut_off_where_nodes_get_pools_of_their_own(begin: Begin) -> None:
    """An agent that starts looks for addresses of running pods in the pool default alone."""
    lab = begin(documents("bystander", "ab"), "ab")
    lab.install()
    lab.start_pods("a1", "b1")
    merge_mode(lab, {"mode": "multi-pool", "pinning": "node"})
    lab.sh("ipamc apply fleet --before-flags")
    lab.seed()
    lab.roll_out()
    lab.agents("ab")
    lab.ready()
    until(lambda: lab.unreachable() == CUT_OFF, "pods are cut off", 60)


def in_mode(site: Site, ipam: Object) -> None:
    """Write another mode into the Cluster; no pool is then for nodes that nobody listed."""

    def change(document: Object) -> None:
        if document["kind"] == "Cluster":
            document["spec"].update(ipam=ipam)
        if document["kind"] == "IPPool":
            document["spec"].pop("unlisted", None)

    site.edit(change)


def merge_mode(lab: Lab, ipam: Object) -> None:
    """Change the mode, with the consent that it takes, and commit it."""
    in_mode(lab.site, ipam)
    lab.sh("ipamc lock fleet --mode && ipamc compile fleet && git add -A && git commit --quiet -m mode")


@pytest.mark.deep("none-pool")
@pytest.mark.parametrize(("old", "new"), [("none", "pool"), ("pool", "none")])
def test_running_pods_keep_their_addresses_when_new_ones_get_them_of_another_pool(
    begin: Begin, old: str, new: str
) -> None:
    some = documents("shared")
    some[0]["spec"]["ipam"]["pinning"] = old
    lab = begin(some)
    lab.install()
    lab.start_pods("a1", "b1", "c1")
    lab.refreshed()
    blocks, addresses = lab.blocks(), lab.addresses_of_endpoints()
    in_mode(lab.site, {"mode": "multi-pool", "pinning": new})
    lab.sh(
        "ipamc compile fleet && git add -A && git commit --quiet -m pinning && git push --quiet origin main"
    )
    with lab.pinging("a1", "b1", "c1") as pings:
        lab.play(lab.runbook("--base HEAD~1"))
        lab.ready()
    assert not lost(pings)
    assert lab.blocks() == blocks
    assert lab.addresses_of_endpoints() == addresses
    lab.start_pods("a2", "b2", "c2")
    lab.as_locked()
