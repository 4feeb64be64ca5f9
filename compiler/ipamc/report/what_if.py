"""The answer to `forecast --what-if` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import asdict

from ipamc.model.diagnostics import count
from ipamc.model.limits import ADDED_SHOWN, LINES_SHOWN
from ipamc.model.lock import Line
from ipamc.report.terminal_text import box, visible
from ipamc.report.utilisation import number
from ipamc.review.what_if import WhatIf

VERSION = 1


def text(answer: WhatIf) -> str:
    """Return the answer: a table of pools that change, then the nodes' blocks, and full pools."""
    changes = ", ".join(visible(change.text) for change in answer.changes)
    verdict = "all nodes get their blocks" if answer.fits else "compile refuses it"
    lines = (*_coming(answer), *_going(answer), *_lacking(answer), *notes(answer))
    head = f"{visible(answer.changed.cluster.name)}, what if {changes}: {verdict}\n"
    return head + _table(answer) + "".join(f"{line}\n" for line in lines)


def _table(answer: WhatIf) -> str:
    full = {found.pool for found in answer.without}
    table: list[tuple[str, ...]] = [("POOL", "BLOCKS", "HELD", "THEN", "FREE", "THEN", "LATER")]
    for change in answer.pools:
        before, after = change.before, change.after
        if before != after or change.pool.name in full:
            numbers = map(number, (change.blocks, before.held, after.held, before.free, after.free))
            later = f"{number(change.later.free)} on {change.later_on}" if change.later_on else ""
            table.append((f"{visible(change.pool.name)} /{change.block_size}", *numbers, later))
    if len(table) == 1:
        return "no pool changes\n"
    columns = 7 if any(row[-1] for row in table[1:]) else 6
    head, *body = (row[:columns] for row in table)
    return box(head, [body], numbers=range(1, 6))


def _coming(answer: WhatIf) -> Iterator[str]:
    lacking = {name for found in answer.without for name in found.nodes}
    for change, names in answer.changed.added.items():
        served = [name for name in names if name not in lacking]
        by_pool = Counter(line.pool for name in served for line in answer.given[name])
        given = (f"{count(blocks, 'block')} of {visible(pool)}" for pool, blocks in sorted(by_pool.items()))
        pools = ", ".join(given)
        what = f", with {pools}" if pools else "" if lacking else ", without a block: no pool selects them"
        yield f"{visible(change)}: {len(served):,} of {count(len(names), 'node')} served{what}"
        some_nodes = served if len(served) <= ADDED_SHOWN + 1 else [*served[:ADDED_SHOWN], "", served[-1]]
        for name in some_nodes:
            blocks = [str(line.block) for line in answer.given[name]] if name else []
            some = [*blocks[:4], "…"] if len(blocks) > 4 else blocks
            yield f"  {visible(name)}: {', '.join(some)}" if name else "  …"


def _going(answer: WhatIf) -> Iterator[str]:
    for change, names in answer.changed.removed.items():
        gone = set(names)
        lines = [line for line in answer.left if line.node in gone]
        until = f"free on {answer.free_on}" if answer.free_on else "forever (quarantineDays)"
        what = f"{count(len(lines), 'block')} in quarantine, {until}" if lines else "no block was in use"
        leave = "leaves" if len(names) == 1 else "leave"
        yield f"{visible(change)}: {count(len(names), 'node')} {leave}, {what}"


def _lacking(answer: WhatIf) -> Iterator[str]:
    new = {name for names in answer.changed.added.values() for name in names}
    for found in answer.without[:LINES_SHOWN]:
        first = found.nodes[0]
        old = sum(name not in new for name in found.nodes)
        of = f", {old:,} of them in the inventory already" if old else ""
        nodes = count(len(found.nodes), "node")
        yield f"{nodes} without a block{of}; the first is {visible(first)} [{found.finding.code}]"
        yield f"  {visible(found.finding.message)}"
        yield from (f"  - {'' if way.enough else 'helps some: '}{visible(way.text)}" for way in found.ways)
        if not found.ways and found.finding.help:
            yield f"  - {visible(found.finding.help)}"
    if len(answer.without) > LINES_SHOWN:
        yield f"{len(answer.without) - LINES_SHOWN:,} more reasons: --output json lists all"
    yield from (f"{refused.code}: {visible(refused.message)}" for refused in answer.refused[:LINES_SHOWN])


def notes(answer: WhatIf) -> Iterator[str]:
    """Yield notes that explain the numbers."""
    if answer.not_compiled:
        nodes = count(answer.not_compiled, "node")
        yield f"counted as compiled: {nodes} of the inventory that the lock does not contain yet"
    if answer.consent:
        codes = ", ".join(sorted({found.code for found in answer.consent}))
        command = f"ipamc lock {visible(answer.changed.cluster.name)} --leave NODE, or --leave all"
        yield f"so many nodes can leave only with your consent ({codes}): {command}"
    if answer.operator_pools:
        pools = ", ".join(visible(name) for name in sorted(answer.operator_pools)[:8])
        start = "nodes start with these blocks; how many more their agents request is unknown"
        yield f"Cilium's operator gives out blocks of {pools}: {start}"


def record(answer: WhatIf) -> dict[str, Any]:
    """Return the answer for JSON, with every node."""

    def blocks(lines: Iterable[Line]) -> list[dict[str, str]]:
        return [{"block": str(line.block), "pool": line.pool} for line in lines]

    return {
        "cluster": answer.changed.cluster.name,
        "changes": [change.text for change in answer.changes],
        "fits": answer.fits,
        "pools": [
            {
                "pool": change.pool.name,
                "family": f"IPv{change.family}",
                "blockSize": change.block_size,
                "blocks": change.blocks,
                "before": asdict(change.before),
                "after": asdict(change.after),
                "later": {**asdict(change.later), "on": change.later_on} if change.later_on else None,
            }
            for change in answer.pools
        ],
        "added": [
            {"node": name, "change": change, "blocks": blocks(answer.given.get(name, ()))}
            for change, names in answer.changed.added.items()
            for name in names
        ],
        "removed": [
            {"node": name, "change": change}
            for change, names in answer.changed.removed.items()
            for name in names
        ],
        "quarantined": [{**block, "node": line.node} for line in answer.left for block in blocks([line])],
        "freeOn": answer.free_on,
        "without": [
            {
                "nodes": list(found.nodes),
                "pool": found.pool or None,
                "code": found.finding.code,
                "message": found.finding.message,
                "ways": list(map(asdict, found.ways)),
            }
            for found in answer.without
        ],
        "refused": [{"code": found.code, "message": found.message} for found in answer.refused],
        "notCompiled": answer.not_compiled,
        "needsConsent": sorted({found.code for found in answer.consent}),
        "operatorPools": sorted(answer.operator_pools),
    }
