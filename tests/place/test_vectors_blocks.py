"""Blocks in order, against what kube-controller-manager and cilium-operator give out.

The vectors' results are theirs. Where ours differ, `ours` beside the vector says why, and what each step gives here instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from ipamc.model.cidr import parse_block
from ipamc.model.cilium.versions import needed_addresses, usable_addresses
from tests.support import fleet
from tests.support.replay import Outcome, Replay

Vector = dict[str, Any]

VECTORS = Path(__file__).parents[1] / "vectors"
CIDR_SET = json.loads((VECTORS / "cidrset.json").read_text(encoding="utf-8"))
CLUSTER_POOL: list[Vector] = json.loads((VECTORS / "cluster-pool.json").read_text(encoding="utf-8"))
MULTI_POOL = json.loads((VECTORS / "multi-pool.json").read_text(encoding="utf-8"))

SEQUENCES: list[Vector] = CIDR_SET["sequences"]
FULL = "IPC0303"
REUSE_REFUSED = {"is already allocated": "IPC0423", "not configured for the requested CIDR": "IPC0410"}
"""Our codes for what cilium-operator says of a block that a CiliumNode already has."""


def ids(vector: Vector) -> str:
    return str(vector.get("id") or vector.get("name") or f"{vector['cidr']} by {vector['mask']}")


def pool(cidrs: list[str], mask: int, **spec: Any) -> fleet.Document:
    family = "ipv6" if ":" in cidrs[0] else "ipv4"
    return fleet.pool("default", **{family: {"cidrs": cidrs, "blockSize": mask}}, **spec)


def newcomer(number: int) -> str:
    return f"n{number:03}"


class Run:
    """One sequence on its way: newcomers n000, n001, … in the order of its `next` operations."""

    def __init__(self, mode: str, cidrs: list[str], mask: int, **spec: Any) -> None:
        self.cidrs, self.mask = cidrs, mask
        self.reserved: list[str] = []
        family = "IPv6" if ":" in cidrs[0] else "IPv4"
        cluster = fleet.cluster(
            mode, ipFamilies=[family], output={"nodeObjects": "create" if mode == "kubernetes" else "guarded"}
        )
        self.replay = Replay({"cluster": cluster, "pool": pool(cidrs, mask, **spec)})
        self.count = 0

    def next(self) -> str:
        """Let a newcomer come; give its block, or the code of the refusal."""
        name = newcomer(self.count)
        self.count += 1
        outcome = self.replay.step({name: fleet.inventory([{"name": name}])})
        return outcome.refused or one(outcome, name)

    def held(self, name: str, cidr: str) -> str:
        """Let a node come that already has a block, as its podCIDRs and its CiliumNode show."""
        node = fleet.inventory([{"name": name, "podCIDRs": [cidr]}])
        outcome = self.replay.step({name: node, f"{name} seen": cilium_node(name, cidr)})
        disputed = "IPC0423" if "IPC0423" in outcome.warned else "ok"
        return outcome.refused or disputed

    def reserve(self, cidr: str) -> str:
        """Reserve a CIDR in the pool."""
        self.reserved.append(cidr)
        return self.replay.step({"pool": pool(self.cidrs, self.mask, reserved=self.reserved)}).refused or "ok"

    def release(self, cidr: str) -> str:
        """Let all nodes leave whose blocks are inside a CIDR."""
        gone = parse_block(cidr)
        lines = [json.loads(line) for line in (self.replay.lock or "").splitlines()[1:]]
        nodes = [
            line["node"]
            for line in lines
            if "quarantined" not in line and gone.contains(parse_block(line["block"]))
        ]
        return self.replay.step(dict.fromkeys(nodes)).refused or "ok"


def one(outcome: Outcome, name: str) -> str:
    (block,) = outcome.blocks(name)
    return block


def cilium_node(name: str, cidr: str) -> fleet.Document:
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {"name": name},
        "spec": {"ipam": {"podCIDRs": [cidr]}},
    }


# kube-controller-manager's cidrset


def controllers(sequence: Vector) -> list[str]:
    """Return what each step gives in kube-controller-manager, in our words."""
    return [FULL if step["result"] == "exhausted" else step["result"] for step in sequence["steps"]]


def occupied(run: Run, name: str, cidr: str, occupy: str) -> str:
    """Occupy a CIDR by a node that holds it, or by reserving it; what is no part of the range can only be reserved."""
    whole, block = parse_block(run.cidrs[0]), parse_block(cidr)
    return run.held(name, cidr) if occupy == "held" and whole.contains(block) else run.reserve(cidr)


def steps(sequence: Vector, *, occupy: str, days: int = 0) -> Iterator[str]:
    """Take the steps, `days` passing before each newcomer; what is occupied is a node's, or reserved."""
    run = Run("kubernetes", [sequence["cidr"]], sequence["mask"])
    for index, step in enumerate(sequence["steps"]):
        match step["op"].split():
            case ["next"]:
                run.replay.wait(days)
                yield run.next()
            case ["occupy", cidr]:
                yield occupied(run, f"held-{index}", cidr, occupy)
            case ["release", cidr]:
                yield run.release(cidr)


