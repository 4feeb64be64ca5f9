"""docs/start/choose-a-mode.md: what its table says of the modes is what a compile accepts and refuses, for every minor and pair of modes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ipamc.model.cilium.support import FIRST, LAST
from ipamc.model.diagnostics import Refused
from ipamc.model.lock import Consent
from ipamc.pipeline import Compilation, Inputs, compile_cluster
from tests.support import fleet
from tests.support.page_story import ROOT

MODES = ("kubernetes", "cluster-pool", "multi-pool", "crd")
MINORS = range(FIRST[1], LAST[1] + 1)
UID = "3f3bf4ec-c1f6-5ce3-9c15-41449bde72da"


def compiled(mode: str, minor: int = 18, lock: str = "", blocks: int = 1, **spec: Any) -> Compilation | None:
    """Compile a cluster of one node; None if it is refused."""
    cilium = {"version": f"1.{minor}", **spec.pop("cilium", {})}
    documents = [
        fleet.cluster(mode, cilium=cilium, **spec),
        fleet.pool("default", ipv4={"cidrs": ["10.1.0.0/20"], "blockSize": 26}, blocksPerNode=blocks),
        fleet.inventory([{"name": "n1", "uid": UID}]),
    ]
    try:
        return compile_cluster(
            Inputs(
                name="fleet",
                folder="clusters/fleet",
                sources=fleet.as_json(documents),
                lock_path="clusters/fleet/ipam.lock",
                lock=lock.encode() if lock else None,
                schemas=fleet.SCHEMAS,
                templates=fleet.TEMPLATES,
                consent=Consent(mode=bool(lock)),
                today="2026-11-22",
                locked=False,
            )
        )
    except Refused:
        return None


def since(mode: str, **spec: Any) -> int:
    """Return the first minor that is accepted, 0 if none is; from it on, all are."""
    accepted = [minor for minor in MINORS if compiled(mode, minor, **spec)]
    assert accepted == list(MINORS)[-len(accepted) :] or not accepted
    return accepted[0] if accepted else 0


def cilium(mode: str) -> str:
    pinning = f"; `pinning` 1.{since(mode, ipam={'pinning': 'node'})} on" if mode == "multi-pool" else ""
    return f"1.{since(mode)} on{pinning}"


def blocks(mode: str) -> str:
    pinning: dict[str, Any] = {"ipam": {"pinning": "node"}} if mode == "multi-pool" else {}
    return "several" if compiled(mode, blocks=2, **pinning) else "one"


def tunnel(mode: str) -> str:
    first = since(mode, cilium={"routingMode": "tunnel"})
    return "no" if not first else "yes" if first == since(mode) else f"Cilium 1.{first} on"


def bgp(mode: str) -> str:
    plane = since(mode, bgp="control-plane")
    metallb = [minor for minor in MINORS if compiled(mode, minor, bgp="metallb")]
    said = [f"control plane 1.{plane} on"] if plane else []
    return ", ".join([*said, *([f"MetalLB up to 1.{metallb[-1]}"] if metallb else [])]) or "no"


def changes(mode: str) -> str:
    before = compiled(mode)
    assert before
    held = re.findall(r'"block":"([^"]+)"', before.lock)
    to = [
        f"`{other}`"
        for other in MODES
        if other != mode
        and (after := compiled(other, lock=before.lock))
        and f'"block":"{held[0]}"' in after.lock
    ]
    return ", ".join(to) or "nothing"


ROWS = {
    "Cilium": cilium,
    "blocks of a node, in each family": blocks,
    "tunnel routing": tunnel,
    "Cilium announces the blocks by BGP": bgp,
    "nodes keep their blocks when the mode changes to": changes,
}


@pytest.mark.parametrize("row", ROWS)
def test_the_table_says_what_a_compile_does(row: str) -> None:
    text = (ROOT / "docs/start/choose-a-mode.md").read_text(encoding="utf-8")
    assert f"| {row} | {' | '.join(map(ROWS[row], MODES))} |\n" in text
