"""Rules about pins: this node, that block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool, Range
from ipamc.model.diagnostics import Diagnostic, Related, error
from ipamc.model.range_index import first_overlap


class Pin(NamedTuple):
    """One pin; sorts by address."""

    block: Block
    node: str
    at: Range
    pool: Pool


def check_pins(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about pins that needs no lock."""
    pins = [
        Pin(each.block, node, each, pool)
        for pool in cluster.pools
        for node, ranges in pool.pins.items()
        for each in ranges
    ]
    yield from pins_overlap(sorted(pins, key=lambda pin: (pin.block, pin.node)))
    yield from pin_over_reserved(cluster, pins)
    yield from several_pins(cluster, pins)
    yield from pin_in_unlisted(pins)


def pins_overlap(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0217: no two pins share an address.

    Two nodes, or one node twice, are promised the same addresses.
    """
    widest: Pin | None = None
    for pin in pins:
        if widest and widest.block.overlaps(pin.block):
            yield error(
                "IPC0217",
                pin.at.at,
                f"pin {pin.block} of node {pin.node} overlaps pin {widest.block} of node {widest.node}",
                also=[Related(widest.at.at, f"{widest.node} is pinned here")],
                help="pin one of them elsewhere",
            )
        else:
            widest = pin


def pin_over_reserved(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0218: a pin shares no address with a reserved or excluded CIDR.

    What is reserved is never given out, not even by hand. Take the pinned block out of the reservation first.
    """
    for pin in pins:
        for what, field, ranges in (
            ("reserved", "reserved", pin.pool.reserved),
            ("excluded", "excludedCIDRs", cluster.excluded),
        ):
            if under := first_overlap(ranges, pin.block):
                yield error(
                    "IPC0218",
                    pin.at.at,
                    f"pin {pin.block} of node {pin.node} overlaps {what} {under.block}",
                    also=[Related(under.at, f"{what} here")],
                    help=f"pin another block, or take {max(pin.block, under.block, key=lambda block: block.prefix)} out of {field}",
                )


def several_pins(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0502: a node has one block a family in kubernetes and cluster-pool mode.

    Kubernetes allows one podCIDR a family, and Cilium gives pods addresses of the first one only: it routes further ones and never uses them. For
    more addresses use a larger block, or multi-pool mode for several.
    """
    if not cluster.mode.one_block:
        return
    first: dict[tuple[str, int], Pin] = {}
    for pin in sorted(pins, key=lambda pin: (pin.node, pin.block)):
        before = first.setdefault((pin.node, pin.block.family), pin)
        if before is not pin:
            yield error(
                "IPC0502",
                pin.at.at,
                f"node {pin.node} is pinned to several IPv{pin.block.family} blocks, and {cluster.mode} mode gives one",
                also=[Related(before.at.at, f"{before.block} is pinned here")],
                help="pin one larger block, or use multi-pool mode",
            )
    for pool in cluster.pools:
        if pool.blocks_per_node > 1:
            yield error(
                "IPC0502",
                pool.at / "spec" / "blocksPerNode",
                f'pool "{pool.name}" gives {pool.blocks_per_node} blocks a node, and {cluster.mode} mode has one a family',
                also=[Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")],
                help="use a larger block (a shorter blockSize), or multi-pool mode",
            )


def pin_in_unlisted(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0222: nobody is pinned to a block of an `unlisted` pool.

    The operator hands out that pool by itself, to nodes that nobody listed: it may give the pinned block to one of them.
    """
    for pin in pins:
        if pin.pool.unlisted:
            yield error(
                "IPC0222",
                pin.at.at,
                f'pin {pin.block} of node {pin.node} is of unlisted pool "{pin.pool.name}", which the operator hands out',
                also=[Related(pin.pool.at / "spec" / "unlisted", "the pool is unlisted here")],
                help="pin a block of another pool",
            )
