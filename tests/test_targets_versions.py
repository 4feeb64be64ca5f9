"""The version table, and the arithmetic that depends on it."""

from __future__ import annotations

import pytest

from ipamc.cidr import parse_block
from ipamc.versions import (
    FIRST,
    LAST,
    TABLE,
    Capability,
    can,
    needed_addresses,
    node_config_api,
    pod_cidr_annotation,
    pre_allocation,
    since,
    text,
    until,
)


def test_every_capability_has_one_row_with_a_source() -> None:
    assert sorted(row.capability.name for row in TABLE) == sorted(each.name for each in Capability)
    assert all(FIRST <= row.first <= row.last <= LAST and row.source for row in TABLE)


@pytest.mark.parametrize(
    ("capability", "before", "first"),
    [
        (Capability.MULTI_POOL, (1, 13), (1, 14)),
        (Capability.DEFAULT_IP_POOL, (1, 14), (1, 15)),
        (Capability.NODE_CONFIG_V2, (1, 15), (1, 16)),
        (Capability.TINY_BLOCKS, (1, 16), (1, 17)),
        (Capability.MULTI_POOL_TUNNEL, (1, 17), (1, 18)),
        (Capability.DO_NOT_GC, (1, 17), (1, 18)),
        (Capability.NUMERIC_ALLOCATED, (1, 19), (1, 20)),
    ],
)
def test_first_minors(capability: Capability, before: tuple[int, int], first: tuple[int, int]) -> None:
    assert (can(before, capability), can(first, capability), since(capability)) == (False, True, first)


def test_metallb_ends_with_1_16() -> None:
    assert can((1, 16), Capability.METALLB)
    assert not can((1, 17), Capability.METALLB)
    assert text(until(Capability.METALLB)) == "1.16"


def test_names_by_version() -> None:
    assert [node_config_api((1, minor)) for minor in (15, 16)] == ["cilium.io/v2alpha1", "cilium.io/v2"]
    assert [pod_cidr_annotation((1, minor), 6) for minor in (12, 13)] == [
        "io.cilium.network.ipv6-pod-cidr",
        "network.cilium.io/ipv6-pod-cidr",
    ]


@pytest.mark.parametrize(
    ("in_use", "ahead", "needed"),
    [(1, 16, 32), (15, 16, 32), (16, 16, 32), (17, 16, 48), (0, 8, 8), (240, 8, 248), (241, 8, 256), (5, 0, 5)],
)
def test_needed_addresses_are_ciliums(in_use: int, ahead: int, needed: int) -> None:
    assert needed_addresses(in_use, ahead) == needed


@pytest.mark.parametrize(
    ("blocks", "default", "version", "number"),
    [
        ("10.0.0.0/24", True, 18, 8),
        ("10.0.0.0/27", True, 18, 8),  # 16 of 30
        ("10.0.0.0/28", True, 18, 7),  # 14 of 14
        ("10.0.0.0/29", True, 18, 3),  # 6 of 6
        ("10.0.0.0/30", True, 18, None),  # 4 of 2
        ("10.0.0.0/30 10.0.0.4/30", True, 18, 1),  # 4 of 4
        ("10.0.0.0/30", False, 18, 2),
        ("10.0.0.0/31", False, 17, 2),
        ("10.0.0.0/31", False, 16, None),
        ("10.0.0.0/24 fd00::/124", True, 18, 7),  # each family by itself
        ("10.0.0.0/24 fd00::/64", True, 18, 8),
        ("", False, 18, None),
    ],
)
def test_pre_allocation(blocks: str, default: bool, version: int, number: int | None) -> None:  # noqa: FBT001 - a table
    assert pre_allocation((1, version), map(parse_block, blocks.split()), default=default) == number
