"""What must not be written now: blocks that pods use, blocks of other nodes, pools in use."""

from __future__ import annotations

import pytest

from ipamc.model.cidr import read_blocks
from ipamc.review.live.apply import (
    Pod,
    grows,
    held_by_others,
    lost,
    moves,
    shared_pools_in_use,
    used_by_pods,
)
from tests.review.live.objects import Made, by_identity, cilium_node, node, ours, pool

ANNOTATION = "network.cilium.io/ipv4-pod-cidr"
A, B, C = "10.0.0.0/27", "10.0.0.32/27", "10.0.0.64/27"
SIX = "fd00::/123"


@pytest.mark.parametrize(
    ("live", "tree", "expected"),
    [
        pytest.param(cilium_node("n", A), cilium_node("n", A), [], id="the same"),
        pytest.param(cilium_node("n"), cilium_node("n", A), [], id="live but empty"),
        pytest.param(cilium_node("n", A), cilium_node("n", B), [A], id="another"),
        pytest.param(cilium_node("n", A), cilium_node("n", "10.0.0.0/26"), [], id="a larger one around it"),
        pytest.param(cilium_node("n", "10.0.0.0/26"), cilium_node("n", A), [B], id="a smaller one in it"),
        pytest.param(cilium_node("n", A, SIX), cilium_node("n", A), [SIX], id="a family less"),
        pytest.param(cilium_node("n", "fd00:0:0::/123"), cilium_node("n", SIX), [], id="another spelling"),
        pytest.param(cilium_node("n", "nonsense"), cilium_node("n", A), [], id="no CIDR"),
        pytest.param(pool("p.n", A, B), pool("p.n", B), [A], id="an own pool"),
        pytest.param(node("n", A), node("n", B), [A], id="a Node"),
        pytest.param(
            node("n", A, annotations={ANNOTATION: B}),
            {**node("n", annotations={ANNOTATION: C}), "spec": {}},
            [B],
            id="an annotated Node: podCIDRs are somebody else's",
        ),
        pytest.param(
            cilium_node("n", addresses=["10.9.0.1", "10.9.0.2"], managed=ours("10.9.0.1")),
            cilium_node("n", A, addresses=["10.0.0.1"]),
            ["10.9.0.1/32"],
            id="single addresses: what others wrote stays",
        ),
    ],
)
def test_what_an_object_would_take_away(live: Made, tree: Made, expected: list[str]) -> None:
    assert [str(block) for block in lost(live, tree)] == expected


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (cilium_node("n", A), True),
        (cilium_node("n"), False),
        (cilium_node("n", C), False),
        (cilium_node("n", A, "nonsense"), False),
    ],
)
def test_a_ciliumnode_grows_if_all_that_it_has_is_known_and_stays(live: Made, *, expected: bool) -> None:
    assert grows(live, cilium_node("n", A, SIX)) is expected


def test_what_is_missing_or_shared_takes_nothing_away_from_a_node() -> None:
    live = by_identity(pool("p", A, B))
    assert moves([cilium_node("n", A), pool("p", A)], live, {}) == []


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (None, [B]),
        (cilium_node("n"), [B]),
        (cilium_node("n", A), []),
        (cilium_node("n", C), [C]),
    ],
)
def test_a_node_that_moved_may_have_pods_of_its_former_block(live: Made | None, expected: list[str]) -> None:
    there = by_identity(*([live] if live else []))
    found = moves([cilium_node("n", A), cilium_node("m", A)], there, {"n": read_blocks([A, B])[0]})
    assert [str(block) for move in found for block in move.lost] == expected
    kube = moves([node("n", A)], by_identity(node("n")), {"n": read_blocks([B])[0]})
    assert [move.identity for move in kube] == ["Node n"]


def pod(address: str, *, stays: bool = False) -> Pod:
    return Pod(node="n", addresses=(address,), stays=stays)


