"""Rules about pins: the blocks that pools keep for named nodes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ipamc.model.address_sets import overlaps, shared
from ipamc.model.cidr import Block
from ipamc.model.cluster import Cluster, Pool
from ipamc.model.diagnostics import Diagnostic, Place, Related, error


class Pin(Struct, frozen=True, kw_only=True):
    """A block that a pool keeps for a node."""

    block: Block
    node: str
    at: Place
    pool: Pool


def check_pins(cluster: Cluster) -> Iterator[Diagnostic]:
    """Yield every finding about pins that needs no lock."""
    pins = [
        Pin(block=pin.block, node=node, at=pin.at, pool=pool)
        for pool in cluster.pools
        for node, some in pool.pins.items()
        for pin in some
    ]
    yield from pins_overlap(sorted(pins, key=lambda pin: pin.node))
    yield from pin_over_reserved(cluster, pins)
    yield from several_pins(cluster, pins)
    yield from pin_in_unlisted(pins)


def pins_overlap(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0217: no two pins share an address."""
    for outer, pin in overlaps(pins, lambda pin: pin.block):
        message = f"pin {pin.block} of node {pin.node} overlaps pin {outer.block} of node {outer.node}"
        also = [Related(outer.at, f"{outer.node} is pinned here")]
        yield error("IPC0217", pin.at, message, also=also, help="pin one of them elsewhere")


def pin_over_reserved(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0218: a pin shares no address with a reserved or excluded CIDR."""
    for pin in pins:
        for what, field, under in (
            ("reserved", "reserved", pin.pool.reserved_over(pin.block)),
            ("excluded", "excludedCIDRs", cluster.excluded_over(pin.block)),
        ):
            if under:
                message = f"pin {pin.block} of node {pin.node} overlaps {what} {under.block}"
                fix = f"pin another block, or take {shared(under.block, pin.block)} out of {field}"
                yield error("IPC0218", pin.at, message, also=[Related(under.at, f"{what} here")], help=fix)


def several_pins(cluster: Cluster, pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0502: a node has one block a family in kubernetes and cluster-pool mode."""
    if not cluster.mode.one_block:
        return
    first: dict[tuple[str, int], Pin] = {}
    for pin in sorted(pins, key=lambda pin: (pin.node, pin.block)):
        before = first.setdefault((pin.node, pin.block.family), pin)
        if before is not pin:
            message = (
                f"node {pin.node} is pinned to several IPv{pin.block.family} blocks, and {cluster.mode} mode "
                "gives one"
            )
            also = [Related(before.at, f"{before.block} is pinned here")]
            fix = "pin one larger block, or use multi-pool mode"
            yield error("IPC0502", pin.at, message, also=also, help=fix)
    for pool in cluster.pools:
        if pool.blocks_per_node > 1:
            message = (
                f'pool "{pool.name}" gives {pool.blocks_per_node} blocks a node, and {cluster.mode} mode has '
                "one a family"
            )
            also = [Related(cluster.field("spec", "ipam", "mode"), "the mode is set here")]
            fix = "use a larger block (a shorter blockSize), or multi-pool mode"
            yield error("IPC0502", pool.at / "spec" / "blocksPerNode", message, also=also, help=fix)


def pin_in_unlisted(pins: list[Pin]) -> Iterator[Diagnostic]:
    """IPC0222: no node is pinned to a block of an `unlisted` pool."""
    for pin in pins:
        if pin.pool.unlisted:
            message = (
                f'pin {pin.block} of node {pin.node} is of unlisted pool "{pin.pool.name}", which the '
                "operator hands out"
            )
            also = [Related(pin.pool.at / "spec" / "unlisted", "the pool is unlisted here")]
            yield error("IPC0222", pin.at, message, also=also, help="pin a block of another pool")