@pytest.mark.parametrize("occupy", ["held", "reserved"])
@pytest.mark.parametrize("sequence", SEQUENCES, ids=ids)
def test_kube_controller_manager(sequence: Vector, occupy: str) -> None:
    theirs = controllers(sequence)
    mine = list(steps(sequence, occupy=occupy))
    before = len([*takewhile(lambda step: "release" not in step["op"], sequence["steps"])])
    assert mine[:before] == theirs[:before]
    assert mine == sequence.get("ours", {}).get("expect", theirs)


@pytest.mark.parametrize("sequence", [each for each in SEQUENCES if "release" in str(each["steps"])], ids=ids)
def test_after_the_quarantine_blocks_are_given_again_in_the_same_order(sequence: Vector) -> None:
    assert list(steps(sequence, occupy="held", days=8)) == controllers(sequence)


@pytest.mark.parametrize("occupy", ["held", "reserved"])
@pytest.mark.parametrize(
    "sequence", [each for each in SEQUENCES if "release" not in str(each["steps"])], ids=ids
)
def test_a_fresh_compile_gives_what_the_steps_gave(sequence: Vector, occupy: str) -> None:
    run = Run("kubernetes", [sequence["cidr"]], sequence["mask"])
    for index, step in enumerate(sequence["steps"]):
        if step["op"].startswith("occupy"):
            assert occupied(run, f"held-{index}", step["op"].split()[1], occupy) == "ok"
    blocks = [
        step["result"] for step in sequence["steps"] if step["op"] == "next" and step["result"] != "exhausted"
    ]
    assert all_at_once(run, len(blocks)) == blocks
    if "exhausted" in str(sequence["steps"]):
        assert all_at_once(run, len(blocks) + 1) == FULL


@pytest.mark.parametrize("first", CIDR_SET["firstN"], ids=ids)
def test_the_first_blocks_and_how_many_there_are(first: Vector) -> None:
    run = Run("kubernetes", [first["cidr"]], first["mask"])
    assert all_at_once(run, first["max"] + 1) == FULL
    blocks = all_at_once(run, first["max"])
    assert len(blocks) == first["max"]
    assert blocks[: first["n"]] == first["cidrs"]


def all_at_once(run: Run, number: int) -> list[str] | str:
    """Compile so many newcomers without a lock; give their blocks in name order, or the code of the refusal."""
    names = [newcomer(each) for each in range(number)]
    outcome = Replay(
        {**run.replay.documents, "nodes": fleet.inventory({"name": name} for name in reversed(names))}
    ).step({})
    return outcome.refused or [one(outcome, name) for name in names]


# cilium-operator, cluster-pool


def operators(sequence: Vector) -> list[str]:
    """Return what each operation gives in cilium-operator, in our words."""
    return [operator(op) for op in sequence["ops"]]


def operator(op: Vector) -> str:
    if "err" not in op:
        return str(op.get("result", "ok"))
    return next((code for words, code in REUSE_REFUSED.items() if words in op["err"]), FULL)


@pytest.mark.parametrize("sequence", CLUSTER_POOL, ids=ids)
def test_cluster_pool(sequence: Vector) -> None:
    run = Run("cluster-pool", sequence["pools"], sequence["mask"])
    mine = [
        run.next() if op["op"] == "next" else run.held(f"held-{index}", op["arg"])
        for index, op in enumerate(sequence["ops"])
    ]
    assert mine == sequence.get("ours", {}).get("expect", operators(sequence))


