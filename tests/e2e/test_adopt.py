"""`operator: adopt`: what the operator gives to nodes that nobody listed, while nodes join, leave and return.

The first part shows why the list of the operator is what it is; the second plays edits.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, NODES, Api, Object
from tests.e2e.objects import cilium_node, verdict
from tests.e2e.operator import Operator
from tests.e2e.processes import until
from tests.e2e.rules import compile_without, shows
from tests.e2e.site import Site
from tests.support.fleet import cluster, inventory, pool

IPV4 = {
    "ipam": "cluster-pool",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    "cluster-pool-ipv4-mask-size": "26",
}
IPV6 = {"enable-ipv6": "true", "cluster-pool-ipv6-mask-size": "120"}
UNKNOWN = "allocator not configured for the requested CIDR"
FULL = "allocator full"


def blocks(api: Api) -> dict[str, list[str]]:
    """Return the podCIDRs of each CiliumNode."""
    return {
        name: list(node["spec"].get("ipam", {}).get("podCIDRs", ()))
        for name, node in api.items(CILIUM_NODES).items()
    }


def verdicts(api: Api) -> dict[str, str]:
    """Return what the operator finds wrong with each CiliumNode, "" for nothing; without those that it did not look at."""
    return {
        name: verdict(node)
        for name, node in api.items(CILIUM_NODES).items()
        if "operator-status" in node.get("status", {}).get("ipam", {})
    }


def ask(api: Api, *names: str) -> dict[str, list[str]]:
    """Let nodes that nobody listed ask for blocks, one after the other; return what each gets."""
    for name in names:
        api.create(CILIUM_NODES, cilium_node(name))
        until(lambda name=name: blocks(api)[name] or verdicts(api).get(name), f"{name} is answered")  # type: ignore[misc]
    given = blocks(api)
    return {name: given[name] for name in names}


def join(api: Api, *nodes: Object) -> None:
    """Create CiliumNodes that have their blocks, and wait until the operator has looked at each."""
    api.create(CILIUM_NODES, *nodes)
    looked_at(api, *(node["metadata"]["name"] for node in nodes))


def looked_at(api: Api, *names: str) -> None:
    """Wait until the operator has looked at CiliumNodes."""
    until(lambda: set(names) <= verdicts(api).keys(), "the operator has looked at the CiliumNodes")


def leave(api: Api, name: str) -> None:
    """Let a node leave: its CiliumNode goes, and the operator's watch brings that within a second."""
    api.delete(f"{CILIUM_NODES}/{name}", f"{NODES}/{name}")
    time.sleep(1)


def twice(api: Api) -> list[str]:
    """Return what two CiliumNodes have, as blocks of /26 and /120."""
    found: Counter[str] = Counter()
    for cidrs in blocks(api).values():
        for cidr in map(ip_network, cidrs):
            size = 26 if cidr.version == 4 else 120
            found.update(map(str, cidr.subnets(new_prefix=max(size, cidr.prefixlen))))
    return sorted(block for block, count in found.items() if count > 1)


# Why held blocks of other pools are not in the list.


def test_a_block_in_the_list_goes_to_another_node_while_its_own_is_re_created(
    api: Api, operator: Operator
) -> None:
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25 10.0.0.0/26"}):
        join(api, cilium_node("listed", "10.0.0.0/26"))
        assert ask(api, "s1", "s2", "s3")["s3"] == []
        leave(api, "listed")
        assert ask(api, "s4") == {"s4": ["10.0.0.0/26"]}
        join(api, cilium_node("listed", "10.0.0.0/26"))
        assert twice(api) == ["10.0.0.0/26"]


def test_a_block_in_the_list_goes_to_a_node_that_waits_before_its_own_is_applied(
    api: Api, operator: Operator
) -> None:
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25"}):
        assert ask(api, "s1", "s2", "s3")["s3"] == []
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25 10.0.0.0/26"}):
        until(lambda: blocks(api)["s3"] == ["10.0.0.0/26"], "the node that waits is served")
        join(api, cilium_node("newcomer", "10.0.0.0/26"))
        assert twice(api) == ["10.0.0.0/26"]


