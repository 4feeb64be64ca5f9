"""The operator's errors, judged by what was written."""

from __future__ import annotations

from typing import Any

import pytest

from ipamc.model.cidr import read_blocks
from ipamc.review.live.cilium import Run, judge

EMPTY = 'failed to allocate ipv4 address for node "n" from pool "{}": pool empty'
UNKNOWN = "allocator not configured for the requested CIDR {}"
OWN: dict[str, Any] = {"own_pools": {"p.n", "p.m"}}
ADOPT: dict[str, Any] = {
    "operator_list": read_blocks(["10.0.0.0/25", "10.0.0.128/25"])[0],
    "given": {"n": read_blocks(["10.5.0.0/27", "10.0.0.0/27"])[0], "m": read_blocks(["10.6.0.0/27"])[0]},
}


@pytest.mark.parametrize(
    ("error", "written", "expected"),
    [
        pytest.param("x", {}, "failures", id="new"),
        pytest.param("x", {"before": {"n": "x"}}, "before", id="as before"),
        pytest.param("x", {"before": {"n": "y"}}, "failures", id="another than before"),
        pytest.param("x", {"before": {"m": "x"}}, "failures", id="of another node"),
        pytest.param("x", {"before": {"n": "x"}, "nodes": {"n"}}, "failures", id="of a node that changed"),
        pytest.param(
            EMPTY.format("p"),
            {"before": {"n": EMPTY.format("p")}, "pools": {"p"}},
            "failures",
            id="changed pool",
        ),
        pytest.param(EMPTY.format("p.n"), OWN, "", id="pinned"),
        pytest.param("ipam-multi-pool-sync allocation failed: " + EMPTY.format("p.n"), OWN, "", id="1.20"),
        pytest.param(EMPTY.format("p.n") + "\n" + EMPTY.format("p.n"), OWN, "", id="both families"),
        pytest.param(EMPTY.format("p.n") + "\nx", OWN, "failures", id="pinned, and another"),
        pytest.param(EMPTY.format("p.m"), OWN, "failures", id="another node's own pool"),
        pytest.param(EMPTY.format("p"), OWN, "failures", id="shared"),
        pytest.param(UNKNOWN.format("10.0.0.0/27"), ADOPT, "restart", id="in the rendered list"),
        pytest.param(UNKNOWN.format("10.0.0.0/24"), ADOPT, "restart", id="in two CIDRs of it"),
        pytest.param(UNKNOWN.format("10.5.0.0/27"), ADOPT, "", id="a block of ours, outside of it"),
        pytest.param(UNKNOWN.format("10.6.0.0/27"), ADOPT, "failures", id="a block of another node"),
        pytest.param(UNKNOWN.format("10.9.0.0/27"), ADOPT, "failures", id="a block of nobody"),
        pytest.param(UNKNOWN.format("10.0.0.0/27"), {}, "failures", id="a bystander"),
        pytest.param(UNKNOWN.format("nonsense"), ADOPT, "failures", id="no CIDR"),
        pytest.param("requested CIDR (10.0.0.0/27) is already allocated", ADOPT, "failures", id="taken"),
    ],
)
def test_errors(error: str, written: dict[str, Any], expected: str) -> None:
    found = judge({"n": error}, Run(**written))
    assert {
        name: dict(getattr(found, name)) for name in ("failures", "before", "restart") if getattr(found, name)
    } == ({expected: {"n": error}} if expected else {})
