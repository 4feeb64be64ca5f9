"""The operator's errors after an apply, judged by what was written.

Errors stay in `operator-status` after their cause is gone (cilium issue 28758), and a node that is pinned to
its blocks is told `pool empty` whenever its agent asks for more than they hold: neither is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ipamc.model.address_sets import covers
from ipamc.model.cidr import Block
from ipamc.review.live.objects import parsed

_EMPTY = re.compile(
    r'failed to allocate ipv[46] address for node "[^"]*" from pool "([^"]*)": pool empty'
).search
_UNKNOWN = re.compile(r"allocator not configured for the requested CIDR (\S+)").search


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What an apply is judged by."""

    before: Mapping[str, str] = field(default_factory=dict)
    """The operator's errors before the apply, by node."""
    nodes: Collection[str] = ()
    """The nodes of which this run changed an object."""
    pools: Collection[str] = ()
    """The CiliumPodIPPools that this run changed."""
    own_pools: Collection[str] = ()
    """The CiliumPodIPPools of single nodes."""
    operator_list: Sequence[Block] = ()
    """What the operator of cluster-pool mode (adopt) may give, as rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
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
        left = [cause for cause in causes if not _is_pinned(cause, node, written)]
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


def _is_unknown_yet(cause: str, written: Written) -> bool:
    """Tell whether the operator lacks a CIDR that the rendered list has: it reads the list when it starts."""
    found = _UNKNOWN(cause)
    blocks = parsed([found[1]]) if found else []
    return bool(blocks) and covers(written.operator_list, blocks[0])
