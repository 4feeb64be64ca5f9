"""ClusterCIDRs, step by step through the whole compiler, against what node-ipam-controller did with them.

`expect` and `candidates` in the vectors are the controller's. Where ours differ, `ours` beside the vector says why, and what we do; its keys are the
operation and what it is about, and steps that it does not list go as the controller's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamc.place.candidates import assign
from ipamc.read.read import read
from tests.support import fleet
from tests.support.replay import Outcome, Replay

Vector = dict[str, Any]
Step = dict[str, Any]

VECTORS: list[Vector] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "clustercidr.json").read_text(encoding="utf-8")
)["vectors"]

REFUSED = {"pool": "IPC0211", "delete-pool": "IPC0410"}
"""Our code for an operation that the controller refuses too."""


def ids(vector: Vector) -> str:
    return str(vector["id"])


def about(step: Step) -> str:
    """Name a step, as `ours` does: `node a`."""
    match step:
        case (
            {"op": "pool", "pool": {"metadata": {"name": name}}}
            | {"node": name}
            | {"name": name}
            | {"cidr": name}
            | {"cidrs": [name]}
        ):
            return f"{step['op']} {name}"
    raise AssertionError(step)


def short_form(step: Step) -> fleet.Document:
    keys = ("labels", "podCIDRs")
    return fleet.inventory([{"name": step["node"], **{key: step[key] for key in keys if key in step}}])


def node_object(step: Step) -> fleet.Document:
    blocks = {"podCIDR": step["podCIDRs"][0], "podCIDRs": step["podCIDRs"]} if "podCIDRs" in step else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": step["node"], "labels": step["labels"]},
        "spec": blocks,
    }


FORMS = {
    "networking.x-k8s.io/v1, NodeInventory": ("networking.x-k8s.io/v1", short_form),
    "networking.k8s.io/v1alpha1, Node": ("networking.k8s.io/v1alpha1", node_object),
}


class Run:
    """One vector on its way."""

    def __init__(
        self,
        vector: Vector,
        api: str = "networking.x-k8s.io/v1",
        node: Callable[[Step], fleet.Document] = short_form,
    ) -> None:
        self.api = api
        self.node = node
        text = json.dumps(vector["steps"])
        self.families = [family for family in ("IPv4", "IPv6") if f'"{family.lower()}"' in text]
        self.replay = Replay({"cluster": self.cluster()})

    def cluster(self, **spec: Any) -> fleet.Document:
        """Make the Cluster: kubernetes mode, with the families of the vector's pools."""
        return fleet.cluster("kubernetes", ipFamilies=self.families, output={"nodeObjects": "create"}, **spec)

    def pool(self, name: str, spec: dict[str, Any], **metadata: Any) -> fleet.Document:
        """Make a ClusterCIDR."""
        return {
            "apiVersion": self.api,
            "kind": "ClusterCIDR",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }

    def do(self, step: Step) -> Any:
        """Take a step; give what came of it, as the vectors write it."""
        match step:
            case {"op": "pool", "pool": {"metadata": {"name": name}, "spec": spec}}:
                return result(self.replay.step({f"pool {name}": self.pool(name, spec)}))
            case {"op": "delete-pool", "name": name}:
                outcome = self.replay.step({f"pool {name}": None})
                if outcome.refused:  # so it lives on behind its finalizer, and that is what an export shows
                    spec = self.replay.documents[f"pool {name}"]["spec"]
                    export = self.pool(name, spec, deletionTimestamp="2026-11-21T08:00:00Z")
                    assert not self.replay.step({f"pool {name}": export}).refused
                return result(outcome)
            case {"op": "delete-node", "node": name}:
                return result(self.replay.step({f"node {name}": None}))
            case {"op": "service", "cidr": cidr}:
                return result(self.replay.step({"cluster": self.cluster(excludedCIDRs=[cidr])}, keep=True))
            case {"op": "node", "node": name}:
                return self.add(name, self.node(step))
            case {"op": "flags", "expect": objects}:
                self.replay.step(
                    {f"pool {each['name']}": self.pool(each["name"], each["spec"]) for each in objects}
                )
                return self.add("first", fleet.inventory([{"name": "first"}]))
        raise AssertionError(step)

    def add(self, name: str, node: fleet.Document) -> Any:
        """Add a node; give its pool and rendered podCIDRs, or the code, and the pools that were its candidates."""
        before = self.replay.documents
        outcome = self.replay.step({f"node {name}": node})
        tried = Replay({**before, f"node {name}": node})
        cluster, _ = read("fleet", "clusters/fleet", tried.sources(), fleet.SCHEMAS)
        candidates = next(
            [offer.pool.name for offer in want.offers] for want in assign(cluster) if want.node.name == name
        )
        if outcome.compilation is None:
            return {"refused": outcome.refused, "candidates": candidates}
        (pool,) = {line.pool for line in outcome.compilation.plan.held[name]}
        rendered = [text for path, text in outcome.compilation.files.items() if path.endswith("/nodes.yaml")]
        podcidrs = {
            each["metadata"]["name"]: each["spec"]["podCIDRs"]
            for text in rendered
            for each in yaml.safe_load_all(text)
        }
        return {"pool": pool, "podCIDRs": podcidrs[name], "candidates": candidates}


