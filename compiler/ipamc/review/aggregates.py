"""The fewest prefixes with exactly the addresses of some lines of a lock: the routes that routers see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ipamc.lock.line_changes import LineChange
from ipamc.lock.utilisation import lines_in
from ipamc.model.address_sets import aggregated
from ipamc.model.cidr import Block
from ipamc.model.cluster import Scheme
from ipamc.model.lock import Line, Lock, State
from ipamc.review.shown_pools import Choice

IN_USE = frozenset({State.HELD, State.PENDING})
"""The states of blocks whose routes routers must accept: those of pending blocks appear without notice.

Nobody announces a block in quarantine.
"""


class Aggregate(Struct, frozen=True, kw_only=True):
    """A prefix whose addresses are all in lines."""

    block: Block
    longest: int  # the longest prefix length of a line in it: no route of a node is longer
    blocks: int  # the number of lines that it covers


class LineGroup(Struct, frozen=True, kw_only=True):
    """The lines of a pool, or of the nodes with one value of a label."""

    name: str  # "" of lines outside every pool, or of nodes without the label
    blocks: int
    nodes: int
    prefixes: Mapping[int, Sequence[Aggregate]]
    """By family, by address; empty for a family in which the group could have blocks, but has none."""


class LabelError(ValueError):
    """A text names no label, or several; the message says which."""


def chosen(cluster: Scheme, lock: Lock, choice: Choice) -> Mapping[str, Sequence[Line]]:
    """Return the chosen lines by the pool whose ranges contain their start; "" has those outside every pool.
    The pool named in a line may have been renamed since, so ranges decide, as in `ipamc show`. O(n log n).
    """
    lines = tuple(Choice(nodes=choice.nodes, states=choice.states or IN_USE).lines(lock.lines))
    mine = replace(lock, lines=lines)
    found: dict[str, list[Line]] = {}
    inside: set[Block] = set()
    for pool in cluster.pools:
        of = [line for one in pool.ranges for line in lines_in(mine, one.block)]
        inside.update(line.block for line in of)
        if choice.has_pool(pool.name):
            found[pool.name] = of
    if not choice.pools and len(inside) < len(lines):
        found[""] = [line for line in lines if line.block not in inside]
    return found


def by_pool(cluster: Scheme, lines: Mapping[str, Sequence[Line]]) -> tuple[LineGroup, ...]:
    """Return the pools by name; last, the lines outside every pool. O(n log n)."""
    families = {pool.name: tuple(pool.families) for pool in cluster.pools}
    return tuple(_group(name, lines[name], families.get(name, ())) for name in _in_order(lines))


def by_label(cluster: Scheme, lines: Mapping[str, Sequence[Line]], key: str) -> tuple[LineGroup, ...]:
    """Return the values of a label of nodes in order; last, the lines of nodes that have none. O(n log n)."""
    values = {node.name: node.labels[key] for node in cluster.nodes if key in node.labels}
    found: dict[str, list[Line]] = {value: [] for value in values.values()}
    for line in (line for of in lines.values() for line in of):
        found.setdefault(values.get(line.node, ""), []).append(line)
    return tuple(_group(name, found[name], cluster.families if name else ()) for name in _in_order(found))


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (not name, name))


def label_key(cluster: Scheme, text: str) -> str:
    """Return the key of a label; `zone` stands for the only key that ends with `/zone`. Raises LabelError."""
    from ipamc.model.wording import listing, suggestion  # noqa: PLC0415 - only mistakes need it

    keys = {key for node in cluster.nodes for key in node.labels}
    if text in keys:
        return text
    meant = sorted(key for key in keys if key.rpartition("/")[2] == text)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise LabelError(f"label {text} may be {listing(meant)}: use one of them")
    near = suggestion(text, keys)
    raise LabelError(f"no node has a label {text}{f': {near}' if near else ''}")


def _group(name: str, lines: Sequence[Line], families: Iterable[int]) -> LineGroup:
    prefixes: dict[int, list[Aggregate]] = {family: [] for family in sorted(families)}
    for found in aggregates([line.block for line in lines]):
        prefixes.setdefault(found.block.family, []).append(found)
    return LineGroup(
        name=name, blocks=len(lines), nodes=len({line.node for line in lines}), prefixes=prefixes
    )


def aggregates(blocks: Sequence[Block]) -> list[Aggregate]:
    """Return the fewest prefixes with exactly the addresses of disjoint blocks, by address. O(n log n)."""
    rest = iter(sorted(blocks))
    block = next(rest, None)
    found = []
    for prefix in aggregated(blocks):
        end, family, longest, number = prefix.last, prefix.family, prefix.prefix, 0
        while block is not None and block.family == family and block.first <= end:
            longest, number = max(longest, block.prefix), number + 1
            block = next(rest, None)
        found.append(Aggregate(block=prefix, longest=longest, blocks=number))
    return found


Key = tuple[str, int]  # a pool and a family


class FilterLine(NamedTuple):
    """A line of a router's filter: the routes that it permits."""

    block: Block
    longest: int  # the longest prefix length of such a route


class PrefixChange(Struct, frozen=True, kw_only=True):
    """The change of the prefixes of one pool in one family, as lines of a router's filter.
    New lines are added before the apply, and former ones are removed after it, so that the filter never
    blocks an announced route.
    """

    pool: str  # "" of the blocks outside every pool
    family: int
    removed: tuple[FilterLine, ...]
    added: tuple[FilterLine, ...]

    @property
    def prefixes(self) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """Return the removed and the added prefixes: not those of which only the routes in them change."""
        gone, come = (dict.fromkeys(line.block for line in some) for some in (self.removed, self.added))
        return tuple(each for each in gone if each not in come), tuple(
            each for each in come if each not in gone
        )


def compare_prefixes(
    before: Iterable[Line], after: Iterable[Line], differing: Iterable[LineChange]
) -> tuple[PrefixChange, ...]:
    """Return the pools whose prefixes differ, by name and family; `differing` are the lines that differ.
    O(n); prefixes are computed only for pools that got or lost a block.
    """
    sides = (line for each in differing for line in (each.before, each.after))
    changed = {(line.pool, line.block.family) for line in sides if line and line.in_use}
    old, new = _filters(before, changed), _filters(after, changed)
    found = []
    for key in sorted(changed):
        removed = tuple([line for line in old[key] if line not in new[key]])
        added = tuple([line for line in new[key] if line not in old[key]])
        if removed or added:
            found.append(PrefixChange(pool=key[0], family=key[1], removed=removed, added=added))
    return tuple(found)


def _filters(lines: Iterable[Line], keys: Collection[Key]) -> Mapping[Key, Mapping[FilterLine, None]]:
    """Return the lines of filters by address, for some pools and families."""
    blocks: dict[Key, list[Block]] = {key: [] for key in keys}
    for line in lines if keys else ():
        if line.in_use and (some := blocks.get((line.pool, line.block.family))) is not None:
            some.append(line.block)
    return {
        key: dict.fromkeys(FilterLine(found.block, found.longest) for found in aggregates(some))
        for key, some in blocks.items()
    }
