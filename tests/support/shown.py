"""A small cluster as `ipamc show` sees it: two ranges of IPv4, one of IPv6, and a block in each state."""

from __future__ import annotations

from ipamc.model.cidr import Range, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.selector.selector import Selector
from ipamc.review.shown_pools import Choice, ShownCluster, shown

AT = Place("pools.yaml")
TODAY = "2026-11-22"

LINES = (
    Line(block=parse_block("10.0.0.0/27"), pool="rack-a", node="n1"),
    Line(
        block=parse_block("10.0.0.32/27"),
        pool="rack-a",
        node="n2",
        state=State.QUARANTINED,
        since="2026-11-21",
    ),
    Line(block=parse_block("10.0.2.0/27"), pool="rack-a", node="n1", state=State.PENDING),
    Line(block=parse_block("fd00::/64"), pool="rack-a", node="n1"),
)


def part(size: int, *ranges: str) -> PoolFamily:
    """Return a family of a pool."""
    blocks = [parse_block(text) for text in ranges]
    return PoolFamily(
        family=blocks[0].family, ranges=tuple(Range(block, AT) for block in blocks), block_size=size, at=AT
    )


def pool(name: str, *parts: PoolFamily, **more: object) -> Pool:
    """Return a pool whose selector nobody asks."""
    everything: Selector = object()  # type: ignore[assignment]  # as said
    families = {each.family: each for each in parts}
    return Pool(name=name, at=AT, families=families, selector=everything, selector_at=AT, **more)  # type: ignore[arg-type]  # a short cut of tests


RACK_A = pool("rack-a", part(27, "10.0.0.0/24", "10.0.2.0/25"), part(64, "fd00::/48"))


def lab(  # noqa: PLR0913 - a fixture names what a test is about
    *more: Line,
    pools: tuple[Pool, ...] = (RACK_A,),
    choice: Choice | None = None,
    lines: bool = False,
    today: str = TODAY,
    quarantine_days: int | None = 7,
    mode: Mode = Mode.KUBERNETES,
    families: tuple[int, ...] = (4, 6),
    of: tuple[Line, ...] = LINES,
    name: str = "lab",
) -> ShownCluster:
    """Return what is shown of a cluster with these pools, and with more lines than LINES."""
    cluster = Cluster(
        name=name,
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=mode,
        pools=pools,
        families=families,
        quarantine_days=quarantine_days,
    )
    every = tuple(sorted((*of, *more), key=lambda line: line.block))
    lock = Lock(cluster=name, mode=mode, shards=1, lines=every)
    return shown(cluster, lock, choice or Choice(), today, lines=lines)
