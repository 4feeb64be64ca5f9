"""The arithmetic of utilisation, against a walk over every address."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamc.lock.utilisation import PoolUse, Use, lines_in, utilisation
from ipamc.model.cidr import Block, Range, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import CiliumNode
from ipamc.model.selector.selector import Selector

AT = Place("pools.yaml")
TOP = parse_block("10.0.0.0/24")


def at(*texts: str) -> tuple[Range, ...]:
    return tuple(Range(parse_block(text), AT) for text in texts)


def pool(ranges: tuple[Range, ...], size: int, **more: object) -> Pool:
    family = ranges[0].block.family
    part = PoolFamily(family=family, ranges=ranges, block_size=size, at=AT)
    return Pool(name="a", at=AT, families={family: part}, selector=everything(), selector_at=AT, **more)  # type: ignore[arg-type]  # a short cut of this test


def everything() -> Selector:
    return object()  # type: ignore[return-value]  # no selector is asked here


def count(pool: Pool, lines: tuple[Line, ...] = (), **more: object) -> PoolUse:
    cluster = Cluster(
        name="lab",
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=Mode.CLUSTER_POOL,
        pools=(pool,),
        **more,  # type: ignore[arg-type]  # as above
    )
    lock = Lock(
        cluster="lab",
        mode=Mode.CLUSTER_POOL,
        shards=1,
        lines=tuple(sorted(lines, key=lambda line: line.block)),
    )
    (use,) = utilisation(cluster, lock)
    return use


def test_every_part_is_counted() -> None:
    lines = (
        Line(block=parse_block("10.0.0.0/27"), node="n1"),
        Line(block=parse_block("10.0.0.32/27"), node="n2", state=State.QUARANTINED, since="2026-11-21"),
        Line(block=parse_block("10.0.0.64/27"), node="n1", state=State.PENDING),
        Line(block=parse_block("10.0.0.96/27"), node="n3", state=State.RELEASED),
    )
    use = count(pool(at("10.0.0.0/24"), 27, reserved=at("10.0.0.0/30", "10.0.0.224/28")), lines)
    # 4: .96 (released), .128, .160, .192; what is reserved inside a held block is held
    assert use.use == Use(
        total=256,
        held=64,
        quarantined=32,
        released=32,
        reserved=16,
        free=112,
        blocks_held=2,
        blocks_free=4,
        blocks=8,
    )
    assert [each.use for each in use.ranges] == [use.use]


def test_pins_are_free_but_not_for_newcomers() -> None:
    use = count(pool(at("10.0.0.0/24"), 27, pins={"n9": at("10.0.0.32/27")})).use
    assert (use.free, use.blocks_free) == (256, 7)


def test_excluded_addresses_count_as_reserved_and_ghosts_as_held() -> None:
    ghost = CiliumNode("gone", AT, blocks=(parse_block("10.0.0.128/27"),))
    use = count(pool(at("10.0.0.0/24"), 27), excluded=at("10.0.0.0/25"), cilium_nodes=(ghost,)).use
    assert (use.reserved, use.held, use.free, use.blocks_free) == (128, 32, 96, 3)


def test_ipv6_is_counted_without_a_walk() -> None:
    use = count(pool(at("fd00::/48"), 64), (Line(block=parse_block("fd00::/64"), node="n1"),)).use
    assert (use.total, use.blocks, use.blocks_free) == (1 << 80, 65536, 65535)


def test_lines_of_a_range() -> None:
    inside = Line(block=parse_block("10.0.0.32/27"), node="n1")
    outside = Line(block=parse_block("10.0.1.0/27"), node="n2")
    lock = Lock(cluster="lab", mode=Mode.CLUSTER_POOL, shards=1, lines=(inside, outside))
    assert lines_in(lock, TOP) == (inside,)


blocks = st.builds(
    lambda prefix, number: Block(4, TOP.first + (number << (32 - prefix)) % 256, prefix),
    st.integers(25, 32),
    st.integers(0, 255),
)


@given(
    st.lists(blocks, max_size=6), st.lists(blocks, max_size=4), st.lists(st.sampled_from(State), min_size=6)
)
def test_the_same_as_a_walk(wanted: list[Block], reserved: list[Block], states: list[State]) -> None:
    lines: list[Line] = []
    for block, state in zip(wanted, states, strict=False):
        if not any(block.overlaps(line.block) for line in lines):
            lines.append(
                Line(
                    block=block,
                    node="n",
                    state=state,
                    since="2026-11-21" if state is State.QUARANTINED else "",
                )
            )
    kept = tuple(Range(block, AT) for block in reserved)
    use = count(pool(at("10.0.0.0/24"), 28, reserved=kept), tuple(lines)).use

    def state_of(address: int) -> str:
        for line in lines:
            if line.block.first <= address <= line.block.last:
                return str(State.HELD if line.in_use else line.state)
        return "reserved" if any(block.first <= address <= block.last for block in reserved) else "free"

    walk = {address: state_of(address) for address in range(TOP.first, TOP.last + 1)}
    for part in ("held", "quarantined", "released", "reserved", "free"):
        assert getattr(use, part) == list(walk.values()).count(part)
    open_to_all = {
        address
        for address, state in walk.items()
        if state in {"free", "released"}
        and not any(block.first <= address <= block.last for block in reserved)
    }
    assert use.blocks_free == sum(
        all(start + n in open_to_all for n in range(16)) for start in range(TOP.first, TOP.last + 1, 16)
    )


def test_a_released_block_that_a_machine_has_is_not_free() -> None:
    """A CiliumNode without a node has it: it counts as held, and is no room."""
    line = Line(block=parse_block("10.0.0.0/27"), node="gone", state=State.RELEASED)
    ghost = CiliumNode("gone", AT, blocks=(parse_block("10.0.0.0/27"),))
    use = count(pool(at("10.0.0.0/24"), 27), (line,), cilium_nodes=(ghost,)).use
    assert (use.held, use.released, use.free, use.blocks_free) == (32, 0, 224, 7)