def result(outcome: Outcome) -> Any:
    return {"refused": outcome.refused} if outcome.refused else "ok"


def controllers(step: Step) -> Any:
    """Return what the controller does, in our words."""
    match step:
        case {"op": "node", "expect": {"error": True}, "candidates": candidates}:
            return {"refused": "IPC0303" if candidates else "IPC0302", "candidates": candidates}
        case {"op": "node", "expect": expect, "candidates": candidates}:
            return {**expect, "candidates": candidates}
        case {"expect": "error", "op": op}:
            return {"refused": REFUSED[op]}
    return step.get("expect", "ok")


def expected(vector: Vector) -> dict[str, Any]:
    theirs = {about(step): controllers(step) for step in vector["steps"]}
    return {**theirs, **vector.get("ours", {}).get("expect", {})}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_steps(vector: Vector, form: str) -> None:
    run = Run(vector, *FORMS[form])
    assert {about(step): run.do(step) for step in vector["steps"]} == expected(vector)


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if "ours" in vector], ids=ids)
def test_ours_is_said_only_where_it_differs(vector: Vector) -> None:
    theirs = {about(step): controllers(step) for step in vector["steps"]}
    assert vector["ours"].keys() == {"why", "expect"}
    assert all(theirs[name] != mine for name, mine in vector["ours"]["expect"].items())


def vector(name: str) -> Vector:
    return next(each for each in VECTORS if each["id"] == name)


def test_after_the_quarantine_a_block_is_given_again_as_the_controller_does() -> None:
    released = vector("release-next-fit")
    run = Run(released)
    for step in released["steps"]:
        assert run.do(step) == controllers(step)
        run.replay.wait(days=8)


def test_a_native_pool_can_reserve_what_a_cluster_cidr_cannot() -> None:
    service = vector("service-range")
    run = Run(service)
    pool = fleet.pool("d", ipv4={"cidrs": ["10.96.0.0/22"], "blockSize": 24}, reserved=["10.96.0.0/24"])
    run.replay.step({"pool d": pool})
    for step in service["steps"][1:]:
        assert run.do(step) == controllers(step)


def test_blocks_outside_every_pool_are_left_alone_where_the_cluster_says_so() -> None:
    elsewhere = vector("existing-node-elsewhere")
    run = Run(elsewhere)
    run.replay.step({"cluster": run.cluster(unpooled="hold")})
    pool, old, new = elsewhere["steps"]
    assert run.do(pool) == "ok"
    outcome = run.replay.step({"node old": short_form(old)})
    assert not outcome.refused
    assert "IPC0417" in outcome.warned
    assert outcome.blocks("old") == ["192.168.0.0/24"]
    assert run.do(new) == controllers(new)


def test_an_empty_list_of_terms_is_told() -> None:
    run = Run(vector("empty-terms"))
    _, empty, _ = vector("empty-terms")["steps"]
    assert "IPC0214" in run.replay.step({"pool e": run.pool("e", empty["pool"]["spec"])}).warned


# What the KEP says, and what design says where both have more to say than the vectors: cases in their form.


def pool_of(name: str, bits: int, *cidrs: str, **labels: str) -> Step:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    selector = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}} if labels else {}
    spec = {
        "perNodeHostBits": bits,
        **{"ipv6" if ":" in cidr else "ipv4": cidr for cidr in cidrs},
        **selector,
    }
    return {"op": "pool", "pool": {"metadata": {"name": name}, "spec": spec}}


def node_of(name: str, *podcidrs: str, **labels: str) -> Step:
    return {
        "op": "node",
        "node": name,
        "labels": labels,
        **({"podCIDRs": list(podcidrs)} if podcidrs else {}),
    }