def test_a_cilium_node_without_a_node_occupies_as_well() -> None:
    occupied = next(each for each in CLUSTER_POOL if each["name"].startswith("pre-occupied"))
    run = Run("cluster-pool", occupied["pools"], occupied["mask"])
    for index, op in enumerate(occupied["ops"]):
        if op["op"] == "reuse":
            assert not run.replay.step({f"seen {index}": cilium_node(f"gone-{index}", op["arg"])}).refused
        else:
            assert run.next() == operator(op)


@pytest.mark.parametrize(
    ("cidr", "mask"),
    [(each["cidr"], each["mask"]) for each in SEQUENCES if "exactly 16 bits" in each["note"]]
    + [(each["pools"][0], each["mask"]) for each in CLUSTER_POOL if "16-bit limit ok" in each["name"]],
)
def test_sixteen_bits_of_ipv6_are_the_limit(cidr: str, mask: int) -> None:
    # One bit more, and kube-controller-manager and cilium-operator refuse to start: the node CIDR size is too big.
    whole = parse_block(cidr)
    wider = whole._replace(prefix=whole.prefix - 1)
    assert Run("cluster-pool", [cidr], mask).next() == f"{cidr.partition('/')[0]}/{mask}"
    assert Run("cluster-pool", [str(wider)], mask).next() == "IPC0211"
    # Nobody but ipamc reads the ranges in kubernetes mode.
    assert Run("kubernetes", [str(wider)], mask).next() == f"{cidr.partition('/')[0]}/{mask}"


# cilium-operator and agent, multi-pool


def multi_pool(case: Vector, count: int) -> list[str] | str:
    run = Run("multi-pool", case["cidrs"], case["mask"], blocksPerNode=count)
    run.replay.documents["cluster"]["spec"]["ipam"]["pinning"] = "none"
    outcome = run.replay.step({"n000": fleet.inventory([{"name": "n000"}])})
    return outcome.refused or outcome.blocks("n000")


def so_many(case: Vector) -> str:
    return f"{case['needed']} of {case['cidrs'][0]} by {case['mask']}{', first and last too' if case['allowFirst'] else ''}"


@pytest.mark.parametrize("case", MULTI_POOL["operator"], ids=so_many)
def test_multi_pool_blocks_for_so_many_addresses(case: Vector) -> None:
    blocks = case.get("ours", {}).get("expect", case["allocated"])
    assert multi_pool(case, len(blocks)) == blocks
    addresses = [
        usable_addresses((1, 18), map(parse_block, blocks[:count])) for count in range(len(blocks) + 1)
    ]
    assert addresses[-2] < case["needed"]
    if case["err"]:  # it gives all that there is, and then an error
        assert addresses[-1] < case["needed"]
        assert multi_pool(case, len(blocks) + 1) == FULL
    else:
        assert addresses[-1] >= case["needed"]


@pytest.mark.parametrize(
    "case", MULTI_POOL["neededIPCeil"], ids=lambda case: f"{case['inUse']} in use, {case['preAlloc']} ahead"
)
def test_needed_addresses(case: Vector) -> None:
    assert needed_addresses(case["inUse"], case["preAlloc"]) == case["needed"]


# The choices beside the vectors


def test_ours_is_said_only_where_it_differs() -> None:
    theirs = [(each, controllers(each)) for each in SEQUENCES] + [
        (each, operators(each)) for each in CLUSTER_POOL
    ]
    theirs += [(each, each["allocated"]) for each in MULTI_POOL["operator"]]
    for vector, results in theirs:
        if "ours" in vector:
            assert vector["ours"].keys() == {"why", "expect"}, vector
            assert vector["ours"]["expect"] != results, vector


@pytest.mark.parametrize(
    ("block", "number"),
    [("fd00::/104", 65_534), ("fd00::/112", 65_534), ("fd00::/113", 32_766), ("10.0.0.0/15", 131_070)],
)
def test_of_a_large_ipv6_block_an_agent_uses_65536_addresses(block: str, number: int) -> None:
    assert usable_addresses((1, 18), [parse_block(block)]) == number
