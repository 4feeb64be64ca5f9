"""CiliumNodeConfigs are disjoint, and select exactly the nodes whose first candidate their pool is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamc.model.cluster import Pool
from ipamc.model.node import Node
from ipamc.model.plan import Plan
from ipamc.model.selector.selector import parse_node_selector
from ipamc.render.targets import node_config
from tests.support.builders import AT, node, plan, pool, ranges, read, rendered
from tests.support.counting import counted

HOSTNAME = "kubernetes.io/hostname"


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Evaluate a LabelSelector as Kubernetes does."""
    verdicts: dict[str, Callable[[str | None, list[str]], bool]] = {
        "In": lambda value, values: value in values,
        "NotIn": lambda value, values: value not in values,
        "Exists": lambda value, _: value is not None,
        "DoesNotExist": lambda value, _: value is None,
    }
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        verdicts[each["operator"]](labels.get(each["key"]), each.get("values", []))
        for each in selector.get("matchExpressions", ())
    )


def configs(made: Plan) -> dict[str, dict[str, Any]]:
    """Return the selectors that are rendered, by pool."""
    found = read(rendered(made).get("cilium/nodeconfigs.yaml", ""))
    assert all(
        each["spec"]["defaults"] == {"ipam-default-ip-pool": each["metadata"]["name"]} for each in found
    )
    return {each["metadata"]["name"]: each["spec"]["nodeSelector"] for each in found}


def made(pools: list[Pool], nodes: list[Node]) -> Plan:
    return plan("multi-pool", pools, {}, nodes=nodes)


def check(built: Plan) -> dict[str, dict[str, Any]]:
    """Check the law on every node, and give the selectors."""
    found = configs(built)
    assert set(found) == {want.offers[0].pool.name for want in built.wants if want.offers}
    for want in built.wants:
        labels = {HOSTNAME: want.node.name, **want.node.labels}
        assert [name for name, selector in found.items() if selects(selector, labels)] == [
            each.pool.name for each in want.offers[:1]
        ]
    return found


def one(name: str, nodes: str = "", **fields: Any) -> Pool:
    return pool(name, f"10.{ord(name[0])}.0.0/16", nodes=nodes, **fields)


ABC = [
    node("n1", {"zone": "a"}),
    node("n2", {"zone": "b"}),
    node("n3", {"zone": "a", "rack": "r1"}),
    node("n4"),
]


@pytest.mark.parametrize(
    ("pools", "selectors"),
    [
        ([one("p")], {"p": {}}),
        (
            [one("a", "zone == 'a'"), one("b", "zone == 'b'")],
            {"a": {"matchLabels": {"zone": "a"}}, "b": {"matchLabels": {"zone": "b"}}},
        ),
        (
            [one("a", "zone == 'a'"), one("z")],
            {
                "a": {"matchLabels": {"zone": "a"}},
                "z": {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
            },
        ),
        (
            [one("r", "has(rack)", priority=1), one("a", "zone in {'a', 'c'}"), one("z", priority=-1)],
            {
                "r": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]},
                "a": {
                    "matchExpressions": [
                        {"key": "rack", "operator": "DoesNotExist"},
                        {"key": "zone", "operator": "In", "values": ["a", "c"]},
                    ],
                },
                "z": {
                    "matchExpressions": [
                        {"key": "rack", "operator": "DoesNotExist"},
                        {"key": "zone", "operator": "NotIn", "values": ["a", "c"]},
                    ],
                },
            },
        ),
        (  # the opposite of a conjunction is no single requirement
            [one("a", "zone == 'a' && has(rack)"), one("z")],
            {
                "a": {
                    "matchExpressions": [{"key": "rack", "operator": "Exists"}],
                    "matchLabels": {"zone": "a"},
                },
                "z": {
                    "matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1", "n2", "n4"]}]
                },
            },
        ),
        (  # no LabelSelector says "starts with"
            [one("a", "zone starts with 'a'"), one("b", "zone == 'b'")],
            {
                "a": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1", "n3"]}]},
                "b": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n2"]}]},
            },
        ),
        (  # a pin goes before every selector
            [one("a", "zone == 'a'"), one("b", "zone == 'b'", pins={"n1": ranges("10.98.0.0/26")})],
            {
                "a": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n3"]}]},
                "b": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1", "n2"]}]},
            },
        ),
        (  # a disabled pool is first by its pins alone, and does not hide the pools below
            [
                one("d", disabled=True, priority=9, pins={"n4": ranges("10.100.0.0/26")}),
                one("a", "zone == 'a'"),
            ],
            {
                "d": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n4"]}]},
                "a": {"matchLabels": {"zone": "a"}},
            },
        ),
    ],
)
def test_selectors(pools: list[Pool], selectors: dict[str, Any]) -> None:
    assert check(made(pools, ABC)) == selectors


