"""The answer of `ipamc why`, why a node has its blocks: as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ipamc.model.diagnostics import At, Span, count
from ipamc.model.limits import REJECTED_SHOWN
from ipamc.model.plan import Origin
from ipamc.model.pool_words import terms
from ipamc.place.candidates import rank
from ipamc.report.lock_lines import state, state_record
from ipamc.report.terminal_text import visible, where
from ipamc.review.explain_node import ExplainedBlock, ExplainedNode
from ipamc.review.explain_pools import ExplainedPool, PoolRole

VERSION = 1

Find = Callable[[At], Span]  # maps a place in the input to its line

_WIDTH = 13
_SKIPPED = "skipped"


def text(node: ExplainedNode, lock: str, find: Find) -> str:
    """Return a row for each reason, with file and line of its source; `lock` is the lock's path."""
    planned = ", planned, not joined yet" if node.planned else ""
    words = terms(node.node)
    rows = [f"{visible(node.node)} of {visible(node.cluster)}: {node.status}{planned}"]
    rows += [_row("note", note) for note in node.notes]
    if node.at:
        labels = ", ".join(f"{key}={value}" for key, value in node.labels.items())
        without = "no label that a selector uses" if node.pools else "its CiliumNode"
        rows += [_row(words.unit, labels or without), _row("", _line(find(node.at)))]
    passed_over = [pool for pool in node.pools if pool.verdict is PoolRole.PASSED_OVER]
    first = passed_over[:REJECTED_SHOWN]
    for pool in node.pools:
        shown = pool.verdict is not PoolRole.PASSED_OVER or pool in first
        rows += _pool(pool, words.selector, find) if shown else ()
    if len(passed_over) > len(first):
        more = count(len(passed_over) - len(first), "more pool")
        rows.append(_row(_SKIPPED, f"{more}, all in --output json"))
    for block in node.blocks:
        rows += _block(block, lock, find)
    return "\n".join(rows) + "\n"


def _pool(explained: ExplainedPool, field: str, find: Find) -> Iterator[str]:
    pool, size = explained.pool, explained.size
    label = _SKIPPED if explained.verdict is PoolRole.PASSED_OVER else explained.verdict
    yield _row(label, f"{pool.name}: {explained.why}")
    yield _row("", f"{_line(find(pool.selector_at))}: {field} {pool.selector.canonical}")
    if size:
        sizes = ", ".join(f"IPv{family} /{prefix}" for family, prefix in sorted(size.sizes.items()))
        at = _line(find(size.at / "nodeSelector"))
        yield _row("", f"{at}: blockSizes {size.selector.canonical}: {sizes}")


def _block(block: ExplainedBlock, lock: str, find: Find) -> Iterator[str]:
    in_state = state(block.line) if block.number else "to come"
    yield _row("block", f"{block.line.block} of {block.line.pool or 'no pool'}, {in_state}; {block.why}")
    if block.number:
        yield _row("", f"{lock}:{block.number}")
    if block.at:
        how = "shown" if block.origin is Origin.ADOPTED else "its address is" if block.follows else "pinned"
        yield _row("", f"{_line(find(block.at))}: {how} here")


def _row(label: str, content: str) -> str:
    return f"  {label:<{_WIDTH}}{visible(content)}"


def _line(span: Span) -> str:
    return where(Span(span.path, span.line))


def record(node: ExplainedNode, lock: str, find: Find) -> dict[str, Any]:
    """Return the explanation for JSON: canonical selectors; pools in ascending order of `key`."""
    planned = {"planned": True} if node.planned else {}
    return {
        "cluster": node.cluster,
        "status": node.status,
        "notes": list(node.notes),
        **({"node": {**_place(find(node.at)), "labels": dict(node.labels), **planned}} if node.at else {}),
        "pools": [_pool_record(pool, find) for pool in node.pools],
        "blocks": [
            {
                "block": str(block.line.block),
                "pool": block.line.pool,
                **(state_record(block.line) if block.number else {"state": "to come"}),
                **({"origin": block.origin} if block.origin else {}),
                "why": block.why,
                **({"file": lock, "line": block.number} if block.number else {}),
            }
            for block in node.blocks
        ],
    }


def _pool_record(explained: ExplainedPool, find: Find) -> dict[str, Any]:
    pool, size = explained.pool, explained.size
    sizes = {f"IPv{family}": prefix for family, prefix in sorted(size.sizes.items())} if size else {}
    return {
        "pool": pool.name,
        "verdict": explained.verdict,
        "why": explained.why,
        "nodeSelector": pool.selector.canonical,
        **_place(find(pool.selector_at)),
        "key": list(rank(pool)),
        **({"blockSizes": sizes} if size else {}),
    }


def _place(span: Span) -> dict[str, str | int]:
    return {"file": span.path, "line": span.line}
