"""Short ways to write pools, lines and newcomers, for tests of the allocator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ipamc.model.cidr import Block, Range, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import Node
from ipamc.model.plan import Demand, Offer, Reconciled, ShownBlock, Want
from ipamc.model.selector.selector import EVERY

AT = Place("clusters/lab/in.yaml")
TODAY = "2026-11-21"


def block(text: str) -> Block:
    return parse_block(text)


def ranges(*cidrs: str) -> tuple[Range, ...]:
    return tuple(Range(block(each), AT / each) for each in cidrs)


def pool(
    name: str,
    *cidrs: str,
    size: int = 28,
    size6: int = 124,
    pins: Mapping[str, Sequence[str]] | None = None,
    reserved: Iterable[str] = (),
    disabled: bool = False,
    unlisted: bool = False,
) -> Pool:
    """Make a pool of ranges of both families, in the order as written."""
    of = {family: tuple(each for each in ranges(*cidrs) if each.block.family == family) for family in (4, 6)}
    return Pool(
        name=name,
        at=AT / name,
        families={
            family: PoolFamily(
                family=family, ranges=some, block_size=size if family == 4 else size6, at=AT / name / family
            )
            for family, some in of.items()
            if some
        },
        selector=EVERY,
        selector_at=AT / name / "nodeSelector",
        reserved=ranges(*reserved),
        pins={node: ranges(*blocks) for node, blocks in (pins or {}).items()},
        disabled=disabled,
        unlisted=unlisted,
    )


def offer(of: Pool, *, instead: Iterable[Offer] = (), **sizes: int) -> Offer:
    """Offer a pool; `v4=` and `v6=` are other sizes than the pool's own."""
    own = {family: sizes.get(f"v{family}", part.block_size) for family, part in of.families.items()}
    return Offer(of, own, tuple(instead))


def cluster(
    *pools: Pool,
    nodes: Iterable[str] = (),
    mode: Mode = Mode.CLUSTER_POOL,
    families: tuple[int, ...] = (4,),
    excluded: Iterable[str] = (),
    days: int | None = 7,
) -> Cluster:
    return Cluster(
        name="lab",
        at=AT,
        cilium=(1, 18),
        managed_by="helm",
        mode=mode,
        families=families,
        excluded=ranges(*excluded),
        quarantine_days=days,
        pools=tuple(sorted(pools, key=lambda each: each.name)),
        nodes=tuple(Node(name, {}, AT / "nodes" / name) for name in sorted(nodes)),
    )


def want(name: str, *offers: Offer) -> Want:
    return Want(Node(name, {}, AT / "nodes" / name), offers)


def line(text: str) -> Line:
    """Make a line of `10.0.0.0/28 node`, with `pending`, `released` or a day behind it. A day with a star: the node moved."""
    cidr, node, *state = text.split()
    word = state[0] if state else ""
    day = word.rstrip("*") if word[:1].isdigit() else ""
    return Line(
        block=block(cidr),
        pool="p",
        node=node,
        state=State.QUARANTINED if day else State(word or "held"),
        since=day,
        moved=word.endswith("*"),
    )


def held_by_node(lines: Iterable[Line]) -> dict[str, tuple[Line, ...]]:
    """Return the held lines by node, in the order of `lines`."""
    held: dict[str, tuple[Line, ...]] = {}
    for line in lines:
        if line.state is State.HELD:
            held[line.node] = (*held.get(line.node, ()), line)
    return held


def reconciled(
    lines: Iterable[str | Line] = (), demands: Iterable[Demand] = (), taken: Iterable[str] = ()
) -> Reconciled:
    made = [line(each) if isinstance(each, str) else each for each in lines]
    lock = Lock(
        cluster="lab",
        mode=Mode.CLUSTER_POOL,
        shards=1,
        lines=tuple(sorted(made, key=lambda each: each.block)),
        path="clusters/lab/ipam.lock",
    )
    return Reconciled(
        lock=lock,
        held=held_by_node(lock.lines),
        demands=tuple(demands),
        taken=tuple(ShownBlock(each.block, "gone", each.at) for each in ranges(*taken)),
    )
