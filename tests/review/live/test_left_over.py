"""Objects of ipamc that left the tree: order, and what is kept."""

from __future__ import annotations

from ipamc.review.live.apply import is_foreign_tree, left_over
from tests.review.live.objects import by_identity, cilium_node, config, ours, pool

LIVE = by_identity(
    pool("free", "10.0.0.0/24", managedFields=ours()),
    pool("used", "10.1.0.0/24", managedFields=ours()),
    pool("asked", "10.2.0.0/24", managedFields=ours()),
    pool("wanted", "10.3.0.0/24", managedFields=ours()),
    pool("of-people", "10.4.0.0/24"),
    pool("unread", "10.5.0.0/24", managedFields=ours()),
    cilium_node("dead", "10.9.0.0/27", managed=ours()),
    cilium_node("alive", "10.9.0.32/27", managed=ours()),
    cilium_node("busy", "10.9.0.64/27", managed=ours()),
    cilium_node("seed", pools={"used": ["10.1.0.0/27"]}, asks=["asked"]),
    cilium_node("odd", pools={"unread": ["nonsense"]}),
    config("old", managedFields=ours()),
    config("of-people"),
)
WANTED = {"CiliumPodIPPool wanted"}


def test_order_and_what_is_kept() -> None:
    found = left_over(WANTED, LIVE, {"alive"}, {"busy"})
    assert [(item.kind, item.name, item.kept) for item in found] == [
        ("CiliumNodeConfig", "old", ""),
        ("CiliumNode", "alive", "its Node exists"),
        ("CiliumNode", "busy", "pods run on its node"),
        ("CiliumNode", "dead", ""),
        ("CiliumPodIPPool", "asked", "CiliumNode seed has blocks of it or requests some"),
        ("CiliumPodIPPool", "free", ""),
        ("CiliumPodIPPool", "unread", "CiliumNode odd has blocks of it or requests some"),
        ("CiliumPodIPPool", "used", "CiliumNode seed has blocks of it or requests some"),
    ]


def test_what_is_not_known_is_kept() -> None:
    for nodes, busy in ((None, set[str]()), (set[str](), None)):
        kept = {item.name for item in left_over(WANTED, LIVE, nodes, busy) if item.kept}
        assert {"dead", "alive", "busy"} <= kept


def test_a_cluster_with_objects_of_another_tree_is_strange() -> None:
    assert is_foreign_tree({"CiliumPodIPPool elsewhere"}, LIVE)
    assert not is_foreign_tree(WANTED, LIVE)
    assert not is_foreign_tree(WANTED, {})
