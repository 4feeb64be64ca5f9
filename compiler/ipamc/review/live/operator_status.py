"""The operator's errors after an apply, judged by what was written.

Errors stay in `operator-status` after their cause is gone (cilium issue 28758). A node that is pinned to its
blocks is told `pool empty` whenever its agent asks for more than they hold. An operator that adopts has no
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
_UNKNOWN = re.compile(r"allocator not configured for the requested CIDR (\S+)").search


class Written(Struct, frozen=True, kw_only=True):
    """What an apply is judged by."""

    before: Mapping[str, str] = field(default_factory=dict)
    """The operator's errors before the apply, by node."""
    nodes: Collection[str] = ()
    """The nodes of which this run changed an object that the operator allocates by; it reads no Node for that."""
    pools: Collection[str] = ()
    """The CiliumPodIPPools that this run changed."""
    own_pools: Collection[str] = ()
    """The CiliumPodIPPools of single nodes."""
    given: Mapping[str, Collection[Block]] = field(default_factory=dict)
    """With `adopt`, the blocks that are rendered for each node."""
    operator_list: Sequence[Block] = ()
    """With `adopt`, what the operator may give, as rendered."""

    def knows(self, block: Block) -> bool:
        """Tell whether the rendered list has a block."""
        return covers(self.operator_list, block)


class Verdict(Struct, frozen=True, kw_only=True):
    """The errors by node: only failures fail."""

    failures: Mapping[str, str]
    before: Mapping[str, str]
    """Errors that were there before, on nodes that were not changed."""
    restart: Mapping[str, str]
    """Blocks that the operator will know when it restarts with the rendered list."""


def judge(errors: Mapping[str, str], written: Written) -> Verdict:
    """Divide errors. An error has a line for each of its causes; the most severe one decides."""
    failures, before, restart = {}, {}, {}
    for node, text in errors.items():
        causes = [line.strip() for line in text.splitlines() if line.strip()]
        left = [
            cause
            for cause in causes
            if not _is_pinned(cause, node, written) and not _is_ours_alone(cause, node, written)
        ]
        if not left:
            continue
        changed = node in written.nodes or any(f'"{pool}"' in text for pool in written.pools)
        if written.before.get(node) == text and not changed:
            before[node] = text
        elif all(_is_unknown_yet(cause, written) for cause in left):
            restart[node] = text
        else:
            failures[node] = text
    return Verdict(failures=failures, before=before, restart=restart)


def _is_pinned(cause: str, node: str, written: Written) -> bool:
    """Tell whether a pool of this node alone is used up: its blocks are all that the node shall have."""
    found = _EMPTY(cause)
    return bool(found and found[1] in written.own_pools and found[1].partition(".")[2] == node)


def _is_ours_alone(cause: str, node: str, written: Written) -> bool:
    """Tell whether the operator does not know a block that only ipamc gives: it is in no list of it."""
    block = _unknown(cause)
    return block is not None and block in written.given.get(node, ()) and not written.knows(block)


def _is_unknown_yet(cause: str, written: Written) -> bool:
    """Tell whether the operator lacks a CIDR that the rendered list has: it reads the list when it starts."""
    block = _unknown(cause)
    return block is not None and written.knows(block)


def _unknown(cause: str) -> Block | None:
    found = _UNKNOWN(cause)
    return next(iter(parsed([found[1]])), None) if found else None
