"""The operator's errors after an apply, judged by what it changed.

Errors stay in `operator-status` after their cause is gone (cilium issue 28758). A node that is pinned to its
blocks gets `pool empty` whenever its agent asks for more than they hold. An operator that adopts has no
blocks of ours in its list, and says so of each of our nodes (model/cilium/operator_list.py). All three are no
failures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from ipamc.model.address_sets import covers
from ipamc.model.cidr import Block
from ipamc.review.live.objects import parsed

_EMPTY = re.compile(
    r'failed to allocate ipv[46] address for node "[^"]*" from pool "([^"]*)": pool empty'
).search
UNKNOWN = re.compile(r"allocator not configured for the requested CIDR (\S+)").search


class Run(Struct, frozen=True, kw_only=True):
    """What an apply changed, and what is rendered: errors are judged by it."""

    before: Mapping[str, str] = field(default_factory=dict)
    """The operator's errors before the apply, by node."""
    nodes: Collection[str] = ()
    """The nodes of which this run changed an object that the operator allocates by: not a Node."""
    pools: Collection[str] = ()
    """The CiliumPodIPPools that this run changed."""
    own_pools: Collection[str] = ()
    """The CiliumPodIPPools of single nodes."""
    given: Mapping[str, Collection[Block]] = field(default_factory=dict)
    """With `adopt`, the blocks that are rendered for each node."""
    operator_list: Sequence[Block] = ()
    """With `adopt`, what the operator may give, as rendered."""


class Judgement(Struct, frozen=True, kw_only=True):
    """The errors by node: only failures fail."""

    failures: Mapping[str, str]
    before: Mapping[str, str]
    """Errors that were there before, on nodes that were not changed."""
    restart: Mapping[str, str]
    """Blocks that the operator will know when it restarts with the rendered list."""


def judge(errors: Mapping[str, str], run: Run) -> Judgement:
    """Divide errors. An error has a line for each of its causes; the most severe one decides."""
    failures, before, restart = {}, {}, {}
    for node, text in errors.items():
        causes = [line.strip() for line in text.splitlines() if line.strip()]
        left = [cause for cause in causes if not _is_harmless(cause, node, run)]
        changed = node in run.nodes or any(f'"{pool}"' in text for pool in run.pools)
        unknown = [_unknown(cause) for cause in left]
        if not left:
            continue
        if run.before.get(node) == text and not changed:
            before[node] = text
        elif all(block is not None and covers(run.operator_list, block) for block in unknown):
            restart[node] = text  # the operator reads its list when it starts
        else:
            failures[node] = text
    return Judgement(failures=failures, before=before, restart=restart)


def _is_harmless(cause: str, node: str, run: Run) -> bool:
    """Tell whether an error is none: a pool of this node alone is used up, or the block is ipamc's alone.

    The blocks of its own pool are all that a node shall have. A block that only ipamc gives is in no list of
    the operator.
    """
    empty = _EMPTY(cause)
    if empty and empty[1] in run.own_pools and empty[1].partition(".")[2] == node:
        return True
    block = _unknown(cause)
    return block is not None and block in run.given.get(node, ()) and not covers(run.operator_list, block)


def _unknown(cause: str) -> Block | None:
    match = UNKNOWN(cause)
    return next(iter(parsed([match[1]])), None) if match else None
