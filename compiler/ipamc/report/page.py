"""The page of `ipamc report` and `ipamc plan --output html`: tables, and maps that its script draws.

It loads nothing, and sends nothing: its policy allows this script and this style by their hashes, and no
connection, image, frame or form. Text of users is escaped by the template, or is in the JSON of `data`.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import jinja2
from markupsafe import Markup
from msgspec import Struct

from ipamc.lock.utilisation import Use, lines_in
from ipamc.model.cidr import Block, address_text
from ipamc.model.cluster import AddressSpace
from ipamc.model.diagnostics import count, names
from ipamc.model.follows import networks
from ipamc.model.lock import State
from ipamc.model.pool_words import Terms, terms
from ipamc.report.page_data import Part, document
from ipamc.report.page_plan import plan
from ipamc.report.terminal_text import visible
from ipamc.report.utilisation import percent as share_of
from ipamc.review.address_map import PoolMap
from ipamc.review.diff.plan_report import PlanReport

_TEMPLATE = "page.html.j2"


class About(Struct, frozen=True, kw_only=True):
    """Facts about the page itself."""

    title: str
    subtitle: str
    day: str  # today, ISO 8601
    plan: Mapping[str, Any] | None = None  # of a plan: each cluster has two versions, before and after
    failures: Sequence[str] = ()  # lines about omitted clusters


def render(parts: Sequence[Part], assets: Mapping[str, str], about: About) -> str:
    """Return the page of some clusters.
    `assets` are files of `templates/page/`: scripts (joined by name), `style.css`, `dark.css`, the template.
    """
    script = "\n".join(assets[name] for name in sorted(assets) if name.endswith(".js"))
    # The dark theme is inserted in two places: CSS cannot name a list of declarations.
    declarations = assets["dark.css"].partition("{")[2].rpartition("}")[0].strip()
    style = assets["style.css"].replace("/* dark.css */", declarations)
    hashes = f"script-src {_hash(script)}; style-src {_hash(style)}"
    return _template(assets[_TEMPLATE]).render(
        policy=f"default-src 'none'; {hashes}; base-uri 'none'; form-action 'none'",
        title=visible(about.title),
        subtitle=visible(about.subtitle),
        style=Markup(style),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        data=Markup(document(parts, day=about.day, plan=about.plan is not None)),  # noqa: S704 - without < and >
        plan=about.plan,
        failures=[visible(line) for line in about.failures],
        **summary(parts),
    )


def render_plan(report: PlanReport, assets: Mapping[str, str], day: str) -> str:
    """Return a plan as a page: its sections, and maps before and after, with changes. `day` is today."""
    pictures = [cluster.picture for cluster in report.clusters if cluster.picture]
    parts = [Part(map=each.map, versions=each.versions, lock_path=each.lock_path) for each in pictures]
    about = About(
        title="Address plan",
        subtitle=f"against {report.base or 'the disk'}, {day}",
        day=day,
        plan=plan(report),
    )
    return render(parts, assets, about)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def _template(text: str) -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(text)


_LEFT, _WIDTH, _ROW = 200, 1200, 24
"""Of the picture of an address space: the start of its axis, its length, and the height of a row."""


def summary(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the values for the template about some clusters: texts, and numbers as text."""
    rows = [
        _row(part, place, index, pool)
        for place, part in enumerate(parts)
        for index, pool in enumerate(part.map.pools)
    ]
    uses = [pool.use.use for part in parts for pool in part.map.pools]
    return {
        "many": len(parts) > 1,
        "quarantine": any(use.quarantined for use in uses),
        "reserve": any(use.reserved for use in uses),
        "rows": sorted(rows, key=itemgetter("order")),
        "nobody": [line for part in parts for line in _nobody(part, several=len(parts) > 1)],
        "spaces": list(_spaces(parts)),
        "clusters": [_cluster(part) for part in parts],
    }


