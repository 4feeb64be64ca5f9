"""Admission policies on real kube-apiservers: on no path, in no form and with no identity does a node get addresses of another one."""

from __future__ import annotations

import itertools
import json
from http import HTTPStatus as Status
from typing import Any

import pytest

from tests.e2e.api import CILIUM_NODES, MERGE, NODES, POOLS, Object
from tests.e2e.joins import ANNOTATIONS, LISTED, MODES, NAMED, STRANGER, Play, claims
from tests.e2e.objects import asks, cilium_node, ip_pool
from tests.e2e.processes import until
from tests.e2e.test_admission import Begin, begin, has_policies, servers
from tests.e2e.writes import (
    ADMIN,
    AGENT,
    IDENTITIES,
    OPERATOR,
    changes,
    forms,
    nobody_has_anothers,
    requests,
    send,
    with_change,
)

__all__ = ["begin", "servers"]  # fixtures


def settled(play: Play) -> list[str]:
    """Let two nodes and a stranger join, the second with what agents and the operator write; return the blocks of a third."""
    if play.mode == "pinned" and play.api.minor < (1, 31):
        pytest.skip("policies of this kube-apiserver cannot ask whether a CIDR is in another one")
    for name in (LISTED[0], LISTED[1], STRANGER):
        play.join(name)
    for name in (LISTED[0], STRANGER):
        play.ordinary(name, "a")
    return play.given(LISTED[2])


def content(whole: Object) -> Object:
    """Return what of an object a write may change here."""
    return {**whole["metadata"].get("annotations", {}), **whole["spec"]}


@pytest.mark.deep("annotated", "shared")
@pytest.mark.parametrize("mode", MODES)
def test_nobody_gets_the_block_of_another_node(begin: Begin, servers: Any, mode: str) -> None:
    play = has_policies(begin, servers, mode)
    blocks = settled(play)
    for name, block, who in itertools.product((LISTED[0], STRANGER), blocks, IDENTITIES):
        for form in forms(block) if who == "admin" else [block]:
            for path, change in changes(play, name, form):
                before = play.api.get(f"{path}/{name}")
                for answer in requests(play.api, path, name, change, who):
                    if answer.code < Status.BAD_REQUEST:
                        nobody_has_anothers(play, (who, name, path, change, answer.body))
                        if content(play.api.get(f"{path}/{name}")) != content(before):
                            play.leave(name)
                            play.join(name)
    play.as_git_says()
    for name in (LISTED[0], STRANGER):
        play.ordinary(name, "b")


@pytest.mark.deep("annotated", "shared")
@pytest.mark.parametrize("mode", MODES)
def test_nobody_is_created_with_the_block_of_another_node(begin: Begin, servers: Any, mode: str) -> None:
    play = has_policies(begin, servers, mode)
    (block, *_) = settled(play)
    for name, who, form in itertools.product((LISTED[3], "unknown"), IDENTITIES, forms(block)):
        for path, change in changes(play, name, form):
            body = with_change(path, name, change)
            send(play.api, "POST", path, body, "application/json", name, who)
            nobody_has_anothers(play, (who, body))
            play.leave(name)


def may(play: Play, path: str, body: Object, user: tuple[str, ...] = ADMIN) -> bool:
    """Tell whether an object may be written so, in a dry run; what is refused names git's commit."""
    url, name = f"{path}?dryRun=All", body["metadata"]["name"]
    answer = play.api.ask("POST", url, body, user=user)
    if answer.code == Status.CONFLICT:
        answer = play.api.ask("PATCH", f"{path}/{name}?dryRun=All", {"spec": body["spec"]}, MERGE, user=user)
    if answer.code >= Status.BAD_REQUEST:
        assert f"(commit {play.commit})" in answer.message, answer.message
        return False
    return True