def test_a_block_outside_the_list_stays_where_it_is(api: Api, operator: Operator) -> None:
    config = {**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25"}
    with operator.running(config):
        join(api, cilium_node("listed", "10.0.0.0/26"))
        assert ask(api, "s1", "s2", "s3")["s3"] == []
        leave(api, "listed")
        assert ask(api, "s4") == {"s4": []}
        join(api, cilium_node("listed", "10.0.0.0/26"))
        before = blocks(api)
        assert verdicts(api)["listed"] == f"{UNKNOWN} 10.0.0.0/26"
    with operator.running(config):
        assert ask(api, "s5") == {"s5": []}
        assert {**before, "s5": []} == blocks(api)
    # In the list of a later operator it is adopted without an error.
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25 10.0.0.0/25"}):
        until(lambda: not verdicts(api)["listed"], "the block is adopted")
        assert blocks(api)["listed"] == ["10.0.0.0/26"]


# Why blocks in use may have to be taken out of the list.


def test_an_operator_that_does_not_know_one_block_of_a_node_gives_the_other_one_away(
    api: Api, operator: Operator
) -> None:
    config = {
        **IPV4,
        **IPV6,
        "cluster-pool-ipv4-cidr": "10.9.0.0/25",
        "cluster-pool-ipv6-cidr": "fd00::/118",
    }
    with operator.running(config):
        join(api, cilium_node("mixed", "10.0.0.0/26", "fd00::/120"))
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26", "fd00::/120"]}


def test_a_block_is_booked_in_the_first_of_several_cidrs_only(api: Api, operator: Operator) -> None:
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/26 10.9.0.128/25"}):
        join(api, cilium_node("large", "10.9.0.0/24"))
        assert ask(api, "s1") == {"s1": ["10.9.0.128/26"]}


def test_with_a_shorter_mask_a_block_is_refused_to_its_node(api: Api, operator: Operator) -> None:
    """Up to 1.18 the node keeps it, and the operator does not book it; from 1.19 on it loses it, without an error."""
    with operator.running(
        {**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/23", "cluster-pool-ipv4-mask-size": "24"}
    ):
        join(api, cilium_node("n1", "10.9.0.0/26"))
        api.create(CILIUM_NODES, cilium_node("n2", "10.9.0.64/26"))
        assert ask(api, "s1") == {"s1": ["10.9.1.0/24"]}
        if operator.version < (1, 19):
            assert blocks(api)["n2"] == ["10.9.0.64/26"]
            assert "already allocated" in verdicts(api)["n2"]
        else:
            until(lambda: not blocks(api)["n2"], "the operator takes the block away")


def test_a_cidr_of_one_address_keeps_the_operator_from_giving_out_anything(
    api: Api, operator: Operator
) -> None:
    config = {
        **IPV4,
        **IPV6,
        "cluster-pool-ipv4-cidr": "10.9.0.0/32",
        "cluster-pool-ipv6-cidr": "fd00::/128",
    }
    given = {"a": ["10.9.0.0/26", "fd00::/120"], "b": ["10.9.0.64/26", "fd00::100/120"]}
    with operator.running(config):
        join(api, *(cilium_node(name, *own) for name, own in given.items()))
        assert ask(api, "s1") == {"s1": []}
        assert verdicts(api)["s1"] == FULL
    with operator.running(config):
        assert ask(api, "s2") == {"s2": []}
        assert blocks(api) == {**given, "s1": [], "s2": []}


# Edits, and who asks after them.


def site_of(
    api: Api, operator: Operator, work: Path, *pools: Object, nodes: Iterable[str] = "abc", **spec: Any
) -> Site:
    """Make a cluster with listed nodes, let them join, and compile."""
    documents = [
        cluster(ipam={"operator": "adopt"}, cilium={"managedBy": "none"}, **spec),
        *pools,
        inventory([{"name": name} for name in nodes]),
    ]
    site = Site.made(api, work, documents, operator.minor)
    site.join()
    site.compile()
    return site


def rack(*cidrs: str, **spec: Any) -> Object:
    """Make the pool of the listed nodes."""
    return pool("rack", ipv4={"cidrs": list(cidrs) or ["10.0.0.0/24"], "blockSize": 26}, **spec)


def spare(*cidrs: str, **spec: Any) -> Object:
    """Make the pool of the nodes that nobody listed."""
    return pool("spare", ipv4={"cidrs": list(cidrs), "blockSize": 26}, unlisted=True, **spec)


def edit(site: Site, name: str, **spec: Any) -> None:
    """Change fields of a pool."""

    def change(document: Object) -> None:
        if (document["kind"], document.get("metadata", {}).get("name")) == ("IPPool", name):
            document["spec"].update(spec)

    site.edit(change)


def enlist(site: Site, *names: str) -> None:
    """Add nodes to the inventory, and let them join."""
    nodes = [{"name": name} for name in names]
    site.api.create(NODES, *({"metadata": node} for node in nodes))
    site.edit(
        lambda document: document["nodes"].extend(nodes) if document["kind"] == "NodeInventory" else None
    )


def strike(site: Site, *names: str) -> None:
    """Take nodes off the inventory."""

    def without(document: Object) -> None:
        if document["kind"] == "NodeInventory":
            document["nodes"] = [node for node in document["nodes"] if node["name"] not in names]

    site.edit(without)


def dump(site: Site) -> None:
    """Write the CiliumNodes of the live cluster beside the inputs."""
    site.write("live.yaml", json.loads(site.api.kubectl("get", "ciliumnodes", "-o", "json").stdout))


def sound(site: Site, *reserved: str) -> None:
    """No address has two nodes, listed nodes have the blocks of the lock, and nobody was given what is reserved."""
    given = blocks(site.api)
    assert twice(site.api) == []
    for name, lines in site.lock().items():
        assert given.get(name, [block for _, block in lines]) == [block for _, block in lines]
    for cidr in map(ip_network, reserved):
        assert not [
            name for name, own in given.items() if any(ip_network(each).overlaps(cidr) for each in own)
        ]


@shows("IPC0516")
def test_nothing_is_given_out_that_is_reserved_excluded_disabled_or_of_another_pool(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(
        api,
        operator,
        tmp_path,
        rack(),
        spare("10.9.0.0/24", "10.9.2.0/26", reserved=["10.9.0.0/25", "10.9.0.192/27"]),
        pool("off", ipv4={"cidrs": ["10.8.0.0/24"], "blockSize": 26}, unlisted=True, disabled=True),
        pool("other", ipv4={"cidrs": ["10.7.0.0/24"], "blockSize": 26}, disabled=True),
    )
    assert site.config["cluster-pool-ipv4-cidr"] == "10.9.0.128/26 10.9.2.0/26"
    assert 'unlisted pool "spare" has room for 2 more nodes' in site.said
    with operator.running(site.config):
        site.apply()
        looked_at(api, "a", "b", "c")
        assert ask(api, "s1", "s2", "s3") == {"s1": ["10.9.0.128/26"], "s2": ["10.9.2.0/26"], "s3": []}
        sound(site, "10.9.0.0/25", "10.9.0.192/26")


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "not yet restarted"])
def test_edits_of_the_pool_of_the_operator(
    api: Api, operator: Operator, tmp_path: Path, *, restarted: bool
) -> None:
    """Append, widen, reserve, shrink, reorder, add in front: each is compiled and applied, and nodes join after it."""
    site = site_of(api, operator, tmp_path, rack("10.0.0.0/22"), spare("10.9.0.0/25"))
    edits: list[dict[str, Any]] = [
        {"ipv4": {"cidrs": ["10.9.0.0/25", "10.9.4.0/26"], "blockSize": 26}},
        {"ipv4": {"cidrs": ["10.9.0.0/24", "10.9.4.0/26"], "blockSize": 26}},
        {"reserved": ["10.9.0.0/26"]},
        {"ipv4": {"cidrs": ["10.9.4.0/26", "10.9.0.0/24"], "blockSize": 26}},
        {"ipv4": {"cidrs": ["10.9.8.0/25", "10.9.4.0/26", "10.9.0.0/24"], "blockSize": 26}},
        {"ipv4": {"cidrs": ["10.9.8.0/25", "10.9.0.0/25"], "blockSize": 26}},
        {"disabled": True},
        {"disabled": False, "reserved": []},
    ]
    config = site.config
    for number, change in enumerate(edits):
        edit(site, "spare", **change)
        if number % 3 == 1:
            enlist(site, f"l{number}")
        site.compile()
        if restarted:
            config = site.config
        with operator.running(config):
            site.apply()
            looked_at(api, *site.lock())
            before = blocks(api)
            given = ask(api, f"s{number}")
            assert {**blocks(api), **before} == {**blocks(api), **before, **given}
            sound(site)
            assert not (restarted and change.get("reserved") and given[f"s{number}"] == ["10.9.0.0/26"])
        config = site.config


def test_listed_nodes_join_leave_and_return_while_the_pool_of_the_operator_is_full(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(api, operator, tmp_path, rack(), spare("10.9.0.0/26"), nodes="ab")
    config = site.config
    with operator.running(config):
        site.apply()
        looked_at(api, "a", "b")
        assert ask(api, "s1", "s2") == {"s1": ["10.9.0.0/26"], "s2": []}
        enlist(site, "c")
        site.compile()
        assert site.config == config  # a newcomer restarts no operator
        site.apply()
        looked_at(api, "c")
        leave(api, "a")
        strike(site, "a")
        site.compile()
        assert ask(api, "s3") == {"s3": []}
        site.apply()
    with operator.running(site.config):
        assert ask(api, "s4") == {"s4": []}
        enlist(site, "a", "d")
        site.compile()
        assert site.lock()["a"] == [("rack", "10.0.0.0/26")]
        site.apply()
        looked_at(api, "a", "d")
        leave(api, "s1")
        until(
            lambda: any(blocks(api)[name] for name in ("s2", "s3", "s4")) or True, "one that waits is served"
        )
        sound(site)
        assert verdicts(api)["d"] == f"{UNKNOWN} {site.lock()['d'][0][1]}"


@shows("IPC0517")
def test_what_is_reserved_in_one_family_of_two(api: Api, operator: Operator, tmp_path: Path) -> None:
    both = {"ipv6": {"cidrs": ["fd00::/118"], "blockSize": 120}}
    site = site_of(
        api,
        operator,
        tmp_path,
        rack(ipv6={"cidrs": ["fd00:1::/118"], "blockSize": 120}),
        spare("10.9.0.0/24", **both),
        nodes="a",
        ipFamilies=["IPv4", "IPv6"],
    )
    with operator.running(site.config):
        site.apply()
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26", "fd00::/120"]}
    edit(site, "spare", reserved=["10.9.0.0/26"])
    compile_without(site, "IPC0517")
    with operator.running(site.config):
        assert ask(api, "s2") == {"s2": ["10.9.0.64/26", "fd00::/120"]}
        leave(api, "s2")
    dump(site)
    site.compile()
    with operator.running(site.config):
        site.apply()
        assert ask(api, "s3") == {"s3": ["10.9.0.64/26", "fd00::100/120"]}
        sound(site)


@shows("IPC0518", "IPC0519")
def test_a_range_of_the_operator_goes_to_another_pool(api: Api, operator: Operator, tmp_path: Path) -> None:
    site = site_of(api, operator, tmp_path, rack("10.0.0.0/26"), spare("10.9.0.0/24"), nodes="a")
    before = site.config
    with operator.running(before):
        site.apply()
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26"]}
        edit(site, "spare", ipv4={"cidrs": ["10.9.0.128/25"], "blockSize": 26})
        edit(site, "rack", ipv4={"cidrs": ["10.0.0.0/26", "10.9.0.0/25"], "blockSize": 26})
        enlist(site, "b")
        lock = (site.folder / "ipam.lock").read_text()
        flags = (site.rendered / "cilium/configmap.yaml").read_text()
        compile_without(site, "IPC0518", "IPC0519")
        site.apply()
        assert twice(api) == ["10.9.0.0/26"]  # s1 has it, and b

        # As it should be: who has blocks there is listed; nobody joins before the operator has restarted.
        leave(api, "b")
        strike(site, "b")
        (site.folder / "ipam.lock").write_text(lock)
        (site.rendered / "cilium/configmap.yaml").write_text(flags)
        enlist(site, "s1")
        dump(site)
        site.compile()
        site.apply()
        enlist(site, "c")
        assert site.lock()["s1"] == [("rack", "10.9.0.0/26")]
        sound(site)
    with operator.running(site.config):
        site.compile()
        site.apply()
        assert site.lock()["c"] == [("rack", "10.9.0.64/26")]
        assert ask(api, "s2") == {"s2": ["10.9.0.128/26"]}
        sound(site)


@shows("IPC0520")
def test_the_operator_gives_out_what_is_in_quarantine(api: Api, operator: Operator, tmp_path: Path) -> None:
    ours = rack("10.0.0.0/26", "10.9.0.0/26")
    site = site_of(api, operator, tmp_path, ours, spare("10.9.0.128/25"), nodes="ab")
    with operator.running(site.config):
        site.apply()
    leave(api, "b")
    strike(site, "b")
    site.compile()
    assert site.lock("quarantined")["b"] == [("rack", "10.9.0.0/26")]
    edit(site, "rack", ipv4={"cidrs": ["10.0.0.0/26"], "blockSize": 26})
    edit(site, "spare", ipv4={"cidrs": ["10.9.0.0/26", "10.9.0.128/25"], "blockSize": 26})
    rendered = (site.rendered / "cilium/configmap.yaml").read_text()
    compile_without(site, "IPC0520")
    with operator.running(site.config):
        site.apply()
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26"]}
        leave(api, "s1")

    # As it should be: reserved until the quarantine is over.
    (site.rendered / "cilium/configmap.yaml").write_text(rendered)
    edit(site, "spare", reserved=["10.9.0.0/26"])
    site.compile()
    with operator.running(site.config):
        site.apply()
        assert ask(api, "s2") == {"s2": ["10.9.0.128/26"]}
        sound(site, "10.9.0.0/26")


@shows("IPC0209")
def test_the_operator_gives_out_the_block_around_the_address_of_a_node(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(api, operator, tmp_path, rack(), spare("10.9.0.0/25"), nodes="a")
    site.edit(
        lambda each: each["kind"] == "NodeInventory" and each["nodes"][0].update(internalIPs=["10.9.0.9"])
    )
    assert "warning[IPC0209]" in site.compile()
    with operator.running(site.config):
        site.apply()
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26"]}


# Blocks of the operator's pool, and the lock.


def test_a_leavers_block_goes_to_another_node_and_the_line_follows(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(api, operator, tmp_path, rack(), spare("10.9.0.0/26"), nodes="a")
    with operator.running(site.config):
        site.apply()
        assert ask(api, "n9") == {"n9": ["10.9.0.0/26"]}
        enlist(site, "n9")
        dump(site)
        site.compile()
        assert site.lock()["n9"] == [("spare", "10.9.0.0/26")]

        # n9 leaves; its line waits until somebody shows the block.
        leave(api, "n9")
        strike(site, "n9")
        dump(site)
        site.compile()
        site.apply()
        assert ask(api, "n10") == {"n10": ["10.9.0.0/26"]}
        enlist(site, "n10")
        dump(site)
        site.compile()
        assert site.lock()["n10"] == [("spare", "10.9.0.0/26")]
        assert not site.lock("quarantined")

        # n10 leaves and n11 has the block before anybody looks.
        leave(api, "n10")
        assert ask(api, "n11") == {"n11": ["10.9.0.0/26"]}
        enlist(site, "n11")
        strike(site, "n10")
        dump(site)
        site.compile()
        assert site.lock()["n11"] == [("spare", "10.9.0.0/26")]
        assert not site.lock("quarantined")
        site.apply()
        sound(site)
    with operator.running(site.config):
        site.apply()
        assert ask(api, "n12") == {"n12": []}
        assert blocks(api)["n11"] == ["10.9.0.0/26"]


def test_a_listed_node_that_comes_back_keeps_the_block_that_the_operator_gave_it_then(
    api: Api, operator: Operator, tmp_path: Path
) -> None:
    site = site_of(api, operator, tmp_path, rack(), spare("10.9.0.0/25"), nodes="a")
    with operator.running(site.config):
        site.apply()
        assert ask(api, "n9") == {"n9": ["10.9.0.0/26"]}
        enlist(site, "n9")
        dump(site)
        site.compile()
        leave(api, "n9")
        assert ask(api, "n10", "n9") == {"n10": ["10.9.0.64/26"], "n9": ["10.9.0.0/26"]}
        leave(api, "n9")
        leave(api, "n10")
        assert ask(api, "n9", "n10") == {"n9": ["10.9.0.64/26"], "n10": ["10.9.0.0/26"]}
        site.apply()  # the lock has the block that n10 has now, and renders it for nobody
        assert site.lock()["n9"] == [("spare", "10.9.0.0/26")]
        assert blocks(api)["n9"] == ["10.9.0.64/26"]
        assert twice(api) == []
        dump(site)
        site.compile()
        assert site.lock()["n9"] == [("spare", "10.9.0.64/26")]
        site.apply()
        sound(site)


def test_a_node_moves_from_the_operators_pool_to_ours(api: Api, operator: Operator, tmp_path: Path) -> None:
    """Its CiliumNode is deleted before the new block is applied: up to 1.18 the operator books the old one else, from 1.19 on it undoes the new one."""
    site = site_of(api, operator, tmp_path, rack(), spare("10.9.0.0/26"), nodes="a")
    with operator.running(site.config):
        site.apply()
        assert ask(api, "n9") == {"n9": ["10.9.0.0/26"]}
        enlist(site, "n9")
        dump(site)
        site.compile()
        site.run("lock", site.name, "--renumber", "n9")
        site.compile()
        site.apply()
        assert blocks(api)["n9"] == ["10.9.0.0/26"]
        site.run("lock", site.name, "--settle", "n9")
        site.compile()
        assert "conflict" in api.apply(site.build()).stderr  # the operator owns the list
        leave(api, "n9")
        api.create(NODES, {"metadata": {"name": "n9"}})
        site.apply()
        looked_at(api, "n9")
        assert site.lock()["n9"] == [("rack", "10.0.0.64/26")]
        assert ask(api, "s1") == {"s1": ["10.9.0.0/26"]}
        (site.folder / "live.yaml").unlink()
        dump(site)
        site.compile()
        sound(site)


def test_a_manifest_with_the_block_that_a_node_had_once_gives_it_to_two(api: Api, operator: Operator) -> None:
    """Why nothing is rendered for nodes that have their block from the operator: up to 1.18 it would stay so, from 1.19 on be undone each time."""
    with operator.running({**IPV4, "cluster-pool-ipv4-cidr": "10.9.0.0/25"}):
        assert ask(api, "n9", "n10") == {"n9": ["10.9.0.0/26"], "n10": ["10.9.0.64/26"]}
        api.applied(json.dumps(cilium_node("n9", "10.9.0.64/26")), "--force-conflicts")
        if operator.version < (1, 19):
            until(lambda: "conflict" in verdicts(api)["n9"], "the operator says so")
            assert twice(api) == ["10.9.0.64/26"]
        else:
            until(lambda: blocks(api)["n9"] == ["10.9.0.0/26"], "the operator undoes it")
