"""What Cilium's agents make of Nodes, CiliumNodes and blocks: their own functions, asked by a program of ours (servers/agent). No agent runs."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipamc.model.cidr import parse_block
from ipamc.model.cilium.support import Capability
from ipamc.model.cilium.versions import can, usable_addresses
from ipamc.model.cluster import Version
from tests.e2e.api import Object
from tests.e2e.conftest import OPERATORS, minor
from tests.e2e.objects import cilium_node

NEW, OLD = "network.cilium.io", "io.cilium.network"
TINY = {"10.0.0.0/31": 2, "10.0.0.0/32": 1, "fd00::/127": 2, "fd00::/128": 1}


@pytest.fixture(params=OPERATORS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """Return the folder of a Cilium release."""
    return Path(request.param)


def asked(folder: Path, **question: Any) -> Any:
    """Ask the functions of a release's agent."""
    major, number = minor(folder)
    sources = sorted((Path(__file__).parent / f"servers/cilium-{major}.{number}/agent").glob("*.go"))
    program = f"agent-{hashlib.sha256(b''.join(file.read_bytes() for file in sources)).hexdigest()[:8]}"
    done = subprocess.run(
        [str(folder / program)], input=json.dumps(question), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def version(folder: Path) -> Version:
    """Return the minor as the version table has it."""
    return minor(folder)


def blocks(four: str = "", six: str = "", *secondary: str) -> Object:
    """Make what an agent says of a node."""
    return {"IPv4": four, "IPv6": six, "Secondary": [*secondary] or None}


def node(*cidrs: str, **annotations: str) -> Object:
    """Make a Node."""
    spec = {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)} if cidrs else {}
    return {"metadata": {"name": "a", "annotations": annotations}, "spec": spec}


def test_pods_get_all_addresses_of_tiny_blocks_or_none(folder: Path) -> None:
    others = {"10.0.0.0/26": 62, "10.0.0.0/30": 2, "fd00::/112": 65_534, "fd00::/104": 65_534}
    usable = asked(folder, blocks=[*others, *TINY])["Usable"]
    assert {block: usable.pop(block) for block in others} == others
    ours = {block: usable_addresses(version(folder), [parse_block(block)]) for block in others}
    assert ours == others
    assert usable == (TINY if can(version(folder), Capability.TINY_BLOCKS) else dict.fromkeys(TINY, 0))


@pytest.mark.parametrize(("first", "last"), [(True, False), (False, True), (True, True)])
def test_a_pool_may_allow_the_first_and_the_last_address_of_its_blocks(
    folder: Path, *, first: bool, last: bool
) -> None:
    if not can(version(folder), Capability.ALLOW_ENDS):
        pytest.skip("a CiliumPodIPPool of this version has no such fields")
    usable = asked(folder, blocks=["10.0.0.0/29", *TINY], allowFirst=first, allowLast=last)["Usable"]
    assert usable == {"10.0.0.0/29": 6 + first + last, **TINY}


def test_a_node_s_pod_cidrs_are_used_before_its_annotations(folder: Path) -> None:
    annotated = {f"{NEW}/ipv4-pod-cidr": "10.3.0.0/26", f"{OLD}.ipv4-pod-cidr": "10.4.0.0/26"}
    nodes = [node("10.0.0.0/26", "fd00::/120", **annotated), node("10.0.0.0/26", **annotated)]
    for annotate in (False, True):
        found = asked(folder, nodes=nodes, annotate=annotate)["Nodes"]
        assert found == [blocks("10.0.0.0/26", "fd00::/120"), blocks("10.0.0.0/26")]


def test_annotations_count_only_where_that_is_asked_for(folder: Path) -> None:
    four, six = "10.3.0.0/26", "fd00:3::/120"
    current = node(**{f"{NEW}/ipv4-pod-cidr": four, f"{NEW}/ipv6-pod-cidr": six})
    former = node(**{f"{OLD}.ipv4-pod-cidr": four, f"{OLD}.ipv6-pod-cidr": six})
    assert can(version(folder), Capability.ANNOTATIONS_ASKED_FOR)
    assert asked(folder, nodes=[current, former])["Nodes"] == [blocks(), blocks()]
    known = can(version(folder), Capability.NETWORK_ANNOTATIONS)
    expected = [blocks(four, six) if known else blocks(), blocks(four, six)]
    assert asked(folder, nodes=[current, former], annotate=True)["Nodes"] == expected


def test_of_several_pod_cidrs_of_a_cilium_node_the_first_of_a_family_gives_pods_their_addresses(
    folder: Path,
) -> None:
    """Why a second block of a family is refused in cluster-pool mode: it is routed, and never used."""
    several = cilium_node("a", "10.0.0.0/26", "10.0.1.0/26", "fd00::/120", "fd00::100/120")
    found = asked(folder, ciliumNodes=[several])["CiliumNodes"]
    assert found == [blocks("10.0.0.0/26", "fd00::/120", "10.0.1.0/26", "fd00::100/120")]
