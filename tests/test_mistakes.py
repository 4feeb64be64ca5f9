"""What people get wrong, from the mistake to the mended state: nobody is renumbered, and every step says what is true.

`Play.compile` asserts after each step that every node keeps the blocks that it held; `changes_nothing`, that the mended state is the one before.
"""

from __future__ import annotations

import copy
from ipaddress import ip_network
from typing import Any

import pytest

from tests.support import fleet
from tests.support.play import MODES, Play, node

every_mode = pytest.mark.parametrize("mode", MODES)


@every_mode
def test_a_selector_with_a_misspelt_label(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", nodeSelector='rak == "a"')
    step = play.compile()
    assert step.errors == set()
    assert step.warnings >= {"IPC0304", "IPC0310"}
    assert "pool rack-a no longer selects 4 nodes: a-1 (10.1.0.0/28), a-2" in step.text
    assert (
        "no node has the label 'rak', which the nodeSelector of pool \"rack-a\" tests; the pool selects no node"
        in step.text
    )
    assert "did you mean 'rack'?" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_newcomer_beside_a_misspelt_label_is_refused_with_the_cause(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", nodeSelector='rack == "A"')
    play.nodes.append(node("a-5"))
    step = play.compile()
    assert step.errors == {"IPC0302"}
    assert 'pool "rack-a" selects no node: no node has rack=A' in step.text
    assert "did you mean rack=a?" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_label_changed_and_mended(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    was = play.was(before)
    play.label("a-1", rack="b")
    step = play.compile()
    assert "pool rack-a no longer selects 1 node: a-1 (10.1.0.0/28)" in step.text
    if play.one_block:
        play.changes_nothing(before, play.mended(before))
        return
    # Every pool that selects a node serves it, so the node got a block of the other rack, and its pods may use it by now.
    step = play.mended(before)
    assert play.held == {**was.held, "a-1": {"10.1.0.0/28", "10.2.0.64/28"}}
    assert "pool rack-b no longer selects 1 node: a-1 (10.2.0.64/28)" in step.text
    refused = play.compile(renumber=("10.2.0.64/28",))
    assert (
        "drain a-1, remove it from the inventory, and run ipamc lock fleet; then: ipamc lock fleet --release 10.2.0.64/28"
        in refused.text
    )
    play.nodes.pop(0)
    assert not play.compile().errors
    assert not play.compile(release=("10.2.0.64/28",)).errors
    play.mended(before)
    assert play.held == was.held
    assert play.files == before.files


@every_mode
def test_all_labels_lost_and_found(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    for each in play.nodes:
        each["labels"] = {}
    step = play.compile()
    assert step.errors == set()
    assert (
        "no node has the label 'rack', which 2 pools test: rack-a, rack-b; 2 of these select no node"
        in step.text
    )
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_pool_disabled_and_enabled(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", disabled=True)
    assert play.compile().errors == set()
    play.nodes.append(node("a-5"))
    step = play.compile()
    assert step.errors == {"IPC0302"}
    assert "rack-a is disabled" in step.text
    assert "enable pool rack-a, label the node" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_pool_deleted_and_put_back(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    gone = play.documents.pop("rack-a")
    step = play.compile()
    assert "IPC0410" in step.errors
    assert "restore the range" in step.text
    play.documents["rack-a"] = gone
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_pool_deleted_where_blocks_outside_pools_are_held(mode: str) -> None:
    play = Play(mode)
    play.spec("cluster", unpooled="hold")
    before = play.start()
    del play.documents["rack-a"]
    step = play.compile()
    # A shared pool that was published does not lose what the operator may have given out.
    assert step.errors == ({"IPC0538"} if mode == "multi-pool" else set())
    assert play.held["a-1"] == {"10.1.0.0/28"}
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_the_inventory_of_another_cluster(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["nodes"] = fleet.inventory([node(f"b-{number}") for number in range(11, 19)])
    step = play.compile()
    assert step.errors == {"IPC0418"}
    assert "8 nodes of 8 left the inventory, but budget.leave allows 3" in step.text
    assert "is this the inventory of another cluster?" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_the_inventory_of_a_smaller_cluster_with_the_same_names(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["nodes"] = fleet.inventory([node(name) for name in ("a-1", "a-2", "a-3", "b-1", "b-2")])
    step = play.compile()
    assert step.errors == set()
    assert play.quarantined.keys() == {"a-4", "b-3", "b-4"}
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_the_inventory_of_a_larger_cluster_with_the_same_names(mode: str) -> None:
    """Those that were never here get blocks, and leave them in quarantine: nothing tells them from nodes that left."""
    play = Play(mode)
    before = play.start()
    play.nodes.extend(node(f"a-{number}") for number in (5, 6))
    assert play.compile().errors == set()
    step = play.mended(before)
    assert play.quarantined.keys() == {"a-5", "a-6"}
    assert play.held == play.was(before).held
    assert play.files == before.files
    assert {former.line.node for former in play.since(before, step).lines.left} <= {"a-5", "a-6"}


@every_mode
def test_a_pool_renamed_and_renamed_back(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["rack-a"]["metadata"]["name"] = "row-1"
    step = play.compile()
    if mode.startswith("multi-pool"):
        assert "IPC0414" in step.errors, step.text
        assert "name it rack-a again" in step.text
    else:
        assert step.errors == set()
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_addresses_reserved_and_given_back(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", reserved=["10.1.0.0/27"])
    step = play.compile()
    assert step.errors or "overlaps reserved 10.1.0.0/27" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_cidr_excluded_over_held_blocks(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("cluster", excludedCIDRs=["10.1.0.0/25"])
    step = play.compile()
    assert "IPC0208" in step.errors
    play.spec("rack-a", reserved=["10.1.0.0/25"])
    step = play.compile()
    assert step.errors
    if mode != "multi-pool":  # there it is refused that what was published is reserved
        assert step.errors == {"IPC0411"}
        assert "remove 10.1.0.0/25 from excludedCIDRs" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_file_of_nodes_twice(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["nodes (1)"] = copy.deepcopy(play.documents["nodes"])
    step = play.compile()
    assert step.errors == {"IPC0103"}
    assert len(step.found) == 1  # for both files together, and not for each of their nodes
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_priority_changed_and_changed_back_with_a_newcomer_between(mode: str) -> None:
    play = Play(mode)
    play.documents["spare"] = fleet.pool(
        "spare", ipv4={"cidrs": ["10.9.0.0/24"], "blockSize": 28}, priority=-1
    )
    before = play.start()
    play.spec("spare", priority=1)
    if play.compile().errors == {
        "IPC0536"
    }:  # it would be the first pool, of which nodes have pools of their own
        play.changes_nothing(before, play.mended(before))
        return
    play.nodes.append(node("a-5"))
    assert play.compile().errors == set()
    if play.one_block:
        assert play.held["a-5"] == {"10.9.0.0/28"}
    play.spec("spare", priority=-1)
    step = play.compile()
    assert step.errors == set()
    lines = play.since(before, step).lines
    assert {added.line.node for added in lines.added} == {"a-5"}
    assert not lines.pending
    assert not lines.left
    assert {name: held for name, held in play.held.items() if name != "a-5"} == Play(
        mode, lock=before.lock
    ).held


@every_mode
def test_a_block_size_changed_and_changed_back(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", ipv4={"cidrs": ["10.1.0.0/24"], "blockSize": 27})
    step = play.compile()
    if mode == "multi-pool":
        assert "IPC0524" in step.errors, step.text
        assert "set blockSize: 28 again" in step.text
    else:
        assert step.errors == set()
        assert "pool rack-a now hands out /27, but a /28 is held by 4 nodes" in step.text
    play.changes_nothing(before, play.mended(before))


@pytest.mark.deep(part=3)
@every_mode
@pytest.mark.parametrize("families", [["IPv6"], ["IPv6", "IPv4"], ["IPv4", "IPv6"]], ids=" ".join)
def test_families_that_no_pool_has(mode: str, families: list[str]) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("cluster", ipFamilies=families)
    step = play.compile()
    assert step.errors
    play.changes_nothing(before, play.mended(before))


@pytest.mark.deep(part=3)
@every_mode
@pytest.mark.parametrize("families", [["IPv6"], ["IPv4"]], ids=" ".join)
def test_a_family_taken_away(mode: str, families: list[str]) -> None:
    play = Play(mode, (4, 6))
    play.spec("cluster", ipFamilies=["IPv4", "IPv6"])
    before = play.start()
    play.spec("cluster", ipFamilies=families)
    step = play.compile()
    assert "IPC0412" in step.errors
    assert "to ipFamilies again" in step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_families_in_another_order(mode: str) -> None:
    play = Play(mode, (4, 6))
    play.spec("cluster", ipFamilies=["IPv4", "IPv6"])
    before = play.start()
    play.spec("cluster", ipFamilies=["IPv6", "IPv4"])
    play.compile()
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_family_added_and_taken_away(mode: str) -> None:
    """A family of which nodes hold blocks stays: pods may use them. The blocks of the first family stay in any case."""
    play = Play(mode, (4, 6))
    before = play.start()
    play.spec("cluster", ipFamilies=["IPv4", "IPv6"])
    assert not play.compile().errors
    play.documents = play.was(before).documents
    step = play.compile()
    assert step.errors == {"IPC0412"}
    assert "add IPv6 to ipFamilies again" in step.text


@every_mode
def test_a_selector_misspelt_where_nodes_without_a_pool_are_skipped(mode: str) -> None:
    play = Play(mode)
    play.spec("cluster", unmatchedNodes="skip")
    before = play.start()
    play.spec("rack-a", nodeSelector={"matchLabels": {"rakc": "a"}})
    play.nodes.append(node("a-5"))
    step = play.compile()
    assert step.errors == set()
    assert "1 node skipped without a candidate pool: a-5" in step.text
    assert "did you mean 'rack'?" in step.text
    assert "a-5" not in play.held
    play.spec("rack-a", nodeSelector=before.documents["rack-a"]["spec"]["nodeSelector"])
    step = play.compile()
    assert play.held == {**play.was(before).held, "a-5": {"10.1.0.64/28"}}
    assert {added.line.node for added in play.since(before, step).lines.added} == {"a-5"}


@every_mode
def test_a_range_with_a_wrong_digit(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", ipv4={"cidrs": ["10.11.0.0/24"], "blockSize": 28})
    step = play.compile()
    assert step.errors
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_the_rendered_tree_deleted(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.files = {}
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_lock_deleted_and_restored(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.lock = None
    step = play.compile()
    assert step.errors == {"IPC0401"}
    assert "git checkout HEAD -- clusters/fleet/ipam.lock" in step.text
    play.lock = before.lock
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_the_lock_of_another_cluster(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.lock = before.lock.replace('"cluster":"fleet"', '"cluster":"other"')
    step = play.compile()
    assert step.errors == {"IPC0405"}, step.text
    play.lock = before.lock
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_an_inventory_without_nodes(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["nodes"] = fleet.inventory([])
    assert play.compile().errors == {"IPC0420"}
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_range_shrunk_and_widened_again(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.spec("rack-a", ipv4={"cidrs": ["10.1.0.0/27"], "blockSize": 28})
    step = play.compile()
    assert "IPC0410" in step.errors
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_another_mode(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    play.documents["cluster"]["spec"]["ipam"]["mode"] = "cluster-pool" if mode != "cluster-pool" else "crd"
    step = play.compile()
    assert "IPC0406" in step.errors, step.text
    play.changes_nothing(before, play.mended(before))


@every_mode
def test_a_renumber_agreed_to_and_cancelled(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    assert not play.compile(renumber=("a-1",)).errors
    assert not play.compile(release=("a-1",)).errors
    step = play.mended(before)
    assert play.held == play.was(before).held
    assert play.files == before.files
    assert not play.since(before, step).lines.pending


@every_mode
def test_a_truncated_inventory_that_was_agreed_to(mode: str) -> None:
    play = Play(mode)
    before = play.start()
    del play.nodes[1:]
    assert play.compile().errors == {"IPC0418", "IPC0419"}
    assert not play.compile(leave=("all",)).errors
    assert len(play.quarantined) == 7
    play.changes_nothing(before, play.mended(before))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "multi-pool"])
def test_the_dump_of_another_cluster_with_the_same_names(mode: str) -> None:
    """In shared pools of multi-pool mode the operator decides, and the lines follow what it shows."""
    play = Play(mode)
    play.start()
    blocks = {name: min(blocks) for name, blocks in play.held.items()}
    show(play, blocks)
    assert not play.compile().errors
    before = play.keep()
    racks = ("a", "b")
    show(
        play, {f"{rack}-{number}": blocks[f"{rack}-{5 - number}"] for rack in racks for number in range(1, 5)}
    )
    step = play.compile()
    assert step.errors, step.text
    assert "10.1.0.48/28" in step.text or "10.1.0.48 on" in step.text
    assert "but the lock holds 10.1.0.0/28" in step.text
    play.changes_nothing(before, play.mended(before))


def show(play: Play, blocks: dict[str, str]) -> None:
    """Have the running cluster show a block of each node: as podCIDRs of Nodes, or in CiliumNodes."""
    for name, block in blocks.items():
        pool = f"rack-{name[0]}.{name}"
        ipam: Any = {
            "kubernetes": {},
            "cluster-pool": {"podCIDRs": [block]},
            "crd": {"pool": {str(address): {} for address in ip_network(block)}},
            "multi-pool pinned by node": {"pools": {"allocated": [{"pool": pool, "cidrs": [block]}]}},
        }[play.mode]
        if ipam:
            metadata = {"name": name}
            play.documents[f"CiliumNode {name}"] = {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumNode",
                "metadata": metadata,
                "spec": {"ipam": ipam},
            }
        else:
            next(each for each in play.nodes if each["name"] == name)["podCIDRs"] = [block]