def test_the_operator_alone_gives_a_block_of_its_pool_again(begin: Begin, servers: Any) -> None:
    """A node that is listed later has the operator's block. The operator may give that to another one when the node is gone."""
    play = has_policies(begin, servers, "adopt")
    with servers.running(play.site.config, *play.site.arguments):
        play.join(STRANGER)
        until(lambda: play.blocks(STRANGER) != [], "the operator gives a block")
    (block,) = play.blocks(STRANGER)
    play.site.edit(lambda each: each["kind"] == "NodeInventory" and each["nodes"].append({"name": STRANGER}))
    play.site.write("live.yaml", play.api.get(CILIUM_NODES))
    play.site.compile()
    play.apply()
    assert play.given(STRANGER) == [block]
    assert play.touch(STRANGER, "b").code == Status.OK
    assert not may(play, CILIUM_NODES, cilium_node("unknown", block))
    assert not may(play, CILIUM_NODES, cilium_node("unknown", block), AGENT)
    assert may(play, CILIUM_NODES, cilium_node("unknown", block), OPERATOR)
    assert may(play, CILIUM_NODES, cilium_node("unknown", "10.9.0.224/27"))
    for wider in ("10.9.0.0/24", "10.9.0.0/26", "10.9.0.224/28", "::ffff:10.9.0.224/123", "10.1.0.0/27"):
        assert not may(play, CILIUM_NODES, cilium_node("unknown", wider), OPERATOR)
    play.leave(STRANGER)
    assert may(play, CILIUM_NODES, cilium_node(STRANGER, block))


def entries(name: str, pool: str, *cidrs: str) -> Object:
    """Make a CiliumNode with blocks of a pool."""
    return cilium_node(name, pools={"allocated": [{"pool": pool, "cidrs": list(cidrs)}]})


def test_the_operator_gives_blocks_of_shared_pools_and_none_that_git_lists_by_name(
    begin: Begin, servers: Any
) -> None:
    play = has_policies(begin, servers, "shared")
    (planned,), free = play.given(LISTED[0]), "10.1.7.224/27"
    for user in (OPERATOR, ADMIN):
        assert may(play, CILIUM_NODES, entries(STRANGER, "default", free), user)
        assert may(play, CILIUM_NODES, entries(LISTED[0], "default", planned, free), user)
        assert may(play, CILIUM_NODES, entries(STRANGER, "team-blue", "10.99.0.0/20"), user)
        assert not may(play, CILIUM_NODES, entries(STRANGER, "default", free, planned), user)
        assert not may(play, CILIUM_NODES, entries(STRANGER, "team-blue", planned), user)
        assert not may(play, CILIUM_NODES, entries(STRANGER, "default", "10.1.4.0/22"), user)

    # They run: git no longer lists their blocks by name, and the operator may give them when they are gone.
    play.site.edit(
        lambda each: each["kind"] == "NodeInventory" and [node.pop("planned", 0) for node in each["nodes"]]
    )
    play.site.write(
        "live.yaml",
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [entries(name, "default", *play.given(name)) for name in LISTED],
        },
    )
    play.site.compile()
    play.apply()
    assert not may(play, CILIUM_NODES, entries(STRANGER, "default", planned))
    assert may(play, CILIUM_NODES, entries(STRANGER, "default", planned), OPERATOR)


@pytest.mark.parametrize("mode", ["shared", "pinned"])
def test_a_pool_is_as_git_says(begin: Begin, mode: str) -> None:
    play = begin(mode)
    ranges = "10.1.0.0/21"
    if mode == "shared":
        for user in (ADMIN, AGENT, OPERATOR):
            assert may(play, POOLS, ip_pool("default", ranges), user)
            assert not may(play, POOLS, ip_pool("default", "10.1.0.0/22"), user)
            assert not may(play, POOLS, ip_pool("default", ranges, "10.7.0.0/24"), user)
            assert not may(play, POOLS, ip_pool("default", ranges, size=28), user)
            both = ip_pool("default", ranges)
            both["spec"]["ipv6"] = {"cidrs": ["fd00::/112"], "maskSize": 120}
            assert not may(play, POOLS, both, user)
        label = {"metadata": {"labels": {"a": "b"}}}
        assert play.api.ask("PATCH", f"{POOLS}/default", label, MERGE).code == Status.OK
    for name in ("team-blue", "team.blue", "zzz"):
        assert may(play, POOLS, ip_pool(name, "10.99.0.0/24", "10.2.0.0/24"))
        for over in (ranges, "10.1.3.0/24", "10.0.0.0/8", "10.1.1.7/27", "::ffff:10.1.0.0/120", "0.0.0.0/0"):
            if play.api.minor >= (1, 31) or over == ranges:
                assert not may(play, POOLS, ip_pool(name, "10.99.0.0/24", over))


