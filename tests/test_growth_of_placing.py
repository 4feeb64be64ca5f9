"""What a compile costs grows as its input does: function calls for n parts and for 4n, of shapes that benchmarks/growth.py measures with a clock."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType

import pytest

from ipamc.model.diagnostics import Refused
from ipamc.pipeline import Inputs, compile_cluster
from ipamc.workspace.disk import assets

ROOT = Path(__file__).parent.parent
N = 48
LIMIT = 1.3
"""Above four times as many calls; what a sort or a bisection adds is less."""
SLACK = 4000
"""Calls that any cluster takes, about."""

SCHEMAS, TEMPLATES = assets("schemas"), assets("templates")


def load() -> ModuleType:
    """Import the shapes, which are in no package."""
    spec = importlib.util.spec_from_file_location(
        "shapes_of_placing", ROOT / "benchmarks" / "shapes" / "placing.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPES = load().shapes()


def calls(work: Callable[[], object]) -> int:
    """Count the calls of Python functions, and the steps of generators."""
    count = 0

    def step(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def compiled(shape: str, parts: int) -> Callable[[], object]:
    files = {name: text.encode() for name, text in SHAPES[shape](parts).items()}
    inputs = Inputs(
        name="bench",
        folder="clusters/bench",
        sources={
            name: text
            for name, text in files.items()
            if name.endswith((".json", ".yaml")) and "/" not in name
        },
        lock_path="clusters/bench/ipam.lock",
        lock=files.get("ipam.lock"),
        published={
            name.removeprefix("rendered/"): text
            for name, text in files.items()
            if name.startswith("rendered/")
        },
        schemas=SCHEMAS,
        templates=TEMPLATES,
        today="2026-11-21",
    )

    def work() -> None:
        try:
            compile_cluster(inputs)
        except Refused:
            return

    return work


@pytest.mark.parametrize(
    "shape",
    [
        "alias of a text",
        "alias of an impossible text",
        "alias in size classes",
        "deep conditions",
        "alternatives of many keys for many nodes",
        "names",
        "racks",
        "racks, multi-pool",
        "racks by terms",
        "pools",
        "pools of one selector, all full",
        "pools of one selector, full one by one",
        "pools of one selector, label sets",
        "pools of one selector, label sets, classes",
        "pools of two selectors, full",
        "full in one family",
        "overflow of one pool",
        "overflow of one pool, pinned",
        "unknown overflow",
        "values that no node has",
        "nodes without a pool",
        "sets, pinning: pool",
        "pins, pinning: pool",
        "priorities that overlap, pinning: pool",
        "size classes",
        "ranges too small for a class",
        "ranges and reserved",
        "reserved outside",
        "ranges and excluded",
        "pools and excluded",
        "ranges and excluded, adopt",
        "internal addresses",
        "pins over reserved",
        "pins beside reserved and excluded",
        "pins outside",
        "pins not held",
        "pins not held, renumbered",
        "published ranges that leave, reserved",
        "held over reserved",
        "held over excluded",
        "held beside excluded",
        "held in pools of no node",
        "held in overflow",
        "held in pools of one selector",
        "released beyond ranges",
        "released beyond pools",
        "CiliumNodes without a node, unlisted",
        "one CiliumNode",
        "one CiliumNode, others",
        "single addresses and podCIDRs",
        "foreign pools",
    ],
)
def test_four_times_as_much_takes_four_times_as_many_calls(shape: str) -> None:
    compiled(shape, 2)()  # what is loaded or made once
    few = calls(compiled(shape, N)) + SLACK
    many = calls(compiled(shape, 4 * N))
    assert many <= 4 * LIMIT * few, f"{many / few / 4:.2f} times linear"