def _row(part: Part, place: int, index: int, pool: PoolMap) -> dict[str, Any]:
    use, disabled = pool.use.use, pool.use.pool.disabled
    return {
        "cluster": visible(part.map.cluster.name),
        "cluster_number": place,
        "number": index,
        "pool": visible(pool.use.pool.name),
        "family": f"IPv{pool.use.family.family}",
        "size": pool.use.family.block_size,
        # As in `ipamc show`: pools without room, then the fullest ones; disabled ones last.
        "order": (disabled, pool.room > 0, -_share(use), pool.room, part.map.cluster.name, index),
        "percent": percent(use),
        "bar": list(_bar(use)),
        "room": number(pool.room),
        **{kind: number(getattr(use, kind)) for kind in ("total", "held", "quarantined", "reserved")},
        "free": number(use.available),
        "nodes": number(pool.first + pool.further),
    }


def number(value: int) -> str:
    """Return a count as text: with commas; above a billion, as for IPv6, as a power of two."""
    if value < 1_000_000_000:
        return f"{value:,}"
    power = value.bit_length() - 1
    return f"2^{power}" if value == 1 << power else f"2^{math.log2(value):.1f}"


def _share(use: Use) -> float:
    return 1 - use.available / use.total if use.total else 0.0


def percent(use: Use) -> str:
    """Return the used share of addresses as in `ipamc show`: rounded down, and exact for IPv6, too."""
    return share_of(use.total - use.available, use.total).replace("%", " %") or "0 %"


def _bar(use: Use) -> Iterator[dict[str, str]]:
    """Yield the parts of a bar of 100, from the left. The rest is free or released."""
    at = 0.0
    for state in ("held", "quarantined", "reserved"):
        part = 100 * getattr(use, state) / use.total if use.total else 0
        if part:
            yield {"state": state, "x": f"{at:.2f}", "width": f"{part:.2f}"}
        at += part


def _nobody(part: Part, *, several: bool) -> Iterator[str]:
    meant = [each for each in part.map.pools if not each.use.pool.disabled and not each.use.pool.unlisted]
    unused = {each.use.pool.name for each in meant if not each.first + each.further}
    if unused and part.map.cluster.nodes and not isinstance(part.map.cluster, AddressSpace):
        where = f"{part.map.cluster.name}: " if several else ""
        which = f"{count(len(unused), 'pool')} without a node in the inventory: {names(unused)}"
        yield visible(f"{where}{which}")


def _cluster(part: Part) -> dict[str, Any]:
    mapped, words = part.map, terms(part.map.cluster)
    of_state = Counter(line.state for line in mapped.lock.lines)
    named = {line.node for line in mapped.lock.lines if line.in_use}
    without = sum(node.name not in named for node in mapped.cluster.nodes)
    kept = of_state[State.QUARANTINED] + of_state[State.RELEASED]
    held = [line for line in mapped.lock.lines if line.state is State.HELD]
    ranges = [part.range.block for pool in mapped.pools for part in pool.use.ranges]
    outside = len(mapped.lock.lines) - sum(len(lines_in(mapped.lock, block)) for block in ranges)
    owners = {line.node.partition("/")[0] for line in held}
    said = [
        f"{count(len(owners), words.owner)} with {count(len(held), words.block)}",
        *([f"{count(of_state[State.PENDING], f'pending {words.block}')}"] if of_state[State.PENDING] else []),
        *([f"{count(without, words.unit)} {words.listed} without a block"] if without else []),
        *([f"{count(kept, words.block)} without a {words.owner}"] if kept else []),
        *([f"{count(outside, words.block)} outside all pools (not on the map)"] if outside else []),
        f"mode {mapped.cluster.mode}",
        part.lock_path,
    ]
    return {
        "name": visible(mapped.cluster.name),
        "said": visible("; ".join(said)),
        "pools": [_pool(pool, words) for pool in mapped.pools],
    }