def test_git_and_its_job_change_a_shared_pool(begin: Begin, servers: Any) -> None:
    """Policies come first: a range is added, and leaves again."""
    play = has_policies(begin, servers, "shared")
    for cidrs in (["10.1.0.0/21", "10.7.0.0/24"], ["10.1.0.0/21"]):
        pool = next(each for each in play.site.documents() if each["kind"] == "IPPool")
        pool["spec"]["ipv4"]["cidrs"] = cidrs
        play.site.write("01-ippool.yaml", pool)
        play.site.compile()
        assert "applied" in play.apply()
        assert play.api.get(f"{POOLS}/default")["spec"]["ipv4"]["cidrs"] == cidrs


@pytest.mark.parametrize("mode", ["kubernetes", "annotated"])
def test_an_unknown_node_has_no_block(begin: Begin, servers: Any, mode: str) -> None:
    """Neither as it registers, nor by a CiliumNode alone: agents route to it what that says."""
    play = has_policies(begin, servers, mode)
    (block,) = play.given(LISTED[0])
    for key in ANNOTATIONS:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "unknown", "annotations": {key: block}},
        }
        answer = play.api.ask("POST", NODES, node, kubelet="unknown")
        assert "git gives unknown no block, not" in answer.message
    assert not may(play, CILIUM_NODES, cilium_node("unknown", block))
    assert not may(play, CILIUM_NODES, cilium_node("unknown", "10.200.0.0/27"))
    assert may(play, CILIUM_NODES, cilium_node(LISTED[0], block), AGENT)


@pytest.mark.parametrize("mode", ["bystander", pytest.param("kubernetes", marks=pytest.mark.deep)])
def test_two_nodes_that_claim_one_address_are_an_error_of_the_audit(
    begin: Begin, servers: Any, mode: str
) -> None:
    """A policy sees one object, and cannot know whether the node that had the address is gone."""
    if servers.api.minor < (1, 34):
        pytest.skip("blocks that follow from addresses need a MutatingAdmissionPolicy")
    play = begin(mode)
    play.join(NAMED)
    play.places["twin"] = play.places[NAMED]
    play.join("twin")
    assert play.blocks("twin") == play.blocks(NAMED) == play.given(NAMED)
    dump = {"apiVersion": "v1", "kind": "List", "items": [*play.objects()]}
    (play.site.work / "dump.json").write_text(json.dumps(dump))
    said = play.site.run("audit", play.site.name, "dump.json", code=1)
    assert f"error[IPC0910]: nodes {NAMED} and twin both have {play.given(NAMED)[0]}" in said


def test_the_operator_creates_pools_with_the_values_of_git(begin: Begin, servers: Any) -> None:
    """And nodes that ask get blocks of them, with policies on."""
    if servers.api.minor < (1, 34):
        pytest.skip("planned nodes have no block before they join")
    play = begin("created")
    api, site = play.api, play.site
    with servers.running(site.config, *site.arguments):
        until(lambda: "default" in api.items(POOLS), "the operator creates its pool")
        for name in ("n1", "n2"):
            api.create(CILIUM_NODES, cilium_node(name, pools=asks("default", 40)))
        until(lambda: all(len(claims(api)[name]) == 2 for name in ("n1", "n2")), "each node has two blocks")
    nobody_has_anothers(play, claims(api))
    assert not may(play, POOLS, ip_pool("default", "10.1.0.0/22"))
