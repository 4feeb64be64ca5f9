"""Plans made by hand, in a line: what a cluster is, which nodes it has, which blocks they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from ruamel.yaml import YAML

from ipamc.model.cidr import Block, Range, parse_block
from ipamc.model.cluster import Cluster, Mode, Pool, PoolFamily
from ipamc.model.diagnostics import Place
from ipamc.model.lock import Line, Lock, State
from ipamc.model.node import CiliumNode, Node
from ipamc.model.plan import Plan
from ipamc.model.selector.selector import EVERY, parse_calico
from ipamc.place.candidates import assign, shared_pools
from ipamc.render.arrange import arrange
from ipamc.render.yaml import emit
from ipamc.workspace.disk import assets

AT = Place("built.yaml")
TEMPLATES = assets("templates")


def ranges(*cidrs: str) -> tuple[Range, ...]:
    """Make ranges without a place."""
    return tuple(Range(parse_block(cidr), AT) for cidr in cidrs)


def pool(
    name: str,
    *cidrs: str,
    size: int = 26,
    size6: int = 122,
    nodes: str = "",
    reserved: Iterable[str] = (),
    **fields: Any,
) -> Pool:
    """Make a pool of CIDRs of either family; `nodes` is Calico text, `size` and `size6` are block sizes."""
    blocks = ranges(*cidrs)
    families = {
        family: PoolFamily(
            family=family,
            ranges=tuple(each for each in blocks if each.block.family == family),
            block_size=length,
            at=AT,
        )
        for family, length in ((4, size), (6, size6))
        if any(each.block.family == family for each in blocks)
    }
    selector = parse_calico(nodes) if nodes else EVERY
    return Pool(
        name=name,
        at=AT,
        families=families,
        selector=selector,
        selector_at=AT,
        reserved=ranges(*reserved),
        **fields,
    )


def node(
    name: str, labels: Mapping[str, str] | None = None, *, pod_cidrs: Iterable[str] = (), **fields: Any
) -> Node:
    """Make a node of the inventory, with a uid unless one is given."""
    fields.setdefault("uid", f"uid-of-{name}")
    return Node(name, dict(labels or {}), AT, pod_cidrs=tuple(map(parse_block, pod_cidrs)), **fields)


def seen(name: str, *cidrs: str) -> CiliumNode:
    """Make a CiliumNode of the live cluster."""
    return CiliumNode(name, AT, tuple(map(parse_block, cidrs)))


def plan(
    mode: str,
    pools: Iterable[Pool],
    held: Mapping[str, str | Iterable[str]],
    *,
    nodes: Iterable[Node] = (),
    version: str = "1.18",
    shards: int = 1,
    **cluster: Any,
) -> Plan:
    """Make a plan. `held` gives each node's blocks, `pending 10.0.0.0/24` for one that is to come; nodes that are in `held` alone have no labels."""
    pools = tuple(sorted(pools, key=lambda each: each.name))
    known = {each.name: each for each in nodes}
    every = tuple(known.get(name) or node(name) for name in sorted({*known, *held}))
    lines = tuple(
        sorted(
            (
                _line(pools, name, text)
                for name, texts in held.items()
                for text in ([texts] if isinstance(texts, str) else texts)
            ),
            key=lambda line: line.block,
        ),
    )
    major, minor = version.split(".")
    built = Cluster(
        name="built",
        at=AT,
        cilium=(int(major), int(minor)),
        mode=Mode(mode),
        managed_by=cluster.pop("managed_by", "none"),
        patch_nodes=cluster.pop("patch_nodes", "podCIDRs" if mode == "kubernetes" else "none"),
        pools=pools,
        nodes=every,
        **cluster,
    )
    wants = assign(built)
    by_node: dict[str, tuple[Line, ...]] = {}
    for line in lines:
        if line.state is State.HELD:
            by_node[line.node] = (*by_node.get(line.node, ()), line)
    lock = Lock(cluster="built", mode=built.mode, shards=shards, lines=lines)
    return Plan(
        scheme=built,
        wants=wants,
        lock=lock,
        origins={},
        stale=(),
        held=by_node,
        operator_pools=shared_pools(built, wants),
    )


def _line(pools: Iterable[Pool], name: str, text: str) -> Line:
    cidr = text.removeprefix("pending ")
    block = parse_block(cidr)
    return Line(
        block=block, pool=owner(pools, block), node=name, state=State.PENDING if cidr != text else State.HELD
    )


def owner(pools: Iterable[Pool], block: Block) -> str:
    """Name the pool whose range contains a block, or give ""."""
    return next(
        (
            each.name
            for each in pools
            for part in each.families.values()
            for one in part.ranges
            if one.block.contains(block)
        ),
        "",
    )


def rendered(made: Plan) -> dict[str, str]:
    """Render a plan with the project's templates: text by path."""
    return emit(arrange(made), TEMPLATES)


def read(text: str) -> list[Any]:
    """Read every document, as YAML 1.1 and as YAML 1.2 readers do: they must agree."""
    old = list(yaml.safe_load_all(text))
    new = list(YAML(typ="safe", pure=True).load_all(text))
    assert old == new
    return old