def test_a_hostname_is_the_labels_value() -> None:
    nodes = [node("n1", {HOSTNAME: "host-1"}), node("n2")]
    built = made([Pool(name="p", at=AT, families=one("p").families, selector=BY_NAME, selector_at=AT)], nodes)
    assert configs(built) == {
        "p": {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["host-1", "n2"]}]}
    }


BY_NAME = parse_node_selector(
    {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            for name in ("n1", "n2")
        ]
    }
)

KEYS = ["zone", "rack"]
VALUES = ["a", "b", "c"]
REQUIREMENT = st.one_of(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(["==", "!="]), st.sampled_from(VALUES)).map(
        lambda each: f'{each[0]} {each[1]} "{each[2]}"'
    ),
    st.tuples(
        st.sampled_from(KEYS), st.sampled_from(["in", "not in"]), st.sets(st.sampled_from(VALUES), min_size=1)
    ).map(
        lambda each: f"{each[0]} {each[1]} {{{', '.join(repr(value) for value in sorted(each[2]))}}}",
    ),
    st.sampled_from(KEYS).map(lambda key: f"has({key})"),
    st.sampled_from(KEYS).map(lambda key: f"!has({key})"),
)
SELECTOR = st.one_of(
    st.just(""),
    REQUIREMENT,
    st.lists(REQUIREMENT, min_size=2, max_size=3).map(" && ".join),
    st.lists(REQUIREMENT, min_size=2, max_size=2).map(" || ".join),
)
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@given(
    st.lists(
        st.tuples(
            SELECTOR,
            st.integers(-1, 1),
            st.booleans(),
            st.sets(st.sampled_from(["n0", "n1", "n2"]), max_size=1),
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(LABELS, max_size=8),
)
def test_exactly_the_first_candidates_config_selects_a_node(
    pools: list[tuple[str, int, bool, set[str]]], labels: list[dict[str, str]]
) -> None:
    built = [
        one(
            "pqrst"[index],
            text,
            priority=priority,
            disabled=disabled,
            pins={name: ranges(f"10.{ord('pqrst'[index])}.0.0/26") for name in pinned},
        )
        for index, (text, priority, disabled, pinned) in enumerate(pools)
    ]
    check(made(built, [node(f"n{index}", each) for index, each in enumerate(labels)]))


@given(
    st.lists(SELECTOR, min_size=1, max_size=4),
    st.lists(LABELS, min_size=1, max_size=6),
    st.lists(LABELS, max_size=8),
)
def test_nodes_to_come_are_never_selected_twice_by_labels(
    selectors: list[str], labels: list[dict[str, str]], later: list[dict[str, str]]
) -> None:
    pools = [one("pqrst"[index], text) for index, text in enumerate(selectors)]
    found = configs(made(pools, [node(f"n{index}", each) for index, each in enumerate(labels)]))
    for each in later:
        assert sum(selects(selector, {HOSTNAME: "new", **each}) for selector in found.values()) <= 1


def test_pools_that_overlap_too_much_list_hostnames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a thousand pools less all those before it would be half a million conditions."""
    letters = "abcdefgh"
    pools = [one(letter, f"has({letter})", priority=-index) for index, letter in enumerate(letters)]
    nodes = [node(f"n{letter}", {letter: "x"}) for letter in letters]
    by_labels = check(made(pools, nodes))
    assert len(by_labels["h"]["matchExpressions"]) == len(letters)
    for limit in ("MOST_OPPOSITE_VALUES", "MOST_COMPARED_SELECTORS"):
        with monkeypatch.context() as patched:
            patched.setattr(node_config, limit, 3)
            found = check(made(pools, nodes))
        assert found["b"] == by_labels["b"]
        assert found["h"] == {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["nh"]}]}


@pytest.mark.parametrize("count", [20, 80])
def test_only_selectors_that_may_meet_are_compared(count: int) -> None:
    pools = [pool(f"p{i}", f"10.{i}.0.0/24", nodes=f"rack in {{'r{i}', 'q{i}'}}") for i in range(count)]
    nodes = [node(f"n{i}", {"rack": f"r{i}"}) for i in range(count)]
    with counted(node_config, "apart") as compared:
        check(made(pools, nodes))
    assert compared.call_count <= count
