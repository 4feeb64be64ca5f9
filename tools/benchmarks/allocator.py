"""What the allocator costs: `python tools/benchmarks/allocator.py [NODES]`; 100,000 nodes by default. Best of five, in milliseconds; the input is made outside the clock."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ipamc.model.cidr import Block, Range
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import Node
from ipamc.model.plan import Demand, Offer, Reconciled, Want
from ipamc.model.selector.selector import EVERY
from ipamc.place.allocate.allocate import allocate

AT = Place("benchmark")
TODAY = "2026-11-21"
MANY = 100_000


def pool(index: int, *, family: int = 4, prefix: int = 11, size: int = 26) -> Pool:
    whole = Block(family, index << 21 | 10 << 28 if family == 4 else (0xFD << 120) + (index << 80), prefix)
    part = PoolFamily(family=family, ranges=(Range(whole, AT),), block_size=size, at=AT)
    return Pool(name=f"pool-{index}", at=AT, families={family: part}, selector=EVERY, selector_at=AT)


def cluster(pools: list[Pool], family: int = 4) -> Cluster:
    return Cluster(
        name="lab",
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=Mode.CLUSTER_POOL,
        families=(family,),
        pools=tuple(pools),
        quarantine_days=7,
    )


def newcomers(offers: list[Offer], number: int, family: int = 4) -> tuple[Demand, ...]:
    return tuple(
        Demand(Want(Node(f"node-{index:06}", {}, AT), (offers[index % len(offers)],)), (family,))
        for index in range(number)
    )


def reconciled(demands: tuple[Demand, ...], lines: list[Line]) -> Reconciled:
    lines.sort(key=lambda line: line.block)
    lock = Lock(cluster="lab", mode=Mode.CLUSTER_POOL, shards=1, lines=tuple(lines))
    return Reconciled(
        lock=lock,
        held={line.node: (line,) for line in lock.lines if line.state is State.HELD},
        demands=demands,
    )


def held(of: Pool, number: int, step: int = 1, **state: Any) -> list[Line]:
    whole, size = of.families[4].ranges[0].block, of.families[4].block_size
    return [
        Line(
            block=Block(4, whole.first + (index * step << 32 - size), size),
            pool=of.name,
            node=f"old-{index:06}",
            **state,
        )
        for index in range(number)
    ]


def three_sizes(pools: list[Pool], family: int, *sizes: int) -> list[Offer]:
    offers = [Offer(each, {family: size}) for each in pools for size in sizes]
    random.Random(1).shuffle(offers)
    return offers


def cases(many: int = MANY) -> list[tuple[str, Cluster, Reconciled]]:
    ten, six = (
        [pool(index) for index in range(10)],
        [pool(index, family=6, prefix=48, size=64) for index in range(10)],
    )
    large, one = pool(0, prefix=8, size=26), pool(0, prefix=15, size=32)
    full = Pool(
        name="full", at=AT, families=pool(0, prefix=28, size=28).families, selector=EVERY, selector_at=AT
    )
    old = [
        line
        for index, line in enumerate(held(large, 2 * many, state=State.QUARANTINED, since="2026-11-01"))
        if index % 2
    ] + [line for index, line in enumerate(held(large, 2 * many)) if not index % 2]
    exact = replace(
        large,
        families={
            4: replace(
                large.families[4], ranges=(Range(Block(4, large.families[4].ranges[0].block.first, 9), AT),)
            )
        },
    )
    return [
        (
            f"{many:,} newcomers, ten pools, /25 /26 /27",
            cluster(ten),
            reconciled(newcomers(three_sizes(ten, 4, 25, 26, 27), many), []),
        ),
        (
            f"{many:,} newcomers, ten IPv6 pools, /63 /64 /80",
            cluster(six, 6),
            reconciled(newcomers(three_sizes(six, 6, 63, 64, 80), many, 6), []),
        ),
        (
            f"1 newcomer behind {many:,} lines",
            cluster([large]),
            reconciled(newcomers([Offer(large, {4: 26})], 1), held(large, many)),
        ),
        (
            f"1 newcomer among {many:,} lines with gaps",
            cluster([large]),
            reconciled(newcomers([Offer(large, {4: 25})], 1), held(large, many, 2)),
        ),
        (f"no newcomer into {many:,} lines", cluster([large]), reconciled((), held(large, many))),
        (
            f"{many:,} newcomers over old lines",
            cluster([exact]),
            reconciled(newcomers([Offer(exact, {4: 26}), Offer(exact, {4: 27})], many), old),
        ),
        (
            f"{many:,} newcomers into a full pool",
            cluster([full, one]),
            reconciled(newcomers([Offer(full, {4: 28})], many), []),
        ),
    ]


def best(work: Callable[[], object], times: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(times)) * 1000


def main() -> None:
    for name, what, where in cases(int(sys.argv[1]) if len(sys.argv) > 1 else MANY):
        plan, found = allocate(what, (), where, TODAY)
        spent = best(lambda what=what, where=where: allocate(what, (), where, TODAY))  # type: ignore[misc] # mypy cannot type a lambda with defaults
        reused = sum(origin == "re-used" for origin in plan.origins.values())
        print(
            f"{spent:8.1f} ms  {name}: {len(plan.origins):,} placed, {reused:,} re-used, {len(found)} findings"
        )


if __name__ == "__main__":
    main()