def _pool(pool: PoolMap, words: Terms) -> dict[str, str]:
    model, use = pool.use.pool, pool.use.use
    facts = [
        f"IPv{pool.use.family.family}, blocks of /{pool.use.family.block_size}",
        f"{percent(use)} used",
        f"room for {number(pool.room)} more {words.unit if pool.room == 1 else f'{words.unit}s'}",
    ]
    nodes = [f"first choice for {count(pool.first, words.unit)}"] if pool.first else []
    nodes += [f"fallback for {count(pool.further, words.unit)}"] if pool.further else []
    nobody = [] if words.unit == "range" else ["no node in the inventory"]  # a commit's clusters are not read
    facts_of = [
        f"{words.selector} {model.selector.canonical}: {', '.join(nodes or nobody)}".removesuffix(": ")
    ]
    facts_of += [f"priority {model.priority}"] if model.priority else []
    facts_of += [f"overflow to {', '.join(model.overflow)}"] if model.overflow else []
    kept = "Disabled: gives out no new blocks. " if model.disabled else ""
    if model.follows:
        kept = f"Follows {networks(model)}: the address of a node decides its block. "
    kept = "Only for pods: serves no node by itself. " if model.pods_only else kept
    kept += "For nodes outside the inventory. " if model.unlisted else ""
    takes = visible(kept + "; ".join(facts_of))
    return {"name": visible(model.name), "said": ", ".join(facts), "takes": takes}


def _spaces(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    """Yield a picture, per family, of each address space with several clusters: their ranges on one axis."""
    spaces: dict[tuple[str, int], list[tuple[Part, PoolMap]]] = defaultdict(list)
    for part in parts:
        for pool in part.map.pools if part.map.cluster.address_space else ():
            spaces[part.map.cluster.address_space, pool.use.family.family].append((part, pool))
    for (name, family), pools in sorted(spaces.items(), key=lambda item: item[0]):
        clusters = list(dict.fromkeys(part.map.cluster.name for part, _ in pools))
        if len(clusters) > 1:
            yield _space(name, family, clusters, pools)


def _space(name: str, family: int, clusters: list[str], pools: list[tuple[Part, PoolMap]]) -> dict[str, Any]:
    blocks = [part.range.block for _, pool in pools for part in pool.use.ranges]
    low, high = min(block.first for block in blocks), max(block.last for block in blocks) + 1
    scale = _WIDTH / (high - low)
    rows: list[dict[str, Any]] = []
    for place, cluster in enumerate(clusters):
        mine = [pool.use for part, pool in pools if part.map.cluster.name == cluster]
        ranges = [(use.pool.name, part.range.block, part.use) for use in mine for part in use.ranges]
        boxes = [_box(*each, low, scale) for each in ranges]
        rows.append({"cluster": visible(cluster)[:26], "y": place * _ROW, "boxes": boxes})
    middle = low + (high - low) // 2
    said = f"{', '.join(clusters)}: all pools on one axis. Blue is used, grey is free, light is in no pool"
    return {
        "name": visible(f"{name}, IPv{family}"),
        "said": visible(said),
        "height": len(clusters) * _ROW + 22,
        "rows": rows,
        "ticks": [
            {"x": _LEFT, "anchor": "start", "text": address_text(family, low)},
            {"x": _LEFT + _WIDTH // 2, "anchor": "middle", "text": address_text(family, middle)},
            {"x": _LEFT + _WIDTH, "anchor": "end", "text": address_text(family, high - 1)},
        ],
    }


def _box(pool: str, block: Block, use: Use, low: int, scale: float) -> dict[str, str]:
    width = max(block.size * scale, 2)
    return {
        "x": f"{_LEFT + (block.first - low) * scale:.1f}",
        "width": f"{width:.1f}",
        "used": f"{width * _share(use):.1f}",
        "said": visible(f"{block} of {pool}: {percent(use)} used"),
    }
