"""Nodes are gone through once for all tests, and not at all without tests. Calls are counted: they are the same everywhere."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ipamc.assertions.run import run_tests
from ipamc.model.plan import Plan
from ipamc.read.read import read
from tests.support import fleet
from tests.support.calls import counted

NODES = 2000


def plan_with(*entries: dict[str, Any], hosts: bool = False) -> Plan:
    """Compile a cluster of NODES nodes in 50 racks, and give its plan tests. With `hosts` each node has a label of its own."""
    nodes = [
        {
            "name": f"n{number:04}",
            "labels": {"rack": f"r{number % 50}", **({"host": f"{number}"} if hosts else {})},
        }
        for number in range(NODES)
    ]
    documents = [
        fleet.cluster(),
        fleet.pool("a", ipv4={"cidrs": ["10.0.0.0/16"], "blockSize": 28}),
        fleet.inventory(nodes),
    ]
    plan = fleet.compiled(fleet.as_json(documents)).plan
    with_tests = fleet.as_json([*documents, *([fleet.assertions(*entries)] if entries else [])])
    cluster, _ = read("fleet", "clusters/fleet", with_tests, fleet.SCHEMAS, tests=True)
    return replace(plan, scheme=cluster)


def calls(plan: Plan) -> int:
    return counted(lambda: run_tests(plan, "2026-11-21"))


def rack(number: int) -> dict[str, Any]:
    return {"blocks": {"nodeSelector": f'rack == "r{number}"', "within": ["10.0.0.0/16"], "ipv4": 28}}


def test_a_cluster_without_tests_costs_nothing() -> None:
    assert calls(plan_with()) < 10


def test_a_hundred_tests_cost_little_more_than_one() -> None:
    one = calls(plan_with(rack(0)))
    hundred = calls(plan_with(*(rack(number % 50) for number in range(100))))
    assert one < 12 * NODES
    assert hundred < one + 100 * 120 + 6 * NODES


def test_tests_of_all_nodes_cost_no_more_than_those_of_a_rack() -> None:
    every = {"blocks": {"nodeSelector": "all()", "within": ["10.0.0.0/16"], "outside": ["10.9.0.0/24"]}}
    apart = {"apart": {"each": "rack", "ipv4": 30}}
    assert calls(plan_with(*[every] * 100)) < 20 * NODES
    assert calls(plan_with(apart)) < 40 * NODES


def test_a_thousand_tests_of_one_label_cost_little_more_than_one() -> None:
    one = calls(plan_with({"apart": {"each": "host", "ipv4": 28}}, hosts=True))
    thousand = calls(plan_with(*[{"apart": {"each": "host", "ipv4": 28}}] * 1000, hosts=True))
    assert thousand < one + 1000 * 60
