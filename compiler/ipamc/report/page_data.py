"""A cluster as columns for the page's script: 100,000 nodes are some 6 MB, 5,000 nodes 400 KB.

Objects with a name for each field would be four times as long. `templates/page/20-data.js` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from ipamc.model.cidr import Block
from ipamc.model.limits import RAREST_LABEL_COLUMN
from ipamc.model.lock import Line, State
from ipamc.report.terminal_text import harmless_json
from ipamc.report.utilisation import use_record
from ipamc.review.address_map import ClusterMap, PoolMap, Sort, Versions

_STATES = {State.HELD: 0, State.PENDING: 1, State.QUARANTINED: 2, State.RELEASED: 3}

_SORTS = {sort: number for number, sort in enumerate(Sort)}


class Part(Struct, frozen=True, kw_only=True):
    """A cluster on the page."""

    map: ClusterMap
    versions: Versions
    lock_path: str  # as the user would type it
    shallow: bool = False  # the history of the clone is cut
    left_out: int = 0  # the number of lock versions that are not on the page
    started: frozenset[Block] = frozenset()  # blocks that nodes started with, and may no longer have


def document(parts: Iterable[Part], **about: object) -> str:
    """Return the JSON of all clusters: printable, without characters that could end an HTML element.
    It is safe in a terminal and in a log of CI: `harmless` changes nothing in it.
    """
    text = msgspec.json.encode({**about, "clusters": [_cluster(part) for part in parts]}).decode()
    for character in "<>&":  # only in strings
        text = text.replace(character, f"\\u{ord(character):04x}")
    text = harmless_json(text)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
    return text


def _cluster(part: Part) -> dict[str, Any]:
    mapped, versions, nodes = part.map, part.versions, part.map.cluster.nodes
    names = list(dict.fromkeys((*(node.name for node in nodes), *(line.node for line in versions.lines))))
    numbers = {name: number for number, name in enumerate(names)}
    pools = [pool.name for pool in mapped.cluster.pools]
    pools += sorted({line.pool for line in versions.lines}.difference(pools))
    return {
        "name": mapped.cluster.name,
        "mode": mapped.cluster.mode.value,
        "quarantineDays": mapped.cluster.quarantine_days,
        "lock": part.lock_path,
        "pools": [_pool(pool) for pool in mapped.pools],
        "poolNames": pools,
        "nodes": names,
        "inventory": len(nodes),
        "labels": _labels([node.labels for node in nodes], names),
        "groups": [[[of.pool.name, str(of.verdict), of.why] for of in group] for group in mapped.groups],
        "groupOf": _runs([mapped.group_of.get(node.name, -1) for node in nodes]),
        "lines": _lines(versions.lines, numbers, {name: number for number, name in enumerate(pools)}),
        "current": versions.current,
        "atStart": [number for number, line in enumerate(versions.lines) if line.block in part.started],
        "sorts": list(Sort),
        "steps": [
            {
                "commit": step.commit,
                "second": step.second,
                "subject": step.subject,
                "added": list(_ranges(step.added)),
                "removed": list(_ranges(step.removed)),
                "why": _runs([_SORTS[sort] for sort in step.sorts]),
            }
            for step in versions.steps
        ],
        "shallow": part.shallow,
        "leftOut": part.left_out,
        "unreadable": versions.passed_over,
    }


def _pool(pool: PoolMap) -> dict[str, Any]:
    use, model, family = pool.use, pool.use.pool, pool.use.family.family
    return {
        "name": model.name,
        "family": family,
        "size": use.family.block_size,
        "selector": model.selector.canonical,
        "first": pool.first,
        "further": pool.further,
        "room": pool.room,
        **use_record(use.use),
        "ranges": [{"cidr": str(part.range.block), **use_record(part.use)} for part in use.ranges],
        "reserved": [[str(one.block), one.reason] for one in model.reserved if one.block.family == family],
        "excluded": list(map(str, pool.excluded)),
        "unlined": list(map(str, pool.without_line)),
    }


def _labels(labels: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a column for each key: its values, and for each node the index of its value; -1 for none.
    A label that equals the node's name on every node, as kubernetes.io/hostname does, has no column of
    values. A label on few nodes has pairs, because each node may have other keys. O(labels of all nodes).
    """
    columns: dict[str, dict[int, str]] = {}
    for number, one in enumerate(labels):
        for key, value in one.items():
            columns.setdefault(key, {})[number] = value
    found: list[dict[str, Any]] = []
    for key, column in sorted(columns.items()):
        if len(column) == len(labels) and all(value == names[number] for number, value in column.items()):
            found.append({"key": key, "isName": True})
            continue
        values = sorted(set(column.values()))
        places = {value: place for place, value in enumerate(values)}
        entry: dict[str, Any] = {"key": key, "values": values}
        if len(column) * RAREST_LABEL_COLUMN < len(labels):
            entry["few"] = [[number, places[value]] for number, value in column.items()]
        else:
            numbers = (places[column[number]] if number in column else -1 for number in range(len(labels)))
            entry["of"] = _runs(numbers)
        found.append(entry)
    return found


def _lines(
    lines: Sequence[Line], nodes: Mapping[str, int], pools: Mapping[str, int]
) -> dict[str, Sequence[Any]]:
    """Return the columns of lines.
    The first address of an IPv4 block is a number, as a difference to the line before. An IPv6 block is the
    text of the CIDR, because a script has no numbers of that size.
    """
    firsts: list[int | str] = []
    before = 0
    for line in lines:
        family, first, _ = line.block
        firsts.append(first - before if family == 4 else str(line.block))
        before = first if family == 4 else before
    return {
        "first": firsts,
        "prefix": _runs([line.block.prefix for line in lines]),
        "node": [nodes[line.node] for line in lines],
        "pool": _runs([pools[line.pool] for line in lines]),
        "state": _runs([_STATES[line.state] for line in lines]),
        "since": [[number, line.since] for number, line in enumerate(lines) if line.since],
        "moved": [number for number, line in enumerate(lines) if line.moved],
        "addresses": [[number, line.addresses] for number, line in enumerate(lines) if line.addresses],
    }


def _runs(numbers: Iterable[int]) -> list[int]:
    """Return a column of numbers as [number, repetitions, …]: neighbours are often equal."""
    return [part for number, run in groupby(numbers) for part in (number, sum(1 for _ in run))]


def _ranges(numbers: Sequence[int]) -> Iterator[int]:
    """Yield ascending numbers as start, length of the run, …; each start relative to the run before."""
    end = 0
    for _, row in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in row]
        yield members[0] - end
        yield len(members)
        end = members[-1] + 1
