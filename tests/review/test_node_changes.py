"""Nodes that come and go in thought: what can be typed, and which nodes are meant."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipamc.model.cluster import Cluster, Mode
from ipamc.model.limits import LARGEST_CLUSTER
from ipamc.model.node import HOSTNAME, CiliumNode, Node
from ipamc.review.node_changes import ChangeError, apply_changes, parse_change
from tests.support.builders import AT


def node(name: str, **labels: str) -> Node:
    return Node(name=name, labels=labels, at=AT, max_pods=110)


CLUSTER = Cluster(
    name="lab",
    at=AT,
    cilium=(1, 18),
    managed_by="helm",
    mode=Mode.CLUSTER_POOL,
    nodes=(node("n1", rack="a", zone="z1"), node("n2", rack="a"), node("n3", rack="b", zone="z1")),
    cilium_nodes=(CiliumNode(name="n1", at=AT), CiliumNode(name="n3", at=AT)),
)


@pytest.mark.parametrize(
    ("text", "count", "like", "labels", "node"),
    [
        ("+40 rack=b", 40, "", {"rack": "b"}, ""),
        ("+40 rack=b,zone=z1", 40, "", {"rack": "b", "zone": "z1"}, ""),
        ("+40 rack=b zone=z1", 40, "", {"rack": "b", "zone": "z1"}, ""),
        ("+1", 1, "", {}, ""),
        ("+3 like n1", 3, "n1", {}, ""),
        ("+3 like n1 rack=b", 3, "n1", {"rack": "b"}, ""),
        ("-rack=b", 0, "", {"rack": "b"}, ""),
        ("-rack b", 0, "", {"rack": "b"}, ""),
        ("-rack==b", 0, "", {"rack": "b"}, ""),
        ("-rack=", 0, "", {"rack": ""}, ""),
        ("-node n1", 0, "", {}, "n1"),
        ("-node=n1", 0, "", {"node": "n1"}, ""),
        ("-example.com/rack=b,zone=z1", 0, "", {"example.com/rack": "b", "zone": "z1"}, ""),
    ],
)
def test_what_can_be_typed(text: str, count: int, like: str, labels: dict[str, str], node: str) -> None:
    change = parse_change(text)
    assert (change.count, change.like, dict(change.labels), change.node) == (count, like, labels, node)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a change of nodes"),
        ("40 rack=b", "is not a change of nodes"),
        ("+rack=b", "is not a change of nodes"),
        ("+٣", "is not a change of nodes"),
        ("+0", "add 1 to 100,000 nodes"),
        ("+100001", "add 1 to 100,000 nodes"),
        ("+" + "9" * 5000, "add 1 to 100,000 nodes"),
        ("+3 like", "like needs a node name"),
        ("+3 rack", "'rack' is not a label"),
        ("+3 /=b", "the label key '/' has a prefix that is empty"),
        ("+3 rack=b$", "the value 'b$' of label rack must contain only"),
        ("+3 rack=a,rack=b", "label rack has two values"),
        ("-", "is not a change of nodes"),
        ("-,", "is not a change of nodes"),
        ("-rack a b", "'rack' is not a label"),
    ],
)
def test_what_cannot(text: str, problem: str) -> None:
    with pytest.raises(ChangeError) as raised:
        parse_change(text)
    assert problem in str(raised.value)


@given(st.text(max_size=40) | st.from_regex(r"[+-][ -~]{0,20}=?[ -~]{0,20}", fullmatch=True))
def test_whatever_is_typed_is_a_change_or_a_mistake(text: str) -> None:
    with suppress(ChangeError):
        change = parse_change(text)
        assert bool(change.count) == text.startswith("+")
        assert change.count or change.labels or change.node
        with suppress(ChangeError):
            apply_changes(CLUSTER, [change])


def test_nodes_that_come_and_go() -> None:
    changes = [parse_change(text) for text in ("+9 rack=c", "-rack=b", "+2 like n1 zone=z9", "-node n2")]
    changed = apply_changes(CLUSTER, changes)
    assert changed.removed == {"-rack=b": ("n3",), "-node n2": ("n2",)}
    assert changed.added["+9 rack=c"] == tuple(f"what-if-{number:02}" for number in range(1, 10))
    assert changed.added["+2 like n1 zone=z9"] == ("what-if-10", "what-if-11")
    found = {node.name: node for node in changed.cluster.nodes}
    assert list(found) == sorted(found)
    assert found["what-if-01"].labels == {"rack": "c", HOSTNAME: "what-if-01"}
    assert found["what-if-10"].labels == {"rack": "a", "zone": "z9", HOSTNAME: "what-if-10"}
    assert found["what-if-10"].max_pods == 110
    assert [seen.name for seen in changed.cluster.cilium_nodes] == ["n1"]


def test_a_node_goes_once_and_may_be_copied_while_it_goes() -> None:
    changes = [parse_change(text) for text in ("-rack=a", "-zone=z1", "+1 like n1")]
    changed = apply_changes(CLUSTER, changes)
    assert changed.removed == {"-rack=a": ("n1", "n2"), "-zone=z1": ("n3",)}
    assert [node.name for node in changed.cluster.nodes] == ["what-if-1"]


def test_names_that_are_taken_are_not_made_up() -> None:
    taken = replace(CLUSTER, nodes=(*CLUSTER.nodes, node("what-if-1"), node("what-if-x-1")))
    assert apply_changes(taken, [parse_change("+1")]).added == {"+1": ("what-if-x-x-1",)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-rack=c", "no node of lab has rack=c"),
        ("-rack=a,zone=z9", "no node of lab has rack=a,zone=z9"),
        ("-node what", "lab has no node 'what' in its inventory"),
        ("+2 like nn3", "lab has no node 'nn3' in its inventory; did you mean 'n3'?"),
        ("+2 like n33", "lab has no node 'n33' in its inventory"),
        (f"+{LARGEST_CLUSTER}", "200,000 nodes would be added; the limit is 100,000"),
    ],
)
def test_what_fits_no_node(text: str, problem: str) -> None:
    changes = [parse_change(text)] * (2 if "000" in text else 1)
    with pytest.raises(ChangeError) as raised:
        apply_changes(CLUSTER, changes)
    assert problem in str(raised.value)