@pytest.mark.parametrize(
    ("pods", "cordoned", "withheld"),
    [
        pytest.param([], (), False, id="drained"),
        pytest.param([pod("10.0.0.9")], (), True, id="a pod of the old block"),
        pytest.param([pod("10.0.0.9")], ("n",), True, id="a pod of the old block, cordoned"),
        pytest.param([pod("10.0.0.40")], (), False, id="a pod of the new block"),
        pytest.param([pod("nonsense")], (), False, id="no address"),
        pytest.param([pod("10.0.0.9", stays=True)], (), True, id="of a DaemonSet"),
        pytest.param([pod("10.0.0.9", stays=True)], ("n",), False, id="of a DaemonSet, cordoned"),
        pytest.param(None, (), True, id="pods cannot be read"),
    ],
)
def test_pods_hold_a_block(pods: list[Pod] | None, cordoned: tuple[str, ...], *, withheld: bool) -> None:
    found = moves([cilium_node("n", B)], by_identity(cilium_node("n", A)), {})
    by_node = None if pods is None else {"n": pods, "other": [pod("10.0.0.9")]}
    reasons = [item.reason for item in used_by_pods(found, by_node, cordoned)]
    assert [reason.partition(",")[0] for reason in reasons] == [f"{A} would become {B}"] * withheld


@pytest.mark.parametrize(
    ("tree", "live", "expected"),
    [
        pytest.param(cilium_node("n", A), cilium_node("n", A), "", id="its own"),
        pytest.param(cilium_node("n", A), cilium_node("m", B), "", id="beside it"),
        pytest.param(cilium_node("n", A), cilium_node("m", A), f"{A} in CiliumNode m", id="the same"),
        pytest.param(
            cilium_node("n", A),
            cilium_node("m", "10.0.0.0/24"),
            "10.0.0.0/24 in CiliumNode m",
            id="around it",
        ),
        pytest.param(
            cilium_node("n", "10.0.0.0/24"), cilium_node("m", A), f"{A} in CiliumNode m", id="inside of it"
        ),
        pytest.param(
            cilium_node("n", A), cilium_node("m", pools={"p": [A]}), f"{A} in CiliumNode m", id="allocated"
        ),
        pytest.param(
            cilium_node("n", A), cilium_node("m", "10.0.0.5/27"), f"{A} in CiliumNode m", id="host bits"
        ),
        pytest.param(
            cilium_node("n", A),
            cilium_node("m", "::ffff:10.0.0.0/123"),
            f"{A} in CiliumNode m",
            id="IPv4-mapped",
        ),
        pytest.param(
            cilium_node("n", A),
            cilium_node("m", addresses=["10.0.0.7"]),
            "10.0.0.7/32 in CiliumNode m",
            id="a single address",
        ),
        pytest.param(
            pool("p.n", A), cilium_node("m", pools={"p.m": [A]}), f"{A} in CiliumNode m", id="own pool"
        ),
        pytest.param(
            pool("p", A), cilium_node("m", pools={"p": [A]}), "", id="a shared pool has all its nodes'"
        ),
        pytest.param(node("n", A), node("m", A), f"{A} in Node m", id="Nodes"),
        pytest.param(node("n", A), cilium_node("m", A), f"{A} in CiliumNode m", id="Node and CiliumNode"),
        pytest.param(
            cilium_node("n", A), node("m", A), "", id="podCIDRs of Nodes mean nothing to CiliumNodes"
        ),
    ],
)
def test_blocks_of_other_nodes(tree: Made, live: Made, expected: str) -> None:
    found = held_by_others([tree], by_identity(live))
    assert [item.reason.rpartition(": ")[2] for item in found] == [expected] * bool(expected)


BROKEN = "10.0.0.32/x"
"""It begins with the first address of B."""


@pytest.mark.parametrize(
    ("text", "live", "withheld"),
    [
        pytest.param(BROKEN, [], ["b", "x"], id="whoever would get its addresses"),
        pytest.param(BROKEN, [cilium_node("b", B)], ["x"], id="who has them already keeps them"),
        pytest.param("nonsense", [], ["a", "b", "x"], id="any addresses"),
        pytest.param("nonsense", [cilium_node("a", A)], ["b", "x"], id="any new ones"),
        pytest.param("10.9.0.0/x", [], ["x"], id="nobody gets these"),
        pytest.param(
            "10.0.0.300/27", [cilium_node("a", A), cilium_node("b", B)], ["x"], id="all have theirs"
        ),
    ],
)
def test_what_cannot_be_read_withholds_its_node_and_who_would_get_its_addresses(
    text: str, live: list[Made], withheld: list[str]
) -> None:
    tree = [cilium_node("a", A), cilium_node("b", B), cilium_node("x", C)]
    there = by_identity(*live, cilium_node("x", text))
    found = held_by_others(tree, there)
    assert [item.identity for item in found] == [f"CiliumNode {name}" for name in withheld]
    assert all(f"x has '{text}', which is not a CIDR" in item.reason for item in found)
    pools = held_by_others([pool("p.a", A), pool("p.b", B), pool("p.x", C)], there)
    assert {f"CiliumPodIPPool p.{name}" for name in withheld} <= {item.identity for item in pools}