def run_all(*steps: Step) -> list[Any]:
    """Take all steps; give what came of the nodes."""
    run = Run({"steps": steps})
    return [got for step in steps if (got := run.do(step)) != "ok"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            pool_of("z", 8, "10.1.0.0/16", rack="r1", tier="web"),
            pool_of("a", 8, "10.2.0.0/24", rack="r1"),
            id="requirements",
        ),
        pytest.param(
            pool_of("z", 8, "10.1.0.0/24", rack="r1"),
            pool_of("a", 4, "10.2.0.0/16", rack="r1"),
            id="blocks in total",
        ),
        pytest.param(
            pool_of("z", 8, "10.1.0.0/22", "fd00:1::/112"),
            pool_of("a", 8, "10.2.0.0/21", "fd00:2::/117"),
            id="the smaller family",
        ),
        pytest.param(
            pool_of("z", 5, "10.1.0.0/27", rack="r1"),
            pool_of("a", 8, "10.2.0.0/24", rack="r1"),
            id="addresses a block",
        ),
        pytest.param(
            pool_of("a", 8, "10.2.0.0/24", tier="web"),
            pool_of("z", 8, "10.1.0.0/24", rack="r1"),
            id="name, not selector or CIDR",
        ),
    ],
)
def test_each_rule_decides_before_those_below_it(first: Step, second: Step) -> None:
    # In the vectors the names often happen to agree with the rule.
    (got,) = run_all(second, first, node_of("n", rack="r1", tier="web"))
    assert got["candidates"] == [each["pool"]["metadata"]["name"] for each in (first, second)]


def test_the_keps_order_of_pools() -> None:
    (got,) = run_all(
        pool_of("default", 6, "10.8.0.0/13"),
        pool_of("large", 4, "192.168.128.0/17", node="n1"),
        pool_of("small", 4, "192.168.64.0/20", node="n1"),
        pool_of("specific", 6, "10.5.0.0/16", node="n1", rack="rack1"),
        node_of("a", node="n1", rack="rack1"),
    )
    assert got == {
        "pool": "specific",
        "podCIDRs": ["10.5.0.0/26"],
        "candidates": ["specific", "small", "large", "default"],
    }


def test_the_keps_allocations() -> None:
    got = run_all(
        pool_of("default", 8, "10.0.0.0/9"),
        pool_of("other-default", 8, "172.16.0.0/14"),
        pool_of("n1", 6, "10.128.0.0/9", node="n1"),
        pool_of("n2", 6, "192.168.0.0/16", node="n2"),
        *(node_of(name, node=name) for name in ("n1", "n2", "n4")),
    )
    assert got == [
        {"pool": "n1", "podCIDRs": ["10.128.0.0/26"], "candidates": ["n1", "other-default", "default"]},
        {"pool": "n2", "podCIDRs": ["192.168.0.0/26"], "candidates": ["n2", "other-default", "default"]},
        {"pool": "other-default", "podCIDRs": ["172.16.0.0/24"], "candidates": ["other-default", "default"]},
    ]


def test_the_keps_dual_stack_pool_serves_four_nodes_with_both_families() -> None:
    *four, fifth = run_all(pool_of("p", 10, "10.0.0.0/20", "fd12:3456:789a:1::/102"), *map(node_of, "abcde"))
    assert [each["podCIDRs"] for each in four] == [
        ["10.0.0.0/22", "fd12:3456:789a:1::/118"],
        ["10.0.4.0/22", "fd12:3456:789a:1::400/118"],
        ["10.0.8.0/22", "fd12:3456:789a:1::800/118"],
        ["10.0.12.0/22", "fd12:3456:789a:1::c00/118"],
    ]
    assert fifth == {"refused": "IPC0305", "candidates": ["p"]}


def test_a_full_rack_does_not_spill_into_the_default_as_in_the_kep() -> None:
    _, second = run_all(
        pool_of("default", 8, "10.0.0.0/16"),
        pool_of("r1", 8, "10.1.0.0/24", rack="r1"),
        node_of("a", rack="r1"),
        node_of("b", rack="r1"),
    )
    assert second == {"refused": "IPC0303", "candidates": ["r1", "default"]}


def test_a_node_of_a_dual_stack_cluster_has_both_families_whatever_pools_they_come_from() -> None:
    v4, v6 = pool_of("v4", 8, "10.1.0.0/16"), pool_of("v6", 8, "fd00::/112")
    run = Run({"steps": [v4, v6]})
    assert run.do(v4) == "ok"
    assert run.do(node_of("a")) == {"refused": "IPC0307", "candidates": ["v4"]}
    # The controller panics here: it looks for the set of a family that the pool has not.
    assert run.do(node_of("old", "10.1.0.0/24", "fd00::/120")) == {"refused": "IPC0410", "candidates": ["v4"]}
    assert run.do(v6) == "ok"
    assert run.replay.step({"node a": short_form(node_of("a"))}).blocks("a") == ["10.1.0.0/24", "fd00::/120"]
