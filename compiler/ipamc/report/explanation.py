"""Why a node has its blocks: the answer of `ipamc why`, as text and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ipamc.model.diagnostics import Place, Span, count
from ipamc.place.candidates import rank
from ipamc.report.terminal_text import visible, where
from ipamc.report.utilisation import state, state_record
from ipamc.review.explain_node import Step, Trace
from ipamc.review.explain_pools import Seen

VERSION = 1
"""Grows when a field of `record` changes its meaning or goes."""

LIMIT = 10
"""Pools that do not select the node, as far as a person is shown them."""

Find = Callable[[Place], Span]
"""From a place in the input to a line."""

_WIDTH = 13


def text(trace: Trace, lock: str, find: Find) -> str:
    """Tell the chain of reasons: a line a link, and beneath it where that is written. `lock` is the lock's path."""
    rows = [f"{visible(trace.node)} of {visible(trace.cluster)}: {trace.status}"]
    rows += [_row("note", note) for note in trace.notes]
    if trace.at:
        labels = ", ".join(f"{key}={value}" for key, value in trace.labels.items()) or (
            "no label that a selector looks at" if trace.pools else ""
        )
        rows.append(_row("node", labels or "its CiliumNode"))
        rows.append(_row("", _line(find(trace.at))))
    passed = [each for each in trace.pools if each.verdict == "passed over"]
    shown = [each for each in trace.pools if each not in passed[LIMIT:]]
    for each in shown:
        rows += _pool(each, find)
    if len(shown) < len(trace.pools):
        rows.append(
            _row("passed over", f"{count(len(trace.pools) - len(shown), 'more pool')}, all in --output json")
        )
    for step in trace.steps:
        rows.append(
            _row("block", f"{step.line.block} of {step.line.pool or 'no pool'}, {_state(step)}; {step.why}")
        )
        rows += [_row("", f"{lock}:{step.number}")] if step.number else []
        rows += (
            [_row("", f"{_line(find(step.at))}: {'shown' if step.origin == 'adopted' else 'pinned'} here")]
            if step.at
            else []
        )
    return "\n".join(rows) + "\n"


def _pool(seen: Seen, find: Find) -> Iterator[str]:
    yield _row(seen.verdict, f"{seen.pool.name}: {seen.why}")
    yield _row("", f"{_line(find(seen.pool.selector_at))}: nodeSelector {seen.pool.selector.canonical}")
    if seen.size:
        sizes = ", ".join(f"IPv{family} /{size}" for family, size in sorted(seen.size.sizes.items()))
        yield _row(
            "",
            f"{_line(find(seen.size.at / 'nodeSelector'))}: blockSizes {seen.size.selector.canonical}: {sizes}",
        )


def _row(label: str, told: str) -> str:
    return f"  {label:<{_WIDTH}}{visible(told)}"


def _line(span: Span) -> str:
    return where(Span(span.path, span.line))


def _state(step: Step) -> str:
    return state(step.line) if step.number else "to come"


def record(trace: Trace, lock: str, find: Find) -> dict[str, Any]:
    """Give the same for programs, whole. Selectors are in their canonical text; `key` is what pools are ordered by, the smallest first."""
    return {
        "cluster": trace.cluster,
        "status": trace.status,
        "notes": list(trace.notes),
        **({"node": {**_place(find(trace.at)), "labels": dict(trace.labels)}} if trace.at else {}),
        "pools": [
            {
                "pool": each.pool.name,
                "verdict": each.verdict,
                "why": each.why,
                "nodeSelector": each.pool.selector.canonical,
                **_place(find(each.pool.selector_at)),
                "key": list(rank(each.pool)),
                **(
                    {"blockSizes": {f"IPv{family}": size for family, size in sorted(each.size.sizes.items())}}
                    if each.size
                    else {}
                ),
            }
            for each in trace.pools
        ],
        "blocks": [
            {
                "block": str(step.line.block),
                "pool": step.line.pool,
                **(state_record(step.line) if step.number else {"state": "to come"}),
                **({"origin": step.origin} if step.origin else {}),
                "why": step.why,
                **({"file": lock, "line": step.number} if step.number else {}),
            }
            for step in trace.steps
        ],
    }


def _place(span: Span) -> dict[str, str | int]:
    return {"file": span.path, "line": span.line}