@pytest.mark.parametrize(
    ("cidrs", "users"),
    [
        (["10.0.0.0/24"], 0),
        (["10.0.0.0/25"], 1),
        (["10.0.0.0/25", "10.0.0.128/25"], 0),
        (["10.1.0.0/24"], 2),
    ],
)
def test_shared_pools_keep_what_nodes_have(cidrs: list[str], users: int) -> None:
    live = by_identity(
        pool("p", "10.0.0.0/24"),
        cilium_node("a", pools={"p": ["10.0.0.0/27"]}),
        cilium_node("b", pools={"p": ["10.0.0.160/27"]}),
        cilium_node("c", pools={"another": ["10.0.0.192/27"]}),
    )
    found = list(shared_pools_in_use([pool("p", *cidrs)], live))
    assert len(found) == bool(users)
    assert all(f"but {users} node" in item.reason for item in found)


@pytest.mark.parametrize(
    ("there", "has", "reason"),
    [
        ("10.0.0.0/33", "10.0.0.0/27", "10.0.0.0/33 would be removed, but 1 node has blocks: a"),
        ("10.0.0.0/33", "10.1.0.0/27", None),
        ("10.0.0.0/33", "nonsense", "10.0.0.0/33 would be removed, but 1 node has blocks: a"),
        ("10.0.0.5/24", "nonsense", "10.0.0.0/24 would be removed, but 1 node has blocks: a"),
        ("10.0.0.5/24", "10.0.0.7/27", "10.0.0.0/24 would be removed, but 1 node has blocks: a"),
        ("10.1.0.0/24", "nonsense", None),
    ],
)
def test_what_shared_pools_may_mean_is_kept(there: str, has: str, reason: str | None) -> None:
    live = by_identity(pool("p", there), cilium_node("a", pools={"p": [has]}))
    found = [item.reason for item in shared_pools_in_use([pool("p", "10.1.0.0/24")], live)]
    assert found == ([reason] if reason else [])


def test_single_addresses_beside_blocks_count_for_their_node() -> None:
    tree = [cilium_node("a", A), cilium_node("b", B)]
    odd = cilium_node("b", B, addresses=["nonsense", "10.0.0.7"])
    found = {item.identity: item.reason for item in held_by_others(tree, by_identity(odd))}
    assert found["CiliumNode b"].endswith("b has 'nonsense/32', which is not a CIDR")
    used = held_by_others(tree, by_identity(cilium_node("b", B, addresses=["10.0.0.7"])))
    assert [item.reason.rpartition(": ")[2] for item in used] == ["10.0.0.7/32 in CiliumNode b"]


def test_a_pool_of_one_node_that_cannot_be_read_withholds_the_node() -> None:
    tree = [pool("p.a", "10.1.0.0/27"), pool("p.b", "10.0.0.0/27"), pool("p.c", "10.2.0.0/27")]
    found = held_by_others(tree, by_identity(pool("p.a", "10.0.0.0/33")))
    assert [item.identity for item in found] == ["CiliumPodIPPool p.a", "CiliumPodIPPool p.b"]


# A compile appends; only a lock that does not know what was published has a wider CIDR.
@pytest.mark.parametrize(
    ("cidrs", "withheld"),
    [
        (["10.0.0.0/24", "10.0.1.0/24"], 0),
        (["10.0.1.0/24", "10.0.0.0/24"], 0),
        (["10.0.0.0/25", "10.0.0.128/25"], 0),
        (["10.0.0.0/23"], 1),
        (["10.1.0.0/24", "10.0.0.0/16"], 1),
    ],
)
def test_shared_pools_do_not_swallow_what_nodes_have(cidrs: list[str], withheld: int) -> None:
    there = pool("p", "10.0.0.0/24")
    used = cilium_node("a", pools={"p": ["10.0.0.0/27"]})
    found = list(shared_pools_in_use([pool("p", *cidrs)], by_identity(there, used)))
    assert len(found) == withheld
    assert all("10.0.0.0/24 would become part of a wider CIDR" in item.reason for item in found)
    assert not list(shared_pools_in_use([pool("p", *cidrs)], by_identity(there, cilium_node("a"))))
